/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Advertised routers and prefixes: an advertisement changes the short table of `struct advertised`
 * at once, and poll brings the table's changes to the routes and the news, at most once each
 * URN_ROUTER_SETTLE_NS ("to settle"). An element that comes and goes in between is never told of.
 */
#include "net/neigh_priv.h"
#include "net/l3.h"
#include "net/ra.h"
#include "wire/build.h"

#include <string.h>

#include <rte_random.h>

#define SECOND_NS 1000000000ull
#define NEVER UINT64_MAX

static const uint8_t nobody[16];

/* True when an element has been advertised, and its end is ahead. */
static bool
is_there(const struct advertised *e)
{
	return e->state == ADVERTISED_NEW || e->state == ADVERTISED_TOLD;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- when there is something to do. Under the lock, as all below. */

static void
schedule(struct urn_neigh *nb)
{
	struct urn_neigh_ra *ra = &nb->ra;

	ra->next = ra->restart ? 0 : least(ra->ask, ra->settle);
	for (unsigned int i = 0; i < URN_NEIGH_ADVERTISED; i++) {
		const struct advertised *e = &ra->at[i];

		if (!is_there(e))
			continue;
		ra->next = least(ra->next, e->ends);
		if (e->shunned != 0)
			ra->next = least(ra->next, e->shunned);
	}
}

/* The table changed: settle as soon as it may be. */
static void
changed(struct urn_neigh *nb)
{
	struct urn_neigh_ra *ra = &nb->ra;

	if (ra->settle != NEVER)
		return;
	ra->settle = ra->settled == 0 ? nb->now : ra->settled + URN_ROUTER_SETTLE_NS;
	if (ra->settle < nb->now)
		ra->settle = nb->now;
}

/* ---- the table */

/* True when two routes are of one router or prefix. */
static bool
is_same(const struct urn_neigh_route *a, const struct urn_neigh_route *b)
{
	return a->kind == b->kind && a->len == b->len && memcmp(a->via, b->via, 16) == 0 &&
	       memcmp(a->prefix, b->prefix, 16) == 0;
}

/* First and last slot of a kind. */
static void
slots(unsigned int kind, unsigned int *from, unsigned int *to)
{
	bool router = kind == URN_NEIGH_ROUTE_ROUTER;

	*from = router ? 0 : URN_NEIGH_ROUTERS;
	*to = router ? URN_NEIGH_ROUTERS : URN_NEIGH_ADVERTISED;
}

/* The element of a router (one for each via) or prefix, or else one that is free. NULL: neither */
static struct advertised *
find(struct urn_neigh *nb, const struct urn_neigh_route *r)
{
	struct advertised *unused = NULL;
	unsigned int from, to;

	slots(r->kind, &from, &to);
	for (unsigned int i = from; i < to; i++) {
		struct advertised *e = &nb->ra.at[i];

		if (e->state == ADVERTISED_FREE)
			unused = unused != NULL ? unused : e;
		else if (is_same(&e->route, r))
			return e;
	}
	return unused;
}

/* An element ends; it stays until it has been told of. */
static void
end(struct urn_neigh *nb, struct advertised *e, unsigned int why)
{
	e->state = e->state == ADVERTISED_NEW ? ADVERTISED_FREE : ADVERTISED_GOING;
	e->why = (uint8_t)why;
	changed(nb);
}

/* Take an advertised router or prefix. lifetime_s: 0: it ends. returns: false: there is no room */
static bool
take(struct urn_neigh *nb, const struct urn_neigh_route *r, uint32_t lifetime_s, int8_t preference)
{
	struct advertised *e = find(nb, r);

	if (e == NULL)
		return lifetime_s == 0;
	if (lifetime_s == 0) {
		if (is_there(e))
			end(nb, e, URN_ROUTER_ENDED);
		return true;
	}
	if (e->state == ADVERTISED_FREE) {
		*e = (struct advertised){.route = *r, .state = ADVERTISED_NEW};
		changed(nb);
	} else if (e->state == ADVERTISED_GOING) {
		e->state = ADVERTISED_TOLD;
		changed(nb);
	}
	if (e->preference != preference)
		changed(nb);
	e->preference = preference;
	e->ends = lifetime_s == URN_RA_FOREVER ? NEVER : nb->now + lifetime_s * SECOND_NS;
	return true;
}

/* Take an advertisement. returns: the counter that applies */
static enum urn_counter
take_all(struct urn_neigh *nb, const struct urn_ra *msg)
{
	struct urn_neigh_route r = {.kind = URN_NEIGH_ROUTE_ROUTER};
	bool room = !msg->more;

	memcpy(r.via, msg->router, 16);
	room &= take(nb, &r, msg->lifetime_s, msg->preference);
	for (unsigned int i = 0; i < msg->prefixes; i++) {
		const struct urn_ra_prefix *p = &msg->prefix[i];
		struct urn_neigh_route on = {.len = p->len, .kind = URN_NEIGH_ROUTE_RA_LINK};

		memcpy(on.prefix, p->prefix, 16);
		room &= take(nb, &on, p->lifetime_s, 0);
	}
	if (msg->lifetime_s != 0 && nb->ra.solicits != 0)
		nb->ra.ask = NEVER;
	schedule(nb);
	return room ? URN_C_RA_RX : URN_C_RA_FULL;
}

enum urn_counter
urn_neigh_take_ra(struct urn_neigh *nb, const struct rte_mbuf *m)
{
	enum urn_counter c;
	struct urn_ra msg;

	if (memcmp(rte_pktmbuf_mtod(m, const struct urn_eth *)->src, nb->mac, 6) == 0)
		return URN_C_DROP_NEIGH; /* our own frame came back, but we send none of these */
	c = urn_ra_read(m, &msg);
	if (c != URN_C_RA_RX)
		return c;
	if (urn_neigh_is_own(nb, msg.router))
		return URN_C_NEIGH_CONFLICT;
	return take_all(nb, &msg);
}

void
urn_neigh_router_failed(struct urn_neigh *nb, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < URN_NEIGH_ROUTERS; i++) {
		struct advertised *e = &nb->ra.at[i];

		if (!is_there(e) || memcmp(e->route.via, gid, 16) != 0)
			continue;
		e->shunned = nb->now + URN_ROUTER_SHUN_NS;
		changed(nb);
	}
	schedule(nb);
}

