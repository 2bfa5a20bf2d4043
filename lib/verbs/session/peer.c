/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/peer.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* "USP4": the last byte is the version, of this layout and of REPORT. */
enum { URN_SV_PEER_MAGIC = 0x55535034, URN_SV_24_BITS = 0xffffff };

/* An answer as it travels. */
struct wire {
	uint32_t magic;			       /* URN_SV_PEER_MAGIC */
	uint32_t number;		       /* struct urn_sv_peer, as all below */
	uint8_t gid[URN_SV_ADAPTERS][16];      /* ... */
	uint32_t key[URN_SV_ADAPTERS];	       /* ... */
	uint64_t addr;			       /* ... */
	uint8_t asked[16];		       /* ... */
	struct urn_sv_ends path[URN_SV_PATHS]; /* ... */
};
_Static_assert(sizeof(struct wire) == URN_SV_PEER_BYTES, "the answer of a look-up");
_Static_assert(offsetof(struct wire, path) == 72, "the answer of a look-up");

void
urn_sv_peer_put(uint8_t to[URN_SV_PEER_BYTES], const struct urn_sv_peer *p)
{
	struct wire w = {.magic = htobe32(URN_SV_PEER_MAGIC),
			 .number = htobe32(p->number),
			 .addr = htobe64(p->addr)};

	memcpy(w.gid, p->gid, sizeof(w.gid));
	memcpy(w.asked, p->asked, sizeof(w.asked));
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
	return (e->qpn == 0) == (e->ctl_qpn == 0) && e->qpn <= URN_SV_24_BITS &&
	       e->psn <= URN_SV_24_BITS && e->ctl_qpn <= URN_SV_24_BITS &&
	       e->ctl_psn <= URN_SV_24_BITS;
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
	memcpy(p->asked, w.asked, sizeof(p->asked));
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		p->key[i] = be32toh(w.key[i]);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		const struct urn_sv_ends *e = &w.path[i];

		p->path[i] = (struct urn_sv_ends){be32toh(e->qpn), be32toh(e->psn),
						  be32toh(e->ctl_qpn), be32toh(e->ctl_psn)};
		fits = fits && ends_fit(&p->path[i]);
	}
	fits = fits && p->number != 0 && p->number == p->path[0].qpn;
	if (!fits)
		*p = (struct urn_sv_peer){0};
	return fits;
}

enum urn_sv_asked
urn_sv_judge(const struct urn_abi_cm_event *ev, uint32_t qpn, const uint8_t gid[16],
	     struct urn_sv_peer *p)
{
	if (ev->type != URN_CM_EVENT_SIDR_REPLY)
		return URN_SV_SILENT;
	if (ev->reason == URN_CM_SIDR_UNSUPPORTED)
		return URN_SV_NONE;
	if (ev->reason != URN_CM_SIDR_VALID)
		return URN_SV_BUSY;
	/* The peer's dataplane vouches for ev->qpn: it belongs to the program that answered. */
	return urn_sv_peer_get(ev->data, ev->data_len, p) && p->number == qpn && ev->qpn == qpn &&
			       memcmp(p->asked, gid, sizeof(p->asked)) == 0
		       ? URN_SV_FOUND
		       : URN_SV_REFUSED;
}

int
urn_sv_decide(enum urn_sv_asked asked, bool promised, bool *session)
{
	*session = asked == URN_SV_FOUND;
	switch (asked) {
	case URN_SV_FOUND:
	case URN_SV_NONE:
		return 0;
	case URN_SV_SILENT: /* a peer that was never answered has no session, and gets none */
		return promised ? ETIMEDOUT : 0;
	case URN_SV_BUSY:
		return EAGAIN;
	default:
		return EPROTO;
	}
}
