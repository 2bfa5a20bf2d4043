/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users whose clients a shard has. The clients of a user have its turns and its part of the
 * pools together (transport/source.h), and its part of the doorbells that a turn takes.
 *
 * The users are in a tree. The bits of a user's number, the lowest first, say on which side of each
 * user on the way it is. So all users below another one have as many bits in common as they have
 * users above them, and a way has 33 users at most, whatever the numbers of those who attach.
 */
#include "engine/engine.h"

#include <stdlib.h>

_Static_assert(sizeof(uid_t) == 4, "32 bits of a user's number");

/* Find the link to a user in a shard's tree, or the one where the user would be. */
static struct urn_shard_user **
find(struct urn_shard *s, uid_t uid)
{
	struct urn_shard_user **at = &s->users;

	/* The 33rd user on a way has all bits in common. */
	for (uid_t bits = uid; *at && (*at)->uid != uid; bits >>= 1)
		at = &(*at)->side[bits & 1];
	return at;
}

struct urn_shard_user *
urn_shard_join(struct urn_shard *s, struct urn_client_shard *c, uid_t uid,
	       struct urn_shard_user *spare)
{
	struct urn_shard_user **at = find(s, uid), *u;

	if (!*at) {
		*at = spare;
		spare->uid = uid;
		spare = NULL;
	}
	u = *at;
	u->clients++;
	c->user = u;
	c->share.user = &u->user;
	return spare;
}

/* Unlink a user from the tree: one below it, who has none below, takes the place. */
static void
unlink_user(struct urn_shard *s, struct urn_shard_user *u)
{
	struct urn_shard_user **at = find(s, u->uid), **low = at, *last = u;

	while (last->side[0] || last->side[1]) {
		low = &last->side[!last->side[0]];
		last = *low;
	}
	*low = NULL;
	if (last == u)
		return;
	last->side[0] = u->side[0];
	last->side[1] = u->side[1];
	*at = last;
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
	unlink_user(c->shard, u);
	free(u);
}
