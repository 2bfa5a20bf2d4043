/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/quota.h"

#include "control/objects.h"
#include "control/shm.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
	RESERVE_FDS = 64,       /* for this process itself: /proc, sockets, capture files */
	DEFAULT_MAPS = 65530,   /* the kernel's default, where /proc doesn't tell */
};

static const struct {
	const char *name;
	int err; /* errno value when all clients together have too many */
} kinds[URN_QUOTAS] = {
	[URN_QUOTA_QP] = {"queue pairs", EDQUOT},
	[URN_QUOTA_CQ] = {"completion queues", EDQUOT},
	[URN_QUOTA_SRQ] = {"shared receive queues", EDQUOT},
	[URN_QUOTA_PD] = {"protection domains", EDQUOT},
	[URN_QUOTA_AH] = {"address handles", EDQUOT},
	[URN_QUOTA_MR] = {"regions and windows", EDQUOT},
	[URN_QUOTA_PINNED] = {"bytes of registered memory", EDQUOT},
	[URN_QUOTA_CM] = {"connection ids", EDQUOT},
	[URN_QUOTA_CHANNEL] = {"completion channels", EDQUOT},
	[URN_QUOTA_SHARE] = {"pieces of shared memory", ENOMEM},
	[URN_QUOTA_SHARED] = {"bytes of shared memory", EDQUOT},
	[URN_QUOTA_AREA] = {"bytes of areas for queues", EDQUOT},
	[URN_QUOTA_FD] = {"descriptors", EMFILE},
};

/* Kinds of which a call makes one (take) or takes one back; a bit for each quota. */
#define BIT(q) (1u << URN_QUOTA_##q)
static const struct {
	uint16_t take, back;
} effects[URN_CTL_OPS] = {
	[URN_CTL_CREATE_QP] = {BIT(QP), 0},
	[URN_CTL_DESTROY_QP] = {0, BIT(QP)},
	[URN_CTL_CREATE_CQ] = {BIT(CQ), 0},
	[URN_CTL_DESTROY_CQ] = {0, BIT(CQ)},
	[URN_CTL_CREATE_SRQ] = {BIT(SRQ), 0},
	[URN_CTL_DESTROY_SRQ] = {0, BIT(SRQ)},
	[URN_CTL_ALLOC_PD] = {BIT(PD), 0},
	[URN_CTL_DEALLOC_PD] = {0, BIT(PD)},
	[URN_CTL_CREATE_AH] = {BIT(AH), 0},
	[URN_CTL_DESTROY_AH] = {0, BIT(AH)},
	[URN_CTL_REG_MR] = {BIT(MR) | BIT(PINNED), 0},
	[URN_CTL_DEREG_MR] = {0, BIT(MR) | BIT(PINNED)},
	[URN_CTL_ALLOC_MW] = {BIT(MR), 0},
	[URN_CTL_DEALLOC_MW] = {0, BIT(MR)},
	[URN_CTL_SHARE] = {BIT(SHARE) | BIT(SHARED), 0},
	[URN_CTL_UNSHARE] = {0, BIT(SHARE) | BIT(SHARED)},
	[URN_CTL_CREATE_CHANNEL] = {BIT(CHANNEL) | BIT(FD), 0},
	[URN_CTL_DESTROY_CHANNEL] = {0, BIT(CHANNEL) | BIT(FD)},
};

/* ---- all clients, and those of a user */

/* Descriptors that are open now. */
static uint64_t
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Mappings that a process may have. */
static uint64_t
max_maps(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long long n = DEFAULT_MAPS;

	if (f && fscanf(f, "%llu", &n) != 1)
		n = DEFAULT_MAPS;
	if (f)
		fclose(f);
	return n;
}

void
urn_ledger_init(struct urn_ledger *l)
{
	struct rlimit fds;
	uint64_t used = open_fds() + RESERVE_FDS;

	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		l->limits.max[q] = UINT64_MAX;
	if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur != RLIM_INFINITY)
		l->limits.max[URN_QUOTA_FD] = fds.rlim_cur > used ? fds.rlim_cur - used : 0;
	/* The other half is for areas, stacks and this process's own mappings. */
	l->limits.max[URN_QUOTA_SHARE] = max_maps() / 2;
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

bool
urn_account_take_fds(struct urn_account *u, unsigned int n)
{
	struct urn_ledger *l = u ? u->ledger : NULL;
	bool ok;

	if (!l)
		return true;
	pthread_mutex_lock(&l->lock);
	ok = n <= l->limits.max[URN_QUOTA_FD] - l->used[URN_QUOTA_FD];
	if (ok) {
		l->used[URN_QUOTA_FD] += n;
		u->used[URN_QUOTA_FD] += n;
	}
	pthread_mutex_unlock(&l->lock);
	return ok;
}

void
urn_account_give_fds(struct urn_account *u, unsigned int n)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->ledger->lock);
	u->ledger->used[URN_QUOTA_FD] -= n;
	u->used[URN_QUOTA_FD] -= n;
	pthread_mutex_unlock(&u->ledger->lock);
}

