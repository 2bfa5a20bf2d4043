/* SPDX-License-Identifier: BSD-3-Clause */
/* The knowledge of each peer, its changes, and the news of them for engines. */
#include "net/learn_table.h"

#include <string.h>

static const char *const state_names[URN_LEARN_STATES] = {
	[URN_LEARN_UNKNOWN] = "unknown",
	[URN_LEARN_ASKING] = "asking",
	[URN_LEARN_KNOWN] = "known",
	[URN_LEARN_PLAIN] = "plain",
};

const char *
urn_learn_state_name(unsigned int state)
{
	return state < URN_LEARN_STATES ? state_names[state] : "?";
}

/* ---- states; the table's lock is held */

static uint32_t
common(const struct urn_learn *lk, const struct urn_learn_entry *e)
{
	uint32_t all = e->info.features & (e->proved | ~URN_LINK_F_PROVED);

	return e->state == URN_LEARN_KNOWN ? lk->cfg.offer & all : 0;
}

/* True when a known peer has named a feature, and a response is to prove that. */
static bool
lacks_proof(const struct urn_learn *lk, const struct urn_learn_entry *e)
{
	return (lk->cfg.offer & e->info.features & ~e->proved & URN_LINK_F_PROVED) != 0;
}

/* Bytes of the peer's cache lines; 0: not known. */
static uint32_t
line_of(const struct urn_learn_entry *e)
{
	return e->state == URN_LEARN_KNOWN ? urn_link_arw_bytes(e->info.arw) : 0;
}

/* Make news of an entry. An entry that no engine asked for makes none, so that a flood makes no work. */
static void
tell(struct urn_learn *lk, struct urn_learn_entry *e)
{
	uint32_t gen;

	if (!e->wanted)
		return;
	gen = atomic_load_explicit(&lk->gen, memory_order_relaxed) + 1;
	if (gen == 0) /* 0 means no news (changed), or none seen */
		gen = 1;
	if (e->changed)
		TAILQ_REMOVE(&lk->news, e, news);
	e->changed = gen;
	TAILQ_INSERT_TAIL(&lk->news, e, news);
	atomic_store_explicit(&lk->gen, gen, memory_order_relaxed);
}

void
urn_learn_start_asking(struct urn_learn *lk, struct urn_learn_entry *e)
{
	if (e->state == URN_LEARN_UNKNOWN)
		e->state = URN_LEARN_ASKING;
	e->tries = 0;
	e->tid = urn_learn_draw(lk);
	e->answered = false;
	urn_learn_move(lk, e, URN_LEARN_ON_FRESH);
}

void
urn_learn_set_plain(struct urn_learn *lk, struct urn_learn_entry *e)
{
	bool news = common(lk, e) != 0 || line_of(e) != 0;

	e->state = URN_LEARN_PLAIN;
	e->due = lk->now + URN_LEARN_AGAIN_NS;
	urn_learn_move(lk, e, e->wanted ? URN_LEARN_ON_PLAIN : URN_LEARN_ON_LEARNT);
	if (news)
		tell(lk, e);
}

static bool
under_way(const struct urn_learn_entry *e)
{
	return e->t.list >= URN_LEARN_ON_FRESH && e->t.list <= URN_LEARN_ON_TRIED_LAST;
}

void
urn_learn_set_known(struct urn_learn *lk, struct urn_learn_entry *e,
		    const struct urn_link_info *info, bool response)
{
	bool news = e->state != URN_LEARN_KNOWN || e->info.epoch != info->epoch ||
		    e->info.features != info->features || e->info.arw != info->arw ||
		    (response && (info->features & ~e->proved));

	if (info->major != URN_LINK_MAJOR) {
		urn_learn_set_plain(lk, e);
		return;
	}
	if (response)
		e->proved = info->features;
	else
		e->proved = e->state == URN_LEARN_KNOWN ? e->proved & info->features : 0;
	e->state = URN_LEARN_KNOWN;
	e->info = *info;
	e->confirmed = lk->now;
	if (!lacks_proof(lk, e)) {
		e->answered = true;
		urn_learn_move(lk, e, e->wanted ? URN_LEARN_ON_WANTED : URN_LEARN_ON_LEARNT);
	} else if (e->wanted && !under_way(e)) {
		urn_learn_start_asking(lk, e);
	} else if (!e->wanted) {
		urn_learn_move(lk, e, URN_LEARN_ON_LEARNT);
	}
	if (news)
		tell(lk, e);
}

