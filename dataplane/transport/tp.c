/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport: its making, its pools, and its turns (timers, loopback, the schedule). */
#include "transport/back.h"
#include "transport/flow_priv.h"
#include "transport/frame.h"
#include "transport/mcast.h"
#include "transport/part.h"
#include "transport/pool.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/reshape.h"
#include "transport/responder.h"
#include "transport/ring.h"
#include "transport/sched.h"
#include "transport/service.h"
#include "transport/uc_hold.h"

#include <stdlib.h>

_Static_assert(sizeof(struct urn_pkt) <= URN_PKT_PRIV, "private area of an mbuf");

/* ---- pools */

enum {
	POOL_STEP = 64, /* entries put on a list at a time */
};

/* Extra elements, and receives, in a transport with n work requests. */
static uint32_t
others(uint32_t n)
{
	return n / 4 + 64;
}

void
urn_work_more(struct urn_tp *tp)
{
	struct urn_work *all = tp->work_mem;
	uint32_t from = tp->made.work, to = RTE_MIN(from + POOL_STEP, tp->cfg.work);

	memset(all + from, 0, (to - from) * sizeof(*all));
	/* Entries are pushed from the end, so that those used first lie together. */
	for (uint32_t i = to; i-- > from;) {
		all[i].next = tp->work_free;
		tp->work_free = &all[i];
	}
	tp->made.work = to;
}

void
urn_ext_more(struct urn_tp *tp)
{
	struct urn_work_ext *all = tp->ext_mem;
	uint32_t from = tp->made.ext, to = RTE_MIN(from + POOL_STEP, others(tp->cfg.work));

	for (uint32_t i = to; i-- > from;) {
		all[i].next = tp->ext_free;
		tp->ext_free = &all[i];
	}
	tp->made.ext = to;
}

void
urn_recv_more(struct urn_tp *tp)
{
	struct urn_recv *all = tp->recv_mem;
	uint32_t from = tp->made.recv, to = RTE_MIN(from + POOL_STEP, others(tp->cfg.work));

	for (uint32_t i = to; i-- > from;) {
		all[i].next = tp->recv_free;
		tp->recv_free = &all[i];
	}
	tp->made.recv = to;
}

bool
urn_work_has(const struct urn_tp *tp, struct urn_tp_share *share, uint32_t times)
{
	uint32_t left = RTE_MIN(share->orphans, tp->nobodys.work);

	return urn_fair_user_has(&tp->fair_work, tp->left.work, times * (share->work + left),
				 times * (urn_share_user(share)->work + left));
}

static int
make_pools(struct urn_tp *tp)
{
	uint32_t n = tp->cfg.work, more = others(n);

	tp->work_mem = aligned_alloc(sizeof(struct urn_work), n * sizeof(struct urn_work));
	tp->ext_mem = calloc(more, sizeof(struct urn_work_ext));
	tp->recv_mem = calloc(more, sizeof(struct urn_recv));
	if (!tp->work_mem || !tp->ext_mem || !tp->recv_mem)
		return -1;
	tp->left.work = n;
	tp->left.ext = tp->left.recv = more;
	urn_fair_init(&tp->fair_work, n);
	urn_fair_init(&tp->fair_others, more);
	urn_work_more(tp);
	urn_ext_more(tp);
	urn_recv_more(tp);
	return 0;
}

/* Sort out the addresses that frames to us carry. */
static void
sort_addresses(struct urn_tp *tp)
{
	static const uint8_t none[16];

	for (unsigned int i = 0; i < tp->cfg.gids; i++) {
		const uint8_t *gid = tp->cfg.gid[i];

		if (urn_gid_is_v4(gid)) {
			memcpy(tp->ipv4, gid + 12, 4);
			tp->has_ipv4 = true;
		} else if (memcmp(gid, none, sizeof(none)) != 0) {
			memcpy(tp->ipv6[tp->ipv6_n++], gid, 16);
		}
	}
}

