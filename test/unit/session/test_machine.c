/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a session connection: the order of steps, epochs, messages that are repeated, old or
 * forged. */
#include "rig.h"

static struct rig r;

/* FO-17: sleep, drain, REPORT; the answer; binds, receives, sends and MIGRATED. */
static void
local_failure(void **state)
{
	struct urn_sess_report answer;

	(void)state;
	rig_open(&r);
	rig_post(&r, "S");
	rig_reported(&r);
	assert_int_equal(r.group.moving, 1);
	answer = rig_report(&r, 0, 0, 0);
	rig_hear(&r, answer, URN_SESS_R_READY);
	assert_int_equal(rig_next(&r, URN_SESS_BIND_ALL)->a.path, 1);
	rig_quiet(&r);
	urn_sess_rebound(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 0);
	rig_next(&r, URN_SESS_WAKE);
	assert_int_equal(rig_next(&r, URN_SESS_READY)->a.epoch, 1);
	assert_int_equal(r.c.state, URN_SESS_MIGRATED);
	urn_sess_resume(&r.c);
	assert_int_equal(r.c.state, URN_SESS_CONNECTED);
	assert_int_equal(r.group.moving, 0);
	rig_quiet(&r);
}

/* FO-17: the receiver of a REPORT drains and judges, then answers; its sends wait for MIGRATED. */
static void
remote_failure(void **state)
{
	struct urn_sess_report report;

	(void)state;
	rig_open(&r);
	rig_post(&r, "SS");
	report = rig_report(&r, 0, 0, 1);
	report.epoch = 1;
	rig_hear(&r, report, 0);
	rig_next(&r, URN_SESS_FENCE);
	urn_sess_fenced(&r.c, 0);
	rig_next(&r, URN_SESS_DRAIN);
	rig_drained(&r);
	rig_complete(&r, 0, URN_SESS_OK);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.flags & URN_SESS_R_READY,
			 URN_SESS_R_READY);
	assert_int_equal(r.c.state, URN_SESS_ANSWERED);
	rig_quiet(&r);
	urn_sess_tick(&r.c); /* repeated until answered */
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.sent, 1);
	urn_sess_migrated(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 1);
	rig_next(&r, URN_SESS_WAKE);
	rig_quiet(&r);
	/* The peer did not hear our first MIGRATED, or repeats its REPORT: it is told. */
	rig_hear(&r, report, 0);
	rig_next(&r, URN_SESS_READY);
	rig_quiet(&r);
}

/* FO-17: REPORTs that cross: nobody answers, both send MIGRATED. */
static void
crossing(void **state)
{
	(void)state;
	rig_open(&r);
	rig_post(&r, "S");
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 0), 0);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	rig_next(&r, URN_SESS_READY);
	rig_quiet(&r);
	assert_int_equal(r.c.state, URN_SESS_ANSWERED);
	urn_sess_migrated(&r.c, 1);
	rig_next(&r, URN_SESS_POST);
	rig_next(&r, URN_SESS_WAKE);
	rig_quiet(&r);
	urn_sess_migrated(&r.c, 1); /* repeated */
	rig_quiet(&r);
	assert_int_equal(r.c.counter[URN_SESS_C_REPEATED], 1);
}

/* FO-17: MIGRATED that overtakes nothing but the windows' binding counts. */
static void
migrated_while_binding(void **state)
{
	(void)state;
	rig_open(&r);
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 0), 0);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_migrated(&r.c, 1);
	urn_sess_rebound(&r.c, 1);
	rig_next(&r, URN_SESS_WAKE);
	rig_next(&r, URN_SESS_READY);
	assert_int_equal(r.c.state, URN_SESS_MIGRATED);
}

/* FO-17: new requests queue behind those that are posted again. */
static void
posts_wait(void **state)
{
	uint64_t seq;

	(void)state;
	rig_open(&r);
	rig_post(&r, "W");
	rig_reported(&r);
	assert_int_equal(urn_sess_post(&r.c, URN_SESS_SEND, &seq), 0);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 0);
	assert_int_equal(rig_next(&r, URN_SESS_POST)->a.seq, 1);
	assert_int_equal(r.c.counter[URN_SESS_C_REPOSTED], 1);
}

