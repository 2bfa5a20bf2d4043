/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of a stream: how sends go (SF-3 to SF-9). */
#include "rig.h"

/* SF-3: below the threshold by BCopy, in messages that the peer's buffers take. SF-1: never more
 * than its buffers. */
static void
test_copy(void **state)
{
	struct rig r;
	const struct urn_st_action *a;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	assert_int_equal(r.posted, URN_ST_CONTROL + BUFFERS);
	rig_send(&r, 1, 250);
	a = rig_peek(&r);
	assert_int_equal(a->addr, 1 << 20);
	assert_int_equal(rig_sends(&r, URN_ST_DATA, 0, 0)->length, SIZE);
	assert_int_equal(rig_sends(&r, URN_ST_DATA, 100, 0)->length, SIZE);
	a = rig_peek(&r);
	assert_int_equal(a->addr, (1 << 20) + 200);
	assert_int_equal(rig_sends(&r, URN_ST_DATA, 200, 0)->length, 50);
	rig_sent(&r, 1, 250, URN_ST_OK);
	rig_send(&r, 2, 120);
	rig_sends(&r, URN_ST_DATA, 250, 0);
	rig_nothing(&r);
	r.credit++;
	rig_kind(&r, URN_ST_CREDIT, 0, 0);
	rig_sends(&r, URN_ST_DATA, 350, 0);
	rig_sent(&r, 2, 120, URN_ST_OK);
	assert_int_equal(r.st.count[URN_ST_D_COPY], 2);
}

/* Messages wait for sent() when as many as `slots` are on their way. */
static void
test_slots(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.slots = 1;
	rig_open(&r);
	rig_send(&r, 1, 150);
	rig_sends(&r, URN_ST_DATA, 0, 0);
	rig_nothing(&r);
	urn_st_sent(&r.st);
	rig_sends(&r, URN_ST_DATA, 100, 0);
	rig_sent(&r, 1, 150, URN_ST_OK);
}

/* SF-3, SF-4: from the threshold on SrcAvail, with the first bytes inline; the send returns after
 * RdCompl. */
static void
test_read(void **state)
{
	const struct urn_st_msg *m;
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, THRESHOLD);
	m = rig_sends(&r, URN_ST_SRC_AVAIL, 0, THRESHOLD);
	assert_int_equal(m->length, INLINED);
	assert_int_equal(m->addr, 1 << 20);
	assert_int_equal(m->key, 101);
	assert_int_equal(m->flags, URN_ST_F_READ);
	rig_send(&r, 2, 50);
	rig_nothing(&r);
	rig_kind(&r, URN_ST_RD_COMPL, THRESHOLD, THRESHOLD);
	rig_sent(&r, 1, THRESHOLD, URN_ST_OK);
	rig_sends(&r, URN_ST_DATA, THRESHOLD, 0);
	rig_sent(&r, 2, 50, URN_ST_OK);
}

/* SF-5: SendSm in mid-transfer: the rest comes by BCopy, once. SF-9: the threshold rises. */
static void
test_small(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, THRESHOLD);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, THRESHOLD);
	rig_kind(&r, URN_ST_SEND_SM, 850, 850);
	assert_int_equal(r.st.tx.threshold.value, 2 * THRESHOLD);
	assert_int_equal(rig_next(&r, URN_ST_A_SEND)->addr, (1 << 20) + 850);
	assert_int_equal(rig_sends(&r, URN_ST_DATA, 950, 0)->length, 50);
	rig_sent(&r, 1, THRESHOLD, URN_ST_OK);
	rig_nothing(&r);
}

/* SF-5: by default BCopy behind SendSm is not left again; with the option the rest goes by Write
 * ZCopy. */
