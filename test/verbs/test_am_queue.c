/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of events: operations that end while their program sleeps (AM-2, AM-3, AM-11). */
#include "am_net.h"

#include "am/endpoint.h"

#include "abi/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct urn_am_queue *
make_queue(uint32_t entries, struct side *s)
{
	struct urn_am_queue *q = urn_am_queue_create(entries);

	assert_non_null(q);
	assert_int_equal(urn_am_queue_add(q, s->ep), 0);
	return q;
}

/* A write of 8 bytes from side 0 to side 1, whose end is an event. */
static struct urn_rma
make_write(struct net *n)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, MEM};
	struct urn_rma op = {.to = &b->address,
			     .remote = (uintptr_t)b->buf,
			     .memory = &a->memory,
			     .local = a->buf,
			     .len = 8,
			     .flags = URN_RMA_EVENT};

	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &op.key), 0);
	return op;
}

/* Events come once, with argument, code and bytes; also those of errors, and of vectors. */
static void
test_events(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0];
	struct urn_am_queue *q = make_queue(0, a);
	struct urn_rma op = make_write(n);
	struct urn_rma_piece pieces[3] = {{op.remote, op.memory, op.local, 5},
					  {op.remote + 8, op.memory, op.local, 6},
					  {op.remote + 16, op.memory, op.local, 7}};
	struct urn_rma_vector v = {.to = op.to,
				   .key = op.key,
				   .pieces = pieces,
				   .n = 3,
				   .arg = &v,
				   .flags = URN_RMA_EVENT};
	struct urn_am_event e[4];
	unsigned int seen = 0;

	op.arg = &op;
	assert_int_equal(urn_am_queue_poll(q, e, 4), 0);
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_am_queue_wait(q, e, 4, WAIT_MS), 1);
	assert_true(e[0].ep == a->ep && e[0].arg == &op && e[0].bytes == 8 && e[0].code == 0);
	op.key++;
	assert_int_equal(urn_rma_read(a->ep, &op), 0);
	assert_int_equal(urn_am_queue_wait(q, e, 4, -1), 1);
	assert_true(e[0].arg == &op && e[0].bytes == 0 && e[0].code == URN_AM_BAD_KEY);
	assert_int_equal(urn_rma_writev(a->ep, &v), 0);
	assert_int_equal(urn_am_queue_remove(q, a->ep), EBUSY);
	assert_int_equal(urn_am_queue_wait(q, e, 4, -1), 1);
	assert_true(e[0].arg == &v && e[0].bytes == 18 && e[0].code == 0);
	/* A function may be called besides. */
	op.key--;
	op.arg = a;
	op.done = net_note_done;
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	while (seen < 1)
		seen += urn_am_queue_wait(q, e, 4, WAIT_MS);
	assert_int_equal(a->done, 1);
	assert_int_equal(urn_am_queue_wait(q, e, 4, 10), 0);
	assert_int_equal(urn_am_queue_destroy(q), EBUSY);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_remove(q, a->ep), EINVAL);
	assert_int_equal(urn_rma_write(a->ep, &op), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "in no queue"));
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* Wait for events inside the function of an operation, whose own is there. arg: the queue */
static void
wait_inside(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	struct urn_am_event e;

	assert_true(code == URN_AM_DONE && bytes == 8);
	assert_int_equal(urn_am_queue_wait(arg, &e, 1, -1), 1);
	assert_ptr_equal(e.ep, ep);
	errno = 0;
	assert_int_equal(urn_am_queue_wait(arg, &e, 1, -1), 0);
	assert_int_equal(errno, EPERM);
	assert_non_null(strstr(urn_attach_error(), "may not wait"));
}

/* AM-1: a function that waits for events which can come after it only gets an error, and does not
 * hang. */
static void
test_wait_inside(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0];
	struct urn_am_queue *q = make_queue(0, a);
	struct urn_rma op = make_write(n);
	struct urn_am_event e;

	op.done = wait_inside;
	op.arg = q;
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	while (urn_rma_pending(a->ep) != 0)
		assert_int_equal(urn_am_queue_poll(q, &e, 1), 0);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* No event is lost for want of room: the operation is refused, and nothing is issued. */
