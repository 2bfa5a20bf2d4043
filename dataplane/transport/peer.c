/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi/urn_abi.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

enum {
	TICK_NS = 4096,              /* ns: timers are no finer than the wheel */
	BACKOFF_MAX = 8,
	RATE_AGE = 32,               /* the best rate loses this fraction, 1/32, with each measurement */
	BURST = 32,                  /* packets in flight in addition: a turn of a poll loop moves so many */
	POLL_NS = 20000,             /* ... ns that two poll loops may add to a round trip */
	PTO_SHARE = 8,               /* the floor of a probe is that of the timeout, divided by this */
	HASTY_MAX = 6,               /* doublings of the time to an early repeat */
};
#define RTT_FIRST_NS 1000000ull      /* ns: the round trip assumed until one was measured */
#define SERVICE_MAX_NS 1000000000000ull /* ns: longer than any timeout; can be doubled */
#define HASTY_AGE_NS 2000000000ull   /* ns after the last needless repeat until hasty is forgotten */
#define RTT_MIN_AGE_NS 10000000000ull /* ns after which the smallest round trip is measured anew */

/* ---- the index */

/* Make a page of the index. NULL: no memory */
static struct urn_peer_page *
make_page(struct urn_peers *ps, uint32_t page)
{
	ps->page[page] = calloc(1, sizeof(*ps->page[page]));
	return ps->page[page];
}

/* The lowest page that has an index without a peer; -1: no page has one. */
static int
page_with_room(const struct urn_peers *ps)
{
	for (int i = 0; i < URN_PEER_PAGES / 64; i++)
		if (ps->room[i])
			return 64 * i + __builtin_ctzll(ps->room[i]);
	return -1;
}

/* Give a peer the lowest index that has none. returns: false: no room, or no memory */
static bool
index_put(struct urn_peers *ps, struct urn_peer *p)
{
	int at = page_with_room(ps), i;
	struct urn_peer_page *g;

	if (at < 0)
		return false;
	g = ps->page[at] ? ps->page[at] : make_page(ps, (uint32_t)at);
	if (!g)
		return false;
	i = __builtin_ctzll(~g->used);
	g->at[i] = p;
	g->used |= 1ull << i;
	if (g->used == UINT64_MAX)
		ps->room[at / 64] &= ~(1ull << at % 64);
	p->index = (uint16_t)(at * URN_PEER_PAGE + i);
	return true;
}
_Static_assert(URN_PEER_PAGE == 64, "bits of urn_peer_page.used");

static void
index_take(struct urn_peers *ps, const struct urn_peer *p)
{
	uint32_t at = p->index / URN_PEER_PAGE;
	struct urn_peer_page *g = ps->page[at];

	g->used &= ~(1ull << p->index % URN_PEER_PAGE);
	ps->room[at / 64] |= 1ull << at % 64;
	if (g->used)
		return;
	free(g);
	ps->page[at] = NULL;
}

/* ---- the table */

/* Make a peer about which nothing is known. NULL: no room, or no memory */
static struct urn_peer *
make_peer(struct urn_peers *ps)
{
	struct urn_peer *p = calloc(1, sizeof(*p));

	if (!p || !index_put(ps, p)) {
		free(p);
		return NULL;
	}
	p->distance = URN_PEER_DISTANCE;
	p->window = urn_delay_first(ps->delay_limit, ps->window);
	urn_delay_init(&p->delay, ps->delay_limit);
	return p;
}

struct urn_peer *
urn_peer_next(const struct urn_peers *ps, uint32_t *index)
{
	while (*index <= URN_PEER_MAX) {
		const struct urn_peer_page *g = ps->page[*index / URN_PEER_PAGE];
		uint64_t left = g ? g->used >> *index % URN_PEER_PAGE : 0;

		if (left) {
			*index += (uint32_t)__builtin_ctzll(left) + 1;
			return urn_peer_at(ps, (uint16_t)(*index - 1));
		}
		*index = (*index / URN_PEER_PAGE + 1) * URN_PEER_PAGE;
	}
	return NULL;
}

