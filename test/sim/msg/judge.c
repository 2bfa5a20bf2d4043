/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle. A mail is judged when its entry is read, when it is answered, and at the end of the run:
 *
 *   DONE                      in its queue exactly once, and there before the answer
 *   an error                  not there; its code names something that was so
 *   an error, MAY_BE_THERE    there at most once
 *   no answer                 only when its box ended before
 */
#include "msgsim.h"

#include <stdlib.h>

void
ms_mail_fill(uint8_t *to, uint32_t mail, uint32_t len)
{
	uint64_t head[2] = {mail, ~(uint64_t)mail};

	sim_fill(to, mail, 0, len);
	memcpy(to, head, MS_HEAD);
}

static bool
is_filled(const uint8_t *data, uint32_t mail, uint32_t len)
{
	uint32_t i = MS_HEAD;

	for (; i + 8 <= len; i += 8) {
		uint64_t w = sim_word(mail, i / 8), v;

		memcpy(&v, data + i, 8);
		if (v != w)
			return false;
	}
	for (; i < len; i++)
		if (data[i] != sim_byte(mail, i))
			return false;
	return true;
}

/* The number of the mail in these bytes. returns: UINT32_MAX: none */
static uint32_t
mail_in(const struct ms_world *w, const uint8_t *data, uint32_t len)
{
	uint64_t head[2];

	if (len < MS_HEAD)
		return UINT32_MAX;
	memcpy(head, data, MS_HEAD);
	return head[0] == ~head[1] && head[0] < w->mails ? (uint32_t)head[0] : UINT32_MAX;
}

/* ---- a message came */

/* True when an entry names this box as its source. */
static bool
is_from(const struct ms_world *w, const struct ms_box *b, const struct urn_abi_msg_entry *e)
{
	return memcmp(w->node[b->node].gid, e->node, 16) == 0 && e->qid == (b->name ? URN_MSG_NAME(b->name) : b->qid);
}

/* True when the entry is of a box that scribbles: its bytes may be anything. */
static bool
is_scribbled(const struct ms_world *w, const struct urn_abi_msg_entry *e)
{
	for (uint32_t i = 0; i < w->boxes; i++) {
		const struct ms_box *b = &w->box[i];

		if (b->scribbles && is_from(w, b, e))
			return true;
	}
	return false;
}

/* True when a box may get a mail that was addressed so. */
static bool
is_addressed(const struct ms_world *w, const struct ms_box *b, const struct ms_mail *m)
{
	if (memcmp(w->node[b->node].gid, m->node, 16) != 0)
		return false;
	return urn_msg_qid_is_named(m->qid) ? b->name && m->qid == URN_MSG_NAME(b->name) : m->qid == b->qid;
}

static bool
is_permitted(const struct ms_box *b, const struct ms_box *from)
{
	if (b->own_only && from->node != b->node)
		return false;
	return !b->permit_bits || from->node + 1 == b->permit;
}

void
ms_judge_entry(struct ms_world *w, struct ms_box *b, const uint8_t *entry)
{
	const uint8_t *data = entry + sizeof(struct urn_abi_msg_entry);
	const struct ms_box *from;
	struct urn_abi_msg_entry e;
	struct ms_mail *m;
	uint32_t mail;

	memcpy(&e, entry, sizeof(e));
	if (e.len > b->entry_size - sizeof(e) || e.flags)
		ms_fail(w, "box %u: an entry of %u bytes, flags %u", b->id, e.len, e.flags);
	mail = mail_in(w, data, e.len);
	/* A box that scribbles may send on a mail that came to it. */
	if (w->plan.scribble_in && (mail == UINT32_MAX || !is_from(w, &w->box[w->mail[mail].from], &e)) && is_scribbled(w, &e))
		return;
	if (mail == UINT32_MAX)
		ms_fail(w, "box %u: a message that nobody sent", b->id);
	m = &w->mail[mail];
	from = &w->box[m->from];
	if (m->bad || m->len != e.len || !is_filled(data, mail, e.len))
		ms_fail(w, "mail %u came torn to box %u: %u bytes of %u", mail, b->id, e.len, m->len);
	if (!is_addressed(w, b, m) || !is_permitted(b, from))
		ms_fail(w, "mail %u to box %d came to box %u", mail, (int)m->to, b->id);
	if (!is_from(w, from, &e))
		ms_fail(w, "mail %u came from another box than %u: queue %llx", mail, m->from, (unsigned long long)e.qid);
	if (m->came++)
		ms_fail(w, "mail %u came twice", mail);
	w->stats.bytes += m->len;
	ms_trace(w, "mail %u came to box %u", mail, b->id);
}

/* ---- an answer */

