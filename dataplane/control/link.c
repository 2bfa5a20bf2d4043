/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An entry is on exactly one list, which says what it waits for and, by its
 * order, which one goes first. Requests that have been sent wait on a list of
 * their own for each try: all on one wait equally long, so appending keeps each
 * sorted by when it is due, and poll looks at the heads only.
 *
 * News is a second list through the entries: the newest is last, and each says
 * which generation it is of. An engine walks back to what it has seen.
 */
#include "control/link.h"
#include "control/l3.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <rte_jhash.h>
#include <rte_spinlock.h>

enum list {
	FREE,
	FRESH,     /* the first request is due at once */
	NO_MAC,    /* waits for the neighbour table */
	TRIED,     /* this and the following: so many requests are out, less this */
	TRIED_LAST = TRIED + URN_LINK_TRIES - 1,
	WANTED,    /* known; longest unused first */
	LEARNT,    /* known, or of another version, and never asked for; oldest first */
	PLAIN,     /* wanted, and plain; oldest first */
	LISTS,
};

#define BUCKETS ((unsigned int)URN_LINK_ENTRIES)
#define NIL 0xffffu            /* no entry */
#define MAC_WAIT_NS 1000000ull /* before the neighbour table is asked again */
#define MAC_GIVE_UP_NS 5000000000ull /* it fails by itself sooner, unless its own table is full */
#define POLL_MOVES 64          /* entries that one poll looks at, besides those it sends for */
_Static_assert((BUCKETS & (BUCKETS - 1)) == 0, "hash mask");
_Static_assert(BUCKETS < NIL, "16-bit indices");

struct entry {
	TAILQ_ENTRY(entry) link;   /* in lk->list[list] */
	TAILQ_ENTRY(entry) news;   /* in lk->news, when `changed` is not 0 */
	uint64_t due;              /* ns; FRESH to TRIED_LAST: what comes next; PLAIN: may be asked again */
	uint64_t since;            /* ns; NO_MAC to TRIED_LAST: when asking began */
	uint64_t confirmed;        /* ns; KNOWN: when it last said so */
	uint64_t tid;              /* of the request that is out, or was last */
	struct urn_link_info info; /* valid when KNOWN */
	uint32_t changed;          /* generation of its newest news; 0: none */
	uint8_t gid[16];
	uint8_t own[16];           /* our address that it was asked from; valid with tries */
	uint8_t state;             /* enum urn_link_state */
	uint8_t list;              /* enum list */
	uint8_t tries;             /* requests sent with this tid */
	bool wanted;               /* somebody here asked for it */
	bool answered;             /* to tid a response was taken, or a request made it needless */
	uint16_t chain;            /* next of the bucket, or NIL */
};
TAILQ_HEAD(entries, entry);

struct urn_link {
	struct urn_link_config cfg;
	uint64_t epoch;
	uint32_t hash_seed;        /* peers can't choose to collide */

	_Atomic uint32_t gen;      /* written under the lock, read without; orders nothing */

	rte_spinlock_t lock;       /* guards all below; taken before the neighbour table's */
	uint64_t now;              /* ns; the newest time that was passed in */
	uint64_t rng;
	uint32_t psn;              /* of the next frame */
	struct entries list[LISTS];
	unsigned int count[LISTS];
	struct entries news;
	uint16_t bucket[BUCKETS];  /* first entry, or NIL */
	struct entry entry[URN_LINK_ENTRIES];
};

static const char *const state_names[URN_LINK_STATES] = {
	[URN_LINK_UNKNOWN] = "unknown",
	[URN_LINK_ASKING] = "asking",
	[URN_LINK_KNOWN] = "known",
	[URN_LINK_PLAIN] = "plain",
};

const char *
urn_link_state_name(unsigned int state)
{
	return state < URN_LINK_STATES ? state_names[state] : "?";
}

