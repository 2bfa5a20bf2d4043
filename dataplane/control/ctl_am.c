/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests on endpoints of remote memory access (AM-8, AM-9). An endpoint is made
 * and ended in the thread of its engine, like a register set, and so are its regions. Control keeps
 * no state of either.
 */
#include "am/am.h"
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "engine/sources.h"
#include "msg/msg.h"

#include <sys/random.h>

/* An endpoint, as a call on it sees it. */
struct ep_view {
	struct urn_shard *shard;     /* shard of its engine */
	struct urn_client_shard *cs; /* the client's there */
	struct urn_am_ep *ep;
};

/* ---- open */

struct am_opening {
	struct urn_client_shard *cs;
	struct urn_am_config cfg;
	struct urn_am_view v; /* the endpoint; valid on success */
	int rc;
};

/* In the engine's thread. */
static void
open_ep(void *arg)
{
	struct am_opening *o = arg;
	struct urn_am *am = o->cs->shard->am;
	struct urn_am_ep *ep;

	o->rc = urn_sources_take(o->cs, &o->cfg.db);
	if (o->rc != 0)
		return;
	o->rc = urn_am_ep_open(am, &o->cfg, &ep);
	if (o->rc != 0) {
		urn_sources_drop(o->cs, o->cfg.db);
		return;
	}
	urn_sources_enter(o->cs, urn_am_ep_source(ep));
	urn_am_ep_look(am, ep, &o->v);
}

static int
check_open(const struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
	   int *fd)
{
	const char *name = c->adapter->cfg.name;
	uint32_t entries = req->am_open.entries;

	if (!entries || entries > URN_AM_ENTRIES_MAX || (entries & (entries - 1)) != 0)
		return urn_ctl_fail(
			rep, EINVAL,
			"%s: an endpoint has a power of two of entries up to %d, not %u", name,
			URN_AM_ENTRIES_MAX, entries);
	if (req->am_open.ranges > URN_AM_RANGES_MAX)
		return urn_ctl_fail(rep, EINVAL, "%s: an endpoint has at most %d ranges, not %u",
				    name, URN_AM_RANGES_MAX, req->am_open.ranges);
	if (!urn_client_owns_pd(c, req->am_open.pd))
		return urn_ctl_fail(rep, EINVAL, "%s: no protection domain %u", name,
				    req->am_open.pd);
	return urn_ctl_channel_find(c, req->am_open.channel_fd, rep, fd);
}

int
urn_ctl_am_open(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	uint32_t vector = req->am_open.comp_vector % a->vectors;
	struct am_opening o = {.cs = urn_client_shard(c, vector),
			       .cfg = {.cookie = req->am_open.cookie}};
	uint64_t bytes, off;
	int rc = check_open(c, req, rep, &o.cfg.channel_fd);

	if (rc != 0)
		return rc;
	bytes = urn_am_ep_bytes(req->am_open.entries, req->am_open.ranges);
	rc = urn_client_alloc(c, bytes, &off);
	if (rc != 0)
		return urn_ctl_fail(rep, rc, "%s: no room for an endpoint (area of %llu MiB)",
				    a->cfg.name, (unsigned long long)(c->area.size >> 20));
	rc = urn_mem_pd_hold(a->mem, req->am_open.pd);
	o.cfg.share = &o.cs->share;
	o.cfg.regs = (void *)(c->area.base + off);
	o.cfg.entries = req->am_open.entries;
	o.cfg.ranges = req->am_open.ranges;
	o.cfg.pd = req->am_open.pd;
	o.cfg.pipelined_from = req->am_open.pipelined_from;
	o.cfg.tagged_from = req->am_open.tagged_from;
	o.cfg.channel = urn_ctl_channel_use(c, req->am_open.channel_fd);
	if (rc == 0)
		urn_engine_call(urn_adapter_shard(a, vector)->engine, open_ep, &o);
	if (rc != 0 || o.rc != 0) {
		if (rc == 0)
			urn_mem_pd_release(a->mem, req->am_open.pd);
		urn_ctl_channel_leave(c, o.cfg.channel);
		urn_area_free(&c->area, off, bytes);
		return urn_ctl_fail(rep, rc ? rc : o.rc,
				    "%s: no more endpoints (at most %d on an engine)", a->cfg.name,
				    URN_AM_ENDPOINTS_MAX);
	}
	c->am_eps++;
	rep->handle = URN_MSG_HANDLE(a->engine_of[vector], o.v.slot);
	rep->am.off = off;
	rep->am.qid = o.v.qid;
	rep->am.db = o.cfg.db;
	rep->am.engine = vector;
	rep->am.chunk = urn_am_chunk(urn_adapter_shard(a, vector)->tp);
	return 0;
}

/* ---- calls on an endpoint */

/* Find the client's endpoint with a handle; none goes away while the adapter's lock is held.
 * returns: true: it is there */
