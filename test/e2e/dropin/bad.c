/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad input, and the outcomes that rdma-core's manual pages promise. usage: bad CASE */
#include "rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { BYTES = 4096 };

static char a_memory[BYTES], b_memory[BYTES];

/* A failed request of a: its status, the state of both ends, and that requests behind it are
 * flushed. */
static void
fails(struct rig *r, enum ibv_wr_opcode op, uint64_t addr, uint32_t length, uint32_t lkey,
      uint64_t remote, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	rig_connect(r);
	EQUAL(end_send(&r->a, op, addr, length, lkey, remote, rkey), 0);
	EQUAL(end_wait(&r->a, NULL), status);
	EQUAL(ibv_query_qp(r->a.qp, &attr, IBV_QP_STATE, &init), 0);
	EQUAL(attr.qp_state, IBV_QPS_ERR);
	EQUAL(end_send(&r->a, op, addr, length, lkey, remote, rkey), 0);
	EQUAL(end_wait(&r->a, NULL), IBV_WC_WR_FLUSH_ERR);
}

static void
keys(void)
{
	const struct rig_options plain = {0};
	struct ibv_mr *a, *b, *weak, *gone;
	uint64_t at = (uintptr_t)a_memory, to = (uintptr_t)b_memory;
	struct ibv_wc wc;
	uint32_t old;
	struct rig r;

	rig_open(&r);
	rig_make(&r, &plain);
	a = reg(&r.a, a_memory, BYTES);
	b = reg(&r.b, b_memory, BYTES);
	CHECK((weak = ibv_reg_mr(r.b.pd, b_memory, BYTES, 0)) != NULL);
	gone = reg(&r.a, a_memory, BYTES);
	old = gone->lkey;
	EQUAL(ibv_dereg_mr(gone), 0);

	EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, at, BYTES, a->lkey, to, b->rkey), 0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	fails(&r, IBV_WR_RDMA_WRITE, at, 8, a->lkey + 0x1000, to, b->rkey, IBV_WC_LOC_PROT_ERR);
	fails(&r, IBV_WR_RDMA_WRITE, at, 8, old, to, b->rkey, IBV_WC_LOC_PROT_ERR);
	fails(&r, IBV_WR_RDMA_WRITE, at + 1, BYTES, a->lkey, to, b->rkey, IBV_WC_LOC_PROT_ERR);
	fails(&r, IBV_WR_RDMA_WRITE, at - 1, 8, a->lkey, to, b->rkey, IBV_WC_LOC_PROT_ERR);
	fails(&r, IBV_WR_RDMA_WRITE, at, 8, a->lkey, to, b->rkey + 0x1000, IBV_WC_REM_ACCESS_ERR);
	fails(&r, IBV_WR_RDMA_WRITE, at, 8, a->lkey, to + BYTES - 7, b->rkey,
	      IBV_WC_REM_ACCESS_ERR);
	fails(&r, IBV_WR_RDMA_WRITE, at, 8, a->lkey, to, weak->rkey, IBV_WC_REM_ACCESS_ERR);
	fails(&r, IBV_WR_RDMA_READ, at, 8, a->lkey, to, weak->rkey, IBV_WC_REM_ACCESS_ERR);
	fails(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, at, 8, a->lkey, to, weak->rkey,
	      IBV_WC_REM_ACCESS_ERR);
	fails(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, at, 8, a->lkey, to + 4, b->rkey,
	      IBV_WC_REM_INV_REQ_ERR);
	/* A message that is longer than its receive. */
	rig_connect(&r);
	EQUAL(end_recv(&r.b, to, 8, b->lkey), 0);
	EQUAL(end_send(&r.a, IBV_WR_SEND, at, 9, a->lkey, 0, 0), 0);
	EQUAL(end_wait(&r.b, &wc), IBV_WC_LOC_LEN_ERR);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_REM_INV_REQ_ERR);
	/* A receive with a wrong key: the receiver's own fault. */
	rig_connect(&r);
	EQUAL(end_recv(&r.b, to, 8, b->lkey + 0x1000), 0);
	EQUAL(end_send(&r.a, IBV_WR_SEND, at, 8, a->lkey, 0, 0), 0);
	EQUAL(end_wait(&r.b, &wc), IBV_WC_LOC_PROT_ERR);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_REM_OP_ERR);
	/* Remote rights without local write. */
	errno = 0;
	CHECK(ibv_reg_mr(r.b.pd, b_memory, BYTES, IBV_ACCESS_REMOTE_WRITE) == NULL);
	EQUAL(errno, EINVAL);
	rig_unmake(&r);
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(b), 0);
	EQUAL(ibv_dereg_mr(weak), 0);
	rig_close(&r);
}

