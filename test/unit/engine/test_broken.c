/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients whose completion queues broke: the engine looks at the QPs of each, whichever queues
 * break meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"

#include <string.h>

enum { MANY = 16384, FEW = 100, STEP = 32 /* QPs a turn */ };

/* A client that has only the last of its QPs left. */
struct prog {
	struct urn_engine_client client;
	struct urn_client_shard share;
	struct urn_cq cq;
	struct urn_qp last;
	struct urn_source *source[MANY];
};

static struct urn_tp tp;
static struct urn_shard shard;
static struct prog greedy, modest;
static struct urn_qp *ended[4]; /* QPs ended, in order */
static unsigned int ended_n;

void __wrap_urn_qp_cq_broken(struct urn_tp *t, struct urn_qp *qp);

void
__wrap_urn_qp_cq_broken(struct urn_tp *t, struct urn_qp *qp)
{
	assert_ptr_equal(t, &tp);
	assert_in_range(ended_n, 0, 3);
	ended[ended_n++] = qp;
}

static void
make(struct prog *p, uint32_t qps)
{
	memset(p, 0, sizeof(*p));
	p->client.share[0] = &p->share.share;
	p->share.share.sibling = p->client.share;
	p->share.shard = &shard;
	p->share.source = p->source;
	p->share.used = qps;
	p->cq.owner = &p->share.share;
	p->last.send_cq = p->last.recv_cq = &p->cq;
	p->source[qps - 1] = &p->last.source;
}

static int
setup(void **state)
{
	(void)state;
	shard = (struct urn_shard){.tp = &tp};
	urn_shard_init_lists(&shard);
	make(&greedy, MANY);
	make(&modest, FEW);
	ended_n = 0;
	return 0;
}

static void
breaks(struct prog *p)
{
	p->cq.overrun = true;
	urn_shard_cq_broken(NULL, &p->cq);
}

/*
 * A client that breaks queue after queue, so that its walk never ends, gets at most half the turns
 * beside another.
 */
static void
again_and_again(struct prog *first, struct prog *second)
{
	unsigned int turns = 0;

	breaks(first);
	breaks(second);
	for (; ended_n == 0; turns++) {
		assert_in_range(turns, 0, 2 * (FEW / STEP + 1));
		breaks(&greedy);
		assert_int_equal(urn_shard_walk_broken(&shard), STEP);
	}
	assert_ptr_equal(ended[0], &modest.last);
	assert_false(modest.share.walked);
	/* The greedy client's own QP ends, too, once that client stops. */
	for (turns = 0; ended_n == 1; turns++) {
		assert_in_range(turns, 0, MANY / STEP);
		urn_shard_walk_broken(&shard);
	}
	assert_ptr_equal(ended[1], &greedy.last);
	assert_true(TAILQ_EMPTY(&shard.walk));
	assert_int_equal(urn_shard_walk_broken(&shard), 0);
}

static void
test_again_and_again(void **state)
{
	again_and_again(&modest, &greedy);
	setup(state);
	again_and_again(&greedy, &modest);
}

/* Clients go while they wait: the first in turn, the last, the only one. */
static void
test_forget(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct prog *goes = i ? &greedy : &modest, *stays = i ? &modest : &greedy;

		ended_n = 0;
		breaks(&greedy);
		breaks(&modest);
		assert_int_equal(urn_shard_walk_broken(&shard), STEP);
		urn_shard_forget_broken(&shard, &goes->share);
		assert_false(goes->share.walked);
		assert_ptr_equal(TAILQ_LAST(&shard.walk, urn_walked_clients), &stays->share);
		while (urn_shard_walk_broken(&shard) > 0)
			;
		assert_int_equal(ended_n, 1);
		assert_ptr_equal(ended[0], &stays->last);
	}
	breaks(&modest);
	urn_shard_forget_broken(&shard, &modest.share);
	assert_true(TAILQ_EMPTY(&shard.walk));
	urn_shard_forget_broken(&shard, &modest.share);
	assert_int_equal(urn_shard_walk_broken(&shard), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_again_and_again, setup),
		cmocka_unit_test_setup(test_forget, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