static bool
find(const struct urn_client *c, uint32_t handle, struct urn_abi_rep *rep, struct ep_view *v)
{
	uint32_t engine = URN_MSG_HANDLE_ENGINE(handle);
	const struct urn_tp_share *share;

	v->shard = engine < URN_ABI_MAX_ENGINES ? c->adapter->shard[engine] : NULL;
	v->ep = v->shard ? urn_am_ep_at(v->shard->am, URN_MSG_HANDLE_SLOT(handle)) : NULL;
	share = v->ep ? urn_am_ep_source(v->ep)->share : NULL;
	if (!share || urn_client_of(urn_share_client(share)) != c) {
		urn_ctl_fail(rep, EINVAL, "%s: no endpoint %u", c->adapter->cfg.name, handle);
		return false;
	}
	v->cs = urn_client_shard_of(share);
	return true;
}

struct registering {
	struct ep_view v;
	struct urn_am_region_config cfg;
	int rc;
};

/* In the engine's thread. */
static void
add_region(void *arg)
{
	struct registering *r = arg;

	r->rc = urn_am_region_add(r->v.shard->tp, r->v.ep, &r->cfg);
}

/* Say why a region was refused. */
static int
refuse(const struct urn_client *c, const struct registering *r, struct urn_abi_rep *rep)
{
	const char *name = c->adapter->cfg.name;

	switch (r->rc) {
	case EINVAL:
		return urn_ctl_fail(rep, EINVAL,
				    "%s: range %u is empty, wraps around, or does not lie behind "
				    "the one before",
				    name, r->cfg.bad);
	case EFAULT:
		return urn_ctl_fail(rep, EFAULT,
				    "%s: range %u is not memory of its key that allows this access",
				    name, r->cfg.bad);
	case EOPNOTSUPP:
		return urn_ctl_fail(rep, EOPNOTSUPP, "%s: range %u is not memory of urn_alloc()",
				    name, r->cfg.bad);
	case EPERM:
		return urn_ctl_fail(
			rep, EPERM,
			"%s: am_unregistered is off: register the memory, and publish its key",
			name);
	case EEXIST:
		return urn_ctl_fail(
			rep, EEXIST,
			"%s: the endpoint has memory without a key: take that back first", name);
	case ENOSPC:
		return urn_ctl_fail(rep, ENOSPC, "%s: no room for %u ranges, or %d regions", name,
				    r->cfg.n, URN_AM_REGIONS_MAX);
	default:
		return urn_ctl_fail(rep, r->rc, "%s: no memory for a region", name);
	}
}

int
urn_ctl_am_reg(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct registering r = {.cfg = {.access = req->am_reg.access,
					.space = req->am_reg.flags & URN_AM_REG_SPACE,
					.n = req->am_reg.ranges}};

	if (!find(c, req->handle, rep, &r.v))
		return EINVAL;
	if (!req->am_reg.access || (req->am_reg.access & ~(uint32_t)URN_AM_ACCESS_ALL) ||
	    (req->am_reg.flags & ~(uint32_t)URN_AM_REG_SPACE))
		return urn_ctl_fail(rep, EINVAL,
				    "%s: access 0x%x or flags 0x%x of a region are unknown",
				    c->adapter->cfg.name, req->am_reg.access, req->am_reg.flags);
	/* A key that was published tells nothing about the keys of others. */
	if (getrandom(&r.cfg.random, sizeof(r.cfg.random), 0) != (ssize_t)sizeof(r.cfg.random))
		return urn_ctl_fail(rep, EAGAIN, "%s: no random number for a key",
				    c->adapter->cfg.name);
	urn_engine_call(r.v.shard->engine, add_region, &r);
	if (r.rc != 0)
		return refuse(c, &r, rep);
	rep->handle = req->handle;
	rep->am.key = r.cfg.key;
	return 0;
}

struct removing {
	struct ep_view v;
	uint64_t key;
	int rc;
};

/* In the engine's thread: no packet is being checked. */
static void
remove_region(void *arg)
{
	struct removing *r = arg;

	r->rc = urn_am_region_remove(r->v.ep, r->key);
}

int
urn_ctl_am_dereg(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct removing r = {.key = req->am_dereg.key};

	if (!find(c, req->handle, rep, &r.v))
		return EINVAL;
	urn_engine_call(r.v.shard->engine, remove_region, &r);
	if (r.rc != 0)
		return urn_ctl_fail(rep, EINVAL,
				    "%s: the endpoint has no region with the key 0x%llx",
				    c->adapter->cfg.name, (unsigned long long)req->am_dereg.key);
	return 0;
}

/* In the engine's thread: no flow or packet knows the endpoint after that. */
static void
close_ep(void *arg)
{
	struct ep_view *v = arg;
	struct urn_source *src = urn_am_ep_source(v->ep);
	uint32_t db = src->db;

	(void)urn_am_ep_end(v->shard->tp, src);
	urn_sources_drop(v->cs, db);
}

int
urn_ctl_am_close(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_am_view is;
	struct ep_view v;

	if (!find(c, req->handle, rep, &v))
		return EINVAL;
	urn_am_ep_look(v.shard->am, v.ep, &is);
	urn_engine_call(v.shard->engine, close_ep, &v);
	c->am_eps--;
	urn_mem_pd_release(c->adapter->mem, is.pd);
	urn_ctl_channel_leave(c, is.channel);
	urn_area_free(&c->area, (uint64_t)((uint8_t *)is.regs - c->area.base),
		      urn_am_ep_bytes(is.entries, is.ranges));
	return 0;
}
