/* SPDX-License-Identifier: BSD-3-Clause */
/* Things that projects skip, or work around, on soft-RoCE (doc/reference/softroce.md). usage:
 * softroce CASE */
#include "rig.h"
#include "softroce.h"

#include <stddef.h>

enum { BYTES = 8192, NO_KEY = 0x7eadbe01, ROOM = 65 };

static char a_memory[BYTES], b_memory[BYTES];

/* One request, as a program's own code would post it. */
struct job {
	enum ibv_wr_opcode op;
	uint64_t addr, remote;
	uint32_t length, lkey, rkey;
	uint32_t imm; /* or the key to invalidate, or the number to compare with or to add */
};

static struct job
job(enum ibv_wr_opcode op, uint32_t length, const struct ibv_mr *from, const struct ibv_mr *to)
{
	return (struct job){.op = op,
			    .addr = (uintptr_t)a_memory,
			    .remote = (uintptr_t)b_memory,
			    .length = length,
			    .lkey = from->lkey,
			    .rkey = to->rkey};
}

static void
post(struct end *e, const struct job *j)
{
	struct ibv_sge sge = {.addr = j->addr, .length = j->length, .lkey = j->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = j->length != 0,
				 .opcode = j->op,
				 .imm_data = j->imm},
			   *bad = NULL;

	if (j->op == IBV_WR_ATOMIC_FETCH_AND_ADD || j->op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = j->remote;
		wr.wr.atomic.rkey = j->rkey;
		wr.wr.atomic.compare_add = j->imm;
		wr.wr.atomic.swap = 7;
	} else {
		wr.wr.rdma.remote_addr = j->remote;
		wr.wr.rdma.rkey = j->rkey;
	}
	EQUAL(ibv_post_send(e->qp, &wr, &bad), 0);
}

/* A queue pair with ibv_wr_send() in place of the one that an idle rig has. */
static void
replace_qp(struct end *e)
{
	struct ibv_qp_init_attr_ex x = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.cap = {16, 16, 4, 4, 64},
	};

	EQUAL(ibv_destroy_qp(e->qp), 0);
	CHECK((e->qp = ibv_create_qp_ex(e->c, &x)) != NULL);
}

/* Destroy what a rig has, with a region of each end. */
static void
finish(struct rig *r, struct ibv_mr *a, struct ibv_mr *b)
{
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(b), 0);
	rig_unmake(r);
	rig_close(r);
}

/* rdma-unit-test: regions of another protection domain. */
static void
domains(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD,
						 IBV_WR_ATOMIC_CMP_AND_SWP};
	const struct rig_options plain = {0};
	struct ibv_mr *a, *b, *other_a, *other_b;
	struct ibv_pd *pd_a, *pd_b;
	struct rig r;
	size_t i;

	rig_open(&r);
	rig_make(&r, &plain);
	CHECK((pd_a = ibv_alloc_pd(r.a.c)) != NULL && (pd_b = ibv_alloc_pd(r.b.c)) != NULL);
	a = reg(&r.a, a_memory, BYTES);
	b = reg(&r.b, b_memory, BYTES);
	CHECK((other_a = ibv_reg_mr(pd_a, a_memory, BYTES, REG_ALL)) != NULL);
	CHECK((other_b = ibv_reg_mr(pd_b, b_memory, BYTES, REG_ALL)) != NULL);
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct job j = job(ops[i], 8, other_a, b);

		post(&r.a, &j);
		EQUAL(end_wait(&r.a, NULL), IBV_WC_LOC_PROT_ERR);
		rig_connect(&r);
		j.lkey = a->lkey;
		j.rkey = other_b->rkey;
		post(&r.a, &j);
		EQUAL(end_wait(&r.a, NULL), IBV_WC_REM_ACCESS_ERR);
		rig_connect(&r);
	}
	EQUAL(ibv_dereg_mr(other_a), 0);
	EQUAL(ibv_dereg_mr(other_b), 0);
	EQUAL(ibv_dealloc_pd(pd_a), 0);
	EQUAL(ibv_dealloc_pd(pd_b), 0);
	finish(&r, a, b);
}

