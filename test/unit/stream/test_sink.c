/* SPDX-License-Identifier: BSD-3-Clause */
/* The sink of a stream: how bytes come into receives (SF-4 to SF-9). */
#include "rig.h"

static void
copies(struct rig *r, uint32_t slot, uint32_t from, uint64_t addr, uint64_t bytes)
{
	const struct urn_st_action *a = rig_next(r, URN_ST_A_COPY);

	assert_int_equal(a->slot, slot);
	assert_int_equal(a->from, from);
	assert_int_equal(a->addr, addr);
	assert_int_equal(a->bytes, bytes);
}

static void
reads(struct rig *r, uint64_t addr, uint64_t raddr, uint64_t bytes)
{
	const struct urn_st_action *a = rig_next(r, URN_ST_A_READ);

	assert_int_equal(a->addr, addr);
	assert_int_equal(a->raddr, raddr);
	assert_int_equal(a->rkey, KEY);
	assert_int_equal(a->bytes, bytes);
}

/* SF-1, SF-10: data waits in its buffer until a receive has all of it; then its buffer is free, and
 * the peer is told. */
static void
test_data(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_data(&r, 0, 100);
	rig_data(&r, 100, 50);
	rig_nothing(&r);
	assert_int_equal(r.freed, 0);
	assert_true(urn_st_readable(&r.st));
	rig_receive(&r, 1, 70, false);
	copies(&r, 0, URN_ST_WIRE_HEAD, 1 << 20, 70);
	rig_received(&r, 1, 70, URN_ST_OK);
	rig_receive(&r, 2, 40, false);
	copies(&r, 0, URN_ST_WIRE_HEAD + 70, 2 << 20, 30);
	copies(&r, 1, URN_ST_WIRE_HEAD, (2 << 20) + 30, 10);
	rig_received(&r, 2, 40, URN_ST_OK);
	assert_int_equal(r.freed, 1);
	rig_nothing(&r);
	rig_receive(&r, 3, 100, false);
	copies(&r, 1, URN_ST_WIRE_HEAD + 10, 3 << 20, 40);
	rig_received(&r, 3, 40, URN_ST_OK);
	/* Two of four buffers are free: the receives are posted, and Credit tells. */
	assert_int_equal(r.freed, 2);
	assert_int_equal(rig_sends(&r, URN_ST_CREDIT, 150, 0)->credit, BUFFERS + 2);
	assert_int_equal(r.posted, URN_ST_CONTROL + BUFFERS + 2);
	assert_false(urn_st_readable(&r.st));
}

/* A receive that wants all is complete when it is full, however the bytes come. */
static void
test_all(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 150, true);
	rig_data(&r, 0, 100);
	rig_next(&r, URN_ST_A_COPY);
	rig_nothing(&r);
	rig_offer(&r, URN_ST_F_READ, 100, 50, 20);
	copies(&r, 1, URN_ST_WIRE_HEAD, (1 << 20) + 100, 20);
	reads(&r, (1 << 20) + 120, 0x9000 + 20, 30);
	rig_sends(&r, URN_ST_CREDIT, 120, 0);
	urn_st_read(&r.st);
	rig_received(&r, 1, 150, URN_ST_OK);
	rig_sends(&r, URN_ST_RD_COMPL, 150, 50);
}

/* SF-4: the program is told that data waits; several receives together are large enough. */
static void
test_read(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 500, 0);
	assert_int_equal(r.act[r.acts - 1].act, URN_ST_A_OFFERED);
	assert_true(urn_st_offered(&r.st));
	/* A receive that may not wait gets nothing yet. */
	assert_false(urn_st_readable(&r.st));
	rig_nothing(&r);
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 300, false);
	rig_receive(&r, 2, 300, false);
	rig_offer(&r, URN_ST_F_READ, 0, 500, 0);
	reads(&r, 1 << 20, 0x9000, 300);
	reads(&r, 2 << 20, 0x9000 + 300, 200);
	rig_nothing(&r);
	urn_st_read(&r.st);
	rig_received(&r, 1, 300, URN_ST_OK);
	rig_nothing(&r);
	urn_st_read(&r.st);
	rig_received(&r, 2, 200, URN_ST_OK);
	rig_sends(&r, URN_ST_RD_COMPL, 500, 500);
	assert_int_equal(r.st.rx.threshold.value, THRESHOLD / 2);
}

