/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users share an engine: a user with any number of clients and busy queue pairs leaves another one
 * its frames, its bytes, and some of each pool (doc/inside/fairness.md). Counts are of frames, not
 * of time.
 */
#include "bare.h"
#include "probe.h"
#include "transport/ack.h"
#include "transport/congestion.h"
#include "transport/part.h"
#include "transport/requester.h"
#include "transport/sched.h"

#include <stdlib.h>

enum {
	CLIENTS = 100, /* clients of the greedy user */
	MOST = 5000,   /* queue pairs of a test */
	WINDOW = 256,  /* frames that a queue pair sends without an answer */
	FRAMES = 16,   /* frames of a turn */
	BIG = 4096,    /* bytes of a long frame's payload */
	SMALL = 64,
	HEAD = 64,	 /* bytes of headers from the BTH on, at most */
	IP_BTH = 42,	 /* offset of the BTH in a frame of IPv4 */
	GREEDY = 0x8000, /* number of the peers of the greedy user's queue pairs */
	MODEST,		 /* ... and of those of the other one */
};

/* Two users; the first one is greedy. */
struct crowd {
	struct probe p;
	struct urn_tp_user user[2];
	struct urn_tp_share client[CLIENTS], modest;
	struct urn_qp *qp[MOST];
	unsigned int n;
	uint32_t frames[2]; /* sent by either user */
	uint64_t bytes[2];
};

static struct crowd crowd;

static struct crowd *
open_crowd(const struct probe_config *cfg)
{
	struct crowd *c = &crowd;

	memset(c, 0, sizeof(*c));
	probe_open(&c->p, cfg);
	for (unsigned int i = 0; i < CLIENTS; i++)
		c->client[i].user = &c->user[0];
	c->modest.user = &c->user[1];
	probe_settle(&c->p);
	return c;
}

static void
close_crowd(struct crowd *c)
{
	for (unsigned int i = 0; i < c->n; i++) {
		assert_true(bare_qp_stop(c->p.tp, c->qp[i]));
		urn_qp_destroy(c->p.tp, c->qp[i]);
	}
	for (unsigned int i = 0; i < 2; i++) {
		const struct urn_tp_user *u = &c->user[i];

		assert_int_equal(u->work + u->ext + u->recv + u->held + u->repairs + u->states, 0);
		assert_null(u->head);
	}
	probe_close(&c->p);
}

/* Make a queue pair of a client, with the queues of the probe's present one. */
static struct urn_qp *
make(struct crowd *c, struct urn_tp_share *share)
{
	struct urn_abi_qp_attr like;
	struct urn_qp *qp;

	probe_attributes(&c->p, &like);
	like.dest_qpn = share == &c->modest ? MODEST : GREEDY;
	qp = probe_another(&c->p, c->p.tp, &like);
	urn_sched_remove(&c->p.tp->sched, &qp->source); /* connecting put it into nobody's round */
	qp->share = share;
	c->qp[c->n++] = qp;
	return qp;
}

/* Post as many requests as fill a window; every queue pair that is made with this queue has them.
 */
static void
fill(struct crowd *c, uint32_t len)
{
	for (unsigned int i = 0; i < WINDOW + FRAMES; i++)
		probe_prepare(&c->p, URN_WR_RDMA_WRITE, 0, 0, len, 0, i);
}

static void
count(struct crowd *c)
{
	struct urn_tp *tp = c->p.tp;

	for (unsigned int i = 0; i < tp->tx_n; i++) {
		const uint8_t *bth = rte_pktmbuf_mtod_offset(tp->tx[i], const uint8_t *, IP_BTH);
		uint32_t qpn = (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];

		assert_in_range(qpn, GREEDY, MODEST);
		/* The race is over once the modest user has sent all, in the middle of a turn. */
		if (c->frames[1] < WINDOW) {
			c->frames[qpn - GREEDY]++;
			c->bytes[qpn - GREEDY] += tp->tx[i]->pkt_len;
		}
		rte_pktmbuf_free(tp->tx[i]);
	}
	tp->tx_n = 0;
}

