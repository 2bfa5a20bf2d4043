/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from an attacker who does not see the wire and guesses PSNs, with all other
 * fields right: such frames must not take the place of a peer's packets (doc/inside/recovery.md
 * "Frames that somebody made up").
 */
#include "sack.h"

#include <stdlib.h>

enum { SPREAD = 64, REAL = 8 };

/* SENDs with other bytes, spread over all PSNs that are ahead. */
static void
guess(struct probe *p)
{
	for (uint32_t i = 1; i <= SPREAD; i++) {
		probe_send(p, SEND_ONLY, RQ(i * ((1u << 23) / SPREAD) - 1), 40, 1000 + i);
		if (p->in_n == URN_TP_BURST)
			probe_turn(p, 0);
	}
	probe_settle(p);
}

/* The peer's own messages come, in order, and the program receives them. */
static void
truth(struct probe *p)
{
	for (uint32_t i = 0; i < REAL; i++)
		probe_send(p, SEND_ONLY, RQ(i), 40, i);
	probe_settle(p);
	for (uint32_t i = 0; i < REAL; i++) {
		expect_recv(p, i, SUCCESS);
		check_fill(probe_at(p, i * 64), 40, i, 0);
	}
	expect_no_cqe(p);
}

static void
receives(struct probe *p)
{
	for (uint32_t i = 0; i < REAL; i++)
		probe_recv(p, i * 64, 64, i);
}

/* No packet is kept beyond what the peer can have in flight; where nothing is kept one NAK tells of a gap. */
static void
far_from_urnic(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .kept = 1000});
	receives(&p);
	guess(&p);
	assert_int_equal(p.tp->kept, 0);
	expect_count(&p, DROP_FAR, SPREAD);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	expect_silence(&p);
	truth(&p);
	expect_aeth(&p, RQ(REAL - 1), SYN_ACK, REAL);
	probe_close(&p);
}

/* A window wider than the room for kept packets: after the gap the dropped packets are asked for, not waited for. */
static void
wide_window(void **state)
{
	enum { SENT = 600 };
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .kept = 1000, .window = 1024});
	for (uint32_t i = 1; i < SENT; i++) {
		probe_write(&p, WRITE_ONLY, RQ(i), 0, 8, 8, 1);
		if (i % 16 == 0)
			probe_settle(&p);
	}
	probe_settle(&p);
	assert_int_equal(p.tp->kept, URN_TP_OOO_QP);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 0);
	p.looked = p.seen_n;
	probe_write(&p, WRITE_ONLY, RQ(SENT), 0, 8, 8, 1);
	expect_aeth(&p, RQ(URN_TP_OOO_QP + 1), NAK_SEQ, URN_TP_OOO_QP + 1);
	probe_write(&p, WRITE_ONLY, RQ(SENT + 1), 0, 8, 8, 1);
	expect_silence(&p);
	probe_close(&p);
}

/* A standard peer is told of a gap, once, since it may have sent READs of many PSNs. */
static void
far_from_standard(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.kept = 1000});
	receives(&p);
	guess(&p);
	assert_int_equal(p.tp->kept, 0);
	expect_count(&p, DROP_FAR, SPREAD);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	expect_silence(&p);
	truth(&p);
	expect_aeth(&p, RQ(REAL - 1), SYN_ACK, REAL);
	probe_close(&p);
}

/* The border: so far ahead as a window reaches, and one further. */
static void
border(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .kept = 1000});
	probe_send(&p, SEND_ONLY, RQ(URN_TP_OOO_QP), 40, 1);
	probe_send(&p, SEND_ONLY, RQ(URN_TP_OOO_QP + 1), 40, 1);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, DROP_FAR, 1);
	probe_close(&p);
}

/* Responses: no further ahead than a QP keeps of them, however long the READ is. */
static void
far_responses(void **state)
{
	enum { PACKETS = 1500 };
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .kept = 2000,
					      .retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, PACKETS * 256, 0, 1);
	expect_frame(&p, READ_REQ, SQ(0));
	probe_resp(&p, READ_MIDDLE, SQ(URN_TP_OOO_READ), 256, 1);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, DROP_FAR, 0);
	probe_resp(&p, READ_MIDDLE, SQ(URN_TP_OOO_READ + 1), 256, 1);
	probe_resp(&p, READ_LAST, SQ(PACKETS - 1), 256, 1);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, DROP_FAR, 2);
	probe_close(&p);
}

