/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims on remote queue pairs: one client at a time may be connected to one, nobody keeps it
 * from the client that connection management gave it to, and until the peer has answered
 * nobody's QP is ended (control/pair.h). The test replaces the engines and connection
 * management's answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/objects.h"
#include "transport/ack.h"
#include "transport/service.h"

#include <errno.h>
#include <string.h>

enum { CLIENTS = 3, QPS = URN_PAIR_SAME + 1, REMOTE = 0x4321 };

void __wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);
struct urn_cm *__wrap_urn_cm_agent_lock(struct urn_cm_agent *ag);
void __wrap_urn_cm_agent_unlock(struct urn_cm_agent *ag);
enum urn_cm_claim __wrap_urn_cm_claimed(const struct urn_cm *cm, const struct urn_cm_owner *o,
					const uint8_t peer[16], uint32_t qpn);
void __wrap_urn_qp_lost(struct urn_tp *tp, struct urn_qp *qp);
void __wrap_urn_tp_doorbell(struct urn_tp *tp, struct urn_qp *qp);

static const uint8_t peer_gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t other_gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};
static struct urn_tp tp;
static struct urn_shard shard = {.tp = &tp};
static struct urn_adapter adapter = {.cfg = {.name = "a0"}};
static struct urn_client client[CLIENTS];
static struct urn_qp qp[CLIENTS][QPS];
static struct urn_abi_rep rep;
static struct {
	const struct urn_cm_owner *owner; /* owner by connection management; NULL: it knows no connection */
	bool stands;                      /* the peer has answered */
	bool answers_next;                /* the peer answers as soon as it was asked about once */
	unsigned int rung;                /* doorbells of QPs that may send again */
} world;

void
__wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg)
{
	(void)e;
	fn(arg);
}

struct urn_cm *
__wrap_urn_cm_agent_lock(struct urn_cm_agent *ag)
{
	return (struct urn_cm *)ag;
}

void
__wrap_urn_cm_agent_unlock(struct urn_cm_agent *ag)
{
	(void)ag;
}

enum urn_cm_claim
__wrap_urn_cm_claimed(const struct urn_cm *cm, const struct urn_cm_owner *o, const uint8_t peer[16],
		      uint32_t qpn)
{
	(void)cm;
	if (world.answers_next) {
		world.answers_next = false;
		world.stands = true;
		urn_pair_doom(&adapter.pairs, world.owner, peer_gid, REMOTE);
		return URN_CM_CLAIM_NONE;
	}
	if (!world.owner || qpn != REMOTE || memcmp(peer, peer_gid, 16) != 0)
		return URN_CM_CLAIM_NONE;
	if (world.owner != o)
		return world.stands ? URN_CM_CLAIM_OTHER : URN_CM_CLAIM_NONE;
	return world.stands ? URN_CM_CLAIM_OWN : URN_CM_CLAIM_ASKED;
}

void
__wrap_urn_qp_lost(struct urn_tp *t, struct urn_qp *q)
{
	assert_ptr_equal(t, &tp);
	q->state = URN_QPS_ERR;
}

void
__wrap_urn_tp_doorbell(struct urn_tp *t, struct urn_qp *q)
{
	assert_ptr_equal(t, &tp);
	assert_false(q->flags & URN_QPF_HOLD);
	world.rung++;
}

static int
setup(void **state)
{
	(void)state;
	memset(&tp.c, 0, sizeof(tp.c));
	tp.service[URN_QPT_RC] = &urn_rc;
	memset(client, 0, sizeof(client));
	memset(qp, 0, sizeof(qp));
	memset(&world, 0, sizeof(world));
	adapter.shard[0] = &shard;
	adapter.cm = (void *)&world;
	assert_int_equal(urn_pairs_init(&adapter.pairs, CLIENTS * QPS, 1), 0);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		client[i].adapter = &adapter;
		for (unsigned int k = 0; k < QPS; k++) {
			qp[i][k].qpn = 0x100 * (i + 1) + k;
			qp[i][k].type = URN_QPT_RC;
			qp[i][k].state = URN_QPS_INIT;
		}
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CLIENTS; i++) {
		for (unsigned int k = 0; k < QPS; k++) {
			urn_pair_drop(&client[i], &qp[i][k], peer_gid, REMOTE);
			urn_pair_drop(&client[i], &qp[i][k], other_gid, REMOTE);
			urn_pair_drop(&client[i], &qp[i][k], peer_gid, REMOTE + 1);
		}
		assert_true(LIST_EMPTY(&client[i].held));
	}
	assert_int_equal(adapter.pairs.n, 0); /* nothing is left behind */
	urn_pairs_fini(&adapter.pairs);
	return 0;
}

