/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers of connection management: a heap of ids, the one that is due first on top. */
#include "cm/cm_internal.h"

static uint64_t
due_at(const struct urn_cm *cm, uint32_t at)
{
	return cm->conn[cm->heap[at]].due;
}

static void
put(struct urn_cm *cm, uint32_t at, uint32_t index)
{
	cm->heap[at] = index;
	cm->conn[index].at = at;
}

/* Let the entry at index `at` rise or sink to its place. */
static void
settle(struct urn_cm *cm, uint32_t at)
{
	uint32_t index = cm->heap[at];
	uint64_t due = cm->conn[index].due;

	while (at > 0 && due < due_at(cm, (at - 1) / 2)) {
		put(cm, at, cm->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < cm->heap_n && due_at(cm, child + 1) < due_at(cm, child))
			child++;
		if (child >= cm->heap_n || due <= due_at(cm, child))
			break;
		put(cm, at, cm->heap[child]);
		at = child;
	}
	put(cm, at, index);
}

void
cm_timer(struct urn_cm *cm, struct cm_conn *e, uint64_t due)
{
	e->due = due;
	if (e->at == CM_NIL)
		put(cm, cm->heap_n++, (uint32_t)(e - cm->conn));
	settle(cm, e->at);
}

void
cm_timer_stop(struct urn_cm *cm, struct cm_conn *e)
{
	uint32_t at = e->at;

	if (at == CM_NIL)
		return;
	e->at = CM_NIL;
	if (at == --cm->heap_n)
		return;
	put(cm, at, cm->heap[cm->heap_n]);
	settle(cm, at);
}

uint64_t
urn_cm_due(const struct urn_cm *cm)
{
	uint64_t held = cm_held_due(cm);

	return cm->heap_n ? RTE_MIN(held, due_at(cm, 0)) : held;
}

unsigned int
urn_cm_tick(struct urn_cm *cm, uint64_t now)
{
	unsigned int n;

	cm->seen = now;
	n = cm_held_tick(cm, now);
	while (n < URN_CM_TICK && cm->heap_n && due_at(cm, 0) <= now) {
		struct cm_conn *e = &cm->conn[cm->heap[0]];

		cm_timer_stop(cm, e);
		cm_timed_out(cm, e, now);
		n++;
	}
	return n;
}
