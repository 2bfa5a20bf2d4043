/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: attachments (mcast.h). Nothing here is on a fast path. */
#include "transport/mcast_priv.h"

#include <errno.h>
#include <stdlib.h>

enum { IN_USE = 1, LISTS = 2 }; /* lists of the table of groups */

/* ---- groups */

static struct urn_mcast *
make(struct urn_tp *tp)
{
	struct urn_mcast *mc = calloc(1, sizeof(*mc));

	if (!mc)
		return NULL;
	if (urn_table_init(&mc->groups, URN_MCAST_GROUPS, sizeof(struct urn_mcast_group), LISTS,
			   tp->cfg.hash_seed) != 0) {
		free(mc);
		return NULL;
	}
	urn_fair_init(&mc->fair_groups, URN_MCAST_GROUPS);
	urn_fair_init(&mc->fair_members, URN_MCAST_MEMBERS);
	tp->mcast = mc;
	return mc;
}

/* The user whose client has a part in multicast. share: a client's, not an engine's */
static struct urn_tp_user *
user_of(struct urn_mcast_share *share)
{
	return urn_share_user((void *)((char *)share - offsetof(struct urn_tp_share, mcast)));
}

/* share: of the client that asks; NULL: another engine does, which has asked its clients' shares */
static struct urn_mcast_group *
find_or_make(struct urn_tp *tp, const uint8_t gid[16], struct urn_mcast_share *share)
{
	struct urn_mcast *mc = tp->mcast ? tp->mcast : make(tp);
	struct urn_mcast_group *g;

	if (!mc)
		return NULL;
	g = urn_table_find(&mc->groups, gid);
	if (g)
		return g;
	g = urn_table_first(&mc->groups, URN_TABLE_FREE);
	if (!g || (share && !urn_fair_user_has(&mc->fair_groups, mc->groups.count[URN_TABLE_FREE],
					       share->groups, user_of(share)->groups)))
		return NULL;
	urn_table_put(&mc->groups, &g->entry, gid, IN_USE);
	TAILQ_INIT(&g->round);
	LIST_INIT(&g->engines);
	g->datagrams = 0;
	g->n = g->members = 0;
	return g;
}

/* Forget a group that nobody is in. */
static void
let_go(struct urn_tp *tp, struct urn_mcast_group *g)
{
	if (!g->members && LIST_EMPTY(&g->engines))
		urn_table_take(&tp->mcast->groups, &g->entry);
}

/* ---- places */

/* Places of a group, and members of a place, are in the round while they take datagrams. */
static void
enter_round(struct urn_mcast_place *p)
{
	if (p->n++ == 0)
		TAILQ_INSERT_TAIL(&p->group->round, p, link);
	p->group->n++;
}

static void
leave_round(struct urn_mcast_place *p)
{
	if (--p->n == 0)
		TAILQ_REMOVE(&p->group->round, p, link);
	p->group->n--;
}

static struct urn_mcast_place *
new_place(struct urn_mcast_group *g, struct urn_mcast_share *share)
{
	struct urn_mcast_place *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->group = g;
	p->share = share;
	TAILQ_INIT(&p->round);
	return p;
}

/* The place of a client in a group. NULL: no memory for it */
static struct urn_mcast_place *
place_of(struct urn_mcast_group *g, struct urn_mcast_share *share)
{
	struct urn_mcast_place *p;

	LIST_FOREACH(p, &share->places, of)
		if (p->group == g)
			return p;
	p = new_place(g, share);
	if (p) {
		LIST_INSERT_HEAD(&share->places, p, of);
		share->groups++;
		user_of(share)->groups++;
	}
	return p;
}

/* Free the place of a client that has no member there. */
static void
let_place_go(struct urn_mcast_place *p)
{
	if (p->members)
		return;
	LIST_REMOVE(p, of);
	p->share->groups--;
	user_of(p->share)->groups--;
	free(p);
}

static struct urn_mcast_place *
place_of_engine(const struct urn_mcast_group *g, unsigned int engine)
{
	struct urn_mcast_place *p;

	LIST_FOREACH(p, &g->engines, of)
		if (p->engine == engine)
			return p;
	return NULL;
}

static void
forget_engine(struct urn_mcast_place *p)
{
	leave_round(p);
	LIST_REMOVE(p, of);
	free(p);
}

int
urn_mcast_tell(struct urn_tp *tp, const uint8_t gid[16], unsigned int engine, bool has)
{
	struct urn_mcast_group *g = has ? find_or_make(tp, gid, NULL) : urn_mcast_find(tp, gid);
	struct urn_mcast_place *p;

	if (!g)
		return has ? ENOMEM : 0;
	p = place_of_engine(g, engine);
	if (has && !p && (p = new_place(g, &tp->mcast->engine[engine]))) {
		p->engine = engine;
		LIST_INSERT_HEAD(&g->engines, p, of);
		enter_round(p);
	} else if (!has && p) {
		forget_engine(p);
	}
	let_go(tp, g);
	return has && !p ? ENOMEM : 0;
}

