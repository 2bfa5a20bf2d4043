/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that gave this process up, because it did not answer: stopped, without a core, or with
 * control threads that hang. The memory of such a client belongs to the client alone again, and
 * nothing may be written there any more: neither packets that wait at the port or in a ring since
 * then, nor completions.
 *
 * The engine that owns a client's QPs ends them as soon as it finds the client's word `left`:
 * before anything else in the first turn after it stood still for long, and with the doorbells when
 * it runs on, because a client that leaves rings. A QP that was ended takes no packet, wherever the
 * packet comes from, and sends nothing; other clients do not notice. Operations that the QP has at
 * the worker of its client's memory are refused there. Once that is over the engine tells the
 * client, which waits for this word as long as an engine may stand still unnoticed
 * (lib/attach/dev.c).
 *
 * Ending QPs costs 25 to 30 ns for each QP that the client has on this engine (measured with 1,001
 * idle ones), once: the client's quota is the bound. Looking at each packet's client instead would
 * cost all clients a load for each packet.
 */
#include "engine/engine.h"

#define STILL_NS \
	20000000ull /* ns between turns: clients are patient for longer (lib/attach/patience.h) */

enum { LOOKS = 1024 }; /* sources a turn that are looked at for what waits for memory */

void
urn_client_shard_left(struct urn_client_shard *c)
{
	uint32_t qps = 0;

	if (c->left)
		return;
	c->left = c->leaving = true;
	c->leave_at = 0;
	TAILQ_INSERT_TAIL(&c->shard->leaving, c, leave_link);
	for (uint32_t i = 0; i < c->used; i++)
		if (c->source[i] && c->source[i]->kind == URN_SOURCE_QP) {
			(void)urn_qp_left(c->shard->tp, urn_source_qp(c->source[i]));
			qps++; /* also one whose memory failed before, and which ended by that */
		}
	urn_shard_log_left(c->shard, c->client, qps);
}

void
urn_shard_stood(struct urn_shard *s, uint64_t ns)
{
	struct urn_client_shard *c;

	if (ns <= STILL_NS)
		return;
	LIST_FOREACH(c, &s->clients, link)
		if (urn_client_shard_says_left(c))
			urn_client_shard_left(c);
}

/* True when a source of a client that left has nothing at the workers any more. */
static bool
is_over(struct urn_source *src)
{
	return !src || src->kind != URN_SOURCE_QP || urn_qp_quiet(urn_source_qp(src));
}

void
urn_shard_tell_left(struct urn_shard *s)
{
	struct urn_client_shard *c = TAILQ_FIRST(&s->leaving);
	unsigned int looks = LOOKS;

	/* A QP that was ended takes nothing on: it is looked at until it is quiet, once. */
	while (c->leave_at < c->used && looks && is_over(c->source[c->leave_at])) {
		c->leave_at++;
		looks--;
	}
	TAILQ_REMOVE(&s->leaving, c, leave_link);
	if (c->leave_at < c->used) { /* others have their turn meanwhile */
		TAILQ_INSERT_TAIL(&s->leaving, c, leave_link);
		return;
	}
	c->leaving = false;
	/* Release: pairs with the acquire in lib/attach/dev.c, behind which the client reads. */
	atomic_store_explicit(&c->scan.db->ended, 1, memory_order_release);
}

void
urn_shard_forget_left(struct urn_shard *s, struct urn_client_shard *c)
{
	if (c->leaving)
		TAILQ_REMOVE(&s->leaving, c, leave_link);
	c->leaving = false;
}

bool
urn_shard_has_left(void *ctx, const struct urn_tp_share *share)
{
	(void)ctx;
	return urn_share_has_client(share) &&
	       urn_client_shard_says_left(urn_client_shard_of(share));
}
