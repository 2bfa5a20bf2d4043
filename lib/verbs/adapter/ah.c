/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles. */
#include "verbs/adapter/adapter.h"

#include <stdlib.h>
#include <string.h>

void
urn_av_from_ah(const struct ibv_ah_attr *ah, struct urn_abi_av *av)
{
	memcpy(av->dgid, ah->grh.dgid.raw, sizeof(av->dgid));
	av->sgid_index = ah->grh.sgid_index;
	av->hop_limit = ah->grh.hop_limit;
	av->traffic_class = ah->grh.traffic_class;
	av->port_num = ah->port_num;
	av->flow_label = ah->grh.flow_label;
}

void
urn_av_to_ah(const struct urn_abi_av *av, struct ibv_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	memcpy(ah->grh.dgid.raw, av->dgid, sizeof(av->dgid));
	ah->grh.sgid_index = av->sgid_index;
	ah->grh.hop_limit = av->hop_limit;
	ah->grh.traffic_class = av->traffic_class;
	ah->grh.flow_label = av->flow_label;
	ah->port_num = av->port_num;
	ah->is_global = 1;
}

struct ibv_ah *
urn_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_AH};
	struct ibv_ah *ah = urn_object_alloc(sizeof(*ah));
	struct urn_abi_rep rep;

	if (ah == NULL)
		return NULL;
	urn_av_from_ah(attr, &req.create_ah.av);
	req.create_ah.pd = pd->handle;
	if (urn_dev_call(urn_ctx_dev(pd->context), &req, &rep) != 0) {
		free(ah);
		return NULL;
	}
	ah->handle = rep.handle;
	return ah;
}

int
urn_destroy_ah(struct ibv_ah *ah)
{
	urn_datagrams_drain(urn_ctx(ah->context));
	return urn_dev_call_handle(urn_ctx_dev(ah->context), URN_CTL_DESTROY_AH, ah->handle);
}
