/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs: each box is one life of a register set, and does what a program does with the mapped registers
 * (abi/msg.h). Most keep the rules; some scribble over all that they can reach.
 */
#include "msgsim.h"

#include <stdlib.h>

enum { GUARD_BYTE = 0xa5, SCRIBBLE_US = 20, NAMES = 4 };

static uint8_t *
arena_of(const struct ms_box *b)
{
	return (uint8_t *)(b->regs + 1);
}

/* ---- opening */

/* Choose sizes of the ring and the send buffer. */
static void
choose_sizes(struct ms_world *w, struct ms_box *b)
{
	const struct ms_plan *p = &w->plan;
	bool large = p->long_in && (w->plan.one_target || ms_one_in(w, 2));
	uint32_t len = large ? p->long_max : p->len_max;
	uint32_t most = large ? 4 : p->entries;

	b->entry_size = RTE_ALIGN_CEIL(len + (uint32_t)sizeof(struct urn_abi_msg_entry), 64u);
	b->entries = 1;
	while (b->entries < most && !ms_one_in(w, 6))
		b->entries *= 2;
	b->buffer = RTE_ALIGN_CEIL((p->long_in ? p->long_max : p->len_max) + 256, 64u);
	b->ring = b->buffer;
	b->arena = b->ring + b->entries * b->entry_size;
}

static void
choose_habits(struct ms_world *w, struct ms_box *b)
{
	const struct ms_plan *p = &w->plan;

	b->receives = !ms_one_in(w, 10) || ((p->one_target || p->others_in) && b->id == 0);
	b->sleeps = ms_one_in(w, p->sleep_in);
	b->scribbles = ms_one_in(w, p->scribble_in);
	b->gap = ms_one_in(w, p->slow_in) ? 20 * p->read_gap : p->read_gap;
	if (ms_one_in(w, p->permit_in)) {
		b->own_only = ms_one_in(w, 2);
		b->permit_bits = b->own_only ? 0 : 128;
		b->permit = (uint8_t)(1 + ms_upto(w, p->nodes));
	}
	b->send_at = w->now + ms_upto(w, p->think + 1);
	b->read_at = w->now;
}

static void
make_set(struct ms_node *n, struct ms_box *b, unsigned int place)
{
	struct ms_world *w = n->w;
	struct urn_msg_view v;
	struct urn_msg_config c = {
		.share = b->share,
		.db = place,
		.regs = b->regs,
		.arena = b->arena,
		.channel_fd = 1,
		.cookie = b->id,
	};

	if (urn_msg_open(n->regs, &c, &b->set) != 0)
		ms_fail(w, "a register set could not be made");
	urn_msg_look(n->regs, b->set, &v);
	b->qid = v.qid;
	if (v.db != place)
		ms_fail(w, "the doorbell of a set is %u, not %u", v.db, place);
}

/* Take a name, which perhaps another box has. */
static void
take_name(struct ms_node *n, struct ms_box *b)
{
	uint32_t name = 1 + (uint32_t)ms_upto(n->w, NAMES);
	bool taken = false;

	for (unsigned int i = 0; i < MS_SETS; i++) {
		const struct ms_box *o = ms_box_at(n, i);

		taken |= o && o != b && o->name == name;
	}
	if ((urn_msg_bind(n->regs, b->set, name) == 0) == taken)
		ms_fail(n->w, "node %u, name %u: bound twice, or refused though it is free", n->id, name);
	if (!taken)
		b->name = name;
}

static void
configure(struct ms_node *n, struct ms_box *b)
{
	struct urn_abi_msg_conf *c = &b->regs->conf;

	if (!b->receives)
		return;
	c->entries = b->entries;
	c->entry_size = b->entry_size;
	c->base = b->ring;
	c->permit_bits = b->permit_bits;
	c->flags = b->own_only ? URN_MSGQ_OWN_NODE : 0;
	memcpy(c->permit, n->gid, 16);
	c->permit[15] = b->permit_bits ? b->permit : c->permit[15];
	atomic_store(&c->seq, 1);
}