/* SF-4: receives that are too small, or none in time, are answered by SendSm. */
static void
test_small(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 5000, 0);
	rig_receive(&r, 1, 100, false);
	rig_sends(&r, URN_ST_SEND_SM, 0, 0);
	rig_nothing(&r);

	rig_init(&r);
	rig_open(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 5000, 10);
	urn_st_tick(&r.st);
	urn_st_tick(&r.st);
	rig_nothing(&r);
	urn_st_tick(&r.st);
	rig_sends(&r, URN_ST_SEND_SM, 10, 10);
	assert_int_equal(r.st.count[URN_ST_D_TOO_LATE], 1);
}

/* SF-5: a read stops halfway. The part that was read is the program's; SendSm says how much that
 * is. */
static void
test_halfway(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_offer(&r, URN_ST_F_READ, 0, 5000, 0);
	reads(&r, 1 << 20, 0x9000, 2000);
	rig_receive(&r, 2, 10, false);
	rig_nothing(&r);
	urn_st_read(&r.st);
	rig_received(&r, 1, 2000, URN_ST_OK);
	rig_sends(&r, URN_ST_SEND_SM, 2000, 2000);
	rig_data(&r, 2000, 10);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 2, 10, URN_ST_OK);
	/* No SinkAvail while the source finishes by BCopy. */
	rig_receive(&r, 3, 4000, false);
	rig_nothing(&r);
	rig_data(&r, 2010, 100);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 3, 100, URN_ST_OK);
}

/* SF-6, SF-9: SinkAvail for receives at or above the threshold, and WrCompl completes them. */
static void
test_advertise(void **state)
{
	const struct urn_st_msg *m;
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, THRESHOLD - 1, true);
	rig_nothing(&r);
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, THRESHOLD, false);
	m = rig_sends(&r, URN_ST_SINK_AVAIL, 0, THRESHOLD);
	assert_int_equal(m->addr, 1 << 20);
	assert_int_equal(m->key, 101);
	r.adverts = 1;
	rig_kind(&r, URN_ST_WR_COMPL, 0, 300);
	rig_received(&r, 1, 300, URN_ST_OK);
	assert_int_equal(r.st.rx.threshold.value, THRESHOLD / 2);
	rig_receive(&r, 2, 500, true);
	rig_sends(&r, URN_ST_SINK_AVAIL, 300, 500);
	r.adverts = 2;
	rig_kind(&r, URN_ST_WR_COMPL, 300, 200);
	/* The rest of a receive that wants all is announced when it is large enough. */
	rig_sends(&r, URN_ST_SINK_AVAIL, 500, 300);
	rig_nothing(&r);
}

/* SF-6: BCopy data makes the SinkAvail void, before its memory returns to the program. SF-9: the
 * threshold rises. */
static void
test_void_by_data(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_data(&r, 0, 10);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 1, 10, URN_ST_OK);
	assert_int_equal(r.st.count[URN_ST_D_VOID_DATA], 1);
	assert_int_equal(r.st.rx.threshold.value, 2 * THRESHOLD);
	/* A write to it now is a peer's error. */
	rig_kind(&r, URN_ST_WR_COMPL, 0, 10);
	rig_dies(&r, URN_ST_R_STALE_WR_COMPL, true);
}

/* SinkAvails that the peer has not told to have seen: two at most, or control buffers would run
 * out. */
static void
test_unseen(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.rx.frozen = true;
	rig_open(&r);
	for (uint32_t i = 0; i < 3; i++) {
		rig_receive(&r, i, 2000, false);
		if (i < URN_ST_UNSEEN)
			rig_sends(&r, URN_ST_SINK_AVAIL, i * 10, 2000);
		rig_nothing(&r);
		rig_data(&r, i * 10, 10);
		rig_next(&r, URN_ST_A_COPY);
		rig_received(&r, i, 10, URN_ST_OK);
		if (i == 2)
			rig_sends(&r, URN_ST_CREDIT, 30, 0);
	}
	r.adverts = 1;
	r.credit = BUFFERS;
	rig_receive(&r, 9, 2000, false);
	rig_kind(&r, URN_ST_CREDIT, 0, 0);
	rig_sends(&r, URN_ST_SINK_AVAIL, 30, 2000);
}

/* SF-6: SrcAvail crosses SinkAvail. Where reading is allowed SrcAvail wins, and the same memory is
 * read into. */