/* Let an engine have so many turns. */
static void
turns(struct crowd *c, unsigned int n)
{
	while (n--) {
		urn_tp_turn(c->p.tp, c->p.now);
		(void)urn_tp_tx(c->p.tp);
		count(c);
	}
}

/* Ring all doorbells, and let the engine go on until the modest user has sent its window. */
static void
race(struct crowd *c)
{
	for (unsigned int i = 0; i < c->n; i++)
		urn_tp_doorbell(c->p.tp, c->qp[i]);
	for (unsigned int i = 0; i < 1000 && c->frames[1] < WINDOW; i++)
		turns(c, 1);
	assert_int_equal(c->frames[1], WINDOW);
	print_message("%u frames and %u of the other, %u and %u KiB\n", c->frames[1], c->frames[0],
		      (unsigned int)(c->bytes[1] >> 10), (unsigned int)(c->bytes[0] >> 10));
}

/* The other user has two fifths of the frames at least: a half, but for the last burst. */
static void
assert_frames(const struct crowd *c)
{
	assert_true(c->frames[1] * 5 >= (c->frames[0] + c->frames[1]) * 2);
}

/* A turn of a queue pair has 16 frames, and one of the engine a turn of each. */
static void
a_turn(void **state)
{
	struct crowd *c = open_crowd(&(struct probe_config){.max_qp = MOST, .window = WINDOW});

	(void)state;
	fill(c, SMALL);
	urn_tp_doorbell(c->p.tp, make(c, &c->client[0]));
	urn_tp_doorbell(c->p.tp, make(c, &c->modest));
	for (uint32_t i = 1; i <= 3; i++) {
		turns(c, 1);
		assert_int_equal(c->frames[0], i * FRAMES);
		assert_int_equal(c->frames[1], i * FRAMES);
	}
	close_crowd(c);
}

/* 100 clients of a user, each with 8 busy queue pairs, and one queue pair of another user. */
static void
many_clients(void **state)
{
	struct crowd *c =
		open_crowd(&(struct probe_config){.max_qp = MOST, .window = WINDOW, .work = 65536});

	(void)state;
	fill(c, SMALL);
	for (unsigned int i = 0; i < CLIENTS * 8; i++)
		make(c, &c->client[i % CLIENTS]);
	make(c, &c->modest);
	race(c);
	assert_frames(c);
	close_crowd(c);
}

/* 4,096 busy queue pairs of one client, and one of another. */
static void
many_queue_pairs(void **state)
{
	struct crowd *c =
		open_crowd(&(struct probe_config){.max_qp = MOST, .window = WINDOW, .work = 65536});

	(void)state;
	fill(c, SMALL);
	for (unsigned int i = 0; i < 4096; i++)
		make(c, &c->client[0]);
	make(c, &c->modest);
	race(c);
	assert_frames(c);
	close_crowd(c);
}

/* The same within a user: clients that do not trust each other have equal turns, too. */
static void
clients_of_a_user(void **state)
{
	struct crowd *c =
		open_crowd(&(struct probe_config){.max_qp = MOST, .window = WINDOW, .work = 65536});

	(void)state;
	c->modest.user = &c->user[0];
	fill(c, SMALL);
	for (unsigned int i = 0; i < 4096; i++)
		make(c, &c->client[0]);
	make(c, &c->modest);
	race(c);
	assert_frames(c);
	close_crowd(c);
}

/* Frames of 4 KiB against frames of 64 bytes. users: number of users; the other frames have as many
 * turns as theirs have URN_TURN_BYTES. */
static void
big_frames(unsigned int users)
{
	struct crowd *c = open_crowd(&(struct probe_config){
		.max_qp = 64, .window = WINDOW, .work = 65536, .mtu = BIG, .qps = 2});
	uint64_t turn = FRAMES * (BIG + HEAD), fair;

	c->modest.user = &c->user[users - 1];
	fill(c, BIG);
	for (unsigned int i = 0; i < 8; i++)
		make(c, &c->client[users == 2 ? i : 0]);
	probe_use(&c->p, 1);
	fill(c, SMALL);
	make(c, &c->modest);
	race(c);
	fair = (uint64_t)WINDOW / FRAMES * URN_TURN_BYTES;
	assert_true(c->bytes[0] <= fair + 2 * turn);
	assert_true(c->bytes[0] + 2 * turn >= fair);
	close_crowd(c);
}