/* A frame to another of our addresses is not of this connection, from any sender. */
static void
other_address(void **state)
{
	struct frame_addr was;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.ipv6 = true});
	receives(&p);
	was = p.node;
	p.node.gid[15] ^= 0x55;
	memcpy(p.tp->ipv6[p.tp->ipv6_n++], p.node.gid, 16);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 99);
	probe_settle(&p);
	p.node = was;
	expect_count(&p, DROP_PEER, 1);
	expect_silence(&p);
	truth(&p);
	probe_close(&p);
}

/* ---- packets that contradict each other */

/* When two that contradict wait for their turn, neither is believed, and the peer's repeat decides. */
static void
two_that_wait(struct probe *p)
{
	receives(p);
	probe_send(p, SEND_ONLY, RQ(3), 40, 3);
	probe_send(p, SEND_ONLY, RQ(2), 40, 99);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 2);
	probe_send(p, SEND_ONLY, RQ(2), 40, 2);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 1);
	assert_int_equal(p->qp->rx.ooo_count, 1);
	expect_count(p, CONTRADICTS, 1);
	truth(p);
	expect_count(p, CONTRADICTS, 1);
	assert_int_equal(p->qp->state, URN_QPS_RTS);
	probe_close(p);
}

static void
two_from_urnic(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true});
	two_that_wait(&p);
}

static void
two_from_standard(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	two_that_wait(&p);
}

/* A copy that asks for an acknowledgement where the first did not is a copy all the same. */
static void
copy(void **state)
{
	struct frame f = frame_of(SEND_ONLY, RQ(1));
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	receives(&p);
	f.len = 40;
	probe_fill(f.data, 40, 1, 0);
	f.ack = false;
	f.no_m = true;
	probe_put(&p, &f);
	probe_settle(&p);
	f.ack = true;
	f.no_m = false;
	probe_put(&p, &f);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	truth(&p); /* with one more copy, when it is done */
	expect_count(&p, CONTRADICTS, 0);
	expect_count(&p, DROP_OOO, 1);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);
}

/* The WRITE of PSN 1 was kept, and is taken up, since that of PSN 0 came. */
static void
take_up(struct probe *p)
{
	probe_write(p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 1);
	probe_write(p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 0);
	assert_true(p->qp->trace != 0);
	p->looked = p->seen_n;
}

/* One more WRITE of PSN 1 to that offset is a duplicate like others: it ends no connection. */
static void
duplicate(struct probe *p, uint32_t off, uint32_t len, uint32_t fill, uint32_t contradicts)
{
	probe_write(p, WRITE_ONLY, RQ(1), off, len, len, fill);
	probe_settle(p);
	expect_count(p, CONTRADICTS, contradicts);
	expect_aeth(p, (p->qp->rx.epsn - 1) & URN_PSN_MASK, SYN_ACK, (p->qp->rx.epsn - RQ(0)) & URN_PSN_MASK);
	assert_int_equal(p->qp->state, URN_QPS_RTS);
	assert_int_equal(p->events, 0);
}

/*
 * A packet that was taken up comes again with another payload. A requester that repeats reads
 * its program's memory again, so this is counted and ends nothing; the first bytes stay.
 */
static void
other_payload(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	take_up(&p);
	duplicate(&p, 0, 8, 1, 0);
	duplicate(&p, 0, 8, 99, 1);
	check_fill(probe_at(&p, 0), 8, 1, 0);
	probe_close(&p);
}

/* The program and the peer are told of a packet that no requester repeats in this form. */
static void
ends(struct probe *p, uint32_t msn)
{
	expect_aeth(p, RQ(2), NAK_OP, msn);
	expect_count(p, CONTRADICTS, 1);
	assert_int_equal(p->qp->state, URN_QPS_ERR);
	assert_int_equal(p->events, 1);
	assert_int_equal(p->event[0], URN_EVENT_QP_FATAL);
	probe_close(p);
}

/* The wrong one was taken up by the time that the right one comes: other address. */
static void
other_header(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	take_up(&p);
	probe_write(&p, WRITE_ONLY, RQ(1), 64, 8, 8, 1);
	ends(&p, 2);
}

