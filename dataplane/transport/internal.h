/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that only the files of the transport share. */
#ifndef URN_TRANSPORT_INTERNAL_H
#define URN_TRANSPORT_INTERNAL_H

#include "memory/check.h"
#include "transport/back.h"
#include "transport/requester.h"
#include "transport/ring.h"
#include "transport/tp.h"

#include <rte_prefetch.h>

/*
 * Action in a packet's turn (urn_pkt.action). Actions of received packets come first, then those of
 * frames to be sent.
 */
enum urn_act {
	URN_ACT_DROP,       /* nothing: free it */
	URN_ACT_REQUEST,    /* SEND, WRITE: placed; bits say more (enum urn_req_bit) */
	URN_ACT_READ,       /* READ request: put on record and answer */
	URN_ACT_ATOMIC,     /* atomic: executed; put on record and answer */
	URN_ACT_NAK,        /* refuse; arg: syndrome */
	URN_ACT_DUP,        /* SEND, WRITE repeated: acknowledge */
	URN_ACT_DUP_READ,
	URN_ACT_DUP_ATOMIC,
	URN_ACT_ACK,        /* ACK or NAK for the requester */
	URN_ACT_SACK,
	URN_ACT_READ_RESP,  /* READ response: placed */
	URN_ACT_ATOMIC_ACK, /* atomic response: placed */
	URN_ACT_BAD_RESP,   /* a response that does not fit; arg: vendor error, word[1]: status */
	URN_ACT_LOST,       /* a response beyond the one that is due: the one that is due was lost */
	URN_ACT_MADE_UP,    /* an atomic response unlike the one taken up: one of the two was forged */
	URN_ACT_UD_RECV,
	URN_ACT_TX_REQUEST, /* frame of a request */
	URN_ACT_TX_RESPONSE, /* frame of a response */
};

/* Bits of URN_ACT_REQUEST; arg: bytes of the message, when LAST. */
enum urn_req_bit {
	URN_REQ_LAST = 1 << 0, /* ends a message */
	URN_REQ_RECV = 1 << 1, /* completes a receive: wr_id, byte_len, imm */
	URN_REQ_IMM = 1 << 2,
	URN_REQ_INV = 1 << 3,  /* imm is the rkey that was invalidated */
	URN_REQ_WRITE = 1 << 4, /* the receive is that of a WRITE with immediate */
};

/* ---- pools (tp.c) */

/*
 * True when a client that holds `held` entries of a pool may take one more. left: entries in the
 * pool. With this rule a client that is alone gets at most 8 of 9 entries, and n clients that take
 * all they can leave one part of 8 n + 1.
 */
static inline bool
urn_pool_has(uint32_t left, uint32_t held)
{
	return likely(left > held / 8);
}

static inline struct urn_recv *
urn_recv_get(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_recv *r = tp->recv_free;

	if (unlikely(!urn_pool_has(tp->left.recv, qp->share->recv)))
		return NULL;
	tp->recv_free = r->next;
	tp->left.recv--;
	qp->share->recv++;
	return r;
}

static inline void
urn_recv_put(struct urn_tp *tp, struct urn_qp *qp, struct urn_recv *r)
{
	r->next = tp->recv_free;
	tp->recv_free = r;
	tp->left.recv++;
	qp->share->recv--;
}

/* True when the QP has room for one more request. */
static inline bool
urn_work_room(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return urn_pool_has(tp->left.work, qp->share->work);
}

static inline void
urn_work_put(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	if (unlikely(w->state == URN_WORK_FENCED)) /* flushed: nobody waits for the fence any more */
		urn_mem_let_go(tp->cfg.mem, w->fence.mr);
	if (w->ext) {
		w->ext->next = tp->ext_free;
		tp->ext_free = w->ext;
		tp->left.ext++;
		qp->share->ext--;
	}
	w->next = tp->work_free;
	tp->work_free = w;
	tp->left.work++;
	qp->share->work--;
}

/* Get raw packet buffers from the pool. returns: false when the pool is empty (counted) */
bool urn_tp_refill(struct urn_tp *tp);
/* Give the packets in done[] back to their pools. */
void urn_tp_give_back(struct urn_tp *tp);

