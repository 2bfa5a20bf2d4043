/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of a seed go over a stream and are compared. */
#include "ends.h"

#include "../check.h"

#include <pthread.h>

enum { PIECES = 5 };

static uint64_t
next(uint64_t *rng)
{
	*rng = *rng * 6364136223846793005ull + 1442695040888963407ull;
	return *rng >> 33;
}

/* Byte n of the stream of a seed. */
static uint8_t
byte_of(uint64_t seed, uint64_t n)
{
	return (uint8_t)((n + seed) * 2654435761u >> 13);
}

/* Sizes from one byte on, in each order of magnitude. */
static uint64_t
size(uint64_t *rng, uint64_t most)
{
	uint64_t n = 1 + next(rng) % (1ull << next(rng) % 22);

	n = n < ENDS_MOST ? n : ENDS_MOST;
	return n < most ? n : most;
}

int
ends_memory_get(struct ends_memory *m, struct urn_stream_node *node, bool added)
{
	int err = 0;

	m->buf = added ? urn_alloc(ENDS_MOST) : malloc(ENDS_MOST);
	m->added = added;
	CHECK(m->buf != NULL);
	if (added)
		err = urn_stream_memory_add(node, m->buf, ENDS_MOST);
	m->node = added && err == 0 ? node : NULL;
	return err;
}

void
ends_memory_put(struct ends_memory *m)
{
	if (m->node)
		EQUAL(urn_stream_memory_remove(m->node, m->buf), 0);
	if (m->added)
		urn_free(m->buf);
	else
		free(m->buf);
}

/* Cut memory into pieces, some of them empty. */
static void
cut(struct iovec *iov, uint8_t *buf, uint64_t bytes, uint64_t *rng)
{
	for (int i = 0; i < PIECES; i++) {
		uint64_t n = i + 1 < PIECES ? next(rng) % (bytes + 1) : bytes;

		iov[i] = (struct iovec){buf, n};
		buf += n;
		bytes -= n;
	}
}

/* One call, which may not have to wait. returns: as urn_stream_send() */
static ssize_t
one(struct urn_stream *s, bool sends, uint8_t *buf, uint64_t n, bool vec, uint64_t *rng)
{
	struct urn_stream_pollfd p = {.stream = s, .events = sends ? POLLOUT : POLLIN};
	uint32_t flags = vec && next(rng) % 3 == 0 ? URN_STREAM_DONTWAIT : 0;
	struct iovec iov[PIECES];
	ssize_t got;

	do {
		if (vec && next(rng) % 2) {
			cut(iov, buf, n, rng);
			got = sends ? urn_stream_sendv(s, iov, PIECES, flags)
				    : urn_stream_recvv(s, iov, PIECES, flags);
		} else {
			got = sends ? urn_stream_send(s, buf, n, flags)
				    : urn_stream_recv(s, buf, n, flags);
		}
	} while (got < 0 && errno == EAGAIN && urn_stream_poll(&p, 1, -1) == 1);
	return got;
}

int
ends_send(struct urn_stream *s, struct ends_memory *m, uint64_t seed, uint64_t bytes, bool vec)
{
	uint64_t rng = seed * 3 + 1;

	for (uint64_t at = 0; at < bytes;) {
		uint64_t n = size(&rng, bytes - at);
		ssize_t sent;

		for (uint64_t i = 0; i < n; i++)
			m->buf[i] = byte_of(seed, at + i);
		sent = one(s, true, m->buf, n, vec, &rng);
		if (sent < 0)
			return errno;
		/* The memory is the program's again. */
		memset(m->buf, 0xee, n);
		at += (uint64_t)sent;
	}
	return 0;
}

int
ends_recv(struct urn_stream *s, struct ends_memory *m, uint64_t seed, uint64_t bytes, bool vec)
{
	uint64_t rng = seed * 5 + 2;

	for (uint64_t at = 0; at < bytes;) {
		uint64_t n = size(&rng, bytes - at);
		ssize_t got;

		memset(m->buf, 0x11, n);
		got = one(s, false, m->buf, n, vec, &rng);
		if (got <= 0)
			return got ? errno : ENODATA;
		for (ssize_t i = 0; i < got; i++)
			EQUAL(m->buf[i], byte_of(seed, at + (uint64_t)i));
		at += (uint64_t)got;
	}
	return 0;
}

/* One direction of an exchange. */
struct way {
	struct urn_stream *s;
	struct ends_memory m;
	uint64_t seed, bytes;
	int err;
};

static void *
sender(void *arg)
{
	struct way *w = arg;

	w->err = ends_send(w->s, &w->m, w->seed, w->bytes, w->seed & 1);
	return NULL;
}

int
ends_exchange(struct urn_stream *s, struct urn_stream_node *node, const struct ends_wish *w,
	      bool server, bool added)
{
	struct way out = {.s = s, .seed = w->seed + server, .bytes = w->bytes};
	struct ends_memory in;
	pthread_t thread;
	int first = ends_memory_get(&out.m, node, added), err = ends_memory_get(&in, node, added);

	err = first ? first : err;
	if (!err) {
		EQUAL(pthread_create(&thread, NULL, sender, &out), 0);
		err = ends_recv(s, &in, w->seed + !server, w->bytes, w->seed & 1);
		EQUAL(pthread_join(thread, NULL), 0);
	}
	ends_memory_put(&out.m);
	ends_memory_put(&in);
	return err ? err : out.err;
}

int
ends_ping(struct urn_stream *s, const struct ends_wish *w, bool server)
{
	uint8_t b = 0;

	for (uint64_t i = 0; i < w->bytes; i++) {
		uint8_t want = byte_of(w->seed, i);

		if (!server && one(s, true, &want, 1, true, &(uint64_t){i}) != 1)
			return errno;
		if (one(s, false, &b, 1, true, &(uint64_t){i}) != 1)
			return errno;
		EQUAL(b, want);
		if (server && one(s, true, &b, 1, true, &(uint64_t){i}) != 1)
			return errno;
	}
	return 0;
}

int
ends_end(struct urn_stream *s)
{
	uint8_t b;
	ssize_t got = urn_stream_recv(s, &b, 1, 0);

	CHECK(got <= 0);
	return got ? errno : 0;
}
