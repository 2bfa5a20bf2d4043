/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/memory.h"

#include <fcntl.h>
#include <unistd.h>

unsigned int
urn_memory_open(int own[2])
{
	own[0] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	own[1] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (own[0] >= 0 && own[1] >= 0)
		return 2;
	if (own[0] >= 0)
		close(own[0]);
	if (own[1] >= 0)
		close(own[1]);
	return 0;
}

void
urn_memory_close(const int own[2], unsigned int n)
{
	while (n > 0)
		close(own[--n]);
}
