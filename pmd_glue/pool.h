/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet pool of a port. */
#ifndef URN_PMD_GLUE_POOL_H
#define URN_PMD_GLUE_POOL_H

#include "pmd_glue/port.h"

/*
 * Data room: headroom, and the largest frame (Ethernet with a VLAN tag and
 * URN_PORT_MTU_MAX bytes), in one segment, in whole cache lines.
 */
#define URN_POOL_ROOM \
	RTE_ALIGN_CEIL(RTE_PKTMBUF_HEADROOM + 18u + URN_PORT_MTU_MAX, RTE_CACHE_LINE_SIZE)

struct urn_pool_config {
	const char *name; /* unique in the process */
	uint32_t mbufs;	  /* packets */
	uint32_t room;	  /* bytes of data room; 0: URN_POOL_ROOM */
	bool page;	  /* one object a page, exactly (af_xdp); room is ignored */
	int node;	  /* NUMA node; a wish where there is a PCI device and no huge page */
};

/*
 * Make a pool with URN_PORT_PRIV private bytes and per-lcore caches. A preempted thread
 * that is using the pool blocks no other thread (ring_mt_rts, doc/reference/ports.md "Preempted
 * lcores"). NULL with *err on failure.
 */
struct rte_mempool *urn_pool_create(const struct urn_pool_config *cfg, struct urn_err *err);
/*
 * Give a pool up. NULL is allowed. A switch passes packets on from port to port, so
 * another port's ring may hold packets of this pool when its own port closes: the memory
 * is freed by the first urn_pool_free(), of any pool, that finds all packets back.
 */
void urn_pool_free(struct rte_mempool *pool);
/*
 * Give a pool up whose PMD keeps some packets for good, so that the pool may never be
 * complete: it is freed at the latest with the last pool of another kind, when no port is open.
 */
void urn_pool_free_kept(struct rte_mempool *pool);
/* Bytes from one object to the next, for a data room. */
uint32_t urn_pool_stride(uint32_t room);
/* Data room of an object that fills one page. */
uint32_t urn_pool_room_page(void);
/* Pools that exist now, those that wait for packets included. */
unsigned int urn_pool_count(void);

#endif
