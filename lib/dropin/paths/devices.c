/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the dataplane for devices, by a copy of urnic's library that nobody else sees. */
#include "dropin/paths/paths.h"

#include "verbs/fault/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Seconds after which the dataplane is asked again: it may have been started anew. */
enum { URN_PATHS_FRESH = 1 };

/* urn_paths_lock protects what the dataplane said, and is held while somebody uses it. */
static pthread_mutex_t urn_paths_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_paths_devices urn_paths_all; /* under urn_paths_lock */
static time_t urn_paths_asked = -1;	       /* under urn_paths_lock; -1: never */

/* This thread asks. */
static _Thread_local bool urn_paths_asking;

/* A thread that held the lock is not in the child. */
static void
urn_paths_forked(void)
{
	pthread_mutex_init(&urn_paths_lock, NULL);
}

__attribute__((constructor)) static void
urn_paths_start(void)
{
	(void)pthread_atfork(NULL, NULL, urn_paths_forked);
	urn_faults_off = true; /* they are the program's */
}

/* Fill what an open device knows. returns: false: the dataplane went away */
static bool
ask_device(struct ibv_context *c, struct urn_paths_device *d)
{
	struct ibv_device_attr attr;
	uint32_t i;

	if (ibv_query_device(c, &attr) != 0 || ibv_query_port(c, 1, &d->port) != 0)
		return false;
	memcpy(d->fw_ver, attr.fw_ver, sizeof(d->fw_ver) - 1);
	d->gids = (uint32_t)d->port.gid_tbl_len;
	if (d->gids > URN_PATHS_GIDS)
		d->gids = URN_PATHS_GIDS;
	for (i = 0; i < d->gids; i++)
		if (ibv_query_gid(c, 1, (int)i, &d->gid[i]) != 0)
			return false;
	return true;
}

/* Ask for all devices. Under urn_paths_lock. */
static void
ask(struct urn_paths_devices *all)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c;
	size_t i;

	memset(all, 0, sizeof(*all));
	for (i = 0; list != NULL && list[i] != NULL && all->n < URN_PATHS_DEVICES; i++) {
		struct urn_paths_device *d = &all->device[all->n];

		snprintf(d->name, sizeof(d->name), "%s", ibv_get_device_name(list[i]));
		d->guid = be64toh(ibv_get_device_guid(list[i]));
		c = ibv_open_device(list[i]);
		if (c == NULL)
			continue;
		all->n += ask_device(c, d);
		ibv_close_device(c);
	}
	if (list != NULL)
		ibv_free_device_list(list);
}

const struct urn_paths_devices *
urn_paths_hold(void)
{
	struct timespec now = {0};
	int err = errno;

	if (urn_paths_asking)
		return NULL;
	pthread_mutex_lock(&urn_paths_lock);
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (urn_paths_asked < 0 || now.tv_sec - urn_paths_asked > URN_PATHS_FRESH) {
		urn_paths_asking = true;
		ask(&urn_paths_all);
		urn_paths_asking = false;
		clock_gettime(CLOCK_MONOTONIC, &now);
		urn_paths_asked = now.tv_sec;
	}
	errno = err;
	return &urn_paths_all;
}

void
urn_paths_release(void)
{
	pthread_mutex_unlock(&urn_paths_lock);
}
