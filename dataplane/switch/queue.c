/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 64u /* entries of a ring when its first frame comes */

static const struct urn_counter_row counter_rows[] = {URN_SWQ_COUNTERS(URN_COUNTER_ROW)};
static const struct urn_counter_block counter_block = {
	"switch", counter_rows, sizeof(counter_rows) / sizeof(counter_rows[0])};
const struct urn_counter_scope urn_swq_scope = {"switch_queue", &counter_block, 1};

const char *
urn_swq_counter_name(unsigned int id)
{
	return urn_counter_name_in(&urn_swq_scope, id);
}

void
urn_swq_init(struct urn_swq *q, const struct urn_swq_bound *bound)
{
	memset(q, 0, sizeof(*q));
	for (unsigned int i = 0; bound && i < URN_SWQ_PRIORITIES; i++)
		q->level[i].bound = bound[i];
}

void
urn_swq_finish(struct urn_swq *q)
{
	for (unsigned int i = 0; i < URN_SWQ_PRIORITIES; i++) {
		struct urn_swq_level *l = &q->level[i];

		for (; l->head != l->tail; l->head++)
			rte_pktmbuf_free(l->ring[l->head & (l->size - 1)].m);
		free(l->ring);
		l->ring = NULL;
		l->size = 0;
		l->bytes = 0;
	}
	q->frames = 0;
	q->waiting = 0;
	q->crowded = 0;
}

/* Double a ring that is full. returns: false: no memory */
static bool
grow(struct urn_swq_level *l)
{
	uint32_t n = l->tail - l->head;
	uint32_t size = l->size ? 2 * l->size : FIRST_SIZE;
	struct urn_swq_entry *ring = malloc(size * sizeof(*ring));

	if (!ring)
		return false;
	for (uint32_t i = 0; i < n; i++)
		ring[i] = l->ring[(l->head + i) & (l->size - 1)];
	free(l->ring);
	l->ring = ring;
	l->size = size;
	l->head = 0;
	l->tail = n;
	return true;
}

/* room: frames that may wait when the priority's own bound says nothing; 0: any number */
static enum urn_swq_verdict
judge(struct urn_swq_level *l, uint32_t len, uint32_t room)
{
	const struct urn_swq_bound *b = &l->bound;
	uint32_t n = l->tail - l->head, frames = b->frames ? b->frames : room;

	if (frames && n >= frames)
		return URN_SWQ_DROP_FRAMES;
	if (b->bytes && l->bytes + len > b->bytes)
		return URN_SWQ_DROP_BYTES;
	if (n == l->size && !grow(l))
		return URN_SWQ_DROP_MEMORY;
	return b->mark && l->bytes + len > b->mark ? URN_SWQ_MARK : URN_SWQ_QUEUED;
}

enum urn_swq_verdict
urn_swq_put(struct urn_swq *q, unsigned int priority, struct rte_mbuf *m, uint64_t since)
{
	struct urn_swq_level *l = &q->level[priority];
	uint8_t bit = (uint8_t)(1u << priority);
	enum urn_swq_verdict v = judge(l, m->pkt_len, q->room);

	l->c.v[v]++;
	if (v != URN_SWQ_QUEUED && v != URN_SWQ_MARK)
		return v;
	l->ring[l->tail++ & (l->size - 1)] = (struct urn_swq_entry){.m = m, .since = since};
	l->bytes += m->pkt_len;
	if (l->bytes > l->peak)
		l->peak = l->bytes;
	q->frames++;
	q->waiting |= bit;
	if (l->bound.high && l->bytes >= l->bound.high && !(q->crowded & bit)) {
		q->crowded |= bit;
		l->c.v[URN_SWQ_C_CROWDS]++;
	}
	return v;
}

void
urn_swq_refuse(struct urn_swq *q, unsigned int priority)
{
	q->level[priority].c.v[URN_SWQ_C_DROP_FRAMES]++;
}

struct rte_mbuf *
urn_swq_take(struct urn_swq *q, uint64_t *since)
{
	return urn_swq_ready(q) ? urn_swq_take_of(q, urn_swq_first(q), since) : NULL;
}

struct rte_mbuf *
urn_swq_take_of(struct urn_swq *q, unsigned int priority, uint64_t *since)
{
	struct urn_swq_level *l = &q->level[priority];
	struct urn_swq_entry e;

	if (l->head == l->tail)
		return NULL;
	e = l->ring[l->head++ & (l->size - 1)];
	l->bytes -= e.m->pkt_len;
	q->frames--;
	if (l->head == l->tail)
		q->waiting &= (uint8_t) ~(1u << priority);
	if (l->bytes <= l->bound.low)
		q->crowded &= (uint8_t) ~(1u << priority);
	*since = e.since;
	return e.m;
}

void
urn_swq_pause(struct urn_swq *q, unsigned int priority, bool pause)
{
	uint8_t bit = (uint8_t)(1u << priority);

	if (pause && !(q->paused & bit))
		q->level[priority].c.v[URN_SWQ_C_PAUSES]++;
	q->paused = (uint8_t)(pause ? q->paused | bit : q->paused & ~bit);
}
