/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes: which neighbour the frames to a destination go to. Found by a walk over a short sorted
 * list, because a lookup is made once per MAC address, not per packet.
 */
#include "net/neigh_priv.h"
#include "wire/build.h"

#include <errno.h>
#include <string.h>

bool
urn_neigh_mask(uint8_t gid[16], unsigned int len)
{
	bool set = false;

	for (unsigned int i = 0; i < 16; i++) {
		unsigned int first = i * 8;
		uint8_t keep = (uint8_t)(len >= first + 8 ? 0xff
					 : len <= first	  ? 0
							  : 0xff00u >> (len - first));

		set |= (gid[i] & ~keep) != 0;
		gid[i] &= keep;
	}
	return set;
}

bool
urn_neigh_same_prefix(const uint8_t a[16], const uint8_t b[16], unsigned int len)
{
	unsigned int whole = len / 8, rest = len % 8;

	if (urn_gid_is_v4(a) != urn_gid_is_v4(b) || memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) & (0xff00u >> rest) & 0xff) == 0;
}

/* True when an address is on the link by the routes of kind LINK among n. */
static bool
on_link(const struct urn_neigh_route *r, unsigned int n, const uint8_t gid[16])
{
	bool any = false;

	if (urn_neigh_link_local(gid))
		return true;
	for (unsigned int i = 0; i < n; i++) {
		if (r[i].kind != URN_NEIGH_ROUTE_LINK ||
		    urn_gid_is_v4(r[i].prefix) != urn_gid_is_v4(gid))
			continue;
		any = true;
		if (urn_neigh_same_prefix(r[i].prefix, gid, r[i].len))
			return true;
	}
	return !any;
}

const uint8_t *
urn_neigh_next_hop(const struct urn_neigh *nb, const uint8_t gid[16])
{
	bool v4 = urn_gid_is_v4(gid), any = false;

	if (urn_neigh_link_local(gid))
		return gid;
	for (unsigned int i = 0; i < nb->routes; i++) {
		const struct urn_neigh_route *r = &nb->route[i];

		if (urn_neigh_same_prefix(r->prefix, gid, r->len))
			return urn_neigh_route_on_link(r->kind) ? gid : r->via;
		any |= urn_neigh_route_on_link(r->kind) && urn_gid_is_v4(r->prefix) == v4;
	}
	return any ? NULL : gid;
}

struct entry *
urn_neigh_entry_for(struct urn_neigh *nb, const uint8_t gid[16], const uint8_t **hop)
{
	struct entry *e = urn_table_find(&nb->table, gid);

	*hop = e != NULL && e->t.list == STATIC ? gid : urn_neigh_next_hop(nb, gid);
	if (*hop == gid)
		return e;
	return *hop != NULL ? urn_table_find(&nb->table, *hop) : NULL;
}

bool
urn_neigh_hop(struct urn_neigh *nb, const uint8_t gid[16], uint8_t hop[16])
{
	const uint8_t *h;

	rte_spinlock_lock(&nb->lock);
	(void)urn_neigh_entry_for(nb, gid, &h);
	if (h != NULL)
		memcpy(hop, h, 16);
	rte_spinlock_unlock(&nb->lock);
	return h != NULL;
}

/* Check one route of n. returns 0, EINVAL or EEXIST */
static int
check(const struct urn_neigh *nb, const struct urn_neigh_route *r, unsigned int n, unsigned int i)
{
	uint8_t copy[16];

	memcpy(copy, r[i].prefix, 16);
	if (r[i].len > 128 || r[i].kind > URN_NEIGH_ROUTE_STATIC ||
	    urn_neigh_mask(copy, r[i].len) || (urn_gid_is_v4(r[i].prefix) && r[i].len < 96))
		return EINVAL;
	for (unsigned int k = 0; k < i; k++)
		if (r[k].len == r[i].len &&
		    urn_neigh_same_prefix(r[k].prefix, r[i].prefix, r[i].len))
			return EEXIST;
	if (r[i].kind == URN_NEIGH_ROUTE_LINK)
		return 0;
	if (urn_gid_is_v4(r[i].via) != urn_gid_is_v4(r[i].prefix) || !urn_neigh_unicast(r[i].via) ||
	    urn_neigh_is_own(nb, r[i].via) || !on_link(r, n, r[i].via))
		return EINVAL;
	return 0;
}

/* Put a route behind those with longer or equal prefixes. */
static void
insert(struct urn_neigh *nb, const struct urn_neigh_route *r)
{
	unsigned int at = nb->routes++;

	for (; at > 0 && nb->route[at - 1].len < r->len; at--)
		nb->route[at] = nb->route[at - 1];
	nb->route[at] = *r;
	nb->route[at].left_s = 0;
}

/* Put the advertised routes behind the configured ones of the same prefix. Under the lock. */
static void
insert_advertised(struct urn_neigh *nb)
{
	for (unsigned int i = 0; i < nb->ra.listed; i++)
		insert(nb, &nb->ra.list[i]);
	urn_neigh_changed(nb);
}

void
urn_neigh_replace_advertised(struct urn_neigh *nb)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < nb->routes; i++)
		if (nb->route[i].kind <= URN_NEIGH_ROUTE_STATIC)
			nb->route[n++] = nb->route[i];
	nb->routes = n;
	insert_advertised(nb);
}

int
urn_neigh_set_routes(struct urn_neigh *nb, const struct urn_neigh_route *route, unsigned int n)
{
	int err = 0;

	if (n > URN_NEIGH_ROUTES)
		return ENOSPC;
	for (unsigned int i = 0; i < n && err == 0; i++)
		err = check(nb, route, n, i);
	if (err != 0)
		return err;
	rte_spinlock_lock(&nb->lock);
	nb->routes = 0;
	for (unsigned int i = 0; i < n; i++)
		insert(nb, &route[i]);
	insert_advertised(nb);
	urn_neigh_review_routers(nb);
	rte_spinlock_unlock(&nb->lock);
	return 0;
}

unsigned int
urn_neigh_routes(struct urn_neigh *nb, struct urn_neigh_route *out, unsigned int max)
{
	unsigned int n;

	rte_spinlock_lock(&nb->lock);
	n = nb->routes;
	for (unsigned int i = 0; i < n && i < max; i++) {
		out[i] = nb->route[i];
		if (out[i].kind > URN_NEIGH_ROUTE_STATIC)
			out[i].left_s = urn_neigh_advertised_left(nb, &out[i]);
	}
	rte_spinlock_unlock(&nb->lock);
	return n;
}
