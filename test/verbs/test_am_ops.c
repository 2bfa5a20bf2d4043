/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on remote memory as programs see them: atomic and vectored ones, fences and flushes
 * (AM-2, AM-3, AM-9, AM-11). */
#include "am_net.h"

#include "am/am.h"
#include "am/endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Offer all memory of a side for every access. returns: the key */
static uint64_t
offer(struct side *s, uint32_t access)
{
	struct urn_am_part part = {&s->memory, s->buf, MEM};
	uint64_t key = 0;

	memset(s->buf, 0, MEM);
	assert_int_equal(urn_am_region_create(s->ep, &part, 1, access, &key), 0);
	return key;
}

/* ---- atomic operations */

/* Issue an atomic operation, and wait. returns: its code */
static uint8_t
atomically(struct net *n, struct urn_rma_atomic op)
{
	struct side *s = &n->side[0];
	unsigned int done = s->done;

	op.done = net_note_done;
	op.arg = s;
	assert_int_equal(urn_rma_atomic(s->ep, &op), 0);
	net_until(n, &s->done, done + 1);
	return s->code;
}

/* AM-2, AM-11: each operation changes the word, and brings the value before. */
static void
test_atomic(void **state)
{
	struct net *n = *state;
	struct side *b = &n->side[1];
	_Atomic uint64_t *word = (void *)(b->buf + 64);
	uint64_t old = 0, counter = 0;
	struct urn_rma_atomic op = {.to = &b->address,
				    .remote = (uintptr_t)word,
				    .key = offer(b, URN_AM_ACCESS_ATOMIC),
				    .old = &old,
				    .counter = &counter,
				    .size = 8};

	atomic_store(word, 40);
	op.op = URN_AM_FETCH_ADD;
	op.value = 2;
	assert_int_equal(atomically(n, op), URN_AM_DONE);
	assert_true(old == 40 && atomic_load(word) == 42);
	assert_int_equal(n->side[0].bytes, 8);
	op.op = URN_AM_COMPARE_SWAP;
	op.compare = 41;
	op.value = UINT64_MAX;
	assert_int_equal(atomically(n, op), URN_AM_DONE);
	assert_true(old == 42 && atomic_load(word) == 42);
	op.compare = 42;
	assert_int_equal(atomically(n, op), URN_AM_DONE);
	assert_true(old == 42 && atomic_load(word) == UINT64_MAX);
	op.op = URN_AM_SWAP;
	op.size = 4;
	op.value = 7;
	assert_int_equal(atomically(n, op), URN_AM_DONE);
	assert_true(old == UINT32_MAX && atomic_load(word) == (UINT64_MAX << 32 | 7));
	assert_int_equal(counter, 4);
}

/* Errors name what is wrong, and leave the word and the place of the old value alone. */
static void
test_atomic_errors(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t old = 99, no_key = offer(b, URN_AM_ACCESS_WRITE | URN_AM_ACCESS_READ);
	struct urn_rma_atomic op = {.to = &b->address,
				    .remote = (uintptr_t)b->buf,
				    .key = offer(b, URN_AM_ACCESS_ATOMIC),
				    .old = &old,
				    .value = 1,
				    .size = 8,
				    .op = URN_AM_FETCH_ADD};

	op.remote += 4;
	assert_int_equal(urn_rma_atomic(a->ep, &op), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "not a multiple of its 8 bytes"));
	op.remote -= 4;
	op.size = 2;
	assert_int_equal(urn_rma_atomic(a->ep, &op), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "4 or 8 bytes"));
	op.size = 4;
	op.value = 1ull << 32;
	assert_int_equal(urn_rma_atomic(a->ep, &op), EINVAL);
	op.value = 1;
	op.op = URN_AM_READ;
	assert_int_equal(urn_rma_atomic(a->ep, &op), EINVAL);
	op.op = URN_AM_SWAP;
	op.flags = 1u << 31;
	assert_int_equal(urn_rma_atomic(a->ep, &op), EINVAL);
	op.flags = 0;
	op.key = no_key;
	assert_int_equal(atomically(n, op), URN_AM_RIGHTS);
	assert_int_equal(a->bytes, 0);
	op.key = 1;
	assert_int_equal(atomically(n, op), URN_AM_BAD_KEY);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(b->buf[i], 0);
	assert_int_equal(old, 99);
}

