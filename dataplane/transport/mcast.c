/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: attachments, and copies of datagrams (mcast.h). Nothing here is on a fast path.
 */
#include "transport/mcast.h"

#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/sched.h"
#include "transport/service.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

enum { BUCKETS = 64 };

/* A queue pair in a group. */
struct urn_mcast_member {
	TAILQ_ENTRY(urn_mcast_member) link;
	struct urn_qp *qp;
};
TAILQ_HEAD(urn_mcast_members, urn_mcast_member);

struct urn_mcast_group {
	LIST_ENTRY(urn_mcast_group) link;
	struct urn_mcast_members
		members;  /* this engine's; the first gets a datagram first, and comes last then */
	uint32_t engines; /* bit e: engine e, another one, has queue pairs in it */
	uint8_t gid[16];
};
LIST_HEAD(urn_mcast_groups, urn_mcast_group);

struct urn_mcast {
	struct urn_mcast_groups bucket[BUCKETS];
	uint32_t groups;  /* groups there are */
	uint32_t members; /* attachments, of all groups */
	uint32_t turn;	  /* turn that `copies` counts in */
	uint32_t copies;  /* copies made in that turn */
};

/* ---- groups */

static struct urn_mcast_groups *
bucket_of(struct urn_mcast *mc, const uint8_t gid[16])
{
	return &mc->bucket[(gid[12] ^ gid[13] ^ gid[14] ^ gid[15]) % BUCKETS];
}

static struct urn_mcast_group *
find(const struct urn_tp *tp, const uint8_t gid[16])
{
	struct urn_mcast_group *g;

	if (!tp->mcast)
		return NULL;
	LIST_FOREACH(g, bucket_of(tp->mcast, gid), link)
		if (memcmp(g->gid, gid, 16) == 0)
			return g;
	return NULL;
}

static struct urn_mcast_group *
find_or_make(struct urn_tp *tp, const uint8_t gid[16])
{
	struct urn_mcast_group *g = find(tp, gid);

	if (g)
		return g;
	if (!tp->mcast)
		tp->mcast = calloc(1, sizeof(*tp->mcast));
	if (!tp->mcast || tp->mcast->groups == URN_MCAST_GROUPS || !(g = calloc(1, sizeof(*g))))
		return NULL;
	TAILQ_INIT(&g->members);
	memcpy(g->gid, gid, 16);
	LIST_INSERT_HEAD(bucket_of(tp->mcast, gid), g, link);
	tp->mcast->groups++;
	return g;
}

/* Forget a group that nobody is in. */
static void
let_go(struct urn_tp *tp, struct urn_mcast_group *g)
{
	if (!TAILQ_EMPTY(&g->members) || g->engines)
		return;
	LIST_REMOVE(g, link);
	free(g);
	tp->mcast->groups--;
}

void
urn_mcast_free(struct urn_tp *tp)
{
	struct urn_mcast_group *g, *next;

	for (unsigned int b = 0; tp->mcast && b < BUCKETS; b++)
		for (g = LIST_FIRST(&tp->mcast->bucket[b]); g; g = next) {
			next = LIST_NEXT(g, link);
			free(g);
		}
	free(tp->mcast);
	tp->mcast = NULL;
}

static struct urn_mcast_member *
member(const struct urn_mcast_group *g, const struct urn_qp *qp)
{
	struct urn_mcast_member *m;

	TAILQ_FOREACH(m, &g->members, link)
		if (m->qp == qp)
			return m;
	return NULL;
}

int
urn_mcast_attach(struct urn_tp *tp, struct urn_qp *qp, const uint8_t gid[16], bool *first)
{
	struct urn_mcast_group *g = find_or_make(tp, gid);
	struct urn_mcast_member *m;

	*first = false;
	if (!g)
		return ENOMEM;
	if (member(g, qp))
		return 0;
	m = qp->share->mcast < URN_MCAST_CLIENT && tp->mcast->members < URN_MCAST_MEMBERS
		    ? calloc(1, sizeof(*m))
		    : NULL;
	if (!m) {
		let_go(tp, g);
		return ENOMEM;
	}
	m->qp = qp;
	*first = TAILQ_EMPTY(&g->members);
	TAILQ_INSERT_TAIL(&g->members, m, link);
	tp->mcast->members++;
	qp->share->mcast++;
	qp->flags |= URN_QPF_MCAST;
	return 0;
}

