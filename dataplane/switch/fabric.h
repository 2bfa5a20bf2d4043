/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Switches on real ports: some switches, which may be linked, and the ethdev
 * ports that are plugged into them, all polled by one thread, to completion:
 *
 *     receive bursts ─► urn_switch_input() ─► urn_switch_run_all() ─► transmit bursts
 *
 * A port that takes only part of a burst gets the rest first at the next poll;
 * further frames wait in the switch's bounded queue of that port.
 */
#ifndef URN_SWITCH_FABRIC_H
#define URN_SWITCH_FABRIC_H

#include "counter_scope.h"
#include "pmd_glue/port.h"
#include "switch/switch.h"

#include <stdint.h>

#define URN_FABRIC_MAX_SWITCHES 64u
#define URN_FABRIC_LINK_NS 10000000ull /* between two checks of the ports' links */
#define URN_FABRIC_STUCK_NS \
	100000000ull /* ns; a frame that a port does not take for so long is dropped */

/* X(index, "name", "description") */
#define URN_FABRIC_COUNTERS(X)                                                                     \
	X(TX_PARTIAL, "tx_partial", "bursts of which the port took a part only")                   \
	X(TX_COPIED, "tx_copied",                                                                  \
	  "frames of foreign memory copied because the port took them late")                       \
	X(DROP_TX_NO_MBUF, "drop_tx_no_mbuf", "of these, frames lost because there was no packet") \
	X(DROP_TX_STUCK, "drop_tx_stuck", "frames that the port did not take for 100 ms")          \
	X(LINK_CHANGES, "link_changes", "times the port's link went up or down")                   \
	X(RX_HELD, "rx_held",                                                                      \
	  "polls that left frames with their sender, for want of room in a lossless switch")       \
	X(RX_PARKED, "rx_parked",                                                                  \
	  "frames that let others of the sender pass, for want of room for their priority")        \
	X(DROP_RX_NO_MBUF, "drop_rx_no_mbuf",                                                      \
	  "frames of foreign memory that were to wait so, and lost because there was no packet")

enum urn_fabric_counter {
#define X(id, name, text) URN_FABRIC_##id,
	URN_FABRIC_COUNTERS(X)
#undef X
		URN_FABRIC_COUNTER_COUNT,
};

struct urn_fabric_counters {
	uint64_t v[URN_FABRIC_COUNTER_COUNT];
};

/* The scope "switch_device": these counters. */
extern const struct urn_counter_scope urn_fabric_scope;
/* Name of a counter; NULL past the end. */
const char *urn_fabric_counter_name(unsigned int id);

struct urn_fabric;

/* copies: pool for private copies of frames that a port takes late. returns: NULL: no memory */
struct urn_fabric *urn_fabric_create(struct rte_mempool *copies);
/* Destroys the switches, too, and frees the frames inside; the ethdev ports stay. NULL is allowed.
 */
void urn_fabric_destroy(struct urn_fabric *f);

/* Add a switch, which is the fabric's from here on. returns: its number, or -ENOSPC */
int urn_fabric_add(struct urn_fabric *f, struct urn_switch *sw);

/*
 * Plug an open port (its queue 0) into a port of a switch of the fabric; the open
 * port is made promiscuous. follow_link: the switch port goes up and down with the
 * port's link (not for net_tap, which can't see its link any more when the interface
 * is moved to another network namespace). returns: 0, -EINVAL (no such port, a
 * link), -EBUSY (the switch port is in use), -ENOMEM
 */
int urn_fabric_plug(struct urn_fabric *f, struct urn_switch *sw, uint16_t port,
		    struct urn_port *ethdev, bool follow_link);
/*
 * Let frames without ICRC (wire/unsealed.h) come and go by a port that is plugged in: the other end
 * of its wire, `far`, is an adapter's, and the thread that polls the fabric drives the adapter. All
 * other ports send whole frames, and what comes there counts as such. Frames that somebody sees at
 * either end are made whole, too. far: NULL: as all others again. Not while the fabric is polled.
 * returns: 0, -EINVAL: no such port, or -ENOMEM: DPDK has no mark for such frames
 */
int urn_fabric_unseal(struct urn_fabric *f, const struct urn_switch *sw, uint16_t port,
		      struct urn_port *far);
/* Largest frame, without FCS, that an open port sends: for urn_switch_port_config.max_frame. */
uint32_t urn_fabric_max_frame(const struct urn_port *ethdev);

/*
 * Receive, forward, transmit, once. now: ns, the same clock as the switches'.
 * returns: frames received and sent; 0: there was nothing to do
 */
unsigned int urn_fabric_poll(struct urn_fabric *f, uint64_t now);
/* Time at which a frame inside may be due; see urn_switch_next(). */
uint64_t urn_fabric_next(const struct urn_fabric *f);
/* Counters of a port that is plugged in; NULL: no port is. */
const struct urn_fabric_counters *urn_fabric_counters(const struct urn_fabric *f,
						      const struct urn_switch *sw, uint16_t port);

#endif
