/* SPDX-License-Identifier: BSD-3-Clause */
/* Listing the table of neighbours. */
#include "net/neigh_priv.h"

#include <string.h>

const char *
urn_neigh_state_name(unsigned int state)
{
	static const char *const names[] = {
		[URN_NEIGH_NONE] = "none",	     [URN_NEIGH_INCOMPLETE] = "incomplete",
		[URN_NEIGH_REACHABLE] = "reachable", [URN_NEIGH_STALE] = "stale",
		[URN_NEIGH_FAILED] = "failed",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

/* Routes that lead through a neighbour. Under the lock. */
static unsigned int
routes_by(const struct urn_neigh *nb, const uint8_t gid[16])
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < nb->routes; i++)
		n += !urn_neigh_route_on_link(nb->route[i].kind) &&
		     memcmp(nb->route[i].via, gid, 16) == 0;
	return n;
}

enum urn_neigh_state
urn_neigh_peek(struct urn_neigh *nb, const uint8_t gid[16], uint8_t mac[6])
{
	enum urn_neigh_state state = URN_NEIGH_NONE;
	const struct entry *e;

	rte_spinlock_lock(&nb->lock);
	e = urn_table_find(&nb->table, gid);
	if (e != NULL) {
		state = (enum urn_neigh_state)e->state;
		memcpy(mac, e->mac, 6);
	}
	rte_spinlock_unlock(&nb->lock);
	return state;
}

unsigned int
urn_neigh_list(struct urn_neigh *nb, uint32_t *at, struct urn_neigh_info *out, unsigned int max)
{
	unsigned int n = 0;

	rte_spinlock_lock(&nb->lock);
	for (; *at < URN_NEIGH_ENTRIES && n < max; ++*at) {
		const struct entry *e = urn_table_at(&nb->table, *at);

		if (e->t.list == FREE)
			continue;
		memcpy(out[n].gid, e->t.key, 16);
		memcpy(out[n].mac, e->mac, 6);
		out[n].state = (enum urn_neigh_state)e->state;
		out[n].fixed = e->t.list == STATIC;
		out[n].routes = routes_by(nb, e->t.key);
		n++;
	}
	rte_spinlock_unlock(&nb->lock);
	return n;
}
