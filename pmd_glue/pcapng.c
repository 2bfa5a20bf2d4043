/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/pcapng.h"

#include <string.h>

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATS = 5,
	BLOCK_FRAME = 6,
	ORDER_MAGIC = 0x1a2b3c4d, /* tells a reader the byte order */
	LINK_ETHERNET = 1,
	NAME_MOST = 63,
};

/* Codes of options; each block has its own. */
enum {
	OPT_END = 0,
	SECTION_APPL = 4,
	IFACE_NAME = 2,
	IFACE_MAC = 6,
	IFACE_TSRESOL = 9,
	FRAME_FLAGS = 2,
	FRAME_QUEUE = 6,
	STATS_SEEN = 4,
	STATS_DROPPED = 5,
};

static size_t
put16(uint8_t *to, uint16_t v)
{
	memcpy(to, &v, sizeof(v));
	return sizeof(v);
}

static size_t
put32(uint8_t *to, uint32_t v)
{
	memcpy(to, &v, sizeof(v));
	return sizeof(v);
}

/* A time comes in two halves, the upper one first, in any byte order. */
static size_t
put_time(uint8_t *to, uint64_t ns)
{
	put32(to, (uint32_t)(ns >> 32));
	put32(to + 4, (uint32_t)ns);
	return 8;
}

static size_t
put_option(uint8_t *to, uint16_t code, const void *value, size_t len)
{
	size_t padded = RTE_ALIGN(len, 4);

	memset(to, 0, 4 + padded);
	put16(to, code);
	put16(to + 2, (uint16_t)len);
	memcpy(to + 4, value, len);
	return 4 + padded;
}

/* End the options and the block of `at` bytes, and write its length at both ends. returns: its
 * length */
static size_t
end(uint8_t *block, size_t at)
{
	at += put_option(block + at, OPT_END, "", 0);
	put32(block + 4, (uint32_t)at + 4);
	return at + put32(block + at, (uint32_t)at + 4);
}

size_t
urn_pcapng_section(uint8_t *to)
{
	const int64_t unknown = -1; /* length of the section: the file is written as frames come */
	size_t at = 8;

	put32(to, BLOCK_SECTION);
	at += put32(to + at, ORDER_MAGIC);
	at += put16(to + at, 1); /* version 1.0 */
	at += put16(to + at, 0);
	memcpy(to + at, &unknown, sizeof(unknown));
	at += sizeof(unknown);
	at += put_option(to + at, SECTION_APPL, "urnic", 5);
	return end(to, at);
}

size_t
urn_pcapng_interface(uint8_t *to, const char *name, const uint8_t *mac, uint32_t snap)
{
	const uint8_t digits = 9;
	size_t at = 8;

	put32(to, BLOCK_INTERFACE);
	at += put16(to + at, LINK_ETHERNET);
	at += put16(to + at, 0); /* reserved */
	at += put32(to + at, snap);
	at += put_option(to + at, IFACE_NAME, name, strnlen(name, NAME_MOST));
	at += put_option(to + at, IFACE_MAC, mac, 6);
	at += put_option(to + at, IFACE_TSRESOL, &digits, 1);
	return end(to, at);
}

size_t
urn_pcapng_frame(uint8_t *to, const struct urn_pcapng_frame *f)
{
	const struct rte_mbuf *m;
	size_t at = 8, kept = 0;

	put32(to, BLOCK_FRAME);
	at += put32(to + at, f->iface);
	at += put_time(to + at, f->ns);
	at += put32(to + at, f->m->pkt_len);
	at += put32(to + at, f->len);
	for (m = f->m; m != NULL; m = m->next) {
		memcpy(to + at + kept, rte_pktmbuf_mtod(m, const void *), m->data_len);
		kept += m->data_len;
	}
	memset(to + at + kept, 0, RTE_ALIGN(kept, 4) - kept);
	at += RTE_ALIGN(kept, 4);
	at += put_option(to + at, FRAME_FLAGS, &f->direction, 4);
	at += put_option(to + at, FRAME_QUEUE, &f->queue, 4);
	return end(to, at);
}

size_t
urn_pcapng_stats(uint8_t *to, uint32_t iface, uint64_t ns, uint64_t seen, uint64_t dropped)
{
	size_t at = 8;

	put32(to, BLOCK_STATS);
	at += put32(to + at, iface);
	at += put_time(to + at, ns);
	at += put_option(to + at, STATS_SEEN, &seen, 8);
	at += put_option(to + at, STATS_DROPPED, &dropped, 8);
	return end(to, at);
}
