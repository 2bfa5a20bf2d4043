/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended polling of software completion queues. A poll shows copies of completions; the queue's
 * polling lock is held from its start to its end, and the context's only while a completion is
 * taken, because programs post while they read.
 */
#include "verbs/session/cq.h"

#include <errno.h>

static const struct ibv_wc *
shown(struct ibv_cq_ex *ex)
{
	return &((struct urn_sv_cq *)ex)->shown.wc;
}

/* Show the next completion; the polling lock is held. returns: 0, or ENOENT: there is none */
static int
show(struct urn_sv_cq *cq, bool look)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(cq->ex.context);
	bool there;

	urn_sv_lock(ctx);
	if (look && cq->head == cq->tail)
		urn_sv_progress(cq);
	there = urn_sv_pop(cq, &cq->shown);
	urn_sv_unlock(ctx);
	if (!there)
		return ENOENT;
	cq->ex.wr_id = cq->shown.wc.wr_id;
	cq->ex.status = cq->shown.wc.status;
	return 0;
}

static int
urn_sv_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct urn_sv_cq *cq = (struct urn_sv_cq *)ex;

	if (attr != NULL && attr->comp_mask != 0)
		return EINVAL;
	if (urn_sv_forked(urn_sv_ctx(ex->context)) != 0)
		return EIO;
	pthread_mutex_lock(&cq->polling);
	if (show(cq, true) == 0)
		return 0;
	pthread_mutex_unlock(&cq->polling);
	return ENOENT;
}

static int
urn_sv_next_poll(struct ibv_cq_ex *ex)
{
	return show((struct urn_sv_cq *)ex, false);
}

static void
urn_sv_end_poll(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&((struct urn_sv_cq *)ex)->polling);
}

static enum ibv_wc_opcode
urn_sv_read_opcode(struct ibv_cq_ex *ex)
{
	return shown(ex)->opcode;
}

static uint32_t
urn_sv_read_vendor_err(struct ibv_cq_ex *ex)
{
	return shown(ex)->vendor_err;
}

static uint32_t
urn_sv_read_byte_len(struct ibv_cq_ex *ex)
{
	return shown(ex)->byte_len;
}

static __be32
urn_sv_read_imm_data(struct ibv_cq_ex *ex)
{
	return shown(ex)->imm_data;
}

static uint32_t
urn_sv_read_qp_num(struct ibv_cq_ex *ex)
{
	return shown(ex)->qp_num;
}

static uint32_t
urn_sv_read_src_qp(struct ibv_cq_ex *ex)
{
	return shown(ex)->src_qp;
}

static unsigned int
urn_sv_read_wc_flags(struct ibv_cq_ex *ex)
{
	return shown(ex)->wc_flags;
}

static uint8_t
urn_sv_read_sl(struct ibv_cq_ex *ex)
{
	return shown(ex)->sl;
}

/* Ethernet has no local identifiers or path bits. */
static uint32_t
urn_sv_read_slid(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint8_t
urn_sv_read_path_bits(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

void
urn_sv_cq_ex(struct urn_sv_cq *cq)
{
	pthread_mutex_init(&cq->polling, NULL);
	cq->ex.start_poll = urn_sv_start_poll;
	cq->ex.next_poll = urn_sv_next_poll;
	cq->ex.end_poll = urn_sv_end_poll;
	cq->ex.read_opcode = urn_sv_read_opcode;
	cq->ex.read_vendor_err = urn_sv_read_vendor_err;
	cq->ex.read_byte_len = urn_sv_read_byte_len;
	cq->ex.read_imm_data = urn_sv_read_imm_data;
	cq->ex.read_qp_num = urn_sv_read_qp_num;
	cq->ex.read_src_qp = urn_sv_read_src_qp;
	cq->ex.read_wc_flags = urn_sv_read_wc_flags;
	cq->ex.read_slid = urn_sv_read_slid;
	cq->ex.read_sl = urn_sv_read_sl;
	cq->ex.read_dlid_path_bits = urn_sv_read_path_bits;
}