void
ms_box_open(struct ms_node *n, unsigned int place)
{
	struct ms_world *w = n->w;
	struct ms_box *b;
	size_t bytes;

	if (w->boxes == w->box_room)
		return;
	b = &w->box[w->boxes];
	memset(b, 0, sizeof(*b));
	b->id = w->boxes++;
	b->node = n->id;
	b->mail = UINT32_MAX;
	b->share = &n->share[place % RTE_DIM(n->share)];
	b->opened = w->now;
	b->closed = MS_NEVER;
	choose_sizes(w, b);
	choose_habits(w, b);
	bytes = sizeof(*b->regs) + b->arena + MS_GUARD;
	b->regs = aligned_alloc(64, RTE_ALIGN_CEIL(bytes, 64));
	if (!b->regs)
		ms_fail(w, "no memory");
	/* A box that scribbles may send any bytes of its arena; a seed alone makes these. */
	memset(b->regs, 0, b->scribbles ? bytes : sizeof(*b->regs));
	memset(arena_of(b) + b->arena, GUARD_BYTE, MS_GUARD);
	make_set(n, b, place);
	n->box[place] = b->id;
	if (ms_one_in(w, 3))
		take_name(n, b);
	configure(n, b);
	n->rung[place] = 1;
	ms_node_wake(n, w->now);
	ms_trace(w, "box %u opens on node %u, queue %llx, name %u, %u entries of %u", b->id, n->id,
		 (unsigned long long)b->qid, b->name, b->receives ? b->entries : 0, b->entry_size);
}

/* ---- reading */

/* Look at the entries that are there. most: entries to read; returns: entries read */
static uint32_t
read_entries(struct ms_world *w, struct ms_box *b, uint32_t most)
{
	uint32_t tail = atomic_load(&b->regs->rstat.tail), n = 0;

	if (b->scribbles || !b->receives)
		return 0;
	if (tail - b->head > b->entries)
		ms_fail(w, "box %u: tail %u, head %u, %u entries", b->id, tail, b->head, b->entries);
	for (; b->head != tail && n < most; n++) {
		ms_judge_entry(w, b, arena_of(b) + b->ring + (b->head & (b->entries - 1)) * b->entry_size);
		b->head++;
	}
	atomic_store(&b->regs->ctrl.head, b->head);
	return n;
}

/* Sleep, unless messages wait. */
static void
fall_asleep(struct ms_node *n, struct ms_box *b, unsigned int place)
{
	atomic_store(&b->regs->conf.arm, 1);
	b->armed = true;
	b->read_at = MS_NEVER;
	if (atomic_load(&b->regs->rstat.tail) != b->head)
		n->rung[place] = 1;
}

static void
read_now(struct ms_node *n, struct ms_box *b, unsigned int place)
{
	struct ms_world *w = n->w;
	uint32_t read = read_entries(w, b, 1 + (uint32_t)ms_upto(w, b->entries));

	b->read_at = w->now + 1 + ms_upto(w, b->gap + 1);
	if (!read && b->sleeps)
		fall_asleep(n, b, place);
}

void
ms_box_woken(struct ms_node *n, uint64_t cookie)
{
	struct ms_box *b = &n->w->box[cookie];

	if (cookie >= n->w->boxes || b->node != n->id || !b->set)
		ms_fail(n->w, "an event for box %llu, which is not there", (unsigned long long)cookie);
	if (b->scribbles)
		return;
	if (!b->armed)
		ms_fail(n->w, "box %u: an event, and the queue was not armed", b->id);
	b->armed = false;
	b->read_at = n->w->now + 1;
	ms_node_wake(n, b->read_at);
}

/* ---- sending */

/* Choose a box to send to. UINT32_MAX: a queue that is not there */
static uint32_t
choose_target(struct ms_world *w)
{
	struct ms_node *n;
	uint32_t box;

	if (w->plan.one_target || (w->plan.others_in && !ms_one_in(w, w->plan.others_in)))
		return w->node[0].box[0];
	if (w->boxes && ms_one_in(w, w->plan.bad_in)) /* perhaps one that was closed */
		return (uint32_t)ms_upto(w, w->boxes);
	n = &w->node[ms_upto(w, w->plan.nodes)];
	box = n->box[ms_upto(w, w->plan.sets)];
	return box;
}

