/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pauses of a lossless switch, both ways. A port that is an input tells its peer to stop when an
 * account is full, tells again before the pause runs out, and lets it go on. A port that is an
 * output sends nothing of a priority that its peer has paused, or whose account at the other end of
 * a link is full. The watchdog ends a stop that lasts too long, whatever its reason:
 *
 *    FLOWS ── frames wait, none went for watchdog_ns: drop them ──► RESTORING (pauses are ignored)
 *      │                                                                ▲   │
 *      ├────── pauses leave frames less than their part of the time ────┘   │
 *      ▲                                                                    │
 *      └───────────── no pause came for restore_ns ─────────────────────────┘
 *
 * The second reason is a debt (storm.h): the time for which the peer's pauses have held frames,
 * less URN_STORM_PART times the wire's time of the frames that went. An empty queue has none: the
 * peer has taken all.
 */
#include "switch/lossless_state.h"

#include "switch/pfc.h"
#include "switch/switch_state.h"

/* Take the lowest bit, number *i, out of a set. returns: false: the set is empty */
static inline bool
take_bit(unsigned int *set, unsigned int *i)
{
	if (*set == 0)
		return false;
	*i = (unsigned int)__builtin_ctz(*set);
	*set &= *set - 1;
	return true;
}

static inline uint64_t *
counters(const struct urn_lossless_port *p, unsigned int priority)
{
	return p->queue->level[priority].c.v;
}

/* ---- the output's side */

/* A pause began at `now`, ns. */
static void
begin_stop(struct urn_lossless_port *p, unsigned int priority, uint64_t now)
{
	p->asked |= (uint8_t)(1u << priority);
	p->level[priority].storm.stop_at = now;
	p->ll->due = RTE_MIN(p->ll->due,
			     urn_storm_at(&p->level[priority].storm, p->ll->cfg.watchdog_ns));
}

/* A pause ended at `end`, ns. */
static void
end_stop(struct urn_lossless_port *p, unsigned int priority, uint64_t end)
{
	uint8_t bit = (uint8_t)(1u << priority);

	p->asked &= (uint8_t)~bit;
	if (p->queue->waiting & bit)
		urn_storm_held(&p->level[priority].storm, end);
}

void
urn_lossless_went(struct urn_lossless_port *out, unsigned int priority, uint32_t len, uint64_t took,
		  uint64_t end)
{
	struct urn_lossless_level *l = &out->level[priority];

	/* A quantum is the time of 64 bytes. */
	urn_storm_took(&l->storm, RTE_MAX(took, len * out->quantum >> 22));
	l->progress = end;
}

void
urn_lossless_pause(struct urn_switch_port *p, unsigned int priority, uint64_t until, uint64_t now)
{
	struct urn_lossless_port *l = p->ll;
	uint8_t bit = (uint8_t)(1u << priority);

	if (until == 0) {
		if (!(l->asked & bit))
			return;
		p->resumed = RTE_MAX(p->resumed, now);
		end_stop(l, priority, now);
	} else if (l->restoring & bit) {
		/* The storm goes on. */
		counters(l, priority)[URN_SWQ_C_PAUSE_IGNORED]++;
		urn_storm_go_on(&l->level[priority].storm, l->ll->cfg.restore_ns, now);
	} else {
		if (!(l->asked & bit))
			begin_stop(l, priority, now);
		l->level[priority].until = until;
	}
}

static void
take_message(struct urn_switch_port *p, const struct urn_pfc *pfc, uint64_t now)
{
	struct urn_lossless_port *l = p->ll;

	for (unsigned int i, set = pfc->enable; take_bit(&set, &i);) {
		bool pause = pfc->quanta[i] != 0;

		counters(l, i)[pause ? URN_SWQ_C_PAUSE_RX : URN_SWQ_C_RESUME_RX]++;
		if (l->ll->cfg.priorities & 1u << i && l->pfc != URN_SWITCH_PFC_NO)
			urn_lossless_pause(p, i,
					   pause ? now + urn_pfc_ns(pfc->quanta[i], l->quantum) : 0,
					   now);
		else if (pause)
			counters(l, i)[URN_SWQ_C_PAUSE_IGNORED]++;
	}
}

unsigned int
urn_lossless_control(struct urn_switch *sw, uint16_t port, struct rte_mbuf **m, unsigned int n,
		     uint64_t now)
{
	struct urn_switch_port *p = sw->port[port];
	unsigned int left = 0;
	struct urn_pfc pfc;

	for (unsigned int i = 0; i < n; i++) {
		if (likely(!urn_pfc_is_control(m[i]))) {
			m[left++] = m[i];
			continue;
		}
		if (urn_pfc_read(m[i], &pfc) == 0) {
			/* Frames that could go until now are not stopped any more. */
			urn_switch_port_drain(p, now);
			take_message(p, &pfc, now);
		} else {
			p->c.v[URN_SWITCH_DROP_PFC]++;
		}
		rte_pktmbuf_free(m[i]);
	}
	return left;
}

