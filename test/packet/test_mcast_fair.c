/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast among clients that don't spare each other: a datagram looks at a bounded number of
 * places however many queue pairs are attached, each client has its share of the datagrams of its
 * groups, and of the groups.
 */
#include "mcast_bench.h"

#include "transport/frame.h"
#include "transport/mcast_priv.h"
#include "transport/qp_end.h"
#include "transport/service.h"

#include <stdlib.h>

enum { MOST = 4200, THOUSANDS = 4000 };

/* ---- datagrams that queue pairs got */

static uint32_t got[MOST];  /* by slot of the queue pair */
static struct urn_qp *ends; /* goes to the error state when another gets a datagram; or NULL */

static uint32_t
had(const struct urn_qp *qp)
{
	return got[qp->qpn & ((1u << URN_TP_ENGINE_SHIFT) - 1)];
}

static uint32_t
crowd_had(const struct mcast_crowd *c)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < c->n; i++)
		n += had(c->qp[i]);
	return n;
}

static void
count(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	assert_true(qp->state >= URN_QPS_RTR && qp->state != URN_QPS_ERR);
	got[qp->qpn & ((1u << URN_TP_ENGINE_SHIFT) - 1)]++;
	urn_tp_drop(tp, m, URN_C_DROP_UD_NO_RECV);
	if (ends)
		urn_qp_error(tp, ends);
}

static struct urn_service counting; /* UD, but for accept() */

static void
open_probe(struct probe *p)
{
	memset(got, 0, sizeof(got));
	ends = NULL;
	counting = urn_ud;
	counting.accept = count;
	probe_open(p, &(struct probe_config){.type = URN_QPT_UD, .qps = 2, .max_qp = MOST - 2});
	p->tp->service[URN_QPT_UD] = &counting;
}

/* Let the next turn have no copies. */
static void
no_copies(struct probe *p)
{
	p->tp->mcast->turn = p->tp->turn + 1;
	p->tp->mcast->copies = URN_MCAST_COPIES;
}

/* Give n datagrams of a group, each in a turn of its own, with copies or without. */
static void
each(struct probe *p, unsigned int n, const struct frame_addr *group, bool copies)
{
	struct frame f = mcast_datagram();

	while (n--) {
		uint64_t looks = p->tp->c.v[URN_C_MCAST_LOOKS];

		if (!copies)
			no_copies(p);
		mcast_put(p, &f, group);
		probe_turn(p, 1000);
		looks = p->tp->c.v[URN_C_MCAST_LOOKS] - looks;
		assert_in_range(looks, 0, copies ? URN_MCAST_LOOKS : 2);
	}
}

/* ---- shares of datagrams */

/*
 * Bursts to a group in which a client has thousands of queue pairs: a turn makes no more copies and
 * looks than it may, and another client with one queue pair there gets at least half of its
 * datagrams; one in another group all.
 */
static void
thousands(void **state)
{
	struct frame_addr crowded = mcast_group(false, 7), quiet = mcast_group(false, 8);
	struct frame f = mcast_datagram();
	struct mcast_crowd c;
	struct probe p;

	(void)state;
	open_probe(&p);
	crowd_open(&p, &c, THOUSANDS, &crowded);
	mcast_attach(&p, p.q[0].qp, &crowded);
	mcast_attach(&p, p.q[1].qp, &quiet);
	for (unsigned int turn = 0; turn < 8; turn++) {
		uint64_t copies = p.tp->c.v[URN_C_MCAST_COPIES],
			 looks = p.tp->c.v[URN_C_MCAST_LOOKS];
		uint32_t one = had(p.q[0].qp), other = had(p.q[1].qp);

		for (unsigned int i = 0; i < URN_TP_BURST; i++)
			mcast_put(&p, &f, i % 8 ? &crowded : &quiet);
		probe_turn(&p, 1000);
		copies = p.tp->c.v[URN_C_MCAST_COPIES] - copies;
		looks = p.tp->c.v[URN_C_MCAST_LOOKS] - looks;
		assert_in_range(copies, URN_MCAST_COPIES / 2, URN_MCAST_COPIES);
		assert_in_range(looks, URN_TP_BURST, URN_TP_BURST * 4 + URN_MCAST_COPIES);
		assert_in_range(had(p.q[0].qp) - one, URN_TP_BURST * 7 / 8 / 2, URN_TP_BURST);
		assert_int_equal(had(p.q[1].qp) - other, URN_TP_BURST / 8);
		assert_in_range(c.share.mcast.copies, 1, URN_MCAST_COPIES / 2);
	}
	assert_true(p.tp->c.v[URN_C_DROP_MCAST_COPY] > 0);
	crowd_close(&p, &c);
	/* The client is gone: the other one gets everything, at one look each. */
	each(&p, 3, &crowded, false);
	probe_close(&p);
}