/* Posting in each state, and moves that there are not. */
static void
states(void)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	const struct rig_options idle = {.idle = true};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	size_t i, k;
	struct rig r;

	rig_open(&r);
	rig_make(&r, &idle);
	EQUAL(end_recv(&r.a, 0, 0, 0), EINVAL);
	EQUAL(end_send(&r.a, IBV_WR_SEND, 0, 0, 0, 0, 0), EINVAL);
	EQUAL(ibv_modify_qp(r.a.qp, &attr, IBV_QP_STATE), EINVAL); /* attributes are missing */
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 3;
		     k++) /* states that can't be next; INIT may be set again in INIT */
			if (k != i)
				EQUAL(end_move(&r.a, &r.b, way[k]), k == 0 && i == 1 ? 0 : EINVAL);
		EQUAL(end_move(&r.a, &r.b, way[i]), 0);
		EQUAL(end_recv(&r.a, 0, 0, 0), 0);
		EQUAL(end_send(&r.a, IBV_WR_SEND, 0, 0, 0, 0, 0),
		      way[i] == IBV_QPS_RTS ? 0 : EINVAL);
	}
	EQUAL(end_modify(&r.a, IBV_QPS_ERR), 0);
	for (i = 0; i < 4; i++) /* three receives and the send */
		EQUAL(end_wait(&r.a, NULL), IBV_WC_WR_FLUSH_ERR);
	EQUAL(end_recv(&r.a, 0, 0, 0), 0);
	EQUAL(end_wait(&r.a, NULL), IBV_WC_WR_FLUSH_ERR);
	EQUAL(end_move(&r.a, &r.b, IBV_QPS_RTS), EINVAL);
	EQUAL(end_modify(&r.a, IBV_QPS_RESET), 0);
	rig_unmake(&r);
	rig_close(&r);
}

