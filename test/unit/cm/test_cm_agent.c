/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management on QP1: frames in and out, messages that wait for a MAC address,
 * addresses that nobody else may use, events and their notices.
 */
#include "agent_bench.h"

#include "net/l3.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

/* A request goes out at the next poll, to the peer's MAC address. */
static void
test_send(void **state)
{
	uint32_t id = agent_connect_to(peer_v4, -1);
	const struct urn_eth *eth;
	struct urn_cm_msg m;

	(void)state;
	assert_true(urn_cm_agent_pending(agent.ag));
	assert_int_equal(agent_poll(ROOM), 1);
	assert_false(urn_cm_agent_pending(agent.ag));
	m = agent_message_in(agent.out[0]);
	assert_int_equal(m.attr, URN_CM_REQ);
	assert_int_equal(m.local_id, id);
	eth = rte_pktmbuf_mtod(agent.out[0], const struct urn_eth *);
	assert_memory_equal(eth->dst, peer_mac, 6);
	assert_memory_equal(eth->src, us_mac, 6);
	rte_pktmbuf_free(agent.out[0]);
	assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(agent.counters.v[URN_C_CM_TX], 1);
}

/* A poll sends as many messages as there is room for; the rest stays. Without buffers none is lost for good. */
static void
test_room(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		agent_connect_to(peer_v4, -1);
	for (int i = 0; i < 3; i++) {
		unsigned int n = agent_poll(2);

		assert_int_equal(n, i < 2 ? 2 : 1);
		rte_pktmbuf_free_bulk(agent.out, n);
	}
	/* More messages than may wait at once: they are sent a little later, and none counts as a repeat. */
	for (int i = 0; i < URN_CM_OUT + 50; i++)
		agent_connect_to(peer_v4, -1);
	for (unsigned int got = 0; got < URN_CM_OUT + 50;) {
		unsigned int n;

		agent.now += MS;
		n = agent_poll(ROOM);
		rte_pktmbuf_free_bulk(agent.out, n);
		got += n;
		assert_true(agent.now < START + 2000 * MS);
	}
	assert_int_equal(agent.counters.v[URN_C_CM_RETRANSMITS], 0);
}

/* A request waits until the MAC address is known; an answer to a stranger does not. */
static void
test_no_mac(void **state)
{
	struct urn_cm_msg m = agent_a_req(1);
	struct rte_mbuf *arp[4];
	uint8_t unknown[16];

	(void)state;
	memcpy(unknown, peer_v4, 16);
	unknown[15] = 77;
	agent_connect_to(unknown, -1);
	for (int i = 0; i < 5; i++, agent.now += MS)
		assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(urn_neigh_poll(agent.nb, agent.now, test_eal_pool(), arp, 4), 1);
	rte_pktmbuf_free(arp[0]);
	assert_int_equal(urn_neigh_add_static(agent.nb, unknown, other_mac), 0);
	agent.now += MS;
	assert_int_equal(agent_poll(ROOM), 1);
	assert_memory_equal(rte_pktmbuf_mtod(agent.out[0], const struct urn_eth *)->dst, other_mac,
			    6);
	rte_pktmbuf_free(agent.out[0]);
	/* Nobody ever answers for this MAC address. */
	unknown[15] = 78;
	agent_connect_to(unknown, -1);
	assert_int_equal(agent_poll(ROOM), 0);
	agent.now += URN_CM_MAC_NS;
	assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(agent.counters.v[URN_C_DROP_CM_TX], 1);
	/* A refusal. */
	unknown[15] = 79;
	assert_int_equal(agent_arrive(&m, unknown, us_v4), URN_C_CM_NO_SERVICE);
	assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(agent.counters.v[URN_C_DROP_CM_TX], 2);
}

/* A repeated request raises a doubt of the peer's MAC address: its adapter may have another by
 * now, and the announcement of that may be lost. The holder of that address is asked first. */
static void
test_doubt(void **state)
{
	uint8_t peer[16], frame[L3_ROOM];
	struct rte_mbuf *arp[4], *m = rte_pktmbuf_alloc(test_eal_pool());
	uint32_t len;

	(void)state;
	memcpy(peer, peer_v4, 16);
	peer[15] = 77;
	agent_connect_to(peer, -1);
	assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(urn_neigh_poll(agent.nb, agent.now, test_eal_pool(), arp, 4), 1);
	rte_pktmbuf_free(arp[0]);
	len = l3_arp(frame, 2, other_mac, peer, us_v4);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ARP);
	(void)urn_neigh_input(agent.nb, m, agent.now);
	rte_pktmbuf_free(m);
	agent.now += MS;
	assert_int_equal(agent_poll(ROOM), 1);
	rte_pktmbuf_free(agent.out[0]);
	assert_int_equal(urn_neigh_poll(agent.nb, agent.now, test_eal_pool(), arp, 4), 0);
	agent.now += 5300 * MS;
	assert_int_equal(urn_neigh_poll(agent.nb, agent.now, test_eal_pool(), arp, 4), 0);
	assert_int_equal(agent_poll(ROOM), 1);
	rte_pktmbuf_free(agent.out[0]);
	assert_int_equal(urn_neigh_poll(agent.nb, agent.now, test_eal_pool(), arp, 4), 1);
	assert_memory_equal(rte_pktmbuf_mtod(arp[0], const struct urn_eth *)->dst, other_mac, 6);
	rte_pktmbuf_free(arp[0]);
}

