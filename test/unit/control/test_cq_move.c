/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue that moves: nothing lost or duplicated, and little of the copying in one turn
 * of the engine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/cq_move.h"

#include <errno.h>
#include <stdlib.h>

enum { OLD = 16384, NEW = 32768 };

static struct urn_abi_cq *
room(uint32_t entries)
{
	struct urn_abi_cq *hdr = calloc(1, URN_ABI_CQ_SLOTS + (size_t)entries * sizeof(struct urn_abi_cqe));

	assert_non_null(hdr);
	return hdr;
}

/* A queue whose next completion is number `start`, and whose client has read all before it. */
static void
open_queue(struct urn_cq *cq, uint32_t entries, uint32_t start)
{
	*cq = (struct urn_cq){.hdr = room(entries), .mask = entries - 1, .prod = start, .cons = start};
	atomic_store(&cq->hdr->cons, start);
}

static uint64_t made;

static void
make(struct urn_cq *cq, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct urn_abi_cqe cqe = {.wr_id = made++, .wqe = (uint16_t)i};

		assert_true(urn_cq_room(cq));
		urn_cq_put(cq, &cqe, NULL, 0);
	}
}

static const struct urn_abi_cqe *
slot(const struct urn_cq *cq, uint32_t i)
{
	return (const struct urn_abi_cqe *)((const uint8_t *)cq->hdr + URN_ABI_CQ_SLOTS) + (i & cq->mask);
}

/* One step of the engine. returns: completions that the engine copied itself */
static uint32_t
step(struct urn_cq_move *m, int rc)
{
	uint32_t before = m->to.prod;

	urn_cq_move_step(m);
	assert_int_equal(m->rc, rc);
	return m->to.prod - before;
}

/* The queue has moved, and holds n completions; the last is the one made last. */
static void
moved(struct urn_cq *cq, const struct urn_cq_move *m, struct urn_abi_cq *was, uint32_t n)
{
	assert_ptr_equal(cq->hdr, m->to.hdr);
	assert_int_equal(cq->mask, m->to.mask);
	assert_int_equal(cq->prod, n);
	assert_int_equal(cq->cons, 0);
	assert_int_equal(was->moved_off, m->off);
	assert_int_equal(atomic_load(&was->moved_entries), m->to.mask + 1);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(slot(cq, i)->wr_id, made - n + i);
		assert_int_equal(atomic_load(&slot(cq, i)->phase), 1);
	}
	if (n <= cq->mask)
		assert_int_equal(atomic_load(&slot(cq, n)->phase), 0);
	free(was);
	free(cq->hdr);
}

/* Few completions, or none: the queue moves at once. */
static void
few(void **state)
{
	(void)state;
	for (uint32_t n = 0; n <= URN_CQ_MOVE_STEP; n += URN_CQ_MOVE_STEP / 2) {
		struct urn_abi_cq *was;
		struct urn_cq_move m;
		struct urn_cq cq;

		open_queue(&cq, 256, UINT32_MAX - 9); /* the index wraps */
		was = cq.hdr;
		make(&cq, n);
		urn_cq_move_init(&m, &cq, room(1024), 4096, 1024);
		assert_int_equal(step(&m, 0), n);
		moved(&cq, &m, was, n);
	}
}

/* Messages beside completions move along. */
static void
messages(void **state)
{
	struct urn_abi_beside *old = calloc(16, sizeof(*old)), *new = calloc(64, sizeof(*new));
	struct urn_abi_cq *was;
	struct urn_cq_move m;
	struct urn_cq cq;

	(void)state;
	open_queue(&cq, 16, UINT32_MAX - 3);
	was = cq.hdr;
	cq.beside = old;
	for (uint32_t i = 0; i < 12; i++) {
		const struct urn_abi_cqe cqe = {.wr_id = made++,
						.wc_flags = i & 1 ? URN_WCF_BESIDE : 0};
		uint8_t byte = (uint8_t)i;

		if (i & 1)
			urn_cq_put_beside(&cq, 1000 + i, &byte, 1);
		urn_cq_put(&cq, &cqe, NULL, 0);
	}
	urn_cq_move_init(&m, &cq, room(64), 4096, 64);
	m.to.beside = new;
	assert_int_equal(step(&m, 0), 12);
	assert_ptr_equal(cq.beside, new);
	for (uint32_t i = 1; i < 12; i += 2) {
		assert_int_equal(slot(&cq, i)->wc_flags, URN_WCF_BESIDE);
		assert_int_equal(new[i].addr, 1000 + i);
		assert_int_equal(new[i].length, 1);
		assert_int_equal(new[i].data[0], i);
	}
	moved(&cq, &m, was, 12);
	free(old);
	free(new);
}

