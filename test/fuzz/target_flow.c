/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows and register sets under fire: a peer sends any packets of flows, and programs write any words into
 * their registers. One input is a course of steps: a byte for the step, then its numbers, made of values that
 * make sense at that moment or of plain bytes. Nothing outside of a set's arena is written, everything is bounded,
 * and in the end nothing is left.
 */
#include "fuzz.h"

#include "common/test_eal.h"
#include "msg/msg.h"
#include "transport/flow_priv.h"

#include <stdlib.h>

enum {
	SETS = 6,
	SCRIBBLED = 3, /* sets from here on are scribbled over; the others keep the rules */
	ARENA = 8192,
	GUARD = 128,
	GUARD_BYTE = 0x5a,
	ENTRY = 1024,
	STEPS = 400,
	FRAME = 1400,
	HEADERS = 42, /* bytes before the BTH */
	AGED_S = 120,
	CELL = 100, /* bytes; parts of the node that overlaps begin and end at half a cell */
	CELL_BYTE =
		0xa0, /* all bytes of its parts, plus the id: bytes of any other message differ */
};

struct world {
	struct urn_tp *tp;
	struct urn_msg_regs *regs;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct urn_tp_share share[2];
	uint64_t now;
	int neigh;
	struct {
		struct urn_msg_rset *set;      /* NULL: closed */
		struct urn_abi_msg_set *regs;
		uint32_t head, seq;
	} s[SETS];
	uint64_t epoch;     /* epoch of the data that came from the node last, network order */
	uint32_t una, psn;  /* PSNs of that data */
	uint64_t peer_epoch;
	uint32_t peer_psn;
	uint64_t lap_epoch; /* the epoch of the node that overlaps */
	uint32_t lap_psn;
};

static const uint8_t us[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1}, peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t lapper[16] = {
	[10] = 0xff, 0xff, 10, 0, 0, 77}; /* the node that overlaps: sends parts and nothing else */
static const uint8_t us_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 2};

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
	const struct world *w = ctx;

	(void)gid;
	memcpy(mac, peer_mac, 6);
	return w->neigh;
}

