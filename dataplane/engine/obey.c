/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that obeys flow control: frames of a priority that its peer has paused are put aside,
 * in a list for each priority. When the list has its share, sources of frames of this priority get
 * no turns until some have gone; those of others do not notice. Each engine keeps the pauses by its
 * own clock; the engine that receives one tells the others by their rings. An engine without a
 * queue of the port stops the sources that the engine stops which sends for it.
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
#include "transport/sched.h"

#define DEFAULT_BPS 10000000000ull

enum {
	SHARE = 64, /* frames of a priority that wait, from which on its sources wait, too */
	/*
	 * Frames of a priority that wait at most. Sources make no more than the list of frames to
	 * send holds after the last that find room in the share; frames of no source (neighbours,
	 * connection management, refusals, other engines) have what is left.
	 */
	MOST = 512,
	KEPT = 64,  /* places of the list of frames to send that are for frames that have waited */
	BURST = 16, /* frames of a priority that have waited, and go before those of the next one */
};
_Static_assert(SHARE + URN_TP_TX <= MOST, "sources lose no frame");
_Static_assert((MOST & (MOST - 1)) == 0, "index of a ring");

/* Frames of a priority that wait, a ring. */
struct urn_obey_list {
	uint32_t head, tail; /* frames taken, put; free running */
	struct rte_mbuf *m[MOST];
};

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
	uint8_t listed;	  /* bit p: frames are in list[p] */
	uint8_t turn;	  /* the priority whose list was first in the last turn */
	uint8_t stopped;  /* bit p: sources of p wait; engines that this one sends for read it */
	uint16_t first;	  /* frames of lists at the begin of the list of frames to send, unsent */
	uint16_t given;	  /* frames that the port was given last; valid while `first` is not 0 */
	struct urn_obey_level level[URN_PFC_PRIORITIES];
	struct urn_obey_list list[URN_PFC_PRIORITIES];
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
	for (unsigned int i = 0; o && i < URN_PFC_PRIORITIES; i++) {
		struct urn_obey_list *l = &o->list[i];

		for (; l->head != l->tail; l->head++)
			rte_pktmbuf_free(l->m[l->head % MOST]);
	}
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

