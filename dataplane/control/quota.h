/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quotas of a client in another process, of all clients of its user together,
 * and of all clients of a server: control counts them in a ledger, and gives a sentence to a client
 * that may have no more. A quota is charged before a control call and given back when
 * the call fails or takes an object back (ctl.c), so that no handler has to.
 */
#ifndef URN_CONTROL_QUOTA_H
#define URN_CONTROL_QUOTA_H

#include "abi/control.h"
#include "base/ledger.h"
#include "control/teller.h"

struct urn_client;
struct urn_err;

/* Kinds that are counted, as numbers of the ledger. */
enum urn_quota {
	URN_QUOTA_QP,
	URN_QUOTA_CQ,
	URN_QUOTA_SRQ,
	URN_QUOTA_PD,
	URN_QUOTA_AH,
	URN_QUOTA_MR,	   /* regions and windows */
	URN_QUOTA_PINNED,  /* bytes of registered memory */
	URN_QUOTA_CM,	   /* ids of connection management, with listeners; counted in cm/,
			    * for a user in `apart` of the account */
	URN_QUOTA_CHANNEL, /* completion channels */
	URN_QUOTA_SHARE,   /* pieces of shared memory: mappings of this process */
	URN_QUOTA_SHARED,  /* bytes of shared memory, registered or not */
	URN_QUOTA_AREA,	   /* bytes of areas, where queues lie: each as large as it can become */
	URN_QUOTA_FD,	   /* descriptors of this process; a channel has URN_TELLER_WAY_FDS */
	URN_QUOTA_MSG,	   /* register sets of messages */
	URN_QUOTA_QUEUE,   /* bytes of areas that queues had so far: memory that this process may be
			    * charged with */
	URN_QUOTAS,
};

_Static_assert((int)URN_QUOTAS <= (int)URN_LEDGER_KINDS, "a ledger has room for all kinds");

/* Bytes of the object that a call makes or takes back, for quotas that count bytes. */
typedef uint64_t urn_quota_bytes_fn(struct urn_client *c, const struct urn_abi_req *req);

/* Quotas of a control operation; constant. */
struct urn_quota_use {
	uint16_t take; /* kinds of which the call makes one; a bit for each enum urn_quota */
	uint16_t back; /* kinds of which the call takes one back */
	urn_quota_bytes_fn *bytes; /* bytes that the call takes or gives back; NULL: none */
};
_Static_assert((int)URN_QUOTAS <= 16, "kinds are bits of 16");

/* Charge of a call, by quota. take: at most, before the call; back: given back once it succeeded. */
struct urn_charge {
	uint64_t take[URN_LEDGER_KINDS], back[URN_LEDGER_KINDS];
};

/* Descriptors of this process that programs take, besides URN_TELLER_WAY_FDS of a channel. */
enum {
	/* A connection: its own, pidfd, two that come along, one to check those */
	URN_QUOTA_FDS_CONNECTION = 5,
	/* An open adapter: area, memory, map, process, its teller, and its asynchronous events */
	URN_QUOTA_FDS_CLIENT = 4 + URN_TELLER_FDS + URN_TELLER_WAY_FDS,
	/* ... and for each engine: an eventfd, and the epoll that it lies in */
	URN_QUOTA_FDS_ENGINE = 2,
};

/* returns: pieces of memory that all programs together may share: mappings of this process */
uint64_t urn_quota_pieces(void);
/*
 * Make a ledger whose limits are the descriptors and mappings that this process can have, less a
 * reserve, and so much memory for queues. queues: bytes; 0: no limit
 */
void urn_quota_ledger_init(struct urn_ledger *l, uint64_t queues);

/*
 * Charge the area of a new client, all of it, because its program can fill the area.
 * Called before anybody else knows the client. returns 0, or an errno value with *err
 */
int urn_quota_join(struct urn_client *c, struct urn_err *err);
/*
 * Charge so many bytes of the client's area that no queue had before; the client has them until it
 * goes. In the middle of a control call. returns 0, or EDQUOT with a sentence for that call in
 * c->no_queue
 */
int urn_quota_queue(struct urn_client *c, uint64_t bytes);
/* Before a call: charge the quotas that it uses. returns 0, or an errno value with a sentence */
int urn_quota_begin(struct urn_client *c, const struct urn_quota_use *use,
		    const struct urn_abi_req *req, struct urn_abi_rep *rep,
		    struct urn_charge *charge);
/* After the call: give back by rep->err, which says whether the call succeeded. */
void urn_quota_end(struct urn_client *c, const struct urn_quota_use *use,
		   const struct urn_abi_rep *rep, const struct urn_charge *charge);

#endif
