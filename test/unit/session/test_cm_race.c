/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management of a virtual device: losses, events and other calls that meet each other
 * (FO-1). */
#include "adapters.h"

#include "verbs/session/cm_end.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SERVICE = 0x1234, COOKIE = 7, QPN = 4711, HELD_MS = 20000, LONG_MS = 200 };

static struct urn_cm_end *end;
static struct urn_sv_ctx *ctx;
static pthread_t other; /* fetches an event; valid: started */
static bool started;
static struct urn_abi_cm_event fetched; /* that event; valid when the thread has ended */
static _Atomic bool fetching;

static int
setup(void **state)
{
	if (adapters_setup(state) != 0)
		return -1;
	ctx = urn_sv_ctx(*state);
	started = false;
	atomic_store(&fetching, false);
	assert_int_equal(urn_cm_end_open(&end, *state), 0);
	return 0;
}

static int
teardown(void **state)
{
	urn_cm_end_close(end);
	return adapters_teardown(state);
}

/* True when the loss of the primary adapter was noticed. */
static bool
lost(void *arg)
{
	bool is;

	(void)arg;
	urn_sv_lock(ctx);
	is = ctx->dead[0];
	urn_sv_unlock(ctx);
	return is;
}

static void
lose(void)
{
	adapters_lose(0);
	adapters_until(lost, NULL);
}

/* The adapter is lost, and the loss noticed, before its call returns. */
static void
lose_meanwhile(uint32_t id)
{
	(void)id;
	atomic_store(&adapters[0].meanwhile, NULL);
	lose();
}

static bool
listens(void *arg)
{
	(void)arg;
	return atomic_load(&adapters[0].listens) == 1;
}

/* The next event must be this one, of this id; NONE: there must be none. */
static void
next(enum urn_cm_event_type type, uint32_t id)
{
	struct pollfd p = {.fd = urn_cm_end_fd(end), .events = POLLIN};
	struct urn_abi_cm_event ev;

	if (type == URN_CM_EVENT_NONE) {
		assert_int_equal(urn_cm_end_event(end, &ev), EAGAIN);
		assert_int_equal(poll(&p, 1, 0), 0);
		return;
	}
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(urn_cm_end_event(end, &ev), 0);
	assert_int_equal(ev.type, type);
	assert_int_equal(ev.id, id);
}

static uint32_t
connected(void)
{
	struct urn_abi_cm_connect p = {.cookie = COOKIE, .qpn = QPN};
	uint32_t id;

	assert_int_equal(urn_cm_end_connect(end, &p, &id), 0);
	assert_int_equal(urn_cm_end_establish(end, id, NULL, 0), 0);
	return id;
}

/* A question whose number the adapter gave with its last breath is told that no answer comes. */
static void
born_late(void **state)
{
	struct urn_abi_cm_connect p = {.cookie = COOKIE, .qpn = QPN};
	uint32_t id;

	(void)state;
	atomic_store(&adapters[0].meanwhile, lose_meanwhile);
	assert_int_equal(urn_cm_end_connect(end, &p, &id), 0);
	next(URN_CM_EVENT_UNREACHABLE, id);
	next(URN_CM_EVENT_NONE, 0);
}

/* ... and a listener takes requests when the adapter is back. */
static void
listens_late(void **state)
{
	uint32_t id;

	(void)state;
	atomic_store(&adapters[0].meanwhile, lose_meanwhile);
	assert_int_equal(urn_cm_end_listen(end, SERVICE, COOKIE, 0, &id), 0);
	adapters_back(0);
	adapters_until(listens, NULL);
}

/* A request that the adapter gave with its last breath is nobody's: none could answer it. */
static void
asked_late(void **state)
{
	const struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_REQUEST, .id = 1000};
	struct urn_abi_cm_event got;

	(void)state;
	adapters_event(&ev);
	adapters_event(&ev);
	atomic_store(&adapters[0].meanwhile, lose_meanwhile);
	assert_int_equal(urn_cm_end_event(end, &got), EAGAIN);
	next(URN_CM_EVENT_NONE, 0); /* the other one */
}

/* An id goes, whatever the adapter says of it, unless it is to be destroyed again. */
static void
unknown(void **state)
{
	static const int keeps[] = {ENOMEM, EDQUOT}, drops[] = {EINVAL, ENOENT};

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t id = connected();

		atomic_store(&adapters[0].denial, keeps[i]);
		assert_int_equal(urn_cm_end_destroy(end, id), keeps[i]);
		atomic_store(&adapters[0].denial, drops[i]);
		assert_int_equal(urn_cm_end_destroy(end, id), 0);
		assert_int_equal(urn_cm_end_destroy(end, id), EINVAL);
	}
}

static void *
fetch(void *arg)
{
	int err;

	(void)arg;
	atomic_store(&fetching, true);
	do
		err = urn_cm_end_event(end, &fetched);
	while (err == EAGAIN && atomic_load(&fetching));
	return err == 0 ? &fetched : NULL;
}

/* An answer comes, and another thread has time to fetch it, before the adapter's call returns. */
static void
answer_meanwhile(uint32_t id)
{
	const struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_REJECTED, .id = id};
	const struct timespec some = {.tv_nsec = LONG_MS * 1000000};

	atomic_store(&adapters[0].meanwhile, NULL);
	adapters_event(&ev);
	started = pthread_create(&other, NULL, fetch, NULL) == 0;
	nanosleep(&some, NULL);
}

