/* SPDX-License-Identifier: BSD-3-Clause */
/* One rig: urnic-perf's two nodes over an impaired wire are a configuration of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "urnic-perf/perf.h"

#include <rte_mbuf.h>

#include <string.h>

enum { TURNS = 1000, FRAME = 64 };

static struct urn_err err;

static void
send_one(const struct rig *rig, unsigned int from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rig->port[from]->pool);
	uint8_t *b;

	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, FRAME));
	b = rte_pktmbuf_mtod(m, uint8_t *);
	memset(b, 0, FRAME);
	memset(b, 0xff, 6); /* to all */
	b[6] = 0x02;
	b[11] = (uint8_t)(1 + from);
	assert_int_equal(urn_port_tx(rig->port[from], 0, &m, 1), 1);
}

/* Frames that arrive at a node while the wire is polled. */
static unsigned int
arrived(struct rig *rig, unsigned int at)
{
	struct rte_mbuf *m[PERF_BATCH];
	unsigned int sum = 0;

	for (unsigned int i = 0; i < TURNS; i++) {
		unsigned int n;

		perf_wire_poll(&rig->wire);
		n = urn_port_rx(rig->port[at], 0, m, PERF_BATCH);
		rte_pktmbuf_free_bulk(m, n);
		sum += n;
	}
	return sum;
}

/* The wire duplicates each frame, and only one of the ways is used at a time. */
static void
check_wire(struct rig *rig)
{
	struct perf_wire_result res;

	send_one(rig, 0);
	assert_int_equal(arrived(rig, 1), 2);
	send_one(rig, 1);
	send_one(rig, 1);
	assert_int_equal(arrived(rig, 0), 4);
	perf_wire_get(&rig->wire, &res);
	assert_true(res.on);
	assert_int_equal(res.dir[0].v[URN_IMPAIR_PUSHED], 1);
	assert_int_equal(res.dir[1].v[URN_IMPAIR_PUSHED], 2);
	assert_int_equal(res.dir[1].v[URN_IMPAIR_POPPED], 4);
}

/* A run changes what nodes have, and takes only its dataplane with it. */
static void
check_runs(struct rig *rig)
{
	for (uint32_t run = 0; run < 2; run++) {
		assert_null(rig->base.dp);
		rig->cfg.adapter[1].adapter.area_size = (1ull << 30) << run;
		assert_int_equal(urn_rig_dataplane(&rig->base, &err), 0);
		assert_non_null(urn_dp_engine(rig->base.dp, 1));
		urn_rig_dataplane_down(&rig->base);
		rig_drain(rig);
	}
}

static void
two_nodes_over_a_wire(void **state)
{
	struct perf_opts o = {.mtu = 1024, .mbufs = 2048, .descs = 256};
	uint64_t lost = 1;
	struct rig rig;

	(void)state;
	o.wire.on = o.wire.impaired = true;
	o.wire.cfg.dup = 1;
	assert_int_equal(rig_open(&rig, &o, &err), 0);
	assert_string_equal(rig.port[0]->cfg.name, "A");
	assert_string_equal(rig.port[1]->cfg.name, "B");
	assert_int_equal(urn_switch_ports(rig.base.sw[0]), 2);
	/* The thread of node B polls the switch, and each direction has a seed of its own. */
	assert_null(rig.base.fabric[0]);
	assert_non_null(rig.base.fabric[1]);
	assert_int_equal(rig.cfg_plug[1].port.impair[URN_SWITCH_IN].seed,
			 rig.cfg_plug[0].port.impair[URN_SWITCH_IN].seed + 1);
	check_wire(&rig);
	check_runs(&rig);
	assert_int_equal(rig_close(&rig, &lost, &err), 0);
	assert_int_equal(lost, 0);
	assert_null(rig.port[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_nodes_over_a_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
