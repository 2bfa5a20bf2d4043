/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of lives of the primary adapter: each life begins its numbers and keys anew (FO-2,
 * FO-19). */
#include "adapters.h"

#include <urnic/cm.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>

enum { BYTES = 4096, MANY = 24, FEW = 4, INDEXES = 1 << 23, WRECKS = 8 };

static uint8_t memory[BYTES];

static struct ibv_mr *
region(struct ibv_pd *pd)
{
	struct ibv_mr *mr =
		ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	return mr;
}

/* The primary adapter is lost, and comes back with all that the program has. */
static void
flap(struct ibv_context *c)
{
	struct adapters_whole back = {.c = c, .returned = urn_sv_ctx(c)->returned[0] + 1};

	adapters_lose(0);
	adapters_back(0);
	adapters_until(adapters_whole, &back);
}

/* True when the loss of the primary adapter was noticed. arg: struct ibv_context */
static bool
lost(void *arg)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(arg);
	bool is;

	urn_sv_lock(ctx);
	is = ctx->dead[0];
	urn_sv_unlock(ctx);
	return is;
}

/* No two regions have one name, also in different domains, as those of one adapter. */
static void
names(void **state)
{
	struct ibv_pd *pd[2] = {ibv_alloc_pd(*state), ibv_alloc_pd(*state)};
	struct ibv_mr *mr[2 * MANY], *filler[MANY];
	unsigned int n = 0;

	assert_true(pd[0] != NULL && pd[1] != NULL);
	/* A key in the middle of those that the next life gives. */
	for (int i = 0; i < MANY / 2; i++)
		filler[i] = region(pd[0]);
	mr[n++] = region(pd[0]);
	for (int i = 0; i < MANY / 2; i++)
		assert_int_equal(ibv_dereg_mr(filler[i]), 0);
	adapters_lose(0);
	adapters_until(lost, *state);
	for (; n < FEW; n++)
		mr[n] = region(pd[n % 2]);
	adapters_back(0);
	adapters_until(adapters_whole, &(struct adapters_whole){.c = *state, .returned = 1});
	for (; n < 2 * MANY; n++)
		mr[n] = region(pd[1]);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < i; k++)
			assert_true(mr[i]->lkey != mr[k]->lkey && mr[i]->rkey != mr[k]->rkey);
	while (n > 0)
		assert_int_equal(ibv_dereg_mr(mr[--n]), 0);
	assert_int_equal(ibv_dealloc_pd(pd[0]), 0);
	assert_int_equal(ibv_dealloc_pd(pd[1]), 0);
}

/* A name comes again after 2^31 others, and not while a region has it. */
static void
wrap(void **state)
{
	static const uint64_t at[] = {0,	  INDEXES - 1, INDEXES,	  2 * (uint64_t)INDEXES,
				      0x7fffffff, 0x80000000,  0xffffffff};
	enum { N = sizeof(at) / sizeof(at[0]) };
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr[N];
	uint32_t name[N];

	assert_non_null(pd);
	adapters_lose(0);
	adapters_until(lost, *state);
	for (unsigned int i = 0; i < N; i++) {
		ctx->names = (uint32_t)at[i];
		mr[i] = region(pd);
		assert_true(mr[i]->lkey >= 0x80000000 && mr[i]->lkey != URN_SV_NO_KEY);
		for (unsigned int k = 0; k < i; k++)
			assert_int_not_equal(mr[i]->lkey, mr[k]->lkey);
	}
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	/* The same of regions that are gone: a peer may still know their names. */
	for (unsigned int i = 0; i < N; i++) {
		ctx->names = (uint32_t)at[i];
		mr[i] = region(pd);
		name[i] = mr[i]->lkey;
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
		for (unsigned int k = 0; k < i && at[i] < 0x7fffffff; k++)
			assert_int_not_equal(name[i], name[k]);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Objects that plain queue pairs need. */
struct plain {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static void
plain_make(struct plain *p, struct ibv_context *c)
{
	p->pd = ibv_alloc_pd(c);
	assert_non_null(p->pd);
	p->cq = ibv_create_cq(c, 4, NULL, NULL, 0);
	assert_non_null(p->cq);
}

static void
plain_unmake(const struct plain *p)
{
	assert_int_equal(ibv_destroy_cq(p->cq), 0);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
}

static struct ibv_qp *
queue_pair(const struct plain *p, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = type,
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.srq = srq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	return ibv_create_qp(p->pd, &attr);
}

/* A shared receive queue that is the primary adapter's alone: its first queue pair has no session.
 */
static struct ibv_srq *
plain_shared(const struct plain *p)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(p->pd, &attr);
	struct ibv_qp *ud;

	assert_non_null(srq);
	ud = queue_pair(p, IBV_QPT_UD, srq);
	assert_non_null(ud);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	return srq;
}

/* Such a queue of an earlier life is refused, not taken for another one with its number. */
static void
shared(void **state)
{
	struct ibv_srq *srq[2];
	struct ibv_qp *qp;
	struct plain p;

	plain_make(&p, *state);
	srq[0] = plain_shared(&p);
	flap(*state);
	assert_null(queue_pair(&p, IBV_QPT_RC, srq[0]));
	assert_int_equal(errno, EIO);
	srq[1] = plain_shared(&p);
	qp = queue_pair(&p, IBV_QPT_RC, srq[1]);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq[0]), 0);
	assert_int_equal(ibv_destroy_srq(srq[1]), 0);
	plain_unmake(&p);
}

