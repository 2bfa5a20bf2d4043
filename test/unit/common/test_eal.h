/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests that need mbufs: an EAL without huge pages, devices or telemetry,
 * whose runtime folder is private and gone when the process ends.
 */
#ifndef URN_TEST_EAL_H
#define URN_TEST_EAL_H

#include <rte_mempool.h>

enum {
	TEST_EAL_MBUFS = 8191,  /* in the pool */
	TEST_EAL_ROOM = 4608,   /* bytes of data behind the headroom: MTU 4096 with all headers */
	TEST_EAL_PRIV = 128,    /* private bytes, as every pool of the dataplane has */
	TEST_EAL_MEMORY_MB = 192,
};

/*
 * Start the EAL at the first call; the same pool each time. Ends the process
 * with a sentence on stderr when that fails: no test can go on without it.
 */
struct rte_mempool *test_eal_pool(void);

#endif
