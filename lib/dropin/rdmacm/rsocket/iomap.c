/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that the peer writes directly. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <stdlib.h>
#include <sys/mman.h>

/* The first index of the peer's map entries that no region has. returns: the peer's number of
 * entries: none is free */
static uint32_t
free_index(const struct urn_rs *rs)
{
	const struct urn_rs_region *r;
	uint32_t i = 0;

	r = LIST_FIRST(&rs->regions);
	while (r != NULL && i < rs->peer_iomaps) {
		if (r->index == i) {
			i++;
			r = LIST_FIRST(&rs->regions);
		} else {
			r = LIST_NEXT(r, next);
		}
	}
	return i;
}

/* Make a region; its place in the peer's entries is known when the connection is up. returns: 0,
 * or an errno value */
static int
region_new(struct urn_rs *rs, void *buf, size_t len, int prot, uint64_t offset)
{
	bool remote = (prot & PROT_WRITE) != 0;
	struct urn_rs_region *r;
	uint32_t index = remote ? free_index(rs) : UINT32_MAX;

	if (rs->state != URN_RS_UP && rs->state != URN_RS_ACCEPTING)
		return ENOTCONN;
	if (remote && index >= rs->peer_iomaps)
		return ENOMEM;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return ENOMEM;
	r->mr = ibv_reg_mr(rs->id->pd, buf, len,
			   IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (r->mr == NULL) {
		int err = errno;

		free(r);
		return err;
	}
	r->offset = offset;
	r->index = index;
	r->told = !remote;
	rs->untold = rs->untold || remote;
	LIST_INSERT_HEAD(&rs->regions, r, next);
	return 0;
}

off_t
riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int err;

	(void)flags;
	if (rs == NULL)
		return -1;
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	pthread_mutex_lock(&rs->lock);
	if (rs->type != SOCK_STREAM)
		err = EOPNOTSUPP;
	else if ((prot & ~PROT_WRITE) != 0 || len == 0 || len > UINT32_MAX || offset < 0)
		err = EINVAL;
	else
		err = region_new(rs, buf, len, prot, (uint64_t)offset);
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return err != 0 ? urn_cma_result(err) : offset;
}

int
riounmap(int socket, void *buf, size_t len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	struct urn_rs_region *r;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	LIST_FOREACH(r, &rs->regions, next)
		if (r->mr->addr == buf && r->mr->length == len)
			break;
	if (r != NULL) {
		LIST_REMOVE(r, next);
		(void)ibv_dereg_mr(r->mr);
		free(r);
	}
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return urn_cma_result(r != NULL ? 0 : EINVAL);
}

void
urn_rs_regions_free(struct urn_rs *rs)
{
	struct urn_rs_region *r;

	while ((r = LIST_FIRST(&rs->regions)) != NULL) {
		LIST_REMOVE(r, next);
		(void)ibv_dereg_mr(r->mr);
		free(r);
	}
}

static bool
can_tell(struct urn_rs *rs)
{
	if (rs->state == URN_RS_UP)
		return !rs->writable || (rs->tx.ctrl != 0 && rs->tx.seq != rs->tx.limit);
	return rs->state == URN_RS_DOWN || rs->state == URN_RS_FAILED;
}

static struct urn_rs_region *
first_untold(struct urn_rs *rs)
{
	struct urn_rs_region *r;

	LIST_FOREACH(r, &rs->regions, next)
		if (!r->told)
			break;
	return r;
}

int
urn_rs_tell_regions(struct urn_rs *rs, int flags)
{
	struct urn_rs_region *r;
	int err;

	while (first_untold(rs) != NULL) {
		err = urn_rs_wait(rs, can_tell, urn_rs_nonblocking(rs, flags) ? 0 : -1);
		if (err != 0)
			return err;
		if (rs->state != URN_RS_UP || !rs->writable)
			return ECONNRESET;
		/* The list may have changed while the thread slept. */
		r = first_untold(rs);
		if (r == NULL)
			break;
		r->told = true;
		if (!urn_rs_post_region(rs, r))
			return rs->why;
	}
	rs->untold = false;
	return 0;
}

/* ---- writing to the peer's regions */

static bool
can_write_direct(struct urn_rs *rs)
{
	return urn_rs_connected(rs) ? rs->state != URN_RS_UP || urn_rs_tx_room(&rs->tx)
				    : rs->state == URN_RS_FAILED;
}

/* returns: 0, or an errno value; *sent grows */
static int
write_direct(struct urn_rs *rs, const uint8_t *buf, size_t count, uint64_t offset, int flags,
	     size_t *sent)
{
	size_t step = URN_RS_FIRST_WRITE;
	struct urn_rs_sge to;
	int64_t n;
	int err;

	while (*sent < count) {
		size_t left = count - *sent;

		err = urn_rs_wait(rs, can_write_direct, urn_rs_nonblocking(rs, flags) ? 0 : -1);
		if (err != 0)
			return err;
		if (rs->state != URN_RS_UP || !rs->writable)
			return ECONNRESET;
		if (!urn_rs_map_find(rs->maps, rs->iomaps, offset + *sent, &to))
			return ENXIO;
		n = urn_rs_post_direct(rs, &to, buf + *sent, left < step ? left : step);
		if (n < 0)
			return rs->why;
		if (step < URN_RS_LONGEST_WRITE)
			step *= 2;
		*sent += (size_t)n;
	}
	return 0;
}

size_t
riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct urn_rs *rs = urn_rs_get(socket);
	size_t sent = 0;
	int err = 0;

	if (rs == NULL)
		return (size_t)-1;
	pthread_mutex_lock(&rs->sending);
	pthread_mutex_lock(&rs->lock);
	if (rs->type != SOCK_STREAM)
		err = EOPNOTSUPP;
	else if (rs->state < URN_RS_CONNECTING)
		err = ENOTCONN;
	else if (offset < 0)
		err = EINVAL;
	if (err == 0 && rs->untold)
		err = urn_rs_tell_regions(rs, flags);
	if (err == 0)
		err = write_direct(rs, buf, count, (uint64_t)offset, flags, &sent);
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_unlock(&rs->sending);
	urn_rs_put(rs);
	return sent != 0 || err == 0 ? sent : (size_t)urn_cma_result(err);
}
