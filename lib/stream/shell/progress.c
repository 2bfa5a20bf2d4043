/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of a stream: completions, news of the connection, and time. */
#include "stream/shell/shell.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

uint64_t
urn_sh_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/*
 * Take completions, for each receive twice at most: messages without bytes post theirs again, so
 * a peer that goes on sending them could hold the lock for ever.
 *
 * returns: true: there were completions
 */
static bool
take_completions(struct urn_stream *s)
{
	uint32_t bursts = 2 * (URN_ST_CONTROL + s->o.buffers) / URN_SH_BURST + 1;
	struct ibv_wc wc[URN_SH_BURST];
	bool any = false;
	int n;

	do {
		n = ibv_poll_cq(s->cq, URN_SH_BURST, wc);
		for (int i = 0; i < n; i++)
			urn_sh_complete(s, &wc[i]);
		any |= n > 0;
	} while (n == URN_SH_BURST && --bursts);
	s->more = n == URN_SH_BURST;
	if (n < 0)
		s->down = true;
	/* A thread that polls may miss the notice of these, and a credit is no change that
	 * urn_sh_happened() tells of. */
	if (any && s->pollers)
		urn_bell_ring(&s->poke);
	/* The peer's first message says that it is ready, when its own word for that was lost. */
	if (any && s->phase == URN_SH_ANSWERED) {
		s->phase = URN_SH_UP;
		(void)urn_cm_end_establish(s->node->cm, s->id, NULL, 0);
		urn_sh_happened(s);
	}
	return any;
}

/* ---- news */

/* The peer accepts: begin, and tell it. */
static void
on_reply(struct urn_stream *s, const struct urn_abi_cm_event *ev)
{
	struct urn_st_hello peer;
	uint16_t line;
	char why[URN_SH_WHY];
	int err = urn_sh_greeted(ev->data, ev->data_len, &peer, &line, why);

	if (err == 0)
		err = urn_sh_begin(s, ev, &peer, line, why);
	if (err == 0 && (err = urn_cm_end_establish(s->node->cm, s->id, NULL, 0)) != 0)
		snprintf(why, sizeof(why), "the peer took its answer back");
	if (err)
		urn_sh_break(s, err, why);
	else
		s->phase = URN_SH_UP;
	urn_sh_happened(s);
}

/* The peer is gone. The machine learns it when it has all that came before. */
static void
on_end(struct urn_stream *s, uint32_t news, const struct urn_abi_cm_event *ev)
{
	char why[URN_SH_WHY] = "the peer is gone";
	int err = ECONNRESET;

	s->gone |= (news & URN_SH_N_DEAD) != 0;
	if (news & URN_SH_N_DEAD) {
		snprintf(why, sizeof(why), "the dataplane is gone");
		err = EIO;
	} else if (news & URN_SH_N_REFUSED) {
		err = urn_sh_refusal(ev, why);
	}
	if (!s->begun) {
		urn_sh_break(s, err, why);
	} else {
		s->phase = URN_SH_UP;
		s->down = true;
	}
	urn_sh_happened(s);
}

static bool
take_news(struct urn_stream *s)
{
	struct urn_abi_cm_event ev;
	uint32_t news;
	bool any;

	pthread_mutex_lock(&s->node->lock);
	/* A thread that leads takes its notice itself: the bell may have rung for an event that a
	 * poll took, too. */
	if (!s->leading)
		urn_bell_take(&s->wake);
	news = atomic_exchange(&s->news, 0);
	any = news != 0;
	ev = s->event;
	pthread_mutex_unlock(&s->node->lock);
	/* The event of a refusal took the place of the reply's. */
	if (news & URN_SH_N_REPLY && !(news & URN_SH_N_REFUSED) && s->phase == URN_SH_ASKED)
		on_reply(s, &ev);
	if (news & URN_SH_N_READY && s->phase == URN_SH_ANSWERED) {
		s->phase = URN_SH_UP;
		urn_sh_happened(s);
	}
	/* The adapter was lost before its word that the peer is ready came; the peer's first
	 * message has said so. */
	if (s->phase == URN_SH_UP && ev.type == URN_CM_EVENT_UNREACHABLE)
		news &= ~(uint32_t)URN_SH_N_REFUSED;
	if (news & (URN_SH_N_REFUSED | URN_SH_N_GONE | URN_SH_N_DEAD) &&
	    s->phase != URN_SH_BROKEN) {
		(void)take_completions(s);
		on_end(s, news, &ev);
	}
	return any;
}

