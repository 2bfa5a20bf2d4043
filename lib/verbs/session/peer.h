/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The answer of a session layer to a look-up: all that the other end needs to connect the paths
 * (doc/inside/failover.md, "How two session layers find each other"). 136 bytes, network byte
 * order:
 *
 *   0       4         8        40       48        56       72                   136
 *   | magic | number  | gid[2] | key[2] | address | asked  | path[4], 16 each   |
 *
 * A path is: number and first PSN of the queue pair, then those of the control queue pair; numbers
 * of a path whose adapter is away are 0. In place of the first PSN of P-P, which the program says,
 * is 1 when keys may have to be translated on P-P, too. Below
 * is the rule by which an end decides whether its connection has a session ("Agreement" there).
 */
#ifndef URN_VERBS_SESSION_PEER_H
#define URN_VERBS_SESSION_PEER_H

#include <urnic/cm.h>

#include <stdbool.h>
#include <stdint.h>

enum {
	URN_SV_ADAPTERS = 2,
	URN_SV_PATHS = URN_SV_ADAPTERS * URN_SV_ADAPTERS,
	URN_SV_PEER_BYTES = 136, /* fits the private data of a SIDR_REP */
};

/* One path, as its end names it. */
struct urn_sv_ends {
	uint32_t qpn;	  /* queue pair of the program's traffic; 24 bits; 0: there is none now */
	uint32_t psn;	  /* first PSN that it sends; 24 bits; of P-P 1 when keys of the program
			     may not be those of the primary adapter, else 0 */
	uint32_t ctl_qpn; /* queue pair of control messages; 24 bits; 0 with qpn */
	uint32_t ctl_psn; /* first PSN that it sends; 24 bits */
};

struct urn_sv_peer {
	uint32_t number;		  /* number of the connection, at the end that answers */
	uint8_t gid[URN_SV_ADAPTERS][16]; /* its adapters */
	uint32_t key[URN_SV_ADAPTERS];	  /* key of its table of keys, for READs, by adapter */
	uint64_t addr;			  /* address of that table */
	uint8_t asked[16];		  /* its GID to which the question was sent */
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

/* How far a look-up has come. */
enum urn_sv_asked {
	URN_SV_NOT_ASKED,
	URN_SV_ASKED,
	URN_SV_FOUND,	/* the peer has a session layer, and its answer is right */
	URN_SV_NONE,	/* the peer's adapter says that there is no session layer */
	URN_SV_SILENT,	/* no answer came, to none of the repeats */
	URN_SV_BUSY,	/* the peer has a session layer, which could not answer */
	URN_SV_REFUSED, /* an answer came that this end can't use */
};

/*
 * Judge the end of a question.
 *
 * ev: an event of the question's id
 * qpn, gid: queue pair and GID that the program connects to
 * p: filled in if the result is URN_SV_FOUND, else undefined
 * returns: URN_SV_FOUND or a later value
 */
enum urn_sv_asked urn_sv_judge(const struct urn_abi_cm_event *ev, uint32_t qpn,
			       const uint8_t gid[16], struct urn_sv_peer *p);
/*
 * Decide whether a connection has a session.
 *
 * asked: how the look-up ended
 * promised: this end has answered a question about the same queue pair: so the peer may have
 *           decided that there is a session
 * session: set on success; true: with a session, false: a plain connection, and this end must
 *          answer no question any more
 * returns: 0; ETIMEDOUT, EAGAIN or EPROTO: the ends can't agree, the change to RTR must fail
 */
int urn_sv_decide(enum urn_sv_asked asked, bool promised, bool *session);

#endif
