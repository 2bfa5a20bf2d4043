/* SPDX-License-Identifier: BSD-3-Clause */
/* Meeting over TCP. The connection lasts until the end: when it closes, the other side is gone. */
#include "meet.h"

#include "common/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOR_EVER_NS (86400ull * 1000000000ull)
#define STEP_NS 10000000000ull

/* Every message, in one size. Host order: both sides are of one build, as MEET_MAGIC says. */
struct frame {
	uint32_t magic;
	uint32_t what; /* enum meet_what */
	uint32_t n;
	uint32_t rsvd; /* 0 */
	union {
		struct meet_peer peer;
		struct meet_end end;
	};
};
_Static_assert(sizeof(struct frame) == 224, "goes between programs");

struct meet_oob {
	struct meet m;
	int fd;
};

static const struct urn_tcp_wait step = {.limit_ns = STEP_NS, .listener = "urnic-perf --listen"};

static int
say(struct meet *m, enum meet_what what, uint32_t n, const struct meet_peer *peer,
    const struct meet_end *end, struct urn_err *err)
{
	struct meet_oob *t = (struct meet_oob *)m;
	struct frame f = {.magic = MEET_MAGIC, .what = what, .n = n};

	if (peer != NULL)
		f.peer = *peer;
	if (end != NULL)
		f.end = *end;
	return urn_tcp_write(t->fd, &f, sizeof(f), "the peer took a message", &step, err);
}

static int
oob_ask(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err)
{
	return say(m, MEET_ASK, n, own, NULL, err);
}

static int
oob_answer(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err)
{
	return say(m, MEET_ANSWER, n, own, NULL, err);
}

static int
oob_ready(struct meet *m, uint32_t n, struct urn_err *err)
{
	return say(m, MEET_READY, n, NULL, NULL, err);
}

static int
oob_end(struct meet *m, uint32_t n, const struct meet_end *end, bool ended, struct urn_err *err)
{
	return say(m, ended ? MEET_ENDED : MEET_END, n, NULL, end, err);
}

static int
oob_look(struct meet *m, struct meet_news *news, int ms, struct urn_err *err)
{
	struct meet_oob *t = (struct meet_oob *)m;
	struct pollfd p = {.fd = t->fd, .events = POLLIN};
	struct frame f;

	if (poll(&p, 1, ms) <= 0)
		return 0;
	if (urn_tcp_read(t->fd, &f, sizeof(f), "all was measured", &step, err) != 0)
		return -1;
	memset(news, 0, sizeof(*news));
	if (f.magic != MEET_MAGIC || f.what < MEET_ASK || f.what >= MEET_KINDS) {
		urn_err_set(err,
			    "the other side is no urnic-perf of this release; use one release on "
			    "both, and another port for other programs");
		return -1;
	}
	news->what = (enum meet_what)f.what;
	news->n = f.n;
	if (f.what == MEET_ASK || f.what == MEET_ANSWER)
		news->peer = f.peer;
	else
		news->end = f.end;
	news->end.text[sizeof(news->end.text) - 1] = '\0';
	return 1;
}

static void
oob_close(struct meet *m)
{
	struct meet_oob *t = (struct meet_oob *)m;

	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

static const struct meet_ops oob_ops = {
	.ask = oob_ask,
	.answer = oob_answer,
	.ready = oob_ready,
	.end = oob_end,
	.look = oob_look,
	.close = oob_close,
};

static int
await_peer(const struct perf_opts *o, struct urn_err *err)
{
	const struct urn_tcp_wait w = {.limit_ns = FOR_EVER_NS};
	int listener = urn_tcp_listen(o->host, o->port, err), fd;

	if (listener < 0)
		return -1;
	fprintf(stderr, "urnic-perf: waiting for the other side on port %s\n", o->port);
	fd = urn_tcp_accept(listener, &w, err);
	close(listener);
	return fd;
}

struct meet *
meet_oob_open(const struct perf_opts *o, struct urn_err *err)
{
	struct meet_oob *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		urn_err_set(err, "no memory to meet the other side");
		return NULL;
	}
	t->m.ops = &oob_ops;
	t->m.o = o;
	t->fd = o->role == PERF_LISTENS ? await_peer(o, err)
					: urn_tcp_connect(o->host, o->port, &step, err);
	if (t->fd >= 0)
		return &t->m;
	free(t);
	return NULL;
}
