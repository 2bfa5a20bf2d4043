/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management of a rogue: it asks, listens and answers at random. */
#include "rogue.h"

enum { MOST_ASKED = 8 };

/* Ask a program that behaves, or a rogue, or nobody. */
static void
ask_for_connection(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_CONNECT};
	struct urn_abi_cm_connect *p = &req.cm_connect;
	struct urn_abi_rep rep;
	struct sim *s = n->s;
	const struct sim_node *to = &s->node[sim_rnd(&r->rng, s->plan.nodes)];
	uint32_t token = SIM_ROGUE_TOKEN | sim_rogue_u32(r);

	if (r->asked == MOST_ASKED)
		return;
	p->service_id = sim_service(to->id, sim_rnd(&r->rng, s->plan.clients + 1));
	if (sim_one_in(&r->rng, 4))
		p->service_id = 0x20000 + sim_rnd(&r->rng, SIM_ROGUES);
	p->channel_fd = r->channel ? (int32_t)r->channel : -1;
	p->qpn = r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)].qpn;
	p->psn = sim_rogue_u32(r) & 0xffffff;
	memcpy(p->dgid, to->gid, 16);
	p->sgid_index = sim_client_gid_index(&r->client);
	p->mtu = n->s->plan.mtu_code;
	p->timeout = (uint8_t)sim_between(&r->rng, 10, 13);
	p->max_retries = 15;
	p->data_len = 4;
	memcpy(p->data, &token, 4);
	r->asked += sim_rogue_call(r, &req, &rep) == 0;
	sim_node_wake(n, s->now);
}

/* Answer an event in a random way that may make sense. */
static void
answer_somehow(struct sim_node *n, struct sim_rogue *r)
{
	static const uint32_t ops[] = {URN_CTL_CM_ACCEPT, URN_CTL_CM_ACCEPT, URN_CTL_CM_ESTABLISH,
				       URN_CTL_CM_ESTABLISH, URN_CTL_CM_REJECT, URN_CTL_CM_DISCONNECT,
				       URN_CTL_CM_DESTROY};
	struct urn_abi_req req = {.op = URN_CTL_CM_EVENT};
	struct urn_abi_rep rep;
	uint32_t id;

	if (sim_rogue_call(r, &req, &rep) != 0)
		return;
	id = rep.cm_event.id;
	for (uint32_t k = sim_between(&r->rng, 1, 3); k; k--) {
		memset(&req, 0, sizeof(req));
		req.op = ops[sim_rnd(&r->rng, sizeof(ops) / sizeof(ops[0]))];
		req.handle = id;
		if (req.op == URN_CTL_CM_ACCEPT)
			req.cm_accept.qpn = r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)].qpn;
		sim_rogue_call(r, &req, &rep);
	}
	sim_node_wake(n, n->s->now);
}

void
sim_rogue_be_sociable(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_LISTEN};
	struct urn_abi_rep rep;

	switch (sim_rnd(&r->rng, 4)) {
	case 0:
		if (r->listener)
			break;
		req.cm_listen.service_id = 0x20000 + r->index;
		req.cm_listen.channel_fd = r->channel ? (int32_t)r->channel : -1;
		req.cm_listen.backlog = sim_rnd(&r->rng, 3);
		if (sim_rogue_call(r, &req, &rep) == 0)
			r->listener = rep.handle;
		break;
	case 1:
		ask_for_connection(n, r);
		break;
	default:
		answer_somehow(n, r);
		break;
	}
}
