/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow rules that bring our frames, and only those, to DPDK (rte_flow,
 * isolated mode); all other frames stay with the kernel (doc/reference/ports.md "mlx5").
 */
#ifndef URN_PMD_GLUE_STEER_H
#define URN_PMD_GLUE_STEER_H

#include "pmd_glue/port.h"

#include <rte_flow.h>

/* RoCEv2 over IPv4 and IPv6; ARP and ND to our MAC; ARP broadcast and ND multicast. */
#define URN_STEER_RULES 6
#define URN_STEER_ITEMS 5
#define URN_STEER_QUEUES 64

/* One rule, self-contained: the pointers of items and actions lead into it. */
struct urn_steer_rule {
	const char *name; /* for messages */
	struct rte_flow_attr attr;
	struct rte_flow_item item[URN_STEER_ITEMS];
	struct rte_flow_action action[2];
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_udp udp, udp_mask;
	struct rte_flow_item_ipv6 ip6, ip6_mask;
	struct rte_flow_action_queue queue; /* action for one queue */
	struct rte_flow_action_rss rss;	    /* action for several queues */
	uint16_t rss_queue[URN_STEER_QUEUES];
};

/* The port that the rules are made for. */
struct urn_steer {
	uint8_t mac[6];
	uint16_t queues;
	/*
	 * The MAC is ours alone, not the kernel's too: then nobody else answers
	 * for the MAC, and address resolution is ours as well.
	 */
	bool mac_ours;
};

/* Fill rules. returns: how many; with the kernel's MAC only RoCEv2 is taken */
unsigned int urn_steer_build(const struct urn_steer *s,
			     struct urn_steer_rule rule[URN_STEER_RULES]);
/* Enter isolated mode; before the port is configured. returns 0, or -1 with *err */
int urn_steer_isolate(uint16_t port, struct urn_err *err);
/* Make the rules on a started port, in place of its old rules. returns 0, or -1 with *err */
int urn_steer_apply(uint16_t port, const struct urn_steer *s, struct urn_err *err);

#endif
