/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/pool.h"

#include <stdio.h>
#include <string.h>

static void
pair_up(struct urn_port *p[2], uint16_t queues)
{
	struct urn_port_config cfg[2] = {port_cfg("left", ""), port_cfg("right", "")};
	struct urn_err err = {""};

	cfg[0].queues = cfg[1].queues = queues;
	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
}

/* doc/reference/ports.md: frames of a RoCE MTU of 4096 pass both ways, on each queue pair. */
static void
ring_both_ways(void *arg)
{
	struct urn_port *p[2];
	struct rte_mbuf *m;
	uint16_t q;

	(void)arg;
	eal_up();
	pair_up(p, 3);
	check(p[0]->caps.queues == 3 && p[1]->caps.queues == 3);
	check(p[0]->caps.roce_mtu == 4096 && p[0]->caps.memory);
	check(memcmp(p[0]->mac, p[1]->mac, 6) != 0);
	check(urn_port_other_end(p[0]) == p[1] && urn_port_other_end(p[1]) == p[0]);
	for (q = 0; q < 3; q++) {
		frames_cross(p[0], p[1], q, frame_len(p[0]));
		frames_cross(p[1], p[0], q, frame_len(p[1]));
		frames_cross(p[0], p[1], q, 60);
	}
	/* Queues are joined one to one. */
	frame_send(p[0], 1, frame_make(p[0], 100, 1));
	check(urn_port_rx(p[1], 0, &m, 1) == 0 && urn_port_rx(p[1], 2, &m, 1) == 0);
	frame_expect(p[1], 1, p[0], 100, 1);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* A cable pulled at one side shows at both; frames sent meanwhile are lost. */
static void
ring_cable(void *arg)
{
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct rte_mbuf *m;

	(void)arg;
	eal_up();
	pair_up(p, 1);
	check(p[0]->link_up && p[1]->link_up);
	check_ok(urn_port_stop(p[0], &err), &err);
	check(urn_port_poll_link(p[0]) == 1 && !p[0]->link_up);
	check(urn_port_poll_link(p[1]) == 1 && !p[1]->link_up);
	check(urn_port_poll_link(p[1]) == 0);
	frame_send(p[1], 0, frame_make(p[1], 100, 7));
	m = frame_make(p[0], 100, 8);
	check(urn_port_tx(p[0], 0, &m, 1) == 0 && urn_port_rx(p[0], 0, &m, 1) == 0);
	rte_pktmbuf_free(m);
	check_ok(urn_port_start(p[0], &err), &err);
	check(urn_port_poll_link(p[1]) == 1 && p[1]->link_up);
	check(urn_port_poll_link(p[0]) == 1 && p[0]->link_up);
	check(urn_port_rx(p[0], 0, &m, 1) == 0);
	frames_cross(p[1], p[0], 0, 200);
	urn_port_close(p[1]);
	check(urn_port_poll_link(p[0]) == 1 && !p[0]->link_up);
	urn_port_close(p[0]);
}

/* Packets of one side outlive its port while the other side holds them. */
static void
ring_close_order(void *arg)
{
	struct urn_port *p[2];
	struct rte_mbuf *m;

	(void)arg;
	eal_up();
	pair_up(p, 1);
	frame_send(p[0], 0, frame_make(p[0], 500, 3));
	frame_send(p[0], 0, frame_make(p[0], 500, 4));
	check(urn_port_rx(p[1], 0, &m, 1) == 1);
	urn_port_close(p[0]);
	check(urn_port_other_end(p[1]) == NULL);
	check(m->data_len == 500 && rte_pktmbuf_mtod(m, uint8_t *)[0] == 0xff);
	rte_pktmbuf_free(m);
	urn_port_close(p[1]);
}

/*
 * A switch passes packets on without a copy: the second cable holds a packet of the first
 * one's pool when the first is closed. The pool lives until the packet is back, and no
 * longer.
 */
static void
ring_foreign_packet(void *arg)
{
	struct urn_port *p[4];

	(void)arg;
	eal_up();
	pair_up(p, 1);
	pair_up(p + 2, 1);
	frame_send(p[2], 0, frame_make(p[0], 500, 3));
	urn_port_close(p[0]);
	urn_port_close(p[1]);
	check(urn_pool_count() == 3); /* p[1]'s pool has gone */
	urn_port_close(p[2]);
	urn_port_close(p[3]);
	check(urn_pool_count() == 0);
}

/* Many pairs in one process, made and destroyed: no resource is used up. */
static void
ring_again(void *arg)
{
	struct urn_port *p[4];
	unsigned int i;

	(void)arg;
	eal_up();
	for (i = 0; i < 20; i++) {
		pair_up(p, 1);
		pair_up(p + 2, 2);
		frames_cross(p[0], p[1], 0, 300);
		frames_cross(p[2], p[3], 1, 300);
		urn_port_close(p[i & 1]);
		urn_port_close(p[1 - (i & 1)]);
		urn_port_close(p[2]);
		urn_port_close(p[3]);
	}
}

/* Errors name the port. */
static void
ring_errors(void *arg)
{
	struct urn_port_config cfg[2] = {port_cfg("left", ""), port_cfg("right", "")};
	struct urn_eal_config eal = {.program = "test", .memory_mb = 20};
	struct urn_err err = {""};
	struct urn_port *p[2];

	(void)arg;
	check_ok(urn_eal_start(&eal, &err), &err);
	cfg[1].roce_mtu = 1000;
	check(urn_port_open_ring_pair(cfg, p, &err) == -1);
	check_says(&err, "port right");
	check_says(&err, "1000");
	check(p[0] == NULL && p[1] == NULL);
	cfg[1].roce_mtu = 0;
	cfg[0].queues = 65;
	check(urn_port_open_ring_pair(cfg, p, &err) == -1);
	check_says(&err, "port left");
	check_says(&err, "65 queues");
	/* The ring of so large a pool does not fit the EAL's memory. */
	cfg[0].queues = 1;
	cfg[0].mbufs = 1u << 22;
	check(urn_port_open_ring_pair(cfg, p, &err) == -1);
	check_says(&err, "port left");
	check_says(&err, "4194304 packets");
	cfg[0].mbufs = 0;
	cfg[0].tx_desc = cfg[1].tx_desc = 65535;
	cfg[0].queues = 64;
	check(urn_port_open_ring_pair(cfg, p, &err) == -1);
	check_says(&err, "no memory");
	cfg[0] = port_cfg("left", "");
	cfg[1] = port_cfg("right", "");
	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

CHILD_TEST(ring_both_ways)
CHILD_TEST(ring_cable)
CHILD_TEST(ring_close_order)
CHILD_TEST(ring_foreign_packet)
CHILD_TEST(ring_again)
CHILD_TEST(ring_errors)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_both_ways),	 cmocka_unit_test(test_ring_cable),
		cmocka_unit_test(test_ring_close_order), cmocka_unit_test(test_ring_again),
		cmocka_unit_test(test_ring_foreign_packet),
		cmocka_unit_test(test_ring_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
