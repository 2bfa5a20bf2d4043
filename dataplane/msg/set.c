/* SPDX-License-Identifier: BSD-3-Clause */
/* Register sets come and go: slots, generations of queue numbers, and the set as a source of work.
 */
#include "msg/priv.h"
#include "transport/sched.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rnd.h"

const struct urn_flow_user urn_msg_flow_user = {
	.deliver = urn_msg_deliver,
	.admit = urn_msg_admit,
	.answered = urn_msg_answered,
};

struct urn_msg_regs *
urn_msg_regs_create(unsigned int engine, unsigned int first, uint64_t seed)
{
	struct urn_msg_regs *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->engine = (uint16_t)engine;
	r->first = (uint16_t)first;
	r->generation = (uint32_t)urn_rnd_at(seed, 0);
	r->names.seed = (uint32_t)urn_rnd_at(seed, 1);
	r->touched = r->late = (struct urn_msg_list){URN_MSG_NIL, URN_MSG_NIL};
	urn_pool_init(&r->slots, 0, URN_MSG_SLOTS);
	r->slot = calloc(URN_MSG_SLOTS, sizeof(*r->slot));
	if (!r->slot) {
		free(r);
		return NULL;
	}
	return r;
}

void
urn_msg_regs_destroy(struct urn_msg_regs *r)
{
	if (!r)
		return;
	urn_hash_fini(&r->names);
	free(r->slot);
	free(r);
}

/* ---- numbers */

/* The generation of a slot's next set: 2^31 - 1 of them, none is 0, and the next differs from the
 * one before. */
static uint32_t
next_generation(const struct urn_msg_regs *r, const struct urn_msg_slot *slot)
{
	return (slot->generation ? slot->generation : r->generation) % 0x7fffffff + 1;
}

URN_FAST uint64_t
urn_msg_number(const struct urn_msg_regs *r, uint32_t slot)
{
	return URN_MSG_QID(r->slot[slot].generation, r->engine, slot);
}

URN_FAST struct urn_msg_rset *
urn_msg_set_at(const struct urn_msg_regs *r, uint32_t slot)
{
	return slot < r->slots.made ? r->slot[slot].set : NULL;
}

uint32_t
urn_msg_slots(const struct urn_msg_regs *r)
{
	return r->slots.made;
}

uint32_t
urn_msg_count(const struct urn_msg_regs *r)
{
	return atomic_load_explicit(&r->count, memory_order_relaxed);
}

URN_FAST struct urn_msg_rset *
urn_msg_find(const struct urn_msg_regs *r, uint64_t qid)
{
	struct urn_msg_rset *s;

	if (urn_msg_qid_is_named(qid)) {
		s = qid == URN_MSG_NAME(qid) ? urn_msg_by_name(r, (uint32_t)qid) : NULL;
	} else {
		s = urn_msg_set_at(r, urn_msg_qid_slot(qid));
		if (s && urn_msg_number(r, s->slot) != qid)
			s = NULL;
	}
	return s;
}

/* ---- a set's life */

int
urn_msg_open(struct urn_msg_regs *r, const struct urn_msg_config *cfg, struct urn_msg_rset **set)
{
	struct urn_msg_rset *s;
	uint32_t slot = urn_pool_get(&r->slots, &r->slot[0].next, sizeof(r->slot[0]));

	if (slot == URN_HASH_NIL)
		return ENOSPC;
	s = calloc(1, sizeof(*s));
	if (!s) {
		urn_pool_put(&r->slots, slot, &r->slot[0].next, sizeof(r->slot[0]));
		return ENOMEM;
	}
	s->user.ops = &urn_msg_ops;
	s->user.source.share = cfg->share;
	s->user.source.kind = URN_SOURCE_OPS;
	s->user.source.db = cfg->db & 0x3ffff;
	s->regs = cfg->regs;
	s->arena = cfg->arena;
	s->timer.timer.kind = URN_TIMER_SOURCE;
	s->timer.source = &s->user.source;
	s->channel_fd = cfg->channel_fd;
	s->channel = cfg->channel;
	s->cookie = cfg->cookie;
	s->slot = (uint16_t)slot;
	r->slot[slot].generation = next_generation(r, &r->slot[slot]);
	r->slot[slot].set = s;
	atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
	*set = s;
	return 0;
}

bool
urn_msg_end(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_msg_regs *r = urn_msg_regs_of(tp);
	struct urn_msg_rset *s = urn_msg_set_of(src);
	struct urn_msg_slot *slot = &r->slot[s->slot];

	urn_sched_remove(&tp->sched, src);
	urn_wheel_stop(&tp->wheel, &s->timer.timer);
	urn_msg_unbind(r, s);
	urn_msg_forget(r, s);
	if (src->flags & URN_MSGF_IN_FLOW)
		urn_flow_forget(tp, &s->msg);
	slot->set = NULL;
	urn_pool_put(&r->slots, s->slot, &r->slot[0].next, sizeof(*slot));
	atomic_fetch_sub_explicit(&r->count, 1, memory_order_relaxed);
	free(s);
	return true;
}

struct urn_msg_rset *
urn_msg_set_of(struct urn_source *src)
{
	return (struct urn_msg_rset *)((char *)src - offsetof(struct urn_msg_rset, user.source));
}

struct urn_source *
urn_msg_source(struct urn_msg_rset *set)
{
	return &set->user.source;
}

/* ---- the set as a source */

/* The client rang: the set is looked at in its client's turn. */
static URN_FAST void
rung(struct urn_tp *tp, struct urn_source *src)
{
	urn_sched_add(&tp->sched, src);
}

static URN_FAST bool
serve(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_msg_rset *s = urn_msg_set_of(src);

	urn_msg_look_conf(tp, s);
	urn_msg_look_send(tp, s);
	if (!urn_msg_try(tp, s))
		return false;
	if (!tp->cfg.ring_again)
		return true;
	tp->cfg.ring_again(tp->cfg.give_ctx, src);
	return false;
}

/* The time between two tries is over. */
static void
due(struct urn_tp *tp, struct urn_source *src)
{
	src->flags |= URN_MSGF_TRY;
	urn_sched_add(&tp->sched, src);
}

const struct urn_source_ops urn_msg_ops = {
	.rung = rung,
	.serve = serve,
	.due = due,
	.end = urn_msg_end,
};

/* ---- views */

/* A value that the engine may be changing while another thread looks. */
#define LOOK(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

void
urn_msg_look(const struct urn_msg_regs *r, const struct urn_msg_rset *s, struct urn_msg_view *v)
{
	bool pending = LOOK(s->user.source.flags) & URN_MSGF_PENDING;

	*v = (struct urn_msg_view){
		.qid = urn_msg_number(r, s->slot),
		.share = s->user.source.share,
		.regs = s->regs,
		.arena = s->arena,
		.db = s->user.source.db,
		.slot = s->slot,
		.name = LOOK(s->name),
		.channel = s->channel,
		.entries = LOOK(s->entries),
		.entry_size = LOOK(s->entry_size),
		.head = atomic_load_explicit(&s->regs->ctrl.head, memory_order_relaxed),
		.tail = LOOK(s->tail),
		.state = LOOK(s->state),
		.code = pending ? URN_MSG_PENDING : LOOK(s->code),
		.sent = LOOK(s->sent),
	};
}