struct urn_tp *
urn_tp_create(const struct urn_tp_config *cfg, uint64_t now)
{
	struct urn_tp *tp = aligned_alloc(64, (sizeof(*tp) + 63) & ~63ul);

	if (!tp)
		return NULL;
	memset(tp, 0, sizeof(*tp));
	tp->cfg = *cfg;
	if (!cfg->flow_mtu)
		tp->cfg.flow_mtu = cfg->mtu;
	tp->gate = urn_memx_gate(cfg->memx);
	tp->now = now;
	tp->quiet = true;
	tp->built_most = UINT64_MAX;
	tp->turn_frames = URN_TURN_FRAMES;
	memcpy(tp->service, cfg->service, sizeof(tp->service));
	tp->service[URN_QPT_RC] = &urn_rc;
	tp->service[URN_QPT_UC] = &urn_uc;
	tp->service[URN_QPT_UD] = &urn_ud;
	if (cfg->line) {
		tp->dcqcn = cfg->dcqcn;
		urn_dcqcn_complete(&tp->dcqcn, cfg->line);
	}
	sort_addresses(tp);
	urn_wheel_init(&tp->wheel, now);
	tp->qp_chunks = (cfg->max_qp + 2 + URN_TP_QP_CHUNK - 1) / URN_TP_QP_CHUNK;
	tp->qp = calloc(tp->qp_chunks, sizeof(*tp->qp));
	if (urn_peers_init(&tp->peers, cfg->window, cfg->delay_limit, cfg->hash_seed) != 0 ||
	    urn_repairs_init(tp) != 0 || urn_traces_init(tp) != 0 || urn_congestion_init(tp) != 0 ||
	    urn_flows_init(tp) != 0 || !tp->qp || make_pools(tp) != 0 ||
	    urn_uc_held_init(tp) != 0) {
		urn_tp_destroy(tp);
		return NULL;
	}
	return tp;
}

static void
free_all(struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		rte_pktmbuf_free(m[i]);
}

void
urn_tp_destroy(struct urn_tp *tp)
{
	if (!tp)
		return;
	free_all(tp->tx, tp->tx_n);
	free_all(tp->loop, tp->loop_n);
	free_all(tp->other, tp->other_n);
	free_all(tp->handover, tp->handover_n);
	free_all(tp->done, tp->done_n);
	if (tp->fresh_n)
		rte_mempool_put_bulk(tp->cfg.pool, (void **)tp->fresh, tp->fresh_n);
	for (uint32_t i = 0; tp->qp && i < tp->qp_chunks; i++)
		free(tp->qp[i]);
	free(tp->qp);
	urn_failures_free(tp);
	urn_uc_held_free(tp);
	urn_qp_free_all(tp);
	urn_flows_free(tp);
	urn_mcast_free(tp);
	urn_peers_free(&tp->peers);
	free(tp->repair);
	free(tp->trace);
	urn_congestion_free(tp);
	free(tp->work_mem);
	free(tp->ext_mem);
	free(tp->recv_mem);
	free(tp);
}

bool
urn_tp_refill(struct urn_tp *tp)
{
	void **fresh = (void **)tp->fresh;

	if (likely(rte_mempool_get_bulk(tp->cfg.pool, fresh, URN_TP_BURST) == 0)) {
		tp->fresh_n = URN_TP_BURST;
		return true;
	}
	/* Fewer than a burst left: take the rest, one by one. */
	while (tp->fresh_n < URN_TP_BURST &&
	       rte_mempool_get(tp->cfg.pool, &fresh[tp->fresh_n]) == 0)
		tp->fresh_n++;
	if (tp->fresh_n)
		return true;
	URN_COUNT(tp, NO_MBUF);
	return false;
}

/*
 * True when the packet may go back to its pool unchanged. Then the second line of its header need
 * not be looked at.
 */
static inline bool
is_plain(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m);
}

URN_FAST void
urn_tp_give_back(struct urn_tp *tp)
{
	struct rte_mempool *pool = tp->done[0]->pool;
	unsigned int n = 0;

	for (unsigned int i = 0; i < tp->done_n; i++) {
		struct rte_mbuf *m = tp->done[i];

		if (likely(is_plain(m) && m->pool == pool))
			tp->done[n++] = m;
		else
			rte_pktmbuf_free(m);
	}
	rte_mempool_put_bulk(pool, (void **)tp->done, n);
	tp->done_n = 0;
}

/* ---- turns */

/*
 * QPs that wait for a MAC address ask for it again, a limited number each turn: one client may have
 * thousands of them, with peers that do not answer. A QP that still finds none waits behind the
 * others.
 */
static __attribute__((noinline)) void
ask_again(struct urn_tp *tp)
{
	for (unsigned int n = 0; n < URN_TP_BURST && tp->neigh_due && tp->neigh_head; n++) {
		struct urn_qp *qp = urn_source_qp(tp->neigh_head);

		tp->neigh_due--;
		urn_qp_leave_neigh(tp, qp);
		urn_tp_sched(tp, qp);
	}
	if (!tp->neigh_head)
		tp->neigh_due = 0;
	tp->neigh_next = tp->neigh_due ? tp->now : tp->now + URN_TP_NEIGH_NS;
}

