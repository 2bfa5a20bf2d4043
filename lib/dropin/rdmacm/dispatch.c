/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listener of ends: a thread that fetches the events of all devices' ends, and gives each to
 * its id. A table finds a connection's id by the end's number for it.
 */
#include "dropin/rdmacm/rdmacm.h"

#include "attach/stop.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct urn_cma_ids table[URN_CMA_HASH];
static bool started;

void
urn_cma_table_add(struct urn_cma_id *id, uint32_t cm)
{
	id->cm = cm;
	LIST_INSERT_HEAD(&table[cm % URN_CMA_HASH], id, chain);
}

void
urn_cma_table_remove(struct urn_cma_id *id)
{
	LIST_REMOVE(id, chain);
	id->cm = 0;
}

static struct urn_cma_id *
table_find(const struct urn_cma_dev *dev, uint32_t cm)
{
	struct urn_cma_id *id;

	LIST_FOREACH(id, &table[cm % URN_CMA_HASH], chain)
		if (id->cm == cm && id->dev == dev)
			return id;
	return NULL;
}

/* How well a listening id fits the address that a request was sent to: 3 its own, 2 one of its
 * family, 1 another; 0: not at all */
static int
fits(const struct urn_cma_id *id, const uint8_t own[16])
{
	const struct sockaddr *a = &id->pub.route.addr.src_addr;
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)own);
	union ibv_gid gid;

	if (urn_cma_addr_to_gid(a, &gid) && memcmp(gid.raw, own, 16) == 0)
		return 3;
	if (urn_cma_addr_any(a) && (a->sa_family == AF_INET) == v4)
		return 2;
	return id->afonly ? 0 : 1;
}

/* Find the id for a request to the end's listener `cm` and to an own address. */
static struct urn_cma_id *
listener_find(const struct urn_cma_dev *dev, uint32_t cm, const uint8_t own[16])
{
	struct urn_cma_id *id, *found = NULL;
	int best = 0;

	LIST_FOREACH(id, &urn_cma_all, next)
		if (id->listeners[dev - urn_cma_devs] == cm && fits(id, own) > best) {
			found = id;
			best = fits(id, own);
		}
	return found;
}

/* An event of a request to no listener that is there any more: the end refuses the request. */
static void
dispatch(struct urn_cma_dev *dev, const struct urn_abi_cm_event *ev)
{
	struct urn_cma_id *id;

	if (ev->type == URN_CM_EVENT_REQUEST || ev->type == URN_CM_EVENT_SIDR_REQUEST) {
		id = listener_find(dev, ev->listen_id, ev->own_gid);
		if (id != NULL)
			urn_cma_request(id, dev, ev);
		else
			(void)urn_cm_end_destroy(dev->end, ev->id);
		return;
	}
	id = table_find(dev, ev->id);
	if (id != NULL)
		urn_cma_step(id, ev);
}

/* The dataplane is gone: its ids get no more events, and the program learns of it once. */
static void
device_gone(const struct urn_cma_dev *dev)
{
	struct urn_cma_id *id;

	LIST_FOREACH(id, &urn_cma_all, next)
		if (id->dev == dev && id->reported)
			(void)urn_cma_post(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, 0);
}

/* Fetch what waits at a device's end. returns: false when the dataplane is gone */
static bool
fetch(struct urn_cma_dev *dev)
{
	struct urn_abi_cm_event ev;
	int err;

	pthread_mutex_lock(&urn_cma_lock);
	while ((err = urn_cm_end_event(dev->end, &ev)) == 0)
		dispatch(dev, &ev);
	if (err != EAGAIN)
		device_gone(dev);
	pthread_mutex_unlock(&urn_cma_lock);
	return err == EAGAIN;
}

static void *
listen_to_ends(void *arg)
{
	struct pollfd p[URN_CMA_DEVICES];
	uint32_t n = urn_cma_dev_count;

	(void)arg;
	for (uint32_t i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = urn_cm_end_fd(urn_cma_devs[i].end), .events = POLLIN};
	for (;;) {
		if (poll(p, n, -1) < 0)
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (p[i].revents != 0 && !fetch(&urn_cma_devs[i]))
				p[i].fd = -1; /* poll() ignores it from now on */
	}
	return NULL;
}

/* Start the thread, with the program's signals blocked: they are for its own threads. */
static int
start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	urn_stop_mask(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, listen_to_ends, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

int
urn_cma_dispatch_start(void)
{
	int err = 0;

	pthread_mutex_lock(&urn_cma_lock);
	if (!started)
		err = start();
	started = started || err == 0;
	pthread_mutex_unlock(&urn_cma_lock);
	return err;
}

void
urn_cma_dispatch_forked(void)
{
	for (uint32_t i = 0; i < URN_CMA_HASH; i++)
		LIST_INIT(&table[i]);
	started = false;
}
