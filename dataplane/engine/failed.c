/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of clients, and clients that left, on their way to the log of events. */
#include "engine/engine.h"
#include "log/ring.h"

#include <stdio.h>

enum { SECOND_NS = 1000000000 };

/* True when the client may have a record more in this second. */
static bool
has_room(struct urn_failures *fs, uint64_t now)
{
	if (fs->told_from == 0 || now - fs->told_from >= SECOND_NS) {
		fs->told_from = now;
		fs->told = 0;
	}
	return fs->told < URN_LOG_PER_SHARE;
}

/* Begin a record about a client of the shard. returns: NULL: the ring is full */
static struct urn_log_failure *
place(const struct urn_shard *s, const struct urn_engine_client *c)
{
	struct urn_log_failure *rec = urn_log_ring_place(s->engine->log);

	if (!rec)
		return NULL;
	rec->who = c->who;
	(void)clock_gettime(CLOCK_REALTIME, &rec->at);
	snprintf(rec->adapter, sizeof(rec->adapter), "%s", s->name);
	snprintf(rec->port, sizeof(rec->port), "%s", s->port->cfg.name);
	return rec;
}

void
urn_shard_failed(void *ctx, struct urn_tp_share *share, const struct urn_failure *f)
{
	const struct urn_shard *s = ctx;
	const struct urn_engine_client *c = urn_share_client(share);
	struct urn_log_failure *rec;

	if (!s->engine->log || !c)
		return;
	if (!has_room(&share->failures, s->tp->now)) {
		urn_log_ring_more(s->engine->log, c->who.client);
		return;
	}
	/* A full ring costs neither a look at the clock nor text. */
	rec = place(s, c);
	if (!rec)
		return;
	share->failures.told++;
	rec->left = 0;
	rec->f = *f;
	urn_log_ring_put(s->engine->log);
}

void
urn_shard_log_left(const struct urn_shard *s, const struct urn_engine_client *c, uint32_t qps)
{
	struct urn_log_failure *rec = qps && s->engine->log ? place(s, c) : NULL;

	if (!rec)
		return;
	rec->left = qps;
	urn_log_ring_put(s->engine->log);
}
