/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls inside a handler (AM-1): each function of urnic/am.h on the handler's own endpoint does
 * what it says, and on another endpoint of the program is refused and changes nothing. A child of
 * fork() that a function of the program made in the helper thread ends, and disturbs nobody.
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum { LEN = 4096, MEDDLE = 7 };

/* An endpoint, and all that calls on it need. */
struct subject {
	struct urn_am_endpoint *ep;
	struct urn_am_address address;
	struct urn_am_memory memory, more; /* more: to be removed */
	uint8_t *buf;			   /* LEN bytes */
	uint64_t key;			   /* key of a region over buf */
	struct urn_am_prepared request;	   /* made outside the handler */
	struct urn_am_prepared reply;
	struct urn_am_queue *queue;
	uint64_t token; /* token of the request whose handler runs */
	int number;	/* handler that runs; -1: none */
};

static void
subject_open(struct subject *s, struct urn_msg_dev *dev)
{
	struct urn_am_part part;

	memset(s, 0, sizeof(*s));
	s->ep = urn_am_endpoint_create(dev, &net_attr);
	assert_non_null(s->ep);
	assert_int_equal(urn_am_address(s->ep, 1, &s->address), 0);
	s->buf = urn_alloc(LEN);
	assert_non_null(s->buf);
	assert_int_equal(urn_am_memory_add(s->ep, s->buf, LEN, &s->memory), 0);
	part = (struct urn_am_part){&s->memory, s->buf, LEN};
	assert_int_equal(urn_am_region_create(s->ep, &part, 1, URN_AM_ACCESS_ALL, &s->key), 0);
	assert_int_equal(urn_am_request_prepare(s->ep, &s->address, 8, &s->request), 0);
	s->queue = urn_am_queue_create(0);
	assert_non_null(s->queue);
	s->more = s->memory;
	s->number = -1;
}

static void
subject_close(struct subject *s)
{
	urn_am_endpoint_destroy(s->ep);
	assert_int_equal(urn_am_queue_destroy(s->queue), 0);
	urn_free(s->buf);
}

/* ---- one function for each of urnic/am.h. returns: 0, or its errno value */

static int
do_request(struct subject *s)
{
	return urn_am_request(s->ep, &s->address, 1, NULL, 0, NULL, 0, NULL);
}

static int
do_request_prepare(struct subject *s)
{
	struct urn_am_prepared p;

	return urn_am_request_prepare(s->ep, &s->address, 8, &p);
}

static int
do_request_commit(struct subject *s)
{
	return urn_am_request_commit(s->ep, &s->request, 1, NULL, 0, 8, NULL);
}

static int
do_request_cancel(struct subject *s)
{
	return urn_am_request_cancel(s->ep, &s->request);
}

static int
do_reply_prepare(struct subject *s)
{
	return urn_am_reply_prepare(s->ep, s->token, 8, &s->reply);
}

static int
do_reply_commit(struct subject *s)
{
	return urn_am_reply_commit(s->ep, &s->reply, 1, NULL, 0, 8);
}

static int
do_reply(struct subject *s)
{
	return urn_am_reply(s->ep, s->token, 1, NULL, 0, NULL, 0);
}

static int
do_progress(struct subject *s)
{
	return urn_am_progress(s->ep) == 0 ? errno : -1;
}

static int
do_pending(struct subject *s)
{
	(void)urn_am_pending(s->ep);
	return errno;
}

static int
do_handle(struct subject *s)
{
	return urn_am_handle(s->ep, 9, NULL, NULL);
}

static int
do_on_failure(struct subject *s)
{
	urn_am_on_failure(s->ep, NULL, NULL);
	return errno;
}

static int
do_get_stats(struct subject *s)
{
	struct urn_am_stats stats;

	urn_am_get_stats(s->ep, &stats);
	return errno;
}

static int
do_address(struct subject *s)
{
	struct urn_am_address a;

	return urn_am_address(s->ep, 1, &a);
}

static int
do_error(struct subject *s)
{
	return urn_am_error(s->ep);
}