static struct urn_ah *
no_ah(void *ctx, uint32_t id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

/* ---- sets */

static uint8_t *
arena(const struct world *w, unsigned int i)
{
	return (uint8_t *)(w->s[i].regs + 1);
}

static void
configure(struct world *w, unsigned int i)
{
	struct urn_abi_msg_conf *c = &w->s[i].regs->conf;

	c->base = ARENA / 2;
	c->entries = ARENA / 2 / ENTRY;
	c->entry_size = ENTRY;
	atomic_store(&c->seq, c->seq + 1);
	urn_source_rung(w->tp, urn_msg_source(w->s[i].set));
}

static void
open_set(struct world *w, unsigned int i)
{
	struct urn_msg_config c = {.share = &w->share[i >= SCRIBBLED], .db = i, .arena = ARENA, .channel_fd = 1};
	size_t bytes = sizeof(struct urn_abi_msg_set) + ARENA + GUARD;

	if (w->s[i].set)
		return;
	c.regs = w->s[i].regs = aligned_alloc(64, RTE_ALIGN_CEIL(bytes, 64));
	fuzz_check(c.regs);
	memset(c.regs, 0, bytes);
	memset(arena(w, i) + ARENA, GUARD_BYTE, GUARD);
	w->s[i].head = w->s[i].seq = 0;
	fuzz_check(urn_msg_open(w->regs, &c, &w->s[i].set) == 0);
	configure(w, i);
}

static void
close_set(struct world *w, unsigned int i)
{
	if (!w->s[i].set)
		return;
	for (unsigned int k = 0; k < GUARD; k++)
		fuzz_check(arena(w, i)[ARENA + k] == GUARD_BYTE);
	fuzz_check(urn_msg_end(w->tp, urn_msg_source(w->s[i].set)));
	free(w->s[i].regs);
	w->s[i].set = NULL;
	w->s[i].regs = NULL;
}

static uint64_t
qid_of(const struct world *w, uint8_t which)
{
	struct urn_msg_view v;
	unsigned int i = which % SETS;

	if (which >= 0xe0 || !w->s[i].set)
		return which & 1 ? URN_MSG_NAME(which % 4) : URN_MSG_QID(1 + which, 0, which % 8);
	urn_msg_look(w->regs, w->s[i].set, &v);
	return v.qid;
}

/* A message that was put together of parts of the node that overlaps has no bytes but theirs. */
static void
check_parts(const struct urn_abi_msg_entry *e, const uint8_t *data)
{
	if (memcmp(e->node, lapper, 16) != 0)
		return;
	for (uint32_t i = 0; i < e->len; i++)
		fuzz_check(data[i] == CELL_BYTE + urn_msg_qid_slot(e->qid));
}

/* A program that keeps the rules reads its ring: each entry fits, and the tail is no further than the ring is long. */
static void
read_ring(struct world *w, unsigned int i)
{
	struct urn_abi_msg_set *r = w->s[i].regs;
	uint32_t tail = atomic_load(&r->rstat.tail);

	fuzz_check(tail - w->s[i].head <= ARENA / 2 / ENTRY);
	for (; w->s[i].head != tail; w->s[i].head++) {
		const uint8_t *at =
			arena(w, i) + ARENA / 2 + w->s[i].head % (ARENA / 2 / ENTRY) * ENTRY;
		struct urn_abi_msg_entry e;

		memcpy(&e, at, sizeof(e));
		fuzz_check(e.len <= ENTRY - sizeof(e) && e.flags == 0);
		check_parts(&e, at + sizeof(e));
	}
	atomic_store(&r->ctrl.head, tail);
}

static void
send(struct world *w, struct fuzz_in *in, unsigned int i)
{
	struct urn_abi_msg_send *l = &w->s[i].regs->send;
	uint64_t answer = atomic_load(&w->s[i].regs->sstat.answer);
	uint8_t how = fuzz_u8(in);

	fuzz_check(urn_msg_answer_seq(answer) == w->s[i].seq);
	if (urn_msg_answer_code(answer) == URN_MSG_PENDING)
		return;
	l->size = fuzz_u16(in) % (how & 1 ? ARENA / 2 : 200);
	l->addr = how & 2 ? ARENA / 2 - l->size : 0;
	memcpy(l->node, how & 4 ? us : peer, 16);
	l->qid = qid_of(w, fuzz_u8(in));
	l->retries = how >> 4;
	l->retry_kinds = fuzz_u8(in);
	l->retry_us = how & 8 ? 10 : 0;
	atomic_store(&l->seq, ++w->s[i].seq);
	urn_source_rung(w->tp, urn_msg_source(w->s[i].set));
	urn_tp_tx(w->tp);
	fuzz_check(urn_msg_answer_seq(atomic_load(&w->s[i].regs->sstat.answer)) == w->s[i].seq);
}

static void
scribble(struct world *w, struct fuzz_in *in, unsigned int i)
{
	uint8_t *at = (uint8_t *)w->s[i].regs;
	uint8_t n = fuzz_u8(in) % 24;
	uint16_t off = fuzz_u16(in) % (sizeof(struct urn_abi_msg_set) + 64);

	while (n--)
		at[off++] = fuzz_u8(in);
	urn_source_rung(w->tp, urn_msg_source(w->s[i].set));
}

/* ---- the wire */

/* Look at a frame of the node; its data is remembered for answers. */
static void
sent(struct world *w, struct rte_mbuf *m)
{
	const uint8_t *bth = rte_pktmbuf_mtod(m, const uint8_t *) + HEADERS;
	const struct urn_flow_hdr *h = (const struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));

	fuzz_check(m->pkt_len <= FRAME && m->data_len == m->pkt_len);
	if (bth[0] == URN_FLOW_DATA) {
		w->epoch = h->epoch;
		w->una = rte_be_to_cpu_32(h->psn) & URN_PSN_MASK;
		w->psn = (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];
	}
	rte_pktmbuf_free(m);
}

static bool
tell(void *ctx, int fd, const struct urn_abi_event *ev)
{
	const struct world *w = ctx;

	(void)fd;
	fuzz_check(URN_MSG_HANDLE_SLOT(ev->handle) < SETS);
	return w->now & 1024;
}

