/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/pair.h"
#include "control/lock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include <rte_random.h>

struct urn_pair {
	LIST_ENTRY(urn_pair) of_held;   /* in the client's list; valid while held */
	LIST_ENTRY(urn_pair) of_doomed; /* in its engine's list; valid while doomed */
	struct urn_client *client;
	struct urn_qp *qp;          /* the client's QP; it outlives the entry */
	uint8_t dgid[16];           /* the remote queue pair's address and number */
	uint32_t dqpn;
	uint32_t next;              /* index of the next entry in the bucket, or among the free ones */
	bool held;                  /* the QP sends no requests; in the client's list. Under the adapter's lock */
	bool doomed;                /* the QP is to end; in the engine's list. Under the table's own lock */
};

static void
end_some(struct urn_engine_ends *e, struct urn_tp *tp)
{
	urn_pairs_end((struct urn_pairs *)((uintptr_t)e - offsetof(struct urn_pairs, ends)), tp);
}

int
urn_pairs_init(struct urn_pairs *ps, uint32_t qps, uint32_t engines)
{
	rte_spinlock_init(&ps->lock);
	ps->ends.end = end_some;
	ps->n = 0;
	urn_pool_init(&ps->pool, 0, 2 * qps * engines);
	ps->pair = calloc(ps->pool.end, sizeof(*ps->pair));
	if (urn_hash_init(&ps->hash, qps, (uint32_t)rte_rand()) || !ps->pair) {
		urn_pairs_fini(ps);
		return ENOMEM;
	}
	return 0;
}

void
urn_pairs_fini(struct urn_pairs *ps)
{
	urn_hash_fini(&ps->hash);
	free(ps->pair);
	ps->pair = NULL;
}

/* Where the index of the first entry with this hash stands. */
static uint32_t *
bucket_of(const struct urn_pairs *ps, const uint8_t dgid[16], uint32_t dqpn)
{
	uint32_t word[5];

	memcpy(word, dgid, 16);
	word[4] = dqpn;
	return urn_hash_bucket(&ps->hash, word, 5);
}

/* The entry whose index stands at `at`. NULL: the end of the bucket */
static struct urn_pair *
at_index(const struct urn_pairs *ps, const uint32_t *at)
{
	return *at == URN_HASH_NIL ? NULL : &ps->pair[*at];
}

static bool
is(const struct urn_pair *p, const uint8_t dgid[16], uint32_t dqpn)
{
	return p->dqpn == dqpn && memcmp(p->dgid, dgid, 16) == 0;
}

static struct urn_shard *
shard_of(const struct urn_client *c, const struct urn_qp *qp)
{
	return c->adapter->shard[urn_qpn_engine(qp->qpn)];
}

/* ---- entries */

static void
unlink_held(struct urn_pair *p)
{
	if (p->held)
		LIST_REMOVE(p, of_held);
	p->held = false;
}

/* A free entry, all zero. NULL: there is none */
static struct urn_pair *
fresh(struct urn_pairs *ps)
{
	uint32_t i = urn_pool_get(&ps->pool, &ps->pair->next, sizeof(*ps->pair));
	struct urn_pair *p = at_index(ps, &i);

	if (p)
		memset(p, 0, sizeof(*p));
	return p;
}

/* Free the entry whose index stands at `at`: in its bucket, or in the entry before it. */
static void
take_out(struct urn_pairs *ps, uint32_t *at)
{
	struct urn_pair *p = at_index(ps, at);
	uint32_t i = *at;

	unlink_held(p);
	rte_spinlock_lock(&ps->lock);
	if (p->doomed)
		LIST_REMOVE(p, of_doomed);
	urn_hash_take(at, i, &ps->pair->next, sizeof(*p));
	rte_spinlock_unlock(&ps->lock);
	urn_pool_put(&ps->pool, i, &ps->pair->next, sizeof(*p));
	ps->n--;
}

void
urn_pair_drop(struct urn_client *c, const struct urn_qp *qp, const uint8_t dgid[16], uint32_t dqpn)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	uint32_t *at = bucket_of(ps, dgid, dqpn);
	struct urn_pair *p;

	while ((p = at_index(ps, at)) && (p->qp != qp || !is(p, dgid, dqpn)))
		at = &p->next;
	if (p)
		take_out(ps, at);
}

/* Count the client's entries with this remote QP; *own: the entry of this QP, if there is one. */
static uint32_t
count_own(const struct urn_client *c, const struct urn_qp *qp, const struct urn_pair_claim *k,
	  struct urn_pair **own)
{
	const struct urn_pairs *ps = &c->adapter->pairs;
	const uint32_t *at = bucket_of(ps, k->dgid, k->dqpn);
	struct urn_pair *p;
	uint32_t n = 0;

	*own = NULL;
	for (; (p = at_index(ps, at)); at = &p->next) {
		if (p->client != c || !is(p, k->dgid, k->dqpn))
			continue;
		n++;
		if (p->qp == qp)
			*own = p;
	}
	return n;
}

