/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids of connection management that outlive the primary adapter (FO-1). */
#include "verbs/session/cm_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

enum { BELOW = 77, QPN = 5, COOKIE = 9, MANY = 1000 };

static bool no_memory;
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

static struct urn_sv_cm_ids ids;

static int
setup(void **state)
{
	(void)state;
	no_memory = false;
	urn_sv_cm_begin(&ids);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	urn_sv_cm_end(&ids);
	assert_true(TAILQ_EMPTY(&ids.due));
	return 0;
}

/* The adapter is lost. living: the connection of QPN outlives it */
static void
lose(bool living)
{
	if (living)
		urn_sv_cm_lives(&ids, QPN);
	urn_sv_cm_lost(&ids);
}

static struct urn_sv_cm_id *
make(enum urn_sv_cm_state state)
{
	struct urn_sv_cm_id *id = urn_sv_cm_make(&ids, BELOW, state);

	assert_non_null(id);
	id->cookie = COOKIE;
	urn_sv_cm_of(&ids, id, QPN);
	return id;
}

/* The next event of our own must be this one; NONE: there must be none. */
static void
next(const struct urn_sv_cm_id *id, enum urn_cm_event_type type)
{
	struct urn_abi_cm_event ev;

	assert_int_equal(urn_sv_cm_own(&ids, &ev), type != URN_CM_EVENT_NONE);
	if (type == URN_CM_EVENT_NONE)
		return;
	assert_int_equal(ev.type, type);
	assert_int_equal(ev.id, id->front);
	assert_true(ev.cookie == COOKIE);
	assert_int_equal(ev.reason, type == URN_CM_EVENT_DISCONNECTED);
}

/* Each state, when the adapter is lost, with and without a session: the program is told so. */
static void
lost(void **state)
{
	static const struct {
		enum urn_sv_cm_state from, to[2];
		enum urn_cm_event_type told[2][2];
	} rule[] = {
#define SAME(s) {URN_SV_CM_##s, URN_SV_CM_##s}
		{URN_SV_CM_LISTENER, SAME(LISTENER), {{0}}},
		{URN_SV_CM_ASKED,
		 SAME(OVER),
		 {{URN_CM_EVENT_UNREACHABLE}, {URN_CM_EVENT_UNREACHABLE}}},
		{URN_SV_CM_CAME, SAME(OVER), {{0}}},
		{URN_SV_CM_ANSWERED,
		 SAME(OVER),
		 {{URN_CM_EVENT_UNREACHABLE}, {URN_CM_EVENT_UNREACHABLE}}},
		{URN_SV_CM_UP, {URN_SV_CM_TOLD, URN_SV_CM_UP}, {{URN_CM_EVENT_DISCONNECT}, {0}}},
		{URN_SV_CM_ENDS,
		 SAME(OVER),
		 {{URN_CM_EVENT_DISCONNECTED, URN_CM_EVENT_TIMEWAIT},
		  {URN_CM_EVENT_DISCONNECTED, URN_CM_EVENT_TIMEWAIT}}},
		{URN_SV_CM_TOLD, SAME(TOLD), {{0}}},
		{URN_SV_CM_OVER, SAME(OVER), {{0}}},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rule) / sizeof(rule[0]); i++)
		for (unsigned int k = 0; k < 2; k++) {
			struct urn_sv_cm_id *id = make(rule[i].from);

			lose(k != 0);
			assert_int_equal(id->state, rule[i].to[k]);
			assert_int_equal(id->below, 0);
			next(id, rule[i].told[k][0]);
			next(id, rule[i].told[k][1]);
			next(id, URN_CM_EVENT_NONE);
			/* A second loss tells nothing: there is no adapter's id. */
			lose(k != 0);
			next(id, URN_CM_EVENT_NONE);
			urn_sv_cm_drop(id, &ids);
		}
}

/* The program ends a connection that nobody can end for it. */
static void
quit(void **state)
{
	struct urn_sv_cm_id *id = make(URN_SV_CM_UP);

	(void)state;
	lose(true);
	assert_int_equal(urn_sv_cm_quit(&ids, id), 0);
	next(id, URN_CM_EVENT_DISCONNECTED);
	next(id, URN_CM_EVENT_TIMEWAIT);
	next(id, URN_CM_EVENT_NONE);
	assert_int_equal(urn_sv_cm_quit(&ids, id), ENOTCONN);
	next(id, URN_CM_EVENT_NONE);
	id->state = URN_SV_CM_TOLD;
	assert_int_equal(urn_sv_cm_quit(&ids, id), 0);
	next(id, URN_CM_EVENT_TIMEWAIT);
	next(id, URN_CM_EVENT_NONE);
}

