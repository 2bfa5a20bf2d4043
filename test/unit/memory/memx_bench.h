/* SPDX-License-Identifier: BSD-3-Clause */
/* An executor's memory and frames, for its tests. */
#ifndef TEST_MEMX_BENCH_H
#define TEST_MEMX_BENCH_H

#include "mem_test.h"

#include "abi/queue.h"

enum { FRAMES = 256, FRAME = 256, BYTES = 65536 };

/* The fields of an mbuf that the executor uses: no pool, no EAL. */
struct frame {
	struct rte_mbuf m;
	uint8_t priv[URN_PKT_PRIV];
	uint8_t data[FRAME];
};

struct fix {
	struct urn_mem *mem;
	uint32_t pd;
	struct urn_region *region, *other; /* regions of bytes[] at iova 1 << 40; of more[] */
	struct frame *frame;		   /* FRAMES of them */
	uint8_t *bytes, *more;
	uint64_t rng;
};

#define IOVA (1ull << 40)

int memx_setup(void **state);
int memx_teardown(void **state);
/* An operation on `len` bytes at `offset` of the region, with a frame by its number. */
struct urn_memop memx_op(struct fix *f, int kind, uint32_t frame, uint64_t offset, uint32_t len);
/* Operands of an atomic of that frame. */
uint64_t *memx_words(struct fix *f, uint32_t frame);
/* Fill with random bytes. */
void memx_fill(struct fix *f, uint8_t *p, size_t n);

#endif
