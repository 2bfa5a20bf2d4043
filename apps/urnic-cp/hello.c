/* SPDX-License-Identifier: BSD-3-Clause */
#include "hello.h"

#include "common/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Run a turn while waiting: packets such as ARP may come while the peer is still starting. */
static void
turn(void *arg)
{
	cp_rail_turn(arg);
}

/* Wait for the link. returns: 0, or -1 with *err */
static int
wait_link(struct cp_oob *oob, struct cp_rail *r, struct urn_err *err)
{
	static const struct timespec ms = {0, 1000000};
	union cp_body body;

	for (unsigned int i = 0; i < CP_STEP_SECONDS * 1000; i++) {
		if (cp_rail_link(r))
			return 0;
		if (urn_stop_requested()) {
			urn_err_set(err, "interrupted.");
			return -1;
		}
		if (cp_oob_look(oob, CP_SILENCE, &body, err) < 0)
			return -1;
		cp_rail_turn(r);
		nanosleep(&ms, NULL);
	}
	urn_err_set(err, "the link to %s did not come up in %d seconds (socket '%s').", oob->peer,
		    CP_STEP_SECONDS, r->memif);
	return -1;
}

static int
say_offer(struct cp_oob *oob, const struct cp_opts *o, struct urn_err *err)
{
	struct cp_offer offer = {
		.release = URN_CP_RELEASE,
		.mtu = o->mtu,
		.chunk = o->chunk,
		.depth = o->depth,
		.no_check = o->no_check,
		.no_icrc = o->no_icrc,
		.over_msg = o->over_msg,
	};

	return cp_oob_say(oob, CP_OFFER, &offer, err);
}

int
cp_hello_send(struct cp_oob *oob, struct cp_rail *r, const struct cp_opts *o, struct urn_err *err)
{
	struct cp_wait plain = {0}, turning = {turn, r};
	struct cp_rail_config cfg = {
		.attach = o->attach,
		.session = o->session != NULL,
		.node = o->node,
		.capture = o->capture,
		.mtu = o->mtu,
		.slots = o->depth,
		.chunk = o->chunk,
		.no_icrc = o->no_icrc,
		.over_msg = o->over_msg,
		.idle = o->idle,
	};
	struct cp_start start = {.rsvd = 0};
	struct cp_ready ready;
	union cp_body body;

	/* After the OFFER both sides start their EAL at the same time. */
	if (say_offer(oob, o, err) != 0 || (o->attach == NULL && cp_rail_start(r, err) != 0) ||
	    cp_oob_hear(oob, CP_READY, &body, &plain, err) != 0)
		return -1;
	ready = body.ready;
	if (cp_ready_check(&ready, o->attach != NULL, err) != 0)
		return -1;
	cfg.memif = ready.memif;
	if (cp_rail_open(r, &cfg, err) != 0)
		return -1;
	r->peer_addr = ready.addr;
	r->peer_rkey = ready.rkey;
	start.ep = r->local;
	cp_rail_queue(r, &start.queue);
	if (cp_rail_connect(r, &ready.ep, &ready.queue, err) != 0 ||
	    cp_oob_say(oob, CP_START, &start, err) != 0 ||
	    cp_oob_hear(oob, CP_GO, &body, &turning, err) != 0)
		return -1;
	return wait_link(oob, r, err);
}

int
cp_hello_recv(struct cp_oob *oob, struct cp_rail *r, const struct cp_opts *o,
	      struct cp_offer *offer, struct urn_err *err)
{
	struct cp_wait plain = {0}, turning = {turn, r};
	struct cp_rail_config cfg = {.server = true,
				     .attach = o->attach,
				     .session = o->session != NULL,
				     .node = o->node,
				     .capture = o->capture,
				     .idle = o->idle};
	struct cp_ready ready;
	union cp_body body;

	if (cp_oob_hear(oob, CP_OFFER, &body, &plain, err) != 0 ||
	    cp_offer_check(&body.offer, err) != 0)
		return -1;
	*offer = body.offer;
	cfg.mtu = offer->mtu;
	cfg.slots = offer->depth;
	cfg.chunk = offer->chunk;
	cfg.no_icrc = offer->no_icrc != 0;
	cfg.over_msg = offer->over_msg != 0;
	if ((o->attach == NULL && cp_rail_start(r, err) != 0) || cp_rail_open(r, &cfg, err) != 0)
		return -1;
	memset(&ready, 0, sizeof(ready));
	ready.addr = (uintptr_t)r->slot;
	ready.rkey = r->slot_mr != NULL ? r->slot_mr->rkey : 0;
	cp_rail_queue(r, &ready.queue);
	ready.ep = r->local;
	snprintf(ready.memif, sizeof(ready.memif), "%s", r->memif);
	if (cp_oob_say(oob, CP_READY, &ready, err) != 0 ||
	    cp_oob_hear(oob, CP_START, &body, &turning, err) != 0 ||
	    cp_start_check(&body.start, err) != 0 ||
	    cp_rail_connect(r, &body.start.ep, &body.start.queue, err) != 0)
		return -1;
	if (cp_oob_say(oob, CP_GO, NULL, err) != 0)
		return -1;
	return wait_link(oob, r, err);
}
