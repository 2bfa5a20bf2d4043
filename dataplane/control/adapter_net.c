/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours and routes of an adapter, from its configuration. */
#include "control/adapter.h"

#include <errno.h>
#include <string.h>

/* Enter the neighbours that were configured. returns: 0 or -1 with *err */
static int
fix_neighbours(struct urn_adapter *a, struct urn_err *err)
{
	for (unsigned int i = 0; i < a->cfg.neighbours; i++) {
		const struct urn_neigh_fixed *n = &a->cfg.neighbour[i];
		int code = urn_neigh_add_static(a->neigh, n->gid, n->mac);

		if (code != 0) {
			urn_err_set(err, "%s: neighbour %u of %u %s", a->cfg.name, i + 1,
				    a->cfg.neighbours,
				    code == ENOSPC ? "finds no room"
						   : "is no single station, or the adapter itself");
			return -1;
		}
	}
	a->cfg.neighbour = NULL; /* the caller's */
	a->cfg.neighbours = 0;
	return 0;
}

/* Make the route of an own address's prefix, of `bits` bits behind the first `base` of the GID. */
static void
link_route(struct urn_neigh_route *r, const uint8_t gid[16], unsigned int base, unsigned int bits)
{
	memset(r, 0, sizeof(*r));
	memcpy(r->prefix, gid, 16);
	r->len = (uint8_t)(base + bits);
	r->kind = URN_NEIGH_ROUTE_LINK;
	(void)urn_neigh_mask(r->prefix, r->len);
}

int
urn_adapter_set_routes(struct urn_adapter *a, const struct urn_neigh_route *route, unsigned int n)
{
	static const uint8_t none[16];
	struct urn_neigh_route all[URN_NEIGH_ROUTES];
	unsigned int links = 0;

	if (n > URN_NEIGH_ROUTES - 2)
		return ENOSPC;
	if (a->cfg.ipv4_bits > 32 || a->cfg.ipv6_bits > 128)
		return EINVAL;
	if (a->cfg.ipv4_bits && memcmp(a->gid[1], none, 16) != 0)
		link_route(&all[links++], a->gid[1], 96, a->cfg.ipv4_bits);
	if (a->cfg.ipv6_bits && memcmp(a->gid[2], none, 16) != 0)
		link_route(&all[links++], a->gid[2], 0, a->cfg.ipv6_bits);
	if (n)
		memcpy(all + links, route, n * sizeof(*route));
	return urn_neigh_set_routes(a->neigh, all, links + n);
}

int
urn_adapter_fix(struct urn_adapter *a, struct urn_err *err)
{
	int code;

	if (fix_neighbours(a, err) != 0)
		return -1;
	if (a->cfg.accept_ra)
		urn_neigh_accept_ra(a->neigh);
	code = urn_adapter_set_routes(a, a->cfg.route, a->cfg.routes);
	a->cfg.route = NULL; /* the caller's */
	a->cfg.routes = 0;
	if (code == 0)
		return 0;
	urn_err_set(err, "%s: %s", a->cfg.name,
		    code == EEXIST ? "two routes have one prefix"
		    : code == ENOSPC
			    ? "there are more routes than it has room for"
			    : "a route's prefix has bits behind its length, or its router is no "
			      "station on the link");
	return -1;
}
