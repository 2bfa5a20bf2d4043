/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule of sources with work to do, and the room that a turn has. (sched.c, tp.c) */
#ifndef URN_TRANSPORT_SCHED_H
#define URN_TRANSPORT_SCHED_H

#include "transport/tp.h"

#define URN_TP_NEIGH_NS \
	1000000ull /* ns from when all QPs asked for a MAC address until they ask again */
#define URN_TP_MAC_NS \
	10000000000ull /* ns that the MAC of an RC peer is used before a new look-up */
#define URN_TP_AH_NS \
	1000000000ull /* ... of an address handle: no silence tells that the peer moved */

/* Put a user, who has a client with work, behind the others. */
static inline void
urn_sched_append_user(struct urn_sched *s, struct urn_tp_user *user)
{
	user->next = NULL;
	user->prev = s->tail;
	if (s->head)
		s->tail->next = user;
	else
		s->head = user;
	s->tail = user;
}

/* Put a client, which has a source with work, behind the others of its user, of whom there are. */
static inline void
urn_sched_append(struct urn_tp_user *user, struct urn_tp_share *share)
{
	share->next = NULL;
	share->prev = user->tail;
	user->tail->next = share;
	user->tail = share;
}

/* Put a client, which has its first source with work, into the round. */
static inline void
urn_sched_enter(struct urn_sched *s, struct urn_tp_share *share)
{
	struct urn_tp_user *user = urn_share_user(share);

	if (user->head) {
		urn_sched_append(user, share);
		return;
	}
	share->next = NULL;
	user->head = user->tail = share;
	urn_sched_append_user(s, user);
}

/* Take a source out of the list of those whose priority is stopped; its client keeps its place.
 * (sched.c) */
void urn_sched_unstop(struct urn_sched *s, struct urn_source *src);

/* A turn of the engine begins. */
static inline void
urn_sched_begin(struct urn_sched *s)
{
	s->paid = 0;
	s->over = false;
	s->turn++;
	s->parts = s->brief[0].user && s->turn - s->brief[0].at <= URN_PART_TURNS;
}

/*
 * Let the source have a turn, unless it is in a list already, parked, or closed. A source whose
 * priority is stopped has one, too: something has happened to it, perhaps its end.
 */
static inline void
urn_sched_add(struct urn_sched *s, struct urn_source *src)
{
	struct urn_tp_share *share = src->share;

	if (src->flags & URN_SOURCE_HELD) {
		if (likely(!(src->flags & URN_SOURCE_STOPPED)))
			return;
		urn_sched_unstop(s, src);
	}
	src->flags |= URN_SOURCE_SCHED;
	src->next = NULL;
	src->prev = share->tail;
	if (share->head) {
		share->tail->next = src;
	} else {
		share->head = src;
		urn_sched_enter(s, share);
	}
	share->tail = src;
	s->n++;
}

/*
 * The first user in the round owes a turn: let it give up turns, and so those behind it that owe
 * some, while others have work. returns: the user whose turn it is; NULL: nobody's: it was given up
 * to sources that waited for the end of a pause, or the engine's turn is over (sched.c)
 */
struct urn_tp_user *urn_sched_pay_users(struct urn_sched *s);
/*
 * Likewise for the clients of a user, the first of which owes a turn. returns: the client whose
 * turn it is; NULL: nobody's: the user's clients gave up all that they may in a turn of the engine,
 * and the user goes behind the others; or as above (sched.c)
 */
struct urn_tp_share *urn_sched_pay_clients(struct urn_sched *s, struct urn_tp_user *user);

/*
 * Take the source whose turn it is out of the schedule, which is not empty. The next turn of the
 * source's client comes behind those of the other clients of its user, and the next one of the user
 * behind those of the other users. returns: NULL: the turn was given up; the next one is somebody
 * else's, or, with `over`, for the next turn of the engine
 */