/* FO-19: the new path dies in each state of the migration; the next epoch takes another one. */
static void
second_failure(void **state)
{
	const struct rig_taken *t;

	(void)state;
	rig_open(&r);
	rig_fail(&r);
	urn_sess_down(&r.c, 1); /* while draining: REPORT tells it */
	rig_drained(&r);
	t = rig_next(&r, URN_SESS_TELL);
	assert_int_equal(t->report.paths, 0xc);
	assert_int_equal(t->report.epoch, 1);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	assert_int_equal(rig_next(&r, URN_SESS_BIND_ALL)->a.path, 2);
	urn_sess_down(&r.c, 2); /* while binding: nothing was posted there, so no fence */
	t = rig_next(&r, URN_SESS_TELL);
	assert_int_equal(t->report.paths, 8);
	assert_int_equal(t->report.epoch, 2);
	urn_sess_rebound(&r.c, 1); /* the path that died */
	rig_quiet(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 2);
	rig_next(&r, URN_SESS_WAKE);
	rig_next(&r, URN_SESS_READY);
	assert_int_equal(r.c.path, 3);
	/* Healed: the first path is trusted again, and taken after the next failure. */
	urn_sess_up(&r.c, 0);
	rig_fail(&r);
	rig_drained(&r);
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.paths, 1);
}

/* FO-19: the path chosen died between REPORT and its answer. */
static void
chosen_path_dead(void **state)
{
	(void)state;
	rig_open(&r);
	rig_reported(&r);
	urn_sess_down(&r.c, 1);
	rig_quiet(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.epoch, 2);
	assert_int_equal(r.c.state, URN_SESS_REPORTED);
}

/* FO-19: no path is left: all requests and receives fail, each once. */
static void
all_paths_dead(void **state)
{
	struct urn_sess_report asks;
	uint64_t seq;

	(void)state;
	rig_open(&r);
	rig_post(&r, "SR");
	for (uint32_t p = 1; p < 4; p++)
		urn_sess_down(&r.c, p);
	rig_quiet(&r);
	rig_fail(&r);
	rig_found(&r, 5, 0);
	rig_drained(&r);
	assert_int_equal(rig_next(&r, URN_SESS_DIED)->a.reason, URN_SESS_NO_PATH);
	rig_complete(&r, 0, URN_SESS_FLUSHED);
	rig_complete(&r, 1, URN_SESS_FLUSHED);
	assert_int_equal(rig_next(&r, URN_SESS_FLUSH)->a.index, 5);
	rig_next(&r, URN_SESS_WAKE);
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.flags & URN_SESS_R_DEAD,
			 URN_SESS_R_DEAD);
	rig_quiet(&r);
	assert_int_equal(urn_sess_post(&r.c, URN_SESS_SEND, &seq), -1);
	/* A peer that asks is told each time. */
	rig_hear(&r, rig_report(&r, 0, 0, 0), 0);
	rig_next(&r, URN_SESS_TELL);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_DEAD);
	rig_quiet(&r);
	asks = rig_report(&r, 0, 0, 0);
	asks.epoch = r.c.epoch - 1;
	urn_sess_report(&r.c, &asks);
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.epoch, r.c.epoch);
}

/* FO-19: both sides have paths, and no path in common. */
static void
no_common_path(void **state)
{
	struct urn_sess_report report;

	(void)state;
	rig_open(&r);
	urn_sess_down(&r.c, 1);
	rig_reported(&r);
	report = rig_report(&r, 0, 0, 0);
	report.paths = 3;
	rig_hear(&r, report, 0);
	assert_int_equal(rig_next(&r, URN_SESS_DIED)->a.reason, URN_SESS_NO_PATH);
}

