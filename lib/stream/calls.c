/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the program on a stream connection, and its configuration (SF-1, SF-10). */
#include "stream/priv.h"

#include <errno.h>
#include <stddef.h>

static bool
is_hello(const struct urn_st_hello *h)
{
	return h->buffers - 1 < URN_ST_BUFFERS_MAX && h->size - 1 < URN_ST_SIZE_MAX;
}

/* True when a slot of the shell holds each message of an end that has this greeting. */
static bool
holds(uint32_t slot, const struct urn_st_hello *h)
{
	return slot >= URN_ST_WIRE_MAX && slot - URN_ST_WIRE_MAX >= h->size;
}

const char *
urn_st_refusal(const struct urn_st_config *cfg)
{
	if (!is_hello(&cfg->self))
		return "number or size of this end's BCopy buffers is 0 or too large";
	if (!is_hello(&cfg->peer))
		return "number or size of the peer's BCopy buffers is 0 or too large";
	if (!holds(cfg->send_slot, &cfg->peer))
		return "the peer's BCopy buffers are larger than messages that this end can send";
	if (!holds(cfg->recv_slot, &cfg->self))
		return "this end's receives are shorter than the messages that its greeting allows";
	if (!cfg->pieces || !cfg->slots || !cfg->patience || !cfg->act)
		return "pieces, slots, patience or the function for actions is missing";
	if (!urn_st_threshold_ok(&cfg->tx) || !urn_st_threshold_ok(&cfg->rx))
		return "a threshold is out of its floor and ceiling";
	return NULL;
}

int
urn_st_init(struct urn_st *s, const struct urn_st_config *cfg)
{
	bool greeted = is_hello(&cfg->self) && is_hello(&cfg->peer);

	if (urn_st_refusal(cfg))
		return greeted && !(holds(cfg->send_slot, &cfg->peer) &&
				    holds(cfg->recv_slot, &cfg->self))
			       ? EMSGSIZE
			       : EINVAL;
	*s = (struct urn_st){.cfg = *cfg};
	s->tx.threshold = cfg->tx;
	s->rx.threshold = cfg->rx;
	s->tx.limit = cfg->peer.abilities & URN_ST_ON_DEMAND ? 0 : cfg->peer.buffers;
	s->rx.limit = urn_st_grant(s);
	urn_st_post(s, URN_ST_CONTROL + s->rx.limit);
	return 0;
}

/* returns: 0, or why no more sends are taken */
static int
may_begin_send(const struct urn_st *s, const struct urn_st_area *area)
{
	if (s->state == URN_ST_S_DYING || s->state == URN_ST_S_DEAD)
		return ENOTCONN;
	if (s->tx.shut || s->tx.stopped)
		return EPIPE;
	if (area->bytes == 0 || area->bytes > UINT64_MAX - area->addr)
		return EINVAL;
	return s->tx.count == URN_ST_JOBS ? EAGAIN : 0;
}

static int
may_begin_receive(const struct urn_st *s, const struct urn_st_area *area)
{
	bool broken = s->state == URN_ST_S_DYING || s->state == URN_ST_S_DEAD;

	if (s->rx.stop)
		return broken ? ENOTCONN : EPIPE;
	/* Bytes that came before the connection broke, and the end of the stream, are still here.
	 */
	if (broken && s->rx.pieces == 0 && s->rx.state != URN_ST_RX_ENDED)
		return ENOTCONN;
	if (area->bytes == 0 || area->bytes > UINT64_MAX - area->addr)
		return EINVAL;
	return s->rx.count == URN_ST_RECVS ? EAGAIN : 0;
}

static void
begin_send(struct urn_st *s, const struct urn_st_job *j)
{
	s->tx.job[(s->tx.first + s->tx.count++) % URN_ST_JOBS] = *j;
}

static void
begin_receive(struct urn_st *s, const struct urn_st_recv *r)
{
	s->rx.recv[(s->rx.first + s->rx.count++) % URN_ST_RECVS] = *r;
	/* A program that posts receives is given time anew for the next one. */
	s->rx.waited = 0;
	s->rx.late = false;
}

int
urn_st_send(struct urn_st *s, const struct urn_st_area *area)
{
	int e = may_begin_send(s, area);

	if (e)
		return e;
	begin_send(s, &(struct urn_st_job){.area = *area});
	urn_st_pump(s);
	return 0;
}

int
urn_st_receive(struct urn_st *s, const struct urn_st_area *area, uint32_t how)
{
	int e = how & ~(uint32_t)(URN_ST_ALL | URN_ST_UNANNOUNCED) ? EINVAL
								   : may_begin_receive(s, area);

	if (e)
		return e;
	begin_receive(s, &(struct urn_st_recv){.area = *area,
					       .all = how & URN_ST_ALL,
					       .unannounced = how & URN_ST_UNANNOUNCED});
	urn_st_pump(s);
	return 0;
}

int
urn_st_transact(struct urn_st *s, const struct urn_st_area *command,
		const struct urn_st_area *answer)
{
	int e = may_begin_send(s, command);

	if (!e)
		e = may_begin_receive(s, answer);
	if (e)
		return e;
	begin_receive(s, &(struct urn_st_recv){.area = *answer, .held = true});
	begin_send(s, &(struct urn_st_job){
			      .area = *command, .transaction = true, .carried = answer->id});
	urn_st_pump(s);
	return 0;
}

int
urn_st_cancel(struct urn_st *s, uint64_t id)
{
	int e = urn_st_sink_cancel(s, id);

	urn_st_pump(s);
	return e;
}

void
urn_st_shutdown_read(struct urn_st *s)
{
	s->rx.stop = true;
	urn_st_pump(s);
}

void
urn_st_abort(struct urn_st *s)
{
	s->tx.shut = s->rx.stop = s->closing = true;
	urn_st_die(s, URN_ST_R_ABORTED, NULL, s->rx.arrived);
	urn_st_pump(s);
}

void
urn_st_shutdown(struct urn_st *s)
{
	s->tx.shut = true;
	urn_st_pump(s);
}

void
urn_st_close(struct urn_st *s)
{
	s->tx.shut = s->rx.stop = s->closing = true;
	urn_st_pump(s);
}

int
urn_st_set_force(struct urn_st *s, enum urn_st_force force)
{
	if (force >= URN_ST_FORCES)
		return EINVAL;
	s->tx.force = force;
	urn_st_pump(s);
	return 0;
}

int
urn_st_set_threshold(struct urn_st *s, bool tx, const struct urn_st_threshold *t)
{
	if (!urn_st_threshold_ok(t))
		return EINVAL;
	*(tx ? &s->tx.threshold : &s->rx.threshold) = *t;
	urn_st_pump(s);
	return 0;
}

bool
urn_st_readable(const struct urn_st *s)
{
	return s->rx.pieces || s->rx.state == URN_ST_RX_ENDED || s->state != URN_ST_S_OPEN;
}

bool
urn_st_offered(const struct urn_st *s)
{
	return s->state == URN_ST_S_OPEN && s->rx.state == URN_ST_RX_OFFERED &&
	       urn_st_sink_may_zcopy(s);
}

bool
urn_st_writable(const struct urn_st *s)
{
	if (s->state != URN_ST_S_OPEN || s->tx.stopped || s->tx.shut)
		return true; /* the call returns an error at once */
	return s->tx.count < URN_ST_JOBS;
}
