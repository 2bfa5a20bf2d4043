/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An end of byte streams on a node of urnic (stream.py).
 *
 * Usage: stream-ends SOCKET NODE listen PORT
 *        stream-ends SOCKET NODE ADDRESS PORT MODE SEED BYTES [OPTION...]
 *
 * The server takes any number of connections, each in a thread of its own, and says a line about
 * the end of each. Options: read, write, copy: a forced kind of transfer; added: memory is
 * registered for long; small: small buffers. SOCKET is "session" for the virtual device that
 * URNIC_SESSION describes.
 */
#include "ends.h"

#include "../check.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* A connection of the server. */
struct served {
	struct urn_stream_node *node;
	struct urn_stream *s;
	uint32_t n; /* number of the connection, from 1 on */
};

static const char *const mode_name[] = {"exchange", "half", "ping", "hold", "drop", "gush", "idle"};

static struct ibv_context *
open_device(const char *socket, const char *name)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	int n;

	if (strcmp(socket, "session") != 0)
		return urn_attach_connect(socket, name);
	list = ibv_get_device_list(&n);
	if (list == NULL)
		return NULL;
	EQUAL(n, 1);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return ctx;
}

static struct urn_stream_node *
open_node(const char *socket, const char *name)
{
	struct ibv_context *ctx = open_device(socket, name);
	struct urn_stream_node *node = NULL;

	if (!ctx || urn_stream_node_open(&node, ctx) != 0) {
		fprintf(stderr, "%s: %s\n", name, urn_attach_error());
		exit(1);
	}
	return node;
}

/* Be the honest end of a hostile peer. returns: as play() */
static int
suffer(struct urn_stream *s, const struct ends_wish *w)
{
	static uint8_t buf[ENDS_MOST];
	struct urn_stream_pollfd f = {.stream = s};
	ssize_t n = 0;

	CHECK(w->bytes <= sizeof(buf));
	if (w->mode == ENDS_GUSH)
		return urn_stream_send(s, buf, w->bytes, 0) < 0 ? errno : 0;
	EQUAL(urn_stream_poll(&f, 1, -1), 1);
	CHECK(f.revents & POLLHUP);
	/* Bytes that came before are the program's, then comes the error. */
	while ((n = urn_stream_recv(s, buf, sizeof(buf), 0)) > 0)
		;
	return n < 0 ? errno : 0;
}

/* Do what a client wishes, at either end. */
static int
play(struct urn_stream *s, struct urn_stream_node *node, const struct ends_wish *w, bool server,
     bool added)
{
	struct ends_memory m;
	int err;

	switch (w->mode) {
	case ENDS_EXCHANGE:
		return ends_exchange(s, node, w, server, added);
	case ENDS_PING:
		return ends_ping(s, w, server);
	case ENDS_HOLD:
		return ends_end(s);
	case ENDS_GUSH:
	case ENDS_IDLE:
		return server ? suffer(s, w) : EINVAL;
	default:
		break;
	}
	err = ends_memory_get(&m, node, added);
	if (!err && !server)
		err = ends_send(s, &m, w->seed, w->bytes, false);
	if (!err && !server && w->mode == ENDS_HALF)
		err = urn_stream_shutdown(s, SHUT_WR);
	if (!err && server)
		err = ends_recv(s, &m, w->seed, w->bytes, false);
	if (!err && server && w->mode == ENDS_HALF)
		err = ends_end(s);
	if (!err && server && w->mode == ENDS_DROP)
		err = urn_stream_shutdown(s, SHUT_RD);
	if (!err && server && w->mode == ENDS_HALF)
		err = ends_send(s, &m, w->seed + 7, w->bytes, false);
	if (!err && !server && w->mode == ENDS_HALF)
		err = ends_recv(s, &m, w->seed + 7, w->bytes, false);
	/* The reader has gone: sends end with an error sooner or later, without a wait. */
	while (!err && !server && w->mode == ENDS_DROP)
		if (urn_stream_send(s, m.buf, ENDS_MOST, 0) < 0)
			err = errno == EPIPE ? -1 : errno;
	ends_memory_put(&m);
	return err > 0 ? err : 0;
}

