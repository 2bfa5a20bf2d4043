/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An entry is on exactly one list: the list tells why the entry exists and, by its order,
 * which entry goes first when room is needed. Entries that are being asked for have a list for
 * each count of requests sent: all on one list wait for the same time, so appending keeps
 * the list sorted by due time, and poll looks at heads only.
 */
#include "net/neigh_priv.h"
#include "net/l3.h"
#include "net/ra.h"
#include "wire/build.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_random.h>

/* ---- the table; its lock is held */

static void
move(struct urn_neigh *nb, struct entry *e, unsigned int to)
{
	urn_table_move(&nb->table, &e->t, to);
}

/* The entry with the most requests sent; any: also one whose MAC is known. NULL: none. */
static struct entry *
first_asked(struct urn_neigh *nb, bool any)
{
	struct urn_table_entry *t;

	for (unsigned int i = URN_NEIGH_TRIES + 1; i-- > 0;)
		TAILQ_FOREACH(t, &nb->table.list[FRESH + i], link)
			if (any || ((struct entry *)t)->state == URN_NEIGH_INCOMPLETE)
				return (struct entry *)t;
	return NULL;
}

/* The entry that makes room for a wanted (or static) one. */
static struct entry *
victim(struct urn_neigh *nb)
{
	struct entry *e = urn_table_first(&nb->table, LEARNT);

	if (e == NULL)
		e = urn_table_first(&nb->table, FAILED);
	if (e == NULL)
		e = first_asked(nb, false);
	if (e == NULL)
		e = urn_table_first(&nb->table, ACTIVE);
	return e != NULL ? e : first_asked(nb, true); /* all are being proved anew */
}

/* Make an entry on `list`; the caller sets state and MAC. NULL: no room. */
static struct entry *
add(struct urn_neigh *nb, const uint8_t gid[16], enum list list)
{
	struct entry *e = urn_table_first(&nb->table, FREE);

	if (list == LEARNT && (e == NULL || nb->table.count[LEARNT] >= URN_NEIGH_LEARNT)) {
		e = urn_table_first(&nb->table, LEARNT);
		if (e == NULL)
			return NULL;
	} else if (e == NULL) {
		e = victim(nb);
	}
	if (e->t.list != FREE) {
		e->state = URN_NEIGH_NONE;
		urn_table_take(&nb->table, &e->t);
	}
	e->tries = 0;
	e->contested = false;
	urn_table_put(&nb->table, &e->t, gid, list);
	return e;
}

/* ---- states; the table's lock is held */

/* Begin to ask. tries: requests that count as sent already, so that fewer are left. */
static void
start_asking(struct urn_neigh *nb, struct entry *e, unsigned int tries)
{
	e->tries = (uint8_t)tries;
	move(nb, e, FRESH);
}

/*
 * The MAC of an entry in use is doubted: another station claims the address, or the peer is
 * silent. The MAC is used while it is proved: first its holder is asked, and only without an
 * answer everybody.
 */
static void
doubt(struct urn_neigh *nb, struct entry *e)
{
	if (e->t.list != ACTIVE || nb->now - e->confirmed < URN_NEIGH_CALM_NS)
		return; /* the address is being asked for already, or was proved just now */
	e->state = URN_NEIGH_STALE;
	start_asking(nb, e, 0);
}

/*
 * Give an entry the MAC that a message told. The generation changes only for a new MAC,
 * and only for entries that a user here looked up: otherwise a flood
 * of requests to us would make every queue pair look up again.
 */
static void
set_mac(struct urn_neigh *nb, struct entry *e, const uint8_t mac[6], enum urn_neigh_state state)
{
	int had = e->state == URN_NEIGH_REACHABLE || e->state == URN_NEIGH_STALE;
	int news = !had || memcmp(e->mac, mac, 6) != 0;

	memmove(e->mac, mac, 6); /* mac may be e->mac: then the old MAC was proved */
	e->state = (uint8_t)state;
	e->confirmed = nb->now;
	if (e->t.list == LEARNT)
		move(nb, e, LEARNT); /* to the end: the newest again */
	else if (state == URN_NEIGH_REACHABLE || !had)
		move(nb, e, ACTIVE);
	if (news && e->t.list != LEARNT)
		urn_neigh_changed(nb);
}

