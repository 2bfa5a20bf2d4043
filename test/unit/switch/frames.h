/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for the tests of the switch. */
#ifndef URN_TEST_SWITCH_FRAMES_H
#define URN_TEST_SWITCH_FRAMES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/test_eal.h"

#include <string.h>

#include <rte_mbuf.h>

/*
 * A frame of len bytes (at least 18): zero addresses, type IPv4, its number, and bytes derived from
 * the number.
 */
static inline struct rte_mbuf *
frame_make(uint32_t number, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	uint8_t *p;

	assert_non_null(m);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	assert_non_null(p);
	memset(p, 0, 14);
	p[12] = 0x08;
	memcpy(p + 14, &number, 4);
	for (uint32_t i = 18; i < len; i++)
		p[i] = (uint8_t)(number * 7 + i);
	return m;
}

static inline uint32_t
frame_number(const struct rte_mbuf *m)
{
	uint32_t n;

	memcpy(&n, rte_pktmbuf_mtod_offset(m, uint8_t *, 14), 4);
	return n;
}

/* Number of free packets of the pool; the test's own leak check. */
static inline unsigned int
frames_free(void)
{
	return rte_mempool_avail_count(test_eal_pool());
}

/* Fixtures of a test, which must give back all packets of the pool. (frames.c) */
int frames_setup(void **state);
int frames_teardown(void **state);

#endif
