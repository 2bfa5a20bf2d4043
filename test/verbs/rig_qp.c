/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of the rig: make, connect, post. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig_priv.h"

#include <stdlib.h>

static int
or_default(int v, int dflt)
{
	return v < 0 ? 0 : v == 0 ? dflt : v;
}

struct ibv_qp *
rig_make_qp(struct rig *r, int e, const struct rig_qp *o)
{
	struct ibv_qp_init_attr init = {
		.send_cq = o->send_cq ? o->send_cq : r->end[e].cq,
		.recv_cq = o->recv_cq ? o->recv_cq : r->end[e].cq,
		.srq = o->srq,
		.qp_type = o->type ? o->type : IBV_QPT_RC,
		.sq_sig_all = o->sig_all,
		.cap = {.max_send_wr = o->depth ? o->depth : 64,
			.max_recv_wr = o->depth ? o->depth : 64,
			.max_send_sge = o->sge ? o->sge : 4,
			.max_recv_sge = o->sge ? o->sge : 4,
			.max_inline_data = o->inline_bytes ? o->inline_bytes : 64},
	};
	struct ibv_qp *qp = ibv_create_qp(o->pd ? o->pd : r->end[e].pd, &init);

	if (!qp)
		rig_die("QP", urn_attach_error());
	return qp;
}

int
rig_sgid_index(const struct rig *r)
{
	return r->ipv6 ? 0 : 1;
}

void
rig_gid(struct rig *r, int e, union ibv_gid *gid)
{
	assert_int_equal(ibv_query_gid(r->end[e].ctx, 1, rig_sgid_index(r), gid), 0);
}

static void
modify(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	if (ibv_modify_qp(qp, a, mask) != 0)
		rig_die("modify", urn_attach_error());
}

void
rig_connect(struct rig *r, int e, struct ibv_qp *qp, uint32_t psn, uint32_t peer_qpn,
	    uint32_t peer_psn, const struct rig_qp *o)
{
	union ibv_gid gid;

	rig_gid(r, !e, &gid);
	rig_connect_to(r, qp, psn, peer_qpn, peer_psn, &gid, o);
}

void
rig_connect_to(struct rig *r, struct ibv_qp *qp, uint32_t psn, uint32_t peer_qpn,
	       uint32_t peer_psn, const union ibv_gid *gid, const struct rig_qp *o)
{
	bool ud = o->type == IBV_QPT_UD;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x1234,
		.qp_access_flags = o->access ? o->access
					     : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = o->mtu ? o->mtu : IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = peer_psn,
		.sq_psn = psn,
		.max_dest_rd_atomic = (uint8_t)or_default(o->dest_rd_atomic, 4),
		.max_rd_atomic = (uint8_t)or_default(o->rd_atomic, 4),
		.min_rnr_timer = 1,
		/*
		 * Workers of foreign memory need a core of a busy machine, too: beside 16 busy
		 * threads on 2 cores they began up to 264 ms late. All tries of a request together
		 * last 4 s.
		 */
		.timeout = (uint8_t)or_default(
			o->timeout,
			getenv("URNIC_TEST_FOREIGN") || r->cfg.remote || r->cfg.foreign ? 17 : 8),
		.retry_cnt = (uint8_t)or_default(o->retry_cnt, 7),
		.rnr_retry = (uint8_t)or_default(o->rnr_retry, 7),
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.hop_limit = o->hop_limit ? o->hop_limit : 64,
				    .traffic_class = o->traffic_class}},
	};

	a.ah_attr.grh.sgid_index = (uint8_t)rig_sgid_index(r);
	a.ah_attr.grh.dgid = *gid;
	modify(qp, &a,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	modify(qp, &a,
	       ud ? IBV_QP_STATE
		  : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a.qp_state = IBV_QPS_RTS;
	modify(qp, &a,
	       ud ? IBV_QP_STATE | IBV_QP_SQ_PSN
		  : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC);
}

void
rig_recv(struct rig *r, int e, size_t off, uint32_t len, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)(r->end[e].buf + off), len, r->end[e].mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(r->end[e].qp, &wr, &bad), 0);
}

void
rig_post(struct rig *r, int e, enum ibv_wr_opcode op, size_t off, uint32_t len, size_t remote,
	 uint64_t wr_id)
{
	struct rig_end *me = &r->end[e], *peer = &r->end[!e];
	struct ibv_sge sge = {(uintptr_t)(me->buf + off), len, me->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = op,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htobe32(0x11223344)},
			   *bad;

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)(peer->buf + remote);
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 42;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)(peer->buf + remote);
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	assert_int_equal(ibv_post_send(me->qp, &wr, &bad), 0);
}

void
rig_recv_on(struct ibv_qp *qp, void *p, uint32_t len, uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)p, len, lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

void
rig_send_on(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
}

enum ibv_qp_state
rig_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
	return a.qp_state;
}

void
rig_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};

	modify(qp, &a, IBV_QP_STATE);
}