static void
bytes_of_users(void **state)
{
	(void)state;
	big_frames(2);
}

static void
bytes_of_clients(void **state)
{
	(void)state;
	big_frames(1);
}

/*
 * Clients of a user that owe thousands of turns give up 48 of them in a turn of the engine, and end
 * it for nobody else: another user sends all it has in the first one. In the end all have had their
 * frames.
 */
static void
few_steps(void **state)
{
	struct crowd *c =
		open_crowd(&(struct probe_config){.max_qp = MOST, .window = WINDOW, .work = 65536});
	uint64_t owed = 0, left;

	(void)state;
	fill(c, SMALL);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		urn_tp_doorbell(c->p.tp, make(c, &c->client[i]));
		c->client[i].debt = 8 * URN_TURN_BYTES;
		owed += c->client[i].debt;
	}
	urn_tp_doorbell(c->p.tp, make(c, &c->modest));
	for (unsigned int n = 1; n <= 10; n++) {
		turns(c, 1);
		left = 0;
		for (unsigned int i = 0; i < CLIENTS; i++)
			left += c->client[i].debt;
		assert_int_equal(left, owed - n * 48ull * URN_TURN_BYTES);
		assert_int_equal(c->frames[1], RTE_MIN(n, 1u) * WINDOW);
		assert_int_equal(c->user[0].work, 0);
	}
	assert_int_equal(urn_tp_tx(c->p.tp), 48); /* an engine that gives up turns is not idle */
	for (unsigned int i = 0; i < 500; i++)
		turns(c, 1);
	assert_int_equal(c->frames[1], WINDOW);
	for (unsigned int i = 0; i < c->n; i++)
		assert_int_equal(urn_psn_tx_out(&c->qp[i]->tx), WINDOW);
	close_crowd(c);
}

/* ---- parts of turns */

/* The modest user posts one WRITE, and the engine has a turn. returns: frames of the greedy one in
 * it */
static uint32_t
beside_one(struct crowd *c, struct urn_qp *modest)
{
	uint32_t greedy = c->frames[0], own = c->frames[1];

	probe_prepare(&c->p, URN_WR_RDMA_WRITE, 0, 0, SMALL, 0, own);
	urn_tp_doorbell(c->p.tp, modest);
	turns(c, 1);
	assert_int_equal(c->frames[1], own + 1);
	return c->frames[0] - greedy;
}

/* Beside a user that waits for each of its requests a turn has 4 KiB of another one, or a few short
 * frames. len: bytes of its requests; frames: those of it in such a turn */
static void
part_of(uint32_t len, uint32_t frames)
{
	struct crowd *c = open_crowd(&(struct probe_config){
		.max_qp = 64, .window = WINDOW, .work = 65536, .mtu = BIG, .qps = 2});
	struct urn_qp *modest;
	uint32_t before;

	fill(c, len);
	for (unsigned int i = 0; i < 16; i++)
		make(c, &c->client[i]);
	probe_use(&c->p, 1);
	modest = make(c, &c->modest);
	turns(c, URN_PART_TURNS + 1); /* it had no long turn for so long */
	assert_int_equal(beside_one(c, modest), 0);
	for (unsigned int i = 0; i < 16; i++)
		urn_tp_doorbell(c->p.tp, c->qp[i]);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(beside_one(c, modest), frames);
	/* Alone again, the greedy user has whole turns. */
	before = c->frames[0];
	turns(c, URN_PART_TURNS);
	assert_int_equal(c->frames[0], before + URN_PART_TURNS * frames);
	before = c->frames[0];
	turns(c, 1);
	assert_in_range(c->frames[0], before + FRAMES, before + 16 * FRAMES);
	close_crowd(c);
}

static void
part_of_long_frames(void **state)
{
	(void)state;
	part_of(BIG, 1);
}

