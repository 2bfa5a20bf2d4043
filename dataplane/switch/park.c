/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/park.h"

#include <stdlib.h>

struct urn_park *
urn_park_create(void)
{
	struct urn_park *p = calloc(1, sizeof(*p));

	for (uint16_t i = 0; p && i < URN_PARK_FRAMES; i++)
		p->entry[i].next = i + 1;
	return p;
}

void
urn_park_destroy(struct urn_park *p)
{
	struct rte_mbuf *m;

	for (unsigned int i = 0; p && i < URN_PARK_PRIORITIES; i++)
		while (urn_park_take(p, i, &m, 1))
			rte_pktmbuf_free(m);
	free(p);
}

void
urn_park_put(struct urn_park *p, unsigned int priority, struct rte_mbuf *m)
{
	uint8_t bit = (uint8_t)(1u << priority);
	uint16_t i = p->empty;

	p->empty = p->entry[i].next;
	p->entry[i].m = m;
	if (p->waiting & bit)
		p->entry[p->tail[priority]].next = i;
	else
		p->head[priority] = i;
	p->tail[priority] = i;
	p->waiting |= bit;
	p->frames++;
}

unsigned int
urn_park_take(struct urn_park *p, unsigned int priority, struct rte_mbuf **m, unsigned int n)
{
	uint8_t bit = (uint8_t)(1u << priority);
	unsigned int taken = 0;

	while (taken < n && p->waiting & bit) {
		uint16_t i = p->head[priority];

		m[taken++] = p->entry[i].m;
		if (i == p->tail[priority])
			p->waiting &= (uint8_t)~bit;
		else
			p->head[priority] = p->entry[i].next;
		p->entry[i].next = p->empty;
		p->empty = i;
		p->frames--;
	}
	return taken;
}
