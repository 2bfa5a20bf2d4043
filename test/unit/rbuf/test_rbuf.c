/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring in a peer's memory (lib/rbuf). The test is the queue pair: it places writes in their
 * order, one after the other, and looks at the reader in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rbuf/rbuf.h"

#include <errno.h>
#include <string.h>

enum { SIZE = 2048, GUARD = 512, MOST = 3000, STEPS = 4000 };

/* Memory of the reading side, with canaries around the ring, and of the writing side. */
struct pair {
	uint8_t mem[GUARD + SIZE + GUARD];
	struct urn_rbuf_note wrote, read; /* written by the writer; by the reader */
	struct urn_rbuf_out out;
	struct urn_rbuf_in in;
	uint64_t sent, seen; /* bytes appended and taken; byte n of the stream is byte_of(n) */
	uint32_t partial;    /* lines that data writes touched and did not cover */
} __attribute__((aligned(URN_RBUF_LINE_MAX)));

static uint8_t
byte_of(uint64_t n)
{
	return (uint8_t)(n * 2654435761u >> 13);
}

static uint32_t
next(uint64_t *rng)
{
	*rng = *rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*rng >> 33);
}

static void
open_pair(struct pair *p, uint32_t line, uint32_t how)
{
	memset(p, 0, sizeof(*p));
	memset(p->mem, 0xc5, sizeof(p->mem));
	assert_int_equal(urn_rbuf_out_init(&p->out, &p->read, SIZE, line, how), 0);
	assert_int_equal(urn_rbuf_in_init(&p->in, p->mem + GUARD, &p->wrote, SIZE), 0);
}

static void
expect_canaries(const struct pair *p)
{
	for (int i = 0; i < GUARD; i++) {
		assert_int_equal(p->mem[i], 0xc5);
		assert_int_equal(p->mem[GUARD + SIZE + i], 0xc5);
	}
}

/* All bytes that the reader is told of are there (AW-5). */
static void
look(const struct pair *p)
{
	uint64_t told = atomic_load(&p->wrote.bytes);

	for (uint64_t n = p->in.cons; n < told; n++)
		assert_int_equal(p->mem[GUARD + n % SIZE], byte_of(n));
}

static void
place(struct pair *p, const struct urn_rbuf_write *w, uint64_t first)
{
	uint32_t line = p->out.line ? p->out.line : 64, all = w->bytes + w->pad;

	if (w->note) {
		assert_int_equal(w->bytes, 8);
		atomic_store(&p->wrote.bytes, w->count);
		return;
	}
	assert_true(w->at + all <= SIZE);
	for (uint32_t i = 0; i < w->bytes; i++)
		p->mem[GUARD + w->at + i] = byte_of(first + w->from + i);
	memset(p->mem + GUARD + w->at + w->bytes, 0xee, w->pad);
	p->partial += w->at % line != 0;
	p->partial += (w->at + all) % line != 0;
	if (w->reshape)
		assert_true(w->at % line != 0);
}

/* Append, and place the writes one by one, looking at the reader after each. returns: bytes taken
 */
static uint32_t
append(struct pair *p, uint32_t bytes)
{
	struct urn_rbuf_write w[URN_RBUF_WRITES];
	uint64_t first = p->sent;
	uint32_t taken;
	int n = urn_rbuf_append(&p->out, bytes, w, &taken);

	assert_true(n >= 0 && n <= URN_RBUF_WRITES && (n > 0) == (taken > 0));
	p->sent += taken;
	for (int i = 0; i < n; i++) {
		assert_int_equal(w[i].note, i + 1 == n);
		place(p, &w[i], first);
		look(p);
	}
	if (n)
		assert_true(atomic_load(&p->wrote.bytes) == p->sent);
	return taken;
}

/* Take up to so many bytes. */
static void
take(struct pair *p, uint64_t most)
{
	struct urn_rbuf_write w;
	const uint8_t *at;
	uint64_t n;

	assert_int_equal(urn_rbuf_peek(&p->in, &at, &n), 0);
	if (n > most)
		n = most;
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(at[i], byte_of(p->seen + i));
	p->seen += n;
	if (urn_rbuf_take(&p->in, n, &w)) {
		assert_true(w.note && w.count == p->seen);
		atomic_store(&p->read.bytes, w.count);
	}
}

/* AW-8: the stream comes as it was sent, and nothing around the ring is touched, for each of the
 * strategies and lines. */
static void
streams(void **state)
{
	static const uint32_t lines[] = {0, 64, 128, 256};
	static struct pair p;
	uint64_t rng = 3;

	(void)state;
	for (uint32_t how = 0; how < 8; how++) {
		for (size_t l = 0; l < 4; l++) {
			open_pair(&p, lines[l], how);
			for (int i = 0; i < STEPS; i++) {
				if (next(&rng) % 2)
					append(&p, 1 + next(&rng) % (i % 3 ? 100 : MOST));
				else
					take(&p, 1 + next(&rng) % SIZE);
			}
			assert_true(p.seen > 100 * SIZE);
			expect_canaries(&p);
		}
	}
}