/* A queue without a connection outlives the adapter: its receives wait for the first one. */
static void
shared_open(void **state)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2, .max_sge = 1}};
	struct ibv_recv_wr *bad, wr = {0};
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct plain p;

	plain_make(&p, *state);
	srq = ibv_create_srq(p.pd, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	flap(*state);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	assert_int_equal(atomic_load(&adapters[0].opened), 1);
	qp = queue_pair(&p, IBV_QPT_RC, srq);
	assert_non_null(qp);
	flap(*state);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	plain_unmake(&p);
}

/* Until all regions were tried on the primary adapter that came back, nothing is made there that
 * would use them without a session. */
static void
early(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	struct plain p;

	plain_make(&p, *state);
	flap(*state);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp;

		urn_sv_lock(ctx);
		ctx->rest[0].first = i == 0;
		urn_sv_unlock(ctx);
		errno = 0;
		qp = queue_pair(&p, IBV_QPT_UD, NULL);
		assert_true(i == 0 ? qp == NULL && errno == EIO : qp != NULL);
		assert_int_equal(qp != NULL ? ibv_destroy_qp(qp) : 0, 0);
	}
	plain_unmake(&p);
}

static struct ibv_ah *
address(const struct plain *p)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah = ibv_create_ah(p->pd, &attr);

	assert_non_null(ah);
	return ah;
}

