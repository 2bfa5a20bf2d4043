/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/numa.h"
#include "pmd_glue/pool.h"

#include <rte_lcore.h>
#include <rte_memory.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* A packet of a RoCE MTU of 4096 fits one segment; the private area is URN_PORT_PRIV bytes. */
static void
layout(void *arg)
{
	struct urn_pool_config cfg = {.name = "t", .mbufs = 100};
	struct urn_err err = {""};
	struct rte_mempool *mp;
	struct rte_mbuf *a, *b;

	(void)arg;
	eal_up();
	mp = urn_pool_create(&cfg, &err);
	check_ok(mp == NULL, &err);
	check(urn_pool_count() == 1);
	a = rte_pktmbuf_alloc(mp);
	b = rte_pktmbuf_alloc(mp);
	check(rte_pktmbuf_priv_size(mp) == URN_PORT_PRIV);
	check(rte_pktmbuf_tailroom(a) >= 14 + 4 + URN_PORT_MTU_MAX);
	check(rte_pktmbuf_headroom(a) == RTE_PKTMBUF_HEADROOM);
	check(((uintptr_t)rte_mbuf_to_priv(a) & 63) == 0);
	/* Objects are an odd number of cache lines apart: all sets of a cache are used. */
	check(urn_pool_stride(URN_POOL_ROOM) % 64 == 0 && urn_pool_stride(URN_POOL_ROOM) / 64 % 2);
	check(((uintptr_t)RTE_MAX(a, b) - (uintptr_t)RTE_MIN(a, b)) %
		      urn_pool_stride(URN_POOL_ROOM) ==
	      0);
	/* doc/reference/ports.md "Preempted lcores". */
	check(strcmp(rte_mempool_get_ops(mp->ops_index)->name, "ring_mt_rts") == 0);
	check(rte_mem_virt2memseg_list(a) ==
	      NULL); /* huge pages of our own, where there are some */
	rte_pktmbuf_free(a);
	rte_pktmbuf_free(b);
	urn_pool_free(mp);
	check(urn_pool_count() == 0);
	urn_pool_free(NULL);
}

static struct rte_mempool *
make(const char *name)
{
	struct urn_pool_config cfg = {.name = name, .mbufs = 100};
	struct urn_err err = {""};
	struct rte_mempool *mp = urn_pool_create(&cfg, &err);

	check_ok(mp == NULL, &err);
	return mp;
}

/*
 * A PMD keeps packets for good: the pool waits like others, for a packet may lie in another
 * port's ring; when there is no other pool, nobody can have the packet, and the pool goes without
 * it.
 */
static void
kept(void *arg)
{
	struct rte_mempool *of[2], *other;
	struct rte_mbuf *in_ring;

	(void)arg;
	eal_up();
	of[0] = make("t0");
	of[1] = make("t1");
	other = make("t2");
	(void)rte_pktmbuf_alloc(of[0]); /* the packet that the PMD keeps */
	in_ring = rte_pktmbuf_alloc(of[0]);
	(void)rte_pktmbuf_alloc(of[1]);
	urn_pool_free_kept(of[0]);
	check(urn_pool_count() == 3);
	rte_pktmbuf_free(in_ring);
	urn_pool_free(other);
	check(urn_pool_count() == 2); /* the other port is still open */
	urn_pool_free_kept(of[1]);
	check(urn_pool_count() == 0);
	/* A complete pool need not wait for that. */
	of[0] = make("t0");
	of[1] = make("t1");
	urn_pool_free_kept(of[0]);
	check(urn_pool_count() == 1);
	urn_pool_free_kept(of[1]);
	check(urn_pool_count() == 0);
}

static void
count_page(struct rte_mempool *mp, void *arg, void *obj, unsigned int i)
{
	unsigned int *bad = arg;
	uintptr_t start = (uintptr_t)obj - mp->header_size;

	(void)i;
	*bad += (start & 4095) != 0;
}

/* doc/reference/ports.md "Ports, one by one", af_xdp: one object a page, without a gap. */
static void
pages(void *arg)
{
	struct urn_pool_config cfg = {.name = "t", .mbufs = 1000, .page = true};
	struct urn_err err = {""};
	struct rte_mempool *mp;
	unsigned int bad = 0;

	(void)arg;
	eal_up();
	mp = urn_pool_create(&cfg, &err);
	check_ok(mp == NULL, &err);
	check(rte_mempool_calc_obj_size(mp->elt_size, mp->flags, NULL) == 4096);
	check(rte_mempool_obj_iter(mp, count_page, &bad) == 1000 && bad == 0);
	check(mp->nb_mem_chunks == 1);
	check(rte_pktmbuf_data_room_size(mp) == urn_pool_room_page());
	urn_pool_free(mp);
}

/* With a PCI device all packets lie where it reaches them, and fit the memory that is planned for
 * them, again and again. */
