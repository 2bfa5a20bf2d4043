/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests on protection domains, regions and windows. */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "control/shm.h"
#include "memory/check.h"

enum { KEY_NONE, KEY_REGION, KEY_WINDOW };

bool
urn_client_owns_pd(const struct urn_client *c, uint32_t pd)
{
	return pd && pd <= URN_ADAPTER_MAX_PD && c->adapter->pd_owner[pd] == c;
}

static int
no_pd(const struct urn_client *c, struct urn_abi_rep *rep, uint32_t pd)
{
	return urn_ctl_fail(rep, EINVAL, "%s: no protection domain %u", c->adapter->cfg.name, pd);
}

int
urn_ctl_alloc_pd(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	int rc = urn_mem_alloc_pd(c->adapter->mem, &rep->handle);

	(void)req;
	if (rc != 0)
		return urn_ctl_fail(rep, rc, "%s: no more protection domains (at most %u)",
				    c->adapter->cfg.name, URN_ADAPTER_MAX_PD);
	c->adapter->pd_owner[rep->handle] = c;
	return 0;
}

struct forgotten {
	struct urn_shard *shard;
	uint32_t pd;
};

static void
forget_pd(void *arg)
{
	struct forgotten *f = arg;

	urn_memx_forget_pd(f->shard->memx, f->pd);
}

int
urn_ctl_remove_pd(struct urn_adapter *a, uint32_t pd, struct urn_abi_rep *rep)
{
	int rc = urn_mem_dealloc_pd(a->mem, pd);

	if (rc != 0)
		return urn_ctl_fail(rep, rc,
				    "%s: protection domain %u is in use: destroy its QPs, SRQs, "
				    "address handles, regions and windows first",
				    a->cfg.name, pd);
	/* Engines forget the PD before another client can get it: the adapter's lock is held. */
	for (uint32_t v = 0; v < a->vectors; v++) {
		struct forgotten f = {.shard = urn_adapter_shard(a, v), .pd = pd};

		urn_engine_call(f.shard->engine, forget_pd, &f);
	}
	a->pd_owner[pd] = NULL;
	a->pd_flags[pd] = 0;
	return 0;
}

int
urn_ctl_dealloc_pd(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	/* The quota is given back after this: an inherited domain that was not charged ends by
	 * END_PD. */
	if (!urn_client_owns_pd(c, req->handle) ||
	    (c->adapter->pd_flags[req->handle] & URN_PD_UNCHARGED))
		return no_pd(c, rep, req->handle);
	return urn_ctl_remove_pd(c->adapter, req->handle, rep);
}

static void
own_key(struct urn_client *c, uint32_t key, uint8_t kind)
{
	struct urn_adapter *a = c->adapter;
	uint32_t index = key >> 8;

	a->key_owner[index] = c;
	a->key_kind[index] = kind;
	a->key[index] = key;
	LIST_INSERT_HEAD(&c->keys, &a->key_link[index], link);
}

/* True when the key is the client's and of this kind. Windows change their low byte with each bind. */
static bool
owns_key(const struct urn_client *c, uint32_t key, uint8_t kind)
{
	const struct urn_adapter *a = c->adapter;
	uint32_t index = key >> 8;

	return index <= a->cfg.max_mr && a->key_owner[index] == c && a->key_kind[index] == kind &&
	       (kind == KEY_WINDOW || a->key[index] == key);
}

bool
urn_ctl_has_region(const struct urn_client *c, uint32_t lkey)
{
	return owns_key(c, lkey, KEY_REGION);
}

static void
disown_key(struct urn_client *c, uint32_t key)
{
	struct urn_adapter *a = c->adapter;

	a->key_owner[key >> 8] = NULL;
	a->key_bytes[key >> 8] = 0;
	a->key_kind[key >> 8] = KEY_NONE;
	LIST_REMOVE(&a->key_link[key >> 8], link);
}

/*
 * Register memory at another process's addresses. Reading that process's map takes locks that
 * the process may hold itself, of its address space and of the file: others' calls do not wait.
 */
