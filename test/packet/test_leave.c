/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs that wait for their turn, or for their peer's address, and that are destroyed meanwhile:
 * other QPs stay as they were, and leaving costs the same for any number of QPs.
 */
#include "probe.h"

#include "bare.h"

#include "transport/sched.h"

#include <string.h>

enum { SOME = 4, ORDERS = 24, MANY = 32 };

struct crowd {
	struct probe p;
	struct urn_abi_qp_attr attr;
	struct urn_qp *qp[MANY];
};

/* ---- where they wait */

struct spot {
	const char *name;
	uint32_t flag;
	void (*enter)(struct crowd *c, struct urn_qp *qp);
};

static void
schedule(struct crowd *c, struct urn_qp *qp)
{
	urn_tp_doorbell(c->p.tp, qp);
}

static void
want_address(struct crowd *c, struct urn_qp *qp)
{
	c->p.neigh = -1;
	urn_tp_doorbell(c->p.tp, qp);
	(void)urn_tp_tx(c->p.tp);
}

static const struct spot places[] = {
	{"the schedule", URN_QPF_SCHED, schedule},
	{"those without an address", URN_QPF_NEIGH, want_address},
};

static struct urn_source *
first(const struct crowd *c, const struct spot *at)
{
	const struct urn_tp_user *user = c->p.tp->sched.head;

	if (at->flag == URN_QPF_NEIGH)
		return c->p.tp->neigh_head;
	return user ? user->head->head : NULL;
}

/* Expect exactly these QPs there, in the order in which they came. */
static void
holds(const struct crowd *c, const struct spot *at, struct urn_qp *const *qp, int n)
{
	struct urn_source *is = first(c, at), *before = NULL;

	for (int i = 0; i < n; i++) {
		if (is != &qp[i]->source || (before && is->prev != before) || !(is->flags & at->flag))
			fail_msg("%s: number %d of %d is another", at->name, i, n);
		before = is;
		is = is->next;
	}
	assert_null(is);
	if (n)
		assert_ptr_equal(at->flag == URN_QPF_NEIGH ? c->p.tp->neigh_tail
							   : c->p.tp->sched.head->head->tail,
				 before);
	if (at->flag == URN_QPF_NEIGH)
		assert_int_equal(c->p.tp->neigh_n, n);
}

static void
gone(struct crowd *c, struct urn_qp *qp)
{
	assert_true(bare_qp_stop(c->p.tp, qp));
	urn_qp_destroy(c->p.tp, qp);
}

static void
open_crowd(struct crowd *c)
{
	memset(c, 0, sizeof(*c));
	probe_open(&c->p, &(struct probe_config){0});
	probe_attributes(&c->p, &c->attr);
	probe_settle(&c->p); /* the probe's own are nowhere any more */
}

/* ---- */

/* The order in which they leave that has this number, of all there are. */
static void
order(int number, int who[SOME])
{
	int left[SOME], n = SOME;

	for (int i = 0; i < SOME; i++)
		left[i] = i;
	for (int i = 0; i < SOME; i++) {
		int k = number % n;

		number /= n;
		who[i] = left[k];
		memmove(left + k, left + k + 1, (size_t)(--n - k) * sizeof(left[0]));
	}
}

static void
leave_in_order(struct crowd *c, const struct spot *at, int number)
{
	struct urn_qp *in[SOME];
	int who[SOME], n = SOME;

	order(number, who);
	for (int i = 0; i < SOME; i++) {
		in[i] = c->qp[i] = probe_another(&c->p, c->p.tp, &c->attr);
		at->enter(c, in[i]);
	}
	holds(c, at, in, n);
	for (int i = 0; i < SOME; i++) {
		int k = 0;

		while (in[k] != c->qp[who[i]])
			k++;
		gone(c, in[k]);
		memmove(in + k, in + k + 1, (size_t)(--n - k) * sizeof(in[0]));
		holds(c, at, in, n);
	}
}

/* QPs leave in every order: those that are left stay, in order. */
static void
test_orders(void **state)
{
	struct crowd c;

	(void)state;
	open_crowd(&c);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (int n = 0; n < ORDERS; n++)
			leave_in_order(&c, &places[i], n);
	probe_close(&c.p);
}