/* ---- a client's calls */

/* Write the sentence, as far as there is room. returns err */
static int __attribute__((format(printf, 4, 5)))
refuse(char *why, size_t len, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return err;
}

/* Check that n more are allowed. The ledger's lock is held. returns 0, or an errno value with a sentence in why[len] */
static int
check_one(const struct urn_client *c, char *why, size_t len, enum urn_quota q, uint64_t n)
{
	const struct urn_account *u = c->account;
	const struct urn_ledger *l = u->ledger;
	const char *who = "a program";
	uint64_t max = c->limits.max[q];

	if (n <= max - c->used[q]) {
		who = "a user";
		max = u->limits.max[q];
		if (n <= max - u->used[q]) {
			max = l->limits.max[q];
			if (n <= max - l->used[q])
				return 0;
			return refuse(why, len, kinds[q].err, "%s: all programs together may have at most %llu %s "
				      "of the dataplane: its process can have no more", c->adapter->cfg.name,
				      (unsigned long long)max, kinds[q].name);
		}
	}
	return refuse(why, len, EDQUOT, "%s: %s may have at most %llu %s ([limits] of the dataplane)",
		      c->adapter->cfg.name, who, (unsigned long long)max, kinds[q].name);
}

/* Unsigned arithmetic is exact: counts go down by as much as they went up. The ledger's lock is held. */
static void
count(struct urn_client *c, enum urn_quota q, uint64_t n)
{
	c->used[q] += n;
	c->account->used[q] += n;
	c->account->ledger->used[q] += n;
}

/* Bytes of the object that a call makes or takes back; its handle or key is not checked yet. */
static uint64_t
bytes_of(struct urn_client *c, const struct urn_abi_req *req)
{
	const struct urn_adapter *a = c->adapter;
	uint32_t index = req->handle >> 8;

	switch (req->op) {
	case URN_CTL_REG_MR:
		return req->reg_mr.length;
	case URN_CTL_SHARE:
		return req->share.length;
	case URN_CTL_UNSHARE:
		return urn_shm_bytes(c, req->handle);
	case URN_CTL_DEREG_MR:
		return index <= a->cfg.max_mr && a->key_owner[index] == c ? a->key_bytes[index] : 0;
	default:
		return 0;
	}
}

static bool
is_bytes(enum urn_quota q)
{
	return q == URN_QUOTA_PINNED || q == URN_QUOTA_SHARED;
}

int
urn_quota_join(struct urn_client *c, struct urn_err *err)
{
	int rc;

	if (!c->account)
		return 0;
	pthread_mutex_lock(&c->account->ledger->lock);
	rc = check_one(c, err->text, sizeof(err->text), URN_QUOTA_AREA, c->area.size);
	if (rc == 0)
		count(c, URN_QUOTA_AREA, c->area.size);
	pthread_mutex_unlock(&c->account->ledger->lock);
	return rc;
}

int
urn_quota_begin(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
		struct urn_charge *charge)
{
	uint64_t bytes;
	int rc = 0;

	memset(charge, 0, sizeof(*charge));
	if (!c->account || !(effects[req->op].take | effects[req->op].back))
		return 0;
	bytes = bytes_of(c, req);
	for (unsigned int q = 0; q < URN_QUOTAS; q++) {
		uint64_t n = is_bytes(q) ? bytes : 1;

		charge->take[q] = effects[req->op].take >> q & 1 ? n : 0;
		charge->back[q] = effects[req->op].back >> q & 1 ? n : 0;
	}
	pthread_mutex_lock(&c->account->ledger->lock);
	for (unsigned int q = 0; q < URN_QUOTAS && rc == 0; q++)
		rc = check_one(c, rep->why, sizeof(rep->why), q, charge->take[q]);
	for (unsigned int q = 0; q < URN_QUOTAS && rc == 0; q++)
		count(c, q, charge->take[q]);
	pthread_mutex_unlock(&c->account->ledger->lock);
	return rc;
}

void
urn_quota_end(struct urn_client *c, const struct urn_abi_req *req, const struct urn_abi_rep *rep,
	      const struct urn_charge *charge)
{
	const uint64_t *back = rep->err == 0 ? charge->back : charge->take;

	if (!c->account || !(effects[req->op].take | effects[req->op].back))
		return;
	pthread_mutex_lock(&c->account->ledger->lock);
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		count(c, q, -back[q]);
	pthread_mutex_unlock(&c->account->ledger->lock);
	if (rep->err != 0)
		return;
	if (req->op == URN_CTL_REG_MR)
		c->adapter->key_bytes[rep->mr.lkey >> 8] = req->reg_mr.length;
	else if (req->op == URN_CTL_DEREG_MR)
		c->adapter->key_bytes[req->handle >> 8] = 0;
}

void
urn_quota_leave(struct urn_client *c)
{
	if (!c->account)
		return;
	pthread_mutex_lock(&c->account->ledger->lock);
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		count(c, q, -c->used[q]);
	pthread_mutex_unlock(&c->account->ledger->lock);
	c->account = NULL;
}