/* Priorities (bit p) whose account at the other end of a port's link is full. */
static inline uint8_t
link_stop(const struct urn_switch_port *p)
{
	return p->other && p->other->ll ? p->other->port[p->other_port]->ll->stop : 0;
}

void
urn_lossless_obey(struct urn_switch_port *p, uint64_t now)
{
	struct urn_lossless_port *l = p->ll;
	unsigned int stop;
	uint8_t link;

	for (unsigned int i, set = l->asked; take_bit(&set, &i);) {
		if (l->level[i].until > now)
			continue;
		end_stop(l, i, l->level[i].until);
		p->resumed = RTE_MAX(p->resumed, l->level[i].until);
	}
	link = link_stop(p);
	/* Frames of a stopped link were not sent meanwhile: they do not make up for the time. */
	if (unlikely(l->link_stop & ~link))
		p->resumed = RTE_MAX(p->resumed, now);
	l->link_stop = link;
	stop = l->asked | link;
	stop &= l->ll->cfg.priorities & ~(unsigned int)l->restoring;
	if (likely(stop == p->queue.paused))
		return;
	for (unsigned int i, set = stop ^ p->queue.paused; take_bit(&set, &i);) {
		urn_swq_pause(&p->queue, i, stop & 1u << i);
	}
}

void
urn_lossless_port_down(struct urn_switch_port *p)
{
	struct urn_lossless_port *l = p->ll;

	l->asked = 0;
	l->told = 0;
	l->ll->dirty = true;
}

/* ---- the watchdog */

/* Drop the frames of an output's priority, which made no progress for too long. */
static void
fire(struct urn_switch_port *p, unsigned int priority, uint64_t now)
{
	struct urn_lossless_port *l = p->ll;
	struct rte_mbuf *m;
	uint64_t since;

	counters(l, priority)[URN_SWQ_C_WATCHDOG]++;
	while ((m = urn_swq_take_of(&p->queue, priority, &since)) != NULL) {
		urn_lossless_release(l, priority, m);
		counters(l, priority)[URN_SWQ_C_DROP_WATCHDOG]++;
		urn_impair_refuse(p->impair[URN_SWITCH_OUT], m);
	}
	l->asked &= (uint8_t) ~(1u << priority);
	l->restoring |= (uint8_t)(1u << priority);
	urn_storm_begin(&l->level[priority].storm, l->ll->cfg.restore_ns, now);
	p->resumed = RTE_MAX(p->resumed, now);
}

/* ns: when the watchdog drops the frames of an output's priority, which wait. */
static uint64_t
stuck_at(const struct urn_lossless_port *l, unsigned int priority)
{
	uint64_t end = l->level[priority].progress + l->ll->cfg.watchdog_ns, storm;

	if (!(l->asked & 1u << priority))
		return end;
	storm = urn_storm_at(&l->level[priority].storm, l->ll->cfg.watchdog_ns);
	/* A pause that runs out before has ended, even if nobody has looked since. */
	return storm < l->level[priority].until ? RTE_MIN(end, storm) : end;
}

/* returns: ns: when the watchdog of this port looks next */
static uint64_t
watch(struct urn_switch_port *p, uint64_t now)
{
	struct urn_lossless_port *l = p->ll;
	uint64_t due = UINT64_MAX;

	for (unsigned int i, set = l->restoring; take_bit(&set, &i);) {
		struct urn_lossless_level *v = &l->level[i];

		if (now < v->storm.restore)
			continue;
		l->restoring &= (uint8_t) ~(1u << i);
		v->progress = RTE_MAX(v->progress, now);
		urn_storm_end(&v->storm, l->ll->cfg.restore_ns, now);
	}
	for (unsigned int i,
	     set = p->queue.waiting & l->ll->cfg.priorities & ~(unsigned int)l->restoring;
	     take_bit(&set, &i);) {
		uint64_t end = stuck_at(l, i);

		if (now >= end)
			fire(p, i, now);
		else
			due = RTE_MIN(due, end);
	}
	for (unsigned int i, set = l->restoring; take_bit(&set, &i);) {
		due = RTE_MIN(due, l->level[i].storm.restore);
	}
	return due;
}

/* ---- the input's side */

/* Send the peer a message: stop[i] for each priority of `stop`, go on for others that it was told
 * of. */
