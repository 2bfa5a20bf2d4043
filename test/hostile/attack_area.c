/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a program shares with the dataplane: queues, their indexes, doorbells. The attacker's
 * queue pairs are connected to each other, so that requests which make sense by chance move bytes.
 */
#include "attacks.h"

#include <string.h>

enum {
	PAIRS = 4,
	DEPTH = 64,
	CQES = 1024,
	BYTES = 1 << 20,
	WRITES = 4096, /* bytes, requests or indexes in a round */
	MEND = 16,     /* rounds after which queue pairs are brought to RTS again */
	ANEW = 256,    /* rounds after which all objects are made anew */
};

struct board {
	struct foe_end end[2];
	struct ibv_qp *qp[PAIRS][2];
	struct ibv_srq *srq;
};

static void
board_open(struct board *b, const struct foe *f)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = DEPTH, .max_sge = 2}};

	foe_open(&b->end[0], f, "a", BYTES, CQES);
	foe_open(&b->end[1], f, "b", BYTES, CQES);
	b->srq = ibv_create_srq(b->end[0].pd, &srq);
	FOE_MUST(b->srq != NULL, "shared receive queue");
	for (unsigned int i = 0; i < PAIRS; i++)
		foe_pair(&b->end[0], &b->end[i % 2], DEPTH, b->qp[i]);
}

/*
 * Bring the queue pairs to RTS again, which the dataplane may refuse; or make all objects anew,
 * because a completion queue that was overrun stays as it is. n: rounds
 */
static void
board_mend(struct board *b, const struct foe *f, unsigned int n)
{
	if (n % ANEW == ANEW - 1) {
		for (unsigned int k = 0; k < 2; k++) { /* a device takes its objects along */
			FOE_MUST(ibv_close_device(b->end[k].ctx) == 0, "close");
			urn_free(b->end[k].buf);
		}
		board_open(b, f);
	}
	if (n % MEND != 0)
		return;
	for (unsigned int i = 0; i < PAIRS; i++)
		for (unsigned int k = 0; k < 2; k++) {
			struct foe_peer peer = {b->end[k ? 0 : i % 2].gid, b->qp[i][!k]->qp_num, 10,
						3};

			(void)foe_connect(b->qp[i][k], &peer);
		}
}

static struct urn_adapter_qp *
any_qp(struct foe *f, struct board *b)
{
	return urn_qp(b->qp[foe_below(f, PAIRS)][foe_below(f, 2)]);
}

static void
ring(const struct urn_adapter_qp *qp)
{
	urn_dev_ring(qp->dev, qp->engine, qp->db);
}

static struct urn_abi_db *
doorbells(struct board *b)
{
	return urn_ctx_dev(b->end[0].ctx)->db[0];
}

/* ---- any bytes */

/* A piece of the area. */
struct piece {
	uint8_t *at;
	size_t bytes;
};

static struct piece
any_piece(struct foe *f, struct board *b)
{
	struct urn_adapter_qp *qp = any_qp(f, b);
	struct urn_adapter_cq *cq = urn_cq(b->end[foe_below(f, 2)].cq);
	struct urn_adapter_rq *srq = &urn_srq(b->srq)->rq;

	switch (foe_below(f, 6)) {
	case 0:
		return (struct piece){(uint8_t *)qp->sq.hdr,
				      URN_ABI_WQ_SLOTS +
					      (qp->sq.mask + 1u) * (size_t)qp->sq.stride};
	case 1:
		return (struct piece){(uint8_t *)qp->rq.hdr,
				      URN_ABI_WQ_SLOTS +
					      (qp->rq.mask + 1u) * (size_t)qp->rq.stride};
	case 2:
		return (struct piece){(uint8_t *)cq->hdr,
				      URN_ABI_CQ_SLOTS + cq->entries * sizeof(struct urn_abi_cqe)};
	case 3:
		return (struct piece){(uint8_t *)srq->hdr,
				      URN_ABI_WQ_SLOTS + (srq->mask + 1u) * (size_t)srq->stride};
	case 4:
		return (struct piece){(uint8_t *)qp->sq.hdr, URN_ABI_WQ_SLOTS};
	default:
		return (struct piece){(uint8_t *)doorbells(b), sizeof(struct urn_abi_db)};
	}
}

void
attack_area(struct foe *f)
{
	struct board b;

	board_open(&b, f);
	foe_ready(f);
	for (unsigned int n = 0;; n++) {
		for (unsigned int i = 0; i < WRITES; i++) {
			struct piece p = any_piece(f, &b);

			((volatile uint8_t *)p.at)[foe_below(f, (uint32_t)p.bytes)] =
				(uint8_t)foe_random(f);
			if (i % 64 == 0)
				ring(any_qp(f, &b));
		}
		board_mend(&b, f, n);
		foe_round(f);
	}
}