/* Result of a lookup that found an entry. */
static int
lookup_entry(struct urn_neigh *nb, struct entry *e, uint8_t mac[6])
{
	switch (e->t.list) {
	case FAILED:
		if (nb->now < e->due)
			return URN_NEIGH_FAIL;
		e->state = URN_NEIGH_INCOMPLETE;
		start_asking(nb, e, URN_NEIGH_TRIES - 1);
		return URN_NEIGH_UNKNOWN;
	case LEARNT:
	case ACTIVE:
		if (e->contested) { /* neither MAC is believed until somebody answers */
			e->contested = false;
			e->state = URN_NEIGH_INCOMPLETE;
			start_asking(nb, e, 0);
			break;
		}
		if (nb->now - e->confirmed > URN_NEIGH_REACHABLE_NS)
			e->state = URN_NEIGH_STALE;
		if (e->state == URN_NEIGH_STALE)
			start_asking(nb, e, 0);
		else
			move(nb, e, ACTIVE); /* to the end: used last */
		break;
	default:
		break;
	}
	if (e->state == URN_NEIGH_INCOMPLETE)
		return URN_NEIGH_UNKNOWN;
	memcpy(mac, e->mac, 6);
	return URN_NEIGH_OK;
}

static void
set_time(struct urn_neigh *nb, uint64_t now)
{
	if (now > nb->now) /* engines read their clocks at different moments */
		nb->now = now;
}

/* ---- public */

struct urn_neigh *
urn_neigh_create(const uint8_t mac[6], const uint8_t (*own)[16], unsigned int n)
{
	static const uint8_t unset[16];
	struct urn_neigh *nb;

	if (n > URN_NEIGH_OWN || !urn_l3_mac_ok(mac)) {
		errno = EINVAL;
		return NULL;
	}
	nb = calloc(1, sizeof(*nb));
	if (nb == NULL)
		return NULL;
	memcpy(nb->mac, mac, 6);
	for (unsigned int i = 0; i < n; i++)
		if (memcmp(own[i], unset, 16) != 0)
			memcpy(nb->own[nb->n_own++], own[i], 16);
	rte_spinlock_init(&nb->lock);
	if (urn_table_init(&nb->table, URN_NEIGH_ENTRIES, sizeof(struct entry), LISTS, (uint32_t)rte_rand()) != 0) {
		free(nb);
		return NULL;
	}
	return nb;
}

void
urn_neigh_destroy(struct urn_neigh *nb)
{
	if (nb != NULL)
		urn_table_fini(&nb->table);
	free(nb);
}

int
urn_neigh_add_static(struct urn_neigh *nb, const uint8_t gid[16], const uint8_t mac[6])
{
	struct entry *e;
	int err = 0;

	if (!urn_l3_mac_ok(mac) || !urn_neigh_unicast(gid) || urn_neigh_is_own(nb, gid))
		return EINVAL;
	rte_spinlock_lock(&nb->lock);
	e = urn_table_find(&nb->table, gid);
	if ((e == NULL || e->t.list != STATIC) && nb->table.count[STATIC] >= URN_NEIGH_STATIC) {
		err = ENOSPC;
	} else {
		if (e == NULL)
			e = add(nb, gid, STATIC);
		else
			move(nb, e, STATIC);
		memcpy(e->mac, mac, 6);
		e->state = URN_NEIGH_REACHABLE;
		urn_neigh_changed(nb);
	}
	rte_spinlock_unlock(&nb->lock);
	return err;
}

int
urn_neigh_lookup(struct urn_neigh *nb, const uint8_t gid[16], uint8_t mac[6])
{
	const uint8_t *hop;
	struct entry *e;
	int rc;

	if (urn_neigh_is_own(nb, gid)) {
		memcpy(mac, nb->mac, 6);
		return URN_NEIGH_OK;
	}
	if (urn_gid_multicast_mac(mac, gid))
		return URN_NEIGH_OK;
	if (!urn_neigh_unicast(gid))
		return URN_NEIGH_FAIL;

	rte_spinlock_lock(&nb->lock);
	e = urn_neigh_entry_for(nb, gid, &hop);
	if (hop == NULL) {
		rc = URN_NEIGH_NO_ROUTE;
	} else if (e != NULL) {
		rc = lookup_entry(nb, e, mac);
	} else if (urn_neigh_source(nb, hop) == NULL) {
		rc = URN_NEIGH_FAIL; /* the adapter has no address of the GID's family to ask from */
	} else {
		e = add(nb, hop, FRESH);
		e->state = URN_NEIGH_INCOMPLETE;
		rc = URN_NEIGH_UNKNOWN;
	}
	rte_spinlock_unlock(&nb->lock);
	return rc;
}

void
urn_neigh_doubt(struct urn_neigh *nb, const uint8_t gid[16])
{
	const uint8_t *hop;
	struct entry *e;

	rte_spinlock_lock(&nb->lock);
	e = urn_neigh_entry_for(nb, gid, &hop);
	if (e != NULL)
		doubt(nb, e);
	rte_spinlock_unlock(&nb->lock);
}

