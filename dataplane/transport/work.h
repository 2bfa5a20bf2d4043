/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work under way: checked copies of send requests, from when they are fetched until they are
 * retired. Work is taken from a pool of the engine, so that an idle QP holds none.
 */
#ifndef URN_TRANSPORT_WORK_H
#define URN_TRANSPORT_WORK_H

#include "abi/queue.h"
#include "memory/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_flow_strand;
struct urn_flow_msg;

enum urn_work_state {
	URN_WORK_QUEUED,  /* PSNs are assigned, nothing was sent yet */
	URN_WORK_SENDING, /* some packets sent */
	URN_WORK_SENT,    /* all packets sent once; an acknowledgement retires it */
	URN_WORK_DONE,    /* READ, atomic: response complete and placed; local work: executed */
	URN_WORK_FAILED,  /* to be completed with `status` in its turn */
	URN_WORK_BROKEN,  /* READ, atomic: fails once its bad response has its turn */
	URN_WORK_FENCED,  /* local work: its key is dead, operations accepted under the key are under way (fence) */
};

/* Local work waits until the operations that were accepted under a key are done (fetch.c). */
struct urn_fence {
	struct urn_region *mr;     /* region that the window was bound to: counts the window until then */
	struct urn_memx_mark mark; /* valid when marked: a mark in the executor that is waited for */
	uint32_t asked;            /* see urn_mem_ask_turn(); used when all engines are waited for */
	uint32_t turn;             /* turn of this engine in which the key died */
	uint8_t next;              /* engine that is waited for, counted from this one */
	uint8_t engines;           /* engines to wait for; 1: this one only */
	bool marked;
};

/*
 * The part of a request that work is. A write that is put on the peer's cache lines goes as two
 * messages (reshape.h): two works in a row, of which the second stands for the request.
 */
enum urn_work_piece {
	URN_PIECE_WHOLE, /* the request */
	URN_PIECE_BULK,	 /* from the first line on; the next work is its URN_PIECE_HEAD */
	URN_PIECE_TWO,	 /* both parts in one message, whose last packet carries the head, too */
	URN_PIECE_HEAD,	 /* the part that the bulk skipped: completes the request */
};

enum { URN_WORK_SGE = 2, URN_WORK_INLINE = URN_WORK_SGE * 16 };

/* Kinds of work; bits of struct urn_work.kind. */
enum urn_work_kind {
	URN_WK_KNOWN = 1 << 0, /* the opcode exists */
	URN_WK_LOCAL = 1 << 1, /* bind, invalidate: nothing is sent */
	URN_WK_FETCH = 1 << 2, /* READ, atomic: completed by a response, never by an ACK */
	URN_WK_ATOMIC = 1 << 3,
	URN_WK_RECV = 1 << 4,	 /* takes a receive at the peer, so end-to-end credits count */
	URN_WK_DGRAM = 1 << 5,	 /* UD has this opcode, too */
	URN_WK_COMPARE = 1 << 6, /* atomic: swaps if the value is the expected one; without: adds */
	URN_WK_IMM = 1 << 7,	 /* the message carries an immediate */
};

/* Everything about the opcode of a request. */
struct urn_wr_info {
	uint8_t kind;        /* enum urn_work_kind; 0: no such opcode */
	uint8_t wc_opcode;   /* enum urn_abi_wc_op of the completion */
	uint8_t wire[4];     /* opcode of a middle, first, last and only packet; local work: none */
	uint8_t mw_type; /* local work: type of the window that is bound, 1 or 2; 0: invalidates */
};

/* Indexed by the low bits of enum urn_abi_wr_op (fetch.c). */
enum { URN_WR_INFOS = 16 };
extern const struct urn_wr_info urn_wr_info[URN_WR_INFOS];

