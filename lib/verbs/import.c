/* SPDX-License-Identifier: BSD-3-Clause */
/* Importing protection domains and regions, in a context that shares them with another one. */
#include "verbs/front.h"

#include <stdlib.h>

struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct ibv_pd *pd;

	if (urn_ops(context)->import_pd == NULL) {
		urn_unsupported("importing a protection domain of this device");
		return NULL;
	}
	pd = urn_ops(context)->import_pd(context, pd_handle);
	if (pd != NULL)
		pd->context = context;
	return pd;
}

void
ibv_unimport_pd(struct ibv_pd *pd)
{
	free(pd);
}

struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct ibv_mr *mr;

	if (urn_ops(pd->context)->import_mr == NULL) {
		urn_unsupported("importing a region of this device");
		return NULL;
	}
	mr = urn_ops(pd->context)->import_mr(urn_pd_use(pd), mr_handle);
	if (mr == NULL) {
		urn_pd_leave(pd);
		return NULL;
	}
	mr->context = pd->context;
	mr->pd = pd;
	/* The address is the other context's, perhaps of another process. */
	mr->addr = NULL;
	return mr;
}

void
ibv_unimport_mr(struct ibv_mr *mr)
{
	if (mr != NULL)
		urn_pd_leave(mr->pd);
	free(mr);
}
