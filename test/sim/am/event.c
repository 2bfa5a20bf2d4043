/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a ring, as a program reads them (lib/abi/am.h). */
#include "amsim.h"

/* One event. */
static void
take(struct ms_world *w, struct as_end *e, struct urn_abi_am_event ev)
{
	struct as_op *o;
	bool twice = false;

	if (ev.id >= w->as->ops || w->as->op[ev.id].from != e->id)
		ms_fail(w, "end %u: an event of operation %u, which it never began", e->id, ev.id);
	o = &w->as->op[ev.id];
	ms_note(w, w->now);
	ms_note(w, (uint64_t)ev.id << 8 | ev.code);
	if (!as_sabotage_event(w, o, &ev, &twice))
		return;
	ms_trace(w, "operation %u: %s%s, %llu bytes", ev.id, urn_am_code_word(ev.code),
		 ev.code & URN_AM_MAY_BE_THERE ? ", may be there" : "",
		 (unsigned long long)ev.bytes);
	as_judge_event(w, o, &ev);
	if (twice)
		as_judge_event(w, o, &ev);
	e->under--;
	w->pending--;
}

uint32_t
as_events_read(struct ms_node *n, struct as_end *e, uint32_t most)
{
	struct ms_world *w = n->w;
	uint32_t tail = atomic_load(&e->regs->dp.events), k = 0;

	if (tail - e->events > e->entries)
		ms_fail(w, "end %u: %u events wait in a ring of %u", e->id, tail - e->events,
			e->entries);
	for (; e->events != tail && k < most; k++) {
		take(w, e, urn_am_events(e->regs, e->entries)[e->events & (e->entries - 1)]);
		atomic_store(&e->regs->client.events, ++e->events);
	}
	if (!k)
		return 0;
	e->progress = w->now;
	if (atomic_load(&e->regs->dp.commands) != e->commands) { /* commands waited for the room */
		n->rung[e->place] = 1;
		ms_node_wake(n, w->now + 500);
	}
	return k;
}