static int
do_last_stray(struct subject *s)
{
	struct urn_am_stray stray;

	return urn_am_last_stray(s->ep, URN_AM_STRAY_CAME, &stray);
}

static int
do_running(struct subject *s)
{
	return urn_am_running(s->ep) == s->number ? 0 : -1;
}

static int
do_destroy(struct subject *s)
{
	urn_am_endpoint_destroy(s->ep);
	return errno;
}

static int
do_memory_add(struct subject *s)
{
	return urn_am_memory_add(s->ep, s->buf, LEN, &s->more);
}

static int
do_memory_remove(struct subject *s)
{
	return urn_am_memory_remove(s->ep, &s->more);
}

static int
do_region_create(struct subject *s)
{
	struct urn_am_part part = {&s->memory, s->buf, LEN};
	uint64_t key;

	return urn_am_region_create(s->ep, &part, 1, URN_AM_ACCESS_ALL, &key);
}

static int
do_region_destroy(struct subject *s)
{
	return urn_am_region_destroy(s->ep, s->key);
}

static int
do_space_declare(struct subject *s)
{
	struct urn_am_part part = {&s->memory, s->buf, LEN};

	return urn_am_space_declare(s->ep, &part, 1, URN_AM_ACCESS_ALL);
}

/* An operation of the subject on its own memory. */
static struct urn_rma
operation(const struct subject *s)
{
	return (struct urn_rma){.to = &s->address,
				.remote = (uintptr_t)s->buf,
				.key = s->key,
				.memory = &s->memory,
				.local = s->buf + 8,
				.len = 8};
}

static int
do_write(struct subject *s)
{
	struct urn_rma op = operation(s);

	return urn_rma_write(s->ep, &op);
}

static int
do_read(struct subject *s)
{
	struct urn_rma op = operation(s);

	return urn_rma_read(s->ep, &op);
}

static int
do_vector(struct subject *s, bool write)
{
	struct urn_rma_piece piece = {(uintptr_t)s->buf, &s->memory, s->buf + 8, 8};
	struct urn_rma_vector v = {.to = &s->address, .key = s->key, .pieces = &piece, .n = 1};

	return write ? urn_rma_writev(s->ep, &v) : urn_rma_readv(s->ep, &v);
}

static int
do_writev(struct subject *s)
{
	return do_vector(s, true);
}

static int
do_readv(struct subject *s)
{
	return do_vector(s, false);
}

static int
do_atomic(struct subject *s)
{
	struct urn_rma_atomic op = {.to = &s->address,
				    .remote = (uintptr_t)s->buf,
				    .key = s->key,
				    .op = URN_AM_SWAP,
				    .size = 8};

	return urn_rma_atomic(s->ep, &op);
}

static int
do_atomicv(struct subject *s)
{
	struct urn_rma_word word = {.remote = (uintptr_t)s->buf, .op = URN_AM_SWAP, .size = 8};
	struct urn_rma_words v = {.to = &s->address, .key = s->key, .words = &word, .n = 1};

	return urn_rma_atomicv(s->ep, &v);
}

static int
do_flush(struct subject *s)
{
	return urn_rma_flush(s->ep, -1, NULL);
}

static int
do_flush_to(struct subject *s)
{
	return urn_rma_flush_to(s->ep, &s->address, -1, NULL);
}

static int
do_rma_pending(struct subject *s)
{
	(void)urn_rma_pending(s->ep);
	return errno;
}

static int
do_queue_add(struct subject *s)
{
	return urn_am_queue_add(s->queue, s->ep);
}

static int
do_queue_poll(struct subject *s)
{
	struct urn_am_event e;

	(void)urn_am_queue_poll(s->queue, &e, 1);
	return errno == EPERM ? EPERM : 0; /* the call's own reads leave other values */
}

static int
do_queue_arm(struct subject *s)
{
	return urn_am_queue_arm(s->queue) < 0 ? errno : 0;
}

static int
do_queue_wait(struct subject *s)
{
	struct urn_am_event e;

	return urn_am_queue_wait(s->queue, &e, 1, -1) == 0 ? errno : -1;
}

static int
do_queue_remove(struct subject *s)
{
	return urn_am_queue_remove(s->queue, s->ep);
}

