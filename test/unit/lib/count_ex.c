/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended polling and posting through the provider that counts. */
#include "count_priv.h"

static struct ibv_cq_ex *
cq_below(struct ibv_cq_ex *ex)
{
	return (struct ibv_cq_ex *)((struct count_cq *)ex)->below;
}

/* Show what the queue below shows. */
static int
shown(struct ibv_cq_ex *ex, int err)
{
	ex->wr_id = cq_below(ex)->wr_id;
	ex->status = cq_below(ex)->status;
	return err;
}

static int
start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	count.polls++;
	return shown(ex, ibv_start_poll(cq_below(ex), attr));
}

static int
next_poll(struct ibv_cq_ex *ex)
{
	return shown(ex, ibv_next_poll(cq_below(ex)));
}

static void
end_poll(struct ibv_cq_ex *ex)
{
	ibv_end_poll(cq_below(ex));
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *ex)
{
	return ibv_wc_read_opcode(cq_below(ex));
}

static uint32_t
read_byte_len(struct ibv_cq_ex *ex)
{
	return ibv_wc_read_byte_len(cq_below(ex));
}

void
count_cq_ex(struct count_cq *cq)
{
	cq->ex.start_poll = start_poll;
	cq->ex.next_poll = next_poll;
	cq->ex.end_poll = end_poll;
	cq->ex.read_opcode = read_opcode;
	cq->ex.read_byte_len = read_byte_len;
}

static struct ibv_qp_ex *
qp_below(struct ibv_qp_ex *ex)
{
	return ibv_qp_to_qp_ex(((struct count_qp *)ex)->below);
}

static void
wr_start(struct ibv_qp_ex *ex)
{
	count.batches++;
	ibv_wr_start(qp_below(ex));
}

static void
wr_send(struct ibv_qp_ex *ex)
{
	struct ibv_qp_ex *under = qp_below(ex);

	under->wr_id = ex->wr_id;
	under->wr_flags = ex->wr_flags;
	ibv_wr_send(under);
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	ibv_wr_set_sge(qp_below(ex), lkey, addr, length);
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	return ibv_wr_complete(qp_below(ex));
}

void
count_qp_ex(struct count_qp *qp)
{
	qp->ex.wr_start = wr_start;
	qp->ex.wr_send = wr_send;
	qp->ex.wr_set_sge = wr_set_sge;
	qp->ex.wr_complete = wr_complete;
}
