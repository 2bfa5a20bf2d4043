/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/adapter/copy.h"

#include "attach/alloc.h"
#include "verbs/adapter/sq.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
	URN_COPY_RING = 2 << 20, /* bytes of a ring: 32 messages of 64 KiB */
	URN_COPY_SHORT = 4096,	 /* bytes of a request that URNIC_COPY=short copies */
	URN_COPY_RINGS = 64,	 /* rings of a context: 128 MiB */
	URN_COPY_ALIGN = 64,
	URN_COPY_PARTS = 32,  /* elements of a request; data of more is not copied */
	URN_COPY_CHUNK = 256, /* regions of a chunk of the map */
	URN_COPY_CHUNKS =
		256, /* keys beyond are not noted, and data of their regions is not copied */
};

/* Opcodes that send bytes of this program. */
#define URN_COPY_OPS (1u << URN_WR_RDMA_WRITE | 1u << URN_WR_RDMA_WRITE_IMM | 1u << URN_WR_SEND | \
	1u << URN_WR_SEND_IMM | 1u << URN_WR_SEND_INV)

struct urn_copy_region {
	_Atomic uint32_t lkey;  /* 0: none; stored last */
	uint32_t pd;            /* handle */
	const uint8_t *addr;
	uint64_t iova, length;  /* bytes */
};

struct urn_copy_map {
	uint64_t most;		/* bytes of a request; data of more is not copied */
	_Atomic bool any;	/* a region has been noted */
	_Atomic uint32_t rings; /* that queue pairs have */
	pthread_mutex_t lock;   /* held while a chunk is made; chunks stay until the context goes */
	_Atomic(struct urn_copy_region *) chunk[URN_COPY_CHUNKS];
};

/* Ring of a queue pair, under the lock of its send queue. head, tail: bytes ever taken and given back;
 * head - tail is URN_COPY_RING at most. */
struct urn_copy {
	struct urn_copy_map *map;
	bool refused;		/* the system does not let the process read itself by its number */
	uint8_t *ring;          /* URN_COPY_RING bytes of shared memory */
	struct ibv_mr *mr;      /* the ring */
	uint64_t head, tail;
	uint32_t seen;          /* requests looked at: all that are published */
	uint32_t done;          /* requests that were retired when tail was set */
	uint64_t end[];         /* by slot: head after the slot's request took its bytes */
};

/* ---- regions */

int
urn_copy_open(struct urn_ctx *ctx)
{
	const char *told = secure_getenv("URNIC_COPY");

	if (ctx->dev.channel->share == NULL || told == NULL || told[0] == '\0' || strcmp(told, "no") == 0)
		return 0;
	if (strcmp(told, "yes") != 0 && strcmp(told, "short") != 0)
		return urn_fail(EINVAL, "URNIC_COPY is '%.32s'; it is yes, short or no", told);
	ctx->copies = urn_object_alloc(sizeof(*ctx->copies));
	if (ctx->copies == NULL)
		return ENOMEM;
	ctx->copies->most = told[0] == 's' ? URN_COPY_SHORT : URN_COPY_RING;
	pthread_mutex_init(&ctx->copies->lock, NULL);
	return 0;
}

void
urn_copy_close(struct urn_ctx *ctx)
{
	unsigned int i;

	if (ctx->copies == NULL)
		return;
	for (i = 0; i < URN_COPY_CHUNKS; i++)
		free(ctx->copies->chunk[i]);
	pthread_mutex_destroy(&ctx->copies->lock);
	free(ctx->copies);
}

/* The map's entry for a key. NULL: there is none (with make: no memory for one, or the key is too high) */
static struct urn_copy_region *
urn_copy_at(struct urn_copy_map *map, uint32_t lkey, bool make)
{
	uint32_t i = lkey >> 8;
	struct urn_copy_region *chunk;

	if (i / URN_COPY_CHUNK >= URN_COPY_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&map->chunk[i / URN_COPY_CHUNK], memory_order_acquire);
	if (chunk == NULL && make) {
		pthread_mutex_lock(&map->lock);
		chunk = map->chunk[i / URN_COPY_CHUNK];
		if (chunk == NULL)
			chunk = calloc(URN_COPY_CHUNK, sizeof(*chunk));
		atomic_store_explicit(&map->chunk[i / URN_COPY_CHUNK], chunk, memory_order_release);
		pthread_mutex_unlock(&map->lock);
	}
	return chunk != NULL ? &chunk[i % URN_COPY_CHUNK] : NULL;
}