/* An engine wants a peer's features. */
static uint32_t
want(struct urn_learn *lk, struct urn_learn_entry *e)
{
	e->wanted = true;
	if (under_way(e))
		return common(lk, e);
	if (e->state == URN_LEARN_KNOWN) {
		if (lk->now - e->confirmed > URN_LEARN_AGAIN_NS || lacks_proof(lk, e))
			urn_learn_start_asking(lk, e);
		else
			urn_learn_move(lk, e, URN_LEARN_ON_WANTED); /* to the end: used last */
	} else if (lk->now >= e->due) {
		urn_learn_start_asking(lk, e);
	} else {
		urn_learn_move(lk, e, URN_LEARN_ON_PLAIN);
	}
	return common(lk, e);
}

/* ---- asked by engines */

uint32_t
urn_learn_features(struct urn_learn *lk, const uint8_t gid[16])
{
	struct urn_learn_entry *e;
	uint32_t features;

	if (urn_neigh_is_own(lk->cfg.neigh, gid))
		return lk->cfg.offer;
	if (!urn_neigh_unicast(gid) || !urn_neigh_source(lk->cfg.neigh, gid))
		return 0;
	rte_spinlock_lock(&lk->lock);
	e = urn_learn_find(lk, gid);
	if (!e) {
		e = urn_learn_add(lk, gid, URN_LEARN_ON_FRESH);
		e->wanted = true;
		urn_learn_start_asking(lk, e);
	}
	features = want(lk, e);
	rte_spinlock_unlock(&lk->lock);
	return features;
}

uint32_t
urn_learn_line(struct urn_learn *lk, const uint8_t gid[16])
{
	const struct urn_learn_entry *e;
	uint32_t line;

	if (urn_neigh_is_own(lk->cfg.neigh, gid))
		return urn_link_arw_bytes(lk->cfg.arw);
	rte_spinlock_lock(&lk->lock);
	e = urn_learn_find(lk, gid);
	line = e ? line_of(e) : 0;
	rte_spinlock_unlock(&lk->lock);
	return line;
}

uint32_t
urn_learn_generation(const struct urn_learn *lk)
{
	return atomic_load_explicit(&lk->gen, memory_order_relaxed);
}

unsigned int
urn_learn_news(struct urn_learn *lk, uint32_t *seen, struct urn_learn_news *out, unsigned int max)
{
	struct urn_learn_entry *e, *prev;
	unsigned int n = 0;

	rte_spinlock_lock(&lk->lock);
	e = TAILQ_LAST(&lk->news, urn_learn_entries);
	while (e && (prev = TAILQ_PREV(e, urn_learn_entries, news)) &&
	       (int32_t)(prev->changed - *seen) > 0)
		e = prev;
	for (; e && n < max; e = TAILQ_NEXT(e, news)) {
		if ((int32_t)(e->changed - *seen) <= 0)
			continue;
		memcpy(out[n].gid, e->t.key, 16);
		out[n].line = line_of(e);
		out[n++].features = common(lk, e);
		*seen = e->changed;
	}
	if (!e) /* out[] has all; generations of forgotten entries are skipped */
		*seen = atomic_load_explicit(&lk->gen, memory_order_relaxed);
	rte_spinlock_unlock(&lk->lock);
	return n;
}

/* ---- looking in */

enum urn_learn_state
urn_learn_peek(struct urn_learn *lk, const uint8_t gid[16], struct urn_link_info *info)
{
	enum urn_learn_state state = URN_LEARN_UNKNOWN;
	struct urn_learn_entry *e;

	rte_spinlock_lock(&lk->lock);
	e = urn_learn_find(lk, gid);
	if (e) {
		state = (enum urn_learn_state)e->state;
		if (info && state == URN_LEARN_KNOWN)
			*info = e->info;
	}
	rte_spinlock_unlock(&lk->lock);
	return state;
}

/* ---- frames; the table's lock is held */

int
urn_learn_frame(struct urn_learn *lk, struct rte_mbuf *m, const struct urn_link_msg *what,
	       const uint8_t own[16], const uint8_t peer[16], const uint8_t mac[6])
{
	uint8_t mad[URN_MAD_BYTES];
	struct urn_link_msg msg = *what;
	struct urn_path path = {.sport = URN_ROCE_SPORT_MIN | URN_QPN_GSI, .ttl = 64};

	memcpy(path.smac, lk->cfg.mac, 6);
	memcpy(path.dmac, mac, 6);
	memcpy(path.sgid, own, 16);
	memcpy(path.dgid, peer, 16);
	msg.info.epoch = lk->epoch;
	msg.info.features = lk->cfg.offer;
	msg.info.arw = lk->cfg.arw;
	urn_link_write(mad, &msg);
	return urn_mad_frame(m, &path, mad, lk->psn++, lk->cfg.icrc);
}
