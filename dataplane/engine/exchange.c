/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchange between engines: packets that arrived at the wrong engine, completions for queues that
 * another engine owns, frames for a port queue of another engine (architecture rule 2). One ring
 * per engine; many engines put in, the owner takes out.
 */
#include "engine/engine.h"
#include "transport/flow.h"

#include <stdlib.h>

bool
urn_engine_put(struct urn_engine *to, const struct urn_xmsg *x)
{
	/* Relaxed tail: a thread that is preempted in the middle of this blocks no other thread. */
	return rte_ring_mp_rts_enqueue_bulk_elem(to->ring, x, sizeof(*x), 1, NULL) == 1;
}

static bool
give(struct urn_shard *s, const struct urn_tp_xcqe *x)
{
	struct urn_shard *to = s->sibling[x->cq->engine];
	struct urn_xmsg msg = {.kind = URN_X_CQE, .shard = to, .x = *x};

	return to && urn_engine_put(to->engine, &msg);
}

/*
 * Completions that find no room in the ring are late, separately for each client: a client with
 * more of them than the other engine takes does not delay others.
 */
enum {
	LATE_CHUNK = 63, /* completions allocated at a time: 4 KiB */
	LATE_SHARE = 8,  /* completions of a client before the next client's turn */
	LATE_LOOKS = 64, /* clients looked at in a turn */
};

struct urn_late_chunk {
	TAILQ_ENTRY(urn_late_chunk) link;
	struct urn_tp_xcqe x[LATE_CHUNK];
};

/*
 * True when another completion of this queue may be late. Each has a slot claimed, so an honest
 * client has no more of them than the queue has entries; but each engine may be just about to count
 * one of them as gone.
 */
static bool
late_fits(const struct urn_cq *cq)
{
	return __atomic_load_n(&cq->handed_late, __ATOMIC_RELAXED) < urn_cq_entries(cq) + URN_ABI_MAX_ENGINES;
}

/* Seldom called: allocates from the heap. */
static bool
late_put(struct urn_late_cqes *l, const struct urn_tp_xcqe *x)
{
	struct urn_late_chunk *chunk = TAILQ_LAST(&l->chunks, urn_late_chunks);

	if (!chunk || l->used == LATE_CHUNK) {
		chunk = malloc(sizeof(*chunk));
		if (!chunk)
			return false;
		TAILQ_INSERT_TAIL(&l->chunks, chunk, link);
		l->used = 0;
	}
	chunk->x[l->used++] = *x;
	l->n++;
	if (x->cqe.status == URN_TP_NO_CQE)
		l->quiet++;
	else
		__atomic_fetch_add(&x->cq->handed_late, 1, __ATOMIC_RELAXED);
	return true;
}

/* Remove the oldest, which has gone. */
static void
late_pop(struct urn_late_cqes *l)
{
	struct urn_late_chunk *chunk = TAILQ_FIRST(&l->chunks);
	const struct urn_tp_xcqe *x = &chunk->x[l->first];

	/* The queue still exists: it goes only after this thread was asked for its late completions. */
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed chunk has left the list */
	if (x->cqe.status == URN_TP_NO_CQE)
		l->quiet--;
	else
		__atomic_fetch_sub(&x->cq->handed_late, 1, __ATOMIC_RELAXED);
	l->n--;
	if (++l->first < LATE_CHUNK && l->n)
		return;
	l->first = 0;
	TAILQ_REMOVE(&l->chunks, chunk, link);
	free(chunk);
}

/* returns: how many were given */
static uint32_t
give_some(struct urn_shard *s, struct urn_client_shard *c, uint32_t max)
{
	struct urn_late_cqes *l = &c->late_cqes;
	uint32_t n = 0;

	while (n < max && l->n && give(s, &TAILQ_FIRST(&l->chunks)->x[l->first])) {
		late_pop(l);
		n++;
	}
	if (n && !l->n)
		TAILQ_REMOVE(&s->late_cqes, c, cqes_link);
	return n;
}

void
urn_shard_give_late(struct urn_shard *s)
{
	struct urn_client_shard *c, *vain = NULL; /* first client of a row that found no room */

	for (unsigned int i = 0; i < LATE_LOOKS; i++) {
		c = TAILQ_FIRST(&s->late_cqes);
		if (!c || c == vain)
			break;
		TAILQ_REMOVE(&s->late_cqes, c, cqes_link);
		TAILQ_INSERT_TAIL(&s->late_cqes, c, cqes_link); /* its next turn comes last */
		if (give_some(s, c, LATE_SHARE))
			vain = NULL;
		else if (!vain)
			vain = c;
	}
}