static void
test_queue_bounds(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_queue *q = make_queue(5, a);
	struct urn_rma op = make_write(n);
	struct urn_am_event e[8];

	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_rma_write(a->ep, &op), EAGAIN);
	net_until_quiet(n, a);
	assert_int_equal(urn_rma_write(a->ep, &op), EAGAIN); /* five events wait */
	assert_int_equal(urn_am_queue_poll(q, e, 2), 2);
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_rma_write(a->ep, &op), EAGAIN);
	net_until_quiet(n, a);
	assert_int_equal(urn_am_queue_poll(q, e, 8), 5);
	assert_int_equal(urn_am_queue_poll(q, e, 8), 0);
	assert_null(urn_am_queue_create(65537));
	assert_int_equal(urn_am_queue_add(q, a->ep), EBUSY);
	assert_int_equal(urn_am_queue_add(q, b->ep), 0);
	/* An endpoint that ends takes its events, and the places of those to come. */
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	net_until_quiet(n, a);
	op.len = MEM;
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	(void)urn_am_memory_remove(a->ep, &a->memory);
	urn_am_endpoint_destroy(a->ep);
	assert_int_equal(urn_am_queue_poll(q, e, 8), 0);
	a->ep = urn_am_endpoint_create(a->dev, &net_attr);
	assert_non_null(a->ep);
	assert_int_equal(urn_am_memory_add(a->ep, a->buf, MEM, &a->memory), 0);
	assert_int_equal(urn_am_queue_add(q, a->ep), 0);
	op.len = 8;
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_rma_write(a->ep, &op), EAGAIN);
	net_until_quiet(n, a);
	assert_int_equal(urn_am_queue_poll(q, e, 8), 5);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_remove(q, b->ep), 0);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* Two endpoints share a queue; an endpoint without descriptors can't be in one. */
static void
test_shared(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_queue *q = make_queue(0, a);
	struct urn_rma op = make_write(n), back = op;
	struct urn_am_part part = {&a->memory, a->buf, MEM};
	struct urn_am_attr plain = {.queue = 1};
	struct urn_am_endpoint *other = urn_am_endpoint_create(a->dev, &plain);
	unsigned int of[2] = {0, 0};
	struct urn_am_event e[4];

	assert_non_null(other);
	assert_int_equal(urn_am_queue_add(q, other), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "wakes"));
	urn_am_endpoint_destroy(other);
	assert_int_equal(urn_am_queue_add(q, b->ep), 0);
	assert_int_equal(urn_am_region_create(a->ep, &part, 1, URN_AM_ACCESS_ALL, &back.key), 0);
	back.to = &a->address;
	back.remote = (uintptr_t)a->buf + 8;
	back.memory = &b->memory;
	back.local = b->buf + 8;
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(urn_rma_write(a->ep, &op), 0);
		assert_int_equal(urn_rma_write(b->ep, &back), 0);
	}
	while (of[0] + of[1] < 40) {
		uint32_t got = urn_am_queue_wait(q, e, 4, WAIT_MS);

		assert_true(got > 0);
		for (uint32_t i = 0; i < got; i++)
			of[e[i].ep == b->ep]++;
	}
	assert_true(of[0] == 20 && of[1] == 20);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_remove(q, b->ep), 0);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* Milliseconds of processor time that this thread has used. */
