/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending: the doorbell and its answer (DB-2, DB-3). */
#include "msg/set.h"

#include "abi/clock.h"
#include "msg/pause.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

void *
urn_msg_set_buffer(struct urn_register_set *set)
{
	return set->arena;
}

uint8_t
urn_msg_set_status(struct urn_register_set *set)
{
	return urn_msg_set_answer(set,
				  atomic_load_explicit(&set->regs->send.seq, memory_order_relaxed));
}

int
urn_msg_set_send(struct urn_register_set *set, const struct urn_msg_to *to, const void *data,
		 uint32_t len)
{
	if (len > set->send_size || set->send_size == 0)
		return EMSGSIZE;
	if (urn_msg_set_status(set) == URN_MSG_PENDING)
		return EBUSY;
	if (len > 0 && data != set->arena)
		memcpy(set->arena, data, len);
	(void)urn_msg_set_ring(set, to, 0, len);
	return 0;
}

/* A sender that has waited long looks whether the dataplane still lives. */
static void
urn_msg_look_alive(struct urn_register_set *set)
{
	struct pollfd p = {.fd = set->fd};

	if (set->fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR | POLLNVAL))
		urn_msg_dev_gone(set->dev);
}

uint8_t
urn_msg_set_wait(struct urn_register_set *set, int64_t timeout_us)
{
	struct urn_msg_pause pause = {0};
	uint64_t start = timeout_us >= 0 ? urn_clock_ns() : 0;
	uint8_t code;

	while ((code = urn_msg_set_status(set)) == URN_MSG_PENDING) {
		bool sleeps = urn_msg_pause_sleeps(&pause);

		if (timeout_us >= 0 && (sleeps || pause.rounds % 64 == 0) &&
		    urn_clock_ns() - start >= (uint64_t)timeout_us * 1000)
			break;
		if (sleeps)
			urn_msg_look_alive(set);
		urn_msg_pause(&pause);
	}
	return code;
}

int
urn_msg_set_send_wait(struct urn_register_set *set, const struct urn_msg_to *to, const void *data,
		      uint32_t len, int64_t timeout_us, uint8_t *code)
{
	int err = urn_msg_set_send(set, to, data, len);
	uint8_t got;

	if (err != 0)
		return err;
	got = urn_msg_set_wait(set, timeout_us);
	if (got == URN_MSG_PENDING)
		return ETIMEDOUT;
	*code = got;
	return 0;
}