static void
turn(struct world *w, uint64_t ns)
{
	struct urn_tp *tp = w->tp;

	w->now += ns;
	urn_tp_turn(tp, w->now);
	urn_tp_tx(tp);
	for (unsigned int i = 0; i < tp->tx_n; i++)
		sent(w, tp->tx[i]);
	tp->tx_n = 0;
	while (tp->other_n)
		rte_pktmbuf_free(tp->other[--tp->other_n]);
	while (tp->handover_n)
		rte_pktmbuf_free(tp->handover[--tp->handover_n]);
	if (*urn_msg_untold_at(w->regs))
		urn_msg_tell(w->regs, w->now, tell, w);
	fuzz_check(urn_flow_count(tp) <= STEPS + 8);
	fuzz_check(tp->flows->wholes <= URN_FLOW_WHOLES);
}

/* Append a segment. returns: its bytes */
static uint32_t
put_segment(struct world *w, struct fuzz_in *in, uint8_t *at)
{
	uint8_t how = fuzz_u8(in);
	uint16_t bytes = fuzz_u8(in), len = how & 4 ? fuzz_u16(in) : bytes;
	uint8_t kind = how & 3 ? how & 3 : how & 16 ? URN_FLOW_SEG_KINDS : URN_FLOW_WHOLE;
	uint32_t head = urn_flow_seg_head(kind);
	struct urn_flow_part s = {
		.seg = {.qid = rte_cpu_to_be_64(qid_of(w, fuzz_u8(in))),
			.src_qid = rte_cpu_to_be_64(URN_MSG_QID(7, 0, how)),
			.bytes = rte_cpu_to_be_16(bytes),
			.kind = kind},
		.len = rte_cpu_to_be_32(len),
		.off = rte_cpu_to_be_32(how & 8 ? fuzz_u16(in) : 0),
		.id = rte_cpu_to_be_32(how >> 6),
	};

	memcpy(at, &s, head);
	memset(at + head, how, urn_flow_pad(bytes));
	return head + urn_flow_pad(bytes);
}

static uint32_t
put_data(struct world *w, struct fuzz_in *in, uint8_t how, struct urn_flow_hdr *h, uint32_t *psn)
{
	uint8_t *at = (uint8_t *)(h + 1);
	uint32_t len = 0;

	if (how & 1)
		w->peer_epoch += fuzz_u8(in);
	*psn = (w->peer_psn + fuzz_u8(in)) & URN_PSN_MASK;
	if (how & 2)
		w->peer_psn = (w->peer_psn + fuzz_u8(in)) & URN_PSN_MASK;
	h->epoch = rte_cpu_to_be_64(w->peer_epoch);
	h->start = how & 4 ? fuzz_u16(in) : how & 8 ? rte_cpu_to_be_32(1700000000) : 0;
	h->psn = rte_cpu_to_be_32((uint32_t)(how >> 6) << 28 | w->peer_psn);
	for (unsigned int n = 1 + (how >> 4 & 3); n && len < FRAME - 600; n--)
		len += put_segment(w, in, at + len);
	return len;
}

static uint32_t
put_ack(struct world *w, struct fuzz_in *in, uint8_t how, struct urn_flow_hdr *h)
{
	struct urn_flow_ack *a = (struct urn_flow_ack *)(h + 1);
	struct urn_flow_refused *r = (struct urn_flow_refused *)(a + 1);
	struct urn_flow_room room = {0};
	uint32_t first = how & 1 ? w->psn + 1 : w->una;

	memset(a, 0, sizeof(*a));
	h->epoch = w->epoch;
	h->start = rte_cpu_to_be_32(1600000000 + (how >> 6));
	h->psn = rte_cpu_to_be_32((first + (how & 2 ? fuzz_u8(in) : 0)) & URN_PSN_MASK);
	a->flags = (uint8_t)((how >> 2 & 3) | (how & 128 ? URN_FLOW_ACK_ROOM : 0));
	a->refused = how & 16 ? 1 : 0;
	a->age = how & 64 ? UINT16_MAX : 0; /* the node is older than the flow, or not */
	for (unsigned int i = 0; i < 4; i++)
		a->bitmap[fuzz_u8(in) % sizeof(a->bitmap)] = fuzz_u8(in);
	memset(r, fuzz_u8(in), sizeof(*r));
	r->psn = rte_cpu_to_be_32(how & 32 ? w->psn : w->una);
	if (!(how & 128))
		return (uint32_t)(sizeof(*a) + a->refused * sizeof(*r));
	room.mtu = fuzz_u16(in);
	memcpy(r + a->refused, &room, sizeof(room));
	return (uint32_t)(sizeof(*a) + a->refused * sizeof(*r) + sizeof(room));
}

