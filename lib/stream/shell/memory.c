/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of programs for transfers without a copy. Memory that the program has added has a region
 * for long; any other gets a region for the time of one call, so that its key is of no use to the
 * peer when the program has its memory back.
 */
#include "stream/shell/shell.h"

#include "attach/fail.h"

#include <errno.h>
#include <stdlib.h>

int
urn_stream_memory_add(struct urn_stream_node *n, void *addr, size_t bytes)
{
	struct urn_sh_memory *m = bytes ? calloc(1, sizeof(*m)) : NULL;
	int err;

	if (!bytes)
		return urn_fail(EINVAL, "memory of no bytes");
	if (!m)
		return urn_fail(ENOMEM, "no memory to add memory");
	m->mr = ibv_reg_mr(n->pd, addr, bytes,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE);
	if (!m->mr) {
		err = errno;
		free(m);
		errno = err;
		return err;
	}
	pthread_mutex_lock(&n->lock);
	TAILQ_INSERT_HEAD(&n->memory, m, entry);
	pthread_mutex_unlock(&n->lock);
	return 0;
}

/* Take memory out of the list. returns: 0; ENOENT; EBUSY */
static int
take_out(struct urn_stream_node *n, const void *addr, struct urn_sh_memory **out)
{
	struct urn_sh_memory *m;
	int err = ENOENT;

	pthread_mutex_lock(&n->lock);
	TAILQ_FOREACH(m, &n->memory, entry) {
		if (m->mr->addr != addr)
			continue;
		err = m->users ? EBUSY : 0;
		if (!err)
			TAILQ_REMOVE(&n->memory, m, entry);
		break;
	}
	pthread_mutex_unlock(&n->lock);
	*out = m;
	return err;
}

int
urn_stream_memory_remove(struct urn_stream_node *n, const void *addr)
{
	struct urn_sh_memory *m;
	int err = take_out(n, addr, &m);

	if (err == ENOENT)
		return urn_fail(ENOENT, "no memory that begins at %p was added", addr);
	if (err)
		return urn_fail(EBUSY, "a send or receive uses the memory at %p", addr);
	(void)ibv_dereg_mr(m->mr);
	free(m);
	return 0;
}

/* The memory of the node that has a whole area, and one more user now; NULL: none. */
static struct urn_sh_memory *
find(struct urn_stream_node *n, const struct urn_st_area *a)
{
	struct urn_sh_memory *m;

	pthread_mutex_lock(&n->lock);
	TAILQ_FOREACH(m, &n->memory, entry) {
		uint64_t from = (uintptr_t)m->mr->addr;

		if (a->addr >= from && a->bytes <= m->mr->length &&
		    a->addr - from <= m->mr->length - a->bytes)
			break;
	}
	if (m)
		m->users++;
	pthread_mutex_unlock(&n->lock);
	return m;
}

int
urn_sh_register(struct urn_stream_node *n, struct urn_sh_op *op, struct urn_st_area *area,
		int access)
{
	struct ibv_mr *mr;

	op->known = find(n, area);
	mr = op->known ? op->known->mr : NULL;
	if (!mr)
		mr = op->mr = ibv_reg_mr(n->pd, (void *)(uintptr_t)area->addr, area->bytes,
					 (unsigned int)access);
	if (!mr)
		return errno;
	area->lkey = mr->lkey;
	area->rkey = mr->rkey;
	return 0;
}

int
urn_sh_unregister(struct urn_stream_node *n, struct urn_sh_op *op)
{
	int err = op->mr ? ibv_dereg_mr(op->mr) : 0;

	if (op->known) {
		pthread_mutex_lock(&n->lock);
		op->known->users--;
		pthread_mutex_unlock(&n->lock);
	}
	op->mr = NULL;
	op->known = NULL;
	/* A dataplane that is gone reaches no memory. */
	return err && err != EIO ? urn_fail(err, "the region of a call can't be taken back") : 0;
}