/* Numbers that a peer cannot guess from the outside (splitmix64). */
static uint64_t
draw(struct urn_link *lk)
{
	uint64_t z = lk->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* ---- the table: hash and lists; under the lock */

static uint16_t *
bucket_of(struct urn_link *lk, const uint8_t gid[16])
{
	uint32_t word[4];

	/* A GID in a frame lies anywhere; the hash reads whole words. */
	memcpy(word, gid, sizeof(word));
	return &lk->bucket[rte_jhash_32b(word, 4, lk->hash_seed) & (BUCKETS - 1)];
}

static struct entry *
find(struct urn_link *lk, const uint8_t gid[16])
{
	uint16_t i = *bucket_of(lk, gid);

	while (i != NIL && memcmp(lk->entry[i].gid, gid, 16) != 0)
		i = lk->entry[i].chain;
	return i != NIL ? &lk->entry[i] : NULL;
}

static void
move(struct urn_link *lk, struct entry *e, enum list to)
{
	TAILQ_REMOVE(&lk->list[e->list], e, link);
	lk->count[e->list]--;
	e->list = (uint8_t)to;
	TAILQ_INSERT_TAIL(&lk->list[to], e, link);
	lk->count[to]++;
}

static void
forget(struct urn_link *lk, struct entry *e)
{
	uint16_t self = (uint16_t)(e - lk->entry);
	uint16_t *at = bucket_of(lk, e->gid);

	while (*at != self)
		at = &lk->entry[*at].chain;
	*at = e->chain;
	if (e->changed)
		TAILQ_REMOVE(&lk->news, e, news);
	move(lk, e, FREE);
}

/* Who makes room for a wanted entry: what nobody here uses, then what says least. */
static struct entry *
victim(struct urn_link *lk)
{
	static const enum list order[] = {LEARNT, PLAIN, WANTED, NO_MAC, FRESH};
	struct entry *e;

	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		e = TAILQ_FIRST(&lk->list[order[i]]);
		if (e)
			return e;
	}
	for (unsigned int i = TRIED_LAST; i > TRIED; i--) {
		e = TAILQ_FIRST(&lk->list[i]);
		if (e)
			return e;
	}
	return TAILQ_FIRST(&lk->list[TRIED]);
}

/* A new entry on `list`. NULL: no room for it. */
static struct entry *
add(struct urn_link *lk, const uint8_t gid[16], enum list list)
{
	struct entry *e = TAILQ_FIRST(&lk->list[FREE]);
	uint16_t *at, chain;

	if (list == LEARNT && (!e || lk->count[LEARNT] >= URN_LINK_LEARNT)) {
		e = TAILQ_FIRST(&lk->list[LEARNT]);
		if (!e)
			return NULL;
	} else if (!e) {
		e = victim(lk);
	}
	if (e->list != FREE)
		forget(lk, e);
	at = bucket_of(lk, gid);
	chain = *at;
	*at = (uint16_t)(e - lk->entry);
	memcpy(e->gid, gid, 16);
	memset(&e->info, 0, sizeof(e->info));
	e->state = URN_LINK_UNKNOWN;
	e->changed = 0;
	e->tries = 0;
	e->wanted = false;
	e->answered = true;
	e->chain = chain;
	move(lk, e, list);
	return e;
}

static void
set_time(struct urn_link *lk, uint64_t now)
{
	if (now > lk->now) /* engines read their clocks at different moments */
		lk->now = now;
}

/* ---- states; under the lock */

static uint32_t
common(const struct urn_link *lk, const struct entry *e)
{
	return e->state == URN_LINK_KNOWN ? lk->cfg.offer & e->info.features : 0;
}

/* Of entries that nobody here asked for there is no news, so that a flood makes no work. */
static void
tell(struct urn_link *lk, struct entry *e)
{
	uint32_t gen;

	if (!e->wanted)
		return;
	gen = atomic_load_explicit(&lk->gen, memory_order_relaxed) + 1;
	if (gen == 0) /* 0 is what nobody has */
		gen = 1;
	if (e->changed)
		TAILQ_REMOVE(&lk->news, e, news);
	e->changed = gen;
	TAILQ_INSERT_TAIL(&lk->news, e, news);
	atomic_store_explicit(&lk->gen, gen, memory_order_relaxed);
}

static void
start_asking(struct urn_link *lk, struct entry *e)
{
	if (e->state == URN_LINK_UNKNOWN)
		e->state = URN_LINK_ASKING;
	e->tries = 0;
	e->tid = draw(lk);
	e->answered = false;
	move(lk, e, FRESH);
}

/* No answer, or none that helps. */
static void
set_plain(struct urn_link *lk, struct entry *e)
{
	bool news = common(lk, e) != 0;

	e->state = URN_LINK_PLAIN;
	e->due = lk->now + URN_LINK_AGAIN_NS;
	move(lk, e, e->wanted ? PLAIN : LEARNT);
	if (news)
		tell(lk, e);
}

