/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that wait to go out at a port, because its wire has a rate and is busy, its device takes no
 * more, or their priority is paused. A frame goes to the wire (the port's impairment) with the time at
 * which it came, so that its due time does not depend on how often the port is polled. Only then is
 * the frame lost, changed or delayed: a wire that is cut meanwhile loses the frames that waited for it.
 */
#include "switch/switch_state.h"

/* True when a frame must wait because the wire has a rate and still sends an earlier one. */
static inline bool
wire_is_busy(const struct urn_switch_port *p, uint64_t now)
{
	return urn_impair_wire_free(p->impair[URN_SWITCH_OUT]) > now;
}

/*
 * True when one more frame may go to the wire before frames are taken off it. Frames of a lossless
 * switch wait in its queues, where they are charged to inputs and can be paused: at most a burst is
 * on the wire of a port whose device takes no more.
 */
static inline bool
may_give(const struct urn_switch_port *p)
{
	return !p->ll || p->ll->given < URN_SWITCH_BURST;
}

/*
 * Give the wire a frame that came at `since` (ns). Time does not run back there: a frame of low
 * priority came before frames that overtook it.
 */
static inline void
to_wire(struct urn_switch_port *p, struct rte_mbuf *m, uint64_t since)
{
	p->sent = RTE_MAX(p->sent, since);
	if (p->ll)
		p->ll->given++;
	urn_impair_push(p->impair[URN_SWITCH_OUT], &m, 1, p->sent);
}

/* Give the wire of a lossless switch's port a frame of its queue, which came at `since` (ns). */
static void
to_lossless_wire(struct urn_switch_port *p, unsigned int priority, struct rte_mbuf *m,
		 uint64_t since, uint64_t now)
{
	const struct urn_impair *wire = p->impair[URN_SWITCH_OUT];
	uint64_t start = urn_impair_wire_free(wire), end;
	uint32_t len = m->pkt_len;

	urn_lossless_release(p->ll, priority, m);
	to_wire(p, m, RTE_MAX(since, p->resumed));
	start = RTE_MAX(start, p->sent);
	end = urn_impair_wire_free(wire);
	urn_lossless_went(p->ll, priority, len, end > start ? end - start : 0, RTE_MAX(end, now));
}

void
urn_switch_port_drain(struct urn_switch_port *p, uint64_t now)
{
	uint64_t since;

	if (p->ll)
		urn_lossless_obey(p, now);
	while (!p->held && urn_swq_ready(&p->queue) && !wire_is_busy(p, now) && may_give(p)) {
		unsigned int priority = urn_swq_first(&p->queue);
		uint64_t bytes = p->queue.level[priority].bytes;
		struct rte_mbuf *m = urn_swq_take(&p->queue, &since);

		urn_mark_frame(&p->mark, m, bytes);
		if (p->ll)
			to_lossless_wire(p, priority, m, since, now);
		else
			to_wire(p, m, RTE_MAX(since, p->resumed));
	}
	p->waits = p->held || p->sorts || p->queue.paused || p->queue.frames;
}

/* A frame waits now: note it in the account of its input. */
static void
queued(struct urn_switch_port *p, unsigned int priority, struct rte_mbuf *m, uint64_t now)
{
	p->waits = true;
	if (p->ll)
		urn_lossless_charge(p->ll, priority, m,
				    RTE_MAX(now, urn_impair_wire_free(p->impair[URN_SWITCH_OUT])));
}

/* Put a frame into the queue of its priority, or drop it. */
static void
put(struct urn_switch_port *p, unsigned int priority, struct rte_mbuf *m, uint64_t now)
{
	struct urn_impair *wire = p->impair[URN_SWITCH_OUT];
	uint32_t room = urn_impair_config(wire)->queue; /* the present configuration's */
	enum urn_swq_verdict v;

	/* Without priorities, one bound holds for the wire and the frames that wait for it. */
	if (!p->sorts && p->queue.frames + urn_impair_queued(wire) >= room) {
		urn_swq_refuse(&p->queue, priority);
		urn_impair_refuse(wire, m);
		return;
	}
	if (p->ll && !urn_lossless_admits(p->ll, priority, m->pkt_len)) {
		urn_impair_refuse(wire, m);
		return;
	}
	p->queue.room = p->sorts ? room : 0;
	m = urn_impair_own(wire, m);
	if (!m)
		return;
	v = urn_swq_put(&p->queue, priority, m, now);
	if (v != URN_SWQ_QUEUED && v != URN_SWQ_MARK)
		urn_impair_refuse(wire, m);
	else
		queued(p, priority, m, now);
}

/* Priority of a frame at this port. */
static inline unsigned int
priority_of(const struct urn_switch_port *p, const struct rte_mbuf *m)
{
	if (p->ll)
		return urn_classify(&p->ll->ll->cfg.map, m);
	return p->classify ? p->classify(m) & (URN_SWQ_PRIORITIES - 1) : 0;
}

void
urn_switch_port_send(struct urn_switch_port *p, struct rte_mbuf **m, unsigned int n, uint64_t now)
{
	urn_switch_port_drain(p, now);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int priority = priority_of(p, m[i]);

		if (p->held || p->queue.paused & 1u << priority || wire_is_busy(p, now) ||
		    !may_give(p) || (p->ll && p->queue.waiting & 1u << priority))
			put(p, priority, m[i], now);
		else
			to_wire(p, m[i], now);
	}
}

unsigned int
urn_switch_port_lossless(struct urn_switch_port *p, struct rte_mbuf **m, unsigned int max,
			 uint64_t now)
{
	struct urn_impair *wire = p->impair[URN_SWITCH_OUT];
	unsigned int n = urn_impair_pop(wire, m, max, now);

	if (n == max)
		return n;
	p->ll->given = (uint16_t)RTE_MIN(n, URN_SWITCH_BURST);
	urn_switch_port_drain(p, now);
	return n + urn_impair_pop(wire, m + n, max - n, now);
}

uint64_t
urn_switch_port_next(const struct urn_switch_port *p)
{
	if (!urn_swq_ready(&p->queue))
		return UINT64_MAX;
	return urn_impair_wire_free(p->impair[URN_SWITCH_OUT]);
}

void
urn_switch_hold(struct urn_switch *sw, uint16_t port, bool hold)
{
	struct urn_switch_port *p;

	if (port >= sw->ports)
		return;
	p = sw->port[port];
	p->held = hold;
	p->waits = true;
	/* Frames that were on the wire already stay there. */
	urn_impair_keep(p->impair[URN_SWITCH_OUT], hold);
}

void
urn_switch_pause(struct urn_switch *sw, uint16_t port, unsigned int priority, bool pause,
		 uint64_t now)
{
	struct urn_switch_port *p;

	if (port >= sw->ports || priority >= URN_SWQ_PRIORITIES)
		return;
	p = sw->port[port];
	/* Frames that could go until now are not stopped any more. */
	urn_switch_port_drain(p, now);
	if (p->ll && p->ll->ll->cfg.priorities & 1u << priority) {
		urn_lossless_pause(p, priority, pause ? UINT64_MAX : 0, now);
		return;
	}
	urn_swq_pause(&p->queue, priority, pause);
	if (!pause)
		p->resumed = now;
	p->waits = true;
}

const struct urn_swq *
urn_switch_queues(const struct urn_switch *sw, uint16_t port)
{
	return port < sw->ports ? &sw->port[port]->queue : NULL;
}
