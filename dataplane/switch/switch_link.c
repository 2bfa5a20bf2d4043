/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between switches, which make a tree: frames to unknown addresses would circulate in a loop.
 */
#include "switch/switch_state.h"

#include <errno.h>

/* True when links lead from a to b. Linked switches are a tree, so the search must only not go back
 * the same way. */
static bool
reaches(struct urn_switch *a, const struct urn_switch *b)
{
	struct urn_switch *todo = a;

	a->from = NULL;
	a->todo = NULL;
	while (todo && todo != b) {
		struct urn_switch *sw = todo;

		todo = sw->todo;
		for (uint16_t i = 0; i < sw->ports; i++) {
			struct urn_switch *next = sw->port[i]->other;

			if (!next || next == sw->from)
				continue;
			next->from = sw;
			next->todo = todo;
			todo = next;
		}
	}
	return todo != NULL;
}

int
urn_switch_link(struct urn_switch *a, uint16_t pa, struct urn_switch *b, uint16_t pb)
{
	if (pa >= a->ports || pb >= b->ports)
		return -EINVAL;
	if (a->port[pa]->other || b->port[pb]->other)
		return -EBUSY;
	if (reaches(a, b))
		return -ELOOP;
	a->port[pa]->other = b;
	a->port[pa]->other_port = pb;
	b->port[pb]->other = a;
	b->port[pb]->other_port = pa;
	return 0;
}

bool
urn_switch_port_is_linked(const struct urn_switch *sw, uint16_t port)
{
	return port < sw->ports && sw->port[port]->other;
}
