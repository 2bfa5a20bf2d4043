/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that obeys flow control: frames of a priority that its peer has paused stay with the
 * transport, which makes no more of them when its list is full. Each engine keeps the pauses by its
 * own clock; the engine that receives one tells the others by their rings.
 *
 * The pauses come from the network, which is not trusted. The watchdog gives up pauses that let no
 * frame go for its time, and pauses that each end in time when they leave the peer's part of the
 * time only (switch/storm.h); further ones are ignored as long as they come. An adapter's port is
 * open to a priority from the end of a pause to the begin of the next one: the peer takes frames
 * for so long, whether there are any or not, or for the time that the frames which the pause held
 * take on the wire.
 */
#include "engine/obey.h"

#include "engine/engine.h"
#include "switch/storm.h"

#define DEFAULT_BPS 10000000000ull

/* The pauses of a priority. */
struct urn_obey_level {
	uint64_t until; /* ns: end of the pause; while not paused: of the last one; 0: none was */
	uint64_t went; /* ns of the wire that the frames take which the last pause held; valid while
			  not paused */
	struct urn_storm storm; /* its restoring is valid while `ignore` */
};

/* The pauses of a shard's port. */
struct urn_obey {
	struct urn_obey_config cfg;
	uint64_t quantum; /* ns of a quantum, << 16 */
	uint8_t paused;	  /* bit p: priority p is paused until level[p].until */
	uint8_t held;	  /* bit p: frames of it have waited since level[p].storm.stop_at */
	uint8_t ignore;	  /* bit p: pauses are ignored, as the watchdog has ended one */
	struct urn_obey_level level[URN_PFC_PRIORITIES];
};

struct urn_obey *
urn_obey_create(const struct urn_obey_config *cfg, uint64_t bps)
{
	struct urn_obey *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->cfg = *cfg;
	if (!o->cfg.watchdog_ns)
		o->cfg.watchdog_ns = URN_OBEY_NS;
	if (!o->cfg.restore_ns)
		o->cfg.restore_ns = URN_OBEY_NS;
	o->quantum = urn_pfc_quantum(bps ? bps : DEFAULT_BPS);
	return o;
}

void
urn_obey_destroy(struct urn_obey *o)
{
	free(o);
}

/* True when the watchdog ignores a pause of a priority, which came now. */
static bool
ignores(struct urn_obey *o, unsigned int priority, uint64_t now)
{
	struct urn_storm *storm = &o->level[priority].storm;

	if (likely(!(o->ignore & 1u << priority)))
		return false;
	if (now < storm->restore) {
		urn_storm_go_on(storm, o->cfg.restore_ns, now);
		return true;
	}
	o->ignore &= (uint8_t) ~(1u << priority);
	urn_storm_end(storm, o->cfg.restore_ns, storm->restore);
	return false;
}

/* End a pause, which has run out or whose peer lets the priority go on now. */
static void
end_pause(struct urn_obey *o, unsigned int priority, uint64_t now)
{
	struct urn_obey_level *l = &o->level[priority];

	o->paused &= (uint8_t) ~(1u << priority);
	l->until = RTE_MIN(l->until, now);
}

static void
begin_pause(struct urn_obey *o, unsigned int priority, uint64_t now)
{
	struct urn_obey_level *l = &o->level[priority];

	o->paused |= (uint8_t)(1u << priority);
	urn_storm_took(&l->storm, RTE_MAX(now - l->until, l->went));
	l->went = 0;
}

void
urn_shard_obey(struct urn_shard *s, const struct urn_pfc *pfc)
{
	struct urn_obey *o = s->obey;
	uint64_t now = s->tp->now;

	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++) {
		uint8_t bit = (uint8_t)(1u << i);

		if (!(pfc->enable & bit))
			continue;
		if (o->paused & bit && (pfc->quanta[i] == 0 || o->level[i].until <= now))
			end_pause(o, i, now);
		if (pfc->quanta[i] == 0) {
			URN_COUNT(s->tp, PFC_RESUME);
		} else if (ignores(o, i, now)) {
			URN_COUNT(s->tp, PFC_IGNORED);
		} else {
			URN_COUNT(s->tp, PFC_PAUSE);
			if (!(o->paused & bit))
				begin_pause(o, i, now);
			o->level[i].until = now + urn_pfc_ns(pfc->quanta[i], o->quantum);
		}
	}
}

