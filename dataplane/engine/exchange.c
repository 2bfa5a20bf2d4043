/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between engines: packets that arrived at the wrong lcore, completions for
 * queues that another engine owns, frames for a port queue of another engine
 * (architecture rule 2). One ring per engine; many put in, its owner takes out.
 */
#include "engine/engine.h"

bool
urn_engine_put(struct urn_engine *to, const struct urn_xmsg *x)
{
	/* Relaxed tail: a thread that is preempted in the middle of this holds nobody else up. */
	return rte_ring_mp_rts_enqueue_bulk_elem(to->ring, x, sizeof(*x), 1, NULL) == 1;
}

static bool
give(struct urn_shard *s, const struct urn_tp_xcqe *x)
{
	struct urn_shard *to = s->peer[x->cq->engine];
	struct urn_xmsg msg = {.kind = URN_X_CQE, .shard = to, .x = *x};

	return to && urn_engine_put(to->engine, &msg);
}

void
urn_shard_give_late(struct urn_shard *s)
{
	unsigned int n = 0;

	while (n < s->late_n && give(s, &s->late[n]))
		n++;
	s->late_n -= n;
	memmove(s->late, s->late + n, s->late_n * sizeof(*s->late));
}

void
urn_shard_give_cqe(void *ctx, const struct urn_tp_xcqe *x)
{
	struct urn_shard *s = ctx;

	if (s->late_n == 0 && give(s, x))
		return;
	if (s->late_n < URN_SHARD_LATE) {
		s->late[s->late_n++] = *x;
		return;
	}
	if (x->cqe.status == URN_TP_NO_CQE)
		return; /* a later one says more */
	/* Its queue will never be whole again: say so as for a full queue. */
	URN_COUNT(s->tp, CQ_OVERRUN);
	urn_tp_event(s->tp, URN_EVENT_CQ_ERR, x->cq->handle, x->cq->cookie, x->cq->client);
}

void
urn_shard_hand_over(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;

	for (unsigned int i = 0; i < tp->handover_n; i++) {
		struct rte_mbuf *m = tp->handover[i];
		unsigned int to = urn_qpn_engine(urn_pkt(m)->dqpn);
		struct urn_shard *peer = to < URN_ABI_MAX_ENGINES ? s->peer[to] : NULL;
		struct urn_xmsg msg = {.kind = URN_X_RX, .shard = peer, .m = m};

		if (!peer) {
			URN_COUNT(tp, DROP_NO_QP);
			rte_pktmbuf_free(m);
		} else if (urn_engine_put(peer->engine, &msg)) {
			URN_COUNT(tp, HANDOVER_RX);
		} else {
			URN_COUNT(tp, DROP_HANDOVER);
			rte_pktmbuf_free(m);
		}
	}
	tp->handover_n = 0;
}

/* A frame that this engine sends for another. */
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

unsigned int
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
			/* Its ICRC was checked where it came in. */
			urn_tp_rx(s->tp, &x[i].m, 1, true);
			break;
		case URN_X_TX:
			send_for(s, x[i].m);
			break;
		case URN_X_CQE:
			urn_tp_cqe_handed(s->tp, &x[i].x);
			break;
		}
	}
	return n;
}
