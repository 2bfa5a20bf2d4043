/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow_net.h"

#include "common/test_eal.h"

#include "base/rnd.h"
#include "transport/sched.h"
#include "wire/ecn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint32_t starts; /* starts of nodes so far, of all nets */

/* ---- the user of flows */

static uint8_t
pattern(uint32_t tag, uint32_t i)
{
	return (uint8_t)(tag * 31 + i * 7 + (i >> 8));
}

static void
fill(uint8_t *data, uint32_t len, uint32_t tag)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = pattern(tag, i);
	if (len >= 4)
		memcpy(data, &tag, 4);
}

static bool
is_filled(const uint8_t *data, uint32_t len, uint32_t tag)
{
	for (uint32_t i = 4; i < len; i++)
		if (data[i] != pattern(tag, i))
			return false;
	return true;
}

static uint8_t
judge(const struct flow_node *node, uint64_t qid)
{
	uint32_t slot = urn_msg_qid_slot(qid);

	if (urn_msg_qid_is_named(qid))
		slot = (uint32_t)qid;
	if (slot >= FLOW_NET_QUEUES)
		return URN_MSG_NO_QUEUE;
	return node->refuse[slot] ? node->refuse[slot] : URN_MSG_DONE;
}

static uint8_t
deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, const uint8_t *data, uint32_t len)
{
	struct flow_node *node = tp->cfg.flow_ctx;
	uint8_t code = judge(node, qid);
	struct flow_got *g = &node->got[node->got_n];

	if (code != URN_MSG_DONE)
		return code;
	assert_true(node->got_n < FLOW_NET_LOG);
	*g = (struct flow_got){.qid = qid, .src_qid = from->qid, .len = len, .own = from->own};
	memcpy(g->node, from->node, 16);
	if (len >= 4)
		memcpy(&g->tag, data, 4);
	g->whole = is_filled(data, len, g->tag);
	node->got_n++;
	return URN_MSG_DONE;
}

static uint8_t
admit(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, uint32_t len)
{
	struct flow_node *node = tp->cfg.flow_ctx;

	(void)from;
	(void)len;
	return node->admit ? node->admit : judge(node, qid);
}

static void
answered(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code)
{
	struct flow_sent *s = (struct flow_sent *)m;

	assert_null(m->strand);
	s->code = code;
	s->answers++;
	if (s->then)
		s->then(tp, s);
}

static bool
gather(struct urn_tp *tp, const struct urn_flow_msg *m, uint32_t off, uint32_t bytes,
       struct urn_flow_slice *to)
{
	struct flow_sent *s = (struct flow_sent *)(uintptr_t)m;

	assert_true(s->m.strand && s->head && !s->answers);
	assert_true(bytes > 0 && m->head + off + bytes <= m->len);
	s->gathers++;
	if (!s->gone || bytes > 1)
		urn_flow_slice_put(tp, to, s->data + m->head + off, s->gone ? bytes / 2 : bytes);
	return !s->gone;
}

static const struct urn_flow_user user = {
	.deliver = deliver, .admit = admit, .answered = answered, .gather = gather};

/* ---- nodes */

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	struct flow_node *node = ctx;

	memcpy(mac, (const uint8_t[]){2, 0, 0, 0, 0, gid[15]}, 6);
	return node->neigh;
}

