/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane's end of the queues, and clients whose indices lie (architecture rule 3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/queue.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 8, SGES = 4, STRIDE = 128, CQES = 4 };

static void *
area(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(p);
	memset(p, 0, bytes);
	return p;
}

static struct urn_abi_rwqe *
rslot(struct urn_rq *rq, uint32_t i)
{
	return (void *)((uint8_t *)rq->hdr + URN_ABI_WQ_SLOTS + (size_t)(i & rq->mask) * rq->stride);
}

static void
rq_open(struct urn_rq *rq)
{
	*rq = (struct urn_rq){.hdr = area(URN_ABI_WQ_SLOTS + ENTRIES * STRIDE),
			      .mask = ENTRIES - 1, .stride = STRIDE, .max_sge = SGES};
}

static void
rq_post(struct urn_rq *rq, uint32_t i, uint32_t num_sge, uint32_t bytes)
{
	struct urn_abi_rwqe *w = rslot(rq, i);
	struct urn_abi_sge *sge = (void *)(w + 1);

	w->wr_id = (uint64_t)1000 + i;
	w->num_sge = num_sge;
	for (uint32_t k = 0; k < num_sge && k < SGES; k++)
		sge[k] = (struct urn_abi_sge){k, 7, bytes};
	atomic_store(&rq->hdr->prod, i + 1);
}

/* In order, once each, over the wrap of the index; cons is published. */
static void
test_receives(void **state)
{
	struct urn_recv r;
	struct urn_rq rq, own = {0};
	uint32_t start = UINT32_MAX - 3;

	(void)state;
	rq_open(&rq);
	rq.cons = rq.prod = start;
	atomic_store(&rq.hdr->prod, start);
	assert_false(urn_rq_ready(&rq));
	for (uint32_t i = start; i != start + 20; i++) {
		rq_post(&rq, i, 3, 100);
		assert_true(urn_rq_ready(&rq));
		assert_int_equal(urn_rq_count(&rq), 1);
		assert_true(urn_rq_take(&rq, &r, 0x123, i & 1 ? &own : &rq));
		assert_int_equal(r.wr_id, (uint64_t)1000 + i);
		assert_int_equal(r.num_sge, 3);
		assert_int_equal(r.length, 300);
		assert_int_equal(rslot(&rq, i)->taker, i & 1 ? 0x123 : 0);
		assert_int_equal(atomic_load(&rq.hdr->cons), i + 1);
		rslot(&rq, i)->taker = 0;
	}
	assert_false(urn_rq_ready(&rq));
	free(rq.hdr);
}

/*
 * A receive that a QP takes from a shared queue is recorded, with its number in that queue, before
 * the queue moves on.
 */
static void
test_taken(void **state)
{
	struct urn_rq rq, own = {.hdr = area(URN_ABI_WQ_SLOTS + URN_ABI_TAKEN * 8)};
	const uint64_t *taken = (const void *)((const uint8_t *)own.hdr + URN_ABI_WQ_SLOTS);
	struct urn_recv r;

	(void)state;
	rq_open(&rq);
	for (uint32_t i = 0; i < 3 * URN_ABI_TAKEN; i++) {
		bool full = i >= URN_ABI_TAKEN;

		assert_int_equal(urn_rq_taken_full(&own), full);
		if (full) { /* the oldest is completed */
			assert_ptr_equal(urn_rq_mark(&own), &own.hdr->done);
			assert_int_equal(urn_rq_did(&own), i - URN_ABI_TAKEN + 1);
		}
		rq_post(&rq, i, 1, 8);
		assert_true(urn_rq_ready(&rq));
		assert_true(urn_rq_take(&rq, &r, 0x77, &own));
		assert_int_equal(taken[i % URN_ABI_TAKEN], 1000 + i);
		assert_int_equal(atomic_load(&own.hdr->last), i);
		assert_int_equal(atomic_load(&own.hdr->cons), i + 1);
		assert_int_equal(rslot(&rq, i)->taker, 0x77);
	}
	assert_int_equal(atomic_load(&own.hdr->done), 0); /* reported with a completion */
	free(own.hdr);
	free(rq.hdr);
}

