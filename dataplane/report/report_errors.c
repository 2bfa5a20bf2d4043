/* SPDX-License-Identifier: BSD-3-Clause */
/* Report on the latest errors of programs (transport/failure.h): an object for each record. */
#include "control/explain.h"
#include "report/report_priv.h"

#include "abi/vendor_err.h"

/* The records of a client on an engine, copied in the engine's thread. */
struct copy {
	const struct urn_failures *from; /* stays while the adapter's lock is held */
	struct urn_failures to;
};

static void
copy(void *arg)
{
	struct copy *c = arg;

	c->to = *c->from;
}

/* The program of a record. */
struct who {
	const struct urn_adapter *a;
	uint32_t client; /* its number */
	pid_t pid;	 /* its process; 0: this one */
	bool attached;	 /* it is there still */
};

/* Report a record that the query asks for. returns: false when this call has no room left */
static bool
one_error(struct report_walk *w, const struct who *who, const struct urn_failure *f, uint64_t now)
{
	struct urn_report_sink *s = w->s;
	char text[512];

	if (f->kind == URN_FAILURE_NONE || (w->q->by_qpn && f->qpn != w->q->qpn))
		return true;
	if (w->rows == 0)
		return false;
	urn_failure_text(f, who->a->cfg.port->cfg.name, false, text, sizeof(text));
	s->begin(s, "error", false);
	s->str(s, "adapter", who->a->cfg.name);
	s->u64(s, "client", who->client);
	s->u64(s, "pid", (uint64_t)who->pid);
	s->flag(s, "attached", who->attached);
	s->u64(s, "qpn", f->qpn);
	s->u64(s, "ago_ms", now > f->at ? (now - f->at) / 1000000 : 0);
	s->u64(s, "status", f->status);
	s->str(s, "vendor_err", urn_abi_vendor_err_name(f->vendor_err));
	s->str(s, "why", text);
	s->end(s);
	w->rows--;
	return true;
}

/*
 * Report the records of a client on an engine, the newest first, from the place q->at.inner on.
 * Records that come between two calls move the others by as many places.
 */
static bool
engine_errors(struct report_walk *w, const struct urn_client *c, unsigned int engine)
{
	const struct urn_tp_share *share = c->engine.share[engine];
	struct urn_shard *shard = c->adapter->shard[engine];
	const struct who who = {c->adapter, c->id, c->pid, true};
	struct copy k = {.from = &share->failures};
	uint32_t *inner = &w->q->at.inner;
	uint64_t now;

	w->scan -= w->scan < URN_FAILURES ? w->scan : URN_FAILURES;
	urn_engine_call(shard->engine, copy, &k);
	now = urn_engine_now(shard->engine);
	for (; *inner % URN_FAILURES || *inner == engine * URN_FAILURES; (*inner)++) {
		uint32_t i = *inner % URN_FAILURES;

		if (!one_error(w, &who, &k.to.ring[(k.to.n - 1 - i) % URN_FAILURES], now))
			return false;
	}
	return true;
}

static bool
client_errors(struct report_walk *w, const struct urn_client *c)
{
	uint32_t *inner = &w->q->at.inner;

	while (*inner < URN_ABI_MAX_ENGINES * URN_FAILURES) {
		unsigned int engine = *inner / URN_FAILURES;
		const struct urn_tp_share *share = c->engine.share[engine];

		if (!share || !c->adapter->shard[engine] || LOOK(share->failures.n) == 0) {
			*inner = (engine + 1) * URN_FAILURES;
			continue;
		}
		if (report_full(w) || !engine_errors(w, c, engine))
			return false;
	}
	return true;
}

/* Report records of programs that have gone, the newest first, from place q->at.inner on. */
static bool
past_errors(struct report_walk *w, const struct urn_adapter *a)
{
	const struct urn_explain_past *past = &a->past;
	uint32_t *inner = &w->q->at.inner;

	for (; *inner < URN_EXPLAIN_PAST; (*inner)++) {
		const struct urn_explain_gone *g =
			&past->ring[(past->n - 1 - *inner) % URN_EXPLAIN_PAST];
		const struct who who = {a, g->client, g->pid, false};

		if (g->f.kind != URN_FAILURE_NONE &&
		    !one_error(w, &who, &g->f, urn_engine_now(a->shard[g->engine]->engine)))
			return false;
	}
	return true;
}

static bool
adapter_errors(struct report_walk *w, struct urn_adapter *a)
{
	struct urn_report_at *at = &w->q->at;

	/* Clients are numbered from 1 on: at 0 all of them are done. */
	if (!report_clients_of(w, a, client_errors))
		return false;
	if (w->q->client)
		return true;
	if (!at->on || at->middle != 0)
		*at = (struct urn_report_at){.outer = at->outer, .on = true};
	return past_errors(w, a);
}

int
urn_report_errors(const struct urn_report_source *src, struct urn_report_query *q,
		  struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);

	return report_adapters_walk(&w, err, adapter_errors);
}