/* ---- settling */

/* Seconds to the end of an element, rounded up. returns: 0: it has none */
static uint32_t
left_s(const struct urn_neigh *nb, const struct advertised *e)
{
	if (e->ends == NEVER)
		return 0;
	return e->ends <= nb->now ? 1 : (uint32_t)((e->ends - nb->now + SECOND_NS - 1) / SECOND_NS);
}

/* Keep news for their reader. before: NULL: nobody */
static void
tell(struct urn_neigh *nb, unsigned int what, const struct advertised *e, const uint8_t *before)
{
	uint32_t n = atomic_load_explicit(&nb->ra.news_n, memory_order_relaxed);
	struct urn_router_news *news = &nb->ra.news[n % URN_ROUTER_NEWS];

	*news = (struct urn_router_news){.what = (uint8_t)what, .route = e->route};
	news->route.left_s = left_s(nb, e);
	if (before != NULL)
		memcpy(news->before, before, 16);
	atomic_store_explicit(&nb->ra.news_n, n + 1, memory_order_relaxed);
}

/* Tell of elements that came or went, and free the latter. */
static void
tell_all(struct urn_neigh *nb)
{
	for (unsigned int i = 0; i < URN_NEIGH_ADVERTISED; i++) {
		struct advertised *e = &nb->ra.at[i];

		if (e->state == ADVERTISED_GOING) {
			tell(nb, e->why, e, NULL);
			e->state = ADVERTISED_FREE;
		} else if (e->state == ADVERTISED_NEW) {
			tell(nb, URN_ROUTER_CAME, e, NULL);
			e->state = ADVERTISED_TOLD;
		}
	}
}

/* How little a router is wanted: without an answer, then by preference; the one in use first. */
static unsigned int
rank(const struct urn_neigh *nb, const struct advertised *e)
{
	return (e->shunned != 0) * 8u + (unsigned int)(1 - e->preference) * 2u +
	       (memcmp(e->route.via, nb->ra.used, 16) != 0);
}

/* The router that is to be used. NULL: there is none */
static struct advertised *
best(struct urn_neigh *nb)
{
	struct advertised *b = NULL;

	for (unsigned int i = 0; i < URN_NEIGH_ROUTERS; i++) {
		struct advertised *e = &nb->ra.at[i];

		if (is_there(e) && (b == NULL || rank(nb, e) < rank(nb, b)))
			b = e;
	}
	return b;
}

/* Write the routes, the one of the best router before those of others. returns: their number */
static unsigned int
list_routes(struct urn_neigh *nb, const struct advertised *first,
	    struct urn_neigh_route out[URN_NEIGH_ADVERTISED])
{
	unsigned int n = 0;

	if (first != NULL)
		out[n++] = first->route;
	for (unsigned int i = 0; i < URN_NEIGH_ADVERTISED; i++)
		if (is_there(&nb->ra.at[i]) && &nb->ra.at[i] != first)
			out[n++] = nb->ra.at[i].route;
	return n;
}

/* True when these n routes are those that are listed, in the same order. */
static bool
is_listed(const struct urn_neigh *nb, const struct urn_neigh_route *r, unsigned int n)
{
	unsigned int i = 0;

	while (i < n && n == nb->ra.listed && is_same(&r[i], &nb->ra.list[i]))
		i++;
	return i == n && n == nb->ra.listed;
}

/* True when a configured route has all destinations of IPv6 that no other has. */
static bool
has_gateway(const struct urn_neigh *nb)
{
	for (unsigned int i = 0; i < nb->routes; i++)
		if (nb->route[i].len == 0 && nb->route[i].kind != URN_NEIGH_ROUTE_ROUTER)
			return true;
	return false;
}

