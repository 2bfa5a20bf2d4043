/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/steer.h"

#include <netinet/in.h>
#include <string.h>

#define ROCE_UDP_PORT 4791
#define RSS_ROCE (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)

static const uint8_t mac_broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* Set the action: to all queues by hash, or to queue 0. */
static void
action_set(struct urn_steer_rule *r, uint16_t queues, uint64_t hash)
{
	uint16_t i;

	r->action[1].type = RTE_FLOW_ACTION_TYPE_END;
	if (hash == 0 || queues < 2) {
		r->action[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
		r->action[0].conf = &r->queue;
		return;
	}
	queues = RTE_MIN(queues, URN_STEER_QUEUES);
	for (i = 0; i < queues; i++)
		r->rss_queue[i] = i;
	r->rss.types = hash;
	r->rss.queue_num = queues;
	r->rss.queue = r->rss_queue;
	r->action[0].type = RTE_FLOW_ACTION_TYPE_RSS;
	r->action[0].conf = &r->rss;
}

static void
rule_init(struct urn_steer_rule *r, const char *name, const uint8_t dst[6], uint16_t type)
{
	memset(r, 0, sizeof(*r));
	r->name = name;
	r->attr.ingress = 1;
	memcpy(r->eth.hdr.dst_addr.addr_bytes, dst, 6);
	memset(r->eth_mask.hdr.dst_addr.addr_bytes, 0xff, 6);
	r->eth.hdr.ether_type = rte_cpu_to_be_16(type);
	r->eth_mask.hdr.ether_type = 0xffff;
	r->item[0].type = RTE_FLOW_ITEM_TYPE_ETH;
	r->item[0].spec = &r->eth;
	r->item[0].mask = &r->eth_mask;
}

/* Ethernet to us / IPv4 or IPv6 / UDP to 4791: spread over the queues. */
static void
rule_roce(struct urn_steer_rule *r, const struct urn_steer *s, bool ipv6)
{
	rule_init(r, ipv6 ? "RoCEv2 over IPv6" : "RoCEv2 over IPv4", s->mac,
		  ipv6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
	r->item[1].type = ipv6 ? RTE_FLOW_ITEM_TYPE_IPV6 : RTE_FLOW_ITEM_TYPE_IPV4;
	r->udp.hdr.dst_port = rte_cpu_to_be_16(ROCE_UDP_PORT);
	r->udp_mask.hdr.dst_port = 0xffff;
	r->item[2].type = RTE_FLOW_ITEM_TYPE_UDP;
	r->item[2].spec = &r->udp;
	r->item[2].mask = &r->udp_mask;
	r->item[3].type = RTE_FLOW_ITEM_TYPE_END;
	action_set(r, s->queues, RSS_ROCE);
}

static void
rule_arp(struct urn_steer_rule *r, const char *name, const uint8_t dst[6])
{
	rule_init(r, name, dst, RTE_ETHER_TYPE_ARP);
	r->item[1].type = RTE_FLOW_ITEM_TYPE_END;
	action_set(r, 1, 0);
}

/* ICMPv6: neighbour discovery and echo. */
static void
rule_nd(struct urn_steer_rule *r, const char *name, const uint8_t dst[6])
{
	rule_init(r, name, dst, RTE_ETHER_TYPE_IPV6);
	r->ip6.hdr.proto = IPPROTO_ICMPV6;
	r->ip6_mask.hdr.proto = 0xff;
	r->item[1].type = RTE_FLOW_ITEM_TYPE_IPV6;
	r->item[1].spec = &r->ip6;
	r->item[1].mask = &r->ip6_mask;
	r->item[2].type = RTE_FLOW_ITEM_TYPE_END;
	action_set(r, 1, 0);
}

unsigned int
urn_steer_build(const struct urn_steer *s, struct urn_steer_rule rule[URN_STEER_RULES])
{
	/* Solicited-node multicast of any address of ours: 33:33:ff and 24 bits of it. */
	static const uint8_t solicited[6] = {0x33, 0x33, 0xff};
	unsigned int n = 0;

	rule_roce(&rule[n++], s, false);
	rule_roce(&rule[n++], s, true);
	if (!s->mac_ours)
		return n;
	rule_arp(&rule[n++], "ARP to us", s->mac);
	rule_arp(&rule[n++], "ARP to all", mac_broadcast);
	rule_nd(&rule[n++], "ICMPv6 to us", s->mac);
	rule_nd(&rule[n], "neighbour solicitation", solicited);
	memset(rule[n].eth_mask.hdr.dst_addr.addr_bytes + 3, 0, 3);
	return n + 1;
}

int
urn_steer_isolate(uint16_t port, struct urn_err *err)
{
	struct rte_flow_error error = {.message = NULL};

	if (rte_flow_isolate(port, 1, &error) == 0)
		return 0;
	urn_err_set(err, "the driver cannot take our frames alone (rte_flow_isolate): %s",
		    error.message != NULL ? error.message : "no reason given");
	return -1;
}

int
urn_steer_apply(uint16_t port, const struct urn_steer *s, struct urn_err *err)
{
	struct urn_steer_rule rule[URN_STEER_RULES];
	struct rte_flow_error error = {.message = NULL};
	unsigned int i, n = urn_steer_build(s, rule);

	(void)rte_flow_flush(port, &error);
	for (i = 0; i < n; i++) {
		if (rte_flow_create(port, &rule[i].attr, rule[i].item, rule[i].action, &error) !=
		    NULL)
			continue;
		urn_err_set(err, "the driver refuses the flow rule for %s: %s", rule[i].name,
			    error.message != NULL ? error.message : "no reason given");
		(void)rte_flow_flush(port, &error);
		return -1;
	}
	return 0;
}
