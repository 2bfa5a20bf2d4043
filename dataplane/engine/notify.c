/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events to programs: a completion queue that was armed, asynchronous events.
 * The only place of the loop that makes system calls, and only when somebody
 * sleeps on the other side.
 */
#include "control/client.h"
#include "engine/engine.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_NS 1000000ull /* between looks at a pipe that was full */

/* Write one record to a pipe that nobody may block on. */
static bool
tell(struct urn_tp *tp, int fd, const struct urn_abi_event *ev)
{
	ssize_t n;

	/* Another process has the socket as well: whether this waits is not up to its flags. */
	do {
		n = send(fd, ev, sizeof(*ev), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK) /* this program's own pipe */
			n = write(fd, ev, sizeof(*ev));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*ev))
		return true;
	URN_COUNT(tp, EVENT_LOST);
	return false;
}

/* An event is due and its pipe full: it is late then, not lost. */
static void
look_again(struct urn_shard *s, struct urn_cq *cq, uint32_t arm)
{
	uint32_t none = URN_CQ_ARM_NONE;

	/* The program may have armed it anew: that stands. */
	atomic_compare_exchange_strong(&cq->hdr->arm, &none, arm);
	cq->solicited = true;
	cq->touched = true;
	cq->next = s->untold;
	s->untold = cq;
	s->untold_due = s->tp->now + RETRY_NS;
}

static void
look(struct urn_shard *s, struct urn_cq *cq)
{
	uint32_t arm = atomic_load_explicit(&cq->hdr->arm, memory_order_relaxed);
	struct urn_abi_event ev = {.handle = cq->handle, .cookie = cq->cookie};
	bool fires = arm == URN_CQ_ARM_NEXT || (arm == URN_CQ_ARM_SOLICITED && cq->solicited);

	cq->solicited = false;
	if (!fires)
		return;
	/* Either side may take it, once: see ibv_req_notify_cq() in lib/verbs. */
	arm = atomic_exchange(&cq->hdr->arm, URN_CQ_ARM_NONE);
	if (arm == URN_CQ_ARM_NONE)
		return;
	if (tell(s->tp, cq->channel_fd, &ev))
		cq->events++;
	else
		look_again(s, cq, arm);
}

static void
look_at_list(struct urn_shard *s, struct urn_cq **head)
{
	struct urn_cq *cq = *head, *next;

	/* The phases are visible before the arm words are read: the program
	 * arms, then looks at the phases. */
	atomic_thread_fence(memory_order_seq_cst);
	*head = NULL;
	for (; cq; cq = next) {
		next = cq->next;
		cq->touched = false;
		look(s, cq);
	}
}

void
urn_shard_tell_events(void *ctx)
{
	struct urn_shard *s = ctx;
	struct urn_tp *tp = s->tp;

	for (unsigned int i = 0; i < tp->event_n; i++) {
		int fd = urn_client_async_fd(tp->event[i].client);

		if (fd >= 0)
			tell(tp, fd, &tp->event[i].ev);
	}
	tp->event_n = 0;
}

void
urn_shard_notify(struct urn_shard *s)
{
	if (unlikely(s->untold && s->tp->now >= s->untold_due))
		look_at_list(s, &s->untold);
	if (s->tp->touched)
		look_at_list(s, &s->tp->touched);
	urn_shard_tell_events(s);
}

static void
unlink_cq(struct urn_cq **at, const struct urn_cq *cq)
{
	while (*at && *at != cq)
		at = &(*at)->next;
	if (*at)
		*at = cq->next;
}

void
urn_shard_forget_cq(struct urn_shard *s, struct urn_cq *cq)
{
	unlink_cq(&s->tp->touched, cq);
	unlink_cq(&s->untold, cq);
}