static struct urn_pair *
put_in(struct urn_client *c, struct urn_qp *qp, struct urn_pair_claim *k)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	struct urn_pair *p = fresh(ps);

	if (!p)
		return NULL;
	p->client = c;
	p->qp = qp;
	memcpy(p->dgid, k->dgid, 16);
	p->dqpn = k->dqpn;
	rte_spinlock_lock(&ps->lock);
	urn_hash_put(bucket_of(ps, k->dgid, k->dqpn), (uint32_t)(p - ps->pair), &p->next);
	rte_spinlock_unlock(&ps->lock);
	ps->n++;
	k->made = true;
	return p;
}

/* ---- QPs that are to end */

void
urn_pair_doom(struct urn_pairs *ps, const struct urn_cm_owner *o, const uint8_t dgid[16], uint32_t dqpn)
{
	const uint32_t *at = bucket_of(ps, dgid, dqpn);
	struct urn_pair *p;

	rte_spinlock_lock(&ps->lock);
	for (; (p = at_index(ps, at)); at = &p->next) {
		unsigned int engine = urn_qpn_engine(p->qp->qpn);

		if (&p->client->cm.owner == o || p->doomed || !is(p, dgid, dqpn))
			continue;
		LIST_INSERT_HEAD(&ps->doomed[engine], p, of_doomed);
		p->doomed = true;
		atomic_fetch_or_explicit(&ps->ends.due, 1u << engine, memory_order_relaxed);
	}
	rte_spinlock_unlock(&ps->lock);
}

/* The next doomed QP of the engine; NULL: none is left. Valid until the engine's thread does something else. */
static struct urn_qp *
next_doomed(struct urn_pairs *ps, unsigned int engine)
{
	struct urn_qp *qp = NULL;
	struct urn_pair *p;

	rte_spinlock_lock(&ps->lock);
	p = LIST_FIRST(&ps->doomed[engine]);
	if (p) {
		LIST_REMOVE(p, of_doomed);
		p->doomed = false;
		qp = p->qp;
	} else {
		atomic_fetch_and_explicit(&ps->ends.due, ~(1u << engine), memory_order_relaxed);
	}
	rte_spinlock_unlock(&ps->lock);
	return qp;
}

void
urn_pairs_end(struct urn_pairs *ps, struct urn_tp *tp)
{
	struct urn_qp *qp;

	for (unsigned int i = 0; i < URN_PAIR_STEP && (qp = next_doomed(ps, tp->cfg.engine)); i++) {
		if (qp->state != URN_QPS_ERR && qp->state != URN_QPS_RESET && !(qp->flags & URN_QPF_DYING))
			URN_COUNT(tp, PAIR_ENDED);
		urn_qp_lost(tp, qp);
	}
}

/* ---- functions that run in the QP's own engine */

struct errand {
	struct urn_client *client;
	struct urn_tp *tp;
	struct urn_qp *qp;
	bool stopped;
};

static void
run(struct urn_client *c, struct urn_qp *qp, void (*fn)(void *), struct errand *e)
{
	e->tp = shard_of(c, qp)->tp;
	e->qp = qp;
	urn_engine_call(shard_of(c, qp)->engine, fn, e);
}

/* Find out whether a QP has stopped, and so sends nothing any more. */
static void
look(void *arg)
{
	struct errand *e = arg;

	e->stopped = urn_qp_silent(e->tp, e->qp);
}

static void
count_refused(void *arg)
{
	struct errand *e = arg;

	URN_COUNT(e->tp, PAIR_REFUSED);
}

static void
let_go(void *arg)
{
	struct errand *e = arg;

	e->qp->flags &= ~(uint32_t)URN_QPF_HOLD;
	urn_tp_doorbell(e->tp, e->qp);
}

/* ---- claims */

static enum urn_cm_claim
ask_cm(struct urn_client *c, const uint8_t dgid[16], uint32_t dqpn)
{
	enum urn_cm_claim claim;
	struct urn_cm *cm;

	if (!c->adapter->cm)
		return URN_CM_CLAIM_NONE;
	cm = urn_cm_agent_lock(c->adapter->cm);
	claim = urn_cm_claimed(cm, &c->cm.owner, dgid, dqpn);
	urn_cm_agent_unlock(c->adapter->cm);
	return claim;
}

/*
 * True when a QP of another client is connected there that has not stopped. Forgets QPs that have
 * stopped: of other clients up to that QP; with `own` all of the client's own.
 */
static bool
others(struct urn_client *c, const struct urn_pair_claim *k, bool own)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	uint32_t *at = bucket_of(ps, k->dgid, k->dqpn);
	struct urn_pair *p;

	while ((p = at_index(ps, at))) {
		struct errand e = {.stopped = false};

		if ((p->client == c) == own && is(p, k->dgid, k->dqpn)) {
			run(c, p->qp, look, &e);
			if (!e.stopped && !own)
				return true;
		}
		if (e.stopped)
			take_out(ps, at);
		else
			at = &p->next;
	}
	return false;
}