/* Finish with a received packet. */
static inline void
urn_tp_done(struct urn_tp *tp, struct rte_mbuf *m)
{
	tp->done[tp->done_n++] = m;
	if (unlikely(tp->done_n == URN_TP_BURST))
		urn_tp_give_back(tp);
}

/* ---- schedule (tp.c) */

#define URN_TP_NEIGH_NS 1000000ull /* ns from when all QPs asked for a MAC address until they ask again */
#define URN_TP_MAC_NS 10000000000ull /* ns that the MAC of an RC peer is used before a new look-up */
#define URN_TP_AH_NS 1000000000ull /* ... of an address handle: no silence tells that the peer moved */

static inline void
urn_tp_sched(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->flags & (URN_QPF_SCHED | URN_QPF_NEIGH | URN_QPF_DYING))
		return;
	qp->flags |= URN_QPF_SCHED;
	qp->sched_next = NULL;
	qp->sched_prev = tp->sched_tail;
	if (tp->sched_tail)
		tp->sched_tail->sched_next = qp;
	else
		tp->sched_head = qp;
	tp->sched_tail = qp;
}

/*
 * Number of further frames that have room in both out arrays, together with the frames that the
 * burst in hand may add. Executing the burst does not change the number.
 */
static inline unsigned int
urn_tp_tx_frames(const struct urn_tp *tp)
{
	unsigned int used = tp->tx_n > tp->loop_n ? tp->tx_n : tp->loop_n;

	return URN_TP_TX - used - tp->txd_n;
}
_Static_assert((int)URN_TP_TX == (int)URN_TP_LOOP, "one number for both arrays");

/* True when the memory operations of one more frame have room. */
static inline bool
urn_tp_tx_ops(const struct urn_tp *tp)
{
	return tp->ops_n + URN_ABI_MAX_SGE < URN_TP_OPS;
}

/* True when one more frame and its memory operations have room. */
static inline bool
urn_tp_tx_room(const struct urn_tp *tp)
{
	return urn_tp_tx_frames(tp) && urn_tp_tx_ops(tp);
}

/*
 * True when the burst in hand must be executed before another received packet is accepted: each
 * packet adds itself and the operations of one list of elements.
 */
static inline bool
urn_tp_burst_full(const struct urn_tp *tp)
{
	return tp->ops_n + 2 * URN_ABI_MAX_SGE > URN_TP_OPS || tp->burst_n + 2 > URN_TP_TX;
}

/* True when the gate of the QP is closed; to be called when any gate is. (rx.c) */
bool urn_tp_is_gated(const struct urn_tp *tp, const struct urn_qp *qp);

/*
 * True when the client, or all clients of its user, already have too many foreign-memory operations
 * in flight: the QP must not start more.
 */
static inline bool
urn_tp_gated(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return unlikely(tp->gate->closed | tp->gate->users) && urn_tp_is_gated(tp, qp);
}

/*
 * The QP has something to do and finds no room now: the QP is to be looked at again, among a few
 * others of its client.
 * returns: true when the QP stays in the schedule for that
 */
static inline bool
urn_tp_again(struct urn_tp *tp, const struct urn_qp *qp)
{
	if (!tp->cfg.ring_again)
		return true;
	tp->cfg.ring_again(tp->cfg.give_ctx, qp);
	return false;
}

/* ---- memory operations, and frames to send (burst.c) */

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
	urn_pkt(m)->mem_left++;
}

/* Gather into a frame to be sent; d is the descriptor that urn_tp_frame() gave. */
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
	op->kind = URN_MEMOP_GATHER;
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

/* Execute the operations in hand and finish the packets in hand, in order. */
void urn_tp_execute(struct urn_tp *tp);
/* Send those frames of a QP that waited for memory and are ready, as far as there is room. */
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
		[URN_MEM_OK] = URN_VE_NONE,         [URN_MEM_BAD_KEY] = URN_VE_BAD_LKEY,
		[URN_MEM_RANGE] = URN_VE_RANGE,     [URN_MEM_ACCESS] = URN_VE_ACCESS,
		[URN_MEM_WINDOW] = URN_VE_WINDOW,
	};

	return ve[e];
}

