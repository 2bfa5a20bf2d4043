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
 * reads the note; without, the PMD looks. (ethdev's event for link changes is no
 * help: net_tap notes the state and raises no event.)
 */
static bool
link_ask(struct urn_port *port)
{
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_DOWN};

	if (!urn_port_may_poll(port) || urn_port_plugged(port) != URN_PORT_UP)
		return false;
	if (port->family->link != NULL)
		return port->family->link(port);
	return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int
urn_port_poll_link(struct urn_port *port)
{
	bool up;

	if (port->active != NULL)
		return urn_bond_poll_link(port);
	if (port->family->tend != NULL)
		port->family->tend(port);
	up = link_ask(port);
	if (up == port->link_up)
		return 0;
	__atomic_store_n(&port->link_up, up, __ATOMIC_RELAXED);
	__atomic_fetch_add(&port->link_changes, 1, __ATOMIC_RELAXED);
	return 1;
}