static void
test_cross(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_offer(&r, URN_ST_F_READ, 0, 1500, 0);
	assert_int_equal(r.st.count[URN_ST_D_VOID_OFFER], 1);
	reads(&r, 1 << 20, 0x9000, 1500);

	/* Where it is not, SinkAvail is the answer. */
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_offer(&r, URN_ST_F_WRITE, 0, 1500, 0);
	assert_int_equal(r.st.count[URN_ST_D_KEPT], 1);
	rig_nothing(&r);
	rig_kind(&r, URN_ST_WR_COMPL, 0, 1500);
	rig_received(&r, 1, 1500, URN_ST_OK);

	/* With bytes inline its place is taken: it is void, and a new one answers. */
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_offer(&r, URN_ST_F_WRITE, 0, 1500, 10);
	rig_next(&r, URN_ST_A_COPY);
	rig_sends(&r, URN_ST_SINK_AVAIL, 10, 1990);
}

/* SF-8: a sink that can't read answers by SinkAvail once a receive is posted, or by SendSm. */
static void
test_blind(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.self.abilities = 0;
	rig_open(&r);
	rig_offer(&r, URN_ST_F_WRITE, 0, 5000, 0);
	rig_nothing(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_kind(&r, URN_ST_WR_COMPL, 0, 2000);
	rig_received(&r, 1, 2000, URN_ST_OK);
	rig_offer(&r, URN_ST_F_WRITE, 2000, 3000, 0);
	rig_receive(&r, 2, 10, false);
	rig_sends(&r, URN_ST_SEND_SM, 2000, 0);

	rig_init(&r);
	r.cfg.self.abilities = 0;
	rig_open(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 5000, 0);
	rig_dies(&r, URN_ST_R_PLACE, true);
}

/* SF-9: an infinite threshold is BCopy only. */
static void
test_infinite(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.rx.value = URN_ST_INFINITE;
	rig_open(&r);
	rig_receive(&r, 1, 1 << 20, false);
	rig_nothing(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 5000, 0);
	rig_sends(&r, URN_ST_SEND_SM, 0, 0);
}

/* SF-1: buffers on demand are posted before SendSm, and as they get free, until all that was
 * announced has come. */
static void
test_demand(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.self.abilities |= URN_ST_ON_DEMAND;
	rig_open(&r);
	assert_int_equal(r.posted, URN_ST_CONTROL);
	rig_offer(&r, 0, 0, 350, 0);
	assert_int_equal(rig_sends(&r, URN_ST_SEND_SM, 0, 0)->credit, BUFFERS);
	assert_int_equal(r.posted, URN_ST_CONTROL + 1 + BUFFERS);
	rig_receive(&r, 1, 350, true);
	for (uint32_t i = 0; i < 4; i++) {
		rig_data(&r, i * 100, i == 3 ? 50 : 100);
		rig_next(&r, URN_ST_A_COPY);
		if (i == 1)
			assert_int_equal(rig_sends(&r, URN_ST_CREDIT, 200, 0)->credit, BUFFERS + 2);
	}
	rig_received(&r, 1, 350, URN_ST_OK);
	/* Two more got free, and nothing was announced. */
	rig_nothing(&r);
	assert_int_equal(r.posted, URN_ST_CONTROL + 1 + BUFFERS + 2);
}

/* SF-7: the SinkAvail for the answer rides on the command, whatever the threshold says. */
static void
test_transact(void **state)
{
	const struct urn_st_area command = rig_area(1, 30), answer = rig_area(2, 200);
	const struct urn_st_msg *m;
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	assert_int_equal(urn_st_transact(&r.st, &command, &answer), 0);
	m = rig_sends(&r, URN_ST_DATA, 0, 0);
	assert_int_equal(m->flags, URN_ST_F_ADVERT);
	assert_int_equal(m->advert.bytes, 200);
	assert_int_equal(m->advert.addr, 2 << 20);
	assert_int_equal(m->advert.key, 102);
	rig_sent(&r, 1, 30, URN_ST_OK);
	rig_nothing(&r);
	r.adverts = 1;
	rig_kind(&r, URN_ST_WR_COMPL, 0, 180);
	rig_received(&r, 2, 180, URN_ST_OK);

	/* A command that waits for credit holds a large answer's SinkAvail back, to carry it. */
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 3, 400);
	for (int i = 0; i < BUFFERS; i++)
		rig_sends(&r, URN_ST_DATA, (uint64_t)i * SIZE, 0);
	rig_sent(&r, 3, 400, URN_ST_OK);
	assert_int_equal(
		urn_st_transact(&r.st, &command, &(struct urn_st_area){2, 0x5000, 2000, 1, 2}), 0);
	rig_nothing(&r);
	r.credit++;
	rig_kind(&r, URN_ST_CREDIT, 0, 0);
	assert_int_equal(rig_sends(&r, URN_ST_DATA, 400, 0)->advert.bytes, 2000);

	/* Data that waits, or a command of two messages: nothing rides, and the receive is as any
	 * other. */
	rig_init(&r);
	rig_open(&r);
	rig_data(&r, 0, 5);
	assert_int_equal(urn_st_transact(&r.st, &command, &answer), 0);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 2, 5, URN_ST_OK);
	assert_int_equal(rig_sends(&r, URN_ST_DATA, 0, 0)->flags, 0);
}