/* A connection ends as long as the loss was not noticed: the program is told then, and only once of
 * a connection whose end it was told of already. */
static void
quit_early(void **state)
{
	struct urn_sv_cm_id *id = make(URN_SV_CM_UP), *told = make(URN_SV_CM_TOLD),
			    *came = make(URN_SV_CM_CAME);

	(void)state;
	assert_int_equal(urn_sv_cm_quit(&ids, came), ENOTCONN);
	assert_int_equal(came->state, URN_SV_CM_CAME);
	assert_int_equal(urn_sv_cm_quit(&ids, told), 0);
	next(told, URN_CM_EVENT_TIMEWAIT);
	assert_int_equal(urn_sv_cm_quit(&ids, id), 0);
	next(id, URN_CM_EVENT_NONE);
	lose(true);
	next(id, URN_CM_EVENT_DISCONNECTED);
	next(id, URN_CM_EVENT_TIMEWAIT);
	next(id, URN_CM_EVENT_NONE);
}

/* A loss tells connections that live from those that do not, in one bucket, and each loss anew. */
static void
lives(void **state)
{
	struct urn_sv_cm_id *id = make(URN_SV_CM_UP), *other = make(URN_SV_CM_UP);

	(void)state;
	urn_sv_cm_of(&ids, other, QPN + URN_SV_CM_BUCKETS);
	lose(true);
	next(other, URN_CM_EVENT_DISCONNECT);
	next(id, URN_CM_EVENT_NONE);
	urn_sv_cm_below(&ids, id, BELOW);
	lose(false);
	next(id, URN_CM_EVENT_DISCONNECT);
}

/* A request is accepted once, and a datagram service has no more to come: its user hears of no
 * loss. An accept in vain leaves the request as it was. */
static void
accepts(void **state)
{
	static const enum urn_cm_event_type type[2] = {URN_CM_EVENT_REQUEST,
						       URN_CM_EVENT_SIDR_REQUEST};

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct urn_abi_cm_event ev = {.type = type[i], .id = BELOW + i, .cookie = COOKIE};
		struct urn_sv_cm_id *id;

		assert_int_equal(urn_sv_cm_came(&ids, &ev), 0);
		id = urn_sv_cm_find(&ids, ev.id);
		assert_true(urn_sv_cm_accepts(id));
		assert_false(urn_sv_cm_accepts(id));
		urn_sv_cm_unaccepts(id);
		assert_int_equal(id->state, URN_SV_CM_CAME);
		assert_true(urn_sv_cm_accepts(id));
		assert_int_equal(id->state, i == 0 ? URN_SV_CM_ANSWERED : URN_SV_CM_OVER);
		lose(false);
		next(id, i == 0 ? URN_CM_EVENT_UNREACHABLE : URN_CM_EVENT_NONE);
		urn_sv_cm_unaccepts(id);
		assert_int_equal(id->state, URN_SV_CM_OVER);
	}
}

/* A connection whose end LEAVE has told, and which the program then ends as well, ends once. */
static void
ended_twice(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_DISCONNECTED, .id = BELOW};
	struct urn_sv_cm_id *id = make(URN_SV_CM_UP);

	(void)state;
	urn_sv_cm_ended(&ids, QPN, true);
	next(id, URN_CM_EVENT_DISCONNECT);
	assert_int_equal(urn_sv_cm_came(&ids, &ev), EAGAIN);
	assert_int_equal(id->state, URN_SV_CM_OVER);
	ev.type = URN_CM_EVENT_TIMEWAIT;
	assert_int_equal(urn_sv_cm_came(&ids, &ev), 0);
}

/* The session layer learns of a connection's end: once, and the adapter's own news are not told
 * again. */
static void
ended(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_DISCONNECT, .id = BELOW};
	struct urn_sv_cm_id *id = make(URN_SV_CM_UP), *other = make(URN_SV_CM_UP);

	(void)state;
	urn_sv_cm_of(&ids, other, QPN + URN_SV_CM_BUCKETS);
	urn_sv_cm_drop(make(URN_SV_CM_UP), &ids);
	urn_sv_cm_ended(&ids, QPN, false); /* the adapter is there, and tells */
	next(id, URN_CM_EVENT_NONE);
	urn_sv_cm_ended(&ids, QPN, true);
	urn_sv_cm_ended(&ids, QPN, true);
	next(id, URN_CM_EVENT_DISCONNECT);
	next(id, URN_CM_EVENT_NONE);
	assert_int_equal(other->state, URN_SV_CM_UP);
	urn_sv_cm_drop(other, &ids);
	assert_int_equal(urn_sv_cm_came(&ids, &ev), EAGAIN);
}

