/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-perf stream_bw and stream_lat: a byte stream between two nodes of a dataplane, a thread for
 * each. Calls of streams wait, so the engines are those of the dataplane's own process.
 *
 * Each send begins with its number, and B checks each number. B compares the first sends and every
 * COMPARE-th one byte by byte.
 */
#include "stream.h"

#include "perf.h"

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"

#include <urnic/attach.h>
#include <urnic/stream.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };
enum { PORT_FIRST = 20000, PORTS = 1000, COMPARE = 64, JOIN_LOOK_MS = 100 };

/* One end. */
struct stream_end {
	struct ibv_context *ctx;      /* owner */
	struct urn_stream_node *node; /* owner */
	struct urn_stream *s;	      /* owner; NULL: not connected */
	uint8_t *buf;		      /* o.size bytes; owner */
	bool added;		      /* the node has the memory */
};

struct stream_bench {
	struct stream_opts o;
	struct stream_end end[2];	      /* A, B */
	struct urn_stream_listener *listener; /* B's; owner */
	struct sockaddr_storage address;      /* B's */
	uint64_t warm;			      /* sends that do not count */
	uint64_t begin_ns, end_ns;	      /* clock of the sends that count */
	uint64_t checked;		      /* sends compared byte by byte */
	uint64_t done;			      /* sends that count, so far */
	struct urn_hist hist;		      /* half round trips, ns */
	struct urn_stream_stats stats;	      /* A's */
	struct urn_err err_b;		      /* error of B's thread; "": none */
	bool wrong;			      /* B found wrong bytes */
};

static int
failed(const char *what, struct urn_err *err)
{
	urn_err_set(err, "stream: cannot %s: %s", what, urn_attach_error());
	return -1;
}

/* ---- ends */

static int
end_open(struct stream_bench *b, unsigned int i, struct urn_err *err)
{
	struct stream_end *e = &b->end[i];

	e->ctx = perf_attach_other(b->o.attach, b->o.node[i], err);
	if (e->ctx == NULL)
		return -1;
	if (urn_stream_node_open(&e->node, e->ctx) != 0)
		return failed("open the streams of a node", err);
	e->buf = urn_alloc(b->o.size);
	if (e->buf == NULL)
		return failed("get memory", err);
	if (b->o.plain)
		return 0;
	if (urn_stream_memory_add(e->node, e->buf, b->o.size) != 0)
		return failed("register memory", err);
	e->added = true;
	return 0;
}

static void
end_close(struct stream_end *e)
{
	(void)urn_stream_close(e->s);
	if (e->added)
		(void)urn_stream_memory_remove(e->node, e->buf);
	if (e->node != NULL)
		(void)urn_stream_node_close(e->node);
	urn_free(e->buf);
	if (e->ctx != NULL)
		(void)ibv_close_device(e->ctx);
}

/* The address of node B, with a port. */
static int
find_address(struct stream_bench *b, struct urn_err *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&b->address;
	uint8_t index;
	union ibv_gid gid;

	if (perf_find_gid(b->end[1].ctx, false, &index, &gid, err) != 0)
		return -1;
	v4->sin_family = AF_INET;
	memcpy(&v4->sin_addr, gid.raw + 12, 4);
	return 0;
}

/* Listen at a port that is free: several urnic-perf may run at a time. */
static int
start_listening(struct stream_bench *b, struct urn_err *err)
{
	for (int i = 0; i < PORTS; i++) {
		uint16_t port = (uint16_t)(PORT_FIRST + i);

		((struct sockaddr_in *)&b->address)->sin_port = htons(port);
		if (urn_stream_listen(&b->listener, b->end[1].node, port, 1, NULL) == 0)
			return 0;
		if (errno != EADDRINUSE)
			break;
	}
	return failed("listen", err);
}

/* Wait until node B takes the connection and both ends are up, or a signal comes: B may have no
 * room for a stream, or node A no way to it. */
