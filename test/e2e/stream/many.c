/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many byte streams in one thread, by urn_stream_poll() and calls that do not wait: this program is
 * both nodes (stream.py).
 *
 * Usage: stream-many SOCKET ADDRESS PORT
 */
#include "../check.h"

#include <urnic/attach.h>
#include <urnic/stream.h>

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAIRS = 12, BYTES = 150000, ECHO = 3000, FDS = 2 * PAIRS + 2, WAIT_MS = 20000 };

static struct urn_stream *client[PAIRS], *server[PAIRS];
static struct urn_stream_listener *listener;
static uint64_t sent[PAIRS], back[PAIRS]; /* bytes of each client */
static uint8_t echo[PAIRS][ECHO];	  /* bytes that a server has to send back */
static size_t echo_from[PAIRS], echo_to[PAIRS];
static uint32_t accepted, ended;
static bool quiet[PAIRS]; /* the server has seen the end, and ended */
static int pipe_fd[2];

static uint8_t
byte_of(uint32_t i, uint64_t n)
{
	return (uint8_t)((n + i * 77) * 2654435761u >> 13);
}

static void
start(const char *socket, const char *address, uint16_t port, struct urn_stream_node *node[2])
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct ibv_context *ctx;

	for (int i = 0; i < 2; i++) {
		ctx = urn_attach_connect(socket, i ? "b" : "a");
		CHECK(ctx != NULL);
		EQUAL(urn_stream_node_open(&node[i], ctx), 0);
	}
	EQUAL(urn_stream_listen(&listener, node[1], port, PAIRS, NULL), 0);
	EQUAL(inet_pton(AF_INET, address, &to.sin_addr), 1);
	EQUAL(urn_stream_accept(&server[0], listener, URN_STREAM_DONTWAIT), EAGAIN);
	for (int i = 0; i < PAIRS; i++)
		EQUAL(urn_stream_connect(&client[i], node[0], (struct sockaddr *)&to, sizeof(to),
					 NULL, URN_STREAM_DONTWAIT),
		      0);
	EQUAL(pipe(pipe_fd), 0);
}

/* The client sends its bytes, then the end, and compares the ones that come back. */
static void
turn_client(uint32_t i)
{
	uint8_t buf[8000];
	size_t n = BYTES - sent[i] < sizeof(buf) ? BYTES - sent[i] : sizeof(buf);
	ssize_t got;

	for (size_t k = 0; k < n; k++)
		buf[k] = byte_of(i, sent[i] + k);
	got = n ? urn_stream_send(client[i], buf, n, URN_STREAM_DONTWAIT) : 0;
	CHECK(got > 0 || n == 0 || errno == EAGAIN);
	if (got > 0 && (sent[i] += (uint64_t)got) == BYTES)
		EQUAL(urn_stream_shutdown(client[i], SHUT_WR), 0);
	got = urn_stream_recv(client[i], buf, sizeof(buf), URN_STREAM_DONTWAIT);
	CHECK(got >= 0 || errno == EAGAIN);
	for (ssize_t k = 0; k < got; k++)
		EQUAL(buf[k], byte_of(i, back[i] + (uint64_t)k));
	if (got > 0)
		back[i] += (uint64_t)got;
	if (got != 0)
		return;
	EQUAL(back[i], BYTES);
	EQUAL(urn_stream_close(client[i]), 0);
	client[i] = NULL;
	ended++;
}

/* The server sends back all that comes, then the end. */
static void
turn_server(uint32_t i)
{
	ssize_t n;

	if (echo_from[i] == echo_to[i] && !quiet[i]) {
		n = urn_stream_recv(server[i], echo[i], ECHO, URN_STREAM_DONTWAIT);
		CHECK(n >= 0 || errno == EAGAIN);
		echo_from[i] = 0;
		echo_to[i] = n > 0 ? (size_t)n : 0;
		quiet[i] = n == 0;
		if (quiet[i])
			EQUAL(urn_stream_shutdown(server[i], SHUT_WR), 0);
	}
	if (echo_from[i] == echo_to[i])
		return;
	n = urn_stream_send(server[i], echo[i] + echo_from[i], echo_to[i] - echo_from[i],
			    URN_STREAM_DONTWAIT);
	CHECK(n > 0 || errno == EAGAIN);
	echo_from[i] += n > 0 ? (size_t)n : 0;
}

/* Wait for all that is open. returns: as urn_stream_poll() */
static int
wait_all(struct urn_stream_pollfd *f, int ms)
{
	size_t n = 0;

	f[n++] = (struct urn_stream_pollfd){.listener = listener, .events = POLLIN};
	f[n++] = (struct urn_stream_pollfd){.fd = pipe_fd[0], .events = POLLIN};
	for (uint32_t i = 0; i < PAIRS; i++) {
		if (client[i])
			f[n++] = (struct urn_stream_pollfd){
				.stream = client[i],
				.events = POLLIN | (sent[i] < BYTES ? POLLOUT : 0)};
		if (i < accepted && !quiet[i])
			f[n++] = (struct urn_stream_pollfd){
				.stream = server[i],
				.events = echo_from[i] < echo_to[i] ? POLLOUT : POLLIN};
	}
	return urn_stream_poll(f, n, ms);
}

