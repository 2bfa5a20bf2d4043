/* SPDX-License-Identifier: BSD-3-Clause */
/* Invariants of the dataplane: each request completes once, and others are served. */
#include "whole.h"

#include "unit/net/l3_frames.h"

#include <stdlib.h>
#include <string.h>

/* ---- completions */

/* Requests before `to` are done without a completion: none of them may have a pending one. */
static void
skip_quiet(struct whole_qp *q, uint32_t to)
{
	for (; q->sent_seen != to; q->sent_seen++)
		if (!(q->quiet >> q->sent_seen % NODE_SLOTS & 1))
			fuzz_fail("request %u of QP 0x%06x has no completion", q->sent_seen,
				  q->qp->qp_num);
}

static void
sent_one(struct whole_qp *q, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)wc->wr_id;

	if (number - q->sent_seen >= q->sent - q->sent_seen)
		fuzz_fail("request %u of QP 0x%06x completes out of turn; %u is next, of %u",
			  number, wc->qp_num, q->sent_seen, q->sent);
	skip_quiet(q, number);
	if (wc->status == IBV_WC_SUCCESS)
		fuzz_check(!(q->quiet >> number % NODE_SLOTS & 1));
	q->sent_seen = number + 1;
}

static void
received_one(struct whole *w, struct whole_qp *q, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)wc->wr_id;

	if (!q->qp->srq) {
		fuzz_check(number == q->recvs_seen && q->recvs_seen != q->recvs);
		q->recvs_seen++;
		return;
	}
	fuzz_check(number < w->srq_posted && !w->srq_got[number]);
	w->srq_got[number] = 1;
	w->srq_done++;
}

static void
take_events(struct whole *w)
{
	struct ibv_async_event ev;
	struct ibv_cq *cq;
	void *arg;

	while (w->channel && ibv_get_cq_event(w->channel, &cq, &arg) == 0) {
		ibv_ack_cq_events(cq, 1);
		fuzz_check(ibv_req_notify_cq(cq, 0) == 0);
	}
	while (ibv_get_async_event(w->ctx, &ev) == 0) {
		fuzz_check(ev.event_type != IBV_EVENT_CQ_ERR);
		ibv_ack_async_event(&ev);
	}
}

void
whole_poll(struct whole *w)
{
	struct ibv_wc wc;
	int n;

	for (unsigned int c = 0; c < 3; c++) {
		while ((n = ibv_poll_cq(w->cq[c], 1, &wc)) == 1) {
			struct whole_qp *q = NULL;

			for (unsigned int i = 0; i < NODE_QPS; i++)
				if (w->q[i].qp && w->q[i].qp->qp_num == wc.qp_num)
					q = &w->q[i];
			fuzz_check(q);
			if (wc.wr_id & WHOLE_RECV)
				received_one(w, q, &wc);
			else
				sent_one(q, &wc);
		}
		fuzz_check(n == 0);
	}
	take_events(w);
}

void
whole_forget(struct whole *w, unsigned int i)
{
	w->q[i].sent_seen = w->q[i].sent;
	w->q[i].recvs_seen = w->q[i].recvs;
}

/* ---- the end of an input */

static bool
empty(const struct urn_abi_wq *wq)
{
	return atomic_load(&wq->cons) == atomic_load(&wq->prod);
}

bool
whole_at_rest(const struct whole *w)
{
	for (unsigned int e = 0; e < WHOLE_ENGINES; e++) {
		const struct urn_shard *s = w->a->shard[e];

		if (urn_tp_busy(s->tp) || urn_memx_holds(s->memx, NULL) || !TAILQ_EMPTY(&s->late_cqes) ||
		    !rte_ring_empty(s->engine->ring))
			return false;
	}
	for (unsigned int i = 0; i < NODE_QPS; i++) {
		const struct urn_qp *qp = whole_urn_qp(w, i);

		if (!urn_qp_quiet(qp) || qp->tx.head || !empty(qp->sq.hdr) ||
		    (!qp->srq && !empty(qp->rq.hdr)))
			return false;
	}
	return true;
}

void
whole_check_end(struct whole *w)
{
	struct urn_counters c;

	/* Frames on the wire are lost when it is cut. */
	urn_dp_counters(w->dp, 0, &c);
	fuzz_check(w->cut || c.v[URN_C_RX_PACKETS] == w->given);
	for (unsigned int i = 0; i < NODE_QPS; i++) {
		struct whole_qp *q = &w->q[i];

		skip_quiet(q, q->sent);
		fuzz_check(q->recvs_seen == q->recvs);
	}
	for (unsigned int e = 0; e < WHOLE_ENGINES; e++) {
		fuzz_check(w->a->shard[e]->tp->kept == 0);
		fuzz_check(w->a->shard[e]->tp->c.v[URN_C_CQ_OVERRUN] == 0);
	}
}

/* ---- others are served */

enum { BYTES = WHOLE_BYTES, TRIES = 20 };