/* ... other length, with no header that says so. */
static void
other_length(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	receives(&p);
	probe_send(&p, SEND_ONLY, RQ(1), 40, 1);
	probe_settle(&p);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_send(&p, SEND_ONLY, RQ(1), 36, 1);
	ends(&p, 2);
}

/* ... other operation, with the same headers. */
static void
other_opcode(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	take_up(&p);
	probe_read(&p, RQ(1), 0, 8);
	ends(&p, 2);
}

/* A frame that meets nothing that was kept is a duplicate, whatever it says. */
static void
never_kept(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	take_up(&p);
	probe_write(&p, WRITE_ONLY, RQ(0), 64, 8, 8, 1);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 0);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);
}

/* ---- the pool of fingerprints */

/* QPs of a client, in no connection: each takes up a packet that it had kept. */
static struct urn_qp *
hold(struct probe *p, struct urn_tp_share *share, uint32_t n)
{
	struct urn_qp *qp = calloc(n, sizeof(*qp));

	assert_non_null(qp);
	for (uint32_t i = 0; i < n; i++) {
		qp[i].share = share;
		urn_trace_add(p->tp, &qp[i], URN_TRACE_REQ, 1, (struct urn_print){.head = i});
	}
	return qp;
}

/* The fingerprints that QPs hold add up to their client's count. */
static void
check_held(struct probe *p, const struct urn_qp *qp, uint32_t n, uint32_t first)
{
	const struct urn_tp_share *s = qp->share;

	assert_int_equal(s->trace, n - first);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(qp[i].trace != 0, i >= first);
		assert_int_equal((qp[i].flags & URN_QPF_TRACE) != 0, i >= first);
		if (qp[i].trace)
			assert_ptr_equal(p->tp->trace[qp[i].trace].qp, &qp[i]);
	}
}

static void
let_go(struct probe *p, struct urn_qp *qp, uint32_t n)
{
	const struct urn_tp_share *s = qp->share;

	for (uint32_t i = 0; i < n; i++)
		urn_trace_end(p->tp, &qp[i]);
	assert_int_equal(s->trace, 0);
	assert_int_equal(s->trace_oldest, 0);
	assert_int_equal(s->trace_newest, 0);
	free(qp);
}

/*
 * The pool of fingerprints is empty, since one client has all: another client's QP still
 * remembers the packets it took up, and keeps doing so when the first client wants more.
 */
static void
nothing_remembered(void **state)
{
	struct urn_tp_share hog = {0};
	struct urn_qp *first, *more;
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	first = hold(&p, &hog, URN_TRACES);
	check_held(&p, first, URN_TRACES, 0);
	assert_int_equal(p.tp->trace_free, 0);
	expect_count(&p, NO_TRACE, 0);
	take_up(&p);
	check_held(&p, first, URN_TRACES, 1);
	expect_count(&p, NO_TRACE, 1);
	more = hold(&p, &hog, 2 * URN_TRACES);
	expect_count(&p, NO_TRACE, 1 + 2 * URN_TRACES);
	assert_int_equal(hog.trace, URN_TRACES - 1);
	assert_true(more[2 * URN_TRACES - 1].trace != 0);
	duplicate(&p, 0, 8, 99, 1);
	for (uint32_t i = 0; i < URN_TRACES; i++)
		urn_trace_end(p.tp, &first[i]);
	free(first);
	let_go(&p, more, 2 * URN_TRACES);
	probe_close(&p);
}

/* No client keeps more than its part: a new client gets some, and the clients with most lose. */
static void
parts(void **state)
{
	enum { OTHERS = 7, BIG = URN_TRACES - OTHERS * (URN_TRACES_PART - 1) };
	struct urn_tp_share share[OTHERS + 2] = {0};
	struct urn_qp *qp[OTHERS + 2];
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (int i = 0; i < OTHERS; i++)
		qp[i] = hold(&p, &share[i], URN_TRACES_PART - 1);
	qp[OTHERS] = hold(&p, &share[OTHERS], BIG);
	assert_int_equal(p.tp->trace_free, 0);
	/* The hand may not meet a client with more than its part: then it takes from one that it met. */
	qp[OTHERS + 1] = hold(&p, &share[OTHERS + 1], URN_TRACES_PART);
	check_held(&p, qp[OTHERS + 1], URN_TRACES_PART, 0);
	expect_count(&p, NO_TRACE, URN_TRACES_PART);
	let_go(&p, qp[OTHERS + 1], URN_TRACES_PART);
	/* At its part it takes from itself alone. */
	qp[OTHERS + 1] = hold(&p, &share[OTHERS + 1], 2 * URN_TRACES_PART);
	expect_count(&p, NO_TRACE, 2 * URN_TRACES_PART);
	check_held(&p, qp[OTHERS + 1], 2 * URN_TRACES_PART, URN_TRACES_PART);
	for (int i = 0; i < OTHERS; i++)
		let_go(&p, qp[i], URN_TRACES_PART - 1);
	let_go(&p, qp[OTHERS], BIG);
	let_go(&p, qp[OTHERS + 1], 2 * URN_TRACES_PART);
	probe_close(&p);
}

