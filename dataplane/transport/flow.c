/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: making, finding, forgetting; messages in and out of a flow. */
#include "transport/flow_rest.h"

#include "wire/ecn.h"

#include <stdlib.h>

#include <rte_mbuf_dyn.h>

static const struct urn_source_ops flow_ops;

/* ---- all flows */

int
urn_flows_init(struct urn_tp *tp)
{
	static const struct rte_mbuf_dynflag looped = {.name = "urnic_looped"};
	struct urn_flows *fl;
	int bit;

	if (!tp->cfg.flow_user)
		return 0;
	bit = rte_mbuf_dynflag_register(&looped);
	fl = calloc(1, sizeof(*fl));
	if (!fl || bit < 0) {
		free(fl);
		return -1;
	}
	fl->looped = RTE_BIT64(bit);
	fl->bucket = calloc(URN_FLOW_BUCKETS, sizeof(struct urn_flow *));
	fl->born = tp->now;
	fl->secret = tp->cfg.flow_secret;
	fl->strand_bucket = calloc(URN_FLOW_STRAND_BUCKETS, sizeof(struct urn_flow_strand *));
	TAILQ_INIT(&fl->whole);
	urn_flows_init_acks(fl);
	tp->flows = fl;
	return urn_flows_init_rests(fl) == 0 && fl->bucket && fl->strand_bucket ? 0 : -1;
}

uint32_t
urn_flow_count(const struct urn_tp *tp)
{
	return tp->flows ? __atomic_load_n(&tp->flows->n, __ATOMIC_RELAXED) : 0;
}

static struct urn_flow **
bucket_of(const struct urn_tp *tp, const uint8_t gid[16], uint8_t key)
{
	uint32_t words[5];

	memcpy(words, gid, 16);
	words[4] = key;
	return &tp->flows->bucket[rte_jhash_32b(words, 5, tp->cfg.hash_seed) & (URN_FLOW_BUCKETS - 1)];
}

static bool
is_key(const struct urn_flow *f, const uint8_t gid[16], uint8_t key)
{
	return f->key == key && memcmp(f->gid, gid, 16) == 0;
}

URN_FAST struct urn_flow *
urn_flow_find(struct urn_tp *tp, const uint8_t gid[16], uint8_t key)
{
	struct urn_flow *f = tp->flows->found; /* packets of one flow come in a row */

	if (f && is_key(f, gid, key))
		return f;
	f = *bucket_of(tp, gid, key);
	while (f && !is_key(f, gid, key))
		f = f->hash_next;
	if (f)
		tp->flows->found = f;
	return f;
}

struct urn_flow *
urn_flow_make(struct urn_tp *tp, const uint8_t gid[16], uint8_t key, uint16_t flags)
{
	struct urn_flows *fl = tp->flows;
	struct urn_flow **bucket = bucket_of(tp, gid, key), *f = NULL;

	if (fl->n < URN_FLOWS_MAX && (!(flags & URN_FLOWF_RX) || fl->rx < URN_FLOWS_RX_MAX))
		f = malloc(sizeof(*f)); /* aligned memory costs 48 bytes more */
	if (!f) {
		URN_COUNT(tp, FLOW_NONE);
		return NULL;
	}
	memset(f, 0, sizeof(*f));
	f->user.source.share = &tp->nobodys;
	f->user.source.kind = URN_SOURCE_OPS;
	f->user.ops = &flow_ops;
	memcpy(f->gid, gid, 16);
	f->key = key;
	f->flags = flags;
	f->tx.timer.kind = URN_TIMER_FLOW;
	f->tx.timeout = URN_FLOW_TIMEOUT;
	f->tx.retry_cnt = URN_FLOW_RETRIES;
	TAILQ_INIT(&f->ready);
	TAILQ_INIT(&f->failing);
	urn_flow_queue_init(&f->active);
	SLIST_INIT(&f->wholes);
	f->hash_next = *bucket;
	*bucket = f;
	fl->rx += (flags & URN_FLOWF_RX) != 0;
	__atomic_store_n(&fl->n, fl->n + 1, __ATOMIC_RELAXED);
	return f;
}

void
urn_flow_doubt(struct urn_tp *tp, struct urn_flow *f, bool doubted)
{
	if (doubted == ((f->flags & URN_FLOWF_DOUBTED) != 0))
		return;
	f->flags ^= URN_FLOWF_DOUBTED;
	if (doubted)
		tp->flows->doubted++;
	else
		tp->flows->doubted--;
}

