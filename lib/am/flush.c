/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for the end of operations. A flush counts the completions that are under way when it
 * begins, and each of these that ends counts down; those that functions of the program issue
 * meanwhile do not prolong it.
 */
#include "am/lock.h"

#include "abi/clock.h"
#include "msg/pause.h"

#include <stdlib.h>
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

/* Put a flush into the list. returns: 0, or EPERM with its text */
static int
urn_am_flush_begin(struct urn_am_endpoint *ep, struct urn_am_flush *f)
{
	int err = urn_am_enter(ep);
	uint32_t i;

	if (err != 0)
		return err;
	if (ep->inside != URN_AM_OUTSIDE) {
		urn_am_leave(ep);
		return urn_fail(EPERM, "operations may not be flushed inside a function that the "
				       "library called");
	}
	f->serial = ep->issued;
	for (i = 0; i < ep->attr.operations; i++) {
		const struct urn_am_completion *c = &ep->completion[i];

		if (c->left != 0 && urn_am_concerns(f->to, c->memory, c->node))
			f->left++;
	}
	f->next = ep->flushes;
	ep->flushes = f;
	urn_am_leave(ep);
	return 0;
}

/* returns: number of completions that a flush waits for */
static uint32_t
urn_am_flush_left(const struct urn_am_endpoint *ep, const struct urn_am_flush *f)
{
	uint32_t left;

	if (urn_am_enter(ep) != 0)
		return 0;
	left = f->left;
	urn_am_leave(ep);
	return left;
}

/*
 * Take a flush from the list. *code: of the first error, or 0. *left: operations that are under
 * way. A child of fork() may not touch the list: it has only a copy of the flush. returns: 0, or
 * EPERM
 */
static int
urn_am_flush_end(struct urn_am_endpoint *ep, struct urn_am_flush *f, uint8_t *code, uint32_t *left)
{
	struct urn_am_flush **at = &ep->flushes;
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	*code = f->code;
	if (ep->untold.code != 0 && urn_am_concerns(f->to, ep->untold.memory, ep->untold.node)) {
		*code = ep->untold.code;
		ep->untold.code = 0;
	}
	*left = f->left;
	urn_am_leave(ep);
	return 0;
}

int
urn_rma_flush_to(struct urn_am_endpoint *ep, const struct urn_am_address *to, int timeout_ms,
		 uint8_t *code)
{
	uint64_t end = timeout_ms < 0 ? UINT64_MAX : urn_clock_ms() + (uint64_t)timeout_ms;
	struct urn_am_flush *f = calloc(1, sizeof(*f));
	struct urn_msg_pause pause = {0};
	bool late = false;
	uint8_t first = 0;
	uint32_t left = 0;
	int err;

	if (f == NULL)
		return urn_fail(ENOMEM, "no memory for a flush");
	f->to = to;
	err = urn_am_flush_begin(ep, f);
	if (err != 0) {
		free(f);
		return err;
	}
	while (urn_am_flush_left(ep, f) != 0 && !late) {
		if (urn_am_progress(ep) == 0)
			urn_msg_pause(&pause);
		late = urn_clock_ms() >= end;
	}
	err = urn_am_flush_end(ep, f, &first, &left);
	free(f);
	if (err != 0)
		return err;
	if (code != NULL)
		*code = first;
	if (left != 0)
		return urn_fail(ETIMEDOUT, "%u operations are under way after %d ms", left,
				timeout_ms);
	return first != 0 ? EREMOTEIO : 0;
}

int
urn_rma_flush(struct urn_am_endpoint *ep, int timeout_ms, uint8_t *code)
{
	return urn_rma_flush_to(ep, NULL, timeout_ms, code);
}
