/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/test_mbuf.h"
#include "common/test_asan.h"
#include "common/test_eal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
	struct rte_mbuf m;
	uint8_t priv[TEST_EAL_PRIV];
} slot;

/* TEST_MBUF_MAX bytes with an unreadable page behind them. */
static uint8_t *
room(void)
{
	static uint8_t *base;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (base != NULL)
		return base;
	base = mmap(NULL, TEST_MBUF_MAX + page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED || mprotect(base + TEST_MBUF_MAX, page, PROT_NONE) != 0)
		abort();
	return base;
}

struct rte_mbuf *
test_mbuf_wrap(const uint8_t *frame, uint32_t len)
{
	uint8_t *base = room();
	uint8_t *at = base + TEST_MBUF_MAX - len;

	if (len > TEST_MBUF_MAX)
		abort();
	ASAN_UNPOISON_MEMORY_REGION(base, TEST_MBUF_MAX);
	if (len != 0)
		memcpy(at, frame, len);
	ASAN_POISON_MEMORY_REGION(base, TEST_MBUF_MAX - len);

	memset(&slot.m, 0, sizeof(slot.m));
	memset(slot.priv, 0xa5, sizeof(slot.priv));
	slot.m.buf_addr = at;
	slot.m.buf_len = (uint16_t)len;
	slot.m.data_len = (uint16_t)len;
	slot.m.pkt_len = len;
	slot.m.nb_segs = 1;
	slot.m.priv_size = TEST_EAL_PRIV;
	rte_mbuf_refcnt_set(&slot.m, 1);
	return &slot.m;
}
