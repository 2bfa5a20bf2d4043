/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of packets. Without huge pages the EAL's own memory is a memfd, which
 * most kernels back with 4 KiB pages only (shmem_enabled is "never"), and which
 * has no NUMA nodes. So the pool then brings memory of its own: anonymous,
 * on the port's node, in transparent huge pages (measured: 3-4 % faster copies
 * with 1024 packets in flight). But a PCI device behind an IOMMU reaches the
 * EAL's memory alone, and sends packets of any pool: those of switches, and of
 * the adapter's other port. So with a PCI device all pools lie there.
 *
 * The distance between two objects is an odd number of cache lines (rte_mempool
 * ensures this), so that headers spread over all sets of a cache. Only af_xdp
 * needs one object a page: its PMD treats the objects as an array.
 */
#include "pmd_glue/pool.h"
#include "pmd_glue/eal_log.h"
#include "pmd_glue/numa.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define POOL_OPS "ring_mt_rts"
#define POOL_CACHE 256u

/* Private data of a pool. DPDK knows the first part. */
struct pool_priv {
	struct rte_pktmbuf_pool_private mbuf;
	struct rte_mempool *next; /* next pool that waits for packets; under wait_lock */
	bool keeps;		  /* some packets never come back, for the PMD keeps them; likewise */
};

static unsigned int pools; /* owner: control threads, atomically */
/* wait_lock protects the list of pools that wait for packets, and their number. */
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rte_mempool *waiting; /* given up by their owner while packets are in use; under wait_lock */
static unsigned int waiting_keep; /* waiting pools whose PMD keeps packets; likewise */

static uint32_t
elt_bytes(uint32_t room)
{
	return (uint32_t)sizeof(struct rte_mbuf) + URN_PORT_PRIV + room;
}

uint32_t
urn_pool_stride(uint32_t room)
{
	return rte_mempool_calc_obj_size(elt_bytes(room), 0, NULL);
}

uint32_t
urn_pool_room_page(void)
{
	return (uint32_t)sysconf(_SC_PAGESIZE) - elt_bytes(0) -
	       (uint32_t)RTE_ALIGN_CEIL(sizeof(struct rte_mempool_objhdr), RTE_CACHE_LINE_SIZE);
}

unsigned int
urn_pool_count(void)
{
	return __atomic_load_n(&pools, __ATOMIC_RELAXED);
}

/* The largest per-lcore cache that leaves enough packets for every other lcore. */
static uint32_t
cache_size(uint32_t mbufs)
{
	uint32_t n = mbufs / 16;

	return n < POOL_CACHE ? n : POOL_CACHE;
}

static void
own_free(struct rte_mempool_memhdr *mem, void *opaque)
{
	urn_numa_unmap(mem->addr, (size_t)(uintptr_t)opaque);
}

/* Populate a pool with memory of our own. returns 0 or a negative errno value */
static int
populate_own(struct rte_mempool *mp, int node)
{
	size_t min_chunk, align, mapped, pg_sz = 0;
	ssize_t bytes;
	void *p;
	int n;

	if (rte_mempool_get_page_size(mp, &pg_sz) != 0)
		return -EINVAL;
	bytes = rte_mempool_op_calc_mem_size_default(mp, mp->size, rte_bsf64(pg_sz), &min_chunk,
						     &align);
	if (bytes <= 0)
		return bytes == 0 ? -EINVAL : (int)bytes;
	p = urn_numa_map((size_t)bytes, node, &mapped);
	if (p == NULL)
		return -errno;
	n = rte_mempool_populate_iova(mp, p, (rte_iova_t)(uintptr_t)p, mapped, own_free,
				      (void *)(uintptr_t)mapped);
	if (n <= 0) {
		urn_numa_unmap(p, mapped);
		return n == 0 ? -ENOMEM : n;
	}
	return (uint32_t)n == mp->size ? 0 : -ENOMEM;
}

static void
eal_free(struct rte_mempool_memhdr *mem, void *opaque)
{
	(void)mem;
	rte_free(opaque);
}

/*
 * Populate a pool with the EAL's memory while that is of small pages. By default DPDK takes whole
 * pages for each object, 8 KiB for one of 5, though a device sees the memory in one piece.
 * returns 0 or a negative errno value
 */
