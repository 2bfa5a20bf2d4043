/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sabotage of what comes to a node that was started anew: a restart excuses what was under way, and
 * nothing that came later. Calls between files of the dataplane come here first (--wrap), and go on
 * to the product.
 */
#include "sabotage.h"

#include "am/endpoint.h"

struct urn_am_msg;

static struct ms_world *world; /* world whose product is broken */

uint8_t __real_urn_am_take_request(struct urn_tp *tp, struct urn_am_ep *ep,
				   const struct urn_flow_from *from, const struct urn_am_msg *m);
uint8_t __wrap_urn_am_take_request(struct urn_tp *tp, struct urn_am_ep *ep,
				   const struct urn_flow_from *from, const struct urn_am_msg *m);
uint8_t __real_urn_msg_deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
			       const uint8_t *data, uint32_t len);
uint8_t __wrap_urn_msg_deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
			       const uint8_t *data, uint32_t len);

void
as_sabotage_anew_open(struct ms_world *w)
{
	world = w;
}

/* True when the node of a transport was restarted, and no node will be again. */
static bool
is_anew(const struct urn_tp *tp)
{
	const struct ms_node *n = world->node;

	while (n->tp != tp)
		n++;
	return n->gone_at && world->quiet;
}

uint8_t
__wrap_urn_am_take_request(struct urn_tp *tp, struct urn_am_ep *ep,
			   const struct urn_flow_from *from, const struct urn_am_msg *m)
{
	if (as_sabotage_now(world, AS_BREAK_UNSERVED, is_anew(tp)))
		return URN_MSG_DONE;
	return __real_urn_am_take_request(tp, ep, from, m);
}

uint8_t
__wrap_urn_msg_deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
		       const uint8_t *data, uint32_t len)
{
	struct urn_am_head h = {0}; /* copied: a message begins anywhere in a frame */
	bool request;

	if (len >= sizeof(h))
		memcpy(&h, data, sizeof(h));
	request = h.magic == URN_AM_MAGIC && h.kind == URN_AM_M_REQUEST;
	if (as_sabotage_now(world, AS_BREAK_ADRIFT, request && is_anew(tp)))
		return URN_MSG_DONE;
	return __real_urn_msg_deliver(tp, from, qid, data, len);
}
