/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address spaces of clients whose memory is foreign: their owners, and their end. test_foreign.c
 * has memory that stalls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "control/ctl.h"
#include "memory/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

/* Operations of a client count for its user, in this process or another. */
static void
whose(void **state)
{
	static uint8_t page[PAGE];
	struct ibv_mr *mr;
	struct rig r;

	(void)state;
	for (int remote = 0; remote < 2; remote++) {
		rig_open(&r, &(struct rig_config){.foreign = true, .remote = remote}, NULL);
		/* Another process hands its memory over with its first foreign region. */
		mr = ibv_reg_mr(r.end[1].pd, page, PAGE, RIGHTS);
		assert_non_null(mr);
		assert_int_equal(LIST_FIRST(&r.dp->adapter[1]->clients)->space->uid, geteuid());
		assert_int_equal(ibv_dereg_mr(mr), 0);
		rig_close(&r);
	}
}

static uint32_t forgotten; /* sum of the domains' numbers that executors forgot */

void __real_urn_memx_forget_pd(struct urn_memx *x, uint32_t pd);
void __wrap_urn_memx_forget_pd(struct urn_memx *x, uint32_t pd);

void
__wrap_urn_memx_forget_pd(struct urn_memx *x, uint32_t pd)
{
	__real_urn_memx_forget_pd(x, pd);
	forgotten += pd;
}

/* The gates of a domain that goes are opened: its number will be given to another client, which is
 * not slow. */
static void
domain_goes(void **state)
{
	struct ibv_pd *pd;
	struct rig r;
	uint32_t number;

	(void)state;
	rig_open(&r, &(struct rig_config){.engines = 4}, NULL);
	pd = ibv_alloc_pd(r.end[0].ctx);
	number = pd->handle;
	forgotten = 0;
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	/* Both engines of node 0. */
	assert_int_equal(forgotten, 2 * number);
	rig_close(&r);
}

/* Memory is unmapped after registration: requests that use it fail, at the peer and on its own
 * side. */
static void
unmapped(void **state)
{
	uint8_t *gone =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge sge = {(uintptr_t)gone, 64, 0};
	struct ibv_send_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1};
	struct ibv_mr *mr[2];
	struct rig r;

	(void)state;
	for (int source = 0; source < 2; source++) {
		rig_open(&r, &(struct rig_config){.foreign = true},
			 &(struct rig_qp){.timeout = 18});
		if (source)
			gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
		for (int e = 0; e < 2; e++) {
			mr[e] = ibv_reg_mr(r.end[e].pd, gone, PAGE, RIGHTS);
			assert_non_null(mr[e]);
		}
		munmap(gone, PAGE);
		wr.opcode = IBV_WR_RDMA_WRITE;
		if (source) {
			sge = (struct ibv_sge){(uintptr_t)gone, 64, mr[0]->lkey};
			wr.wr.rdma.remote_addr = (uintptr_t)r.end[1].buf;
			wr.wr.rdma.rkey = r.end[1].mr->rkey;
		} else {
			sge = (struct ibv_sge){(uintptr_t)r.end[0].buf, 64, r.end[0].mr->lkey};
			wr.wr.rdma.remote_addr = (uintptr_t)gone;
			wr.wr.rdma.rkey = mr[1]->rkey;
		}
		rig_send_on(r.end[0].qp, &wr);
		rig_expect(&r, 0, source ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR);
		for (int e = 0; e < 2; e++)
			assert_int_equal(ibv_dereg_mr(mr[e]), 0);
		rig_close(&r);
	}
}

static struct urn_space_stats
stats(const struct rig *r, int end)
{
	struct urn_space_stats st;

	urn_space_stats(LIST_FIRST(&r->dp->adapter[end]->clients)->space, &st);
	return st;
}

static int
hello(struct rig *r, uint64_t area)
{
	struct urn_abi_req req = {.op = URN_CTL_HELLO,
				  .hello = {.oldest = URN_ABI_VERSION, .area = area}};
	struct urn_abi_rep rep;

	urn_ctl_call(LIST_FIRST(&r->dp->adapter[0]->clients), &req, &rep);
	return rep.err;
}

/*
 * The library says where the area is, and the engine reads the sender's memory by number;
 * the first address given counts. An area that can be nowhere is refused.
 */
static void
by_number(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.foreign = true}, &(struct rig_qp){0});
	assert_int_equal(hello(&r, 4097), EINVAL);
	assert_int_equal(hello(&r, UINT64_MAX & ~4095ull), EINVAL);
	assert_int_equal(hello(&r, 0), 0);
	assert_int_equal(hello(&r, 0x10000), 0);
	for (uint32_t i = 0; i < 10; i++) {
		rig_fill(r.end[0].buf, 300000, i);
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 300000, 1000, i);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		assert_memory_equal(r.end[0].buf, r.end[1].buf + 1000, 300000);
	}
	assert_true(stats(&r, 0).direct > 10);
	assert_int_equal(stats(&r, 0).refused, 0);
	assert_int_equal(stats(&r, 1).direct, 0);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whose),
		cmocka_unit_test(domain_goes),
		cmocka_unit_test(unmapped),
		cmocka_unit_test(by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