/* FO-14: a path that either end shuns is taken when no other one is alive on both sides. */
static void
shunned(void **state)
{
	static const uint32_t peer[] = {0xe, 0xe | 0x8 << 16, 0x6 | 0x2 << 16, 0xe | 0xe << 16};
	static const uint32_t taken[] = {3, 1, 1, 1};

	(void)state;
	for (unsigned int i = 0; i < sizeof(peer) / sizeof(peer[0]); i++) {
		struct urn_sess_report report;

		rig_open(&r);
		r.c.shun = 0x7;
		rig_fail(&r);
		rig_drained(&r);
		assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.paths, 0xe | 0x6 << 16);
		r.c.shun = 0; /* the REPORT stays what it was */
		report = rig_report(&r, 0, 0, 0);
		report.paths = peer[i];
		rig_hear(&r, report, URN_SESS_R_READY);
		assert_int_equal(rig_next(&r, URN_SESS_BIND_ALL)->a.path, taken[i]);
	}
}

/* The peer's end died: drained first, so that what was delivered counts. */
static void
peer_dead(void **state)
{
	struct urn_sess_report report;

	(void)state;
	rig_open(&r);
	rig_post(&r, "SS");
	report = rig_report(&r, 0, 0, 1);
	report.epoch = 1;
	report.paths = 0;
	rig_hear(&r, report, URN_SESS_R_DEAD);
	rig_next(&r, URN_SESS_FENCE);
	urn_sess_fenced(&r.c, 0);
	rig_next(&r, URN_SESS_DRAIN);
	rig_drained(&r);
	rig_complete(&r, 0, URN_SESS_OK);
	assert_int_equal(rig_next(&r, URN_SESS_DIED)->a.reason, URN_SESS_PEER_DEAD);
	rig_complete(&r, 1, URN_SESS_FLUSHED);
	rig_next(&r, URN_SESS_WAKE);
	rig_quiet(&r);
}

/* FO-16: completions of a queue pair that was left are dropped. */
static void
stale(void **state)
{
	struct urn_sess_header h = {.id = 1, .conn = 7};

	(void)state;
	rig_open(&r);
	rig_post(&r, "S");
	rig_reported(&r);
	assert_false(urn_sess_done(&r.c, 0, 0)); /* drained */
	assert_false(urn_sess_received(&r.c, 0, &h));
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	urn_sess_rebound(&r.c, 1);
	assert_false(urn_sess_done(&r.c, 0, 0)); /* the old queue pair */
	assert_false(urn_sess_received(&r.c, 0, &h));
	assert_int_equal(r.c.counter[URN_SESS_C_STALE], 4);
	assert_true(urn_sess_done(&r.c, 1, 0));
}

/* Bad input: REPORTs that no peer sends, and those of an older epoch, change nothing. */
static void
forged(void **state)
{
	struct urn_sess_report good, bad;

	(void)state;
	rig_open(&r);
	rig_post(&r, "SW");
	rig_receive(&r, 3, 1);
	rig_complete(&r, 0, URN_SESS_OK);
	good = rig_report(&r, 3, 1, 1);
	good.epoch = 1;
#define FORGED(field, value)                 \
	do {                                 \
		bad = good;                  \
		bad.field = (value);         \
		urn_sess_report(&r.c, &bad); \
		rig_quiet(&r);               \
	} while (0)
	FORGED(epoch, 0);
	FORGED(epoch, URN_SESS_AHEAD + 1);
	FORGED(flags, 0x80);
	FORGED(flags, URN_SESS_R_READY); /* nobody is ready in an epoch that we do not know */
	FORGED(paths, 0x10);
	FORGED(paths, 0x10 << 16);
	FORGED(received, 3);
	assert_int_equal(r.c.counter[URN_SESS_C_FORGED], 7);
	assert_int_equal(r.c.state, URN_SESS_CONNECTED);
	rig_reported(&r);
	FORGED(received, 0); /* less than was acknowledged */
	FORGED(sends, 0);    /* fewer Sends than came */
	FORGED(sends, 2);    /* more Sends than messages behind the last one */
	FORGED(atomics, 1);  /* more atomics than were posted */
	assert_int_equal(r.c.counter[URN_SESS_C_FORGED], 11);
	assert_int_equal(r.c.state, URN_SESS_REPORTED);
	urn_sess_migrated(&r.c, 2);
	urn_sess_migrated(&r.c, 1);
	urn_sess_migrated(&r.c, 0);
	FORGED(epoch, 0);
	rig_hear(&r, good, URN_SESS_R_READY);
	rig_next(&r, URN_SESS_BIND_ALL);
}

