/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client in another process may have, all clients of its user together,
 * and all clients of a server. Taken before a control call and given back when it
 * fails or takes something back (ctl.c), so that no handler has to. One lock for
 * all that a server's clients have, held for a few additions: calls of clients of
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
	URN_QUOTA_CM,      /* ids of connection management, listeners among them; counted there */
	URN_QUOTA_CHANNEL, /* completion channels */
	URN_QUOTA_SHARE,   /* pieces of shared memory: mappings of this process */
	URN_QUOTA_SHARED,  /* bytes of it, registered or not */
	URN_QUOTA_AREA,    /* bytes of areas, where queues lie: each as large as it can become */
	URN_QUOTA_FD,      /* descriptors of this process */
	URN_QUOTAS,
};

/* At most so many of each; UINT64_MAX: any number. */
struct urn_limits {
	uint64_t max[URN_QUOTAS];
};

/* All clients of a server. */
struct urn_ledger {
	pthread_mutex_t lock;         /* of all that is said to be under it here; taken last */
	struct urn_limits limits;     /* of all together; constant */
	uint64_t used[URN_QUOTAS];    /* under lock */
	struct urn_account *accounts; /* under lock; each stays until the end */
};

/* All clients of a user. */
struct urn_account {
	struct urn_account *next;     /* of the ledger; under its lock */
	struct urn_ledger *ledger;    /* constant */
	uid_t uid;                    /* constant */
	uint32_t clients;             /* connections; under the ledger's lock */
	struct urn_limits limits;     /* constant */
	uint64_t used[URN_QUOTAS];    /* under the ledger's lock */
	_Atomic uint64_t cm_ids;      /* requests of peers make some, in engines */
};

/* What a call takes at most: so much of each; of what it takes back, after it succeeded. */
struct urn_charge {
	uint64_t take[URN_QUOTAS], back[URN_QUOTAS];
};

/* What this process can have of descriptors and mappings, less a reserve, becomes the limits. */
void urn_ledger_init(struct urn_ledger *l);
/* No account is used any more. */
void urn_ledger_fini(struct urn_ledger *l);

/*
 * One connection more of a user. limits: of its account, when that is new. returns:
 * the account; NULL: no memory, or it has max of them already (*full)
 */
struct urn_account *urn_account_join(struct urn_ledger *l, uid_t uid, const struct urn_limits *limits,
				     uint32_t max, bool *full);
void urn_account_leave(struct urn_account *u);
/* Take n descriptors for a connection, or give them back. u: NULL: not counted */
bool urn_account_take_fds(struct urn_account *u, unsigned int n);
void urn_account_give_fds(struct urn_account *u, unsigned int n);

/*
 * The client comes, with its area, which its program can fill whatever queues it makes.
 * Before anybody else knows it. returns 0, or an errno value with *err
 */
int urn_quota_join(struct urn_client *c, struct urn_err *err);
/* Before a call: take what it needs. returns 0, or an errno value with a sentence */
int urn_quota_begin(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
		    struct urn_charge *charge);
/* After it: rep->err says whether it did what it should. */
void urn_quota_end(struct urn_client *c, const struct urn_abi_req *req, const struct urn_abi_rep *rep,
		   const struct urn_charge *charge);
/* The client goes, with all it had. */
void urn_quota_leave(struct urn_client *c);

#endif
