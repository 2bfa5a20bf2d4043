/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: the frame of a packet, and its segments. */
#include "transport/flow_priv.h"

#include "memory/copy.h"
#include "transport/unsealed.h"
#include "wire/icrc.h"

enum { FETCH_FROM = 1024 }; /* bytes of payload from which the next frame is fetched */

URN_FAST void
urn_flow_seal(struct urn_tp *tp)
{
	struct rte_mbuf *m = tp->flow_emit;

	tp->flow_emit = NULL;
	urn_tp_seal(tp, m, tp->flow_emit_ipv6);
}

/*
 * A frame waits for its ICRC until the next one has been written, at most to the turn's end. Bytes
 * that were just written to lines of another core's cache are on their way there, and the ICRC
 * would wait for them.
 */
URN_FAST void
urn_flow_emit(struct urn_tp *tp, const struct urn_txd *d, bool loop)
{
	struct rte_mbuf *m = d->m;

	urn_flow_emit_last(tp);
	if (!d->sealed && !loop) { /* nobody checks the ICRC of a looped frame */
		tp->flow_emit = m;
		tp->flow_emit_ipv6 = d->ipv6;
	}
	if (loop) {
		URN_COUNT(tp, LOOPBACK);
		m->ol_flags |= tp->flows->looped;
		tp->loop[tp->loop_n++] = m;
		return;
	}
	tp->tx[tp->tx_n++] = m;
}

/* Write the header of a whole message's segment. returns: where its bytes go */
static inline uint8_t *
put_whole(uint8_t *at, const struct urn_flow_msg *m)
{
	struct urn_flow_seg *s = (struct urn_flow_seg *)at;

	*s = (struct urn_flow_seg){
		.qid = rte_cpu_to_be_64(m->qid),
		.src_qid = rte_cpu_to_be_64(m->src_qid),
		.bytes = rte_cpu_to_be_16((uint16_t)m->len),
		.kind = URN_FLOW_WHOLE,
	};
	return at + sizeof(*s);
}

/* Write the header of a part's segment. returns: where its bytes go */
static uint8_t *
put_part(uint8_t *at, const struct urn_flow_msg *m, uint32_t off, uint32_t bytes)
{
	struct urn_flow_part *p = (struct urn_flow_part *)at;

	*p = (struct urn_flow_part){
		.seg = {.qid = rte_cpu_to_be_64(m->qid),
			.src_qid = rte_cpu_to_be_64(m->src_qid),
			.bytes = rte_cpu_to_be_16((uint16_t)bytes),
			.kind = URN_FLOW_PART},
		.len = rte_cpu_to_be_32(m->len),
		.off = rte_cpu_to_be_32(off),
		.id = rte_cpu_to_be_32(m->id),
	};
	return at + sizeof(*p);
}

/* Write a void segment. bytes: that follow. returns: the place behind the header */
static uint8_t *
put_void(uint8_t *at, uint32_t bytes)
{
	struct urn_flow_seg *s = (struct urn_flow_seg *)at;

	*s = (struct urn_flow_seg){.kind = URN_FLOW_VOID,
				   .bytes = rte_cpu_to_be_16((uint16_t)bytes)};
	return at + sizeof(*s);
}

/* Write a segment that lets go of a long message. */
static void
put_let_go(uint8_t *at, uint32_t id)
{
	struct urn_flow_part *p = (struct urn_flow_part *)at;

	*p = (struct urn_flow_part){.seg.kind = URN_FLOW_LET_GO, .id = rte_cpu_to_be_32(id)};
}

/* Begin to put the payload of a frame. at: its first byte; payload: bytes, a multiple of 4; icrc:
 * the frame gets one */
static struct urn_flow_slice
slice_of(const struct urn_txd *d, uint8_t *at, uint32_t payload, bool icrc)
{
	return (struct urn_flow_slice){
		.at = at,
		.l3 = icrc ? urn_pkt_fresh(d->m) + URN_ETH_BYTES : NULL,
		.end = at + payload,
		.payload = payload,
	};
}

URN_FAST void
urn_flow_slice_put(const struct urn_tp *tp, struct urn_flow_slice *s, const uint8_t *src,
		   uint32_t len)
{
	/* The headers and all segments before are written. */
	if (len >= URN_TP_SEAL_FROM && s->l3 && s->at + urn_flow_pad(len) == s->end) {
		urn_tp_fetch_next(tp, s->payload);
		urn_icrc_gather(s->l3, s->at, src, len);
		s->sealed = true;
	} else {
		urn_copy(s->at, src, len);
	}
	s->at += len;
}