/* A client with few loses nothing while the hand meets one with more than its part a few steps on. */
static void
greedy(void **state)
{
	enum { FEW = URN_TRACES_PART, MANY = URN_TRACES - FEW };
	struct urn_tp_share few = {0}, many = {0};
	struct urn_qp *a, *b;
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	a = hold(&p, &few, FEW);
	b = hold(&p, &many, MANY);
	p.tp->trace_hand = FEW - 4;
	take_up(&p);
	check_held(&p, a, FEW, 0);
	check_held(&p, b, MANY, 1);
	let_go(&p, a, FEW);
	let_go(&p, b, MANY);
	probe_close(&p);
}

/* ---- for how long they are remembered */

/* WRITEs in their turn, up to before that of PSN `end`. */
static void
go_on(struct probe *p, uint32_t end)
{
	for (uint32_t i = (p->qp->rx.epsn - RQ(0)) & URN_PSN_MASK; i < end; i++) {
		probe_write(p, WRITE_ONLY, RQ(i), 0, 8, 8, 1);
		probe_turn(p, 0);
	}
	probe_settle(p);
	p->looked = p->seen_n;
}

/* A packet far behind is forgotten: it is only a duplicate. */
static void
forgotten(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.kept = 1000});
	take_up(&p);
	go_on(&p, URN_TRACE_REACH + 4);
	assert_int_equal(p.qp->trace, 0);
	duplicate(&p, 64, 8, 99, 0);
	probe_close(&p);
}

/* ... also while newer ones of the QP are remembered. */
static void
too_old(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.kept = 1000});
	take_up(&p);
	go_on(&p, URN_TRACE_REACH - 5);
	probe_write(&p, WRITE_ONLY, RQ(URN_TRACE_REACH - 4), 0, 8, 8, 1);
	probe_settle(&p);
	go_on(&p, URN_TRACE_REACH + 3);
	assert_true(p.qp->trace != 0);
	duplicate(&p, 64, 8, 99, 0);
	probe_close(&p);
}

/* The next WRITE is `n` PSNs further on, as if READs of so many had come. */
static void
leap(struct probe *p, uint32_t n)
{
	p->qp->rx.epsn = PSN(p->qp->rx.epsn, n);
}

/* A packet half a round of PSNs behind, by a READ of that many, is far behind. */
static void
half_a_round(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.mtu = 256});
	take_up(&p);
	leap(&p, 1u << 23);
	probe_write(&p, WRITE_ONLY, p.qp->rx.epsn, 0, 8, 8, 1);
	probe_settle(&p);
	assert_int_equal(p.qp->trace, 0);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);
}

/*
 * When a PSN comes again after all the others did, its packet is not that of the round before,
 * even when fingerprints were remembered all the time, and none took that packet's place.
 */
static void
whole_round(void **state)
{
	enum { STEP = 2 * URN_TRACE_PRINTS };
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	take_up(&p);
	for (uint32_t i = 0; i < (1u << 24) / STEP; i++) {
		uint32_t due;

		leap(&p, i ? STEP - 2 : STEP - 1);
		due = p.qp->rx.epsn;
		probe_write(&p, WRITE_ONLY, PSN(due, 1), 0, 8, 8, 1);
		probe_write(&p, WRITE_ONLY, due, 0, 8, 8, 1);
		probe_turn(&p, 0);
		assert_int_equal(p.qp->rx.epsn, PSN(due, 2));
		assert_true(p.qp->trace != 0);
		p.looked = p.seen_n;
	}
	assert_int_equal(p.qp->rx.epsn, RQ(3));
	probe_write(&p, WRITE_ONLY, RQ(1), 64, 8, 8, 1);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 0);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);
}

