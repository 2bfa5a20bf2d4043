/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include "common/clock.h"
#include "common/text.h"

#include <poll.h>

#define LOOK_EVERY_NS 1000000u
/* Wait for the reason from a peer that broke the connection, ms. */
#define REASON_MS 500

static int
look(struct cp_ends *e, struct urn_err *err)
{
	int rc;

	if (e->heard)
		return 0;
	rc = cp_oob_look(e->oob, e->due, &e->body, err);
	if (rc > 0)
		e->heard = true;
	return rc < 0 ? -1 : 0;
}

int
cp_ends_round(struct cp_ends *e, struct urn_err *err)
{
	uint64_t now = urn_clock_ns();

	if (urn_stop_requested()) {
		urn_err_set(err, "interrupted.");
		return -1;
	}
	if (now - e->looked_ns >= LOOK_EVERY_NS) {
		e->looked_ns = now;
		if (look(e, err) != 0)
			return -1;
	}
	return (int)cp_rail_turn(e->rail);
}

int
cp_ends_event(struct cp_ends *e, struct cp_event *ev, struct urn_err *err)
{
	struct pollfd pfd = {.fd = e->oob->fd, .events = POLLIN};
	struct urn_err reason;
	int rc = cp_rail_poll(e->rail, ev, err);

	if (rc >= 0)
		return rc;
	/* A queue pair mostly fails because the peer ended: wait for the peer's reason. */
	if (poll(&pfd, 1, REASON_MS) > 0 && look(e, &reason) != 0)
		*err = reason;
	return -1;
}
