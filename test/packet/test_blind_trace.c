/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory for fingerprints of packets that were taken up, by which a frame that contradicts
 * one is noticed: it is bounded, and shared by clients (doc/inside/recovery.md "Frames that
 * somebody made up").
 */
#include "blind.h"

#include <stdlib.h>

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
	assert_int_equal(p.tp->traces.free, URN_HASH_NIL);
	expect_count(&p, NO_TRACE, 0);
	blind_take_up(&p);
	check_held(&p, first, URN_TRACES, 1);
	expect_count(&p, NO_TRACE, 1);
	more = hold(&p, &hog, 2 * URN_TRACES);
	expect_count(&p, NO_TRACE, 1 + 2 * URN_TRACES);
	assert_int_equal(hog.trace, URN_TRACES - 1);
	assert_true(more[2 * URN_TRACES - 1].trace != 0);
	blind_duplicate(&p, 0, 8, 99, 1);
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
	assert_int_equal(p.tp->traces.free, URN_HASH_NIL);
	/* The hand may not meet a client with more than its part: then it takes from one that it
	 * met. */
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

/* A client with few loses nothing while the hand meets one with more than its part a few steps on.
 */
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
	blind_take_up(&p);
	check_held(&p, a, FEW, 0);
	check_held(&p, b, MANY, 1);
	let_go(&p, a, FEW);
	let_go(&p, b, MANY);
	probe_close(&p);
}

/* A user whose many clients have all between them takes from these, and not from a user with few,
 * although none of the clients has more than its part (doc/inside/fairness.md). */
static void
user_of_many(void **state)
{
	enum { CLIENTS = 16, EACH = URN_TRACES / CLIENTS, LOOKS = 8, FEW = 4, MORE = 100 };
	struct urn_tp_user user = {0};
	struct urn_tp_share few = {0}, many[CLIENTS + 1] = {0};
	struct urn_qp *a, *b[CLIENTS], *more;
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (int i = 0; i <= CLIENTS; i++)
		many[i].user = &user;
	b[0] = hold(&p, &many[0], LOOKS - FEW);
	a = hold(&p, &few, FEW); /* the last one is where the hand's first looks end */
	for (int i = 1; i < CLIENTS; i++)
		b[i] = hold(&p, &many[i], EACH);
	more = hold(&p, &many[CLIENTS], EACH - LOOKS + MORE);
	expect_count(&p, NO_TRACE, MORE);
	check_held(&p, a, FEW, 0);
	assert_int_equal(user.trace, URN_TRACES - FEW);
	let_go(&p, a, FEW);
	let_go(&p, b[0], LOOKS - FEW);
	for (int i = 1; i < CLIENTS; i++)
		let_go(&p, b[i], EACH);
	let_go(&p, more, EACH - LOOKS + MORE);
	assert_int_equal(user.trace, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_remembered),
		cmocka_unit_test(parts),
		cmocka_unit_test(greedy),
		cmocka_unit_test(user_of_many),
	};

	return cmocka_run_group_tests_name("blind", tests, NULL, NULL);
}