/* A part of a READ that was kept may be asked for again. */
static void
part_of_read(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.mtu = 256});
	probe_read(&p, RQ(1), 0, 4 * 256);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_read(&p, RQ(1), 0, 2 * 256);
	expect_frame(&p, READ_FIRST, RQ(1));
	expect_frame(&p, READ_LAST, RQ(2));
	expect_count(&p, CONTRADICTS, 0);
	probe_close(&p);
}

/* Two responses that wait and differ: that part of the READ is asked for again. */
static void
two_responses(void **state)
{
	enum { PACKETS = 20 };
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, PACKETS * 256, 0, 1);
	expect_frame(&p, READ_REQ, SQ(0));
	probe_resp(&p, READ_MIDDLE, SQ(2), 256, 99);
	probe_resp(&p, READ_MIDDLE, SQ(3), 256, 3);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 2);
	probe_resp(&p, READ_MIDDLE, SQ(2), 256, 2);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, CONTRADICTS, 1);
	probe_resp(&p, READ_FIRST, SQ(0), 256, 0);
	probe_resp(&p, READ_MIDDLE, SQ(1), 256, 1);
	for (uint32_t i = 4; i < PACKETS - 1; i++)
		probe_resp(&p, READ_MIDDLE, SQ(i), 256, i);
	probe_resp(&p, READ_LAST, SQ(PACKETS - 1), 256, PACKETS - 1);
	assert_int_equal(expect_frame(&p, READ_REQ, SQ(2))->length, 256);
	probe_resp(&p, READ_ONLY, SQ(2), 256, 2);
	expect_sent(&p, 1, SUCCESS);
	for (uint32_t i = 0; i < PACKETS; i++)
		check_fill(probe_at(&p, i * 256), 256, i, 0);
	expect_count(&p, CONTRADICTS, 1);
	probe_close(&p);
}

/* Two responses that differ in their last byte only differ, too. */
static void
last_byte(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 4 * 256, 0, 1);
	expect_frame(&p, READ_REQ, SQ(0));
	for (uint8_t last = 0; last < 2; last++) {
		struct frame f = frame_of(READ_MIDDLE, SQ(2));

		f.len = 256;
		probe_fill(f.data, f.len, 2, 0);
		f.data[f.len - 1] = last;
		probe_put(&p, &f);
		probe_settle(&p);
	}
	assert_int_equal(p.tp->kept, 0);
	expect_count(&p, CONTRADICTS, 1);
	probe_close(&p);
}

/* ---- responses that were taken up */

enum { PARTS = 8 };

/* A READ whose response of PSN `which` is a made-up one that came first, and was taken up. */
static void
read_with(struct probe *p, uint32_t which)
{
	probe_open(p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, PARTS * 256, 0, 1);
	expect_frame(p, READ_REQ, SQ(0));
	probe_resp(p, which == PARTS - 1 ? READ_LAST : READ_MIDDLE, SQ(which), 256, 99);
	for (uint32_t i = 0; i < which; i++)
		probe_resp(p, i ? READ_MIDDLE : READ_FIRST, SQ(i), 256, i);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 0);
	assert_int_equal(p->qp->tx.repair, 0);
}

/* The rest of the READ's responses come as usual. */
static void
rest_of_read(struct probe *p, uint32_t which)
{
	for (uint32_t i = which + 1; i < PARTS; i++)
		probe_resp(p, i < PARTS - 1 ? READ_MIDDLE : READ_LAST, SQ(i), 256, i);
	expect_sent(p, 1, SUCCESS);
	expect_no_cqe(p);
	assert_int_equal(p->qp->state, URN_QPS_RTS);
	assert_int_equal(p->events, 0);
	probe_close(p);
}

/* A READ's memory may change between two answers: a difference is counted, and the READ completes. */
static void
response_taken(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, 5);
	probe_resp(&p, READ_MIDDLE, SQ(5), 256, 99);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 0);
	probe_resp(&p, READ_MIDDLE, SQ(5), 256, 5);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	rest_of_read(&p, 5);
}