/* rdma-unit-test: a datagram by an address handle of another domain fails. */
static void
domain_ah(void)
{
	const struct rig_options ud = {.type = IBV_QPT_UD};
	struct ibv_sge sge = {.length = 8};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_ah_attr where = {.is_global = 1, .port_num = 1};
	struct ibv_pd *pd;
	struct ibv_mr *a;
	struct rig r;

	rig_open(&r);
	rig_make(&r, &ud);
	CHECK((pd = ibv_alloc_pd(r.a.c)) != NULL);
	where.grh.dgid = r.b.gid;
	where.grh.sgid_index = 1;
	where.grh.hop_limit = 8;
	CHECK((wr.wr.ud.ah = ibv_create_ah(pd, &where)) != NULL);
	a = reg(&r.a, a_memory, BYTES);
	sge.addr = (uintptr_t)a_memory;
	sge.lkey = a->lkey;
	wr.wr.ud.remote_qpn = r.b.qp->qp_num;
	wr.wr.ud.remote_qkey = 7;
	EQUAL(ibv_post_send(r.a.qp, &wr, &bad), 0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_LOC_QP_OP_ERR);
	EQUAL(ibv_destroy_ah(wr.wr.ud.ah), 0);
	EQUAL(ibv_dealloc_pd(pd), 0);
	EQUAL(ibv_dereg_mr(a), 0);
	rig_unmake(&r);
	rig_close(&r);
}

/* Send a message to an entry of an SRQ whose memory is of a region. */
static void
srq_takes(struct rig *r, struct ibv_srq *srq, const struct ibv_mr *from, const struct ibv_mr *to)
{
	struct ibv_sge sge = {(uintptr_t)b_memory, 8, to->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct job j = job(IBV_WR_SEND, 8, from, to);

	EQUAL(ibv_post_srq_recv(srq, &wr, &bad), 0);
	post(&r->a, &j);
}

/* rdma-unit-test: keys in an SRQ are of the SRQ's domain, not of the queue pair's. */
static void
domain_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct rig_options o = {0};
	struct ibv_mr *a, *b, *other;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	struct rig r;

	rig_open(&r);
	CHECK((pd = ibv_alloc_pd(r.b.c)) != NULL);
	CHECK((srq = o.srq = ibv_create_srq(pd, &init)) != NULL);
	rig_make(&r, &o);
	a = reg(&r.a, a_memory, BYTES);
	b = reg(&r.b, b_memory, BYTES); /* domain of the queue pair */
	CHECK((other = ibv_reg_mr(pd, b_memory, BYTES, REG_ALL)) != NULL);
	srq_takes(&r, srq, a, other);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	EQUAL(end_wait(&r.b, NULL), IBV_WC_SUCCESS);
	srq_takes(&r, srq, a, b);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_REM_OP_ERR);
	EQUAL(end_wait(&r.b, NULL), IBV_WC_LOC_PROT_ERR);
	rig_unmake(&r);
	EQUAL(ibv_destroy_srq(srq), 0);
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(b), 0);
	EQUAL(ibv_dereg_mr(other), 0);
	EQUAL(ibv_dealloc_pd(pd), 0);
	rig_close(&r);
}

/* rdma-unit-test: a chain of one request more than a send queue, or an SRQ, has room for. */
static void
full(void)
{
	const struct rig_options plain = {0};
	struct ibv_srq_init_attr si = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_send_wr wr[ROOM] = {{0}}, *bad = NULL;
	struct ibv_recv_wr rwr[ROOM] = {{0}}, *rbad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_srq *srq;
	struct rig r;
	uint32_t i, n;

	rig_open(&r);
	rig_make(&r, &plain);
	EQUAL(end_modify(&r.b, IBV_QPS_RESET), 0); /* nobody answers: nothing leaves the queue */
	EQUAL(ibv_query_qp(r.a.qp, &attr, IBV_QP_CAP, &init), 0);
	n = attr.cap.max_send_wr;
	CHECK(n < ROOM);
	for (i = 0; i <= n; i++) {
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].next = i < n ? &wr[i + 1] : NULL;
	}
	EQUAL(ibv_post_send(r.a.qp, wr, &bad), ENOMEM);
	EQUAL(bad - wr, n);

	CHECK((srq = ibv_create_srq(r.b.pd, &si)) != NULL);
	n = si.attr.max_wr;
	CHECK(n < ROOM);
	for (i = 0; i <= n; i++)
		rwr[i].next = i < n ? &rwr[i + 1] : NULL;
	EQUAL(ibv_post_srq_recv(srq, rwr, &rbad), ENOMEM);
	EQUAL(rbad - rwr, n);
	EQUAL(ibv_destroy_srq(srq), 0);
	rig_unmake(&r);
	rig_close(&r);
}

/* rdma-unit-test: a queue pair of a type that there is not; no byte read or written by a wrong key.
 */