/* One datagram a turn: the single queue pair gets each; the thousands get theirs in turn. */
static void
slow(void **state)
{
	struct frame_addr g = mcast_group(false, 7);
	uint32_t most;
	struct mcast_crowd c;
	struct probe p;

	(void)state;
	open_probe(&p);
	crowd_open(&p, &c, THOUSANDS, &g);
	mcast_attach(&p, p.q[0].qp, &g);
	each(&p, 300, &g, true);
	assert_int_equal(had(p.q[0].qp), 300);
	most = crowd_had(&c) / THOUSANDS + 1;
	assert_in_range(most, 3, 300);
	for (unsigned int i = 0; i < THOUSANDS; i++)
		assert_in_range(had(c.qp[i]), most - 1, most);
	expect_count(&p, DROP_MCAST_COPY, 300 * (THOUSANDS + 1) - 300 - crowd_had(&c));
	crowd_close(&p, &c);
	probe_close(&p);
}

/* Without a copy each client gets one datagram in turn, and each of its queue pairs one of those.
 */
static void
in_turn(void **state)
{
	static const unsigned int size[] = {1, 3, 40, 1};
	struct frame_addr g = mcast_group(true, 7);
	struct mcast_crowd c[4];
	struct probe p;

	(void)state;
	open_probe(&p);
	for (unsigned int i = 0; i < 4; i++)
		crowd_open(&p, &c[i], size[i], &g);
	for (unsigned int n = 1; n <= 3; n++) {
		each(&p, 4, &g, false);
		for (unsigned int i = 0; i < 4; i++)
			assert_int_equal(crowd_had(&c[i]), n);
	}
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(had(c[1].qp[i]), 1);
	for (unsigned int i = 0; i < 4; i++)
		crowd_close(&p, &c[i]);
	probe_close(&p);
}

/* A hundred clients with one queue pair each: more than a turn has copies for. All get as many. */
static void
hundred(void **state)
{
	enum { CLIENTS = 100, TURNS = 25 };
	struct frame_addr g = mcast_group(false, 7);
	struct frame f = mcast_datagram();
	static struct mcast_crowd c[CLIENTS];
	uint32_t least = UINT32_MAX, most = 0;
	struct probe p;

	(void)state;
	open_probe(&p);
	for (unsigned int i = 0; i < CLIENTS; i++)
		crowd_open(&p, &c[i], 1, &g);
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		uint64_t looks = p.tp->c.v[URN_C_MCAST_LOOKS];

		for (unsigned int i = 0; i < URN_TP_BURST; i++)
			mcast_put(&p, &f, &g);
		probe_turn(&p, 1000);
		looks = p.tp->c.v[URN_C_MCAST_LOOKS] - looks;
		assert_in_range(looks, URN_TP_BURST,
				URN_TP_BURST * (2 + URN_MCAST_PASSES) + URN_MCAST_COPIES);
	}
	for (unsigned int i = 0; i < CLIENTS; i++) {
		least = RTE_MIN(least, crowd_had(&c[i]));
		most = RTE_MAX(most, crowd_had(&c[i]));
		crowd_close(&p, &c[i]);
	}
	assert_in_range(least, TURNS * URN_TP_BURST * 2 / CLIENTS, TURNS * URN_TP_BURST);
	assert_in_range(most - least, 0, least / 4);
	probe_close(&p);
}

/* Clients that have had their copies of the turn are passed over, some and no more, and keep their
 * turns. */
