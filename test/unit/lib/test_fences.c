/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_req_notify_cq() while the dataplane writes a completion: a litmus test of its fence
 * (doc/inside/ordering.md). Without the fence the test fails.
 */
#include "test.h"

#include "common/litmus.h"

#include <errno.h>
#include <fcntl.h>

enum { ROUNDS = 100000 };

struct armed {
	struct env *e;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct urn_abi_cq *hdr;
	struct urn_abi_cqe *slot;
	uint32_t mask, prod;
	bool fires; /* dataplane: the queue was found armed */
};

/* All completions and events have been taken. */
static void
ready(void *arg)
{
	struct armed *a = arg;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *ctx;

	while (ibv_poll_cq(a->cq, 1, &wc) > 0)
		;
	/* The program wrote the event itself. */
	if (a->prod && !a->fires && atomic_load(&a->hdr->arm) == URN_CQ_ARM_NONE) {
		assert_int_equal(ibv_get_cq_event(a->ch, &cq, &ctx), 0);
		ibv_ack_cq_events(cq, 1);
	}
	atomic_store(&a->hdr->arm, URN_CQ_ARM_NONE);
}

/* Complete as urn_cq_put() and urn_shard_notify() do. */
static void
dataplane_completes(void *arg)
{
	struct armed *a = arg;
	uint8_t phase = (a->prod & (a->mask + 1)) == 0;

	atomic_store_explicit(&a->slot[a->prod & a->mask].phase, phase, memory_order_release);
	a->prod++;
	atomic_thread_fence(memory_order_seq_cst);
	a->fires = atomic_load_explicit(&a->hdr->arm, memory_order_relaxed) == URN_CQ_ARM_NEXT &&
		   atomic_exchange(&a->hdr->arm, URN_CQ_ARM_NONE) != URN_CQ_ARM_NONE;
}

static void
program_arms(void *arg)
{
	struct armed *a = arg;

	(void)ibv_req_notify_cq(a->cq, 0);
}

/* True when the program would sleep although a completion is there: neither side has taken the arm word. */
static bool
nobody_tells(void *arg)
{
	struct armed *a = arg;

	return !a->fires && atomic_load(&a->hdr->arm) == URN_CQ_ARM_NEXT;
}

static void
test_arming(void **state)
{
	struct env *e = *state;
	struct armed a = {.e = e, .ch = ibv_create_comp_channel(e->c)};

	assert_non_null(a.ch);
	assert_int_equal(fcntl(a.ch->fd, F_SETFL, O_NONBLOCK), 0);
	a.cq = ibv_create_cq(e->c, 8, NULL, a.ch, 0);
	assert_non_null(a.cq);
	a.hdr = fake_at(e->f, fake_cq(e->f, a.cq->handle)->off);
	a.slot = (void *)((uint8_t *)a.hdr + URN_ABI_CQ_SLOTS);
	a.mask = fake_cq(e->f, a.cq->handle)->entries - 1;
	assert_int_equal(litmus_run(&(struct litmus){.ready = ready, .first = dataplane_completes,
				 .second = program_arms, .bad = nobody_tells, .arg = &a, .rounds = ROUNDS}), 0);
	ready(&a);
	assert_int_equal(ibv_destroy_cq(a.cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(a.ch), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_arming, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
