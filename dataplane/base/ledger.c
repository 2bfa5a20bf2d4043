/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ledger.h"

#include <stdlib.h>
#include <string.h>

void
urn_ledger_init(struct urn_ledger *l, const struct urn_limits *limits)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	l->limits = *limits;
}

void
urn_ledger_fini(struct urn_ledger *l)
{
	while (l->accounts) {
		struct urn_account *next = l->accounts->next;

		free(l->accounts);
		l->accounts = next;
	}
	pthread_mutex_destroy(&l->lock);
}

uint64_t
urn_ledger_refused(const struct urn_ledger *l, unsigned int kind)
{
	return atomic_load_explicit(&l->refused[kind], memory_order_relaxed);
}

/* ---- users */

/* The account of a user, made if need be. The ledger's lock is held. NULL: no memory */
static struct urn_account *
account_of(struct urn_ledger *l, uid_t uid, const struct urn_limits *limits)
{
	struct urn_account *u = l->accounts;

	while (u && u->uid != uid)
		u = u->next;
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->ledger = l;
	u->limits = *limits;
	u->next = l->accounts;
	l->accounts = u;
	return u;
}

struct urn_account *
urn_account_join(struct urn_ledger *l, uid_t uid, const struct urn_limits *limits, uint32_t max,
		 bool *full)
{
	struct urn_account *u;

	pthread_mutex_lock(&l->lock);
	u = account_of(l, uid, limits);
	*full = u && u->clients >= max;
	if (*full)
		u = NULL;
	if (u)
		u->clients++;
	pthread_mutex_unlock(&l->lock);
	return u;
}

void
urn_account_leave(struct urn_account *u)
{
	pthread_mutex_lock(&u->ledger->lock);
	u->clients--;
	pthread_mutex_unlock(&u->ledger->lock);
}

/* Count a refusal by the limits of all users together. The ledger's lock is held. */
static void
refused(struct urn_ledger *l, unsigned int kind)
{
	atomic_fetch_add_explicit(&l->refused[kind], 1, memory_order_relaxed);
}

/* Take n of a kind, at most `most` for the user. */
static bool
take(struct urn_account *u, unsigned int kind, uint64_t n, uint64_t most)
{
	struct urn_ledger *l = u->ledger;
	bool ok, room;

	pthread_mutex_lock(&l->lock);
	ok = u->used[kind] <= most && n <= most - u->used[kind];
	room = n <= l->limits.max[kind] - l->used[kind];
	if (ok && !room)
		refused(l, kind);
	ok = ok && room;
	if (ok) {
		l->used[kind] += n;
		u->used[kind] += n;
	}
	pthread_mutex_unlock(&l->lock);
	return ok;
}

bool
urn_account_take(struct urn_account *u, unsigned int kind, uint64_t n)
{
	return !u || take(u, kind, n, UINT64_MAX);
}

bool
urn_account_take_own(struct urn_account *u, unsigned int kind, uint64_t n)
{
	return !u || take(u, kind, n, u->limits.max[kind]);
}

void
urn_account_give(struct urn_account *u, unsigned int kind, uint64_t n)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->ledger->lock);
	u->ledger->used[kind] -= n;
	u->used[kind] -= n;
	pthread_mutex_unlock(&u->ledger->lock);
}

/* ---- holders; the ledger's lock is held */

/* True when n more of a kind are allowed; false with *no: the holder's limit is asked first. */
static bool
allowed(const struct urn_tally *t, unsigned int kind, uint64_t n, struct urn_ledger_refusal *no)
{
	const struct urn_account *u = t->account;
	const struct urn_ledger *l = u->ledger;

	*no = (struct urn_ledger_refusal){URN_LEDGER_HOLDER, kind, t->limits.max[kind]};
	if (n > no->max - t->used[kind])
		return false;
	*no = (struct urn_ledger_refusal){URN_LEDGER_USER, kind, u->limits.max[kind]};
	if (n > no->max - u->used[kind])
		return false;
	*no = (struct urn_ledger_refusal){URN_LEDGER_ALL, kind, l->limits.max[kind]};
	return n <= no->max - l->used[kind];
}

/* Unsigned arithmetic is exact: counts go down by as much as they went up. */
static void
count(struct urn_tally *t, unsigned int kind, uint64_t n)
{
	t->used[kind] += n;
	t->account->used[kind] += n;
	t->account->ledger->used[kind] += n;
}

/* ---- holders */

bool
urn_tally_take(struct urn_tally *t, const uint64_t n[URN_LEDGER_KINDS], struct urn_ledger_refusal *no)
{
	bool ok = true;

	if (!t->account)
		return true;
	pthread_mutex_lock(&t->account->ledger->lock);
	for (unsigned int k = 0; k < URN_LEDGER_KINDS && ok; k++)
		ok = allowed(t, k, n[k], no);
	if (!ok && no->level == URN_LEDGER_ALL)
		refused(t->account->ledger, no->kind);
	for (unsigned int k = 0; k < URN_LEDGER_KINDS && ok; k++)
		count(t, k, n[k]);
	pthread_mutex_unlock(&t->account->ledger->lock);
	return ok;
}

void
urn_tally_give(struct urn_tally *t, const uint64_t n[URN_LEDGER_KINDS])
{
	if (!t->account)
		return;
	pthread_mutex_lock(&t->account->ledger->lock);
	for (unsigned int k = 0; k < URN_LEDGER_KINDS; k++)
		count(t, k, -n[k]);
	pthread_mutex_unlock(&t->account->ledger->lock);
}

void
urn_tally_leave(struct urn_tally *t)
{
	if (!t->account)
		return;
	pthread_mutex_lock(&t->account->ledger->lock);
	for (unsigned int k = 0; k < URN_LEDGER_KINDS; k++)
		count(t, k, -t->used[k]);
	pthread_mutex_unlock(&t->account->ledger->lock);
	t->account = NULL;
}