static void
hoarders(void **state)
{
	enum { CLIENTS = 60 };
	struct frame_addr g = mcast_group(false, 7);
	struct frame f = mcast_datagram();
	static struct mcast_crowd c[CLIENTS];
	struct probe p;

	(void)state;
	open_probe(&p);
	for (unsigned int i = 0; i < CLIENTS; i++)
		crowd_open(&p, &c[i], 1, &g);
	for (unsigned int n = 0; n < CLIENTS; n++) {
		uint64_t looks = p.tp->c.v[URN_C_MCAST_LOOKS];

		for (unsigned int i = 0; i < CLIENTS; i++) {
			c[i].share.mcast.turn = p.tp->turn + 1;
			c[i].share.mcast.copies = URN_MCAST_COPIES;
		}
		mcast_put(&p, &f, &g);
		probe_turn(&p, 1000);
		assert_int_equal(p.tp->c.v[URN_C_MCAST_LOOKS] - looks, 1 + URN_MCAST_PASSES);
	}
	for (unsigned int i = 0; i < CLIENTS; i++) {
		assert_int_equal(crowd_had(&c[i]), 1);
		crowd_close(&p, &c[i]);
	}
	probe_close(&p);
}

/* ---- changes on the way round */

/* A queue pair that leaves, or is in error or reset, is passed over at no cost; back in RTR it has
 * its turn. */
static void
changes(void **state)
{
	struct frame_addr g = mcast_group(false, 7);
	struct mcast_crowd c;
	struct probe p;
	uint32_t before;

	(void)state;
	open_probe(&p);
	crowd_open(&p, &c, 6, &g);
	mcast_attach(&p, p.q[0].qp, &g);
	each(&p, 5, &g, false);
	crowd_state(&p, c.qp[0], URN_QPS_ERR);
	crowd_state(&p, c.qp[2], URN_QPS_RESET);
	mcast_detach(&p, c.qp[4], &g);
	before = crowd_had(&c);
	memset(got, 0, sizeof(got));
	each(&p, 6 * 2, &g, false);
	assert_true(before > 0);
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(had(c.qp[i]), i % 2 ? 2 : 0);
	assert_int_equal(had(p.q[0].qp), 6);
	/* Each is back, by its way. */
	crowd_state(&p, c.qp[0], URN_QPS_RESET);
	crowd_up(&p, c.qp[0]);
	crowd_up(&p, c.qp[2]);
	mcast_attach(&p, c.qp[4], &g);
	each(&p, 12 * 2, &g, false);
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(had(c.qp[i]), i % 2 ? 4 : 2);
	assert_int_equal(had(p.q[0].qp), 18);
	/* All of them in error: they cost no look, and the other client gets all. */
	for (unsigned int i = 0; i < 6; i++)
		crowd_state(&p, c.qp[i], URN_QPS_ERR);
	each(&p, 5, &g, false);
	assert_int_equal(had(p.q[0].qp), 23);
	crowd_close(&p, &c);
	probe_close(&p);
}

/* A datagram that is given to one queue pair brings another receiver of it to the error state. */
static void
error_meanwhile(void **state)
{
	struct frame_addr g = mcast_group(false, 7);
	struct mcast_crowd c;
	struct probe p;

	(void)state;
	for (unsigned int which = 0; which < 3; which++) {
		open_probe(&p);
		crowd_open(&p, &c, 3, &g);
		mcast_attach(&p, p.q[0].qp, &g);
		ends = c.qp[which];
		each(&p, 1, &g, true);
		expect_count(&p, DROP_QP_STATE, crowd_had(&c) == 2);
		each(&p, 2, &g, true);
		assert_int_equal(had(p.q[0].qp), 3);
		assert_in_range(crowd_had(&c), 2 * 3, 2 * 3 + 1);
		crowd_close(&p, &c);
		probe_close(&p);
	}
}

/* The sender does not get its datagram, whatever its place; alone in its place it keeps its turn.
 */
