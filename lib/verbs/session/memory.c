/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and regions, which are on all adapters; addresses, which are on the primary
 * one alone. */
#include "verbs/front.h"
#include "verbs/session/heal.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdlib.h>

/* Rights that a peer needs a key for. */
#define URN_SV_REMOTE                                                      \
	((unsigned int)(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
			IBV_ACCESS_REMOTE_ATOMIC))

/* The first name that is no key of the primary adapter: adapters have fewer regions. The
 * index of a name, its upper 24 bits, has this bit and 23 more. */
#define URN_SV_NAMES 0x80000000u
#define URN_SV_INDEXES 0x7fffffu

/* ---- protection domains */

int
urn_sv_pd_make(struct urn_sv_pd *pd, struct urn_sv_ctx *ctx, uint32_t adapter)
{
	pd->below[adapter] = ibv_alloc_pd(ctx->below[adapter]);
	if (pd->below[adapter] == NULL)
		return errno;
	pd->remote_mr[adapter] = ibv_reg_mr(pd->below[adapter], pd->remote, sizeof(*pd->remote),
					    IBV_ACCESS_REMOTE_READ);
	return pd->remote_mr[adapter] != NULL ? 0 : errno;
}

int
urn_sv_pd_end(struct urn_sv_pd *pd, uint32_t adapter)
{
	int err = 0;

	if (pd->remote_mr[adapter] != NULL)
		ibv_dereg_mr(pd->remote_mr[adapter]);
	pd->remote_mr[adapter] = NULL;
	if (pd->below[adapter] != NULL)
		err = ibv_dealloc_pd(pd->below[adapter]);
	if (err == 0)
		pd->below[adapter] = NULL;
	return err;
}

bool
urn_sv_pd_whole(const struct urn_sv_pd *pd, uint32_t adapter)
{
	return pd->below[adapter] != NULL && pd->missing[adapter] == 0;
}

static void
urn_sv_pd_free(struct urn_sv_pd *pd)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		(void)urn_sv_pd_end(pd, i);
	urn_free(pd->remote);
}

/* Make a domain on each adapter that is there, at least on one. returns: 0 or an errno value */
static int
urn_sv_pd_make_all(struct urn_sv_pd *pd, struct urn_sv_ctx *ctx)
{
	int err = urn_fail(EIO, "both adapters of the virtual device are away");

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int its;

		if (ctx->below[i] == NULL)
			continue;
		its = urn_sv_pd_make(pd, ctx, i);
		if (its != 0 && its != EIO)
			return its;
		if (its != 0) {
			(void)urn_sv_pd_end(pd, i);
			continue;
		}
		if (err != 0)
			pd->ibv.handle = pd->below[i]->handle;
		err = 0;
	}
	return err;
}

struct ibv_pd *
urn_sv_alloc_pd(struct ibv_context *c)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	struct urn_sv_pd *pd = urn_object_alloc(sizeof(*pd));
	int err;

	if (pd == NULL)
		return NULL;
	LIST_INIT(&pd->regions);
	pd->remote = urn_alloc(sizeof(*pd->remote));
	err = pd->remote == NULL ? errno : urn_sv_thread_start(ctx);
	if (err == 0)
		err = urn_sv_pd_make_all(pd, ctx);
	if (err != 0) {
		urn_sv_pd_free(pd);
		free(pd);
		errno = err;
		return NULL;
	}
	urn_sv_lock(ctx);
	LIST_INSERT_HEAD(&ctx->pds, pd, link);
	urn_sv_unlock(ctx);
	return &pd->ibv;
}

int
urn_sv_dealloc_pd(struct ibv_pd *ibv)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibv->context);
	struct urn_sv_pd *pd = (struct urn_sv_pd *)ibv;
	int err;

	if (atomic_load(&pd->objects) != 0)
		return urn_fail(EBUSY, "objects of the program are in the protection domain");
	err = urn_sv_pd_end(pd, 0);
	if (err != 0)
		return err;
	urn_sv_lock(ctx);
	LIST_REMOVE(pd, link);
	urn_sv_unlock(ctx);
	urn_sv_pd_free(pd);
	return 0;
}

/* ---- regions */

/* True when a name is that of a region, or of a queue pair's memory, in a domain. */
static bool
urn_sv_named_in(const struct urn_sv_pd *pd, uint32_t name)
{
	uint32_t unused;

	return urn_sv_keys_find(&pd->local, name, 0, &unused) ||
	       urn_sv_keys_find(pd->remote, name, 0, &unused);
}

