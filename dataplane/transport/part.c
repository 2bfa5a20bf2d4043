/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/part.h"

/* True when another user had short turns lately. */
static bool
is_beside(const struct urn_sched *s, const struct urn_tp_user *user)
{
	const struct urn_sched_short *other = &s->brief[s->brief[0].user == user];

	return other->user && s->turn - other->at <= URN_PART_TURNS;
}

/* True when a user had short turns lately, as one of the two newest at least. */
static bool
is_short(const struct urn_sched *s, const struct urn_tp_user *user)
{
	const struct urn_sched_short *own = &s->brief[s->brief[0].user != user];

	return own->user == user && s->turn - own->at <= URN_PART_TURNS;
}

void
urn_part_bound(struct urn_tp *tp, struct urn_tp_user *user)
{
	const struct urn_sched *s = &tp->sched;
	bool beside = is_beside(s, user);
	uint32_t left;

	tp->hasty = is_short(s, user) && (beside || s->turn - s->parted_at <= URN_PART_TURNS);
	if (!beside)
		return;
	if (user->part_at != s->turn) {
		user->part_at = s->turn;
		user->part = 0;
	}
	left = user->part < URN_PART_BYTES ? URN_PART_BYTES - user->part : 1;
	tp->turn_frames = (left + URN_PART_FRAME - 1) / URN_PART_FRAME;
	tp->built_most = tp->built + left;
}

void
urn_part_use(struct urn_tp *tp, struct urn_tp_user *user, int frames, uint64_t bytes)
{
	tp->hasty = false;
	if (tp->built_most == UINT64_MAX)
		return;
	user->part += (uint32_t)RTE_MAX(bytes, (uint64_t)RTE_MAX(frames, 1) * URN_PART_FRAME);
	if (user->part >= URN_PART_BYTES)
		tp->sched.parted_at = tp->sched.turn;
	tp->turn_frames = URN_TURN_FRAMES;
	tp->built_most = UINT64_MAX;
}

void
urn_part_short(struct urn_sched *s, const struct urn_tp_user *user)
{
	if (s->brief[0].user != user) {
		s->brief[1] = s->brief[0];
		s->brief[0].user = user;
	}
	s->brief[0].at = s->turn;
}

void
urn_part_long(struct urn_sched *s, const struct urn_tp_user *user)
{
	if (s->brief[0].user == user)
		s->brief[0] = s->brief[1];
	else if (s->brief[1].user != user)
		return;
	s->brief[1].user = NULL;
}