/* Spoil the target of a message in one of several ways. */
static void
spoil(struct ms_world *w, struct ms_mail *m, struct urn_abi_msg_send *l)
{
	switch (ms_upto(w, 5)) {
	case 0: /* no such node */
		l->node[14] = 0x80;
		m->to = UINT32_MAX;
		break;
	case 1: /* no such queue */
		l->qid = URN_MSG_QID(1 + ms_upto(w, 100), 0, ms_upto(w, 65535));
		m->to = UINT32_MAX;
		break;
	case 2:
		l->qid = URN_MSG_NAME(1000);
		m->to = UINT32_MAX;
		break;
	case 3:
		l->addr = UINT64_MAX - ms_upto(w, 100);
		m->bad = true;
		break;
	default:
		l->qid = ms_upto(w, 1u << 31);
		m->bad = true;
		break;
	}
	memcpy(m->node, l->node, 16);
	m->qid = l->qid;
}

static uint32_t
choose_len(struct ms_world *w, const struct ms_box *b)
{
	const struct ms_plan *p = &w->plan;
	uint32_t most = ms_one_in(w, p->long_in) ? p->long_max : p->len_max;

	if (p->one_target || p->others_in)
		return most;
	most += ms_one_in(w, p->bad_in) ? 200 : 0;
	if (ms_one_in(w, 4))
		return RTE_MIN(most, b->buffer);
	return MS_HEAD + (uint32_t)ms_upto(w, most - MS_HEAD + 1);
}

static void
choose_policy(struct ms_world *w, struct ms_mail *m, struct urn_abi_msg_send *l)
{
	l->retries = 0;
	l->retry_kinds = 0;
	if (ms_one_in(w, w->plan.retry_in)) {
		l->retries = (uint16_t)ms_upto(w, 60);
		l->retry_kinds = URN_MSG_RETRY_QUEUE_FULL | (ms_one_in(w, 4) ? URN_MSG_RETRY_BUSY | URN_MSG_RETRY_NO_QUEUE : 0);
		l->retry_us = (uint32_t)ms_upto(w, 300);
	}
	if (w->plan.one_target) {
		l->retries = URN_MSG_NO_END;
		l->retry_kinds = URN_MSG_RETRY_QUEUE_FULL;
		l->retry_us = 10 + (uint32_t)ms_upto(w, 20);
	}
	m->retries = l->retries;
	m->kinds = l->retry_kinds;
	m->bound = w->now + (ms_judge_paused(w, m) ? w->plan.bound : w->plan.bound_others) +
		   (l->retries == URN_MSG_NO_END ? 0 : l->retries * 2 * MS_MS);
}

static void
ring(struct ms_node *n, struct ms_box *b, unsigned int place, uint32_t to)
{
	struct ms_world *w = n->w;
	struct urn_abi_msg_send *l = &b->regs->send;
	struct ms_mail *m = &w->mail[w->mails];
	const struct ms_box *t = &w->box[to];

	memset(m, 0, sizeof(*m));
	m->from = b->id;
	m->to = to;
	m->len = l->size = choose_len(w, b);
	memcpy(l->node, w->node[t->node].gid, 16);
	l->qid = t->name && ms_one_in(w, 2) ? URN_MSG_NAME(t->name) : t->qid;
	l->addr = ms_upto(w, b->buffer - m->len + 1);
	ms_mail_fill(arena_of(b) + l->addr, w->mails, m->len);
	memcpy(m->node, l->node, 16);
	m->qid = l->qid;
	if (ms_one_in(w, w->plan.bad_in))
		spoil(w, m, l);
	m->bad |= m->len > URN_MSG_MAX;
	choose_policy(w, m, l);
	m->rung = w->now;
	m->refused = t->regs ? atomic_load(&t->regs->rstat.refused) : t->refused;
	m->seq = ++b->seq;
	b->mail = w->mails++;
	w->pending++;
	atomic_store(&l->seq, b->seq);
	n->rung[place] = 1;
	ms_trace(w, "mail %u: box %u to box %d, %u bytes", b->mail, b->id, (int)to, m->len);
}

static void
send_now(struct ms_node *n, struct ms_box *b, unsigned int place)
{
	struct ms_world *w = n->w;
	uint32_t to = choose_target(w);

	b->send_at = w->now + 1 + ms_upto(w, w->plan.think + 1);
	if (w->quiet || w->mails == w->plan.messages || to == UINT32_MAX || (w->plan.one_target && b->id == to)) {
		b->send_at = MS_NEVER;
		return;
	}
	ring(n, b, place, to);
}