static int
populate_eal(struct rte_mempool *mp)
{
	size_t min_chunk, align, pg_sz = 0;
	unsigned int shift;
	ssize_t bytes;
	void *p;
	int n;

	if (rte_mempool_get_page_size(mp, &pg_sz) != 0)
		return -EINVAL;
	shift = mp->header_size + mp->elt_size + mp->trailer_size > pg_sz ? 0 : rte_bsf64(pg_sz);
	bytes = rte_mempool_op_calc_mem_size_default(mp, mp->size, shift, &min_chunk, &align);
	if (bytes <= 0)
		return bytes == 0 ? -EINVAL : (int)bytes;
	p = rte_malloc(NULL, (size_t)bytes, (unsigned int)pg_sz);
	if (p == NULL)
		return -ENOMEM;
	n = rte_mempool_populate_iova(mp, p, (rte_iova_t)(uintptr_t)p, (size_t)bytes, eal_free, p);
	if (n <= 0) {
		rte_free(p);
		return n == 0 ? -ENOMEM : n;
	}
	return (uint32_t)n == mp->size ? 0 : -ENOMEM;
}

static int
populate(struct rte_mempool *mp, int node)
{
	int n;

	if (!rte_eal_has_hugepages())
		return rte_eal_has_pci() ? populate_eal(mp) : populate_own(mp, node);
	n = rte_mempool_populate_default(mp);
	return n < 0 ? n : 0;
}

static struct rte_mempool *
pool_make(const struct urn_pool_config *cfg, uint32_t room)
{
	struct rte_pktmbuf_pool_private priv = {
		.mbuf_data_room_size = (uint16_t)room,
		.mbuf_priv_size = URN_PORT_PRIV,
	};
	int socket = rte_eal_has_hugepages() ? cfg->node : SOCKET_ID_ANY;
	struct rte_mempool *mp;
	int ret;

	mp = rte_mempool_create_empty(cfg->name, cfg->mbufs, elt_bytes(room),
				      cache_size(cfg->mbufs), sizeof(struct pool_priv), socket,
				      cfg->page ? RTE_MEMPOOL_F_NO_SPREAD : 0);
	if (mp == NULL)
		return NULL;
	ret = rte_mempool_set_ops_byname(mp, POOL_OPS, NULL);
	if (ret == 0) {
		rte_pktmbuf_pool_init(mp, &priv);
		ret = populate(mp, cfg->node);
	}
	if (ret != 0) {
		rte_mempool_free(mp);
		rte_errno = -ret;
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}

struct rte_mempool *
urn_pool_create(const struct urn_pool_config *cfg, struct urn_err *err)
{
	uint32_t room = cfg->room != 0 ? cfg->room : URN_POOL_ROOM;
	struct rte_mempool *mp;

	if (cfg->page)
		room = urn_pool_room_page();
	urn_eal_log_hold();
	mp = pool_make(cfg, room);
	urn_eal_log_release();
	if (mp == NULL) {
		urn_err_set(err,
			    "no memory for %u packets of %u bytes (%s): %s; ask for fewer "
			    "packets or give DPDK more memory",
			    cfg->mbufs, room, cfg->name, rte_strerror(rte_errno));
		return NULL;
	}
	__atomic_fetch_add(&pools, 1, __ATOMIC_RELAXED);
	return mp;
}

/* Take the pools to which all packets have come back off the list, or all pools, and free them. wait_lock is held. */
static void
free_waiting(bool all)
{
	struct rte_mempool **at = &waiting, *pool;

	while ((pool = *at) != NULL) {
		struct pool_priv *priv = rte_mempool_get_priv(pool);

		if (!all && !rte_mempool_full(pool)) {
			at = &priv->next;
			continue;
		}
		*at = priv->next;
		waiting_keep -= priv->keeps;
		rte_mempool_free(pool);
		__atomic_fetch_sub(&pools, 1, __ATOMIC_RELAXED);
	}
}

static void
give_up(struct rte_mempool *pool, bool keeps)
{
	struct pool_priv *priv;

	if (pool == NULL)
		return;
	priv = rte_mempool_get_priv(pool);
	pthread_mutex_lock(&wait_lock);
	priv->next = waiting;
	priv->keeps = keeps;
	waiting = pool;
	waiting_keep += keeps;
	free_waiting(false);
	/* No port is left whose rings could hold the missing packets. */
	if (waiting_keep != 0 && waiting_keep == urn_pool_count())
		free_waiting(true);
	pthread_mutex_unlock(&wait_lock);
}

void
urn_pool_free(struct rte_mempool *pool)
{
	give_up(pool, false);
}

void
urn_pool_free_kept(struct rte_mempool *pool)
{
	give_up(pool, true);
}