/* The peer said what it can. */
static void
set_known(struct urn_link *lk, struct entry *e, const struct urn_link_info *info)
{
	bool news = e->state != URN_LINK_KNOWN || e->info.epoch != info->epoch ||
		    e->info.features != info->features;

	if (info->major != URN_LINK_MAJOR) {
		set_plain(lk, e);
		return;
	}
	e->state = URN_LINK_KNOWN;
	e->info = *info;
	e->confirmed = lk->now;
	e->answered = true;
	move(lk, e, e->wanted ? WANTED : LEARNT);
	if (news)
		tell(lk, e);
}

static bool
under_way(const struct entry *e)
{
	return e->list >= FRESH && e->list <= TRIED_LAST;
}

/* Somebody here wants to know. */
static uint32_t
want(struct urn_link *lk, struct entry *e)
{
	e->wanted = true;
	if (under_way(e))
		return common(lk, e);
	if (e->state == URN_LINK_KNOWN) {
		if (lk->now - e->confirmed > URN_LINK_AGAIN_NS)
			start_asking(lk, e);
		else
			move(lk, e, WANTED); /* last used */
	} else if (lk->now >= e->due) {
		start_asking(lk, e);
	} else {
		move(lk, e, PLAIN);
	}
	return common(lk, e);
}

/* ---- public */

struct urn_link *
urn_link_create(const struct urn_link_config *cfg)
{
	struct urn_link *lk = calloc(1, sizeof(*lk));

	if (!lk)
		return NULL;
	lk->cfg = *cfg;
	lk->rng = cfg->seed;
	lk->epoch = draw(lk);
	lk->hash_seed = (uint32_t)draw(lk);
	lk->psn = (uint32_t)draw(lk);
	rte_spinlock_init(&lk->lock);
	memset(lk->bucket, 0xff, sizeof(lk->bucket));
	TAILQ_INIT(&lk->news);
	for (unsigned int i = 0; i < LISTS; i++)
		TAILQ_INIT(&lk->list[i]);
	for (unsigned int i = 0; i < URN_LINK_ENTRIES; i++)
		TAILQ_INSERT_TAIL(&lk->list[FREE], &lk->entry[i], link);
	lk->count[FREE] = URN_LINK_ENTRIES;
	return lk;
}

void
urn_link_destroy(struct urn_link *lk)
{
	free(lk);
}

uint32_t
urn_link_features(struct urn_link *lk, const uint8_t gid[16])
{
	struct entry *e;
	uint32_t features;

	if (urn_neigh_is_own(lk->cfg.neigh, gid))
		return lk->cfg.offer;
	if (!urn_neigh_unicast(gid) || !urn_neigh_source(lk->cfg.neigh, gid))
		return 0;
	rte_spinlock_lock(&lk->lock);
	e = find(lk, gid);
	if (!e) {
		e = add(lk, gid, FRESH);
		e->wanted = true;
		start_asking(lk, e);
	}
	features = want(lk, e);
	rte_spinlock_unlock(&lk->lock);
	return features;
}

uint32_t
urn_link_generation(const struct urn_link *lk)
{
	return atomic_load_explicit(&lk->gen, memory_order_relaxed);
}

unsigned int
urn_link_news(struct urn_link *lk, uint32_t *seen, struct urn_link_news *out, unsigned int max)
{
	struct entry *e, *prev;
	unsigned int n = 0;

	rte_spinlock_lock(&lk->lock);
	e = TAILQ_LAST(&lk->news, entries);
	while (e && (prev = TAILQ_PREV(e, entries, news)) && (int32_t)(prev->changed - *seen) > 0)
		e = prev;
	for (; e && n < max; e = TAILQ_NEXT(e, news)) {
		if ((int32_t)(e->changed - *seen) <= 0)
			continue;
		memcpy(out[n].gid, e->gid, 16);
		out[n++].features = common(lk, e);
		*seen = e->changed;
	}
	if (!e) /* what is older was forgotten */
		*seen = atomic_load_explicit(&lk->gen, memory_order_relaxed);
	rte_spinlock_unlock(&lk->lock);
	return n;
}

/* ---- frames */

/* Addresses of a received frame, as GIDs. */
static void
read_addresses(struct rte_mbuf *m, uint8_t src[16], uint8_t dst[16])
{
	const struct urn_pkt *p = urn_pkt(m);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3_off);

	if (p->ipv6) {
		memcpy(src, l3 + offsetof(struct urn_ipv6, src), 16);
		memcpy(dst, l3 + offsetof(struct urn_ipv6, dst), 16);
	} else {
		urn_l3_gid_v4(src, l3 + offsetof(struct urn_ipv4, src));
		urn_l3_gid_v4(dst, l3 + offsetof(struct urn_ipv4, dst));
	}
}