/* ... also when the READ is whole with it, and no other response is waited for. */
static void
last_response_taken(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, PARTS - 1);
	probe_resp(&p, READ_LAST, SQ(PARTS - 1), 256, PARTS - 1);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	rest_of_read(&p, PARTS - 1);
}

/* ... and another length or kind, which no answer to this READ has, ends nothing either. */
static void
response_of_other_kind(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, 5);
	probe_resp(&p, READ_LAST, SQ(5), 252, 99);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	probe_resp(&p, ATOMIC_ACK, SQ(5), 99, 0);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 2);
	rest_of_read(&p, 5);
}

/* Responses far behind are forgotten, as requests are. */
static void
response_forgotten(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, PARTS - 1);
	expect_sent(&p, 1, SUCCESS);
	assert_true(p.qp->trace != 0);
	for (uint32_t i = 0; i < URN_TRACE_REACH + 2; i++) {
		probe_post(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, 0, 8, 0, i);
		probe_turn(&p, 0);
		probe_ack(&p, SQ(PARTS + i), SYN_ACK, i + 2);
		probe_turn(&p, 0);
		expect_sent(&p, i, SUCCESS);
		p.looked = p.seen_n;
	}
	assert_int_equal(p.qp->trace, 0);
	probe_close(&p);
}

/* An atomic whose answer was made up: it came ahead of that of a READ, and was taken up. */
static void
atomic_taken(struct probe *p)
{
	probe_open(p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 256, 0, 1);
	probe_post(p, URN_WR_FETCH_ADD, URN_WRF_SIGNALED, 512, 8, 0, 2);
	expect_frame(p, READ_REQ, SQ(0));
	expect_frame(p, FETCH_ADD, SQ(1));
	probe_resp(p, ATOMIC_ACK, SQ(1), 99, 0);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 1);
	probe_resp(p, READ_ONLY, SQ(0), 256, 0);
	expect_sent(p, 1, SUCCESS);
	expect_sent(p, 2, SUCCESS);
	probe_resp(p, ATOMIC_ACK, SQ(1), 99, 0);
	probe_settle(p);
	expect_count(p, CONTRADICTS, 0);
	assert_int_equal(p->qp->state, URN_QPS_RTS);
}

/* No responder gives another value when it answers again: the program's may be wrong. */
static void
other_value(void **state)
{
	struct probe p;

	(void)state;
	atomic_taken(&p);
	probe_post(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, 0, 8, 0, 3);
	probe_resp(&p, ATOMIC_ACK, SQ(1), 5, 0);
	expect_sent(&p, 3, WR_FLUSH_ERR);
	expect_count(&p, CONTRADICTS, 1);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	assert_int_equal(p.qp->trace, 0);
	assert_int_equal(p.events, 1);
	assert_int_equal(p.event[0], URN_EVENT_QP_FATAL);
	probe_close(&p);
}

/* A READ's response in the place of an atomic's is no answer to it, and ends nothing. */
static void
no_value(void **state)
{
	struct probe p;

	(void)state;
	atomic_taken(&p);
	probe_resp(&p, READ_ONLY, SQ(1), 8, 5);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	assert_int_equal(p.events, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_from_urnic), cmocka_unit_test(wide_window), cmocka_unit_test(far_from_standard),
		cmocka_unit_test(border), cmocka_unit_test(far_responses), cmocka_unit_test(other_address),
		cmocka_unit_test(two_from_urnic), cmocka_unit_test(two_from_standard),
		cmocka_unit_test(copy), cmocka_unit_test(other_payload), cmocka_unit_test(other_header),
		cmocka_unit_test(other_length), cmocka_unit_test(other_opcode),
		cmocka_unit_test(never_kept), cmocka_unit_test(nothing_remembered), cmocka_unit_test(parts), cmocka_unit_test(greedy),
		cmocka_unit_test(forgotten), cmocka_unit_test(too_old),
		cmocka_unit_test(half_a_round), cmocka_unit_test(whole_round),
		cmocka_unit_test(part_of_read), cmocka_unit_test(two_responses), cmocka_unit_test(last_byte),
		cmocka_unit_test(response_taken), cmocka_unit_test(last_response_taken),
		cmocka_unit_test(response_of_other_kind), cmocka_unit_test(response_forgotten),
		cmocka_unit_test(other_value), cmocka_unit_test(no_value),
	};

	return cmocka_run_group_tests_name("blind", tests, NULL, NULL);
}
