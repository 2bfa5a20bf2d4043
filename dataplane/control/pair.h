/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which client a connection with a remote queue pair belongs to. A peer takes every packet
 * from the connection's address to its queue pair for one of the connection: so a second client of
 * the adapter that is connected to the same remote queue pair could send into the connection. The
 * adapter knows the remote queue pair of each of its RC and UC queue pairs, and allows one client
 * at a time.
 *
 * A connection that connection management arranged wins over one that was typed in by hand,
 * or a client that guesses numbers could keep others from connecting. Such a connection stands from
 * the peer's answer on: the peer's REP, or its RTU to our REP. A request that came in is only
 * a claim: its queue pair is connected, but while another client has the remote queue pair, it
 * sends no requests until the peer has confirmed the claim (URN_QPF_HOLD).
 *
 * Other clients' queue pairs end when that answer comes in, in any engine's thread. That thread may
 * not wait for a control call, or for another engine: it only marks the entries, under the table's
 * own lock; each engine ends its marked queue pairs before it sends again.
 *
 * A hash with an entry for each connected queue pair, and a second one while a call connects the
 * queue pair to another remote one: never more than 2 * max_qp an engine, for which there is room
 * from the start, and no more than URN_PAIR_SAME of a client with the same remote queue pair. The
 * hash's lists change under both the adapter's lock and the table's own lock, and are read under
 * either. The table's own lock is held for some steps in a list only, and nothing is waited for
 * under it; it is taken last, after the connection manager's.
 */
#ifndef URN_CONTROL_PAIR_H
#define URN_CONTROL_PAIR_H

#include "base/hash.h"
#include "base/pool.h"
#include "engine/engine.h"

#include <stdatomic.h>
#include <sys/queue.h>

#include <rte_spinlock.h>

struct urn_client;
struct urn_pair;
LIST_HEAD(urn_pair_list, urn_pair);

enum {
	URN_PAIR_SAME = 1024, /* QPs of a client that may be connected to the same remote one */
	URN_PAIR_STEP = 64, /* QPs that an engine ends in a turn */
};

struct urn_pairs {
	struct urn_engine_ends ends; /* the engines' part. due: written under the own lock */
	/* lock, the table's own: buckets of hash, lists of doomed, and ends.due change under it. */
	rte_spinlock_t lock;
	struct urn_hash hash;     /* buckets of entries, by remote queue pair */
	struct urn_pair *pair;    /* the entries; owner: this */
	struct urn_pool pool;     /* entries of pair that are free */
	uint32_t n;               /* entries in the table */
	struct urn_pair_list doomed[URN_ABI_MAX_ENGINES]; /* by engine: its QPs that are to end; under the own lock */
};

/* The remote queue pair that a QP is to be connected to, and the result of claiming it. */
struct urn_pair_claim {
	uint8_t dgid[16];
	uint32_t dqpn;            /* 24 bits */
	/* Valid after urn_pair_claim(): */
	bool made;                /* an entry was made for the claim */
	bool held;                /* another client has the remote QP: no requests until this claim stands */
	bool stands;              /* connection management says that the remote QP is this client's */
};

/* qps: queue pairs that each of so many engines may have. returns 0 or ENOMEM */
int urn_pairs_init(struct urn_pairs *ps, uint32_t qps, uint32_t engines);
void urn_pairs_fini(struct urn_pairs *ps);

/*
 * Claim p->dqpn at p->dgid, to which the client's QP is about to be connected. returns 0; EADDRINUSE:
 * another client is connected to it (with a sentence, and counted); EDQUOT: so are URN_PAIR_SAME QPs
 * of the client; ENOMEM
 */
int urn_pair_claim(struct urn_client *c, struct urn_qp *qp, struct urn_pair_claim *p,
		   struct urn_abi_rep *rep);
/* In the QP's engine, once the QP is connected: let it send no requests if the claim is held. */
void urn_pair_hold(struct urn_qp *qp, const struct urn_pair_claim *p);
/* The QP is connected, and its claim stands: bring other clients' QPs with the same remote QP to the error state. */
void urn_pair_won(struct urn_client *c, const struct urn_pair_claim *p);
/* The QP is no longer connected to that remote QP, or never was: forget its entry, if it has one. */
void urn_pair_drop(struct urn_client *c, const struct urn_qp *qp, const uint8_t dgid[16], uint32_t dqpn);
/* Claims of the client may have begun to stand: let the held QPs of such claims send, and end QPs of others. */
void urn_pair_settle(struct urn_client *c);

/*
 * Connection management says that the remote queue pair is this owner's: mark QPs of others that are,
 * or are about to be, connected to it; they are to end. From any thread, under any lock but the table's.
 */
void urn_pair_doom(struct urn_pairs *ps, const struct urn_cm_owner *o, const uint8_t dgid[16], uint32_t dqpn);
/* End marked QPs of the engine, URN_PAIR_STEP at most, if urn_engine_ends_due(). In the engine's thread. */
void urn_pairs_end(struct urn_pairs *ps, struct urn_tp *tp);

#endif
