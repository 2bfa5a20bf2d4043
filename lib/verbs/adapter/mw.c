/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows; binding is a send request (send.c). */
#include "verbs/adapter/adapter.h"

#include <stdlib.h>

struct ibv_mw *
urn_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_MW};
	struct ibv_mw *mw = urn_object_alloc(sizeof(*mw));
	struct urn_abi_rep rep;

	if (mw == NULL)
		return NULL;
	req.alloc_mw.pd = pd->handle;
	req.alloc_mw.type = (uint32_t)type;
	if (urn_dev_call(urn_ctx_dev(pd->context), &req, &rep) != 0) {
		free(mw);
		return NULL;
	}
	mw->rkey = rep.mr.rkey;
	mw->handle = rep.mr.rkey;
	return mw;
}

int
urn_dealloc_mw(struct ibv_mw *mw)
{
	return urn_dev_call_handle(urn_ctx_dev(mw->context), URN_CTL_DEALLOC_MW, mw->handle);
}