static void
part_of_short_frames(void **state)
{
	(void)state;
	part_of(SMALL, URN_PART_BYTES / URN_PART_FRAME);
}

/* A share without a user cuts nobody's turns: the engine's own answers have such shares. */
static void
part_of_nobody(void **state)
{
	struct crowd *c = open_crowd(&(struct probe_config){
		.max_qp = 64, .window = WINDOW, .work = 65536, .mtu = BIG, .qps = 2});
	struct urn_qp *other;

	(void)state;
	fill(c, BIG);
	make(c, &c->client[0]);
	c->modest.user = NULL;
	probe_use(&c->p, 1);
	other = make(c, &c->modest);
	turns(c, URN_PART_TURNS + 1);
	assert_int_equal(beside_one(c, other), 0);
	urn_tp_doorbell(c->p.tp, c->qp[0]);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(beside_one(c, other), FRAMES);
	close_crowd(c);
}

/* A user that waited for each of its requests has much to send now: both have whole turns at once.
 */
static void
whole_turns(void **state)
{
	struct crowd *c =
		open_crowd(&(struct probe_config){.max_qp = MOST, .window = WINDOW, .qps = 2});
	struct urn_qp *modest;

	(void)state;
	fill(c, SMALL);
	make(c, &c->client[0]);
	probe_use(&c->p, 1);
	modest = make(c, &c->modest);
	turns(c, URN_PART_TURNS + 1);
	assert_int_equal(beside_one(c, modest), 0);
	fill(c, SMALL);
	urn_tp_doorbell(c->p.tp, modest);
	urn_tp_doorbell(c->p.tp, c->qp[0]);
	for (uint32_t i = 1; i <= 3; i++) {
		turns(c, 1);
		assert_int_equal(c->frames[1], 1 + i * FRAMES);
		assert_int_equal(c->frames[0], i * FRAMES);
	}
	close_crowd(c);
}

/* A peer's WRITEs come, and the engine has other work. returns: turns until their acknowledgement
 */
static unsigned int
turns_to_ack(struct probe *p, uint32_t first, uint32_t number)
{
	unsigned int n = 0, seen = p->seen_n;

	p->tp->quiet = false;
	for (uint32_t i = 0; i < number; i++)
		probe_write(p, WRITE_ONLY, RQ(first + i), 0, 8, 8, 1);
	while (p->seen_n == seen && n < 20) {
		probe_turn(p, 0);
		n++;
	}
	return n;
}

/* Beside others the acknowledgement of a single packet does not wait to be merged, if its user has
 * short turns; one of several packets does. */
static void
acknowledgements(void **state)
{
	struct crowd *c = open_crowd(&(struct probe_config){.max_qp = 64});
	struct urn_tp_share *was = c->p.qp->share;
	struct urn_sched *s = &c->p.tp->sched;
	unsigned int merged;

	(void)state;
	c->p.qp->share = &c->modest;
	merged = turns_to_ack(&c->p, 0, 1);
	urn_part_short(s, &c->user[0]);
	urn_part_short(s, &c->user[1]);
	assert_int_equal(turns_to_ack(&c->p, 1, 1), merged - (URN_ACK_TURNS - 1));
	assert_int_equal(turns_to_ack(&c->p, 2, 2), merged);
	c->p.qp->share = was;
	c->p.looked = c->p.seen_n;
	close_crowd(c);
}

/* ---- pools */

/* Requests in flight: clients of one user, whose peers are silent, leave some to another user. */
static void
requests_in_flight(void **state)
{
	struct crowd *c =
		open_crowd(&(struct probe_config){.max_qp = MOST, .window = WINDOW, .work = 1024});

	(void)state;
	fill(c, SMALL);
	for (unsigned int i = 0; i < CLIENTS; i++)
		urn_tp_doorbell(c->p.tp, make(c, &c->client[i]));
	turns(c, 50);
	assert_in_range(c->user[0].work, 1024 * 2 / 3, 1024 * 15 / 17 + 1);
	urn_tp_doorbell(c->p.tp, make(c, &c->modest));
	turns(c, 50);
	assert_true(c->user[1].work >= 8);
	close_crowd(c);
}