int
urn_peers_init(struct urn_peers *ps, uint32_t window, uint64_t delay_limit, uint32_t seed)
{
	memset(ps, 0, sizeof(*ps));
	memset(ps->room, 0xff, sizeof(ps->room));
	ps->window = window;
	ps->delay_limit = delay_limit;
	ps->seed = seed;
	ps->bucket = calloc(URN_PEER_BUCKETS, sizeof(struct urn_peer *));
	return ps->bucket && make_peer(ps) ? 0 : ENOMEM;
}

void
urn_peers_free(struct urn_peers *ps)
{
	for (uint32_t i = 0; i < URN_PEER_PAGES; i++) {
		for (uint64_t left = ps->page[i] ? ps->page[i]->used : 0; left; left &= left - 1)
			free(ps->page[i]->at[__builtin_ctzll(left)]);
		free(ps->page[i]);
	}
	free(ps->bucket);
	memset(ps, 0, sizeof(*ps));
}

/* The link that leads to the peer with an address, or to where it would be. */
static struct urn_peer **
link_of(const struct urn_peers *ps, const uint8_t gid[16])
{
	struct urn_peer **at;
	uint32_t word[4];

	memcpy(word, gid, sizeof(word));
	at = &ps->bucket[rte_jhash_32b(word, 4, ps->seed) & (URN_PEER_BUCKETS - 1)];
	while (*at && memcmp((*at)->gid, gid, 16) != 0)
		at = &(*at)->next;
	return at;
}

struct urn_peer *
urn_peer_find(struct urn_peers *ps, const uint8_t gid[16])
{
	return *link_of(ps, gid);
}

uint16_t
urn_peer_get(struct urn_peers *ps, const uint8_t gid[16])
{
	struct urn_peer **at = link_of(ps, gid), *p = *at;

	if (!p) {
		p = make_peer(ps);
		if (!p)
			return 0;
		memcpy(p->gid, gid, 16);
		*at = p;
	}
	p->refs++;
	return p->index;
}

void
urn_peer_put(struct urn_peers *ps, uint16_t index)
{
	struct urn_peer *p = urn_peer_at(ps, index);

	if (index == 0 || --p->refs)
		return;
	*link_of(ps, p->gid) = p->next;
	index_take(ps, p);
	free(p);
}

/* ---- measurements */

void
urn_peer_repeats(struct urn_peer *p, uint64_t floor_ns, uint64_t now)
{
	if (now < p->backoff_until || p->backoff == BACKOFF_MAX)
		return;
	p->backoff++;
	p->backoff_until = now + urn_peer_pto(p, floor_ns);
}

URN_FAST void
urn_peer_rtt(struct urn_peer *p, uint64_t ns, uint64_t now)
{
	if (ns == 0)
		ns = 1;
	p->backoff = 0;
	if (p->srtt == 0) {
		p->srtt = ns;
		p->rttvar = ns / 2;
	} else {
		uint64_t off = ns > p->srtt ? ns - p->srtt : p->srtt - ns;

		p->rttvar = (3 * p->rttvar + off) / 4;
		p->srtt = (7 * p->srtt + ns) / 8;
	}
	if (ns <= p->rtt_min || now >= p->rtt_min_until) {
		p->rtt_min = ns;
		p->rtt_min_until = now + RTT_MIN_AGE_NS;
	}
}

URN_FAST void
urn_peer_delivered(struct urn_peer *p, uint64_t now, uint32_t most)
{
	uint64_t ns = now > p->timed_at ? now - p->timed_at : 1, n = p->delivered - p->timed_delivered;
	uint64_t rate = (n < UINT32_MAX ? n : UINT32_MAX) << 32;
	__extension__ typedef unsigned __int128 wide; /* rates up to 2^64, times up to 2^40 and more */
	wide window;

	p->timed = NULL;
	urn_peer_rtt(p, ns, now);
	rate /= ns;
	p->rate -= p->rate / RATE_AGE;
	if (rate > p->rate)
		p->rate = rate;
	p->psn_ns = p->rate ? (1ull << 32) / p->rate : ns;
	window = 2 * ((wide)p->rate * (p->rtt_min + POLL_NS) >> 32) + BURST;
	p->window = window < most ? (uint32_t)window : most;
	if (p->delay.limit) {
		uint32_t few = urn_delay_measured(&p->delay, ns, now, most);

		p->window = few < p->window ? few : p->window;
	}
}