static void
odd(void)
{
	struct ibv_qp_init_attr init = {.qp_type = (enum ibv_qp_type)0xf0,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	const struct rig_options plain = {0};
	struct job j = {.op = IBV_WR_RDMA_READ, .remote = (uintptr_t)b_memory, .rkey = NO_KEY};
	struct rig r;

	rig_open(&r);
	rig_make(&r, &plain);
	init.send_cq = init.recv_cq = r.a.cq;
	CHECK(ibv_create_qp(r.a.pd, &init) == NULL);
	post(&r.a, &j);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	j.op = IBV_WR_RDMA_WRITE;
	post(&r.a, &j);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	rig_unmake(&r);
	rig_close(&r);
}

/* rdma-unit-test: more queue pairs in turn than there are numbers, while another one works. */
static void
rollover(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	const struct rig_options plain = {0};
	struct ibv_device_attr device;
	struct ibv_mr *a, *b;
	struct job j;
	struct ibv_qp *qp;
	struct rig r;
	int i;

	rig_open(&r);
	rig_make(&r, &plain);
	EQUAL(ibv_query_device(r.a.c, &device), 0);
	a = reg(&r.a, a_memory, BYTES);
	b = reg(&r.b, b_memory, BYTES);
	j = job(IBV_WR_RDMA_READ, 64, a, b);
	init.send_cq = init.recv_cq = r.a.cq;
	for (i = 0; i < device.max_qp + 32; i++) {
		CHECK((qp = ibv_create_qp(r.a.pd, &init)) != NULL);
		CHECK(qp->qp_num != r.a.qp->qp_num);
		EQUAL(ibv_destroy_qp(qp), 0);
		if (i % 256 == 0) {
			post(&r.a, &j);
			EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
		}
	}
	finish(&r, a, b);
}

/* Three pieces of a message, and the two ends of which a sends it. */
struct pieces {
	struct rig r;
	struct ibv_mr *a, *b;
	struct ibv_qp_ex *x;
	struct ibv_sge sge[3];
	struct ibv_data_buf buf[3];
};

static void
pieces_open(struct pieces *p)
{
	static const char *const text[] = {"ab", "cde", "fghi"};
	const struct rig_options idle = {.idle = true};
	int i;

	rig_open(&p->r);
	rig_make(&p->r, &idle);
	replace_qp(&p->r.a);
	CHECK((p->x = ibv_qp_to_qp_ex(p->r.a.qp)) != NULL);
	rig_connect(&p->r);
	p->a = reg(&p->r.a, a_memory, BYTES);
	p->b = reg(&p->r.b, b_memory, BYTES);
	for (i = 0; i < 3; i++) {
		char *at = a_memory + (ptrdiff_t)100 * i;

		memcpy(at, text[i], strlen(text[i]));
		p->buf[i] = (struct ibv_data_buf){at, strlen(text[i])};
		p->sge[i] = (struct ibv_sge){(uintptr_t)at, (uint32_t)strlen(text[i]), p->a->lkey};
		EQUAL(end_recv(&p->r.b, (uintptr_t)b_memory, 64, p->b->lkey), 0);
	}
}

/* The message that was sent comes as a whole. */
static void
pieces_come(struct pieces *p)
{
	struct ibv_wc wc;

	EQUAL(end_wait(&p->r.a, NULL), IBV_WC_SUCCESS);
	EQUAL(end_wait(&p->r.b, &wc), IBV_WC_SUCCESS);
	EQUAL(wc.byte_len, 9);
	EQUAL(memcmp(b_memory, "abcdefghi", 9), 0);
	memset(b_memory, 0, 9);
}

/* rust-ibverbs, rdma-core: inline data by flag and by ibv_wr_set_inline_data_list(), elements of
 * different lengths by ibv_wr_set_sge_list(). Then lists that are too long for inline data, though
 * each piece is not, or though the sum looks short in 32 bits. */
static void
lists(void)
{
	struct ibv_data_buf wide[3] = {{a_memory, 60}, {a_memory, 60}, {a_memory, 60}};
	struct ibv_send_wr wr = {
		.num_sge = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
	struct ibv_send_wr *bad;
	struct pieces p;
	int i;

	pieces_open(&p);
	wr.sg_list = p.sge;
	for (i = 0; i < 3; i++)
		p.sge[i].lkey = NO_KEY; /* inline data needs none */
	EQUAL(ibv_post_send(p.r.a.qp, &wr, &bad), 0);
	pieces_come(&p);
	ibv_wr_start(p.x);
	ibv_wr_send(p.x);
	ibv_wr_set_inline_data_list(p.x, 3, p.buf);
	EQUAL(ibv_wr_complete(p.x), 0);
	pieces_come(&p);
	for (i = 0; i < 3; i++)
		p.sge[i].lkey = p.a->lkey;
	ibv_wr_start(p.x);
	ibv_wr_send(p.x);
	ibv_wr_set_sge_list(p.x, 3, p.sge);
	EQUAL(ibv_wr_complete(p.x), 0);
	pieces_come(&p);

	ibv_wr_start(p.x);
	ibv_wr_send(p.x);
	ibv_wr_set_inline_data_list(p.x, 3, wide);
	EQUAL(ibv_wr_complete(p.x), EINVAL);
	p.sge[0].length = p.sge[1].length = 0x80000000u;
	EQUAL(ibv_post_send(p.r.a.qp, &wr, &bad), EINVAL);
	finish(&p.r, p.a, p.b);
}

/* rust-ibverbs: atomic operations give the old number, and leave the new one. librxe-dev: a WRITE
 * with immediate data. */
static void
operations(void)
{
	const struct rig_options plain = {0};
	uint64_t old, now;
	struct ibv_mr *a, *b;
	struct ibv_wc wc;
	struct job j;
	struct rig r;

	rig_open(&r);
	rig_make(&r, &plain);
	a = reg(&r.a, a_memory, BYTES);
	b = reg(&r.b, b_memory, BYTES);
	j = job(IBV_WR_ATOMIC_CMP_AND_SWP, 8, a, b);
	post(&r.a, &j); /* from 0 to 7 */
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	j.op = IBV_WR_ATOMIC_FETCH_AND_ADD;
	j.imm = 5;
	post(&r.a, &j);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	memcpy(&old, a_memory, 8);
	memcpy(&now, b_memory, 8);
	EQUAL(old, 7);
	EQUAL(now, 12);
	j = job(IBV_WR_RDMA_WRITE_WITH_IMM, BYTES, a, b);
	j.imm = 4194304;
	EQUAL(end_recv(&r.b, 0, 0, 0), 0);
	post(&r.a, &j);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	EQUAL(end_wait(&r.b, &wc), IBV_WC_SUCCESS);
	EQUAL(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	EQUAL(wc.imm_data, j.imm);
	EQUAL(wc.byte_len, BYTES);
	finish(&r, a, b);
}

/* SPDK: a send that invalidates the window of the peer. */
static void
invalidate(void)
{
	struct ibv_mw_bind_info info = {.addr = (uintptr_t)b_memory,
					.length = 64,
					.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW}, *bad;
	const struct rig_options plain = {0};
	struct ibv_mr *a, *b;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	struct job j;
	struct rig r;

	rig_open(&r);
	rig_make(&r, &plain);
	a = reg(&r.a, a_memory, BYTES);
	info.mr = b = reg(&r.b, b_memory, BYTES);
	CHECK((mw = ibv_alloc_mw(r.b.pd, IBV_MW_TYPE_2)) != NULL);
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	bind.bind_mw.bind_info = info;
	EQUAL(ibv_post_send(r.b.qp, &bind, &bad), 0);
	EQUAL(end_wait(&r.b, NULL), IBV_WC_SUCCESS);
	j = job(IBV_WR_RDMA_WRITE, 8, a, b);
	j.rkey = bind.bind_mw.rkey;
	post(&r.a, &j);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);

	EQUAL(end_recv(&r.b, (uintptr_t)b_memory, 64, b->lkey), 0);
	j.op = IBV_WR_SEND_WITH_INV;
	j.imm = bind.bind_mw.rkey;
	post(&r.a, &j);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	EQUAL(end_wait(&r.b, &wc), IBV_WC_SUCCESS);
	CHECK((wc.wc_flags & IBV_WC_WITH_INV) != 0);
	EQUAL(wc.invalidated_rkey, bind.bind_mw.rkey);
	j.op = IBV_WR_RDMA_WRITE;
	post(&r.a, &j);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_REM_ACCESS_ERR);
	EQUAL(ibv_dealloc_mw(mw), 0);
	finish(&r, a, b);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"domains", domains},
		{"domain_ah", domain_ah},
		{"domain_srq", domain_srq},
		{"full", full},
		{"odd", odd},
		{"rollover", rollover},
		{"operations", operations},
		{"lists", lists},
		{"invalidate", invalidate},
		{"last_wqe", last_wqe},
		{"errors", errors},
		{"big_cq", big_cq},
		{"resize", resize},
		{"events", events},
		{"many", many},
	};
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	fprintf(stderr, "usage: softroce CASE\n");
	return 2;
}
