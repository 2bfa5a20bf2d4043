/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on remote memory: commands and events (AM-2 to AM-4). A call issues one or more
 * commands, all or none; they have one completion, which ends with the last of them.
 */
#include "am/lock.h"

#include <string.h>

/* ---- issue */

int
urn_rma_may(const struct urn_am_endpoint *ep, uint32_t flags)
{
	if (ep->inside >= URN_AM_IN_REPLY)
		return urn_fail(EPERM, "remote memory may not be accessed inside a handler");
	if (flags & ~(uint32_t)(URN_RMA_FENCE | URN_RMA_EVENT))
		return urn_fail(EINVAL, "flags 0x%x of an operation are unknown", flags);
	if (flags & URN_RMA_EVENT && ep->queue == NULL)
		return urn_fail(EINVAL, "the endpoint is in no queue of events");
	if (urn_am_gone(ep))
		return urn_fail(EIO, "the dataplane is gone");
	return 0;
}

URN_FAST int
urn_rma_check(uint64_t remote, uint32_t len, uint8_t way)
{
	if (len == 0 || len > URN_AM_LEN_MAX || way >= URN_AM_WAYS)
		return urn_fail(EINVAL, "an operation moves 1 to %d bytes, by a way that is known",
				URN_AM_LEN_MAX);
	if (remote > UINT64_MAX - (len - 1))
		return urn_fail(EINVAL,
				"the range of %u bytes at 0x%llx wraps around the address space",
				len, (unsigned long long)remote);
	return 0;
}

URN_FAST int
urn_rma_begin(struct urn_am_endpoint *ep, uint32_t n, const struct urn_am_wish *w,
	      struct urn_am_batch *b)
{
	bool event = w->flags & URN_RMA_EVENT;
	struct urn_am_completion *c;

	/* Completions are never more than commands: there is a free one. */
	if (n > ep->attr.operations - ep->commands)
		return EAGAIN;
	if (event && !urn_am_queue_reserve(ep->queue))
		return EAGAIN;
	b->ep = ep;
	b->completion = ep->completion_free;
	c = &ep->completion[b->completion];
	ep->completion_free = c->next;
	ep->completions++;
	*c = (struct urn_am_completion){.done = w->done,
					.arg = w->arg,
					.counter = w->counter,
					.serial = ++ep->issued,
					.memory = b->to->memory,
					.left = n,
					.event = event};
	ep->evented += event;
	memcpy(c->node, b->to->node, sizeof(c->node));
	b->commands = atomic_load_explicit(&ep->regs->client.commands, memory_order_relaxed);
	b->flags = w->flags & URN_RMA_FENCE ? URN_AM_FENCE : 0;
	return 0;
}

URN_FAST struct urn_abi_am_cmd *
urn_rma_add(struct urn_am_batch *b, const struct urn_abi_am_operand *word, uint32_t len,
	    uint64_t *old)
{
	struct urn_am_endpoint *ep = b->ep;
	/* The slot is free: as many commands are under way at most as the ring has slots. */
	uint32_t slot = b->commands++ & (ep->attr.operations - 1), id = ep->command_free;
	struct urn_abi_am_cmd *c = &urn_am_cmds(ep->regs)[slot];
	struct urn_am_command *m = &ep->command[id];

	ep->command_free = m->next;
	ep->commands++;
	*m = (struct urn_am_command){.old = old,
				     .len = word != NULL ? len : 0,
				     .completion = b->completion,
				     .used = true};
	c->every = 0;
	c->flags = b->flags;
	c->len = len;
	c->qid = b->to->memory;
	memcpy(c->node, b->to->node, sizeof(c->node));
	c->key = b->key;
	c->id = id;
	b->flags = 0; /* a fence is before the first */
	if (word != NULL)
		urn_am_operands(ep->regs, ep->attr.operations)[slot] = *word;
	return c;
}

void
urn_rma_go(const struct urn_am_batch *b)
{
	/* Release: the engine that sees the new number sees the commands. */
	atomic_store_explicit(&b->ep->regs->client.commands, b->commands, memory_order_release);
	urn_dev_ring(&b->ep->dev->dev, b->ep->engine, b->ep->db);
}

static int
urn_rma_do_issue(struct urn_am_endpoint *ep, const struct urn_rma *op, uint8_t kind)
{
	struct urn_am_wish w = {op->done, op->arg, op->counter, op->flags};
	struct urn_am_batch b = {.to = op->to, .key = op->key};
	struct urn_abi_am_cmd *c;
	int err = urn_rma_may(ep, op->flags);

	if (err == 0)
		err = urn_rma_check(op->remote, op->len, op->way);
	if (err == 0)
		err = urn_rma_begin(ep, 1, &w, &b);
	if (err != 0)
		return err;
	c = urn_rma_add(&b, NULL, op->len, NULL);
	c->op = kind;
	c->way = op->way;
	c->every = op->every;
	c->remote = op->remote;
	c->local = (uintptr_t)op->local;
	c->lkey = op->memory->lkey;
	urn_rma_go(&b);
	return 0;
}

