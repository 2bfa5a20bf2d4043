/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows at rest, between nodes of a net (doorbell.md DB-5 to DB-7; doc/inside/messages.md "Flows at
 * rest"). */
#include "flow_net.h"

#include "transport/flow_rest.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* Let time go by until node 0 has nothing left. */
static void
age(struct flow_net *n)
{
	for (unsigned int i = 0; i < 90; i++) {
		n->now += 1000 * MS;
		flow_net_run(n, 40 * FLOW_NET_STEP);
	}
	assert_int_equal(urn_flow_count(n->node[0].tp), 0);
	assert_int_equal(n->node[0].tp->flows->rests, 0);
	assert_int_equal(n->node[0].tp->wheel.count, 0);
}

/* The flow of node 0 to a node, which was made by a message, goes to rest. */
static void
let_rest(struct flow_net *n, unsigned int node)
{
	struct urn_flow *f = urn_flow_find(n->node[0].tp, n->node[node].gid, 0);

	assert_non_null(f);
	assert_true(urn_flow_rest(n->node[0].tp, f));
	assert_null(urn_flow_find(n->node[0].tp, n->node[node].gid, 0));
}

static uint64_t
send_done(struct flow_net *n, unsigned int from, unsigned int to)
{
	uint64_t began = n->now;
	struct flow_sent s;

	assert_int_equal(flow_send(n, from, to, flow_qid(0), 64, 1, &s), URN_MSG_PENDING);
	flow_net_until(n, &s, 20 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	flow_net_run(n, 5 * FLOW_NET_STEP);
	return n->now - began;
}

/* The node does not notice the rest: same epoch, no question. After 20 s a new epoch begins, and a
 * node that was started meanwhile is no error. */
static void
epoch_goes_on(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	uint64_t epoch, took;

	(void)state;
	send_done(n, 0, 1);
	send_done(n, 1, 0);
	took = send_done(n, 0, 1);
	epoch = n->node[0].tp->flows->last->tx_epoch;
	for (unsigned int i = 0; i < 300; i++) {
		let_rest(n, 1);
		assert_int_equal(send_done(n, 0, 1), took);
		assert_true(n->node[0].tp->flows->last->tx_epoch == epoch);
	}
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ASKED), 0);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_RESTORED), 300);
	let_rest(n, 1);
	n->now += 15000 * MS;
	flow_net_run(n, 10 * FLOW_NET_STEP);
	flow_net_restart(n, 1);
	n->now += 6000 * MS;
	flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_int_equal(n->node[0].tp->flows->rests, 1);
	send_done(n, 0, 1);
	assert_true(n->node[0].tp->flows->last->tx_epoch != epoch);
	flow_net_end(n);
}

/* DB-5: refusals that the sender does not know of yet are told after the rest, too; a long message
 * that was refused is not begun anew. */
static void
refusals_stay(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[2];

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		n->node[0].got_n = 0;
		send_done(n, 0, 1);
		send_done(n, 1, 0);
		n->node[0].refuse[1] = URN_MSG_NOT_PERMITTED;
		n->lose_opcode = URN_FLOW_ACK;
		flow_send(n, 1, 0, flow_qid(1), 100, 7, &s[0]);
		flow_net_run(n, 10 * FLOW_NET_STEP);
		n->lose = 30;
		flow_send(n, 1, 0, flow_qid(1), 100000, 8, &s[1]);
		flow_net_run(n, MS / 2);
		let_rest(n, 1);
		n->node[0].refuse[1] = 0;
		n->lose_opcode = n->lose = 0;
		for (unsigned int k = 0; k < 2; k++) {
			flow_net_until(n, &s[k], 3000 * MS);
			assert_int_equal(s[k].code, URN_MSG_NOT_PERMITTED);
			flow_sent_free(&s[k]);
		}
		assert_int_equal(n->node[0].got_n, 1);
		assert_int_equal(n->node[0].tp->flows->wholes, 0);
	}
	age(n);
	flow_net_end(n);
}

/* After a rest packets have the path's length first, until the node told what it takes. */
static void
length_is_found_anew(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		flow_send(n, 0, 1, flow_qid(1), 100000, 1, &s);
		assert_int_equal(n->node[0].tp->flows->last->mtu, n->node[0].tp->cfg.mtu);
		flow_net_until(n, &s, 100 * MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		flow_sent_free(&s);
		flow_net_run(n, 5 * FLOW_NET_STEP);
		let_rest(n, 1);
	}
	assert_int_equal(n->node[1].got_n, 3);
	flow_net_end(n);
}