/* The target's program, which adds to the word with atomics of its own. */
static void *
add_own(void *arg)
{
	for (unsigned int i = 0; i < 100000; i++)
		atomic_fetch_add((_Atomic uint64_t *)arg, 1);
	return NULL;
}

/* Every addition counts once, also among the target program's own atomics, and each old value is
 * seen once. */
static void
test_atomics_agree(void **state)
{
	enum { ADDS = 4000 };
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	static uint64_t old[ADDS];
	_Atomic uint64_t *word = (void *)b->buf;
	struct urn_rma_atomic op = {.to = &b->address,
				    .remote = (uintptr_t)word,
				    .key = offer(b, URN_AM_ACCESS_ATOMIC),
				    .value = 1ull << 32,
				    .size = 8,
				    .op = URN_AM_FETCH_ADD,
				    .done = net_note_done,
				    .arg = a};
	unsigned int sent = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, add_own, word), 0);
	while (sent < ADDS) {
		int err;

		op.old = &old[sent];
		err = urn_rma_atomic(a->ep, &op);
		assert_true(err == 0 || err == EAGAIN);
		sent += err == 0;
		if (err)
			(void)urn_am_progress(a->ep);
	}
	net_until(n, &a->done, ADDS);
	pthread_join(thread, NULL);
	assert_true(atomic_load(word) == ((uint64_t)ADDS << 32 | 100000));
	for (unsigned int i = 0, k; i < ADDS; i++) { /* additions were in some order */
		assert_true(old[i] >> 32 < ADDS);
		for (k = 0; k < i && i % 50 == 0; k++)
			assert_true(old[k] >> 32 != old[i] >> 32);
	}
}

/* ---- several at a time */

enum { PIECES = 100, PIECE = 3000 };

/* Set pieces up that scatter local bytes over the target's memory. */
static void
scatter(struct net *n, struct urn_rma_piece *p)
{
	struct side *a = &n->side[0], *b = &n->side[1];

	for (uint32_t i = 0; i < PIECES; i++)
		p[i] = (struct urn_rma_piece){.remote = (uintptr_t)b->buf +
							(PIECES - i) * (PIECE + 100),
					      .memory = &a->memory,
					      .local = a->buf + i * PIECE,
					      .len = 1 + i * 29};
}

/* AM-2, AM-3: pieces go to their places and back, with one completion, which has their sum. */
static void
test_vectors(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_rma_piece p[PIECES];
	uint64_t counter = 0, sum = 0;
	struct urn_rma_vector v = {.to = &b->address,
				   .key = offer(b, URN_AM_ACCESS_ALL),
				   .pieces = p,
				   .n = PIECES,
				   .done = net_note_done,
				   .arg = a,
				   .counter = &counter};

	scatter(n, p);
	for (uint32_t i = 0; i < PIECES * PIECE; i++)
		a->buf[i] = (uint8_t)(i * 13 + i / 256);
	assert_int_equal(urn_rma_writev(a->ep, &v), 0);
	assert_int_equal(urn_rma_pending(a->ep), 1);
	net_until_quiet(n, a);
	for (uint32_t i = 0; i < PIECES; i++) {
		sum += p[i].len;
		assert_memory_equal((void *)(uintptr_t)p[i].remote, p[i].local, p[i].len);
		assert_int_equal(((uint8_t *)(uintptr_t)p[i].remote)[p[i].len], 0);
	}
	assert_true(a->done == 1 && counter == 1 && a->code == URN_AM_DONE && a->bytes == sum);
	memset(a->buf, 0, MEM);
	assert_int_equal(urn_rma_readv(a->ep, &v), 0);
	net_until(n, &a->done, 2);
	for (uint32_t i = 0; i < PIECES; i++)
		assert_memory_equal((void *)(uintptr_t)p[i].remote, p[i].local, p[i].len);
	assert_true(counter == 2 && a->bytes == sum);
}

