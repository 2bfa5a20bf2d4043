/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stray answers: those that no request waits for (AM-1). Stray answers change nothing. Both sides
 * keep the last one with its numbers and a sentence, for the people who look for the program that
 * is wrong.
 *
 * An answer's header names the queue of answers of its sender. The receiver of a stray answer sends
 * a note there, with what the answer said. Honest traffic pays nothing for that: the field is in
 * each header. A note is tried once, takes a lane that is idle, and leaves no more often than each
 * 100 ms, so strays cost others nothing. Nobody answers a note.
 */
#include "am/lock.h"

#include "abi/clock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* Keep what a stray answer says. A message may have dozens of them, so no sentence is made here. */
static void
keep(struct urn_am_endpoint *ep, enum urn_am_stray_side side, const struct urn_msg *msg,
     const struct urn_am_head *head)
{
	struct urn_am_stray *s = &ep->stray[side];

	s->count++;
	s->number = head->number;
	s->queue = msg->qid;
	s->handler = head->handler;
	memcpy(s->node, msg->node, sizeof(s->node));
}

/* Send a note to a queue of answers, if the queue's node may have a lane now. */
static void
send_note(struct urn_am_endpoint *ep, const struct urn_msg *msg, const struct urn_am_head *head)
{
	struct urn_am_head h = {
		.kind = URN_AM_M_STRAY, .handler = head->handler, .number = head->number};
	struct urn_am_outbox *box = &ep->back;
	struct urn_am_peer *p = urn_am_peer_get(box, msg->node, head->reply_to);
	struct urn_am_place place;

	if (p == NULL)
		return;
	if (p->first == NULL && urn_am_has_lane(box, p, sizeof(h))) {
		ep->asker = (struct urn_msg_to){.qid = head->reply_to};
		memcpy(ep->asker.node, msg->node, sizeof(ep->asker.node));
		ep->asker_peer = p;
		place = urn_am_find_place(ep, sizeof(h));
		place.m->len = sizeof(h);
		urn_am_write(place.at, &h, NULL, NULL, 0);
		urn_am_lane_send(box, place.lane);
	}
	urn_am_peer_put(box, p);
}

void
urn_am_stray_came(struct urn_am_endpoint *ep, const struct urn_msg *msg,
		  const struct urn_am_head *head, const struct urn_am_asked *a)
{
	uint64_t now;

	keep(ep, URN_AM_STRAY_CAME, msg, head);
	ep->stats.stray_replies++;
	ep->stray_asked = a != NULL;
	if (a != NULL)
		memcpy(ep->stray_to, ep->out.peer[a->peer].node, sizeof(ep->stray_to));
	if (head->reply_to == 0)
		return;
	now = urn_clock_coarse_ns();
	if (now < ep->note_at)
		return;
	ep->note_at = now + URN_AM_NOTE_NS;
	send_note(ep, msg, head);
}

void
urn_am_stray_told(struct urn_am_endpoint *ep, const struct urn_msg *msg,
		  const struct urn_am_head *head)
{
	keep(ep, URN_AM_STRAY_SENT, msg, head);
}

/* Write the sentence of an answer that came. to: the node that its request went to; NULL: no
 * request waits */
static void
say_came(struct urn_am_stray *s, const uint8_t *to)
{
	char from[INET6_ADDRSTRLEN] = "", other[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(AF_INET6, s->node, from, sizeof(from));
	if (to != NULL)
		(void)inet_ntop(AF_INET6, to, other, sizeof(other));
	snprintf(s->text, sizeof(s->text),
		 "register set 0x%llx of node %s answered request 0x%llx, for handler %u, %s%s",
		 (unsigned long long)s->queue, from, (unsigned long long)s->number, s->handler,
		 to != NULL ? "which went to node "
			    : "which waits for no answer: nobody asked, or it has failed or been "
			      "answered before",
		 other);
}

/* Write the sentence of an answer that this endpoint sent. */
static void
say_sent(struct urn_am_stray *s)
{
	char node[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(AF_INET6, s->node, node, sizeof(node));
	snprintf(s->text, sizeof(s->text),
		 "register set 0x%llx of node %s says that no request waited there for the answer "
		 "to request 0x%llx, for handler %u",
		 (unsigned long long)s->queue, node, (unsigned long long)s->number, s->handler);
}

int
urn_am_last_stray(const struct urn_am_endpoint *ep, enum urn_am_stray_side side,
		  struct urn_am_stray *stray)
{
	int err;

	memset(stray, 0, sizeof(*stray));
	if (side != URN_AM_STRAY_CAME && side != URN_AM_STRAY_SENT)
		return urn_fail(EINVAL, "a stray answer has no side %d", (int)side);
	err = urn_am_enter(ep);
	if (err != 0)
		return err;
	*stray = ep->stray[side];
	if (stray->count != 0 && side == URN_AM_STRAY_CAME)
		say_came(stray, ep->stray_asked ? ep->stray_to : NULL);
	else if (stray->count != 0)
		say_sent(stray);
	urn_am_leave(ep);
	return stray->count != 0 ? 0 : ENOENT;
}