/* A prod further on than the queue is long, or behind, counts for nothing; a true one counts again. */
static void
test_prod_lies(void **state)
{
	static const uint32_t lies[] = {ENTRIES + 1, 1000, UINT32_MAX, 1u << 31};
	struct urn_sq sq = {.mask = ENTRIES - 1, .stride = STRIDE, .prod = 5, .fetched = 5};
	struct urn_rq rq;

	(void)state;
	rq_open(&rq);
	sq.hdr = rq.hdr;
	rq.cons = rq.prod = 5;
	for (unsigned int i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		atomic_store(&rq.hdr->prod, 5 + lies[i]);
		assert_false(urn_rq_ready(&rq));
		assert_int_equal(urn_rq_count(&rq), 0);
		assert_int_equal(urn_sq_ready(&sq), 0);
	}
	atomic_store(&rq.hdr->prod, 5 + ENTRIES);
	assert_true(urn_rq_ready(&rq));
	assert_int_equal(urn_rq_count(&rq), ENTRIES);
	assert_int_equal(urn_sq_ready(&sq), ENTRIES);
	free(rq.hdr);
}

/* More elements than a slot holds: none is read. Lengths that overflow are cut. */
static void
test_elements_lie(void **state)
{
	struct urn_recv r;
	struct urn_rq rq;

	(void)state;
	rq_open(&rq);
	rq_post(&rq, 0, SGES + 1, 10);
	assert_true(urn_rq_ready(&rq));
	assert_false(urn_rq_take(&rq, &r, 0, &rq));
	assert_int_equal(r.wr_id, 1000);
	assert_int_equal(r.num_sge, 0);
	assert_int_equal(r.length, 0);
	rq_post(&rq, 1, UINT32_MAX, 10);
	assert_true(urn_rq_ready(&rq));
	assert_false(urn_rq_take(&rq, &r, 0, &rq));
	rq_post(&rq, 2, SGES, UINT32_MAX);
	assert_true(urn_rq_ready(&rq));
	assert_true(urn_rq_take(&rq, &r, 0, &rq));
	assert_int_equal(r.num_sge, SGES);
	assert_int_equal(r.length, URN_ABI_MAX_MSG);
	free(rq.hdr);
}

/* Phases distinguish laps; a full queue has no room; a wrong cons harms only its owner. */
static void
test_completions(void **state)
{
	struct urn_cq cq = {.hdr = area(URN_ABI_CQ_SLOTS + (CQES + 1) * sizeof(struct urn_abi_cqe)),
			    .mask = CQES - 1};
	struct urn_abi_cqe *slot = (void *)((uint8_t *)cq.hdr + URN_ABI_CQ_SLOTS);
	struct urn_abi_cqe e = {0}, guard;
	uint32_t n = 0;

	(void)state;
	memset((void *)&slot[CQES], 0x5a, sizeof(guard));
	memcpy(&guard, &slot[CQES], sizeof(guard));
	for (int lap = 0; lap < 5; lap++) {
		for (int i = 0; i < CQES; i++) {
			e.wr_id = n++;
			assert_true(urn_cq_room(&cq));
			urn_cq_put(&cq, &e, NULL, 0);
			assert_int_equal(slot[i].wr_id, e.wr_id);
			assert_int_equal(atomic_load(&slot[i].phase), !(lap & 1));
		}
		assert_false(urn_cq_room(&cq));
		atomic_store(&cq.hdr->cons, n - CQES + 1);
		assert_true(urn_cq_room(&cq));
		atomic_store(&cq.hdr->cons, n);
	}
	for (uint32_t lie = 0; lie < 2000; lie++) {
		atomic_store(&cq.hdr->cons, lie * 2654435761u);
		if (urn_cq_room(&cq))
			urn_cq_put(&cq, &e, NULL, 0);
	}
	assert_memory_equal(&slot[CQES], &guard, sizeof(guard));
	free(cq.hdr);
}

/* The mark of the request's queue moves with the completion, which names the request. */
static void
test_marks(void **state)
{
	struct urn_cq cq = {.hdr = area(URN_ABI_CQ_SLOTS + CQES * sizeof(struct urn_abi_cqe)),
			    .mask = CQES - 1};
	struct urn_abi_cqe *slot = (void *)((uint8_t *)cq.hdr + URN_ABI_CQ_SLOTS);
	struct urn_abi_cqe e = {.wqe = 9};
	_Atomic uint32_t mark = 0;

	(void)state;
	urn_cq_put(&cq, &e, &mark, 0x10001);
	assert_int_equal(atomic_load(&mark), 0x10001);
	assert_int_equal(slot[0].wqe, 0);
	assert_int_equal(atomic_load(&slot[0].phase), 1);
	urn_cq_put(&cq, &e, NULL, 0); /* a completion carried over: its queue is told already */
	assert_int_equal(slot[1].wqe, 9);
	free(cq.hdr);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_receives), cmocka_unit_test(test_prod_lies),
		cmocka_unit_test(test_elements_lie), cmocka_unit_test(test_completions),
		cmocka_unit_test(test_taken), cmocka_unit_test(test_marks),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