static inline struct urn_source *
urn_sched_take(struct urn_sched *s)
{
	struct urn_tp_user *user = s->head;
	struct urn_tp_share *share;
	struct urn_source *src;

	if (unlikely(user->debt >= URN_TURN_BYTES) && !(user = urn_sched_pay_users(s)))
		return NULL;
	share = user->head;
	if (unlikely(share->debt >= URN_TURN_BYTES) && !(share = urn_sched_pay_clients(s, user)))
		return NULL;
	src = share->head;
	share->head = src->next;
	src->flags &= ~(uint32_t)URN_SOURCE_SCHED;
	s->n--;
	if (!share->head) {
		user->head = share->next;
	} else if (share->next) {
		user->head = share->next;
		urn_sched_append(user, share);
	}
	if (!user->head) {
		s->head = user->next;
	} else if (user->next) {
		s->head = user->next;
		urn_sched_append_user(s, user);
	}
	return src;
}

/*
 * Some sources wait whose priority is not stopped any more: take the one whose turn it is, out of
 * the list. Users go on by turns, and so do the clients of a user: between two sources of a user
 * that waits each other user has one at most. returns: NULL: the turn is the schedule's, which has
 * each second one if it has any; or it was given up; or none was found among a few places
 * (sched.c)
 */
struct urn_source *urn_sched_resume(struct urn_sched *s);

/* True when a source waits whose priority is not stopped any more. */
static inline bool
urn_sched_resumes(const struct urn_sched *s)
{
	return unlikely(s->waiting & ~s->stopped);
}

/* Sources that wait whose priority is not stopped any more. (sched.c) */
uint32_t urn_sched_resuming(const struct urn_sched *s);

/* Number of sources that have turns now. */
static inline uint32_t
urn_sched_number(const struct urn_sched *s)
{
	return likely(!urn_sched_resumes(s)) ? s->n : s->n + urn_sched_resuming(s);
}

/* True when a source has a turn now. */
static inline bool
urn_sched_any(const struct urn_sched *s)
{
	return s->head || urn_sched_resumes(s);
}

/*
 * Take the source whose turn it is, of the schedule or of those that waited for the end of a pause,
 * out of its list; urn_sched_any() is true. A source that waited has its turn at once: the next
 * pause finds none that went on and had no turn. returns: NULL: as urn_sched_take()
 */
static inline struct urn_source *
urn_sched_next(struct urn_sched *s)
{
	struct urn_source *src;

	if (urn_sched_resumes(s)) {
		src = urn_sched_resume(s);
		if (src || !s->head || s->over)
			return src;
	}
	return urn_sched_take(s);
}

/* A client owes what a turn has sent beyond URN_TURN_BYTES, and so does its user. bytes: of the
 * turn (sched.c) */
void urn_sched_owe(struct urn_tp_share *share, uint64_t bytes);

/*
 * A turn of a client's source has sent so many bytes. Those beyond a turn's are paid by turns that
 * client and user give up while others have work: so nobody has more bytes than URN_TURN_BYTES for
 * each turn, however long its frames are, and nobody's turn is cut in the middle of a burst.
 */
static inline void
urn_sched_charge(struct urn_tp_share *share, uint64_t bytes)
{
	if (unlikely(bytes > URN_TURN_BYTES))
		urn_sched_owe(share, bytes);
}

/* True when a client, or its user, which owes a turn, owes it to others with work in the schedule.
 * (sched.c) */
bool urn_sched_owes_others(const struct urn_sched *s, struct urn_tp_share *share);

/*
 * True when a client may not use a turn that the schedule gave it some time ago: the client, or its
 * user, owes one to others since then. The source goes back into the schedule.
 */
static inline bool
urn_sched_owes(const struct urn_sched *s, struct urn_tp_share *share)
{
	return unlikely(RTE_MAX(share->debt, urn_share_user(share)->debt) >= URN_TURN_BYTES) &&
	       urn_sched_owes_others(s, share);
}

/* Let the source have its turn before the others of its client, unless it is in another list than
 * the schedule, parked, or closed. (sched.c) */
void urn_sched_add_first(struct urn_sched *s, struct urn_source *src);
/* Take a source out of the schedule, if it is there, in constant time. (sched.c) */
void urn_sched_remove(struct urn_sched *s, struct urn_source *src);
/*
 * Give a source no turn before a time, ns; then it has one, behind the others of its client. The
 * turn comes at most a tick of the timing wheel late. A source that is away or closed stays so.
 */