/* ---- doorbells */

void
attack_doorbells(struct foe *f)
{
	struct board b;
	struct urn_abi_db *db;

	board_open(&b, f);
	db = doorbells(&b);
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < URN_ABI_DB_WORDS; i++)
			atomic_store_explicit(&db->leaf[i], UINT64_MAX, memory_order_relaxed);
		for (unsigned int i = 0; i < URN_ABI_DB_TOPS; i++)
			atomic_store_explicit(&db->top[i], UINT64_MAX, memory_order_release);
		ring(any_qp(f, &b));
		foe_round(f);
	}
}

/* ---- requests */

/* Fill a slot with a request whose fields are right or wrong, each for itself. */
static void
any_request(struct foe *f, struct board *b, uint8_t *slot, size_t bytes)
{
	struct foe_end *e = &b->end[foe_below(f, 2)];
	struct urn_abi_swqe w = {
		.wr_id = foe_random(f),
		.opcode = (uint8_t)(foe_below(f, 4) ? foe_below(f, URN_WR_OPS + 1) : foe_random(f)),
		.flags = (uint8_t)(foe_below(f, 4) ? URN_WRF_SIGNALED : foe_random(f)),
		.num_sge = (uint8_t)(foe_below(f, 2) ? 1 : foe_random(f)),
		.imm = (uint32_t)foe_random(f),
	};
	struct urn_abi_sge sge = {
		.addr = foe_below(f, 4) ? (uintptr_t)e->buf + foe_below(f, BYTES) : foe_random(f),
		.lkey = foe_below(f, 4) ? e->mr->lkey : (uint32_t)foe_random(f),
		.length = foe_below(f, 4) ? foe_below(f, 8192) : (uint32_t)foe_random(f),
	};

	e = &b->end[foe_below(f, 2)];
	w.rdma.remote_addr =
		foe_below(f, 4) ? (uintptr_t)e->buf + foe_below(f, BYTES) : foe_random(f);
	w.rdma.rkey = foe_below(f, 4) ? e->mr->rkey : (uint32_t)foe_random(f);
	w.rdma.inline_len = foe_below(f, 4) ? 0 : (uint32_t)foe_random(f);
	memcpy(slot, &w, sizeof(w));
	for (size_t at = sizeof(w); at + sizeof(sge) <= bytes; at += sizeof(sge))
		memcpy(slot + at, &sge, sizeof(sge));
}

void
attack_requests(struct foe *f)
{
	struct board b;

	board_open(&b, f);
	foe_ready(f);
	for (unsigned int n = 0;; n++) {
		for (unsigned int i = 0; i < WRITES / 16; i++) {
			struct urn_adapter_qp *qp = any_qp(f, &b);
			uint32_t prod = atomic_load(&qp->sq.hdr->prod);

			any_request(f, &b,
				    qp->sq.slots + (prod & qp->sq.mask) * (size_t)qp->sq.stride,
				    qp->sq.stride);
			atomic_store_explicit(&qp->sq.hdr->prod, prod + 1, memory_order_release);
			ring(qp);
		}
		for (unsigned int k = 0; k < 2; k++) /* nobody polls, but the queue stays open */
			atomic_fetch_add(&urn_cq(b.end[k].cq)->hdr->cons, WRITES / 16);
		board_mend(&b, f, n);
		foe_round(f);
	}
}

/* ---- indexes */

static void
any_index(struct foe *f, struct board *b)
{
	struct urn_adapter_qp *qp = any_qp(f, b);
	struct urn_abi_cq *cq = urn_cq(b->end[foe_below(f, 2)].cq)->hdr;
	uint32_t any = foe_below(f, 2) ? foe_below(f, 2 * DEPTH) : (uint32_t)foe_random(f);

	switch (foe_below(f, 6)) {
	case 0:
		atomic_store(&qp->sq.hdr->prod, any);
		break;
	case 1:
		atomic_store(&qp->rq.hdr->prod, any);
		break;
	case 2:
		atomic_store(&urn_srq(b->srq)->rq.hdr->prod, any);
		break;
	case 3:
		atomic_store(&cq->cons, any);
		break;
	case 4:
		atomic_store(&cq->arm, any);
		break;
	default: /* the dataplane's own */
		atomic_store(foe_below(f, 2) ? &qp->sq.hdr->cons : &qp->rq.hdr->done, any);
		break;
	}
	ring(qp);
}

void
attack_indexes(struct foe *f)
{
	struct board b;

	board_open(&b, f);
	foe_ready(f);
	for (unsigned int n = 0;; n++) {
		for (unsigned int i = 0; i < WRITES; i++)
			any_index(f, &b);
		board_mend(&b, f, n);
		foe_round(f);
	}
}