/* ---- completions and events (complete.c) */

/* mark, after: as in urn_cq_put(). returns: false when the queue has no room and the completion is lost */
bool urn_tp_cqe(struct urn_tp *tp, struct urn_cq *cq, const struct urn_abi_cqe *cqe, bool solicited,
		_Atomic uint32_t *mark, uint32_t after);
/* n more send requests are done, without a completion. */
void urn_tp_retire_quietly(struct urn_tp *tp, struct urn_qp *qp, uint32_t n);

/* urn_tp_cqe(), in line where there is nothing but a completion to write. */
static inline __attribute__((always_inline)) bool
urn_tp_cqe_inline(struct urn_tp *tp, struct urn_cq *cq, const struct urn_abi_cqe *cqe,
		  bool solicited, _Atomic uint32_t *mark, uint32_t after)
{
	if (unlikely(cqe->status != URN_WC_SUCCESS || cq->engine != tp->cfg.engine ||
		     cq->channel_fd >= 0 || cq->overrun || cq->shared || !urn_cq_room(cq))) {
		/* A copy, so that the caller's *cqe has no address, and stays in registers. */
		const struct urn_abi_cqe copy = *cqe;

		return urn_tp_cqe(tp, cq, &copy, solicited, mark, after);
	}
	URN_COUNT(tp, CQE);
	urn_cq_put(cq, cqe, mark, after);
	return true;
}

/*
 * A completion of the QP was lost. The QP goes to the error state when it is served next, because
 * the caller is at work on it.
 */
static inline void
urn_qp_cqe_lost(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->state == URN_QPS_ERR)
		return;
	qp->flags |= URN_QPF_CQ_BROKEN;
	urn_tp_sched(tp, qp);
}

void urn_qp_event(struct urn_tp *tp, struct urn_qp *qp, uint32_t type);
/* Write the receive completion of a QP. */
void urn_qp_recv_done(struct urn_tp *tp, struct urn_qp *qp, uint64_t wr_id, uint8_t status,
		      uint8_t vendor_err, uint32_t byte_len, uint8_t opcode, uint8_t wc_flags,
		      uint32_t imm, uint32_t src_qp, bool solicited);
/* Take a receive of the QP or its SRQ. NULL: none is posted (*bad 0) or the queue is broken (*bad 1). */
struct urn_recv *urn_qp_take_recv(struct urn_tp *tp, struct urn_qp *qp, bool *bad, uint64_t *wr_id);

/*
 * Protection domain that the keys in a QP's receives must have: that of its shared receive queue,
 * if it has one (IBTA 10.2.9).
 */
static inline uint32_t
urn_qp_recv_pd(const struct urn_qp *qp)
{
	return unlikely(qp->srq != NULL) ? qp->srq->pd : qp->pd;
}

/* ---- responder.c, resp_finish.c, resp_tx.c */