static void
arrive(struct world *w, const uint8_t *f, uint32_t len, bool looped)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	fuzz_check(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), f, len);
	if (looped)
		m->ol_flags |= w->tp->flows->looped;
	urn_tp_rx(w->tp, &m, 1, true);
}

static void
packet(struct world *w, struct fuzz_in *in)
{
	uint8_t f[FRAME + 2048], how = fuzz_u8(in), what = fuzz_u8(in), *bth = f + HEADERS;
	struct urn_path path = {.ttl = 64, .sport = 0xc000, .tos = what & 128 ? 3 : 0};
	struct urn_flow_hdr *h = (struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));
	uint8_t opcode = what & 8 ? URN_FLOW_DATA : (uint8_t)(URN_FLOW_DATA + (what & 7) % 3);
	uint32_t psn = 0, len = 0, all;
	struct urn_tmpl t;

	memset(f, 0, sizeof(f));
	memcpy(path.smac, peer_mac, 6);
	memcpy(path.dmac, us_mac, 6);
	memcpy(path.sgid, peer, 16);
	path.sgid[15] = (uint8_t)(path.sgid[15] + (what >> 4 & 3));
	memcpy(path.dgid, us, 16);
	memset(&t, 0, sizeof(t));
	urn_tmpl_init(&t, &path);
	h->epoch = w->epoch;
	if (opcode == URN_FLOW_DATA)
		len = put_data(w, in, how, h, &psn);
	else if (opcode == URN_FLOW_ACK)
		len = put_ack(w, in, how, h);
	all = (uint32_t)(sizeof(struct urn_bth) + sizeof(*h) + len);
	urn_build_headers(f, &t, all);
	urn_build_bth((struct urn_bth *)bth, opcode, 0, 0, what & 64 ? URN_FLOW_SLOT_FIRST : urn_flow_qpn(0), psn, 0);
	for (unsigned int n = fuzz_u8(in) % 8; n; n--) {
		uint16_t at = fuzz_u16(in);

		bth[at % all] = fuzz_u8(in);
	}
	arrive(w, f, HEADERS + all + 4, false);
}

/* A sound packet with a part of a message of a few cells: parts overlap, come again, or cover the
 * message. */
static void
lap(struct world *w, struct fuzz_in *in)
{
	struct urn_path path = {.ttl = 64, .sport = 0xc000};
	uint8_t f[FRAME] = {0}, *bth = f + HEADERS, how = fuzz_u8(in), where = fuzz_u8(in);
	struct urn_flow_hdr *h = (struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));
	struct urn_flow_part *s = (struct urn_flow_part *)(h + 1);
	uint32_t len = CELL * (1u + how % 8), off = CELL / 2 * (where % 16u) % len,
		 bytes = CELL / 2 * (1u + (where >> 4));
	uint32_t id = 1 + (how >> 3 & 3), all;
	struct urn_tmpl t;

	bytes = RTE_MIN(bytes, len - off);
	w->lap_epoch += how >= 0xf8;
	memcpy(path.smac, peer_mac, 6);
	memcpy(path.dmac, us_mac, 6);
	memcpy(path.sgid, lapper, 16);
	memcpy(path.dgid, us, 16);
	memset(&t, 0, sizeof(t));
	urn_tmpl_init(&t, &path);
	h->epoch = rte_cpu_to_be_64(w->lap_epoch);
	h->psn = rte_cpu_to_be_32(w->lap_psn & URN_PSN_MASK);
	s->seg.kind = URN_FLOW_PART;
	s->seg.qid = rte_cpu_to_be_64(qid_of(w, how >> 5 & 1));
	s->seg.src_qid = rte_cpu_to_be_64(URN_MSG_QID(8, 0, id));
	s->len = rte_cpu_to_be_32(len);
	s->off = rte_cpu_to_be_32(off);
	s->id = rte_cpu_to_be_32(id);
	s->seg.bytes = rte_cpu_to_be_16((uint16_t)bytes);
	memset(s + 1, (int)(CELL_BYTE + id), bytes);
	all = (uint32_t)(sizeof(struct urn_bth) + sizeof(*h) + sizeof(*s) + urn_flow_pad(bytes));
	urn_build_headers(f, &t, all);
	urn_build_bth((struct urn_bth *)bth, URN_FLOW_DATA, 0, 0, urn_flow_qpn(0),
		      w->lap_psn++ & URN_PSN_MASK, 0);
	arrive(w, f, HEADERS + all + 4, false);
}

