/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies to writes that share a message (wire/am_more.h). The message of a reply grows as long as
 * no packet holds it: its flow sends at the end of the turn, or when the window opens. So replies
 * to writes of one burst, from one endpoint to another, cost one message and no wait.
 */
#include "am/priv.h"

#include <string.h>

URN_FAST bool
urn_am_reply_joins(const struct urn_am *am, const struct urn_am_ep *ep,
		   const struct urn_flow_from *from, const struct urn_am_msg *m)
{
	const struct urn_am_out *o = am->open;

	return o && m->kind == URN_AM_K_WRITE && o->more < URN_AM_MORE_MAX && o->len == m->len &&
	       o->msg.qid == from->qid && o->msg.src_qid == urn_am_number(am, ep->slot) &&
	       memcmp(o->node, from->node, 16) == 0 && urn_flow_may_grow(&o->msg, sizeof(m->tag));
}

URN_FAST void
urn_am_reply_join(struct urn_am *am, uint64_t tag)
{
	struct urn_am_out *o = am->open;

	urn_am_put_more(o->buf, o->more, tag);
	o->more++;
	o->msg.len += (uint32_t)sizeof(tag);
}

URN_FAST uint8_t
urn_am_take_replies(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
		    const uint8_t *data, uint32_t len)
{
	struct urn_am_msg m;
	unsigned int n = urn_am_parse_more(data, len, &m);
	uint8_t code;

	if (unlikely(!n)) {
		URN_COUNT(tp, DROP_AM_FORMAT);
		return URN_MSG_NOT_PERMITTED;
	}
	code = urn_am_take_reply(tp, ep, from, &m);
	for (unsigned int i = 0; i < n; i++) {
		m.tag = urn_am_more_tag(data, i);
		if (urn_am_take_reply(tp, ep, from, &m) == URN_MSG_DONE)
			code = URN_MSG_DONE;
	}
	return code;
}
