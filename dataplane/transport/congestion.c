/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/congestion.h"

#include "transport/frame.h"
#include "transport/requester.h"
#include "transport/sched.h"

#include <stdlib.h>
#include <string.h>

enum {
	LOOK_AT = 16, /* states that a turn looks at for one that is not needed any more */
	BECN = 0x40,  /* bit of the BTH's byte in front of the QP number (IBTA A17.9.2) */
	NS = 1000000000,
};

/* ---- the pool */

int
urn_congestion_init(struct urn_tp *tp)
{
	tp->congestion = calloc(URN_CONGESTIONS + 1, sizeof(*tp->congestion));
	urn_pool_init(&tp->congestions, 1, URN_CONGESTIONS + 1);
	tp->left.states = URN_CONGESTIONS;
	urn_fair_init(&tp->fair_states, URN_CONGESTIONS);
	return tp->congestion ? 0 : -1;
}

void
urn_congestion_free(struct urn_tp *tp)
{
	free(tp->congestion);
}

/* Count states that a client's sources have more; or fewer: a negative number. */
static void
count(struct urn_tp *tp, struct urn_tp_share *share, int32_t more)
{
	tp->left.states -= (uint32_t)more;
	share->states += (uint32_t)more;
	urn_share_user(share)->states += (uint32_t)more;
}

/* Take a state for a source. returns: its index; URN_HASH_NIL: the source's client may have none
 * now */
static uint32_t
take(struct urn_tp *tp, const struct urn_source *source)
{
	struct urn_tp_share *share = source->share;

	if (!urn_fair_user_has(&tp->fair_states, tp->left.states, share->states,
			       urn_share_user(share)->states))
		return URN_HASH_NIL;
	return urn_pool_get(&tp->congestions, &tp->congestion->next, sizeof(*tp->congestion));
}

/* Put a state, which is in use, back into the pool. The source waits for its pace no longer. */
static void
forget(struct urn_tp *tp, struct urn_congestion *g)
{
	count(tp, g->pace.source->share, -1);
	urn_sched_unpark(tp, &g->pace);
	*g->slot = 0;
	g->slot = NULL;
	urn_pool_put(&tp->congestions, (uint32_t)(g - tp->congestion), &tp->congestion->next,
		     sizeof(*g));
}

/* True when a state has nothing to say: full rate, nothing owed, and a CNP could be sent at once. */
static bool
is_done(const struct urn_tp *tp, const struct urn_congestion *g)
{
	return !g->paced && !g->owed && tp->now - g->cnp_at >= tp->dcqcn.cnp_ns;
}

/* Follow the rate, which changed. */
static void
set_pace(struct urn_congestion *g)
{
	g->ns_byte = ((uint64_t)NS << 16) / g->d.rate;
	g->burst = g->d.rate * URN_PACE_CREDIT / NS;
}

/* Bring the rate up to date. */
static void
advance(struct urn_tp *tp, struct urn_congestion *g)
{
	if (!g->paced || !urn_dcqcn_advance(&g->d, &tp->dcqcn, tp->now))
		return;
	g->paced = !urn_dcqcn_over(&g->d, &tp->dcqcn);
	set_pace(g);
}

/*
 * The pool is empty, or a client has its part: let go of the state of a source that does not need
 * it, if one of a few is such. A source that waits for the timer of its state has its turn at once:
 * nothing else may come to wake it. Once in a turn, because each packet of a client that has its
 * part, and whose peer marks all, asks for room.
 */
static void
make_room(struct urn_tp *tp)
{
	if (tp->congestion_turn == tp->turn)
		return;
	tp->congestion_turn = tp->turn;
	for (unsigned int i = 0; i < LOOK_AT; i++) {
		struct urn_congestion *g;
		bool waits;

		tp->congestion_hand = (uint16_t)(tp->congestion_hand % URN_CONGESTIONS + 1);
		g = &tp->congestion[tp->congestion_hand];
		if (!g->slot)
			continue;
		advance(tp, g);
		if (!is_done(tp, g))
			continue;
		waits = urn_timer_started(&g->pace.timer);
		forget(tp, g);
		if (waits)
			urn_sched_add(&tp->sched, g->pace.source);
		return;
	}
}

/* The state of a source, made when it has none. NULL: the pool is empty */
static struct urn_congestion *
get(struct urn_tp *tp, struct urn_source *source, uint16_t *slot)
{
	struct urn_congestion *g;
	uint32_t i;

	if (*slot)
		return &tp->congestion[*slot];
	i = take(tp, source);
	if (i == URN_HASH_NIL) {
		make_room(tp);
		i = take(tp, source);
	}
	if (i == URN_HASH_NIL) {
		URN_COUNT(tp, NO_CONGESTION);
		return NULL;
	}
	count(tp, source->share, 1);
	g = &tp->congestion[i];
	memset(g, 0, sizeof(*g));
	g->pace.source = source;
	g->slot = slot;
	*slot = (uint16_t)i;
	return g;
}

void
urn_congestion_end_source(struct urn_tp *tp, uint16_t *slot)
{
	if (*slot)
		forget(tp, &tp->congestion[*slot]);
}

void
urn_congestion_end(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_congestion_end_source(tp, &qp->congestion);
}

/* ---- the receiver of data */

void
urn_congestion_marked(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_congestion *g;

	URN_COUNT(tp, RX_MARKED);
	if (!tp->dcqcn.line)
		return;
	g = get(tp, &qp->source, &qp->congestion);
	if (!g || g->owed || (g->cnp_at && tp->now - g->cnp_at < tp->dcqcn.cnp_ns))
		return;
	g->owed = true;
	urn_tp_sched(tp, qp);
}