static struct urn_ah *
no_ah(void *ctx, uint32_t id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

static void
open_node(struct flow_net *n, unsigned int i)
{
	struct flow_node *node = &n->node[i];
	struct urn_memx_config x = {.pending = 64};
	struct urn_tp_config c = {
		.pool = test_eal_pool(),
		.gids = 1,
		.mtu = 1024,
		.flow_mtu = n->flow_mtu[i],
		.icrc = true,
		.max_qp = 64,
		.work = n->work ? n->work : 4096,
		.window = 256,
		.kept = 64,
		.rto_floor = 1000000,
		.line = n->line,
		.delay_limit = n->delay_limit,
		.neigh = neigh,
		.neigh_ctx = node,
		.ah = no_ah,
		.flow_user = &user,
		.flow_ctx = node,
		.flow_epoch = 1700000000 + ++starts,
	};

	node->net = n;
	node->mem = urn_mem_create(10, 2);
	node->memx = urn_memx_create(&x);
	if (!node->got)
		node->got = calloc(FLOW_NET_LOG, sizeof(*node->got));
	assert_true(node->mem && node->memx && node->got);
	memcpy(node->mac, (const uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
	memset(node->gid, 0, 16);
	memset(node->gid + 10, 0xff, 2);
	memcpy(node->gid + 12, (const uint8_t[]){10, 0, 0, (uint8_t)(i + 1)}, 4);
	c.mem = node->mem;
	c.memx = node->memx;
	memcpy(c.mac, node->mac, 6);
	memcpy(c.gid[0], node->gid, 16);
	node->tp = urn_tp_create(&c, n->now);
	assert_non_null(node->tp);
}

static void
close_node(struct flow_node *node)
{
	urn_tp_destroy(node->tp);
	urn_memx_destroy(node->memx);
	urn_mem_destroy(node->mem);
}

void
flow_net_open(struct flow_net *n, unsigned int nodes, uint64_t seed)
{
	n->nodes = nodes;
	n->seed = seed;
	n->now = 100000000000ull;
	n->delay = n->delay ? n->delay : 2000;
	for (unsigned int i = 0; i < nodes; i++) {
		open_node(n, i);
		n->node[i].tp->flows->born -= 2 * URN_FLOW_YOUNG_NS;
	}
}

void
flow_net_close(struct flow_net *n)
{
	for (unsigned int i = 0; i < n->wire_n; i++)
		rte_pktmbuf_free(n->wire[i].m);
	for (unsigned int i = 0; i < n->nodes; i++) {
		close_node(&n->node[i]);
		free(n->node[i].got);
	}
}

struct flow_net *
flow_net_new(unsigned int nodes, uint64_t seed)
{
	struct flow_net *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	flow_net_open(n, nodes, seed);
	return n;
}

void
flow_net_end(struct flow_net *n)
{
	flow_net_close(n);
	free(n);
}

uint64_t
flow_net_count(const struct flow_net *n, unsigned int node, enum urn_counter c)
{
	return n->node[node].tp->c.v[c];
}

void
flow_net_restart(struct flow_net *n, unsigned int i)
{
	close_node(&n->node[i]);
	open_node(n, i);
}

/* ---- the wire */

static bool
chance(struct flow_net *n, uint32_t percent)
{
	return percent && urn_rnd_next(&n->seed) % 100 < percent;
}

static void
put_wire(struct flow_net *n, struct rte_mbuf *m, unsigned int to)
{
	uint64_t more = chance(n, n->late) ? urn_rnd_next(&n->seed) % 50000 : 0;

	if (rte_pktmbuf_mtod(m, uint8_t *)[42] == URN_FLOW_ACK && chance(n, n->late_acks))
		more = urn_rnd_next(&n->seed) % 1000000;

	if (n->wire_n == FLOW_NET_WIRE) {
		rte_pktmbuf_free(m);
		return;
	}
	n->wire[n->wire_n++] = (struct flow_frame){.m = m, .due = n->now + n->delay + more, .to = to};
}

void
flow_net_inject(struct flow_net *n, unsigned int to, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	put_wire(n, m, to);
}

static struct rte_mbuf *
copy_of(const struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(c);
	memcpy(rte_pktmbuf_append(c, m->data_len), rte_pktmbuf_mtod(m, const void *), m->data_len);
	return c;
}

/* A node sent a frame: it goes to the node with its MAC address. */
static void
sent_by(struct flow_net *n, struct rte_mbuf *m)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *), op = f[42];
	unsigned int to = f[5] - 1u;

	n->frames++;
	if (n->watch)
		n->watch(n->watch_ctx, m);
	if (to >= n->nodes || n->cut || (n->carries && m->data_len > n->carries) ||
	    (n->lose_opcode && op == n->lose_opcode) || chance(n, n->lose)) {
		rte_pktmbuf_free(m);
		return;
	}
	if (n->mark && op == URN_FLOW_DATA)
		urn_ecn_mark(f, m->data_len);
	if (chance(n, n->twice))
		put_wire(n, copy_of(m), to);
	put_wire(n, m, to);
}

static void
arrive(struct flow_net *n)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n->wire_n; i++) {
		struct flow_frame *w = &n->wire[i];

		if (w->due > n->now)
			n->wire[kept++] = *w;
		else
			urn_tp_rx(n->node[w->to].tp, &w->m, 1, false);
	}
	n->wire_n = kept;
}

