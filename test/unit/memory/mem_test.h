/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the tests of memory/. */
#ifndef TEST_MEM_TEST_H
#define TEST_MEM_TEST_H

#include "memory/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RIGHTS                                                                       \
	(URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | \
	 URN_ACCESS_REMOTE_ATOMIC | URN_ACCESS_MW_BIND)

/* xorshift64*: the same numbers on every machine. */
static inline uint64_t
test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

static inline uint32_t
test_pd(struct urn_mem *mem)
{
	uint32_t pd = 0;

	assert_int_equal(urn_mem_alloc_pd(mem, &pd), 0);
	return pd;
}

/* A region whose iova is its address. */
static inline uint32_t
test_reg(struct urn_mem *mem, uint32_t pd, void *base, uint64_t length, uint32_t access)
{
	uint32_t key = 0;

	assert_int_equal(urn_mem_reg_mr(mem, pd, base, length, (uintptr_t)base, access, &key), 0);
	return key;
}

static inline void
test_dereg(struct urn_mem *mem, uint32_t key)
{
	struct urn_region *region = NULL;

	assert_int_equal(urn_mem_kill_mr(mem, key, &region), 0);
	urn_mem_free_mr(mem, region);
}

static inline uint32_t
test_mw(struct urn_mem *mem, uint32_t pd, int type)
{
	uint32_t rkey = 0;

	assert_int_equal(urn_mem_alloc_mw(mem, pd, type, &rkey), 0);
	return rkey;
}

/* Take a window away in both steps at once: no engine holds operations on it. returns 0 or EINVAL */
static inline int
test_dealloc_mw(struct urn_mem *mem, uint32_t rkey)
{
	struct urn_mem_dead dead;
	int rc = urn_mem_kill_mw(mem, rkey, &dead);

	if (rc == 0)
		urn_mem_free_mw(mem, &dead);
	return rc;
}

/* The key of the same index with the low byte increased by `n`. */
static inline uint32_t
test_next_key(uint32_t key, uint32_t n)
{
	return (key & ~0xffu) | ((key + n) & 0xff);
}

#endif
