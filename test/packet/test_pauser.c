/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that pauses one priority nearly always, as far as the watchdog lets it: queue pairs of
 * other priorities do not notice, and nothing is lost (doc/inside/lossless.md "An adapter").
 */
#include "probe.h"

#include "bare.h"
#include "engine/engine.h"
#include "transport/sched.h"

enum {
	PAUSED = 3,	       /* the priority that the peer pauses */
	CLASS = 3 << 5,	       /* traffic class of that priority */
	WIRE = 16,	       /* frames that the wire takes in a turn */
	LEN = 16 * 1024,       /* bytes of a write */
	MOST = 64 + URN_TP_TX, /* frames of a priority that may wait, as sources make them */
};

#define US 1000ull
#define MS 1000000ull
#define TURN (10 * US)
#define WATCHDOG (10 * MS)
#define BPS 10000000000ull

/* A node whose port has a peer that pauses. */
struct port {
	struct probe p;
	struct urn_shard shard;
	struct urn_port port;
	uint64_t sent[PROBE_QPS]; /* frames of data, by queue pair */
	unsigned int most;	  /* most frames that waited */
};

/* Bring a QP, which is in its last state, to that state with a traffic class. */
static void
set_class(struct probe *p, unsigned int q, uint8_t class)
{
	struct urn_abi_qp_attr a;

	probe_use(p, q);
	probe_state(p, URN_QPS_RESET);
	for (unsigned int s = URN_QPS_INIT; s <= URN_QPS_RTS; s++) {
		probe_attributes(p, &a);
		a.state = (uint8_t)s;
		a.av.traffic_class = class;
		assert_int_equal(
			probe_modify(p, bare_qp_mask(p->cfg.type, (uint8_t)s) | URN_QPM_STATE, &a),
			0);
	}
}

static struct port *
port_open(const struct probe_config *c)
{
	static struct urn_shard *sibling[URN_ABI_MAX_ENGINES];
	struct urn_obey_config obey = {.on = true, .watchdog_ns = WATCHDOG, .restore_ns = WATCHDOG};
	struct port *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	urn_classify_preset(&obey.map);
	probe_open(&o->p, c);
	o->shard = (struct urn_shard){.tp = o->p.tp,
				      .sibling = sibling,
				      .port = &o->port,
				      .obey = urn_obey_create(&obey, BPS)};
	assert_non_null(o->shard.obey);
	return o;
}

static void
port_close(struct port *o)
{
	o->p.tp->held = 0;
	urn_obey_destroy(o->shard.obey);
	rte_pktmbuf_free_bulk(o->p.tp->tx, o->p.tp->tx_n);
	o->p.tp->tx_n = 0;
	probe_close(&o->p);
	free(o);
}

/* The peer takes a frame, and acknowledges data at once. */
static void
take(struct port *o, struct rte_mbuf *m)
{
	struct probe *p = &o->p;
	struct frame f, ack;

	assert_null(frame_read(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &p->node,
			       &p->peer, &f));
	rte_pktmbuf_free(m);
	for (unsigned int i = 0; i < PROBE_QPS; i++) {
		if (!p->q[i].qp || (p->cfg.type == URN_QPT_RC && p->q[i].peer_qpn != f.dqpn))
			continue;
		o->sent[i]++;
		if (p->cfg.type != URN_QPT_RC)
			return;
		ack = frame_of(ACK, f.psn);
		ack.syn = SYN_ACK;
		ack.dqpn = p->q[i].qp->qpn;
		if (f.ack)
			probe_put(p, &ack);
	}
}

uint16_t __wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m,
				 uint16_t n);

/* The port takes frames of a turn, as many as the wire. */
uint16_t
__wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct port *o = (struct port *)((uintptr_t)p - offsetof(struct port, port));
	uint16_t taken = RTE_MIN(n, (uint16_t)WIRE);

	assert_int_equal(queue, 0);
	for (uint16_t i = 0; i < taken; i++)
		take(o, m[i]);
	return taken;
}

