/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues that lost a completion. The QPs that use such a queue go to the error state
 * (IBTA 11.6.3), idle ones as well, on every engine. The engine that finds the queue broken pushes
 * its client on a list of each engine. Each engine looks at that client's QPs there, a few a turn,
 * and clients take turns: so a client that breaks more queues delays only its own QPs.
 */
#include "engine/engine.h"

enum { WALK_STEP = 32 }; /* QPs a turn */

static void
push(struct urn_shard *s, struct urn_client_shard *c)
{
	struct urn_client_shard *head;

	/* Pairs with the exchange in begin_walks(), after which the link is free. */
	if (__atomic_exchange_n(&c->broken, true, __ATOMIC_ACQ_REL))
		return; /* all QPs of the client will be looked at from the first on */
	head = __atomic_load_n(&s->broken, __ATOMIC_RELAXED);
	do
		c->broken_next = head;
	while (!__atomic_compare_exchange_n(&s->broken, &head, c, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

void
urn_shard_cq_broken(void *ctx, const struct urn_cq *cq)
{
	(void)ctx;
	/* The queue keeps its client and the client's shares. */
	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++) {
		const struct urn_tp_share *share = urn_share_on(cq->owner, e);

		if (share)
			push(urn_client_shard_of(share)->shard, urn_client_shard_of(share));
	}
}

/* Begin the walks of pushed clients, or begin them anew. */
static void
begin_walks(struct urn_shard *s)
{
	struct urn_client_shard *c = __atomic_exchange_n(&s->broken, NULL, __ATOMIC_ACQUIRE), *next;

	for (; c; c = next) {
		next = c->broken_next;
		/*
		 * Pairs with the exchange in push(): a queue that was broken when push() found the
		 * flag set is seen as broken here; a queue that breaks from here on pushes again.
		 */
		(void)__atomic_exchange_n(&c->broken, false, __ATOMIC_ACQ_REL);
		c->walk_at = 0;
		if (c->walked)
			continue;
		c->walked = true;
		TAILQ_INSERT_TAIL(&s->walk, c, walk_link);
	}
}

static bool
is_broken(const struct urn_cq *cq)
{
	return __atomic_load_n(&cq->overrun, __ATOMIC_RELAXED);
}

/* True when a CQ of the QP has lost a completion. */
static bool
uses_broken(const struct urn_qp *qp)
{
	return is_broken(qp->send_cq) || is_broken(qp->recv_cq);
}

/* Look at some of a client's QPs, max of them at most. returns: how many were looked at */
static unsigned int
walk_some(struct urn_shard *s, struct urn_client_shard *c, unsigned int max)
{
	unsigned int n = 0;

	for (; n < max && c->walk_at < c->used; n++) {
		struct urn_source *src = c->source[c->walk_at++];

		if (src && src->kind == URN_SOURCE_QP && uses_broken(urn_source_qp(src)))
			urn_qp_cq_broken(s->tp, urn_source_qp(src));
	}
	return n;
}

unsigned int
urn_shard_walk_broken(struct urn_shard *s)
{
	struct urn_client_shard *c;
	unsigned int n = 0;

	begin_walks(s);
	while (n < WALK_STEP && (c = TAILQ_FIRST(&s->walk))) {
		n += walk_some(s, c, WALK_STEP - n);
		TAILQ_REMOVE(&s->walk, c, walk_link);
		c->walked = c->walk_at < c->used;
		if (c->walked) /* its next step comes last: a client that breaks queues often delays no other */
			TAILQ_INSERT_TAIL(&s->walk, c, walk_link);
	}
	return n;
}

void
urn_shard_forget_broken(struct urn_shard *s, struct urn_client_shard *c)
{
	begin_walks(s);
	if (c->walked)
		TAILQ_REMOVE(&s->walk, c, walk_link);
	c->walked = false;
}
