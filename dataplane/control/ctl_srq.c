/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests on shared receive queues. */
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"

static int
check(const struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const char *name = c->adapter->cfg.name;

	if (!urn_client_uses_pd(c, req->create_srq.pd))
		return urn_ctl_fail(rep, EINVAL, "%s: no protection domain %u", name,
				    req->create_srq.pd);
	if (req->create_srq.max_wr == 0 || req->create_srq.max_wr > URN_ABI_MAX_WR ||
	    req->create_srq.max_sge > URN_ABI_MAX_SGE)
		return urn_ctl_fail(rep, EINVAL, "%s: an SRQ has 1 to %u entries of at most %u elements, "
				    "not %u of %u", name, URN_ABI_MAX_WR, URN_ABI_MAX_SGE,
				    req->create_srq.max_wr, req->create_srq.max_sge);
	if (req->create_srq.limit > req->create_srq.max_wr)
		return urn_ctl_fail(rep, EINVAL, "%s: the limit %u is more than the SRQ's %u entries",
				    name, req->create_srq.limit, req->create_srq.max_wr);
	return 0;
}

int
urn_ctl_create_srq(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_ctl_cq *cq = urn_handles_get(&c->cqs, req->create_srq.cq_hint);
	uint32_t entries, stride, sge = req->create_srq.max_sge ? req->create_srq.max_sge : 1;
	struct urn_ctl_srq *s;
	int rc = check(c, req, rep);

	if (rc != 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return ENOMEM;
	entries = urn_pow2(req->create_srq.max_wr);
	stride = urn_abi_rq_stride(sge);
	s->bytes = URN_ABI_WQ_SLOTS + (uint64_t)entries * stride;
	s->vector = cq ? cq->vector : 0;
	rc = urn_client_alloc(c, s->bytes, &s->off);
	if (rc == 0) {
		rc = urn_handles_put(&c->srqs, s, URN_ADAPTER_MAX_SRQ, &s->srq.handle);
		if (rc != 0)
			urn_area_free(&c->area, s->off, s->bytes);
	}
	if (rc != 0) {
		free(s);
		return urn_ctl_fail(rep, rc, "%s: no room for the SRQ", a->cfg.name);
	}
	s->srq.rq.hdr = (void *)(c->area.base + s->off);
	s->srq.rq.mask = (uint16_t)(entries - 1);
	s->srq.rq.stride = (uint16_t)stride;
	s->srq.rq.max_sge = (uint8_t)sge;
	s->srq.pd = req->create_srq.pd;
	s->srq.limit = req->create_srq.limit;
	s->srq.max_wr = req->create_srq.max_wr;
	s->srq.max_sge = sge;
	s->srq.engine = a->engine_of[s->vector];
	s->srq.cookie = req->create_srq.cookie;
	s->srq.owner = c->engine.share[s->srq.engine];
	urn_mem_pd_hold(a->mem, s->srq.pd);
	rep->handle = s->srq.handle;
	rep->queue.off = s->off;
	rep->queue.entries = entries;
	rep->queue.stride = stride;
	rep->queue.engine = s->vector;
	return 0;
}

static struct urn_ctl_srq *
find(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_ctl_srq *s = urn_handles_get(&c->srqs, req->handle);

	if (!s)
		urn_ctl_fail(rep, EINVAL, "%s: no SRQ %u", c->adapter->cfg.name, req->handle);
	return s;
}

struct set_limit {
	struct urn_ctl_srq *s;
	uint32_t limit;
};

static void
set_limit(void *arg)
{
	struct set_limit *l = arg;

	l->s->srq.limit = l->limit;
}

int
urn_ctl_modify_srq(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct set_limit l = {.s = find(c, req, rep), .limit = req->modify_srq.limit};

	if (!l.s)
		return EINVAL;
	if (!req->modify_srq.set_limit)
		return 0;
	if (l.limit > l.s->srq.max_wr)
		return urn_ctl_fail(rep, EINVAL, "%s: the limit %u is more than the SRQ's %u entries",
				    c->adapter->cfg.name, l.limit, l.s->srq.max_wr);
	urn_engine_call(urn_adapter_shard(c->adapter, l.s->vector)->engine, set_limit, &l);
	return 0;
}

int
urn_ctl_query_srq(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const struct urn_ctl_srq *s = find(c, req, rep);

	if (!s)
		return EINVAL;
	rep->srq_attr.max_wr = s->srq.max_wr;
	rep->srq_attr.max_sge = s->srq.max_sge;
	rep->srq_attr.limit = s->srq.limit;
	return 0;
}

int
urn_ctl_destroy_srq(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_ctl_srq *s = find(c, req, rep);

	if (!s)
		return EINVAL;
	if (s->srq.users)
		return urn_ctl_fail(rep, EBUSY, "%s: SRQ %u is used by %u QPs: destroy those first",
				    c->adapter->cfg.name, req->handle, s->srq.users);
	urn_mem_pd_release(c->adapter->mem, s->srq.pd);
	urn_handles_remove(&c->srqs, req->handle);
	urn_area_free(&c->area, s->off, s->bytes);
	free(s);
	return 0;
}
