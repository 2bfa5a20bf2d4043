/* SPDX-License-Identifier: BSD-3-Clause */
#include "memx_bench.h"

int
memx_setup(void **state)
{
	struct fix *f = calloc(1, sizeof(*f));
	uint32_t key, key2;

	f->mem = urn_mem_create(16, 1);
	f->pd = test_pd(f->mem);
	f->bytes = aligned_alloc(4096, BYTES);
	f->more = aligned_alloc(4096, BYTES);
	f->frame = aligned_alloc(64, FRAMES * sizeof(*f->frame));
	memset(f->bytes, 0, BYTES);
	memset(f->more, 0, BYTES);
	memset(f->frame, 0, FRAMES * sizeof(*f->frame));
	f->rng = 99;
	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->bytes, BYTES, IOVA, RIGHTS, &key), 0);
	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->more, BYTES, 0, RIGHTS, &key2), 0);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 0, 0, 0, 0, &f->region), 0);
	assert_int_equal(urn_mem_check(f->mem, key2, f->pd, 0, 0, 0, 0, 0, &f->other), 0);
	*state = f;
	return 0;
}

int
memx_teardown(void **state)
{
	struct fix *f = *state;

	urn_mem_destroy(f->mem);
	free(f->bytes);
	free(f->more);
	free(f->frame);
	free(f);
	return 0;
}

struct urn_memop
memx_op(struct fix *f, int kind, uint32_t frame, uint64_t offset, uint32_t len)
{
	return (struct urn_memop){
		.region = f->region,
		.addr = IOVA + offset,
		.frame = kind >= URN_MEMOP_CMP_SWAP ? NULL : f->frame[frame].data,
		.m = &f->frame[frame].m,
		.len = len,
		.kind = (uint8_t)kind,
		.status = 77,
	};
}

uint64_t *
memx_words(struct fix *f, uint32_t frame)
{
	return urn_pkt(&f->frame[frame].m)->record.operand;
}

void
memx_fill(struct fix *f, uint8_t *p, size_t n)
{
	while (n--)
		*p++ = (uint8_t)test_random(&f->rng);
}