static int
wait_joined(struct stream_bench *b, struct urn_err *err)
{
	for (;;) {
		struct urn_stream *a = b->end[0].s, *other = b->end[1].s;
		struct urn_stream_pollfd f[] = {{.stream = a, .events = POLLOUT},
						{.listener = b->listener, .events = POLLIN}};

		if (urn_stop_requested()) {
			urn_err_set(err, "stream: stopped before the ends were connected");
			return -1;
		}
		if (urn_stream_poll(f, other == NULL ? 2 : 1, JOIN_LOOK_MS) < 0 && errno != EINTR)
			return failed("wait for a connection", err);
		if (f[0].revents & POLLHUP) {
			urn_err_set(err, "stream: cannot connect: %s", urn_stream_error(a));
			return -1;
		}
		if (other != NULL && f[0].revents & POLLOUT)
			return 0;
		if (other == NULL && f[1].revents &&
		    urn_stream_accept(&b->end[1].s, b->listener, URN_STREAM_DONTWAIT) != 0 &&
		    errno != EAGAIN)
			return failed("accept", err);
	}
}

static int
join(struct stream_bench *b, struct urn_err *err)
{
	const struct urn_stream_options o = {.transfer = b->o.transfer,
					     .zero_copy = b->o.zero_copy,
					     .frozen = b->o.zero_copy != 0};

	if (find_address(b, err) != 0 || start_listening(b, err) != 0)
		return -1;
	if (urn_stream_connect(&b->end[0].s, b->end[0].node, (struct sockaddr *)&b->address,
			       sizeof(struct sockaddr_in), &o, URN_STREAM_DONTWAIT) != 0)
		return failed("connect", err);
	return wait_joined(b, err);
}

/* ---- sends */

static uint8_t
body_of(uint64_t at)
{
	return (uint8_t)(at * 2654435761u >> 11);
}

static void
fill(const struct stream_bench *b)
{
	for (uint64_t i = 0; i < b->o.size; i++)
		b->end[0].buf[i] = body_of(i);
}

static void
stamp(const struct stream_bench *b, uint64_t n)
{
	memcpy(b->end[0].buf, &n, b->o.size < sizeof(n) ? b->o.size : sizeof(n));
}

/* Check send n in B's memory. */
static bool
is_right(struct stream_bench *b, uint64_t n)
{
	uint64_t head = b->o.size < sizeof(n) ? b->o.size : sizeof(n);
	const uint8_t *buf = b->end[1].buf;

	if (memcmp(buf, &n, head) != 0)
		return false;
	if (n >= COMPARE && n % COMPARE != 0)
		return true;
	for (uint64_t i = head; i < b->o.size; i++)
		if (buf[i] != body_of(i))
			return false;
	b->checked++;
	return true;
}

static bool
move(struct stream_end *e, uint64_t size, bool sends)
{
	ssize_t n = sends ? urn_stream_send(e->s, e->buf, size, 0)
			  : urn_stream_recv(e->s, e->buf, size, URN_STREAM_WAITALL);

	return n == (ssize_t)size;
}

static void *
run_b(void *arg)
{
	struct stream_bench *b = arg;
	struct stream_end *e = &b->end[1];

	for (uint64_t n = 0; n < b->warm + b->o.iters; n++) {
		if (n == b->warm)
			b->begin_ns = urn_clock_ns();
		if (!move(e, b->o.size, false) || (b->o.lat && !move(e, b->o.size, true))) {
			/* The end of the stream is A's doing: a signal, or an error of its own. */
			(void)failed("go on at B", &b->err_b);
			break;
		}
		if (!is_right(b, n)) {
			b->wrong = true;
			urn_err_set(&b->err_b, "stream: send %llu came with wrong bytes",
				    (unsigned long long)n);
			(void)urn_stream_abort(e->s);
			break;
		}
		b->done += n >= b->warm;
	}
	b->end_ns = urn_clock_ns();
	return NULL;
}

static int
run_a(struct stream_bench *b, struct urn_err *err)
{
	struct stream_end *e = &b->end[0];

	for (uint64_t n = 0; n < b->warm + b->o.iters && !urn_stop_requested(); n++) {
		uint64_t since = urn_clock_ns();

		stamp(b, n);
		if (!move(e, b->o.size, true) || (b->o.lat && !move(e, b->o.size, false)))
			return failed("go on at A", err);
		if (n >= b->warm)
			urn_hist_add(&b->hist, (urn_clock_ns() - since) / (b->o.lat ? 2 : 1));
	}
	return 0;
}

