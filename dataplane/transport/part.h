/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of turns. A user that waits for each of its requests needs several turns of the engine for
 * one of them, and each takes as long as the frames of all others in it. So, while a user has short
 * turns, the others have only a part of their turns, and go on in the engine's next turn. Users
 * that all have much to send cut nobody's turns, and nor does one that is alone.
 */
#ifndef URN_TRANSPORT_PART_H
#define URN_TRANSPORT_PART_H

#include "transport/sched.h"

/* The turn of a user's source begins beside one with short turns, perhaps its own: bound it.
 * (part.c) */
void urn_part_bound(struct urn_tp *tp, struct urn_tp_user *user);
/* The bound turn of a user's source, which may be gone, has built so much. (part.c) */
void urn_part_use(struct urn_tp *tp, struct urn_tp_user *user, int frames, uint64_t bytes);
/* A user had a short turn: it is the newest of those that had. (part.c) */
void urn_part_short(struct urn_sched *s, const struct urn_tp_user *user);
/* A user had a turn that was not short: it is none of those. (part.c) */
void urn_part_long(struct urn_sched *s, const struct urn_tp_user *user);

/* True when the user whose turn is next has used up its part of this turn of the engine, and so
 * have all others with work, or had a turn: users go by turns. */
static inline bool
urn_part_over(const struct urn_sched *s)
{
	return unlikely(s->parts) && s->head && s->head->part_at == s->turn &&
	       s->head->part >= URN_PART_BYTES && !urn_sched_resumes(s);
}

/* True when the turn of a source is over, because its user has used up its part. */
static inline bool
urn_part_ends(const struct urn_tp *tp)
{
	return unlikely(tp->built >= tp->built_most);
}

/*
 * The turn of a user's source has built so many bytes. more: the source has more to send; the
 * others of the user are in the schedule
 */
static inline void
urn_part_learn(struct urn_sched *s, struct urn_tp_user *user, uint64_t bytes, bool more)
{
	if (bytes > URN_PART_LONG || (more && bytes)) {
		user->long_at = s->turn;
		if (unlikely(s->parts))
			urn_part_long(s, user);
	} else if (bytes && !user->head && s->turn - user->long_at > URN_PART_TURNS) {
		urn_part_short(s, user);
	}
}

/*
 * Let a source have its turn, charge client and user for it, and put the source behind the others
 * if it has more. serve: does what the turn does; true: there is more to do
 */
static inline __attribute__((always_inline)) void
urn_part_serve(struct urn_tp *tp, struct urn_source *src,
	       bool (*serve)(struct urn_tp *, struct urn_source *))
{
	struct urn_tp_share *share = src->share; /* the source may end in its turn */
	struct urn_tp_user *user = share->user;	 /* NULL: a share of the engine itself */
	unsigned int frames = tp->tx_n + tp->loop_n + tp->txd_n;
	uint64_t built = tp->built;
	bool more;

	if (unlikely(tp->sched.parts) && user)
		urn_part_bound(tp, user);
	more = serve(tp, src);
	built = tp->built - built;
	if (likely(user != NULL))
		urn_part_learn(&tp->sched, user, built, more);
	if (more)
		urn_sched_add(&tp->sched, src);
	urn_sched_charge(share, built);
	if (unlikely(tp->sched.parts) && user)
		urn_part_use(tp, user, (int)(tp->tx_n + tp->loop_n + tp->txd_n - frames), built);
}

#endif
