/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of libibverbs.so.1 around sysfs, where urnic's devices are not. */
#include "dropin/ibverbs/dropin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int
urn_dropin_ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			      enum urn_dropin_gid_type *type)
{
	struct ibv_gid_entry entry;
	int err = ibv_query_gid_ex(context, port_num, index, &entry, 0);

	/* An entry that is empty has the type that the other entries have. */
	if (err != 0 && err != ENODATA && err != ENOENT) {
		errno = err;
		return -1;
	}
	*type = URN_DROPIN_GID_ROCE_V2;
	return 0;
}

const char *
urn_dropin_ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");

	return path != NULL ? path : "/sys";
}

int
urn_dropin_ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd, err;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size < INT_MAX ? size : INT_MAX);
	err = errno;
	close(fd);
	errno = err;
	if (n <= 0)
		return n < 0 ? -1 : 0;
	if (buf[n - 1] == '\n')
		buf[--n] = '\0';
	else if ((size_t)n < size)
		buf[n] = '\0';
	return (int)n;
}
