/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int
urn_peers_init(struct urn_peers *ps, uint32_t window)
{
	memset(ps, 0, sizeof(*ps));
	ps->window = window;
	ps->at = calloc(1, sizeof(ps->at[0]));
	if (!ps->at)
		return ENOMEM;
	ps->at[0] = calloc(1, sizeof(*ps->at[0]));
	if (!ps->at[0])
		return ENOMEM;
	ps->at[0]->distance = URN_PEER_DISTANCE;
	ps->at[0]->window = window;
	ps->n = 1;
	return 0;
}

void
urn_peers_free(struct urn_peers *ps)
{
	for (uint32_t i = 0; i < ps->n; i++)
		free(ps->at[i]);
	free(ps->at);
	memset(ps, 0, sizeof(*ps));
}

static uint16_t *
bucket(struct urn_peers *ps, const uint8_t gid[16])
{
	uint64_t a, b;

	memcpy(&a, gid, 8);
	memcpy(&b, gid + 8, 8);
	return &ps->bucket[((a ^ b) * 0x9e3779b97f4a7c15ull) >> 56];
}
_Static_assert(URN_PEER_BUCKETS == 256, "the top byte of the hash");

static uint16_t
find(struct urn_peers *ps, const uint8_t gid[16])
{
	uint16_t i = *bucket(ps, gid);

	while (i && memcmp(ps->at[i]->gid, gid, 16) != 0)
		i = ps->at[i]->next;
	return i;
}

struct urn_peer *
urn_peer_find(struct urn_peers *ps, const uint8_t gid[16])
{
	uint16_t i = find(ps, gid);

	return i ? ps->at[i] : NULL;
}

/* An index that is not in use; 0: none, or no memory. */
static uint16_t
free_index(struct urn_peers *ps)
{
	struct urn_peer **at;
	uint32_t i = 1;

	while (i < ps->n && ps->at[i])
		i++;
	if (i < ps->n)
		return (uint16_t)i;
	if (ps->n > URN_PEER_MAX)
		return 0;
	at = realloc(ps->at, (ps->n + 1) * sizeof(*at));
	if (!at)
		return 0;
	ps->at = at;
	ps->at[ps->n] = NULL;
	return (uint16_t)ps->n++;
}

uint16_t
urn_peer_get(struct urn_peers *ps, const uint8_t gid[16])
{
	uint16_t i = find(ps, gid), *head = bucket(ps, gid);
	struct urn_peer *p;

	if (!i) {
		i = free_index(ps);
		p = i ? calloc(1, sizeof(*p)) : NULL;
		if (!p)
			return 0;
		memcpy(p->gid, gid, 16);
		p->distance = URN_PEER_DISTANCE;
		p->window = ps->window;
		p->next = *head;
		ps->at[i] = p;
		*head = i;
	}
	ps->at[i]->refs++;
	return i;
}

void
urn_peer_put(struct urn_peers *ps, uint16_t index)
{
	struct urn_peer *p = ps->at[index];
	uint16_t *at;

	if (index == 0 || --p->refs)
		return;
	at = bucket(ps, p->gid);
	while (*at != index)
		at = &ps->at[*at]->next;
	*at = p->next;
	free(p);
	ps->at[index] = NULL;
}

void
urn_peer_repeats(struct urn_peer *p, uint64_t floor_ns, uint64_t now)
{
	if (now < p->backoff_until || p->backoff == BACKOFF_MAX)
		return;
	p->backoff++;
	p->backoff_until = now + urn_peer_pto(p, floor_ns);
}

void
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

void
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

uint64_t
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
