/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joined clients: contexts of one program, or of several, that share protection domains and
 * regions, as holders of one descriptor of a device do (ibv_import_device(3)).
 *
 * A client joins another by a descriptor of the other's area, which nobody has but the other's
 * program and those that it was given to; both are of one user. Joined clients are a family. Each
 * keeps its area, its doorbells and its connection, so nothing of the fast path knows of families.
 * A domain that is imported may be used by all of the family. Control calls of different clients
 * run one at a time, under the adapter's lock.
 *
 * Users of a shared domain - queue pairs, regions, address handles - belong to clients of its
 * family, each of which takes its own back when it goes, and then hands its shared domains on. So a
 * domain never outlives its family, and its handle is given out again only when nothing uses it.
 *
 * Memory windows stay out of it: a window is bound through a queue pair, in whose list it stands
 * until one client's call takes both away. Domains have either windows or a family.
 */
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "memory/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The owner of a domain that the client may name; NULL: there is no such domain */
static struct urn_client *
family_owner(const struct urn_client *c, uint32_t pd)
{
	struct urn_client *o = pd && pd <= URN_ADAPTER_MAX_PD ? c->adapter->pd_owner[pd] : NULL;

	return o && (o == c || o->family == c->family) ? o : NULL;
}

bool
urn_client_uses_pd(const struct urn_client *c, uint32_t pd)
{
	const struct urn_client *o = family_owner(c, pd);

	return o && (o == c || (c->adapter->pd_flags[pd] & URN_PD_SHARED));
}

/* ---- joining */

/* True when other clients have joined this one. */
static bool
has_family(const struct urn_client *c)
{
	const struct urn_client *o;

	LIST_FOREACH(o, &c->adapter->clients, link)
		if (o != c && o->family == c->family)
			return true;
	return false;
}

/* The client whose area the descriptor is; NULL: there is none */
static struct urn_client *
by_area(const struct urn_adapter *a, const struct stat *st)
{
	struct urn_client *o;

	LIST_FOREACH(o, &a->clients, link)
		if (o->area.fd >= 0 && o->area.ino == st->st_ino && o->area.dev == st->st_dev)
			return o->leaving ? NULL : o;
	return NULL;
}

int
urn_ctl_join(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const char *name = c->adapter->cfg.name;
	const struct urn_client *other;
	struct stat st;

	/* Only a memfd has seals; the file system of any other descriptor may take its time to
	 * answer. */
	if (req->fd < 0 || fcntl(req->fd, F_GET_SEALS) < 0 || fstat(req->fd, &st) != 0)
		return urn_ctl_fail(rep, EINVAL, "%s: the descriptor is of no context", name);
	other = by_area(c->adapter, &st);
	if (!other)
		return urn_ctl_fail(rep, ENOENT, "%s: no context has this descriptor", name);
	if (other->uid != c->uid)
		return urn_ctl_fail(rep, EPERM, "%s: the context is another user's", name);
	if (other == c || has_family(c))
		return urn_ctl_fail(rep, EBUSY,
				    "%s: a context joins another once, before others join it",
				    name);
	c->family = other->family;
	close(req->fd);
	return 0;
}

/* ---- domains */

static int
no_pd(const struct urn_client *c, struct urn_abi_rep *rep, uint32_t pd)
{
	return urn_ctl_fail(rep, EINVAL, "%s: no protection domain %u", c->adapter->cfg.name, pd);
}

int
urn_ctl_import_pd(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;

	if (!family_owner(c, req->handle))
		return no_pd(c, rep, req->handle);
	if (a->pd_flags[req->handle] & URN_PD_WINDOWS)
		return urn_ctl_fail(
			rep, EOPNOTSUPP,
			"%s: memory windows were made in the protection domain %u, and such "
			"domains are for one context",
			a->cfg.name, req->handle);
	a->pd_flags[req->handle] |= URN_PD_SHARED;
	rep->handle = req->handle;
	return 0;
}

static const uint64_t one_pd[URN_LEDGER_KINDS] = {[URN_QUOTA_PD] = 1};

int
urn_ctl_end_pd(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_client *owner = family_owner(c, req->handle);
	bool charged;
	int rc;

	if (!owner)
		return no_pd(c, rep, req->handle);
	charged = owner->quota.account && !(a->pd_flags[req->handle] & URN_PD_UNCHARGED);
	rc = urn_ctl_remove_pd(a, req->handle, rep);
	if (rc == 0 && charged)
		urn_tally_give(&owner->quota, one_pd);
	return rc;
}

/* ---- a client goes */

/* A client of the family that still holds domains when this one does not; NULL: there is none */
static struct urn_client *
find_heir(const struct urn_client *c)
{
	struct urn_client *o;

	LIST_FOREACH(o, &c->adapter->clients, link)
		if (o != c && o->family == c->family && !o->no_pds)
			return o;
	return NULL;
}

/* Hand a domain on, or deallocate it. */
static void
pass_on(struct urn_client *c, uint32_t pd)
{
	struct urn_adapter *a = c->adapter;
	struct urn_client *heir = a->pd_flags[pd] & URN_PD_SHARED ? find_heir(c) : NULL;
	struct urn_ledger_refusal no;
	struct urn_abi_rep rep;

	a->pd_flags[pd] &= (uint8_t)~URN_PD_UNCHARGED;
	if (heir && urn_tally_take(&heir->quota, one_pd, &no)) {
		a->pd_owner[pd] = heir;
		return;
	}
	/* An heir that may have no more domains keeps those that are in use. */
	if (urn_ctl_remove_pd(a, pd, &rep) == 0)
		return;
	a->pd_owner[pd] = heir;
	a->pd_flags[pd] |= URN_PD_UNCHARGED;
}

/* The space of a client that goes is freed: domains with regions of others there name it no more.
 */
static void
forget_space(const struct urn_client *c)
{
	const struct urn_adapter *a = c->adapter;

	for (uint32_t pd = 1; pd <= URN_ADAPTER_MAX_PD; pd++) {
		struct urn_space **at = urn_mem_pd_space(a->mem, pd);

		if (at && __atomic_load_n(at, __ATOMIC_RELAXED) == c->space)
			__atomic_store_n(at, a->pd_owner[pd] ? a->pd_owner[pd]->space : NULL,
					 __ATOMIC_RELEASE);
	}
}

void
urn_ctl_take_back_pds(struct urn_client *c)
{
	const struct urn_adapter *a = c->adapter;

	c->no_pds = true;
	for (uint32_t pd = 1; pd <= URN_ADAPTER_MAX_PD; pd++) {
		if (a->pd_owner[pd] != c)
			continue;
		pass_on(c, pd);
		urn_ctl_took_back(c, 1);
	}
	if (c->space)
		forget_space(c);
}