void
urn_copy_note(struct urn_ctx *ctx, const struct urn_abi_req *req, uint32_t lkey)
{
	const void *addr = (const void *)(uintptr_t)req->reg_mr.addr;
	struct urn_segment shared;
	struct urn_copy_region *r;

	if (ctx->copies == NULL || urn_segment_find(addr, req->reg_mr.length, &shared))
		return;
	r = urn_copy_at(ctx->copies, lkey, true);
	if (r == NULL)
		return;
	r->pd = req->reg_mr.pd;
	r->addr = addr;
	r->iova = req->reg_mr.iova;
	r->length = req->reg_mr.length;
	atomic_store_explicit(&r->lkey, lkey, memory_order_release);
	atomic_store_explicit(&ctx->copies->any, true, memory_order_relaxed);
}

void
urn_copy_forget(struct urn_ctx *ctx, uint32_t lkey)
{
	struct urn_copy_region *r = ctx->copies != NULL ? urn_copy_at(ctx->copies, lkey, false) : NULL;

	if (r != NULL)
		atomic_store_explicit(&r->lkey, 0, memory_order_release);
}

/* The address of an element's bytes. NULL: not to be copied; the dataplane reports the error, if there is one */
static const uint8_t *
urn_copy_source(struct urn_copy_map *map, uint32_t pd, const struct urn_abi_sge *sge)
{
	const struct urn_copy_region *r = urn_copy_at(map, sge->lkey, false);
	uint64_t off;

	if (r == NULL || sge->lkey == 0 || atomic_load_explicit(&r->lkey, memory_order_acquire) != sge->lkey ||
	    r->pd != pd || sge->length == 0)
		return NULL;
	off = sge->addr - r->iova;
	return off <= r->length && sge->length <= r->length - off ? r->addr + off : NULL;
}

/* ---- rings */

/* A ring for the queue pair. NULL: there is no memory, or no further region, for one */
static struct urn_copy *
urn_copy_make(const struct urn_adapter_qp *qp, struct urn_copy_map *map)
{
	size_t slots = (size_t)qp->sq.mask + 1;
	struct urn_copy *c = calloc(1, sizeof(*c) + slots * sizeof(c->end[0]));

	if (c == NULL)
		return NULL;
	c->map = map;
	c->ring = urn_alloc(URN_COPY_RING);
	c->mr = c->ring != NULL
			? urn_reg_mr(qp->ibv.pd, c->ring, URN_COPY_RING, (uintptr_t)c->ring, 0)
			: NULL;
	if (c->mr == NULL) {
		urn_free(c->ring);
		free(c);
		return NULL;
	}
	c->mr->context = qp->ibv.context;
	return c;
}

void
urn_copy_connected(struct urn_adapter_qp *qp)
{
	struct urn_copy_map *map = urn_ctx(qp->ibv.context)->copies;
	struct urn_copy *c;

	if (map == NULL || !atomic_load_explicit(&map->any, memory_order_relaxed) ||
	    qp->copy != NULL)
		return;
	if (atomic_fetch_add_explicit(&map->rings, 1, memory_order_relaxed) < URN_COPY_RINGS &&
	    (c = urn_copy_make(qp, map)) != NULL) {
		urn_lock_take(&qp->sq.lock);
		qp->copy = c;
		urn_copy_reset(qp);
		urn_lock_give(&qp->sq.lock);
		return;
	}
	atomic_fetch_sub_explicit(&map->rings, 1, memory_order_relaxed);
}

void
urn_copy_destroy(struct urn_adapter_qp *qp)
{
	struct urn_copy *c = qp->copy;

	if (c == NULL)
		return;
	/* A ring that can't be deregistered may still be read, and stays until the program ends. */
	if (urn_dereg_mr(c->mr) == 0) {
		free(c->mr);
		urn_free(c->ring);
		atomic_fetch_sub_explicit(&c->map->rings, 1, memory_order_relaxed);
	}
	free(c);
	qp->copy = NULL;
}

void
urn_copy_reset(struct urn_adapter_qp *qp)
{
	struct urn_copy *c = qp->copy;

	if (c == NULL)
		return;
	c->seen = c->done = qp->sq.prod;
	c->head = c->tail = 0;
}

