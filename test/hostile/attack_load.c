/* SPDX-License-Identifier: BSD-3-Clause */
/* More work than fits: many queue pairs, long messages, peers that are not ready or not there. */
#include "attacks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	QPS = 4096, /* busy at a time, of both ends together */
	BULK = 16,  /* pairs that write long messages */
	BULK_DEPTH = 16,
	BULK_BYTES = 1 << 20,
	READS = 16, /* pairs that read, by 16 requests each */
	READ_BYTES = 8 << 20,
	GROUP = 64, /* queue pairs in the group */
	UNREADY = 512,
	CQES = 65536,
	DEPTH = 4,
	SHORT = 64,   /* bytes */
	TURNS = 1024, /* requests posted in a round */
};

struct load {
	struct foe_end end[2];
	struct ibv_qp **qp;    /* n of them, of end 0 */
	struct ibv_qp **other; /* their peers, of end 1 */
	struct foe_peer *peer; /* peer of each of qp */
	unsigned int n;
};

static void
load_open(struct load *l, const struct foe *f, unsigned int pairs, uint32_t depth, size_t bytes)
{
	foe_open(&l->end[0], f, "a", bytes, CQES);
	foe_open(&l->end[1], f, "b", bytes, CQES);
	l->qp = calloc(pairs, sizeof(*l->qp));
	l->other = calloc(pairs, sizeof(*l->other));
	l->peer = calloc(pairs, sizeof(*l->peer));
	FOE_MUST(l->qp && l->other && l->peer, "memory");
	for (l->n = 0; l->n < pairs; l->n++) {
		struct ibv_qp *qp[2];

		foe_pair(&l->end[0], &l->end[1], depth, qp);
		l->qp[l->n] = qp[0];
		l->other[l->n] = qp[1];
		l->peer[l->n] = (struct foe_peer){l->end[1].gid, qp[1]->qp_num, 20, 7};
	}
}

/* Keep all queues full of one request. len: bytes; the same range is moved by all */
static void __attribute__((noreturn))
keep_busy(struct load *l, struct foe *f, enum ibv_wr_opcode op, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)l->end[0].buf, len, l->end[0].mr->lkey};
	unsigned int i = 0;

	foe_ready(f);
	for (;;) {
		for (unsigned int k = 0; k < TURNS; k++) {
			while (foe_post(l->qp[i], op, &sge, (uintptr_t)l->end[1].buf,
					l->end[1].mr->rkey) == 0)
				;
			i = (i + 1) % l->n;
			if (k % 64 == 0)
				(void)foe_drain(l->end[0].cq);
		}
		(void)foe_drain(l->end[0].cq);
		(void)foe_drain(l->end[1].cq);
		foe_round(f);
	}
}

void
attack_qps(struct foe *f)
{
	struct load l;

	load_open(&l, f, QPS / 2, DEPTH, 1 << 16);
	keep_busy(&l, f, IBV_WR_RDMA_WRITE, SHORT);
}

void
attack_bulk(struct foe *f)
{
	struct load l;

	load_open(&l, f, BULK, BULK_DEPTH, BULK_BYTES);
	keep_busy(&l, f, IBV_WR_RDMA_WRITE, BULK_BYTES);
}

void
attack_reads(struct foe *f)
{
	struct load l;

	load_open(&l, f, READS, 16, READ_BYTES);
	keep_busy(&l, f, IBV_WR_RDMA_READ, READ_BYTES);
}

/* ---- peers that are not ready, or not there */

/* Bring queue pairs that have failed to RTS again. */
static void
mend(struct load *l)
{
	for (unsigned int i = 0; i < l->n; i++) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr a;

		if (ibv_query_qp(l->qp[i], &a, IBV_QP_STATE, &init) == 0 &&
		    a.qp_state == IBV_QPS_ERR)
			(void)foe_connect(l->qp[i], &l->peer[i]);
	}
}

static void __attribute__((noreturn))
keep_failing(struct load *l, struct foe *f, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = {(uintptr_t)l->end[0].buf, SHORT, l->end[0].mr->lkey};

	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < l->n; i++)
			while (foe_post(l->qp[i], op, &sge, (uintptr_t)l->end[1].buf,
					l->end[1].mr->rkey) == 0)
				;
		(void)foe_drain(l->end[0].cq);
		mend(l);
		foe_round(f);
	}
}

void
attack_not_ready(struct foe *f)
{
	struct load l;

	load_open(&l, f, UNREADY, DEPTH, 1 << 16);
	keep_failing(&l, f, IBV_WR_SEND);
}

