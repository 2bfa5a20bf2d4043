/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/bond.h"

#include "pmd_glue/family.h"
#include "pmd_glue/plug.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRAIN_BURST 32u
/* Most bursts of one urn_bond_drain(): all that the queue of most devices holds. */
#define DRAIN_BURSTS 64u

struct bond {
	struct urn_port port;			   /* the adapter's view; first */
	struct urn_port *member[URN_BOND_MEMBERS]; /* owner: the caller */
	struct urn_bond_choice choice;		   /* under bond_lock */
	bool guarded; /* a member's memory can vanish: no burst may go past its guard (fault.h) */
};

/* A bond has steps of its own everywhere; the family says that it is none of those with devices. */
static const struct urn_port_family family_bond = {.prefix = "bond"};

/* bond_lock serialises choices of the engine that polls links and of commands. Slow path. */
static pthread_mutex_t bond_lock = PTHREAD_MUTEX_INITIALIZER;

static struct bond *
bond_of(const struct urn_port *port)
{
	return (struct bond *)(uintptr_t)port;
}

unsigned int
urn_bond_choose(struct urn_bond_choice *c, const bool up[URN_BOND_MEMBERS], uint64_t now)
{
	if (!up[0])
		c->first_up = 0;
	else if (c->first_up == 0)
		c->first_up = now;
	if (!up[c->active] && up[1 - c->active])
		c->active = 1 - c->active;
	else if (c->active != 0 && up[0] && c->failback != 0 && now - c->first_up >= c->failback)
		c->active = 0;
	return c->active;
}

static uint64_t
clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* True when frames can cross a member. */
static bool
usable(const struct urn_port *member)
{
	return __atomic_load_n(&member->link_up, __ATOMIC_RELAXED) &&
	       urn_port_plugged(member) == URN_PORT_UP;
}

