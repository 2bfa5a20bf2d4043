/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/quota.h"

#include "control/adapter.h"

#include <errno.h>

static const char *const names[URN_QUOTAS] = {
	[URN_QUOTA_QP] = "queue pairs",
	[URN_QUOTA_CQ] = "completion queues",
	[URN_QUOTA_SRQ] = "shared receive queues",
	[URN_QUOTA_MR] = "regions and windows",
	[URN_QUOTA_PINNED] = "bytes of registered memory",
	[URN_QUOTA_CM] = "connection ids",
};

/* What a call makes (1) or takes back (-1) one of. */
static const struct {
	uint8_t quota;
	int8_t sign;
} effects[URN_CTL_OPS] = {
	[URN_CTL_CREATE_QP] = {URN_QUOTA_QP, 1},    [URN_CTL_DESTROY_QP] = {URN_QUOTA_QP, -1},
	[URN_CTL_CREATE_CQ] = {URN_QUOTA_CQ, 1},    [URN_CTL_DESTROY_CQ] = {URN_QUOTA_CQ, -1},
	[URN_CTL_CREATE_SRQ] = {URN_QUOTA_SRQ, 1},  [URN_CTL_DESTROY_SRQ] = {URN_QUOTA_SRQ, -1},
	[URN_CTL_REG_MR] = {URN_QUOTA_MR, 1},	    [URN_CTL_DEREG_MR] = {URN_QUOTA_MR, -1},
	[URN_CTL_ALLOC_MW] = {URN_QUOTA_MR, 1},	    [URN_CTL_DEALLOC_MW] = {URN_QUOTA_MR, -1},
};

static int
check_one(const struct urn_client *c, struct urn_abi_rep *rep, enum urn_quota q, uint64_t n)
{
	const struct urn_account *u = c->account;
	bool mine = n > c->limits.max[q] - c->used[q];

	if (!mine && n <= u->limits.max[q] - u->used[q])
		return 0;
	return urn_ctl_fail(rep, EDQUOT, "%s: %s may have at most %llu %s ([limits] of the dataplane)",
			    c->adapter->cfg.name, mine ? "a program" : "a user",
			    (unsigned long long)(mine ? c->limits.max[q] : u->limits.max[q]), names[q]);
}

int
urn_quota_check(const struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	int rc;

	if (!c->account || effects[req->op].sign <= 0)
		return 0;
	rc = check_one(c, rep, effects[req->op].quota, 1);
	if (rc == 0 && req->op == URN_CTL_REG_MR)
		rc = check_one(c, rep, URN_QUOTA_PINNED, req->reg_mr.length);
	return rc;
}

static void
count(struct urn_client *c, enum urn_quota q, uint64_t n)
{
	c->used[q] += n;
	c->account->used[q] += n;
}

void
urn_quota_settle(struct urn_client *c, const struct urn_abi_req *req, const struct urn_abi_rep *rep)
{
	uint64_t *bytes;

	if (!c->account || effects[req->op].sign == 0)
		return;
	/* Counts go down by what they went up: unsigned arithmetic is exact. */
	count(c, effects[req->op].quota, (uint64_t)(int64_t)effects[req->op].sign);
	if (req->op == URN_CTL_REG_MR) {
		bytes = &c->adapter->key_bytes[rep->mr.lkey >> 8];
		*bytes = req->reg_mr.length;
		count(c, URN_QUOTA_PINNED, *bytes);
	} else if (req->op == URN_CTL_DEREG_MR) {
		bytes = &c->adapter->key_bytes[req->handle >> 8];
		count(c, URN_QUOTA_PINNED, -*bytes);
		*bytes = 0;
	}
}

void
urn_quota_leave(struct urn_client *c)
{
	for (unsigned int q = 0; c->account && q < URN_QUOTAS; q++)
		c->account->used[q] -= c->used[q];
	c->account = NULL;
}
