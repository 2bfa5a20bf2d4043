/* SPDX-License-Identifier: BSD-3-Clause */
/* The consequences of a REPORT: receives that are rebuilt, requests that are done, atomics. */
#include "rig.h"

static struct rig r;

/* FO-9, FO-14: receives are rebuilt from headers up to the peer's LAST SENT; a higher id proves
 * nothing. */
static void
rebuilt(void **state)
{
	const struct rig_taken *t;

	(void)state;
	rig_open(&r);
	rig_receive(&r, 1, 0);
	rig_fail(&r);
	rig_found(&r, 11, 2);
	rig_found(&r, 12, 4); /* 3 is a write */
	rig_found(&r, 13, 5); /* its first packet came */
	rig_found(&r, 14, 0);
	rig_drained(&r);
	rig_next(&r, URN_SESS_TELL);
	rig_hear(&r, rig_report(&r, 4, 3, 0), URN_SESS_R_READY);
	assert_int_equal(rig_next(&r, URN_SESS_REBUILD)->a.index, 11);
	assert_int_equal(rig_next(&r, URN_SESS_REBUILD)->a.index, 12);
	rig_next(&r, URN_SESS_BIND_ALL);
	assert_int_equal(r.c.received, 4);
	urn_sess_rebound(&r.c, 1);
	t = rig_next(&r, URN_SESS_RECEIVE);
	assert_int_equal(t->a.index, 13);
	assert_int_equal(t->a.path, 1);
	assert_int_equal(rig_next(&r, URN_SESS_RECEIVE)->a.index, 14);
	assert_int_equal(r.c.counter[URN_SESS_C_REBUILT], 2);
}

/* FO-14: a write just before the failure makes the peer's LAST SENT one higher, and no header is
 * missing. */
static void
write_before_failure(void **state)
{
	(void)state;
	rig_open(&r);
	rig_receive(&r, 1, 0);
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 3, 1, 0), URN_SESS_R_READY);
	rig_next(&r, URN_SESS_BIND_ALL);
	assert_int_equal(r.c.received, 3);
}

/* FO-14: a Send whose header is missing is an error and not silence. */
static void
header_missing(void **state)
{
	(void)state;
	rig_open(&r);
	rig_fail(&r);
	rig_found(&r, 1, 0);
	rig_drained(&r);
	rig_next(&r, URN_SESS_TELL);
	rig_hear(&r, rig_report(&r, 1, 1, 0), URN_SESS_R_READY);
	assert_int_equal(rig_next(&r, URN_SESS_DIED)->a.reason, URN_SESS_NO_HEADER);
	assert_int_equal(rig_next(&r, URN_SESS_FLUSH)->a.index, 1);
}

/* FO-7: a header of another connection, or of an older queue pair, completes nothing. */
static void
header_foreign(void **state)
{
	struct urn_sess_header h = {.id = 1, .conn = 8};

	(void)state;
	rig_open(&r);
	rig_fail(&r);
	assert_true(urn_sess_found(&r.c, 1, &h));
	h.conn = 7;
	h.epoch = 1;
	assert_true(urn_sess_found(&r.c, 2, &h));
	rig_drained(&r);
	rig_next(&r, URN_SESS_TELL);
	rig_hear(&r, rig_report(&r, 1, 1, 0), URN_SESS_R_READY);
	assert_int_equal(rig_next(&r, URN_SESS_DIED)->a.reason, URN_SESS_NO_HEADER);
}

/* FO-15: ids up to the greater of our LAST SENT and the peer's LAST RECEIVED are done, those above
 * are posted. */
static void
greater_than_max(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "WSWS");
	assert_true(urn_sess_done(&r.c, 0, 0));
	rig_complete(&r, 0, URN_SESS_OK);
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 2), URN_SESS_R_READY);
	rig_complete(&r, 1, URN_SESS_OK);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 2);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 3);
	assert_int_equal(r.c.sent, 2);
	assert_int_equal(r.c.sends, 1);
}

/* FO-15: the peer's LAST RECEIVED is lower than our LAST SENT: nothing delivered is repeated. */
static void
lower_than_sent(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "SW");
	assert_true(urn_sess_done(&r.c, 0, 1));
	rig_complete(&r, 0, URN_SESS_OK);
	rig_complete(&r, 1, URN_SESS_OK);
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	rig_next(&r, URN_SESS_WAKE);
}