/* Write a request or a response. returns: 0, or -1 when m has no room */
static int
write_frame(struct urn_link *lk, struct rte_mbuf *m, const struct urn_link_msg *what,
	    const uint8_t own[16], const uint8_t peer[16], const uint8_t mac[6])
{
	uint8_t mad[URN_MAD_BYTES];
	struct urn_link_msg msg = *what;
	struct urn_path path = {.sport = URN_ROCE_SPORT_MIN | URN_QPN_GSI, .ttl = 64};

	memcpy(path.smac, lk->cfg.mac, 6);
	memcpy(path.dmac, mac, 6);
	memcpy(path.sgid, own, 16);
	memcpy(path.dgid, peer, 16);
	msg.info.epoch = lk->epoch;
	msg.info.features = lk->cfg.offer;
	msg.info.arw = lk->cfg.arw;
	urn_link_write(mad, &msg);
	return urn_mad_frame(m, &path, mad, lk->psn++, lk->cfg.icrc);
}

/* ---- what comes in; under the lock */

static void
take_request(struct urn_link *lk, const uint8_t src[16], const struct urn_link_info *info)
{
	struct entry *e = find(lk, src);
	bool anew;

	if (!e)
		e = add(lk, src, LEARNT);
	if (!e)
		return; /* no room; it is answered all the same */
	anew = e->state == URN_LINK_KNOWN && e->info.epoch != info->epoch;
	set_known(lk, e, info);
	if (anew && e->wanted && e->state == URN_LINK_KNOWN)
		start_asking(lk, e);
}

static enum urn_counter
take_response(struct urn_link *lk, const uint8_t src[16], const uint8_t dst[16], uint64_t tid,
	      const struct urn_link_info *info)
{
	struct entry *e = find(lk, src);

	if (!e || e->tries == 0 || e->tid != tid || memcmp(e->own, dst, 16) != 0)
		return URN_C_DROP_LINK_UNASKED;
	if (e->answered)
		return URN_C_LINK_DUPLICATE;
	e->answered = true;
	if (!info) {
		set_plain(lk, e);
		return URN_C_LINK_REFUSED;
	}
	set_known(lk, e, info);
	return URN_C_LINK_RESP_RX;
}

/* A message that was read, from its sender. returns: the counter that applies; *reply: m is a response */
static enum urn_counter
take(struct urn_link *lk, struct rte_mbuf *m, enum urn_counter c, struct urn_link_msg *msg,
     bool *reply)
{
	uint8_t src[16], dst[16], mac[6];

	read_addresses(m, src, dst);
	memcpy(mac, rte_pktmbuf_mtod(m, const struct urn_eth *)->src, 6);
	/* Nobody else has an address of ours. */
	if (urn_neigh_is_own(lk->cfg.neigh, src) || !urn_neigh_unicast(src) || !urn_l3_mac_ok(mac))
		return URN_C_DROP_ADDRESS;
	if (c == URN_C_LINK_REFUSED)
		return take_response(lk, src, dst, msg->tid, NULL);
	if (c == URN_C_LINK_RESP_RX) {
		c = take_response(lk, src, dst, msg->tid, &msg->info);
	} else {
		take_request(lk, src, &msg->info);
		msg->response = true;
		*reply = write_frame(lk, m, msg, dst, src, mac) == 0;
		if (!*reply)
			return URN_C_NO_MBUF;
	}
	if (c != URN_C_DROP_LINK_UNASKED && msg->info.major != URN_LINK_MAJOR)
		return URN_C_LINK_VERSION;
	return c;
}

int
urn_link_input(struct urn_link *lk, struct rte_mbuf *m, uint64_t now)
{
	struct urn_link_msg msg = {.response = false};
	bool reply = false;
	const uint8_t *mad;
	uint32_t sqpn;
	enum urn_counter c = (enum urn_counter)urn_mad_find(m, &mad, &sqpn);

	if (c == 0)
		c = urn_link_read(mad, sqpn, &msg);
	if (c == URN_C_LINK_REQ_RX || c == URN_C_LINK_RESP_RX || c == URN_C_LINK_REFUSED) {
		rte_spinlock_lock(&lk->lock);
		set_time(lk, now);
		c = take(lk, m, c, &msg, &reply);
		rte_spinlock_unlock(&lk->lock);
	}
	urn_pkt(m)->drop = (uint8_t)c;
	return reply;
}