/* Numbers of long messages go on: one is not taken for another that was refused before the rest. */
static void
numbers_go_on(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		n->node[1].refuse[1] = i ? 0 : URN_MSG_QUEUE_FULL;
		flow_send(n, 0, 1, flow_qid(1), 9000, 1, &s);
		flow_net_until(n, &s, 10 * MS);
		assert_int_equal(s.code, i ? URN_MSG_DONE : URN_MSG_QUEUE_FULL);
		assert_int_equal(n->node[1].got_n, i);
		flow_sent_free(&s);
		flow_net_run(n, 5 * FLOW_NET_STEP);
		let_rest(n, 1);
	}
	flow_net_end(n);
}

/* DB-7: messages between four nodes, of which one has room for one flow, on wires that lose and
 * double. */
static void
once_each(void **state)
{
	enum { EACH = 150 };
	static struct flow_sent s[EACH];
	struct urn_tp_share client = {0};
	uint8_t code;

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct flow_net *n = flow_net_new(4, seed);

		n->node[0].tp->flows->owner_max = 1;
		n->lose = n->twice = n->late = 20;
		for (unsigned int i = 0; i < EACH; i++) {
			unsigned int far = 1 + i / 2 % 3;

			while ((code = i % 2 ? flow_send(n, far, 0, flow_qid(0),
							 i % 20 ? 300 : 9000, i + 1, &s[i])
					     : flow_send_as(n, 0, n->node[far].gid, &client, 300,
							    i + 1, &s[i])) != URN_MSG_PENDING) {
				assert_int_equal(code, URN_MSG_BUSY);
				flow_sent_free(&s[i]);
				flow_net_run(n, MS / 10);
			}
		}
		for (unsigned int i = 0; i < EACH; i++) {
			flow_net_until(n, &s[i], 10000 * MS);
			assert_int_equal(s[i].code, URN_MSG_DONE);
			assert_int_equal(s[i].answers, 1);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[0].got_n, EACH / 2);
		assert_int_equal(n->node[1].got_n + n->node[2].got_n + n->node[3].got_n, EACH / 2);
		assert_true(flow_net_count(n, 0, URN_C_FLOW_RESTORED) > 20);
		age(n);
		flow_net_end(n);
	}
}

/* ---- memory */

/* DB-6: memory of a flow with one owner, with refusals, and of one at rest, as malloc() counts it.
 */
static void
memory(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_tp *tp = n->node[0].tp;
	struct flow_sent s[3];
	struct urn_flow *f;
	size_t sum;

	(void)state;
	send_done(n, 0, 1);
	n->node[0].refuse[1] = URN_MSG_QUEUE_FULL;
	n->lose_opcode = URN_FLOW_ACK;
	flow_send(n, 1, 0, flow_qid(1), 100, 7, &s[0]);
	flow_send(n, 1, 0, flow_qid(1), 9000, 8, &s[1]);
	flow_send(n, 0, 1, flow_qid(1), 100, 9, &s[2]);
	flow_net_run(n, 10 * FLOW_NET_STEP);
	f = urn_flow_find(tp, n->node[1].gid, 0);
	assert_true(f && f->strand && f->refusals && f->refused_ids);
	sum = malloc_usable_size(f) + malloc_usable_size(f->strand) +
	      malloc_usable_size(f->refusals);
	print_message("flow %zu, with its strand and refusals %zu, with refused long messages %zu, "
		      "with its peer %zu bytes\n",
		      malloc_usable_size(f), sum, sum + malloc_usable_size(f->refused_ids),
		      sum + malloc_usable_size(urn_psn_peer(tp, &f->tx)));
	assert_true(sum + malloc_usable_size(f->refused_ids) <= 1024);
	assert_true(sum + malloc_usable_size(urn_psn_peer(tp, &f->tx)) <= 1024);
	n->lose_opcode = 0;
	for (unsigned int i = 0; i < RTE_DIM(s); i++) {
		flow_net_until(n, &s[i], 3000 * MS);
		flow_sent_free(&s[i]);
	}
	flow_net_run(n, 10 * FLOW_NET_STEP);
	let_rest(n, 1);
	assert_true(malloc_usable_size(TAILQ_FIRST(&tp->flows->resting)) <= 160);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epoch_goes_on), cmocka_unit_test(refusals_stay),
		cmocka_unit_test(numbers_go_on), cmocka_unit_test(length_is_found_anew),
		cmocka_unit_test(once_each),	 cmocka_unit_test(memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
