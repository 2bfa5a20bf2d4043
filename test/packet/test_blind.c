/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from an attacker who does not see the wire and guesses PSNs, with all other
 * fields right: such frames must not take the place of a peer's packets (doc/inside/recovery.md
 * "Frames that somebody made up").
 */
#include "blind.h"

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
	blind_take_up(&p);
	blind_duplicate(&p, 0, 8, 1, 0);
	blind_duplicate(&p, 0, 8, 99, 1);
	check_fill(probe_at(&p, 0), 8, 1, 0);
	probe_close(&p);
}

/* The wrong one was taken up by the time that the right one comes: other address. */
static void
other_header(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	blind_take_up(&p);
	probe_write(&p, WRITE_ONLY, RQ(1), 64, 8, 8, 1);
	blind_ends(&p, 2);
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
	blind_ends(&p, 2);
}

/* ... other operation, with the same headers. */
static void
other_opcode(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	blind_take_up(&p);
	probe_read(&p, RQ(1), 0, 8);
	blind_ends(&p, 2);
}

/* A frame that meets nothing that was kept is a duplicate, whatever it says. */
static void
never_kept(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	blind_take_up(&p);
	probe_write(&p, WRITE_ONLY, RQ(0), 64, 8, 8, 1);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 0);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
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
	blind_take_up(&p);
	go_on(&p, URN_TRACE_REACH + 4);
	assert_int_equal(p.qp->trace, 0);
	blind_duplicate(&p, 64, 8, 99, 0);
	probe_close(&p);
}

/* ... also while newer ones of the QP are remembered. */
static void
too_old(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.kept = 1000});
	blind_take_up(&p);
	go_on(&p, URN_TRACE_REACH - 5);
	probe_write(&p, WRITE_ONLY, RQ(URN_TRACE_REACH - 4), 0, 8, 8, 1);
	probe_settle(&p);
	go_on(&p, URN_TRACE_REACH + 3);
	assert_true(p.qp->trace != 0);
	blind_duplicate(&p, 64, 8, 99, 0);
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
	blind_take_up(&p);
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
	blind_take_up(&p);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_from_urnic),
		cmocka_unit_test(wide_window),
		cmocka_unit_test(far_from_standard),
		cmocka_unit_test(border),
		cmocka_unit_test(far_responses),
		cmocka_unit_test(other_address),
		cmocka_unit_test(two_from_urnic),
		cmocka_unit_test(two_from_standard),
		cmocka_unit_test(copy),
		cmocka_unit_test(other_payload),
		cmocka_unit_test(other_header),
		cmocka_unit_test(other_length),
		cmocka_unit_test(other_opcode),
		cmocka_unit_test(never_kept),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(too_old),
		cmocka_unit_test(half_a_round),
		cmocka_unit_test(whole_round),
	};

	return cmocka_run_group_tests_name("blind", tests, NULL, NULL);
}
