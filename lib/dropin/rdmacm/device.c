/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices: the adapters of the dataplane that URNIC_NODE allows, each opened once. */
#include "dropin/rdmacm/rdmacm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t urn_cma_lock = PTHREAD_MUTEX_INITIALIZER;
struct urn_cma_dev urn_cma_devs[URN_CMA_DEVICES];
uint32_t urn_cma_dev_count;

static uint8_t
dev_limit(int n)
{
	return n > UINT8_MAX ? UINT8_MAX : (uint8_t)n;
}

/* Read the GIDs and limits that do not change. returns: 0, or an errno value */
static int
dev_read(struct urn_cma_dev *d)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int err = ibv_query_device(d->ctx, &attr);

	if (err == 0)
		err = ibv_query_port(d->ctx, 1, &port);
	if (err != 0)
		return err;
	d->rd_atomic = dev_limit(attr.max_qp_rd_atom);
	d->init_depth = dev_limit(attr.max_qp_init_rd_atom);
	d->mtu = (uint8_t)port.active_mtu;
	d->gids = (uint32_t)(port.gid_tbl_len < URN_CMA_GIDS ? port.gid_tbl_len : URN_CMA_GIDS);
	for (uint32_t i = 0; i < d->gids; i++)
		if (ibv_query_gid(d->ctx, 1, (int)i, &d->gid[i]) != 0)
			memset(&d->gid[i], 0, sizeof(d->gid[i]));
	return 0;
}

static int
dev_open(struct urn_cma_dev *d, struct ibv_device *device)
{
	int err;

	memset(d, 0, sizeof(*d));
	d->ctx = ibv_open_device(device);
	if (d->ctx == NULL)
		return errno;
	err = dev_read(d);
	if (err == 0)
		err = urn_cm_end_open(&d->end, d->ctx);
	if (err != 0)
		ibv_close_device(d->ctx);
	return err;
}

/* urn_cma_lock is held. */
static int
devices_open(void)
{
	struct ibv_device **list;
	int n = 0, err = ENODEV;

	if (urn_cma_dev_count != 0)
		return 0;
	list = ibv_get_device_list(&n);
	if (list == NULL)
		return errno;
	for (int i = 0; i < n && urn_cma_dev_count < URN_CMA_DEVICES; i++) {
		int rc = dev_open(&urn_cma_devs[urn_cma_dev_count], list[i]);

		if (rc == 0)
			urn_cma_dev_count++;
		else
			err = rc;
	}
	ibv_free_device_list(list);
	return urn_cma_dev_count != 0 ? 0 : err;
}

int
urn_cma_devices_open(void)
{
	int err;

	pthread_mutex_lock(&urn_cma_lock);
	err = devices_open();
	pthread_mutex_unlock(&urn_cma_lock);
	return err;
}

void
urn_cma_devices_forked(void)
{
	/* The contexts stay: the program may have them from rdma_get_devices(). */
	for (uint32_t i = 0; i < urn_cma_dev_count; i++)
		close(urn_cm_end_fd(urn_cma_devs[i].end));
	urn_cma_dev_count = 0;
}

struct urn_cma_dev *
urn_cma_dev_find(const union ibv_gid *gid, uint8_t *index)
{
	for (uint32_t d = 0; d < urn_cma_dev_count; d++)
		for (uint32_t i = 0; i < urn_cma_devs[d].gids; i++)
			if (memcmp(&urn_cma_devs[d].gid[i], gid, sizeof(*gid)) == 0) {
				*index = (uint8_t)i;
				return &urn_cma_devs[d];
			}
	return NULL;
}

/* Kind of an address: own and peer address of a connection have the same kind. */
static int
gid_kind(const union ibv_gid *gid)
{
	const struct in6_addr *a = (const struct in6_addr *)gid->raw;

	if (IN6_IS_ADDR_UNSPECIFIED(a))
		return -1;
	if (IN6_IS_ADDR_V4MAPPED(a))
		return 4;
	return IN6_IS_ADDR_LINKLOCAL(a) ? 1 : 6;
}

struct urn_cma_dev *
urn_cma_dev_route(const union ibv_gid *peer, uint8_t *index)
{
	for (uint32_t d = 0; d < urn_cma_dev_count; d++)
		for (uint32_t i = 0; i < urn_cma_devs[d].gids; i++)
			if (gid_kind(&urn_cma_devs[d].gid[i]) == gid_kind(peer)) {
				*index = (uint8_t)i;
				return &urn_cma_devs[d];
			}
	return NULL;
}

int
urn_cma_id_attach(struct urn_cma_id *id, struct urn_cma_dev *dev, uint8_t gid_index)
{
	if (dev->pd == NULL)
		dev->pd = ibv_alloc_pd(dev->ctx);
	if (dev->pd == NULL)
		return errno;
	id->dev = dev;
	id->sgid_index = gid_index;
	id->pub.verbs = dev->ctx;
	id->pub.port_num = 1;
	if (id->pub.pd == NULL)
		id->pub.pd = dev->pd;
	memcpy(&id->pub.route.addr.addr.ibaddr.sgid, &dev->gid[gid_index], 16);
	id->pub.route.addr.addr.ibaddr.pkey = 0xffff;
	return 0;
}

struct ibv_context **
rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int err = urn_cma_devices_open();

	if (num_devices != NULL)
		*num_devices = 0;
	if (err == 0)
		list = calloc(urn_cma_dev_count + 1, sizeof(struct ibv_context *));
	if (list == NULL) {
		errno = err != 0 ? err : ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < urn_cma_dev_count; i++)
		list[i] = urn_cma_devs[i].ctx;
	if (num_devices != NULL)
		*num_devices = (int)urn_cma_dev_count;
	return list;
}

void
rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
