/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of ARM INTR. Endpoints whose operations ended are on a list until the turn's end; then the
 * arm words are read, behind one fence for all of them. The client arms and then looks at the
 * number of events: one of the two sides sees the other's store. An event that finds no room arms
 * the endpoint again and is tried later.
 */
#include "am/priv.h"
#include "msg/msg.h"

#define RETRY_NS 1000000ull /* ns between looks at a pipe that was full */

enum { RETRY_LOOKS = 64 }; /* late endpoints that a look tries */

static struct urn_am_eps *
list_of(struct urn_am *am, uint8_t told)
{
	return told == URN_AM_TOUCHED ? &am->touched : &am->untold;
}

/* Put an endpoint that is in no list behind the others of one. */
static void
append(struct urn_am *am, struct urn_am_ep *ep, uint8_t told)
{
	ep->told = told;
	TAILQ_INSERT_TAIL(list_of(am, told), ep, tell);
	am->untold_n++;
}

void
urn_am_touch(struct urn_am *am, struct urn_am_ep *ep)
{
	if (ep->told == URN_AM_TOLD_NO)
		append(am, ep, URN_AM_TOUCHED);
}

void
urn_am_untouch(struct urn_am *am, struct urn_am_ep *ep)
{
	if (ep->told == URN_AM_TOLD_NO)
		return;
	TAILQ_REMOVE(list_of(am, ep->told), ep, tell);
	ep->told = URN_AM_TOLD_NO;
	am->untold_n--;
}

const uint32_t *
urn_am_untold_at(const struct urn_am *am)
{
	return &am->untold_n;
}

/* Fire if the endpoint is armed. returns: true when there was no room for the event */
static bool
fire(const struct urn_am *am, struct urn_am_ep *ep, urn_am_tell_fn *tell, void *ctx)
{
	_Atomic uint32_t *arm = &ep->regs->client.arm, *n = &ep->regs->dp.pending;
	struct urn_abi_event ev = {
		.type = URN_EVENT_AM,
		.handle = URN_MSG_HANDLE(am->engine, ep->slot),
		.cookie = ep->cookie,
	};
	uint32_t none = 0;

	if (!atomic_load_explicit(arm, memory_order_relaxed) || !atomic_exchange(arm, 0))
		return false;
	if (!tell(ctx, ep->channel_fd, &ev)) {
		/* The client may have armed anew: then the client's value stands. */
		atomic_compare_exchange_strong(arm, &none, 1);
		return true;
	}
	/* Only this thread counts; a client that writes here sees its own number. */
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_release);
	return false;
}

/* Look at the first n endpoints of a list, `last` the last of them; those whose event is late go
 * behind the other late ones. */
static void
look(struct urn_am *am, struct urn_am_eps *l, const struct urn_am_ep *last, uint32_t n,
     urn_am_tell_fn *tell, void *ctx)
{
	struct urn_am_ep *ep;

	for (bool end = false; n && !end && (ep = TAILQ_FIRST(l)); n--) {
		end = ep == last;
		urn_am_untouch(am, ep);
		if (fire(am, ep, tell, ctx))
			append(am, ep, URN_AM_LATE);
	}
}

void
urn_am_tell(struct urn_am *am, uint64_t now, urn_am_tell_fn *tell, void *ctx)
{
	bool late = !TAILQ_EMPTY(&am->untold);

	/* The numbers of events are visible before the arm words are read. */
	atomic_thread_fence(memory_order_seq_cst);
	if (late && now >= am->untold_due) {
		am->untold_due = now + RETRY_NS;
		look(am, &am->untold, TAILQ_LAST(&am->untold, urn_am_eps), RETRY_LOOKS, tell, ctx);
	}
	look(am, &am->touched, NULL, URN_AM_ENDPOINTS_MAX, tell, ctx);
	if (!late && !TAILQ_EMPTY(&am->untold))
		am->untold_due = now + RETRY_NS;
}