static void
test_resume(void **state)
{
	struct rig r;

	(void)state;
	for (int resumes = 0; resumes < 2; resumes++) {
		rig_init(&r);
		r.credit = 0;
		r.cfg.peer.abilities |= URN_ST_ON_DEMAND;
		r.cfg.self.abilities |= resumes ? URN_ST_RESUMES : 0;
		rig_open(&r);
		rig_send(&r, 1, 3000);
		rig_sends(&r, URN_ST_SRC_AVAIL, 0, 3000);
		rig_kind(&r, URN_ST_SEND_SM, 0, 0);
		rig_nothing(&r);
		rig_advert(&r, 0, 5000);
		if (resumes) {
			rig_next(&r, URN_ST_A_WRITE);
			rig_sends(&r, URN_ST_WR_COMPL, 0, 3000);
		}
		rig_nothing(&r);
	}
}

/* SF-6: Write ZCopy without SrcAvail into advertised memory, then WrCompl; the rest as its size
 * says. */
static void
test_write(void **state)
{
	const struct urn_st_action *a;
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_advert(&r, 0, 2000);
	assert_int_equal(r.st.tx.threshold.value, THRESHOLD / 2);
	rig_nothing(&r);
	rig_send(&r, 1, 2050);
	a = rig_next(&r, URN_ST_A_WRITE);
	assert_int_equal(a->addr, 1 << 20);
	assert_int_equal(a->raddr, 0x7000);
	assert_int_equal(a->rkey, KEY);
	assert_int_equal(a->bytes, 2000);
	rig_sends(&r, URN_ST_WR_COMPL, 0, 2000);
	rig_nothing(&r);
	urn_st_written(&r.st);
	rig_sends(&r, URN_ST_DATA, 2000, 0);
	rig_sent(&r, 1, 2050, URN_ST_OK);
}

/* SF-6: a SinkAvail during a BCopy lowers the threshold, and the rest goes by Write ZCopy, if it is
 * for that place. */
static void
test_write_during_copy(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, 999);
	for (int i = 0; i < BUFFERS; i++)
		rig_sends(&r, URN_ST_DATA, (uint64_t)i * SIZE, 0);
	rig_advert(&r, 300, 2000);
	rig_nothing(&r);
	assert_int_equal(r.st.count[URN_ST_D_STALE], 1);
	rig_advert(&r, 400, 2000);
	assert_int_equal(r.st.tx.threshold.value, FLOOR);
	rig_next(&r, URN_ST_A_WRITE);
	rig_sends(&r, URN_ST_WR_COMPL, 400, 599);
	urn_st_written(&r.st);
	rig_sent(&r, 1, 999, URN_ST_OK);
}

/* SF-6: a send below the threshold goes by BCopy in spite of a SinkAvail, which is void then:
 * nothing writes to it. */
static void
test_void(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_advert(&r, 0, 5000);
	rig_send(&r, 1, 50);
	rig_sends(&r, URN_ST_DATA, 0, 0);
	rig_sent(&r, 1, 50, URN_ST_OK);
	rig_send(&r, 2, 3000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 50, 3000);
	rig_nothing(&r);
}

/* SF-6: SrcAvail and SinkAvail cross: SrcAvail wins where the sink can read, else SinkAvail. */
static void
test_cross(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.inlined = 0;
	rig_open(&r);
	rig_send(&r, 1, 3000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 3000);
	rig_advert(&r, 0, 5000);
	rig_nothing(&r);
	assert_int_equal(r.st.count[URN_ST_D_CROSS_READ], 1);
	rig_kind(&r, URN_ST_RD_COMPL, 3000, 3000);
	rig_sent(&r, 1, 3000, URN_ST_OK);

	rig_init(&r);
	r.cfg.inlined = 0;
	r.cfg.peer.abilities = 0;
	rig_open(&r);
	rig_send(&r, 1, 3000);
	assert_int_equal(rig_sends(&r, URN_ST_SRC_AVAIL, 0, 3000)->flags, URN_ST_F_WRITE);
	rig_advert(&r, 0, 5000);
	rig_next(&r, URN_ST_A_WRITE);
	rig_sends(&r, URN_ST_WR_COMPL, 0, 3000);
}

/* SF-8: where the sink can't read, bytes inline make a crossing SinkAvail void, and the answer is
 * for the byte behind. */
