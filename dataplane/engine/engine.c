/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop. Order of one turn: control calls, messages of other engines, time, doorbells, transmit,
 * receive, events. Requests that a program posted go out before anything else is done, and received
 * packets are complete when the program looks at its queues. The TSC is read once.
 */
#include "engine/engine.h"

#include "abi/clock.h"
#include "stage.h"
#include "transport/frame.h"
#include "transport/sched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>

#define NEIGH_PERIOD_NS 1000000ull  /* ns between looks at the neighbour table */
#define LINK_PERIOD_NS 5000000ull   /* ns between looks at the link */
#define STUCK_NS 100000000ull       /* ns: a port that takes nothing for so long loses frames */
#define SURE_NS 10000000ull         /* ns since a turn during which another core's TSC is trusted */
#define STOOD_NS 2000000ull         /* ns between turns: after so long the engine was not run, for it sleeps for less */
#define WORKER_TURNS 32             /* empty turns until a look whether a worker needs this core */

_Static_assert(URN_PORT_PRIV == URN_PKT_PRIV, "ports' mbufs are the dataplane's: urn_pkt_fresh()");

struct urn_engine *
urn_engine_create(unsigned int index, const struct urn_engine_config *cfg, const char *name)
{
	struct urn_engine *e = calloc(1, sizeof(*e));
	char ring[RTE_RING_NAMESIZE];

	if (!e)
		return NULL;
	e->index = index;
	e->cfg = *cfg;
	if (e->cfg.empty_polls == 0)
		e->cfg.empty_polls = 1024;
	if (e->cfg.sleep_us == 0)
		e->cfg.sleep_us = 100;
	if (e->cfg.sleep_us > 1000)
		e->cfg.sleep_us = 1000;
	e->tsc = e->tsc_base = rte_rdtsc();
	e->tsc_mult = (uint64_t)((1e9 / (double)rte_get_tsc_hz()) * 4294967296.0);
	pthread_mutex_init(&e->lock, NULL);
	STAILQ_INIT(&e->mails);
	e->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	snprintf(ring, sizeof(ring), "urn_%s_%u", name, index);
	e->ring = rte_ring_create_elem(ring, sizeof(struct urn_xmsg), URN_ENGINE_RING, SOCKET_ID_ANY,
				       RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
	e->sleep_fd = epoll_create1(EPOLL_CLOEXEC);
	if (e->wake_fd < 0 || !e->ring || e->sleep_fd < 0 ||
	    urn_engine_watch(e, e->wake_fd, NULL)) {
		urn_engine_destroy(e);
		return NULL;
	}
	return e;
}

void
urn_engine_destroy(struct urn_engine *e)
{
	if (!e)
		return;
	if (e->ring) {
		struct urn_xmsg x;

		while (rte_ring_sc_dequeue_elem(e->ring, &x, sizeof(x)) == 0)
			if (x.kind == URN_X_RX || x.kind == URN_X_TX)
				rte_pktmbuf_free(x.m);
		rte_ring_free(e->ring);
	}
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	if (e->sleep_fd >= 0)
		close(e->sleep_fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* Time in ns since the engine's time began. */
static uint64_t
time_at(const struct urn_engine *e, uint64_t tsc)
{
	__extension__ typedef unsigned __int128 wide;

	if (unlikely(e->cfg.clock))
		return *e->cfg.clock;
	/* 64 by 64 bits: years of cycles times 32 fractional bits do not fit 64. */
	return (uint64_t)((wide)(tsc - __atomic_load_n(&e->tsc_base, __ATOMIC_RELAXED)) * e->tsc_mult >> 32) + 1;
}

/*
 * The time of a turn, ns: not before that of the last turn, because timers and differences of times
 * rely on that. The TSC does go back where a thread moves to a core with a lower count, or a
 * machine is stopped and moved: then time goes on from where it was.
 */
static uint64_t
time_of_turn(struct urn_engine *e)
{
	uint64_t tsc = rte_rdtsc();

	if (unlikely((int64_t)(tsc - e->tsc) < 0))
		__atomic_store_n(&e->tsc_base, e->tsc_base + tsc - e->tsc, __ATOMIC_RELAXED);
	/* Pairs with the acquire of other threads: with this tsc they see this base. */
	__atomic_store_n(&e->tsc, tsc, __ATOMIC_RELEASE);
	return time_at(e, tsc);
}

struct ask {
	struct urn_engine *e;
	uint64_t now;
};

/* Runs in the engine's thread, or in its place. */
static void
tell_time(void *arg)
{
	struct ask *ask = arg;

	ask->now = time_of_turn(ask->e);
}

/*
 * The TSC of this thread's core is trusted as long as it lies close behind the engine's last turn.
 * Otherwise this core's count is lower or higher than that of the engine's core, or the engine has
 * not turned for a while: only the engine can tell which. So a timer that starts at the returned
 * time neither has run out already nor runs too long.
 */
uint64_t
urn_engine_now(struct urn_engine *e)
{
	uint64_t turned = __atomic_load_n(&e->turned, __ATOMIC_RELAXED), now = time_at(e, rte_rdtsc());
	struct ask ask = {.e = e};

	if (likely(now - turned <= SURE_NS))
		return now;
	urn_engine_call(e, tell_time, &ask);
	return ask.now;
}

uint64_t
urn_engine_clock(void *ctx)
{
	const struct urn_engine *e = ctx;
	uint64_t now = time_at(e, rte_rdtsc());

	/* The thread may have moved to a core with a lower count since the turn began. */
	return (int64_t)(now - e->turned) < 0 ? e->turned : now;
}

int
urn_engine_add(struct urn_engine *e, struct urn_shard *s)
{
	if (e->shards_n == URN_MAX_SHARDS)
		return ENOSPC;
	e->shard[e->shards_n++] = s;
	return 0;
}

void
urn_engine_remove(struct urn_engine *e, struct urn_shard *s)
{
	for (unsigned int i = 0; i < e->shards_n; i++) {
		if (e->shard[i] == s) {
			e->shard[i] = e->shard[--e->shards_n];
			return;
		}
	}
}

/* ---- transmit */

static void
free_tx(struct urn_tp *tp, unsigned int n)
{
	rte_pktmbuf_free_bulk(tp->tx, n);
	tp->tx_n -= n;
	memmove(tp->tx, tp->tx + n, tp->tx_n * sizeof(tp->tx[0]));
}

/* Send through the engine that has a queue of the port. returns: number of frames given */
static unsigned int
send_by_other(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;
	unsigned int n = 0;

	while (n < tp->tx_n) {
		struct urn_xmsg x = {.kind = URN_X_TX, .shard = s->sender, .m = tp->tx[n]};

		if (!urn_engine_put(s->sender->engine, &x))
			break;
		n++;
	}
	return n;
}

/* The port takes nothing: keep the frames for a while, then drop them. */
static void
stuck(struct urn_shard *s, uint64_t now)
{
	if (s->stuck_since == 0) {
		s->stuck_since = now;
	} else if (now - s->stuck_since > STUCK_NS) {
		URN_COUNT_N(s->tp, DROP_TX, s->tp->tx_n);
		free_tx(s->tp, s->tp->tx_n);
		s->stuck_since = 0;
	}
}

/* The port took n frames only: keep the others. returns: bytes of the others */
static __attribute__((noinline)) uint64_t
keep_rest(struct urn_shard *s, unsigned int n)
{
	struct urn_tp *tp = s->tp;
	uint64_t bytes = 0;

	for (unsigned int i = n; i < tp->tx_n; i++)
		bytes += tp->tx[i]->pkt_len;
	tp->tx_n -= n;
	memmove(tp->tx, tp->tx + n, tp->tx_n * sizeof(tp->tx[0]));
	if (n == 0)
		stuck(s, tp->now);
	return bytes;
}

/* Give the frames to the engine that has a queue of the port; that engine counts them. */
static __attribute__((noinline)) void
flush_by_other(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;
	unsigned int n = send_by_other(s);

	if (n)
		s->stuck_since = 0;
	if (n < tp->tx_n)
		keep_rest(s, n);
	else
		tp->tx_n = 0;
	tp->tx_old = tp->tx_n;
}

static inline __attribute__((always_inline)) void
flush(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;
	uint64_t bytes = 0;
	unsigned int n;

	urn_flow_emit_last(tp); /* the frame may be among these */
	if (unlikely(s->tag.send))
		urn_shard_tag(s);
	if (unlikely(s->obey != NULL))
		urn_shard_hold(s);
	if (tp->tx_n == 0) { /* the frames that the last turn left may have been put aside */
		tp->tx_old = 0;
		s->stuck_since = 0;
		return;
	}
	if (unlikely(s->queue < 0)) {
		flush_by_other(s);
		return;
	}
	if (unlikely(s->across != NULL))
		urn_shard_seal_seen(s);
	for (unsigned int i = 0; i < tp->tx_n; i++)
		bytes += tp->tx[i]->pkt_len;
	n = urn_port_tx(s->port, (uint16_t)s->queue, tp->tx, (uint16_t)tp->tx_n);
	if (likely(n))
		s->stuck_since = 0;
	if (unlikely(n < tp->tx_n))
		bytes -= keep_rest(s, n);
	else
		tp->tx_n = 0;
	URN_COUNT_N(tp, TX_PACKETS, n);
	URN_COUNT_N(tp, TX_BYTES, bytes);
	tp->tx_old = tp->tx_n;
}

void
urn_shard_flush(struct urn_shard *s)
{
	flush(s);
}

/* ---- receive */

static void
send_or_free(struct urn_tp *tp, struct rte_mbuf *m)
{
	if (tp->tx_n < URN_TP_TX) {
		tp->tx[tp->tx_n++] = m;
		return;
	}
	URN_COUNT(tp, DROP_OTHER);
	rte_pktmbuf_free(m);
}

/* Give a MAD for QP1 to the agent of its management class. returns: true when m is now a reply to be sent */
static int
take_mad(struct urn_shard *s, struct rte_mbuf *m)
{
	const uint8_t *mad = NULL;
	uint32_t sqpn;
	int drop = urn_mad_find(m, &mad, &sqpn);

	if (drop == 0 && s->cm && ((const struct urn_mad_hdr *)mad)->mgmt_class == URN_MAD_CLASS_CM)
		urn_cm_agent_input(s->cm, m, mad, sqpn, s->tp->now);
	else if (drop == 0 && s->learn)
		return urn_learn_input(s->learn, m, s->tp->now);
	else
		urn_pkt(m)->drop = (uint8_t)(drop ? drop : URN_C_DROP_MAD_CLASS);
	return 0;
}

/* returns: true when m is now a reply to be sent */
static int
take_other(struct urn_shard *s, struct rte_mbuf *m)
{
	if (urn_pkt(m)->kind == URN_FRAME_ROCE)
		return take_mad(s, m);
	return urn_neigh_input(s->neigh, m, s->tp->now);
}

/* Take ARP, neighbour discovery, echo, and packets for QP1. */
static void
take_others(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;

	for (unsigned int i = 0; i < tp->other_n; i++) {
		struct rte_mbuf *m = tp->other[i];
		int reply = take_other(s, m);

		tp->c.v[urn_pkt(m)->drop]++;
		if (reply)
			send_or_free(tp, m);
		else
			rte_pktmbuf_free(m);
	}
	tp->other_n = 0;
}

static unsigned int
receive(struct urn_shard *s)
{
	struct rte_mbuf *m[URN_TP_BURST];
	unsigned int n, left;

	if (s->queue < 0)
		return 0;
	n = urn_port_rx(s->port, (uint16_t)s->queue, m, URN_TP_BURST);
	if (n == 0)
		return 0;
	left = unlikely(s->obey != NULL) ? urn_shard_take_control(s, m, n) : n;
	if (unlikely(s->tag.only))
		left = urn_shard_untag(s, m, left);
	if (likely(left))
		urn_tp_rx(s->tp, m, left, false);
	return n;
}

/*
 * Handle packets of a burst that are not for our QPs: ARP, neighbour discovery, ICMP, MADs, other
 * engines' packets.
 */
static void
after_receive(struct urn_shard *s)
{
	if (unlikely(s->tp->other_n))
		take_others(s);
	if (unlikely(s->tp->handover_n))
		urn_shard_hand_over(s);
}

/* ---- slow things, looked at every turn by one comparison */

/*
 * Look at the link. When it goes up or down, tell every client of the adapter, and announce our
 * addresses to the network. The program may poll the port's link as well, hence link_up of our own.
 * The event carries the time of the look before: sessions tell how late they noticed (FO-11).
 */
static void
look_at_link(struct urn_shard *s)
{
	uint64_t before = s->link_seen;
	struct urn_tp *tp = s->tp;

	s->link_due = tp->now + LINK_PERIOD_NS;
	s->link_seen = urn_clock_ns();
	urn_port_poll_link(s->port);
	if (s->port->link_up == s->link_up)
		return;
	s->link_up = s->port->link_up;
	if (s->link_up)
		urn_shard_announce(s);
	for (struct urn_client_shard *c = LIST_FIRST(&s->clients); c; c = LIST_NEXT(c, link))
		urn_tp_event(tp, s->link_up ? URN_EVENT_PORT_ACTIVE : URN_EVENT_PORT_ERR, 0, before,
			     &c->share);
}

/* Tell the QPs here about changed features of their peers. */
static __attribute__((cold, noinline)) void
tell_peers(struct urn_shard *s)
{
	struct urn_learn_news news[URN_TP_BURST];
	unsigned int n = urn_learn_news(s->learn, &s->learn_seen, news, URN_TP_BURST);

	for (unsigned int i = 0; i < n; i++) {
		urn_tp_peer_learned(s->tp, news[i].gid, news[i].features);
		urn_tp_peer_line(s->tp, news[i].gid, news[i].line);
	}
}

static void
poll_peers(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;
	unsigned int n = urn_learn_poll(s->learn, tp->now, tp->cfg.pool, tp->tx + tp->tx_n,
				       URN_TP_TX - tp->tx_n);

	tp->tx_n += n;
	URN_COUNT_N(tp, LINK_REQ_TX, n);
}

static __attribute__((cold, noinline)) void
poll_cm(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;

	tp->tx_n += urn_cm_agent_poll(s->cm, tp->now, tp->cfg.pool, tp->tx + tp->tx_n,
				      URN_TP_TX - tp->tx_n, &tp->c);
}

/* Look at the tables of the adapter: neighbours, and features of peers. */
static void
tend_tables(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;
	uint32_t gen = urn_neigh_generation(s->neigh);

	if (s->learn && unlikely(urn_learn_generation(s->learn) != s->learn_seen))
		tell_peers(s);

	if (unlikely(gen != s->neigh_gen)) {
		s->neigh_gen = gen;
		urn_tp_neigh_changed(tp);
	}
	if (!s->first)
		return;
	if (s->cm && unlikely(tp->now >= s->neigh_due || urn_cm_agent_pending(s->cm)))
		poll_cm(s);
	if (tp->now < s->neigh_due)
		return;
	if (tp->now >= s->link_due)
		look_at_link(s);
	s->neigh_due = tp->now + NEIGH_PERIOD_NS;
	tp->tx_n += urn_neigh_poll(s->neigh, tp->now, tp->cfg.pool, tp->tx + tp->tx_n,
				   URN_TP_TX - tp->tx_n);
	if (s->learn)
		poll_peers(s);
}

/* True when there are completions, events or clients to look at: one branch for all, in each turn.
 */
static inline bool
has_rare(const struct urn_shard *s)
{
	const struct urn_tp *tp = s->tp;

	return ((uintptr_t)tp->touched | tp->event_n | *s->msg_untold | *s->am_untold |
		(uintptr_t)TAILQ_FIRST(&s->untold) | (uintptr_t)TAILQ_FIRST(&s->late_events) |
		(uintptr_t)TAILQ_FIRST(&s->late_cqes) | (uintptr_t)TAILQ_FIRST(&s->walk) |
		(uintptr_t)TAILQ_FIRST(&s->leaving) |
		(uintptr_t)__atomic_load_n(&s->broken, __ATOMIC_RELAXED)) != 0;
}

static __attribute__((noinline)) unsigned int
tend_rare(struct urn_shard *s)
{
	unsigned int n = 0;

	if (!TAILQ_EMPTY(&s->late_cqes))
		urn_shard_give_late(s);
	if (__atomic_load_n(&s->broken, __ATOMIC_RELAXED) || !TAILQ_EMPTY(&s->walk))
		n = urn_shard_walk_broken(s);
	if (!TAILQ_EMPTY(&s->leaving))
		urn_shard_tell_left(s);
	urn_shard_notify(s);
	return n;
}

static unsigned int
turn(struct urn_shard *s, uint64_t now)
{
	struct urn_tp *tp = s->tp;
	unsigned int n = 0, rung;

	/* Before the QPs send: their connections belong to others now. */
	if (unlikely(s->ends && urn_engine_ends_due(s->ends, tp->cfg.engine)))
		s->ends->end(s->ends, tp);
	n += urn_tp_turn(tp, now);
	URN_STAGE(DOORBELL);
	rung = urn_shard_doorbells(s);
	tp->quiet = !s->came && !rung;
	URN_STAGE(REQUEST);
	if (urn_sched_any(&tp->sched))
		n += urn_tp_tx(tp);
	URN_STAGE(PORT_TX);
	flush(s);
	URN_STAGE(PORT_RX);
	s->came = receive(s);
	URN_STAGE(ENGINE);
	after_receive(s);
	tend_tables(s);
	if (unlikely(has_rare(s)))
		n += tend_rare(s);
	n += rung + s->came;
	return n;
}

/*
 * Let a worker run when there is nothing to do but wait for foreign memory, and the worker has no
 * core but this one: its copy takes a microsecond, a time slice used up by polling takes thousands.
 */
static __attribute__((cold, noinline)) void
wait_for_workers(struct urn_engine *e)
{
	for (unsigned int i = 0; i < e->shards_n; i++) {
		if (!urn_memx_crowded(e->shard[i]->memx))
			continue;
		sched_yield();
		break;
	}
	e->waited = 0;
}

static __attribute__((cold, noinline)) void
stood(struct urn_engine *e, uint64_t now)
{
	for (unsigned int i = 0; i < e->shards_n; i++)
		urn_tp_stood(e->shard[i]->tp, now);
	for (unsigned int i = 0; i < e->shards_n; i++)
		urn_shard_stood(e->shard[i], now - e->turned);
}

URN_FAST unsigned int
urn_engine_turn(struct urn_engine *e, uint64_t now)
{
	unsigned int n = 0;

	/* The time since then belongs to the last turn, together with what the polling thread did in between. */
	if (e->worked)
		__atomic_store_n(&e->busy_ns, e->busy_ns + (now - e->turned), __ATOMIC_RELAXED);
	if (unlikely(now - e->turned > STOOD_NS))
		stood(e, now);
	__atomic_store_n(&e->turned, now, __ATOMIC_RELAXED);
	URN_STAGE(ENGINE);
	urn_engine_mail(e);
	if (unlikely(now >= e->hear_due))
		urn_engine_hear(e, now);
	n += urn_engine_take(e);
	for (unsigned int i = 0; i < e->shards_n; i++)
		n += turn(e->shard[i], now);
	e->waited = n ? 0 : e->waited + 1;
	if (unlikely(e->waited >= WORKER_TURNS))
		wait_for_workers(e);
	__atomic_store_n(&e->loops, e->loops + 1, __ATOMIC_RELAXED);
	e->worked = n > 0;
	return n;
}

void
urn_engine_usage(const struct urn_engine *e, struct urn_engine_usage *out)
{
	uint64_t tsc = rte_rdtsc(), last = __atomic_load_n(&e->tsc, __ATOMIC_ACQUIRE);

	out->turns = __atomic_load_n(&e->loops, __ATOMIC_RELAXED);
	out->busy_ns = __atomic_load_n(&e->busy_ns, __ATOMIC_RELAXED);
	/* The engine is not asked: on a core with a lower count the time of the last turn is taken. */
	out->ns = (int64_t)(tsc - last) < 0 ? __atomic_load_n(&e->turned, __ATOMIC_RELAXED)
					    : time_at(e, tsc);
}

URN_FAST unsigned int
urn_engine_poll(struct urn_engine *e)
{
	return urn_engine_turn(e, time_of_turn(e));
}
