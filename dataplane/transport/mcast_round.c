/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast datagrams: their way round a group, and copies (mcast.h). Not on the path of other
 * packets. */
#include "transport/frame.h"
#include "transport/mcast_priv.h"
#include "transport/pool.h"
#include "transport/sched.h"
#include "transport/service.h"
#include "transport/unsealed.h"

/* ---- copies */

/* True when the turn has a copy left. */
static bool
turn_has(struct urn_tp *tp)
{
	struct urn_mcast *mc = tp->mcast;

	if (mc->turn != tp->turn) {
		mc->turn = tp->turn;
		mc->copies = 0;
	}
	return mc->copies < URN_MCAST_COPIES;
}

/* True when a client, or another engine, may have one more copy in a turn that has one left. */
static bool
share_has(const struct urn_tp *tp, struct urn_mcast_share *share)
{
	if (share->turn != tp->turn) {
		share->turn = tp->turn;
		share->copies = 0;
	}
	return share->copies < URN_MCAST_COPIES - tp->mcast->copies;
}

/* Copy a frame for a client, or another engine, that may have a copy. returns: NULL: no buffer */
static struct rte_mbuf *
copy_for(struct urn_tp *tp, struct rte_mbuf *m, struct urn_mcast_share *share)
{
	struct rte_mbuf *c = urn_tp_buffer(tp);

	if (c && m->data_len > c->buf_len - RTE_PKTMBUF_HEADROOM) {
		tp->fresh[tp->fresh_n++] = c;
		c = NULL;
	}
	if (!c)
		return NULL;
	urn_tp_buffer_set(c, m->data_len);
	memcpy(urn_pkt_fresh(c), rte_pktmbuf_mtod(m, const void *), m->data_len);
	*urn_pkt(c) = *urn_pkt(m);
	tp->mcast->copies++;
	share->copies++;
	URN_COUNT(tp, MCAST_COPIES);
	return c;
}

/* ---- round */

/*
 * A datagram on its way round a group. All its receivers are found before one of them gets it: a
 * queue pair that gets it may go to the error state, and leaves the rounds then.
 */
struct urn_mcast_way {
	struct urn_mcast_group *group;
	uint32_t sender; /* number of the queue pair that sent it; 0: another node's */
	bool engines;	 /* it goes to other engines, too */
	bool met;	 /* the sender's own place in the round was found, and passed over */
	unsigned int n;	 /* receivers found */
	struct {
		struct urn_qp *qp; /* NULL: an engine */
		unsigned int engine;
		struct rte_mbuf *m; /* copy; of the first: the datagram */
	} to[1 + URN_MCAST_COPIES];
};

enum served {
	SERVED,	 /* a receiver was found */
	NOBODY,	 /* the place has none: its only queue pair sent the datagram, or it is an engine
		    that handed it over */
	REFUSED, /* the place has had its copies of the turn */
	NONE,	 /* the turn, or the packet pool, has no copy left */
};

/* The queue pair of a place that is next to get the datagram. NULL: all that may get it have it */
static struct urn_mcast_member *
next_member(struct urn_mcast_place *p, struct urn_mcast_way *w)
{
	struct urn_mcast_member *m = TAILQ_FIRST(&p->round);

	if (m->qp->qpn != w->sender)
		return m;
	w->met = true;
	TAILQ_REMOVE(&p->round, m, link);
	TAILQ_INSERT_TAIL(&p->round, m, link);
	return ++p->got == p->n ? NULL : TAILQ_FIRST(&p->round);
}

/* Find one receiver of a datagram in a place. */
static enum served
serve(struct urn_tp *tp, struct rte_mbuf *m, struct urn_mcast_way *w, struct urn_mcast_place *p)
{
	struct urn_mcast_member *to = NULL;

	if (p->seen != w->group->datagrams) {
		p->seen = w->group->datagrams;
		p->got = 0;
	}
	if (w->n && !turn_has(tp))
		return NONE;
	if (w->n && !share_has(tp, p->share))
		return REFUSED;
	if (p->members ? !(to = next_member(p, w)) : !w->engines)
		return NOBODY;
	if (w->n && !(m = copy_for(tp, m, p->share)))
		return NONE;
	w->to[w->n].qp = to ? to->qp : NULL;
	w->to[w->n].engine = p->engine;
	w->to[w->n++].m = m;
	p->got++;
	if (to) {
		TAILQ_REMOVE(&p->round, to, link);
		TAILQ_INSERT_TAIL(&p->round, to, link);
	}
	return SERVED;
}