bool
urn_congestion_send_cnp(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_congestion *g = &tp->congestion[qp->congestion];
	struct urn_txd *d;
	uint8_t *bth;

	if (!g->owed)
		return true;
	if (!urn_tp_tx_room(tp))
		return false;
	d = urn_tp_frame(tp, &qp->tmpl, URN_CNP, 0, qp->dest_qpn, 0, 0, false, &bth);
	if (!d)
		return false;
	bth[offsetof(struct urn_bth, flags)] &=
		(uint8_t)~URN_BTH_M; /* M is 0 here (IBTA A17.9.3) */
	bth[offsetof(struct urn_bth, dqpn)] = BECN;
	memset(bth + sizeof(struct urn_bth), 0, urn_opcodes[URN_CNP].hdr_len - sizeof(struct urn_bth));
	d->syndrome = 0;
	urn_tp_send(tp, d, qp, URN_ACT_TX_NOTICE, (qp->flags & URN_QPF_LOOP) != 0);
	URN_COUNT(tp, TX_CNPS);
	g->owed = false;
	g->cnp_at = tp->now;
	return true;
}

/* ---- the sender of data */

/*
 * Bytes a second that the QP sends now: the bytes in flight, in a round trip. The port's rate while
 * no round trip was measured, and for a responder, whose data nothing acknowledges.
 */
static uint64_t
rate_now(const struct urn_tp *tp, const struct urn_qp *qp)
{
	uint64_t srtt = urn_qp_peer(tp, qp)->srtt, out = urn_psn_tx_out(&qp->tx), rate;

	if (!srtt || !out || qp->rec_pending)
		return tp->dcqcn.line;
	rate = out * qp->mtu * NS / srtt;
	return rate < tp->dcqcn.least ? tp->dcqcn.least : rate;
}

/* A source is to send slower. rate: bytes a second at which the source sends, if it is not paced
 * yet */
static void
slow_down(struct urn_tp *tp, struct urn_congestion *g, uint64_t rate)
{
	if (g->paced) {
		(void)urn_dcqcn_advance(&g->d, &tp->dcqcn, tp->now);
		urn_dcqcn_cnp(&g->d, &tp->dcqcn, tp->now);
	} else {
		urn_dcqcn_begin(&g->d, &tp->dcqcn, rate, tp->now);
		g->pace.not_before = tp->now;
		g->paced = true;
	}
	g->slowed_at = tp->now;
	set_pace(g);
}

void
urn_congestion_notified(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_congestion *g;

	if (!tp->dcqcn.line)
		return;
	g = get(tp, &qp->source, &qp->congestion);
	if (g)
		slow_down(tp, g, rate_now(tp, qp));
}

void
urn_congestion_reported(struct urn_tp *tp, struct urn_source *source, uint16_t *slot,
		      uint64_t rate_now)
{
	struct urn_congestion *g;

	if (!tp->dcqcn.line)
		return;
	g = get(tp, source, slot);
	if (!g || (g->slowed_at && tp->now - g->slowed_at < tp->dcqcn.cnp_ns))
		return;
	slow_down(tp, g, rate_now < tp->dcqcn.least ? tp->dcqcn.least : rate_now);
}

bool
urn_congestion_open_source(struct urn_tp *tp, uint16_t *slot)
{
	struct urn_congestion *g = &tp->congestion[*slot];

	if (!*slot)
		return true;
	advance(tp, g);
	if (is_done(tp, g)) {
		forget(tp, g);
		return true;
	}
	if (!g->paced || tp->now >= g->pace.not_before)
		return true;
	urn_sched_wake(tp, &g->pace);
	return false;
}

bool
urn_congestion_open(struct urn_tp *tp, struct urn_qp *qp)
{
	return urn_congestion_open_source(tp, &qp->congestion);
}

void
urn_congestion_sent_source(struct urn_tp *tp, const uint16_t *slot, uint32_t bytes)
{
	struct urn_congestion *g = &tp->congestion[*slot];
	uint64_t from = tp->now - URN_PACE_CREDIT;

	if (!*slot || !g->paced || !bytes)
		return;
	if (g->pace.not_before < from && tp->now > URN_PACE_CREDIT)
		g->pace.not_before = from;
	g->pace.not_before += (bytes * g->ns_byte) >> 16;
	if (!urn_dcqcn_sent(&g->d, &tp->dcqcn, bytes))
		return;
	g->paced = !urn_dcqcn_over(&g->d, &tp->dcqcn);
	set_pace(g);
}

void
urn_congestion_sent(struct urn_tp *tp, struct urn_qp *qp, uint32_t bytes)
{
	urn_congestion_sent_source(tp, &qp->congestion, bytes);
}

unsigned int
urn_congestion_frames(const struct urn_tp *tp, const uint16_t *slot, uint32_t bytes,
		      unsigned int budget)
{
	const struct urn_congestion *g = &tp->congestion[*slot];
	unsigned int n = 1;

	if (!*slot || !g->paced)
		return budget;
	while (n < URN_PACED_FRAMES && n < budget && (n + 1) * bytes <= g->burst)
		n++;
	return n;
}

uint64_t
urn_congestion_rate_source(const struct urn_tp *tp, const uint16_t *slot)
{
	uint16_t i = __atomic_load_n(slot, __ATOMIC_RELAXED);

	return i && tp->congestion[i].paced ? tp->congestion[i].d.rate : 0;
}

uint64_t
urn_congestion_rate(const struct urn_tp *tp, const struct urn_qp *qp)
{
	/* Other services have no congestion control, and keep something else in its place. */
	return qp->type == URN_QPT_RC ? urn_congestion_rate_source(tp, &qp->congestion) : 0;
}
