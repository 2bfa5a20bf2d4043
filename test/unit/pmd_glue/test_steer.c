/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/steer.h"

#include <netinet/in.h>
#include <string.h>

static const uint8_t mac[6] = {2, 3, 4, 5, 6, 7};

/* The fields of a frame that rules look at; a rule's items are read as a PMD would. */
struct frame {
	uint8_t dst[6];
	uint16_t type;
	uint8_t proto;
	uint16_t port;
};

static bool
eth_matches(const struct rte_flow_item *it, const struct frame *f)
{
	const struct rte_flow_item_eth *s = it->spec, *m = it->mask;
	unsigned int i;

	for (i = 0; i < 6; i++)
		if ((f->dst[i] ^ s->hdr.dst_addr.addr_bytes[i]) & m->hdr.dst_addr.addr_bytes[i])
			return false;
	return !((rte_cpu_to_be_16(f->type) ^ s->hdr.ether_type) & m->hdr.ether_type);
}

static bool
matches(const struct urn_steer_rule *r, const struct frame *f)
{
	const struct rte_flow_item *it;

	for (it = r->item; it->type != RTE_FLOW_ITEM_TYPE_END; it++) {
		assert_true(it < r->item + URN_STEER_ITEMS);
		if (it->type == RTE_FLOW_ITEM_TYPE_ETH && !eth_matches(it, f))
			return false;
		if (it->type == RTE_FLOW_ITEM_TYPE_IPV4 && f->type != RTE_ETHER_TYPE_IPV4)
			return false;
		if (it->type == RTE_FLOW_ITEM_TYPE_IPV6) {
			const struct rte_flow_item_ipv6 *s = it->spec, *m = it->mask;

			if (f->type != RTE_ETHER_TYPE_IPV6 ||
			    (s != NULL && ((s->hdr.proto ^ f->proto) & m->hdr.proto)))
				return false;
		}
		if (it->type == RTE_FLOW_ITEM_TYPE_UDP) {
			const struct rte_flow_item_udp *s = it->spec, *m = it->mask;

			if (f->proto != IPPROTO_UDP ||
			    ((s->hdr.dst_port ^ rte_cpu_to_be_16(f->port)) & m->hdr.dst_port))
				return false;
		}
	}
	return true;
}

/* The rule that takes a frame, or NULL. */
static const struct urn_steer_rule *
taker(const struct urn_steer_rule *rule, unsigned int n, struct frame f)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (matches(&rule[i], &f))
			return &rule[i];
	return NULL;
}

#define FRAME(d, t, pr, po) \
	((struct frame){    \
		.dst = {d[0], d[1], d[2], d[3], d[4], d[5]}, .type = t, .proto = pr, .port = po})

/* doc/reference/ports.md "mlx5": with a MAC of our own, ARP and ND are ours; nothing else is. */
static void
test_own_mac(void **state)
{
	const uint8_t other[6] = {2, 3, 4, 5, 6, 8}, all[6] = {255, 255, 255, 255, 255, 255};
	const uint8_t solicited[6] = {0x33, 0x33, 0xff, 9, 9, 9},
		      router[6] = {0x33, 0x33, 0, 0, 0, 1};
	struct urn_steer s = {.queues = 4, .mac_ours = true};
	struct urn_steer_rule r[URN_STEER_RULES];
	unsigned int n;

	(void)state;
	memcpy(s.mac, mac, 6);
	n = urn_steer_build(&s, r);
	assert_int_equal(n, URN_STEER_RULES);
	assert_non_null(taker(r, n, FRAME(mac, 0x0800, IPPROTO_UDP, 4791)));
	assert_non_null(taker(r, n, FRAME(mac, 0x86dd, IPPROTO_UDP, 4791)));
	assert_non_null(taker(r, n, FRAME(mac, 0x0806, 0, 0)));
	assert_non_null(taker(r, n, FRAME(all, 0x0806, 0, 0)));
	assert_non_null(taker(r, n, FRAME(mac, 0x86dd, IPPROTO_ICMPV6, 0)));
	assert_non_null(taker(r, n, FRAME(solicited, 0x86dd, IPPROTO_ICMPV6, 0)));
	/* Frames that are not ours. */
	assert_null(taker(r, n, FRAME(other, 0x0800, IPPROTO_UDP, 4791)));
	assert_null(taker(r, n, FRAME(mac, 0x0800, IPPROTO_UDP, 4790)));
	assert_null(taker(r, n, FRAME(mac, 0x0800, IPPROTO_TCP, 4791)));
	assert_null(taker(r, n, FRAME(mac, 0x86dd, IPPROTO_TCP, 22)));
	assert_null(taker(r, n, FRAME(other, 0x0806, 0, 0)));
	assert_null(taker(r, n, FRAME(router, 0x86dd, IPPROTO_ICMPV6, 0)));
	assert_null(taker(r, n, FRAME(all, 0x0800, IPPROTO_UDP, 67)));
}