static int
run(struct stream_bench *b, struct urn_err *err)
{
	pthread_t thread;
	int rc;

	urn_hist_reset(&b->hist);
	b->warm = b->o.iters / 10 + 1;
	fill(b);
	if (pthread_create(&thread, NULL, run_b, b) != 0) {
		urn_err_set(err, "no thread for node B");
		return -1;
	}
	rc = run_a(b, err);
	(void)urn_stream_get_stats(b->end[0].s, &b->stats);
	if (rc != 0)
		(void)urn_stream_abort(b->end[0].s);
	else
		(void)urn_stream_shutdown(b->end[0].s, SHUT_WR);
	(void)pthread_join(thread, NULL);
	if (b->wrong || (b->err_b.text[0] != '\0' && rc == 0 && !urn_stop_requested())) {
		*err = b->err_b;
		rc = -1;
	}
	return rc;
}

/* ---- results */

static void
tell_json(const struct stream_bench *b, double seconds)
{
	struct urn_json j;

	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "op", b->o.lat ? "stream_lat" : "stream_bw");
	urn_json_u64(&j, "size", b->o.size);
	urn_json_u64(&j, "messages", b->done);
	urn_json_num(&j, "seconds", seconds, 6);
	urn_json_num(&j, "gbps", (double)b->done * (double)b->o.size * 8e-9 / seconds, 3);
	urn_json_num(&j, "msg_rate", (double)b->done / seconds, 1);
	urn_json_latency(&j, "latency_us", &b->hist);
	urn_json_u64(&j, "checked", b->checked);
	urn_json_u64(&j, "copied", b->stats.copied);
	urn_json_u64(&j, "offered", b->stats.offered);
	urn_json_u64(&j, "written", b->stats.written);
	urn_json_u64(&j, "tx_threshold", b->stats.tx_threshold);
	urn_json_end(&j);
}

static void
tell(const struct stream_bench *b)
{
	double seconds = (double)(b->end_ns - b->begin_ns) / 1e9;

	if (b->o.json) {
		tell_json(b, seconds);
		return;
	}
	printf("urnic-perf %s: %llu sends of %llu bytes in %.3f s\n",
	       b->o.lat ? "stream_lat" : "stream_bw", (unsigned long long)b->done,
	       (unsigned long long)b->o.size, seconds);
	printf("rate:     %.3f Gbit/s, %.0f sends a second\n",
	       (double)b->done * (double)b->o.size * 8e-9 / seconds, (double)b->done / seconds);
	printf("%s p50 %.2f us, p99 %.2f us\n", b->o.lat ? "half the round trip:" : "a send:  ",
	       (double)urn_hist_quantile(&b->hist, 0.5) / 1e3,
	       (double)urn_hist_quantile(&b->hist, 0.99) / 1e3);
	printf("ways:     %llu copied, %llu offered, %llu written\n",
	       (unsigned long long)b->stats.copied, (unsigned long long)b->stats.offered,
	       (unsigned long long)b->stats.written);
	printf("checked:  the number of each send, all bytes of %llu\n",
	       (unsigned long long)b->checked);
}

int
stream_main(int argc, char **argv)
{
	struct stream_bench *b = calloc(1, sizeof(*b));
	struct urn_err err = {{0}};
	int rc;

	if (b == NULL)
		return EXIT_FAILED;
	switch (stream_options_parse(argc - 1, argv + 1, &b->o, &err)) {
	case PERF_EXIT_OK:
		free(b);
		return EXIT_SUCCESS;
	case PERF_EXIT_USAGE:
		fprintf(stderr, "urnic-perf: %s\n", err.text);
		free(b);
		return EXIT_USAGE;
	default:
		break;
	}
	urn_stop_install();
	rc = end_open(b, 0, &err) || end_open(b, 1, &err) || join(b, &err) || run(b, &err) ? -1 : 0;
	if (rc == 0 && b->done)
		tell(b);
	else if (rc != 0)
		fprintf(stderr, "urnic-perf: %s\n", err.text);
	(void)urn_stream_listener_close(b->listener);
	/* B has the end of A's stream: its own end is what A waits for. */
	end_close(&b->end[1]);
	end_close(&b->end[0]);
	free(b);
	if (urn_stop_requested())
		return EXIT_SIGNAL + urn_stop_requested();
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILED;
}