/* All pieces are issued, or none: with too little room, and with a piece that makes no sense. */
static void
test_vectors_all_or_none(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_rma_piece p[PIECES];
	struct urn_rma_vector v = {.to = &b->address,
				   .key = offer(b, URN_AM_ACCESS_ALL),
				   .pieces = p,
				   .n = PIECES,
				   .done = net_note_done,
				   .arg = a};
	uint32_t commands;

	scatter(n, p);
	memset(a->buf, 0x5a, MEM);
	assert_int_equal(urn_rma_writev(a->ep, &v), 0);
	commands = a->ep->regs->client.commands;
	assert_int_equal(urn_rma_readv(a->ep, &v), EAGAIN); /* 128 have room */
	assert_true(a->ep->regs->client.commands == commands && urn_rma_pending(a->ep) == 1);
	net_until_quiet(n, a);
	p[99].len = 0;
	assert_int_equal(urn_rma_writev(a->ep, &v), EINVAL);
	p[99].len = 2;
	p[99].remote = UINT64_MAX;
	assert_int_equal(urn_rma_readv(a->ep, &v), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "2 bytes at 0xffffffffffffffff wraps around"));
	v.n = 0;
	assert_int_equal(urn_rma_writev(a->ep, &v), EINVAL);
	v.n = 129;
	assert_int_equal(urn_rma_writev(a->ep, &v), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "1 to 128 pieces"));
	assert_true(a->ep->regs->client.commands == commands && urn_rma_pending(a->ep) == 0);
	assert_int_equal(a->done, 1);
}

/* A piece that fails: one completion with the code of the first error, after all pieces ended, and
 * the bytes of the others. */
static void
test_vectors_fail_once(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_rma_piece p[PIECES];
	uint64_t counter = 0, sum = 0;
	struct urn_rma_vector v = {.to = &b->address,
				   .key = offer(b, URN_AM_ACCESS_ALL),
				   .pieces = p,
				   .n = PIECES,
				   .done = net_note_done,
				   .arg = a,
				   .counter = &counter};

	scatter(n, p);
	p[7].remote = (uintptr_t)b->buf + MEM;
	for (uint32_t i = 0; i < PIECES; i++)
		sum += i == 7 ? 0 : p[i].len;
	assert_int_equal(urn_rma_writev(a->ep, &v), 0);
	net_until_quiet(n, a);
	assert_true(a->done == 1 && counter == 0 && a->code == URN_AM_RANGE && a->bytes == sum);
}

/* Words are changed each in a step of its own; old values go to their places. */
static void
test_atomic_vectors(void **state)
{
	enum { WORDS = 64 };
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_rma_word w[WORDS];
	uint64_t old[WORDS], key = offer(b, URN_AM_ACCESS_ATOMIC);
	struct urn_rma_words v = {.to = &b->address,
				  .key = key,
				  .words = w,
				  .n = WORDS,
				  .done = net_note_done,
				  .arg = a};

	for (uint32_t i = 0; i < WORDS; i++) {
		w[i] = (struct urn_rma_word){.remote = (uintptr_t)b->buf + i / 2 * 8,
					     .value = 1,
					     .old = &old[i],
					     .op = URN_AM_FETCH_ADD,
					     .size = 8};
		old[i] = 77;
	}
	assert_int_equal(urn_rma_atomicv(a->ep, &v), 0);
	net_until_quiet(n, a);
	assert_true(a->done == 1 && a->code == URN_AM_DONE && a->bytes == WORDS * 8ull);
	for (uint32_t i = 0; i < WORDS; i++) {
		assert_int_equal(b->buf[i / 2 * 8], 2);
		assert_int_equal(old[i] + old[i ^ 1], 1); /* 0 and 1, in some order */
	}
	w[63].remote++;
	assert_int_equal(urn_rma_atomicv(a->ep, &v), EINVAL);
	v.n = 129;
	assert_int_equal(urn_rma_atomicv(a->ep, &v), EINVAL);
	v.n = WORDS;
	w[63].remote = (uintptr_t)b->buf + MEM;
	assert_int_equal(urn_rma_atomicv(a->ep, &v), 0);
	net_until_quiet(n, a);
	assert_true(a->code == URN_AM_RANGE && a->bytes == 63 * 8);
	assert_int_equal(b->buf[0], 4);
}