static void
test_cross_inline(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.peer.abilities = 0;
	rig_open(&r);
	rig_send(&r, 1, 3000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 3000);
	rig_advert(&r, 0, 5000);
	rig_nothing(&r);
	rig_advert(&r, INLINED, 2000);
	assert_int_equal(rig_next(&r, URN_ST_A_WRITE)->addr, (1 << 20) + INLINED);
	rig_sends(&r, URN_ST_WR_COMPL, INLINED, 2000);
	urn_st_written(&r.st);
	/* The rest is announced anew. */
	rig_sends(&r, URN_ST_SRC_AVAIL, INLINED + 2000, 990);
	rig_kind(&r, URN_ST_SEND_SM, 2 * INLINED + 2000, INLINED);
	rig_sends(&r, URN_ST_DATA, 2 * INLINED + 2000, 0);
}

/* SF-9: a kind of transfer can be forced, and a threshold be infinite. */
static void
test_force(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	assert_int_equal(urn_st_set_force(&r.st, URN_ST_FORCES), EINVAL);
	urn_st_set_force(&r.st, URN_ST_FORCE_COPY);
	rig_advert(&r, 0, 5000);
	rig_send(&r, 1, 400);
	for (int i = 0; i < BUFFERS; i++)
		rig_sends(&r, URN_ST_DATA, (uint64_t)i * SIZE, 0);
	rig_sent(&r, 1, 400, URN_ST_OK);
	urn_st_set_force(&r.st, URN_ST_FORCE_READ);
	rig_send(&r, 2, 1);
	assert_int_equal(rig_sends(&r, URN_ST_SRC_AVAIL, 400, 1)->flags, URN_ST_F_READ);
	rig_kind(&r, URN_ST_RD_COMPL, 401, 1);
	rig_sent(&r, 2, 1, URN_ST_OK);
	urn_st_set_force(&r.st, URN_ST_FORCE_WRITE);
	rig_send(&r, 3, 1);
	assert_int_equal(rig_sends(&r, URN_ST_SRC_AVAIL, 401, 1)->flags, URN_ST_F_WRITE);
	rig_advert(&r, 401, 1);
	rig_next(&r, URN_ST_A_WRITE);

	/* A peer that can't be read from: memory that it announced is taken, whatever the size. */
	rig_init(&r);
	r.cfg.peer.abilities = 0;
	rig_open(&r);
	rig_advert(&r, 0, 50);
	urn_st_set_force(&r.st, URN_ST_FORCE_READ);
	rig_send(&r, 1, 5);
	rig_next(&r, URN_ST_A_WRITE);
	rig_sends(&r, URN_ST_WR_COMPL, 0, 5);

	rig_init(&r);
	r.cfg.tx.value = URN_ST_INFINITE;
	rig_open(&r);
	rig_advert(&r, 0, 5000);
	rig_send(&r, 1, 5000);
	rig_sends(&r, URN_ST_DATA, 0, 0);
}

/* SF-1: buffers on demand: any send asks for them by SrcAvail that allows SendSm alone. */
static void
test_ask(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.peer.abilities |= URN_ST_ON_DEMAND;
	r.credit = 0;
	rig_open(&r);
	rig_send(&r, 1, 5);
	assert_int_equal(rig_sends(&r, URN_ST_SRC_AVAIL, 0, 5)->flags, 0);
	rig_nothing(&r);
	r.credit = BUFFERS;
	rig_kind(&r, URN_ST_SEND_SM, 0, 0);
	rig_sends(&r, URN_ST_DATA, 0, 0);
	rig_sent(&r, 1, 5, URN_ST_OK);
	/* SendSm was asked for: no reason to raise the threshold. */
	assert_int_equal(r.st.tx.threshold.value, THRESHOLD);
}

/* SF-7: a SinkAvail that came with a command is used from the floor of the threshold on. */
static void
test_answer(void **state)
{
	struct urn_st_msg m = {.kind = URN_ST_DATA,
			       .flags = URN_ST_F_ADVERT,
			       .length = 20,
			       .advert = {.bytes = 600, .addr = 0x7000, .key = KEY}};
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_feed(&r, m);
	rig_send(&r, 1, FLOOR);
	rig_next(&r, URN_ST_A_WRITE);
	rig_sends(&r, URN_ST_WR_COMPL, 0, FLOOR);
	urn_st_written(&r.st);
	rig_sent(&r, 1, FLOOR, URN_ST_OK);
}