/* With the kernel's MAC the kernel goes on answering ARP and ND. */
static void
test_kernel_mac(void **state)
{
	const uint8_t all[6] = {255, 255, 255, 255, 255, 255};
	struct urn_steer s = {.queues = 1};
	struct urn_steer_rule r[URN_STEER_RULES];
	unsigned int n;

	(void)state;
	memcpy(s.mac, mac, 6);
	n = urn_steer_build(&s, r);
	assert_int_equal(n, 2);
	assert_non_null(taker(r, n, FRAME(mac, 0x0800, IPPROTO_UDP, 4791)));
	assert_null(taker(r, n, FRAME(mac, 0x0806, 0, 0)));
	assert_null(taker(r, n, FRAME(all, 0x0806, 0, 0)));
}

/* RoCEv2 goes to all queues by hash, the rest to queue 0. */
static void
test_actions(void **state)
{
	struct urn_steer s = {.queues = 3, .mac_ours = true};
	struct urn_steer_rule r[URN_STEER_RULES];
	const struct rte_flow_action_rss *rss;
	unsigned int i, n = urn_steer_build(&s, r);

	(void)state;
	for (i = 0; i < n; i++) {
		assert_int_equal(r[i].attr.ingress, 1);
		assert_int_equal(r[i].action[1].type, RTE_FLOW_ACTION_TYPE_END);
		assert_non_null(r[i].name);
		if (i >= 2) {
			assert_int_equal(r[i].action[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
			continue;
		}
		assert_int_equal(r[i].action[0].type, RTE_FLOW_ACTION_TYPE_RSS);
		rss = r[i].action[0].conf;
		assert_int_equal(rss->queue_num, 3);
		assert_int_equal(rss->queue[2], 2);
		assert_true(rss->types & RTE_ETH_RSS_NONFRAG_IPV4_UDP);
	}
	s.queues = 1000;
	urn_steer_build(&s, r);
	assert_int_equal(((const struct rte_flow_action_rss *)r[0].action[0].conf)->queue_num,
			 URN_STEER_QUEUES);
	s.queues = 1;
	urn_steer_build(&s, r);
	assert_int_equal(r[0].action[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
}

/* A PMD without flow rules says so. */
static void
not_supported(void *arg)
{
	struct urn_port_config cfg = port_cfg("p0", "net_null0");
	struct urn_steer s = {.queues = 1};
	struct urn_err err = {""};
	struct urn_port *port;

	(void)arg;
	eal_up();
	port = port_up(&cfg);
	check(!port->caps.flow);
	check(urn_steer_isolate(port->id, &err) == -1);
	check_says(&err, "rte_flow_isolate");
	check(urn_steer_apply(port->id, &s, &err) == -1);
	check_says(&err, "RoCEv2 over IPv4");
	urn_port_close(port);
}

CHILD_TEST(not_supported)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_mac),
		cmocka_unit_test(test_kernel_mac),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_not_supported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
