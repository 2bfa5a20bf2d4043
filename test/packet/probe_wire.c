/* SPDX-License-Identifier: BSD-3-Clause */
/* The probe's wire: frames in, turns, and frames out, each of them judged. */
#include "probe.h"

#include "common/test_eal.h"
#include "common/test_sent.h"

/* ---- the wire: in */

void
probe_fill(uint8_t *at, uint32_t len, uint32_t seed, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (uint8_t)((seed * 2654435761u ^ (from + i) * 40503u) >> 7);
}

void
probe_check_fill(const uint8_t *at, uint32_t len, uint32_t seed, uint32_t from, const char *file,
		 int line)
{
	for (uint32_t i = 0; i < len; i++) {
		uint8_t want;

		probe_fill(&want, 1, seed, from + i);
		if (at[i] != want) {
			print_error("byte %u of %u is 0x%02x, not 0x%02x\n", i, len, at[i], want);
			_fail(file, line);
		}
	}
}

void
probe_put_raw(struct probe *p, const uint8_t *bytes, uint32_t len)
{
	static const uint8_t old[] = {0x2e, 0xff, 0x00, 0xa5};
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(m);
	/* The contents of a used buffer must not matter. */
	memset((uint8_t *)m->buf_addr - TEST_EAL_PRIV,
	       old[p->tp->c.v[URN_C_RX_PACKETS] % sizeof(old)], TEST_EAL_PRIV);
	assert_true(p->in_n < URN_TP_BURST && len <= TEST_EAL_ROOM);
	memcpy(rte_pktmbuf_mtod(m, void *), bytes, len);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	p->in[p->in_n++] = m;
}

void
probe_put(struct probe *p, struct frame *f)
{
	uint8_t bytes[FRAME_ROOM];

	if (!f->dqpn)
		f->dqpn = p->qp->qpn;
	probe_put_raw(p, bytes, frame_write(f, &p->peer, &p->node, bytes));
}

void
probe_send(struct probe *p, uint8_t op, uint32_t psn, uint32_t len, uint32_t seed)
{
	struct frame f = frame_of(op, psn);

	f.len = len;
	f.ack = true;
	probe_fill(f.data, len, seed, 0);
	probe_put(p, &f);
}

void
probe_write(struct probe *p, uint8_t op, uint32_t psn, uint32_t off, uint32_t length, uint32_t len,
	    uint32_t seed)
{
	struct frame f = frame_of(op, psn);

	f.va = PROBE_VA + off;
	f.rkey = p->key;
	f.length = length;
	f.len = len;
	f.ack = true;
	probe_fill(f.data, len, seed, 0);
	probe_put(p, &f);
}

void
probe_read(struct probe *p, uint32_t psn, uint32_t off, uint32_t length)
{
	probe_write(p, READ_REQ, psn, off, length, 0, 0);
}

void
probe_atomic(struct probe *p, uint8_t op, uint32_t psn, uint32_t off, uint64_t swap_add,
	     uint64_t compare)
{
	struct frame f = frame_of(op, psn);

	f.va = PROBE_VA + off;
	f.rkey = p->key;
	f.swap = swap_add;
	f.compare = compare;
	f.ack = true;
	probe_put(p, &f);
}

void
probe_ack(struct probe *p, uint32_t psn, uint8_t syn, uint32_t msn)
{
	struct frame f = frame_of(ACK, psn);

	f.syn = syn;
	f.msn = msn;
	probe_put(p, &f);
}

void
probe_resp(struct probe *p, uint8_t op, uint32_t psn, uint32_t len, uint32_t seed)
{
	struct frame f = frame_of(op, psn);

	if (op == ATOMIC_ACK) {
		f.orig = len;
	} else {
		f.len = len;
		probe_fill(f.data, len, seed, 0);
	}
	probe_put(p, &f);
}

/* ---- the wire: out */

/* Rules that every frame of RC must keep, in any scenario. returns: NULL, or the error */
static const char *
judge(struct probe *p, const struct frame *f)
{
	struct probe_qp *q = NULL;
	bool full = f->op == SEND_FIRST || f->op == SEND_MIDDLE || f->op == WRITE_FIRST ||
		    f->op == WRITE_MIDDLE || f->op == READ_FIRST || f->op == READ_MIDDLE;
	bool last = f->op == SEND_LAST || f->op == SEND_LAST_IMM || f->op == SEND_LAST_INV ||
		    f->op == WRITE_LAST || f->op == WRITE_LAST_IMM || f->op == READ_LAST;
	bool two = f->op == WRITE_TWO || f->op == WRITE_TWO_IMM;

	if (f->pkey != 0xffff)
		return "P_Key";
	if (p->cfg.type == URN_QPT_UD)
		return f->op == UD_SEND || f->op == UD_SEND_IMM ? NULL : "opcode of a UD QP";
	for (unsigned int i = 0; i < PROBE_QPS; i++)
		if (p->q[i].qp && p->q[i].peer_qpn == f->dqpn)
			q = &p->q[i];
	if (!q)
		return "destination QP";
	if (p->cfg.type == URN_QPT_UC)
		return f->ack ? "a UC packet that asks for an acknowledgement"
		       : (f->op < UC || f->op > (UC | WRITE_ONLY_IMM)) && f->op != UC_WORD
			       ? "opcode of a UC QP"
		       : f->len > q->qp->mtu ? "payload of the wrong length"
					     : NULL;
	if ((f->op > SEND_ONLY_INV || f->op == 0x15) && f->op != SACK && f->op != CNP && !two)
		return "opcode";
	if (f->op == CNP && (f->psn || f->orig || f->len || f->ack))
		return "a congestion notification that says more";
	if ((full && f->len != q->qp->mtu) || (last && f->len == 0) || f->len > q->qp->mtu)
		return "payload of the wrong length";
	if (!full && !last && !two && f->len && f->op != SEND_ONLY && f->op != SEND_ONLY_IMM &&
	    f->op != SEND_ONLY_INV && f->op != WRITE_ONLY && f->op != WRITE_ONLY_IMM &&
	    f->op != READ_ONLY && f->op != SACK)
		return "payload where none may be";
	if ((f->op == READ_FIRST || f->op == READ_LAST || f->op == READ_ONLY ||
	     f->op == ATOMIC_ACK) && f->syn != SYN_ACK)
		return "syndrome of a response";
	if (f->op == ACK && (f->syn & 0x60) == 0 && f->syn != SYN_ACK)
		return "an ACK that gives credits";
	return NULL;
}