static void
pci(void *arg)
{
	enum { PACKETS = 16383 };
	static const char *const named[] = {"0000:ff:1f.7"}; /* no such device need be there */
	const struct urn_eal_config eal = {.program = "test",
					   .memory_mb = urn_eal_memory_mb(PACKETS),
					   .pci_count = 1,
					   .pci = named};
	struct urn_pool_config cfg = {.name = "t", .mbufs = PACKETS};
	struct urn_err err = {""};
	unsigned int bad = 0;
	struct rte_mempool *mp;
	struct rte_mbuf *m;

	(void)arg;
	check_ok(urn_eal_start(&eal, &err), &err);
	for (unsigned int i = 0; i < 3; i++) {
		mp = urn_pool_create(&cfg, &err);
		check_ok(mp == NULL, &err);
		check(mp->nb_mem_chunks == 1 && rte_mempool_avail_count(mp) == PACKETS);
		m = rte_pktmbuf_alloc(mp);
		check(rte_mem_virt2memseg_list(m) != NULL &&
		      rte_mbuf_iova_get(m) == (uintptr_t)m->buf_addr);
		rte_pktmbuf_free(m);
		urn_pool_free(mp);
		check(urn_pool_count() == 0);
	}
	cfg.mbufs = 1000;
	cfg.page = true;
	mp = urn_pool_create(&cfg, &err);
	check_ok(mp == NULL, &err);
	check(rte_mempool_obj_iter(mp, count_page, &bad) == 1000 && bad == 0);
	check(mp->nb_mem_chunks == 1);
	urn_pool_free(mp);
	cfg.page = false;
	cfg.mbufs = 2 * PACKETS;
	check(urn_pool_create(&cfg, &err) == NULL);
	check_says(&err, "give DPDK more memory");
}

/* Each registered thread has a cache; small pools leave enough for the others. */
static void *
thread_main(void *arg)
{
	struct rte_mempool *mp = arg;
	struct rte_mbuf *m;

	check(rte_thread_register() == 0);
	check(rte_mempool_default_cache(mp, rte_lcore_id()) != NULL);
	m = rte_pktmbuf_alloc(mp);
	check(m != NULL);
	rte_pktmbuf_free(m);
	check(rte_mempool_default_cache(mp, rte_lcore_id())->len > 0);
	rte_thread_unregister();
	return NULL;
}

static void
caches(void *arg)
{
	struct urn_pool_config cfg = {.name = "t", .mbufs = 8191};
	struct urn_err err = {""};
	struct rte_mempool *mp;
	pthread_t t;

	(void)arg;
	eal_up();
	mp = urn_pool_create(&cfg, &err);
	check_ok(mp == NULL, &err);
	check(mp->cache_size == 256);
	check(pthread_create(&t, NULL, thread_main, mp) == 0 && pthread_join(t, NULL) == 0);
	check(rte_mempool_avail_count(mp) == 8191);
	cfg.name = "small";
	cfg.mbufs = 160;
	check(urn_pool_create(&cfg, &err)->cache_size == 10);
	/* The same name twice is refused. */
	check(urn_pool_create(&cfg, &err) == NULL);
	check_says(&err, "small");
}

/* Memory of a node, aligned for huge pages, zeroed, not inherited. */
static void
test_numa(void **state)
{
	size_t mapped = 0;
	unsigned char *p = urn_numa_map(5000000, 0, &mapped);
	unsigned char in_core;

	(void)state;
	assert_non_null(p);
	assert_int_equal(mapped, 6u << 20);
	assert_int_equal((uintptr_t)p & ((2u << 20) - 1), 0);
	assert_int_equal(p[0] | p[mapped - 1], 0);
	p[0] = p[mapped - 1] = 1;
	urn_numa_unmap(p, mapped);
	assert_int_equal(mincore(p, 4096, &in_core), -1);
	urn_numa_unmap(NULL, 0);
	/* A node that does not exist is no error. */
	p = urn_numa_map(1, 1000, &mapped);
	assert_non_null(p);
	p[0] = 1;
	urn_numa_unmap(p, mapped);
	assert_null(urn_numa_map(0, 0, &mapped));
	assert_null(urn_numa_map(SIZE_MAX - 5, 0, &mapped));
}

static void
test_numa_device(void **state)
{
	(void)state;
	assert_int_equal(urn_numa_of_device("lo"), 0);
	assert_int_equal(urn_numa_of_device("0000:ff:1f.7"), 0);
	assert_int_equal(urn_numa_of_device("../../../etc/passwd"), 0);
	assert_int_equal(urn_numa_of_device(NULL), 0);
}

CHILD_TEST(layout)
CHILD_TEST(pages)
CHILD_TEST(pci)
CHILD_TEST(kept)
CHILD_TEST(caches)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),	    cmocka_unit_test(test_pages),
		cmocka_unit_test(test_kept),	    cmocka_unit_test(test_pci),
		cmocka_unit_test(test_caches),	    cmocka_unit_test(test_numa),
		cmocka_unit_test(test_numa_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
