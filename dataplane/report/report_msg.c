/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports on register sets of messages. The adapter's lock keeps sets from coming and going; a set
 * is read while its engine goes on working.
 */
#include "msg/msg.h"
#include "report/report_priv.h"

#include <stdio.h>

static const char *
state_word(uint8_t state)
{
	static const char *const words[URN_MSGQ_STATES] = {
#define X(name, number, word, text) [URN_MSGQ_##name] = (word),
		URN_MSGQ_STATE_LIST(X)
#undef X
	};

	return state < URN_MSGQ_STATES ? words[state] : "?";
}

/* Report a set; v: a view of it. */
static void
one_set(const struct urn_adapter *a, const struct urn_client *c, unsigned int engine,
	const struct urn_msg_view *v, struct urn_report_sink *s)
{
	char text[24];

	s->begin(s, "msg", false);
	s->u64(s, "set", URN_MSG_HANDLE(engine, v->slot));
	s->str(s, "adapter", a->cfg.name);
	s->u64(s, "client", c ? c->id : 0);
	s->u64(s, "engine", engine);
	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)v->qid);
	s->str(s, "queue", text);
	snprintf(text, sizeof(text), "0x%x", v->name);
	s->str(s, "name", v->name ? text : "");
	s->str(s, "state", state_word(v->state));
	s->u64(s, "entries", v->entries);
	s->u64(s, "entry_bytes", v->entries ? v->entry_size : 0);
	s->u64(s, "head", v->head);
	s->u64(s, "tail", v->tail);
	s->u64(s, "waiting", v->entries ? report_fill(v->tail, v->head, v->entries - 1) : 0);
	s->u64(s, "sent", v->sent);
	s->str(s, "answer", urn_msg_code_word(v->code));
	s->flag(s, "may_be_there", v->code & URN_MSG_MAY_BE_THERE);
	s->u64(s, "arena_bytes", v->arena);
	s->end(s);
}

/* Report the set of a slot, if the query asks for it. */
static void
look_at_slot(struct report_walk *w, const struct urn_adapter *a, unsigned int engine, uint32_t slot)
{
	const struct urn_msg_regs *r = a->shard[engine]->msg;
	const struct urn_msg_rset *set = urn_msg_set_at(r, slot);
	const struct urn_client *c;
	struct urn_msg_view v;

	if (set == NULL)
		return;
	urn_msg_look(r, set, &v);
	if (!report_asks_for(w, v.share, &c))
		return;
	one_set(a, c, engine, &v, w->s);
	w->rows--;
}

static bool
adapter_sets(struct report_walk *w, struct urn_adapter *a)
{
	struct urn_report_at *at = &w->q->at;

	for (; at->middle < URN_ABI_MAX_ENGINES; at->middle++, at->inner = 0) {
		const struct urn_shard *s = a->shard[at->middle];

		if (s && !report_slots_walk(w, a, at->middle, urn_msg_slots(s->msg), look_at_slot))
			return false;
	}
	return true;
}

int
urn_report_msgs(const struct urn_report_source *src, struct urn_report_query *q,
		struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);

	return report_adapters_walk(&w, err, adapter_sets);
}

/* ---- totals */

enum { TOTAL_STEP = 4096 }; /* slots looked at under the adapter's lock at a time */

/* Add a set to the totals. */
static void
add_set(struct urn_report_msg_totals *t, const struct urn_msg_view *v)
{
	uint32_t waiting = v->entries ? report_fill(v->tail, v->head, v->entries - 1) : 0;

	t->sets++;
	t->pending += v->code == URN_MSG_PENDING;
	t->queues += v->entries != 0;
	t->ring_bytes += (uint64_t)v->entries * v->entry_size;
	t->waiting += waiting;
	t->waiting_bytes += (uint64_t)waiting * v->entry_size;
}

/* Add the sets of some slots from *slot on. returns: false: there are no more */
static bool
add_slots(struct urn_report_msg_totals *t, const struct urn_msg_regs *r, uint32_t *slot)
{
	uint32_t n = urn_msg_slots(r), end = n - *slot < TOTAL_STEP ? n : *slot + TOTAL_STEP;

	for (; *slot < end; (*slot)++) {
		const struct urn_msg_rset *set = urn_msg_set_at(r, *slot);
		struct urn_msg_view v;

		if (set == NULL)
			continue;
		urn_msg_look(r, set, &v);
		add_set(t, &v);
	}
	return *slot < n;
}

int
urn_report_msg_totals(struct urn_adapter *a, struct urn_report_msg_totals *t, struct urn_err *err)
{
	*t = (struct urn_report_msg_totals){0};
	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++) {
		uint32_t slot = 0;
		bool more = a->shard[e] != NULL;

		if (more)
			t->flows += urn_flow_count(a->shard[e]->tp);
		while (more) {
			if (urn_report_lock(a, err) != 0)
				return -1;
			more = add_slots(t, a->shard[e]->msg, &slot);
			urn_report_unlock(a);
		}
	}
	return 0;
}
