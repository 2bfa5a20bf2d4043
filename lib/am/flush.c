/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for the end of operations. A flush counts the completions that are under way when it
 * begins, and each of these that ends counts down; those that functions of the program issue
 * meanwhile do not prolong it.
 */
#include "am/endpoint.h"

#include "abi/clock.h"
#include "msg/pause.h"

#include <string.h>

/* True when the target is the one that a flush waits for. */
static bool
urn_am_concerns(const struct urn_am_address *to, uint64_t memory, const uint8_t node[16])
{
	return to == NULL || (to->memory == memory && memcmp(to->node, node, 16) == 0);
}

void
urn_am_flushed(struct urn_am_endpoint *ep, const struct urn_am_completion *c)
{
	struct urn_am_flush *f;

	for (f = ep->flushes; f != NULL; f = f->next) {
		if (c->serial > f->serial || !urn_am_concerns(f->to, c->memory, c->node))
			continue;
		f->left--;
		f->code = f->code ? f->code : c->code;
	}
	if (c->code == URN_AM_DONE || c->done != NULL || c->event || ep->untold.code != 0)
		return;
	ep->untold.code = c->code;
	ep->untold.memory = c->memory;
	memcpy(ep->untold.node, c->node, sizeof(ep->untold.node));
}

static void
urn_am_flush_begin(struct urn_am_endpoint *ep, struct urn_am_flush *f)
{
	uint32_t i;

	f->serial = ep->issued;
	for (i = 0; i < ep->attr.operations; i++) {
		const struct urn_am_completion *c = &ep->completion[i];

		if (c->left != 0 && urn_am_concerns(f->to, c->memory, c->node))
			f->left++;
	}
	f->next = ep->flushes;
	ep->flushes = f;
}

/* Take a flush from the list. returns: the code of the first error, or 0 */
static uint8_t
urn_am_flush_end(struct urn_am_endpoint *ep, const struct urn_am_flush *f)
{
	struct urn_am_flush **at = &ep->flushes;
	uint8_t untold = ep->untold.code;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	if (untold == 0 || !urn_am_concerns(f->to, ep->untold.memory, ep->untold.node))
		return f->code;
	ep->untold.code = 0;
	return untold;
}

int
urn_rma_flush_to(struct urn_am_endpoint *ep, const struct urn_am_address *to, int timeout_ms,
		 uint8_t *code)
{
	uint64_t end = timeout_ms < 0 ? UINT64_MAX : urn_clock_ms() + (uint64_t)timeout_ms;
	struct urn_am_flush f = {.to = to};
	struct urn_msg_pause pause = {0};
	bool late = false;
	uint8_t first;

	if (ep->inside != URN_AM_OUTSIDE)
		return urn_fail(EPERM, "operations may not be flushed inside a function that the "
				       "library called");
	urn_am_flush_begin(ep, &f);
	while (f.left != 0 && !late) {
		if (urn_am_progress(ep) == 0)
			urn_msg_pause(&pause);
		late = urn_clock_ms() >= end;
	}
	first = urn_am_flush_end(ep, &f);
	if (code != NULL)
		*code = first;
	if (f.left != 0)
		return urn_fail(ETIMEDOUT, "%u operations are under way after %d ms", f.left,
				timeout_ms);
	return first != 0 ? EREMOTEIO : 0;
}

int
urn_rma_flush(struct urn_am_endpoint *ep, int timeout_ms, uint8_t *code)
{
	return urn_rma_flush_to(ep, NULL, timeout_ms, code);
}