/* Connect as a change to RTR and RTS does. returns the claim's result */
static int
connect_to(unsigned int c, unsigned int k, const uint8_t gid[16], uint32_t dqpn)
{
	struct urn_pair_claim p = {.dqpn = dqpn};
	int rc;

	memcpy(p.dgid, gid, 16);
	memset(&rep, 0, sizeof(rep));
	rc = urn_pair_claim(&client[c], &qp[c][k], &p, &rep);
	if (rc != 0)
		return rc;
	qp[c][k].state = URN_QPS_RTS;
	urn_pair_hold(&qp[c][k], &p);
	if (p.stands)
		urn_pair_won(&client[c], &p);
	return 0;
}

#define connects(c, k) assert_int_equal(connect_to(c, k, peer_gid, REMOTE), 0)

static void
refused(unsigned int c, unsigned int k)
{
	uint64_t before = tp.c.v[URN_C_PAIR_REFUSED];
	uint32_t n = adapter.pairs.n;

	assert_int_equal(connect_to(c, k, peer_gid, REMOTE), EADDRINUSE);
	assert_int_equal(tp.c.v[URN_C_PAIR_REFUSED], before + 1);
	assert_int_equal(adapter.pairs.n, n);
	if (!strstr(rep.why, "QP 0x4321 at 10.0.0.2"))
		fail_msg("\"%s\"", rep.why);
}

static void
ended(unsigned int c, unsigned int k)
{
	assert_int_equal(qp[c][k].state, URN_QPS_ERR);
}

static void
lives(unsigned int c, unsigned int k, bool sends)
{
	assert_int_equal(qp[c][k].state, URN_QPS_RTS);
	assert_int_equal(!(qp[c][k].flags & URN_QPF_HOLD), sends);
}

/* By hand: one client at a time, with a limited number of QPs; and only to the same remote QP. */
static void
by_hand(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++)
		connects(0, k);
	assert_int_equal(adapter.pairs.n, 3);
	refused(1, 0);
	assert_int_equal(connect_to(1, 1, peer_gid, REMOTE + 1), 0);
	assert_int_equal(connect_to(1, 2, other_gid, REMOTE), 0);
	for (unsigned int k = 0; k < 3; k++)
		lives(0, k, true);
}

/* A change of the address in SQD, to the same one: no second entry. */
static void
again(void **state)
{
	(void)state;
	connects(0, 0);
	connects(0, 0);
	assert_int_equal(adapter.pairs.n, 1);
}

/* The remote QP is free again when every QP of the client there has gone, or has stopped. */
static void
goes(void **state)
{
	(void)state;
	connects(0, 0);
	connects(0, 1);
	urn_pair_drop(&client[0], &qp[0][0], peer_gid, REMOTE);
	refused(1, 0);
	qp[0][1].state = URN_QPS_ERR;
	qp[0][1].rx_head = (void *)&world; /* memory still places data that came */
	refused(1, 0);
	qp[0][1].rx_head = NULL;
	/* The peer's MAC address is still being looked up. */
	urn_ack_owe_nak(&qp[0][1].rx, 0, URN_NAK_OP);
	refused(1, 0);
	urn_ack_void(&qp[0][1].rx);
	connects(1, 0);
	refused(0, 0);
	lives(1, 0, true);
}

