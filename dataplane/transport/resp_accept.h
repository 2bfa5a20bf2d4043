/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder takes or refuses a request whose turn has come (responder.c, resp_record.c,
 * uc_resp.c). */
#ifndef URN_TRANSPORT_RESP_ACCEPT_H
#define URN_TRANSPORT_RESP_ACCEPT_H

#include "transport/act.h"
#include "transport/beside.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/pool.h"

/* Refuse this packet in its turn; nothing behind it is accepted. */
static inline void
urn_resp_refuse(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t syndrome)
{
	struct urn_pkt *p = urn_pkt(m);

	p->recv.syndrome = syndrome;
	p->recv.bits = 0;
	qp->flags |= URN_QPF_REFUSED;
	urn_tp_hold(tp, m, qp, URN_ACT_NAK);
}

/* Refuse, and complete the receive with an error. */
void urn_resp_refuse_recv(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m,
			  uint8_t syndrome, uint64_t wr_id, uint8_t status, uint8_t vendor_err);

/* True when the payload has a length that packets of this kind have. */
static inline bool
urn_resp_has_length(const struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);

	if (p->op->flags & URN_OPF_FULL)
		return p->payload_len == qp->mtu &&
		       !(urn_pkt_bth(m)->flags >> URN_BTH_PAD_SHIFT & 3);
	return p->payload_len <= qp->mtu &&
	       !((p->op->flags & URN_OPF_NONZERO) && p->payload_len == 0);
}

/* True when the packet is a whole message. */
static inline bool
urn_resp_is_only(const struct urn_pkt *p)
{
	return (p->op->flags & (URN_OPF_FIRST | URN_OPF_LAST)) == (URN_OPF_FIRST | URN_OPF_LAST);
}

/* Let this packet of a SEND be placed; sets recv.bits. */
static inline enum urn_mem_error
urn_resp_place_send(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);

	p->recv.bits = 0;
	if (p->payload_len == 0)
		return URN_MEM_OK;
	if (urn_resp_is_only(p) && urn_beside_takes(tp, qp, m, qp->recv, p->payload_len)) {
		p->recv.bits = URN_REQ_BESIDE;
		return URN_MEM_OK;
	}
	return urn_tp_sge_op(tp, m, NULL, qp->recv->sge, qp->recv->num_sge, qp->msg_off,
			     urn_pkt_payload(m), p->payload_len, urn_qp_recv_pd(qp));
}

/* Read the header of a WRITE that begins. */
static inline void
urn_resp_write_header(struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_reth r;

	memcpy(&r, urn_pkt_ext(m, URN_EXT_RETH), sizeof(r));
	qp->msg_va = rte_be_to_cpu_64(r.va);
	qp->msg_rkey = rte_be_to_cpu_32(r.rkey);
	qp->msg_len = rte_be_to_cpu_32(r.length);
	qp->msg_off = 0;
}

/* Begin the WRITE whose header was read. returns: 0 or the syndrome to refuse it with */
static inline uint8_t
urn_resp_write_begins(const struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_region *region;

	if (!(qp->access & URN_ACCESS_REMOTE_WRITE) || qp->msg_len > URN_ABI_MAX_MSG)
		return URN_NAK_INV_REQ;
	if (qp->msg_len &&
	    urn_mem_check(tp->cfg.mem, qp->msg_rkey, qp->pd, qp->qpn, qp->msg_va, qp->msg_len,
			  URN_ACCESS_REMOTE_WRITE, 1, &region) != URN_MEM_OK)
		return URN_NAK_ACCESS;
	qp->msg = URN_MSG_WRITE;
	return 0;
}

/* Place this packet of a WRITE. returns: false when the key has died meanwhile */
static inline bool
urn_resp_place_write(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	uint64_t va = qp->msg_va + qp->msg_off;
	struct urn_region *region;

	if (p->payload_len == 0)
		return true;
	if (urn_mem_check_inline(tp->cfg.mem, qp->msg_rkey, qp->pd, qp->qpn, va, p->payload_len,
				 URN_ACCESS_REMOTE_WRITE, 1, &region) != URN_MEM_OK)
		return false;
	urn_tp_op(tp, m, URN_MEMOP_PLACE, region, va, urn_pkt_payload(m), p->payload_len);
	qp->msg_off += p->payload_len;
	return true;
}

/* True when the packet ends a WRITE with two addresses (doc/inside/aligned-writes.md). */
static inline bool
urn_resp_is_two(const struct urn_pkt *p)
{
	return p->op->off[URN_EXT_RETH] && !(p->op->flags & URN_OPF_FIRST);
}

/* The rkey that the peer wants to have invalidated. */
static inline uint32_t
urn_resp_key_to_invalidate(struct rte_mbuf *m)
{
	rte_be32_t key;

	memcpy(&key, urn_pkt_ext(m, URN_EXT_IETH), sizeof(key));
	return rte_be_to_cpu_32(key);
}

/* The message ends with this packet. recv: it takes the receive wr_id */
static inline void
urn_resp_message_ends(struct urn_qp *qp, struct rte_mbuf *m, uint64_t wr_id, bool recv)
{
	struct urn_pkt *p = urn_pkt(m);

	p->recv.bits |= URN_REQ_LAST;
	p->recv.bytes = qp->msg_off;
	if (recv) {
		p->recv.bits |= URN_REQ_RECV;
		p->recv.wr_id = wr_id;
	}
	if (p->op->off[URN_EXT_IMM]) {
		p->recv.bits |= URN_REQ_IMM;
		memcpy(&p->recv.imm, urn_pkt_ext(m, URN_EXT_IMM), 4);
	} else if (p->op->off[URN_EXT_IETH]) {
		p->recv.bits |= URN_REQ_INV;
		p->recv.imm = urn_resp_key_to_invalidate(m);
	}
	qp->msg = URN_MSG_NONE;
}

/* Give back the receive under way, which the message has used up. */
static inline void
urn_resp_recv_used(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_recv_put(tp, qp, qp->recv);
	qp->recv = NULL;
}

/* Accept the packet: it waits for memory, and the next PSN becomes due. */
static inline void
urn_resp_accepted(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t action,
		  uint32_t npsn)
{
	urn_psn_rx_accept(&qp->rx, npsn);
	urn_tp_hold(tp, m, qp, action);
}

/* Accept, or refuse, a READ: it goes on record, and is answered in its turn. */
void urn_resp_accept_read(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* Accept, or refuse, an atomic: it goes on record, and memory executes it. */
void urn_resp_accept_atomic(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);

#endif
