/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ledger of quotas: how much of each kind every holder has, all holders of a user together, and all
 * users together, with the most that each of the three may have. A holder takes some of several kinds
 * at once, all or nothing, and gives back as much as it took. Owners of a ledger number the kinds and
 * say what a refusal means.
 *
 * One lock for all counts of a ledger, held for a few additions: holders of one user take from several
 * threads. Nothing here knows who a holder is.
 */
#ifndef URN_BASE_LEDGER_H
#define URN_BASE_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { URN_LEDGER_KINDS = 16 }; /* kinds that a ledger can count; those unused have a limit and a count of 0 */

/* The most of each kind; UINT64_MAX: any number. */
struct urn_limits {
	uint64_t max[URN_LEDGER_KINDS];
};

/* All users. */
struct urn_ledger {
	pthread_mutex_t lock;            /* protects the fields "under lock" here, in accounts and tallies; taken last */
	struct urn_limits limits;        /* for all users together; constant */
	uint64_t used[URN_LEDGER_KINDS]; /* under lock */
	_Atomic uint64_t refused[URN_LEDGER_KINDS]; /* times that `limits` refused a kind; written
						       under lock */
	struct urn_account *accounts;    /* under lock; each stays until the end */
};

/* All holders of a user. */
struct urn_account {
	struct urn_account *next;        /* in the ledger's list; under lock */
	struct urn_ledger *ledger;       /* constant */
	uid_t uid;                       /* constant */
	uint32_t clients;                /* times that the user joined and has not left; under lock */
	struct urn_limits limits;        /* constant */
	uint64_t used[URN_LEDGER_KINDS]; /* under lock */
	_Atomic uint64_t apart;          /* a count that the ledger's owner keeps itself, without the lock; 0 at first */
};

/* One holder. The owner sets account and limits before anybody takes for the holder. */
struct urn_tally {
	struct urn_account *account;     /* the user's; NULL: no limits, and nothing is counted */
	struct urn_limits limits;        /* the holder's own; valid with an account */
	uint64_t used[URN_LEDGER_KINDS]; /* under the ledger's lock */
};

/* The limit that refused: the holder's own, its user's, or that of all. */
enum urn_ledger_level { URN_LEDGER_HOLDER, URN_LEDGER_USER, URN_LEDGER_ALL };

struct urn_ledger_refusal {
	enum urn_ledger_level level;
	unsigned int kind; /* the first that was refused */
	uint64_t max;      /* the limit that refused */
};

/* Make a ledger without users. limits: for all users together */
void urn_ledger_init(struct urn_ledger *l, const struct urn_limits *limits);
/* Free all accounts, which nobody uses any more. */
void urn_ledger_fini(struct urn_ledger *l);

/*
 * Let a user join once more. limits: for the account, if it is new. returns: the account, which stays
 * until the end; NULL: no memory, or the user joined max times already and has not left (*full)
 */
struct urn_account *urn_account_join(struct urn_ledger *l, uid_t uid, const struct urn_limits *limits,
				     uint32_t max, bool *full);
void urn_account_leave(struct urn_account *u);
/*
 * Take n of a kind for a user, none of whose holders is meant, as far as all users together may have
 * them. u: NULL: not counted. returns: false when they may not
 */
bool urn_account_take(struct urn_account *u, unsigned int kind, uint64_t n);
/* Take like urn_account_take(), as far as this user may have them, too. */
bool urn_account_take_own(struct urn_account *u, unsigned int kind, uint64_t n);
/* Give n back that urn_account_take() or urn_account_take_own() took. u: NULL: not counted */
void urn_account_give(struct urn_account *u, unsigned int kind, uint64_t n);

/* Times that the limits of all users together refused a kind so far. Any thread */
uint64_t urn_ledger_refused(const struct urn_ledger *l, unsigned int kind);

/* Take n[kind] of each kind, or nothing. returns: false when a limit refuses, with *no */
bool urn_tally_take(struct urn_tally *t, const uint64_t n[URN_LEDGER_KINDS], struct urn_ledger_refusal *no);
/* Give n[kind] of each kind back, at most as many as were taken. */
void urn_tally_give(struct urn_tally *t, const uint64_t n[URN_LEDGER_KINDS]);
/* The holder goes: give back all that it has. The tally has no account then. */
void urn_tally_leave(struct urn_tally *t);

#endif
