/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users whose clients a shard has. The clients of a user have its turns and its part of the
 * pools together (transport/source.h), and its part of the doorbells that a turn takes.
 */
#include "engine/engine.h"

#include <stdlib.h>

struct urn_shard_user *
urn_shard_join(struct urn_shard *s, struct urn_client_shard *c, uid_t uid,
	       struct urn_shard_user *spare)
{
	struct urn_shard_users *bucket = &s->user[uid % URN_SHARD_USERS];
	struct urn_shard_user *u;

	LIST_FOREACH(u, bucket, link)
		if (u->uid == uid)
			break;
	if (!u) {
		u = spare;
		spare = NULL;
		u->uid = uid;
		LIST_INSERT_HEAD(bucket, u, link);
	}
	u->clients++;
	c->user = u;
	c->share.user = &u->user;
	return spare;
}

void
urn_shard_part(struct urn_client_shard *c)
{
	struct urn_shard_user *u = c->user;

	if (!u)
		return;
	c->user = NULL;
	c->share.user = NULL;
	if (--u->clients)
		return;
	LIST_REMOVE(u, link);
	free(u);
}
