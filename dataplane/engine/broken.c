/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues that lost a completion. The QPs that use one go to the error state (IBTA
 * 11.6.3), idle ones as well, on whichever engine they are. The engine that finds the
 * queue broken pushes its client on a list of each engine's; each looks at that client's QPs
 * there, a few a turn, so that only its own are the more to look at the more it breaks.
 */
#include "control/client.h"
#include "engine/engine.h"

enum { WALK_STEP = 32 }; /* QPs a turn */

static void
push(struct urn_shard *s, struct urn_client_shard *c)
{
	struct urn_client_shard *head;

	/* Pairs with the exchange in begin_walks(), after which the link is free. */
	if (__atomic_exchange_n(&c->broken, true, __ATOMIC_ACQ_REL))
		return; /* its QPs will be looked at from the first on */
	head = __atomic_load_n(&s->broken, __ATOMIC_RELAXED);
	do
		c->broken_next = head;
	while (!__atomic_compare_exchange_n(&s->broken, &head, c, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

void
urn_shard_cq_broken(void *ctx, const struct urn_cq *cq)
{
	const struct urn_client *c = cq->client;

	(void)ctx;
	/* The queue keeps its client and the client's shares. */
	for (unsigned int v = 0; c && v < URN_ABI_MAX_ENGINES; v++)
		if (c->shard[v])
			push(c->shard[v]->shard, c->shard[v]);
}

/* Those that were pushed begin, or begin anew. */
static void
begin_walks(struct urn_shard *s)
{
	struct urn_client_shard *c = __atomic_exchange_n(&s->broken, NULL, __ATOMIC_ACQUIRE), *next;

	for (; c; c = next) {
		next = c->broken_next;
		/*
		 * Pairs with the exchange in push(): what was broken when that found it set is seen
		 * broken here; what breaks from here on pushes again.
		 */
		(void)__atomic_exchange_n(&c->broken, false, __ATOMIC_ACQ_REL);
		c->walk_at = 0;
		if (c->walked)
			continue;
		c->walked = true;
		c->walk_next = s->walk;
		s->walk = c;
	}
}

static bool
is_broken(const struct urn_cq *cq)
{
	return __atomic_load_n(&cq->overrun, __ATOMIC_RELAXED);
}

unsigned int
urn_shard_walk_broken(struct urn_shard *s)
{
	struct urn_client_shard *c;
	unsigned int n = 0;

	begin_walks(s);
	while ((c = s->walk) && n < WALK_STEP) {
		struct urn_qp *qp;

		if (c->walk_at >= c->used) {
			c->walked = false;
			s->walk = c->walk_next;
			continue;
		}
		qp = c->qp[c->walk_at++];
		if (qp && (is_broken(qp->send_cq) || is_broken(qp->recv_cq)))
			urn_qp_cq_broken(s->tp, qp);
		n++;
	}
	return n;
}

void
urn_shard_forget_broken(struct urn_shard *s, struct urn_client_shard *c)
{
	struct urn_client_shard **at = &s->walk;

	begin_walks(s);
	if (!c->walked)
		return;
	while (*at != c)
		at = &(*at)->walk_next;
	*at = c->walk_next;
	c->walked = false;
}