static void
senders(void **state)
{
	struct frame_addr g = mcast_group(false, 7), peer;
	struct frame f = mcast_datagram();
	struct mcast_crowd many, one;
	struct probe p;

	(void)state;
	open_probe(&p);
	crowd_open(&p, &many, 3, &g);
	crowd_open(&p, &one, 1, &g);
	peer = p.peer;
	for (unsigned int i = 0; i < 12; i++) {
		const struct urn_qp *from = i % 4 == 3 ? one.qp[0] : many.qp[i % 4];

		f.sqpn = from->qpn;
		p.peer = p.node;
		mcast_put(&p, &f, &g);
		p.peer = peer;
		urn_tp_turn(p.tp, p.now);
		urn_tp_rx(p.tp, p.in, p.in_n, true);
		p.in_n = 0;
		assert_int_equal(had(one.qp[0]), i + 1 - (i + 1) / 4);
	}
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(had(many.qp[i]), 9);
	expect_count(&p, DROP_MCAST_COPY, 0);
	crowd_close(&p, &many);
	p.peer = p.node;
	mcast_put(&p, &f, &g);
	p.peer = peer;
	urn_tp_rx(p.tp, p.in, p.in_n, true);
	p.in_n = 0;
	expect_count(&p, DROP_MCAST_GROUP, 1);
	crowd_close(&p, &one);
	probe_close(&p);
}

/* Other engines have places like clients: without a copy each gets the datagram in turn. */
static void
engines(void **state)
{
	struct frame_addr g = mcast_group(false, 7);
	struct frame f = mcast_datagram();
	unsigned int to[URN_ABI_MAX_ENGINES] = {0};
	struct mcast_crowd c;
	struct probe p;

	(void)state;
	open_probe(&p);
	crowd_open(&p, &c, THOUSANDS, &g);
	mcast_attach(&p, p.q[0].qp, &g);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, true), 0);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 5, true), 0);
	for (unsigned int i = 0; i < 4 * 5; i++) {
		no_copies(&p);
		mcast_put(&p, &f, &g);
		urn_tp_turn(p.tp, p.now);
		urn_tp_rx(p.tp, p.in, p.in_n, false);
		p.in_n = 0;
		if (p.tp->handover_n) {
			assert_int_equal(p.tp->handover_n, 1);
			to[urn_qpn_engine(urn_pkt(p.tp->handover[0])->dqpn)]++;
			rte_pktmbuf_free(p.tp->handover[0]);
			p.tp->handover_n = 0;
		}
	}
	assert_int_equal(to[3], 5);
	assert_int_equal(to[5], 5);
	assert_int_equal(crowd_had(&c), 5);
	assert_int_equal(had(p.q[0].qp), 5);
	crowd_close(&p, &c);
	probe_close(&p);
}

/* ---- shares of groups and attachments */

/* Attach a queue pair, as a client's, to groups from *next on, until the client may have no more.
 */
static void
take_groups(struct probe *p, struct urn_tp_share *share, unsigned int *next)
{
	struct frame_addr g = mcast_group(true, 0);
	bool first;

	p->qp->share = share;
	for (;; ++*next) {
		g.gid[14] = (uint8_t)(*next >> 8);
		g.gid[15] = (uint8_t)*next;
		if (urn_mcast_attach(p->tp, p->qp, g.gid, &first) != 0)
			return;
	}
}

/* Clients take as many groups as they are given, one after another; each later one still gets some.
 */
static void
groups(void **state)
{
	enum { CLIENTS = 20 };
	struct urn_tp_share share[CLIENTS] = {0};
	unsigned int next = 0;
	struct probe p;

	(void)state;
	open_probe(&p);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		/* The queue pair is another client's each time; those of before stay attached. */
		take_groups(&p, &share[i], &next);
		assert_in_range(share[i].mcast.groups, 1, URN_MCAST_CLIENT);
	}
	assert_in_range(next, URN_MCAST_GROUPS * 7 / 8, URN_MCAST_GROUPS);
	urn_mcast_detach_all(p.tp, p.qp);
	for (unsigned int i = 0; i < CLIENTS; i++)
		assert_int_equal(share[i].mcast.groups, 0);
	p.qp->share = &p.tp->nobodys;
	probe_close(&p);
}