/* Give up the packets, and strands without an owner, of a flow that ends with its transport. Owners
 * may have gone. */
static void
drop_rest(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flow_strand *l, *next;
	struct urn_work *w;

	while ((w = f->tx.head)) {
		urn_psn_tx_pop(&f->tx);
		if (w->flow.strand && (w->flow.strand->user.source.flags & URN_STRAND_ORPHAN))
			urn_flow_strand_done(tp, f, w);
		urn_flow_work_put(tp, w);
	}
	TAILQ_CONCAT(&f->ready, &f->failing, ready);
	for (l = TAILQ_FIRST(&f->ready); l; l = next) {
		next = TAILQ_NEXT(l, ready);
		if (l->user.source.flags & URN_STRAND_ORPHAN)
			urn_flow_strand_free(tp, l);
	}
}

/* Free a flow that is in no bucket any more. */
static void
destroy(struct urn_tp *tp, struct urn_flow *f)
{
	drop_rest(tp, f);
	urn_flow_strand_drop_empty(tp, f);
	urn_flow_forget_rx(tp, f);
	urn_congestion_end_source(tp, &f->congestion);
	urn_wheel_stop(&tp->wheel, &f->tx.timer);
	urn_sched_remove(&tp->sched, &f->user.source);
	if (f->flags & URN_FLOWF_TX) {
		urn_peer_untime(tp, &f->tx);
		urn_peer_put(&tp->peers, f->tx.peer);
	}
	if (tp->flows->last == f)
		tp->flows->last = NULL;
	if (tp->flows->found == f)
		tp->flows->found = NULL;
	urn_flow_doubt(tp, f, false);
	urn_flow_unmake(tp->flows, f);
	tp->flows->rx -= (f->flags & URN_FLOWF_RX) != 0;
	__atomic_store_n(&tp->flows->n, tp->flows->n - 1, __ATOMIC_RELAXED);
	urn_flows_trim_strands(tp->flows);
	free(f);
}

void
urn_flow_free(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flow **at = bucket_of(tp, f->gid, f->key);

	while (*at != f)
		at = &(*at)->hash_next;
	*at = f->hash_next;
	destroy(tp, f);
}

void
urn_flows_free(struct urn_tp *tp)
{
	struct urn_flows *fl = tp->flows;
	struct urn_flow *f;

	if (!fl)
		return;
	for (uint32_t i = 0; fl->bucket && i < URN_FLOW_BUCKETS; i++)
		while ((f = fl->bucket[i])) {
			fl->bucket[i] = f->hash_next;
			destroy(tp, f);
		}
	urn_flows_free_kept(fl);
	urn_flows_free_rests(tp);
	urn_flows_free_strands(fl);
	urn_flows_free_refusals(fl);
	free(fl->bucket);
	free(fl);
	tp->flows = NULL;
}

/* ---- queues of messages */

URN_FAST void
urn_flow_put(struct urn_flow_queue *q, struct urn_flow_msg *m, enum urn_flow_msg_state state)
{
	m->state = state;
	m->next = NULL;
	m->pprev = q->tail;
	*q->tail = m;
	q->tail = &m->next;
}

URN_FAST void
urn_flow_take(struct urn_flow_queue *q, struct urn_flow_msg *m)
{
	*m->pprev = m->next;
	if (m->next)
		m->next->pprev = m->pprev;
	else
		q->tail = m->pprev;
}

/* ---- sending */

int
urn_flow_own_index(const struct urn_tp *tp, const uint8_t gid[16])
{
	static const uint8_t none[16];
	int v4 = urn_gid_is_v4(gid), found = -1;
	bool link_local = gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;

	for (unsigned int i = 0; i < tp->cfg.gids; i++) {
		const uint8_t *own = tp->cfg.gid[i];

		if (memcmp(own, gid, 16) == 0)
			return (int)i;
		/*
		 * A configured address is behind the link-local one. The scope is the node's, so
		 * that the node answers from the address that was asked.
		 */
		if (memcmp(own, none, 16) != 0 && urn_gid_is_v4(own) == v4 &&
		    (found < 0 || !link_local))
			found = (int)i;
	}
	return found;
}

