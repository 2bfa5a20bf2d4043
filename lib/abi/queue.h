/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work and completion queues in the client's area.
 *
 *   offset 0    line 0: written by the client
 *   offset 64   line 1: written by the dataplane
 *   offset 128  slots
 *
 * A queue has one producer and one consumer; several threads of a client are
 * serialised by locks in lib/. The index that publishes slots is stored with
 * release and loaded with acquire by the other side.
 */
#ifndef URN_ABI_QUEUE_H
#define URN_ABI_QUEUE_H

#include "abi/urn_abi.h"
#include "abi/vendor_err.h"

#include <stdatomic.h>

/* ---- work queue header: send queue, receive queue, shared receive queue */

struct urn_abi_wq {
	_Atomic uint32_t prod; /* client: requests posted; pairs with the acquire in host/ */
	/*
	 * Dataplane, seldom: 1 while posting to this receive queue must ring the
	 * QP's doorbell (in the error state, to have receives flushed). The client
	 * reads ring after it stores prod, without a fence between: so the dataplane, having
	 * set ring, reads prod once more 1 ms later. Stays 0 in send queues and SRQs.
	 */
	_Atomic uint32_t ring;
	uint8_t pad0[56];
	/*
	 * Dataplane: SQ: requests retired; RQ, SRQ: receives taken. When a QP goes
	 * to RESET, cons and done of its queues take the value of prod.
	 */
	_Atomic uint32_t cons;
	/*
	 * Dataplane: RQ: receives completed, in the order in which they were taken; only
	 * then is their slot the client's again (an SRQ's slot is when taken). In the queue
	 * of what a QP took from an SRQ: receives completed of those.
	 */
	_Atomic uint32_t done;
	_Atomic uint32_t last; /* dataplane: taken from an SRQ: index in the SRQ of the newest */
	_Atomic uint32_t atomics; /* dataplane: RQ, taken: entries of the log of atomics; 0: there is none */
	uint64_t atomics_off;  /* dataplane: offset of that log in the client's area; valid with atomics */
	uint8_t pad1[40];
};

#define URN_ABI_WQ_SLOTS 128u /* offset of the first slot */

/*
 * A QP on an SRQ has, in place of a receive queue, the queue of the receives that it took
 * from the SRQ: slots of 8 bytes, the wr_id of each entry, which the dataplane writes
 * before cons of the SRQ moves. So a client whose dataplane was killed knows which receives
 * were taken and not completed, after the entry's own slot was posted to again.
 */
#define URN_ABI_TAKEN 512u /* slots: receives of a QP that may be taken and not completed */

/* Opcodes of send requests; equal to enum ibv_wr_opcode. */
enum urn_abi_wr_op {
	URN_WR_RDMA_WRITE = 0,
	URN_WR_RDMA_WRITE_IMM = 1,
	URN_WR_SEND = 2,
	URN_WR_SEND_IMM = 3,
	URN_WR_RDMA_READ = 4,
	URN_WR_CMP_SWAP = 5,
	URN_WR_FETCH_ADD = 6,
	URN_WR_LOCAL_INV = 7,
	URN_WR_BIND_MW = 8,
	URN_WR_SEND_INV = 9,
	URN_WR_BIND_MW1 = 10, /* urnic's own: ibv_bind_mw(), a type 1 window */
	URN_WR_OPS = 11,
};

/* Flags of send requests; equal to enum ibv_send_flags. */
enum urn_abi_wr_flag {
	URN_WRF_FENCE = 1 << 0,
	URN_WRF_SIGNALED = 1 << 1,
	URN_WRF_SOLICITED = 1 << 2,
	URN_WRF_INLINE = 1 << 3,
};

struct urn_abi_sge {
	uint64_t addr;   /* the client's address (iova of the region) */
	uint32_t lkey;
	uint32_t length; /* bytes; 0 means 0 */
};

/*
 * A send request: 48 bytes, then num_sge elements, or inline_len bytes of
 * data when URN_WRF_INLINE is set. A slot is urn_abi_sq_stride() bytes.
 */
struct urn_abi_swqe {
	uint64_t wr_id;
	uint8_t opcode;   /* enum urn_abi_wr_op */
	uint8_t flags;    /* enum urn_abi_wr_flag */
	uint8_t num_sge;
	uint8_t rsvd;
	uint32_t imm;     /* immediate data in network order, or the rkey to invalidate (host order) */
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
			uint32_t inline_len; /* bytes of inline data, for every opcode */
			uint64_t compare_add;
			uint64_t swap;
		} rdma;
		struct {
			uint32_t ah;       /* address handle, from URN_CTL_CREATE_AH; ~0: none set */
			uint32_t remote_qpn;
			uint32_t remote_qkey;
			uint32_t inline_len; /* same place as rdma.inline_len */
			uint64_t rsvd[2];
		} ud;
		struct {
			uint64_t addr;
			uint64_t length;
			uint32_t mw_rkey;  /* the window's rkey now */
			uint32_t new_rkey; /* the window's rkey once bound; same index */
			uint32_t mr_lkey;
			uint32_t access;   /* enum urn_abi_access */
		} bind;
	};
};
_Static_assert(sizeof(struct urn_abi_wq) == URN_ABI_WQ_SLOTS, "wq header");
_Static_assert(offsetof(struct urn_abi_wq, cons) == 64, "dataplane's line");
_Static_assert(offsetof(struct urn_abi_wq, done) == 68, "dataplane's line");
_Static_assert(offsetof(struct urn_abi_wq, last) == 72, "dataplane's line");
_Static_assert(offsetof(struct urn_abi_wq, atomics_off) == 80, "dataplane's line");
_Static_assert(sizeof(struct urn_abi_sge) == 16, "sge");
_Static_assert(sizeof(struct urn_abi_swqe) == 48, "send wqe");
_Static_assert(offsetof(struct urn_abi_swqe, rdma.inline_len) == 28, "inline_len");
_Static_assert(offsetof(struct urn_abi_swqe, ud.inline_len) == 28, "inline_len");