/* The client that connection management gave the connection to ends a squatter's QP. */
static void
squatter(void **state)
{
	(void)state;
	connects(0, 0);
	connects(0, 1);
	assert_int_equal(connect_to(0, 2, other_gid, REMOTE), 0);
	world.owner = &client[1].cm.owner;
	world.stands = true;
	connects(1, 0);
	ended(0, 0);
	ended(0, 1);
	lives(0, 2, true); /* another adapter's queue pair */
	lives(1, 0, true);
	assert_int_equal(tp.c.v[URN_C_PAIR_ENDED], 2);
	refused(0, 3);
	refused(2, 0);
	/* The other client is refused even while the owner has no QP there. */
	urn_pair_drop(&client[1], &qp[1][0], peer_gid, REMOTE);
	refused(0, 3);
}

/*
 * A connection that only the peer asked for: its QP sends nothing, and ends nobody's, until the
 * connection stands.
 */
static void
was_asked(void **state)
{
	(void)state;
	connects(0, 0);
	world.owner = &client[1].cm.owner;
	connects(1, 0);
	connects(1, 1);
	lives(1, 0, false);
	lives(0, 0, true);
	urn_pair_settle(&client[1]); /* an event of another connection */
	lives(1, 0, false);
	lives(0, 0, true);
	assert_int_equal(world.rung, 0);
	world.stands = true;
	urn_pair_settle(&client[0]);
	lives(0, 0, true); /* the client has no claim that could stand */
	urn_pair_settle(&client[1]);
	ended(0, 0);
	lives(1, 0, true);
	lives(1, 1, true);
	assert_int_equal(world.rung, 2);
	assert_true(LIST_EMPTY(&client[1].held));
	urn_pair_settle(&client[1]);
	assert_int_equal(world.rung, 2);
}

/* Where no other client is connected, a QP that the peer asked for is not held. */
static void
asked_alone(void **state)
{
	(void)state;
	world.owner = &client[1].cm.owner;
	connects(1, 0);
	lives(1, 0, true);
	refused(0, 0);
}

/* A held QP that goes, or is connected to another remote QP, is no longer held. */
static void
held_goes(void **state)
{
	(void)state;
	connects(0, 0);
	world.owner = &client[1].cm.owner;
	for (unsigned int k = 0; k < 3; k++)
		connects(1, k);
	urn_pair_drop(&client[1], &qp[1][1], peer_gid, REMOTE);
	assert_int_equal(connect_to(1, 2, other_gid, REMOTE), 0);
	urn_pair_drop(&client[1], &qp[1][2], peer_gid, REMOTE);
	lives(1, 2, true);
	lives(1, 0, false);
	world.stands = true;
	urn_pair_settle(&client[1]);
	assert_int_equal(world.rung, 1);
	lives(1, 0, true);
	ended(0, 0);
}

/* Without connection management the first client has the remote QP. */
static void
without_cm(void **state)
{
	(void)state;
	adapter.cm = NULL;
	world.owner = &client[1].cm.owner;
	world.stands = true;
	connects(0, 0);
	refused(1, 0);
	lives(0, 0, true);
}

/*
 * The peer's answer comes in, in an engine's thread: other QPs connected to that remote QP end in
 * their engine's next turn, before their owner, or the new one, does anything.
 */
static void
answer_comes(void **state)
{
	(void)state;
	connects(0, 0);
	connects(0, 1);
	assert_int_equal(connect_to(0, 2, other_gid, REMOTE), 0);
	world.owner = &client[1].cm.owner;
	connects(1, 0);
	assert_false(urn_engine_ends_due(&adapter.pairs.ends, 0));
	world.stands = true;
	urn_pair_doom(&adapter.pairs, world.owner, peer_gid, REMOTE);
	urn_pair_drop(&client[0], &qp[0][1], peer_gid, REMOTE); /* the QP goes, and is not touched */
	assert_true(urn_engine_ends_due(&adapter.pairs.ends, 0));
	urn_pairs_end(&adapter.pairs, &tp);
	assert_false(urn_engine_ends_due(&adapter.pairs.ends, 0));
	ended(0, 0);
	lives(0, 1, true);
	lives(0, 2, true);
	lives(1, 0, false);
	assert_int_equal(tp.c.v[URN_C_PAIR_ENDED], 1);
	urn_pair_settle(&client[1]);
	lives(1, 0, true);
	assert_int_equal(tp.c.v[URN_C_PAIR_ENDED], 1); /* once */
}