static int
refuse(struct urn_client *c, struct urn_qp *qp, const struct urn_pair_claim *k,
       struct urn_abi_rep *rep)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct errand e;

	run(c, qp, count_refused, &e);
	inet_ntop(urn_gid_is_v4(k->dgid) ? AF_INET : AF_INET6,
		  k->dgid + (urn_gid_is_v4(k->dgid) ? 12 : 0), text, sizeof(text));
	return urn_ctl_fail(rep, EADDRINUSE, "%s: QP 0x%x can't be connected to QP 0x%x at %s: another "
			    "program of this adapter is, and the peer could not tell them apart",
			    c->adapter->cfg.name, qp->qpn, k->dqpn, text);
}

/* The QP's entry, new or old (SQD); NULL with *rc: no room. The client's stopped QPs make room. */
static struct urn_pair *
enter(struct urn_client *c, struct urn_qp *qp, struct urn_pair_claim *k, struct urn_abi_rep *rep, int *rc)
{
	struct urn_pair *own;
	uint32_t n = count_own(c, qp, k, &own);

	if (own)
		return own;
	if (n >= URN_PAIR_SAME) {
		(void)others(c, k, true);
		n = count_own(c, qp, k, &own);
	}
	if (n >= URN_PAIR_SAME) {
		*rc = urn_ctl_fail(rep, EDQUOT, "%s: QP 0x%x can't be connected to QP 0x%x: %u QPs of the "
				   "program are, and more may not be", c->adapter->cfg.name, qp->qpn, k->dqpn, n);
		return NULL;
	}
	*rc = ENOMEM;
	return put_in(c, qp, k);
}

int
urn_pair_claim(struct urn_client *c, struct urn_qp *qp, struct urn_pair_claim *k,
	       struct urn_abi_rep *rep)
{
	int rc = 0;
	struct urn_pair *p = enter(c, qp, k, rep, &rc);
	enum urn_cm_claim claim;

	if (!p)
		return rc;
	/* Connection management is asked after the entry is made: a later answer of the peer finds the entry. */
	claim = ask_cm(c, k->dgid, k->dqpn);
	k->stands = claim == URN_CM_CLAIM_OWN;
	if (k->stands || (claim != URN_CM_CLAIM_OTHER && !others(c, k, false)))
		return 0;
	if (claim != URN_CM_CLAIM_ASKED) {
		if (k->made)
			urn_pair_drop(c, qp, k->dgid, k->dqpn);
		k->made = false;
		return refuse(c, qp, k, rep);
	}
	k->held = true;
	if (!k->made)
		return 0;
	p->held = true;
	LIST_INSERT_HEAD(&c->held, p, of_held);
	return 0;
}

void
urn_pair_hold(struct urn_qp *qp, const struct urn_pair_claim *k)
{
	if (k->held)
		qp->flags |= URN_QPF_HOLD;
	else
		qp->flags &= ~(uint32_t)URN_QPF_HOLD;
}

static void
end(void *arg)
{
	struct errand *e = arg;

	urn_pairs_end(&e->client->adapter->pairs, e->tp);
}

/* Have all doomed QPs ended, with a call for each URN_PAIR_STEP of them. */
static void
end_doomed(struct urn_client *c)
{
	struct errand e = {.client = c};

	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES; i++) {
		struct urn_shard *s = c->adapter->shard[i];

		e.tp = s ? s->tp : NULL;
		while (s && urn_engine_ends_due(&c->adapter->pairs.ends, s->tp->cfg.engine))
			urn_engine_call(s->engine, end, &e);
	}
}

void
urn_pair_won(struct urn_client *c, const struct urn_pair_claim *k)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	uint32_t *at = bucket_of(ps, k->dgid, k->dqpn);
	struct urn_pair *p;

	urn_pair_doom(ps, &c->cm.owner, k->dgid, k->dqpn);
	end_doomed(c);
	while ((p = at_index(ps, at))) {
		if (p->client == c || !is(p, k->dgid, k->dqpn))
			at = &p->next;
		else
			take_out(ps, at);
	}
}

void
urn_pair_settle(struct urn_client *c)
{
	struct urn_pair *p, *next;

	for (p = LIST_FIRST(&c->held); p; p = next) {
		struct urn_pair_claim k = {.dqpn = p->dqpn};
		struct errand e;

		next = LIST_NEXT(p, of_held);
		memcpy(k.dgid, p->dgid, 16);
		if (ask_cm(c, p->dgid, p->dqpn) != URN_CM_CLAIM_OWN)
			continue;
		urn_pair_won(c, &k);
		unlink_held(p);
		run(c, p->qp, let_go, &e);
	}
}