/* End the pauses that have run out, and those that have held frames for too long. */
static void
end_pauses(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	uint64_t now = s->tp->now;

	for (unsigned int i = 0; o->paused && i < URN_PFC_PRIORITIES; i++) {
		uint8_t bit = (uint8_t)(1u << i);

		if (o->paused & bit && o->level[i].until <= now)
			end_pause(o, i, now);
		if (!(o->paused & o->held & bit) || !is_stuck(o, i, now))
			continue;
		URN_COUNT(s->tp, PFC_STORM);
		end_pause(o, i, now);
		o->held &= (uint8_t)~bit;
		o->ignore |= bit;
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

/* ---- frames that wait */

/* Put a frame of a priority aside, behind the others or before them. */
static void
put_aside(struct urn_shard *s, unsigned int priority, struct rte_mbuf *m, bool first)
{
	struct urn_obey_list *l = &s->obey->list[priority];

	if (unlikely(l->tail - l->head == MOST)) {
		URN_COUNT(s->tp, DROP_PAUSED);
		rte_pktmbuf_free(m);
		return;
	}
	if (first)
		l->m[--l->head % MOST] = m;
	else
		l->m[l->tail++ % MOST] = m;
	s->obey->listed |= (uint8_t)(1u << priority);
	s->tp->held++;
}

/*
 * Take the frames that have to wait out of those to send. Frames that an earlier turn has left, as
 * the port took no more, came before those of the lists.
 */
static void
take_out(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	struct urn_tp *tp = s->tp;
	unsigned int n = 0, old = tp->tx_old, first = o->first;

	for (unsigned int i = old; i-- > 0;) {
		unsigned int p = urn_classify(&o->cfg.map, tp->tx[i]);

		if (!(o->paused & 1u << p))
			continue;
		put_aside(s, p, tp->tx[i], true);
		tp->tx[i] = NULL;
		o->first -= i < first;
	}
	for (unsigned int i = 0; i < tp->tx_n; i++) {
		struct rte_mbuf *m = tp->tx[i];
		unsigned int p = m ? urn_classify(&o->cfg.map, m) : 0;

		if (!m)
			continue;
		if (i >= old && (o->paused | o->listed) & 1u << p)
			put_aside(s, p, m, false);
		else
			tp->tx[n++] = m;
	}
	tp->tx_n = n;
}

/*
 * Take a burst of a list, whose priority is not paused, into frame[], which has n and room for
 * `most`. returns: frames there now
 */
static unsigned int
take_burst(struct urn_shard *s, unsigned int priority, struct rte_mbuf **frame, unsigned int n,
	   unsigned int most)
{
	struct urn_obey *o = s->obey;
	struct urn_obey_list *l = &o->list[priority];

	for (unsigned int i = 0; i < BURST && l->head != l->tail && n < most; i++) {
		struct rte_mbuf *m = l->m[l->head++ % MOST];

		/* A quantum is the time of 64 bytes. */
		if (o->held & 1u << priority)
			o->level[priority].went += m->pkt_len * o->quantum >> 22;
		frame[n++] = m;
		s->tp->held--;
	}
	if (l->head == l->tail)
		o->listed &= (uint8_t) ~(1u << priority);
	return n;
}

/*
 * Send frames of the lists whose priority is not paused, by turns, as far as there is room. Frames
 * of others, which may be many if the wire is slow, go behind them: the peer may pause again soon.
 */
static void
send_lists(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	struct urn_tp *tp = s->tp;
	struct rte_mbuf *frame[URN_TP_TX], **at;
	unsigned int n = 0, most = URN_TP_TX - tp->tx_n, p = o->turn;

	while (o->listed & ~o->paused && n < most) {
		p = (p + 1) % URN_PFC_PRIORITIES;
		if (!(o->listed & ~o->paused & 1u << p))
			continue;
		if (n == 0)
			o->turn = (uint8_t)p;
		n = take_burst(s, p, frame, n, most);
	}
	at = tp->tx + o->first;
	memmove(at + n, at, (tp->tx_n - o->first) * sizeof(*at));
	memcpy(at, frame, n * sizeof(*at));
	tp->tx_n += n;
	o->first += n;
	o->given = (uint16_t)tp->tx_n;
	tp->tx_kept = o->listed ? KEPT : 0;
}

/* Stop the sources of the priorities `stopped`; those of others go on. */
static void
stop_sources(struct urn_shard *s, uint8_t stopped)
{
	struct urn_sched *sched = &s->tp->sched;

	if (stopped & ~sched->stopped)
		URN_COUNT(s->tp, TX_STOPPED);
	sched->stopped = stopped;
	s->tp->priority_of = s->obey->cfg.map.dscp;
}

/*
 * Priorities whose sources wait: the list has its share, or is to get empty first as the priority
 * is not paused any more.
 */
static uint8_t
to_stop(const struct urn_obey *o)
{
	unsigned int set = o->listed & ~(unsigned int)o->paused;

	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++)
		set |= (unsigned int)(o->list[i].tail - o->list[i].head >= SHARE) << i;
	return (uint8_t)set;
}

void
urn_shard_hold(struct urn_shard *s)
{
	struct urn_obey *o = s->obey;
	struct urn_tp *tp = s->tp;
	unsigned int sent;
	uint8_t stopped;

	if (unlikely(s->queue < 0)) {
		stopped = __atomic_load_n(&s->sender->obey->stopped, __ATOMIC_RELAXED);
		if (unlikely(stopped | tp->sched.stopped | tp->sched.waiting))
			stop_sources(s, stopped);
		return;
	}
	if (likely(!(o->paused | o->held | o->listed | tp->sched.waiting))) {
		o->first = 0;
		return;
	}
	sent = o->given - RTE_MIN(o->given, tp->tx_old);
	o->first -= RTE_MIN(o->first, sent);
	end_pauses(s);
	take_out(s);
	send_lists(s);
	note_held(o, o->paused & o->listed, tp->now);
	if (o->held)
		URN_COUNT(tp, TX_PAUSED);
	stopped = to_stop(o);
	__atomic_store_n(&o->stopped, stopped, __ATOMIC_RELAXED);
	stop_sources(s, stopped);
}