/* ---- time, and ends */

/* True when the machine counts time: a SrcAvail waits, and no receive is there. */
static bool
counts_time(const struct urn_stream *s)
{
	return s->begun && s->st.state == URN_ST_S_OPEN && s->st.rx.state == URN_ST_RX_OFFERED &&
	       s->st.rx.count == 0;
}

static void
tick(struct urn_stream *s)
{
	uint64_t now;

	if (!counts_time(s))
		return;
	now = urn_sh_now();
	if (now - s->ticked_ms < URN_SH_TICK_MS)
		return;
	s->ticked_ms = now;
	urn_st_tick(&s->st);
}

/* Stop the queue pair. One that can't be stopped goes altogether; one of a dataplane that is gone
 * has stopped. */
static void
stop_qp(struct urn_stream *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int err = ibv_modify_qp(s->qp, &attr, IBV_QP_STATE);

	if (err && err != EIO) {
		s->down = true;
		(void)ibv_destroy_qp(s->qp);
		s->qp = NULL;
	}
	/* The first request that is flushed ends the posting of further ones. */
	do
		(void)take_completions(s);
	while (s->more);
}

/* The queue pair stops when the Abort is out; then nothing touches memory of the program. */
static bool
fence(struct urn_stream *s)
{
	bool left = s->st.emitted == s->st.completed;

	if (!s->died || s->fenced)
		return false;
	if (!s->down && !left && urn_sh_now() - s->died_ms < URN_SH_ABORT_MS)
		return false;
	stop_qp(s);
	s->fenced = true;
	urn_st_fenced(&s->st);
	urn_sh_happened(s);
	return true;
}

static bool
tell_down(struct urn_stream *s)
{
	/* No receive is posted when the connection is down, so the last completion comes soon. */
	if (!s->down || s->told || !s->begun || s->more)
		return false;
	s->told = true;
	/* The queue pair may tell of the dataplane's end before connection management does. */
	urn_sh_hub_look(s->node);
	s->gone |= (atomic_load(&s->news) & URN_SH_N_DEAD) != 0;
	if (s->refused)
		urn_st_refused(&s->st);
	else
		urn_st_down(&s->st);
	urn_sh_happened(s);
	return true;
}

bool
urn_sh_progress(struct urn_stream *s)
{
	bool did = take_completions(s);

	if (++s->looks % URN_SH_HUB_LOOKS == 0)
		urn_sh_hub_look(s->node);
	if (atomic_load_explicit(&s->news, memory_order_relaxed))
		did |= take_news(s);
	did |= tell_down(s);
	tick(s);
	did |= fence(s);
	return did;
}

int
urn_sh_due(const struct urn_stream *s)
{
	if (s->more)
		return 0;
	if (counts_time(s) || (s->died && !s->fenced))
		return URN_SH_TICK_MS;
	return -1;
}

int
urn_sh_error(const struct urn_stream *s)
{
	bool broken = s->begun && (s->st.state == URN_ST_S_DYING || s->st.state == URN_ST_S_DEAD);

	if (s->phase == URN_SH_BROKEN)
		return s->err;
	if (!broken)
		return 0;
	switch (s->st.reason) {
	case URN_ST_R_DOWN:
		return ECONNRESET;
	case URN_ST_R_ABORTED:
		return ECONNABORTED;
	case URN_ST_R_PEER:
		return s->st.told == URN_ST_R_ABORTED ? ECONNRESET : EPROTO;
	default:
		return EPROTO;
	}
}
