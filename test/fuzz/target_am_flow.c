/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of remote memory access over real flows: two nodes, each with endpoints of two owners,
 * and a wire between them that loses, repeats, reorders and changes frames. One input is a course
 * of steps: a byte for the step, then its numbers. Messages of both owners share frames; one
 * owner's endpoints close, lose their memory, and are scribbled over, while the other's keep the
 * rules. Nothing outside of the memory that endpoints offer is written, each command has one event,
 * and in the end nothing is left.
 */
#include "fuzz.h"

#include "am/tagged.h"
#include "common/test_eal.h"
#include "msg/msg.h"
#include "transport/flow_priv.h"

#include <stdlib.h>
#include <string.h>

enum {
	NODES = 2,
	ENDS = 3, /* endpoints of a node: 0 of an owner that keeps the rules, 1 and 2 of another; 1
		     is scribbled over */
	MEM = 8192,
	GUARD = 128,
	GUARD_BYTE = 0xa5,
	ENTRIES = 8,
	RANGES = 4,
	FRAMES = 128, /* frames on the wire to a node */
	STEPS = 300,
	FRAME = 1200,
	HEADERS = 42, /* bytes before the BTH */
	AGED_S = 100,
};

struct flow_end {
	struct urn_am_ep *ep;
	struct urn_abi_am_ep *regs;
	uint8_t *mem; /* MEM bytes between two guards */
	uint32_t lkey, posted, read;
	uint64_t key;
};

struct flow_node {
	uint8_t gid[16], mac[6];
	struct urn_tp *tp;
	struct urn_msg_regs *regs;
	struct urn_am *am;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct urn_tp_share share[2]; /* owners */
	uint32_t pd;
	struct flow_end end[ENDS];
	struct rte_mbuf *wire[FRAMES]; /* frames to this node; owner */
	unsigned int wire_n;
	bool open[STEPS * 4]; /* commands of endpoint 0 that have no event yet */
	int neigh;	      /* answer to who asks for an address */
};

static struct world {
	struct flow_node node[NODES];
	uint64_t now;
} w;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_eal();
	return 0;
}

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	const struct flow_node *n = ctx;

	memcpy(mac, memcmp(gid, w.node[0].gid, 16) == 0 ? w.node[0].mac : w.node[1].mac, 6);
	return n->neigh;
}