/* True when a name is taken in any domain, as keys of an adapter are. */
static bool
urn_sv_named(const struct urn_sv_pd *pd, uint32_t name)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(pd->ibv.context);
	const struct urn_sv_pd *other;

	if (urn_sv_named_in(pd, name))
		return true;
	/* Until the primary adapter is lost all names are its keys, no two of which are alike. */
	if (ctx->returned[0] == 0 && !ctx->dead[0])
		return false;
	LIST_FOREACH(other, &ctx->pds, link)
		if (other != pd && urn_sv_named_in(other, name))
			return true;
	return false;
}

/* The next name that is no key of the primary adapter: 2^31 of them, and each index comes once
 * before one comes again with another key. */
static uint32_t
urn_sv_next_name(struct urn_sv_ctx *ctx)
{
	uint32_t n;

	do
		n = ctx->names++ & (URN_SV_NAMES - 1);
	while (n == URN_SV_NAMES - 1); /* URN_SV_NO_KEY is no name */
	return URN_SV_NAMES | (n & URN_SV_INDEXES) << 8 | n >> 23;
}

uint32_t
urn_sv_name(struct urn_sv_pd *pd, const struct ibv_mr *first)
{
	uint32_t name;

	if (first != NULL && !urn_sv_named(pd, first->lkey) && !urn_sv_named(pd, first->rkey))
		return first->lkey;
	do
		name = urn_sv_next_name(urn_sv_ctx(pd->ibv.context));
	while (urn_sv_named(pd, name));
	return name;
}

/*
 * Choose the keys that the program knows: those of the primary adapter. While that is away, and
 * when an older region of any domain has them, they are keys that no region ever had: a peer may
 * still know what a key meant before.
 */
static void
urn_sv_mr_names(struct urn_sv_pd *pd, struct urn_sv_mr *mr)
{
	mr->ibv.lkey = mr->ibv.rkey = urn_sv_name(pd, mr->below[0]);
	if (mr->below[0] != NULL && mr->ibv.lkey == mr->below[0]->lkey)
		mr->ibv.rkey = mr->below[0]->rkey;
}

/* Give a region its keys, and put them in the tables. returns: 0 or ENOMEM with its text */
static int
urn_sv_mr_keys(struct urn_sv_ctx *ctx, struct urn_sv_pd *pd, struct urn_sv_mr *mr)
{
	uint32_t local[URN_SV_ADAPTERS], remote[URN_SV_ADAPTERS];
	bool fits;

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		local[i] = mr->below[i] != NULL ? mr->below[i]->lkey : URN_SV_NO_KEY;
		remote[i] = mr->below[i] != NULL ? mr->below[i]->rkey : URN_SV_NO_KEY;
	}
	urn_sv_lock(ctx);
	urn_sv_mr_names(pd, mr);
	fits = urn_sv_keys_put(&pd->local, mr->ibv.lkey, local);
	if (fits && (mr->region.access & URN_SV_REMOTE) &&
	    !urn_sv_keys_put(pd->remote, mr->ibv.rkey, remote)) {
		urn_sv_keys_drop(&pd->local, mr->ibv.lkey);
		fits = false;
	}
	mr->region.lkey = mr->ibv.lkey;
	for (uint32_t i = 0; i < URN_SV_ADAPTERS && fits; i++)
		pd->missing[i] += mr->below[i] == NULL;
	if (fits)
		LIST_INSERT_HEAD(&pd->regions, &mr->region, link);
	urn_sv_unlock(ctx);
	return fits ? 0
		    : urn_fail(ENOMEM,
			       "a protection domain of a virtual device has at most %d regions",
			       URN_SV_KEYS);
}

void
urn_sv_mr_lost(struct urn_sv_mr *mr, uint32_t adapter)
{
	if (!mr->ending)
		mr->pd->missing[adapter] += mr->below[adapter] != NULL;
	mr->below[adapter] = NULL;
	/* The adapter may give the key to another region. */
	urn_sv_keys_set(&mr->pd->local, mr->ibv.lkey, adapter, URN_SV_NO_KEY);
	urn_sv_keys_set(mr->pd->remote, mr->ibv.rkey, adapter, URN_SV_NO_KEY);
}

/*
 * A region is ending, or is there again. While the adapters are asked, one after the other, other
 * threads' queue pairs of the domain must not take it for one that is still to be made.
 */
static void
urn_sv_mr_ending(struct urn_sv_ctx *ctx, struct urn_sv_mr *mr, bool ending)
{
	urn_sv_lock(ctx);
	mr->ending = ending;
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		if (mr->below[i] == NULL)
			mr->pd->missing[i] += ending ? -1 : 1;
	urn_sv_unlock(ctx);
}

/* Deregister a region, which is in its domain's list, on both adapters. returns: 0 or an errno
 * value with its text: it is in the list still, and may be on one adapter alone */