/*
 * Find the receivers of a datagram. The order of the next one: places that were passed over, those
 * that this one did not reach or that lack it for some queue pairs, those that are served.
 */
static void
go_round(struct urn_tp *tp, struct rte_mbuf *m, struct urn_mcast_way *w)
{
	struct urn_mcast_places passed = TAILQ_HEAD_INITIALIZER(passed),
				done = TAILQ_HEAD_INITIALIZER(done), *round = &w->group->round;
	struct urn_mcast_place *p;
	unsigned int looks = 0, passes = 0;

	w->group->datagrams++;
	while ((p = TAILQ_FIRST(round)) && passes < URN_MCAST_PASSES) {
		enum served s = serve(tp, m, w, p);

		looks++;
		if (s == NONE)
			break;
		passes += s == REFUSED;
		TAILQ_REMOVE(round, p, link);
		if (s == SERVED && p->got < p->n)
			TAILQ_INSERT_TAIL(round, p, link);
		else if (s == SERVED || (p->got && p->n > 1))
			TAILQ_INSERT_TAIL(&done, p, link);
		else
			TAILQ_INSERT_TAIL(&passed, p, link);
	}
	TAILQ_CONCAT(round, &done, link);
	TAILQ_CONCAT(&passed, round, link);
	TAILQ_CONCAT(round, &passed, link);
	tp->c.v[URN_C_MCAST_LOOKS] += looks;
}

/* ---- deliver */

/* Give a datagram to one queue pair; takes m. */
static void
give(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	urn_pkt(m)->qp = qp;
	if (qp->state ==
	    URN_QPS_ERR) /* since it was found: the copies before filled its completion queue */
		urn_tp_drop(tp, m, URN_C_DROP_QP_STATE);
	else
		urn_qp_service(tp, qp)->accept(tp, qp, m);
	if (tp->ops_bytes >= URN_TP_OPS_BYTES || urn_tp_burst_full(tp))
		urn_tp_execute(tp);
}

/* Hand a datagram to another engine; takes m. */
static void
hand_over(struct urn_tp *tp, unsigned int engine, struct rte_mbuf *m)
{
	if (tp->handover_n == URN_TP_OUT) {
		urn_tp_drop(tp, m, URN_C_DROP_HANDOVER);
		return;
	}
	urn_pkt(m)->op = &urn_opcodes[URN_UD_SEND_ONLY];
	urn_pkt(m)->dqpn = (uint32_t)engine << URN_TP_ENGINE_SHIFT;
	tp->handover[tp->handover_n++] = m;
}

/* Give a datagram to those of its group that may get it; takes m. */
static void
deliver(struct urn_tp *tp, struct rte_mbuf *m, struct urn_mcast_way *w)
{
	uint32_t lack;

	go_round(tp, m, w);
	if (!w->n) {
		urn_tp_drop(tp, m, URN_C_DROP_MCAST_GROUP);
		return;
	}
	/* A sender whose turn had not come when the copies ended counts as one more. */
	lack = w->group->n - w->n - w->met;
	if (!w->engines) { /* a handed-over datagram was not for other engines */
		const struct urn_mcast_place *p;

		LIST_FOREACH(p, &w->group->engines, of)
			lack--;
	}
	tp->c.v[URN_C_DROP_MCAST_COPY] += lack;
	for (unsigned int i = 1; i <= w->n;
	     i++) { /* the datagram itself, which copies were made of, last */
		unsigned int to = i < w->n ? i : 0;

		if (w->to[to].qp)
			give(tp, w->to[to].qp, w->to[to].m);
		else
			hand_over(tp, w->to[to].engine, w->to[to].m);
	}
}

/* ---- received */

/* Read the group that a frame goes to. returns: false: it goes to none, or to another MAC address
 */
static bool
read_group(const uint8_t *frame, unsigned int l3_off, bool ipv6, uint8_t gid[16])
{
	uint8_t mac[6];

	memset(gid, 0, 16);
	if (ipv6) {
		memcpy(gid, frame + l3_off + offsetof(struct urn_ipv6, dst), 16);
	} else {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, frame + l3_off + offsetof(struct urn_ipv4, dst), 4);
	}
	return urn_gid_multicast_mac(mac, gid) && memcmp(frame, mac, 6) == 0;
}