/* Requests that can't be posted. */
static void
posts(void)
{
	const struct rig_options plain = {.wr = 4};
	struct ibv_sge sge[40] = {{0}};
	struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 40, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr recv = {.sg_list = sge, .num_sge = 40}, *bad_recv;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rig r;
	uint32_t i;
	int err;

	rig_open(&r);
	rig_make(&r, &plain);
	EQUAL(ibv_query_qp(r.a.qp, &attr, IBV_QP_CAP, &init), 0);
	EQUAL(ibv_post_send(r.a.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	EQUAL(ibv_post_recv(r.a.qp, &recv, &bad_recv), EINVAL);
	wr.num_sge = -1;
	EQUAL(ibv_post_send(r.a.qp, &wr, &bad), EINVAL);
	wr.num_sge = 0;
	wr.opcode = (enum ibv_wr_opcode)77;
	EQUAL(ibv_post_send(r.a.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = 1 << 20;
	EQUAL(ibv_post_send(r.a.qp, &wr, &bad), EINVAL);
	wr.send_flags = IBV_SEND_INLINE;
	wr.num_sge = 1;
	sge[0].addr = (uintptr_t)a_memory;
	sge[0].length = BYTES;
	EQUAL(ibv_post_send(r.a.qp, &wr, &bad), EINVAL);
	/* No receive is there, so requests stay, and the queue is full after as many as it has room
	 * for. */
	for (i = 0, err = 0; err == 0 && i < 1000; i++)
		err = end_send(&r.a, IBV_WR_SEND, 0, 0, 0, 0, 0);
	EQUAL(err, ENOMEM);
	EQUAL(i - 1, init.cap.max_send_wr);
	for (i = 0, err = 0; err == 0 && i < 1000; i++)
		err = end_recv(&r.a, 0, 0, 0);
	EQUAL(err, ENOMEM);
	EQUAL(i - 1, init.cap.max_recv_wr);
	rig_unmake(&r);
	rig_close(&r);
}

/* More completions than the queue has room for. */
static void
overrun(void)
{
	const struct rig_options small = {.cqe = 4, .wr = 64};
	bool cq_err = false, qp_fatal = false;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rig r;
	int i;

	rig_open(&r);
	rig_make(&r, &small);
	for (i = 0; i < r.a.cq->cqe + 1; i++)
		EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, 0, 0, 0, 0, 0), 0);
	while (!cq_err || !qp_fatal) {
		enum ibv_event_type type = end_event(&r.a);

		CHECK(type == IBV_EVENT_CQ_ERR || type == IBV_EVENT_QP_FATAL);
		cq_err |= type == IBV_EVENT_CQ_ERR;
		qp_fatal |= type == IBV_EVENT_QP_FATAL;
	}
	EQUAL(ibv_query_qp(r.a.qp, &attr, IBV_QP_STATE, &init), 0);
	EQUAL(attr.qp_state, IBV_QPS_ERR);
	rig_unmake(&r);
	rig_close(&r);
}

/* Objects that others use stay. */
static void
order(void)
{
	const struct rig_options plain = {0};
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct rig_options with = plain;
	struct ibv_mw_bind bind = {
		.bind_info = {.length = BYTES, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct rig r;

	rig_open(&r);
	mr = reg(&r.b, b_memory, BYTES);
	EQUAL(ibv_dealloc_pd(r.b.pd), EBUSY);
	CHECK((with.srq = ibv_create_srq(r.b.pd, &srq_init)) != NULL);
	rig_make(&r, &with);
	EQUAL(ibv_destroy_cq(r.b.cq), EBUSY);
	EQUAL(ibv_destroy_srq(with.srq), EBUSY);
	EQUAL(ibv_destroy_comp_channel(r.b.ch), EBUSY);
	EQUAL(ibv_dealloc_pd(r.a.pd), EBUSY);
	CHECK((mw = ibv_alloc_mw(r.b.pd, IBV_MW_TYPE_1)) != NULL);
	bind.bind_info.mr = mr;
	bind.bind_info.addr = (uintptr_t)b_memory;
	bind.send_flags = IBV_SEND_SIGNALED;
	EQUAL(ibv_bind_mw(r.b.qp, mw, &bind), 0);
	EQUAL(end_wait(&r.b, NULL), IBV_WC_SUCCESS);
	EQUAL(ibv_dereg_mr(mr), EBUSY);
	EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
	      IBV_REREG_MR_ERR_INPUT);
	EQUAL(ibv_dealloc_mw(mw), 0);
	EQUAL(ibv_dereg_mr(mr), 0);
	rig_unmake(&r);
	EQUAL(ibv_destroy_srq(with.srq), 0);
	rig_close(&r);
	/* A device that is closed with objects takes them along. */
	rig_open(&r);
	rig_make(&r, &plain);
	EQUAL(ibv_close_device(r.a.c), 0);
	EQUAL(ibv_close_device(r.b.c), 0);
}

/* ---- two threads on one queue pair and one completion queue */

enum { EACH = 300 };

struct shared {
	struct rig r;
	uint32_t lkey, rkey;
	_Atomic int posted, done, bad;
};

static void *
poster(void *arg)
{
	struct shared *s = arg;
	int i, err;

	for (i = 0; i < EACH; i++) {
		do {
			err = end_send(&s->r.a, IBV_WR_RDMA_WRITE, (uintptr_t)a_memory, 64, s->lkey,
				       (uintptr_t)b_memory, s->rkey);
			if (err == ENOMEM)
				sched_yield();
		} while (err == ENOMEM);
		EQUAL(err, 0);
		s->posted++;
	}
	return NULL;
}

static void *
poller(void *arg)
{
	struct shared *s = arg;
	struct ibv_wc wc[4];
	int i, n;

	while (s->done < 2 * EACH) {
		n = ibv_poll_cq(s->r.a.cq, 4, wc);
		CHECK(n >= 0);
		if (n == 0)
			sched_yield();
		for (i = 0; i < n; i++)
			s->bad += wc[i].status != IBV_WC_SUCCESS;
		s->done += n;
	}
	return NULL;
}

static void
threads(void)
{
	const struct rig_options plain = {0};
	struct shared s = {.posted = 0};
	struct ibv_mr *a, *b;
	struct ibv_wc wc;
	pthread_t t[4];
	int i;

	rig_open(&s.r);
	rig_make(&s.r, &plain);
	a = reg(&s.r.a, a_memory, BYTES);
	b = reg(&s.r.b, b_memory, BYTES);
	s.lkey = a->lkey;
	s.rkey = b->rkey;
	for (i = 0; i < 4; i++)
		EQUAL(pthread_create(&t[i], NULL, i < 2 ? poster : poller, &s), 0);
	for (i = 0; i < 4; i++)
		EQUAL(pthread_join(t[i], NULL), 0);
	EQUAL(s.done, 2 * EACH);
	EQUAL(s.bad, 0);
	EQUAL(ibv_poll_cq(s.r.a.cq, 1, &wc), 0);
	rig_unmake(&s.r);
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(b), 0);
	rig_close(&s.r);
}

/* Make, use and destroy for ever, to be killed anywhere. */
static void
churn(void)
{
	const struct rig_options plain = {0};
	struct ibv_mr *a, *b;
	struct rig r;
	int i;

	for (;;) {
		rig_open(&r);
		rig_make(&r, &plain);
		a = reg(&r.a, a_memory, BYTES);
		b = reg(&r.b, b_memory, BYTES);
		for (i = 0; i < 50; i++) {
			EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, (uintptr_t)a_memory, BYTES, a->lkey,
				       (uintptr_t)b_memory, b->rkey),
			      0);
			EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
		}
		rig_unmake(&r);
		EQUAL(ibv_dereg_mr(a), 0);
		EQUAL(ibv_dereg_mr(b), 0);
		rig_close(&r);
	}
}