/* ---- what goes out; under the lock */

/*
 * The entry whose turn it is: unanswered first, so that new ones can't starve
 * them; those that wait for their MAC address last, for they come every time.
 */
static struct entry *
first_due(struct urn_link *lk)
{
	struct entry *e;

	for (unsigned int i = TRIED; i <= TRIED_LAST; i++) {
		e = TAILQ_FIRST(&lk->list[i]);
		if (e && e->due <= lk->now)
			return e;
	}
	e = TAILQ_FIRST(&lk->list[FRESH]);
	if (e)
		return e;
	e = TAILQ_FIRST(&lk->list[NO_MAC]);
	return e && e->due <= lk->now ? e : NULL;
}

/* How long a request waits for its answer, after so many before it. */
static uint64_t
patience(unsigned int tries)
{
	uint64_t ns = URN_LINK_RETRY_NS << tries;

	return ns < URN_LINK_RETRY_MAX_NS ? ns : URN_LINK_RETRY_MAX_NS;
}

/* Its next request, or the end of asking. returns: a frame, or NULL with *empty: no buffer */
static struct rte_mbuf *
ask(struct urn_link *lk, struct entry *e, struct rte_mempool *pool, bool *empty)
{
	const struct urn_link_msg msg = {.response = false, .tid = e->tid};
	const uint8_t *own = urn_neigh_source(lk->cfg.neigh, e->gid);
	int rc = e->tries < URN_LINK_TRIES && own ? 0 : URN_NEIGH_FAIL;
	struct rte_mbuf *m;
	uint8_t mac[6];

	if (e->list == FRESH)
		e->since = lk->now;
	if (rc == 0)
		rc = urn_neigh_lookup(lk->cfg.neigh, e->gid, mac);
	if (rc == URN_NEIGH_UNKNOWN && lk->now - e->since > MAC_GIVE_UP_NS)
		rc = URN_NEIGH_FAIL;
	if (rc == URN_NEIGH_FAIL) {
		set_plain(lk, e);
		return NULL;
	}
	if (rc == URN_NEIGH_UNKNOWN) {
		e->due = lk->now + MAC_WAIT_NS;
		move(lk, e, NO_MAC);
		return NULL;
	}
	m = rte_pktmbuf_alloc(pool);
	*empty = !m;
	if (!m)
		return NULL;
	memset(urn_pkt(m), 0, sizeof(struct urn_pkt));
	memcpy(e->own, own, 16);
	write_frame(lk, m, &msg, own, e->gid, mac);
	e->due = lk->now + patience(e->tries);
	move(lk, e, (enum list)(TRIED + e->tries));
	e->tries++;
	return m;
}

unsigned int
urn_link_poll(struct urn_link *lk, uint64_t now, struct rte_mempool *pool, struct rte_mbuf **out,
	      unsigned int max)
{
	unsigned int n = 0, moves = 0;
	bool empty = false;
	struct entry *e;

	rte_spinlock_lock(&lk->lock);
	set_time(lk, now);
	while (n < max && moves < POLL_MOVES && !empty && (e = first_due(lk))) {
		out[n] = ask(lk, e, pool, &empty);
		if (out[n])
			n++;
		else
			moves++;
	}
	rte_spinlock_unlock(&lk->lock);
	return n;
}

/* ---- looking in */

enum urn_link_state
urn_link_peek(struct urn_link *lk, const uint8_t gid[16], struct urn_link_info *info)
{
	enum urn_link_state state = URN_LINK_UNKNOWN;
	struct entry *e;

	rte_spinlock_lock(&lk->lock);
	e = find(lk, gid);
	if (e) {
		state = (enum urn_link_state)e->state;
		if (info && state == URN_LINK_KNOWN)
			*info = e->info;
	}
	rte_spinlock_unlock(&lk->lock);
	return state;
}

enum urn_link_arw
urn_link_arw(struct urn_link *lk, const uint8_t gid[16])
{
	struct urn_link_info info;

	if (urn_link_peek(lk, gid, &info) != URN_LINK_KNOWN)
		return URN_LINK_ARW_NONE;
	return (enum urn_link_arw)info.arw;
}

unsigned int
urn_link_count(struct urn_link *lk)
{
	unsigned int n;

	rte_spinlock_lock(&lk->lock);
	n = URN_LINK_ENTRIES - lk->count[FREE];
	rte_spinlock_unlock(&lk->lock);
	return n;
}