/* True when the mail is in the ring of a box, unread. */
static bool
waits_in(const struct ms_world *w, const struct ms_box *b, uint32_t mail)
{
	uint32_t tail;

	if (!b->regs || b->scribbles || !b->receives)
		return false;
	tail = atomic_load(&b->regs->rstat.tail);
	for (uint32_t at = b->head; at != tail; at++) {
		const uint8_t *e = (const uint8_t *)(b->regs + 1) + b->ring + (at & (b->entries - 1)) * b->entry_size;
		uint32_t len;

		memcpy(&len, e, 4);
		if (mail_in(w, e + sizeof(struct urn_abi_msg_entry), len) == mail)
			return true;
	}
	return false;
}

/* True when deliveries of this mail can be seen: no box that scribbles over its ring can have taken it. */
static bool
is_judged(const struct ms_world *w, const struct ms_mail *m)
{
	if (urn_msg_qid_is_named(m->qid))
		return !w->plan.scribble_in;
	return m->to != UINT32_MAX && !w->box[m->to].scribbles;
}

/* True when a mail came, and was read or waits to be read in a box with its address. */
static bool
is_there(const struct ms_world *w, uint32_t mail)
{
	const struct ms_mail *m = &w->mail[mail];

	if (m->came)
		return true;
	for (uint32_t i = 0; i < w->boxes; i++)
		if (is_addressed(w, &w->box[i], m) && waits_in(w, &w->box[i], mail))
			return true;
	return false;
}

/* True when some box with the mail's address is of a kind: asks `fits` for each that there was since the doorbell. */
static bool
some_box(const struct ms_world *w, const struct ms_mail *m, bool (*fits)(const struct ms_world *, const struct ms_box *, const struct ms_mail *))
{
	for (uint32_t i = 0; i < w->boxes; i++) {
		const struct ms_box *b = &w->box[i];

		if (b->closed >= m->rung && is_addressed(w, b, m) && fits(w, b, m))
			return true;
	}
	return false;
}

static bool
was_full(const struct ms_world *w, const struct ms_box *b, const struct ms_mail *m)
{
	uint64_t refused = b->regs ? atomic_load(&b->regs->rstat.refused) : b->refused;

	(void)w;
	return b->scribbles || (b->receives && (b->id != m->to || refused > m->refused));
}

static bool
was_short(const struct ms_world *w, const struct ms_box *b, const struct ms_mail *m)
{
	(void)w;
	return b->scribbles || (b->receives && m->len > b->entry_size - sizeof(struct urn_abi_msg_entry));
}

static bool
was_closed_to(const struct ms_world *w, const struct ms_box *b, const struct ms_mail *m)
{
	return b->scribbles || (b->receives && !is_permitted(b, &w->box[m->from]));
}

/* True when the box was there all the time, and takes messages. */
static bool
was_there(const struct ms_world *w, const struct ms_box *b, const struct ms_mail *m)
{
	/* The dataplane takes the first configuration soon after the set was opened. */
	return !b->scribbles && b->receives && b->opened + MS_MS < m->rung && b->closed > w->now;
}

/* The node of an address; NULL: there is none. */
static const struct ms_node *
node_of(const struct ms_world *w, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		if (memcmp(w->node[i].gid, gid, 16) == 0)
			return &w->node[i];
	return NULL;
}

/* True when one of two nodes was cut off, or down, since a time. */
static bool
was_away(const struct ms_node *n, uint64_t since)
{
	return !n->tp || n->gone_at >= since || n->cut_until >= since;
}

static bool
may_be_unreachable(const struct ms_world *w, const struct ms_mail *m)
{
	const struct ms_node *to = node_of(w, m->node), *from = &w->node[w->box[m->from].node];

	return was_away(from, m->rung) || (to && was_away(to, m->rung - 3 * MS_S)) || w->plan.ring ||
	       w->plan.drop > 0.2;
}

/* True when a long message may have found no place in its node: many others were there. */
static bool
may_be_busy(const struct ms_world *w, const struct ms_node *to, const struct ms_mail *m)
{
	bool is_long = sizeof(struct urn_flow_seg) + urn_flow_pad(m->len) > w->plan.mtu;

	return is_long && to->crowded_at >= m->rung;
}

/* True when the flows of a sender may have been in use for long: packets of each were lost. */
static bool
may_have_no_flow(const struct ms_world *w)
{
	return w->plan.flows && w->plan.drop > 0;
}