uint32_t
urn_neigh_generation(const struct urn_neigh *nb)
{
	return atomic_load_explicit(&nb->gen, memory_order_relaxed);
}

/* True when the entry's MAC is known, proved or doubted. */
static bool
has_mac(const struct entry *e)
{
	return e->state == URN_NEIGH_REACHABLE || e->state == URN_NEIGH_STALE;
}

/*
 * A message claims another MAC for an entry whose MAC is known. Nothing proves the claim, so it is
 * refused: where the entry is in use the claim only raises a doubt, and where it is not, the
 * address is asked for before its first use. The claim counts as an answer once everybody was
 * asked; while only the holder is asked, only the holder may answer. returns: true when the claim
 * was refused
 */
static bool
claimed(struct urn_neigh *nb, struct entry *e, const uint8_t mac[6], bool answer)
{
	if (answer && e->t.list >= FIRST_WAIT && e->tries >= 2) {
		set_mac(nb, e, mac, URN_NEIGH_REACHABLE);
		return false;
	}
	if (e->t.list == LEARNT)
		e->contested = true;
	else
		doubt(nb, e);
	return true;
}

/*
 * An advertisement for an address that is known or asked for (RFC 4861, 7.2.5). returns: true when
 * it claims another MAC, and is refused
 */
static bool
take_advert(struct urn_neigh *nb, struct entry *e, const struct urn_l3_msg *msg)
{
	bool had = has_mac(e);
	bool same = had && (!msg->has_mac || memcmp(e->mac, msg->mac, 6) == 0);

	if (!had && !msg->has_mac)
		return false;
	if (had && !same)
		return claimed(nb, e, msg->mac, msg->override && msg->solicited);
	if (!same || msg->solicited) /* unsolicited and the same: proves nothing */
		set_mac(nb, e, same ? e->mac : msg->mac,
			msg->solicited ? URN_NEIGH_REACHABLE : URN_NEIGH_STALE);
	return false;
}

/*
 * Learn from a message. Answers and announcements change existing entries, and
 * add none; a request for one of our addresses adds its sender, which is
 * about to talk to us. returns: true when the message claims another MAC for an address whose
 * MAC is known, and is refused
 */
static bool
learn(struct urn_neigh *nb, const struct urn_l3_msg *msg, int to_us)
{
	const uint8_t *gid = msg->kind == URN_L3_ADVERT ? msg->target : msg->src;
	struct entry *e = urn_table_find(&nb->table, gid);

	if (msg->kind != URN_L3_ADVERT && !msg->has_src)
		return false;
	if (e != NULL && e->t.list == STATIC)
		return msg->has_mac && memcmp(e->mac, msg->mac, 6) != 0;
	if (msg->kind == URN_L3_ADVERT)
		return e != NULL && take_advert(nb, e, msg);
	if (!msg->has_mac)
		return false;
	if (e == NULL && to_us && msg->kind != URN_L3_ARP_REPLY)
		e = add(nb, gid, LEARNT);
	if (e == NULL)
		return false;
	if (has_mac(e) && memcmp(e->mac, msg->mac, 6) != 0)
		return claimed(nb, e, msg->mac, msg->kind == URN_L3_ARP_REPLY);
	set_mac(nb, e, msg->mac, URN_NEIGH_REACHABLE);
	return false;
}

/* True when another station claims an address of ours. */
static int
conflict(const struct urn_neigh *nb, const struct urn_l3_msg *msg)
{
	const uint8_t *claimed = msg->kind == URN_L3_ADVERT ? msg->target : msg->src;

	if (msg->kind == URN_L3_ECHO)
		return urn_neigh_is_own(nb, msg->src);
	return (msg->has_src || msg->kind == URN_L3_ADVERT) && urn_neigh_is_own(nb, claimed);
}

/* Take a router advertisement, where they are accepted. */
static void
input_ra(struct urn_neigh *nb, struct rte_mbuf *m, uint64_t now)
{
	rte_spinlock_lock(&nb->lock);
	set_time(nb, now);
	urn_pkt(m)->drop = (uint8_t)urn_neigh_take_ra(nb, m);
	rte_spinlock_unlock(&nb->lock);
}

