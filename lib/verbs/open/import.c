/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Importing a device: a context of its own, with queues and events of its own, that shares
 * protection domains and regions with another one, of this program or of the one that the
 * descriptor came from.
 */
#include "verbs/front.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Open a device, and join the context of a descriptor. returns: NULL with errno and text set */
static struct ibv_context *
urn_import_try(struct ibv_device *device, int cmd_fd)
{
	struct ibv_context *c = ibv_open_device(device);
	int err;

	if (c == NULL)
		return NULL;
	err = urn_ops(c)->join != NULL ? urn_ops(c)->join(c, cmd_fd)
				       : urn_unsupported("importing this device");
	if (err == 0)
		return c;
	ibv_close_device(c);
	errno = err;
	return NULL;
}

/* Find the device with the context of a descriptor among those on offer. returns: NULL with errno
 * and text set */
static struct ibv_context *
urn_import_find(int cmd_fd)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;
	int i, err = list != NULL ? ENOENT : errno;

	for (i = 0; list != NULL && list[i] != NULL && c == NULL && err == ENOENT; i++) {
		c = urn_import_try(list[i], cmd_fd);
		err = errno;
	}
	ibv_free_device_list(list);
	if (c == NULL && err == ENOENT)
		urn_fail(ENODEV, "no device here has a context with the descriptor %d", cmd_fd);
	else if (c == NULL)
		errno = err;
	return c;
}

struct ibv_context *
ibv_import_device(int cmd_fd)
{
	int flags = fcntl(cmd_fd, F_GETFD);
	struct ibv_context *c;

	if (flags < 0) {
		urn_fail(EBADF, "the descriptor %d is not open", cmd_fd);
		return NULL;
	}
	c = urn_import_find(cmd_fd);
	if (c == NULL)
		return NULL;
	/* From here on the descriptor is the context's, and names that context: it works as long as
	 * the context. */
	while (dup3(c->cmd_fd, cmd_fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0 && errno == EINTR)
		;
	urn_verbs_ctx(c)->imported = true;
	c->cmd_fd = cmd_fd;
	return c;
}
