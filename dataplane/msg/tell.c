/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of ARM INTR (DB-8). Queues that messages came for are on a list until the turn's end; then
 * the arm words are read, behind one fence for all of them. The reader arms and then looks at the
 * tail: one of the two sides sees the other's store. An event that finds no room arms the queue
 * again and is tried later.
 */
#include "msg/priv.h"

#define RETRY_NS 1000000ull /* ns between looks at a pipe that was full */

enum { RETRY_LOOKS = 64 }; /* late queues that a look tries */

static void
append(struct urn_msg_regs *r, struct urn_msg_list *l, struct urn_msg_rset *s)
{
	s->next = URN_MSG_NIL;
	s->prev = l->tail;
	if (l->tail == URN_MSG_NIL)
		l->head = s->slot;
	else
		r->slot[l->tail].set->next = s->slot;
	l->tail = s->slot;
	r->untold++;
}

static void
unlink_from(struct urn_msg_regs *r, struct urn_msg_list *l, struct urn_msg_rset *s)
{
	if (s->prev == URN_MSG_NIL)
		l->head = s->next;
	else
		r->slot[s->prev].set->next = s->next;
	if (s->next == URN_MSG_NIL)
		l->tail = s->prev;
	else
		r->slot[s->next].set->prev = s->prev;
	r->untold--;
}

void
urn_msg_touch(struct urn_msg_regs *r, struct urn_msg_rset *s)
{
	if (s->user.source.flags & (URN_MSGF_TOUCHED | URN_MSGF_LATE))
		return;
	s->user.source.flags |= URN_MSGF_TOUCHED;
	append(r, &r->touched, s);
}

void
urn_msg_forget(struct urn_msg_regs *r, struct urn_msg_rset *s)
{
	uint32_t flags = s->user.source.flags;

	if (flags & URN_MSGF_TOUCHED)
		unlink_from(r, &r->touched, s);
	else if (flags & URN_MSGF_LATE)
		unlink_from(r, &r->late, s);
	s->user.source.flags = flags & ~(uint32_t)(URN_MSGF_TOUCHED | URN_MSGF_LATE);
}

const uint32_t *
urn_msg_untold_at(const struct urn_msg_regs *r)
{
	return &r->untold;
}

/* Count an interrupt where the client sees it; only this thread does. */
static void
count_pending(struct urn_msg_rset *s)
{
	_Atomic uint32_t *n = &s->regs->rstat.pending;

	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* Fire if the queue is armed. returns: true when there was no room for the event */
static bool
fire(struct urn_msg_regs *r, struct urn_msg_rset *s, urn_msg_tell_fn *tell, void *ctx)
{
	_Atomic uint32_t *arm = &s->regs->conf.arm;
	struct urn_abi_event ev = {
		.type = URN_EVENT_MSG,
		.handle = URN_MSG_HANDLE(r->engine, s->slot),
		.cookie = s->cookie,
	};
	uint32_t none = 0;

	if (!atomic_load_explicit(arm, memory_order_relaxed) || !atomic_exchange(arm, 0))
		return false;
	if (s->channel_fd >= 0 && !tell(ctx, s->channel_fd, &ev)) {
		/* The client may have armed the queue anew: then the client's value stands. */
		atomic_compare_exchange_strong(arm, &none, 1);
		return true;
	}
	count_pending(s);
	return false;
}

/* Look at the first n sets of a list, and put those whose event is late behind the other late ones.
 */
static void
look(struct urn_msg_regs *r, struct urn_msg_list *l, uint16_t last, uint32_t n,
     urn_msg_tell_fn *tell, void *ctx)
{
	for (bool end = false; n && !end && l->head != URN_MSG_NIL; n--) {
		struct urn_msg_rset *s = r->slot[l->head].set;

		end = s->slot == last;
		urn_msg_forget(r, s);
		if (!fire(r, s, tell, ctx))
			continue;
		s->user.source.flags |= URN_MSGF_LATE;
		append(r, &r->late, s);
	}
}

void
urn_msg_tell(struct urn_msg_regs *r, uint64_t now, urn_msg_tell_fn *tell, void *ctx)
{
	bool late = r->late.head != URN_MSG_NIL;

	/* The tails are visible before the arm words are read: the reader arms, then looks at the
	 * tail. */
	atomic_thread_fence(memory_order_seq_cst);
	if (late && now >= r->late_due) {
		r->late_due = now + RETRY_NS;
		look(r, &r->late, r->late.tail, RETRY_LOOKS, tell, ctx);
	}
	look(r, &r->touched, URN_MSG_NIL, URN_MSG_SLOTS, tell, ctx);
	if (!late && r->late.head != URN_MSG_NIL)
		r->late_due = now + RETRY_NS;
}
