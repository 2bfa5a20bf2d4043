/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: the ring, and the descriptor for sleepers (DB-4, DB-8). */
#include "msg/set.h"

#include "attach/pipe.h"

#include <errno.h>
#include <string.h>

int
urn_msg_set_poll(const struct urn_register_set *set, struct urn_msg *m)
{
	if (set->entries == 0 || urn_msg_set_waiting(set) == 0)
		return 0;
	urn_msg_set_entry(set, urn_msg_set_head(set), m);
	return 1;
}

void
urn_msg_set_release(struct urn_register_set *set)
{
	urn_msg_set_release_to(set, urn_msg_set_head(set) + 1);
}

int
urn_msg_set_arm(struct urn_register_set *set)
{
	/* The engine stores the tail and swaps `arm` out; this side stores `arm` and looks at the
	 * tail: one sees the other. */
	atomic_store_explicit(&set->regs->conf.arm, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	return urn_msg_set_waiting(set) != 0;
}

/*
 * A dataplane in another process counts an event and hands it over after that. An event that is
 * still on its way stays for the next call, and may wake a poller for nothing: callers of a socket
 * that does not block must not wait here.
 */
int
urn_msg_set_drain(struct urn_register_set *set)
{
	_Atomic uint32_t *pending = &set->regs->rstat.pending;
	struct urn_abi_event ev;
	int err = 0;

	if (set->fd < 0)
		return 0;
	while (err == 0) {
		err = urn_pipe_read(set->fd, &ev);
		set->drained += err == 0;
		if (err == 0 && set->drained == atomic_load_explicit(pending, memory_order_acquire))
			return 0;
	}
	if (err == EAGAIN || err == EINTR)
		return 0;
	urn_msg_dev_gone(set->dev);
	return EIO;
}

/*
 * Read events but the last one, which tells pollers that messages wait. An embedded engine writes
 * an event and then counts it: `drained` can be ahead of the count. A dataplane in another process
 * counts an event and hands it over after that: the count can be ahead, and the read finds nothing.
 */
static void
urn_msg_set_thin(struct urn_register_set *set)
{
	struct urn_abi_event ev;

	while ((int32_t)(atomic_load_explicit(&set->regs->rstat.pending, memory_order_acquire) -
			 set->drained) > 1 &&
	       urn_pipe_read(set->fd, &ev) == 0)
		set->drained++;
}

bool
urn_msg_set_show(struct urn_register_set *set)
{
	struct urn_abi_msg_rstat *rstat = &set->regs->rstat;

	if (urn_msg_set_waiting(set) == 0) {
		if (atomic_load_explicit(&rstat->pending, memory_order_acquire) != set->drained)
			(void)urn_msg_set_drain(set);
		if (!urn_msg_set_arm(set))
			return false;
	} else {
		urn_msg_set_thin(set);
	}
	/* An embedded engine counts an event after it has written it: `drained` can be ahead, so
	 * the difference is signed. */
	if ((int32_t)(atomic_load_explicit(&rstat->pending, memory_order_acquire) - set->drained) <=
	    0) {
		/* The messages came while the set was not armed: the doorbell makes the engine look
		 * at `arm`. */
		atomic_store_explicit(&set->regs->conf.arm, 1, memory_order_seq_cst);
		urn_dev_ring(&set->dev->dev, set->engine, set->db);
	}
	return true;
}