static void
take_frame(struct probe *p, struct rte_mbuf *m)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(m, const uint8_t *);
	struct frame *f = &p->seen[p->seen_n++ % PROBE_SEEN];
	const char *why = m->nb_segs != 1   ? "segments"
			  : m->ol_flags != 0 || m->packet_type != 0 ? "flags of another packet"
			  : m->pkt_len != m->data_len ? "two lengths"
					  : frame_read(bytes, m->data_len, &p->node, &p->peer, f);

	if (!why)
		why = judge(p, f);
	if (why)
		fail_msg("the node sent a bad frame, opcode 0x%02x, PSN 0x%06x, %u bytes: %s", f->op,
			 f->psn, m->data_len, why);
	test_sent(m);
	rte_pktmbuf_free(m);
}

static void
take_out(struct probe *p)
{
	struct urn_tp *tp = p->tp;

	for (unsigned int i = 0; i < tp->tx_n; i++)
		take_frame(p, tp->tx[i]);
	tp->tx_n = 0;
	for (unsigned int i = 0; i < tp->event_n; i++)
		p->event[p->events++ % 64] = tp->event[i].ev.type;
	tp->event_n = 0;
	for (unsigned int i = 0; i < tp->other_n; i++)
		rte_pktmbuf_free(tp->other[i]);
	tp->other_n = 0;
	for (unsigned int i = 0; i < tp->handover_n; i++)
		rte_pktmbuf_free(tp->handover[i]);
	tp->handover_n = 0;
}

void
probe_turn(struct probe *p, uint64_t ns)
{
	p->now += ns;
	urn_tp_turn(p->tp, p->now);
	if (p->in_n)
		urn_tp_rx(p->tp, p->in, p->in_n, false);
	p->in_n = 0;
	urn_tp_tx(p->tp);
	take_out(p);
}

void
probe_settle(struct probe *p)
{
	unsigned int calm = 0;

	for (unsigned int i = 0; calm < 3; i++) {
		if (i == 100000)
			fail_msg("the node never comes to rest");
		probe_turn(p, 0);
		calm = urn_tp_busy(p->tp) || (!p->hold && urn_memx_holds(p->memx, NULL)) ? 0
											 : calm + 1;
	}
}

void
probe_pass(struct probe *p, uint64_t ns, uint64_t step)
{
	uint64_t end = p->now + ns;

	while (p->now < end)
		probe_turn(p, end - p->now < step ? end - p->now : step);
	probe_settle(p);
}

/* ---- output */

const struct frame *
probe_expect(struct probe *p, uint8_t op, uint32_t psn, const char *file, int line)
{
	const struct frame *f;

	probe_settle(p);
	if (p->looked == p->seen_n) {
		print_error("no frame came; opcode 0x%02x, PSN 0x%06x was to come\n", op, psn);
		_fail(file, line);
	}
	assert_true(p->seen_n - p->looked <= PROBE_SEEN);
	f = &p->seen[p->looked++ % PROBE_SEEN];
	if (f->op != op || f->psn != psn) {
		print_error("opcode 0x%02x, PSN 0x%06x, syndrome 0x%02x came, not 0x%02x, 0x%06x\n",
			    f->op, f->psn, f->syn, op, psn);
		_fail(file, line);
	}
	return f;
}

void
probe_silent(struct probe *p, const char *file, int line)
{
	const struct frame *f = &p->seen[p->looked % PROBE_SEEN];

	probe_settle(p);
	if (p->looked == p->seen_n)
		return;
	print_error("%u frames too many; opcode 0x%02x, PSN 0x%06x, syndrome 0x%02x\n",
		    p->seen_n - p->looked, f->op, f->psn, f->syn);
	_fail(file, line);
}

void
probe_expect_aeth(struct probe *p, uint32_t psn, uint8_t syn, uint32_t msn, const char *file,
		  int line)
{
	const struct frame *f = probe_expect(p, ACK, psn, file, line);

	if (f->syn != syn || f->msn != msn) {
		print_error("syndrome 0x%02x, MSN %u came, not 0x%02x, %u\n", f->syn, f->msn, syn, msn);
		_fail(file, line);
	}
}