/* Rounding up and padding leave fewer lines that are stored to in part. */
static void
partial_stores(void **state)
{
	static struct pair p;
	uint32_t partial[8];

	(void)state;
	for (uint32_t how = 0; how < 8; how++) {
		open_pair(&p, 64, how);
		for (int i = 0; i < 100; i++) {
			assert_int_equal(append(&p, 333), 333);
			take(&p, SIZE);
			take(&p, SIZE);
			atomic_store(&p.read.bytes, p.seen);
		}
		partial[how] = p.partial;
	}
	assert_true(partial[URN_RBUF_PAD] < partial[0]);
	assert_true(partial[URN_RBUF_PAD | URN_RBUF_ROUND_UP] < partial[URN_RBUF_ROUND_UP]);
}

/* The shapes of one append to a place off the line. */
static void
shapes(void **state)
{
	struct urn_rbuf_write w[URN_RBUF_WRITES];
	static struct pair p;
	uint32_t taken;

	(void)state;
	open_pair(&p, 64, URN_RBUF_ROUND_UP);
	append(&p, 10);
	assert_int_equal(urn_rbuf_append(&p.out, 200, w, &taken), 3);
	assert_true(w[0].at == 64 && w[0].from == 54 && w[0].bytes == 146 && !w[0].reshape);
	assert_true(w[1].at == 10 && w[1].from == 0 && w[1].bytes == 54);
	assert_true(w[2].note && w[2].count == 210);

	open_pair(&p, 64, URN_RBUF_ROUND_UP | URN_RBUF_ONE | URN_RBUF_PAD);
	append(&p, 10);
	assert_int_equal(urn_rbuf_append(&p.out, 200, w, &taken), 2);
	assert_true(w[0].at == 10 && w[0].bytes == 200 && w[0].reshape && w[0].pad == 46);

	/* Less than a line remains behind the skipped part: one write. */
	open_pair(&p, 64, URN_RBUF_ROUND_UP);
	append(&p, 10);
	assert_int_equal(urn_rbuf_append(&p.out, 54 + 63, w, &taken), 2);
	/* Lines are not known (AW-2). */
	open_pair(&p, 0, URN_RBUF_ROUND_UP | URN_RBUF_PAD | URN_RBUF_ONE);
	append(&p, 10);
	assert_int_equal(urn_rbuf_append(&p.out, 200, w, &taken), 2);
	assert_true(w[0].at == 10 && w[0].pad == 0 && !w[0].reshape);
}

/* The pad does not reach bytes that the reader has not taken. */
static void
pad_keeps_to_free_bytes(void **state)
{
	struct urn_rbuf_write w[URN_RBUF_WRITES];
	static struct pair p;
	uint32_t taken;

	(void)state;
	open_pair(&p, 256, URN_RBUF_PAD);
	append(&p, SIZE - 10);
	take(&p, 20); /* not told yet */
	assert_int_equal(urn_rbuf_append(&p.out, 5, w, &taken), 2);
	assert_int_equal(taken, 5);
	assert_int_equal(w[0].pad, 5);
	assert_int_equal(urn_rbuf_append(&p.out, 100, w, &taken), 2);
	assert_int_equal(taken, 5); /* full */
	assert_int_equal(w[0].pad, 0);
	assert_int_equal(urn_rbuf_append(&p.out, 100, w, &taken), 0);
}

/* Counts that can't be are errors on both sides; so are sizes that are none. */
static void
peer_is_not_trusted(void **state)
{
	struct urn_rbuf_write w[URN_RBUF_WRITES];
	static struct pair p;
	const uint8_t *at;
	uint64_t n;
	uint32_t taken;

	(void)state;
	open_pair(&p, 64, 0);
	append(&p, 100);
	atomic_store(&p.read.bytes, 101);
	assert_int_equal(urn_rbuf_room(&p.out, &n), EPROTO);
	assert_int_equal(urn_rbuf_append(&p.out, 1, w, &taken), -EPROTO);
	assert_int_equal(taken, 0);
	atomic_store(&p.read.bytes, (uint64_t)0 - SIZE);
	assert_int_equal(urn_rbuf_room(&p.out, &n), EPROTO);
	atomic_store(&p.wrote.bytes, SIZE + 1);
	assert_int_equal(urn_rbuf_peek(&p.in, &at, &n), EPROTO);
	atomic_store(&p.wrote.bytes, SIZE);
	assert_int_equal(urn_rbuf_peek(&p.in, &at, &n), 0);
	assert_true(n == SIZE && at == p.mem + GUARD);

	assert_int_equal(urn_rbuf_out_init(&p.out, &p.read, 1000, 64, 0), EINVAL);
	assert_int_equal(urn_rbuf_out_init(&p.out, &p.read, 256, 64, 0), EINVAL);
	assert_int_equal(urn_rbuf_out_init(&p.out, &p.read, SIZE, 32, 0), EINVAL);
	assert_int_equal(urn_rbuf_in_init(&p.in, p.mem + 64, &p.wrote, SIZE), EINVAL);
	assert_int_equal(urn_rbuf_in_init(&p.in, p.mem, &p.wrote, 100), EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams),
		cmocka_unit_test(partial_stores),
		cmocka_unit_test(shapes),
		cmocka_unit_test(pad_keeps_to_free_bytes),
		cmocka_unit_test(peer_is_not_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
