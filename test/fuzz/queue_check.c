/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of the dataplane's readers of a program's work queues. The linker puts them in
 * front of the readers (--wrap): a request or receive that is accepted obeys the limits of
 * its queue, the operation and the QP, and there are no more of them than the queue has
 * slots. A reader that goes beyond its slot harms nobody that a test could ask: it reads
 * the same program's next slot.
 */
#include "fuzz.h"

#include "transport/tp.h"

struct urn_work *__real_urn_req_fetch(struct urn_tp *tp, struct urn_qp *qp);
struct urn_work *__wrap_urn_req_fetch(struct urn_tp *tp, struct urn_qp *qp);
struct urn_recv *__real_urn_qp_take_recv(struct urn_tp *tp, struct urn_qp *qp, bool *bad,
					 uint64_t *wr_id);
struct urn_recv *__wrap_urn_qp_take_recv(struct urn_tp *tp, struct urn_qp *qp, bool *bad,
					 uint64_t *wr_id);

/* Sets of operations with the same rules; of enum urn_abi_wr_op. */
#define BIT(op) (1u << URN_WR_##op)
#define DATAGRAMS (BIT(SEND) | BIT(SEND_IMM))
#define ATOMICS (BIT(CMP_SWAP) | BIT(FETCH_ADD))
#define FETCHES (ATOMICS | BIT(RDMA_READ))
#define LOCALS (BIT(LOCAL_INV) | BIT(BIND_MW) | BIT(BIND_MW1))
#define ALL (DATAGRAMS | FETCHES | LOCALS | BIT(SEND_INV) | BIT(RDMA_WRITE) | BIT(RDMA_WRITE_IMM))

/* A request names no more data than its queue's slots can hold. */
static void
check_body(const struct urn_qp *qp, const struct urn_work *w)
{
	const struct urn_abi_sge *sge = urn_work_sge(w);
	uint64_t total = 0;

	if (w->flags & URN_WRF_INLINE) {
		fuzz_check(w->inline_len <= qp->sq.max_inline && w->length == w->inline_len);
		fuzz_check(w->ext || w->inline_len <= URN_WORK_INLINE);
		return;
	}
	fuzz_check(w->num_sge <= qp->sq.max_sge);
	fuzz_check(w->ext || w->num_sge <= URN_WORK_SGE);
	for (unsigned int i = 0; i < w->num_sge; i++)
		total += sge[i].length;
	fuzz_check(total <= URN_ABI_MAX_MSG && w->length == total);
}

static void
check_work(const struct urn_qp *qp, const struct urn_work *w)
{
	uint32_t op;

	fuzz_check(w->opcode < 32 && (ALL >> w->opcode & 1));
	op = 1u << w->opcode;
	if (op & LOCALS) {
		fuzz_check(w->npsn == 0);
	} else {
		check_body(qp, w);
		fuzz_check(w->npsn >= 1 && w->npsn <= URN_PSN_MAX_OUTSTANDING);
		fuzz_check((op & ATOMICS) || (uint64_t)w->npsn * qp->mtu >= w->length);
	}
	if (qp->type == URN_QPT_UD)
		fuzz_check((op & DATAGRAMS) && w->length <= qp->mtu);
	if (op & FETCHES)
		fuzz_check(qp->tx.max_fetch && !(w->flags & URN_WRF_INLINE));
	if (op & ATOMICS)
		fuzz_check(w->length == 8);
}

struct urn_work *
__wrap_urn_req_fetch(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_work *w = __real_urn_req_fetch(tp, qp);

	fuzz_check(qp->sq.prod - qp->sq.fetched <= qp->sq.mask + 1);
	if (w && w->state != URN_WORK_FAILED)
		check_work(qp, w);
	return w;
}

struct urn_recv *
__wrap_urn_qp_take_recv(struct urn_tp *tp, struct urn_qp *qp, bool *bad, uint64_t *wr_id)
{
	const struct urn_rq *rq = qp->srq ? &qp->srq->rq : &qp->rq;
	struct urn_recv *r = __real_urn_qp_take_recv(tp, qp, bad, wr_id);
	uint64_t total = 0;

	fuzz_check(rq->prod - rq->cons <= rq->mask + 1u);
	fuzz_check(!qp->srq || qp->rq.undone <= URN_ABI_TAKEN);
	if (!r)
		return NULL;
	fuzz_check(r->num_sge <= rq->max_sge);
	for (uint32_t i = 0; i < r->num_sge; i++)
		total += r->sge[i].length;
	fuzz_check(r->length == (total < URN_ABI_MAX_MSG ? total : URN_ABI_MAX_MSG));
	return r;
}
