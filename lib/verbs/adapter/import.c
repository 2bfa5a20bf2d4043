/* SPDX-License-Identifier: BSD-3-Clause */
/* Importing: contexts that share protection domains and regions. */
#include "verbs/adapter/adapter.h"

#include <stdlib.h>

int
urn_context_proof(struct ibv_context *c)
{
	const struct urn_abi_channel *ch = urn_ctx_dev(c)->channel;

	return ch->proof != NULL ? ch->proof(ch->ctx) : -1;
}

int
urn_context_join(struct ibv_context *c, int cmd_fd)
{
	struct urn_abi_req req = {.op = URN_CTL_JOIN, .fd = cmd_fd};
	struct urn_abi_rep rep;

	return urn_dev_call(urn_ctx_dev(c), &req, &rep);
}

struct ibv_pd *
urn_import_pd(struct ibv_context *c, uint32_t handle)
{
	struct urn_abi_req req = {.op = URN_CTL_IMPORT_PD, .handle = handle};
	struct urn_adapter_pd *pd = urn_object_alloc(sizeof(*pd));
	struct urn_abi_rep rep;

	if (pd == NULL)
		return NULL;
	if (urn_dev_call(urn_ctx_dev(c), &req, &rep) != 0) {
		free(pd);
		return NULL;
	}
	pd->imported = true;
	pd->ibv.handle = handle;
	return &pd->ibv;
}

struct ibv_mr *
urn_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct urn_abi_req req = {.op = URN_CTL_IMPORT_MR, .handle = handle};
	struct urn_adapter_mr *mr = urn_object_alloc(sizeof(*mr));
	struct urn_abi_rep rep;

	if (mr == NULL)
		return NULL;
	if (urn_dev_call(urn_ctx_dev(pd->context), &req, &rep) != 0) {
		free(mr);
		return NULL;
	}
	mr->imported = true;
	mr->ibv.handle = handle;
	mr->ibv.lkey = rep.region.lkey;
	mr->ibv.rkey = rep.region.rkey;
	mr->ibv.length = rep.region.length;
	return &mr->ibv;
}