/* ---- order and end */

/* A flag that is written behind a fence never overtakes the data, and a fence takes a vector as one
 * operation. */
static void
test_fence(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t key = offer(b, URN_AM_ACCESS_ALL);
	struct urn_rma data = {.to = &b->address,
			       .key = key,
			       .remote = (uintptr_t)b->buf,
			       .memory = &a->memory,
			       .local = a->buf,
			       .len = 500000};
	_Atomic uint64_t *flag = (void *)(b->buf + MEM - 8);
	struct urn_rma_atomic up = {.to = &b->address,
				    .key = key,
				    .remote = (uintptr_t)flag,
				    .value = 1,
				    .op = URN_AM_FETCH_ADD,
				    .size = 8,
				    .flags = URN_RMA_FENCE};

	for (unsigned int round = 1; round <= 20; round++) {
		memset(a->buf, (int)round, data.len);
		assert_int_equal(urn_rma_write(a->ep, &data), 0);
		assert_int_equal(urn_rma_atomic(a->ep, &up), 0);
		while (atomic_load(flag) != round)
			(void)urn_am_progress(a->ep);
		assert_memory_equal(b->buf, a->buf, data.len);
		net_until_quiet(n, a);
	}
}

/* A flush waits for what was issued, reports the first error once, and gives up in time. */
static void
test_flush(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_rma op = {.to = &b->address,
			     .key = offer(b, URN_AM_ACCESS_ALL),
			     .remote = (uintptr_t)b->buf,
			     .memory = &a->memory,
			     .local = a->buf,
			     .len = MEM};
	uint8_t code = 99;

	memset(a->buf, 0x33, MEM);
	assert_int_equal(urn_rma_flush(a->ep, -1, &code), 0);
	assert_int_equal(code, 0);
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_rma_flush(a->ep, 0, &code), ETIMEDOUT);
	assert_int_equal(urn_rma_flush(a->ep, WAIT_MS, &code), 0);
	assert_int_equal(urn_rma_pending(a->ep), 0);
	assert_memory_equal(b->buf, a->buf, MEM);
	op.key++;
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_rma_flush(a->ep, WAIT_MS, &code), EREMOTEIO);
	assert_int_equal(code, URN_AM_BAD_KEY);
	assert_int_equal(urn_rma_flush(a->ep, WAIT_MS, &code), 0);
	/* An error that no function was told waits for the flush, for its target. */
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	net_until_quiet(n, a);
	assert_int_equal(urn_rma_flush_to(a->ep, &a->address, WAIT_MS, &code), 0);
	assert_int_equal(urn_rma_flush_to(a->ep, &b->address, WAIT_MS, &code), EREMOTEIO);
	assert_int_equal(code, URN_AM_BAD_KEY);
	assert_int_equal(urn_rma_flush(a->ep, WAIT_MS, NULL), 0);
}

/* Issue one more operation when one ends, without an end. */
static void
go_on(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	struct urn_rma *op = arg;

	(void)bytes;
	assert_int_equal(code, URN_AM_DONE);
	assert_int_equal(urn_rma_flush(ep, -1, NULL), EPERM);
	if (op->counter)
		assert_int_equal(urn_rma_write(ep, op), 0);
}