/* Take back the bytes of retired requests. */
static void
urn_copy_reclaim(struct urn_copy *c, const struct urn_adapter_sq *sq)
{
	/* Acquire: the dataplane no longer reads the source of a request that it retired. */
	uint32_t done = atomic_load_explicit(&sq->hdr->cons, memory_order_acquire);

	if (done == c->done || done - c->done > c->seen - c->done)
		return;
	c->done = done;
	c->tail = c->end[(done - 1) & sq->mask];
	/* Begin at the start again, where caches are warm, when no request has bytes in the ring. */
	if (done == c->seen)
		c->head = c->tail = 0;
}

/* Room for `bytes` bytes of the ring in a row. NULL: not now */
static uint8_t *
urn_copy_room(struct urn_copy *c, const struct urn_adapter_sq *sq, uint64_t bytes)
{
	uint64_t size = (bytes + URN_COPY_ALIGN - 1) & ~(uint64_t)(URN_COPY_ALIGN - 1);
	unsigned int tries;

	for (tries = 0; tries < 2; tries++) {
		uint64_t at = c->head % URN_COPY_RING;
		uint64_t skip = at + size > URN_COPY_RING ? URN_COPY_RING - at : 0;

		if (c->head + skip + size - c->tail <= URN_COPY_RING) {
			c->head += skip + size;
			return c->ring + (skip ? 0 : at);
		}
		if (tries == 0)
			urn_copy_reclaim(c, sq);
	}
	return NULL;
}

/*
 * Find the bytes of a request. from: its parts, URN_COPY_PARTS. returns: how many bytes; 0: none
 * that are to be copied
 */
static uint64_t
urn_copy_parts(const struct urn_adapter_qp *qp, const struct urn_copy *c,
	       const struct urn_abi_swqe *wqe, struct iovec *from)
{
	const struct urn_abi_sge *sge = (const struct urn_abi_sge *)(wqe + 1);
	uint64_t bytes = 0;
	uint32_t i;

	if (!(URN_COPY_OPS >> wqe->opcode & 1) || (wqe->flags & URN_WRF_INLINE) ||
	    wqe->num_sge > URN_COPY_PARTS)
		return 0;
	for (i = 0; i < wqe->num_sge; i++) {
		const uint8_t *at = urn_copy_source(c->map, qp->ibv.pd->handle, &sge[i]);

		if (at == NULL)
			return 0;
		from[i] = (struct iovec){(void *)(uintptr_t)at, sge[i].length};
		bytes += sge[i].length;
	}
	return bytes;
}

/*
 * The kernel copies, and not this thread: a program may have unmapped or protected a registered
 * page, which then is no fault here, but the dataplane's error. A sandbox may forbid the call.
 */
static void
urn_copy_request(const struct urn_adapter_qp *qp, struct urn_copy *c, struct urn_abi_swqe *wqe)
{
	struct urn_abi_sge *sge = (struct urn_abi_sge *)(wqe + 1);
	struct iovec from[URN_COPY_PARTS], to = {0};
	ssize_t got;

	to.iov_len = urn_copy_parts(qp, c, wqe, from);
	if (to.iov_len == 0 || to.iov_len > c->map->most || c->refused)
		return;
	to.iov_base = urn_copy_room(c, &qp->sq, to.iov_len);
	if (to.iov_base == NULL)
		return;
	/* The number is kept, because getpid() is a call of the kernel as well. */
	got = process_vm_readv(urn_ctx(qp->ibv.context)->pid, &to, 1, from, wqe->num_sge, 0);
	if (got != (ssize_t)to.iov_len) {
		/* The room comes back with the request's end. */
		c->refused = got < 0 && (errno == EPERM || errno == ENOSYS);
		return;
	}
	sge[0] = (struct urn_abi_sge){.addr = (uintptr_t)to.iov_base,
				      .lkey = c->mr->lkey,
				      .length = (uint32_t)to.iov_len};
	wqe->num_sge = 1;
}

void
urn_copy_posted(struct urn_adapter_qp *qp)
{
	const struct urn_adapter_sq *sq = &qp->sq;
	struct urn_copy *c = qp->copy;

	if (c->done != c->seen)
		urn_copy_reclaim(c, sq);
	for (; c->seen != sq->prod; c->seen++) {
		urn_copy_request(qp, c, (struct urn_abi_swqe *)(sq->slots + (size_t)(c->seen & sq->mask) * sq->stride));
		c->end[c->seen & sq->mask] = c->head;
	}
}
