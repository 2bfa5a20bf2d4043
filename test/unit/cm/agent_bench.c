/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent_bench.h"

#include "net/l3.h"
#include "wire/pkt.h"

#include <string.h>

struct agent_bench agent;

int
agent_setup(void **state)
{
	struct urn_cm_agent_config cfg = {.icrc = true, .ca_guid = 7, .seed = 7, .max_ids = 4096};
	uint8_t own[2][16];

	(void)state;
	memcpy(own[0], us_v4, 16);
	memcpy(own[1], us_ll, 16);
	agent.nb = urn_neigh_create(us_mac, (const uint8_t(*)[16])own, 2);
	if (!agent.nb || urn_neigh_add_static(agent.nb, peer_v4, peer_mac))
		return -1;
	cfg.neigh = agent.nb;
	memcpy(cfg.mac, us_mac, 6);
	agent.ag = urn_cm_agent_create(&cfg);
	urn_cm_client_init(&agent.client);
	memset(&agent.counters, 0, sizeof(agent.counters));
	agent.now = START;
	return agent.ag ? 0 : -1;
}

int
agent_teardown(void **state)
{
	(void)state;
	urn_cm_client_gone(agent.ag, &agent.client, agent.now);
	urn_cm_agent_destroy(agent.ag);
	urn_cm_agent_destroy(NULL);
	urn_neigh_destroy(agent.nb);
	return rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS ? 0 : -1;
}

unsigned int
agent_poll(unsigned int max)
{
	unsigned int n = urn_cm_agent_poll(agent.ag, agent.now, test_eal_pool(), agent.out, max,
					   &agent.counters);

	assert_true(n <= max);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(urn_wire_parse(agent.out[i]), URN_FRAME_ROCE);
		assert_true(urn_wire_icrc_ok(agent.out[i]));
		assert_int_equal(urn_pkt(agent.out[i])->dqpn, 1);
	}
	return n;
}

struct urn_cm_msg
agent_message_in(struct rte_mbuf *m)
{
	struct urn_cm_msg msg;
	const uint8_t *mad;
	uint32_t sqpn;

	assert_int_equal(urn_mad_find(m, &mad, &sqpn), 0);
	assert_int_equal(urn_cm_read(mad, sqpn, &msg), URN_C_CM_RX);
	return msg;
}

uint32_t
agent_connect_to(const uint8_t *gid, int channel)
{
	struct urn_abi_cm_connect p = {.service_id = SERVICE,
				       .cookie = 5,
				       .channel_fd = channel,
				       .qpn = 77,
				       .mtu = 3,
				       .timeout = 20,
				       .max_retries = 1};
	uint32_t id = 0;

	memcpy(p.dgid, gid, 16);
	assert_int_equal(urn_cm_connect(urn_cm_agent_lock(agent.ag), &agent.client.owner, &p,
					urn_neigh_source(agent.nb, gid), agent.now, &id),
			 0);
	urn_cm_agent_unlock(agent.ag);
	return id;
}

uint32_t
agent_listen_at(int channel)
{
	struct urn_abi_cm_listen p = {.service_id = SERVICE, .cookie = 6, .channel_fd = channel};
	uint32_t id = 0;

	assert_int_equal(urn_cm_listen(urn_cm_agent_lock(agent.ag), &agent.client.owner, &p, &id),
			 0);
	urn_cm_agent_unlock(agent.ag);
	return id;
}

enum urn_counter
agent_arrive(const struct urn_cm_msg *msg, const uint8_t *from, const uint8_t *to)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	struct urn_path path = {.sport = 0xc001, .ttl = 64};
	uint8_t mad[URN_MAD_BYTES];
	const uint8_t *found;
	enum urn_counter r;
	uint32_t sqpn;

	assert_non_null(m);
	memcpy(path.smac, peer_mac, 6);
	memcpy(path.dmac, us_mac, 6);
	memcpy(path.sgid, from, 16);
	memcpy(path.dgid, to, 16);
	urn_cm_write(mad, msg);
	assert_int_equal(urn_mad_frame(m, &path, mad, 0, 1), 0);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
	assert_int_equal(urn_mad_find(m, &found, &sqpn), 0);
	urn_cm_agent_input(agent.ag, m, found, sqpn, agent.now);
	r = (enum urn_counter)urn_pkt(m)->drop;
	rte_pktmbuf_free(m);
	return r;
}

struct urn_cm_msg
agent_a_req(uint32_t id)
{
	return (struct urn_cm_msg){.attr = URN_CM_REQ,
				   .local_id = id,
				   .service_id = SERVICE,
				   .qpn = 1000 + id,
				   .mtu = 3};
}