void
urn_flow_renew(struct urn_tp *tp, struct urn_flow *f)
{
	f->tx_epoch = (uint64_t)tp->cfg.flow_epoch << 32 | (uint32_t)++tp->flows->epochs;
	f->tx_start = 0;
	f->tx_born = 0;
	f->asks = 0;
	f->flags &= (uint16_t)~URN_FLOWF_UNSURE;
	f->tx_at = tp->now;
	f->out = f->lost = 0;
	f->gone_n = 0; /* the node forgets messages of the epoch before */
	for (struct urn_flow_msg *m = f->active.head; m; m = m->next)
		m->sent = 0; /* no part is in flight */
	urn_flow_mtu_renew(tp, f);
	urn_psn_tx_start(&f->tx, (uint32_t)f->tx_epoch & URN_PSN_MASK);
	urn_psn_progress(&f->tx);
	f->tx.early = 0;
}

/* Make the sending end of a flow. */
static void
make_tx(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_path path = {
		.tos = tp->dcqcn.line ? URN_ECN_ECT0 : URN_ECN_NONE,
		.ttl = 64,
	};

	path.sport = (uint16_t)(URN_ROCE_SPORT_MIN | (rte_jhash(f->gid, 16, f->key) & 0x3fff));
	memcpy(path.smac, tp->cfg.mac, 6);
	memcpy(path.dmac, tp->cfg.mac, 6);
	memcpy(path.sgid, urn_flow_own(tp, f), 16);
	memcpy(path.dgid, f->gid, 16);
	urn_tmpl_init(&f->tmpl, &path);
	if (memcmp(path.sgid, f->gid, 16) == 0)
		f->flags |= URN_FLOWF_LOOP | URN_FLOWF_MAC;
	f->tx.peer = urn_peer_get(&tp->peers, f->gid);
	f->flags |= URN_FLOWF_TX;
	if (!f->tx_epoch)
		urn_flow_renew(tp, f);
	else /* the flow was at rest, and its epoch goes on */
		urn_flow_mtu_renew(tp, f);
}

/* Bucket of an owner of messages, or of its user, for the bounds of flows. NULL: nobody's */
static unsigned int
bucket_of_owner(const void *who)
{
	uint64_t h = (uint64_t)(uintptr_t)who * 0x9e3779b97f4a7c15u;

	return (unsigned int)(h >> 52);
}
_Static_assert(URN_FLOW_MAKERS == 4096, "twelve bits of a hash");

/* True when an address is that of many nodes: multicast, or beyond it in IPv4. */
static bool
is_group(const uint8_t gid[16])
{
	return urn_gid_is_v4(gid) ? gid[12] >= 224 : gid[0] == 0xff;
}

/* The flow that leads to a queue's engine, made if needed. *code: set when NULL is returned */
static struct urn_flow *
flow_to(struct urn_tp *tp, const uint8_t gid[16], const struct urn_flow_msg *m, uint8_t *code)
{
	uint8_t to = urn_flow_key_to(m->qid);
	struct urn_flow *f = tp->flows->last;
	int own;

	if (f && (f->key & ~URN_FLOW_KEY_OWN) == to && memcmp(f->gid, gid, 16) == 0)
		return f;
	own = urn_flow_own_index(tp, gid);
	if (own < 0) {
		*code = URN_MSG_NO_NODE;
		return NULL;
	}
	to |= (uint8_t)(own << URN_FLOW_KEY_OWN_SHIFT);
	f = urn_flow_find(tp, gid, to);
	if (unlikely(!f && is_group(gid))) { /* frames would go to many nodes */
		*code = URN_MSG_NO_NODE;
		return NULL;
	}
	if (!f && urn_flow_restore(tp, gid, to, &f) && !f)
		f = urn_flow_make_for(tp, gid, to, bucket_of_owner(m->owner),
				      bucket_of_owner(m->owner ? urn_share_user(m->owner) : NULL));
	if (!f) {
		*code = URN_MSG_BUSY;
		return NULL;
	}
	if (!(f->flags & URN_FLOWF_TX))
		make_tx(tp, f);
	tp->flows->last = f;
	return f;
}

/*
 * The strand got a message. While sources are served, the strand waits for messages of others among
 * them, so that they share packets; with a packet's worth of messages it need not wait.
 */
static void
gather(struct urn_tp *tp, struct urn_flow_strand *l)
{
	if (l->gathered_n < URN_FLOW_SEGMENTS)
		l->gathered_n++;
	if (!tp->gathers || l->gathered_n == URN_FLOW_SEGMENTS) {
		urn_sched_add(&tp->sched, &l->user.source);
		return;
	}
	urn_flow_gather(tp, l);
}

