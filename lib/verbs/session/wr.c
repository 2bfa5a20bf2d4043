/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting through ibv_wr_*(): the requests of a batch are built in memory of the queue pair, and
 * posted as a list by ibv_wr_complete(). The first error drops the whole batch, which
 * ibv_wr_complete() returns. The batch has a lock of its own, held from start to end.
 */
#include "verbs/session/sv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One request of a batch. */
struct urn_sv_built {
	struct ibv_send_wr wr;
	struct ibv_sge sge[URN_SV_SGES];
	uint8_t data[URN_SV_INLINE]; /* inline data */
};

struct urn_sv_batch {
	pthread_mutex_t lock; /* protects all below, and is held while a batch is built */
	uint32_t n, room;     /* requests; elements of `built` */
	int err;	      /* first error since ibv_wr_start() */
	struct urn_sv_built built[];
};

static struct urn_sv_qp *
of(struct ibv_qp_ex *ex)
{
	return (struct urn_sv_qp *)ex;
}

static void
fail(struct ibv_qp_ex *ex, int err)
{
	if (of(ex)->batch->err == 0)
		of(ex)->batch->err = err;
}

/* Begin a request. returns: NULL after an error */
static struct ibv_send_wr *
begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode op)
{
	struct urn_sv_batch *b = of(ex)->batch;
	struct urn_sv_built *one;

	if (b->n == b->room)
		fail(ex, ENOMEM);
	if (b->err != 0)
		return NULL;
	one = &b->built[b->n++];
	one->wr = (struct ibv_send_wr){
		.wr_id = ex->wr_id,
		.sg_list = one->sge,
		.opcode = op,
		.send_flags = ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE,
	};
	return &one->wr;
}

/* The request being built. returns: NULL after an error */
static struct urn_sv_built *
current(struct ibv_qp_ex *ex)
{
	struct urn_sv_batch *b = of(ex)->batch;

	return b->err == 0 && b->n != 0 ? &b->built[b->n - 1] : NULL;
}

static struct ibv_send_wr *
rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = begin(ex, op);

	if (wr != NULL) {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
	return wr;
}

static void
atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr, uint64_t compare,
       uint64_t swap)
{
	struct ibv_send_wr *wr = begin(ex, op);

	if (wr != NULL) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = compare;
		wr->wr.atomic.swap = swap;
	}
}

static void
urn_sv_wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
			 uint64_t swap)
{
	atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void
urn_sv_wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void
urn_sv_wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void
urn_sv_wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void
urn_sv_wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct ibv_send_wr *wr = rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);

	if (wr != NULL)
		wr->imm_data = imm;
}

static void
urn_sv_wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void
urn_sv_wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_SEND_WITH_IMM);

	if (wr != NULL)
		wr->imm_data = imm;
}

/* ---- operations that a virtual device lacks */

static void
urn_sv_wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		  const struct ibv_mw_bind_info *info)
{
	(void)mw, (void)rkey, (void)info;
	fail(ex, EOPNOTSUPP);
}

static void
urn_sv_wr_key(struct ibv_qp_ex *ex, uint32_t rkey)
{
	(void)rkey;
	fail(ex, EOPNOTSUPP);
}

static void
urn_sv_wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr, (void)hdr_sz, (void)mss;
	fail(ex, EOPNOTSUPP);
}

static void
urn_sv_wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *value)
{
	(void)rkey, (void)addr, (void)value;
	fail(ex, EOPNOTSUPP);
}

/* ---- addresses and data */

static void
urn_sv_wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct urn_sv_built *one = current(ex);

	if (one == NULL)
		return;
	one->wr.wr.ud.ah = ah;
	one->wr.wr.ud.remote_qpn = qpn;
	one->wr.wr.ud.remote_qkey = qkey;
}