/* Write a probe: a void segment, and bytes that say nothing. */
static void
put_probe(uint8_t *at, uint32_t bytes)
{
	memset(put_void(at, bytes), 0, bytes);
}

/* Copy bytes of a message with a head. returns: false: they are not there any more */
static bool
put_gathered(struct urn_tp *tp, const struct urn_flow_msg *m, uint32_t off, uint32_t bytes,
	     struct urn_flow_slice *to)
{
	uint32_t head = m->head, n = off < head ? RTE_MIN(head - off, bytes) : 0;

	if (n)
		urn_flow_slice_put(tp, to, m->data + off, n);
	return n == bytes || urn_flow_user(tp)->gather(tp, m, off + n - head, bytes - n, to);
}

/*
 * Copy a segment's bytes. Those behind up to a multiple of 4 are cleared before, as the ICRC covers
 * them: the next segment, or the ICRC, overwrites the bytes that were cleared beyond. returns:
 * false: the bytes are not there any more
 */
static inline bool
put_bytes(struct urn_tp *tp, const struct urn_flow_msg *m, uint32_t off, uint32_t bytes,
	  struct urn_flow_slice *to)
{
	uint8_t *at = to->at;
	uint32_t zero = 0;

	memcpy(at + bytes, &zero, sizeof(zero));
	if (unlikely(m->head)) {
		if (unlikely(!put_gathered(tp, m, off, bytes, to)))
			return false;
	} else if (likely(bytes)) {
		urn_flow_slice_put(tp, to, m->data + off, bytes);
	}
	to->at = at + urn_flow_pad(bytes);
	return true;
}

/* Payload bytes of a packet. */
static uint32_t
payload_of(const struct urn_work *w)
{
	const struct urn_flow_msg *m = w->flow.msg;
	uint32_t bytes = w->flow.segs * (uint32_t)sizeof(struct urn_flow_seg);

	if (unlikely(w->flow.probe))
		return bytes + urn_flow_pad(w->flow.bytes);
	if (w->flow.part)
		return (uint32_t)sizeof(struct urn_flow_part) +
		       (m ? urn_flow_pad(w->flow.bytes) : 0);
	for (; m; m = m->next)
		bytes += urn_flow_pad(m->len);
	return bytes;
}

/* A message of a packet, whose bytes are not there any more, is in none from here on. gone: gets
 * the message */
static void
put_gone(struct urn_tp *tp, struct urn_flow_msg *m, bool again, struct urn_flow_msg **gone)
{
	bool whole = m->state == URN_FLOW_MSG_SENT || m->state == URN_FLOW_MSG_PARTS;

	urn_flow_forget(tp, m);
	m->code = again && whole ? URN_FLOW_GONE | URN_MSG_MAY_BE_THERE : URN_FLOW_GONE;
	m->next = *gone;
	*gone = m;
}

/*
 * Write the segments of a packet. to: at the first one; again: the packet was sent before; gone:
 * gets messages whose bytes are not there any more. returns: false: there was such a message, and
 * the segments are others now
 */
static bool
put_payload(struct urn_tp *tp, const struct urn_work *w, struct urn_flow_slice *to, bool again,
	    struct urn_flow_msg **gone)
{
	struct urn_flow_msg *m = w->flow.msg, *next;
	bool all = true;

	if (unlikely(w->flow.part && !m)) {
		if (w->flow.probe)
			put_probe(to->at, w->flow.bytes);
		else
			put_let_go(to->at, w->flow.off);
		return true;
	}
	if (w->flow.part) {
		to->at = put_part(to->at, m, w->flow.off, w->flow.bytes);
		if (likely(put_bytes(tp, m, w->flow.off, w->flow.bytes, to)))
			return true;
		put_gone(tp, m, again, gone);
		return false;
	}
	for (unsigned int i = 0, voids = w->flow.voids; i < w->flow.segs; i++) {
		uint8_t *at = to->at;

		if (unlikely(!m || (voids & 1u << i))) {
			to->at = put_void(at, 0);
			continue;
		}
		next = m->next;
		to->at = put_whole(at, m);
		if (unlikely(!put_bytes(tp, m, 0, m->len, to))) {
			to->at = at; /* the frame is made once more */
			put_gone(tp, m, again, gone);
			all = false;
		}
		m = next;
	}
	return all;
}

