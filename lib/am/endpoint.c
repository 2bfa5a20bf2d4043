/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: making and ending. */
#include "am/lock.h"

#include "abi/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { URN_AM_PAYLOAD_MAX = 1 << 20, URN_AM_QUEUE_MAX = 4096 };
_Static_assert(URN_AM_PAYLOAD_MAX + 96 <= URN_MSG_MAX, "room for the largest payload");
_Static_assert(sizeof(struct urn_am_head) + URN_AM_ARGS * sizeof(uint64_t) <= 96,
	       "room for a header");

/* returns: the least power of two that is not below n, for 1 <= n <= 2^31 */
static uint32_t
urn_am_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* Replace zeros of the wishes, and check the rest. returns: 0, or EINVAL with its text */
static int
urn_am_wishes(struct urn_am_attr *a)
{
	a->payload = a->payload ? a->payload : 4096;
	a->queue = a->queue ? a->queue : 64;
	a->requests = a->requests ? a->requests : 64;
	a->operations = a->operations ? a->operations : 128;
	a->ranges = a->ranges ? a->ranges : 64;
	a->answer_ms = a->answer_ms ? a->answer_ms : 10000;
	if (a->payload > URN_AM_PAYLOAD_MAX)
		return urn_fail(EINVAL, "a payload has at most %d bytes", URN_AM_PAYLOAD_MAX);
	if (a->queue > URN_AM_QUEUE_MAX || a->requests > URN_AM_REQUESTS_MAX)
		return urn_fail(
			EINVAL,
			"at most %d requests wait in a queue, and at most %d have no answer",
			URN_AM_QUEUE_MAX, URN_AM_REQUESTS_MAX);
	if (a->operations > URN_AM_ENTRIES_MAX || a->ranges > URN_AM_RANGES_MAX)
		return urn_fail(EINVAL,
				"an endpoint has at most %d operations under way, and %d ranges",
				URN_AM_ENTRIES_MAX, URN_AM_RANGES_MAX);
	a->operations = urn_am_pow2(a->operations);
	return 0;
}

/* Make the outboxes. returns: 0, or an errno value */
static int
urn_am_outboxes(struct urn_am_endpoint *ep)
{
	uint32_t size = ep->attr.payload + 96;
	struct urn_am_outbox_attr a = {
		.dev = ep->dev,
		.lanes = URN_AM_OUT_LANES,
		.most = URN_AM_OUT_LANES,
		.size = size < URN_AM_SHARED_BYTES ? URN_AM_SHARED_BYTES : size,
		.vector = ep->attr.vector,
		.parked = ep->attr.requests,
		.seed = ep->serial * UINT64_C(0x9e3779b97f4a7c15),
	};
	int err = urn_am_outbox_init(&ep->out, &a);

	a.lanes = URN_AM_BACK_LANES;
	a.most = URN_AM_BACK_MOST;
	a.parked = URN_AM_BACK_PARKED;
	a.nodes = true;
	return err != 0 ? err : urn_am_outbox_init(&ep->back, &a);
}

/* Make the sets: two that receive, and those of the outboxes. returns: 0, or an errno value */
static int
urn_am_sets(struct urn_am_endpoint *ep)
{
	uint32_t size = ep->attr.payload + 96;
	/* The descriptor of one set shows the death of a dataplane (msg/dev.h). */
	struct urn_msg_attr recv = {.recv_size = size,
				    .entries = ep->attr.queue,
				    .vector = ep->attr.vector,
				    .wakes = 1};
	int err = urn_msg_set_init(&ep->requests, ep->dev, &recv);

	recv.entries = ep->attr.requests;
	recv.wakes = ep->attr.wakes;
	/* Answers share messages, whose writer does not know this endpoint's payload. */
	if (recv.recv_size < URN_AM_SHARED_BYTES)
		recv.recv_size = URN_AM_SHARED_BYTES;
	if (err == 0)
		err = urn_msg_set_init(&ep->replies, ep->dev, &recv);
	return err != 0 ? err : urn_am_outboxes(ep);
}

/* Make the dataplane's endpoint. returns: 0, or an errno value */
static int
urn_am_rings(struct urn_am_endpoint *ep)
{
	struct urn_abi_req pd = {.op = URN_CTL_ALLOC_PD}, req = {.op = URN_CTL_AM_OPEN};
	struct urn_abi_rep rep;
	int err = urn_msg_dev_call(ep->dev, &pd, &rep);

	if (err != 0)
		return err;
	ep->pd = rep.handle;
	req.am_open.comp_vector = ep->attr.vector;
	req.am_open.entries = ep->attr.operations;
	req.am_open.ranges = ep->attr.ranges;
	req.am_open.pd = ep->pd;
	if (ep->attr.wakes)
		err = urn_am_channel_open(ep);
	if (err != 0)
		return err;
	req.am_open.channel_fd = ep->attr.wakes ? ep->channel : -1;
	req.am_open.cookie = (uintptr_t)ep;
	req.am_open.pipelined_from = ep->attr.pipelined_from;
	req.am_open.tagged_from = ep->attr.tagged_from;
	err = urn_msg_dev_call(ep->dev, &req, &rep);
	if (err != 0)
		return err;
	ep->handle = rep.handle;
	ep->db = rep.am.db;
	ep->engine = rep.am.engine;
	ep->qid = rep.am.qid;
	ep->regs = urn_dev_at(&ep->dev->dev, rep.am.off);
	return 0;
}