/* One turn of the engine, whose port takes a few frames. */
static void
turn(struct port *o)
{
	struct probe *p = &o->p;
	struct urn_tp *tp = p->tp;

	p->now += TURN;
	urn_tp_turn(tp, p->now);
	if (p->in_n)
		urn_tp_rx(tp, p->in, p->in_n, false);
	p->in_n = 0;
	urn_tp_tx(tp);
	urn_shard_flush(&o->shard);
	o->most = RTE_MAX(o->most, tp->held);
}

/* Keep a queue pair busy with writes. */
static void
feed(struct port *o, unsigned int q)
{
	struct urn_abi_wq *sq = o->p.q[q].sq;

	probe_use(&o->p, q);
	while (atomic_load(&sq->prod) - atomic_load(&sq->cons) < 32) {
		probe_prepare(&o->p, URN_WR_RDMA_WRITE, 0, 0, LEN, 0, 0);
		probe_ring(&o->p);
	}
}

static void
pause(struct port *o, uint8_t priorities, uint16_t quanta)
{
	struct urn_pfc pfc = {.enable = priorities};

	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++)
		pfc.quanta[i] = quanta;
	urn_shard_obey(&o->shard, &pfc);
}

/*
 * Run with queue pairs busy. The peer pauses for `stop` turns, lets frames go for `gap` turns, and
 * so on. stop 0: never. returns: frames that queue pair 0 has sent
 */
static uint64_t
run(struct port *o, unsigned int turns, unsigned int stop, unsigned int gap)
{
	uint64_t before = o->sent[0];

	for (unsigned int i = 0; i < turns; i++) {
		feed(o, 0);
		feed(o, 1);
		if (stop)
			pause(o, 1u << PAUSED, i % (stop + gap) < stop ? 0xffff : 0);
		turn(o);
	}
	return o->sent[0] - before;
}

#define TURNS(ns) ((unsigned int)((ns) / TURN))

/* Data of another priority goes as fast as without a pauser, or faster: the wire is free. */
static void
others_go_on(void **state)
{
	struct port *o = port_open(&(struct probe_config){.qps = 2, .window = 256, .ipv6 = true});
	uint64_t alone, with, paused;

	(void)state;
	set_class(&o->p, 1, CLASS);
	alone = run(o, TURNS(200 * MS), 0, 0);
	paused = o->sent[1];
	with = run(o, TURNS(200 * MS), TURNS(WATCHDOG) - 10, 4);
	paused = o->sent[1] - paused;
	print_message("%u frames beside an equal, %u and %u of the paused beside a pauser, %u "
		      "waited at most\n",
		      (unsigned int)alone, (unsigned int)with, (unsigned int)paused, o->most);
	assert_true(with >= alone);
	assert_true(with + paused >= TURNS(200 * MS) * (uint64_t)WIRE * 95 / 100);
	assert_true(paused >= 20u * WIRE); /* in each gap */
	assert_true(o->most <= MOST);
	expect_count(&o->p, PFC_STORM, 0);
	expect_count(&o->p, DROP_PAUSED, 0);
	assert_true(o->p.tp->c.v[URN_C_TX_STOPPED] >= 10);
	assert_true(o->p.tp->c.v[URN_C_TX_PAUSED] >= TURNS(190 * MS));
	/* Once the peer lets go, all goes out, in order and once: nothing was to be repeated. */
	pause(o, 1u << PAUSED, 0);
	for (unsigned int i = 0; i < TURNS(20 * MS); i++)
		turn(o);
	for (unsigned int q = 0; q < 2; q++)
		assert_int_equal(atomic_load(&o->p.q[q].sq->prod),
				 atomic_load(&o->p.q[q].sq->cons));
	assert_false(urn_tp_busy(o->p.tp));
	expect_count(&o->p, RETRANSMITS, 0);
	port_close(o);
}