/* Bad input: an implausible REPORT that came first is dropped once we are drained, and ours is
 * sent. */
static void
forged_first(void **state)
{
	struct urn_sess_report bad;

	(void)state;
	rig_open(&r);
	bad = rig_report(&r, 5, 9, 0);
	bad.epoch = 1;
	rig_hear(&r, bad, 0);
	rig_next(&r, URN_SESS_FENCE);
	urn_sess_fenced(&r.c, 0);
	rig_next(&r, URN_SESS_DRAIN);
	rig_drained(&r);
	rig_next(&r, URN_SESS_TELL);
	assert_int_equal(r.c.state, URN_SESS_REPORTED);
	assert_int_equal(r.c.counter[URN_SESS_C_FORGED], 1);
}

/* FO-17: a REPORT of an older epoch is dropped; a newer one is joined in each state. */
static void
epochs(void **state)
{
	struct urn_sess_report report;

	(void)state;
	rig_open(&r);
	rig_fail(&r);
	report = rig_report(&r, 0, 0, 0);
	report.epoch = 4;
	rig_hear(&r, report, 0);
	assert_int_equal(r.c.epoch, 4);
	report.epoch = 3;
	rig_hear(&r, report, 0);
	assert_int_equal(r.c.counter[URN_SESS_C_OLD_EPOCH], 1);
	rig_drained(&r);
	rig_next(&r, URN_SESS_BIND_ALL);
	report.epoch = 5;
	rig_hear(&r, report, 0);
	assert_int_equal(rig_next(&r, URN_SESS_BIND_ALL)->a.epoch, 5);
	urn_sess_rebound(&r.c, 5);
	assert_int_equal(rig_next(&r, URN_SESS_TELL)->report.epoch, 5);
	report.epoch = 6;
	report.paths = 0xc;
	rig_hear(&r, report, 0);
	assert_int_equal(rig_next(&r, URN_SESS_FENCE)->a.path, 1);
	assert_int_equal(r.c.state, URN_SESS_SLEEPING);
}

/* Open a second connection of the session of `r`. */
static void
open_beside(struct rig *other)
{
	struct urn_sess_config cfg;

	memset(other, 0, sizeof(*other));
	cfg = rig_config(other);
	cfg.group = &r.group;
	assert_true(urn_sess_init(&other->c, &cfg));
}

/* FO-10, FO-17: the program wakes when the last connection of the session has arrived. */
static void
session_waits(void **state)
{
	static struct rig other;

	(void)state;
	rig_open(&r);
	open_beside(&other);
	rig_reported(&r);
	rig_reported(&other);
	assert_int_equal(r.group.moving, 2);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	rig_next(&r, URN_SESS_BIND_ALL);
	urn_sess_rebound(&r.c, 1);
	rig_next(&r, URN_SESS_READY); /* and no WAKE */
	rig_hear(&other, rig_report(&other, 0, 0, 0), URN_SESS_R_READY);
	rig_next(&other, URN_SESS_BIND_ALL);
	urn_sess_rebound(&other.c, 1);
	rig_next(&other, URN_SESS_WAKE);
}

/* A connection that is taken away in the middle of a migration holds up no other one. */
static void
session_waits_no_more(void **state)
{
	static struct rig other;

	(void)state;
	rig_open(&r);
	open_beside(&other);
	rig_fail(&r);
	rig_reported(&other);
	rig_hear(&other, rig_report(&other, 0, 0, 0), URN_SESS_R_READY);
	urn_sess_rebound(&other.c, 1);
	assert_int_equal(other.c.state, URN_SESS_MIGRATED);
	assert_int_equal(r.group.moving, 1);
	urn_sess_fini(&r.c);
	rig_next(&r, URN_SESS_WAKE);
	rig_quiet(&r);
	assert_int_equal(r.group.moving, 0);
	urn_sess_resume(&other.c);
	assert_int_equal(other.c.state, URN_SESS_CONNECTED);
	/* Twice, and in a state that nobody waits for. */
	urn_sess_fini(&r.c);
	urn_sess_fini(&other.c);
	rig_quiet(&r);
	assert_int_equal(r.group.moving, 0);
}