void
urn_mcast_free(struct urn_tp *tp)
{
	struct urn_mcast *mc = tp->mcast;
	struct urn_mcast_group *g;

	while (mc && (g = urn_table_first(&mc->groups, IN_USE))) {
		for (struct urn_mcast_place *p = LIST_FIRST(&g->engines), *next; p; p = next) {
			next = LIST_NEXT(p, of);
			forget_engine(p);
		}
		urn_table_take(&mc->groups, &g->entry);
	}
	if (mc)
		urn_table_fini(&mc->groups);
	free(mc);
	tp->mcast = NULL;
}

/* ---- members */

/* True when a queue pair takes datagrams. */
static bool
takes(const struct urn_qp *qp)
{
	return qp->state >= URN_QPS_RTR && qp->state != URN_QPS_ERR && !(qp->flags & URN_QPF_DYING);
}

static void
set_active(struct urn_mcast_member *m, bool active)
{
	if (m->active == active)
		return;
	m->active = active;
	if (active) {
		TAILQ_INSERT_TAIL(&m->place->round, m, link);
		enter_round(m->place);
	} else {
		TAILQ_REMOVE(&m->place->round, m, link);
		leave_round(m->place);
	}
}

void
urn_mcast_wake(struct urn_qp *qp)
{
	struct urn_mcast_member *m;

	LIST_FOREACH(m, &qp->groups, of_qp)
		set_active(m, true);
}

void
urn_mcast_rest(struct urn_qp *qp)
{
	struct urn_mcast_member *m;

	LIST_FOREACH(m, &qp->groups, of_qp)
		set_active(m, false);
}

static struct urn_mcast_member *
member(const struct urn_mcast_group *g, const struct urn_qp *qp)
{
	struct urn_mcast_member *m;

	LIST_FOREACH(m, &qp->groups, of_qp)
		if (m->place->group == g)
			return m;
	return NULL;
}

static bool
may_attach(const struct urn_mcast *mc, struct urn_mcast_share *share)
{
	return share->members < URN_MCAST_CLIENT && mc->members < URN_MCAST_MEMBERS &&
	       urn_fair_user_has(&mc->fair_members, URN_MCAST_MEMBERS - mc->members, share->members,
				 user_of(share)->members);
}

/* Make a queue pair a member of a group. returns: 0 or ENOMEM */
static int
join(struct urn_mcast *mc, struct urn_mcast_group *g, struct urn_qp *qp)
{
	struct urn_mcast_share *share = &qp->share->mcast;
	struct urn_mcast_place *p = may_attach(mc, share) ? place_of(g, share) : NULL;
	struct urn_mcast_member *m = p ? calloc(1, sizeof(*m)) : NULL;

	if (!m) {
		if (p)
			let_place_go(p);
		return ENOMEM;
	}
	m->qp = qp;
	m->place = p;
	LIST_INSERT_HEAD(&qp->groups, m, of_qp);
	p->members++;
	g->members++;
	mc->members++;
	share->members++;
	user_of(share)->members++;
	qp->flags |= URN_QPF_MCAST;
	set_active(m, takes(qp));
	return 0;
}

static void
leave(struct urn_mcast *mc, struct urn_mcast_member *m)
{
	struct urn_mcast_place *p = m->place;
	struct urn_qp *qp = m->qp;

	set_active(m, false);
	LIST_REMOVE(m, of_qp);
	free(m);
	p->members--;
	p->group->members--;
	p->share->members--;
	user_of(p->share)->members--;
	mc->members--;
	let_place_go(p);
	if (LIST_EMPTY(&qp->groups))
		qp->flags &= ~(uint32_t)URN_QPF_MCAST;
}

int
urn_mcast_attach(struct urn_tp *tp, struct urn_qp *qp, const uint8_t gid[16], bool *first)
{
	struct urn_mcast_group *g = find_or_make(tp, gid, &qp->share->mcast);
	int rc;

	*first = false;
	if (!g)
		return ENOMEM;
	if (member(g, qp))
		return 0;
	rc = join(tp->mcast, g, qp);
	*first = rc == 0 && g->members == 1;
	let_go(tp, g);
	return rc;
}

int
urn_mcast_detach(struct urn_tp *tp, struct urn_qp *qp, const uint8_t gid[16], bool *last)
{
	struct urn_mcast_group *g = urn_mcast_find(tp, gid);
	struct urn_mcast_member *m = g ? member(g, qp) : NULL;

	*last = false;
	if (!m)
		return EINVAL;
	leave(tp->mcast, m);
	*last = !g->members;
	let_go(tp, g);
	return 0;
}

bool
urn_mcast_group_of(const struct urn_qp *qp, uint8_t gid[16])
{
	const struct urn_mcast_member *m = LIST_FIRST(&qp->groups);

	if (m)
		memcpy(gid, m->place->group->entry.key, 16);
	return m;
}

void
urn_mcast_detach_all(struct urn_tp *tp, struct urn_qp *qp)
{
	for (struct urn_mcast_member *m = LIST_FIRST(&qp->groups), *next; m; m = next) {
		struct urn_mcast_group *g = m->place->group;

		next = LIST_NEXT(m, of_qp);
		leave(tp->mcast, m);
		let_go(tp, g);
	}
}