/* Packets ahead of their turn: clients of one user that keep all they can leave places. */
static void
kept_packets(void **state)
{
	enum { ALL = 100, QPS = PROBE_QPS };
	struct crowd *c = open_crowd(&(struct probe_config){.kept = ALL, .qps = QPS});
	struct urn_tp_share *was[QPS];
	struct probe *p = &c->p;

	(void)state;
	for (unsigned int q = 0; q < QPS; q++) {
		was[q] = p->q[q].qp->share;
		p->q[q].qp->share = q ? &c->client[q] : &c->modest;
	}
	for (unsigned int q = 1; q < QPS; q++) {
		probe_use(p, q);
		for (uint32_t i = 1; i <= ALL; i++) {
			probe_write(p, WRITE_ONLY, RQ(i), 0, 8, 8, 1);
			probe_turn(p, 0);
		}
	}
	/* If only clients counted, these three would keep 89. */
	assert_in_range(c->user[0].held, ALL * 2 / 3, ALL * 15 / 17);
	assert_true(c->client[QPS - 1].held > 0);
	probe_use(p, 0);
	for (uint32_t i = 1; i <= 3; i++)
		probe_write(p, WRITE_ONLY, RQ(i), 0, 8, 8, 1);
	probe_settle(p);
	assert_in_range(c->user[1].held, 1, 3);
	assert_int_equal(p->tp->kept, c->user[0].held + c->user[1].held);
	for (unsigned int q = 0; q < QPS; q++) {
		probe_use(p, q);
		probe_write(p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
		probe_settle(p);
		p->q[q].qp->share = was[q];
	}
	assert_int_equal(p->tp->kept, 0);
	p->looked = p->seen_n;
	close_crowd(c);
}

/* States of queue pairs that repair losses. */
static void
repairs(void **state)
{
	enum { ALL = 64 /* the probe's */ };
	struct crowd *c = open_crowd(&(struct probe_config){.max_qp = MOST});

	(void)state;
	for (unsigned int i = 0; i < 2 * ALL; i++)
		(void)urn_repair_get(c->p.tp, make(c, &c->client[i % CLIENTS]));
	assert_in_range(c->user[0].repairs, ALL * 2 / 3, ALL * 15 / 17 + 1);
	expect_count(&c->p, NO_REPAIR, 2 * ALL - c->user[0].repairs);
	assert_non_null(urn_repair_get(c->p.tp, make(c, &c->modest)));
	assert_int_equal(c->user[1].repairs, 1);
	close_crowd(c);
}

/* States of congestion. */
static void
congestion(void **state)
{
	struct crowd *c = open_crowd(&(struct probe_config){.max_qp = MOST, .line = 1000000000});

	(void)state;
	for (unsigned int i = 0; i < 2 * URN_CONGESTIONS; i++)
		urn_congestion_marked(c->p.tp, make(c, &c->client[i % CLIENTS]));
	assert_in_range(c->user[0].states, URN_CONGESTIONS * 2 / 3, URN_CONGESTIONS * 15 / 17 + 1);
	expect_count(&c->p, NO_CONGESTION, 2 * URN_CONGESTIONS - c->user[0].states);
	urn_congestion_marked(c->p.tp, make(c, &c->modest));
	assert_int_equal(c->user[1].states, 1);
	close_crowd(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn),
		cmocka_unit_test(many_clients),
		cmocka_unit_test(many_queue_pairs),
		cmocka_unit_test(clients_of_a_user),
		cmocka_unit_test(bytes_of_users),
		cmocka_unit_test(bytes_of_clients),
		cmocka_unit_test(few_steps),
		cmocka_unit_test(part_of_long_frames),
		cmocka_unit_test(part_of_short_frames),
		cmocka_unit_test(part_of_nobody),
		cmocka_unit_test(whole_turns),
		cmocka_unit_test(acknowledgements),
		cmocka_unit_test(requests_in_flight),
		cmocka_unit_test(kept_packets),
		cmocka_unit_test(repairs),
		cmocka_unit_test(congestion),
	};

	return cmocka_run_group_tests_name("users", tests, NULL, NULL);
}
