/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <time.h>

enum { PORT = 1, GID_INDEX = 1, PATIENCE_S = 30 };

static void
end_open(struct end *e, struct ibv_device *device)
{
	CHECK((e->c = ibv_open_device(device)) != NULL);
	CHECK((e->pd = ibv_alloc_pd(e->c)) != NULL);
	CHECK((e->ch = ibv_create_comp_channel(e->c)) != NULL);
	EQUAL(ibv_query_gid(e->c, PORT, GID_INDEX, &e->gid), 0);
}

void
rig_open(struct rig *r)
{
	struct ibv_device **list;
	int n;

	memset(r, 0, sizeof(*r));
	CHECK((list = ibv_get_device_list(&n)) != NULL);
	EQUAL(n, 2);
	end_open(&r->a, list[0]);
	end_open(&r->b, list[1]);
	ibv_free_device_list(list);
}

void
end_make(struct end *e, const struct rig_options *o, struct ibv_srq *srq)
{
	uint32_t wr = o->wr != 0 ? o->wr : 16;
	struct ibv_qp_init_attr init = {
		.srq = srq,
		.qp_type = o->type != 0 ? o->type : IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = wr,
			.max_recv_wr = wr,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64},
	};

	CHECK((e->cq = ibv_create_cq(e->c, o->cqe != 0 ? (int)o->cqe : 64, e, e->ch, 0)) != NULL);
	init.send_cq = init.recv_cq = e->cq;
	CHECK((e->qp = ibv_create_qp(e->pd, &init)) != NULL);
}

int
end_modify(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE);
}

static int
to_init(struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = PORT,
				   .qp_access_flags = (unsigned int)REG_ALL,
				   .qkey = 7};
	bool ud = e->qp->qp_type == IBV_QPT_UD;

	return ibv_modify_qp(e->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int
to_rtr(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = PORT,
			    .grh = {.dgid = peer->gid, .sgid_index = GID_INDEX, .hop_limit = 8}},
	};

	if (e->qp->qp_type == IBV_QPT_UD)
		return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE);
	return ibv_modify_qp(e->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int
to_rts(struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 4};

	if (e->qp->qp_type == IBV_QPT_UD)
		return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return ibv_modify_qp(e->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int
end_move(struct end *e, const struct end *peer, enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_INIT:
		return to_init(e);
	case IBV_QPS_RTR:
		return to_rtr(e, peer);
	case IBV_QPS_RTS:
		return to_rts(e);
	default:
		return end_modify(e, state);
	}
}

void
rig_connect(struct rig *r)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						IBV_QPS_RTS};
	size_t i;

	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		EQUAL(end_move(&r->a, &r->b, way[i]), 0);
		EQUAL(end_move(&r->b, &r->a, way[i]), 0);
	}
}

void
rig_make(struct rig *r, const struct rig_options *o)
{
	end_make(&r->a, o, NULL);
	end_make(&r->b, o, o->srq);
	if (!o->idle)
		rig_connect(r);
}

void
rig_unmake(struct rig *r)
{
	EQUAL(ibv_destroy_qp(r->a.qp), 0);
	EQUAL(ibv_destroy_qp(r->b.qp), 0);
	EQUAL(ibv_destroy_cq(r->a.cq), 0);
	EQUAL(ibv_destroy_cq(r->b.cq), 0);
}

static void
end_close(struct end *e)
{
	EQUAL(ibv_destroy_comp_channel(e->ch), 0);
	EQUAL(ibv_dealloc_pd(e->pd), 0);
	EQUAL(ibv_close_device(e->c), 0);
}

void
rig_close(struct rig *r)
{
	end_close(&r->a);
	end_close(&r->b);
}

struct ibv_mr *
reg(struct end *e, void *addr, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, addr, length, REG_ALL);

	CHECK(mr != NULL);
	return mr;
}

int
end_send(struct end *e, enum ibv_wr_opcode op, uint64_t addr, uint32_t length, uint32_t lkey,
	 uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = length != 0, .opcode = op},
			   *bad = NULL;
	int err;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	err = ibv_post_send(e->qp, &wr, &bad);
	CHECK(err == 0 || bad == &wr);
	return err;
}

int
end_recv(struct end *e, uint64_t addr, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = length != 0}, *bad = NULL;
	int err = ibv_post_recv(e->qp, &wr, &bad);

	CHECK(err == 0 || bad == &wr);
	return err;
}

enum ibv_wc_status
end_wait(struct end *e, struct ibv_wc *wc)
{
	time_t end = time(NULL) + PATIENCE_S;
	struct ibv_wc none;
	int n;

	if (wc == NULL)
		wc = &none;
	while ((n = ibv_poll_cq(e->cq, 1, wc)) == 0)
		CHECK(time(NULL) < end);
	EQUAL(n, 1);
	return wc->status;
}

enum ibv_event_type
end_event(struct end *e)
{
	struct ibv_async_event event;

	EQUAL(ibv_get_async_event(e->c, &event), 0);
	ibv_ack_async_event(&event);
	return event.event_type;
}
