/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory operations, and frames to send. (burst.c) */
#ifndef URN_TRANSPORT_FRAME_H
#define URN_TRANSPORT_FRAME_H

#include "memory/check.h"
#include "transport/act.h"
#include "transport/pool.h"
#include "transport/tp.h"

#include <rte_prefetch.h>

_Static_assert(URN_TP_OPS <= UINT8_MAX, "urn_pkt.mem_left counts the operations of a burst");

/*
 * Bytes of a piece from which on it is copied and summed up for the ICRC in one pass. Below, the
 * second call, for the headers, costs as much as it saves.
 */
enum { URN_TP_SEAL_FROM = 1024 };

static inline void
urn_tp_op(struct urn_tp *tp, struct rte_mbuf *m, uint8_t kind, struct urn_region *region,
	  uint64_t addr, uint8_t *frame, uint32_t len)
{
	struct urn_memop *op = &tp->ops[tp->ops_n++];

	op->region = region;
	op->addr = addr;
	op->frame = frame;
	op->m = m;
	op->len = len;
	op->kind = kind;
	op->tag = 0;
	tp->ops_bytes += len;
	urn_pkt(m)->mem_left++; /* counts to URN_TP_OPS at most */
}

/* Fetch a cache line for writing, so that no other core holds the line then. */
static inline void
urn_prefetch_write(const void *p)
{
#ifdef __x86_64__
	/* The builtin fetches for reading unless the compiler knows of a processor that has
	 * prefetchw. */
	__asm__ volatile("prefetchw %0" ::"m"(*(const uint8_t *)p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

/*
 * Fetch the lines of the next frame for writing, as many as this one has: the core that received
 * the buffer last has them. The fetch runs while the ICRC of the frame before is computed.
 * payload: bytes of this frame's payload
 */
static inline void
urn_tp_fetch_next(const struct urn_tp *tp, uint32_t payload)
{
	const uint8_t *next = tp->fresh_n ? urn_pkt_fresh(tp->fresh[tp->fresh_n - 1]) : NULL;

	/* urn_tp_buffer() fetches the first two. */
	for (uint32_t at = 2 * RTE_CACHE_LINE_SIZE; next && at < payload + RTE_CACHE_LINE_SIZE;
	     at += RTE_CACHE_LINE_SIZE)
		urn_prefetch_write(next + at);
}

/*
 * True when this gather fills the frame: nothing but the ICRC is missing then, and memory can write
 * it in the same pass.
 */
static inline bool
urn_tp_seals(const struct urn_tp *tp, const struct urn_txd *d, const struct urn_region *region,
	     const uint8_t *frame, uint32_t len)
{
	return len >= URN_TP_SEAL_FROM && tp->cfg.icrc && !tp->unsealed && d->mem_left == 0 &&
	       !d->loop && !region->foreign &&
	       frame + len + (-len & 3) + URN_ICRC_BYTES == urn_pkt_fresh(d->m) + d->m->data_len;
}

/* Gather into a frame to be sent, whose headers are final; d is the descriptor that urn_tp_frame()
 * gave. */
static inline void
urn_tp_gather(struct urn_tp *tp, struct urn_txd *d, struct urn_region *region, uint64_t addr,
	      uint8_t *frame, uint32_t len)
{
	struct urn_memop *op = &tp->ops[tp->ops_n++];

	op->region = region;
	op->addr = addr;
	op->frame = frame;
	op->m = d->m;
	op->len = len;
	d->sealed = urn_tp_seals(tp, d, region, frame, len);
	op->kind = d->sealed ? URN_MEMOP_GATHER_ICRC : URN_MEMOP_GATHER;
	/*
	 * The loop of copy and ICRC waits for each line that another core still has; memcpy() alone
	 * leaves the wait to its stores. Without the fetch 64 KiB WRITE makes 53 instead of 77
	 * Gb/s with far cores.
	 */
	if (d->sealed)
		urn_tp_fetch_next(tp, len);
	op->tag = (uint16_t)(d - tp->txd + 1);
	tp->ops_bytes += len;
	d->mem_left++;
}

/*
 * Make the operations between `len` bytes at `frame` and the bytes from `off` on of a list of
 * elements: place (d NULL; local write is required), or gather. On an error no operation is left
 * behind.
 */
enum urn_mem_error urn_tp_sge_ops(struct urn_tp *tp, struct rte_mbuf *m, struct urn_txd *d,
				  const struct urn_abi_sge *sge, uint32_t num_sge, uint32_t off,
				  uint8_t *frame, uint32_t len, uint32_t pd);

/* urn_tp_sge_ops(), the short way where one element holds all bytes. */
static inline enum urn_mem_error
urn_tp_sge_op(struct urn_tp *tp, struct rte_mbuf *m, struct urn_txd *d,
	      const struct urn_abi_sge *sge, uint32_t num_sge, uint32_t off, uint8_t *frame,
	      uint32_t len, uint32_t pd)
{
	struct urn_region *region;
	enum urn_mem_error e;

	/* A length of 0 needs no key. */
	if (unlikely(num_sge != 1 || !len || (uint64_t)off + len > sge->length))
		return urn_tp_sge_ops(tp, m, d, sge, num_sge, off, frame, len, pd);
	e = urn_mem_check_inline(tp->cfg.mem, sge->lkey, pd, 0, sge->addr + off, len,
				 d ? 0 : URN_ACCESS_LOCAL_WRITE, 0, &region);
	if (unlikely(e != URN_MEM_OK))
		return e;
	if (d)
		urn_tp_gather(tp, d, region, sge->addr + off, frame, len);
	else
		urn_tp_op(tp, m, URN_MEMOP_PLACE, region, sge->addr + off, frame, len);
	return URN_MEM_OK;
}

/* Write the ICRC of the last frame of a flow, which is missing. (flow_frame.c) */
void urn_flow_seal(struct urn_tp *tp);
/* Write the ICRC of the last frame of a flow, if that is missing. */
static inline void
urn_flow_emit_last(struct urn_tp *tp)
{
	if (tp->flow_emit)
		urn_flow_seal(tp);
}
/* Execute the operations in hand and finish the packets in hand, in order. */
void urn_tp_execute(struct urn_tp *tp);
/* Send those frames of a QP that waited for memory and are ready, as far as there is room; drop
 * them all when the QP ends. */
void urn_tp_drain_tx(struct urn_tp *tp, struct urn_qp *qp);

static inline void
urn_tp_hold(struct urn_tp *tp, struct rte_mbuf *m, struct urn_qp *qp, uint8_t action)
{
	struct urn_pkt *p = urn_pkt(m);

	p->qp = qp;
	p->action = action;
	tp->burst[tp->burst_n++] = m;
}

/* Start a packet's memory account; before urn_tp_op() and urn_tp_hold(). */
static inline void
urn_pkt_begin(struct urn_pkt *p)
{
	p->mem_left = 0;
	p->mem_status = URN_MEMOP_DONE;
}

static inline void
urn_tp_drop(struct urn_tp *tp, struct rte_mbuf *m, enum urn_counter why)
{
	tp->c.v[why]++;
	rte_pktmbuf_free(m);
}

/* Vendor error of a failed key check. */
static inline uint8_t
urn_vendor_err(enum urn_mem_error e)
{
	static const uint8_t ve[] = {
		[URN_MEM_OK] = URN_VE_NONE,	  [URN_MEM_BAD_KEY] = URN_VE_BAD_LKEY,
		[URN_MEM_RANGE] = URN_VE_RANGE,	  [URN_MEM_ACCESS] = URN_VE_ACCESS,
		[URN_MEM_WINDOW] = URN_VE_WINDOW,
	};

	return ve[e];
}

/*
 * Begin a frame with headers up to the BTH, ready for extension headers and payload bytes. *bth
 * points to the BTH. The frame counts only once it is given to urn_tp_send(); urn_tp_unframe()
 * takes the frame back. NULL: no buffer.
 */
struct urn_txd *urn_tp_frame(struct urn_tp *tp, const struct urn_tmpl *tmpl, uint8_t opcode,
			     uint32_t payload, uint32_t dqpn, uint32_t psn, uint8_t bth_flags,
			     bool ackreq, uint8_t **bth);

/*
 * Take a buffer. Each mbuf in a pool has one reference and one segment, so only the fields that we
 * use are set: the second cache line of the mbuf stays untouched.
 */
static inline struct rte_mbuf *
urn_tp_buffer(struct urn_tp *tp)
{
	struct rte_mbuf *m;

	if (unlikely(tp->fresh_n == 0) && !urn_tp_refill(tp))
		return NULL;
	m = tp->fresh[--tp->fresh_n];
	if (likely(tp->fresh_n >= 3)) {
		struct rte_mbuf *soon = tp->fresh[tp->fresh_n - 3];

		rte_prefetch0(soon);
		urn_prefetch_write(urn_pkt_fresh(soon));
		urn_prefetch_write(urn_pkt_fresh(soon) + 64);
	}
	return m;
}

/*
 * Make a buffer's header that of a frame of `len` bytes. The header is mostly right already, from
 * the frame before: then it is not written, so that its line can stay in the cache of the core that
 * frees it, and in ours.
 */
static inline void
urn_tp_buffer_set(struct rte_mbuf *m, uint32_t len)
{
	if (unlikely((m->data_off != RTE_PKTMBUF_HEADROOM) | (m->ol_flags != 0) |
		     (m->packet_type != 0) | (m->port != RTE_MBUF_PORT_INVALID))) {
		m->data_off = RTE_PKTMBUF_HEADROOM;
		m->ol_flags = 0;
		m->packet_type = 0;
		m->port = RTE_MBUF_PORT_INVALID;
	}
	if (m->pkt_len != len || m->data_len != len) {
		m->pkt_len = len;
		m->data_len = (uint16_t)len;
	}
}

/* urn_tp_frame(), in line: for the callers that make most frames. */
static inline struct urn_txd *
urn_tp_frame_inline(struct urn_tp *tp, const struct urn_tmpl *tmpl, uint8_t opcode,
		    uint32_t payload, uint32_t dqpn, uint32_t psn, uint8_t bth_flags, bool ackreq,
		    uint8_t **bth)
{
	struct rte_mbuf *m = urn_tp_buffer(tp);
	struct urn_txd *d = &tp->txd[tp->txd_n];

	if (unlikely(!m))
		return NULL;

	uint32_t hdr_len = urn_opcodes[opcode].hdr_len, pad = -payload & 3;
	uint32_t roce = hdr_len + payload + pad;
	uint8_t *frame = urn_pkt_fresh(m), *b = frame + tmpl->len;

	tp->built += roce;
	urn_build_headers(frame, tmpl, roce);
	/* No QP migrates its path: each is in state Migrated (IBTA 17.2.8). */
	urn_build_bth((struct urn_bth *)b, opcode, bth_flags | URN_BTH_M, (uint8_t)pad, dqpn, psn,
		      ackreq);
	if (unlikely(pad)) {
		uint32_t zero = 0;

		memcpy(b + hdr_len + payload, &zero,
		       sizeof(zero)); /* the ICRC overwrites the bytes behind the pad */
	}
	urn_tp_buffer_set(m, tmpl->len + roce + URN_ICRC_BYTES);
	d->m = m;
	d->psn = psn;
	d->mem_left = 0;
	d->mem_status = URN_MEMOP_DONE;
	d->ipv6 = tmpl->ipv6;
	d->loop = URN_LOOP_NO; /* or set before the payload is gathered: then no ICRC is made */
	d->sealed = false;
	*bth = b;
	return d;
}

/* The frame is complete but for the bytes to be gathered: it goes out in its turn. */
static inline void
urn_tp_send(struct urn_tp *tp, struct urn_txd *d, struct urn_qp *qp, uint8_t action, bool loop)
{
	d->qp = qp;
	d->action = action;
	d->loop = loop;
	tp->txd_n++;
}

static inline void
urn_tp_unframe(struct urn_tp *tp, struct urn_txd *d)
{
	tp->fresh[tp->fresh_n++] = d->m;
}

#endif