/* An event that is faster than the answer to the call that makes its id is not lost. */
static void
overtakes(void **state)
{
	struct urn_abi_cm_connect p = {.cookie = COOKIE, .qpn = QPN};
	void *got;
	uint32_t id;

	(void)state;
	atomic_store(&adapters[0].meanwhile, answer_meanwhile);
	assert_int_equal(urn_cm_end_connect(end, &p, &id), 0);
	assert_true(started);
	while (!atomic_load(&fetching))
		;
	/* A thread that has not found the event looks once more at least, and ends. */
	adapters_event(&(struct urn_abi_cm_event){.type = URN_CM_EVENT_REQUEST, .id = id + 1});
	assert_int_equal(pthread_join(other, &got), 0);
	assert_ptr_equal(got, &fetched);
	assert_int_equal(fetched.type, URN_CM_EVENT_REJECTED);
	assert_int_equal(fetched.id, id);
}

/* True when calls wait for a replacement. */
static bool
holds(void *arg)
{
	bool is;

	(void)arg;
	urn_sv_lock(ctx);
	is = ctx->replacing;
	urn_sv_unlock(ctx);
	return is;
}

/* Events come without a wait while another call keeps the replacement of the backup off. */
static void
no_wait(void **state)
{
	const struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_REQUEST, .id = 1000};
	struct urn_abi_cm_event got;
	uint64_t start;
	bool quick;
	int err;

	(void)state;
	urn_sv_lock(ctx);
	ctx->options.silence = HELD_MS; /* for as long other calls wait */
	urn_sv_unlock(ctx);
	urn_sv_enter(ctx);
	adapters_lose(1);
	adapters_back(1);
	adapters_until(holds, NULL);
	adapters_event(&ev);
	start = urn_sv_now_ms();
	err = urn_cm_end_event(end, &got);
	quick = holds(NULL) && urn_sv_now_ms() - start < HELD_MS / 2;
	urn_sv_exit(ctx);
	assert_int_equal(err, 0);
	assert_true(quick);
}

/* An accept that fails leaves a request, of which nothing comes when the adapter is lost. */
static void
accept_fails(void **state)
{
	const struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_REQUEST, .id = 1000};
	const struct urn_abi_cm_accept accept = {.qpn = QPN};
	struct urn_abi_cm_event got;

	(void)state;
	adapters_event(&ev);
	assert_int_equal(urn_cm_end_event(end, &got), 0);
	atomic_store(&adapters[0].denial, EINVAL);
	assert_int_equal(urn_cm_end_accept(end, got.id, &accept), EINVAL);
	lose();
	next(URN_CM_EVENT_NONE, 0);
}

/* The peer's LEAVE ends a connection whose session has moved, once. */
static void
leave(void **state)
{
	struct urn_sv_qp q = {.ctx = ctx, .ibv.qp_num = QPN};
	uint32_t id = connected();

	(void)state;
	urn_sv_lock(ctx);
	urn_sv_ends_over(&q);
	urn_sv_unlock(ctx);
	next(URN_CM_EVENT_NONE, 0); /* the adapter tells, for the connection has not moved */
	urn_sv_lock(ctx);
	q.c.epoch = 1;
	urn_sv_ends_over(&q);
	urn_sv_ends_over(&q);
	urn_sv_unlock(ctx);
	next(URN_CM_EVENT_DISCONNECT, id);
	next(URN_CM_EVENT_NONE, 0);
}

/* A connection whose session lives hears nothing of the loss, and ends as its program wants. */
static void
quit(void **state)
{
	struct urn_sv_end *e = (struct urn_sv_end *)end;
	struct urn_sv_qp q = {.ctx = ctx, .ibv.qp_num = QPN, .mode = URN_SV_SESSION};
	uint32_t id = connected();

	(void)state;
	urn_sv_lock(ctx);
	LIST_INSERT_HEAD(&ctx->qps, &q, link);
	pthread_mutex_lock(&e->lock);
	urn_sv_end_lost(e);
	pthread_mutex_unlock(&e->lock);
	LIST_REMOVE(&q, link);
	urn_sv_unlock(ctx);
	next(URN_CM_EVENT_NONE, 0);
	assert_int_equal(urn_cm_end_disconnect(end, id, NULL, 0), 0);
	next(URN_CM_EVENT_DISCONNECTED, id);
	next(URN_CM_EVENT_TIMEWAIT, id);
	next(URN_CM_EVENT_NONE, 0);
}

/* The session layer hears of the end of the connection. */
static void
over(void)
{
	struct urn_sv_qp q = {.ctx = ctx, .ibv.qp_num = QPN, .c.epoch = 1};

	urn_sv_lock(ctx);
	urn_sv_ends_over(&q);
	urn_sv_unlock(ctx);
}

/* In the child: calls fail, ids and ends can go. returns: the place that failed; 0: none */
static int
child(uint32_t id)
{
	struct urn_abi_cm_event ev;
	uint32_t made;

	if (urn_cm_end_event(end, &ev) != EIO)
		return 1;
	if (urn_cm_end_listen(end, SERVICE, COOKIE, 0, &made) != EIO)
		return 2;
	if (urn_cm_end_disconnect(end, id, NULL, 0) != EIO)
		return 3;
	if (urn_cm_end_destroy(end, id) != 0)
		return 4;
	urn_cm_end_close(end);
	return 0;
}

/* A child of fork() neither takes its parent's events nor adds any. told: one waits */
static void
fork_one(uint32_t id, bool told)
{
	struct pollfd p = {.fd = urn_cm_end_fd(end), .events = POLLIN};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (!told)
			over();
		_exit(child(id));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(poll(&p, 1, 0), told);
	next(told ? URN_CM_EVENT_DISCONNECT : URN_CM_EVENT_NONE, id);
}

static void
forked(void **state)
{
	uint32_t id = connected();

	(void)state;
	fork_one(id, false);
	over();
	fork_one(id, true);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(born_late), T(listens_late), T(asked_late), T(unknown), T(overtakes),
		T(no_wait),   T(accept_fails), T(leave),      T(quit),	  T(forked)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