bool
urn_mcast_group_of(const struct urn_tp *tp, const struct urn_qp *qp, uint8_t gid[16])
{
	const struct urn_mcast_group *g;

	for (unsigned int b = 0; tp->mcast && b < BUCKETS; b++)
		LIST_FOREACH(g, &tp->mcast->bucket[b], link)
			if (member(g, qp)) {
				memcpy(gid, g->gid, 16);
				return true;
			}
	return false;
}

int
urn_mcast_detach(struct urn_tp *tp, struct urn_qp *qp, const uint8_t gid[16], bool *last)
{
	struct urn_mcast_group *g = find(tp, gid);
	struct urn_mcast_member *m = g ? member(g, qp) : NULL;
	uint8_t other[16];

	*last = false;
	if (!m)
		return EINVAL;
	TAILQ_REMOVE(&g->members, m, link);
	free(m);
	tp->mcast->members--;
	qp->share->mcast--;
	*last = TAILQ_EMPTY(&g->members);
	let_go(tp, g);
	if (!urn_mcast_group_of(tp, qp, other))
		qp->flags &= ~(uint32_t)URN_QPF_MCAST;
	return 0;
}

void
urn_mcast_detach_all(struct urn_tp *tp, struct urn_qp *qp)
{
	uint8_t gid[16];
	bool last;

	while (urn_mcast_group_of(tp, qp, gid))
		urn_mcast_detach(tp, qp, gid, &last);
}

int
urn_mcast_tell(struct urn_tp *tp, const uint8_t gid[16], unsigned int engine, bool has)
{
	struct urn_mcast_group *g = has ? find_or_make(tp, gid) : find(tp, gid);

	if (!g)
		return has ? ENOMEM : 0;
	if (has)
		g->engines |= 1u << engine;
	else
		g->engines &= ~(1u << engine);
	let_go(tp, g);
	return 0;
}

/* ---- copies */

/* True when the turn, and the client, may have one more copy; it counts. */
static bool
may_copy(struct urn_tp *tp, struct urn_tp_share *share)
{
	struct urn_mcast *mc = tp->mcast;

	if (mc->turn != tp->turn) {
		mc->turn = tp->turn;
		mc->copies = 0;
	}
	if (share->mcast_turn != tp->turn) {
		share->mcast_turn = tp->turn;
		share->mcast_copies = 0;
	}
	if (share->mcast_copies >= URN_MCAST_COPIES - mc->copies)
		return false;
	mc->copies++;
	share->mcast_copies++;
	return true;
}

/* Copy a frame for a client. returns: NULL when there may be, or can be, no copy (counted) */
static struct rte_mbuf *
copy_for(struct urn_tp *tp, struct rte_mbuf *m, struct urn_tp_share *share)
{
	struct rte_mbuf *c = may_copy(tp, share) ? urn_tp_buffer(tp) : NULL;

	if (c && m->data_len > c->buf_len - RTE_PKTMBUF_HEADROOM) {
		tp->fresh[tp->fresh_n++] = c;
		c = NULL;
	}
	if (!c) {
		URN_COUNT(tp, DROP_MCAST_COPY);
		return NULL;
	}
	urn_tp_buffer_set(c, m->data_len);
	memcpy(urn_pkt_fresh(c), rte_pktmbuf_mtod(m, const void *), m->data_len);
	*urn_pkt(c) = *urn_pkt(m);
	URN_COUNT(tp, MCAST_COPIES);
	return c;
}

/* Hand copies to the other engines that have queue pairs in the group. */
static void
to_engines(struct urn_tp *tp, const struct urn_mcast_group *g, struct rte_mbuf *m,
	   struct urn_tp_share *share)
{
	for (uint32_t left = g->engines; left; left &= left - 1) {
		struct rte_mbuf *c;

		if (tp->handover_n == URN_TP_OUT) {
			URN_COUNT(tp, DROP_HANDOVER);
			return;
		}
		c = copy_for(tp, m, share);
		if (!c)
			return;
		urn_pkt(c)->op = &urn_opcodes[URN_UD_SEND_ONLY];
		urn_pkt(c)->dqpn = (uint32_t)__builtin_ctz(left) << URN_TP_ENGINE_SHIFT;
		tp->handover[tp->handover_n++] = c;
	}
}