static struct urn_ah *
no_ah(void *ctx, uint32_t id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

/* ---- endpoints */

static void
map_end(struct flow_node *n, struct flow_end *e)
{
	struct urn_am_region_config c = {
		.access = URN_AM_ACCESS_ALL, .n = 2, .random = w.now << 20};

	fuzz_check(urn_mem_reg_mr(n->mem, n->pd, e->mem, MEM, (uintptr_t)e->mem,
				  URN_ACCESS_LOCAL_WRITE, &e->lkey) == 0);
	for (unsigned int k = 0; k < 2; k++) /* a gap that no peer may write */
		urn_am_ranges(e->regs, ENTRIES)[k] =
			(struct urn_abi_am_range){.addr = (uintptr_t)e->mem + k * (MEM / 2 + GUARD),
						  .len = MEM / 2 - GUARD * k,
						  .lkey = e->lkey};
	fuzz_check(urn_am_region_add(n->tp, e->ep, &c) == 0);
	e->key = c.key;
}

static void
unmap_end(struct flow_node *n, struct flow_end *e)
{
	struct urn_region *region;

	if (!e->lkey)
		return;
	fuzz_check(urn_mem_kill_mr(n->mem, e->lkey, &region) == 0);
	urn_mem_free_mr(n->mem, region);
	e->lkey = 0;
}

static void
open_end(struct flow_node *n, unsigned int i)
{
	struct flow_end *e = &n->end[i];
	struct urn_am_config cfg = {.share = &n->share[i != 0],
				    .db = i,
				    .entries = ENTRIES,
				    .ranges = RANGES,
				    .pd = n->pd,
				    .channel_fd = -1};
	size_t bytes = RTE_ALIGN_CEIL(urn_am_ep_bytes(ENTRIES, RANGES), 64);

	memset(e, 0, sizeof(*e));
	cfg.regs = e->regs = aligned_alloc(64, bytes);
	e->mem = malloc(MEM + 2 * GUARD);
	fuzz_check(e->regs && e->mem);
	memset(e->regs, 0, bytes);
	memset(e->mem, GUARD_BYTE, MEM + 2 * GUARD);
	e->mem += GUARD;
	fuzz_check(urn_am_ep_open(n->am, &cfg, &e->ep) == 0);
	map_end(n, e);
}

static void
check_guard(const uint8_t *at)
{
	for (unsigned int k = 0; k < GUARD; k++)
		fuzz_check(at[k] == GUARD_BYTE);
}

static void
close_end(struct flow_node *n, unsigned int i)
{
	struct flow_end *e = &n->end[i];

	fuzz_check(urn_am_ep_end(n->tp, urn_am_ep_source(e->ep)));
	check_guard(e->mem - GUARD);
	check_guard(e->mem + MEM);
	if (i == 0) /* the others read into their gaps, perhaps */
		check_guard(e->mem + MEM / 2);
	unmap_end(n, e);
	free(e->mem - GUARD);
	free(e->regs);
	e->ep = NULL;
}

static void
rung(struct flow_node *n, unsigned int i)
{
	urn_am_ep_ops.rung(n->tp, urn_am_ep_source(n->end[i].ep));
}

/* A program issues an operation that makes sense, when there is room. */
static void
command(struct fuzz_in *in, struct flow_node *n, unsigned int i)
{
	struct flow_end *e = &n->end[i];
	struct urn_abi_am_cmd *c = urn_am_cmds(e->regs) + e->posted % ENTRIES;
	uint8_t how = fuzz_u8(in), where = fuzz_u8(in);
	struct flow_node *to = &w.node[where & 1];
	const struct flow_end *t = &to->end[(where >> 1 & 3) % ENDS];
	bool atomic = (how & 0xc0) == 0xc0;

	if (e->posted - e->read == ENTRIES || e->posted >= RTE_DIM(n->open))
		return;
	*c = (struct urn_abi_am_cmd){.op = atomic ? URN_AM_FETCH_ADD + how % 3 : 1 + (how & 1),
				     .way = atomic ? URN_AM_AUTO : how >> 1 & 3,
				     .flags = how >> 5 & 1,
				     .len = atomic ? 4u << (how & 1) : 1u + fuzz_u16(in) % 4000u,
				     .id = e->posted};
	if (c->op == URN_AM_WRITE && c->way == URN_AM_PIPELINED)
		c->every = how >> 3 & 3 ? (uint8_t)(1 + (how >> 3 & 3)) : URN_AM_EVERY_TRANSFER;
	c->qid = urn_am_number(to->am, t->ep->slot);
	memcpy(c->node, to->gid, 16);
	c->remote = (uintptr_t)t->mem + (atomic ? 8u * fuzz_u8(in) : fuzz_u16(in) % MEM);
	c->key = where & 128 ? fuzz_u8(in) : t->key;
	/* Local bytes of a read lie below the gap. */
	c->local = (uintptr_t)e->mem + fuzz_u8(in) % 64;
	c->lkey = where & 64 ? 0 : e->lkey;
	urn_am_operands(e->regs, ENTRIES)[e->posted % ENTRIES] =
		(struct urn_abi_am_operand){.value = how, .compare = how >> 3};
	if (i == 0)
		n->open[e->posted] = true;
	atomic_store(&e->regs->client.commands, ++e->posted);
	rung(n, i);
}

static void
read_events(struct flow_node *n)
{
	struct flow_end *e = &n->end[0];
	uint32_t events = atomic_load(&e->regs->dp.events);

	fuzz_check(events - e->read <= e->posted - e->read);
	for (; e->read != events; e->read++) {
		const struct urn_abi_am_event *ev =
			&urn_am_events(e->regs, ENTRIES)[e->read % ENTRIES];

		fuzz_check((ev->code & ~URN_AM_MAY_BE_THERE) < URN_AM_CODES);
		fuzz_check(ev->id < e->posted && n->open[ev->id]); /* once */
		n->open[ev->id] = false;
	}
	atomic_store(&e->regs->client.events, events);
	rung(n, 0);
}

static void
scribble(struct fuzz_in *in, struct flow_node *n)
{
	uint8_t *at = (uint8_t *)n->end[1].regs, bytes = fuzz_u8(in) % 40;
	uint32_t off = fuzz_u16(in) % (uint32_t)(urn_am_ep_bytes(ENTRIES, RANGES) - 40);

	while (bytes--)
		at[off++] = fuzz_u8(in);
	rung(n, 1);
}

/* ---- the wire */

static struct rte_mbuf *
copy_of(const struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(test_eal_pool());

	fuzz_check(c);
	memcpy(rte_pktmbuf_append(c, m->data_len), rte_pktmbuf_mtod(m, const void *), m->data_len);
	return c;
}

static void
put_frame(struct flow_node *to, struct rte_mbuf *m)
{
	fuzz_check(m->pkt_len <= FRAME && m->data_len == m->pkt_len);
	if (to->wire_n == FRAMES) {
		rte_pktmbuf_free(m);
		return;
	}
	/* The frame that a flow keeps for repeats is not the frame on the wire. */
	to->wire[to->wire_n++] = copy_of(m);
	rte_pktmbuf_free(m);
}

static struct rte_mbuf *
take_frame(struct flow_node *to, unsigned int i)
{
	struct rte_mbuf *m = to->wire[i];

	memmove(to->wire + i, to->wire + i + 1, (--to->wire_n - i) * sizeof(to->wire[0]));
	return m;
}

static void
turn_node(struct flow_node *n)
{
	struct urn_tp *tp = n->tp;

	urn_tp_turn(tp, w.now);
	urn_tp_tx(tp);
	for (unsigned int i = 0; i < tp->tx_n; i++)
		put_frame(&w.node[n == &w.node[0]], tp->tx[i]);
	tp->tx_n = 0;
	while (tp->other_n)
		rte_pktmbuf_free(tp->other[--tp->other_n]);
	while (tp->handover_n)
		rte_pktmbuf_free(tp->handover[--tp->handover_n]);
	fuzz_check(n->am->outs <= ENDS * URN_AM_EP_OUTS && n->am->replies <= URN_AM_REPLIES);
}

static void
turn(uint64_t ns)
{
	w.now += ns;
	for (unsigned int i = 0; i < NODES; i++)
		turn_node(&w.node[i]);
}

/* Frames come to a node: the oldest or another, once or twice, as they are or changed. */
static void
deliver(struct fuzz_in *in, struct flow_node *to, uint8_t how)
{
	struct rte_mbuf *m;
	uint8_t *at;

	if (!to->wire_n)
		return;
	m = take_frame(to, how & 1 ? fuzz_u8(in) % to->wire_n : 0);
	if (how & 2 && to->wire_n < FRAMES)
		to->wire[to->wire_n++] = copy_of(m);
	at = rte_pktmbuf_mtod_offset(m, uint8_t *, HEADERS);
	for (unsigned int n = (how & 12) == 12 ? 1 + fuzz_u8(in) % 4 : 0; n; n--) {
		uint16_t off = fuzz_u16(in);

		at[off % (m->data_len - HEADERS)] ^= fuzz_u8(in);
	}
	urn_tp_rx(to->tp, &m, 1, true);
}

static void
deliver_all(void)
{
	for (unsigned int k = 0; k < 4; k++) {
		for (unsigned int i = 0; i < NODES; i++)
			while (w.node[i].wire_n) {
				struct rte_mbuf *m = take_frame(&w.node[i], 0);

				urn_tp_rx(w.node[i].tp, &m, 1, true);
			}
		turn(2000);
	}
}

/* ---- an input */

static void
open_node(unsigned int i)
{
	struct flow_node *n = &w.node[i];
	struct urn_memx_config x = {.pending = 64};
	struct urn_tp_config c = {.pool = test_eal_pool(),
				  .gids = 1,
				  .mtu = 1024,
				  .max_qp = 8,
				  .work = 512,
				  .window = 256,
				  .kept = 16,
				  .rto_floor = 1000000,
				  .neigh = neigh,
				  .neigh_ctx = n,
				  .ah = no_ah,
				  .flow_user = &urn_am_flow_user,
				  .flow_epoch = 1700000000 + i};

	n->mem = urn_mem_create(64, 4);
	n->memx = urn_memx_create(&x);
	n->regs = urn_msg_regs_create(0, 0, 5);
	n->am = urn_am_create(0, 5 + i, true);
	fuzz_check(n->mem && n->memx && n->regs && n->am);
	fuzz_check(urn_mem_alloc_pd(n->mem, &n->pd) == 0);
	urn_am_tagged_from(n->am, 2000);
	memcpy(n->gid + 10, (const uint8_t[]){0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)}, 6);
	memcpy(n->mac, (const uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
	c.mem = n->mem;
	c.memx = n->memx;
	c.flow_ctx = n->regs;
	c.am = n->am;
	memcpy(c.mac, n->mac, 6);
	memcpy(c.gid[0], n->gid, 16);
	n->tp = urn_tp_create(&c, w.now);
	fuzz_check(n->tp);
	n->tp->flows->born = 0;
	for (unsigned int k = 0; k < ENDS; k++)
		open_end(n, k);
}

static void
step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);
	struct flow_node *n = &w.node[what >> 4 & 1];
	unsigned int other = 1 + (what >> 5 & 1);

	switch (what & 15) {
	case 0:
	case 1:
	case 2:
		deliver(in, n, what >> 5 & 1 ? fuzz_u8(in) : 0);
		break;
	case 3: /* loss */
		if (n->wire_n)
			rte_pktmbuf_free(take_frame(n, fuzz_u8(in) % n->wire_n));
		break;
	case 4:
	case 5:
		command(in, n, 0);
		break;
	case 6:
		command(in, n, other);
		break;
	case 7:
		scribble(in, n);
		break;
	case 8:
		read_events(n);
		break;
	case 9:
		close_end(n, other);
		open_end(n, other);
		break;
	case 10:
		if (urn_am_region_remove(n->end[other].ep, n->end[other].key) == 0 && !(what & 64))
			unmap_end(n, &n->end[other]);
		break;
	case 11:
		n->neigh = what & 128 ? -1 : 0;
		n->tp->flows->born = what & 64 ? w.now : 0; /* just started, or up for long */
		break;
	case 12:
		turn(1ull << fuzz_u8(in) % 32);
		break;
	case 13:
		deliver_all();
		break;
	default:
		turn(2000);
		break;
	}
}

