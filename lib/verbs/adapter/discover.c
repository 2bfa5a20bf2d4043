/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts the adapters of the dataplane at the usual path on offer. */
#include "verbs/adapter/adapter.h"

#include "attach/remote.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An adapter that was put on offer; lives for ever, like a device of the machine. */
struct urn_found {
	struct urn_found *next;
	char path[108];
	char name[32];
};

/* urn_found_lock protects the list of adapters that were put on offer. */
static pthread_mutex_t urn_found_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_found *urn_found_list; /* under urn_found_lock */

static struct urn_abi_channel *
urn_found_make(void *arg)
{
	const struct urn_found *d = arg;
	uint32_t can;
	int fd = urn_remote_connect(d->path, &can);

	return fd < 0 ? NULL : urn_remote_open(fd, d->name, can);
}

/* True when the adapter is on offer already; the offer works whenever the dataplane is there. */
static bool
urn_found_known(const char *path, const char *name)
{
	const struct urn_found *d;

	for (d = urn_found_list; d != NULL; d = d->next)
		if (strcmp(d->path, path) == 0 && strcmp(d->name, name) == 0)
			return true;
	return false;
}

/* returns: 0, or an errno value */
static int
urn_discover_one(const char *path, const struct urn_sock_device *found)
{
	struct urn_verbs_origin from;
	struct urn_found *d;
	int err;

	if (urn_found_known(path, found->name))
		return 0;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return ENOMEM;
	snprintf(d->path, sizeof(d->path), "%s", path);
	snprintf(d->name, sizeof(d->name), "%s", found->name);
	from = urn_adapter_origin(urn_found_make, d);
	err = urn_verbs_offer(&from);
	if (err != 0) {
		free(d);
		return err;
	}
	d->next = urn_found_list;
	urn_found_list = d;
	return 0;
}

void
urn_discover_forked(void)
{
	pthread_mutex_init(&urn_found_lock, NULL);
}

int
urn_discover(void)
{
	const char *node = secure_getenv("URNIC_NODE");
	struct urn_sock_device found;
	char path[108];
	uint32_t i;
	int fd, err = 0;

	if (urn_remote_path(path, sizeof(path)) == NULL || access(path, F_OK) != 0)
		return 0;
	fd = urn_remote_connect(path, NULL);
	if (fd < 0)
		return errno == ETIMEDOUT ? ETIMEDOUT : 0;
	pthread_mutex_lock(&urn_found_lock);
	/* A dataplane that did not answer is not asked again. */
	for (i = 0; err != ETIMEDOUT && (err = urn_remote_list(fd, i, &found)) == 0; i++)
		if (node == NULL || strcmp(node, found.node) == 0 || strcmp(node, found.name) == 0)
			err = urn_discover_one(path, &found);
	pthread_mutex_unlock(&urn_found_lock);
	close(fd);
	return err == ETIMEDOUT ? err : 0;
}
