/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why completions of the virtual device have errors. A request that failed by itself has a record
 * in the dataplane of the adapter whose queue pair had it: a connection that ends by it keeps that
 * queue pair. A connection that has no path any more says so itself, and names the path that was
 * lost last.
 */
#include "verbs/session/explain.h"

#include "abi/explain.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include <urnic/explain.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Bytes that a sentence of an adapter fits in, with the zero at its end. */
enum { URN_SV_RECORD = sizeof(((struct urn_abi_explained *)NULL)->text) };

void
urn_sv_note_lost(struct urn_sv_qp *q, uint32_t bit)
{
	if (!(q->c.alive & 1u << bit))
		return; /* it was lost before */
	q->notes.lost = bit;
	q->notes.lost_at = urn_sv_now_ms();
	q->notes.lost_why = q->why != NULL ? q->why : "its queue pair does not answer";
}

/* Ask the adapter of a path for the record of its queue pair. returns: like urn_sv_explain() */
static int
urn_sv_ask(const struct urn_sv_path *p, uint32_t status, char *text, size_t size)
{
	struct ibv_context *c = p->real != NULL ? p->real->context : NULL;
	char record[URN_SV_RECORD];
	int err;

	if (c == NULL || p->qp->ctx->dead[p->mine])
		return urn_fail(EIO, "the adapter of the path is gone");
	if (urn_ops(c)->explain == NULL)
		return urn_fail(EOPNOTSUPP, "the adapter keeps no records of errors");
	err = urn_ops(c)->explain(c, p->real->qp_num, status, record, sizeof(record));
	if (err == 0)
		snprintf(text, size, "over adapter %s: %s", urn_verbs_ctx(c)->id.name, record);
	return err;
}

static const char *
urn_sv_adapter_word(uint32_t adapter)
{
	return adapter == 0 ? "primary" : "backup";
}

/* Say since when a connection is dead, and which path it lost last. */
static void
urn_sv_say_dead(struct urn_sv_qp *q, char *text, size_t size)
{
	const struct urn_sv_notes *of = &q->notes;
	const struct urn_sv_path *p = urn_sv_at(q, of->lost);
	unsigned long long now = urn_sv_now_ms();
	char record[URN_EXPLAIN_TEXT];
	size_t n;

	snprintf(text, size, "QP 0x%x: its session has been dead for %llu ms, because %s",
		 q->ibv.qp_num, now - of->died_at,
		 q->left ? "its peer has left" : urn_sess_reason_text(q->c.reason));
	if (of->lost_why == NULL)
		return;
	n = strlen(text);
	snprintf(text + n, size - n,
		 "; the path from the %s adapter here to the %s one of its peer was lost last, "
		 "%llu ms ago, because %s",
		 urn_sv_adapter_word(p->mine), urn_sv_adapter_word(p->theirs), now - of->lost_at,
		 of->lost_why);
	n = strlen(text);
	if (urn_sv_ask(p, UINT32_MAX, record, sizeof(record)) == 0 && strlen(record) + 2 < size - n)
		snprintf(text + n, size - n, "; %s", record);
}

/* urn_sv_explain() for a queue pair; the lock is held, and size is not 0. */
static int
urn_sv_explain_qp(struct urn_sv_qp *q, uint32_t status, char *text, size_t size)
{
	bool session = q->mode == URN_SV_SESSION;
	bool dead = session && q->c.state == URN_SESS_DEAD;
	char record[URN_EXPLAIN_TEXT];
	int err = ENOENT;

	/* A connection that ends by a request keeps the path that had it. */
	if (!dead || q->c.reason == URN_SESS_NO_REQUEST)
		err = urn_sv_ask(session ? urn_sv_used(q) : &q->path[0], status, record,
				 sizeof(record));
	if (err == 0)
		snprintf(text, size, "QP 0x%x, %s", q->ibv.qp_num, record);
	else if (dead)
		urn_sv_say_dead(q, text, size);
	return dead ? 0 : err;
}

int
urn_sv_explain(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text, size_t size)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err = urn_sv_forked(ctx);
	struct urn_sv_qp *q;

	if (err != 0 || size == 0)
		return err;
	urn_sv_enter(ctx);
	urn_sv_lock(ctx);
	LIST_FOREACH(q, &ctx->qps, link)
		if (q->ibv.qp_num == qpn)
			break;
	err = q != NULL ? urn_sv_explain_qp(q, status, text, size)
			: urn_fail(ENOENT, "there is no queue pair 0x%x any more", qpn);
	urn_sv_unlock(ctx);
	urn_sv_exit(ctx);
	return err;
}