URN_FAST uint8_t
urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m)
{
	uint8_t code = URN_MSG_BUSY;
	struct urn_flow_strand *l;
	struct urn_flow *f;

	if (unlikely(!tp->flows || m->len > URN_MSG_MAX))
		return URN_MSG_BAD_DOORBELL;
	f = flow_to(tp, gid, m, &code);
	if (unlikely(!f))
		return code;
	l = urn_flow_strand_get(tp, f, m->owner);
	if (unlikely(!l))
		return URN_MSG_BUSY;
	urn_flow_renew_old(tp, f);
	m->sent = 0;
	m->out = 0;
	m->code = 0;
	m->strand = l;
	l->msgs++;
	urn_flow_queue(m);
	gather(tp, l);
	return URN_MSG_PENDING;
}

URN_FAST void
urn_flow_answer(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code)
{
	struct urn_flow_strand *l = m->strand;

	m->strand = NULL;
	if (!--l->msgs)
		urn_flow_strand_settle(tp, l);
	if (likely(code == URN_MSG_DONE))
		URN_COUNT(tp, FLOW_MESSAGES_TX);
	urn_flow_user(tp)->answered(tp, m, code);
}

/* ---- letting go of messages */

/* The segment of a message in its packet becomes void. */
static void
void_segment(struct urn_work *w, const struct urn_flow_msg *m)
{
	struct urn_flow_msg **at = &w->flow.msg;

	for (unsigned int i = 0; i < w->flow.segs; i++) {
		if (w->flow.voids & 1u << i)
			continue;
		if (*at == m) {
			*at = m->next;
			w->flow.voids |= (uint16_t)(1u << i);
			return;
		}
		at = &(*at)->next;
	}
}

/* A long message is let go before it was sent whole: its packets tell the node that no part
 * follows. */
static void
void_parts(struct urn_flow_strand *l, const struct urn_flow_msg *m)
{
	struct urn_flow *f = l->flow;

	/* Parts in flight: at most a window of packets. */
	for (struct urn_work *w = m->out ? f->tx.head : NULL; w; w = w->next) {
		if (w->flow.msg == m && w->flow.part) {
			w->flow.msg = NULL;
			w->flow.voids = 1;
			w->flow.off = m->id;
		}
	}
	/* All packets of parts may have come: one more says that no part follows. */
	if (m->state == URN_FLOW_MSG_ACTIVE && m->sent) {
		f->gone[f->gone_n++] = m->id;
		l->gone = 1;
	}
}

URN_FAST bool
urn_flow_may_grow(const struct urn_flow_msg *m, uint32_t bytes)
{
	return m->strand && m->state == URN_FLOW_MSG_QUEUED && !m->head &&
	       !urn_flow_strand_fails(m->strand) &&
	       m->len + bytes <= URN_FLOW_MTU_MIN - sizeof(struct urn_flow_seg);
}

void
urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m)
{
	struct urn_flow_strand *l = m->strand;
	struct urn_flow *f;

	if (!l)
		return;
	f = l->flow;
	if (m->state == URN_FLOW_MSG_SENT)
		void_segment(m->work, m);
	else
		void_parts(l, m);
	if (m->state != URN_FLOW_MSG_SENT && m->state != URN_FLOW_MSG_PARTS)
		urn_flow_unqueue(m);
	m->strand = NULL;
	l->msgs--;
	urn_flow_strand_settle(tp, l);
	urn_flow_wake(tp, f); /* another strand may have waited for the turn of this one */
	/* A flow with messages that could not be sent was due, and was kept for them alone. */
	if (urn_psn_tx_idle(&f->tx) && !urn_flow_has_work(f) && !urn_timer_started(&f->tx.timer))
		urn_flow_age(tp, f);
}

/* ---- the schedule */

/* The flow's time has come: its strands have their turns. The flow has none of its own. */
static void
due(struct urn_tp *tp, struct urn_source *src)
{
	urn_flow_wake(tp, urn_flow_of(src));
}

static URN_FAST bool
serve(struct urn_tp *tp, struct urn_source *src)
{
	due(tp, src);
	return false;
}

static const struct urn_source_ops flow_ops = {.serve = serve, .due = due};