/* A peer that pauses for ever stops the priority for the watchdog's time, and others never. */
static void
for_ever(void **state)
{
	struct port *o = port_open(&(struct probe_config){.qps = 2, .window = 256, .ipv6 = true});
	uint64_t with;

	(void)state;
	set_class(&o->p, 1, CLASS);
	with = run(o, TURNS(5 * MS), 1, 0);
	assert_true(with >= TURNS(5 * MS) * (uint64_t)WIRE * 95 / 100);
	assert_int_equal(o->sent[1], 0);
	run(o, TURNS(20 * MS), 1, 0);
	assert_true(o->sent[1] > 0);
	expect_count(&o->p, PFC_STORM, 1);
	expect_count(&o->p, DROP_PAUSED, 0);
	port_close(o);
}

/* Messages that stop and let go in each turn, for all priorities, hold nobody for long. */
static void
storm_of_messages(void **state)
{
	struct port *o = port_open(&(struct probe_config){.qps = 2, .window = 256, .ipv6 = true});

	(void)state;
	set_class(&o->p, 1, CLASS);
	for (unsigned int i = 0; i < TURNS(100 * MS); i++) {
		feed(o, 0);
		feed(o, 1);
		for (unsigned int k = 0; k < 8; k++)
			pause(o, 0xff, (i + k) & 1 ? 0xffff : 0);
		turn(o);
	}
	print_message("%u and %u frames\n", (unsigned int)o->sent[0], (unsigned int)o->sent[1]);
	for (unsigned int q = 0; q < 2; q++)
		assert_true(o->sent[q] >= TURNS(100 * MS) * (uint64_t)WIRE * 20 / 100);
	assert_true(o->most <= 2 * MOST);
	expect_count(&o->p, DROP_PAUSED, 0);
	expect_count(&o->p, RETRANSMITS, 0);
	port_close(o);
}

/* A queue pair that fails while its priority is stopped answers its requests at once. */
static void
error_while_stopped(void **state)
{
	struct port *o = port_open(&(struct probe_config){.qps = 2, .window = 256, .ipv6 = true});
	struct urn_abi_wq *sq = o->p.q[1].sq;

	(void)state;
	set_class(&o->p, 1, CLASS);
	run(o, TURNS(5 * MS), 1, 0);
	assert_true(o->p.tp->sched.waiting & 1u << PAUSED);
	assert_true(o->p.tp->held >= 64);
	probe_use(&o->p, 1);
	probe_state(&o->p, URN_QPS_ERR);
	for (unsigned int i = 0; i < 20; i++)
		turn(o);
	assert_int_equal(atomic_load(&sq->prod), atomic_load(&sq->cons));
	assert_int_equal(o->p.tp->sched.waiting, 0);
	port_close(o);
}

/* Datagrams stop by the priority of their address, and none is lost. */
static void
datagrams(void **state)
{
	struct port *o = port_open(&(struct probe_config){.type = URN_QPT_UD, .ipv6 = true});
	unsigned int posted = 0;

	(void)state;
	o->p.ah.tmpl.bytes[14] = 0x66; /* traffic class 0x60 */
	for (unsigned int i = 0; i < TURNS(5 * MS); i++) {
		pause(o, 1u << PAUSED, 0xffff);
		while (posted < PROBE_SLOTS) {
			probe_prepare(&o->p, URN_WR_SEND, 0, 0, 64, 0, 0);
			posted++;
		}
		probe_ring(&o->p);
		turn(o);
	}
	assert_int_equal(o->sent[0], 0);
	assert_true(o->most >= 64 && o->most <= MOST);
	pause(o, 1u << PAUSED, 0);
	for (unsigned int i = 0; i < TURNS(5 * MS); i++)
		turn(o);
	assert_int_equal(o->sent[0], posted);
	expect_count(&o->p, DROP_PAUSED, 0);
	port_close(o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_go_on),	     cmocka_unit_test(for_ever),
		cmocka_unit_test(storm_of_messages), cmocka_unit_test(error_while_stopped),
		cmocka_unit_test(datagrams),
	};

	return cmocka_run_group_tests_name("packet_pauser", tests, NULL, NULL);
}
