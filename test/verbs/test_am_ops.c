/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on remote memory as programs see them (AM-2, AM-9, AM-11). */
#include "am_net.h"

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
	};

	return cmocka_run_group_tests_name("am_ops", tests, NULL, NULL);
}