int
urn_neigh_input(struct urn_neigh *nb, struct rte_mbuf *m, uint64_t now)
{
	struct urn_pkt *p = urn_pkt(m);
	struct urn_l3_msg msg;
	int to_us;

	if (nb->ra_on && urn_ra_is(m)) {
		input_ra(nb, m, now);
		return 0;
	}
	p->drop = (uint8_t)urn_l3_read(m, &msg);
	if (p->drop == URN_C_DROP_NEIGH || p->drop == URN_C_DROP_NOT_ROCE)
		return 0;
	if (msg.has_mac && memcmp(msg.mac, nb->mac, 6) == 0)
		return 0; /* our own frame came back */
	if (conflict(nb, &msg)) {
		p->drop = URN_C_NEIGH_CONFLICT;
		return 0;
	}
	to_us = urn_neigh_is_own(nb, msg.kind == URN_L3_ECHO ? msg.dst : msg.target);

	if (msg.kind != URN_L3_ECHO) {
		rte_spinlock_lock(&nb->lock);
		set_time(nb, now);
		if (learn(nb, &msg, to_us))
			p->drop = URN_C_NEIGH_CLAIM;
		rte_spinlock_unlock(&nb->lock);
	}
	if (msg.kind == URN_L3_ARP_REPLY || msg.kind == URN_L3_ADVERT)
		return 0;
	if (!to_us) {
		if (msg.kind == URN_L3_ECHO)
			p->drop = URN_C_DROP_ADDRESS;
		return 0;
	}
	if (!urn_l3_reply(m, &msg, nb->mac)) {
		p->drop = URN_C_NO_MBUF;
		return 0;
	}
	return 1;
}

/* The next entry: unanswered ones first, so that new ones can't starve them. */
static struct entry *
first_due(struct urn_neigh *nb)
{
	struct entry *e;

	for (unsigned int i = URN_NEIGH_TRIES; i-- > 0;) {
		e = urn_table_first(&nb->table, FIRST_WAIT + i);
		if (e != NULL && e->due <= nb->now)
			return e;
	}
	return urn_table_first(&nb->table, FRESH);
}

/* Write the request that is due; the entry waits for the answer. */
static void
ask(struct urn_neigh *nb, struct entry *e, struct rte_mbuf *m)
{
	static const uint64_t wait[URN_NEIGH_TRIES] = URN_NEIGH_WAITS_NS;
	bool holder = e->state == URN_NEIGH_STALE && e->tries == 0;

	urn_l3_request(m, nb->mac, urn_neigh_source(nb, e->t.key), e->t.key, holder ? e->mac : NULL);
	e->due = nb->now + wait[e->tries];
	move(nb, e, FIRST_WAIT + e->tries);
	e->tries++;
}

struct rte_mbuf *
urn_neigh_new_frame(struct rte_mempool *pool)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (m != NULL)
		memset(urn_pkt(m), 0, sizeof(struct urn_pkt));
	return m;
}

unsigned int
urn_neigh_poll(struct urn_neigh *nb, uint64_t now, struct rte_mempool *pool, struct rte_mbuf **out,
	       unsigned int max)
{
	unsigned int n = 0;
	struct entry *e;

	rte_spinlock_lock(&nb->lock);
	set_time(nb, now);
	if (nb->ra_on && nb->now >= nb->ra.next)
		n = urn_neigh_poll_ra(nb, pool, out, max);
	/* Bounded: each turn sends one of at most max, or moves an entry to FAILED. */
	while (n < max && (e = first_due(nb)) != NULL) {
		if (e->tries == URN_NEIGH_TRIES) {
			e->state = URN_NEIGH_FAILED;
			e->due = nb->now + URN_NEIGH_FAIL_NS;
			move(nb, e, FAILED);
			if (nb->ra_on)
				urn_neigh_router_failed(nb, e->t.key);
			continue;
		}
		out[n] = urn_neigh_new_frame(pool);
		if (out[n] == NULL)
			break;
		ask(nb, e, out[n++]);
	}
	rte_spinlock_unlock(&nb->lock);
	return n;
}

unsigned int
urn_neigh_announce(struct urn_neigh *nb, struct rte_mempool *pool, struct rte_mbuf **out,
		   unsigned int max)
{
	unsigned int n = 0;

	if (nb->ra_on)
		urn_neigh_restart_ra(nb);
	for (unsigned int i = 0; i < nb->n_own && n < max; i++) {
		out[n] = urn_neigh_new_frame(pool);
		if (out[n] == NULL)
			break;
		urn_l3_announcement(out[n++], nb->mac, nb->own[i]);
	}
	return n;
}

unsigned int
urn_neigh_count(struct urn_neigh *nb)
{
	unsigned int n;

	rte_spinlock_lock(&nb->lock);
	n = URN_NEIGH_ENTRIES - nb->table.count[FREE];
	rte_spinlock_unlock(&nb->lock);
	return n;
}
