/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder between two sides that know selective acknowledgements, and the
 * parts of READs that it answers again (doc/inside/recovery.md).
 */
#include "sack.h"

static const struct probe_config usual = {.selective = true, .mtu = 256};

static const struct frame *
expect_sack(struct probe *p, uint32_t done, uint32_t expected)
{
	const struct frame *f = expect_frame(p, SACK, done);

	assert_int_equal(f->syn, SYN_ACK);
	assert_int_equal(f->len, SACK_BYTES);
	assert_int_equal(f->data[0], 1);
	assert_int_equal(f->data[2] | f->data[3], 0);
	assert_int_equal(sack_get(f->data + 4), expected);
	return f;
}

static void
expect_range(const struct frame *f, unsigned int i, uint32_t first, uint32_t end)
{
	assert_true(i < f->data[1]);
	assert_int_equal(sack_get(f->data + 8 + 8 * i), first);
	assert_int_equal(sack_get(f->data + 12 + 8 * i), end);
}

/* A gap brings no NAK: packets that came are kept, and told of with each packet that comes. */
static void
told(void **state)
{
	const struct frame *f;
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	for (uint32_t i = 0; i < 6; i++)
		probe_recv(&p, i * 64, 64, i);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_send(&p, SEND_ONLY, RQ(2), 40, 2);
	f = expect_sack(&p, RQ(0), RQ(1));
	assert_true(sack_has(f, 1) && !sack_has(f, 2));
	assert_int_equal(f->data[1], 0);
	assert_int_equal(f->msn, 1);
	probe_send(&p, SEND_ONLY, RQ(4), 40, 4);
	probe_send(&p, SEND_ONLY, RQ(5), 40, 5);
	f = expect_sack(&p, RQ(0), RQ(1));
	assert_true(sack_has(f, 1) && !sack_has(f, 2) && sack_has(f, 3) && sack_has(f, 4));
	/* A packet that is kept already, and one that is done: the sender does not know. */
	probe_send(&p, SEND_ONLY, RQ(4), 40, 4);
	expect_sack(&p, RQ(0), RQ(1));
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	expect_sack(&p, RQ(0), RQ(1));
	/* Half of the missing packets come. */
	probe_send(&p, SEND_ONLY, RQ(1), 40, 1);
	f = expect_sack(&p, RQ(2), RQ(3));
	assert_true(sack_has(f, 1) && sack_has(f, 2) && !sack_has(f, 3));
	probe_send(&p, SEND_ONLY, RQ(3), 40, 3);
	expect_aeth(&p, RQ(5), SYN_ACK, 6);
	expect_silence(&p);
	for (uint32_t i = 0; i < 6; i++) {
		expect_recv(&p, i, SUCCESS);
		check_fill(probe_at(&p, i * 64), 40, i, 0);
	}
	expect_no_cqe(&p);
	expect_count(&p, TX_NAKS, 0);
	expect_count(&p, TX_SACKS, 5);
	probe_close(&p);
}

/*
 * Behind the bitmap comes a range; a READ request stands for all its PSNs. A requester begins
 * requests only within its window, so that nothing else is kept behind the bitmap.
 */
static void
ranges(void **state)
{
	const struct frame *f;
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_read(&p, RQ(2), 0, 300 * 256); /* 2..301 */
	probe_write(&p, WRITE_ONLY, RQ(303), 0, 8, 8, 1);
	probe_write(&p, WRITE_ONLY, RQ(304), 0, 8, 8, 1);
	f = expect_sack(&p, RQ(-1), RQ(0));
	assert_true(!sack_has(f, 1));
	for (uint32_t i = 2; i <= 256; i++)
		assert_true(sack_has(f, i));
	assert_int_equal(f->data[1], 1);
	expect_range(f, 0, RQ(257), RQ(302));
	expect_silence(&p);
	expect_count(&p, DROP_FAR, 2);
	probe_close(&p);
}

/* Packets behind one that was refused without a receive are neither kept nor told. */
static void
not_ready(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	probe_send(&p, SEND_ONLY, RQ(1), 40, 1);
	probe_send(&p, SEND_ONLY, RQ(2), 40, 2);
	expect_aeth(&p, RQ(0), SYN_RNR, 0);
	probe_send(&p, SEND_ONLY, RQ(3), 40, 3);
	expect_silence(&p);
	for (uint32_t i = 0; i < 4; i++)
		probe_recv(&p, i * 64, 64, i);
	for (uint32_t i = 0; i < 4; i++)
		probe_send(&p, SEND_ONLY, RQ(i), 40, i);
	expect_aeth(&p, RQ(3), SYN_ACK, 4);
	for (uint32_t i = 0; i < 4; i++)
		expect_recv(&p, i, SUCCESS);
	expect_silence(&p);
	probe_close(&p);
}