static void
end_open(struct whole *w, struct whole_end *e, unsigned int adapter, int vector)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct urn_err err = {""};
	struct urn_abi_channel *ch = urn_dp_attach(w->dp, adapter, &err);

	e->good = 0;
	e->ctx = ch ? urn_attach_open(ch) : NULL;
	e->pd = e->ctx ? ibv_alloc_pd(e->ctx) : NULL;
	e->cq = e->pd ? ibv_create_cq(e->ctx, 16, NULL, NULL, vector) : NULL;
	init.send_cq = init.recv_cq = e->cq;
	e->qp = e->cq ? ibv_create_qp(e->pd, &init) : NULL;
	e->mr = e->qp ? ibv_reg_mr(e->pd, e->buf, sizeof(e->buf),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		      : NULL;
	if (!e->mr || ibv_query_gid(e->ctx, 1, w->cfg.ipv6 ? 0 : 1, &e->gid) != 0)
		fuzz_fail("another program cannot begin: %s %s", err.text, urn_attach_error());
}

static void
end_close(struct whole_end *e)
{
	fuzz_check(ibv_destroy_qp(e->qp) == 0 && ibv_destroy_cq(e->cq) == 0);
	fuzz_check(ibv_dereg_mr(e->mr) == 0 && ibv_dealloc_pd(e->pd) == 0);
	fuzz_check(ibv_close_device(e->ctx) == 0);
}

static void
end_connect(const struct whole *w, const struct whole_end *e, const struct whole_end *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 7,
		.sq_psn = 7,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.hop_limit = 64, .dgid = peer->gid}},
	};

	a.ah_attr.grh.sgid_index = w->cfg.ipv6 ? 0 : 1;
	fuzz_check(ibv_modify_qp(e->qp, &a,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	fuzz_check(ibv_modify_qp(e->qp, &a,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					 IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	fuzz_check(ibv_modify_qp(e->qp, &a,
				 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					 IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* A WRITE to one half of the peer's memory, and a SEND to the other. */
static void
end_post(struct whole_end *e, struct whole_end *peer)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, BYTES, e->mr->lkey};
	struct ibv_sge to = {(uintptr_t)peer->buf + BYTES, BYTES, peer->mr->lkey};
	struct ibv_send_wr *bad, send = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr write = {.next = &send,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_WRITE,
				    .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = &to, .num_sge = 1};

	write.wr.rdma.remote_addr = (uintptr_t)peer->buf;
	write.wr.rdma.rkey = peer->mr->rkey;
	fuzz_check(ibv_post_recv(peer->qp, &recv, &bad_recv) == 0);
	fuzz_check(ibv_post_send(e->qp, &write, &bad) == 0);
}

/* Take the completions. returns: true when none has an error */
static bool
end_poll(struct whole_end *e)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(e->cq, 1, &wc);

	fuzz_check(n >= 0);
	e->good += (unsigned int)n;
	return n == 0 || wc.status == IBV_WC_SUCCESS;
}

bool
whole_pair_transfer(struct whole *w, struct whole_end *from, struct whole_end *to, uint8_t first)
{
	from->good = to->good = 0;
	for (unsigned int i = 0; i < BYTES; i++)
		from->buf[i] = (uint8_t)(first + i * 7);
	end_post(from, to);
	for (unsigned int turns = 0; from->good < 2 || to->good < 1; turns++) {
		if (turns == 5000)
			fuzz_fail("another program's transfer does not end");
		whole_turn(w, 200000, 3);
		if (!end_poll(from) || !end_poll(to))
			return false;
	}
	fuzz_check(memcmp(to->buf, from->buf, BYTES) == 0);
	fuzz_check(memcmp(to->buf + BYTES, from->buf, BYTES) == 0);
	return true;
}

void
whole_pair_open(struct whole *w, struct whole_end e[2], unsigned int x, unsigned int y)
{
	end_open(w, &e[0], x, 0);
	end_open(w, &e[1], y, x == y);
	end_connect(w, &e[0], &e[1]);
	end_connect(w, &e[1], &e[0]);
}

void
whole_pair_close(struct whole_end e[2])
{
	end_close(&e[0]);
	end_close(&e[1]);
}

/* Transfer there and back, as often as it takes. */
static void
serve(struct whole *w, unsigned int x, unsigned int y)
{
	/* Where memory operations fail at random, others' transfers may fail, too. */
	unsigned int tries = w->cfg.failing ? TRIES : 1;
	static struct whole_end e[2];
	bool went = false;

	for (unsigned int i = 0; i < tries && !went; i++) {
		whole_pair_open(w, e, x, y);
		went = whole_pair_transfer(w, &e[0], &e[1], 1) &&
		       whole_pair_transfer(w, &e[1], &e[0], 2);
		whole_pair_close(e);
	}
	if (!went)
		fuzz_fail("adapters a and %c no longer serve others", 'a' + (char)y);
}

void
whole_serves(struct whole *w)
{
	w->ctx = NULL; /* the program under fire is gone */
	w->open_wire = true;
	serve(w, 0, 0);
	serve(w, 0, 1);
}
