/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads at one byte stream; this program is both nodes (stream.py). Threads poll it at
 * the same time; one polls beside another that receives; two send pieces of memory. Each wait ends
 * because of what another thread does; a wait that does not end is the fault that this test is for.
 *
 * Usage: stream-threads SOCKET ADDRESS PORT
 */
#include "../check.h"
#include "stream/shell/shell.h"

#include <urnic/attach.h>
#include <urnic/stream.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { POLLERS = 3, TURNS = 300, CALLS = 40, PIECES = 6, PIECE = 9000, SENDERS = 2 };
enum { WHOLE = PIECES * PIECE, DELAYS = 7, DELAY_US = 60, NOTICES = 20 };

static struct urn_stream *own, *other; /* ends on nodes a and b */
static pthread_barrier_t turn, awake;

static void
start(const char *socket, const char *address, uint16_t port, struct urn_stream_node *node[2])
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct urn_stream_pollfd f = {.events = POLLOUT};
	struct urn_stream_listener *listener;

	for (int i = 0; i < 2; i++) {
		struct ibv_context *ctx = urn_attach_connect(socket, i ? "b" : "a");

		CHECK(ctx != NULL);
		EQUAL(urn_stream_node_open(&node[i], ctx), 0);
	}
	EQUAL(urn_stream_listen(&listener, node[1], port, 1, NULL), 0);
	EQUAL(inet_pton(AF_INET, address, &to.sin_addr), 1);
	EQUAL(urn_stream_connect(&own, node[0], (struct sockaddr *)&to, sizeof(to), NULL,
				 URN_STREAM_DONTWAIT),
	      0);
	EQUAL(urn_stream_accept(&other, listener, 0), 0);
	f.stream = own;
	EQUAL(urn_stream_poll(&f, 1, -1), 1);
	f.stream = other;
	EQUAL(urn_stream_poll(&f, 1, -1), 1);
	EQUAL(urn_stream_listener_close(listener), 0);
}

static void
send_byte(struct urn_stream *s)
{
	EQUAL(urn_stream_send(s, "x", 1, 0), 1);
}

static void
recv_byte(struct urn_stream *s)
{
	char b;

	EQUAL(urn_stream_recv(s, &b, 1, 0), 1);
	EQUAL(b, 'x');
}

static void
wait_for(struct urn_stream *s, short events)
{
	struct urn_stream_pollfd f = {.stream = s, .events = events};

	EQUAL(urn_stream_poll(&f, 1, -1), 1);
	EQUAL(f.revents, events);
}

/* ---- threads that poll at the same time */

static void *
poll_turns(void *arg)
{
	for (unsigned int i = 0; i < TURNS; i++) {
		wait_for(own, POLLIN);
		/* All have seen the byte; then it is taken. */
		(void)pthread_barrier_wait(&turn);
		(void)pthread_barrier_wait(&turn);
	}
	return arg;
}

/* Each byte wakes all that poll. */
static void
poll_together(void)
{
	pthread_t thread[POLLERS];

	EQUAL(pthread_barrier_init(&turn, NULL, POLLERS + 1), 0);
	for (int i = 0; i < POLLERS; i++)
		EQUAL(pthread_create(&thread[i], NULL, poll_turns, NULL), 0);
	for (unsigned int i = 0; i < TURNS; i++) {
		usleep(i % DELAYS * DELAY_US);
		send_byte(other);
		(void)pthread_barrier_wait(&turn);
		recv_byte(own);
		(void)pthread_barrier_wait(&turn);
	}
	for (int i = 0; i < POLLERS; i++)
		EQUAL(pthread_join(thread[i], NULL), 0);
	EQUAL(pthread_barrier_destroy(&turn), 0);
}

/* ---- a thread that polls beside one that receives */

static void *
poll_out(void *arg)
{
	for (unsigned int i = 0; i < TURNS; i++) {
		(void)pthread_barrier_wait(&turn);
		wait_for(own, POLLOUT);
		(void)pthread_barrier_wait(&awake);
		(void)pthread_barrier_wait(&turn);
	}
	return arg;
}

/* arg: turns */
static void *
recv_bytes(void *arg)
{
	unsigned int turns = *(const unsigned int *)arg;

	for (unsigned int i = 0; i < turns; i++) {
		(void)pthread_barrier_wait(&turn);
		recv_byte(own);
		(void)pthread_barrier_wait(&turn);
	}
	return arg;
}