/* Calls of devices that have no such thing, and none of which is advertised. */
static void
lacks(void)
{
	struct ibv_xrcd_init_attr xrcd = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_device_attr_ex attr;
	struct rig r;

	rig_open(&r);
	EQUAL(ibv_query_device_ex(r.a.c, NULL, &attr), 0);
	EQUAL(attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC, 0);
	EQUAL(attr.odp_caps.general_caps, 0);
	EQUAL(attr.max_dm_size, 0);
	EQUAL(attr.tm_caps.max_num_tags, 0);
	EQUAL(attr.tso_caps.max_tso, 0);
	EQUAL(attr.rss_caps.supported_qpts, 0);
	errno = 0;
	CHECK(ibv_open_xrcd(r.a.c, &xrcd) == NULL);
	EQUAL(errno, EOPNOTSUPP);
	errno = 0;
	CHECK(ibv_alloc_dm(r.a.c, &dm) == NULL);
	EQUAL(errno, EOPNOTSUPP);
	errno = 0;
	CHECK(ibv_reg_mr(r.a.pd, a_memory, BYTES, IBV_ACCESS_ON_DEMAND) == NULL);
	EQUAL(errno, EOPNOTSUPP);
	errno = 0;
	CHECK(ibv_import_dm(r.a.c, 1) == NULL);
	EQUAL(errno, EOPNOTSUPP);
	errno = 0;
	CHECK(ibv_reg_dmabuf_mr(r.a.pd, 0, BYTES, 0, 0, 0) == NULL);
	EQUAL(errno, EOPNOTSUPP);
	EQUAL(ibv_fork_init(), 0);
	EQUAL(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	rig_close(&r);
}

/* Connect both ends, and let a give up soon. */
static void
connect_impatiently(struct rig *r)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 1};

	EQUAL(end_move(&r->a, &r->b, IBV_QPS_INIT), 0);
	EQUAL(end_move(&r->b, &r->a, IBV_QPS_INIT), 0);
	EQUAL(end_move(&r->a, &r->b, IBV_QPS_RTR), 0);
	EQUAL(end_move(&r->b, &r->a, IBV_QPS_RTR), 0);
	EQUAL(ibv_modify_qp(r->a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      0);
}

/* From the moment at which ibv_close_device() returns no peer writes into the program's memory,
 * though its regions and queue pairs were never destroyed. */
static void
closed(void)
{
	const struct rig_options idle = {.idle = true};
	struct ibv_mr *a, *b;
	struct end first;
	struct rig r;
	int round, i;

	for (round = 0; round < 10; round++) {
		rig_open(&r);
		rig_make(&r, &idle);
		connect_impatiently(&r);
		a = reg(&r.a, a_memory, BYTES);
		b = reg(&r.b, b_memory, BYTES);
		first = r.b;
		for (i = 0; i < 100; i++)
			end_make(&r.b, &idle, NULL);
		r.b = first;
		memset(a_memory, 1, BYTES);
		EQUAL(ibv_close_device(r.b.c), 0);
		memset(b_memory, 0, BYTES);
		EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, (uintptr_t)a_memory, BYTES, a->lkey,
			       (uintptr_t)b_memory, b->rkey),
		      0);
		EQUAL(end_wait(&r.a, NULL), IBV_WC_RETRY_EXC_ERR);
		for (i = 0; i < BYTES; i++)
			EQUAL(b_memory[i], 0);
		EQUAL(ibv_close_device(r.a.c), 0);
	}
}

static __thread volatile char thread_variables[3 << 20];

/* The C library takes thread-local variables from each thread's stack, urnic's own threads
 * included. */
static void
many_thread_variables(void)
{
	struct rig r;

	thread_variables[1] = 1;
	rig_open(&r);
	rig_close(&r);
}

/* The number of devices, for programs that are to find none. */
static void
count(void)
{
	int n = -1;
	struct ibv_device **list = ibv_get_device_list(&n);

	printf("%d devices\n", list != NULL ? n : 0);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"keys", keys},
		{"states", states},
		{"posts", posts},
		{"overrun", overrun},
		{"order", order},
		{"threads", threads},
		{"churn", churn},
		{"lacks", lacks},
		{"count", count},
		{"closed", closed},
		{"variables", many_thread_variables},
	};
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			return 0;
		}
	fprintf(stderr, "usage: bad CASE\n");
	return 2;
}