void urn_sched_park(struct urn_tp *tp, struct urn_pace *pace, uint64_t not_before);
/* Forget the time of a source, which is then idle. For an owner that ends. */
void urn_sched_unpark(struct urn_tp *tp, struct urn_pace *pace);
/* A source, which may be given turns meanwhile, has one at pace->not_before at the latest. */
void urn_sched_wake(struct urn_tp *tp, struct urn_pace *pace);
/* The timer of a struct urn_pace has run out. */
void urn_sched_due(struct urn_tp *tp, struct urn_timer *timer);

/*
 * True when no more frames with these headers, which go out of the port, are to be made: as many of
 * their priority wait as may, because the port's peer has paused it. The source, which is in no
 * list, waits then until the priority may go on. (sched.c)
 */
bool urn_sched_stops(struct urn_tp *tp, struct urn_source *src, const struct urn_tmpl *t);
/* The priority of frames with these headers by the engine's table. Some priority is stopped. */
static inline unsigned int
urn_tmpl_priority(const struct urn_tp *tp, const struct urn_tmpl *t)
{
	const uint8_t *ip = t->bytes + URN_ETH_BYTES;

	/* The traffic class of IPv6 lies across two bytes; the DSCP is its upper six bits. */
	return tp->priority_of[t->ipv6 ? (ip[0] & 0xfu) << 2 | ip[1] >> 6 : ip[1] >> 2];
}
/* True when no more frames with these headers, which go out of the port, are to be made. */
static inline bool
urn_tmpl_stopped(const struct urn_tp *tp, const struct urn_tmpl *t)
{
	return unlikely(tp->sched.stopped) && tp->sched.stopped & 1u << urn_tmpl_priority(tp, t);
}
/* A client ends, whose sources are in no list: take the places that they have left. (sched.c) */
void urn_sched_leave(struct urn_sched *s, struct urn_tp_share *share);

/*
 * Unlink a source from a list in constant time: thousands of one client may be there, and all are
 * unlinked when that client ends. (sched.c)
 */
void urn_source_unlink(struct urn_source **head, struct urn_source **tail, struct urn_source *src);

/* The QP has something to do: let it have a turn. */
static inline void
urn_tp_sched(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_sched_add(&tp->sched, &qp->source);
}

/*
 * Number of further frames that have room in both out arrays, together with the frames that the
 * burst in hand may add. Executing the burst does not change the number.
 */
static inline unsigned int
urn_tp_tx_frames(const struct urn_tp *tp)
{
	unsigned int used = tp->tx_n > tp->loop_n ? tp->tx_n : tp->loop_n;
	unsigned int room = URN_TP_TX - used - tp->txd_n;

	return room > tp->tx_kept ? room - tp->tx_kept : 0;
}
_Static_assert((int)URN_TP_TX == (int)URN_TP_LOOP, "one number for both arrays");

/* True when the memory operations of one more frame have room. */
static inline bool
urn_tp_tx_ops(const struct urn_tp *tp)
{
	return tp->ops_n + URN_ABI_MAX_SGE < URN_TP_OPS;
}

/* True when one more frame and its memory operations have room. */
static inline bool
urn_tp_tx_room(const struct urn_tp *tp)
{
	return urn_tp_tx_frames(tp) && urn_tp_tx_ops(tp);
}

/*
 * True when the burst in hand must be executed before another received packet is accepted: each
 * packet adds itself and the operations of one list of elements.
 */
static inline bool
urn_tp_burst_full(const struct urn_tp *tp)
{
	return tp->ops_n + 2 * URN_ABI_MAX_SGE > URN_TP_OPS || tp->burst_n + 2 > URN_TP_TX;
}

/* True when the gate of the QP is closed; to be called when any gate is. (rx.c) */
bool urn_tp_is_gated(const struct urn_tp *tp, const struct urn_qp *qp);

/*
 * True when the client, or all clients of its user, already have too many foreign-memory operations
 * in flight: the QP must not start more.
 */
static inline bool
urn_tp_gated(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return unlikely(tp->gate->closed | tp->gate->users) && urn_tp_is_gated(tp, qp);
}

/*
 * The QP has something to do and finds no room now: the QP is to be looked at again, among a few
 * others of its client.
 * returns: true when the QP stays in the schedule for that
 */
static inline bool
urn_tp_again(struct urn_tp *tp, const struct urn_qp *qp)
{
	if (!tp->cfg.ring_again)
		return true;
	tp->cfg.ring_again(tp->cfg.give_ctx, &qp->source);
	return false;
}

#endif
