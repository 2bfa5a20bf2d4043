/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control of RC (DCQCN; doc/inside/recovery.md "Congestion"): marks are answered by notifications, and
 * notifications slow their QP down, and no other.
 */
#include "probe.h"

#include "transport/sched.h"

#define LINE 1250000000ull /* bytes a second: 10 Gbit/s */

enum { LEN = 1024, US = 1000, CNP_US = 50 };

static void
open_line(struct probe *p, const struct probe_config *more)
{
	struct probe_config c = more ? *more : (struct probe_config){0};

	c.line = LINE;
	c.window = 256;
	probe_open(p, &c);
}

static void
put_marked(struct probe *p, uint32_t psn, uint8_t ecn)
{
	struct frame f = frame_of(SEND_ONLY, psn);

	f.len = 8;
	f.ack = true;
	f.ecn = ecn;
	probe_put(p, &f);
}

/* Frames that the node has sent and nobody has looked at, by opcode. */
static unsigned int
sent(struct probe *p, uint8_t op)
{
	unsigned int n = 0;

	for (uint32_t i = p->looked; i < p->seen_n; i++)
		n += p->seen[i % PROBE_SEEN].op == op;
	return n;
}

static void
put_cnp(struct probe *p)
{
	struct frame f = frame_of(CNP, 0);

	f.fb = 0x40;
	f.no_m = true;
	probe_put(p, &f);
}

/* A marked packet is answered by a notification: B, M 0, PSN 0, zeroes; one in 50 us, however many
 * come. */
static void
slows_the_sender(void **state)
{
	const struct frame *f;
	struct probe p;
	uint32_t n = 0;

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		open_line(&p, &(struct probe_config){.ipv6 = ipv6});
		for (int i = 0; i < 64; i++)
			probe_recv(&p, 0, 64, i);
		put_marked(&p, RQ(n = 0), 3);
		f = expect_frame(&p, CNP, 0);
		assert_int_equal(f->dqpn, p.q[0].peer_qpn);
		assert_true(f->no_m);
		assert_int_equal(f->orig, 0);
		assert_int_equal(f->len, 0);
		expect_aeth(&p, RQ(0), SYN_ACK, 1);
		for (int us = 1; us < CNP_US; us += 7) {
			probe_turn(&p, 7 * US);
			if (us + 7 >= CNP_US)
				break;
			put_marked(&p, RQ(++n), 3);
			probe_settle(&p);
			assert_int_equal(sent(&p, CNP), 0);
			assert_int_equal(sent(&p, ACK), 1);
			p.looked = p.seen_n;
		}
		probe_turn(&p, CNP_US * US);
		put_marked(&p, RQ(++n), 3);
		probe_settle(&p);
		assert_int_equal(sent(&p, CNP), 1);
		p.looked = p.seen_n;
		expect_count(&p, TX_CNPS, 2);
		expect_count(&p, RX_MARKED, n + 1);
		/* Packets without a mark are not answered. */
		probe_turn(&p, CNP_US * US);
		for (uint8_t ecn = 0; ecn < 3; ecn++)
			put_marked(&p, RQ(++n), ecn);
		probe_settle(&p);
		assert_int_equal(sent(&p, CNP), 0);
		p.looked = p.seen_n;
		probe_close(&p);
	}
}

/* Frames of the node can be marked: ECT(0). Without congestion control they can't, and marks say nothing. */
static void
can_be_marked(void **state)
{
	struct probe p;

	(void)state;
	for (int on = 0; on < 2; on++) {
		probe_open(&p, &(struct probe_config){.line = on ? LINE : 0});
		probe_recv(&p, 0, 64, 1);
		probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 8, 0, 11);
		assert_int_equal(expect_frame(&p, SEND_ONLY, SQ(0))->ecn, on ? 2 : 0);
		put_marked(&p, RQ(0), 3);
		probe_settle(&p);
		assert_int_equal(sent(&p, CNP), on);
		p.looked = p.seen_n;
		probe_close(&p);
	}
}