/* Give a datagram to one queue pair; takes m. */
static void
give(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	urn_pkt(m)->qp = qp;
	urn_qp_service(tp, qp)->accept(tp, qp, m);
	if (tp->ops_bytes >= URN_TP_OPS_BYTES || urn_tp_burst_full(tp))
		urn_tp_execute(tp);
}

/* True when a queue pair takes datagrams now, and did not send this one. sender: 0: another node's
 */
static bool
takes(const struct urn_qp *qp, uint32_t sender)
{
	return qp->state >= URN_QPS_RTR && qp->state != URN_QPS_ERR && qp->qpn != sender &&
	       !(qp->flags & (URN_QPF_DYING | URN_QPF_REFUSED));
}

/* Give a datagram to all queue pairs of this engine in a group: the last one gets the datagram
 * itself. */
static void
to_members(struct urn_tp *tp, struct urn_mcast_group *g, struct rte_mbuf *m, uint32_t sender)
{
	struct urn_mcast_member *i = TAILQ_FIRST(&g->members);
	struct urn_qp *last = NULL;

	if (i) { /* each gets its turn to be first while copies are left */
		TAILQ_REMOVE(&g->members, i, link);
		TAILQ_INSERT_TAIL(&g->members, i, link);
	}
	TAILQ_FOREACH(i, &g->members, link) {
		struct rte_mbuf *c;

		if (!takes(i->qp, sender))
			continue;
		c = last ? copy_for(tp, m, last->share) : NULL;
		if (c)
			give(tp, last, c);
		last = i->qp;
	}
	if (last)
		give(tp, last, m);
	else
		urn_tp_drop(tp, m, URN_C_DROP_MCAST_GROUP);
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

/* checked: the frame is a copy, of this or another engine's: it goes to this engine's queue pairs
 * only. */
__attribute__((cold)) void
urn_mcast_rx(struct urn_tp *tp, struct rte_mbuf *m, bool checked)
{
	const struct urn_pkt *p = urn_pkt(m);
	struct urn_mcast_group *g;
	uint8_t gid[16];
	bool ours;

	if (!read_group(rte_pktmbuf_mtod(m, const uint8_t *), p->l3_off, p->ipv6, gid)) {
		urn_tp_drop(tp, m, URN_C_DROP_ADDRESS);
		return;
	}
	g = find(tp, gid);
	ours = is_ours(tp, m);
	if (!g)
		urn_tp_drop(tp, m, URN_C_DROP_MCAST_GROUP);
	else if (!checked && ours) /* no switch sends a frame back to where it came from */
		urn_tp_drop(tp, m, URN_C_DROP_ADDRESS);
	else if (!checked && tp->cfg.icrc && !urn_wire_icrc_ok(m))
		urn_tp_drop(tp, m, URN_C_DROP_ICRC);
	else if (!urn_pkey_match(p->pkey, URN_PKEY_DEFAULT))
		urn_tp_drop(tp, m, URN_C_DROP_PKEY);
	else if (p->dqpn != URN_QPN_MULTICAST)
		urn_tp_drop(tp, m, URN_C_DROP_NO_QP);
	else if (!(p->op->flags & URN_OPF_UD))
		urn_tp_drop(tp, m, URN_C_DROP_QP_TYPE);
	else {
		if (!checked)
			to_engines(tp, g, m, &tp->nobodys);
		to_members(tp, g, m, ours ? sender_of(m) : 0);
	}
}

/* ---- sent */

__attribute__((cold)) void
urn_mcast_sent(struct urn_tp *tp, const struct urn_txd *d)
{
	const struct urn_mcast_member *first;
	struct urn_mcast_group *g;
	struct rte_mbuf *c;
	uint8_t gid[16];

	if (!tp->mcast ||
	    !read_group(rte_pktmbuf_mtod(d->m, const uint8_t *), URN_ETH_BYTES, d->ipv6, gid))
		return;
	g = find(tp, gid);
	if (!g)
		return;
	to_engines(tp, g, d->m, d->qp->share);
	first = TAILQ_FIRST(&g->members);
	if (!first || (first->qp == d->qp && !TAILQ_NEXT(first, link)) || tp->loop_n == URN_TP_LOOP)
		return;
	c = copy_for(tp, d->m, d->qp->share);
	if (c)
		tp->loop[tp->loop_n++] = c;
}