/* QPs that are neither neighbours of the leaving one nor at an end are not read: their links lead nowhere here. */
static void
leave_from_midst(struct crowd *c, const struct spot *at)
{
	static struct urn_source nowhere;
	struct urn_source *who, *chain[MANY];
	int n = 0;

	for (int i = 0; i < MANY; i++) {
		c->qp[i] = probe_another(&c->p, c->p.tp, &c->attr);
		at->enter(c, c->qp[i]);
	}
	for (struct urn_source *src = first(c, at); src; src = src->next)
		chain[n++] = src;
	assert_int_equal(n, MANY);
	who = chain[MANY / 2];
	for (int i = 0; i < MANY; i++) {
		if (i < MANY / 2 - 1)
			chain[i]->next = &nowhere;
		else if (i > MANY / 2 + 1)
			chain[i]->prev = &nowhere;
	}
	urn_qp_stop(c->p.tp, urn_source_qp(who));
	for (int i = 0; i < MANY; i++) {
		if (i < MANY / 2 - 1)
			chain[i]->next = chain[i + 1];
		else if (i > MANY / 2 + 1)
			chain[i]->prev = chain[i - 1];
	}
	n = 0;
	for (const struct urn_source *src = first(c, at); src; src = src->next)
		n += src != who;
	if (n != MANY - 1 || chain[MANY / 2 - 1]->next != chain[MANY / 2 + 1])
		fail_msg("%s: not out of the midst of many in one step", at->name);
	for (int i = 0; i < MANY; i++)
		gone(c, urn_source_qp(chain[i]));
	assert_null(first(c, at));
}

static void
test_midst(void **state)
{
	struct crowd c;

	(void)state;
	open_crowd(&c);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		leave_from_midst(&c, &places[i]);
	probe_close(&c.p);
}

/* A QP that fails waits for no address, and is served among others. */
static void
test_error(void **state)
{
	struct crowd c;
	char why[160];

	(void)state;
	open_crowd(&c);
	for (int i = 0; i < SOME; i++) {
		c.qp[i] = probe_another(&c.p, c.p.tp, &c.attr);
		want_address(&c, c.qp[i]);
	}
	c.attr.state = URN_QPS_ERR;
	assert_int_equal(urn_qp_modify(c.p.tp, c.qp[1], URN_QPM_STATE, &c.attr, why, sizeof(why)), 0);
	holds(&c, &places[0], c.qp + 1, 1);
	gone(&c, c.qp[1]);
	c.qp[1] = c.qp[2];
	c.qp[2] = c.qp[3];
	holds(&c, &places[1], c.qp, SOME - 1);
	for (int i = 0; i < SOME - 1; i++)
		gone(&c, c.qp[i]);
	probe_close(&c.p);
}

/*
 * When many QPs wait for an address, few ask for it in a turn; all do, in their order, and
 * when the address comes all have it.
 */
static void
test_few_ask(void **state)
{
	enum { WAITING = 60, ROUND = 1000000 };
	struct urn_qp *qp[WAITING];
	struct crowd c;

	(void)state;
	open_crowd(&c);
	for (int i = 0; i < WAITING; i++) {
		qp[i] = probe_another(&c.p, c.p.tp, &c.attr);
		want_address(&c, qp[i]);
	}
	for (int round = 0; round < 3; round++) {
		uint32_t before = c.p.asked;

		for (int turn = 0; turn < 4; turn++) {
			uint32_t asked = c.p.asked;

			probe_turn(&c.p, turn ? 1 : 2 * ROUND);
			assert_in_range(c.p.asked - asked, 0, URN_TP_BURST);
		}
		assert_int_equal(c.p.asked - before, WAITING);
	}
	holds(&c, &places[1], qp, WAITING);
	c.p.neigh = 0;
	urn_tp_neigh_changed(c.p.tp);
	for (int turn = 0; turn < 4; turn++)
		probe_turn(&c.p, 1);
	for (int i = 0; i < WAITING; i++)
		assert_int_equal(qp[i]->flags & (URN_QPF_MAC | URN_QPF_NEIGH), URN_QPF_MAC);
	holds(&c, &places[1], NULL, 0);
	for (int i = 0; i < WAITING; i++)
		gone(&c, qp[i]);
	probe_close(&c.p);
}