/* Have bursts go to a member from now on. bond_lock is held. */
static void
take(struct bond *b, struct urn_port *m)
{
	struct urn_port *p = &b->port;
	bool direct = __atomic_load_n(&m->direct, __ATOMIC_ACQUIRE) && !b->guarded;

	if (!direct)
		__atomic_store_n(&p->direct, false, __ATOMIC_RELAXED);
	__atomic_store_n(&p->id, m->id, __ATOMIC_RELAXED);
	__atomic_store_n(&p->active, m, __ATOMIC_RELEASE);
	__atomic_store_n(&p->plug, (uint8_t)urn_port_plugged(m), __ATOMIC_RELAXED);
	__atomic_store_n(&p->started, __atomic_load_n(&m->started, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&p->direct, direct, __ATOMIC_RELEASE);
}

void
urn_bond_settle(struct urn_port *bond)
{
	struct bond *b = bond_of(bond);
	bool up[URN_BOND_MEMBERS];
	struct urn_port *m;

	pthread_mutex_lock(&bond_lock);
	for (unsigned int i = 0; i < URN_BOND_MEMBERS; i++)
		up[i] = usable(b->member[i]);
	m = b->member[urn_bond_choose(&b->choice, up, clock_ns())];
	if (m != bond->active)
		__atomic_fetch_add(&bond->moves, 1, __ATOMIC_RELAXED);
	take(b, m);
	pthread_mutex_unlock(&bond_lock);
}

int
urn_bond_poll_link(struct urn_port *bond)
{
	struct bond *b = bond_of(bond);
	bool up;

	for (unsigned int i = 0; i < URN_BOND_MEMBERS; i++)
		(void)urn_port_poll_link(b->member[i]);
	urn_bond_settle(bond);
	up = usable(urn_bond_active(bond));
	if (up == bond->link_up)
		return 0;
	__atomic_store_n(&bond->link_up, up, __ATOMIC_RELAXED);
	__atomic_fetch_add(&bond->link_changes, 1, __ATOMIC_RELAXED);
	return 1;
}

unsigned int
urn_bond_drain(const struct urn_port *bond, uint16_t queue)
{
	const struct bond *b = bond_of(bond);
	const struct urn_port *active = urn_bond_active(bond);
	struct rte_mbuf *m[DRAIN_BURST];
	unsigned int n = 0;

	for (unsigned int i = 0; i < URN_BOND_MEMBERS; i++) {
		uint16_t got = b->member[i] != active ? DRAIN_BURST : 0;

		for (unsigned int k = 0; k < DRAIN_BURSTS && got == DRAIN_BURST; k++) {
			got = urn_port_rx(b->member[i], queue, m, DRAIN_BURST);
			rte_pktmbuf_free_bulk(m, got);
			n += got;
		}
	}
	return n;
}

struct urn_port *
urn_bond_member(const struct urn_port *port, unsigned int i)
{
	return port->family == &family_bond && i < URN_BOND_MEMBERS ? bond_of(port)->member[i]
								    : NULL;
}

struct urn_port *
urn_bond_active(const struct urn_port *port)
{
	struct urn_port *m = __atomic_load_n(&port->active, __ATOMIC_ACQUIRE);

	return m != NULL ? m : (struct urn_port *)(uintptr_t)port;
}

struct rte_mempool *
urn_bond_least_pool(const struct urn_port *port)
{
	const struct urn_port *m;
	struct rte_mempool *least = port->pool;

	for (unsigned int i = 0; (m = urn_bond_member(port, i)) != NULL; i++)
		if (rte_mempool_avail_count(m->pool) < rte_mempool_avail_count(least))
			least = m->pool;
	return least;
}

static int
check(struct urn_port *const m[URN_BOND_MEMBERS], struct urn_err *err)
{
	if (m[0] == m[1] || m[0]->bond != NULL || m[1]->bond != NULL || m[0]->active != NULL ||
	    m[1]->active != NULL) {
		urn_err_set(err,
			    "ports %s and %s are no two ports of which none belongs to an "
			    "adapter yet",
			    m[0]->cfg.name, m[1]->cfg.name);
		return -1;
	}
	if (memcmp(m[0]->mac, m[1]->mac, sizeof(m[0]->mac)) != 0) {
		urn_err_set(err,
			    "ports %s and %s of one adapter have two MAC addresses; give both "
			    "the same",
			    m[0]->cfg.name, m[1]->cfg.name);
		return -1;
	}
	if (m[0]->caps.queues != m[1]->caps.queues) {
		urn_err_set(err,
			    "ports %s and %s of one adapter have %u and %u queues; give both "
			    "queues = %u",
			    m[0]->cfg.name, m[1]->cfg.name, m[0]->caps.queues, m[1]->caps.queues,
			    RTE_MIN(m[0]->caps.queues, m[1]->caps.queues));
		return -1;
	}
	return 0;
}

/* Lower the capabilities of one member to those that both have. */
static void
caps_meet(struct urn_port_caps *c, const struct urn_port_caps *other)
{
	c->mtu = RTE_MIN(c->mtu, other->mtu);
	c->roce_mtu = RTE_MIN(c->roce_mtu, other->roce_mtu);
	c->flow_mtu = RTE_MIN(c->flow_mtu, other->flow_mtu);
	c->rss = c->rss && other->rss;
	c->tx_ip_csum = c->tx_ip_csum && other->tx_ip_csum;
	c->rx_csum = c->rx_csum && other->rx_csum;
	c->link_interrupt = c->link_interrupt && other->link_interrupt;
	c->rx_interrupt = false;
	c->flow = c->flow && other->flow;
	c->memory = c->memory && other->memory;
}

struct urn_port *
urn_bond_create(struct urn_port *const member[URN_BOND_MEMBERS], uint64_t failback_ns,
		struct urn_err *err)
{
	struct bond *b;

	if (check(member, err) != 0)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (b == NULL) {
		urn_err_set(err, "no memory for the two ports of an adapter");
		return NULL;
	}
	b->choice.failback = failback_ns;
	b->port.family = &family_bond;
	b->port.cfg = member[0]->cfg;
	snprintf(b->port.cfg.name, sizeof(b->port.cfg.name), "%.15s+%.15s", member[0]->cfg.name,
		 member[1]->cfg.name);
	memcpy(b->port.mac, member[0]->mac, sizeof(b->port.mac));
	b->port.room = RTE_MIN(member[0]->room, member[1]->room);
	b->port.pool = member[0]->pool;
	b->port.caps = member[0]->caps;
	caps_meet(&b->port.caps, &member[1]->caps);
	for (unsigned int i = 0; i < URN_BOND_MEMBERS; i++) {
		b->member[i] = member[i];
		b->guarded = b->guarded || member[i]->family->faults;
		member[i]->bond = &b->port;
	}
	take(b, member[0]);
	(void)urn_bond_poll_link(&b->port);
	return &b->port;
}

void
urn_bond_destroy(struct urn_port *bond)
{
	if (bond == NULL)
		return;
	for (unsigned int i = 0; i < URN_BOND_MEMBERS; i++)
		bond_of(bond)->member[i]->bond = NULL;
	free(bond_of(bond));
}
