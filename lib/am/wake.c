/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that wake a sleeper: those of the two queues of messages, and one for the ring of
 * events. A sleeper arms all, looks once more, and sleeps; the dataplane writes to the descriptor
 * of what comes first.
 */
#include "am/endpoint.h"

#include "attach/pipe.h"

#include <errno.h>
#include <sys/epoll.h>

enum { URN_AM_DOZE_LANE_MS = 1, URN_AM_DOZE_MS = 100 };

int
urn_am_channel_open(struct urn_am_endpoint *ep)
{
	return urn_msg_channel_open(ep->dev, &ep->fd, &ep->write_fd, &ep->channel);
}

void
urn_am_channel_close(struct urn_am_endpoint *ep)
{
	if (ep->fd >= 0)
		urn_msg_channel_close(ep->dev, ep->fd, ep->write_fd, ep->channel);
	ep->fd = ep->write_fd = -1;
}

int
urn_am_watch(struct urn_am_endpoint *ep, int epoll, bool on)
{
	const int fds[] = {ep->fd, ep->requests.fd, ep->replies.fd};
	struct epoll_event ev = {.events = EPOLLIN};
	unsigned int i;

	for (i = 0; i < 3; i++) {
		int op = on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

		if (epoll_ctl(epoll, op, fds[i], &ev) != 0 && on)
			return urn_fail(errno, "cannot watch a descriptor of an endpoint");
	}
	return 0;
}

/* True when events of operations are in the ring. */
static bool
urn_am_ended(const struct urn_am_endpoint *ep)
{
	return atomic_load_explicit(&ep->regs->dp.events, memory_order_acquire) !=
	       atomic_load_explicit(&ep->regs->client.events, memory_order_relaxed);
}

bool
urn_am_arm(struct urn_am_endpoint *ep)
{
	bool waits;

	ep->armed = true;
	/* The engine stores the number of events and swaps `arm` out; this side stores `arm` and
	 * looks at the number: one sees the other. */
	atomic_store_explicit(&ep->regs->client.arm, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	waits = urn_msg_set_arm(&ep->requests) != 0;
	waits |= urn_msg_set_arm(&ep->replies) != 0;
	return waits || urn_am_ended(ep);
}

/* Read the channel of the ring, without a wait for an event that was counted and is still on its
 * way. returns: 0; EIO: the dataplane is gone */
static int
urn_am_drain_ring(struct urn_am_endpoint *ep)
{
	_Atomic uint32_t *pending = &ep->regs->dp.pending;
	struct urn_abi_event ev;
	int err = 0;

	atomic_store_explicit(&ep->regs->client.arm, 0, memory_order_seq_cst);
	while (err == 0) {
		err = urn_pipe_read(ep->fd, &ev);
		ep->drained += err == 0;
		if (err == 0 && ep->drained == atomic_load_explicit(pending, memory_order_acquire))
			return 0;
	}
	return err == EAGAIN || err == EINTR ? 0 : EIO;
}

bool
urn_am_drain(struct urn_am_endpoint *ep)
{
	int err;

	if (!ep->armed)
		return true;
	ep->armed = false;
	urn_msg_set_disarm(&ep->requests);
	urn_msg_set_disarm(&ep->replies);
	err = urn_am_drain_ring(ep);
	if (err == 0)
		err = urn_msg_set_drain(&ep->requests);
	if (err == 0)
		err = urn_msg_set_drain(&ep->replies);
	if (err != 0)
		urn_msg_dev_gone(ep->dev);
	return err == 0;
}

int
urn_am_doze(const struct urn_am_endpoint *ep)
{
	/* The answer to a message that was sent wakes nobody, nor does the time of a parked one. */
	if (ep->out.busy + ep->back.busy != 0 || ep->out.parked + ep->back.parked != 0)
		return URN_AM_DOZE_LANE_MS;
	return ep->pending != ep->prepared ? URN_AM_DOZE_MS : -1;
}