void
attack_nowhere(struct foe *f)
{
	struct load l;

	load_open(&l, f, UNREADY, DEPTH, 1 << 16);
	for (unsigned int i = 0; i < l.n; i++) { /* the peers go; short patience */
		FOE_MUST(ibv_destroy_qp(l.other[i]) == 0, "destroy");
		l.peer[i].timeout = 1;
		FOE_MUST(foe_connect(l.qp[i], &l.peer[i]) == 0, "connect");
	}
	keep_failing(&l, f, IBV_WR_RDMA_WRITE);
}

/* ---- multicast */

struct crowd {
	struct foe_end end[2];
	struct ibv_qp *qp[GROUP]; /* members of the group, on both ends */
	struct ibv_qp *from;	  /* sender, on end 0 */
	struct ibv_ah *to;	  /* the group */
};

static void
receive(const struct foe_end *e, struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, 2048, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)qp, .sg_list = &sge, .num_sge = 1}, *bad;

	(void)ibv_post_recv(qp, &wr, &bad);
}

/* Take completions; each receive is posted again. */
static void
receive_again(const struct foe_end *e)
{
	struct ibv_wc wc[32];
	int n;

	while ((n = ibv_poll_cq(e->cq, 32, wc)) > 0)
		for (int i = 0; i < n; i++)
			if (wc[i].wr_id != 0)
				receive(e, (struct ibv_qp *)(uintptr_t)wc[i].wr_id);
}

static void
crowd_open(struct crowd *c, const struct foe *f)
{
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}};
	union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3}};

	foe_open(&c->end[0], f, "a", 1 << 16, CQES);
	foe_open(&c->end[1], f, "b", 1 << 16, CQES);
	for (unsigned int i = 0; i < GROUP; i++) {
		struct ibv_qp *qp = foe_qp(&c->end[i % 2], IBV_QPT_UD, 16);

		FOE_MUST(qp != NULL && foe_datagrams(qp) == 0, "datagrams");
		FOE_MUST(ibv_attach_mcast(qp, &group, 0) == 0, "attach to the group");
		for (unsigned int k = 0; k < 16; k++)
			receive(&c->end[i % 2], qp);
		c->qp[i] = qp;
	}
	c->from = foe_qp(&c->end[0], IBV_QPT_UD, 1024);
	FOE_MUST(c->from != NULL && foe_datagrams(c->from) == 0, "sender");
	to.grh.dgid = group;
	c->to = ibv_create_ah(c->end[0].pd, &to);
	FOE_MUST(c->to != NULL, "address handle");
}

void
attack_mcast(struct foe *f)
{
	struct ibv_send_wr wr = {.num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_sge sge;
	struct crowd c;

	crowd_open(&c, f);
	sge = (struct ibv_sge){(uintptr_t)c.end[0].buf, 1024, c.end[0].mr->lkey};
	wr.sg_list = &sge;
	wr.wr.ud.ah = c.to;
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = FOE_QKEY;
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < TURNS; i++)
			if (ibv_post_send(c.from, &wr, &bad) != 0 || i % 64 == 0)
				for (unsigned int k = 0; k < 2; k++)
					receive_again(&c.end[k]);
		foe_round(f);
	}
}

/* ---- objects that go under way */

void
attack_churn(struct foe *f)
{
	struct foe_end e[2];

	foe_open(&e[0], f, "a", 1 << 20, CQES);
	foe_open(&e[1], f, "b", 1 << 20, CQES);
	foe_ready(f);
	for (;;) {
		struct ibv_qp *qp[2];
		struct ibv_mr *mr = ibv_reg_mr(e[1].pd, e[1].buf, 1 << 20, FOE_ACCESS);
		struct ibv_sge sge = {(uintptr_t)e[0].buf, 1 << 18, e[0].mr->lkey};

		FOE_MUST(mr != NULL, "region");
		foe_pair(&e[0], &e[1], 16, qp);
		for (unsigned int i = 0; i < 16; i++)
			(void)foe_post(qp[0],
				       foe_below(f, 2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, &sge,
				       (uintptr_t)e[1].buf, mr->rkey);
		FOE_MUST(ibv_dereg_mr(mr) == 0, "deregister");
		for (unsigned int i = 0, first = foe_below(f, 2); i < 2; i++)
			FOE_MUST(ibv_destroy_qp(qp[first ^ i]) == 0, "destroy");
		(void)foe_drain(e[0].cq);
		(void)foe_drain(e[1].cq);
		foe_round(f);
	}
}