/* Say how a connection ended, and close it. returns: its error */
static int
finish(struct urn_stream *s, uint32_t n, const char *mode, int err)
{
	struct urn_stream_stats t;
	char why[256];
	int end;

	(void)urn_stream_get_stats(s, &t);
	snprintf(why, sizeof(why), "%s",
		 *urn_stream_error(s) ? urn_stream_error(s) : urn_attach_error());
	end = urn_stream_close(s);
	if (!err && end)
		snprintf(why, sizeof(why), "%s", urn_attach_error());
	err = err ? err : end;
	if (err)
		printf("%u: %s %s: %s\n", n, mode, strerrorname_np(err), why);
	else
		printf("%u: %s done, sent %llu, received %llu, copied %llu, offered %llu, written "
		       "%llu, "
		       "read %llu\n",
		       n, mode, (unsigned long long)t.sent, (unsigned long long)t.received,
		       (unsigned long long)t.copied, (unsigned long long)t.offered,
		       (unsigned long long)t.written, (unsigned long long)t.read);
	fflush(stdout);
	return err;
}

static void *
serve(void *arg)
{
	struct served *c = arg;
	struct ends_wish w;
	ssize_t got = urn_stream_recv(c->s, &w, sizeof(w), URN_STREAM_WAITALL);
	int err = got < 0 ? errno : 0;
	const char *mode = "nothing";

	if (!err && got == sizeof(w)) {
		EQUAL(w.magic, ENDS_MAGIC);
		CHECK(w.mode < ENDS_MODES);
		mode = mode_name[w.mode];
		err = play(c->s, c->node, &w, true, c->n & 1);
	}
	(void)finish(c->s, c->n, mode, err);
	free(c);
	return NULL;
}

static void
listen_for_ever(struct urn_stream_node *node, uint16_t port)
{
	struct urn_stream_listener *l;
	pthread_t thread;

	EQUAL(urn_stream_listen(&l, node, port, 0, NULL), 0);
	puts("listening");
	fflush(stdout);
	for (uint32_t n = 1;; n++) {
		struct served *c = calloc(1, sizeof(*c));
		int err;

		CHECK(c != NULL);
		c->node = node;
		c->n = n;
		err = urn_stream_accept(&c->s, l, 0);
		/* The threads still say how their connections ended. */
		if (err == EIO) {
			puts("0: the dataplane is gone");
			fflush(stdout);
			pthread_exit(NULL);
		}
		EQUAL(err, 0);
		EQUAL(pthread_create(&thread, NULL, serve, c), 0);
		EQUAL(pthread_detach(thread), 0);
	}
}

static void
take_option(struct urn_stream_options *o, bool *added, const char *name)
{
	if (strcmp(name, "read") == 0)
		o->transfer = URN_STREAM_READ;
	else if (strcmp(name, "write") == 0)
		o->transfer = URN_STREAM_WRITE;
	else if (strcmp(name, "copy") == 0)
		o->transfer = URN_STREAM_COPY;
	else if (strcmp(name, "small") == 0)
		o->size = 256, o->buffers = 2;
	else if (strcmp(name, "added") == 0)
		*added = true;
	else
		CHECK(!"an option");
}

static int
run_client(struct urn_stream_node *node, int argc, char **argv)
{
	struct ends_wish w = {ENDS_MAGIC, 0, strtoull(argv[6], NULL, 10),
			      strtoull(argv[7], NULL, 10)};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[4]))};
	struct urn_stream_options o = {0};
	struct urn_stream *s;
	bool added = false;
	int err;

	while (w.mode < ENDS_MODES && strcmp(mode_name[w.mode], argv[5]) != 0)
		w.mode++;
	CHECK(w.mode < ENDS_MODES);
	for (int i = 8; i < argc; i++)
		take_option(&o, &added, argv[i]);
	EQUAL(inet_pton(AF_INET, argv[3], &to.sin_addr), 1);
	err = urn_stream_connect(&s, node, (struct sockaddr *)&to, sizeof(to), &o, 0);
	if (err) {
		printf("0: connect %s: %s\n", strerrorname_np(err), urn_attach_error());
		return 2;
	}
	EQUAL(urn_stream_send(s, &w, sizeof(w), 0), sizeof(w));
	puts("up");
	fflush(stdout);
	return finish(s, 0, argv[5], play(s, node, &w, false, added)) ? 2 : 0;
}

int
main(int argc, char **argv)
{
	struct urn_stream_node *node;
	int code;

	CHECK(argc >= 5);
	node = open_node(argv[1], argv[2]);
	if (strcmp(argv[3], "listen") == 0)
		listen_for_ever(node, (uint16_t)atoi(argv[4]));
	CHECK(argc >= 8);
	code = run_client(node, argc, argv);
	EQUAL(urn_stream_node_close(node), 0);
	return code;
}