/* From or to addresses that a message can't come from or go to. */
static void
test_addresses(void **state)
{
	struct urn_cm_msg m = agent_a_req(1);

	(void)state;
	assert_int_equal(agent_arrive(&m, us_v4, us_v4), URN_C_DROP_ADDRESS);
	assert_int_equal(agent_arrive(&m, peer_v4, peer_v4), URN_C_DROP_ADDRESS);
	assert_int_equal(agent_arrive(&m, no_addr, us_ll), URN_C_DROP_ADDRESS);
	assert_false(urn_cm_agent_pending(agent.ag));
}

/* To the adapter itself: no frame. */
static void
test_loop(void **state)
{
	struct urn_abi_cm_event ev;
	uint32_t l = agent_listen_at(-1);

	(void)state;
	agent_connect_to(us_v4, -1);
	assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(agent.counters.v[URN_C_LOOPBACK], 1);
	assert_int_equal(agent.counters.v[URN_C_CM_RX], 1);
	assert_int_equal(urn_cm_client_event(agent.ag, &agent.client, l, &ev), 0);
	assert_int_equal(ev.type, URN_CM_EVENT_REQUEST);
	assert_memory_equal(ev.gid, us_v4, 16);
}

/* One message of an id waits for a MAC address: the latest. */
static void
test_one_waits(void **state)
{
	uint8_t unknown[16];
	uint32_t id;

	(void)state;
	memcpy(unknown, peer_v4, 16);
	unknown[15] = 77;
	id = agent_connect_to(unknown, -1);
	agent_connect_to(unknown, -1);
	for (unsigned int i = 0; i < 3; i++, agent.now += 1075 * MS)
		assert_int_equal(agent_poll(ROOM), 0);
	urn_cm_client_release(agent.ag, &agent.client, id, agent.now);
	assert_int_equal(urn_neigh_add_static(agent.nb, unknown, other_mac), 0);
	agent.now += MS;
	assert_int_equal(agent_poll(ROOM), 2);
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_cm_msg m = agent_message_in(agent.out[i]);

		assert_int_equal(m.attr, m.local_id == id ? URN_CM_REJ : URN_CM_REQ);
		rte_pktmbuf_free(agent.out[i]);
	}
	/* When that message has been sent the next does not wait. */
	agent.now += 5300 * MS;
	assert_int_equal(agent_poll(ROOM), 1);
	assert_int_equal(agent_message_in(agent.out[0]).attr, URN_CM_REQ);
	rte_pktmbuf_free(agent.out[0]);
}

/* A message that waits for a MAC address does not change when another connection gets the id's place. */
static void
test_place_anew(void **state)
{
	struct urn_cm_agent_config cfg = {.neigh = agent.nb, .icrc = true, .seed = 7, .max_ids = 1};
	uint8_t first[16], second[16], src[16], dst[16];
	uint32_t id;

	(void)state;
	urn_cm_client_gone(agent.ag, &agent.client, agent.now);
	urn_cm_agent_destroy(agent.ag);
	memcpy(cfg.mac, us_mac, 6);
	agent.ag = urn_cm_agent_create(&cfg);
	assert_non_null(agent.ag);
	urn_cm_client_init(&agent.client);
	memcpy(first, peer_v4, 16);
	memcpy(second, peer_v4, 16);
	first[15] = 77;
	second[15] = 78;
	id = agent_connect_to(first, -1);
	assert_int_equal(agent_poll(ROOM), 0);
	urn_cm_client_release(agent.ag, &agent.client, id, agent.now);
	agent_connect_to(second, -1);
	assert_int_equal(agent_poll(ROOM), 0);
	assert_int_equal(urn_neigh_add_static(agent.nb, first, other_mac), 0);
	assert_int_equal(urn_neigh_add_static(agent.nb, second, other_mac), 0);
	agent.now += MS;
	assert_int_equal(agent_poll(ROOM), 2);
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_cm_msg m = agent_message_in(agent.out[i]);

		urn_l3_addresses(agent.out[i], src, dst);
		assert_memory_equal(dst, m.local_id == id ? first : second, 16);
		assert_int_equal(m.attr, m.local_id == id ? URN_CM_REJ : URN_CM_REQ);
		rte_pktmbuf_free(agent.out[i]);
	}
}

/* Messages that wait for a MAC address that never comes leave room for others. */
static void
test_many_wait(void **state)
{
	uint8_t unknown[16];
	unsigned int n = 0;

	(void)state;
	for (unsigned int i = 0; i < URN_CM_OUT; i++) {
		memcpy(unknown, peer_v4, 16);
		unknown[14] = (uint8_t)(i >> 6);
		unknown[15] = (uint8_t)(128 + i % 64);
		agent_connect_to(unknown, -1);
		assert_int_equal(agent_poll(ROOM), 0);
	}
	assert_int_equal(agent.counters.v[URN_C_DROP_CM_TX], URN_CM_OUT - URN_CM_NO_MAC);
	for (unsigned int i = 0; i < URN_CM_OUT - URN_CM_NO_MAC; i++)
		agent_connect_to(peer_v4, -1);
	for (unsigned int got = 1; got; n += got) {
		got = agent_poll(ROOM);
		rte_pktmbuf_free_bulk(agent.out, got);
	}
	assert_int_equal(n, URN_CM_OUT - URN_CM_NO_MAC);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, agent_setup, agent_teardown)
	const struct CMUnitTest tests[] = {
		T(test_send),	   T(test_room),       T(test_no_mac),
		T(test_doubt),	   T(test_addresses),  T(test_loop),
		T(test_one_waits), T(test_place_anew), T(test_many_wait),
	};

	if (test_eal_pool() == NULL)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
