/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sabotage of tags and of early data (AM-5 to AM-7). Calls between files of dataplane/am come here
 * first (--wrap), and go on to the product. Only operations are spoilt that would end well.
 */
#include "sabotage.h"

#include "am/tagged.h"

static struct ms_world *world; /* world whose product is broken; NULL: none */

void __real_urn_am_progress_place(struct urn_tp *tp, struct urn_am_transfer *t, uint32_t off,
				  uint32_t len, const uint8_t *data);
void __wrap_urn_am_progress_place(struct urn_tp *tp, struct urn_am_transfer *t, uint32_t off,
				  uint32_t len, const uint8_t *data);
void __real_urn_am_way_choose(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i);
void __wrap_urn_am_way_choose(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i);
bool __real_urn_am_early_keep(struct urn_am_tagged *tg, struct urn_am_transfer *t,
			      const struct urn_am_msg *m);
bool __wrap_urn_am_early_keep(struct urn_am_tagged *tg, struct urn_am_transfer *t,
			      const struct urn_am_msg *m);
void __real_urn_am_early_put(struct urn_am_tagged *tg, struct urn_am_transfer *t);
void __wrap_urn_am_early_put(struct urn_am_tagged *tg, struct urn_am_transfer *t);

void
as_sabotage_open(struct ms_world *w)
{
	world = w;
	as_sabotage_anew_open(w);
}

/* True when an endpoint's operation is under way, and nothing is wrong with its command. */
static bool
is_right(const struct urn_am_oper *op)
{
	const struct as_sim *s = world->as;

	return op->used && op->cmd.id < s->ops && s->op[op->cmd.id].reach == AS_REACH_ALL &&
	       !s->op[op->cmd.id].can && op->cmd.op == URN_AM_WRITE;
}

/* True when a peer's transfer is that of a write without fault. */
static bool
is_good(const struct urn_am_transfer *t)
{
	uint32_t i = (uint32_t)t->tag & 0xffff;

	for (unsigned int n = 0; n < world->plan.nodes; n++) {
		const struct ms_node *node = &world->node[n];
		const struct urn_am_ep *ep;

		if (!node->tp || memcmp(node->gid, t->node, 16) != 0)
			continue;
		ep = urn_am_find(node->am, t->qid);
		return ep && i < ep->entries && ep->oper[i].tag == t->tag && is_right(&ep->oper[i]);
	}
	return false;
}

/* Another transfer of the node that has room for the data; NULL: none. */
static struct urn_am_transfer *
another(const struct urn_tp *tp, const struct urn_am_transfer *t, uint32_t off, uint32_t len)
{
	const struct urn_am_tagged *tg = urn_am_of(tp)->tagged;

	for (uint32_t i = 0; i < tg->pool.made; i++) {
		struct urn_am_transfer *o = &tg->transfer[i];

		if (o != t && o->state == URN_AM_TRANSFER_OPEN && o->kind == URN_AM_K_TAG_WRITE &&
		    off < o->len && len <= o->len - off && len <= o->len - o->done && is_good(o))
			return o;
	}
	return NULL;
}

void
__wrap_urn_am_progress_place(struct urn_tp *tp, struct urn_am_transfer *t, uint32_t off,
			     uint32_t len, const uint8_t *data)
{
	struct urn_am_transfer *o =
		world->sabotage == AS_BREAK_ASTRAY ? another(tp, t, off, len) : NULL;

	if (as_sabotage_now(world, AS_BREAK_ASTRAY, o && is_good(t)))
		t = o;
	__real_urn_am_progress_place(tp, t, off, len, data);
}

/* True when two tagged writes have the same target. */
static bool
are_alike(const struct urn_am_oper *a, const struct urn_am_oper *b)
{
	return a->way == URN_AM_TAGGED && b->way == URN_AM_TAGGED && a->open && b->open &&
	       a->cmd.qid == b->cmd.qid && memcmp(a->cmd.node, b->cmd.node, 16) == 0;
}

void
__wrap_urn_am_way_choose(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i)
{
	struct urn_am_oper *op = &ep->oper[i];

	__real_urn_am_way_choose(tp, ep, i);
	for (uint32_t k = 0; k < ep->entries && world->sabotage == AS_BREAK_PAIRED; k++)
		if (k != i && is_right(op) && is_right(&ep->oper[k]) &&
		    are_alike(op, &ep->oper[k]) && as_sabotage_now(world, AS_BREAK_PAIRED, true))
			op->tag = ep->oper[k].tag;
}

bool
__wrap_urn_am_early_keep(struct urn_am_tagged *tg, struct urn_am_transfer *t,
			 const struct urn_am_msg *m)
{
	bool good = world->sabotage && is_good(t);

	if (as_sabotage_now(world, AS_BREAK_EARLY_LOST, good))
		return true;
	/* A single packet that is placed twice does no harm: it holds all bytes. */
	if (as_sabotage_now(world, AS_BREAK_EARLY_MORE, good && t->early))
		(void)__real_urn_am_early_keep(tg, t, m);
	return __real_urn_am_early_keep(tg, t, m);
}

void
__wrap_urn_am_early_put(struct urn_am_tagged *tg, struct urn_am_transfer *t)
{
	__real_urn_am_early_put(tg, t);
	if (as_sabotage_now(world, AS_BREAK_EARLY_LEFT, true))
		tg->early_n++;
}
