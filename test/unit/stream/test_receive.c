/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that are taken back or kept from the peer, what is readable, and how buffers fill. */
#include "rig.h"

/* The next action reads. */
static void
reads(struct rig *r, uint64_t addr, uint64_t raddr, uint64_t bytes)
{
	const struct urn_st_action *a = rig_next(r, URN_ST_A_READ);

	assert_int_equal(a->addr, addr);
	assert_int_equal(a->raddr, raddr);
	assert_int_equal(a->rkey, KEY);
	assert_int_equal(a->bytes, bytes);
}

/* Bytes inline make the stream readable; a SrcAvail that only SendSm answers does not. */
static void
test_readable(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 500, 10);
	assert_int_equal(r.act[r.acts - 1].act, URN_ST_A_READABLE);
	assert_true(urn_st_readable(&r.st) && urn_st_offered(&r.st));
	for (int ask = 0; ask < 2; ask++) {
		rig_init(&r);
		r.cfg.rx.value = ask ? THRESHOLD : URN_ST_INFINITE;
		rig_open(&r);
		rig_offer(&r, ask ? 0 : URN_ST_F_READ, 0, 500, 0);
		rig_sends(&r, URN_ST_SEND_SM, 0, 0);
		assert_false(urn_st_readable(&r.st) || urn_st_offered(&r.st));
		for (uint32_t i = 0; i < r.acts; i++)
			assert_true(r.act[i].act != URN_ST_A_READABLE &&
				    r.act[i].act != URN_ST_A_OFFERED);
	}
}

/* Patience counts from the last receive, not from the SrcAvail. */
static void
test_patience(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 5000, 10);
	urn_st_tick(&r.st);
	urn_st_tick(&r.st);
	rig_receive(&r, 1, 5, 0);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 1, 5, URN_ST_OK);
	urn_st_tick(&r.st);
	urn_st_tick(&r.st);
	rig_nothing(&r);
	urn_st_tick(&r.st);
	rig_sends(&r, URN_ST_SEND_SM, 10, 10);
}

/* Buffers are filled by bytes: many small sends are put together, and told as free again. */
static void
test_small_sends(void **state)
{
	const struct urn_st_action *a = NULL;
	uint64_t at = 0, copied = 0;
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	/* Four times the number of buffers, and less than their bytes. */
	for (; at < 4 * BUFFERS * 10; at += 10)
		rig_data(&r, at, 10);
	assert_int_equal(r.st.state, URN_ST_S_OPEN);
	assert_true(r.st.rx.pieces < BUFFERS);
	for (uint32_t i = 0; i < r.acts; i++) {
		if (r.act[i].act == URN_ST_A_MERGE) {
			a = &r.act[i];
			assert_true(a->at + a->bytes <= URN_ST_WIRE_MAX + SIZE);
			assert_int_equal(a->from, URN_ST_WIRE_HEAD);
			assert_int_not_equal(a->into, a->slot);
		}
	}
	assert_non_null(a);
	r.seen = r.acts;
	rig_receive(&r, 1, 2000, URN_ST_ALL);
	for (; copied < at; copied += a->bytes) {
		a = rig_next(&r, URN_ST_A_COPY);
		assert_int_equal(a->addr, (1 << 20) + copied);
	}
	assert_int_equal(r.freed, 4 * BUFFERS);
}

/* A reader of small areas and a writer of large ones: a few reads that bring less than one buffer
 * would, then BCopy, and the threshold is over the reads that were poor. */
static void
test_poor(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	r.cfg.rx = (struct urn_st_threshold){20, 10, CEILING, false, 0};
	rig_open(&r);
	rig_receive(&r, 100, 30, URN_ST_UNANNOUNCED);
	rig_offer(&r, URN_ST_F_READ, 0, 100000, 0);
	for (uint64_t i = 0; i < URN_ST_POOR; i++) {
		reads(&r, (100 + i) << 20, 0x9000 + i * 30, 30);
		urn_st_read(&r.st);
		rig_received(&r, 100 + i, 30, URN_ST_OK);
		rig_receive(&r, 101 + i, 30, URN_ST_UNANNOUNCED);
	}
	rig_sends(&r, URN_ST_SEND_SM, URN_ST_POOR * 30, URN_ST_POOR * 30);
	assert_true(r.st.rx.threshold.value > 30);

	/* A read that brings all, or as much as a buffer, is worth its way. */
	rig_init(&r);
	r.cfg.rx = (struct urn_st_threshold){20, 10, CEILING, false, 0};
	rig_open(&r);
	rig_receive(&r, 100, SIZE, URN_ST_UNANNOUNCED);
	rig_offer(&r, URN_ST_F_READ, 0, 100000, 0);
	for (uint64_t i = 0; i < 3 * URN_ST_POOR; i++) {
		reads(&r, (100 + i) << 20, 0x9000 + i * SIZE, SIZE);
		urn_st_read(&r.st);
		rig_received(&r, 100 + i, SIZE, URN_ST_OK);
		rig_receive(&r, 101 + i, SIZE, URN_ST_UNANNOUNCED);
	}
	assert_int_equal(r.st.count[URN_ST_D_RX_RAISED], 0);
}

/* A receive is taken back, but not while the peer or a read may touch it. */
static void
test_cancel(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 20, URN_ST_ALL);
	rig_receive(&r, 2, 20, 0);
	rig_receive(&r, 3, 2000, 0);
	rig_data(&r, 0, 5);
	rig_next(&r, URN_ST_A_COPY);
	assert_int_equal(urn_st_cancel(&r.st, 4), ENOENT);
	assert_int_equal(urn_st_cancel(&r.st, 2), 0);
	rig_received(&r, 2, 0, URN_ST_CANCELLED);
	assert_int_equal(urn_st_cancel(&r.st, 1), 0);
	rig_received(&r, 1, 5, URN_ST_OK);
	/* The next one is the oldest now, and is announced. */
	rig_sends(&r, URN_ST_SINK_AVAIL, 5, 2000);
	assert_int_equal(urn_st_cancel(&r.st, 3), EBUSY);
	rig_offer(&r, URN_ST_F_READ, 5, 1500, 0);
	rig_next(&r, URN_ST_A_READ);
	assert_int_equal(urn_st_cancel(&r.st, 3), EBUSY);
	rig_nothing(&r);
	urn_st_read(&r.st);
	rig_received(&r, 3, 1500, URN_ST_OK);
	assert_int_equal(urn_st_cancel(&r.st, 3), ENOENT);
}

/* Memory that may not be named is read into, and is no SinkAvail: neither alone nor as the answer
 * to a SrcAvail. */
static void
test_unannounced(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, URN_ST_UNANNOUNCED);
	rig_nothing(&r);
	rig_offer(&r, URN_ST_F_READ, 0, 1500, 0);
	rig_next(&r, URN_ST_A_READ);
	urn_st_read(&r.st);
	rig_received(&r, 1, 1500, URN_ST_OK);
	rig_sends(&r, URN_ST_RD_COMPL, 1500, 1500);
	rig_receive(&r, 2, 2000, URN_ST_UNANNOUNCED);
	rig_offer(&r, URN_ST_F_WRITE, 1500, 1500, 0);
	rig_sends(&r, URN_ST_SEND_SM, 1500, 0);
	rig_data(&r, 1500, 50);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 2, 50, URN_ST_OK);
	assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 1}, 4), EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readable),    cmocka_unit_test(test_patience),
		cmocka_unit_test(test_small_sends), cmocka_unit_test(test_poor),
		cmocka_unit_test(test_cancel),	    cmocka_unit_test(test_unannounced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