static void
run(void)
{
	struct urn_stream_pollfd f[FDS];

	while (ended < PAIRS) {
		CHECK(wait_all(f, WAIT_MS) > 0);
		EQUAL(f[1].revents, 0);
		while (f[0].revents && accepted < PAIRS &&
		       urn_stream_accept(&server[accepted], listener, URN_STREAM_DONTWAIT) == 0)
			accepted++;
		for (uint32_t i = 0; i < PAIRS; i++)
			if (client[i])
				turn_client(i);
		for (uint32_t i = 0; i < accepted; i++)
			turn_server(i);
	}
	/* All is quiet: neither streams nor the listener nor the pipe are ready. */
	EQUAL(wait_all(f, 0), 0);
	EQUAL(write(pipe_fd[1], "x", 1), 1);
	EQUAL(wait_all(f, -1), 1);
	EQUAL(f[1].revents, POLLIN);
}

/* The system's poll(2) takes as many entries as a program may have open, and a stream has more
 * descriptors than entries there. */
static void
poll_packed(void)
{
	struct urn_stream_pollfd f[PAIRS];
	struct rlimit old, now;

	EQUAL(getrlimit(RLIMIT_NOFILE, &old), 0);
	now = old;
	now.rlim_cur = 2 * PAIRS + 1;
	EQUAL(setrlimit(RLIMIT_NOFILE, &now), 0);
	for (int i = 0; i < PAIRS; i++)
		f[i] = (struct urn_stream_pollfd){.stream = server[i], .events = POLLIN};
	EQUAL(urn_stream_poll(f, PAIRS, 0), PAIRS);
	EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
}

/* An end that closes before the other has looked: all bytes and the end come, and nothing is an
 * error. */
static void
close_first(struct urn_stream_node *node, const char *address, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct urn_stream_pollfd f = {.events = POLLOUT};
	struct urn_stream *own, *other;
	uint8_t buf[5000] = {0}, got[5000] = {1};

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = byte_of(9, i);
	EQUAL(inet_pton(AF_INET, address, &to.sin_addr), 1);
	EQUAL(urn_stream_connect(&own, node, (struct sockaddr *)&to, sizeof(to), NULL,
				 URN_STREAM_DONTWAIT),
	      0);
	EQUAL(urn_stream_accept(&other, listener, 0), 0);
	f.stream = own;
	EQUAL(urn_stream_poll(&f, 1, WAIT_MS), 1);
	EQUAL(urn_stream_send(own, buf, sizeof(buf), 0), sizeof(buf));
	EQUAL(urn_stream_close(own), 0);
	EQUAL(urn_stream_recv(other, got, sizeof(got), URN_STREAM_WAITALL), sizeof(got));
	EQUAL(memcmp(got, buf, sizeof(got)), 0);
	EQUAL(urn_stream_recv(other, got, sizeof(got), 0), 0);
	EQUAL(urn_stream_close(other), 0);
}

/* A connection that one end aborts: poll() of the other says so, and a call says why. */
static void
abort_one(struct urn_stream_node *node, const char *address, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct urn_stream_pollfd f = {.events = POLLIN};
	struct urn_stream *own, *other;
	uint8_t b;

	EQUAL(inet_pton(AF_INET, address, &to.sin_addr), 1);
	EQUAL(urn_stream_connect(&own, node, (struct sockaddr *)&to, sizeof(to), NULL,
				 URN_STREAM_DONTWAIT),
	      0);
	EQUAL(urn_stream_accept(&other, listener, 0), 0);
	f.stream = own;
	f.events = POLLOUT;
	EQUAL(urn_stream_poll(&f, 1, WAIT_MS), 1);
	EQUAL(f.revents, POLLOUT);
	EQUAL(urn_stream_abort(own), 0);
	f = (struct urn_stream_pollfd){.stream = other, .events = POLLIN};
	EQUAL(urn_stream_poll(&f, 1, WAIT_MS), 1);
	CHECK(f.revents & POLLHUP);
	EQUAL(urn_stream_recv(other, &b, 1, 0), -1);
	EQUAL(errno, ECONNRESET);
	CHECK(strstr(urn_stream_error(other), "ended the connection") != NULL);
	(void)urn_stream_close(other);
	EQUAL(urn_stream_close(own), 0);
}

int
main(int argc, char **argv)
{
	struct urn_stream_node *node[2];
	uint16_t port;

	EQUAL(argc, 4);
	port = (uint16_t)atoi(argv[3]);
	start(argv[1], argv[2], port, node);
	run();
	poll_packed();
	for (int i = 0; i < PAIRS; i++)
		EQUAL(urn_stream_close(server[i]), 0);
	abort_one(node[0], argv[2], port);
	close_first(node[0], argv[2], port);
	EQUAL(urn_stream_node_close(node[1]), EBUSY);
	EQUAL(urn_stream_listener_close(listener), 0);
	for (int i = 0; i < 2; i++)
		EQUAL(urn_stream_node_close(node[i]), 0);
	puts("all");
	return 0;
}
