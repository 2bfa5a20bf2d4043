/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers: a hash over their addresses, and the lists that entries wait on. */
#include "net/learn_table.h"

#include <stdlib.h>
#include <string.h>

uint64_t
urn_learn_draw(struct urn_learn *lk)
{
	return urn_draw(&lk->draw);
}

struct urn_learn *
urn_learn_create(const struct urn_learn_config *cfg)
{
	struct urn_learn *lk = calloc(1, sizeof(*lk));
	uint32_t seed;

	if (!lk)
		return NULL;
	lk->cfg = *cfg;
	if (urn_draw_init(&lk->draw, cfg->seed) != 0) {
		free(lk);
		return NULL;
	}
	lk->epoch = urn_learn_draw(lk);
	seed = (uint32_t)urn_learn_draw(lk);
	lk->psn = (uint32_t)urn_learn_draw(lk);
	rte_spinlock_init(&lk->lock);
	TAILQ_INIT(&lk->news);
	if (urn_table_init(&lk->table, URN_LEARN_ENTRIES, sizeof(struct urn_learn_entry), URN_LEARN_LISTS, seed) != 0) {
		free(lk);
		return NULL;
	}
	return lk;
}

void
urn_learn_destroy(struct urn_learn *lk)
{
	if (lk)
		urn_table_fini(&lk->table);
	free(lk);
}

/* ---- lists */

struct urn_learn_entry *
urn_learn_find(struct urn_learn *lk, const uint8_t gid[16])
{
	return urn_table_find(&lk->table, gid);
}

void
urn_learn_move(struct urn_learn *lk, struct urn_learn_entry *e, enum urn_learn_list to)
{
	urn_table_move(&lk->table, &e->t, to);
}

static struct urn_learn_entry *
first(const struct urn_learn *lk, unsigned int list)
{
	return urn_table_first(&lk->table, list);
}

static void
forget(struct urn_learn *lk, struct urn_learn_entry *e)
{
	if (e->changed)
		TAILQ_REMOVE(&lk->news, e, news);
	urn_table_take(&lk->table, &e->t);
}

/* The entry that makes room for a wanted one: one that no engine uses, then one with the least knowledge. */
static struct urn_learn_entry *
victim(struct urn_learn *lk)
{
	static const enum urn_learn_list order[] = {URN_LEARN_ON_LEARNT, URN_LEARN_ON_PLAIN,
						   URN_LEARN_ON_WANTED, URN_LEARN_ON_NO_MAC,
						   URN_LEARN_ON_FRESH};
	struct urn_learn_entry *e;

	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		e = first(lk, order[i]);
		if (e)
			return e;
	}
	for (unsigned int i = URN_LEARN_ON_TRIED_LAST; i > URN_LEARN_ON_TRIED; i--) {
		e = first(lk, i);
		if (e)
			return e;
	}
	return first(lk, URN_LEARN_ON_TRIED);
}

struct urn_learn_entry *
urn_learn_add(struct urn_learn *lk, const uint8_t gid[16], enum urn_learn_list list)
{
	struct urn_learn_entry *e = first(lk, URN_LEARN_ON_FREE);

	if (list == URN_LEARN_ON_LEARNT &&
	    (!e || lk->table.count[URN_LEARN_ON_LEARNT] >= URN_LEARN_LEARNT)) {
		e = first(lk, URN_LEARN_ON_LEARNT);
		if (!e)
			return NULL;
	} else if (!e) {
		e = victim(lk);
	}
	if (e->t.list != URN_LEARN_ON_FREE)
		forget(lk, e);
	memset(&e->info, 0, sizeof(e->info));
	e->state = URN_LEARN_UNKNOWN;
	e->changed = 0;
	e->tries = 0;
	e->wanted = false;
	e->answered = true;
	urn_table_put(&lk->table, &e->t, gid, list);
	return e;
}

unsigned int
urn_learn_count(struct urn_learn *lk)
{
	unsigned int n;

	rte_spinlock_lock(&lk->lock);
	n = URN_LEARN_ENTRIES - lk->table.count[URN_LEARN_ON_FREE];
	rte_spinlock_unlock(&lk->lock);
	return n;
}
