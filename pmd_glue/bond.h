/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ports that an adapter has as one. Frames cross one of them, the active member; the other
 * one, the standby, takes over when the active member loses its link. Both have the same MAC
 * address, so that an adapter, its queue pairs and its peers notice lost frames and nothing else.
 *
 *     adapter ── bond ──┬── member 0 ── switch      active: frames both ways
 *                       └── member 1 ── switch      standby: frames that come in are dropped
 *
 * The bond is a struct urn_port whose `id` and `direct` are copies of the active member's: a
 * burst costs what it costs on one port. A move exchanges the copies. A burst that runs
 * meanwhile ends on the member that it began on, and its frames may be lost there.
 *
 * DPDK has a bonding driver (net_bonding, mode 1), which is not used. The driver stops, configures,
 * sets up and starts its members itself, past the steps that families need here (family.h: memif's
 * late start and vanishing memory, filters, the shared cable of rings). The driver knows no member
 * that a command has unplugged, and takes the driver's word for a link, which for rings is always
 * "up". Only the active member has the bond's MAC address, so that each move asks drivers to change
 * theirs, which af_packet and tap can't. Nobody takes frames from the standby: those that
 * switches flood fill its queue, and come in late when it takes over. Each burst crosses two
 * drivers.
 */
#ifndef URN_PMD_GLUE_BOND_H
#define URN_PMD_GLUE_BOND_H

#include "pmd_glue/port.h"

#define URN_BOND_MEMBERS 2u

/* The choice of the active member. */
struct urn_bond_choice {
	unsigned int active; /* number of the active member */
	uint64_t first_up;   /* ns: when member 0 got the link that it has; 0: it has none */
	uint64_t failback;   /* ns that member 0 must have a link before it is active again; 0: it
				becomes active again only when the other one has no link */
};

/*
 * Choose the active member. up: by member: it has a link. now: ns of a clock that never goes
 * back, not 0. returns: its number, also in c->active: the one until now while that has a link
 * or none has
 */
unsigned int urn_bond_choose(struct urn_bond_choice *c, const bool up[URN_BOND_MEMBERS],
			     uint64_t now);

/*
 * Make one port of two that are open, have the same MAC address and as many queues as each
 * other, and are not polled yet; each MTU is the lesser one of both. failback_ns: as in struct
 * urn_bond_choice. returns: the bond, for urn_bond_destroy(), or NULL with *err
 */
struct urn_port *urn_bond_create(struct urn_port *const member[URN_BOND_MEMBERS],
				 uint64_t failback_ns, struct urn_err *err);
/* Take a bond apart, which nobody polls any more; the members stay open. NULL is allowed. */
void urn_bond_destroy(struct urn_port *bond);

/* Member i of a bond; NULL: the port is no bond, or has no such member. */
struct urn_port *urn_bond_member(const struct urn_port *port, unsigned int i);
/* The member that frames cross now; the port itself when it is no bond. */
struct urn_port *urn_bond_active(const struct urn_port *port);

/* The pool whose packets come in at a port; where a bond has two, the one with fewer free packets.
 */
struct rte_mempool *urn_bond_least_pool(const struct urn_port *port);

/* urn_port_poll_link() of a bond: poll the members, and choose. */
int urn_bond_poll_link(struct urn_port *bond);
/* Choose anew, after a member's cable was pulled or plugged in. Any thread. */
void urn_bond_settle(struct urn_port *bond);
/*
 * Drop what came in at a queue of the standby: frames that switches flood to both members. Call
 * about every 10 ms, on the thread that has the queue. returns: number of frames
 */
unsigned int urn_bond_drain(const struct urn_port *bond, uint16_t queue);

#endif
