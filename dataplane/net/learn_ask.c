/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking peers for their features: the order, how often, and how long a
 * request waits for its answer. All under the table's lock.
 */
#include "net/learn_table.h"

#include <string.h>

#define MAC_WAIT_NS 1000000ull	     /* before the neighbour table is asked again */
#define MAC_GIVE_UP_NS 5000000000ull /* the neighbour table fails sooner, unless it is full */
#define POLL_MOVES 64 /* entries that one poll looks at, besides those it sends for */

/*
 * The next entry: unanswered ones first, so that new ones can't starve
 * them; entries that wait for their MAC address last, because they come every time.
 */
static struct urn_learn_entry *
first_due(struct urn_learn *lk)
{
	struct urn_learn_entry *e;

	for (unsigned int i = URN_LEARN_ON_TRIED; i <= URN_LEARN_ON_TRIED_LAST; i++) {
		e = urn_table_first(&lk->table, i);
		if (e && e->due <= lk->now)
			return e;
	}
	e = urn_table_first(&lk->table, URN_LEARN_ON_FRESH);
	if (e)
		return e;
	e = urn_table_first(&lk->table, URN_LEARN_ON_NO_MAC);
	return e && e->due <= lk->now ? e : NULL;
}

/* Wait of a request for its answer, ns; tries: requests sent before it. */
static uint64_t
patience(unsigned int tries)
{
	uint64_t ns = URN_LEARN_RETRY_NS << tries;

	return ns < URN_LEARN_RETRY_MAX_NS ? ns : URN_LEARN_RETRY_MAX_NS;
}

/* Send an entry's next request, or end asking. returns: a frame, or NULL with *empty: no buffer */
static struct rte_mbuf *
ask(struct urn_learn *lk, struct urn_learn_entry *e, struct rte_mempool *pool, bool *empty)
{
	const struct urn_link_msg msg = {.response = false, .tid = e->tid};
	const uint8_t *own = urn_neigh_source(lk->cfg.neigh, e->t.key);
	int rc = e->tries < URN_LEARN_TRIES && own ? 0 : URN_NEIGH_FAIL;
	struct rte_mbuf *m;
	uint8_t mac[6];

	if (e->t.list == URN_LEARN_ON_FRESH)
		e->since = lk->now;
	if (rc == 0)
		rc = urn_neigh_lookup(lk->cfg.neigh, e->t.key, mac);
	if (rc == URN_NEIGH_NO_ROUTE)
		rc = URN_NEIGH_FAIL;
	if (rc == URN_NEIGH_UNKNOWN && lk->now - e->since > MAC_GIVE_UP_NS)
		rc = URN_NEIGH_FAIL;
	if (rc == URN_NEIGH_FAIL) {
		urn_learn_set_plain(lk, e);
		return NULL;
	}
	if (rc == URN_NEIGH_UNKNOWN) {
		e->due = lk->now + MAC_WAIT_NS;
		urn_learn_move(lk, e, URN_LEARN_ON_NO_MAC);
		return NULL;
	}
	m = rte_pktmbuf_alloc(pool);
	*empty = !m;
	if (!m)
		return NULL;
	memset(urn_pkt(m), 0, sizeof(struct urn_pkt));
	memcpy(e->own, own, 16);
	urn_learn_frame(lk, m, &msg, own, e->t.key, mac);
	e->due = lk->now + patience(e->tries);
	urn_learn_move(lk, e, (enum urn_learn_list)(URN_LEARN_ON_TRIED + e->tries));
	e->tries++;
	return m;
}

unsigned int
urn_learn_poll(struct urn_learn *lk, uint64_t now, struct rte_mempool *pool, struct rte_mbuf **out,
	      unsigned int max)
{
	unsigned int n = 0, moves = 0;
	bool empty = false;
	struct urn_learn_entry *e;

	rte_spinlock_lock(&lk->lock);
	urn_learn_set_time(lk, now);
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
