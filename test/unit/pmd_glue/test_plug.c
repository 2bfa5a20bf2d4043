/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"

#include "pmd_glue/plug.h"

#include <string.h>

static void
pair_up(struct urn_port *p[2])
{
	struct urn_port_config cfg[2] = {port_cfg("left", ""), port_cfg("right", "")};
	struct urn_err err = {""};

	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
}

/* No frame passes a pulled cable, in either direction, and both sides see its state. */
static void
pulled(void *arg)
{
	enum urn_port_plug how = *(enum urn_port_plug *)arg;
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct rte_mbuf *m;

	eal_up();
	pair_up(p);
	frames_cross(p[0], p[1], 0, 200);
	check_ok(urn_port_plug(p[0], how, &err), &err);
	check(urn_port_plugged(p[0]) == how && urn_port_plugged(p[1]) == URN_PORT_UP);
	check(urn_port_poll_link(p[0]) == 1 && !p[0]->link_up);
	check(urn_port_poll_link(p[1]) == 1 && !p[1]->link_up);
	m = frame_make(p[0], 100, 8);
	check(urn_port_tx(p[0], 0, &m, 1) == 0);
	rte_pktmbuf_free(m);
	/* A frame that the other side sends is lost for good: it does not come once the cable is in. */
	frame_send(p[1], 0, frame_make(p[1], 100, 7));
	check(urn_port_rx(p[0], 0, &m, 1) == 0);
	check(rte_mempool_in_use_count(p[1]->pool) == 0);
	check_ok(urn_port_plug(p[0], how, &err), &err);
	check_ok(urn_port_plug(p[0], URN_PORT_UP, &err), &err);
	check(urn_port_poll_link(p[0]) == 1 && p[0]->link_up);
	check(urn_port_poll_link(p[1]) == 1 && p[1]->link_up);
	check(urn_port_rx(p[0], 0, &m, 1) == 0);
	frames_cross(p[0], p[1], 0, 200);
	frames_cross(p[1], p[0], 0, 200);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

static void
ring_fails(void *arg)
{
	enum urn_port_plug how = URN_PORT_FAILED;

	(void)arg;
	pulled(&how);
}

static void
ring_goes_down(void *arg)
{
	enum urn_port_plug how = URN_PORT_DOWN;

	(void)arg;
	pulled(&how);
}

/* A port that is started while its cable is pulled stays silent until the cable is in. */
static void
started_without_cable(void *arg)
{
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct rte_mbuf *m;

	(void)arg;
	eal_up();
	pair_up(p);
	check_ok(urn_port_plug(p[0], URN_PORT_FAILED, &err), &err);
	check_ok(urn_port_stop(p[0], &err), &err);
	check_ok(urn_port_start(p[0], &err), &err);
	frame_send(p[1], 0, frame_make(p[1], 100, 7));
	check(urn_port_rx(p[0], 0, &m, 1) == 0);
	check(urn_port_poll_link(p[0]) == 1 && !p[0]->link_up);
	/* The opposite case: plugged in while the port is stopped. */
	check_ok(urn_port_stop(p[0], &err), &err);
	check_ok(urn_port_plug(p[0], URN_PORT_UP, &err), &err);
	check(!p[0]->direct); /* the driver is not asked: it would complain */
	frame_send(p[1], 0, frame_make(p[1], 100, 7));
	check(urn_port_rx(p[0], 0, &m, 1) == 0);
	check_ok(urn_port_start(p[0], &err), &err);
	frames_cross(p[1], p[0], 0, 200);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* A driver that can't take its link down does not matter. */
static void
driver_cannot(void *arg)
{
	struct urn_port_config cfg = port_cfg("p", "net_null0");
	struct urn_err err = {""};
	struct rte_mbuf *m = NULL;
	struct urn_port *p;

	(void)arg;
	eal_up();
	p = port_up(&cfg);
	check_ok(urn_port_plug(p, URN_PORT_DOWN, &err), &err);
	m = frame_make(p, 100, 1);
	check(urn_port_tx(p, 0, &m, 1) == 0);
	check(urn_port_poll_link(p) == 1 && !p->link_up);
	check_ok(urn_port_plug(p, URN_PORT_UP, &err), &err);
	check(urn_port_poll_link(p) == 1 && p->link_up);
	check(urn_port_tx(p, 0, &m, 1) == 1);
	urn_port_close(p);
}

static void
test_names(void **state)
{
	(void)state;
	assert_string_equal(urn_port_plug_name(URN_PORT_UP), "up");
	assert_string_equal(urn_port_plug_name(URN_PORT_DOWN), "down");
	assert_string_equal(urn_port_plug_name(URN_PORT_FAILED), "failed");
}

CHILD_TEST(ring_fails)
CHILD_TEST(ring_goes_down)
CHILD_TEST(started_without_cable)
CHILD_TEST(driver_cannot)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_fails),
		cmocka_unit_test(test_ring_goes_down),
		cmocka_unit_test(test_started_without_cable),
		cmocka_unit_test(test_driver_cannot),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