static void
close_node(struct flow_node *n)
{
	fuzz_check(n->end[0].posted == n->end[0].read);
	fuzz_check(urn_flow_count(n->tp) == 0 && n->tp->nobodys.work == 0);
	fuzz_check(!n->am->outs && !n->am->replies && !n->share[0].am && !n->share[1].am);
	fuzz_check(!n->am->tagged->n && !n->am->tagged->early_n && !n->am->tagged->turns);
	fuzz_check(n->tp->wheel.count == 0 && urn_am_count(n->am) == 0);
	urn_tp_destroy(n->tp);
	urn_am_destroy(n->am);
	urn_msg_regs_destroy(n->regs);
	urn_memx_destroy(n->memx);
	urn_mem_destroy(n->mem);
}

/* Time passes until every operation has its event, and flows are gone. */
static void
close_world(void)
{
	for (unsigned int i = 0; i < NODES; i++) {
		close_end(&w.node[i], 1);
		close_end(&w.node[i], 2);
		w.node[i].neigh = 0;
	}
	for (unsigned int k = 0; k < 240; k++) { /* fences: one operation after the other */
		turn(500000000);
		for (unsigned int i = 0; i < NODES; i++)
			read_events(&w.node[i]);
	}
	for (unsigned int i = 0; i < NODES; i++)
		close_end(&w.node[i], 0);
	for (unsigned int i = 0; i < AGED_S; i++)
		turn(1000000000);
	for (unsigned int i = 0; i < NODES; i++) {
		while (w.node[i].wire_n)
			rte_pktmbuf_free(take_frame(&w.node[i], 0));
		close_node(&w.node[i]);
	}
	fuzz_check(rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {.p = data, .end = data + size};
	static struct urn_tp_share *const siblings[URN_ABI_MAX_ENGINES];

	memset(&w, 0, sizeof(w));
	w.now = 100000000000ull;
	for (unsigned int i = 0; i < NODES; i++) {
		for (unsigned int k = 0; k < 2; k++)
			w.node[i].share[k].sibling = siblings;
		open_node(i);
	}
	for (unsigned int n = 0; n < STEPS && fuzz_more(&in); n++)
		step(&in);
	close_world();
	return 0;
}
