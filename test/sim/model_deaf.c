/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference model: QPs whose completions don't come any more, because their queue
 * has overflowed. Messages that were acknowledged must have come all the same.
 */
#include "model_priv.h"

void
model_deaf(struct model *m, int qp, bool requests, bool receives)
{
	struct mqp *q = &m->qp[qp];

	q->ended = true;
	q->deaf_requests |= requests;
	q->deaf_receives |= receives;
}

const char *
model_unheard(struct model *m)
{
	for (uint32_t i = 0; i < m->qps; i++) {
		const struct mqp *q = &m->qp[i];
		uint32_t sent = 0;

		for (uint32_t k = 0; k < q->ok; k++)
			sent += model_takes_recv(&q->req[k].r);
		if (sent > q->delivered)
			return model_say(m, "%u messages to node %u succeeded, and %u receives completed there", sent,
					 model_peer(m, q)->node, q->delivered);
	}
	return NULL;
}

const char *
model_deaf_end(struct model *m, struct mqp *q)
{
	struct mqp *from = model_peer(m, q);
	const char *why = NULL;

	for (uint32_t i = q->rq.next; q->deaf_receives && i < q->rq.n && !why; i++) {
		why = model_torn_recv(m, q, &q->rq.recv[i]);
		model_next_message(from);
	}
	return why;
}