/* Post so many packets, and acknowledge what was sent each turn. returns: bytes sent in `us` */
static uint64_t
stream(struct probe *p, uint32_t *posted, uint32_t *acked, unsigned int us)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < us; i++) {
		while (*posted - *acked < 64)
			probe_post(p, URN_WR_SEND, 0, 0, LEN, 0, (*posted)++);
		probe_turn(p, US);
		for (; p->looked < p->seen_n; p->looked++) {
			const struct frame *f = &p->seen[p->looked % PROBE_SEEN];

			if (f->op != SEND_ONLY)
				continue;
			bytes += f->len + 12;
			probe_ack(p, f->psn, SYN_ACK, ++*acked);
		}
		p->scq_seen = p->scq.prod;
		atomic_store(&p->scq.hdr->cons, p->scq_seen);
	}
	return bytes;
}

/* A notification halves the rate; without further ones the rate rises, and the QP is free again. */
static void
slows_down(void **state)
{
	uint32_t posted = 0, acked = 0;
	uint64_t bytes, half;
	struct probe p;

	(void)state;
	open_line(&p, NULL);
	assert_true(stream(&p, &posted, &acked, 50) > LINE / 1000000 * 50); /* no pace: as fast as turns are */
	put_cnp(&p);
	bytes = stream(&p, &posted, &acked, 50);
	expect_count(&p, CNP_RX, 1);
	half = urn_congestion_rate(p.tp, p.qp) / 1000000 * 50;
	assert_in_range(bytes, half * 85 / 100, half * 125 / 100 + 4 * LEN);
	assert_true(urn_congestion_rate(p.tp, p.qp) <= LINE / 2);
	for (int i = 0; i < 8; i++) { /* a storm: slower each time */
		uint64_t before = urn_congestion_rate(p.tp, p.qp);

		put_cnp(&p);
		probe_turn(&p, 1);
		assert_true(urn_congestion_rate(p.tp, p.qp) < before);
	}
	bytes = stream(&p, &posted, &acked, 500);
	assert_true(bytes < LINE / 1000000 * 500 / 20);
	assert_true(bytes > 0);
	(void)stream(&p, &posted, &acked, 100000);
	assert_int_equal(urn_congestion_rate(p.tp, p.qp), 0);
	(void)stream(&p, &posted, &acked, 2000); /* the window, which was measured on the slow way, grows */
	assert_int_equal(p.qp->congestion, 0);
	assert_true(stream(&p, &posted, &acked, 50) > LINE / 1000000 * 50);
	p.looked = p.seen_n;
	probe_close(&p);
}

/* A paced QP acknowledges as fast as before: its peer's data has another direction. */
static void
acks_are_not_paced(void **state)
{
	struct probe p;

	(void)state;
	open_line(&p, NULL);
	for (int i = 0; i < 64; i++)
		put_cnp(&p), probe_turn(&p, 1);
	for (int i = 0; i < 8; i++)
		probe_recv(&p, 0, 64, i);
	for (int i = 0; i < 16; i++) /* more than its rate lets go for long */
		probe_post(&p, URN_WR_SEND, 0, 0, LEN, 0, 100 + i);
	probe_turn(&p, 1);
	assert_in_range(sent(&p, SEND_ONLY), 1, URN_PACED_FRAMES);
	p.looked = p.seen_n;
	put_marked(&p, RQ(0), 0);
	probe_turn(&p, 1);
	for (int i = 0; i < 8; i++)
		probe_turn(&p, 1);
	assert_int_equal(sent(&p, ACK), 1);
	assert_int_equal(sent(&p, SEND_ONLY), 0);
	p.looked = p.seen_n;
	probe_close(&p);
}

/*
 * A paced QP asks for an acknowledgement before it waits, with one of two packets at least: its own
 * wait is no silence of the peer, and no probe follows.
 */