uint32_t
urn_shard_give_late_of(struct urn_shard *s, struct urn_client_shard *c, uint32_t max)
{
	return give_some(s, c, max);
}

void
urn_shard_forget_late(struct urn_shard *s, struct urn_client_shard *c)
{
	if (c->late_cqes.n)
		TAILQ_REMOVE(&s->late_cqes, c, cqes_link);
	while (c->late_cqes.n)
		late_pop(&c->late_cqes);
}

/*
 * Drop a completion: there is no memory to keep it, or the client's index of read entries is false.
 * The queue will never be complete again.
 */
static void
lose(struct urn_shard *s, const struct urn_tp_xcqe *x)
{
	if (x->cqe.status == URN_TP_NO_CQE)
		return; /* a later entry carries a newer index */
	URN_COUNT(s->tp, CQE_LOST);
	urn_tp_cq_break(s->tp, x->cq);
}

/* Keep a completion for later: there are late ones already, or there is no room. */
static __attribute__((cold, noinline)) void
give_later(struct urn_shard *s, const struct urn_tp_xcqe *x)
{
	/* Not the queue's owner, which is the share on the queue's own engine. */
	const struct urn_tp_share *share = urn_share_on(x->cq->owner, s->tp->cfg.engine);
	struct urn_client_shard *c = share ? urn_client_shard_of(share) : NULL;
	struct urn_late_cqes *l = c ? &c->late_cqes : NULL;

	/* No completion overtakes those of its own client. */
	if ((!l || !l->n) && give(s, x))
		return;
	/*
	 * More such entries than the send queues have entries exist only if the client does not
	 * wait for its index.
	 */
	if (l && x->cqe.status == URN_TP_NO_CQE && l->quiet >= c->sq_entries)
		return;
	if (!l || (x->cqe.status != URN_TP_NO_CQE && !late_fits(x->cq)) || !late_put(l, x)) {
		lose(s, x);
		return;
	}
	if (l->n == 1) /* the first */
		TAILQ_INSERT_TAIL(&s->late_cqes, c, cqes_link);
}

void
urn_shard_give_cqe(void *ctx, const struct urn_tp_xcqe *x)
{
	struct urn_shard *s = ctx;

	if (unlikely(!TAILQ_EMPTY(&s->late_cqes) || !give(s, x)))
		give_later(s, x);
}

void
urn_shard_hand_over(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;

	for (unsigned int i = 0; i < tp->handover_n; i++) {
		struct rte_mbuf *m = tp->handover[i];
		unsigned int to = urn_qpn_engine(urn_pkt(m)->dqpn);
		struct urn_shard *sibling = to < URN_ABI_MAX_ENGINES ? s->sibling[to] : NULL;
		struct urn_xmsg msg = {.kind = URN_X_RX, .shard = sibling, .m = m};

		if (!sibling && (urn_pkt(m)->op->flags & URN_OPF_FLOW)) {
			urn_flow_no_engine(tp, m);
		} else if (!sibling) {
			URN_COUNT(tp, DROP_NO_QP);
			rte_pktmbuf_free(m);
		} else if (urn_engine_put(sibling->engine, &msg)) {
			URN_COUNT(tp, HANDOVER_RX);
		} else {
			URN_COUNT(tp, DROP_HANDOVER);
			rte_pktmbuf_free(m);
		}
	}
	tp->handover_n = 0;
}

/* Send a frame for another engine. */
static void
send_for(struct urn_shard *s, struct rte_mbuf *m)
{
	if (s->tp->tx_n < URN_TP_TX) {
		s->tp->tx[s->tp->tx_n++] = m;
		return;
	}
	URN_COUNT(s->tp, DROP_HANDOVER);
	rte_pktmbuf_free(m);
}

URN_FAST unsigned int
urn_engine_take(struct urn_engine *e)
{
	struct urn_xmsg x[URN_TP_BURST];
	unsigned int n;

	if (rte_ring_empty(e->ring))
		return 0;
	n = rte_ring_sc_dequeue_burst_elem(e->ring, x, sizeof(x[0]), URN_TP_BURST, NULL);
	for (unsigned int i = 0; i < n; i++) {
		struct urn_shard *s = x[i].shard;

		switch (x[i].kind) {
		case URN_X_RX:
			/* The engine that received the packet checked its ICRC. */
			urn_tp_rx(s->tp, &x[i].m, 1, true);
			break;
		case URN_X_TX:
			send_for(s, x[i].m);
			break;
		case URN_X_PAUSE:
			if (s->obey)
				urn_shard_obey(s, &x[i].pfc);
			break;
		case URN_X_CQE:
			urn_tp_cqe_handed(s->tp, &x[i].x);
			break;
		}
	}
	return n;
}
