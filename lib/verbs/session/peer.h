/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answer of a session layer to a look-up: all that the other end needs to connect the paths
 * (doc/inside/failover.md, "How two session layers find each other"). 128 bytes, network byte
 * order:
 *
 *   0       4         8        40       48        56       64                   128
 *   | magic | number  | gid[2] | key[2] | address | rsvd   | path[4], 16 each   |
 *
 * A path is: number and first PSN of the queue pair, then those of the control queue pair.
 */
#ifndef URN_VERBS_SESSION_PEER_H
#define URN_VERBS_SESSION_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	URN_SV_ADAPTERS = 2,
	URN_SV_PATHS = URN_SV_ADAPTERS * URN_SV_ADAPTERS,
	URN_SV_PEER_BYTES = 128, /* fits the private data of a SIDR_REP */
};

/* One path, as its end names it. */
struct urn_sv_ends {
	uint32_t qpn;	  /* queue pair of the program's traffic; 24 bits, not 0 */
	uint32_t psn;	  /* first PSN that it sends; 24 bits; of P-P the program says it */
	uint32_t ctl_qpn; /* queue pair of control messages; 24 bits, not 0 */
	uint32_t ctl_psn; /* first PSN that it sends; 24 bits */
};

struct urn_sv_peer {
	uint32_t number;		  /* number of the connection, at the end that answers */
	uint8_t gid[URN_SV_ADAPTERS][16]; /* its adapters */
	uint32_t key[URN_SV_ADAPTERS];	  /* key of its table of keys, for READs, by adapter */
	uint64_t addr;			  /* address of that table */
	struct urn_sv_ends path[URN_SV_PATHS]; /* by its own adapter * 2 + the other end's */
};

/* The place of the same path at the other end. place: below URN_SV_PATHS */
static inline uint32_t
urn_sv_mirror(uint32_t place)
{
	return place % URN_SV_ADAPTERS * URN_SV_ADAPTERS + place / URN_SV_ADAPTERS;
}

/* Write an answer. */
void urn_sv_peer_put(uint8_t to[URN_SV_PEER_BYTES], const struct urn_sv_peer *p);
/*
 * Read an answer of an end that is not trusted.
 *
 * bytes: of the private data; more than URN_SV_PEER_BYTES are allowed
 * returns: false: it is no such answer, or numbers are out of range; *p is all 0
 */
bool urn_sv_peer_get(const uint8_t *from, uint32_t bytes, struct urn_sv_peer *p);

#endif
