/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_rail.h"

#include <stdlib.h>

struct fake_rail fake;

void
fake_event(const struct cp_event *ev)
{
	if (fake.tail - fake.head == FAKE_EVENTS)
		abort();
	fake.event[fake.tail++ % FAKE_EVENTS] = *ev;
}

void
fake_msg(const struct cp_msg *msg)
{
	struct cp_event ev = {.type = CP_EV_MSG, .msg = *msg};

	fake_event(&ev);
}

unsigned int
cp_rail_turn(struct cp_rail *r)
{
	(void)r;
	fake.turns++;
	if (fake.script != NULL)
		fake.script();
	return 0;
}

void
cp_rail_idle(struct cp_rail *r, unsigned int busy)
{
	(void)r;
	(void)busy;
}

int
cp_rail_poll(struct cp_rail *r, struct cp_event *ev, struct urn_err *err)
{
	(void)r;
	(void)err;
	if (fake.head == fake.tail)
		return 0;
	*ev = fake.event[fake.head++ % FAKE_EVENTS];
	return 1;
}

int
cp_rail_write(struct cp_rail *r, uint64_t seq, uint32_t len, struct urn_err *err)
{
	struct cp_event ev = {.type = CP_EV_WRITTEN, .seq = (uint32_t)seq};

	(void)r;
	(void)err;
	if (seq != fake.n_writes || seq >= FAKE_EVENTS)
		abort();
	fake.write_len[fake.n_writes++] = len;
	fake_event(&ev);
	return 0;
}

int
cp_rail_send(struct cp_rail *r, const struct cp_msg *msg, struct urn_err *err)
{
	(void)r;
	(void)err;
	if (fake.no_buffers)
		return 0;
	if (fake.n_sent == FAKE_EVENTS)
		abort();
	fake.sent[fake.n_sent++] = *msg;
	return 1;
}