/* Send until no buffer is free. returns: bytes */
static size_t
fill(uint8_t *buf, size_t room)
{
	size_t sent = 0;

	for (;;) {
		struct urn_stream_pollfd f = {.stream = own, .events = POLLOUT};
		ssize_t n = urn_stream_send(own, buf, room, URN_STREAM_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		else
			EQUAL(errno, EAGAIN);
		/* Slots of messages on their way are free soon, and are no credit. */
		if (n < 0 && urn_stream_poll(&f, 1, DELAYS) == 0)
			return sent;
	}
}

/* A credit wakes the thread that polls, although the one that receives sees it first. */
static void
poll_beside_recv(void)
{
	static uint8_t buf[64 << 10];
	unsigned int turns = TURNS;
	pthread_t thread[2];

	EQUAL(pthread_barrier_init(&turn, NULL, 3), 0);
	EQUAL(pthread_barrier_init(&awake, NULL, 2), 0);
	EQUAL(pthread_create(&thread[0], NULL, poll_out, NULL), 0);
	EQUAL(pthread_create(&thread[1], NULL, recv_bytes, &turns), 0);
	for (unsigned int i = 0; i < TURNS; i++) {
		size_t left = fill(buf, sizeof(buf));

		(void)pthread_barrier_wait(&turn);
		usleep(i % DELAYS * DELAY_US);
		while (left) {
			size_t most = left < sizeof(buf) ? left : sizeof(buf);
			ssize_t n = urn_stream_recv(other, buf, most, 0);

			CHECK(n > 0);
			left -= (size_t)n;
		}
		/* The byte comes when the one that polls is awake, so it is not the byte that wakes
		 * it. */
		(void)pthread_barrier_wait(&awake);
		send_byte(other);
		(void)pthread_barrier_wait(&turn);
	}
	for (int i = 0; i < 2; i++)
		EQUAL(pthread_join(thread[i], NULL), 0);
	EQUAL(pthread_barrier_destroy(&turn), 0);
	EQUAL(pthread_barrier_destroy(&awake), 0);
}

/* ---- a notice that comes behind the last look of a call that polls */

static size_t unread; /* bytes that `other` has to take before `own` has a credit */
static bool sent;     /* the byte of this turn is on its way */

/* Receive all that waits: the other end gets credits. */
static void
drain(void)
{
	static uint8_t buf[64 << 10];

	while (unread) {
		size_t most = unread < sizeof(buf) ? unread : sizeof(buf);
		ssize_t n = urn_stream_recv(other, buf, most, 0);

		CHECK(n > 0);
		unread -= (size_t)n;
	}
}

/* True when the thread that receives sleeps on the descriptors. */
static bool
receiver_sleeps(void)
{
	bool leads;

	(void)pthread_mutex_lock(&own->lock);
	leads = own->leading;
	(void)pthread_mutex_unlock(&own->lock);
	return leads;
}

/* The sleep of a call that polls. When the call has found the stream ready, and sleeps no more, a
 * byte comes. This thread runs and the one that receives sleeps, so this one takes the notice, by
 * the second of its descriptors, but for a few times. */
static int
sleep_late(struct pollfd *fds, size_t n, int ms, void *arg)
{
	int count;

	(void)arg;
	if (unread)
		drain();
	if (ms != 0 || sent)
		return poll(fds, n, ms);
	while (!receiver_sleeps())
		usleep(DELAY_US);
	sent = true;
	send_byte(other);
	do
		count = poll(fds, n, 0);
	while (!fds[1].revents && receiver_sleeps());
	return count;
}

/* Stay on this processor. before: set to the processors that the thread had */
static void
stay_here(cpu_set_t *before)
{
	cpu_set_t one;

	EQUAL(sched_getaffinity(0, sizeof(*before), before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	EQUAL(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* A call that polls, takes a notice and ends leaves no thread asleep that receives. */
static void
poll_takes_notice(void)
{
	/* A call for streams alone ends without a look at descriptors when one is ready. */
	struct urn_stream_pollfd f[] = {{.stream = own, .events = POLLOUT}, {.fd = -1}};
	const struct urn_sh_poll call = {.fds = f, .n = 2, .sleep = sleep_late};
	static uint8_t buf[64 << 10];
	unsigned int turns = NOTICES, taken = 0;
	cpu_set_t before;
	pthread_t thread;

	/* On one processor the thread that sleeps runs after this one has taken the notice. */
	stay_here(&before);
	EQUAL(pthread_barrier_init(&turn, NULL, 2), 0);
	EQUAL(pthread_create(&thread, NULL, recv_bytes, &turns), 0);
	/* Such a thread does not take the processor when it is woken, and gets its share of it. */
	EQUAL(pthread_setschedparam(thread, SCHED_BATCH, &(struct sched_param){0}), 0);
	for (unsigned int i = 0; i < turns; i++) {
		unread = fill(buf, sizeof(buf));
		sent = false;
		(void)pthread_barrier_wait(&turn);
		usleep(i % DELAYS * DELAY_US);
		EQUAL(urn_sh_poll(&call, -1), 1);
		EQUAL(f[0].revents, POLLOUT);
		taken += sent;
		/* A machine without a free processor may fill less than all. */
		drain();
		if (!sent)
			send_byte(other);
		(void)pthread_barrier_wait(&turn);
	}
	EQUAL(pthread_join(thread, NULL), 0);
	EQUAL(pthread_barrier_destroy(&turn), 0);
	EQUAL(sched_setaffinity(0, sizeof(before), &before), 0);
	EQUAL(taken > 0, true);
}

/* ---- a byte between the last look of a call that polls and its sleep */

static int sleeps; /* count of a call, since it began */

/* The sleep of a call that has found nothing: a byte comes, and then the call sleeps. */
static int
sleep_behind(struct pollfd *fds, size_t n, int ms, void *arg)
{
	(void)arg;
	if (ms != 0 && sleeps++ == 0)
		send_byte(other);
	return poll(fds, n, ms);
}

/* The byte ends the sleep, whatever notices of before a call has left. */
static void
poll_in_window(void)
{
	struct urn_stream_pollfd f = {.stream = own, .events = POLLIN};
	const struct urn_sh_poll call = {.fds = &f, .n = 1, .sleep = sleep_behind};

	for (unsigned int i = 0; i < TURNS; i++) {
		sleeps = 0;
		EQUAL(urn_sh_poll(&call, -1), 1);
		EQUAL(f.revents, POLLIN);
		CHECK(sleeps > 0);
		recv_byte(own);
		/* A byte that is taken without a sleep may leave a notice. */
		for (unsigned int k = 0; k < i % 3; k++) {
			send_byte(other);
			recv_byte(own);
		}
	}
}

/* The same beside a thread that receives, and takes the first byte with its notice: the second
 * byte, for which that thread does not look, ends the sleep. */
static int
sleep_robbed(struct pollfd *fds, size_t n, int ms, void *arg)
{
	(void)arg;
	if (ms != 0 && sleeps++ == 0) {
		while (!receiver_sleeps())
			usleep(DELAY_US);
		send_byte(other);
		(void)pthread_barrier_wait(&awake); /* the byte is received */
		send_byte(other);
	}
	return poll(fds, n, ms);
}

static void *
rob(void *arg)
{
	for (unsigned int i = 0; i < NOTICES; i++) {
		recv_byte(own);
		(void)pthread_barrier_wait(&awake);
		(void)pthread_barrier_wait(&turn);
	}
	return arg;
}

static void
poll_robbed(void)
{
	struct urn_stream_pollfd f = {.stream = own, .events = POLLIN};
	const struct urn_sh_poll call = {.fds = &f, .n = 1, .sleep = sleep_robbed};
	pthread_t thread;

	EQUAL(pthread_barrier_init(&turn, NULL, 2), 0);
	EQUAL(pthread_barrier_init(&awake, NULL, 2), 0);
	EQUAL(pthread_create(&thread, NULL, rob, NULL), 0);
	for (unsigned int i = 0; i < NOTICES; i++) {
		sleeps = 0;
		EQUAL(urn_sh_poll(&call, -1), 1);
		recv_byte(own);
		(void)pthread_barrier_wait(&turn);
	}
	EQUAL(pthread_join(thread, NULL), 0);
	EQUAL(pthread_barrier_destroy(&turn), 0);
	EQUAL(pthread_barrier_destroy(&awake), 0);
}

/* ---- threads that send pieces of memory */

static void *
send_pieces(void *arg)
{
	uint8_t *buf = calloc(PIECES, PIECE);
	struct iovec iov[PIECES];

	CHECK(buf != NULL);
	for (int i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){buf + (size_t)i * PIECE, PIECE};
	for (uint32_t i = 0; i < CALLS; i++) {
		memset(buf, (int)(SENDERS * i + *(uint32_t *)arg), WHOLE);
		EQUAL(urn_stream_sendv(own, iov, PIECES, 0), WHOLE);
	}
	free(buf);
	return NULL;
}

/* The pieces of a call come together: no byte of another call is between them. */
static void
send_in_turns(void)
{
	static uint8_t got[WHOLE];
	uint32_t number[SENDERS] = {0, 1};
	pthread_t thread[SENDERS];

	for (int i = 0; i < SENDERS; i++)
		EQUAL(pthread_create(&thread[i], NULL, send_pieces, &number[i]), 0);
	for (int i = 0; i < SENDERS * CALLS; i++) {
		EQUAL(urn_stream_recv(other, got, WHOLE, URN_STREAM_WAITALL), WHOLE);
		for (int k = 1; k < WHOLE; k++)
			EQUAL(got[k], got[0]);
	}
	for (int i = 0; i < SENDERS; i++)
		EQUAL(pthread_join(thread[i], NULL), 0);
}

int
main(int argc, char **argv)
{
	struct urn_stream_node *node[2];

	EQUAL(argc, 4);
	start(argv[1], argv[2], (uint16_t)atoi(argv[3]), node);
	poll_together();
	puts("poll");
	poll_beside_recv();
	puts("credit");
	poll_takes_notice();
	puts("notice");
	poll_in_window();
	puts("window");
	poll_robbed();
	puts("robbed");
	send_in_turns();
	EQUAL(urn_stream_shutdown(own, SHUT_WR), 0);
	EQUAL(urn_stream_close(other), 0);
	EQUAL(urn_stream_close(own), 0);
	for (int i = 0; i < 2; i++)
		EQUAL(urn_stream_node_close(node[i]), 0);
	puts("all");
	return 0;
}
