/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_agent.h"
#include "abi/control.h"
#include "net/l3.h"
#include "wire/pkt.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	POLL_MOVES = 64, /* messages that one poll looks at and does not send */
	POLL_TRIES = 32, /* late notices that one poll tries to write, a system call each */
};

/* A message that is to be sent. */
struct out {
	TAILQ_ENTRY(out) link;
	uint64_t since;           /* ns; first look-up of its MAC address; 0: not yet */
	uint64_t due;             /* ns; next look-up of its MAC address */
	bool wait;                /* waits for its MAC address; false: dropped if that is unknown */
	uint32_t id;              /* the id that sends it; 0: none */
	uint8_t own[16], peer[16];
	uint8_t mad[URN_MAD_BYTES];
};
TAILQ_HEAD(outs, out);

/* Events and messages of the id at a place of the machine's table. All empty: the place is free. */
struct place {
	struct urn_cm_notes notes;   /* events fetched by the id: its own, for a listener also its requests */
	struct urn_cm_note *request; /* the request that made the id, if not fetched */
	struct out *waits;           /* message that waits for its MAC address; perhaps of an earlier id */
};

struct urn_cm_agent {
	struct urn_cm_agent_config cfg;
	_Atomic uint32_t pending; /* entries of `ready`; written under `lock`, read without */
	rte_spinlock_t lock;      /* protects all fields below; taken before the neighbour table's lock */
	struct urn_cm *cm;
	uint64_t now;             /* ns; the newest time that was passed in */
	uint32_t psn;
	struct urn_counts counts;
	struct outs ready, no_mac, free;
	unsigned int no_mac_n;
	struct place *place;      /* urn_cm_max_ids() + 1 places */
	struct urn_cm_clients late; /* clients with late notices; the next in turn first */
	struct out out[URN_CM_OUT];
};

/* ---- calls of the state machine; the agent's lock is held */

/* The id's message that waits for a MAC address; NULL: none. */
static struct out *
waiting(const struct urn_cm_agent *ag, uint32_t id)
{
	struct out *o = id ? ag->place[urn_cm_place_of(ag->cm, id)].waits : NULL;

	return o && o->id == id ? o : NULL;
}

static enum urn_cm_sending
send_mad(void *ctx, uint32_t id, const uint8_t own[16], const uint8_t peer[16], const uint8_t *mad,
	 bool wait)
{
	struct urn_cm_agent *ag = ctx;
	struct out *o = wait ? waiting(ag, id) : NULL;

	/* The new message replaces the old one, which is out of date. */
	if (o) {
		memcpy(o->mad, mad, URN_MAD_BYTES);
		return URN_CM_WAITS;
	}
	o = TAILQ_FIRST(&ag->free);
	if (!o)
		return URN_CM_NO_ROOM;
	TAILQ_REMOVE(&ag->free, o, link);
	o->since = 0;
	o->wait = wait;
	o->id = id;
	memcpy(o->own, own, 16);
	memcpy(o->peer, peer, 16);
	memcpy(o->mad, mad, URN_MAD_BYTES);
	TAILQ_INSERT_TAIL(&ag->ready, o, link);
	atomic_fetch_add_explicit(&ag->pending, 1, memory_order_relaxed);
	return URN_CM_SENDS;
}

static bool
is_request(const struct urn_cm_note *n)
{
	return n->ev.type == URN_CM_EVENT_REQUEST || n->ev.type == URN_CM_EVENT_SIDR_REQUEST;
}

