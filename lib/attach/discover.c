/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the dataplane's socket, and the adapter that the program means. */
#include "attach/dev.h"
#include "attach/remote.h"

#include <urnic/attach.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define URN_DEFAULT_DIR "/run"
#define URN_SOCKET_NAME "urnic/urnicd.sock"

const char *
urn_remote_path(char *buf, size_t size)
{
	const char *told = secure_getenv("URNIC_SOCKET"), *dir = secure_getenv("XDG_RUNTIME_DIR");
	int n;

	if (told != NULL && told[0] != '\0') {
		n = snprintf(buf, size, "%s", told);
	} else {
		/* The user's own dataplane takes precedence over the machine's. */
		n = snprintf(buf, size, "%s/" URN_SOCKET_NAME, dir != NULL ? dir : URN_DEFAULT_DIR);
		if (n > 0 && (size_t)n < size && dir != NULL && access(buf, F_OK) != 0)
			n = snprintf(buf, size, URN_DEFAULT_DIR "/" URN_SOCKET_NAME);
	}
	return n > 0 && (size_t)n < size ? buf : NULL;
}

/* The adapter that `node` names, or the first. returns: 0, or an errno value with its text */
static int
urn_remote_pick(int fd, const char *node, struct urn_sock_device *out)
{
	uint32_t i;
	int err;

	for (i = 0; (err = urn_remote_list(fd, i, out)) == 0; i++)
		if (node == NULL || strcmp(node, out->node) == 0 || strcmp(node, out->name) == 0)
			return 0;
	if (err != ENOENT)
		return err;
	return node != NULL ? urn_fail(ENODEV, "the dataplane has no node or adapter '%s'", node)
			    : urn_fail(ENODEV, "the dataplane has no adapter");
}

struct ibv_context *
urn_attach_connect(const char *path, const char *node)
{
	struct urn_sock_device device;
	struct urn_abi_channel *channel;
	char buf[256];
	int fd, err;

	if (path == NULL)
		path = urn_remote_path(buf, sizeof(buf));
	if (path == NULL) {
		urn_fail(ENAMETOOLONG, "the path of the dataplane's socket is too long");
		return NULL;
	}
	if (node == NULL)
		node = secure_getenv("URNIC_NODE");
	fd = urn_remote_connect(path);
	if (fd < 0)
		return NULL;
	err = urn_remote_pick(fd, node, &device);
	if (err != 0) {
		close(fd);
		errno = err;
		return NULL;
	}
	channel = urn_remote_open(fd, device.name);
	return channel != NULL ? urn_attach_open(channel) : NULL;
}

/* ---- the list of devices */

/* An adapter that was put on offer; lives for ever, like a device of the machine. */
struct urn_remote_device {
	struct urn_remote_device *next;
	char path[108];
	char name[32];
};

static pthread_mutex_t urn_remote_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_remote_device *urn_remote_devices; /* under urn_remote_lock */

static struct urn_abi_channel *
urn_remote_make(void *arg)
{
	const struct urn_remote_device *d = arg;
	int fd = urn_remote_connect(d->path);

	return fd < 0 ? NULL : urn_remote_open(fd, d->name);
}

/* True when the adapter is on offer already; the offer works whenever the dataplane is there. */
static bool
urn_remote_known(const char *path, const char *name)
{
	const struct urn_remote_device *d;

	for (d = urn_remote_devices; d != NULL; d = d->next)
		if (strcmp(d->path, path) == 0 && strcmp(d->name, name) == 0)
			return true;
	return false;
}

/* returns: 0, or an errno value */
static int
urn_remote_offer_one(const char *path, const struct urn_sock_device *found)
{
	struct urn_remote_device *d;
	int err;

	if (urn_remote_known(path, found->name))
		return 0;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return ENOMEM;
	snprintf(d->path, sizeof(d->path), "%s", path);
	snprintf(d->name, sizeof(d->name), "%s", found->name);
	err = urn_attach_offer(urn_remote_make, d);
	if (err != 0) {
		free(d);
		return err;
	}
	d->next = urn_remote_devices;
	urn_remote_devices = d;
	return 0;
}

void
urn_remote_offer_forked(void)
{
	pthread_mutex_init(&urn_remote_lock, NULL);
}

int
urn_remote_offer(void)
{
	const char *node = secure_getenv("URNIC_NODE");
	struct urn_sock_device found;
	char path[108];
	uint32_t i;
	int fd, err = 0;

	if (urn_remote_path(path, sizeof(path)) == NULL || access(path, F_OK) != 0)
		return 0;
	fd = urn_remote_connect(path);
	if (fd < 0)
		return errno == ETIMEDOUT ? ETIMEDOUT : 0;
	pthread_mutex_lock(&urn_remote_lock);
	/* A dataplane that did not answer is not asked again. */
	for (i = 0; err != ETIMEDOUT && (err = urn_remote_list(fd, i, &found)) == 0; i++)
		if (node == NULL || strcmp(node, found.node) == 0 || strcmp(node, found.name) == 0)
			err = urn_remote_offer_one(path, &found);
	pthread_mutex_unlock(&urn_remote_lock);
	close(fd);
	return err == ETIMEDOUT ? err : 0;
}