void
urn_tp_neigh_changed(struct urn_tp *tp)
{
	tp->mac_gen++;
	tp->neigh_due = tp->neigh_n;
	ask_again(tp);
}

void
urn_tp_peer_learned(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features)
{
	struct urn_peer *p = urn_peer_find(&tp->peers, gid_peer);

	if (p)
		p->features = features & tp->cfg.features;
}

void
urn_tp_peer_line(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t line)
{
	struct urn_peer *p = urn_peer_find(&tp->peers, gid_peer);

	if (p)
		p->line = urn_reshape_line(line);
}

/* The timer of a QP is due. In the error state, receives that were posted meanwhile are flushed. */
static inline void
qp_due(struct urn_tp *tp, struct urn_qp *qp)
{
	if (unlikely(qp->state == URN_QPS_ERR))
		urn_tp_sched(tp, qp);
	else if (likely(qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD))
		urn_qp_service(tp, qp)->due(tp, qp);
}

static inline void
timer_due(struct urn_tp *tp, struct urn_timer *t)
{
	struct urn_source_timer *st;

	switch ((enum urn_timer_kind)t->kind) {
	case URN_TIMER_QP:
		qp_due(tp, (struct urn_qp *)((char *)t - offsetof(struct urn_qp, tx.timer)));
		return;
	case URN_TIMER_PACE:
		urn_sched_due(tp, t);
		return;
	case URN_TIMER_SOURCE:
		st = (struct urn_source_timer *)((char *)t - offsetof(struct urn_source_timer, timer));
		urn_source_ops(st->source)->due(tp, st->source);
		return;
	case URN_TIMER_FLOW:
		urn_flow_due(tp, (struct urn_flow *)((char *)t - offsetof(struct urn_flow, tx.timer)));
		return;
	}
}

static unsigned int
run_timers(struct urn_tp *tp)
{
	unsigned int n = 0;
	struct urn_timer *t;

	while (n < URN_TP_BURST && (t = urn_wheel_expire(&tp->wheel, tp->now))) {
		timer_due(tp, t);
		n++;
	}
	return n;
}

/*
 * Take frames to ourselves that the last turn made: as many as can be handed over if they are for
 * another engine, with room left for a burst of the port.
 */
static unsigned int
run_loop(struct urn_tp *tp)
{
	struct rte_mbuf *m[URN_TP_BURST];
	unsigned int done = 0, n;

	while (tp->loop_n && tp->handover_n + 2 * URN_TP_BURST <= URN_TP_OUT) {
		n = tp->loop_n < URN_TP_BURST ? tp->loop_n : URN_TP_BURST;
		memcpy(m, tp->loop, n * sizeof(m[0]));
		tp->loop_n -= n;
		memmove(tp->loop, tp->loop + n, tp->loop_n * sizeof(m[0]));
		urn_tp_rx(tp, m, n, true);
		done += n;
	}
	return done;
}

URN_FAST unsigned int
urn_tp_turn(struct urn_tp *tp, uint64_t now)
{
	unsigned int n = 0;

	tp->now = now;
	tp->turn++;
	urn_mem_turn(tp->cfg.mem, tp->cfg.engine, &tp->turn_asked);
	if (unlikely(urn_memx_holds(tp->cfg.memx, NULL)))
		n += urn_tp_poll_memory(tp);
	if (unlikely(urn_wheel_due(&tp->wheel, now)))
		n += run_timers(tp);
	if (unlikely(tp->loop_n))
		n += run_loop(tp);
	if (unlikely(tp->dry != NULL))
		urn_flows_refill(tp);
	if (unlikely(now >= tp->mac_due)) {
		tp->mac_due = now + URN_TP_MAC_NS;
		tp->mac_gen++;
	}
	if (unlikely(tp->neigh_head && now >= tp->neigh_next)) {
		if (!tp->neigh_due)
			tp->neigh_due = tp->neigh_n;
		ask_again(tp);
	}
	return n;
}

URN_FAST void
urn_tp_doorbell(struct urn_tp *tp, struct urn_qp *qp)
{
	if (likely(qp->state >= URN_QPS_RTR)) /* the QP may have something to answer in these states */
		urn_tp_sched(tp, qp);
}

