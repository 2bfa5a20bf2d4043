/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: work requests linked once, and filled in for each message. */
#include "perf.h"

#include "abi/queue.h"
#include "common/explain.h"
#include "stage.h"

#include <string.h>

static enum ibv_wr_opcode
opcode_of(enum perf_op op)
{
	if (perf_op_is_send(op))
		return IBV_WR_SEND;
	if (perf_op_is_read(op))
		return IBV_WR_RDMA_READ;
	return perf_op_is_atomic(op) ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_WRITE;
}

void
post_prepare(struct side *s)
{
	struct wr_batch *b = s->wr;
	bool local_dst = perf_op_is_read(s->o->op) || perf_op_is_atomic(s->o->op);
	struct ibv_mr *mr = local_dst ? s->mr_dst : s->mr_src;

	memset(b, 0, sizeof(*b));
	for (unsigned int i = 0; i < PERF_BATCH; i++) {
		struct ibv_send_wr *wr = &b->send[i];

		wr->next = i + 1 < PERF_BATCH ? &b->send[i + 1] : NULL;
		wr->opcode = opcode_of(s->o->op);
		wr->sg_list = &b->sge[i];
		wr->num_sge = s->l->size > 0 ? 1 : 0;
		if (s->l->tells && i % 2 == 1) { /* tells of the WRITE before */
			wr->opcode = IBV_WR_SEND;
			wr->num_sge = 0;
		}
		b->sge[i].length = (uint32_t)s->l->size;
		b->sge[i].lkey = mr != NULL ? mr->lkey : 0;
		b->recv[i].next = i + 1 < PERF_BATCH ? &b->recv[i + 1] : NULL;
		b->recv[i].sg_list = &b->recv_sge[i];
		b->recv[i].num_sge = s->l->size > 0 && !s->l->tells ? 1 : 0;
		b->recv_sge[i].length = (uint32_t)s->l->size + s->l->grh;
		b->recv_sge[i].lkey = s->mr_dst != NULL ? s->mr_dst->lkey : 0;
	}
}

/* Source slot of the message that q posts next, written as the options say. */
static uint8_t *
stamp_source(struct side *s, const struct perf_qp *q, uint32_t qp)
{
	uint32_t slot = (uint32_t)q->seq & (s->l->src_slots - 1);
	uint8_t *data = s->mem.src + layout_src_off(s->l, qp, slot);

	if (s->o->fill)
		pattern_fill(s->p, data, s->l->size, pattern_start(qp, slot));
	if (s->o->check != PERF_CHECK_NONE || perf_op_is_pingpong(s->o->op))
		pattern_put_stamp(data, s->l->size, pattern_stamp(qp, q->seq + 1));
	return data;
}

/* Fill in one request: the next message of q. */
static void
fill_one(struct side *s, struct perf_qp *q, uint32_t qp, struct ibv_send_wr *wr)
{
	struct ibv_sge *sge = wr->sg_list;
	uint64_t dst = layout_dst_off(s->l, qp, q->dst);
	uint32_t slot = (uint32_t)q->seq & (s->l->src_slots - 1);

	switch (wr->opcode) {
	case IBV_WR_SEND:
		sge->addr = (uintptr_t)stamp_source(s, q, qp);
		if (s->ah == NULL)
			break;
		wr->wr.ud.ah = s->ah;
		wr->wr.ud.remote_qpn = q->peer_qpn;
		wr->wr.ud.remote_qkey = PERF_QKEY;
		break;
	case IBV_WR_RDMA_READ:
		sge->addr = (uintptr_t)s->mem.dst + dst;
		wr->wr.rdma.remote_addr = s->peer_va_src + layout_src_off(s->l, qp, slot);
		wr->wr.rdma.rkey = s->peer_rkey_src;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		sge->addr = (uintptr_t)s->mem.dst + dst;
		wr->wr.atomic.remote_addr = s->peer_va_dst;
		wr->wr.atomic.compare_add = 1;
		wr->wr.atomic.rkey = s->peer_rkey_dst;
		break;
	default:
		sge->addr = (uintptr_t)stamp_source(s, q, qp);
		wr->wr.rdma.remote_addr = s->peer_va_dst + dst;
		wr->wr.rdma.rkey = s->peer_rkey_dst;
		break;
	}
	q->seq++;
	if (++q->dst == s->l->dst_slots)
		q->dst = 0;
}

int
post_messages(struct side *s, uint32_t qp, uint32_t n, bool signal, uint32_t count, uint64_t now)
{
	struct perf_qp *q = &s->qp[qp];
	uint32_t each = s->l->tells ? 2 : 1; /* requests of a message */
	struct ibv_send_wr *wr = s->wr->send, *last = &wr[n * each - 1], *bad = NULL,
			   *next = last->next;
	bool local_dst = perf_op_is_read(s->o->op) || perf_op_is_atomic(s->o->op);
	unsigned int flags =
		!local_dst && s->l->size <= s->o->inline_bytes ? (unsigned int)IBV_SEND_INLINE : 0u;
	int rc;

	for (uint32_t i = 0; i < n * each; i++) {
		if (i % each == 0)
			fill_one(s, q, qp, &wr[i]);
		wr[i].wr_id = wr_id_make(qp, count, now);
		wr[i].send_flags = flags;
	}
	if (signal)
		last->send_flags |= IBV_SEND_SIGNALED;
	last->next = NULL;
	URN_STAGE(LIBRARY);
	rc = ibv_post_send(q->qp, wr, &bad);
	URN_STAGE(PROGRAM);
	last->next = next;
	if (s->meter != NULL)
		s->meter->posted += n;
	if (rc == 0)
		return 0;
	run_fail(s->run, "%s: QP 0x%06x does not take request %llu: %s", perf_op_name(s->o->op),
		 q->qp->qp_num, (unsigned long long)q->seq, strerror(rc));
	return -1;
}

void
fail_completion(struct side *s, const struct ibv_wc *wc)
{
	bool first;

	if (wc->vendor_err == URN_VE_GONE)
		first = run_fail(s->run, "the dataplane that node %c is attached to is gone",
				 'A' + (int)s->index);
	else
		first = run_fail(
			s->run,
			"%s: QP 0x%06x of node %c, wr_id 0x%llx, completed with status %d (%s), "
			"vendor error %u",
			perf_op_name(s->o->op), wc->qp_num, 'A' + (int)s->index,
			(unsigned long long)wc->wr_id, (int)wc->status,
			ibv_wc_status_str(wc->status), wc->vendor_err);
	/* The question waits for the threads' end: a thread that polls an engine asks no other. */
	if (!first)
		return;
	s->run->wc = *wc;
	s->run->wc_ctx = s->ctx;
}

void
run_explain(const struct run *r)
{
	urn_explain_print("urnic-perf", r->wc_ctx, &r->wc);
}
