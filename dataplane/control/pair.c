/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/pair.h"
#include "control/adapter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include <rte_jhash.h>
#include <rte_random.h>

struct urn_pair {
	struct urn_pair *next;      /* in its bucket; NULL: the last */
	struct urn_pair *held_next; /* of the client; valid while held */
	struct urn_client *client;
	struct urn_qp *qp;          /* the client's; it outlives the entry */
	uint8_t dgid[16];           /* the remote queue pair's address and number */
	uint32_t dqpn;
	bool held;                  /* sends no requests; in the client's list */
};

int
urn_pairs_init(struct urn_pairs *ps, uint32_t qps)
{
	ps->buckets = urn_pow2(qps);
	ps->seed = (uint32_t)rte_rand();
	ps->bucket = calloc(ps->buckets, sizeof(*ps->bucket));
	return ps->bucket ? 0 : ENOMEM;
}

void
urn_pairs_fini(struct urn_pairs *ps)
{
	free(ps->bucket);
}

static struct urn_pair **
bucket_of(const struct urn_pairs *ps, const uint8_t dgid[16], uint32_t dqpn)
{
	uint32_t word[5];

	memcpy(word, dgid, 16);
	word[4] = dqpn;
	return &ps->bucket[rte_jhash_32b(word, 5, ps->seed) & (ps->buckets - 1)];
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
	struct urn_pair **at = &p->client->held;

	if (!p->held)
		return;
	while (*at != p)
		at = &(*at)->held_next;
	*at = p->held_next;
	p->held = false;
}

/* Free the entry that *at leads to. */
static void
take_out(struct urn_pairs *ps, struct urn_pair **at)
{
	struct urn_pair *p = *at;

	unlink_held(p);
	*at = p->next;
	ps->n--;
	free(p);
}

void
urn_pair_drop(struct urn_client *c, const struct urn_qp *qp, const uint8_t dgid[16], uint32_t dqpn)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	struct urn_pair **at = bucket_of(ps, dgid, dqpn);

	while (*at && ((*at)->qp != qp || !is(*at, dgid, dqpn)))
		at = &(*at)->next;
	if (*at)
		take_out(ps, at);
}

static int
put_in(struct urn_client *c, struct urn_qp *qp, struct urn_pair_claim *k)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	struct urn_pair **at = bucket_of(ps, k->dgid, k->dqpn), *p;

	for (p = *at; p; p = p->next)
		if (p->qp == qp && is(p, k->dgid, k->dqpn))
			return 0; /* it has it (SQD) */
	p = calloc(1, sizeof(*p));
	if (!p)
		return ENOMEM;
	p->client = c;
	p->qp = qp;
	memcpy(p->dgid, k->dgid, 16);
	p->dqpn = k->dqpn;
	p->held = k->held;
	if (p->held) {
		p->held_next = c->held;
		c->held = p;
	}
	p->next = *at;
	*at = p;
	ps->n++;
	k->made = true;
	return 0;
}

/* ---- what is done in the QP's own engine */

struct errand {
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

/* Find out whether a QP has stopped: it sends nothing any more. */
static void
look(void *arg)
{
	struct errand *e = arg;

	e->stopped = urn_qp_silent(e->qp);
}

static void
count_refused(void *arg)
{
	struct errand *e = arg;

	URN_COUNT(e->tp, PAIR_REFUSED);
}

static void
end(void *arg)
{
	struct errand *e = arg;

	URN_COUNT(e->tp, PAIR_ENDED);
	urn_qp_lost(e->tp, e->qp);
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

/* True when another client's QP is connected there and has not stopped. Forgets those that have. */
static bool
others(struct urn_client *c, const struct urn_pair_claim *k)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	struct urn_pair **at = bucket_of(ps, k->dgid, k->dqpn);

	while (*at) {
		struct errand e;

		if ((*at)->client == c || !is(*at, k->dgid, k->dqpn)) {
			at = &(*at)->next;
			continue;
		}
		run(c, (*at)->qp, look, &e);
		if (!e.stopped)
			return true;
		take_out(ps, at);
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

int
urn_pair_claim(struct urn_client *c, struct urn_qp *qp, struct urn_pair_claim *k,
	       struct urn_abi_rep *rep)
{
	enum urn_cm_claim claim = ask_cm(c, k->dgid, k->dqpn);

	k->stands = claim == URN_CM_CLAIM_OWN;
	if (!k->stands && (claim == URN_CM_CLAIM_OTHER || others(c, k))) {
		if (claim != URN_CM_CLAIM_ASKED)
			return refuse(c, qp, k, rep);
		k->held = true;
	}
	return put_in(c, qp, k);
}

void
urn_pair_hold(struct urn_qp *qp, const struct urn_pair_claim *k)
{
	if (k->held)
		qp->flags |= URN_QPF_HOLD;
	else
		qp->flags &= ~(uint32_t)URN_QPF_HOLD;
}

void
urn_pair_won(struct urn_client *c, const struct urn_pair_claim *k)
{
	struct urn_pairs *ps = &c->adapter->pairs;
	struct urn_pair **at = bucket_of(ps, k->dgid, k->dqpn);

	while (*at) {
		struct errand e;

		if ((*at)->client == c || !is(*at, k->dgid, k->dqpn)) {
			at = &(*at)->next;
			continue;
		}
		run(c, (*at)->qp, end, &e);
		take_out(ps, at);
	}
}

void
urn_pair_settle(struct urn_client *c)
{
	struct urn_pair *p = c->held, *next;

	for (; p; p = next) {
		struct urn_pair_claim k = {.dqpn = p->dqpn};
		struct errand e;

		next = p->held_next;
		memcpy(k.dgid, p->dgid, 16);
		if (ask_cm(c, p->dgid, p->dqpn) != URN_CM_CLAIM_OWN)
			continue;
		urn_pair_won(c, &k);
		unlink_held(p);
		run(c, p->qp, let_go, &e);
	}
}
