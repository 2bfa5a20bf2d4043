/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders of messages. A register set has one message on its way; a sender has as many sets as a
 * sender of WRITEs has WRITEs posted, and all of them share the flow to the receiver's node.
 */
#include "incast_priv.h"

#include "transport/flow_priv.h"

#include <stdlib.h>
#include <string.h>

enum { EPOCH = 1700000000 }; /* first epoch of the nodes' flows */

#define QUEUE URN_MSG_QID(1, 0, 0)

static uint8_t
deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, const uint8_t *data,
	uint32_t len)
{
	(void)tp;
	(void)from;
	(void)data;
	(void)len;
	return qid == QUEUE ? URN_MSG_DONE : URN_MSG_NO_QUEUE;
}

static uint8_t
admit(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, uint32_t len)
{
	return deliver(tp, from, qid, NULL, len);
}

static void
answered(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code)
{
	struct incast_letter *l = (struct incast_letter *)m;

	(void)tp;
	l->posted = false;
	l->code = code;
	l->flow->done += code == URN_MSG_DONE;
}

static const struct urn_flow_user user = {.deliver = deliver, .admit = admit, .answered = answered};

void
incast_msg_config(struct urn_tp_config *t, unsigned int i)
{
	t->flow_user = &user;
	t->flow_epoch = EPOCH + i;
}

void
incast_msg_open(struct incast *s, unsigned int i)
{
	struct flow *f = &s->flow[i];

	if (!s->c->young)
		s->node[i + 1].tp->flows->born -= 2 * URN_FLOW_YOUNG_NS;
	s->node[0].tp->flows->born = s->node[i + 1].tp->flows->born;
	for (unsigned int k = 0; k < INCAST_DEPTH; k++) {
		struct incast_letter *l = &f->letter[k];

		l->flow = f;
		l->m.data = s->node[i + 1].ram;
		l->m.len = s->c->message;
		l->m.qid = QUEUE;
		l->m.src_qid = URN_MSG_QID(1, 0, k + 1);
	}
}

void
incast_msg_close(struct incast *s, unsigned int i)
{
	for (unsigned int k = 0; k < INCAST_DEPTH; k++)
		if (s->flow[i].letter[k].posted)
			urn_flow_forget(s->node[i + 1].tp, &s->flow[i].letter[k].m);
}

bool
incast_msg_run(struct incast *s, unsigned int i)
{
	struct flow *f = &s->flow[i];

	for (unsigned int k = 0; k < INCAST_DEPTH; k++) {
		struct incast_letter *l = &f->letter[k];

		if (l->posted)
			continue;
		/* A receiver puts 64 long messages together at a time, and sends others back. */
		if (l->code && l->code != URN_MSG_DONE && l->code != URN_MSG_BUSY)
			return incast_fail(s, "a message failed", i);
		l->posted = true;
		f->posted++;
		if (urn_flow_send(s->node[i + 1].tp, s->node[0].gid, &l->m) != URN_MSG_PENDING)
			return incast_fail(s, "a message could not be sent", i);
	}
	return true;
}