/* A packet of a flow: one PSN, with several whole messages or a part of a long one (flow_priv.h). */
struct urn_flow_packet {
	struct urn_flow_msg *msg; /* its messages, in the order of their segments; NULL: all segments are void */
	struct urn_flow_strand
		*strand; /* the strand in whose turn it was sent first; NULL when acknowledged */
	uint32_t off;          /* part: bytes of the message before it; without msg: id of the message it was a part of */
	uint32_t bytes;        /* part: bytes of it; whole messages: bytes of all segments */
	uint32_t sent_no;      /* number of its last transmission among those of the flow */
	uint16_t voids;        /* bit i: segment i is void */
	uint8_t segs;          /* segments */
	uint8_t part;          /* 1: a part of a long message */
	uint8_t state;         /* enum urn_flow_packet_state */
	bool shared;	       /* messages of other strands are in it, too */
	uint8_t probe;	       /* transmissions with `bytes` bytes that are left, and 1; 0: no probe
				  (flow_mtu.c) */
};

struct urn_work {
	/* ---- one line: all fields that retiring looks at */
	struct urn_work *next;   /* in the QP's queue, oldest first, or in the pool */
	uint32_t first_psn;      /* first PSN of the message; local work: the PSN after its predecessor */
	uint32_t npsn : 24;      /* number of its PSNs; 0: local work */
	uint32_t state : 6;	 /* enum urn_work_state */
	uint32_t piece : 2;	 /* enum urn_work_piece; requests of queue pairs only */
	union {
		struct urn_abi_swqe wqe; /* the request in one copy, as posted; checked before it is used */
		struct {
			uint64_t wr_id;
			uint8_t opcode;       /* enum urn_abi_wr_op */
			uint8_t flags;        /* enum urn_abi_wr_flag */
			uint8_t num_sge;
			uint8_t kind;         /* enum urn_work_kind; over a reserved byte of wqe */
			uint32_t imm;         /* immediate (network order) or rkey to invalidate */
			uint64_t remote_addr; /* RDMA; others: see wqe */
			uint32_t rkey;        /* RDMA */
			uint32_t inline_len;  /* bytes, when URN_WRF_INLINE */
			uint64_t compare_add; /* atomics */
			uint64_t swap;        /* atomics */
		};
		struct urn_flow_packet flow; /* a packet of a flow, instead of a request */
	};
	/* ---- sending */
	uint32_t length;         /* bytes of the message */
	uint32_t ssn;            /* send sequence number, for credits */
	uint32_t accepted;       /* READ: packets of the response accepted */
	union {
		uint32_t placed; /* READ, atomic: packets of the response placed */
		uint32_t whole;	 /* URN_PIECE_HEAD: bytes of the request */
	};
	uint8_t status;          /* enum urn_abi_wc_status, valid when FAILED */
	uint8_t vendor_err;      /* enum urn_abi_vendor_err, valid when FAILED */
	uint8_t parts;           /* READ: some parts were asked for that end before the READ does */
	uint8_t skip;		 /* bytes of the request's data before those of this work */
	struct urn_work_ext *ext; /* further elements or inline data; NULL: none */
	union {
		struct urn_abi_sge sge[URN_WORK_SGE]; /* valid when ext is NULL */
		uint8_t data[URN_WORK_INLINE];
		struct urn_fence fence;               /* valid when FENCED */
	};
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct urn_work, length) == 64, "retired by its first line");
_Static_assert(sizeof(struct urn_work) <= 128, "work under way fits two lines");
_Static_assert(offsetof(struct urn_work, flags) == offsetof(struct urn_work, wqe.flags) &&
		       offsetof(struct urn_work, kind) == offsetof(struct urn_work, wqe.rsvd) &&
		       offsetof(struct urn_work, imm) == offsetof(struct urn_work, wqe.imm) &&
		       offsetof(struct urn_work, rkey) == offsetof(struct urn_work, wqe.rdma.rkey) &&
		       offsetof(struct urn_work, swap) == offsetof(struct urn_work, wqe.rdma.swap),
	       "the names of a request's fields");

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

/* True when work is a READ or an atomic: completed by a response, never by an acknowledgement. */
static inline bool
urn_work_is_fetch(const struct urn_work *w)
{
	return w->kind & URN_WK_FETCH;
}

/* True when a READ or atomic is a READ. */
static inline bool
urn_work_is_read(const struct urn_work *w)
{
	return !(w->kind & URN_WK_ATOMIC);
}

/* True when work takes a receive at the peer, so that end-to-end credits count. */
static inline bool
urn_work_takes_recv(const struct urn_work *w)
{
	return w->kind & URN_WK_RECV;
}

#endif
