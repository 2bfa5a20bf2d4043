/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference model: the number of pairs that may fail because nobody answers, on wires that
 * lose each frame independently with a probability p.
 *
 * A QP fails when `tries` tries in a row bring its peer's answer not a packet further. A try that
 * begins with the packet that is due fails at most when that packet is lost, or the answer to it:
 * with the probability q = 1 - (1 - p)^2. So a packet fails with q^tries at most, and a pair with
 * the sum over the packets of its requests. The sum is an upper bound: a packet that the answer to
 * a later one speaks for needs no answer of its own.
 */
#include "model_priv.h"

void
model_wire_loses(struct model *m, double loss, unsigned int tries)
{
	m->wire_fails = true;
	m->try_fails = 1 - (1 - loss) * (1 - loss);
	m->tries = tries;
}

void
model_count_lost(struct model *m, struct mqp *q)
{
	if (!model_peer(m, q)->lost)
		q->lost = true;
}

unsigned int
model_lost(const struct model *m)
{
	unsigned int n = 0;

	for (uint32_t i = 0; m->try_fails > 0 && i < m->qps; i++)
		n += m->qp[i].lost;
	return n;
}

/* Packets that requests of q were sent in, or answered with. */
static uint64_t
packets(const struct mqp *q)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < q->n && i <= q->ok; i++) {
		const struct model_request *r = &q->req[i].r;

		if (r->op < MODEL_BIND)
			n += r->len > q->mtu ? (r->len + q->mtu - 1) / q->mtu : 1;
	}
	return n;
}

double
model_lost_expected(const struct model *m)
{
	double each = 1, sum = 0;

	for (unsigned int i = 0; i < m->tries; i++)
		each *= m->try_fails;
	for (uint32_t i = 0; m->try_fails > 0 && i < m->qps; i += 2) {
		double fails = (double)(packets(&m->qp[i]) + packets(&m->qp[i + 1])) * each;

		sum += fails < 1 ? fails : 1;
	}
	return sum;
}
