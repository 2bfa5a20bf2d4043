/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows (IBTA 10.6.7). The engine of the QP that asked binds and invalidates, so two
 * engines can meet at one window: each looks first and then swaps the sequence that it saw, and
 * the second one is refused.
 *
 * The type 2 windows bound to a QP are in a list of that QP, which only its engine writes, so
 * that the windows die with the QP (IBTA 10.6.7): a QP that is reset or destroyed leaves no key
 * behind that the next QP of its number could use.
 *
 * A region counts the windows bound to it. A bind counts first, looks at the region again, and
 * only then writes the window: after the count the region can't be killed, and a region that
 * was killed before does not pass the second look.
 */
#include "memory/internal.h"

#include <errno.h>

#define WINDOW_KINDS (1u << URN_REGION_MW1 | 1u << URN_REGION_MW2)
#define WINDOW_REMOTE (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC)

int
urn_mem_alloc_mw(struct urn_mem *mem, uint32_t pd, int type, uint32_t *rkey)
{
	struct urn_region_view v;
	struct urn_region *r;
	uint32_t k;
	int rc;

	if (type != 1 && type != 2)
		return EINVAL;
	rc = urn_key_alloc(mem, pd, &k);
	if (rc)
		return rc;
	r = urn_region_at(mem, k >> 8);
	urn_region_take(r, 1u << URN_REGION_FREE, &v);
	URN_REGION_SET(r, key, k);
	URN_REGION_SET(r, pd, pd);
	URN_REGION_SET(r, qpn, 0);
	URN_REGION_SET(r, access, 0);
	URN_REGION_SET(r, kind, type == 1 ? URN_REGION_MW1 : URN_REGION_MW2);
	URN_REGION_SET(r, mr, NULL);
	urn_region_unlock(r, &v);
	*rkey = k;
	return 0;
}

int
urn_mem_kill_mw(struct urn_mem *mem, uint32_t rkey, struct urn_mem_dead *dead)
{
	struct urn_region *r = urn_region_at(mem, rkey >> 8);
	struct urn_region_view v;

	if (!r || !urn_region_take(r, WINDOW_KINDS, &v))
		return EINVAL;
	URN_REGION_SET(r, key, 0);
	URN_REGION_SET(r, kind, URN_REGION_DYING);
	URN_REGION_SET(r, mr, NULL);
	URN_REGION_SET(r, length, 0);
	urn_region_unlock(r, &v);
	*dead = (struct urn_mem_dead){
		.window = r, .mr = v.mr, .key = v.key,
		.qpn = v.kind == URN_REGION_MW2 && v.mr ? v.qpn : 0};
	return 0;
}

void
urn_mem_free_mw(struct urn_mem *mem, const struct urn_mem_dead *dead)
{
	struct urn_region_view v;

	if (!urn_region_take(dead->window, 1u << URN_REGION_DYING, &v))
		return;
	URN_REGION_SET(dead->window, kind, URN_REGION_FREE);
	URN_REGION_SET(dead->window, pd, 0);
	urn_region_unlock(dead->window, &v);
	urn_region_unbound(mem, dead->mr);
	urn_key_free(mem, dead->window, dead->key);
	urn_mem_pd_release(mem, v.pd);
}

/* ---- the type 2 windows of a QP */

static void
window_join(const struct urn_mem *mem, const struct urn_region *w, uint32_t *windows)
{
	struct urn_region_cold *cold = urn_region_cold(mem, w);

	cold->prev = 0;
	cold->next = *windows;
	if (*windows)
		urn_region_cold(mem, urn_region_at(mem, *windows))->prev = w->index;
	*windows = w->index;
}

static void
window_leave(const struct urn_mem *mem, const struct urn_region *w, uint32_t *windows)
{
	const struct urn_region_cold *cold = urn_region_cold(mem, w);

	if (cold->prev)
		urn_region_cold(mem, urn_region_at(mem, cold->prev))->next = cold->next;
	else
		*windows = cold->next;
	if (cold->next)
		urn_region_cold(mem, urn_region_at(mem, cold->next))->prev = cold->prev;
}