static void
asks_before_it_waits(void **state)
{
	struct probe p;
	bool asked = true;

	(void)state;
	open_line(&p,
		  &(struct probe_config){.timeout = 14, .selective = true, .rto_floor = 4000000});
	for (int i = 0; i < 64; i++)
		put_cnp(&p), probe_turn(&p, 1);
	for (int i = 0; i < 16; i++)
		probe_post(&p, URN_WR_SEND, 0, 0, LEN, 0, 100 + i);
	for (int i = 0, n = 0; n < 16; i++) {
		assert_in_range(i, 0, 100000);
		probe_turn(&p, 10 * US);
		for (; p.looked < p.seen_n; p.looked++, n++) {
			const struct frame *f = &p.seen[p.looked % PROBE_SEEN];

			assert_int_equal(f->psn, SQ(n)); /* none is sent again */
			assert_true(f->ack || asked);
			asked = f->ack;
			if (f->ack)
				probe_ack(&p, f->psn, SYN_ACK, (uint32_t)n + 1);
		}
	}
	expect_count(&p, PROBES, 0);
	p.scq_seen = p.scq.prod;
	probe_close(&p);
}

/*
 * A paced QP, whose turns have one frame each, probes when nothing comes, and goes on: a probe of
 * up to two frames must not wait for a turn that has two.
 */
static void
paced_probe_goes(void **state)
{
	struct probe p;

	(void)state;
	open_line(&p,
		  &(struct probe_config){.timeout = 14, .selective = true, .rto_floor = 4000000});
	for (int i = 0; i < 64; i++)
		put_cnp(&p), probe_turn(&p, 1);
	for (int i = 0; i < 3; i++)
		probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, LEN, 0, 100 + i);
	for (int i = 0; i < 80; i++) /* 8 ms, all of them at the least rate */
		put_cnp(&p), probe_turn(&p, 100 * US);
	expect_count(&p, PROBES, 1);
	for (int i = 0; i < 3; i++)
		(void)expect_frame(&p, SEND_ONLY, SQ(i));
	assert_true(expect_frame(&p, SEND_ONLY, SQ(2))->ack);
	probe_ack(&p, SQ(2), SYN_ACK, 3);
	for (int i = 0; i < 3; i++)
		expect_sent(&p, 100 + i, SUCCESS);
	probe_close(&p);
}

/* READ responses are data: a notification slows them down, too. */
static void
responses_are_paced(void **state)
{
	unsigned int early;
	struct probe p;

	(void)state;
	open_line(&p, NULL);
	for (int i = 0; i < 64; i++)
		put_cnp(&p), probe_turn(&p, 1);
	probe_read(&p, RQ(0), 0, 64 * LEN);
	probe_turn(&p, 1);
	for (int i = 0; i < 100; i++)
		probe_turn(&p, US);
	early = p.seen_n - p.looked;
	assert_in_range(early, 1, 3 * URN_PACED_FRAMES);
	probe_pass(&p, 100000000, 10 * US);
	assert_int_equal(p.seen_n - p.looked, 64);
	p.looked = p.seen_n;
	probe_close(&p);
}

/* Only the peer can slow a QP down, and no other QP is slowed. */
static void
only_its_own(void **state)
{
	struct frame f = frame_of(CNP, 0);
	struct frame_addr peer;
	struct probe p;

	(void)state;
	open_line(&p, &(struct probe_config){.qps = 2});
	f.fb = 0x40;
	peer = p.peer;
	p.peer.gid[15] = 9;
	probe_put(&p, &f);
	expect_silence(&p);
	expect_count(&p, DROP_PEER, 1);
	expect_count(&p, CNP_RX, 0);
	assert_int_equal(p.qp->congestion, 0);
	p.peer = peer;
	put_cnp(&p);
	expect_silence(&p);
	assert_int_not_equal(p.q[0].qp->congestion, 0);
	assert_int_equal(p.q[1].qp->congestion, 0);
	probe_state(&p, URN_QPS_ERR);
	assert_int_equal(p.q[0].qp->congestion, 0);
	probe_close(&p);
}

/* When the pool of states is empty, one that is not needed any more goes; else the QP stays as it is. */
static void
pool_is_bounded(void **state)
{
	struct probe p;

	(void)state;
	open_line(&p, &(struct probe_config){.qps = 2});
	p.tp->congestions.end = 2; /* one state */
	put_cnp(&p);
	expect_silence(&p);
	probe_use(&p, 1);
	put_cnp(&p);
	expect_silence(&p);
	expect_count(&p, NO_CONGESTION, 1);
	assert_int_equal(p.q[1].qp->congestion, 0);
	for (int i = 0; i < 40; i++) /* the first QP is idle, and its rate rises unseen */
		probe_turn(&p, 100000000);
	for (int i = 0; i < URN_CONGESTIONS && !p.q[1].qp->congestion; i++) { /* a few states are looked at each time */
		put_cnp(&p);
		expect_silence(&p);
	}
	assert_int_not_equal(p.q[1].qp->congestion, 0);
	assert_int_equal(p.q[0].qp->congestion, 0);
	probe_close(&p);
}

