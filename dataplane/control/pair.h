/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which client a connection with a remote queue pair belongs to. A peer takes what comes from the address
 * and to the queue pair of a connection for that connection's: so a second client of the
 * adapter that is connected to the same remote queue pair could send into it. The adapter
 * knows which of its RC queue pairs are connected to which, and lets one client at a time.
 *
 * A connection that connection management arranged wins over one that was typed in by hand,
 * or a client that guesses numbers could keep others from connecting. It stands from the
 * peer's answer on: its REP, or to our REP its RTU. A request that came in is no more than
 * a claim: its queue pair is connected, and if the remote one is somebody else's meanwhile
 * sends no requests until the peer has said that it means this one (URN_QPF_HOLD).
 *
 * Others' queue pairs end when that answer comes in, in whichever engine's thread: that one may not
 * wait for a control call, or for another engine. It only marks their entries, under a
 * lock of the table's own; each engine ends those of its queue pairs before it sends again.
 *
 * A hash table with an entry a connected RC queue pair, so never more than max_qp an engine, and of a
 * client no more than URN_PAIR_SAME with the same remote one. Its lists change under the
 * adapter's lock and the table's own both, and are read under either. The table's own
 * is held for some steps in a list only, and nothing is waited for under it; it is taken
 * last, after the connection manager's.
 */
#ifndef URN_CONTROL_PAIR_H
#define URN_CONTROL_PAIR_H

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
	struct urn_engine_ends ends; /* what engines see. due: written under the own lock */
	rte_spinlock_t lock;
	struct urn_pair **bucket; /* by hash: the first of a list; owner: the adapter */
	uint32_t buckets;         /* a power of two */
	uint32_t seed;            /* of the hash, random: clients can't choose to collide */
	uint32_t n;               /* entries */
	struct urn_pair_list doomed[URN_ABI_MAX_ENGINES]; /* by engine: its QPs that are to end; under the own lock */
};

/* The remote queue pair that a QP is to be connected to, and what came of asking for it. */
struct urn_pair_claim {
	uint8_t dgid[16];
	uint32_t dqpn;            /* 24 bits */
	/* Valid after urn_pair_claim(): */
	bool made;                /* an entry was made for it */
	bool held;                /* another client is connected to it: no requests until this claim stands */
	bool stands;              /* connection management says that it is this client's */
};

/* qps: how many there may be. returns 0 or ENOMEM */
int urn_pairs_init(struct urn_pairs *ps, uint32_t qps);
void urn_pairs_fini(struct urn_pairs *ps);

/*
 * The client's QP is about to be connected to p->dqpn at p->dgid. returns 0; EADDRINUSE: another
 * client is (with a sentence, and counted); EDQUOT: so are URN_PAIR_SAME of its own; ENOMEM
 */
int urn_pair_claim(struct urn_client *c, struct urn_qp *qp, struct urn_pair_claim *p,
		   struct urn_abi_rep *rep);
/* In the QP's engine, once it is connected: have it send no requests where the claim is held. */
void urn_pair_hold(struct urn_qp *qp, const struct urn_pair_claim *p);
/* The QP is connected, and its claim stands: QPs of other clients to the same go to the error state. */
void urn_pair_won(struct urn_client *c, const struct urn_pair_claim *p);
/* The QP is not connected to that one any more, or was not after all: forget its entry, if it has one. */
void urn_pair_drop(struct urn_client *c, const struct urn_qp *qp, const uint8_t dgid[16], uint32_t dqpn);
/* Claims of the client may stand since: let those of its held QPs send, and end QPs of others. */
void urn_pair_settle(struct urn_client *c);

/*
 * Connection management says that the remote queue pair is this owner's: QPs of others that are, or are
 * about to be, connected to it are to end. From any thread, under any lock but the table's.
 */
void urn_pair_doom(struct urn_pairs *ps, const struct urn_cm_owner *o, const uint8_t dgid[16], uint32_t dqpn);
/* Some of them are this engine's: end those, URN_PAIR_STEP at most. In its thread. */
void urn_pairs_end(struct urn_pairs *ps, struct urn_tp *tp);

/* Has the engine to end some? For the price of a load. */
static inline bool
urn_pairs_due(const struct urn_pairs *ps, const struct urn_tp *tp)
{
	return atomic_load_explicit(&ps->ends.due, memory_order_relaxed) & 1u << tp->cfg.engine;
}

#endif