void urn_resp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* True when a request that would be dropped unseen is a repeat, and nothing else would bring its answer. */
bool urn_resp_must_answer(struct urn_qp *qp, struct rte_mbuf *m);
/* A request was dropped unseen: ask for it again when the QP is served next. */
void urn_resp_missed(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn);
void urn_resp_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* Answer a repeated READ or atomic from its record, even while other packets wait. Takes m. */
void urn_resp_replay(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* The responder owes an acknowledgement; now: the acknowledgement does not wait to be merged. */
void urn_resp_owe_ack(struct urn_tp *tp, struct urn_qp *qp, bool now);
/* The newest record that holds a PSN, for repeated requests; NULL: none. */
struct urn_rec *urn_resp_find_record(struct urn_qp *qp, uint32_t psn, uint8_t kind);
/* READ responses, atomic responses, NAKs, ACKs. returns: true when more is to be sent */
bool urn_resp_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
bool urn_resp_owes(const struct urn_qp *qp);
/* The QP goes away: send the acknowledgement that it owes, if that can be done at once. */
void urn_resp_last_ack(struct urn_tp *tp, struct urn_qp *qp);
/* The response of PSN psn can't be made: refuse the request, and send no response behind it. */
void urn_resp_cut(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome);
/* True when a frame of a response, built before, may still go out. */
bool urn_resp_valid(const struct urn_txd *d);
/* Keep a packet ahead of its turn. returns: false when the packet is not wanted; the caller still owns m then */
bool urn_resp_keep(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* All PSNs from the one that is due to before `end` are missing: a sequence NAK is to be sent. */
void urn_resp_ask_for(struct urn_tp *tp, struct urn_qp *qp, uint32_t end);
/* Free packets kept ahead of their turn, and their fingerprints. */
void urn_resp_drop_kept(struct urn_tp *tp, struct urn_qp *qp);

/* ---- ud.c */

void urn_ud_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
void urn_ud_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
bool urn_ud_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
/* The frame of the oldest request is finished; ok: its memory could be read. */
void urn_ud_sent(struct urn_tp *tp, struct urn_qp *qp, bool ok);

/* ---- qp.c */

/* Free the memory of all QPs: the transport goes away. */
void urn_qp_free_all(struct urn_tp *tp);
/* Put the QP into the error state, and flush it once all accepted packets are finished. */
void urn_qp_error(struct urn_tp *tp, struct urn_qp *qp);
/* Send queue error of a UD QP: put the QP into state SQE. */
void urn_qp_sqe(struct urn_tp *tp, struct urn_qp *qp);
/* Flush a bounded number of requests. returns: true when more is to be flushed */
bool urn_qp_flush(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
/* True when the template has the peer's MAC address. If not, the QP waits. */
bool urn_qp_reachable(struct urn_tp *tp, struct urn_qp *qp);
/* Let the QP wait for the neighbour table to change. */
void urn_qp_wait_neigh(struct urn_tp *tp, struct urn_qp *qp);
/* End the QP's wait for a MAC address, in time that does not depend on how many QPs wait. */
void urn_qp_leave_neigh(struct urn_tp *tp, struct urn_qp *qp);
/* Take the oldest work off the queue and complete it with this status. */
void urn_req_flush_one(struct urn_tp *tp, struct urn_qp *qp, uint8_t status);
/* State SQD: give the drained event when no work is under way any more. */
void urn_qp_check_drained(struct urn_tp *tp, struct urn_qp *qp);


/*
 * Begin a frame with headers up to the BTH, ready for extension headers and payload bytes. *bth
 * points to the BTH. The frame counts only once it is given to urn_tp_send(); urn_tp_unframe()
 * takes the frame back. NULL: no buffer.
 */
struct urn_txd *urn_tp_frame(struct urn_tp *tp, const struct urn_tmpl *tmpl, uint8_t opcode,
			     uint32_t payload, uint32_t dqpn, uint32_t psn, uint8_t bth_flags,
			     bool ackreq, uint8_t **bth);

/* Fetch a cache line for writing, so that no other core holds the line then. */
static inline void
urn_prefetch_write(const void *p)
{
#ifdef __x86_64__
	/* The builtin fetches for reading unless the compiler knows of a processor that has prefetchw. */
	__asm__ volatile("prefetchw %0" ::"m"(*(const uint8_t *)p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

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

	urn_build_headers(frame, tmpl, roce);
	/* No QP migrates its path: each is in state Migrated (IBTA 17.2.8). */
	urn_build_bth((struct urn_bth *)b, opcode, bth_flags | URN_BTH_M, (uint8_t)pad, dqpn, psn,
		      ackreq);
	if (unlikely(pad)) {
		uint32_t zero = 0;

		memcpy(b + hdr_len + payload, &zero, sizeof(zero)); /* the ICRC overwrites the bytes behind the pad */
	}
	urn_tp_buffer_set(m, tmpl->len + roce + URN_ICRC_BYTES);
	d->m = m;
	d->psn = psn;
	d->mem_left = 0;
	d->mem_status = URN_MEMOP_DONE;
	d->ipv6 = tmpl->ipv6;
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