/* Make the tables of requests and operations. returns: 0, or ENOMEM with its text */
static int
urn_am_tables(struct urn_am_endpoint *ep)
{
	uint32_t i;

	ep->asked = calloc(ep->attr.requests, sizeof(*ep->asked));
	ep->command = calloc(ep->attr.operations, sizeof(*ep->command));
	ep->completion = calloc(ep->attr.operations, sizeof(*ep->completion));
	ep->taken = calloc(URN_AM_QUEUE_MAX / 64, sizeof(*ep->taken));
	if (ep->taken == NULL || ep->asked == NULL || ep->command == NULL || ep->completion == NULL)
		return urn_fail(ENOMEM, "no memory for an endpoint");
	for (i = 0; i < ep->attr.requests; i++)
		ep->asked[i].next = i + 1;
	for (i = 0; i < ep->attr.operations; i++)
		ep->command[i].next = ep->completion[i].next = i + 1;
	/* Numbers of an endpoint's life before are not those of this life. */
	if (urn_am_draw(ep) != 0)
		return urn_fail(errno, "the system gives no random numbers");
	ep->serial = ep->random[ep->drawn++];
	return 0;
}

static void
urn_am_fini_set(struct urn_register_set *set)
{
	if (set->dev != NULL)
		urn_msg_set_fini(set);
}

static void
urn_am_free(struct urn_am_endpoint *ep)
{
	struct urn_abi_req req = {.op = URN_CTL_AM_CLOSE, .handle = ep->handle};
	struct urn_abi_req pd = {.op = URN_CTL_DEALLOC_PD, .handle = ep->pd};
	struct urn_abi_rep rep;

	urn_am_queue_forget(ep);
	if (ep->regs != NULL)
		(void)urn_msg_dev_call(ep->dev, &req, &rep);
	urn_am_channel_close(ep);
	urn_am_move_back_all(ep);
	if (ep->pd != 0)
		(void)urn_msg_dev_call(ep->dev, &pd, &rep);
	urn_am_outbox_fini(&ep->out);
	urn_am_outbox_fini(&ep->back);
	urn_am_fini_set(&ep->requests);
	urn_am_fini_set(&ep->replies);
	free(ep->asked);
	free(ep->taken);
	free(ep->command);
	free(ep->completion);
	free(ep);
}

struct urn_am_endpoint *
urn_am_endpoint_create(struct urn_msg_dev *dev, const struct urn_am_attr *attr)
{
	struct urn_am_endpoint *ep;
	int err;

	if (urn_dev_need(&dev->dev, URN_ABI_FEATURE_AM) != 0) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	ep = calloc(1, sizeof(*ep));
	if (ep == NULL) {
		urn_fail(ENOMEM, "no memory for an endpoint");
		return NULL;
	}
	ep->dev = dev;
	ep->forks = urn_am_forks();
	ep->fd = ep->write_fd = -1;
	if (attr != NULL)
		ep->attr = *attr;
	err = urn_am_wishes(&ep->attr);
	if (err == 0)
		err = urn_am_tables(ep);
	if (err == 0)
		err = urn_am_sets(ep);
	if (err == 0)
		err = urn_am_rings(ep);
	if (err == 0)
		return ep;
	urn_am_free(ep);
	errno = err;
	return NULL;
}

void
urn_am_endpoint_destroy(struct urn_am_endpoint *ep)
{
	if (ep == NULL || urn_am_is_parents(ep))
		return;
	if (urn_am_is_inside(ep)) {
		urn_fail(EPERM, "an endpoint may not be destroyed inside a handler of its own");
		return;
	}
	/* The call would wait for the thread of that endpoint. */
	if (urn_am_is_elsewhere(ep))
		return;
	if (ep->thread != NULL && urn_am_thread_stop(ep) == EBUSY)
		return;
	urn_am_free(ep);
}

int
urn_am_address(const struct urn_am_endpoint *ep, uint32_t index, struct urn_am_address *address)
{
	memset(address, 0, sizeof(*address));
	address->requests = ep->requests.qid;
	address->memory = ep->qid;
	return urn_msg_dev_gid(ep->dev, index, address->node);
}

int
urn_am_error(const struct urn_am_endpoint *ep)
{
	return urn_am_gone(ep) ? urn_fail(EIO, "the dataplane is gone: destroy the endpoint, close "
					       "the device, and make both anew")
			       : 0;
}

void
urn_am_get_stats(const struct urn_am_endpoint *ep, struct urn_am_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	if (urn_am_enter(ep) != 0)
		return;
	*stats = ep->stats;
	urn_am_leave(ep);
}

int
urn_am_handle(struct urn_am_endpoint *ep, uint32_t number, urn_am_handler_fn *fn, void *arg)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	if (number < URN_AM_HANDLERS)
		ep->handler[number] = (struct urn_am_handler){.fn = fn, .arg = arg, .slow = true};
	urn_am_leave(ep);
	return number < URN_AM_HANDLERS ? 0 : EINVAL;
}

void
urn_am_on_failure(struct urn_am_endpoint *ep, urn_am_failure_fn *fn, void *arg)
{
	if (urn_am_enter(ep) != 0)
		return;
	ep->failure = fn;
	ep->failure_arg = arg;
	urn_am_leave(ep);
}
