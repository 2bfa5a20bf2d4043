/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/route.h"

#include "base/table.h"

#include <errno.h>

enum { ROUTES = 1, LISTS }; /* lists of the table, behind that of free entries */

struct route_entry {
	struct urn_table_entry e; /* first: the table's */
	uint16_t port;		  /* valid unless free */
};

struct urn_route {
	struct urn_table table;
};

struct urn_route *
urn_route_create(uint32_t max, uint32_t seed)
{
	struct urn_route *r;

	if (max == 0 || max > URN_ROUTE_MAX)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	if (urn_table_init(&r->table, max, sizeof(struct route_entry), LISTS, seed) != 0) {
		urn_route_destroy(r);
		return NULL;
	}
	return r;
}

void
urn_route_destroy(struct urn_route *r)
{
	if (!r)
		return;
	urn_table_fini(&r->table);
	free(r);
}

int
urn_route_set(struct urn_route *r, const uint8_t gid[16], uint16_t port)
{
	struct route_entry *e = urn_table_find(&r->table, gid);

	if (!e) {
		e = urn_table_first(&r->table, URN_TABLE_FREE);
		if (!e)
			return -ENOSPC;
		urn_table_put(&r->table, &e->e, gid, ROUTES);
	}
	e->port = port;
	return 0;
}

int
urn_route_lookup(const struct urn_route *r, const uint8_t gid[16])
{
	const struct route_entry *e = urn_table_find(&r->table, gid);

	return e ? e->port : -1;
}

uint32_t
urn_route_count(const struct urn_route *r)
{
	return r->table.count[ROUTES];
}

int
urn_route_frame(const struct urn_route *r, const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t at = 14, len = m->data_len;
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff};

	if (len < 18)
		return -1;
	if (f[12] == 0x81 && f[13] == 0x00)
		at = 18;
	if (f[at - 2] == 0x08 && f[at - 1] == 0x00 && len >= at + 20)
		memcpy(gid + 12, f + at + 16, 4);
	else if (f[at - 2] == 0x86 && f[at - 1] == 0xdd && len >= at + 40)
		memcpy(gid, f + at + 24, 16);
	else
		return -1;
	return urn_route_lookup(r, gid);
}