/* The answer comes after the claim was granted, and before its QP is connected. */
static void
answer_between(void **state)
{
	struct urn_pair_claim p = {.dqpn = REMOTE};

	(void)state;
	memcpy(p.dgid, peer_gid, 16);
	world.answers_next = true;
	world.owner = &client[1].cm.owner;
	assert_int_equal(urn_pair_claim(&client[0], &qp[0][0], &p, &rep), 0);
	assert_true(world.stands);
	urn_pairs_end(&adapter.pairs, &tp);
	ended(0, 0);
}

/* A limited number of a client's QPs may be connected to a remote one; those that have stopped make room. */
static void
too_many(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < URN_PAIR_SAME; k++)
		connects(0, k);
	assert_int_equal(connect_to(0, URN_PAIR_SAME, peer_gid, REMOTE), EDQUOT);
	assert_non_null(strstr(rep.why, "1024 QPs"));
	assert_int_equal(adapter.pairs.n, URN_PAIR_SAME);
	connects(0, 3); /* again, to the same remote QP */
	assert_int_equal(connect_to(0, URN_PAIR_SAME, peer_gid, REMOTE + 1), 0);
	qp[0][3].state = URN_QPS_ERR;
	connects(0, URN_PAIR_SAME);
	assert_int_equal(adapter.pairs.n, URN_PAIR_SAME + 1);
	refused(1, 0);
}

/*
 * The table has a bound, from the engines' numbers of queue pairs. An entry for
 * each, and a second one while it is connected to another remote queue pair. Entries that go make
 * room, and long chains of few buckets lose none.
 */
static void
bounds(void **state)
{
	enum { QPS_EACH = 30, ENGINES = 2, ROOM = 2 * QPS_EACH * ENGINES };

	(void)state;
	urn_pairs_fini(&adapter.pairs);
	memset(&adapter.pairs, 0, sizeof(adapter.pairs));
	assert_int_equal(urn_pairs_init(&adapter.pairs, QPS_EACH, ENGINES), 0);
	for (unsigned int round = 0; round < 4; round++) {
		for (uint32_t k = 0; k < ROOM; k++)
			assert_int_equal(connect_to(0, k, peer_gid, 77 + k), 0);
		assert_int_equal(adapter.pairs.n, ROOM);
		assert_int_equal(connect_to(1, 0, peer_gid, 7), ENOMEM);
		assert_int_equal(connect_to(1, 0, peer_gid, 77), ENOMEM);
		/* QPs leave in another order than they came: from all places of chains. */
		for (uint32_t i = 0; i < ROOM; i++) {
			uint32_t k = (7 * i + round) % ROOM;

			assert_int_equal(adapter.pairs.n, ROOM - i);
			urn_pair_drop(&client[0], &qp[0][k], peer_gid, 78 + k); /* no such entry */
			urn_pair_drop(&client[0], &qp[0][k], peer_gid, 77 + k);
			assert_int_equal(connect_to(1, k, peer_gid, 77 + k), 0); /* free for another client */
			urn_pair_drop(&client[1], &qp[1][k], peer_gid, 77 + k);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_hand, setup, teardown),
		cmocka_unit_test_setup_teardown(again, setup, teardown),
		cmocka_unit_test_setup_teardown(goes, setup, teardown),
		cmocka_unit_test_setup_teardown(squatter, setup, teardown),
		cmocka_unit_test_setup_teardown(was_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(asked_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(held_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(without_cm, setup, teardown),
		cmocka_unit_test_setup_teardown(answer_comes, setup, teardown),
		cmocka_unit_test_setup_teardown(answer_between, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(bounds, setup, teardown),
	};

	return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
