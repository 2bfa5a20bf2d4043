/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of an idle queue pair (architecture rule 5). */
#include "probe.h"

#include <malloc.h>
#include <stdlib.h>

enum { IDLE_QPS = 4096 };

/* Sanitizers have an allocator of their own, which mallinfo2() knows nothing of. */
#if defined(__SANITIZE_ADDRESS__)
#define MEASURES false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEASURES false
#endif
#endif
#ifndef MEASURES
#define MEASURES true
#endif

/* Bytes of the heap in use, its own overhead included. */
static size_t
heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* returns: bytes of heap that each of many connected QPs takes, `depth` READs on record */
static size_t
measure(unsigned int depth)
{
	static struct urn_qp *qp[IDLE_QPS];
	struct urn_tp_config c;
	struct urn_abi_qp_attr a;
	struct probe p;
	struct urn_tp *tp;
	size_t before, each;

	probe_open(&p, NULL);
	probe_attributes(&p, &a);
	a.max_dest_rd_atomic = (uint8_t)depth;
	c = p.tp->cfg;
	c.max_qp = IDLE_QPS;
	tp = urn_tp_create(&c, p.now);
	assert_non_null(tp);
	before = heap();
	for (unsigned int i = 0; i < IDLE_QPS; i++)
		qp[i] = probe_another(&p, tp, &a);
	each = (heap() - before) / IDLE_QPS;
	print_message("%zu bytes of heap a QP with %u READs on record\n", each, depth);
	for (unsigned int i = 0; i < IDLE_QPS; i++) {
		urn_qp_stop(tp, qp[i]);
		urn_qp_destroy(tp, qp[i]);
	}
	urn_tp_destroy(tp);
	probe_close(&p);
	return each;
}

/* At most 1 KiB a connected QP that keeps 16 READs and atomics on record, queues aside. */
static void
test_memory(void **state)
{
	size_t few = measure(1), many = measure(16);

	(void)state;
	if (!MEASURES)
		return;
	assert_in_range(few, sizeof(struct urn_qp), 544);
	assert_in_range(many, few, 1024);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