/* A packet without room is not kept, and not claimed to be. */
static void
bounded(void **state)
{
	const struct frame *f;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .kept = 3});
	for (uint32_t i = 0; i < 6; i++)
		probe_recv(&p, i * 64, 64, i);
	for (uint32_t i = 1; i < 6; i++)
		probe_send(&p, SEND_ONLY, RQ(i), 40, i);
	f = expect_sack(&p, RQ(-1), RQ(0));
	assert_true(sack_has(f, 1) && sack_has(f, 2) && sack_has(f, 3) && !sack_has(f, 4));
	expect_count(&p, DROP_OOO, 2);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	probe_send(&p, SEND_ONLY, RQ(4), 40, 4);
	probe_send(&p, SEND_ONLY, RQ(5), 40, 5);
	expect_aeth(&p, RQ(5), SYN_ACK, 6);
	for (uint32_t i = 0; i < 6; i++)
		expect_recv(&p, i, SUCCESS);
	probe_close(&p);
}

/* Where nothing can be kept, a NAK tells of the gap. */
static void
no_room_at_all(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .kept = 1, .qps = 2});
	probe_send(&p, SEND_ONLY, RQ(1), 40, 1); /* the only place */
	expect_sack(&p, RQ(-1), RQ(0));
	probe_use(&p, 1);
	for (uint32_t i = 0; i < 3; i++)
		probe_recv(&p, i * 64, 64, i);
	probe_send(&p, SEND_ONLY, RQ(2), 40, 2);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	probe_send(&p, SEND_ONLY, RQ(1), 40, 1);
	expect_silence(&p); /* once a gap */
	for (uint32_t i = 0; i < 3; i++)
		probe_send(&p, SEND_ONLY, RQ(i), 40, i);
	expect_aeth(&p, RQ(2), SYN_ACK, 3);
	for (uint32_t i = 0; i < 3; i++)
		expect_recv(&p, i, SUCCESS);
	probe_close(&p);
}

/* The feature may come and go with what the link says, while packets are kept. */
static void
changes_over(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){0});
	p.tp->cfg.features = URN_LINK_F_SACK;
	for (uint32_t i = 0; i < 4; i++)
		probe_recv(&p, i * 64, 64, i);
	probe_send(&p, SEND_ONLY, RQ(1), 40, 1);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	urn_tp_peer_learned(p.tp, p.peer.gid, URN_LINK_F_SACK);
	probe_send(&p, SEND_ONLY, RQ(3), 40, 3);
	assert_true(sack_has(expect_sack(&p, RQ(-1), RQ(0)), 3));
	urn_tp_peer_learned(p.tp, p.peer.gid, 0);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	expect_aeth(&p, RQ(2), NAK_SEQ, 2);
	probe_send(&p, SEND_ONLY, RQ(2), 40, 2);
	expect_aeth(&p, RQ(3), SYN_ACK, 4);
	for (uint32_t i = 0; i < 4; i++)
		expect_recv(&p, i, SUCCESS);
	probe_close(&p);
}

/*
 * Parts of a READ that is being answered: each is answered for itself, and the
 * answer under way goes on where it was.
 */
static void
parts(void **state)
{
	enum { PACKETS = 100 };
	uint32_t next = 0, second = 0, third = 0, from;
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_fill(probe_at(&p, 0), PACKETS * 256, 5, 0);
	probe_read(&p, RQ(0), 0, PACKETS * 256);
	while (p.seen_n < 20)
		probe_turn(&p, 0);
	from = p.seen_n;
	assert_true(from < PACKETS);
	probe_read(&p, RQ(3), 3 * 256, 2 * 256);
	probe_read(&p, RQ(10), 10 * 256, 256);
	probe_settle(&p);
	for (; p.looked < p.seen_n; p.looked++) {
		const struct frame *f = &p.seen[p.looked % PROBE_SEEN];
		uint32_t n = PSN(f->psn, -RQ(0));

		check_fill(f->data, 256, 5, n * 256);
		if (n == next) {
			assert_int_equal(f->op, n == 0		 ? READ_FIRST
						: n == PACKETS - 1 ? READ_LAST
								   : READ_MIDDLE);
			next++;
		} else if (n == 10) {
			assert_int_equal(f->op, READ_ONLY);
			third++;
		} else {
			assert_int_equal(n, 3 + second);
			assert_int_equal(f->op, second ? READ_LAST : READ_FIRST);
			second++;
		}
	}
	assert_int_equal(next, PACKETS);
	assert_int_equal(second, 2);
	assert_int_equal(third, 1);
	expect_count(&p, DROP_DUPLICATE, 0);
	probe_close(&p);
}

