/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a port's link. */
#include "pmd_glue/bond.h"
#include "pmd_glue/family.h"
#include "pmd_glue/fault.h"
#include "pmd_glue/plug.h"
#include "pmd_glue/port.h"

#include <rte_ethdev.h>

/*
 * With a link interrupt the PMD noted the state when it changed, and this function
 * reads the note; without, the PMD looks, and keeps state of its own meanwhile: one
 * thread at a time. So others read what this function notes in the port. (ethdev's
 * event for link changes is no help: net_tap notes the state and raises no event.)
 */
bool
urn_port_ask_link(struct urn_port *port)
{
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_DOWN};

	if (rte_eth_link_get_nowait(port->id, &link) != 0)
		return false;
	if (link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		link.link_speed = 0;
	__atomic_store_n(&port->speed_mbps, link.link_speed, __ATOMIC_RELAXED);
	return link.link_status == RTE_ETH_LINK_UP;
}

static bool
link_is_up(struct urn_port *port)
{
	bool up;

	if (!urn_port_may_poll(port) || urn_port_plugged(port) != URN_PORT_UP)
		return false;
	up = urn_port_ask_link(port);
	return port->family->link != NULL ? port->family->link(port) : up;
}

int
urn_port_poll_link(struct urn_port *port)
{
	bool up;

	if (port->active != NULL)
		return urn_bond_poll_link(port);
	if (port->family->tend != NULL)
		port->family->tend(port);
	up = link_is_up(port);
	if (up == port->link_up)
		return 0;
	__atomic_store_n(&port->link_up, up, __ATOMIC_RELAXED);
	__atomic_fetch_add(&port->link_changes, 1, __ATOMIC_RELAXED);
	return 1;
}