static int
reg_foreign(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
	    uint32_t *key)
{
	char why[256] = "";
	int rc;

	urn_ctl_unlock(c);
	rc = urn_mem_check_foreign(c->space, req->reg_mr.addr, req->reg_mr.length, req->reg_mr.iova,
				   req->reg_mr.access, why, sizeof(why));
	urn_ctl_relock(c);
	if (rc == 0)
		rc = urn_mem_add_foreign(c->adapter->mem, req->reg_mr.pd, c->space, req->reg_mr.addr,
					 req->reg_mr.length, req->reg_mr.iova, req->reg_mr.access, key,
					 why, sizeof(why));
	return rc == 0 ? 0 : urn_ctl_fail(rep, rc, "%s: %s", c->adapter->cfg.name, why);
}

uint64_t
urn_ctl_reg_mr_bytes(struct urn_client *c, const struct urn_abi_req *req)
{
	(void)c;
	return req->reg_mr.length;
}

int
urn_ctl_reg_mr(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_shm *shm = NULL;
	uint8_t *base;
	uint32_t key = 0;
	int rc;

	if (!urn_client_uses_pd(c, req->reg_mr.pd))
		return no_pd(c, rep, req->reg_mr.pd);
	if (req->reg_mr.addr + req->reg_mr.length < req->reg_mr.addr ||
	    req->reg_mr.iova + req->reg_mr.length < req->reg_mr.iova)
		return urn_ctl_fail(rep, EINVAL, "%s: a region of %llu bytes wraps around the address "
				    "space", a->cfg.name, (unsigned long long)req->reg_mr.length);
	base = (uint8_t *)(uintptr_t)req->reg_mr.addr;
	if (c->remote && req->reg_mr.length) {
		shm = urn_shm_find(c, req->reg_mr.addr, req->reg_mr.length, &base);
		if (!shm && !c->space)
			return urn_ctl_fail(rep, EOPNOTSUPP, "only memory of urn_alloc() can be "
					    "registered: %s", c->no_space);
	}
	if (shm) {
		rc = urn_shm_populated(c, shm, req->reg_mr.addr, req->reg_mr.length, rep);
		if (rc != 0)
			return rc;
	}
	if (c->space && !shm) {
		rc = reg_foreign(c, req, rep, &key);
		if (rc != 0)
			return rc;
	} else {
		/* The memory is shared; or the client is embedded, with this process's addresses. */
		rc = urn_mem_reg_mr(a->mem, req->reg_mr.pd, base, req->reg_mr.length,
				    req->reg_mr.iova, req->reg_mr.access, &key);
	}
	if (rc == EINVAL)
		return urn_ctl_fail(rep, rc, "%s: access 0x%x is not possible: remote write and "
				    "atomics need local write, and the bits must be known; or there "
				    "is no address", a->cfg.name, req->reg_mr.access);
	if (rc != 0)
		return urn_ctl_fail(rep, rc, "%s: no more regions (at most %u)", a->cfg.name,
				    a->cfg.max_mr);
	own_key(c, key, KEY_REGION);
	a->key_bytes[key >> 8] = req->reg_mr.length;
	if (shm)
		urn_shm_hold(c, shm, key);
	rep->handle = rep->mr.lkey = rep->mr.rkey = key;
	return 0;
}

enum { HOLDS_A_CALL = 4 }; /* foreign regions that an engine looks at in one call */

/* Regions that were killed, and an engine that may have operations on them. */
struct holds {
	struct urn_shard *shard;
	struct urn_region *const *region;
	unsigned int n;
	unsigned int free; /* the engine has no operation on so many of them, from the first on */
};

/* Look at the regions, a few foreign ones at a time: a look at one of those goes through thousands
 * of operations that may be under way. */
static void
count_holds(void *arg)
{
	struct holds *h = arg;
	unsigned int looks = 0;

	urn_tp_poll_memory(h->shard->tp);
	for (; h->free < h->n && looks < HOLDS_A_CALL; h->free++) {
		looks += h->region[h->free]->foreign;
		if (urn_memx_holds(h->shard->memx, h->region[h->free]) != 0)
			return;
	}
}