/* The start of the node, or the age of the epoch while no start is known; host order. */
static uint32_t
start_or_age(const struct urn_tp *tp, struct urn_flow *f)
{
	uint32_t born;
	int32_t age;
	uint64_t ms;

	if (likely(f->tx_start))
		return f->tx_start;
	if (!f->tx_born) { /* the turn may have begun long before this packet goes out */
		born = (uint32_t)(urn_flow_clock(tp) >> URN_FLOW_AGE_SHIFT);
		f->tx_born = born ? born : UINT32_MAX;
	}
	age = (int32_t)((uint32_t)(tp->now >> URN_FLOW_AGE_SHIFT) - f->tx_born);
	ms = age > 0 ? ((age - 1ull) << URN_FLOW_AGE_SHIFT) / 1000000
		     : 0; /* both times were rounded down */
	return (uint32_t)RTE_MIN(ms, (uint64_t)URN_FLOW_AGE_MAX);
}

/* ---- packets */

/* Make the frame of a packet. again, gone: as put_payload(); payload: set to its bytes. NULL: no
 * buffer */
static struct urn_txd *
make_packet(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w, bool again,
	    struct urn_flow_msg **gone, uint32_t *payload)
{
	bool first = f->key & URN_FLOW_KEY_TO_FIRST;
	uint32_t dqpn = first ? URN_FLOW_SLOT_FIRST : urn_flow_qpn(f->key & URN_FLOW_KEY_ENGINE);
	uint32_t top = tp->cfg.engine | (first ? URN_FLOW_KEY_VIA_FIRST : 0);
	bool icrc = tp->cfg.icrc && !tp->unsealed && !(f->flags & URN_FLOWF_LOOP);
	struct urn_flow_slice to;
	struct urn_flow_hdr *h;
	struct urn_txd *d;
	uint8_t *bth;

	do { /* again when messages became void: the packet is shorter then */
		*payload = payload_of(w);
		d = urn_tp_frame_inline(tp, &f->tmpl, URN_FLOW_DATA, *payload, dqpn, w->first_psn,
					0, true, &bth);
		if (unlikely(!d))
			return NULL;
		h = (struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));
		h->epoch = rte_cpu_to_be_64(f->tx_epoch);
		h->start = rte_cpu_to_be_32(start_or_age(tp, f));
		h->psn = rte_cpu_to_be_32(top << 24 | f->tx.una);
		to = slice_of(d, (uint8_t *)(h + 1), *payload, icrc);
		if (likely(put_payload(tp, w, &to, again, gone)))
			break;
		urn_tp_unframe(tp, d);
	} while (true);
	d->sealed = to.sealed;
	return d;
}

/* Answer messages whose bytes were not there any more when their packet was made. */
static void
answer_gone(struct urn_tp *tp, struct urn_flow_msg *gone)
{
	struct urn_flow_msg *m;

	while ((m = gone)) {
		gone = m->next;
		URN_COUNT(tp, FLOW_GONE);
		urn_flow_user(tp)->answered(tp, m, m->code); /* it is in no strand any more */
	}
}

URN_FAST bool
urn_flow_send_packet(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w, bool again)
{
	struct urn_flow_msg *gone = NULL;
	uint32_t payload;
	struct urn_txd *d;

	if (unlikely(w->flow.probe))
		urn_flow_mtu_try(w);
	d = make_packet(tp, f, w, again, &gone, &payload);
	if (likely(d)) {
		if (payload >= FETCH_FROM && !d->sealed)
			urn_tp_fetch_next(tp, payload);
		urn_flow_emit(tp, d, f->flags & URN_FLOWF_LOOP);
		w->flow.sent_no = ++f->sent_no;
		w->flow.state = URN_FLOW_OUT;
		f->out++;
		f->flags |= URN_FLOWF_SENT;
		f->tx_at = tp->now;
		urn_congestion_sent_source(tp, &f->congestion, payload);
		URN_COUNT(tp, FLOW_TX);
	}
	if (unlikely(gone))
		answer_gone(tp, gone);
	return d;
}