/*
 * True when frames may be added to those that wait for memory: the worker then reads memory while
 * the engine handles frames that were read. But the worker may stall, hence the limit; and a QP
 * that comes to an end has to see the end of what it began, hence only RTS.
 */
static bool
may_read_on(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return urn_qp_service(tp, qp)->reads_on && qp->state == URN_QPS_RTS &&
	       qp->tx_waiting < tp->gate->few;
}

/* Serve one QP's share of a turn. returns: true when the QP has more to send */
static bool
serve(struct urn_tp *tp, struct urn_qp *qp)
{
	const struct urn_service *svc;

	if (unlikely(qp->flags & (URN_QPF_DYING | URN_QPF_CQ_BROKEN))) {
		if (qp->flags & URN_QPF_DYING)
			return false;
		urn_qp_cq_broken(tp, qp);
	}
	if (unlikely(qp->tx_last)) { /* frames of the QP go in order: wait for memory, or for room */
		urn_tp_drain_tx(tp, qp);
		if (qp->tx_last && !urn_pkt(urn_ring_first(qp->tx_last))->mem_left)
			return true;
		if (qp->tx_last && !may_read_on(tp, qp))
			return false;
	}
	if (unlikely(qp->state == URN_QPS_SQD))
		urn_qp_check_drained(tp, qp);
	svc = urn_qp_service(tp, qp);
	return likely(qp->state != URN_QPS_ERR && qp->state != URN_QPS_SQE)
		       ? svc->transmit(tp, qp, tp->turn_frames)
		       : svc->flush(tp, qp, URN_TURN_FRAMES);
}

/* Serve a user of flows. returns: true when the source has more to send */
static bool
serve_ops(struct urn_tp *tp, struct urn_source *src)
{
	if (!tp->gathers) {
		tp->gathers = true;
		tp->fails = 0;
	}
	return urn_source_ops(src)->serve(tp, src);
}

/* Send what flows have got, and acknowledge what they have taken. */
static __attribute__((noinline)) void
finish_flows(struct urn_tp *tp)
{
	tp->gathers = false;
	if (tp->gathered)
		urn_flows_send(tp);
	if (tp->acks)
		urn_flows_tell(tp);
}

/*
 * Fetch what the next turns read: the lines of a queue pair, and of the client's queue, which only
 * the queue pair's lines tell: with many queue pairs no line of theirs is in the core's caches.
 */
static inline void
prefetch_turns(const struct urn_sched *sched)
{
	struct urn_source *next = sched->head ? sched->head->head->head : NULL;
	const struct urn_sq *sq;

	if (!next)
		return;
	if (next->next)
		rte_prefetch0(&urn_source_qp(next->next)->sq);
	if (unlikely(next->kind != URN_SOURCE_QP))
		return;
	sq = &urn_source_qp(next)->sq;
	rte_prefetch0(&sq->hdr->prod);
	rte_prefetch0(urn_sq_slot(sq));
}

/* Let a source have its turn. returns: true when it has more to send */
static inline __attribute__((always_inline)) bool
serve_source(struct urn_tp *tp, struct urn_source *src)
{
	return likely(src->kind == URN_SOURCE_QP) ? serve(tp, urn_source_qp(src))
						  : serve_ops(tp, src);
}

URN_FAST unsigned int
urn_tp_tx(struct urn_tp *tp)
{
	unsigned int before = tp->tx_n + tp->loop_n, n = 0;
	struct urn_source *src;

	urn_sched_begin(&tp->sched);
	/* The shares are as many as sources were in the schedule; a client with few may get several for each. */
	for (uint32_t turns = RTE_MIN(urn_sched_number(&tp->sched), (uint32_t)URN_TP_SHARES);
	     turns && urn_sched_any(&tp->sched) && !urn_part_over(&tp->sched); turns--) {
		if (!urn_tp_tx_room(tp)) {
			urn_tp_execute(tp);
			if (!urn_tp_tx_room(tp))
				break;
		}
		src = urn_sched_next(&tp->sched);
		if (unlikely(!src)) {
			if (tp->sched.over)
				break;
			continue;
		}
		prefetch_turns(&tp->sched);
		urn_part_serve(tp, src, serve_source);
		if (unlikely(tp->gathers) && tp->fails >= URN_TP_FAILS)
			break;
	}
	if (unlikely((uintptr_t)tp->gathered | (uintptr_t)tp->acks | tp->gathers))
		finish_flows(tp);
	urn_tp_execute(tp);
	n = tp->tx_n + tp->loop_n;
	return (n > before ? n - before : 0) + tp->sched.paid;
}