static int
urn_sv_mr_end(struct urn_sv_ctx *ctx, struct urn_sv_mr *mr)
{
	int err = 0;

	urn_sv_mr_ending(ctx, mr, true);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS && err == 0; i++) {
		err = mr->below[i] != NULL ? ibv_dereg_mr(mr->below[i]) : 0;
		if (err != 0)
			break;
		urn_sv_lock(ctx);
		urn_sv_mr_lost(mr, i);
		urn_sv_unlock(ctx);
	}
	if (err != 0)
		urn_sv_mr_ending(ctx, mr, false);
	return err;
}

/* Deregister a region that is in no list yet. */
static void
urn_sv_mr_undo(struct urn_sv_mr *mr)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		if (mr->below[i] != NULL)
			(void)ibv_dereg_mr(mr->below[i]);
	free(mr);
}

int
urn_sv_mr_below(struct urn_sv_mr *mr, uint32_t adapter)
{
	mr->below[adapter] =
		ibv_reg_mr_iova2(mr->pd->below[adapter], mr->region.base, mr->region.length,
				 mr->region.start, mr->region.access);
	return mr->below[adapter] != NULL ? 0 : errno;
}

/* Register memory on each adapter that is there, at least on one. returns: 0 or an errno value */
static int
urn_sv_mr_make(struct urn_sv_mr *mr)
{
	int err = EIO;

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int its = mr->pd->below[i] != NULL ? urn_sv_mr_below(mr, i) : EIO;

		if (its != 0 && its != EIO)
			return its;
		if (its == 0)
			err = 0;
	}
	return err;
}

struct ibv_mr *
urn_sv_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct urn_sv_pd *pd = (struct urn_sv_pd *)ibpd;
	struct urn_sv_mr *mr = urn_object_alloc(sizeof(*mr));
	int err;

	if (mr == NULL)
		return NULL;
	mr->pd = pd;
	mr->region = (struct urn_sv_region){
		.base = addr, .start = iova, .length = length, .access = access};
	err = urn_sv_mr_make(mr);
	if (err == 0)
		err = urn_sv_mr_keys(urn_sv_ctx(ibpd->context), pd, mr);
	if (err != 0) {
		urn_sv_mr_undo(mr);
		errno = err;
		return NULL;
	}
	mr->ibv.handle = mr->ibv.lkey;
	atomic_fetch_add(&pd->objects, 1);
	return &mr->ibv;
}

int
urn_sv_dereg_mr(struct ibv_mr *ibmr)
{
	struct urn_sv_mr *mr = (struct urn_sv_mr *)ibmr;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibmr->context);
	struct urn_sv_pd *pd = mr->pd;

	int err = urn_sv_mr_end(ctx, mr);

	if (err != 0)
		return err;
	urn_sv_lock(ctx);
	LIST_REMOVE(&mr->region, link);
	urn_sv_keys_drop(&pd->local, ibmr->lkey);
	urn_sv_keys_drop(pd->remote, ibmr->rkey);
	urn_sv_unlock(ctx);
	atomic_fetch_sub(&pd->objects, 1);
	return 0;
}

/* ---- windows: there are none */

struct ibv_mw *
urn_sv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd, (void)type;
	urn_unsupported("a memory window of a virtual device");
	return NULL;
}

int
urn_sv_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return urn_unsupported("a memory window of a virtual device");
}

/* ---- on the primary adapter alone */

/* returns: 0; EIO with its text, and errno set: the primary adapter has no such domain */
static int
urn_sv_primary(struct ibv_pd *pd)
{
	if (URN_SV_BELOW(pd, pd, 0) != NULL)
		return 0;
	errno = urn_fail(EIO, "the primary adapter of the virtual device is away");
	return EIO;
}

struct ibv_ah *
urn_sv_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct urn_sv_ah *ah = urn_object_alloc(sizeof(*ah));
	struct ibv_ah_attr same = *attr;

	if (ah == NULL)
		return NULL;
	if (urn_sv_primary(pd) == 0)
		ah->below = ibv_create_ah(URN_SV_BELOW(pd, pd, 0), &same);
	if (ah->below == NULL) {
		free(ah);
		return NULL;
	}
	ah->ibv.handle = ah->below->handle;
	ah->pd = (struct urn_sv_pd *)pd;
	atomic_fetch_add(&ah->pd->objects, 1);
	ah->life = urn_sv_life_use(urn_sv_ctx(pd->context));
	return &ah->ibv;
}

int
urn_sv_destroy_ah(struct ibv_ah *ah)
{
	const struct urn_sv_ah *a = (struct urn_sv_ah *)ah;
	int err = ibv_destroy_ah(a->below);

	if (err != 0)
		return err;
	atomic_fetch_sub(&a->pd->objects, 1);
	urn_sv_life_leave(a->life);
	return 0;
}