/* Give a message to the other engines that send at this adapter's port. */
static void
tell_siblings(struct urn_shard *s, const struct urn_pfc *pfc)
{
	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES; i++) {
		struct urn_shard *to = s->sibling[i];
		struct urn_xmsg x = {.kind = URN_X_PAUSE, .shard = to, .pfc = *pfc};

		/* No room: the peer tells again before its pause runs out. */
		if (to && to != s && to->queue >= 0)
			(void)urn_engine_put(to->engine, &x);
	}
}

unsigned int
urn_shard_take_control(struct urn_shard *s, struct rte_mbuf **m, unsigned int n)
{
	unsigned int left = 0;
	struct urn_pfc pfc;

	for (unsigned int i = 0; i < n; i++) {
		if (likely(!urn_pfc_is_control(m[i]))) {
			m[left++] = m[i];
			continue;
		}
		if (urn_pfc_read(m[i], &pfc) == 0) {
			urn_shard_obey(s, &pfc);
			tell_siblings(s, &pfc);
		} else {
			URN_COUNT(s->tp, DROP_PFC);
		}
		rte_pktmbuf_free(m[i]);
	}
	return left;
}

/* True when the pauses of a priority have held its frames for too long. */
static bool
is_stuck(const struct urn_obey *o, unsigned int priority, uint64_t now)
{
	const struct urn_storm *storm = &o->level[priority].storm;

	return now >= RTE_MIN(storm->stop_at + o->cfg.watchdog_ns,
			      urn_storm_at(storm, o->cfg.watchdog_ns));
}

/*
 * End the pauses that have run out, or all of them when frames have waited too long: frames that
 * wait take the room of the list from all priorities.
 */
static void
end_pauses(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	uint64_t now = s->tp->now;
	bool stuck = false;

	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++) {
		if (o->paused & 1u << i && o->level[i].until <= now)
			end_pause(o, i, now);
		stuck |= o->paused & o->held & 1u << i && is_stuck(o, i, now);
	}
	if (likely(!stuck))
		return;
	URN_COUNT(s->tp, PFC_STORM);
	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++) {
		if (!(o->paused & 1u << i))
			continue;
		end_pause(o, i, now);
		o->held &= (uint8_t) ~(1u << i);
		o->ignore |= (uint8_t)(1u << i);
		urn_storm_begin(&o->level[i].storm, o->cfg.restore_ns, now);
	}
}

/* Frames of the priorities `waiting` wait from now on, and those of others do not any more. */
static void
note_held(struct urn_obey *o, uint8_t waiting, uint64_t now)
{
	for (unsigned int i = 0; waiting != o->held && i < URN_PFC_PRIORITIES; i++) {
		uint8_t bit = (uint8_t)(1u << i);
		struct urn_storm *storm = &o->level[i].storm;

		if (waiting & ~o->held & bit)
			storm->stop_at = now;
		else if (o->held & ~waiting & bit)
			urn_storm_held(storm, RTE_MIN(o->level[i].until, now));
	}
	o->held = waiting;
}

unsigned int
urn_shard_may_send(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	struct urn_tp *tp = s->tp;
	struct rte_mbuf *wait[URN_TP_TX];
	unsigned int may = 0, waiting = 0;
	uint8_t set = 0;

	if (likely(!(o->paused | o->held)))
		return tp->tx_n;
	end_pauses(s);
	if (!(o->paused | o->held))
		return tp->tx_n;
	for (unsigned int i = 0; i < tp->tx_n; i++) {
		unsigned int p = urn_classify(&o->cfg.map, tp->tx[i]);

		if (o->paused & 1u << p) {
			set |= (uint8_t)(1u << p);
			wait[waiting++] = tp->tx[i];
			continue;
		}
		/* A quantum is the time of 64 bytes. */
		if (o->held & 1u << p)
			o->level[p].went += tp->tx[i]->pkt_len * o->quantum >> 22;
		tp->tx[may++] = tp->tx[i];
	}
	note_held(o, set, tp->now);
	if (waiting) {
		memcpy(tp->tx + may, wait, waiting * sizeof(wait[0]));
		URN_COUNT(tp, TX_PAUSED);
	}
	return may;
}
