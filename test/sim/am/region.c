/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions of ends, and regions above that peers reach (AM-9): they come, and go in
 * mid-transfer. */
#include "amsim.h"

/* ---- memory below */

static void
map_half(struct ms_node *n, struct as_end *e, struct as_zone *z, unsigned int half)
{
	uint32_t off = half ? z->split : 0, len = half ? z->len - z->split : z->split;

	if (!len || z->lkey[half])
		return;
	if (urn_mem_reg_mr(n->mem, e->pd, e->mem.at + z->at + off, len, as_address(e, z->at + off),
			   URN_ACCESS_LOCAL_WRITE, &z->lkey[half]) != 0)
		ms_fail(n->w, "memory could not be registered");
}

static void
unmap_half(struct ms_node *n, struct as_zone *z, unsigned int half)
{
	struct urn_region *r;

	if (!z->lkey[half])
		return;
	if (urn_mem_kill_mr(n->mem, z->lkey[half], &r) != 0)
		ms_fail(n->w, "memory could not be taken back");
	urn_mem_free_mr(n->mem, r);
	z->lkey[half] = 0;
}

void
as_zone_unmap(struct ms_node *n, struct as_end *e, unsigned int zone)
{
	unmap_half(n, &e->zone[zone], 0);
	unmap_half(n, &e->zone[zone], 1);
}

/* ---- ranges */

bool
as_zone_holds(const struct as_zone *z, uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < z->parts && len; i++) {
		const struct as_part *p = &z->part[i];
		uint32_t here;

		if (off < p->at || off - p->at >= p->len)
			continue;
		here = RTE_MIN(len, p->len - (off - p->at));
		off += here;
		len -= here;
	}
	return !len;
}

/* Choose ranges with gaps between them; a range ends where one memory region ends and the next
 * begins. */
static void
choose_parts(struct ms_world *w, struct as_zone *z)
{
	uint32_t at = z->at + (uint32_t)ms_upto(w, 3), end = z->at + z->len,
		 split = z->at + z->split;

	z->parts = 0;
	while (z->parts < AS_PARTS && at < end) {
		uint32_t most = (at < split ? split : end) - at;
		uint32_t len = ms_one_in(w, 3) ? most : 1 + (uint32_t)ms_upto(w, most);

		z->part[z->parts++] = (struct as_part){at, len};
		at += len;
		if (at != split)
			at += 1 + (uint32_t)ms_upto(w, ms_one_in(w, 2) ? 3 : 400);
		else if (ms_one_in(w, 3))
			at++;
	}
}

static void
write_list(struct as_end *e, const struct as_zone *z)
{
	struct urn_abi_am_range *l = urn_am_ranges(e->regs, e->entries);

	for (uint32_t i = 0; i < z->parts; i++)
		l[i] = (struct urn_abi_am_range){
			.addr = as_address(e, z->part[i].at),
			.len = z->part[i].len,
			.lkey = z->lkey[z->part[i].at - z->at >= z->split],
		};
}

/* ---- regions above */

static void
make_region(struct ms_node *n, struct as_end *e, unsigned int zone)
{
	struct as_zone *z = &e->zone[zone];
	struct ms_world *w = n->w;
	struct urn_am_region_config c = {.space = z->space, .random = sim_rng_next(&w->rng)};
	int rc;

	choose_parts(w, z);
	if (zone == AS_WORD_ZONE) {
		z->parts = 1;
		z->part[0] = (struct as_part){z->at, z->len};
	}
	z->access = ms_one_in(w, 4)   ? URN_AM_ACCESS_READ
		    : ms_one_in(w, 4) ? URN_AM_ACCESS_WRITE
				      : URN_AM_ACCESS_ALL;
	if (zone == AS_WORD_ZONE)
		z->access = URN_AM_ACCESS_ATOMIC;
	c.access = z->access;
	c.n = z->parts;
	write_list(e, z);
	rc = urn_am_region_add(n->tp, e->ep, &c);
	if (rc != 0)
		ms_fail(w, "end %u: a region of %u ranges was refused: %d", e->id, z->parts, rc);
	if (!c.key != z->space || (c.key && c.key == z->old))
		ms_fail(w, "end %u: a region has the key %llx", e->id, (unsigned long long)c.key);
	z->key = c.key;
	z->there = true;
	ms_trace(w, "end %u: zone %u has a region of %u ranges, key %llx, rights %u", e->id, zone,
		 z->parts, (unsigned long long)z->key, z->access);
	for (uint32_t i = 0; i < z->parts; i++)
		ms_trace(w, "  range of %u bytes at offset %u", z->part[i].len, z->part[i].at);
}

void
as_zone_make(struct ms_node *n, struct as_end *e, unsigned int zone)
{
	struct as_zone *z = &e->zone[zone];

	map_half(n, e, z, 0);
	map_half(n, e, z, 1);
	if (!zone)
		return;
	z->space = zone == AS_SPACE;
	make_region(n, e, zone);
}

/* Remove a zone's region. */
static void
remove_region(struct ms_node *n, struct as_end *e, unsigned int zone)
{
	struct as_zone *z = &e->zone[zone];

	if (urn_am_region_remove(e->ep, z->key) != 0)
		ms_fail(n->w, "end %u: zone %u has no region", e->id, zone);
	as_judge_revoke(n->w, e, zone, z->space ? URN_AM_UNREGISTERED : URN_AM_BAD_KEY);
	z->there = false;
	z->old = z->key;
	ms_trace(n->w, "end %u: the region of zone %u is gone", e->id, zone);
	as_sabotage_revoked(n->w, e, zone);
}

/* Take memory below a zone away; the region above stays. */
static void
deregister(struct ms_node *n, struct as_end *e, unsigned int zone)
{
	as_zone_unmap(n, e, zone);
	as_judge_revoke(n->w, e, zone, zone ? URN_AM_BAD_KEY : URN_AM_LOCAL);
	ms_trace(n->w, "end %u: memory of zone %u is gone", e->id, zone);
	if (!zone)
		as_zone_make(n, e, 0);
}

/* True when the zone may have a region again: the declared space has no key that tells old packets
 * from new ones. */
static bool
may_return(const struct ms_world *w, const struct as_end *e, const struct as_zone *z)
{
	const struct as_sim *s = w->as;

	if (!z->space)
		return true;
	if (z->never)
		return false;
	for (uint32_t i = s->first_op; i < s->ops; i++)
		if (!s->op[i].ended && !s->op[i].orphan && s->op[i].to == (int32_t)e->id &&
		    s->op[i].zone == AS_SPACE)
			return false;
	return true;
}

void
as_revoke_one(struct ms_world *w)
{
	struct ms_node *n = ms_any_node(w);
	struct as_end *e = as_end_at(n, (unsigned int)ms_upto(w, w->plan.am.ends));
	unsigned int zone = (unsigned int)ms_upto(w, AS_ZONES);
	struct as_zone *z;

	if (!n->tp || !e)
		return;
	z = &e->zone[zone];
	w->stats.more[AS_REVOKED]++;
	if (!zone) {
		deregister(n, e, 0);
	} else if (!z->there) {
		if (may_return(w, e, z))
			as_zone_make(n, e, zone);
	} else if (ms_one_in(w, 3) && z->lkey[0]) {
		deregister(n, e, zone);
	} else {
		remove_region(n, e, zone);
		if (ms_one_in(w, 2) && may_return(w, e, z))
			as_zone_make(n, e, zone);
	}
}
