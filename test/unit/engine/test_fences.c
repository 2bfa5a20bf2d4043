/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fences of the engine, each tested by a litmus test (doc/inside/ordering.md): without its fence
 * the test fails. One side is the product's code, the other does by hand what lib/ does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/litmus.h"

#include "control/objects.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_pause.h>

enum { ROUNDS = 100000 };

/* ---- a completion queue that is armed while a completion is written (notify.c) */

struct cq_area {
	struct urn_abi_cq hdr;
	struct urn_abi_cqe slot[4];
} __attribute__((aligned(128)));

struct arming {
	struct urn_tp tp;
	struct urn_shard shard;
	struct urn_cq cq;
	struct cq_area area;
	int fd[2];     /* ends of the channel: the engine's, the program's */
	uint32_t at __attribute__((aligned(128))); /* slot that the completion of this round is written to */
	uint8_t phase;				   /* phase of that slot in this round */
	bool seen __attribute__((aligned(128)));   /* the program, having armed, saw the completion */
};

static void
arming_make(struct arming *a)
{
	memset(a, 0, sizeof(*a));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, a->fd), 0);
	a->tp.now = 1000;
	a->shard.tp = &a->tp;
	urn_shard_init_lists(&a->shard);
	a->cq = (struct urn_cq){.hdr = &a->area.hdr, .mask = 3, .handle = 1, .channel_fd = a->fd[0]};
}

static void
arming_end(struct arming *a)
{
	close(a->fd[0]);
	close(a->fd[1]);
}

static void
arming_ready(void *arg)
{
	struct arming *a = arg;

	a->at = a->cq.prod & a->cq.mask;
	a->phase = (a->cq.prod & (a->cq.mask + 1)) == 0;
	atomic_store(&a->area.hdr.arm, URN_CQ_ARM_NONE);
}

/* Complete as the transport does. */
static void
engine_completes(void *arg)
{
	const struct urn_abi_cqe cqe = {.wr_id = 1};
	struct arming *a = arg;

	urn_cq_put(&a->cq, &cqe, NULL, 0);
	if (!a->cq.touched) {
		a->cq.touched = true;
		a->cq.next = a->tp.touched;
		a->tp.touched = &a->cq;
	}
	urn_shard_notify(&a->shard);
}

