/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/sched.h"

void
urn_source_unlink(struct urn_source **head, struct urn_source **tail, struct urn_source *src)
{
	if (*head == src)
		*head = src->next;
	else
		src->prev->next = src->next;
	if (src->next)
		src->next->prev = src->prev;
	if (*tail == src)
		*tail = *head ? src->prev : NULL;
}

void
urn_sched_remove(struct urn_sched *s, struct urn_source *src)
{
	if (!(src->flags & URN_SOURCE_SCHED))
		return;
	urn_source_unlink(&s->head, &s->tail, src);
	src->flags &= ~(uint32_t)URN_SOURCE_SCHED;
}
