/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests on address handles. */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"


static int
check(const struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	static const uint8_t none[16];
	const struct urn_adapter *a = c->adapter;
	const struct urn_abi_av *av = &req->create_ah.av;

	if (!urn_client_uses_pd(c, req->create_ah.pd))
		return urn_ctl_fail(rep, EINVAL, "%s: no protection domain %u", a->cfg.name,
				    req->create_ah.pd);
	if (av->port_num != 1 || av->sgid_index >= URN_GIDS ||
	    memcmp(a->gid[av->sgid_index], none, 16) == 0 || memcmp(av->dgid, none, 16) == 0)
		return urn_ctl_fail(rep, EINVAL, "%s: an address handle needs port 1, a source GID "
				    "that exists (index %u) and a destination", a->cfg.name,
				    av->sgid_index);
	if (urn_gid_is_v4(av->dgid) != urn_gid_is_v4(a->gid[av->sgid_index]))
		return urn_ctl_fail(rep, EINVAL, "%s: source GID %u and the destination are not both "
				    "IPv4 or IPv6", a->cfg.name, av->sgid_index);
	return 0;
}

static void
fill(const struct urn_adapter *a, struct urn_ah *ah, const struct urn_abi_av *av)
{
	struct urn_path path = {
		.tos = av->traffic_class,
		.ttl = av->hop_limit ? av->hop_limit : 64,
		.flow_label = av->flow_label,
		.sport = (uint16_t)(URN_ROCE_SPORT_MIN | ((av->dgid[14] << 8 | av->dgid[15]) & 0x3fff)),
	};

	ah->av = *av;
	memcpy(path.smac, a->mac, 6);
	memcpy(path.dmac, a->mac, 6);
	ah->group = urn_gid_multicast_mac(path.dmac, av->dgid);
	ah->ready = ah->group;
	ah->mac_until = ah->group ? UINT64_MAX : 0;
	memcpy(path.sgid, a->gid[av->sgid_index], 16);
	memcpy(path.dgid, av->dgid, 16);
	urn_tmpl_init(&ah->tmpl, &path);
	ah->loop = urn_neigh_is_own(a->neigh, av->dgid);
}

/* A free place in the adapter's table; 0: none. */
static uint32_t
free_id(struct urn_adapter *a)
{
	for (uint32_t tries = 0; tries < URN_ADAPTER_MAX_AH; tries++) {
		uint32_t i = a->ah_next;

		a->ah_next = i + 1 < URN_ADAPTER_MAX_AH ? i + 1 : 0;
		if (a->ah[i])
			continue;
		a->ah_used = RTE_MAX(a->ah_used, i + 1);
		return i + 1;
	}
	return 0;
}

int
urn_ctl_create_ah(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_ah *ah;
	uint8_t mac[6];
	uint32_t id;
	int rc = check(c, req, rep);

	if (rc != 0)
		return rc;
	id = free_id(a);
	ah = calloc(1, sizeof(*ah));
	if (!ah || !id) {
		free(ah);
		return urn_ctl_fail(rep, ENOMEM, "%s: no more address handles (at most %u)",
				    a->cfg.name, URN_ADAPTER_MAX_AH);
	}
	fill(a, ah, &req->create_ah.av);
	ah->pd = req->create_ah.pd;
	ah->client = &c->engine;
	urn_mem_pd_hold(a->mem, ah->pd);
	if (!ah->loop && !ah->group)
		urn_neigh_lookup(a->neigh, ah->av.dgid, mac); /* so that the MAC address is known by the first send */
	atomic_store_explicit(&a->ah[id - 1], ah, memory_order_release);
	c->ahs++;
	rep->handle = id;
	return 0;
}

/* Free address handles that stand in the table no more. */
static void
end_all(struct urn_client *c, struct urn_ah *const *ah, unsigned int n)
{
	/* An engine that looked one up before is done with it after this. */
	urn_adapter_barrier(c->adapter);
	for (unsigned int i = 0; i < n; i++) {
		urn_mem_pd_release(c->adapter->mem, ah[i]->pd);
		free(ah[i]);
	}
	c->ahs -= n;
}

int
urn_ctl_destroy_ah(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_ah *ah = req->handle && req->handle <= URN_ADAPTER_MAX_AH ? a->ah[req->handle - 1]
									     : NULL;

	if (!ah || ah->client != &c->engine)
		return urn_ctl_fail(rep, EINVAL, "%s: no address handle %u", a->cfg.name, req->handle);
	atomic_store(&a->ah[req->handle - 1], NULL);
	end_all(c, &ah, 1);
	return 0;
}

void
urn_ctl_take_back_ahs(struct urn_client *c)
{
	struct urn_adapter *a = c->adapter;
	struct urn_ah *ah[URN_CTL_TOGETHER];
	unsigned int n = 0;

	/* Most clients have none, and look at no place. */
	for (uint32_t i = 0; i < a->ah_used && c->ahs; i++) {
		struct urn_ah *one = a->ah[i];

		if (!one || one->client != &c->engine)
			continue;
		atomic_store(&a->ah[i], NULL);
		ah[n++] = one;
		if (n == URN_CTL_TOGETHER || n == c->ahs) {
			end_all(c, ah, n);
			urn_ctl_took_back(c, n);
			n = 0;
		}
	}
}
