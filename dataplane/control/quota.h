/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quotas of a client in another process, of all clients of its user together,
 * and of all clients of a server. A quota is charged before a control call and given back when
 * the call fails or takes an object back (ctl.c), so that no handler has to. One lock for
 * the counts of all clients of a server, held for a few additions: calls of clients of
 * one user come from several threads, under the locks of different adapters.
 */
#ifndef URN_CONTROL_QUOTA_H
#define URN_CONTROL_QUOTA_H

#include "abi/control.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct urn_client;
struct urn_err;

enum urn_quota {
	URN_QUOTA_QP,
	URN_QUOTA_CQ,
	URN_QUOTA_SRQ,
	URN_QUOTA_PD,
	URN_QUOTA_AH,
	URN_QUOTA_MR,      /* regions and windows */
	URN_QUOTA_PINNED,  /* bytes of registered memory */
	URN_QUOTA_CM,      /* ids of connection management, with listeners; counted in cm/ */
	URN_QUOTA_CHANNEL, /* completion channels */
	URN_QUOTA_SHARE,   /* pieces of shared memory: mappings of this process */
	URN_QUOTA_SHARED,  /* bytes of shared memory, registered or not */
	URN_QUOTA_AREA,    /* bytes of areas, where queues lie: each as large as it can become */
	URN_QUOTA_FD,      /* descriptors of this process */
	URN_QUOTAS,
};

/* The most of each kind; UINT64_MAX: any number. */
struct urn_limits {
	uint64_t max[URN_QUOTAS];
};

/* All clients of a server. */
struct urn_ledger {
	pthread_mutex_t lock;         /* protects the fields "under lock" here and in struct urn_account; taken last */
	struct urn_limits limits;     /* for all clients together; constant */
	uint64_t used[URN_QUOTAS];    /* under lock */
	struct urn_account *accounts; /* under lock; each stays until the end */
};

/* All clients of a user. */
struct urn_account {
	struct urn_account *next;     /* in the ledger's list; under the ledger's lock */
	struct urn_ledger *ledger;    /* constant */
	uid_t uid;                    /* constant */
	uint32_t clients;             /* connections; under the ledger's lock */
	struct urn_limits limits;     /* constant */
	uint64_t used[URN_QUOTAS];    /* under the ledger's lock */
	_Atomic uint64_t cm_ids;      /* without the lock: requests of peers make ids in engines */
};

/* Charge of a call, by quota. take: at most, before the call; back: given back once it succeeded. */
struct urn_charge {
	uint64_t take[URN_QUOTAS], back[URN_QUOTAS];
};

/* Set the limits to the descriptors and mappings that this process can have, less a reserve. */
void urn_ledger_init(struct urn_ledger *l);
/* Free all accounts, which nobody uses any more. */
void urn_ledger_fini(struct urn_ledger *l);

/*
 * Count one connection more of a user. limits: for the account, if it is new. returns:
 * the account; NULL: no memory, or the user has max connections already (*full)
 */
struct urn_account *urn_account_join(struct urn_ledger *l, uid_t uid, const struct urn_limits *limits,
				     uint32_t max, bool *full);
void urn_account_leave(struct urn_account *u);
/* Take n descriptors for a connection, or give n back. u: NULL: not counted */
bool urn_account_take_fds(struct urn_account *u, unsigned int n);
void urn_account_give_fds(struct urn_account *u, unsigned int n);

/*
 * Charge the area of a new client, all of it, because its program can fill the area.
 * Called before anybody else knows the client. returns 0, or an errno value with *err
 */
int urn_quota_join(struct urn_client *c, struct urn_err *err);
/* Before a call: charge the quotas that it needs. returns 0, or an errno value with a sentence */
int urn_quota_begin(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
		    struct urn_charge *charge);
/* After the call: give back by rep->err, which says whether the call succeeded. */
void urn_quota_end(struct urn_client *c, const struct urn_abi_req *req, const struct urn_abi_rep *rep,
		   const struct urn_charge *charge);
/* The client goes: give back all that it has charged. */
void urn_quota_leave(struct urn_client *c);

#endif
