/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the frames that nodes send into a pcap file: at the sender, before a wire
 * drops, duplicates, delays or corrupts them. The clock is the virtual one, in nanoseconds.
 */
#include "sim.h"

#include <rte_cycles.h>

struct file_hdr {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snaplen, link;
};
_Static_assert(sizeof(struct file_hdr) == 24, "head of a pcap file");

struct rec_hdr {
	uint32_t sec, nsec;
	uint32_t captured, len; /* bytes */
};
_Static_assert(sizeof(struct rec_hdr) == 16, "head of a frame in a pcap file");

#define MAGIC_NS 0xa1b23c4du /* time stamps in nanoseconds */
#define LINK_ETHERNET 1u

FILE *
sim_capture_open(const char *path)
{
	const struct file_hdr hdr = {MAGIC_NS, 2, 4, 0, 0, 65535, LINK_ETHERNET};
	FILE *f = fopen(path, "wb");

	if (f)
		fwrite(&hdr, sizeof(hdr), 1, f); /* ferror() keeps a failure */
	return f;
}

static void
write_frame(struct sim *s, const struct rte_mbuf *m)
{
	uint64_t ns = s->now - s->start;
	const struct rec_hdr rec = {(uint32_t)(ns / NS_PER_S), (uint32_t)(ns % NS_PER_S),
				    m->pkt_len, m->pkt_len};

	fwrite(&rec, sizeof(rec), 1, s->capture);
	for (; m; m = m->next)
		fwrite(rte_pktmbuf_mtod(m, const void *), 1, m->data_len, s->capture);
}

void
sim_capture(struct sim *s, struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0; i < n && s->capture; i++)
		write_frame(s, m[i]);
}
