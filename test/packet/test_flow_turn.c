/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: the order of things in a turn, when sources of the schedule send messages. */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* A source that sends one message to node `to` when it is served. */
struct talker {
	struct urn_source_ops_user user; /* first */
	struct flow_net *n;
	unsigned int from, to;
	struct flow_sent s;
};

static bool
talk(struct urn_tp *tp, struct urn_source *src)
{
	struct talker *t = (struct talker *)src;

	(void)tp;
	assert_int_equal(flow_send(t->n, t->from, t->to, flow_qid(1), 64, 7, &t->s), URN_MSG_PENDING);
	return false;
}

static const struct urn_source_ops talker_ops = {.serve = talk};

/* Let a talker have a turn with the sources of a node's own. */
static void
schedule(struct talker *t, struct flow_net *n, unsigned int from, unsigned int to, struct urn_tp_share *share)
{
	memset(t, 0, sizeof(*t));
	t->n = n;
	t->from = from;
	t->to = to;
	t->user.ops = &talker_ops;
	t->user.source.kind = URN_SOURCE_OPS;
	t->user.source.share = share;
	urn_sched_add(&n->node[from].tp->sched, &t->user.source);
}

/* Messages that sources send in one turn go out in that turn, and share packets. */
static void
sources_share_packets(void **state)
{
	struct flow_net *n = calloc(1, sizeof(*n));
	struct urn_tp_share share = {0};
	struct talker t[24];

	(void)state;
	assert_non_null(n);
	flow_net_open(n, 2, 1);
	for (unsigned int i = 0; i < 24; i++)
		schedule(&t[i], n, 0, 1, &share);
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_TX),
			 2); /* packets of at most 12 messages in MTU 1024 */
	for (unsigned int i = 0; i < 24; i++)
		flow_net_until(n, &t[i].s, MS);
	assert_int_equal(n->node[1].got_n, 24);
	for (unsigned int i = 0; i < 24; i++)
		flow_sent_free(&t[i].s);
	flow_net_close(n);
	free(n);
}

/* A source that tries again in each turn while its flow has no room. */
static bool
talk_long(struct urn_tp *tp, struct urn_source *src)
{
	struct talker *t = (struct talker *)src;

	(void)tp;
	if (t->s.data)
		flow_sent_free(&t->s);
	return flow_send(t->n, t->from, t->to, flow_qid(1), 8000, 7, &t->s) == URN_MSG_BUSY;
}

static const struct urn_source_ops long_ops = {.serve = talk_long};

/* Sources that find no room in a flow do not keep the flow from its turn. */
static void
tries_hold_nobody(void **state)
{
	struct flow_net *n = calloc(1, sizeof(*n));
	struct urn_tp_share share = {0};
	struct talker t[24];

	(void)state;
	assert_non_null(n);
	flow_net_open(n, 2, 1);
	for (unsigned int i = 0; i < 24; i++) {
		schedule(&t[i], n, 0, 1, &share);
		t[i].user.ops = &long_ops;
	}
	flow_net_run(n, 10 * MS);
	assert_int_equal(n->node[1].got_n, 24);
	for (unsigned int i = 0; i < 24; i++)
		flow_sent_free(&t[i].s);
	flow_net_close(n);
	free(n);
}

/*
 * DB-6: a turn serves a bounded number of sources before their messages go out: thousands that ring
 * at once do not hold up what was gathered.
 */
static void
a_turn_serves_few(void **state)
{
	enum { ALL = 4000, OWNERS = 100 };
	struct flow_net *n = flow_net_new(2, 1);
	static struct urn_tp_share share[OWNERS + 1];
	static struct talker t[ALL], other;
	unsigned int turns = 0, before = 0, served;

	(void)state;
	memset(share, 0, sizeof(share));
	for (unsigned int i = 0; i < ALL; i++)
		schedule(&t[i], n, 0, 1, &share[i % OWNERS]);
	schedule(&other, n, 0, 1, &share[OWNERS]);
	do {
		flow_net_run(n, FLOW_NET_STEP);
		served = other.s.data != NULL;
		for (unsigned int i = 0; i < ALL; i++)
			served += t[i].s.data != NULL;
		assert_true(served - before <= URN_TP_SHARES);
		/* Strands that gathered have sent, or wait for room. */
		assert_null(n->node[0].tp->gathered);
		before = served;
		if (!turns++) { /* the other client's turn comes after one of each */
			assert_int_equal(other.s.m.state, URN_FLOW_MSG_SENT);
			assert_true(flow_net_count(n, 0, URN_C_FLOW_TX) > 0);
		}
	} while (served <= ALL);
	assert_true(turns >= ALL / URN_TP_SHARES);
	flow_net_run(n, 20 * MS);
	assert_int_equal(n->node[1].got_n, ALL + 1);
	for (unsigned int i = 0; i < ALL; i++)
		flow_sent_free(&t[i].s);
	flow_sent_free(&other.s);
	flow_net_end(n);
}