/* Traffic returns to the first path on request, and only when it is alive. */
static void
fail_back(void **state)
{
	(void)state;
	rig_open(&r);
	urn_sess_fail_back(&r.c);
	rig_quiet(&r);
	rig_reported(&r);
	rig_hear(&r, rig_report(&r, 0, 0, 0), URN_SESS_R_READY);
	urn_sess_rebound(&r.c, 1);
	urn_sess_resume(&r.c);
	r.read = r.n;
	urn_sess_fail_back(&r.c);
	rig_quiet(&r);
	urn_sess_up(&r.c, 0);
	urn_sess_fail_back(&r.c);
	assert_int_equal(rig_next(&r, URN_SESS_FENCE)->a.path, 1);
}

/* Bad input of the shell: events that are impossible are counted. */
static void
impossible(void **state)
{
	struct urn_sess_config cfg;
	struct urn_sess_header h = {.id = 1};

	(void)state;
	rig_open(&r);
	urn_sess_fenced(&r.c, 0);
	urn_sess_drained(&r.c, 0, &(struct urn_sess_record){0});
	assert_false(urn_sess_found(&r.c, 0, &h));
	assert_false(urn_sess_done(&r.c, 0, 3));
	urn_sess_failed(&r.c, 0, 3);
	assert_int_equal(r.c.counter[URN_SESS_C_BAD_EVENT], 5);
	urn_sess_down(&r.c, 99);
	urn_sess_up(&r.c, 99);
	urn_sess_rebound(&r.c, 0);
	urn_sess_resume(&r.c);
	urn_sess_tick(&r.c);
	rig_quiet(&r);
	rig_fail(&r);
	for (uint32_t i = 0; i < RIG_RECVS; i++)
		assert_true(urn_sess_found(&r.c, i, NULL));
	assert_false(urn_sess_found(&r.c, 9, NULL));
	cfg = rig_config(&r);
	cfg.wrs = 3;
	assert_false(urn_sess_init(&r.c, &cfg));
	cfg = rig_config(&r);
	cfg.paths = 0;
	assert_false(urn_sess_init(&r.c, &cfg));
	cfg.paths = 1u << URN_SESS_PATHS;
	assert_false(urn_sess_init(&r.c, &cfg));
}

static void
names(void **state)
{
	(void)state;
	assert_string_equal(urn_sess_state_name(URN_SESS_CONNECTED), "CONNECTED");
	assert_string_equal(urn_sess_state_name(URN_SESS_DEAD), "DEAD");
	assert_string_equal(urn_sess_state_name(URN_SESS_STATE_COUNT), "?");
	assert_string_equal(urn_sess_counter_text(URN_SESS_COUNTER_COUNT), "?");
	for (unsigned int i = 0; i < URN_SESS_COUNTER_COUNT; i++)
		assert_true(strlen(urn_sess_counter_text(i)) > 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_failure),
		cmocka_unit_test(remote_failure),
		cmocka_unit_test(crossing),
		cmocka_unit_test(migrated_while_binding),
		cmocka_unit_test(posts_wait),
		cmocka_unit_test(second_failure),
		cmocka_unit_test(chosen_path_dead),
		cmocka_unit_test(shunned),
		cmocka_unit_test(all_paths_dead),
		cmocka_unit_test(no_common_path),
		cmocka_unit_test(peer_dead),
		cmocka_unit_test(stale),
		cmocka_unit_test(forged),
		cmocka_unit_test(forged_first),
		cmocka_unit_test(epochs),
		cmocka_unit_test(session_waits),
		cmocka_unit_test(session_waits_no_more),
		cmocka_unit_test(fail_back),
		cmocka_unit_test(impossible),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
