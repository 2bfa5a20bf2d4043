/* SPDX-License-Identifier: BSD-3-Clause */
/* The probe's program: receives, requests, completions. */
#include "probe.h"

#include "bare.h"

void
probe_recv(struct probe *p, uint32_t off, uint32_t len, uint64_t wr_id)
{
	struct urn_abi_wq *wq = p->cfg.srq ? p->srq.rq.hdr : p->q[p->cur].rq;
	uint32_t prod = atomic_load(&wq->prod);
	struct urn_abi_rwqe *w = bare_slot(wq, prod, PROBE_SLOTS, urn_abi_rq_stride(PROBE_SGES));
	struct urn_abi_sge *sge = (void *)(w + 1);
	uint32_t half = len / 3; /* two elements, so that packets straddle them */

	w->wr_id = wr_id;
	w->num_sge = 2;
	sge[0] = (struct urn_abi_sge){PROBE_VA + off, p->key, half};
	sge[1] = (struct urn_abi_sge){PROBE_VA + off + half, p->key_local, len - half};
	atomic_store(&wq->prod, prod + 1);
}

struct urn_abi_swqe *
probe_slot(struct probe *p)
{
	struct urn_abi_wq *sq = p->q[p->cur].sq;

	return bare_slot(sq, atomic_load(&sq->prod) - 1, PROBE_SLOTS,
			 urn_abi_sq_stride(PROBE_SGES, PROBE_INLINE));
}

void
probe_prepare(struct probe *p, uint8_t op, uint8_t flags, uint32_t off, uint32_t len,
	      uint64_t remote, uint64_t wr_id)
{
	struct urn_abi_swqe *w;
	struct urn_abi_sge *sge;

	atomic_fetch_add(&p->q[p->cur].sq->prod, 1);
	w = probe_slot(p);
	memset(w, 0, sizeof(*w));
	w->wr_id = wr_id;
	w->opcode = op;
	w->flags = flags;
	w->num_sge = len ? 1 : 0;
	w->rdma.remote_addr = PROBE_VA + remote;
	w->rdma.rkey = p->key;
	sge = (void *)(w + 1);
	*sge = (struct urn_abi_sge){PROBE_VA + off, p->key_local, len};
	if (p->cfg.type == URN_QPT_UD) {
		w->ud.ah = 1;
		w->ud.remote_qpn = p->q[p->cur].peer_qpn;
		w->ud.remote_qkey = PROBE_QKEY;
	}
}

void
probe_ring(struct probe *p)
{
	urn_tp_doorbell(p->tp, p->qp);
}

void
probe_post(struct probe *p, uint8_t op, uint8_t flags, uint32_t off, uint32_t len, uint64_t remote,
	   uint64_t wr_id)
{
	probe_prepare(p, op, (uint8_t)(flags | URN_WRF_SIGNALED), off, len, remote, wr_id);
	probe_ring(p);
}

/* ---- completions */

const struct urn_abi_cqe *
probe_cqe(struct probe *p, bool recv)
{
	struct urn_cq *cq = recv ? &p->rcq : &p->scq;
	uint32_t at = (recv ? p->rcq_seen : p->scq_seen) - 1;

	return (const struct urn_abi_cqe *)((uint8_t *)cq->hdr + URN_ABI_CQ_SLOTS) + (at & cq->mask);
}

void
probe_expect_cqe(struct probe *p, bool recv, uint64_t wr_id, uint8_t status, const char *file,
		 int line)
{
	struct urn_cq *cq = recv ? &p->rcq : &p->scq;
	uint32_t *seen = recv ? &p->rcq_seen : &p->scq_seen;
	const struct urn_abi_cqe *c;

	probe_settle(p);
	if (*seen == cq->prod) {
		print_error("no completion; wr_id %u, status %u was to come\n", (unsigned int)wr_id,
			    status);
		_fail(file, line);
	}
	++*seen;
	atomic_store(&cq->hdr->cons, *seen);
	c = probe_cqe(p, recv);
	if (c->wr_id != wr_id || c->status != status) {
		print_error("wr_id %u, status %u (%u) came, not %u, %u\n", (unsigned int)c->wr_id,
			    c->status, c->vendor_err, (unsigned int)wr_id, status);
		_fail(file, line);
	}
}

void
probe_no_cqe(struct probe *p, const char *file, int line)
{
	probe_settle(p);
	if (p->scq_seen != p->scq.prod || p->rcq_seen != p->rcq.prod) {
		print_error("%u send and %u receive completions too many\n", p->scq.prod - p->scq_seen,
			    p->rcq.prod - p->rcq_seen);
		_fail(file, line);
	}
}
