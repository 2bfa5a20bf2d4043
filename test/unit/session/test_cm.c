/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management of a virtual device whose primary adapter is lost and comes back (FO-1,
 * FO-19). */
#include "adapters.h"

#include <urnic/cm.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>

enum { SERVICE = 0x1234, COOKIE = 7, LISTENERS = 40 };

static struct urn_cm_end *end;

static int
setup(void **state)
{
	if (adapters_setup(state) != 0)
		return -1;
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
	struct urn_sv_ctx *ctx = urn_sv_ctx(arg);
	bool is;

	urn_sv_lock(ctx);
	is = ctx->dead[0];
	urn_sv_unlock(ctx);
	return is;
}

static void
lose(struct ibv_context *c)
{
	adapters_lose(0);
	adapters_until(lost, c);
}

/* True when the primary adapter is back with so many listeners. */
static bool
listens(void *arg)
{
	return atomic_load(&adapters[0].listens) == *(const uint32_t *)arg;
}

static void
until_listens(uint32_t n)
{
	adapters_until(listens, &n);
}

static bool
readable(void)
{
	struct pollfd p = {.fd = urn_cm_end_fd(end), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* The next event, which the descriptor tells of. NONE: there is none */
static struct urn_abi_cm_event
event(enum urn_cm_event_type type)
{
	struct urn_abi_cm_event ev = {0};

	if (type == URN_CM_EVENT_NONE) {
		assert_int_equal(urn_cm_end_event(end, &ev), EAGAIN);
		assert_false(readable());
		return ev;
	}
	assert_true(readable());
	assert_int_equal(urn_cm_end_event(end, &ev), 0);
	assert_int_equal(ev.type, type);
	return ev;
}

static uint32_t
listener(void)
{
	uint32_t id;

	assert_int_equal(urn_cm_end_listen(end, SERVICE, COOKIE, 0, &id), 0);
	return id;
}

/* A listener takes requests again in each life of the adapter, and none that is destroyed. */
static void
listener_back(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_REQUEST, .cookie = COOKIE};
	const struct urn_abi_cm_accept accept = {.qpn = 1};
	uint32_t id = listener(), gone = listener();

	for (int life = 0; life < 3; life++) {
		lose(*state);
		event(URN_CM_EVENT_NONE); /* nothing tells the program of the loss */
		if (life == 0)
			assert_int_equal(urn_cm_end_destroy(end, gone), 0);
		adapters_back(0);
		until_listens(1);
		/* The device has listeners, too: the program's was made last. */
		ev.listen_id = atomic_load(&adapters[0].ids);
		ev.id = 1000;
		adapters_event(&ev);
		ev = event(URN_CM_EVENT_REQUEST);
		assert_int_equal(ev.listen_id, id);
		assert_true(ev.id != id && ev.cookie == COOKIE);
		assert_int_equal(urn_cm_end_accept(end, ev.id, &accept), 0);
		event(URN_CM_EVENT_NONE);
		assert_int_equal(urn_cm_end_destroy(end, ev.id), 0);
	}
	lose(*state);
	event(URN_CM_EVENT_NONE);
	assert_int_equal(urn_cm_end_destroy(end, id), 0);
	assert_int_equal(urn_cm_end_destroy(end, id), EINVAL);
}

/* Listeners that can't be made are tried again, and hold no others up: a few in a turn. */
static void
listeners_later(void **state)
{
	struct adapters_whole back = {.c = *state, .returned = 1};

	for (int i = 0; i < LISTENERS; i++)
		(void)listener();
	atomic_store(&adapters[0].deaf, true);
	lose(*state);
	adapters_back(0);
	adapters_until(adapters_whole, &back);
	assert_int_equal(atomic_load(&adapters[0].listens), 0);
	atomic_store(&adapters[0].deaf, false);
	until_listens(LISTENERS);
}

/* A question that waits for its answer is told that none comes; a connection without a session
 * ends; and either can be destroyed. */
static void
told(void **state)
{
	struct urn_abi_cm_connect p = {.cookie = COOKIE, .qpn = 12345};
	struct urn_abi_cm_event ev;
	uint32_t asked, up;

	assert_int_equal(urn_cm_end_connect(end, &p, &up), 0);
	assert_int_equal(urn_cm_end_establish(end, up, NULL, 0), 0);
	assert_int_equal(urn_cm_end_resolve(end, &p, &asked), 0);
	assert_int_not_equal(asked, up);
	lose(*state);
	for (int i = 0; i < 2; i++) {
		assert_true(readable());
		assert_int_equal(urn_cm_end_event(end, &ev), 0);
		assert_int_equal(ev.type,
				 ev.id == up ? URN_CM_EVENT_DISCONNECT : URN_CM_EVENT_UNREACHABLE);
		assert_true(ev.cookie == COOKIE);
	}
	event(URN_CM_EVENT_NONE);
	assert_int_equal(urn_cm_end_disconnect(end, up, NULL, 0), 0);
	assert_int_equal(event(URN_CM_EVENT_TIMEWAIT).id, up);
	assert_int_equal(urn_cm_end_establish(end, up, NULL, 0), EIO);
	assert_int_equal(urn_cm_end_connect(end, &p, &up), EIO);
	assert_int_equal(urn_cm_end_destroy(end, asked), 0);
	event(URN_CM_EVENT_NONE);
}

/* An end outlives the device: calls fail, and it can be closed. */
static void
closed(void **state)
{
	struct urn_abi_cm_event ev;
	uint32_t id;

	(void)listener();
	assert_int_equal(ibv_close_device(*state), 0);
	assert_int_equal(urn_cm_end_event(end, &ev), EIO);
	assert_int_equal(urn_cm_end_listen(end, SERVICE, COOKIE, 0, &id), EIO);
	urn_cm_end_close(end);
	assert_int_equal(setup(state), 0);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(listener_back), T(listeners_later), T(told),
					   T(closed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