/* A part, and then the rest of the READ: neither takes the other's place. */
static void
part_and_tail(void **state)
{
	uint32_t seen[100] = {0};
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_read(&p, RQ(0), 0, 100 * 256);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_read(&p, RQ(30), 30 * 256, 20 * 256);
	probe_read(&p, RQ(90), 90 * 256, 10 * 256);
	probe_settle(&p);
	for (; p.looked < p.seen_n; p.looked++)
		seen[PSN(p.seen[p.looked % PROBE_SEEN].psn, -RQ(0)) % 100]++;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen[i], (i >= 30 && i < 50) || i >= 90);
	probe_close(&p);
}

/* Count the sendings of each of the `n` packets of the READ at RQ(0). */
static void
count_sent(struct probe *p, uint32_t *seen, uint32_t n)
{
	memset(seen, 0, n * sizeof(*seen));
	probe_settle(p);
	for (; p->looked < p->seen_n; p->looked++)
		seen[PSN(p->seen[p->looked % PROBE_SEEN].psn, -RQ(0)) % n]++;
}

/*
 * The rest of a READ is asked for while a part is being answered, and there is no room
 * to put it aside: a peer that goes back does so once, so all of it is sent.
 */
static void
tail_without_room(void **state)
{
	uint32_t seen[100];
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.mtu = 256, .selective = true, .kept = 2});
	probe_read(&p, RQ(0), 0, 100 * 256);
	count_sent(&p, seen, 100);
	probe_read(&p, RQ(30), 30 * 256, 256); /* being answered, then two that are put aside */
	probe_read(&p, RQ(40), 40 * 256, 256);
	probe_read(&p, RQ(50), 50 * 256, 256);
	probe_read(&p, RQ(60), 60 * 256, 256); /* may come again */
	probe_read(&p, RQ(90), 90 * 256, 10 * 256);
	count_sent(&p, seen, 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen[i] != 0, i >= 30);
	expect_count(&p, DROP_DUPLICATE, 1);
	probe_close(&p);
}

/* A request that was long on its way does not shorten the answer that is being sent. */
static void
tail_and_older_tail(void **state)
{
	uint32_t seen[100];
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_read(&p, RQ(0), 0, 100 * 256);
	count_sent(&p, seen, 100);
	probe_read(&p, RQ(50), 50 * 256, 50 * 256);
	probe_read(&p, RQ(70), 70 * 256, 30 * 256);
	count_sent(&p, seen, 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen[i], i >= 50);
	/* A request that asks for more restarts the answer. */
	probe_read(&p, RQ(70), 70 * 256, 30 * 256);
	probe_read(&p, RQ(50), 50 * 256, 50 * 256);
	count_sent(&p, seen, 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen[i], i >= 50);
	probe_close(&p);
}

/* More parts than are put aside are dropped, and all end with the QP. */
static void
parts_bounded(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_read(&p, RQ(0), 0, 1000 * 256);
	probe_turn(&p, 0);
	for (uint32_t i = 0; i < URN_REPAIR_PARTS + 10; i++) {
		struct frame f = frame_of(READ_REQ, RQ(0));
		struct rte_mbuf *m;

		f.va = PROBE_VA;
		f.rkey = p.key;
		f.length = 256;
		f.ack = true;
		probe_put(&p, &f);
		m = p.in[0];
		p.in_n = 0;
		urn_tp_rx(p.tp, &m, 1, false);
	}
	expect_count(&p, DROP_DUPLICATE, 10);
	assert_int_equal(p.tp->kept, URN_REPAIR_PARTS);
	probe_state(&p, URN_QPS_ERR);
	assert_int_equal(p.tp->kept, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told),	    cmocka_unit_test(ranges),
		cmocka_unit_test(not_ready), cmocka_unit_test(bounded),
		cmocka_unit_test(no_room_at_all),
		cmocka_unit_test(changes_over), cmocka_unit_test(parts),
		cmocka_unit_test(parts_bounded), cmocka_unit_test(part_and_tail),
		cmocka_unit_test(tail_without_room), cmocka_unit_test(tail_and_older_tail),
	};

	return cmocka_run_group_tests_name("selective", tests, NULL, NULL);
}