/* The peer announces and does not keep to it; each error names the place. */
static void
test_bad_offers(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 8; i++) {
		static const enum urn_st_reason reason[] = {
			URN_ST_R_SHORT,	 URN_ST_R_PLACE,      URN_ST_R_TWO_OFFERS, URN_ST_R_PLACE,
			URN_ST_R_OFFSET, URN_ST_R_BEHIND_END, URN_ST_R_SHORT,	   URN_ST_R_PLACE,
		};

		rig_init(&r);
		rig_open(&r);
		if (i < 4)
			rig_offer(&r, i ? URN_ST_F_READ : 0, 0, 5000, 0);
		while (rig_peek(&r))
			r.seen++;
		if (i == 0) { /* SendSm went out; the stream ends before all came */
			rig_data(&r, 0, 10);
			rig_kind(&r, URN_ST_FIN, 10, 0);
		} else if (i == 1) {
			rig_data(&r, 0, 10);
		} else if (i == 2) {
			rig_offer(&r, URN_ST_F_READ, 0, 5000, 0);
		} else if (i == 3) {
			rig_kind(&r, URN_ST_FIN, 0, 0);
		} else if (i == 4) {
			rig_offer(&r, URN_ST_F_READ, 1, 5000, 0);
		} else if (i == 5) {
			rig_kind(&r, URN_ST_FIN, 0, 0);
			rig_offer(&r, URN_ST_F_READ, 0, 5000, 0);
		} else if (i == 6) {
			rig_offer(&r, 0, 0, 5000, 0);
			r.seen = r.acts;
			rig_offer(&r, 0, 0, 4000, 0);
		} else {
			rig_offer(&r, URN_ST_F_READ | URN_ST_F_WRITE, 0, 5000, 0);
		}
		rig_dies(&r, reason[i], true);
	}
}

static void
test_bad_data(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 5; i++) {
		static const enum urn_st_reason reason[] = {
			URN_ST_R_OFFSET, URN_ST_R_EXCESS, URN_ST_R_OVERRUN,
			URN_ST_R_EXCESS, URN_ST_R_OFFSET,
		};

		rig_init(&r);
		rig_open(&r);
		for (uint32_t k = 0; i == 2 && k < BUFFERS; k++)
			rig_data(&r, (uint64_t)k * SIZE, SIZE);
		if (i >= 3) {
			rig_receive(&r, 1, 2000, false);
			rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
		}
		if (i == 3)
			rig_kind(&r, URN_ST_WR_COMPL, 0, 2001);
		else if (i == 4)
			rig_kind(&r, URN_ST_WR_COMPL, 1, 20);
		else
			rig_data(&r,
				 i == 0	  ? 1
				 : i == 1 ? 0
					  : BUFFERS * SIZE,
				 i == 1 ? SIZE + 1 : 1);
		rig_dies(&r, reason[i], true);
		if (i >= 3)
			rig_received(&r, 1, 0, URN_ST_FAILED);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),	     cmocka_unit_test(test_all),
		cmocka_unit_test(test_read),	     cmocka_unit_test(test_small),
		cmocka_unit_test(test_halfway),	     cmocka_unit_test(test_advertise),
		cmocka_unit_test(test_void_by_data), cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_cross),	     cmocka_unit_test(test_blind),
		cmocka_unit_test(test_infinite),     cmocka_unit_test(test_demand),
		cmocka_unit_test(test_transact),     cmocka_unit_test(test_bad_offers),
		cmocka_unit_test(test_bad_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
