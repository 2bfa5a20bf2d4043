/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes a node down, and checks that everything is given back. */
#include "host.h"

#include <stdlib.h>

static void
close_rq(struct sim_rq *rq)
{
	free(rq->hdr);
	rq->hdr = NULL;
}

static uint32_t
length(void *list, size_t next_at)
{
	uint32_t n = 0;

	for (; list; list = *(void **)((uint8_t *)list + next_at))
		n++;
	return n;
}

void
sim_node_check_pools(struct sim_node *n, bool noise)
{
	const struct urn_tp *tp = n->tp;
	uint32_t work = tp->cfg.work, others = work / 4 + 64, repairs_n = 0;

	if (length(tp->work_free, offsetof(struct urn_work, next)) != tp->made.work)
		sim_fail(n->s, "node %u: work under way was not given back", n->id);
	if (length(tp->ext_free, offsetof(struct urn_work_ext, next)) != tp->made.ext)
		sim_fail(n->s, "node %u: an extension of work was not given back", n->id);
	if (length(tp->recv_free, offsetof(struct urn_recv, next)) != tp->made.recv)
		sim_fail(n->s, "node %u: a receive was not given back", n->id);
	if (tp->left.work != work || tp->left.ext != others || tp->left.recv != others)
		sim_fail(n->s, "node %u: the pools are not what they are counted", n->id);
	if (tp->nobodys.work || tp->nobodys.ext || tp->nobodys.recv)
		sim_fail(n->s, "node %u: nobody's share of the pools was not given back", n->id);
	for (uint32_t i = tp->repairs.free; i != URN_HASH_NIL; i = tp->repair[i].next)
		repairs_n++;
	if (repairs_n != tp->repairs.made - 1)
		sim_fail(n->s, "node %u: repairs were not given back", n->id);
	for (uint32_t i = 0; i < URN_PEER_PAGES; i++)
		if (tp->peers.page[i] && (i != 0 || tp->peers.page[i]->used != 1))
			sim_fail(n->s, "node %u: a peer is still held", n->id);
	if (tp->kept)
		sim_fail(n->s, "node %u: %u packets are still kept", n->id, tp->kept);
	if (tp->wheel.count)
		sim_fail(n->s, "node %u: %u timers still run", n->id, tp->wheel.count);
	if (tp->sched.head || tp->neigh_head || tp->qp_count)
		sim_fail(n->s, "node %u: QPs are still scheduled", n->id);
	if (tp->ops_n || tp->burst_n || tp->txd_n)
		sim_fail(n->s, "node %u: memory operations were not executed", n->id);
	if (!noise && (tp->c.v[URN_C_EVENT_LOST] || tp->c.v[URN_C_BAD_WQE] ||
		       (tp->c.v[URN_C_CQ_OVERRUN] && !n->scq.broken && !n->rcq.broken)))
		sim_fail(n->s, "node %u: events or completions were lost, or requests called bad",
			 n->id);
}

/* QPs are destroyed already. */
void
sim_node_close(struct sim_node *n)
{
	struct sim *s = n->s;
	struct urn_region *region;

	for (; n->rx_out != n->rx_in; n->rx_out++)
		rte_pktmbuf_free(n->rx[n->rx_out % SIM_RX]);
	for (; n->slow_out != n->slow_in; n->slow_out++)
		rte_pktmbuf_free(n->slow[n->slow_out % SIM_RX].m);
	if (n->host) {
		sim_host_close(n);
		return;
	}
	if (n->tp) {
		sim_node_check_pools(n, false);
		urn_tp_destroy(n->tp);
		n->tp = NULL;
	}
	if (n->memx && urn_memx_holds(n->memx, NULL))
		sim_fail(s, "node %u: %u memory operations were not answered", n->id,
			 urn_memx_holds(n->memx, NULL));
	if (n->mem) {
		sim_node_bury(n);
		sim_spaces_close(n);
		if (urn_mem_kill_mr(n->mem, n->key_all, &region) == 0)
			urn_mem_free_mr(n->mem, region);
		else
			sim_fail(s, "node %u: a window is still bound", n->id);
		if (n->srq_key && urn_mem_kill_mr(n->mem, n->srq_key, &region) == 0)
			urn_mem_free_mr(n->mem, region);
		if (n->srq_pd && urn_mem_dealloc_pd(n->mem, n->srq_pd) != 0)
			sim_fail(s, "node %u: the domain of the shared queue is still used", n->id);
		if (urn_mem_dealloc_pd(n->mem, n->pd) != 0)
			sim_fail(s, "node %u: the protection domain is still used", n->id);
	}
	urn_memx_destroy(n->memx);
	urn_mem_destroy(n->mem);
	n->mem = NULL;
	n->memx = NULL;
	free(n->scq.cq.hdr);
	free(n->rcq.cq.hdr);
	n->scq.cq.hdr = n->rcq.cq.hdr = NULL;
	close_rq(&n->srq_q);
	close_rq(&n->ud.rq);
	free(n->ud.sq);
	n->ud.sq = NULL;
	if (n->hogged)
		rte_pktmbuf_free_bulk(n->hog, n->hogged);
	n->hogged = 0;
}