/* The program has asked for the end, which the peer has heard by its session layer: nobody waits
 * until the adapter gives up asking. */
static void
ended_asked(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_DISCONNECTED, .id = BELOW};
	struct urn_sv_cm_id *id = make(URN_SV_CM_ENDS);

	(void)state;
	urn_sv_cm_ended(&ids, QPN, false);
	next(id, URN_CM_EVENT_NONE);
	urn_sv_cm_ended(&ids, QPN, true);
	urn_sv_cm_ended(&ids, QPN, true);
	next(id, URN_CM_EVENT_DISCONNECTED);
	next(id, URN_CM_EVENT_NONE);
	assert_int_equal(urn_sv_cm_came(&ids, &ev), EAGAIN);
	ev.type = URN_CM_EVENT_TIMEWAIT;
	assert_int_equal(urn_sv_cm_came(&ids, &ev), 0);
	assert_int_equal(ev.id, id->front);
}

/* The same of an id without an adapter; and of one that is destroyed before the program looks. */
static void
ended_lost(void **state)
{
	struct urn_sv_cm_id *id = make(URN_SV_CM_UP);

	(void)state;
	lose(true);
	urn_sv_cm_ended(&ids, QPN, false);
	assert_int_equal(id->state, URN_SV_CM_TOLD);
	urn_sv_cm_drop(id, &ids);
	next(id, URN_CM_EVENT_NONE);
}

/* Events of the adapter get the program's numbers, in each life of it. */
static void
numbers(void **state)
{
	struct urn_sv_cm_id *listener = make(URN_SV_CM_LISTENER), *id;
	struct urn_abi_cm_event ev;

	(void)state;
	for (uint32_t life = 0; life < 3; life++) {
		uint32_t below = life == 0 ? BELOW : BELOW + URN_SV_CM_BUCKETS * life;

		if (life != 0)
			urn_sv_cm_below(&ids, listener, below);
		ev = (struct urn_abi_cm_event){.type = URN_CM_EVENT_REQUEST,
					       .id = below + 1,
					       .listen_id = below,
					       .cookie = COOKIE};
		assert_int_equal(urn_sv_cm_came(&ids, &ev), 0);
		assert_int_equal(ev.listen_id, listener->front);
		id = urn_sv_cm_find(&ids, ev.id);
		assert_true(id != NULL && id != listener && id->state == URN_SV_CM_CAME);
		assert_int_equal(id->below, below + 1);
		urn_sv_cm_of(&ids, id, QPN);
		ev = (struct urn_abi_cm_event){.type = URN_CM_EVENT_ESTABLISHED, .id = below + 1};
		assert_int_equal(urn_sv_cm_came(&ids, &ev), 0);
		assert_true(ev.id == id->front && id->state == URN_SV_CM_UP);
		lose(true);
		/* Late news of an adapter that was lost. */
		ev.id = below + 1;
		assert_int_equal(urn_sv_cm_came(&ids, &ev), EAGAIN);
		next(id, URN_CM_EVENT_NONE);
	}
}

/* Without memory a request is the caller's to refuse. */
static void
memory(void **state)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_REQUEST, .id = BELOW};

	(void)state;
	no_memory = true;
	assert_int_equal(urn_sv_cm_came(&ids, &ev), ENOMEM);
	assert_int_equal(ev.id, BELOW);
}

/* No two ids have one number, also when numbers come again; and 0 is none. */
static void
unique(void **state)
{
	struct urn_sv_cm_id *first = make(URN_SV_CM_UP);

	(void)state;
	ids.next = UINT32_MAX - MANY / 2;
	for (uint32_t i = 0; i < MANY; i++) {
		const struct urn_sv_cm_id *id = urn_sv_cm_make(&ids, 0, URN_SV_CM_UP);

		assert_true(id != NULL && id->front != 0 && id->front != first->front);
		assert_ptr_equal(urn_sv_cm_find(&ids, id->front), id);
	}
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(lost),	  T(quit),    T(ended),	  T(ended_asked),
					   T(ended_lost), T(numbers), T(memory),  T(unique),
					   T(quit_early), T(lives),   T(accepts), T(ended_twice)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
