/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/test_eal.h"

#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

static char folder[] = "/tmp/urnic-test-XXXXXX";
static pid_t owner; /* children of a test must not remove the folder */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void
stop(void)
{
	if (getpid() != owner)
		return;
	rte_eal_cleanup();
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "test_eal: %s failed: %s\n", what, why);
	exit(1);
}

/* One lcore, on the first allowed processor; processor 0 may not be allowed. */
static int
first_cpu(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &set))
				return i;
	return 0;
}

static void
start(void)
{
	static char memory[16], prefix[32], lcores[16];
	static char *argv[] = { "test", "--no-huge", "--no-pci", "--no-telemetry", "--file-prefix",
				prefix, "-m", memory, "--log-level", "error", "--lcores", lcores,
				NULL };

	snprintf(memory, sizeof(memory), "%d", TEST_EAL_MEMORY_MB);
	snprintf(prefix, sizeof(prefix), "urn%d", (int)getpid());
	snprintf(lcores, sizeof(lcores), "0@%d", first_cpu());
	if (mkdtemp(folder) == NULL)
		die("a folder in /tmp", "mkdtemp");
	owner = getpid();
	if (setenv("XDG_RUNTIME_DIR", folder, 1) != 0)
		die("XDG_RUNTIME_DIR", "setenv");
	/* Root's runtime folder is elsewhere unless this names the test's. */
	setenv("RUNTIME_DIRECTORY", folder, 1);
	if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) < 0)
		die("rte_eal_init", rte_strerror(rte_errno));
	atexit(stop);
}

struct rte_mempool *
test_eal_pool(void)
{
	static struct rte_mempool *pool;

	if (pool != NULL)
		return pool;
	start();
	pool = rte_pktmbuf_pool_create("test", TEST_EAL_MBUFS, 0, TEST_EAL_PRIV,
				       RTE_PKTMBUF_HEADROOM + TEST_EAL_ROOM, SOCKET_ID_ANY);
	if (pool == NULL)
		die("the packet pool", rte_strerror(rte_errno));
	return pool;
}