static void
urn_sv_wr_set_inline_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_data_buf *list)
{
	struct urn_sv_built *one = current(ex);
	size_t bytes = 0;

	if (one == NULL)
		return;
	for (size_t i = 0; i < num; i++) {
		if (list[i].length > of(ex)->cap.max_inline_data ||
		    list[i].length > sizeof(one->data) - bytes) {
			fail(ex, EINVAL);
			return;
		}
		memcpy(one->data + bytes, list[i].addr, list[i].length);
		bytes += list[i].length;
	}
	one->sge[0] = (struct ibv_sge){(uintptr_t)one->data, (uint32_t)bytes, 0};
	one->wr.num_sge = 1;
	one->wr.send_flags |= IBV_SEND_INLINE;
}

static void
urn_sv_wr_set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf one = {.addr = addr, .length = length};

	urn_sv_wr_set_inline_list(ex, 1, &one);
}

static void
urn_sv_wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
	struct urn_sv_built *one = current(ex);

	if (one == NULL)
		return;
	if (num > of(ex)->cap.max_send_sge || num > URN_SV_SGES) {
		fail(ex, EINVAL);
		return;
	}
	memcpy(one->sge, list, num * sizeof(*list));
	one->wr.num_sge = (int)num;
}

static void
urn_sv_wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge one = {.addr = addr, .length = length, .lkey = lkey};

	urn_sv_wr_set_sge_list(ex, 1, &one);
}

/* ---- batches */

static void
urn_sv_wr_start(struct ibv_qp_ex *ex)
{
	struct urn_sv_batch *b = of(ex)->batch;

	pthread_mutex_lock(&b->lock);
	b->n = 0;
	b->err = 0;
}

static int
urn_sv_wr_complete(struct ibv_qp_ex *ex)
{
	struct urn_sv_batch *b = of(ex)->batch;
	struct ibv_send_wr *bad;
	int err = b->err;

	for (uint32_t i = 0; i + 1 < b->n; i++)
		b->built[i].wr.next = &b->built[i + 1].wr;
	if (err == 0 && b->n != 0)
		err = urn_sv_post_send(&of(ex)->ibv, &b->built[0].wr, &bad);
	pthread_mutex_unlock(&b->lock);
	return err;
}

static void
urn_sv_wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&of(ex)->batch->lock);
}

void
urn_sv_wr_forked(struct urn_sv_qp *q)
{
	if (q->batch != NULL)
		pthread_mutex_init(&q->batch->lock, NULL);
}

int
urn_sv_wr_init(struct urn_sv_qp *q)
{
	uint32_t room = q->cap.max_send_wr;
	struct ibv_qp_ex *ex = &q->ex;

	q->batch = calloc(1, sizeof(*q->batch) + room * sizeof(q->batch->built[0]));
	if (q->batch == NULL)
		return urn_fail(ENOMEM, "no memory for a queue pair");
	q->batch->room = room;
	pthread_mutex_init(&q->batch->lock, NULL);
	ex->wr_atomic_cmp_swp = urn_sv_wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = urn_sv_wr_atomic_fetch_add;
	ex->wr_bind_mw = urn_sv_wr_bind_mw;
	ex->wr_local_inv = urn_sv_wr_key;
	ex->wr_rdma_read = urn_sv_wr_rdma_read;
	ex->wr_rdma_write = urn_sv_wr_rdma_write;
	ex->wr_rdma_write_imm = urn_sv_wr_rdma_write_imm;
	ex->wr_send = urn_sv_wr_send;
	ex->wr_send_imm = urn_sv_wr_send_imm;
	ex->wr_send_inv = urn_sv_wr_key;
	ex->wr_send_tso = urn_sv_wr_send_tso;
	ex->wr_set_ud_addr = urn_sv_wr_set_ud_addr;
	ex->wr_set_xrc_srqn = urn_sv_wr_key;
	ex->wr_set_inline_data = urn_sv_wr_set_inline;
	ex->wr_set_inline_data_list = urn_sv_wr_set_inline_list;
	ex->wr_set_sge = urn_sv_wr_set_sge;
	ex->wr_set_sge_list = urn_sv_wr_set_sge_list;
	ex->wr_start = urn_sv_wr_start;
	ex->wr_complete = urn_sv_wr_complete;
	ex->wr_abort = urn_sv_wr_abort;
	ex->wr_atomic_write = urn_sv_wr_atomic_write;
	return 0;
}
