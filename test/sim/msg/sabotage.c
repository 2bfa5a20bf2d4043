/* SPDX-License-Identifier: BSD-3-Clause */
/* Sabotage: imitates bugs of a broken product, to test that the oracle notices. */
#include "msgsim.h"

#include "msg/priv.h"
#include "transport/flow_rest.h"

enum { AFTER = 10 }; /* mails that are well before */

/* X(id, name, text) */
/* clang-format off */
#define MS_SABOTAGES(X) \
	X(BITMAP, "bitmap", "a flow at rest forgets which packets came ahead") \
	X(EPOCH, "epoch", "a flow at rest forgets which packets came") \
	X(CODES, "codes", "a flow at rest forgets refusals") \
	X(EARLY, "early", "a message is answered DONE when it leaves") \
	X(STALL, "stall", "a flow forgets a message") \
	X(LIE, "lie", "a message has another error than the one that happened") \
	X(SLEEP, "sleep", "a queue is not armed, though its reader armed it") \
	X(DROP, "drop", "a switch that loses nothing loses a frame, and counts nothing")
/* clang-format on */

enum {
	NOTHING,
#define X(id, name, text) id,
	MS_SABOTAGES(X)
#undef X
		COUNT_OF,
};

static const struct {
	const char *name, *text;
} names[COUNT_OF] = {
#define X(id, name, text) [id] = {name, text},
	MS_SABOTAGES(X)
#undef X
};

const char *
ms_sabotage_name(unsigned int i, const char **text)
{
	if (!i || i >= COUNT_OF)
		return NULL;
	*text = names[i].text;
	return names[i].name;
}

/* Spoil a flow at rest. */
static void
spoil_rest(struct urn_flows *fl, struct urn_flow_rest *r, unsigned int what)
{
	switch (what) {
	case BITMAP:
		memset(r->bitmap, 0, sizeof(r->bitmap));
		break;
	case EPOCH:
		r->rx_epoch = 0;
		break;
	case CODES:
		if (r->refusals)
			urn_flows_put_refusals(fl, r->refusals);
		r->refusals = NULL;
		break;
	}
}

/* Answer a message that has just left for another node. returns: true when there is one */
static bool
answer_early(const struct ms_world *w, struct ms_box *b, uint64_t answer)
{
	const struct ms_mail *m = b->mail == UINT32_MAX ? NULL : &w->mail[b->mail];

	if (!m || m->bad || m->to == UINT32_MAX || w->box[m->to].node == b->node ||
	    answer != URN_MSG_ANSWER(b->seq, URN_MSG_PENDING) || answer == b->answer)
		return false;
	atomic_store(&b->regs->sstat.answer, URN_MSG_ANSWER(b->seq, URN_MSG_DONE));
	return true;
}

/* Give a message that has failed, and whose program does not know yet, another error. returns: true
 * when there is one */
static bool
lie(struct ms_box *b, uint64_t answer)
{
	uint8_t code = urn_msg_answer_code(answer);

	if (answer == b->answer || urn_msg_answer_seq(answer) != b->seq || code == URN_MSG_DONE ||
	    code == URN_MSG_PENDING)
		return false;
	code = code == URN_MSG_NO_NODE ? URN_MSG_TOO_LONG : URN_MSG_NO_NODE;
	atomic_store(&b->regs->sstat.answer, URN_MSG_ANSWER(b->seq, code));
	return true;
}

/* Take a message out of its flow. returns: true when there is one */
static bool
stall(struct ms_node *n, struct ms_box *b)
{
	if (!(b->set->user.source.flags & URN_MSGF_IN_FLOW) || !b->set->msg.strand)
		return false;
	urn_flow_forget(n->tp, &b->set->msg);
	return true;
}

/* Take ARM INTR back before a message comes. returns: true when the reader sleeps */
static bool
disarm(struct ms_box *b)
{
	if (!b->armed || atomic_load(&b->regs->rstat.tail) != b->head)
		return false;
	atomic_store(&b->regs->conf.arm, 0);
	return true;
}

/* Spoil something of a box. returns: true when that was done */
static bool
spoil_box(struct ms_node *n, struct ms_box *b)
{
	uint64_t answer = atomic_load(&b->regs->sstat.answer);

	switch (n->w->sabotage) {
	case EARLY:
		return answer_early(n->w, b, answer);
	case STALL:
		return stall(n, b);
	case LIE:
		return lie(b, answer);
	case SLEEP:
		return disarm(b);
	}
	return false;
}

/* Break one thing of a run. */
static void
spoil_once(struct ms_node *n)
{
	struct ms_world *w = n->w;

	if (w->broken || w->mails < AFTER)
		return;
	if (w->sabotage == DROP)
		w->broken = w->lose = true;
	for (unsigned int i = 0; i < w->plan.sets && !w->broken; i++) {
		struct ms_box *b = ms_box_at(n, i);

		if (b && !b->scribbles && spoil_box(n, b))
			w->broken = b->id + 1;
	}
	if (w->broken)
		ms_trace(w, "sabotage: %s", names[w->sabotage].text);
}

void
ms_sabotage_turn(struct ms_node *n)
{
	struct ms_world *w = n->w;
	struct urn_flow_rest *r;

	if (!w->sabotage)
		return;
	spoil_once(n);
	if (w->sabotage == SLEEP && w->broken && w->box[w->broken - 1].set)
		(void)disarm(&w->box[w->broken - 1]);
	TAILQ_FOREACH(r, &n->tp->flows->resting, queue)
		spoil_rest(n->tp->flows, r, w->sabotage);
}