void
urn_mem_unlist_mw(struct urn_mem *mem, const struct urn_mem_dead *dead, uint32_t *windows)
{
	window_leave(mem, dead->window, windows);
}

void
urn_mem_unbind_some(struct urn_mem *mem, uint32_t *windows, uint32_t max)
{
	for (; max && *windows; max--) {
		struct urn_region *w = urn_region_at(mem, *windows);
		struct urn_region_view v;

		/* Control is taking the window away, or another engine was refused just now: later. */
		if (!urn_region_read(w, &v) || !urn_region_lock(w, &v))
			return;
		window_leave(mem, w, windows);
		URN_REGION_SET(w, mr, NULL);
		URN_REGION_SET(w, length, 0);
		urn_region_unlock(w, &v);
		urn_region_unbound(mem, v.mr);
	}
}

void
urn_mem_let_go(struct urn_mem *mem, const struct urn_region *mr)
{
	urn_region_unbound(mem, mr);
}

void
urn_region_unbound(const struct urn_mem *mem, const struct urn_region *mr)
{
	if (mr)
		__atomic_fetch_sub(&urn_region_cold(mem, mr)->bound, 1, __ATOMIC_ACQ_REL);
}

/* Count a window bound to the region that was read as *v. returns: false when the region is gone */
static bool
urn_region_bind(const struct urn_mem *mem, const struct urn_region *mr,
		const struct urn_region_view *v)
{
	uint32_t *bound = &urn_region_cold(mem, mr)->bound;
	uint32_t n = __atomic_load_n(bound, __ATOMIC_RELAXED);

	/* Few binds meet at one region: the loop mostly turns once. */
	do {
		if (n & URN_BOUND_DEAD)
			return false;
	} while (!__atomic_compare_exchange_n(bound, &n, n + 1, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	if (urn_region_same(mr, v))
		return true;
	/* The region was killed, and its index given to another region meanwhile. */
	urn_region_unbound(mem, mr);
	return false;
}

/* Check whether the window that was read as *w may be bound so. */
static enum urn_mem_error
window_check(const struct urn_region_view *w, int type, uint32_t mw_rkey, uint32_t new_rkey,
	     uint64_t length, uint32_t access, uint32_t pd)
{
	if (!(WINDOW_KINDS & 1u << w->kind) || w->pd != pd)
		return URN_MEM_BAD_KEY;
	if (type != (w->kind == URN_REGION_MW1 ? 1 : 2))
		return URN_MEM_WINDOW;
	if (type == 1 && w->key != mw_rkey)
		return URN_MEM_BAD_KEY;
	if (new_rkey >> 8 != mw_rkey >> 8)
		return URN_MEM_WINDOW;
	if (access & URN_ACCESS_ZERO_BASED)
		return URN_MEM_WINDOW;
	/* IBTA o10-37.2.30 and o10-37.2.40: a type 2 window is freed by invalidation only. */
	if (type == 2 && (w->mr || !length))
		return URN_MEM_WINDOW;
	return URN_MEM_OK;
}

/* Check whether the region that was read as *m may have such a window. (IBTA C10-73 to C10-75) */
static enum urn_mem_error
window_region_check(const struct urn_region_view *m, uint32_t mr_lkey, uint64_t addr,
		    uint64_t length, uint32_t access, uint32_t pd)
{
	if (m->kind != URN_REGION_MR || m->key != mr_lkey || m->pd != pd)
		return URN_MEM_BAD_KEY;
	if (!(m->access & URN_ACCESS_MW_BIND))
		return URN_MEM_ACCESS;
	if ((access & (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_ATOMIC)) &&
	    !(m->access & URN_ACCESS_LOCAL_WRITE))
		return URN_MEM_ACCESS;
	if (m->access & URN_ACCESS_ZERO_BASED)
		return URN_MEM_WINDOW;
	if (!urn_range_in(m->start, m->length, addr, length))
		return URN_MEM_RANGE;
	return URN_MEM_OK;
}

/* Find the region of a bind and count the window in. */
static enum urn_mem_error
window_take_region(const struct urn_mem *mem, uint32_t mr_lkey, uint64_t addr, uint64_t length,
		   uint32_t access, uint32_t pd, struct urn_region **mr)
{
	struct urn_region *r = urn_region_at(mem, mr_lkey >> 8);
	struct urn_region_view v;
	enum urn_mem_error err;

	if (!r || !urn_region_read(r, &v))
		return URN_MEM_BAD_KEY;
	err = window_region_check(&v, mr_lkey, addr, length, access, pd);
	if (err)
		return err;
	if (!urn_region_bind(mem, r, &v))
		return URN_MEM_BAD_KEY;
	*mr = r;
	return URN_MEM_OK;
}

/* A window is not bound to `mr` any more: tell the caller; without b nobody wants to know. */
static void
window_unbound(const struct urn_mem *mem, struct urn_region *mr, struct urn_mem_binding *b)
{
	if (b)
		b->old = mr;
	else
		urn_region_unbound(mem, mr);
}

enum urn_mem_error
urn_mem_bind(struct urn_mem *mem, int type, uint32_t mw_rkey, uint32_t new_rkey, uint32_t mr_lkey,
	     uint64_t addr, uint64_t length, uint32_t access, uint32_t pd, uint32_t qpn,
	     struct urn_mem_binding *b)
{
	struct urn_region *w = urn_region_at(mem, mw_rkey >> 8), *mr = NULL;
	struct urn_region_view v;
	enum urn_mem_error err;

	if (!w)
		return URN_MEM_BAD_KEY;
	if (!urn_region_read(w, &v))
		return URN_MEM_WINDOW; /* another engine is binding the window */
	err = window_check(&v, type, mw_rkey, new_rkey, length, access, pd);
	if (!err && length)
		err = window_take_region(mem, mr_lkey, addr, length, access, pd, &mr);
	if (err)
		return err;
	if (!urn_region_lock(w, &v)) {
		urn_region_unbound(mem, mr);
		return URN_MEM_WINDOW;
	}
	URN_REGION_SET(w, key, new_rkey);
	URN_REGION_SET(w, qpn, type == 2 ? qpn : 0);
	URN_REGION_SET(w, access, access & WINDOW_REMOTE);
	URN_REGION_SET(w, start, addr);
	URN_REGION_SET(w, length, length);
	URN_REGION_SET(w, mr, mr);
	/* The lock keeps out an engine that would invalidate the window, and bind it elsewhere. */
	if (b && type == 2)
		window_join(mem, w, b->windows);
	urn_region_unlock(w, &v);
	window_unbound(mem, v.mr, b);
	return URN_MEM_OK;
}

enum urn_mem_error
urn_mem_invalidate(struct urn_mem *mem, uint32_t rkey, uint32_t pd, uint32_t qpn,
		   struct urn_mem_binding *b)
{
	struct urn_region *w = urn_region_at(mem, rkey >> 8);
	struct urn_region_view v;

	if (!w || !urn_region_read(w, &v) || v.key != rkey || v.pd != pd)
		return URN_MEM_BAD_KEY;
	if (v.kind == URN_REGION_MR || v.kind == URN_REGION_MW1)
		return URN_MEM_WINDOW;
	if (v.kind != URN_REGION_MW2 || !v.mr || v.qpn != qpn || !urn_region_lock(w, &v))
		return URN_MEM_BAD_KEY;
	if (b)
		window_leave(mem, w, b->windows);
	URN_REGION_SET(w, mr, NULL);
	URN_REGION_SET(w, length, 0);
	urn_region_unlock(w, &v);
	window_unbound(mem, v.mr, b);
	return URN_MEM_OK;
}
