/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Use that clients make of their limits, for the report on limits. The ledger (base/ledger.h) is
 * read under its lock, which is taken for one client at a time and is never held long.
 */
#include "report/report_priv.h"

#include "control/quota.h"

/* A sum in progress, for one client or for all. */
struct adding {
	uint32_t id; /* the client's; 0: all */
	bool found;
	struct urn_ledger *ledger;   /* the server's; NULL: the server has no clients */
	struct urn_account *account; /* with an id: the account of the client's user */
	struct report_use *use;
};

static void
most(uint64_t *a, uint64_t b)
{
	*a = *a > b ? *a : b;
}

/* Add a client, whose adapter's lock is held. */
static void
add_client(struct adding *w, const struct urn_client *c)
{
	struct urn_account *account = LOOK(c->quota.account);

	if (w->id && c->id != w->id)
		return;
	w->found = true;
	if (account == NULL) /* a client of this process has no limits */
		return;
	if (w->id)
		w->account = account;
	w->ledger = account->ledger;
	pthread_mutex_lock(&w->ledger->lock);
	for (unsigned int i = 0; i < URN_QUOTAS; i++)
		most(&w->use->client[i], c->quota.used[i]);
	pthread_mutex_unlock(&w->ledger->lock);
	/* Connection management counts its ids itself. */
	most(&w->use->client[URN_QUOTA_CM], LOOK(c->cm.owner.ids));
}

/* Add the users, and all together. The ledger's lock is held. */
static void
add_users(struct adding *w)
{
	const struct urn_ledger *l = w->ledger;
	struct report_use *use = w->use;

	for (unsigned int i = 0; i < URN_QUOTAS; i++) {
		use->max[i] = l->limits.max[i];
		use->all[i] = l->used[i];
	}
	for (const struct urn_account *u = l->accounts; u; u = u->next) {
		uint64_t ids = atomic_load_explicit(&u->apart, memory_order_relaxed);

		use->clients += u->clients;
		use->all[URN_QUOTA_CM] += ids;
		if (w->account && w->account != u)
			continue;
		most(&use->clients_uid, u->clients);
		for (unsigned int i = 0; i < URN_QUOTAS; i++)
			most(&use->uid[i], u->used[i]);
		most(&use->uid[URN_QUOTA_CM], ids);
	}
}

int
report_use(const struct urn_report_source *src, uint32_t id, struct report_use *use,
	   struct urn_err *err)
{
	struct adding w = {.id = id, .use = use};

	memset(use, 0, sizeof(*use));
	for (unsigned int i = 0; i < src->dp->adapters_n; i++) {
		struct urn_adapter *a = src->dp->adapter[i];

		if (urn_report_lock(a, err) != 0)
			return -1;
		for (const struct urn_client *c = LIST_FIRST(&a->clients); c;
		     c = LIST_NEXT(c, link))
			add_client(&w, c);
		urn_report_unlock(a);
	}
	if (id && !w.found) {
		urn_err_set(err, "no client has the number %u; 'show client' lists them", id);
		return -1;
	}
	if (w.ledger == NULL)
		return 0;
	pthread_mutex_lock(&w.ledger->lock);
	add_users(&w);
	pthread_mutex_unlock(&w.ledger->lock);
	return 0;
}