/* Wait longer for late packets: at least until a packet is overtaken by so many PSNs. */
static void
more_patience(struct urn_peer *p, uint32_t distance)
{
	if (distance > URN_PEER_DISTANCE_MAX)
		distance = URN_PEER_DISTANCE_MAX;
	if (distance > p->distance)
		p->distance = distance;
	p->calm = 0;
}

void
urn_peer_learn(struct urn_peer *p, const struct urn_board_news *news)
{
	if (news->late_by) {
		more_patience(p, news->late_by + news->late_by / 2 + 1);
		if (news->late_ns > p->late_ns)
			p->late_ns = news->late_ns;
	}
	/* Sooner than a round trip can be: the packet was only late, and its repeat is a duplicate. */
	if (p->srtt && news->again_ns < p->rtt_min / 2) {
		more_patience(p, 2 * p->distance);
		if (p->late_ns < p->srtt / 4)
			p->late_ns = p->srtt / 4;
		p->late_ns += p->late_ns / 2;
	}
	if (p->late_ns > p->srtt)
		p->late_ns = p->srtt; /* RFC 8985, 6.2: no longer than a round trip */
}

void
urn_peer_repaired(struct urn_peer *p)
{
	if (++p->calm < URN_PEER_CALM)
		return;
	p->calm = 0;
	p->late_ns /= 2;
	p->distance /= 2;
	if (p->distance < URN_PEER_DISTANCE)
		p->distance = URN_PEER_DISTANCE;
}

void
urn_peer_limits(const struct urn_peer *p, struct urn_board_limits *l)
{
	uint64_t srtt = p->srtt ? p->srtt : RTT_FIRST_NS, var = p->srtt ? p->rttvar : srtt / 2;

	l->distance = p->distance;
	l->seen_ns = srtt / 4 > p->late_ns + p->late_ns / 4 ? srtt / 4 : p->late_ns + p->late_ns / 4;
	l->asked_ns = srtt + (4 * var > TICK_NS ? 4 * var : TICK_NS);
}

uint64_t
urn_peer_rto(const struct urn_peer *p, uint64_t floor_ns)
{
	uint64_t srtt = p->srtt ? p->srtt : RTT_FIRST_NS, var = p->srtt ? p->rttvar : srtt / 2;
	uint64_t rto = srtt + (4 * var > TICK_NS ? 4 * var : TICK_NS);

	return (rto > floor_ns ? rto : floor_ns) << p->backoff;
}

URN_FAST uint64_t
urn_peer_pto(const struct urn_peer *p, uint64_t floor_ns)
{
	uint64_t srtt = p->srtt ? p->srtt : RTT_FIRST_NS, pto = 2 * srtt + (p->srtt ? p->rttvar : 0);

	return (pto > floor_ns / PTO_SHARE ? pto : floor_ns / PTO_SHARE) << p->backoff;
}

/* Round trip and variation, plus twice the time that all PSNs in flight take at the best rate, ns. */
static uint64_t
service(const struct urn_peer *p, uint32_t psns)
{
	uint64_t srtt = p->srtt ? p->srtt : RTT_FIRST_NS, var = p->srtt ? p->rttvar : srtt / 2;

	uint64_t ns = srtt + (4 * var > TICK_NS ? 4 * var : TICK_NS) + 2 * psns * p->psn_ns;

	return ns < SERVICE_MAX_NS ? ns : SERVICE_MAX_NS;
}

uint64_t
urn_peer_early(const struct urn_peer *p, uint64_t floor_ns, uint32_t psns, uint64_t now)
{
	uint64_t ns = service(p, psns);

	if (!p->srtt)
		return UINT64_MAX;
	return (ns > floor_ns ? ns : floor_ns) << (p->backoff + (now < p->hasty_until ? p->hasty : 0));
}

uint64_t
urn_peer_go_on(const struct urn_peer *p, uint64_t floor_ns, uint32_t psns)
{
	uint64_t ns = service(p, psns);

	if (ns < 2 * p->answer_ns)
		ns = 2 * p->answer_ns;
	return ns > floor_ns / PTO_SHARE ? ns : floor_ns / PTO_SHARE;
}

void
urn_peer_hasty(struct urn_peer *p, uint64_t now)
{
	if (now >= p->hasty_until)
		p->hasty = 0;
	if (p->hasty < HASTY_MAX)
		p->hasty++;
	p->hasty_until = now + HASTY_AGE_NS;
}