/* Write the notice of an event, if its pipe has room. */
static bool
notice(const struct urn_cm_note *n)
{
	struct urn_abi_event e = {
		.type = URN_EVENT_CM,
		.handle = is_request(n) ? n->ev.listen_id : n->ev.id,
		.cookie = n->ev.cookie,
	};
	ssize_t len;

	if (n->channel < 0)
		return true;
	/* Another process has the socket as well, and its flags: MSG_DONTWAIT does not depend on them. */
	do {
		len = send(n->channel, &e, sizeof(e), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (len < 0 && errno == ENOTSOCK) /* this program's own pipe */
			len = write(n->channel, &e, sizeof(e));
	} while (len < 0 && errno == EINTR);
	/* Any other error is the program's own doing: its end is closed, and nobody reads. */
	return len == (ssize_t)sizeof(e) || (len < 0 && errno != EAGAIN);
}

/* Queue a client's notice for which its pipe had no room. */
static void
put_off(struct urn_cm_agent *ag, struct urn_cm_client *c, struct urn_cm_note *n)
{
	if (TAILQ_EMPTY(&c->untold))
		TAILQ_INSERT_TAIL(&ag->late, c, late);
	TAILQ_INSERT_TAIL(&c->untold, n, untold);
	n->late = true;
}

static void
no_longer_late(struct urn_cm_agent *ag, struct urn_cm_client *c, struct urn_cm_note *n)
{
	TAILQ_REMOVE(&c->untold, n, untold);
	if (TAILQ_EMPTY(&c->untold))
		TAILQ_REMOVE(&ag->late, c, late);
	n->late = false;
}

/* List an event under its id, or, if it is a request, under its listener. */
static void
file_note(struct urn_cm_agent *ag, struct urn_cm_client *c, struct urn_cm_note *n)
{
	uint32_t own = urn_cm_place(ag->cm, &c->owner, n->ev.id), by = own;

	if (is_request(n)) {
		by = urn_cm_place(ag->cm, &c->owner, n->ev.listen_id);
		ag->place[own].request = n;
	}
	n->notes = &ag->place[by].notes;
	if (TAILQ_EMPTY(n->notes))
		TAILQ_INIT(n->notes);
	TAILQ_INSERT_TAIL(n->notes, n, of_id);
	TAILQ_INSERT_TAIL(&c->notes, n, link);
}

static bool
take_event(void *ctx, struct urn_cm_owner *o, int32_t channel, const struct urn_abi_cm_event *ev)
{
	struct urn_cm_agent *ag = ctx;
	struct urn_cm_client *c = o->ctx;
	struct urn_cm_note *n = malloc(sizeof(*n));

	/* Bounded: an id has few events, and a client a limited number of ids. */
	if (!n)
		return false;
	n->channel = channel;
	n->ev = *ev;
	n->late = false;
	file_note(ag, c, n);
	/* The notice must not overtake late ones. */
	if (!TAILQ_EMPTY(&c->untold) || !notice(n))
		put_off(ag, c, n);
	return true;
}

static void
doubt(void *ctx, const uint8_t peer[16])
{
	urn_neigh_doubt(((struct urn_cm_agent *)ctx)->cfg.neigh, peer);
}

/* The next of a client's late notices for another channel, among the first POLL_TRIES. NULL: none */
static struct urn_cm_note *
for_another(struct urn_cm_note *n, int32_t channel)
{
	for (int i = 0; i < POLL_TRIES && n; i++, n = TAILQ_NEXT(n, untold))
		if (n->channel != channel)
			return n;
	return NULL;
}

/*
 * Write late notices: clients in turn, a notice each, and no more than POLL_TRIES together, so that
 * any number of clients that do not read cost the engine and others little. Where a client's first
 * finds no room, the next for another channel may: notices of one channel stay in order.
 */
static void
tell_late(struct urn_cm_agent *ag)
{
	struct urn_cm_client *c;

	for (unsigned int i = 0; i < POLL_TRIES && (c = TAILQ_FIRST(&ag->late)); i++) {
		struct urn_cm_note *n = TAILQ_FIRST(&c->untold);

		/* The client goes to the end of the list, and leaves it with the last of its notices. */
		TAILQ_REMOVE(&ag->late, c, late);
		TAILQ_INSERT_TAIL(&ag->late, c, late);
		if (!notice(n)) {
			i++;
			n = for_another(n, n->channel);
			if (!n || !notice(n))
				continue;
		}
		no_longer_late(ag, c, n);
	}
}

static void
free_note(struct urn_cm_agent *ag, struct urn_cm_client *c, struct urn_cm_note *n)
{
	TAILQ_REMOVE(&c->notes, n, link);
	TAILQ_REMOVE(n->notes, n, of_id);
	if (is_request(n))
		ag->place[urn_cm_place(ag->cm, &c->owner, n->ev.id)].request = NULL;
	if (n->late)
		no_longer_late(ag, c, n);
	free(n);
}

/* ---- made and taken down */

struct urn_cm_agent *
urn_cm_agent_create(const struct urn_cm_agent_config *cfg)
{
	struct urn_cm_agent *ag = calloc(1, sizeof(*ag));
	struct urn_cm_config cc = {
		.max_ids = cfg->max_ids,
		.max_mtu = cfg->max_mtu,
		.ca_guid = cfg->ca_guid,
		.seed = cfg->seed,
		.send = send_mad,
		.event = take_event,
		.doubt = doubt,
		.ctx = ag,
		.stands = cfg->stands,
		.stands_ctx = cfg->stands_ctx,
	};

	if (!ag)
		return NULL;
	ag->cfg = *cfg;
	ag->cm = urn_cm_create(&cc);
	ag->place = ag->cm ? calloc((size_t)urn_cm_max_ids(ag->cm) + 1, sizeof(*ag->place)) : NULL;
	if (!ag->place) {
		urn_cm_agent_destroy(ag);
		return NULL;
	}
	rte_spinlock_init(&ag->lock);
	TAILQ_INIT(&ag->late);
	TAILQ_INIT(&ag->ready);
	TAILQ_INIT(&ag->no_mac);
	TAILQ_INIT(&ag->free);
	for (unsigned int i = 0; i < URN_CM_OUT; i++)
		TAILQ_INSERT_TAIL(&ag->free, &ag->out[i], link);
	return ag;
}

void
urn_cm_agent_destroy(struct urn_cm_agent *ag)
{
	if (!ag)
		return;
	urn_cm_destroy(ag->cm);
	free(ag->place);
	free(ag);
}

/* ---- clients */

struct urn_cm *
urn_cm_agent_lock(struct urn_cm_agent *ag)
{
	rte_spinlock_lock(&ag->lock);
	return ag->cm;
}

void
urn_cm_agent_unlock(struct urn_cm_agent *ag)
{
	rte_spinlock_unlock(&ag->lock);
}

void
urn_cm_client_init(struct urn_cm_client *c)
{
	urn_cm_owner_init(&c->owner, URN_CM_CLIENT_IDS, c);
	TAILQ_INIT(&c->notes);
	TAILQ_INIT(&c->untold);
}

void
urn_cm_client_gone(struct urn_cm_agent *ag, struct urn_cm_client *c, uint64_t now)
{
	bool more = true;

	rte_spinlock_lock(&ag->lock);
	urn_cm_owner_deaf(&c->owner);
	rte_spinlock_unlock(&ag->lock);
	while (more) {
		rte_spinlock_lock(&ag->lock);
		for (unsigned int i = 0; i < URN_CM_SLICE && !TAILQ_EMPTY(&c->notes); i++)
			free_note(ag, c, TAILQ_FIRST(&c->notes));
		/* Events go before ids, because an event is freed by looking its id up. */
		more = !TAILQ_EMPTY(&c->notes) || urn_cm_owner_goes(ag->cm, &c->owner, now);
		rte_spinlock_unlock(&ag->lock);
	}
}

int
urn_cm_client_event(struct urn_cm_agent *ag, struct urn_cm_client *c, uint32_t id,
		    struct urn_abi_cm_event *ev)
{
	struct urn_cm_note *n;

	rte_spinlock_lock(&ag->lock);
	if (id == 0)
		n = TAILQ_FIRST(&c->notes);
	else /* place 0 has none */
		n = TAILQ_FIRST(&ag->place[urn_cm_place(ag->cm, &c->owner, id)].notes);
	if (n) {
		*ev = n->ev;
		free_note(ag, c, n);
	}
	rte_spinlock_unlock(&ag->lock);
	return n ? 0 : EAGAIN;
}

/* Drop the events of an id to which no requests came: a few at most. */
static void
drop_notes(struct urn_cm_agent *ag, struct urn_cm_client *c, struct place *p)
{
	/* The analyzer doesn't see that n->notes, from which a note is taken, is this list. */
	while (!TAILQ_EMPTY(&p->notes))
		free_note(ag, c, TAILQ_FIRST(&p->notes)); // NOLINT(clang-analyzer-unix.Malloc)
	if (p->request)
		free_note(ag, c, p->request);
}

/* Destroy an id, with a slice of its events. An unfetched request goes with its listener. */
static bool
release_some(struct urn_cm_agent *ag, struct urn_cm_client *c, uint32_t id, struct place *p,
	     uint64_t now)
{
	struct urn_cm_note *n;

	for (unsigned int i = 0; i < URN_CM_SLICE && (n = TAILQ_FIRST(&p->notes)); i++) {
		uint32_t theirs = n->ev.id; // NOLINT(clang-analyzer-unix.Malloc): as in drop_notes()

		if (is_request(n)) {
			drop_notes(ag, c, &ag->place[urn_cm_place(ag->cm, &c->owner, theirs)]);
			(void)urn_cm_release(ag->cm, &c->owner, theirs, now);
		} else {
			free_note(ag, c, n);
		}
	}
	if (!TAILQ_EMPTY(&p->notes)) {
		urn_cm_unlisten(ag->cm, &c->owner, id);
		return true;
	}
	drop_notes(ag, c, p);
	(void)urn_cm_release(ag->cm, &c->owner, id, now);
	return false;
}

int
urn_cm_client_release(struct urn_cm_agent *ag, struct urn_cm_client *c, uint32_t id, uint64_t now)
{
	bool was = false, more = true;

	while (more) {
		uint32_t at;

		rte_spinlock_lock(&ag->lock);
		at = urn_cm_place(ag->cm, &c->owner, id);
		was = was || at;
		more = at && release_some(ag, c, id, &ag->place[at], now);
		rte_spinlock_unlock(&ag->lock);
	}
	return was ? 0 : ENOENT;
}

bool
urn_cm_agent_is_fetched(const struct urn_cm_agent *ag, uint32_t id)
{
	uint32_t i = urn_cm_place_of(ag->cm, id) % (urn_cm_max_ids(ag->cm) + 1);

	return !ag->place[i].request && TAILQ_EMPTY(&ag->place[i].notes);
}

bool
urn_cm_client_uses(struct urn_cm_agent *ag, const struct urn_cm_client *c, int32_t channel)
{
	bool uses;

	/* An event has the channel of its id, and goes with the id. */
	rte_spinlock_lock(&ag->lock);
	uses = urn_cm_uses(ag->cm, &c->owner, channel);
	rte_spinlock_unlock(&ag->lock);
	return uses;
}

bool
urn_cm_agent_holds_qpn(struct urn_cm_agent *ag, uint32_t qpn)
{
	bool holds;

	if (!ag)
		return false;
	rte_spinlock_lock(&ag->lock);
	holds = urn_cm_holds_qpn(ag->cm, qpn);
	rte_spinlock_unlock(&ag->lock);
	return holds;
}

/* ---- frames */

static void
set_time(struct urn_cm_agent *ag, uint64_t now)
{
	if (now > ag->now) /* engines read their clocks at different moments */
		ag->now = now;
}

void
urn_cm_agent_input(struct urn_cm_agent *ag, struct rte_mbuf *m, const uint8_t *mad, uint32_t sqpn,
		   uint64_t now)
{
	uint8_t src[16], dst[16];

	urn_l3_addresses(m, src, dst);
	/* No peer has an address of ours. */
	if (urn_neigh_is_own(ag->cfg.neigh, src) || !urn_neigh_unicast(src) ||
	    !urn_neigh_is_own(ag->cfg.neigh, dst)) {
		urn_pkt(m)->drop = URN_C_DROP_ADDRESS;
		return;
	}
	rte_spinlock_lock(&ag->lock);
	set_time(ag, now);
	urn_pkt(m)->drop = (uint8_t)urn_cm_input(ag->cm, src, dst, sqpn, mad, ag->now);
	rte_spinlock_unlock(&ag->lock);
}

bool
urn_cm_agent_pending(const struct urn_cm_agent *ag)
{
	return atomic_load_explicit(&ag->pending, memory_order_relaxed) != 0;
}

static void
done(struct urn_cm_agent *ag, struct out *o)
{
	TAILQ_INSERT_TAIL(&ag->free, o, link);
}

static struct rte_mbuf *
write_frame(struct urn_cm_agent *ag, const struct out *o, const uint8_t mac[6],
	    struct rte_mempool *pool)
{
	struct urn_path path = {.sport = URN_ROCE_SPORT_MIN | URN_QPN_GSI, .ttl = 64};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (!m)
		return NULL;
	memset(urn_pkt(m), 0, sizeof(struct urn_pkt));
	memcpy(path.smac, ag->cfg.mac, 6);
	memcpy(path.dmac, mac, 6);
	memcpy(path.sgid, o->own, 16);
	memcpy(path.dgid, o->peer, 16);
	if (urn_mad_frame(m, &path, o->mad, ag->psn++, ag->cfg.icrc) != 0) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return m;
}

/* Give a message to the adapter's own address back to the machine, without a frame. */
static void
loop(struct urn_cm_agent *ag, const struct out *o)
{
	enum urn_counter c = urn_cm_input(ag->cm, o->own, o->peer, URN_QPN_GSI, o->mad, ag->now);

	urn_counts_add(&ag->counts, URN_C_LOOPBACK);
	urn_counts_add(&ag->counts, c);
}

/* Take a message off the list of those that wait for a MAC address. */
static void
no_longer_awaits(struct urn_cm_agent *ag, struct out *o)
{
	struct out **waits = &ag->place[urn_cm_place_of(ag->cm, o->id)].waits;

	TAILQ_REMOVE(&ag->no_mac, o, link);
	ag->no_mac_n--;
	if (*waits == o)
		*waits = NULL;
}

/* Let a message wait for its MAC address. When the list is full the oldest is dropped: its sender repeats it. */
static void
await_mac(struct urn_cm_agent *ag, struct out *o)
{
	struct out *oldest = TAILQ_FIRST(&ag->no_mac);

	if (ag->no_mac_n == URN_CM_NO_MAC) {
		no_longer_awaits(ag, oldest);
		urn_counts_add(&ag->counts, URN_C_DROP_CM_TX);
		done(ag, oldest);
	}
	o->due = ag->now + URN_CM_AGAIN_NS;
	TAILQ_INSERT_TAIL(&ag->no_mac, o, link);
	ag->no_mac_n++;
	if (o->id)
		ag->place[urn_cm_place_of(ag->cm, o->id)].waits = o;
}

/*
 * Send a message, which is on no list. returns: a frame, or NULL: there is none;
 * *empty: because the pool has no buffer
 */
static struct rte_mbuf *
send_one(struct urn_cm_agent *ag, struct out *o, struct rte_mempool *pool, bool *empty)
{
	struct rte_mbuf *m = NULL;
	uint8_t mac[6];
	int rc;

	if (urn_neigh_is_own(ag->cfg.neigh, o->peer)) {
		loop(ag, o);
		done(ag, o);
		return NULL;
	}
	if (!o->since)
		o->since = ag->now;
	rc = urn_neigh_lookup(ag->cfg.neigh, o->peer, mac);
	if (rc == URN_NEIGH_UNKNOWN && o->wait && ag->now - o->since < URN_CM_MAC_NS) {
		await_mac(ag, o);
		return NULL;
	}
	if (rc == URN_NEIGH_OK) {
		m = write_frame(ag, o, mac, pool);
		*empty = !m;
	}
	if (!m)
		urn_counts_add(&ag->counts, *empty ? URN_C_NO_MBUF : URN_C_DROP_CM_TX);
	done(ag, o);
	return m;
}

/* The next message to send, taken off its list; NULL: none. */
static struct out *
next_out(struct urn_cm_agent *ag)
{
	struct out *o = TAILQ_FIRST(&ag->ready);

	if (o) {
		TAILQ_REMOVE(&ag->ready, o, link);
		atomic_fetch_sub_explicit(&ag->pending, 1, memory_order_relaxed);
		return o;
	}
	o = TAILQ_FIRST(&ag->no_mac);
	if (!o || o->due > ag->now)
		return NULL;
	no_longer_awaits(ag, o);
	return o;
}

unsigned int
urn_cm_agent_poll(struct urn_cm_agent *ag, uint64_t now, struct rte_mempool *pool,
		  struct rte_mbuf **out, unsigned int max, struct urn_counters *c)
{
	unsigned int n = 0, moves = 0;
	bool empty = false;
	struct out *o;

	rte_spinlock_lock(&ag->lock);
	set_time(ag, now);
	urn_cm_tick(ag->cm, ag->now);
	while (n < max && moves < POLL_MOVES && !empty && (o = next_out(ag))) {
		out[n] = send_one(ag, o, pool, &empty);
		if (out[n])
			n++;
		else
			moves++;
	}
	tell_late(ag);
	urn_cm_counters(ag->cm, c);
	urn_counts_move(&ag->counts, c);
	rte_spinlock_unlock(&ag->lock);
	return n;
}
