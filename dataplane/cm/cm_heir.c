/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management: services that several owners share. A program listens, and processes that
 * it makes by fork() listen there as well: each has its own listener, and its own requests, as
 * sockets with SO_REUSEPORT have. The cookie of the first listener is their secret: a random number
 * that a process has from its parent by fork(), like a descriptor. So it holds for another user,
 * too: a master process of root has workers of an account with fewer rights.
 *
 * The program that listened first may never take a request (nginx's master process). So
 * those that came later are heirs, and get all requests as long as there is one.
 */
#include "cm/cm_internal.h"

/* True when two owners are of one user, or of no user: clients in the dataplane's own process. */
static bool
are_of_one_user(const struct urn_cm_owner *a, const struct urn_cm_owner *b)
{
	return a->user_ids == b->user_ids;
}

/* True when an owner knows a listener's secret. 0 is none that another user could not guess. */
static bool
knows(const struct cm_conn *l, const struct urn_cm_owner *o, uint64_t cookie)
{
	return l->shared && l->cookie == cookie && (cookie != 0 || are_of_one_user(l->owner, o));
}

int
cm_may_listen(const struct urn_cm *cm, const struct urn_cm_owner *o,
	      const struct urn_abi_cm_listen *p)
{
	const struct cm_conn *l = cm_by_service(cm, p->service_id);
	unsigned int n = 0;

	for (; l; l = cm_next_of_service(cm, l))
		if (!(p->backlog & URN_CM_SHARED) || !knows(l, o, p->cookie) || ++n >= CM_SHARERS)
			return EADDRINUSE;
	return 0;
}

/* Move an id to another owner. returns: 0; EDQUOT: the owner, or its user, has as many as it may */
static int
move(struct urn_cm *cm, struct cm_conn *e, struct urn_cm_owner *to, int32_t channel)
{
	bool alien = !are_of_one_user(e->owner, to);

	if (to->going || (to->max_ids && to->ids >= to->max_ids) || (alien && !cm_user_takes(to)))
		return EDQUOT;
	if (alien)
		cm_user_gives(e->owner);
	TAILQ_REMOVE(&e->owner->conns, e, link);
	e->owner->ids--;
	e->owner->half--;
	cm_use_end(cm, e->use);
	e->owner = to;
	e->channel = channel;
	e->use = cm_use_begin(cm, to, channel);
	to->ids++;
	to->half++;
	TAILQ_INSERT_TAIL(&to->conns, e, link);
	return 0;
}

int
urn_cm_take(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id, uint64_t cookie,
	    int32_t channel)
{
	struct cm_conn *e = cm_by_id(cm, id);

	if (!e || !e->owner || !e->half || !knows(e, o, cookie))
		return ENOENT;
	if (e->state != URN_CM_REQ_RCVD && e->state != URN_CM_MRA_REQ_SENT)
		return ENOTCONN;
	return move(cm, e, o, channel);
}

/* Forget requests that wait at a listener: their peers repeat them, and they come to another one.
 */
static void
forget_requests(struct urn_cm *cm, const struct cm_conn *l)
{
	struct cm_conn *e = TAILQ_LAST(&l->owner->conns, cm_conns), *before;

	/* The newest ids of the owner: a bound on the time that others wait for the lock. */
	for (unsigned int i = 0; e && l->pending && i < URN_CM_SLICE; i++, e = before) {
		before = TAILQ_PREV(e, cm_conns, link);
		if (e->waits && e->listener == l->id && e->state == URN_CM_REQ_RCVD)
			cm_idle(cm, e);
	}
}

void
cm_joined(struct urn_cm *cm, const struct cm_conn *l)
{
	const struct cm_conn *other;
	unsigned int heirs = 0;

	for (other = cm_by_service(cm, l->service_id); other; other = cm_next_of_service(cm, other))
		heirs += other->heir;
	if (!l->heir || heirs > 1)
		return;
	for (other = cm_by_service(cm, l->service_id); other; other = cm_next_of_service(cm, other))
		if (other != l)
			forget_requests(cm, other);
}

/* True when listener a is to get a request rather than b. */
static bool
comes_first(const struct cm_conn *a, const struct cm_conn *b)
{
	if (a->owner->going != b->owner->going)
		return b->owner->going;
	if (a->heir != b->heir)
		return a->heir;
	return a->pending != b->pending ? a->pending < b->pending : a->given < b->given;
}

struct cm_conn *
cm_pick(const struct urn_cm *cm, uint64_t service_id)
{
	struct cm_conn *best = cm_by_service(cm, service_id), *l = best;

	while (l && (l = cm_next_of_service(cm, l)) != NULL)
		if (comes_first(l, best))
			best = l;
	return best;
}
