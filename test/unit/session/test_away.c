/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapters that are away before the program has an object, and that come back (FO-19). */
#include "adapters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>

/* True when a domain can be made, which arg, of this type, has then. */
struct domain {
	struct ibv_context *c;
	struct ibv_pd *pd;
};

static bool
has_domain(void *arg)
{
	struct domain *d = arg;

	d->pd = ibv_alloc_pd(d->c);
	if (d->pd == NULL)
		assert_int_equal(errno, EIO);
	return d->pd != NULL;
}

/* With both adapters away each object fails with EIO, until one is back; then the other one follows
 * by itself. */
static void
both(void **state)
{
	for (uint32_t first = 0; first < URN_SV_ADAPTERS; first++) {
		struct domain d = {.c = *state};
		struct adapters_whole other = {.c = *state, .adapter = !first};
		struct ibv_cq *cq;

		adapters_lose(0);
		adapters_lose(1);
		assert_null(ibv_alloc_pd(*state));
		assert_int_equal(errno, EIO);
		assert_null(ibv_create_cq(*state, 4, NULL, NULL, 0));
		assert_int_equal(errno, EIO);
		assert_null(ibv_create_comp_channel(*state));
		assert_int_equal(errno, EIO);
		adapters_back(first);
		adapters_until(has_domain, &d);
		cq = ibv_create_cq(*state, 4, NULL, NULL, 0);
		assert_non_null(cq);
		adapters_back(!first);
		adapters_until(adapters_whole, &other);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		assert_int_equal(ibv_dealloc_pd(d.pd), 0);
	}
}

/* True when a completion queue, or a channel, can be made; nothing else is tried, so the first one
 * that failed let the device look for its adapters. */
static bool
has_queue(void *arg)
{
	struct ibv_cq *cq = ibv_create_cq(arg, 4, NULL, NULL, 0);

	assert_true(cq != NULL || errno == EIO);
	return cq != NULL && ibv_destroy_cq(cq) == 0;
}

static bool
has_channel(void *arg)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(arg);

	assert_true(ch != NULL || errno == EIO);
	return ch != NULL && ibv_destroy_comp_channel(ch) == 0;
}

/* The same when the first object is a completion queue, or a channel. */
static void
queue(void **state)
{
	adapters_lose(0);
	adapters_lose(1);
	assert_false(has_queue(*state));
	adapters_back(1);
	adapters_until(has_queue, *state);
}

static void
channel(void **state)
{
	adapters_lose(0);
	adapters_lose(1);
	assert_false(has_channel(*state));
	adapters_back(0);
	adapters_until(has_channel, *state);
}

/* An adapter that is lost before the first domain gets its part of that when it is back. */
static void
one(void **state)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		struct adapters_whole back = {.c = *state, .adapter = i, .returned = 1};
		struct domain d = {.c = *state};

		adapters_lose(i);
		adapters_until(has_domain, &d);
		adapters_back(i);
		adapters_until(adapters_whole, &back);
		assert_int_equal(ibv_dealloc_pd(d.pd), 0);
	}
}

static struct urn_sv_ctx *device; /* the next test's */
static _Atomic uint32_t closed;	  /* calls of free_lock() */
static _Atomic uint32_t stuck;	  /* ... in which another call could not have gone on */
static _Atomic uint32_t most;	  /* the most contexts of one adapter in such a call */

static bool
takes_lock(void)
{
	if (pthread_mutex_trylock(&device->lock) != 0)
		return false;
	pthread_mutex_unlock(&device->lock);
	return true;
}

/* A living adapter is being closed: others can have the device's lock, all the while. */
static void
free_lock(void)
{
	const struct timespec step = {.tv_nsec = 1000000};
	bool took = takes_lock();

	for (int i = 0; i < 20000 && !took; i++) { /* another thread may have it for a moment */
		nanosleep(&step, NULL);
		took = takes_lock();
	}
	atomic_fetch_add(&stuck, !took);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		if (atomic_load(&adapters[i].opened) > atomic_load(&most))
			atomic_store(&most, atomic_load(&adapters[i].opened));
	atomic_fetch_add(&closed, 1);
}

static bool
closed_twice(void *arg)
{
	(void)arg;
	return atomic_load(&closed) >= 2;
}

/* An adapter that came back and is of no use is closed while nobody waits for that, and before the
 * next one is attached to; later it is used. */
static void
useless(void **state)
{
	device = urn_sv_ctx(*state);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		struct adapters_whole back = {.c = *state, .adapter = i, .returned = 3};
		struct domain d = {.c = *state};

		atomic_store(&closed, 0);
		atomic_store(&stuck, 0);
		atomic_store(&most, 0);
		adapters_until(has_domain, &d);
		adapters_lose(i);
		atomic_store(&adapters[i].useless, true);
		atomic_store(&adapters[i].closes, free_lock);
		adapters_back(i);
		adapters_until(closed_twice, NULL);
		atomic_store(&adapters[i].closes, NULL);
		atomic_store(&adapters[i].useless, false);
		adapters_until(adapters_whole, &back);
		assert_int_equal(atomic_load(&stuck), 0);
		assert_int_equal(atomic_load(&most), 1);
		assert_int_equal(ibv_dealloc_pd(d.pd), 0);
	}
}

static bool
all_lost(void *arg)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(arg);
	bool lost;

	pthread_mutex_lock(&ctx->lock);
	lost = ctx->dead[0] && ctx->dead[1];
	pthread_mutex_unlock(&ctx->lock);
	return lost;
}

/* The loss of all adapters is one event until it is fetched, however often they are lost (FO-19).
 */
static void
fatal(void **state)
{
	struct domain d = {.c = *state};
	struct ibv_async_event event;
	struct pollfd p = {.fd = d.c->async_fd, .events = POLLIN};

	adapters_until(has_domain, &d);
	for (uint32_t times = 1; times <= 2; times++) {
		adapters_lose(0);
		adapters_lose(1);
		adapters_until(all_lost, *state);
		for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
			struct adapters_whole back = {.c = *state, .adapter = i, .returned = times};

			adapters_back(i);
			adapters_until(adapters_whole, &back);
		}
	}
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ibv_get_async_event(*state, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(ibv_dealloc_pd(d.pd), 0);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, adapters_setup, adapters_teardown)
	const struct CMUnitTest tests[] = {T(both), T(queue),	T(channel),
					   T(one),  T(useless), T(fatal)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
