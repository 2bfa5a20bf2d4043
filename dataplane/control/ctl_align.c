/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests on cache lines: writes of a QP on those of its peer, and counts of stores. */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "memory/stores.h"

#include <errno.h>

/* A change, carried out in the thread of the queue pair's engine. */
struct align {
	struct urn_qp *qp; /* the client's that asks; stays during the call */
	uint32_t line;	   /* enum urn_abi_align, or bytes */
	int rc;		   /* result: 0 or an errno value */
};

static void
align(void *arg)
{
	struct align *a = arg;

	a->rc = urn_qp_align_writes(a->qp, a->line);
}

int
urn_ctl_align_qp(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct align a = {.qp = urn_client_qp(c, req->handle), .line = req->align_qp.line};
	const char *name = c->adapter->cfg.name;

	if (!a.qp)
		return urn_ctl_fail(rep, EINVAL, "%s: no QP 0x%x", name, req->handle);
	if (a.qp->type != URN_QPT_RC)
		return urn_ctl_fail(rep, EINVAL,
				    "%s: QP 0x%x is not of type RC: its writes can't be aligned",
				    name, req->handle);
	urn_engine_call(c->adapter->shard[urn_qpn_engine(a.qp->qpn)]->engine, align, &a);
	if (a.rc != 0)
		return urn_ctl_fail(rep, a.rc,
				    "%s: no cache line has %u bytes: 64, 128 or 256, or 1 for "
				    "the peer's, 0 for none",
				    name, a.line);
	return 0;
}

int
urn_ctl_query_stores(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const char *name = c->adapter->cfg.name;
	int rc = urn_ctl_has_region(c, req->handle)
			 ? urn_stores_read(c->adapter->mem, req->handle, &rep->stores)
			 : EINVAL;

	if (rc == EOPNOTSUPP)
		return urn_ctl_fail(rep, rc,
				    "%s: stores are not counted: count_stores = yes in its "
				    "configuration lets the adapter count them",
				    name);
	return rc == 0 ? 0
		       : urn_ctl_fail(rep, rc, "%s: no region with the key 0x%x", name,
				      req->handle);
}