/* Answer packets for engines that the adapter has not, as an engine does (engine/exchange.c). */
static void
hand_over(struct urn_tp *tp)
{
	for (unsigned int i = 0; i < tp->handover_n; i++)
		urn_flow_no_engine(tp, tp->handover[i]);
	tp->handover_n = 0;
}

static void
step(struct flow_net *n)
{
	n->now += FLOW_NET_STEP;
	arrive(n);
	for (unsigned int i = 0; i < n->nodes; i++) {
		struct urn_tp *tp = n->node[i].tp;

		hand_over(tp);
		urn_tp_turn(tp, n->now);
		hand_over(tp);
		if (urn_sched_any(&tp->sched))
			urn_tp_tx(tp);
		if (n->hold)
			n->hold(tp);
		for (unsigned int j = 0; j < tp->tx_n; j++)
			sent_by(n, tp->tx[j]);
		tp->tx_n = 0;
	}
}

void
flow_net_run(struct flow_net *n, uint64_t ns)
{
	for (uint64_t end = n->now + ns; n->now < end;)
		step(n);
}

void
flow_net_until(struct flow_net *n, const struct flow_sent *s, uint64_t ns)
{
	for (uint64_t end = n->now + ns; n->now < end && !s->answers;)
		step(n);
}

/* ---- messages */

uint64_t
flow_qid(unsigned int slot)
{
	return URN_MSG_QID(7, 0, slot);
}

uint8_t
flow_send_as(struct flow_net *n, unsigned int from, const uint8_t gid[16],
	     struct urn_tp_share *owner, uint32_t len, uint32_t tag, struct flow_sent *s)
{
	memset(s, 0, sizeof(*s));
	s->data = malloc(len + 4);
	assert_non_null(s->data);
	fill(s->data, len, tag);
	s->m.data = s->data;
	s->m.len = len;
	s->m.qid = flow_qid(0);
	s->m.src_qid = URN_MSG_QID(9, 0, tag & 0xffff);
	s->m.owner = owner;
	return urn_flow_send(n->node[from].tp, gid, &s->m);
}

uint8_t
flow_send_head(struct flow_net *n, unsigned int from, unsigned int to, uint64_t qid, uint32_t len,
	       uint32_t tag, uint8_t head, struct flow_sent *s)
{
	memset(s, 0, sizeof(*s));
	s->data = malloc(len + 4);
	assert_non_null(s->data);
	fill(s->data, len, tag);
	s->m.data = s->data;
	if (head) {
		s->head = malloc(head);
		assert_non_null(s->head);
		memcpy(s->head, s->data, head);
		s->m.data = s->head;
	}
	s->m.owner = n->owner;
	s->m.head = head;
	s->m.len = len;
	s->m.qid = qid;
	s->m.src_qid = URN_MSG_QID(9, 0, tag & 0xffff);
	return urn_flow_send(n->node[from].tp, n->node[to].gid, &s->m);
}

uint8_t
flow_send(struct flow_net *n, unsigned int from, unsigned int to, uint64_t qid, uint32_t len,
	  uint32_t tag, struct flow_sent *s)
{
	return flow_send_head(n, from, to, qid, len, tag, 0, s);
}

void
flow_sent_free(struct flow_sent *s)
{
	free(s->data);
	free(s->head);
	s->data = NULL;
	s->head = NULL;
}
