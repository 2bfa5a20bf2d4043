/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events to programs: a completion queue that was armed, asynchronous events.
 * The only place of the loop that makes system calls, and only when somebody
 * sleeps on the other side.
 */
#include "control/client.h"
#include "engine/engine.h"

#include <errno.h>
#include <unistd.h>

/* Write one record to a pipe that nobody may block on. */
static bool
tell(struct urn_tp *tp, int fd, const struct urn_abi_event *ev)
{
	ssize_t n;

	do {
		n = write(fd, ev, sizeof(*ev));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*ev))
		return true;
	URN_COUNT(tp, EVENT_LOST);
	return false;
}

static void
look(struct urn_tp *tp, struct urn_cq *cq)
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
	if (tell(tp, cq->channel_fd, &ev))
		cq->events++;
	else
		atomic_store(&cq->hdr->arm, arm); /* the next completion tries again */
}

void
urn_shard_notify(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;
	struct urn_cq *cq = tp->touched, *next;

	if (cq) {
		/* The phases are visible before the arm words are read: the program
		 * arms, then looks at the phases. */
		atomic_thread_fence(memory_order_seq_cst);
		tp->touched = NULL;
		for (; cq; cq = next) {
			next = cq->next;
			cq->touched = false;
			look(tp, cq);
		}
	}
	for (unsigned int i = 0; i < tp->event_n; i++) {
		int fd = urn_client_async_fd(tp->event[i].client);

		if (fd >= 0)
			tell(tp, fd, &tp->event[i].ev);
	}
	tp->event_n = 0;
}