/* Wait until no engine has an operation on killed regions in flight. */
static void
wait_all_released(struct urn_client *c, struct urn_region *const *region, unsigned int n)
{
	struct urn_adapter *a = c->adapter;

	for (uint32_t v = 0; v < a->vectors; v++) {
		struct holds h = {.shard = urn_adapter_shard(a, v), .region = region, .n = n};

		while (h.free < n) {
			unsigned int before = h.free;

			urn_engine_call(h.shard->engine, count_holds, &h);
			if (h.free == before)
				urn_ctl_wait(c);
		}
	}
}

static void
wait_released(struct urn_client *c, struct urn_region *region)
{
	wait_all_released(c, &region, 1);
}

uint64_t
urn_ctl_dereg_mr_bytes(struct urn_client *c, const struct urn_abi_req *req)
{
	const struct urn_adapter *a = c->adapter;
	uint32_t index = req->handle >> 8;

	return index <= a->cfg.max_mr && a->key_owner[index] == c ? a->key_bytes[index] : 0;
}

int
urn_ctl_dereg_mr(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_region *region;
	int rc;

	if (!owns_key(c, req->handle, KEY_REGION))
		return urn_ctl_fail(rep, EINVAL, "%s: no region with the key 0x%x", a->cfg.name,
				    req->handle);
	rc = urn_mem_kill_mr(a->mem, req->handle, &region);
	if (rc != 0)
		return urn_ctl_fail(rep, rc, "%s: memory windows are bound to the region 0x%x: "
				    "invalidate them first", a->cfg.name, req->handle);
	wait_released(c, region);
	urn_mem_free_mr(a->mem, region);
	disown_key(c, req->handle);
	urn_shm_release(c, req->handle);
	return 0;
}

/* The client of the family whose region this is, and who is not leaving; NULL: there is none */
static struct urn_client *
family_owner(const struct urn_client *c, uint32_t key)
{
	const struct urn_adapter *a = c->adapter;
	uint32_t index = key >> 8;
	struct urn_client *o = index <= a->cfg.max_mr ? a->key_owner[index] : NULL;

	return o && o->family == c->family && !o->leaving && owns_key(o, key, KEY_REGION) ? o
											  : NULL;
}

int
urn_ctl_import_mr(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const struct urn_adapter *a = c->adapter;
	const struct urn_region *r = urn_region_at(a->mem, req->handle >> 8);
	struct urn_region_view v;

	if (!family_owner(c, req->handle) || !r || !urn_region_read(r, &v) || v.key != req->handle)
		return urn_ctl_fail(rep, EINVAL, "%s: no region with the key 0x%x", a->cfg.name,
				    req->handle);
	rep->handle = rep->region.lkey = rep->region.rkey = req->handle;
	rep->region.length = v.length;
	return 0;
}

/*
 * The region of another client, which was killed, becomes this one's: the other may go meanwhile.
 * The other's quotas are given back, for it can do nothing with the region any more.
 */
static void
take_over(struct urn_client *c, struct urn_client *owner, uint32_t key)
{
	struct urn_adapter *a = c->adapter;
	const uint64_t had[URN_LEDGER_KINDS] = {
		[URN_QUOTA_MR] = 1, [URN_QUOTA_PINNED] = a->key_bytes[key >> 8]};

	if (owner->quota.account)
		urn_tally_give(&owner->quota, had);
	disown_key(owner, key);
	own_key(c, key, KEY_REGION);
}

int
urn_ctl_end_mr(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_client *owner = family_owner(c, req->handle);
	struct urn_region *region;
	struct urn_space *space;
	int rc;

	if (owner && owner != c && a->key_shm[req->handle >> 8])
		return urn_ctl_fail(
			rep, EOPNOTSUPP,
			"%s: the region 0x%x lies in memory that another context shares "
			"with the dataplane: deregister it there",
			a->cfg.name, req->handle);
	rc = owner ? urn_mem_kill_mr(a->mem, req->handle, &region) : EINVAL;
	if (rc != 0)
		return urn_ctl_fail(rep, rc,
				    rc == EBUSY
					    ? "%s: memory windows are bound to the region 0x%x: "
					      "invalidate them first"
					    : "%s: no region with the key 0x%x",
				    a->cfg.name, req->handle);
	space = owner->space;
	if (space)
		urn_space_hold(space);
	take_over(c, owner, req->handle);
	wait_released(c, region);
	urn_mem_free_mr(a->mem, region);
	disown_key(c, req->handle);
	urn_shm_release(c, req->handle);
	/* Perhaps the last use of the space of a client that has gone: its worker may take long to
	 * end. */
	urn_ctl_unlock(c);
	urn_space_release(space);
	urn_ctl_relock(c);
	return 0;
}

