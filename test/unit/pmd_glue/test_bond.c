/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports that are one (FO-5): the choice of the member in use, and frames over rings. */
#include "test/unit/pmd_glue/harness.h"

#include "pmd_glue/bond.h"
#include "pmd_glue/plug.h"

#include <string.h>

#define MS 1000000ull /* ns */

/* ---- the choice */

/* One look: the links of both members and the time; the member in use then. */
struct bond_look {
	bool up[URN_BOND_MEMBERS];
	uint64_t at_ms;
	unsigned int active;
};

static void
looks(uint64_t failback_ms, const struct bond_look *look, size_t n)
{
	struct urn_bond_choice c = {.failback = failback_ms * MS};

	for (size_t i = 0; i < n; i++)
		if (urn_bond_choose(&c, look[i].up, look[i].at_ms * MS) != look[i].active ||
		    c.active != look[i].active)
			fail_msg("look %zu: member %u", i, c.active);
}

/* The other member takes over at once, and the first one again only after its link has lasted. */
static void
test_failback(void **state)
{
	static const struct bond_look seen[] = {
		{{true, true}, 1, 0},	{{false, true}, 2, 1},	 {{true, true}, 3, 1},
		{{true, true}, 102, 1}, {{true, true}, 103, 0},	 {{false, true}, 104, 1},
		{{true, true}, 105, 1}, {{false, true}, 150, 1}, /* a link that flaps begins anew */
		{{true, true}, 200, 1}, {{true, true}, 299, 1},	 {{true, true}, 300, 0},
	};

	(void)state;
	looks(100, seen, RTE_DIM(seen));
}

/* Without a time for that, the member in use stays as long as it has a link. */
static void
test_no_failback(void **state)
{
	static const struct bond_look seen[] = {
		{{false, true}, 1, 1},
		{{true, true}, 2, 1},
		{{true, true}, 1000000, 1},
		{{true, false}, 1000001, 0},
	};

	(void)state;
	looks(0, seen, RTE_DIM(seen));
}

/* A member whose link is new is better than one without; with no link at all nothing changes. */
static void
test_no_link(void **state)
{
	static const struct bond_look seen[] = {
		{{false, false}, 1, 0}, {{false, true}, 2, 1}, {{false, false}, 3, 1},
		{{false, false}, 4, 1}, {{true, false}, 5, 0}, {{true, true}, 6, 0},
		{{true, false}, 7, 0},
	};

	(void)state;
	looks(1000000, seen, RTE_DIM(seen));
}

/* ---- frames */

/* Two cables from the bond to two far ends. */
struct rig {
	struct urn_port *near[2], *far[2], *bond;
};

static void
up(struct rig *r, uint64_t failback_ns)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct urn_err err = {""};

	eal_up();
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_port_config cfg[2] = {port_cfg(i ? "a1" : "a0", ""),
						 port_cfg(i ? "b1" : "b0", "")};
		struct urn_port *p[2];

		memcpy(cfg[0].mac, mac, 6);
		check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
		r->near[i] = p[0];
		r->far[i] = p[1];
	}
	r->bond = urn_bond_create(r->near, failback_ns, &err);
	check_ok(r->bond ? 0 : -1, &err);
}

static void
down(struct rig *r)
{
	urn_bond_destroy(r->bond);
	for (unsigned int i = 0; i < 2; i++) {
		check(r->near[i]->bond == NULL);
		urn_port_close(r->near[i]);
		urn_port_close(r->far[i]);
	}
}

static void
plug(struct urn_port *port, enum urn_port_plug how)
{
	struct urn_err err = {""};

	check_ok(urn_port_plug(port, how, &err), &err);
}

/* Frames cross member i in both directions, and nothing comes out of the other cable. */
static void
crosses(struct rig *r, unsigned int i)
{
	struct rte_mbuf *m;

	check(urn_bond_active(r->bond) == r->near[i] && r->bond->id == r->near[i]->id);
	frames_cross(r->bond, r->far[i], 0, 200);
	frames_cross(r->far[i], r->bond, 0, 200);
	check(urn_port_rx(r->far[1 - i], 0, &m, 1) == 0);
}

/* The cable of the member in use is pulled by a command: frames cross the other one at once, and
 * the bond's link is up all the time. */
static void
moves(void *arg)
{
	struct rig r;

	(void)arg;
	up(&r, 0);
	check(r.bond->link_up && strcmp(r.bond->cfg.name, "a0+a1") == 0);
	crosses(&r, 0);
	plug(r.near[0], URN_PORT_FAILED);
	crosses(&r, 1); /* before any look at links */
	check(urn_port_poll_link(r.bond) == 0 && r.bond->link_up && r.bond->moves == 1);
	plug(r.near[0], URN_PORT_UP);
	check(urn_port_poll_link(r.bond) == 0);
	crosses(&r, 1);
	plug(r.near[1], URN_PORT_DOWN);
	crosses(&r, 0);
	check(urn_port_poll_link(r.bond) == 0 && r.bond->link_up && r.bond->moves == 2);
	check(r.bond->link_changes == 1); /* that at the start */
	down(&r);
}

/* The link is lost at the other end: the next look at links finds it. The first member comes back.
 */
