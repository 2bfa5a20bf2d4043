/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work under way: checked copies of send requests, from when they are fetched
 * until they are retired. Taken from a pool of the engine, so that an idle QP
 * holds none.
 */
#ifndef URN_TRANSPORT_WORK_H
#define URN_TRANSPORT_WORK_H

#include "abi/queue.h"

#include <stdbool.h>
#include <stdint.h>

enum urn_work_state {
	URN_WORK_QUEUED,  /* PSNs given, not sent yet */
	URN_WORK_SENDING, /* some packets sent */
	URN_WORK_SENT,    /* all sent once; retired by acknowledgement */
	URN_WORK_DONE,    /* READ, atomic: response whole and placed; local work: executed */
	URN_WORK_FAILED,  /* to be completed with `status` in its turn */
	URN_WORK_BROKEN,  /* READ, atomic: fails once its bad response has its turn */
};

enum { URN_WORK_SGE = 2, URN_WORK_INLINE = URN_WORK_SGE * 16 };

struct urn_work {
	struct urn_work *next;   /* in the QP's queue, oldest first, or in the pool */
	uint64_t wr_id;
	uint8_t opcode;          /* enum urn_abi_wr_op */
	uint8_t flags;           /* enum urn_abi_wr_flag */
	uint8_t num_sge;
	uint8_t state;           /* enum urn_work_state */
	uint8_t status;          /* enum urn_abi_wc_status, valid when FAILED */
	uint8_t vendor_err;      /* enum urn_abi_vendor_err, valid when FAILED */
	uint16_t inline_len;     /* bytes, when URN_WRF_INLINE */
	uint32_t imm;            /* immediate (network order) or rkey to invalidate */
	uint32_t length;         /* bytes of the message */
	uint32_t first_psn;      /* of the message; local work: the PSN after its predecessor */
	uint32_t npsn;           /* PSNs it takes; 0: local work */
	uint32_t ssn;            /* send sequence number, for credits */
	uint32_t accepted;       /* READ: packets of the response accepted */
	uint32_t placed;         /* READ, atomic: packets of the response placed */
	uint32_t rkey;           /* RDMA: remote key; UD: Q_Key */
	uint64_t remote_addr;    /* RDMA; UD: QPN in the low half, address handle in the high */
	uint64_t compare_add;    /* atomics; bind: length */
	uint64_t swap;           /* atomics; bind: new rkey low, region lkey high */
	struct urn_work_ext *ext; /* further elements or inline data; NULL: none */
	union {
		struct urn_abi_sge sge[URN_WORK_SGE]; /* valid when ext is NULL */
		uint8_t data[URN_WORK_INLINE];
	};
};
_Static_assert(sizeof(struct urn_work) <= 136, "work under way fits two lines and a bit");

struct urn_work_ext {
	union {
		struct urn_work_ext *next; /* in the pool */
		struct urn_abi_sge sge[URN_ABI_MAX_SGE];
		uint8_t data[URN_ABI_MAX_INLINE];
	};
};

static inline const struct urn_abi_sge *
urn_work_sge(const struct urn_work *w)
{
	return w->ext ? w->ext->sge : w->sge;
}

static inline const uint8_t *
urn_work_inline(const struct urn_work *w)
{
	return w->ext ? w->ext->data : w->data;
}

/* READs and atomics: completed by a response, never by an acknowledgement. */
static inline bool
urn_work_is_fetch(const struct urn_work *w)
{
	return w->opcode == URN_WR_RDMA_READ || w->opcode == URN_WR_CMP_SWAP ||
	       w->opcode == URN_WR_FETCH_ADD;
}

/* Takes a receive at the peer, so is under end-to-end credit. */
static inline bool
urn_work_takes_recv(const struct urn_work *w)
{
	return w->opcode == URN_WR_SEND || w->opcode == URN_WR_SEND_IMM ||
	       w->opcode == URN_WR_SEND_INV || w->opcode == URN_WR_RDMA_WRITE_IMM;
}

#endif