/* ---- a source that is no QP */

struct talker {
	struct urn_source_ops_user user;
	uint16_t slot;	/* its state of congestion */
	uint64_t bytes; /* sent */
};

/* Send a frame, as long as the pace lets the source; it always has one more. */
static bool
talk(struct urn_tp *tp, struct urn_source *src)
{
	struct talker *t = (struct talker *)src;

	if (!urn_congestion_open_source(tp, &t->slot))
		return false;
	t->bytes += LEN;
	urn_congestion_sent_source(tp, &t->slot, LEN);
	return true;
}

/* Bytes that a source, woken by its pace only, sends in so many us. */
static uint64_t
talks(struct probe *p, struct talker *t, unsigned int us)
{
	uint64_t before = t->bytes;

	for (unsigned int i = 0; i < us; i++)
		probe_turn(p, US);
	return t->bytes - before;
}

/*
 * Acknowledgements that carry marks back slow a source of any kind down, once in the interval of
 * CNPs however many they are; the state goes when the rate is back.
 */
static void
other_source_is_paced(void **state)
{
	static const struct urn_source_ops ops = {.serve = talk};
	struct talker t = {.user.ops = &ops, .user.source.kind = URN_SOURCE_OPS};
	uint64_t rate, bytes;
	struct probe p;

	(void)state;
	open_line(&p, NULL);
	t.user.source.share = &p.tp->nobodys;
	assert_true(urn_congestion_open_source(p.tp, &t.slot));
	for (int i = 0; i < 9; i++)
		urn_congestion_reported(p.tp, &t.user.source, &t.slot, LINE);
	assert_int_equal(t.slot != 0, 1);
	rate = urn_congestion_rate_source(p.tp, &t.slot);
	assert_in_range(rate, LINE / 2 - 1, LINE / 2); /* one cut, of nine reports */
	urn_sched_add(&p.tp->sched, &t.user.source);
	bytes = talks(&p, &t, 40);
	assert_in_range(bytes, rate / 1000000 * 32, rate / 1000000 * 48 + 4 * LEN);
	(void)talks(&p, &t, CNP_US);
	rate = urn_congestion_rate_source(p.tp, &t.slot);
	urn_congestion_reported(p.tp, &t.user.source, &t.slot, LINE);
	assert_true(urn_congestion_rate_source(p.tp, &t.slot) < rate);
	urn_congestion_end_source(p.tp, &t.slot);
	assert_int_equal(t.slot, 0);
	urn_sched_remove(&p.tp->sched, &t.user.source);
	urn_congestion_reported(p.tp, &t.user.source, &t.slot, 0); /* the least rate, not less */
	assert_int_equal(urn_congestion_rate_source(p.tp, &t.slot), p.tp->dcqcn.least);
	for (int i = 0; i < 40; i++)
		probe_turn(&p, 100000000);
	for (int i = 0; i < 64 && t.slot; i++) { /* the rate rises as the source looks */
		(void)urn_congestion_open_source(p.tp, &t.slot);
		probe_turn(&p, 100000000);
	}
	assert_int_equal(t.slot, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slows_the_sender),	cmocka_unit_test(can_be_marked),
		cmocka_unit_test(slows_down),		cmocka_unit_test(acks_are_not_paced),
		cmocka_unit_test(asks_before_it_waits), cmocka_unit_test(paced_probe_goes),
		cmocka_unit_test(responses_are_paced),	cmocka_unit_test(only_its_own),
		cmocka_unit_test(pool_is_bounded),	cmocka_unit_test(other_source_is_paced),
	};

	return cmocka_run_group_tests_name("congestion", tests, NULL, NULL);
}