/* A receive request: 16 bytes, then num_sge elements. */
struct urn_abi_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t taker; /* SRQ: QPN that took this entry, written by the dataplane */
};
_Static_assert(sizeof(struct urn_abi_rwqe) == 16, "receive wqe");

/*
 * The log of atomics that peers had this QP carry out, in the client's memory, one
 * entry for each atomic whose response may be repeated to the peer. The dataplane writes the
 * entry, then the memory, then marks the entry done: if the dataplane was killed, the entry
 * tells the atomic that was meant, and the memory tells whether it happened. Atomic number n of the
 * queue pair is in entry n modulo the number of entries. The layout is that of
 * URN_ABI_FEATURE_ATOMICS: dataplanes without it have another one.
 */
enum urn_abi_atomic_state {
	URN_ATOMIC_NONE = 0,   /* nothing, or being written */
	URN_ATOMIC_INTENT = 1, /* about to be stored, or just stored */
	URN_ATOMIC_DONE = 2,   /* stored; or found not to compare, then old and new are the same */
};

struct urn_abi_atomic {
	uint64_t addr;    /* address of the 8 bytes, as used with a key */
	uint64_t old;     /* value found there */
	uint64_t new;     /* value to be there */
	uint64_t number;  /* number of the atomic on this queue pair, from 1 on; 0: never used */
	uint32_t psn;     /* PSN of the request, the message that asked for the atomic */
	_Atomic uint32_t state; /* enum urn_abi_atomic_state; stored after the fields or the memory it tells of */
};
_Static_assert(sizeof(struct urn_abi_atomic) == 40, "log of atomics");
_Static_assert(offsetof(struct urn_abi_atomic, state) == 36, "log of atomics");

/* Bytes of a send slot that holds max_sge elements or max_inline bytes. */
static inline uint32_t
urn_abi_sq_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t body = max_sge * (uint32_t)sizeof(struct urn_abi_sge);

	if (max_inline > body)
		body = max_inline;
	return ((uint32_t)sizeof(struct urn_abi_swqe) + body + 63u) & ~63u;
}

/* Bytes of a receive slot that holds max_sge elements: 32, 64, 128, ... */
static inline uint32_t
urn_abi_rq_stride(uint32_t max_sge)
{
	uint32_t need = 16u + max_sge * (uint32_t)sizeof(struct urn_abi_sge);
	uint32_t stride = 32;

	while (stride < need)
		stride *= 2;
	return stride;
}

/* ---- completion queue */

/* Events that a completion queue is armed for (ibv_req_notify_cq). */
enum urn_abi_cq_arm {
	URN_CQ_ARM_NONE = 0,
	URN_CQ_ARM_SOLICITED = 1,
	URN_CQ_ARM_NEXT = 2,
};

/*
 * When URN_CTL_DESTROY_QP, or URN_CTL_MODIFY_QP to RESET, has been answered, no
 * further completion of that QP is written; the client removes those it has not
 * read. URN_CTL_RESIZE_CQ makes a new queue and carries over, at one moment,
 * the completions between cons and prod of the old one; the client goes on reading at
 * cons of the new header. The client leaves the old queue alone from
 * the call on, and arms the new one itself.
 */
struct urn_abi_cq {
	_Atomic uint32_t cons; /* client: completions polled */
	_Atomic uint32_t arm;  /* client sets; the side that fires the event swaps NONE in */
	uint8_t pad0[56];
	/* Dataplane's line, without a prod: the phases tell which completions are written. */
	_Atomic uint32_t moved_entries; /* URN_CTL_RESIZE_CQ: entries of the queue that replaced this one; 0: none */
	uint32_t rsvd;
	uint64_t moved_off;    /* offset of that queue, for a client that was not answered */
	uint8_t pad1[48];
};

#define URN_ABI_CQ_SLOTS 128u

/*
 * One completion. Valid when its phase equals the reader's: the phase of lap
 * n (index / entries) is (n & 1) ^ 1, so a zeroed queue holds none. The phase
 * byte is stored last, with release; the reader loads it with acquire.
 *
 * The dataplane writes the other fields, then URN_CQE_WHOLE into phase, then cons (of
 * a send queue) or done (of a receive queue), then the phase that makes the completion valid.
 * When the dataplane is killed in between, the client finds the next completion whole and
 * makes the last two steps itself, so that each request completes once.
 */