/* An acknowledgement lets data go first, for one turn at most; without data it goes at once. */
static void
data_goes_first(void **state)
{
	struct flow_net *n = calloc(1, sizeof(*n));
	struct urn_tp_share share = {0};
	struct talker ask, answer, more;

	(void)state;
	assert_non_null(n);
	flow_net_open(n, 2, 1);
	schedule(&ask, n, 0, 1, &share);
	flow_net_run(n, n->delay);
	assert_int_equal(n->node[1].got_n, 0);
	/* Node 1 gets the message and answers it in the same turn, and sends again in the next. */
	schedule(&answer, n, 1, 0, &share);
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(n->node[1].got_n, 1);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_TX), 1);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_ACKS_TX), 0);
	schedule(&more, n, 1, 0, &share);
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_TX), 2);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_ACKS_TX), 1);
	flow_net_until(n, &ask.s, MS);
	flow_net_until(n, &more.s, MS);
	assert_int_equal(ask.s.code, URN_MSG_DONE);
	assert_int_equal(more.s.code, URN_MSG_DONE);
	flow_sent_free(&ask.s);
	flow_sent_free(&answer.s);
	flow_sent_free(&more.s);
	flow_net_close(n);
	free(n);
}

/* A busy source of another client, which sends nothing. */
struct busy {
	struct urn_source_ops_user user; /* first */
	struct flow_net *n;
	unsigned int turns, most; /* turns that it had; turns after which it is idle */
	uint64_t sent;		  /* packets of flows that its node had sent at its last turn */
};

static bool
work(struct urn_tp *tp, struct urn_source *src)
{
	struct busy *b = (struct busy *)src;

	(void)tp;
	b->sent = flow_net_count(b->n, 0, URN_C_FLOW_TX);
	return ++b->turns < b->most;
}

static const struct urn_source_ops busy_ops = {.serve = work};

static void
schedule_busy(struct busy *b, struct flow_net *n, unsigned int most, struct urn_tp_share *share)
{
	b->n = n;
	b->turns = 0;
	b->most = most;
	b->user.ops = &busy_ops;
	b->user.source.kind = URN_SOURCE_OPS;
	b->user.source.share = share;
	urn_sched_add(&n->node[0].tp->sched, &b->user.source);
}

/* A source that sends a message; its client owes two turns by the end of its turn. */
static bool
talk_and_owe(struct urn_tp *tp, struct urn_source *src)
{
	(void)talk(tp, src);
	urn_share_user(src->share)->debt = 2 * URN_TURN_BYTES;
	return false;
}

/* Likewise, with debts of the client's own, beside other clients of its user. */
static bool
talk_and_owe_sisters(struct urn_tp *tp, struct urn_source *src)
{
	(void)talk(tp, src);
	src->share->debt = 2 * URN_TURN_BYTES;
	return false;
}

static const struct urn_source_ops owe_ops = {.serve = talk_and_owe};
static const struct urn_source_ops owe_sisters_ops = {.serve = talk_and_owe_sisters};

/* A client that owes two turns sends its gathered message after two turns of the other one. */
static void
pay_two(const struct urn_source_ops *ops, struct urn_tp_share *share, struct urn_tp_share *other,
	struct busy *b)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct talker t;

	n->owner = share;
	schedule(&t, n, 0, 1, share);
	t.user.ops = ops;
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_TX), 1);
	flow_net_until(n, &t.s, MS);
	flow_sent_free(&t.s);
	urn_share_user(share)->debt = share->debt = 0;
	schedule(&t, n, 0, 1, share);
	t.user.ops = ops;
	schedule_busy(b, n, UINT32_MAX, other);
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_TX), 1);
	b->turns = 0;
	while (flow_net_count(n, 0, URN_C_FLOW_TX) == 1 && b->turns < 100)
		flow_net_run(n, FLOW_NET_STEP);
	assert_in_range(b->turns, 2, 4);
	b->most = 0;
	flow_net_until(n, &t.s, MS);
	assert_int_equal(n->node[1].got_n, 2);
	flow_sent_free(&t.s);
	flow_net_end(n);
}

/*
 * Messages that were gathered wait for the turns that their client owes others by the end of the
 * engine's turn, and for none if nobody else has work: many strands, gathered before the first of
 * them is charged, have no more bytes than one. A user owes turns to other users, and a client to
 * those of its user.
 */
static void
gathered_pay(void **state)
{
	struct urn_tp_share share = {0}, other = {0};
	struct busy b = {0};

	(void)state;
	pay_two(&owe_ops, &share, &other, &b);
}

static void
gathered_pay_sisters(void **state)
{
	struct urn_tp_user user = {0};
	struct urn_tp_share share = {.user = &user}, other = {.user = &user};
	struct busy b = {0};

	(void)state;
	pay_two(&owe_sisters_ops, &share, &other, &b);
}

/* A strand that waited for the end of a pause sends at its turn, and not behind those of the others
 * that have turns after it. */
static void
no_gathering_after_a_pause(void **state)
{
	static const uint8_t priority_of[64];
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_tp *tp = n->node[0].tp;
	struct urn_tp_share share = {0}, other = {0};
	struct flow_sent s;
	struct busy b = {0};

	(void)state;
	n->owner = &share;
	tp->priority_of = priority_of;
	tp->sched.stopped = 1;
	assert_int_equal(flow_send(n, 0, 1, flow_qid(1), 64, 7, &s), URN_MSG_PENDING);
	flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_int_equal(tp->sched.waiting_n[0], 1);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_TX), 0);
	tp->sched.stopped = 0;
	schedule_busy(&b, n, 4, &other);
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(b.turns, 1);
	assert_int_equal(b.sent, 1);
	flow_net_until(n, &s, MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources_share_packets),
		cmocka_unit_test(tries_hold_nobody),
		cmocka_unit_test(data_goes_first),
		cmocka_unit_test(a_turn_serves_few),
		cmocka_unit_test(gathered_pay),
		cmocka_unit_test(gathered_pay_sisters),
		cmocka_unit_test(no_gathering_after_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