/* FO-8: one flush read completes all messages before it; LAST ACKED does, too. */
static void
flush_and_ack(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "SSSS");
	rig_quiet(&r);
	assert_true(urn_sess_done(&r.c, 0, 1));
	rig_complete(&r, 0, URN_SESS_OK);
	rig_complete(&r, 1, URN_SESS_OK);
	assert_true(rig_receive(&r, 1, 3));
	rig_complete(&r, 2, URN_SESS_OK);
	assert_true(urn_sess_done(&r.c, 0, 2)); /* the flush read of an acknowledged message */
	rig_quiet(&r);
	assert_true(rig_receive(&r, 2, 99));
	assert_int_equal(r.c.counter[URN_SESS_C_BAD_ACK], 1);
	assert_false(rig_receive(&r, 2, 0));
	assert_int_equal(r.c.counter[URN_SESS_C_DUPLICATE], 1);
	rig_quiet(&r);
}

/* FO-15: READs are posted again in their place, and messages behind them complete after them. */
static void
read_in_place(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "RSS");
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 1), URN_SESS_R_READY);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 0);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 2);
	rig_next(&r, URN_SESS_WAKE);
	rig_next(&r, URN_SESS_READY);
	assert_true(urn_sess_done(&r.c, 1, 0));
	rig_complete(&r, 0, URN_SESS_OK);
	rig_complete(&r, 1, URN_SESS_OK);
	rig_quiet(&r);
}

/* FO-12: binds before a delivered Send are complete; those behind it are posted again. */
static void
binds(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "BSB");
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 1), URN_SESS_R_READY);
	rig_complete(&r, 0, URN_SESS_OK);
	rig_complete(&r, 1, URN_SESS_OK);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 2);
}

/* A bind's completion says nothing of messages before it: it is local. */
static void
bind_is_local(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "SB");
	assert_true(urn_sess_done(&r.c, 0, 1));
	rig_quiet(&r);
	assert_true(urn_sess_done(&r.c, 0, 0));
	rig_complete(&r, 0, URN_SESS_OK);
	rig_complete(&r, 1, URN_SESS_OK);
}

static struct urn_sess_report
record(uint64_t count, uint32_t flags)
{
	struct urn_sess_report report = rig_report(&r, 0, 0, 0);

	report.atomics = count;
	report.flags = flags | URN_SESS_R_READY;
	for (uint64_t n = 1; n <= count; n++)
		report.old[n % URN_SESS_ATOMICS] = 100 + n;
	return report;
}

/* FO-15: an atomic that the peer's record has completes with its result; one that it surely lacks
 * is posted again. */
static void
atomics(void **state)
{
	const struct rig_taken *t;

	(void)state;
	rig_open(&r);
	rig_post(&r, "AAA");
	assert_true(urn_sess_done(&r.c, 0, 0));
	rig_complete(&r, 0, URN_SESS_OK);
	rig_reported(&r);
	rig_hear(&r, record(2, URN_SESS_R_LOG), 0);
	t = rig_next(&r, URN_SESS_COMPLETE);
	assert_int_equal(t->a.seq, 1);
	assert_true(t->a.known);
	assert_int_equal(t->a.old, 102);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 2);
}

/* FO-15: an atomic whose outcome cannot be known ends in an error that says so, and is never
 * repeated. */
static void
unknown(struct urn_sess_report (*report)(void), unsigned int posted, uint64_t lost)
{
	rig_open(&r);
	for (unsigned int i = 0; i < posted; i++)
		rig_post(&r, "A");
	rig_reported(&r);
	rig_hear(&r, report(), 0);
	assert_int_equal(rig_next(&r, URN_SESS_DIED)->a.reason, URN_SESS_NO_OUTCOME);
	for (unsigned int i = 0; i < posted; i++)
		rig_complete(&r, i,
			     i < lost	 ? URN_SESS_OK
			     : i == lost ? URN_SESS_UNKNOWN
					 : URN_SESS_FLUSHED);
	assert_int_equal(r.c.counter[URN_SESS_C_ATOMICS_UNKNOWN], 1);
}

static struct urn_sess_report
no_log(void)
{
	return record(0, 0);
}

static struct urn_sess_report
unsure(void)
{
	return record(1, URN_SESS_R_LOG | URN_SESS_R_UNSURE);
}

static void
atomics_unknown(void **state)
{
	(void)state;
	unknown(no_log, 2, 0);
	unknown(unsure, 3, 1);
}

/* An atomic that was never posted to a queue pair needs no record. */
static void
atomic_not_posted(void **state)
{
	uint64_t seq;

	(void)state;
	rig_open(&r);
	rig_reported(&r);
	assert_int_equal(urn_sess_post(&r.c, URN_SESS_ATOMIC, &seq), 0);
	rig_hear(&r, no_log(), 0);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	rig_next(&r, URN_SESS_POST);
}

/* FO-11: a request that fails for a reason of its own is delivered as it is, and moves nothing. */
static void
genuine(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "SSS");
	assert_true(urn_sess_done(&r.c, 0, 0));
	rig_complete(&r, 0, URN_SESS_OK);
	urn_sess_failed(&r.c, 1, 1); /* this queue pair is not in use */
	rig_quiet(&r);
	urn_sess_failed(&r.c, 0, 1);
	rig_next(&r, URN_SESS_DIED);
	rig_complete(&r, 1, URN_SESS_GENUINE);
	rig_complete(&r, 2, URN_SESS_FLUSHED);
	assert_int_equal(r.c.counter[URN_SESS_C_MIGRATIONS], 0);
}