/* A user with many clients leaves 2 of 17 groups, of which another user's client has some. */
static void
groups_of_user(void **state)
{
	enum { CLIENTS = 20, LEAST = URN_MCAST_GROUPS * 2 / 17 };
	struct urn_tp_share share[CLIENTS] = {0}, other = {0};
	struct urn_tp_user user = {0};
	unsigned int next = 0;
	struct probe p;

	(void)state;
	open_probe(&p);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		share[i].user = &user;
		take_groups(&p, &share[i], &next);
	}
	assert_int_equal(user.groups, next);
	assert_int_equal(user.members, next);
	assert_in_range(next, URN_MCAST_GROUPS / 2, URN_MCAST_GROUPS - LEAST);
	take_groups(&p, &other, &next);
	assert_in_range(other.mcast.groups, LEAST / 8, URN_MCAST_CLIENT);
	urn_mcast_detach_all(p.tp, p.qp);
	assert_int_equal(user.groups, 0);
	assert_int_equal(user.members, 0);
	p.qp->share = &p.tp->nobodys;
	probe_close(&p);
}

/* Attach queue pairs of a new client to a group until it may have no more. user: its user, or NULL.
 * returns: how many are attached */
static unsigned int
take_attachments(struct probe *p, struct mcast_crowd *c, const uint8_t gid[16],
		 struct urn_tp_user *user)
{
	bool first;

	memset(c, 0, sizeof(*c));
	c->share.user = user;
	c->qp = calloc(URN_MCAST_CLIENT + 1, sizeof(c->qp[0]));
	c->sq = bare_wq(4, urn_abi_sq_stride(1, 0));
	c->rq = bare_wq(4, urn_abi_rq_stride(1));
	assert_true(c->qp && c->sq && c->rq);
	do {
		c->qp[c->n] = crowd_qp(p, c);
	} while (urn_mcast_attach(p->tp, c->qp[c->n++], gid, &first) == 0);
	assert_int_equal(c->share.mcast.members, c->n - 1);
	return c->n - 1;
}

/* The same for attachments to one group: many clients with all they may have leave some. */
static void
attachments(void **state)
{
	enum { CLIENTS = 60 };
	struct frame_addr g = mcast_group(true, 0);
	static struct mcast_crowd c[CLIENTS];
	unsigned int total = 0;
	struct probe p;

	(void)state;
	open_probe(&p);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		total += take_attachments(&p, &c[i], g.gid, NULL);
		assert_in_range(c[i].share.mcast.members, 1, URN_MCAST_CLIENT);
		assert_int_equal(c[i].share.mcast.groups, 1);
	}
	assert_in_range(total, URN_MCAST_MEMBERS * 7 / 8, URN_MCAST_MEMBERS);
	for (unsigned int i = 0; i < CLIENTS; i++)
		crowd_close(&p, &c[i]);
	probe_close(&p);
}

/* The same for attachments to one group. */
static void
attachments_of_user(void **state)
{
	enum { CLIENTS = 40, LEAST = URN_MCAST_MEMBERS * 2 / 17 };
	struct frame_addr g = mcast_group(true, 0);
	static struct mcast_crowd c[CLIENTS], other;
	struct urn_tp_user user = {0};
	unsigned int total = 0;
	struct probe p;

	(void)state;
	open_probe(&p);
	for (unsigned int i = 0; i < CLIENTS; i++)
		total += take_attachments(&p, &c[i], g.gid, &user);
	assert_int_equal(user.members, total);
	assert_in_range(total, URN_MCAST_MEMBERS / 2, URN_MCAST_MEMBERS - LEAST);
	assert_in_range(take_attachments(&p, &other, g.gid, NULL), LEAST / 8, URN_MCAST_CLIENT);
	crowd_close(&p, &other);
	for (unsigned int i = 0; i < CLIENTS; i++)
		crowd_close(&p, &c[i]);
	assert_int_equal(user.members, 0);
	assert_int_equal(user.groups, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thousands),
		cmocka_unit_test(slow),
		cmocka_unit_test(in_turn),
		cmocka_unit_test(hundred),
		cmocka_unit_test(hoarders),
		cmocka_unit_test(changes),
		cmocka_unit_test(error_meanwhile),
		cmocka_unit_test(senders),
		cmocka_unit_test(engines),
		cmocka_unit_test(groups),
		cmocka_unit_test(groups_of_user),
		cmocka_unit_test(attachments),
		cmocka_unit_test(attachments_of_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