static uint64_t
cpu_ms(void)
{
	struct rusage r;

	assert_int_equal(getrusage(RUSAGE_THREAD, &r), 0);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

/* The armed descriptor stays silent for some milliseconds, but for late notices of ends that were
 * read already: one for each of the `ends` operations of the test so far, at most. */
static void
stays_silent(struct urn_am_queue *q, int ms, unsigned int ends)
{
	static unsigned int notices;
	struct pollfd p = {.fd = urn_am_queue_fd(q), .events = POLLIN};
	struct urn_am_event e;

	notices = ends == 0 ? 0 : notices;
	for (;;) {
		while (urn_am_queue_arm(q))
			assert_int_equal(urn_am_queue_poll(q, &e, 1), 0);
		if (poll(&p, 1, ms) == 0)
			return;
		assert_int_equal(urn_am_queue_poll(q, &e, 1), 0);
		assert_in_range(++notices, 1, ends);
	}
}

/* The program sleeps on the descriptor: an end wakes it, and time alone does not. */
static void
test_descriptor(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0];
	struct urn_am_queue *q = make_queue(0, a);
	struct urn_rma op = make_write(n);
	struct pollfd p = {.fd = urn_am_queue_fd(q), .events = POLLIN};
	struct urn_am_event e[4];
	uint64_t cpu;

	for (unsigned int i = 0; i < 50; i++) {
		uint32_t got = 0;

		stays_silent(q, i < 2 ? 100 : 0, i);
		assert_int_equal(urn_rma_write(a->ep, &op), 0);
		while (got == 0) {
			if (!urn_am_queue_arm(q))
				assert_int_equal(poll(&p, 1, WAIT_MS), 1);
			got = urn_am_queue_poll(q, e, 4);
		}
		assert_int_equal(got, 1);
	}
	cpu = cpu_ms();
	assert_int_equal(urn_am_queue_wait(q, e, 4, 500), 0);
	assert_true(cpu_ms() - cpu < 250);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* The program of the other side, which turns by its own queue alone. */
struct server {
	struct urn_am_queue *q;
	_Atomic bool stop;
};

static void *
serve(void *arg)
{
	struct server *s = arg;
	struct urn_am_event e;

	while (!atomic_load(&s->stop))
		assert_int_equal(urn_am_queue_wait(s->q, &e, 1, 200), 0);
	return NULL;
}

static void
answer(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	assert_int_equal(urn_am_reply(ep, m->token, 1, m->arg, m->args, m->data, m->len), 0);
}

static void
count_reply(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	(void)m;
	++*(unsigned int *)arg;
}

/* Messages wake, too: handlers of requests and replies run in a program that sleeps on its queue.
 */
static void
test_messages_wake(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct server server = {.q = make_queue(0, b)};
	struct urn_am_queue *q = make_queue(0, a);
	struct urn_am_event e;
	unsigned int sent = 0;
	pthread_t thread;

	urn_am_handle(a->ep, 1, count_reply, &a->replies);
	urn_am_handle(b->ep, 7, answer, b);
	assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);
	while (a->replies < 300) {
		int err = sent < 300
				  ? urn_am_request(a->ep, &b->address, 7, NULL, 0, &sent, 4, NULL)
				  : EAGAIN;

		sent += err == 0;
		if (err == EAGAIN)
			(void)urn_am_queue_wait(q, &e, 1, 20);
	}
	atomic_store(&server.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(a->failures, 0);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_destroy(q), 0);
	assert_int_equal(urn_am_queue_remove(server.q, b->ep), 0);
	assert_int_equal(urn_am_queue_destroy(server.q), 0);
}

/* The dataplane refuses a channel that is not there, and keeps one that an endpoint uses. */
static void
test_channels(void **state)
{
	struct net *n = *state;
	struct urn_am_endpoint *ep = n->side[0].ep;
	struct urn_abi_req open = {.op = URN_CTL_AM_OPEN},
			   end = {.op = URN_CTL_DESTROY_CHANNEL, .handle = (uint32_t)ep->channel};
	struct urn_abi_rep rep;

	open.am_open.entries = 4;
	open.am_open.ranges = 1;
	open.am_open.pd = ep->pd;
	open.am_open.channel_fd = 9999;
	assert_int_equal(urn_msg_dev_call(ep->dev, &open, &rep), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "channel 9999"));
	assert_int_equal(urn_msg_dev_call(ep->dev, &end, &rep), EBUSY);
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
		BOTH(test_events),	BOTH(test_queue_bounds),  BOTH(test_shared),
		BOTH(test_descriptor),	BOTH(test_messages_wake), OVER(test_channels, "socket"),
		BOTH(test_wait_inside),
	};

	net_attr.wakes = 1;
	return cmocka_run_group_tests_name("am_queue", tests, NULL, NULL);
}