/* The same for an address of an earlier life; and other requests have none. */
static void
addresses(void **state)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp *ud, *rc;
	struct ibv_srq *srq;
	struct ibv_ah *ah[2];
	struct plain p;

	plain_make(&p, *state);
	ah[0] = address(&p);
	flap(*state);
	ah[1] = address(&p);
	ud = queue_pair(&p, IBV_QPT_UD, NULL);
	srq = ibv_create_srq(p.pd, &attr);
	assert_true(ud != NULL && srq != NULL);
	rc = queue_pair(&p, IBV_QPT_RC, srq);
	assert_non_null(rc);
	wr.wr.ud.ah = ah[0];
	assert_int_equal(ibv_post_send(ud, &wr, &bad), EIO);
	assert_ptr_equal(bad, &wr);
	wr.wr.ud.ah = ah[1];
	assert_int_equal(ibv_post_send(ud, &wr, &bad), 0);
	wr = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE};
	wr.wr.rdma.remote_addr = 8; /* where a datagram has its address */
	assert_int_equal(ibv_post_send(rc, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	assert_int_equal(ibv_destroy_qp(rc), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_ah(ah[0]), 0);
	assert_int_equal(ibv_destroy_ah(ah[1]), 0);
	plain_unmake(&p);
}

/* ---- adapters that stay open for objects */

/* Contexts of the primary adapter that are to be open. */
static bool
opened(void *arg)
{
	return atomic_load(&adapters[0].opened) == *(const uint32_t *)arg;
}

static void
until_opened(uint32_t n)
{
	adapters_until(opened, &n);
}

/* A lost adapter stays open while the program has an address of it, one life and no more, and not
 * longer. */
static void
address_kept(void **state)
{
	struct ibv_ah *ah;
	struct plain p;

	plain_make(&p, *state);
	flap(*state);
	until_opened(1);
	ah = address(&p);
	flap(*state);
	until_opened(2);
	flap(*state); /* nothing is of this life */
	until_opened(2);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	until_opened(1);
	plain_unmake(&p);
}

/* Calls that overlap, so that one is always there, do not keep it open. */
static void
calls_overlap(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	struct ibv_ah *ah;
	struct plain p;

	plain_make(&p, *state);
	ah = address(&p);
	flap(*state);
	until_opened(2);
	urn_sv_enter(ctx);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	until_opened(1);
	urn_sv_exit(ctx);
	plain_unmake(&p);
}

/* Each life costs an adapter that stays open only as long as the program has something of it,
 * however often the adapter flaps. */
static void
many_flaps(void **state)
{
	struct ibv_ah *ah = NULL, *next;
	struct plain p;

	plain_make(&p, *state);
	for (int i = 0; i < 4 * WRECKS; i++) {
		next = address(&p);
		if (ah != NULL)
			assert_int_equal(ibv_destroy_ah(ah), 0);
		ah = next;
		flap(*state);
		until_opened(2);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
	until_opened(1);
	plain_unmake(&p);
}

/* The same with a shared receive queue and a queue pair on it, of which either is the last. */
static void
queues_kept(void **state)
{
	struct plain p;

	plain_make(&p, *state);
	for (int first = 0; first < 2; first++) {
		struct ibv_srq *srq = plain_shared(&p);
		struct ibv_qp *qp = queue_pair(&p, IBV_QPT_RC, srq), *ud;

		ud = queue_pair(&p, IBV_QPT_UD, NULL);
		assert_true(srq != NULL && qp != NULL && ud != NULL);
		flap(*state);
		flap(*state);
		until_opened(2);
		assert_int_equal(ibv_destroy_qp(first ? ud : qp), 0);
		if (!first)
			assert_int_equal(ibv_destroy_srq(srq), 0);
		else
			assert_int_equal(ibv_destroy_qp(qp), 0);
		until_opened(2);
		if (!first)
			assert_int_equal(ibv_destroy_qp(ud), 0);
		else
			assert_int_equal(ibv_destroy_srq(srq), 0);
		until_opened(1);
	}
	plain_unmake(&p);
}

/* An end of connection management keeps no adapter open, and may outlive the device. */
static void
end_kept(void **state)
{
	struct urn_cm_end *end, *last;
	struct plain p;

	plain_make(&p, *state);
	assert_int_equal(urn_cm_end_open(&end, *state), 0);
	flap(*state);
	until_opened(1);
	urn_cm_end_close(end);
	assert_int_equal(urn_cm_end_open(&last, *state), 0);
	plain_unmake(&p);
	assert_int_equal(ibv_close_device(*state), 0);
	until_opened(0);
	urn_cm_end_close(last);
	assert_int_equal(adapters_setup(state), 0);
}

static bool
crowded(void *arg)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(arg);
	bool is;

	urn_sv_lock(ctx);
	is = ctx->crowded;
	urn_sv_unlock(ctx);
	return is;
}

/* A program that keeps objects of life after life gets the primary adapter back only so often,
 * until it destroys those of one life. */
static void
bounded(void **state)
{
	struct adapters_whole back = {.c = *state, .returned = WRECKS + 1};
	struct ibv_ah *ah[WRECKS + 1];
	struct plain p;

	plain_make(&p, *state);
	for (uint32_t i = 0; i < WRECKS; i++) {
		ah[i] = address(&p);
		flap(*state);
	}
	ah[WRECKS] = address(&p);
	adapters_lose(0);
	adapters_back(0);
	adapters_until(crowded, *state);
	assert_int_equal(urn_sv_ctx(*state)->returned[0], WRECKS);
	/* Those, the lost one, and the one that waits. */
	until_opened(WRECKS + 2);
	assert_int_equal(ibv_destroy_ah(ah[WRECKS / 2]), 0);
	adapters_until(adapters_whole, &back);
	assert_false(crowded(*state));
	until_opened(WRECKS + 1);
	for (uint32_t i = 0; i <= WRECKS; i++)
		if (i != WRECKS / 2)
			assert_int_equal(ibv_destroy_ah(ah[i]), 0);
	until_opened(1);
	plain_unmake(&p);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, adapters_setup, adapters_teardown)
	const struct CMUnitTest tests[] = {
		T(names),      T(wrap),	       T(shared),	T(shared_open),
		T(addresses),  T(early),       T(address_kept), T(calls_overlap),
		T(many_flaps), T(queues_kept), T(end_kept),	T(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
