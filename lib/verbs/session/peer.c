/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/peer.h"

#include <endian.h>
#include <stddef.h>
#include <string.h>

/* "USP1": the last byte is the version of the layout. */
enum { URN_SV_PEER_MAGIC = 0x55535031, URN_SV_24_BITS = 0xffffff };

/* An answer as it travels. */
struct wire {
	uint32_t magic;			       /* URN_SV_PEER_MAGIC */
	uint32_t number;		       /* struct urn_sv_peer, as all below */
	uint8_t gid[URN_SV_ADAPTERS][16];      /* ... */
	uint32_t key[URN_SV_ADAPTERS];	       /* ... */
	uint64_t addr;			       /* ... */
	uint64_t rsvd;			       /* 0; not read */
	struct urn_sv_ends path[URN_SV_PATHS]; /* ... */
};
_Static_assert(sizeof(struct wire) == URN_SV_PEER_BYTES, "the answer of a look-up");
_Static_assert(offsetof(struct wire, path) == 64, "the answer of a look-up");

void
urn_sv_peer_put(uint8_t to[URN_SV_PEER_BYTES], const struct urn_sv_peer *p)
{
	struct wire w = {.magic = htobe32(URN_SV_PEER_MAGIC),
			 .number = htobe32(p->number),
			 .addr = htobe64(p->addr)};

	memcpy(w.gid, p->gid, sizeof(w.gid));
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		w.key[i] = htobe32(p->key[i]);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		const struct urn_sv_ends *e = &p->path[i];

		w.path[i] = (struct urn_sv_ends){htobe32(e->qpn), htobe32(e->psn),
						 htobe32(e->ctl_qpn), htobe32(e->ctl_psn)};
	}
	memcpy(to, &w, sizeof(w));
}

static bool
ends_fit(const struct urn_sv_ends *e)
{
	return e->qpn != 0 && e->qpn <= URN_SV_24_BITS && e->psn <= URN_SV_24_BITS &&
	       e->ctl_qpn != 0 && e->ctl_qpn <= URN_SV_24_BITS && e->ctl_psn <= URN_SV_24_BITS;
}

bool
urn_sv_peer_get(const uint8_t *from, uint32_t bytes, struct urn_sv_peer *p)
{
	struct wire w;
	bool fits = true;

	*p = (struct urn_sv_peer){0};
	if (bytes < sizeof(w))
		return false;
	memcpy(&w, from, sizeof(w));
	if (be32toh(w.magic) != URN_SV_PEER_MAGIC)
		return false;
	p->number = be32toh(w.number);
	p->addr = be64toh(w.addr);
	memcpy(p->gid, w.gid, sizeof(p->gid));
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		p->key[i] = be32toh(w.key[i]);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		const struct urn_sv_ends *e = &w.path[i];

		p->path[i] = (struct urn_sv_ends){be32toh(e->qpn), be32toh(e->psn),
						  be32toh(e->ctl_qpn), be32toh(e->ctl_psn)};
		fits = fits && ends_fit(&p->path[i]);
	}
	if (!fits || p->number != p->path[0].qpn)
		*p = (struct urn_sv_peer){0};
	return fits && p->number != 0;
}
