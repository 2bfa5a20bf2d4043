/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows; binding is a send request, on the fast path. */
#include "verbs/front.h"

#include <stdlib.h>

struct ibv_mw *
urn_verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = urn_ops(pd->context)->alloc_mw(urn_pd_use(pd), type);

	if (mw == NULL) {
		urn_pd_leave(pd);
		return NULL;
	}
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	return mw;
}

int
urn_verbs_dealloc_mw(struct ibv_mw *mw)
{
	struct ibv_pd *pd = mw->pd;
	int err = urn_ops(mw->context)->dealloc_mw(mw);

	if (err != 0)
		return err;
	urn_pd_leave(pd);
	free(mw);
	return 0;
}
