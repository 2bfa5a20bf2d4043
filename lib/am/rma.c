/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on remote memory: commands and events (AM-2 to AM-4). */
#include "am/endpoint.h"

#include <string.h>

/* Write a command into its slot. */
static void
urn_rma_command(struct urn_abi_am_cmd *c, const struct urn_rma *op, uint8_t kind, uint32_t id)
{
	*c = (struct urn_abi_am_cmd){
		.op = kind,
		.way = op->way,
		.every = op->every,
		.len = op->len,
		.qid = op->to->memory,
		.remote = op->remote,
		.key = op->key,
		.local = (uintptr_t)op->local,
		.lkey = op->memory->lkey,
		.id = id,
	};
	memcpy(c->node, op->to->node, sizeof(c->node));
}

static int
urn_rma_issue(struct urn_am_endpoint *ep, const struct urn_rma *op, uint8_t kind)
{
	uint32_t id = ep->operation_free, entries = ep->attr.operations, n;
	struct urn_am_operation *o;

	if (ep->inside >= URN_AM_IN_REPLY)
		return urn_fail(EPERM, "remote memory may not be accessed inside a handler");
	if (op->len == 0 || op->len > URN_AM_LEN_MAX || op->way >= URN_AM_WAYS)
		return urn_fail(EINVAL, "an operation moves 1 to %d bytes, by a way that is known",
				URN_AM_LEN_MAX);
	if (urn_dev_gone(&ep->dev->dev) != URN_DEV_THERE)
		return urn_fail(EIO, "the dataplane is gone");
	if (id == entries)
		return EAGAIN;
	/* A command's slot is free: as many are under way at most as the ring has slots. */
	n = atomic_load_explicit(&ep->regs->client.commands, memory_order_relaxed);
	o = &ep->operation[id];
	ep->operation_free = o->next;
	ep->operations++;
	o->done = op->done;
	o->arg = op->arg;
	o->counter = op->counter;
	o->used = true;
	urn_rma_command(urn_am_cmds(ep->regs) + (n & (entries - 1)), op, kind, id);
	/* Release: the engine that sees the new number sees the command. */
	atomic_store_explicit(&ep->regs->client.commands, n + 1, memory_order_release);
	urn_dev_ring(&ep->dev->dev, ep->engine, ep->db);
	return 0;
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
	return ep->operations;
}

/* An operation ended. returns: 1: a function was called; 0 */
static unsigned int
urn_am_end(struct urn_am_endpoint *ep, uint32_t id, uint8_t code, uint64_t bytes)
{
	struct urn_am_operation *o = id < ep->attr.operations ? &ep->operation[id] : NULL;
	struct urn_am_operation was;

	if (o == NULL || !o->used)
		return 0;
	was = *o;
	o->used = false;
	o->next = ep->operation_free;
	ep->operation_free = id;
	ep->operations--;
	if (code == URN_AM_DONE && was.counter != NULL)
		++*was.counter;
	if (was.done == NULL)
		return 0;
	ep->inside = URN_AM_IN_CALLBACK;
	was.done(ep, code, bytes, was.arg);
	ep->inside = URN_AM_OUTSIDE;
	return 1;
}

/* The dataplane is gone: nobody will tell how the operations ended. returns: number of functions
 * called */
static unsigned int
urn_am_end_all(struct urn_am_endpoint *ep)
{
	unsigned int calls = 0;
	uint32_t i;

	for (i = 0; i < ep->attr.operations && ep->operations != 0; i++)
		calls += urn_am_end(ep, i, URN_AM_UNREACHABLE | URN_AM_MAY_BE_THERE, 0);
	return calls;
}

unsigned int
urn_am_take_events(struct urn_am_endpoint *ep)
{
	uint32_t read = atomic_load_explicit(&ep->regs->client.events, memory_order_relaxed),
		 entries, i;
	unsigned int calls = 0;

	entries = ep->attr.operations;
	for (i = 0; i < URN_AM_BATCH; i++) {
		struct urn_abi_am_event e;

		/* The event was written before the number: acquire. */
		if (atomic_load_explicit(&ep->regs->dp.events, memory_order_acquire) == read)
			break;
		e = urn_am_events(ep->regs, entries)[read & (entries - 1)];
		/* Release: the engine writes the slot anew only after our read. */
		atomic_store_explicit(&ep->regs->client.events, ++read, memory_order_release);
		calls += urn_am_end(ep, e.id, e.code, e.bytes);
	}
	/* Commands that waited for room for their events. */
	if (i != 0 &&
	    atomic_load_explicit(&ep->regs->dp.commands, memory_order_relaxed) !=
		    atomic_load_explicit(&ep->regs->client.commands, memory_order_relaxed))
		urn_dev_ring(&ep->dev->dev, ep->engine, ep->db);
	if (i == 0 && ep->operations != 0 && urn_dev_gone(&ep->dev->dev) != URN_DEV_THERE)
		calls += urn_am_end_all(ep);
	return calls;
}
