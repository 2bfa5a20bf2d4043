/* SPDX-License-Identifier: BSD-3-Clause */
#include "repair_bench.h"

const struct probe_config usual = {.selective = true, .mtu = 256, .retry_cnt = 3};

void
writes(struct probe *p, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		probe_post(p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, first + i);
	for (uint32_t i = 0; i < n; i++)
		expect_frame(p, WRITE_ONLY, SQ(first + i));
	expect_silence(p);
}

void
all_sent(struct probe *p, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		expect_sent(p, first + i, SUCCESS);
	expect_no_cqe(p);
}

void
post_read(struct probe *p, uint32_t off, uint32_t packets, uint64_t wr_id)
{
	probe_post(p, URN_WR_RDMA_READ, 0, off, packets * 256, 0, wr_id);
}

void
expect_read(struct probe *p, uint32_t psn, uint32_t remote, uint32_t packets)
{
	const struct frame *f = expect_frame(p, READ_REQ, psn);

	assert_int_equal(f->va, PROBE_VA + remote);
	assert_int_equal(f->length, packets * 256);
}

void
respond(struct probe *p, uint32_t first, uint32_t n, uint32_t packets, uint8_t op)
{
	struct frame f = frame_of(op ? op : n == 0 ? READ_FIRST : n + 1 == packets ? READ_LAST : READ_MIDDLE,
				  PSN(first, n));

	f.len = 256;
	probe_fill(f.data, 256, 77, n * 256);
	probe_put(p, &f);
}