/* ---- an input */

static void
open_world(struct world *w)
{
	struct urn_memx_config x = {.pending = 64};
	struct urn_tp_config c = {.pool = test_eal_pool(),
				  .gids = 1,
				  .mtu = 1024,
				  .flow_mtu = 1300,
				  .max_qp = 8,
				  .work = 512,
				  .window = 256,
				  .kept = 16,
				  .rto_floor = 1000000,
				  .line = 1250000000,
				  .neigh = neigh,
				  .neigh_ctx = w,
				  .ah = no_ah,
				  .flow_user = &urn_msg_flow_user,
				  .flow_epoch = 1700000000};

	memset(w, 0, sizeof(*w));
	w->now = 100000000000ull;
	w->peer_epoch = w->lap_epoch = 1ull << 32;
	w->mem = urn_mem_create(10, 2);
	w->memx = urn_memx_create(&x);
	w->regs = urn_msg_regs_create(0, 0, 5);
	fuzz_check(w->mem && w->memx && w->regs);
	c.mem = w->mem;
	c.memx = w->memx;
	c.flow_ctx = w->regs;
	memcpy(c.mac, us_mac, 6);
	memcpy(c.gid[0], us, 16);
	w->tp = urn_tp_create(&c, w->now);
	fuzz_check(w->tp);
	w->tp->flows->born = 0;
	for (unsigned int i = 0; i < SETS; i++)
		open_set(w, i);
	(void)urn_msg_bind(w->regs, w->s[0].set, 1);
	turn(w, 1000);
}

static void
step(struct world *w, struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);
	unsigned int good = (what >> 4) % SCRIBBLED, bad = SCRIBBLED + good;

	switch (what & 15) {
	case 0: case 1: case 2: case 3: case 4: packet(w, in); break;
	case 5: case 6: if (w->s[good].set) send(w, in, good); break;
	case 7: case 8: if (w->s[bad].set) scribble(w, in, bad); break;
	case 9: if (w->s[good].set) read_ring(w, good); break;
	case 10: close_set(w, (what >> 4) % SETS); break;
	case 11: open_set(w, (what >> 4) % SETS); break;
	case 12:
		w->neigh = -(what >> 4) % 3;
		w->tp->flows->born = what & 128 ? w->now : 0; /* just started, or up for long */
		/* Clients with room for one flow: others go to rest. */
		w->tp->flows->owner_max = what & 64 ? 1 : URN_FLOWS_OWNER;
		break;
	case 13: turn(w, 1ull << fuzz_u8(in) % 35); break;
	case 14:
		lap(w, in);
		break;
	default: turn(w, 2000); break;
	}
}

/* Time passes until every message of a program that keeps the rules has its answer, and flows are gone. */
static void
close_world(struct world *w)
{
	struct urn_tp *tp = w->tp;

	for (unsigned int i = 0; i < SETS; i++)
		if (i >= SCRIBBLED)
			close_set(w, i);
	w->neigh = -2; /* an address that is looked up for ever would leave messages without an answer */
	for (unsigned int i = 0; i < 12 * 20; i++) /* each of 16 tries may take 3 s */
		turn(w, 268435456);
	for (unsigned int i = 0; i < SCRIBBLED; i++) {
		if (w->s[i].set)
			fuzz_check(urn_msg_answer_code(atomic_load(&w->s[i].regs->sstat.answer)) != URN_MSG_PENDING);
		close_set(w, i);
	}
	for (unsigned int i = 0; i < AGED_S * 4; i++)
		turn(w, 250000000);
	fuzz_check(urn_flow_count(tp) == 0 && tp->nobodys.work == 0 && tp->flows->wholes == 0);
	fuzz_check(tp->flows->rests == 0 && tp->flows->doubted == 0);
	fuzz_check(urn_msg_count(w->regs) == 0);
	urn_tp_destroy(tp);
	urn_msg_regs_destroy(w->regs);
	urn_memx_destroy(w->memx);
	urn_mem_destroy(w->mem);
	fuzz_check(rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	static struct world w;

	open_world(&w);
	for (unsigned int i = 0; i < STEPS && fuzz_more(&in); i++)
		step(&w, &in);
	close_world(&w);
	return 0;
}