/* A flush does not wait for operations that were issued after its begin, nor for other targets. */
static void
test_flush_ends(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t counter = 0;
	struct urn_rma op = {.to = &b->address,
			     .key = offer(b, URN_AM_ACCESS_ALL),
			     .remote = (uintptr_t)b->buf,
			     .memory = &a->memory,
			     .local = a->buf,
			     .len = 8,
			     .done = go_on,
			     .arg = &op,
			     .counter = &counter};
	struct urn_am_address nobody = b->address;
	struct urn_rma lost = op;

	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_rma_flush(a->ep, WAIT_MS, NULL), 0);
	assert_true(urn_rma_pending(a->ep) == 1 && counter >= 1);
	/* The address of no node: its operation ends late. */
	nobody.node[15] ^= 0x55;
	lost.to = &nobody;
	lost.done = NULL;
	assert_int_equal(urn_rma_write(a->ep, &lost), 0);
	assert_int_equal(urn_rma_flush_to(a->ep, &b->address, WAIT_MS, NULL), 0);
	op.counter = NULL;
	net_until_quiet(n, a);
	assert_int_equal(urn_rma_flush_to(a->ep, &b->address, WAIT_MS, NULL), 0);
	assert_int_equal(urn_rma_flush(a->ep, WAIT_MS, NULL), EREMOTEIO);
}

/* ---- ways */

enum { PIPELINED_FROM = 1000, TAGGED_FROM = 3000 };

static int
thresholds_setup(void **state)
{
	int rc;

	net_attr.pipelined_from = PIPELINED_FROM;
	net_attr.tagged_from = TAGGED_FROM;
	rc = net_setup(state);
	net_attr.pipelined_from = net_attr.tagged_from = 0;
	return rc;
}

/* Write by a way of the dataplane's choice. returns: requests for tagged transfers that B got */
static uint64_t
tags_of_write(struct net *n, uint32_t len, uint64_t key)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t before = rig_counter(&n->rig, 1, URN_C_AM_TAG_REQUESTS);
	unsigned int done = a->done;
	struct urn_rma op = {.to = &b->address,
			     .remote = (uintptr_t)b->buf,
			     .key = key,
			     .memory = &a->memory,
			     .local = a->buf,
			     .len = len,
			     .done = net_note_done,
			     .arg = a};

	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	net_until(n, &a->done, done + 1);
	assert_int_equal(a->code, URN_AM_DONE);
	return rig_counter(&n->rig, 1, URN_C_AM_TAG_REQUESTS) - before;
}

/* AM-8: an endpoint has thresholds of its own, also below what one packet holds; others have those
 * of the configuration. */
static void
test_thresholds(void **state)
{
	struct net *n = *state;
	uint64_t key = offer(&n->side[1], URN_AM_ACCESS_WRITE);
	bool own = n->side[0].ep->attr.tagged_from != 0;

	assert_int_equal(tags_of_write(n, PIPELINED_FROM, key), 0);
	assert_int_equal(tags_of_write(n, TAGGED_FROM - 1, key), 0);
	assert_int_equal(tags_of_write(n, TAGGED_FROM, key), own);
	assert_int_equal(tags_of_write(n, URN_AM_TAGGED_FROM - 1, key), own);
	assert_int_equal(tags_of_write(n, URN_AM_TAGGED_FROM, key), 1);
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
		BOTH(test_atomic),
		BOTH(test_atomic_errors),
		BOTH(test_atomics_agree),
		BOTH(test_vectors),
		BOTH(test_vectors_all_or_none),
		BOTH(test_vectors_fail_once),
		BOTH(test_atomic_vectors),
		BOTH(test_fence),
		BOTH(test_flush),
		BOTH(test_flush_ends),
		BOTH(test_thresholds),
		{"test_thresholds of the endpoint", test_thresholds, thresholds_setup, net_teardown,
		 NULL},
		{"test_thresholds of the endpoint, socket", test_thresholds, thresholds_setup,
		 net_teardown, "socket"},
	};

	return cmocka_run_group_tests_name("am_ops", tests, NULL, NULL);
}