/* ---- a source that only counts */

struct counter {
	struct urn_source_ops_user user;
	int served, left;
};

static bool
count_turn(struct urn_tp *tp, struct urn_source *src)
{
	struct counter *n = (struct counter *)src;

	(void)tp;
	n->served++;
	return --n->left > 0;
}

/* A source that is no QP has its turns among QPs, one a turn, until it has no more to do
 * (architecture.md, seam 6). */
static void
test_other_source(void **state)
{
	static const struct urn_source_ops ops = {.serve = count_turn};
	struct counter n = {.user.ops = &ops, .left = 3};
	struct crowd c;

	(void)state;
	open_crowd(&c);
	n.user.source.kind = URN_SOURCE_OPS;
	n.user.source.share = &c.p.tp->nobodys;
	c.qp[0] = probe_another(&c.p, c.p.tp, &c.attr);
	schedule(&c, c.qp[0]);
	urn_sched_add(&c.p.tp->sched, &n.user.source);
	for (int i = 1; i <= 3; i++) {
		(void)urn_tp_tx(c.p.tp);
		assert_int_equal(n.served, i);
		assert_int_equal(urn_tp_busy(c.p.tp), i < 3);
	}
	gone(&c, c.qp[0]);
	probe_close(&c.p);
}

/* A paced source has no turn before its time, however often it is rung, and then has one
 * (architecture.md, seam 7). */
static void
test_paced(void **state)
{
	static const struct urn_source_ops ops = {.serve = count_turn};
	struct counter n = {.user.ops = &ops, .left = 1};
	struct urn_pace pace = {.source = &n.user.source};
	struct crowd c;

	(void)state;
	open_crowd(&c);
	n.user.source.kind = URN_SOURCE_OPS;
	n.user.source.share = &c.p.tp->nobodys;
	urn_sched_park(c.p.tp, &pace, c.p.tp->now + 1000000);
	for (int i = 0; i < 9; i++) {
		probe_turn(&c.p, 100000);
		urn_sched_add(&c.p.tp->sched, &n.user.source);
		assert_false(urn_tp_busy(c.p.tp));
	}
	assert_int_equal(n.served, 0);
	probe_turn(&c.p, 200000);
	(void)urn_tp_tx(c.p.tp);
	assert_int_equal(n.served, 1);
	probe_close(&c.p);
}

struct timed {
	struct counter n;
	struct urn_source_timer t;
};

static void
count_due(struct urn_tp *tp, struct urn_source *src)
{
	((struct timed *)src)->n.left++;
	urn_sched_add(&tp->sched, src);
}

/* The wheel of the transport runs timers of a source that is no QP, too (architecture.md, seam 6).
 */
static void
test_timed(void **state)
{
	static const struct urn_source_ops ops = {.serve = count_turn, .due = count_due};
	struct timed s = {.n.user.ops = &ops, .t = {.timer.kind = URN_TIMER_SOURCE}};
	struct crowd c;

	(void)state;
	open_crowd(&c);
	s.t.source = &s.n.user.source;
	s.n.user.source.kind = URN_SOURCE_OPS;
	s.n.user.source.share = &c.p.tp->nobodys;
	urn_wheel_start(&c.p.tp->wheel, &s.t.timer, c.p.tp->now + 1000000);
	probe_turn(&c.p, 900000);
	assert_int_equal(s.n.served, 0);
	probe_turn(&c.p, 200000);
	assert_int_equal(s.n.served, 1);
	assert_false(urn_timer_started(&s.t.timer));
	probe_close(&c.p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),	     cmocka_unit_test(test_midst),
		cmocka_unit_test(test_error),	     cmocka_unit_test(test_few_ask),
		cmocka_unit_test(test_other_source), cmocka_unit_test(test_paced),
		cmocka_unit_test(test_timed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
