/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancels of tagged transfers (AM-7): the target of an operation that was given up here is told, so
 * that it forgets the transfer and discards data under way. The message takes room from the bound
 * of replies to a node. A cancel without room waits here, and is tried when replies have left. Each
 * one is tried by itself, so a node that takes no replies holds up no cancel to another node.
 */
#include "am/tagged.h"

#include <string.h>

/* Send a cancel. returns: false: no message to that node has room now */
static bool
send(struct urn_tp *tp, const struct urn_am_cancel *c)
{
	struct urn_am_msg m = {
		.kind = URN_AM_K_TAG_CANCEL, .code = c->code, .len = c->len, .tag = c->tag};
	struct urn_am_out *o = urn_am_reply_get(urn_am_of(tp), c->node);

	if (!o)
		return false;
	o->msg.len = urn_am_build(o->buf, &m);
	o->msg.qid = c->to;
	o->msg.src_qid = c->from;
	o->at = tp->now;
	urn_am_reply_send(tp, o);
	return true;
}

/* Put a cancel behind the others that wait; there is a place. */
static void
append(struct urn_am_tagged *tg, const struct urn_am_cancel *c)
{
	tg->cancel[(tg->cancel_head + tg->cancels++) % URN_AM_CANCELS] = *c;
}

void
urn_am_cancel(struct urn_tp *tp, const struct urn_am_cancel *c)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;

	if (send(tp, c))
		return;
	if (tg->cancels < URN_AM_CANCELS)
		append(tg, c);
	else
		URN_COUNT(tp, AM_UNTOLD);
}

void
urn_am_cancel_retry(struct urn_tp *tp)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;

	for (uint32_t n = tg->cancels; n; n--) {
		struct urn_am_cancel c = tg->cancel[tg->cancel_head];

		tg->cancel_head = (tg->cancel_head + 1) % URN_AM_CANCELS;
		tg->cancels--;
		if (tp->now - c.at >= URN_AM_REPLY_NS)
			URN_COUNT(tp, AM_UNTOLD);
		else if (!send(tp, &c))
			append(tg, &c);
	}
}