static int
do_thread_start(struct subject *s)
{
	return urn_am_thread_start(s->ep);
}

static int
do_thread_stop(struct subject *s)
{
	return urn_am_thread_stop(s->ep);
}

/* The functions, in the order of their calls, and their results for the handler's own endpoint and
 * for another one. */
static const struct {
	const char *name;
	int (*call)(struct subject *s);
	int own, other;
} calls[] = {
	{"request", do_request, EPERM, EPERM},
	{"request_prepare", do_request_prepare, EPERM, EPERM},
	{"request_commit", do_request_commit, EPERM, EPERM},
	{"request_cancel", do_request_cancel, 0, EPERM},
	{"reply_prepare", do_reply_prepare, 0, EPERM},
	{"reply_commit", do_reply_commit, 0, EPERM},
	{"reply", do_reply, EALREADY, EPERM},
	{"progress", do_progress, 0, EPERM},
	{"pending", do_pending, 0, EPERM},
	{"handle", do_handle, 0, EPERM},
	{"on_failure", do_on_failure, 0, EPERM},
	{"get_stats", do_get_stats, 0, EPERM},
	{"last_stray", do_last_stray, ENOENT, EPERM},
	{"address", do_address, 0, 0},
	{"error", do_error, 0, 0},
	{"running", do_running, 0, 0},
	{"endpoint_destroy", do_destroy, EPERM, EPERM},
	{"memory_add", do_memory_add, 0, EPERM},
	{"memory_remove", do_memory_remove, 0, EPERM},
	{"region_create", do_region_create, 0, EPERM},
	{"region_destroy", do_region_destroy, 0, EPERM},
	{"space_declare", do_space_declare, 0, EPERM},
	{"write", do_write, EPERM, EPERM},
	{"read", do_read, EPERM, EPERM},
	{"writev", do_writev, EPERM, EPERM},
	{"readv", do_readv, EPERM, EPERM},
	{"atomic", do_atomic, EPERM, EPERM},
	{"atomicv", do_atomicv, EPERM, EPERM},
	{"flush", do_flush, EPERM, EPERM},
	{"flush_to", do_flush_to, EPERM, EPERM},
	{"rma_pending", do_rma_pending, 0, EPERM},
	{"queue_add", do_queue_add, 0, EPERM},
	{"queue_poll", do_queue_poll, 0, EPERM},
	{"queue_arm", do_queue_arm, 0, EPERM},
	{"queue_wait", do_queue_wait, EPERM, EPERM},
	{"queue_remove", do_queue_remove, 0, EPERM},
};

/* ---- in the handler */

struct scene {
	struct subject own, other;
	struct urn_am_endpoint *born; /* made inside the handler */
	struct urn_msg_dev *dev;
	char wrong[256]; /* the first surprise; empty: none */
	_Atomic unsigned int ran;
};

static void
say(struct scene *c, const char *what, const char *whose, int got)
{
	if (c->wrong[0] == '\0')
		snprintf(c->wrong, sizeof(c->wrong), "%s of the %s endpoint: %d, '%s'", what, whose,
			 got, urn_attach_error());
}

/* Call a function of another endpoint, which is refused with a sentence if at all. */
static void
try_other(struct scene *c, const char *name, int (*call)(struct subject *s), int want)
{
	int got;

	urn_fail(0, "nothing");
	errno = 0;
	got = call(&c->other);
	if (got != want || (want == EPERM && errno != EPERM) ||
	    (want == EPERM && strstr(urn_attach_error(), "own endpoint") == NULL))
		say(c, name, "other", got);
}

static void
meddle(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct scene *c = arg;
	bool threads = ep->thread != NULL;

	c->own.token = c->other.token = m->token;
	c->own.number = MEDDLE;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int got;

		try_other(c, calls[i].name, calls[i].call, calls[i].other);
		errno = 0;
		got = calls[i].call(&c->own);
		if (got != calls[i].own)
			say(c, calls[i].name, "own", got);
	}
	try_other(c, "thread_start", do_thread_start, EPERM);
	if (do_thread_start(&c->own) != (threads ? EALREADY : EPERM))
		say(c, "thread_start", "own", 0);
	if (do_thread_stop(&c->other) != (threads ? EDEADLK : EINVAL) ||
	    do_thread_stop(&c->own) != (threads ? EDEADLK : EINVAL))
		say(c, "thread_stop", "one", 0);
	c->born = urn_am_endpoint_create(c->dev, NULL);
	if (c->born == NULL)
		say(c, "endpoint_create", "new", errno);
	atomic_fetch_add(&c->ran, 1);
}