static void
look_answer(struct ms_world *w, struct ms_box *b)
{
	uint64_t a = atomic_load(&b->regs->sstat.answer);
	uint8_t code = urn_msg_answer_code(a);
	uint32_t mail = b->mail;

	if (a == b->answer)
		return;
	if (mail == UINT32_MAX || urn_msg_answer_seq(a) != b->seq)
		ms_fail(w, "box %u: answer %llx, the doorbell was %u and the last answer %llx", b->id, (unsigned long long)a, b->seq,
			(unsigned long long)b->answer);
	b->answer = a;
	if (code == URN_MSG_PENDING)
		return;
	b->mail = UINT32_MAX;
	w->pending--;
	w->last_answer = w->now;
	ms_judge_answer(w, b, mail, code);
}

/* ---- scribbling */

static void
scribble(struct ms_node *n, struct ms_box *b, unsigned int place)
{
	struct ms_world *w = n->w;
	uint8_t *regs = (uint8_t *)b->regs;

	for (unsigned int i = (unsigned int)ms_upto(w, 12); i; i--) {
		uint32_t at = (uint32_t)ms_upto(w, sizeof(*b->regs));
		uint64_t word = sim_rng_next(&w->rng) >> ms_upto(w, 64);

		memcpy(regs + (at & ~7u), &word, 8);
	}
	if (ms_one_in(w, 2)) { /* a message that makes sense, and changes meanwhile */
		const struct ms_box *t = &w->box[ms_upto(w, w->boxes)];
		struct urn_abi_msg_send *l = &b->regs->send;

		l->size = (uint32_t)ms_upto(w, RTE_MIN(b->arena, (uint32_t)URN_MSG_MAX));
		l->addr = ms_upto(w, b->arena - l->size + 1);
		memcpy(l->node, w->node[t->node].gid, 16);
		l->qid = t->qid;
		l->seq++;
	}
	if (ms_one_in(w, 4))
		configure(n, b);
	n->rung[place] = 1;
	b->send_at = w->quiet ? MS_NEVER : w->now + ms_upto(w, SCRIBBLE_US * MS_US);
}

/* ---- turns */

static void
step(struct ms_node *n, struct ms_box *b, unsigned int place)
{
	struct ms_world *w = n->w;

	if (b->scribbles) {
		if (b->send_at <= w->now)
			scribble(n, b, place);
		return;
	}
	look_answer(w, b);
	if (b->receives && b->read_at <= w->now)
		read_now(n, b, place);
	if (b->mail == UINT32_MAX && b->send_at <= w->now)
		send_now(n, b, place);
}

void
ms_boxes_step(struct ms_node *n)
{
	for (unsigned int i = 0; i < n->w->plan.sets; i++) {
		struct ms_box *b = ms_box_at(n, i);

		if (!b)
			continue;
		step(n, b, i);
		if (b->scribbles || b->mail == UINT32_MAX)
			ms_node_wake(n, b->send_at);
		/* A reader that looks and finds nothing changes nothing, unless it falls asleep. */
		if (b->receives && !b->scribbles && !n->w->idle &&
		    (b->sleeps || atomic_load(&b->regs->rstat.tail) != b->head))
			ms_node_wake(n, b->read_at);
	}
}

/* ---- closing */

static void
check_guard(struct ms_world *w, const struct ms_box *b)
{
	const uint8_t *g = arena_of(b) + b->arena;

	for (unsigned int i = 0; i < MS_GUARD; i++)
		if (g[i] != GUARD_BYTE)
			ms_fail(w, "box %u: a byte behind its arena was changed", b->id);
}

void
ms_box_close(struct ms_node *n, unsigned int place)
{
	struct ms_world *w = n->w;
	struct ms_box *b = ms_box_at(n, place);

	if (!b->scribbles) {
		look_answer(w, b);
		read_entries(w, b, UINT32_MAX);
	}
	check_guard(w, b);
	if (!urn_msg_end(n->tp, urn_msg_source(b->set)))
		ms_fail(w, "box %u does not end", b->id);
	if (b->mail != UINT32_MAX) {
		w->mail[b->mail].orphan = true;
		w->pending--;
	}
	b->refused = atomic_load(&b->regs->rstat.refused);
	b->closed = w->now;
	b->set = NULL;
	free(b->regs);
	b->regs = NULL;
	n->box[place] = UINT32_MAX;
	n->rung[place] = 0;
	ms_trace(w, "box %u closes", b->id);
}