/* True when a frame's source is an address of ours. */
static bool
is_ours(const struct urn_tp *tp, struct rte_mbuf *m)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, urn_pkt(m)->l3_off);

	if (!urn_pkt(m)->ipv6)
		return tp->has_ipv4 &&
		       memcmp(l3 + offsetof(struct urn_ipv4, src), tp->ipv4, 4) == 0;
	for (unsigned int i = 0; i < tp->ipv6_n; i++)
		if (memcmp(l3 + offsetof(struct urn_ipv6, src), tp->ipv6[i], 16) == 0)
			return true;
	return false;
}

static uint32_t
sender_of(struct rte_mbuf *m)
{
	struct urn_deth d;

	memcpy(&d, urn_pkt_ext(m, URN_EXT_DETH), sizeof(d));
	return rte_be_to_cpu_32(d.sqpn) & URN_QPN_MASK;
}

/* checked: the frame is a copy, this engine's of its own datagram, which goes to all, or another
 * engine's, which goes to this engine's queue pairs only. */
__attribute__((cold)) void
urn_mcast_rx(struct urn_tp *tp, struct rte_mbuf *m, bool checked)
{
	const struct urn_pkt *p = urn_pkt(m);
	struct urn_mcast_way w;
	uint8_t gid[16];
	bool ours;

	if (!read_group(rte_pktmbuf_mtod(m, const uint8_t *), p->l3_off, p->ipv6, gid)) {
		urn_tp_drop(tp, m, URN_C_DROP_ADDRESS);
		return;
	}
	w.group = urn_mcast_find(tp, gid);
	w.n = 0;
	w.met = false;
	ours = is_ours(tp, m);
	if (!w.group)
		urn_tp_drop(tp, m, URN_C_DROP_MCAST_GROUP);
	else if (!checked && ours) /* no switch sends a frame back to where it came from */
		urn_tp_drop(tp, m, URN_C_DROP_ADDRESS);
	else if (!checked && !urn_tp_icrc_ok(tp, m))
		urn_tp_drop(tp, m, URN_C_DROP_ICRC);
	else if (!urn_pkey_match(p->pkey, URN_PKEY_DEFAULT))
		urn_tp_drop(tp, m, URN_C_DROP_PKEY);
	else if (p->dqpn != URN_QPN_MULTICAST)
		urn_tp_drop(tp, m, URN_C_DROP_NO_QP);
	else if (!(p->op->flags & URN_OPF_UD))
		urn_tp_drop(tp, m, URN_C_DROP_QP_TYPE);
	else {
		w.sender = ours ? sender_of(m) : 0;
		w.engines = !checked || (ours && urn_qpn_engine(w.sender) == tp->cfg.engine);
		deliver(tp, m, &w);
	}
}

/* ---- sent */

/* True when a group has receivers besides a queue pair. */
static bool
has_others(const struct urn_mcast_group *g, const struct urn_qp *qp)
{
	const struct urn_mcast_place *first = TAILQ_FIRST(&g->round);

	return g->n > 1 || (first && !(first->members && TAILQ_FIRST(&first->round)->qp == qp));
}

/* The sender pays for the copy that goes round the group in the next turn, receivers for the
 * others. */
__attribute__((cold)) void
urn_mcast_sent(struct urn_tp *tp, const struct urn_txd *d)
{
	const struct urn_mcast_group *g;
	struct rte_mbuf *c;
	uint8_t gid[16];

	if (!tp->mcast ||
	    !read_group(rte_pktmbuf_mtod(d->m, const uint8_t *), URN_ETH_BYTES, d->ipv6, gid))
		return;
	g = urn_mcast_find(tp, gid);
	if (!g || !has_others(g, d->qp))
		return;
	c = tp->loop_n < URN_TP_LOOP && turn_has(tp) && share_has(tp, &d->qp->share->mcast)
		    ? copy_for(tp, d->m, &d->qp->share->mcast)
		    : NULL;
	if (c)
		tp->loop[tp->loop_n++] = c;
	else
		tp->c.v[URN_C_DROP_MCAST_COPY] += g->n;
}