static void
send_message(struct urn_switch *sw, struct urn_switch_port *p, uint8_t stop, uint64_t now)
{
	struct urn_lossless_port *l = p->ll;
	struct rte_mbuf *m = sw->copies ? rte_pktmbuf_alloc(sw->copies) : NULL;
	struct urn_pfc pfc = {.enable = stop | l->told};

	for (unsigned int i, set = stop; take_bit(&set, &i);) {
		pfc.quanta[i] = URN_PFC_LONGEST;
	}
	if (!m || urn_pfc_write(m, l->mac, &pfc) != 0) {
		rte_pktmbuf_free(m);
		p->c.v[URN_SWITCH_PFC_NO_MBUF]++;
		sw->ll->dirty = true; /* again in the next run */
		return;
	}
	for (unsigned int i, set = pfc.enable; take_bit(&set, &i);) {
		counters(l, i)[stop & 1u << i ? URN_SWQ_C_PAUSE_TX : URN_SWQ_C_RESUME_TX]++;
	}
	l->told = stop;
	l->refresh_at = now + urn_pfc_ns(URN_PFC_LONGEST, l->quantum) / 2;
	/* Flow control overtakes frames that wait in queues, and is never paused itself. */
	p->sent = RTE_MAX(p->sent, now);
	urn_impair_push(p->impair[URN_SWITCH_OUT], &m, 1, p->sent);
}

/* returns: ns: when the peer of this port is told again */
static uint64_t
tell(struct urn_switch *sw, struct urn_switch_port *p, uint64_t now)
{
	struct urn_lossless_port *l = p->ll;

	if (p->other || !p->up || l->pfc != URN_SWITCH_PFC_YES)
		return UINT64_MAX;
	if (l->stop != l->told || (l->told && now >= l->refresh_at))
		send_message(sw, p, l->stop, now);
	return l->told ? RTE_MAX(l->refresh_at, now + 1) : UINT64_MAX;
}

void
urn_lossless_run(struct urn_switch *sw, uint64_t now)
{
	struct urn_lossless *ll = sw->ll;
	uint64_t due = UINT64_MAX;

	if (!ll->dirty && now < ll->due)
		return;
	ll->dirty = false;
	for (uint16_t i = 0; i < sw->ports; i++)
		due = RTE_MIN(due, watch(sw->port[i], now));
	for (uint16_t i = 0; i < sw->ports; i++)
		due = RTE_MIN(due, tell(sw, sw->port[i], now));
	ll->due = due;
}

uint64_t
urn_lossless_next(const struct urn_switch *sw)
{
	uint64_t next = sw->ll->dirty ? 0 : sw->ll->due;

	for (uint16_t i = 0; i < sw->ports; i++) {
		const struct urn_switch_port *p = sw->port[i];

		for (unsigned int k, set = p->ll->asked & p->queue.waiting; take_bit(&set, &k);) {
			next = RTE_MIN(next, p->ll->level[k].until);
		}
	}
	return next;
}

bool
urn_switch_takes(const struct urn_switch *sw, uint16_t port)
{
	return likely(!sw->ll) || port >= sw->ports || !sw->port[port]->ll->credits ||
	       !sw->port[port]->ll->full;
}

uint8_t
urn_switch_full(const struct urn_switch *sw, uint16_t port)
{
	return urn_switch_takes(sw, port) ? 0 : sw->port[port]->ll->full;
}

unsigned int
urn_switch_priority(const struct urn_switch *sw, const struct rte_mbuf *m)
{
	return sw->ll ? urn_classify(&sw->ll->cfg.map, m) : 0;
}

enum urn_switch_pfc
urn_switch_port_pfc(const struct urn_switch *sw, uint16_t port)
{
	if (!sw->ll || port >= sw->ports || sw->port[port]->other)
		return URN_SWITCH_PFC_DEFAULT;
	return (enum urn_switch_pfc)sw->port[port]->ll->pfc;
}

bool
urn_switch_account(const struct urn_switch *sw, uint16_t port, unsigned int priority,
		   struct urn_switch_account *out)
{
	uint8_t bit = (uint8_t)(1u << priority);
	const struct urn_lossless_port *l;

	*out = (struct urn_switch_account){0};
	if (!sw->ll || port >= sw->ports || priority >= URN_SWQ_PRIORITIES)
		return false;
	l = sw->port[port]->ll;
	out->bytes = l->level[priority].bytes;
	out->peak = l->level[priority].peak;
	out->stopped = l->stop & bit;
	out->paused = sw->port[port]->queue.paused & bit;
	out->restoring = l->restoring & bit;
	return true;
}
