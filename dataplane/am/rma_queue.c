/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RMA queue (AM-5, AM-6): requests that the handlers checked, for the progress module. Writes
 * and reads have queues of their own with a bound each, and alternate: a node that reads much
 * delays a write by one request.
 */
#include "am/tagged.h"

void
urn_am_rma_init(struct urn_am_rma_queue *q)
{
	*q = (struct urn_am_rma_queue){.writes_n = 0};
	TAILQ_INIT(&q->writes);
	TAILQ_INIT(&q->reads);
}

bool
urn_am_rma_room(const struct urn_am_rma_queue *q, uint8_t kind)
{
	return (kind == URN_AM_K_TAG_READ ? q->reads_n : q->writes_n) < URN_AM_RMA_QUEUE;
}

void
urn_am_rma_put(struct urn_am_rma_queue *q, struct urn_am_transfer *t)
{
	if (t->kind == URN_AM_K_TAG_READ) {
		TAILQ_INSERT_TAIL(&q->reads, t, link);
		q->reads_n++;
	} else {
		TAILQ_INSERT_TAIL(&q->writes, t, link);
		q->writes_n++;
	}
}

void
urn_am_rma_remove(struct urn_am_rma_queue *q, struct urn_am_transfer *t)
{
	if (t->kind == URN_AM_K_TAG_READ) {
		TAILQ_REMOVE(&q->reads, t, link);
		q->reads_n--;
	} else {
		TAILQ_REMOVE(&q->writes, t, link);
		q->writes_n--;
	}
}

struct urn_am_transfer *
urn_am_rma_take(struct urn_am_rma_queue *q)
{
	struct urn_am_transfer *w = TAILQ_FIRST(&q->writes), *r = TAILQ_FIRST(&q->reads), *t;

	t = r && (q->read_next || !w) ? r : w;
	if (!t)
		return NULL;
	q->read_next = t == w;
	urn_am_rma_remove(q, t);
	return t;
}