uint64_t
urn_ctl_replace_mr_bytes(struct urn_client *c, const struct urn_abi_req *req)
{
	return urn_ctl_dereg_mr_bytes(c, req);
}

/*
 * Executors read a region without a look at its key, so the region is out of use while it changes,
 * and until then all operations that were accepted under its key are done.
 */
int
urn_ctl_replace_mr(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	uint32_t key = req->handle, by = req->replace_mr.by;
	struct urn_adapter *a = c->adapter;
	struct urn_region *region, *other;
	int rc;

	if (!owns_key(c, key, KEY_REGION) || !owns_key(c, by, KEY_REGION) || key == by)
		return urn_ctl_fail(rep, EINVAL, "%s: no two regions with the keys 0x%x and 0x%x",
				    a->cfg.name, key, by);
	rc = urn_mem_kill_mr(a->mem, by, &other);
	if (rc == 0) {
		rc = urn_mem_kill_mr(a->mem, key, &region);
		if (rc != 0)
			urn_mem_revive_mr(a->mem, other, by);
	}
	if (rc != 0)
		return urn_ctl_fail(rep, rc,
				    "%s: memory windows are bound to the region 0x%x: "
				    "invalidate them first",
				    a->cfg.name, key);
	wait_released(c, other);
	wait_released(c, region);
	urn_mem_replace_mr(a->mem, region, key, other);
	a->key_bytes[key >> 8] = a->key_bytes[by >> 8];
	urn_shm_move(c, by, key);
	disown_key(c, by);
	return 0;
}

int
urn_ctl_alloc_mw(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	uint32_t rkey, type = req->alloc_mw.type;
	int rc;

	if (!urn_client_owns_pd(c, req->alloc_mw.pd))
		return no_pd(c, rep, req->alloc_mw.pd);
	if (c->adapter->pd_flags[req->alloc_mw.pd] & URN_PD_SHARED)
		return urn_ctl_fail(rep, EOPNOTSUPP,
				    "%s: the protection domain %u was imported: memory windows "
				    "are for domains of one context",
				    c->adapter->cfg.name, req->alloc_mw.pd);
	if (type != 1 && type != 2)
		return urn_ctl_fail(rep, EINVAL, "%s: memory windows are of type 1 or 2, not %u",
				    c->adapter->cfg.name, type);
	rc = urn_mem_alloc_mw(c->adapter->mem, req->alloc_mw.pd, (int)type, &rkey);
	if (rc != 0)
		return urn_ctl_fail(rep, rc, "%s: no more memory windows (at most %u with regions)",
				    c->adapter->cfg.name, c->adapter->cfg.max_mr);
	own_key(c, rkey, KEY_WINDOW);
	c->adapter->pd_flags[req->alloc_mw.pd] |= URN_PD_WINDOWS;
	rep->handle = rep->mr.rkey = rkey;
	return 0;
}

struct unlist {
	struct urn_shard *shard;
	const struct urn_mem_dead *dead;
};

struct point {
	struct urn_shard *shard;
	const struct urn_region *region;
	struct urn_memx_mark mark;
	bool marked, passed;
};

/* In the engine's thread, between turns: no check is in hand. */
static void
look_at_point(void *arg)
{
	struct point *p = arg;

	urn_tp_poll_memory(p->shard->tp);
	if (!p->marked)
		urn_memx_mark(p->shard->memx, p->region, &p->mark);
	p->marked = true;
	p->passed = urn_memx_passed(p->shard->memx, p->region, &p->mark);
}

/*
 * Wait until every engine has done the operations on a region that it had accepted up to now. Others
 * may go on using the region by keys of their own: operations accepted meanwhile are not waited for.
 */