static void
until(struct net *n, struct scene *c, const _Atomic unsigned int *count, unsigned int want)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (atomic_load(count) < want) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(n->side[0].ep);
		(void)urn_am_progress(c->own.ep);
		(void)urn_am_progress(c->other.ep);
		sched_yield();
	}
}

/* The other endpoint is as it was: its region is there, and its prepared request is sent. */
static void
check_other(struct net *n, struct scene *c)
{
	struct side *a = &n->side[0];
	struct urn_rma op = {.to = &c->other.address,
			     .remote = (uintptr_t)c->other.buf,
			     .key = c->other.key,
			     .local = a->buf,
			     .len = LEN};

	memset(a->buf, 5, LEN);
	assert_int_equal(net_operate(n, a, true, op), URN_AM_DONE);
	assert_memory_equal(c->other.buf, a->buf, LEN);
	assert_int_equal(do_request_commit(&c->other), 0);
	assert_int_equal(do_queue_remove(&c->other), 0);
}

static void
meddle_all(struct net *n, bool threads)
{
	struct side *a = &n->side[0];
	struct scene c = {.dev = n->side[1].dev};

	subject_open(&c.own, c.dev);
	subject_open(&c.other, c.dev);
	assert_int_equal(urn_am_queue_add(c.other.queue, c.other.ep), 0);
	urn_am_handle(c.own.ep, MEDDLE, meddle, &c);
	if (threads) {
		assert_int_equal(urn_am_thread_start(c.own.ep), 0);
		assert_int_equal(urn_am_thread_start(c.other.ep), 0);
	}
	assert_int_equal(urn_am_request(a->ep, &c.own.address, MEDDLE, NULL, 0, NULL, 0, NULL), 0);
	until(n, &c, &c.ran, 1);
	if (c.wrong[0] != '\0')
		fail_msg("%s", c.wrong);
	net_until_quiet(n, a);
	check_other(n, &c);
	urn_am_endpoint_destroy(c.born);
	subject_close(&c.own);
	subject_close(&c.other);
}

static void
test_without_threads(void **state)
{
	meddle_all(*state, false);
}

static void
test_with_threads(void **state)
{
	meddle_all(*state, true);
}

/* ---- functions that are no handlers */

static void
ask_other(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	struct scene *c = arg;

	(void)ep;
	(void)bytes;
	if (code != URN_AM_DONE || do_request(&c->other) != 0 || do_write(&c->other) != 0)
		say(c, "request", "other", code);
	atomic_fetch_add(&c->ran, 1);
}

/* The function of an operation may call another endpoint. */
static void
test_function_of_an_operation(void **state)
{
	struct net *n = *state;
	struct scene c = {.dev = n->side[1].dev};
	struct urn_rma op;

	subject_open(&c.own, c.dev);
	subject_open(&c.other, c.dev);
	op = operation(&c.own);
	op.done = ask_other;
	op.arg = &c;
	assert_int_equal(urn_rma_write(c.own.ep, &op), 0);
	until(n, &c, &c.ran, 1);
	if (c.wrong[0] != '\0')
		fail_msg("%s", c.wrong);
	subject_close(&c.own);
	subject_close(&c.other);
}

int
main(void)
{
#define OVER(f, way)                                         \
	{                                                    \
#f " " #way, f, net_setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {
		BOTH(test_without_threads),
		BOTH(test_with_threads),
		BOTH(test_function_of_an_operation),
	};

	net_attr.wakes = 1;
	net_attr.answer_ms = 30000;
	net_unregistered = true;
	return cmocka_run_group_tests_name("am_inside", tests, NULL, NULL);
}