static void
looks_at_links(void *arg)
{
	struct rig r;

	(void)arg;
	up(&r, 1);
	plug(r.far[0], URN_PORT_FAILED);
	check(urn_port_poll_link(r.bond) == 0 && r.bond->link_up);
	crosses(&r, 1);
	plug(r.far[0], URN_PORT_UP);
	check(urn_port_poll_link(r.bond) == 0); /* its link is there from now on */
	check(urn_port_poll_link(r.bond) == 0);
	crosses(&r, 0);
	check(r.bond->moves == 2);
	down(&r);
}

/* Without any link the bond has none, and moves nothing; one of two is enough to have one again. */
static void
both_lost(void *arg)
{
	struct rte_mbuf *m;
	struct rig r;

	(void)arg;
	up(&r, 0);
	plug(r.near[0], URN_PORT_FAILED);
	plug(r.near[1], URN_PORT_FAILED);
	check(urn_port_plugged(r.bond) == URN_PORT_FAILED);
	check(urn_port_poll_link(r.bond) == 1 && !r.bond->link_up);
	m = frame_make(r.near[0], 100, 8);
	check(urn_port_tx(r.bond, 0, &m, 1) == 0);
	rte_pktmbuf_free(m);
	frame_send(r.far[1], 0, frame_make(r.far[1], 100, 7));
	check(urn_port_rx(r.bond, 0, &m, 1) == 0);
	plug(r.near[0], URN_PORT_UP);
	check(urn_port_poll_link(r.bond) == 1 && r.bond->link_up);
	crosses(&r, 0);
	down(&r);
}

/* Frames that come in at the standby reach nobody. */
static void
drains(void *arg)
{
	struct rte_mbuf *m;
	struct rig r;

	(void)arg;
	up(&r, 0);
	for (unsigned int i = 0; i < 100; i++)
		frame_send(r.far[1], 0, frame_make(r.far[1], 100, i));
	check(urn_port_rx(r.bond, 0, &m, 1) == 0);
	check(urn_bond_drain(r.bond, 0) == 100);
	check(urn_bond_drain(r.bond, 0) == 0);
	check(rte_mempool_in_use_count(r.far[1]->pool) == 0);
	frame_send(r.far[0], 0, frame_make(r.far[0], 100, 5));
	check(urn_bond_drain(r.bond, 0) == 0); /* not from the member in use */
	frame_expect(r.bond, 0, r.far[0], 100, 5);
	down(&r);
}

/* Bad pairs: the reason names both. */
static void
refused(void *arg)
{
	struct urn_port_config cfg[2] = {port_cfg("c0", ""), port_cfg("c1", "")};
	struct urn_port *twice[2], *p[2];
	struct urn_err err = {""};
	struct rig r;

	(void)arg;
	up(&r, 0);
	cfg[0].queues = cfg[1].queues = 2;
	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
	check(urn_bond_create(r.near, 0, &err) == NULL); /* they have a bond */
	check_says(&err, "a0 and a1");
	twice[0] = twice[1] = p[0];
	check(urn_bond_create(twice, 0, &err) == NULL);
	check_says(&err, "c0 and c0");
	check(urn_bond_create(p, 0, &err) == NULL);
	check_says(&err, "two MAC addresses");
	memcpy(p[0]->mac, r.far[0]->mac, 6);
	twice[1] = r.far[0];
	check(urn_bond_create(twice, 0, &err) == NULL);
	check_says(&err, "2 and 1 queues");
	check(p[0]->bond == NULL && r.far[0]->bond == NULL);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
	down(&r);
}

/* The lesser MTU of both holds. */
static void
lesser_mtu(void *arg)
{
	struct urn_err err = {""};
	struct rig r;

	(void)arg;
	up(&r, 0);
	urn_bond_destroy(r.bond);
	r.near[1]->caps.mtu = 1500;
	r.near[1]->caps.roce_mtu = 1024;
	r.near[1]->caps.flow_mtu = 1420;
	r.bond = urn_bond_create(r.near, 0, &err);
	check_ok(r.bond ? 0 : -1, &err);
	check(r.bond->caps.mtu == 1500 && r.bond->caps.roce_mtu == 1024 &&
	      r.bond->caps.flow_mtu == 1420);
	down(&r);
}

/* Limits go by the pool that is exhausted first: either member may come to receive all packets. */
static void
least_pool(void *arg)
{
	struct rte_mbuf *m;
	struct rig r;

	(void)arg;
	up(&r, 0);
	m = rte_pktmbuf_alloc(r.near[1]->pool);
	check(urn_bond_least_pool(r.bond) == r.near[1]->pool);
	check(urn_bond_least_pool(r.near[0]) == r.near[0]->pool);
	rte_pktmbuf_free(m);
	m = rte_pktmbuf_alloc(r.near[0]->pool);
	check(urn_bond_least_pool(r.bond) == r.near[0]->pool);
	rte_pktmbuf_free(m);
	down(&r);
}

CHILD_TEST(moves)
CHILD_TEST(looks_at_links)
CHILD_TEST(both_lost)
CHILD_TEST(drains)
CHILD_TEST(refused)
CHILD_TEST(lesser_mtu)
CHILD_TEST(least_pool)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failback),       cmocka_unit_test(test_no_failback),
		cmocka_unit_test(test_no_link),	       cmocka_unit_test(test_moves),
		cmocka_unit_test(test_looks_at_links), cmocka_unit_test(test_both_lost),
		cmocka_unit_test(test_drains),	       cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lesser_mtu),     cmocka_unit_test(test_least_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
