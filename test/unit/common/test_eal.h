/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An EAL for tests that need mbufs: without huge pages, devices or telemetry, with a
 * private runtime folder that goes when the process ends.
 */
#ifndef URN_TEST_EAL_H
#define URN_TEST_EAL_H

#include <rte_mempool.h>

enum {
	TEST_EAL_MBUFS = 8191,  /* mbufs in the pool */
	TEST_EAL_ROOM = 4608,   /* bytes of data behind the headroom: MTU 4096 with all headers */
	TEST_EAL_PRIV = 128,    /* private bytes, as every pool of the dataplane has */
	TEST_EAL_MEMORY_MB = 192,
};

/*
 * Start the EAL at the first call. Ends the process with a sentence on stderr on failure:
 * no test can go on without the EAL. returns: the same pool each time
 */
struct rte_mempool *test_eal_pool(void);

#endif