static void
wait_accepted(struct urn_client *c, const struct urn_region *region)
{
	struct urn_adapter *a = c->adapter;

	for (uint32_t v = 0; v < a->vectors; v++) {
		struct point p = {.shard = urn_adapter_shard(a, v), .region = region};

		for (;;) {
			urn_engine_call(p.shard->engine, look_at_point, &p);
			if (p.passed)
				break;
			urn_ctl_wait(c);
		}
	}
}

/* In the thread of the engine that has the window's QP. */
static void
unlist(void *arg)
{
	struct unlist *u = arg;
	struct urn_tp *tp = u->shard->tp;
	struct urn_qp *qp = urn_tp_qp(tp, u->dead->qpn);

	if (qp)
		urn_mem_unlist_mw(tp->cfg.mem, u->dead, &qp->windows);
}

/* End windows of a client; those that are none any more are left out. returns: how many ended */
static unsigned int
end_windows(struct urn_client *c, const uint32_t *key, unsigned int n)
{
	struct urn_mem_dead dead[URN_CTL_TOGETHER];
	struct urn_adapter *a = c->adapter;
	uint32_t of[URN_CTL_TOGETHER];
	bool unbound = false;
	unsigned int k = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct unlist u = {.dead = &dead[k]};

		if (urn_mem_kill_mw(a->mem, key[i], &dead[k]) != 0)
			continue;
		u.shard = dead[k].qpn ? a->shard[urn_qpn_engine(dead[k].qpn)] : NULL;
		/* The QP is this client's, whose calls come one by one: the QP stays. */
		if (u.shard)
			urn_engine_call(u.shard->engine, unlist, &u);
		unbound |= !dead[k].mr;
		of[k++] = key[i];
	}
	/* Checks that were in progress when the windows went are over after this. */
	if (unbound)
		urn_adapter_barrier(a);
	for (unsigned int i = 0; i < k; i++) {
		if (dead[i].mr)
			wait_accepted(c, dead[i].mr);
		urn_mem_free_mw(a->mem, &dead[i]);
		disown_key(c, of[i]);
	}
	return k;
}

int
urn_ctl_dealloc_mw(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	if (!owns_key(c, req->handle, KEY_WINDOW) || end_windows(c, &req->handle, 1) == 0)
		return urn_ctl_fail(rep, EINVAL, "%s: no memory window with the key 0x%x",
				    c->adapter->cfg.name, req->handle);
	return 0;
}

/* ---- a client goes */

/* End regions of a client that goes; those with windows of others' are left. */
static void
end_regions(struct urn_client *c, const uint32_t *key, unsigned int n)
{
	struct urn_region *region[URN_CTL_TOGETHER];
	struct urn_adapter *a = c->adapter;
	uint32_t of[URN_CTL_TOGETHER];
	unsigned int k = 0;

	for (unsigned int i = 0; i < n; i++)
		if (urn_mem_kill_mr(a->mem, key[i], &region[k]) == 0)
			of[k++] = key[i];
	if (k)
		wait_all_released(c, region, k);
	for (unsigned int i = 0; i < k; i++) {
		urn_mem_free_mr(a->mem, region[i]);
		disown_key(c, of[i]);
		urn_shm_release(c, of[i]);
	}
}

/* End the client's keys of a kind. */
static void
take_back(struct urn_client *c, uint8_t kind)
{
	const struct urn_adapter *a = c->adapter;
	struct urn_key_link *next;
	uint32_t key[URN_CTL_TOGETHER];
	unsigned int n = 0;

	for (struct urn_key_link *k = LIST_FIRST(&c->keys); k; k = next) {
		uint32_t i = (uint32_t)(k - a->key_link);

		/* Only the keys of a group go: no other call of the client makes or takes back
		 * keys. */
		next = LIST_NEXT(k, link);
		if (a->key_kind[i] == kind)
			key[n++] = a->key[i];
		if (n < URN_CTL_TOGETHER && next)
			continue;
		if (kind == KEY_WINDOW)
			(void)end_windows(c, key, n);
		else
			end_regions(c, key, n);
		urn_ctl_took_back(c, n);
		n = 0;
	}
}

void
urn_ctl_take_back_keys(struct urn_client *c)
{
	take_back(c, KEY_WINDOW);
	take_back(c, KEY_REGION);
}