struct urn_abi_cqe {
	uint64_t wr_id;
	uint32_t byte_len;   /* receives, READs, atomics */
	uint32_t imm;        /* immediate in network order, or the invalidated rkey */
	uint32_t qp_num;
	uint32_t src_qp;     /* UD */
	uint16_t vendor_err; /* enum urn_abi_vendor_err */
	uint16_t wqe;        /* low bits of the request's index in its queue, or in the queue of taken receives */
	uint8_t status;      /* enum urn_abi_wc_status */
	uint8_t opcode;      /* enum urn_abi_wc_op */
	uint8_t wc_flags;    /* enum urn_abi_wc_flag */
	_Atomic uint8_t phase;
};
_Static_assert(sizeof(struct urn_abi_cq) == URN_ABI_CQ_SLOTS, "cq header");
_Static_assert(offsetof(struct urn_abi_cq, moved_entries) == 64, "dataplane's line");
_Static_assert(offsetof(struct urn_abi_cq, moved_off) == 72, "dataplane's line");
_Static_assert(sizeof(struct urn_abi_cqe) == 32, "cqe");
_Static_assert(offsetof(struct urn_abi_cqe, wqe) == 26, "index of the request");
_Static_assert(offsetof(struct urn_abi_cqe, phase) == 31, "phase is last");

/* A phase of no lap: the completion is whole, and not valid yet. */
#define URN_CQE_WHOLE 2u

/*
 * A queue may have as many of these as entries, behind its slots. Where wc_flags has
 * URN_WCF_BESIDE, the bytes of the message are not in the memory of the receive yet: they
 * are in the element of the same index, and the client copies them when it polls the completion,
 * or before, when it gives up their memory, the queue or the queue pair. The dataplane has checked
 * the key, and writes the element before the completion is URN_CQE_WHOLE. An element that was
 * copied has the flag cleared. URN_CTL_RESIZE_CQ carries elements over with their completions.
 */
#define URN_ABI_BESIDE 112u /* bytes of a message that fit */

struct urn_abi_beside {
	uint64_t addr;	 /* the client's address of the first byte to write */
	uint32_t length; /* bytes, at most URN_ABI_BESIDE */
	uint32_t rsvd;
	uint8_t data[URN_ABI_BESIDE];
};
_Static_assert(sizeof(struct urn_abi_beside) == 128, "two cache lines");
_Static_assert(offsetof(struct urn_abi_beside, data) == 16, "message beside a completion");

/* Offset of the first of them, from the header of a queue with so many entries. */
static inline uint64_t
urn_abi_beside_off(uint32_t entries)
{
	uint64_t slots = URN_ABI_CQ_SLOTS + (uint64_t)entries * sizeof(struct urn_abi_cqe);

	return (slots + URN_ABI_CACHE_LINE - 1) & ~(uint64_t)(URN_ABI_CACHE_LINE - 1);
}

/* Equal to enum ibv_wc_status. */
enum urn_abi_wc_status {
	URN_WC_SUCCESS = 0,
	URN_WC_LOC_LEN_ERR = 1,
	URN_WC_LOC_QP_OP_ERR = 2,
	URN_WC_LOC_PROT_ERR = 4,
	URN_WC_WR_FLUSH_ERR = 5,
	URN_WC_MW_BIND_ERR = 6,
	URN_WC_BAD_RESP_ERR = 7,
	URN_WC_LOC_ACCESS_ERR = 8,
	URN_WC_REM_INV_REQ_ERR = 9,
	URN_WC_REM_ACCESS_ERR = 10,
	URN_WC_REM_OP_ERR = 11,
	URN_WC_RETRY_EXC_ERR = 12,
	URN_WC_RNR_RETRY_EXC_ERR = 13,
	URN_WC_REM_ABORT_ERR = 16,
	URN_WC_FATAL_ERR = 19,
	URN_WC_GENERAL_ERR = 21,
};

/* Equal to enum ibv_wc_opcode. */
enum urn_abi_wc_op {
	URN_WCO_SEND = 0,
	URN_WCO_RDMA_WRITE = 1,
	URN_WCO_RDMA_READ = 2,
	URN_WCO_COMP_SWAP = 3,
	URN_WCO_FETCH_ADD = 4,
	URN_WCO_BIND_MW = 5,
	URN_WCO_LOCAL_INV = 6,
	URN_WCO_RECV = 128,
	URN_WCO_RECV_RDMA_WITH_IMM = 129,
};

/* Equal to enum ibv_wc_flags, but for the last two, which programs don't see. */
enum urn_abi_wc_flag {
	URN_WCF_GRH = 1 << 0,
	URN_WCF_WITH_IMM = 1 << 1,
	URN_WCF_WITH_INV = 1 << 3,
	URN_WCF_BESIDE = 1 << 6, /* the message is beside the completion */
	URN_WCF_IPV4 = 1 << 7,	 /* UD: the header before the payload is IPv4's */
};

#endif