/* Arm as ibv_req_notify_cq() does; unit/lib/test_fences.c tests that function itself. */
static void
program_arms(void *arg)
{
	struct arming *a = arg;
	const struct urn_abi_cqe *cqe = &a->area.slot[a->at];
	uint8_t phase = a->phase;

	atomic_store_explicit(&a->area.hdr.arm, URN_CQ_ARM_NEXT, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	a->seen = atomic_load_explicit(&cqe->phase, memory_order_acquire) == phase;
}

/*
 * True when the program would sleep although a completion is there, and the engine looks at the
 * queue no more.
 */
static bool
nobody_tells(void *arg)
{
	const struct arming *a = arg;

	return !a->seen && atomic_load(&a->area.hdr.arm) == URN_CQ_ARM_NEXT;
}

static void
test_arming(void **state)
{
	struct arming *a = aligned_alloc(128, sizeof(*a));

	(void)state;
	assert_non_null(a);
	arming_make(a);
	a->cq.channel_fd = -1; /* no events go out: rounds are short */
	assert_int_equal(litmus_run(&(struct litmus){.ready = arming_ready, .first = engine_completes,
				 .second = program_arms, .bad = nobody_tells, .arg = a, .rounds = ROUNDS}), 0);
	arming_end(a);
	free(a);
}

/* ---- the same, and the queue's last event is late, for its pipe is full */

static void
late_ready(void *arg)
{
	struct arming *a = arg;

	if (!a->cq.late) {
		atomic_store(&a->area.hdr.arm, URN_CQ_ARM_NEXT);
		engine_completes(a);
		assert_true(a->cq.late);
	}
	a->at = a->cq.prod & a->cq.mask;
	a->phase = (a->cq.prod & (a->cq.mask + 1)) == 0;
	/* The program has found the completions by itself, and got its event by itself. */
	atomic_store(&a->area.hdr.arm, URN_CQ_ARM_NONE);
	a->tp.now += 2000000; /* ns: the pipe is due for another try */
}

static bool
nobody_tells_late(void *arg)
{
	const struct arming *a = arg;

	return nobody_tells(arg) && !a->cq.late;
}

static void
test_arming_late(void **state)
{
	const struct urn_abi_event junk = {.handle = UINT32_MAX};
	struct arming *a = aligned_alloc(128, sizeof(*a));

	(void)state;
	assert_non_null(a);
	arming_make(a);
	while (send(a->fd[0], &junk, sizeof(junk), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(litmus_run(&(struct litmus){.ready = late_ready, .first = engine_completes,
				 .second = program_arms, .bad = nobody_tells_late, .arg = a, .rounds = ROUNDS}), 0);
	arming_end(a);
	free(a);
}

/* ---- an engine that goes to sleep while a doorbell rings (sleep.c), a client that cools down (doorbells.c) */

enum {
	CLIENTS = 9,	/* one more than stay hot however quiet they are */
	QUIET = 100000, /* turns, more than a client stays hot for */
};

struct bell {
	struct urn_tp tp;
	struct urn_engine engine;
	struct urn_shard shard;
	struct rte_ring ring; /* the engine's ring: empty */
	struct urn_client_shard client[CLIENTS];
	struct urn_abi_db *db; /* doorbells of the first client */
	bool slept;	       /* the engine looked, saw nothing, and let go of its core */
	bool woken;	       /* the ringer had to write the eventfd */
};

static struct bell bell;

static void
bell_make(void)
{
	memset(&bell, 0, sizeof(bell));
	bell.shard.tp = &bell.tp;
	urn_shard_init_lists(&bell.shard);
	bell.engine = (struct urn_engine){.shards_n = 1, .shard = {&bell.shard}, .ring = &bell.ring,
					  .cfg = {.idle = URN_IDLE_SLEEP, .sleep_us = 50}, .sleep_fd = -1};
	for (unsigned int i = 0; i < CLIENTS; i++) {
		struct urn_abi_db *db = aligned_alloc(128, (sizeof(*db) + 127) / 128 * 128);

		assert_non_null(db);
		memset((void *)db, 0, sizeof(*db));
		bell.client[i].scan = (struct urn_db_scan){.db = db, .tops = 1, .top = UINT32_MAX};
		bell.client[i].shard = &bell.shard;
		urn_shard_add_client(&bell.shard, &bell.client[i]);
	}
	bell.db = bell.client[0].scan.db;
}

static void
bell_end(void)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		free(bell.client[i].scan.db);
}

/* Replaces the C library's: asleep until the ringer of this round has rung. */
int __wrap_epoll_pwait2(int fd, struct epoll_event *ev, int max, const struct timespec *ts, const sigset_t *set);

int
__wrap_epoll_pwait2(int fd, struct epoll_event *ev, int max, const struct timespec *ts, const sigset_t *set)
{
	(void)fd;
	(void)ev;
	(void)max;
	(void)ts;
	(void)set;
	bell.slept = true;
	while (!litmus_second_done())
		rte_pause();
	return 0;
}

static void
no_bell(void *arg)
{
	uint32_t id;

	(void)arg;
	for (unsigned int i = 0; i < CLIENTS; i++)
		while (urn_db_any(&bell.client[i].scan))
			(void)urn_db_take(&bell.client[i].scan, &id, 1);
	bell.slept = bell.woken = false;
}

static void
engine_sleeps(void *arg)
{
	(void)arg;
	urn_engine_idle(&bell.engine, 1);
}

static void
client_rings(void *arg)
{
	(void)arg;
	bell.woken = urn_abi_db_ring(bell.db, 0) != 0;
}

static bool
sleeps_on(void *arg)
{
	(void)arg;
	return bell.slept && !bell.woken;
}

static void
test_sleeping(void **state)
{
	(void)state;
	bell_make();
	assert_int_equal(litmus_run(&(struct litmus){.ready = no_bell, .first = engine_sleeps,
				 .second = client_rings, .bad = sleeps_on, .rounds = ROUNDS}), 0);
	bell_end();
}

/* The engine looks at the first client last in a turn: the others have no news. */
static void
quiet_client(void *arg)
{
	if (!bell.client[0].hot) {
		(void)urn_abi_db_ring(bell.db, 0);
		urn_client_shard_heard(&bell.client[0]);
	}
	no_bell(arg);
	for (unsigned int i = 0; i < CLIENTS; i++)
		bell.client[i].quiet = 0;
	bell.client[0].quiet = QUIET;
}

static void
client_cools(void *arg)
{
	(void)arg;
	(void)urn_shard_doorbells(&bell.shard);
}

/* True when the engine looks at its doorbells no more, and nobody writes the eventfd. */
static bool
not_heard(void *arg)
{
	(void)arg;
	return !bell.client[0].hot && !bell.woken;
}

static void
test_cooling(void **state)
{
	(void)state;
	bell_make();
	assert_int_equal(litmus_run(&(struct litmus){.ready = quiet_client, .first = client_cools,
				 .second = client_rings, .bad = not_heard, .rounds = ROUNDS}), 0);
	bell_end();
}

/* ---- a doorbell that rings while the engine takes earlier ones (lib/abi/doorbell.h) */

static struct {
	_Atomic uint32_t prod __attribute__((aligned(128))); /* the queue's prod */
	uint32_t seen; /* engine: prod when it last took the doorbell */
} posted;

static void
rung_before(void *arg)
{
	no_bell(arg);
	(void)urn_abi_db_ring(bell.db, 0);
	posted.seen = atomic_load(&posted.prod);
}

static void
engine_takes(void *arg)
{
	uint32_t id[2];

	(void)arg;
	if (urn_db_any(&bell.client[0].scan) && urn_db_take(&bell.client[0].scan, id, 2) != 0)
		posted.seen = atomic_load_explicit(&posted.prod, memory_order_acquire);
}

static void
client_posts(void *arg)
{
	uint32_t prod = atomic_load_explicit(&posted.prod, memory_order_relaxed);

	atomic_store_explicit(&posted.prod, prod + 1, memory_order_release);
	client_rings(arg);
}

/* True when the engine has not seen the request, and no doorbell leads to it. */
static bool
forgotten(void *arg)
{
	while (urn_db_any(&bell.client[0].scan))
		engine_takes(arg);
	return posted.seen != atomic_load(&posted.prod);
}

static void
test_ringing(void **state)
{
	(void)state;
	bell_make();
	assert_int_equal(litmus_run(&(struct litmus){.ready = rung_before, .first = engine_takes,
				 .second = client_posts, .bad = forgotten, .rounds = ROUNDS}), 0);
	bell_end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arming),	cmocka_unit_test(test_arming_late),
		cmocka_unit_test(test_sleeping), cmocka_unit_test(test_cooling),
		cmocka_unit_test(test_ringing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
