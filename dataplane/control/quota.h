/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client in another process may have, and all clients of its user
 * together. Counted where control calls come through (ctl.c), so that no handler
 * has to. An account is one server's, and its calls come from that one's thread.
 */
#ifndef URN_CONTROL_QUOTA_H
#define URN_CONTROL_QUOTA_H

#include "abi/control.h"

#include <sys/types.h>

struct urn_client;

enum urn_quota {
	URN_QUOTA_QP,
	URN_QUOTA_CQ,
	URN_QUOTA_SRQ,
	URN_QUOTA_MR,     /* regions and windows */
	URN_QUOTA_PINNED, /* bytes of registered memory */
	URN_QUOTA_CM,     /* ids of connection management, listeners among them; counted there */
	URN_QUOTAS,
};

/* At most so many of each; UINT64_MAX: any number. */
struct urn_limits {
	uint64_t max[URN_QUOTAS];
};

/* All clients of a user. */
struct urn_account {
	struct urn_account *next;    /* of the server */
	uid_t uid;
	uint32_t clients;            /* connections */
	struct urn_limits limits;
	uint64_t used[URN_QUOTAS];
	_Atomic uint64_t cm_ids;     /* requests of peers make some, in engines */
};

/* Before a call: is there room for what it makes? returns 0, or EDQUOT with a sentence */
int urn_quota_check(const struct urn_client *c, const struct urn_abi_req *req,
		    struct urn_abi_rep *rep);
/* After a call that succeeded: count what it made or took back. */
void urn_quota_settle(struct urn_client *c, const struct urn_abi_req *req,
		      const struct urn_abi_rep *rep);
/* The client goes, with all it had. */
void urn_quota_leave(struct urn_client *c);

#endif
