/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/memory.h"

#include "attach/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
urn_memory_open(struct urn_memory *m)
{
	int err;

	if (urn_memory_count(m) != 0)
		return 0;
	m->fd[0] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (m->fd[0] >= 0)
		m->fd[1] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (m->fd[1] >= 0)
		return 0;
	err = errno;
	urn_memory_close(m);
	if (err != ENOMEM && err != EMFILE && err != ENFILE)
		return EOPNOTSUPP;
	return urn_fail(err, "no descriptor for this program's memory: %s", strerror(err));
}

unsigned int
urn_memory_count(const struct urn_memory *m)
{
	return m->fd[1] >= 0 ? 2 : 0;
}

void
urn_memory_close(struct urn_memory *m)
{
	for (unsigned int i = 0; i < 2; i++)
		if (m->fd[i] >= 0)
			close(m->fd[i]);
	*m = URN_MEMORY_NONE;
}
