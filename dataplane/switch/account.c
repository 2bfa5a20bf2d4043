/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accounts: bytes of an input's frames that wait at outputs. An output's share of an input's bytes
 * is in no account, so that the frames for an output that is full stop the input only when they are
 * more than the share. A frame carries the number of its input in its packet's `port`, so a queue
 * needs no room for the number.
 */
#include "switch/lossless_state.h"

#include "switch/switch_state.h"

static inline struct urn_lossless_port *
input_of(const struct urn_lossless *ll, uint16_t number)
{
	return ll->sw->port[number]->ll;
}

static inline uint64_t
above(uint32_t bytes, uint32_t share)
{
	return bytes > share ? bytes - share : 0;
}

bool
urn_lossless_admits(struct urn_lossless_port *out, unsigned int priority, uint32_t len)
{
	const struct urn_lossless *ll = out->ll;
	struct urn_swq_level *q = &out->queue->level[priority];
	uint8_t bit = (uint8_t)(1u << priority);
	uint32_t held = out->held[priority][ll->in];
	uint64_t excess;

	if (!(ll->cfg.priorities & bit))
		return true;
	if (out->restoring & bit) {
		/* Only the share, which stops nobody, and which each input has for itself. */
		if (held + len <= ll->cfg.share)
			return true;
		q->c.v[URN_SWQ_C_DROP_BYTES]++;
		return false;
	}
	excess = input_of(ll, ll->in)->level[priority].excess;
	excess += above(held + len, ll->cfg.share) - above(held, ll->cfg.share);
	if (excess <= ll->most)
		return true;
	q->c.v[URN_SWQ_C_DROP_HEADROOM]++;
	return false;
}

/* The account of an input grew. */
static inline void
grew(struct urn_lossless *ll, struct urn_lossless_port *in, unsigned int priority)
{
	uint8_t bit = (uint8_t)(1u << priority);
	struct urn_lossless_level *l = &in->level[priority];

	if (l->bytes > l->peak)
		l->peak = l->bytes;
	if (l->excess < ll->cfg.xoff)
		return;
	if (!(in->stop & bit)) {
		in->stop |= bit;
		in->queue->level[priority].c.v[URN_SWQ_C_XOFFS]++;
		ll->dirty = true;
	}
	if (l->excess >= ll->full_at && !(in->full & bit)) {
		in->full |= bit;
		in->queue->level[priority].c.v[URN_SWQ_C_HOLDS]++;
	}
}

void
urn_lossless_charge(struct urn_lossless_port *out, unsigned int priority, struct rte_mbuf *m,
		    uint64_t start)
{
	struct urn_lossless *ll = out->ll;
	struct urn_lossless_port *in = input_of(ll, ll->in);
	const struct urn_swq_level *q = &out->queue->level[priority];
	uint32_t *held = &out->held[priority][ll->in];
	uint8_t bit = (uint8_t)(1u << priority);

	if (!(ll->cfg.priorities & bit))
		return;
	if (q->tail - q->head == 1) {
		out->level[priority].progress = start;
		out->level[priority].storm.stop_at = start;
		out->level[priority].storm.debt = 0;
		ll->due = RTE_MIN(ll->due, start + ll->cfg.watchdog_ns);
	}
	m->port = ll->in;
	in->level[priority].bytes += m->pkt_len;
	in->level[priority].excess -= above(*held, ll->cfg.share);
	*held += m->pkt_len;
	in->level[priority].excess += above(*held, ll->cfg.share);
	grew(ll, in, priority);
}

void
urn_lossless_release(struct urn_lossless_port *out, unsigned int priority, const struct rte_mbuf *m)
{
	struct urn_lossless *ll = out->ll;
	uint8_t bit = (uint8_t)(1u << priority);
	struct urn_lossless_port *in;
	struct urn_lossless_level *l;
	uint32_t *held;

	if (!(ll->cfg.priorities & bit))
		return;
	in = input_of(ll, m->port);
	held = &out->held[priority][m->port];
	l = &in->level[priority];
	l->bytes -= m->pkt_len;
	l->excess -= above(*held, ll->cfg.share);
	*held -= m->pkt_len;
	l->excess += above(*held, ll->cfg.share);
	if (l->excess < ll->full_at)
		in->full &= (uint8_t)~bit;
	if (in->stop & bit && l->excess <= ll->cfg.xon) {
		in->stop &= (uint8_t)~bit;
		ll->dirty = true;
	}
}