/* True when the code names something that was so. */
static bool
is_true(const struct ms_world *w, const struct ms_mail *m, uint8_t code)
{
	const struct ms_node *to = node_of(w, m->node);

	if (m->bad)
		return code == URN_MSG_BAD_DOORBELL;
	switch (code & ~URN_MSG_MAY_BE_THERE) {
	case URN_MSG_DONE:
		return to && !(code & URN_MSG_MAY_BE_THERE);
	case URN_MSG_QUEUE_FULL:
		return some_box(w, m, was_full);
	case URN_MSG_NO_NODE:
		return !to;
	case URN_MSG_NO_QUEUE:
		return to && !some_box(w, m, was_there);
	case URN_MSG_TOO_LONG:
		return some_box(w, m, was_short);
	case URN_MSG_NOT_PERMITTED:
		return some_box(w, m, was_closed_to);
	case URN_MSG_UNREACHABLE:
		return to && may_be_unreachable(w, m);
	case URN_MSG_BUSY:
		return may_have_no_flow(w) ||
		       (to && (may_be_busy(w, to, m) || w->plan.cut_gap || w->plan.restart_gap));
	case URN_MSG_RESTARTED:
		return to && to->gone_at >= m->rung - 25 * MS_S; /* flows are renewed after 20 s */
	}
	return false;
}

void
ms_judge_answer(struct ms_world *w, struct ms_box *b, uint32_t mail, uint8_t code)
{
	struct ms_mail *m = &w->mail[mail];
	uint8_t plain = code & (uint8_t)~URN_MSG_MAY_BE_THERE;

	ms_trace(w, "mail %u of box %u: %s%s", mail, b->id, urn_msg_code_word(code),
		 code & URN_MSG_MAY_BE_THERE ? ", may be there" : "");
	ms_note(w, w->now);
	ms_note(w, (uint64_t)mail << 8 | code);
	m->code = code;
	m->answered = w->now;
	if (plain < URN_MSG_CODES)
		w->stats.code[plain]++;
	w->stats.may_be += (code & URN_MSG_MAY_BE_THERE) != 0;
	if (!is_true(w, m, code))
		ms_fail(w, "mail %u from box %u to box %d was answered %s, which is not so", mail, b->id, (int)m->to,
			urn_msg_code_word(code));
	if (code == URN_MSG_DONE && is_judged(w, m) && !is_there(w, mail))
		ms_fail(w, "mail %u was answered done, and is not in its queue", mail);
	if (code != URN_MSG_DONE && !(code & URN_MSG_MAY_BE_THERE) && is_there(w, mail))
		ms_fail(w, "mail %u was answered %s, and is in its queue", mail, urn_msg_code_word(code));
}

void
ms_judge_stalls(struct ms_world *w)
{
	for (uint32_t i = 0; i < w->mails; i++) {
		const struct ms_mail *m = &w->mail[i];

		if (!m->code && !m->orphan && m->bound < w->now)
			ms_fail(w, "mail %u from box %u to box %d, rung at %.3f ms, has no answer", i, m->from, (int)m->to,
				(double)(m->rung - w->start) / 1e6);
	}
}

/* ---- incast */

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
judge_p99(struct ms_world *w)
{
	const struct ms_plan *p = &w->plan;
	/* Headers of Ethernet, IPv4, UDP, BTH, flow and segment, and the ICRC. */
	uint64_t frame = 14 + 20 + 8 + 12 + 16 + 32 + 4 + p->len_max + URN_IMPAIR_WIRE_EXTRA;
	double need = (double)((p->nodes - 1) * frame * 8) * 1e9 / (double)p->rate, ratio;
	uint64_t *took = calloc(w->mails + 1ull, sizeof(*took));

	if (!took)
		ms_fail(w, "no memory");
	for (uint32_t i = 0; i < w->mails; i++)
		took[i] = w->mail[i].answered - w->mail[i].rung;
	qsort(took, w->mails, sizeof(*took), by_size);
	ratio = (double)took[(uint64_t)w->mails * 99 / 100] / need;
	free(took);
	w->stats.p99_ppm = (uint64_t)(ratio * 1e6);
	if (ratio > p->most_p99)
		ms_fail(w, "99 of 100 messages were answered within %.2f times what the wire needs for one of each node", ratio);
}

/* ---- the end */

void
ms_judge_end(struct ms_world *w)
{
	for (uint32_t i = 0; i < w->mails; i++) {
		const struct ms_mail *m = &w->mail[i];

		if (!m->code && !m->orphan)
			ms_fail(w, "mail %u has no answer at the end", i);
		if (m->code == URN_MSG_DONE && m->came != 1 && is_judged(w, m))
			ms_fail(w, "mail %u is done, and came %u times", i, m->came);
		if (m->code && m->code != URN_MSG_DONE && !(m->code & URN_MSG_MAY_BE_THERE) && m->came)
			ms_fail(w, "mail %u came, and its answer is %s", i, urn_msg_code_word(m->code));
		w->stats.done += m->code == URN_MSG_DONE;
		w->stats.errors += m->code && m->code != URN_MSG_DONE;
	}
	w->stats.messages += w->mails;
	if (w->plan.most_p99 > 0)
		judge_p99(w);
}