/* A peer that breaks the protocol ends the connection, which says why; sends fail when nothing
 * touches their memory. */
static void
test_bad_messages(void **state)
{
	const struct {
		uint64_t send, offset, bytes;
		uint8_t kind;
		enum urn_st_reason reason;
	} bad[] = {
		{0, 5, 5, URN_ST_RD_COMPL, URN_ST_R_STALE_RD_COMPL},
		{50, 5, 5, URN_ST_RD_COMPL, URN_ST_R_STALE_RD_COMPL},
		{2000, 1999, 1999, URN_ST_RD_COMPL, URN_ST_R_OFFSET},
		{2000, 2000, 1999, URN_ST_RD_COMPL, URN_ST_R_OFFSET},
		{0, 0, 0, URN_ST_SEND_SM, URN_ST_R_STALE_SEND_SM},
		{2000, 2000, 2000, URN_ST_SEND_SM, URN_ST_R_OFFSET},
		{2000, INLINED - 1, INLINED - 1, URN_ST_SEND_SM, URN_ST_R_OFFSET},
		{2000, 500, 400, URN_ST_SEND_SM, URN_ST_R_OFFSET},
		{2000, 2001, 0, URN_ST_STOP, URN_ST_R_OFFSET},
		{50, 51, 0, URN_ST_STOP, URN_ST_R_OFFSET},
	};
	char why[200];
	struct rig r;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rig_init(&r);
		rig_open(&r);
		if (bad[i].send)
			rig_send(&r, 1, bad[i].send);
		while (rig_peek(&r))
			r.seen++;
		rig_kind(&r, bad[i].kind, bad[i].offset, bad[i].bytes);
		rig_dies(&r, bad[i].reason, true);
		if (bad[i].send == 2000)
			rig_sent(&r, 1, INLINED, URN_ST_FAILED);
		urn_st_error(&r.st, why, sizeof(why));
		assert_non_null(strstr(why, urn_st_reason_text(bad[i].reason)));
		assert_non_null(strstr(why, "byte"));
		assert_int_equal(urn_st_send(&r.st, &(struct urn_st_area){.bytes = 1}), ENOTCONN);
	}
}

static void
test_bad_adverts(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_advert(&r, 1, 5);
	rig_dies(&r, URN_ST_R_OFFSET, true);

	rig_init(&r);
	rig_open(&r);
	rig_advert(&r, 0, 5);
	rig_advert(&r, 0, 5);
	rig_dies(&r, URN_ST_R_TWO_ADVERTS, true);

	/* SinkAvail for memory that the peer may not name: the write is refused. */
	rig_init(&r);
	rig_open(&r);
	rig_advert(&r, 0, 5000);
	rig_send(&r, 1, 3000);
	rig_next(&r, URN_ST_A_WRITE);
	rig_sends(&r, URN_ST_WR_COMPL, 0, 3000);
	urn_st_refused(&r.st);
	rig_dies(&r, URN_ST_R_REFUSED, false);
	rig_sent(&r, 1, 3000, URN_ST_FAILED);
}

/* Counts that can't be: fewer buffers than before, more than there are, SinkAvails that were never
 * sent. */
static void
test_bad_counts(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 3; i++) {
		rig_init(&r);
		rig_open(&r);
		r.credit = i == 0 ? BUFFERS - 1 : i == 1 ? BUFFERS + 1 : BUFFERS;
		r.adverts = i == 2;
		rig_kind(&r, URN_ST_CREDIT, 0, 0);
		rig_dies(&r, URN_ST_R_BAD_CREDIT, true);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_write_during_copy),
		cmocka_unit_test(test_void),
		cmocka_unit_test(test_cross),
		cmocka_unit_test(test_cross_inline),
		cmocka_unit_test(test_force),
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_bad_messages),
		cmocka_unit_test(test_bad_adverts),
		cmocka_unit_test(test_bad_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