/* Messages before a request that fails were carried out; those behind it were not. */
static void
genuine_in_the_middle(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "SWRS");
	urn_sess_done(&r.c, 0, 2);
	rig_complete(&r, 0, URN_SESS_OK);
	rig_complete(&r, 1, URN_SESS_OK);
	rig_complete(&r, 2, URN_SESS_OK);
	rig_post(&r, "WS");
	urn_sess_failed(&r.c, 0, 4);
	rig_complete(&r, 3, URN_SESS_OK);
	rig_next(&r, URN_SESS_DIED);
	rig_complete(&r, 4, URN_SESS_GENUINE);
	rig_complete(&r, 5, URN_SESS_FLUSHED);
	/* A READ fails: its id is that of the message before it. */
	rig_open(&r);
	rig_post(&r, "SRS");
	urn_sess_failed(&r.c, 0, 1);
	rig_complete(&r, 0, URN_SESS_OK);
	rig_next(&r, URN_SESS_DIED);
	rig_complete(&r, 1, URN_SESS_GENUINE);
	rig_complete(&r, 2, URN_SESS_FLUSHED);
}

/* An end that goes fails its requests once, tells the peer, and takes no more. */
static void
quits(void **state)
{
	uint64_t seq;

	(void)state;
	rig_open(&r);
	rig_post(&r, "SS");
	urn_sess_quit(&r.c);
	rig_next(&r, URN_SESS_DIED);
	rig_complete(&r, 0, URN_SESS_FLUSHED);
	rig_complete(&r, 1, URN_SESS_FLUSHED);
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.flags & URN_SESS_R_DEAD,
			 URN_SESS_R_DEAD);
	assert_int_equal(urn_sess_post(&r.c, URN_SESS_SEND, &seq), -1);
	urn_sess_quit(&r.c);
	rig_quiet(&r);
}

/* FO-15: two migrations in a row; ids that the first REPORT settled are settled alike by the
 * second. */
static void
judged_twice(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "SS");
	rig_fail(&r);
	rig_found(&r, 1, 1);
	rig_found(&r, 2, 0);
	rig_drained(&r);
	rig_next(&r, URN_SESS_TELL);
	rig_hear(&r, rig_report(&r, 1, 1, 1), URN_SESS_R_READY);
	rig_next(&r, URN_SESS_REBUILD);
	rig_complete(&r, 0, URN_SESS_OK);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_down(&r.c, 1);
	rig_next(&r, URN_SESS_TELL);
	rig_hear(&r, rig_report(&r, 1, 1, 1), URN_SESS_R_READY);
	assert_int_equal(rig_next(&r, URN_SESS_BIND_ALL)->a.path, 2);
	urn_sess_rebound(&r.c, 2);
	assert_int_equal(rig_next(&r, URN_SESS_RECEIVE)->a.index, 2);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 1);
}

static void
ring_full(void **state)
{
	uint64_t seq;

	(void)state;
	rig_open(&r);
	for (unsigned int i = 0; i < RIG_WRS; i++)
		rig_post(&r, "B");
	assert_int_equal(urn_sess_post(&r.c, URN_SESS_SEND, &seq), -1);
	assert_true(urn_sess_done(&r.c, 0, 0));
	rig_complete(&r, 0, URN_SESS_OK);
	rig_post(&r, "S"); /* in the slot of the bind */
	for (unsigned int i = 1; i < RIG_WRS; i++)
		assert_true(urn_sess_done(&r.c, 0, i));
	assert_true(urn_sess_done(&r.c, 0, RIG_WRS));
	assert_int_equal(r.c.sends, 1);
	assert_int_equal(urn_sess_post(&r.c, URN_SESS_KINDS, &seq), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rebuilt),
		cmocka_unit_test(write_before_failure),
		cmocka_unit_test(header_missing),
		cmocka_unit_test(header_foreign),
		cmocka_unit_test(greater_than_max),
		cmocka_unit_test(lower_than_sent),
		cmocka_unit_test(flush_and_ack),
		cmocka_unit_test(read_in_place),
		cmocka_unit_test(binds),
		cmocka_unit_test(bind_is_local),
		cmocka_unit_test(atomics),
		cmocka_unit_test(atomics_unknown),
		cmocka_unit_test(atomic_not_posted),
		cmocka_unit_test(genuine),
		cmocka_unit_test(genuine_in_the_middle),
		cmocka_unit_test(quits),
		cmocka_unit_test(judged_twice),
		cmocka_unit_test(ring_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
