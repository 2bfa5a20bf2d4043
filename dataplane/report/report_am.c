/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports on endpoints of remote memory access (doc/inside/active-messages.md). The adapter's lock
 * keeps endpoints from coming and going; an endpoint is read while its engine goes on working.
 */
#include "am/am.h"
#include "msg/msg.h"
#include "report/report_priv.h"

#include <stdio.h>

/* Report an endpoint; v: a view of it. */
static void
one_endpoint(const struct urn_adapter *a, const struct urn_client *c, unsigned int engine,
	     const struct urn_am_view *v, struct urn_report_sink *s)
{
	char text[24];

	s->begin(s, "am", false);
	s->u64(s, "endpoint", URN_MSG_HANDLE(engine, v->slot));
	s->str(s, "adapter", a->cfg.name);
	s->u64(s, "client", c ? c->id : 0);
	s->u64(s, "engine", engine);
	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)v->qid);
	s->str(s, "number", text);
	s->u64(s, "entries", v->entries);
	s->u64(s, "commands", v->commands);
	s->u64(s, "waiting", v->waiting);
	s->u64(s, "under_way", v->under);
	s->u64(s, "packets", v->packets);
	s->u64(s, "done", v->done);
	s->u64(s, "failed", v->failed);
	s->str(s, "last_error", v->code ? urn_am_code_word(v->code) : "");
	s->flag(s, "may_be_there", v->code & URN_AM_MAY_BE_THERE);
	s->u64(s, "refused", v->refused);
	s->str(s, "last_refusal", v->refused_code ? urn_am_code_word(v->refused_code) : "");
	s->u64(s, "unread", v->unread);
	s->u64(s, "regions", v->regions);
	s->u64(s, "ranges", v->ranges_used);
	s->flag(s, "no_key", v->space);
	s->end(s);
}

/* Report the endpoint of a slot, if the query asks for it. */
static void
look_at_slot(struct report_walk *w, const struct urn_adapter *a, unsigned int engine, uint32_t slot)
{
	const struct urn_am *am = a->shard[engine]->am;
	const struct urn_am_ep *ep = urn_am_ep_at(am, slot);
	const struct urn_client *c;
	struct urn_am_view v;

	if (ep == NULL)
		return;
	urn_am_ep_look(am, ep, &v);
	if (!report_asks_for(w, v.share, &c))
		return;
	one_endpoint(a, c, engine, &v, w->s);
	w->rows--;
}

static bool
adapter_endpoints(struct report_walk *w, struct urn_adapter *a)
{
	struct urn_report_at *at = &w->q->at;

	for (; at->middle < URN_ABI_MAX_ENGINES; at->middle++, at->inner = 0) {
		const struct urn_shard *s = a->shard[at->middle];

		if (s && !report_slots_walk(w, a, at->middle, urn_am_slots(s->am), look_at_slot))
			return false;
	}
	return true;
}

int
urn_report_ams(const struct urn_report_source *src, struct urn_report_query *q,
	       struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);

	return report_adapters_walk(&w, err, adapter_endpoints);
}
