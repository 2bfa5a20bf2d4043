/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of receive queues: they live on the adapter's first engine, so that one lookup finds each.
 */
#include "msg/priv.h"

#include <errno.h>

static uint32_t *
bucket(const struct urn_msg_regs *r, uint32_t name)
{
	return urn_hash_bucket(&r->names, &name, 1);
}

struct urn_msg_rset *
urn_msg_by_name(const struct urn_msg_regs *r, uint32_t name)
{
	if (!r->names.bucket)
		return NULL;
	for (uint32_t i = *bucket(r, name); i != URN_HASH_NIL; i = r->slot[i].next)
		if (r->slot[i].set->name == name)
			return r->slot[i].set;
	return NULL;
}

void
urn_msg_unbind(struct urn_msg_regs *r, struct urn_msg_rset *set)
{
	if (!set->name)
		return;
	urn_hash_take(bucket(r, set->name), set->slot, &r->slot[0].next, sizeof(r->slot[0]));
	set->name = 0;
}

int
urn_msg_bind(struct urn_msg_regs *r, struct urn_msg_rset *set, uint32_t name)
{
	struct urn_msg_rset *taken = urn_msg_by_name(r, name);

	if (taken)
		return taken == set ? 0 : EADDRINUSE;
	if (!r->names.bucket && urn_hash_init(&r->names, URN_MSG_NAME_BUCKETS, r->names.seed) != 0)
		return ENOMEM;
	urn_msg_unbind(r, set);
	set->name = name;
	urn_hash_put(bucket(r, name), set->slot, &r->slot[set->slot].next);
	return 0;
}
