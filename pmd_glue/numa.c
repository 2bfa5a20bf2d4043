/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/numa.h"

#include <numa.h>

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Bytes of a transparent huge page on x86-64; elsewhere only an alignment. */
#define THP_BYTES (2ul << 20)

static int
node_read(const char *fmt, const char *name)
{
	char path[PATH_MAX];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), fmt, name);
	f = fopen(path, "r");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

int
urn_numa_of_device(const char *name)
{
	int node;

	if (name == NULL || strchr(name, '/') != NULL)
		return 0;
	node = node_read("/sys/bus/pci/devices/%s/numa_node", name);
	if (node < 0)
		node = node_read("/sys/class/net/%s/device/numa_node", name);
	return node < 0 ? 0 : node;
}

void *
urn_numa_map(size_t bytes, int node, size_t *mapped)
{
	size_t size = (bytes + THP_BYTES - 1) & ~(THP_BYTES - 1);
	uintptr_t start, want;
	char *p;

	if (bytes == 0 || size < bytes) {
		errno = EINVAL;
		return NULL;
	}
	p = mmap(NULL, size + THP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	if (p == MAP_FAILED)
		return NULL;
	/* Cut an aligned piece out: only whole 2 MiB blocks become huge pages. */
	start = (uintptr_t)p;
	want = (start + THP_BYTES - 1) & ~(THP_BYTES - 1);
	if (want > start)
		munmap(p, want - start);
	munmap((char *)want + size, start + THP_BYTES - want);
	p = (char *)want;
	(void)madvise(p, size, MADV_HUGEPAGE);
	/* A child process has no use for packets, and copy-on-write would slow us down. */
	(void)madvise(p, size, MADV_DONTFORK);
	if (numa_available() >= 0 && node >= 0 && node <= numa_max_node()) {
		numa_set_bind_policy(0);
		numa_tonode_memory(p, size, node);
	}
	*mapped = size;
	return p;
}

void
urn_numa_unmap(void *p, size_t mapped)
{
	if (p != NULL)
		munmap(p, mapped);
}
