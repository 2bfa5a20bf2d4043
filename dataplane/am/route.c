/* SPDX-License-Identifier: BSD-3-Clause */
/* The user of flows: the number of a message's target says whether endpoints or register sets take
 * the message. */
#include "am/priv.h"
#include "msg/msg.h"

/* True when a message to this number is one of remote memory access. */
static bool
is_am(const struct urn_tp *tp, uint64_t qid)
{
	return urn_am_qid_is(qid) && tp->cfg.am;
}

/* The endpoint that a message goes to; NULL: none (counted). */
static struct urn_am_ep *
target_of(struct urn_tp *tp, uint64_t qid)
{
	struct urn_am_ep *ep = urn_am_find(urn_am_of(tp), qid);

	if (unlikely(!ep))
		URN_COUNT(tp, DROP_AM_ENDPOINT);
	return ep;
}

static URN_FAST uint8_t
deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, const uint8_t *data,
	uint32_t len)
{
	struct urn_am_ep *ep;
	struct urn_am_msg m;

	if (!is_am(tp, qid))
		return urn_msg_flow_user.deliver(tp, from, qid, data, len);
	ep = target_of(tp, qid);
	if (unlikely(!ep))
		return URN_MSG_NO_QUEUE;
	if (urn_am_is_more(data, len))
		return urn_am_take_replies(tp, ep, from, data, len);
	/* A reply goes to the number that the message came from: that of an endpoint, too. */
	if (unlikely(!urn_am_parse(data, len, &m) || !urn_am_qid_is(from->qid))) {
		URN_COUNT(tp, DROP_AM_FORMAT);
		return URN_MSG_NOT_PERMITTED;
	}
	if (m.kind >= URN_AM_K_TAG_WRITE)
		return urn_am_kind_is_reply(m.kind) ? urn_am_take_back(tp, ep, from, &m)
						    : urn_am_take_tagged(tp, ep, from, &m);
	return urn_am_kind_is_reply(m.kind) ? urn_am_take_reply(tp, ep, from, &m)
					    : urn_am_take_request(tp, ep, from, &m);
}

/* A message of several packets: one of a node whose packets are longer than ours. */
static uint8_t
admit(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, uint32_t len)
{
	if (!is_am(tp, qid))
		return urn_msg_flow_user.admit(tp, from, qid, len);
	if (unlikely(!target_of(tp, qid)))
		return URN_MSG_NO_QUEUE;
	return len <= URN_AM_MSG_MAX ? URN_MSG_DONE : URN_MSG_TOO_LONG;
}

static URN_FAST void
answered(struct urn_tp *tp, struct urn_flow_msg *msg, uint8_t code)
{
	struct urn_am_out *o;

	/* Endpoints send to endpoints alone, register sets to queues alone. */
	if (!is_am(tp, msg->qid)) {
		urn_msg_flow_user.answered(tp, msg, code);
		return;
	}
	o = (struct urn_am_out *)((char *)msg - offsetof(struct urn_am_out, msg));
	if (o->ep)
		urn_am_out_answered(tp, o, code);
	else
		urn_am_reply_answered(tp, o, code);
}

/* Only messages of endpoints have heads. */
static bool
gather(struct urn_tp *tp, const struct urn_flow_msg *msg, uint32_t off, uint32_t bytes,
       struct urn_flow_slice *to)
{
	const struct urn_am_out *o =
		(const struct urn_am_out *)((const char *)msg - offsetof(struct urn_am_out, msg));

	return urn_am_out_gather(tp, o, off, bytes, to);
}

const struct urn_flow_user urn_am_flow_user = {
	.deliver = deliver, .admit = admit, .answered = answered, .gather = gather};