static int
urn_rma_issue(struct urn_am_endpoint *ep, const struct urn_rma *op, uint8_t kind)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = urn_rma_do_issue(ep, op, kind);
	urn_am_leave(ep);
	return err;
}

int
urn_rma_write(struct urn_am_endpoint *ep, const struct urn_rma *op)
{
	return urn_rma_issue(ep, op, URN_AM_WRITE);
}

int
urn_rma_read(struct urn_am_endpoint *ep, const struct urn_rma *op)
{
	return urn_rma_issue(ep, op, URN_AM_READ);
}

uint32_t
urn_rma_pending(const struct urn_am_endpoint *ep)
{
	uint32_t n;

	if (urn_am_enter(ep) != 0)
		return 0;
	n = ep->completions;
	urn_am_leave(ep);
	return n;
}

/* ---- completion */

/* All commands of a completion have ended. returns: 1: a function was called; 0 */
static unsigned int
urn_am_complete(struct urn_am_endpoint *ep, uint32_t i)
{
	struct urn_am_completion *c = &ep->completion[i];
	/* The function may issue operations: the completion is free by then. */
	urn_rma_done_fn *done = c->done;
	uint64_t bytes = c->bytes;
	void *arg = c->arg;
	uint8_t code = c->code;

	urn_am_flushed(ep, c);
	if (c->event) {
		struct urn_am_event e = {.ep = ep, .arg = arg, .bytes = bytes, .code = code};

		ep->evented--;
		urn_am_queue_put(ep->queue, &e);
	}
	if (code == URN_AM_DONE && c->counter != NULL)
		++*c->counter;
	c->next = ep->completion_free;
	ep->completion_free = i;
	ep->completions--;
	if (done == NULL)
		return 0;
	ep->inside = URN_AM_IN_CALLBACK;
	done(ep, code, bytes, arg);
	urn_am_returned(ep);
	ep->inside = URN_AM_OUTSIDE;
	return 1;
}

/* A command ended. bytes: its event's. returns: 1: a function was called; 0 */
static unsigned int
urn_am_end(struct urn_am_endpoint *ep, uint32_t id, uint8_t code, uint64_t bytes)
{
	struct urn_am_command *m = id < ep->attr.operations ? &ep->command[id] : NULL;
	struct urn_am_completion *c;

	if (m == NULL || !m->used)
		return 0;
	c = &ep->completion[m->completion];
	m->used = false;
	m->next = ep->command_free;
	ep->command_free = id;
	ep->commands--;
	if (code == URN_AM_DONE && m->old != NULL)
		*m->old = bytes;
	if (m->len != 0) /* an atomic operation's event has the value in their place */
		bytes = code == URN_AM_DONE ? m->len : 0;
	c->bytes += bytes;
	c->code = c->code ? c->code : code;
	return --c->left == 0 ? urn_am_complete(ep, m->completion) : 0;
}

/* The dataplane is gone: nobody will tell how the operations ended. returns: number of functions
 * called */
static unsigned int
urn_am_end_all(struct urn_am_endpoint *ep)
{
	unsigned int calls = 0;
	uint32_t i;

	for (i = 0; i < ep->attr.operations && ep->commands != 0; i++)
		calls += urn_am_end(ep, i, URN_AM_UNREACHABLE | URN_AM_MAY_BE_THERE, 0);
	return calls;
}

URN_FAST unsigned int
urn_am_take_events(struct urn_am_endpoint *ep)
{
	uint32_t read = atomic_load_explicit(&ep->regs->client.events, memory_order_relaxed),
		 /* The events were written before the number: acquire. */
		n = atomic_load_explicit(&ep->regs->dp.events, memory_order_acquire) - read,
		 entries = ep->attr.operations, i;
	unsigned int calls = 0;

	if (n > URN_AM_BATCH) /* also a number of the dataplane that makes no sense */
		n = URN_AM_BATCH;
	for (i = 0; i < n; i++) {
		struct urn_abi_am_event e = urn_am_events(ep->regs, entries)[read & (entries - 1)];

		/* Release: the engine writes the slot anew only after our read. */
		atomic_store_explicit(&ep->regs->client.events, ++read, memory_order_release);
		calls += urn_am_end(ep, e.id, e.code, e.bytes);
	}
	/* Commands that waited for room for their events. */
	if (n != 0 &&
	    atomic_load_explicit(&ep->regs->dp.commands, memory_order_relaxed) !=
		    atomic_load_explicit(&ep->regs->client.commands, memory_order_relaxed))
		urn_dev_ring(&ep->dev->dev, ep->engine, ep->db);
	if (n == 0 && ep->commands != 0 && urn_am_gone(ep))
		calls += urn_am_end_all(ep);
	return calls;
}