/*
 * Many completions, while more are made: no step copies more than a few, however many
 * there are, and the new ones come behind.
 */
static void
many_in_steps(void **state)
{
	static const uint32_t meanwhile[] = {3000, 1000, URN_CQ_MOVE_STEP + 1, URN_CQ_MOVE_STEP};
	uint32_t n = 10000;
	struct urn_abi_cq *was;
	struct urn_cq_move m;
	struct urn_cq cq;

	(void)state;
	open_queue(&cq, OLD, UINT32_MAX - 5000);
	was = cq.hdr;
	make(&cq, n);
	urn_cq_move_init(&m, &cq, room(NEW), 0, NEW);
	for (unsigned int i = 0; i < sizeof(meanwhile) / sizeof(meanwhile[0]); i++) {
		assert_int_equal(step(&m, EAGAIN), 0);
		/* The engine goes on while another thread copies. */
		make(&cq, meanwhile[i] / 2);
		urn_cq_move_carry(&m);
		assert_int_equal(m.to.prod, n);
		make(&cq, meanwhile[i] - meanwhile[i] / 2);
		assert_ptr_equal(cq.hdr, was);
		n += meanwhile[i];
	}
	assert_int_equal(step(&m, 0), URN_CQ_MOVE_STEP);
	moved(&cq, &m, was, n);
}

/* More completions than there is room for, at first or with the new ones: the queue stays where it is. */
static void
too_many(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct urn_cq_move m;
		struct urn_cq cq, was;

		open_queue(&cq, OLD, 7);
		make(&cq, late ? 1024 : 1025);
		urn_cq_move_init(&m, &cq, room(1024), 64, 1024);
		if (late) {
			step(&m, EAGAIN);
			urn_cq_move_carry(&m);
			make(&cq, 1);
		}
		was = cq;
		assert_int_equal(step(&m, EINVAL), 0);
		assert_memory_equal(&cq, &was, sizeof(cq));
		assert_int_equal(atomic_load(&cq.hdr->moved_entries), 0);
		free(m.to.hdr);
		free(cq.hdr);
	}
}

/*
 * A client whose index lies, before or meanwhile: it loses its own completions, and nothing is read
 * or written elsewhere.
 */
static void
liars(void **state)
{
	struct urn_abi_cq *was;
	struct urn_cq_move m;
	struct urn_cq cq;

	(void)state;
	open_queue(&cq, 1024, 0);
	was = cq.hdr;
	make(&cq, 600);
	atomic_store(&cq.hdr->cons, 601);
	urn_cq_move_init(&m, &cq, room(64), 0, 64);
	assert_int_equal(step(&m, 0), 0);
	moved(&cq, &m, was, 0);

	open_queue(&cq, 1024, 0);
	was = cq.hdr;
	make(&cq, 1000);
	urn_cq_move_init(&m, &cq, room(4096), 0, 4096);
	step(&m, EAGAIN);
	urn_cq_move_carry(&m);
	for (int i = 0; i < 3; i++) { /* too far: more come than fit */
		atomic_store(&cq.hdr->cons, cq.prod);
		make(&cq, 1000);
	}
	assert_int_equal(step(&m, 0), 0);
	assert_int_equal(cq.prod, 1000);
	free(was);
	free(cq.hdr);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few),		 cmocka_unit_test(messages),
		cmocka_unit_test(many_in_steps), cmocka_unit_test(too_many),
		cmocka_unit_test(liars),
	};

	return cmocka_run_group_tests_name("cq_move", tests, NULL, NULL);
}
