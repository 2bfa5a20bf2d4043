/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the dataplane and its program, and the program's calls. */
#include "whole.h"

#include "common/test_asan.h"
#include "unit/net/l3_frames.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <rte_random.h>

enum {
	RAM = 3 * NODE_GUARD + NODE_LEN + NODE_SHUT,
	FILL = 0xc5,
	SGES = 3,
	INLINE = 64,
	REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

static struct whole_cables cables[2][2]; /* indexes: few packet buffers, two queues */

static void
make_cables(struct whole_cables *c, bool few, bool two)
{
	static const uint8_t b_mac[6] = {2, 0, 0, 0, 0, 9};
	uint16_t desc = few ? 32 : 64;
	struct urn_err err = {""};

	for (int i = 0; i < 2; i++) {
		struct urn_port_config pc[2] = {{.name = "port"}, {.name = "wire"}};
		struct urn_port *p[2];

		for (int k = 0; k < 2; k++) {
			pc[k].queues = two && i == 0 ? 2 : 1;
			pc[k].rx_desc = pc[k].tx_desc = desc;
			pc[k].mbufs = few && k == 0 && i == 0 ? 160 : 1023;
		}
		memcpy(pc[0].mac, i == 0 ? us_mac : b_mac, 6);
		if (urn_port_open_ring_pair(pc, p, &err) != 0)
			fuzz_fail("ports: %s", err.text);
		c->port[i] = p[0];
		c->wire[i] = p[1];
	}
}

void
whole_init(void)
{
	fuzz_eal();
	for (unsigned int i = 0; i < 4; i++)
		make_cables(&cables[i & 1][i >> 1], i & 1, i >> 1);
}

/* ---- opening */

static void
open_dataplane(struct whole *w)
{
	const struct node_config *c = &w->cfg;
	struct urn_adapter_config ac[2] = {
		{.name = "a", .engines = 3, .ipv4 = {10, 0, 0, 1}, .max_qp = 64, .max_mr = 64},
		{.name = "b", .engines = 2, .ipv4 = {10, 0, 0, 9}, .max_qp = 64, .max_mr = 64},
	};
	struct urn_dp_config dc = {.engines = WHOLE_ENGINES, .adapters = 2, .adapter = ac};
	struct urn_err err = {""};

	for (int i = 0; i < 2; i++) {
		ac[i].port = w->cables->port[i];
		ac[i].seed = 1;
		ac[i].max_cm = 16;
		ac[i].area_size = 1 << 20;
		ac[i].work_in_flight = c->poor ? 12 : 128;
	}
	ac[0].features_off = c->plain ? UINT32_MAX : 0;
	ac[0].window = c->window;
	ac[0].rto_floor_us = (uint32_t)(c->rto_floor / 1000);
	ac[0].mem_delay_seed = c->late || c->failing ? c->seed : 0;
	ac[0].mem_delay_percent = c->late ? 60 : 1;
	ac[0].mem_delay_polls = 6;
	ac[0].mem_fail_per_million = c->failing ? 20000 : 0;
	w->dp = urn_dp_create(&dc, &err);
	if (!w->dp)
		fuzz_fail("dataplane: %s", err.text);
	for (unsigned int i = 0; i < WHOLE_ENGINES; i++)
		urn_engine_bind(urn_dp_engine(w->dp, i));
	w->a = w->dp->adapter[0];
}

static void
open_addresses(struct whole *w)
{
	bool v6 = w->cfg.ipv6;

	memcpy(w->self.mac, us_mac, 6);
	memcpy(w->self.gid, w->a->gid[v6 ? 0 : 1], 16);
	memcpy(w->peer.mac, peer_mac, 6);
	memcpy(w->peer.gid, v6 ? peer_ll : peer_v4, 16);
	memcpy(w->other.mac, other_mac, 6);
	memcpy(w->other.gid, w->peer.gid, 16);
	w->other.gid[15] = 3;
}

static struct ibv_mr *
reg(struct ibv_pd *pd, void *p, size_t len, uint64_t va, int access)
{
	struct ibv_mr *mr = ibv_reg_mr_iova2(pd, p, len, va, (unsigned int)access);

	fuzz_check(mr);
	return mr;
}

/* Register the region, with all rights. */
static void
reg_region(struct whole *w)
{
	uint8_t *p = w->ram + NODE_GUARD;

	w->mr = reg(w->pd, p, NODE_LEN, NODE_VA,
		    IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_MW_BIND);
	w->local = reg(w->pd, p, NODE_LEN, NODE_VA, IBV_ACCESS_LOCAL_WRITE);
}

static void
open_ram(struct whole *w)
{
	w->ram = aligned_alloc(64, RAM);
	fuzz_check(w->ram);
	memset(w->ram, FILL, RAM);
	for (uint32_t i = 0; i < NODE_LEN; i++)
		w->ram[NODE_GUARD + i] = (uint8_t)(i ^ i >> 8 ^ i >> 3);
}

static void
open_memory(struct whole *w)
{
	uint8_t *shut = w->ram + NODE_GUARD + NODE_LEN + NODE_GUARD;

	w->pd = ibv_alloc_pd(w->ctx);
	w->other_pd = ibv_alloc_pd(w->ctx);
	fuzz_check(w->pd && w->other_pd);
	w->shut = reg(w->pd, shut, NODE_SHUT, NODE_SHUT_VA, IBV_ACCESS_REMOTE_READ);
	w->other_mr =
		reg(w->other_pd, shut, NODE_SHUT, NODE_VA,
		    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	w->mw = ibv_alloc_mw(w->pd, IBV_MW_TYPE_2);
	fuzz_check(w->mw);
	reg_region(w);
}

static bool
is_loop(const struct whole *w, unsigned int i)
{
	return w->cfg.loop && i == 1;
}

static void
modify(struct whole *w, unsigned int i, enum ibv_qp_state to)
{
	const struct node_config *c = &w->cfg;
	struct ibv_qp *qp = w->q[i].qp;
	bool ud = i == 2;
	static const int rc_mask[] = {
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	static const int ud_mask[] = {
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		[IBV_QPS_RTR] = 0,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN,
	};
	struct ibv_qp_attr a = {
		.qp_state = to,
		.port_num = 1,
		.qkey = NODE_QKEY,
		.qp_access_flags = REMOTE,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(c->mtu) - 7),
		.dest_qp_num = is_loop(w, i) ? qp->qp_num : NODE_PEER_QPN + i,
		.rq_psn = NODE_PSN,
		.sq_psn = NODE_PSN,
		.max_rd_atomic = c->rd_atomic,
		.max_dest_rd_atomic = c->dest_rd_atomic,
		.min_rnr_timer = 1,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.en_sqd_async_notify = c->events,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
	};
	int mask = IBV_QP_STATE | (to > IBV_QPS_RTS ? 0 : (ud ? ud_mask : rc_mask)[to]);

	a.ah_attr.grh.sgid_index = c->ipv6 ? 0 : 1;
	memcpy(a.ah_attr.grh.dgid.raw, is_loop(w, i) ? w->self.gid : w->peer.gid, 16);
	if (ibv_modify_qp(qp, &a, mask) != 0)
		fuzz_fail("QP %u to state %d: %s", i, to, urn_attach_error());
}

/* Bring a QP up: from RESET to state `to`, RTR or RTS; from RTR to RTS. */
static void
bring_up(struct whole *w, unsigned int i, enum ibv_qp_state from, enum ibv_qp_state to)
{
	for (int s = (int)from + 1; s <= (int)to; s++)
		modify(w, i, (enum ibv_qp_state)s);
}

static void
open_qp(struct whole *w, unsigned int i)
{
	struct ibv_qp_init_attr init = {
		.send_cq = w->cq[i == 1 ? 2 : 0],
		.recv_cq = w->cq[i == 1 && !w->cfg.srq ? 2 : 1],
		.srq = w->cfg.srq && i > 0 ? w->srq : NULL,
		.qp_type = i == 2 ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {NODE_SLOTS, NODE_SLOTS, SGES, SGES, INLINE},
	};

	w->q[i].qp = ibv_create_qp(w->pd, &init);
	if (!w->q[i].qp)
		fuzz_fail("QP %u: %s", i, urn_attach_error());
	bring_up(w, i, IBV_QPS_RESET, IBV_QPS_RTS);
}

static void
no_wait(int fd)
{
	fuzz_check(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

/*
 * A QP belongs to the engine of its receives: the SRQ's, which is the first, or their
 * queue's. QP 1 has the third queue, of the second engine; with `far`, so has the
 * receives' queue of the others. Completions for another engine's queue go from engine to
 * engine.
 */
static void
open_objects(struct whole *w)
{
	struct ibv_srq_init_attr srq = {.attr = {NODE_SLOTS, SGES, w->cfg.events ? 3 : 0}};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	if (w->cfg.events) {
		w->channel = ibv_create_comp_channel(w->ctx);
		fuzz_check(w->channel);
		no_wait(w->channel->fd);
	}
	no_wait(w->ctx->async_fd);
	for (int i = 0; i < 3; i++) {
		w->cq[i] = ibv_create_cq(w->ctx, NODE_CQES, NULL, w->channel,
					 i == 2 || (i == 1 && w->cfg.far));
		fuzz_check(w->cq[i] && ibv_req_notify_cq(w->cq[i], i & 1) == 0);
	}
	w->srq = ibv_create_srq(w->pd, &srq);
	ah.grh.sgid_index = w->cfg.ipv6 ? 0 : 1;
	memcpy(ah.grh.dgid.raw, w->peer.gid, 16);
	w->ah = ibv_create_ah(w->pd, &ah);
	fuzz_check(w->srq && w->ah);
}

void
whole_open_bare(struct whole *w, const struct node_config *cfg, bool two_queues)
{
	memset(w, 0, sizeof(*w));
	w->cfg = *cfg;
	w->cables = &cables[cfg->poor][two_queues];
	rte_srand(cfg->seed);
	open_dataplane(w);
	open_addresses(w);
	open_ram(w);
}

void
whole_open(struct whole *w, const struct node_config *cfg, bool two_queues)
{
	struct urn_err err = {""};

	whole_open_bare(w, cfg, two_queues);
	w->ch = urn_dp_attach(w->dp, 0, &err);
	w->ctx = w->ch ? urn_attach_open(w->ch) : NULL;
	if (!w->ctx)
		fuzz_fail("attach: %s %s", err.text, urn_attach_error());
	open_memory(w);
	open_objects(w);
	for (unsigned int i = 0; i < NODE_QPS; i++)
		open_qp(w, i);
	whole_set_wire(w, cfg->unresolved ? WHOLE_DEAF : 0);
}

/* ---- closing */

static void
come_to_rest(struct whole *w)
{
	whole_set_wire(w, 0);
	for (unsigned int i = 0; i < NODE_QPS; i++)
		modify(w, i, IBV_QPS_ERR);
	for (unsigned int turns = 0, calm = 0; calm < 3; turns++) {
		if (turns == 3000)
			fuzz_fail("QPs in the error state do not come to rest");
		whole_turn(w, 1000000, 3);
		calm = whole_at_rest(w) ? calm + 1 : 0;
	}
}

static void
close_program(struct whole *w)
{
	for (unsigned int i = 0; i < NODE_QPS; i++)
		fuzz_check(ibv_destroy_qp(w->q[i].qp) == 0);
	fuzz_check(ibv_destroy_ah(w->ah) == 0 && ibv_destroy_srq(w->srq) == 0);
	for (int i = 0; i < 3; i++)
		fuzz_check(ibv_destroy_cq(w->cq[i]) == 0);
	fuzz_check(!w->channel || ibv_destroy_comp_channel(w->channel) == 0);
	whole_rereg(w);
	fuzz_check(ibv_dealloc_mw(w->mw) == 0);
	fuzz_check(ibv_dereg_mr(w->mr) == 0 && ibv_dereg_mr(w->local) == 0);
	fuzz_check(ibv_dereg_mr(w->shut) == 0 && ibv_dereg_mr(w->other_mr) == 0);
	fuzz_check(ibv_dealloc_pd(w->pd) == 0 && ibv_dealloc_pd(w->other_pd) == 0);
	fuzz_check(ibv_close_device(w->ctx) == 0);
	for (unsigned int i = 0; i < WHOLE_GUESTS; i++)
		fuzz_check(!w->guest[i] || ibv_close_device(w->guest[i]) == 0);
}

static bool
filled(const uint8_t *p, size_t len)
{
	return p[0] == FILL && memcmp(p, p + 1, len - 1) == 0;
}

static void
check_memory(const struct whole *w)
{
	const uint8_t *behind = w->ram + NODE_GUARD + NODE_LEN;

	if (!filled(w->ram, NODE_GUARD) || !filled(behind, RAM - NODE_GUARD - NODE_LEN))
		fuzz_fail("memory that nobody may write was written");
}

static void
check_pools(const struct whole_cables *c)
{
	for (int i = 0; i < 2; i++)
		if (!rte_mempool_full(c->port[i]->pool) || !rte_mempool_full(c->wire[i]->pool))
			fuzz_fail("port %d: %u and %u packet buffers are lost (or more came back "
				  "than went)",
				  i, rte_mempool_in_use_count(c->port[i]->pool),
				  rte_mempool_in_use_count(c->wire[i]->pool));
}

void
whole_close(struct whole *w)
{
	come_to_rest(w);
	whole_check_end(w);
	close_program(w);
	whole_close_bare(w);
}

void
whole_close_bare(struct whole *w)
{
	whole_set_wire(w, 0);
	whole_serves(w);
	for (unsigned int i = 0; i < WHOLE_ENGINES; i++)
		urn_engine_unbind(urn_dp_engine(w->dp, i));
	urn_dp_destroy(w->dp);
	whole_drain(w->cables);
	check_memory(w);
	check_pools(w->cables);
	free(w->ram);
}

/* ---- the program */

static void
fill_request(struct whole *w, unsigned int i, const struct node_send *s, struct ibv_send_wr *wr)
{
	if (i == 2) {
		wr->wr.ud.ah = w->ah;
		wr->wr.ud.remote_qpn = NODE_PEER_QPN + i;
		wr->wr.ud.remote_qkey = NODE_QKEY;
	} else if (s->op == URN_WR_BIND_MW) {
		wr->bind_mw.mw = w->mw;
		wr->bind_mw.rkey = ibv_inc_rkey(w->mw->rkey);
		wr->bind_mw.bind_info =
			(struct ibv_mw_bind_info){s->len & 1 ? w->shut
						  : w->mr    ? w->mr
							     : w->shut,
						  s->addr, s->len, IBV_ACCESS_REMOTE_WRITE};
	} else if (s->op == URN_WR_CMP_SWAP || s->op == URN_WR_FETCH_ADD) {
		wr->wr.atomic.remote_addr = s->remote;
		wr->wr.atomic.rkey = s->rkey;
		wr->wr.atomic.compare_add = s->len & 1;
		wr->wr.atomic.swap = s->len;
	} else {
		wr->wr.rdma.remote_addr = s->remote;
		wr->wr.rdma.rkey = s->rkey;
	}
	if (s->op == URN_WR_LOCAL_INV || s->op == URN_WR_SEND_INV)
		wr->invalidate_rkey = w->mw->rkey;
}

void
whole_post(struct whole *w, unsigned int i, const struct node_send *s)
{
	struct whole_qp *q = &w->q[i];
	uint64_t bit = 1ull << q->sent % NODE_SLOTS;
	struct ibv_sge sge[SGES];
	struct ibv_send_wr *bad, wr = {
					 .wr_id = q->sent,
					 .opcode = (enum ibv_wr_opcode)s->op,
					 .send_flags = s->flags,
					 .num_sge = s->num_sge,
					 .sg_list = sge,
					 .imm_data = w->mw->rkey,
				 };

	if (q->sent - q->sent_seen >= NODE_SLOTS)
		return;
	/* Otherwise nobody could tell that the earlier ones are done. */
	if (q->sent - q->sent_seen >= NODE_SLOTS / 2)
		wr.send_flags |= IBV_SEND_SIGNALED;
	for (unsigned int k = 0; k < SGES; k++)
		sge[k] = (struct ibv_sge){s->addr + k * 64, s->num_sge > 1 && k == 0 ? 7 : s->len,
					  s->lkey};
	if (s->flags & URN_WRF_INLINE) { /* the library reads these bytes */
		sge[0].addr = sge[1].addr = sge[2].addr = (uintptr_t)(w->ram + NODE_GUARD);
		if (!w->mr)
			return;
	}
	fill_request(w, i, s, &wr);
	if (ibv_post_send(q->qp, &wr, &bad) != 0)
		return;
	q->quiet = wr.send_flags & IBV_SEND_SIGNALED ? q->quiet & ~bit : q->quiet | bit;
	q->sent++;
}

void
whole_recv(struct whole *w, const struct words_recv *r)
{
	struct whole_qp *q = &w->q[r->qp];
	uint32_t half = r->len / 3;
	struct ibv_sge sge[2] = {{r->addr, half, r->lkey},
				 {r->addr + half, r->len - half, r->lkey}};
	struct ibv_recv_wr *bad, wr = {.sg_list = sge,
				       .num_sge = r->broken	    ? SGES + 1
						  : r->len % 5 == 4 ? 1
								    : 2};

	if (q->qp->srq) {
		if (w->srq_posted == sizeof(w->srq_got))
			return;
		wr.wr_id = WHOLE_RECV | w->srq_posted;
		w->srq_posted += ibv_post_srq_recv(w->srq, &wr, &bad) == 0;
		return;
	}
	wr.wr_id = WHOLE_RECV | q->recvs;
	q->recvs += ibv_post_recv(q->qp, &wr, &bad) == 0;
}

static void
reset(struct whole *w, unsigned int i, enum ibv_qp_state to)
{
	whole_poll(w);
	modify(w, i, IBV_QPS_RESET);
	whole_forget(w, i);
	bring_up(w, i, IBV_QPS_RESET, to);
}

void
whole_state(struct whole *w, unsigned int i, uint8_t to)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	fuzz_check(ibv_query_qp(w->q[i].qp, &a, IBV_QP_STATE, &init) == 0);
	if (to == URN_QPS_RESET)
		reset(w, i, IBV_QPS_RTS);
	else if (to == URN_QPS_RTR)
		reset(w, i, IBV_QPS_RTR);
	else if (to == URN_QPS_RTS && a.qp_state == IBV_QPS_RTR)
		modify(w, i, IBV_QPS_RTS);
	else if (to == URN_QPS_ERR)
		modify(w, i, IBV_QPS_ERR);
	else { /* the QP may have failed by itself meanwhile */
		a.qp_state = (enum ibv_qp_state)to;
		(void)ibv_modify_qp(w->q[i].qp, &a, IBV_QP_STATE);
	}
}

void
whole_dereg(struct whole *w)
{
	if (!w->mr)
		return;
	/* A window that is bound holds its region. */
	fuzz_check(ibv_dealloc_mw(w->mw) == 0);
	fuzz_check(ibv_dereg_mr(w->mr) == 0 && ibv_dereg_mr(w->local) == 0);
	w->mr = w->local = NULL;
	w->mw = ibv_alloc_mw(w->pd, IBV_MW_TYPE_2);
	fuzz_check(w->mw);
	/* From here on the region may be unmapped: an access to it is a finding. */
	ASAN_POISON_MEMORY_REGION(w->ram + NODE_GUARD, NODE_LEN);
}

void
whole_rereg(struct whole *w)
{
	if (w->mr)
		return;
	ASAN_UNPOISON_MEMORY_REGION(w->ram + NODE_GUARD, NODE_LEN);
	reg_region(w);
}

void
whole_guest(struct whole *w, uint8_t which)
{
	struct ibv_context **g = &w->guest[which % WHOLE_GUESTS];
	struct urn_err err = {""};
	struct urn_abi_channel *ch;

	if (*g) {
		/* The device's objects go with it. */
		fuzz_check(ibv_close_device(*g) == 0);
		*g = NULL;
		return;
	}
	ch = urn_dp_attach(w->dp, which & 0x80 ? 1 : 0, &err);
	*g = ch ? urn_attach_open(ch) : NULL;
	if (!*g)
		fuzz_fail("attach: %s %s", err.text, urn_attach_error());
}