/* Choose the router that is used, and change the routes if they are others now. */
static void
choose(struct urn_neigh *nb)
{
	struct urn_neigh_route now[URN_NEIGH_ADVERTISED];
	const struct advertised *first = best(nb);
	const uint8_t *via = first != NULL ? first->route.via : nobody;
	const uint8_t *next = has_gateway(nb) ? nobody : via;
	unsigned int n = list_routes(nb, first, now);

	if (!is_listed(nb, now, n)) {
		memcpy(nb->ra.list, now, n * sizeof(now[0]));
		nb->ra.listed = n;
		urn_neigh_replace_advertised(nb);
	}
	memcpy(nb->ra.used, via, 16);
	if (next != nobody && memcmp(nb->ra.told, next, 16) != 0)
		tell(nb, URN_ROUTER_USED, first, nb->ra.told);
	memcpy(nb->ra.told, next, 16);
}

void
urn_neigh_review_routers(struct urn_neigh *nb)
{
	if (nb->ra.listed == 0)
		return;
	changed(nb);
	schedule(nb);
}

static void
settle(struct urn_neigh *nb)
{
	for (unsigned int i = 0; i < URN_NEIGH_ADVERTISED; i++) {
		struct advertised *e = &nb->ra.at[i];

		if (is_there(e) && e->ends <= nb->now)
			end(nb, e, URN_ROUTER_EXPIRED);
		if (e->shunned != 0 && e->shunned <= nb->now) {
			e->shunned = 0;
			changed(nb);
		}
	}
	if (nb->ra.settle > nb->now)
		return;
	nb->ra.settle = NEVER;
	nb->ra.settled = nb->now;
	tell_all(nb);
	choose(nb);
}

/* Write the solicitation that is due. returns: frames in out[], 0 or 1 */
static unsigned int
solicit(struct urn_neigh *nb, struct rte_mempool *pool, struct rte_mbuf **out)
{
	static const uint8_t link_local[16] = {0xfe, 0x80};
	const uint8_t *src = urn_neigh_source(nb, link_local);

	if (src == NULL || !urn_neigh_link_local(src)) {
		nb->ra.ask = NEVER; /* the adapter has no address to ask from */
		return 0;
	}
	*out = urn_neigh_new_frame(pool);
	if (*out == NULL)
		return 0; /* stays due */
	urn_ra_solicit(*out, nb->mac, src);
	nb->ra.solicits++;
	nb->ra.ask =
		nb->ra.solicits < URN_ROUTER_SOLICITS ? nb->now + URN_ROUTER_INTERVAL_NS : NEVER;
	return 1;
}

unsigned int
urn_neigh_poll_ra(struct urn_neigh *nb, struct rte_mempool *pool, struct rte_mbuf **out,
		  unsigned int max)
{
	struct urn_neigh_ra *ra = &nb->ra;
	unsigned int n = 0;

	if (ra->restart) {
		ra->restart = false;
		ra->solicits = 0;
		ra->ask = nb->now + rte_rand_max(URN_ROUTER_DELAY_NS);
	}
	settle(nb);
	if (ra->ask <= nb->now && max != 0)
		n = solicit(nb, pool, out);
	schedule(nb);
	return n;
}

void
urn_neigh_restart_ra(struct urn_neigh *nb)
{
	rte_spinlock_lock(&nb->lock);
	nb->ra.restart = true;
	schedule(nb);
	rte_spinlock_unlock(&nb->lock);
}

uint32_t
urn_neigh_advertised_left(const struct urn_neigh *nb, const struct urn_neigh_route *r)
{
	for (unsigned int i = 0; i < URN_NEIGH_ADVERTISED; i++) {
		const struct advertised *e = &nb->ra.at[i];

		if (e->state != ADVERTISED_FREE && is_same(&e->route, r))
			return left_s(nb, e);
	}
	return 0;
}

/* ---- public */

void
urn_neigh_accept_ra(struct urn_neigh *nb)
{
	nb->ra_on = true;
	nb->ra.ask = NEVER;
	nb->ra.settle = NEVER;
	nb->ra.next = NEVER;
}

bool
urn_neigh_accepts_ra(const struct urn_neigh *nb)
{
	return nb->ra_on;
}

unsigned int
urn_neigh_router_news(struct urn_neigh *nb, uint32_t *seen, struct urn_router_news *out,
		      unsigned int max, uint32_t *lost)
{
	unsigned int n = 0;
	uint32_t last;

	*lost = 0;
	if (atomic_load_explicit(&nb->ra.news_n, memory_order_relaxed) == *seen)
		return 0;
	rte_spinlock_lock(&nb->lock);
	last = atomic_load_explicit(&nb->ra.news_n, memory_order_relaxed);
	if (last - *seen > URN_ROUTER_NEWS) {
		*lost = last - *seen - URN_ROUTER_NEWS;
		*seen += *lost;
	}
	for (; *seen != last && n < max; ++*seen)
		out[n++] = nb->ra.news[*seen % URN_ROUTER_NEWS];
	rte_spinlock_unlock(&nb->lock);
	return n;
}
