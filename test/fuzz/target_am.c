/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of remote memory access under fire: a peer sends any messages to them, their flows
 * answer in any way, and a program writes any words into its rings. One input is a course of steps:
 * a byte for the step, then its numbers. Nothing outside of the memory that endpoints offer is
 * written, each command has one event at most, and in the end nothing is left. Flows are stood in
 * for.
 */
#include "fuzz.h"

#include "am/tagged.h"
#include "transport/flow_priv.h"
#include "transport/sched.h"

#include <stdlib.h>
#include <string.h>

enum {
	ENDS = 3, /* 0 keeps the rules, 1 is scribbled over, 2 is only a target */
	MEM = 16384,
	GUARD = 256,
	GUARD_BYTE = 0xa5,
	ENTRIES = 8,
	RANGES = 8,
	MSGS = 2048,
	STEPS = 600,
};

struct end {
	struct urn_am_ep *ep;
	struct urn_abi_am_ep *regs;
	uint8_t *mem; /* MEM bytes between two guards */
	uint32_t lkey, posted, read;
	uint64_t key;
};

static struct world {
	struct urn_tp *tp;
	struct urn_am *am;
	struct urn_mem *mem;
	struct urn_tp_share share;
	uint32_t pd;
	struct end end[ENDS];
	struct urn_flow_msg *held[MSGS]; /* messages that flows have */
	unsigned int held_n;
	bool open[STEPS]; /* commands of endpoint 0 that have no event yet */
	uint8_t refuse;	  /* code that flows give to new messages; 0: they take them */
} w;

uint8_t __wrap_urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m);
void __wrap_urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Make a message as a flow does that sends it. returns: false: its bytes are not there any more */
static bool
make_message(const struct urn_flow_msg *m, uint8_t buf[URN_AM_MSG_MAX])
{
	uint32_t head = m->head ? m->head : m->len;
	struct urn_flow_slice to = {.at = buf + head};

	fuzz_check(m->len <= URN_AM_MSG_MAX && head <= m->len);
	memcpy(buf, m->data, head);
	return head == m->len || urn_am_flow_user.gather(w.tp, m, 0, m->len - head, &to);
}

uint8_t
__wrap_urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m)
{
	struct urn_am_msg parsed;
	uint8_t buf[URN_AM_MSG_MAX];

	(void)tp;
	(void)gid;
	fuzz_check(urn_am_qid_is(m->qid) && urn_am_qid_is(m->src_qid));
	/* A reply that is sent again may answer several writes. */
	fuzz_check(!make_message(m, buf) || urn_am_parse(buf, m->len, &parsed) ||
		   urn_am_parse_more(buf, m->len, &parsed));
	if (w.refuse || w.held_n == MSGS)
		return w.refuse ? w.refuse : (uint8_t)URN_MSG_BUSY;
	m->strand = (struct urn_flow_strand *)(void *)&w; /* in no packet yet: replies may join */
	m->state = URN_FLOW_MSG_QUEUED;
	w.held[w.held_n++] = m;
	return URN_MSG_PENDING;
}

static struct urn_flow_msg *
take(unsigned int i)
{
	struct urn_flow_msg *m = w.held[i];

	m->strand = NULL;
	w.held[i] = w.held[--w.held_n];
	return m;
}

void
__wrap_urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m)
{
	unsigned int i = 0;

	(void)tp;
	while (i < w.held_n && w.held[i] != m)
		i++;
	fuzz_check(i < w.held_n);
	(void)take(i);
}

/* ---- endpoints */

static void
open_end(unsigned int i)
{
	struct end *e = &w.end[i];
	struct urn_am_config cfg = {.share = &w.share,
				    .db = i,
				    .entries = ENTRIES,
				    .ranges = RANGES,
				    .pd = w.pd,
				    .channel_fd = (int)i - 1};
	struct urn_am_region_config c = {.access = URN_AM_ACCESS_ALL, .n = 2};
	size_t bytes = RTE_ALIGN_CEIL(urn_am_ep_bytes(ENTRIES, RANGES), 64);

	cfg.regs = e->regs = aligned_alloc(64, bytes);
	e->mem = malloc(MEM + 2 * GUARD);
	fuzz_check(e->regs && e->mem);
	memset(e->regs, 0, bytes);
	memset(e->mem, GUARD_BYTE, MEM + 2 * GUARD);
	e->mem += GUARD;
	fuzz_check(urn_mem_reg_mr(w.mem, w.pd, e->mem, MEM, (uintptr_t)e->mem,
				  URN_ACCESS_LOCAL_WRITE, &e->lkey) == 0);
	fuzz_check(urn_am_ep_open(w.am, &cfg, &e->ep) == 0);
	for (unsigned int k = 0; k < 2; k++) /* a gap from MEM / 2 on that nobody may write */
		urn_am_ranges(e->regs, ENTRIES)[k] =
			(struct urn_abi_am_range){.addr = (uintptr_t)e->mem + k * (MEM / 2 + GUARD),
						  .len = MEM / 2 - GUARD * k,
						  .lkey = e->lkey};
	fuzz_check(urn_am_region_add(w.tp, e->ep, &c) == 0);
	e->key = c.key;
}

static void
check_guard(const uint8_t *at)
{
	for (unsigned int k = 0; k < GUARD; k++)
		fuzz_check(at[k] == GUARD_BYTE);
}

static void
close_end(unsigned int i)
{
	struct end *e = &w.end[i];
	struct urn_region *region;

	fuzz_check(urn_am_ep_end(w.tp, urn_am_ep_source(e->ep)));
	check_guard(e->mem - GUARD);
	check_guard(e->mem + MEM);
	if (i == 2) /* reads of the other two may place bytes in their gaps */
		check_guard(e->mem + MEM / 2);
	fuzz_check(urn_mem_kill_mr(w.mem, e->lkey, &region) == 0);
	urn_mem_free_mr(w.mem, region);
	free(e->mem - GUARD);
	free(e->regs);
	memset(e, 0, sizeof(*e));
}

static uint64_t
qid_of(uint8_t which)
{
	if (which >= 0xf0)
		return URN_AM_QID(which, which, which);
	return urn_am_number(w.am, w.end[which % ENDS].ep->slot);
}

/* ---- steps */

/* A pipe that is full every second time. */
static bool
tell(void *ctx, int fd, const struct urn_abi_event *ev)
{
	(void)ctx;
	fuzz_check(fd >= 0 && ev->type == URN_EVENT_AM);
	return w.tp->now & 1024;
}

static void
turn(uint64_t ns)
{
	struct urn_timer *t;

	w.tp->now += ns;
	while ((t = urn_wheel_expire(&w.tp->wheel, w.tp->now))) {
		struct urn_source *src = ((struct urn_source_timer *)(void *)t)->source;

		urn_source_ops(src)->due(w.tp, src);
	}
	for (unsigned int n = 0; n < 16 && w.tp->sched.n; n++) {
		struct urn_source *src = urn_sched_take(&w.tp->sched);

		if (urn_source_ops(src)->serve(w.tp, src))
			urn_sched_add(&w.tp->sched, src);
	}
	if (*urn_am_untold_at(w.am))
		urn_am_tell(w.am, w.tp->now, tell, NULL);
	fuzz_check(w.am->outs <= ENDS * URN_AM_EP_OUTS && w.am->replies <= URN_AM_REPLIES);
}

static void
rung(unsigned int i)
{
	urn_am_ep_ops.rung(w.tp, urn_am_ep_source(w.end[i].ep));
	turn(1000);
}

/* The program that keeps the rules issues an operation, when there is room. */
static void
command(struct fuzz_in *in)
{
	struct end *e = &w.end[0];
	struct urn_abi_am_cmd *c = urn_am_cmds(e->regs) + e->posted % ENTRIES;
	uint8_t how = fuzz_u8(in);
	bool atomic = how >> 6 & 1;

	if (e->posted - e->read == ENTRIES)
		return;
	*c = (struct urn_abi_am_cmd){.op = atomic ? URN_AM_FETCH_ADD + how % 3 : 1 + (how & 1),
				     .way = how >> 1 & 3,
				     .flags = how >> 5 & 1,
				     .len = atomic ? 4u << (how & 1) : fuzz_u16(in) % MEM,
				     .every = how & 128 ? fuzz_u8(in) : 0,
				     .id = e->posted};
	c->qid = qid_of(fuzz_u8(in));
	c->node[15] = how >> 3 & 1;
	c->remote = (uintptr_t)w.end[how >> 4 & 1 ? 2 : 1].mem + fuzz_u16(in);
	c->key = w.end[how >> 4 & 1 ? 2 : 1].key ^ (how >> 7);
	c->local = (uintptr_t)e->mem + fuzz_u16(in) % 512;
	c->lkey = e->lkey;
	urn_am_operands(e->regs, ENTRIES)[e->posted % ENTRIES] =
		(struct urn_abi_am_operand){.value = how, .compare = how >> 3};
	w.open[e->posted % STEPS] = true;
	atomic_store(&e->regs->client.commands, ++e->posted);
	rung(0);
}

static void
read_events(void)
{
	struct end *e = &w.end[0];
	uint32_t n = atomic_load(&e->regs->dp.events);

	fuzz_check(n - e->read <= e->posted - e->read);
	for (; e->read != n; e->read++) {
		const struct urn_abi_am_event *ev =
			&urn_am_events(e->regs, ENTRIES)[e->read % ENTRIES];

		/* An atomic operation's event has a value of the target's memory. */
		fuzz_check((ev->code & ~URN_AM_MAY_BE_THERE) < URN_AM_CODES);
		fuzz_check(ev->code == URN_AM_DONE || ev->bytes <= MEM);
		fuzz_check(ev->id < e->posted && w.open[ev->id % STEPS]); /* once */
		w.open[ev->id % STEPS] = false;
	}
	atomic_store(&e->regs->client.events, n);
	rung(0);
}

static void
scribble(struct fuzz_in *in)
{
	uint8_t *at = (uint8_t *)w.end[1].regs, n = fuzz_u8(in) % 40;
	uint32_t off = fuzz_u16(in) % (uint32_t)(urn_am_ep_bytes(ENTRIES, RANGES) - 40);

	while (n--)
		at[off++] = fuzz_u8(in);
	rung(1);
}

/* Write the data of an atomic operation or its reply. */
static void
put_words(struct urn_am_msg *m, uint8_t how, uint8_t *data)
{
	struct urn_am_atomic a = {.op = URN_AM_FETCH_ADD + how % 3, .value = how};

	m->len = how & 16 ? 8 : 4;
	m->addr &= ~(uint64_t)(how & 128 ? 0 : 7);
	if (m->kind == URN_AM_K_ATOMIC)
		urn_am_put_atomic(data, &a);
	else
		urn_am_put_old(data, how);
}

/* Make a reply one to n more writes, some of them ours. returns: bytes of the message */
static uint32_t
put_more(struct fuzz_in *in, uint8_t *buf, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct urn_am_hdr h = {.tag = 0};

		if (w.held_n)
			memcpy(&h, w.held[fuzz_u8(in) % w.held_n]->data, sizeof(h));
		urn_am_put_more(buf, i, rte_be_to_cpu_64(h.tag));
	}
	return (uint32_t)sizeof(struct urn_am_hdr) + 8 * n;
}

/* A message comes: sound, or with some bytes changed, for a request or for a packet of ours. */
static void
arrive(struct fuzz_in *in)
{
	uint8_t buf[sizeof(struct urn_am_hdr) + 255], *exact, how = fuzz_u8(in), to = fuzz_u8(in);
	struct urn_flow_from from = {.qid = qid_of(fuzz_u8(in)), .node = {[15] = how >> 3 & 1}};
	const struct end *e = &w.end[to % ENDS];
	struct urn_am_msg m = {.kind = 1 + (how & 7) % 7, .len = 1 + fuzz_u8(in) % 255};
	uint32_t len;

	memset(buf, how, sizeof(buf));
	if (!urn_am_kind_is_reply(m.kind)) {
		m.addr = (uintptr_t)e->mem + fuzz_u16(in) % (MEM + 64);
		m.key = e->key;
	} else if (w.held_n) {
		const struct urn_flow_msg *ours = w.held[fuzz_u8(in) % w.held_n];
		uint8_t sent[URN_AM_MSG_MAX];
		struct urn_am_msg asked = {.len = 1};

		(void)make_message(ours, sent); /* the head is there in any case */
		fuzz_check(urn_am_parse(sent, ours->len, &asked) ||
			   urn_am_parse_more(sent, ours->len, &asked));
		m.tag = asked.tag;
		m.len = asked.len < 255 ? asked.len : 255;
		m.code = m.kind == URN_AM_K_ERROR ? 1 + how % (URN_AM_CODES - 1) : 0;
		from.qid = how & 64 ? from.qid : ours->qid;
	}
	if (m.kind >= URN_AM_K_ATOMIC)
		put_words(&m, how, buf + sizeof(struct urn_am_hdr));
	if (to >= 0xfc) /* a sender that is no endpoint */
		from.qid ^= 1ull << (62 + to % 2);
	len = urn_am_build(buf, &m);
	if (m.kind == URN_AM_K_WRITE_REPLY && how & 16)
		len = put_more(in, buf, fuzz_u8(in) % (URN_AM_MORE_MAX + 2));
	for (unsigned int n = how & 128 ? fuzz_u8(in) % 5 : 0; n; n--) {
		uint8_t at = fuzz_u8(in);

		buf[at % len] = fuzz_u8(in);
	}
	exact = malloc(len);
	fuzz_check(exact);
	memcpy(exact, buf, len);
	(void)urn_am_flow_user.deliver(w.tp, &from, qid_of(to), exact,
				       how & 32 ? fuzz_u8(in) % (len + 1) : len);
	free(exact);
}

/* Fill in a message of a kind with a tag: for a request, for data, or for an operation of ours. */
static void
tagged(struct fuzz_in *in, struct urn_am_msg *m, struct urn_flow_from *from, const struct end *e)
{
	uint8_t how = fuzz_u8(in);

	m->tag = how & 15;
	if (urn_am_kind_is_reply(m->kind) && w.held_n) {
		const struct urn_flow_msg *ours = w.held[fuzz_u8(in) % w.held_n];
		uint8_t sent[URN_AM_MSG_MAX];
		struct urn_am_msg asked;

		(void)make_message(ours, sent); /* the head is there in any case */
		fuzz_check(urn_am_parse(sent, ours->len, &asked) ||
			   urn_am_parse_more(sent, ours->len, &asked));
		m->tag = asked.tag;
		m->len = how & 16 ? asked.len : m->len;
		from->qid = how & 32 ? from->qid : ours->qid;
	}
	if (m->kind == URN_AM_K_TAG_DATA || m->kind == URN_AM_K_TAG_BACK) {
		m->len = m->len < 255 ? m->len : 255;
		m->addr = fuzz_u16(in) % (how & 64 ? 600 : 20000);
		m->key = how & 128 ? fuzz_u8(in) : urn_am_number(w.am, e->ep->slot);
	} else if (m->kind == URN_AM_K_TAG_DONE) {
		m->addr = how & 64 ? m->len : 1;
	} else if (m->kind == URN_AM_K_TAG_ERROR || m->kind == URN_AM_K_TAG_CANCEL) {
		m->code = 1 + how % (URN_AM_CODES - 1);
	} else {
		m->len = m->kind == URN_AM_K_PART ? m->len : 1u + fuzz_u16(in) % 4000;
		m->addr = (uintptr_t)e->mem + fuzz_u16(in) % (MEM + 64);
		m->key = e->key;
		m->total = m->kind == URN_AM_K_PART ? m->len * (1u + how / 64) : 0;
		m->every = m->kind == URN_AM_K_PART ? (uint8_t)(1 + (how >> 4 & 3)) : 0;
	}
}

/* A message with a tag comes, some of its bytes changed or not. */
static void
arrive_tagged(struct fuzz_in *in)
{
	uint8_t buf[sizeof(struct urn_am_hdr) + 8 + 255], *exact, how = fuzz_u8(in),
								  to = fuzz_u8(in);
	struct urn_flow_from from = {.qid = qid_of(fuzz_u8(in)), .node = {[15] = how >> 3 & 1}};
	struct urn_am_msg m = {.kind = URN_AM_K_TAG_WRITE + (how & 7),
			       .len = 1 + fuzz_u8(in) % 255};
	uint32_t len;

	tagged(in, &m, &from, &w.end[to % ENDS]);
	memset(buf, how, sizeof(buf));
	len = urn_am_build(buf, &m);
	for (unsigned int n = how & 128 ? fuzz_u8(in) % 5 : 0; n; n--) {
		uint8_t at = fuzz_u8(in);

		buf[at % len] = fuzz_u8(in);
	}
	exact = malloc(len);
	fuzz_check(exact);
	memcpy(exact, buf, len);
	(void)urn_am_flow_user.deliver(w.tp, &from, qid_of(to), exact, len);
	free(exact);
}

/* A flow delivers a message of ours to its target here, or does not, and answers. */
static void
answer(struct fuzz_in *in)
{
	static const uint8_t codes[] = {
		URN_MSG_DONE,	  URN_MSG_DONE,		URN_MSG_BUSY,
		URN_MSG_NO_QUEUE, URN_MSG_UNREACHABLE,	URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE,
		URN_MSG_NO_NODE,  URN_MSG_NOT_PERMITTED};
	uint8_t how = fuzz_u8(in), code = codes[how & 7];
	uint8_t buf[URN_AM_MSG_MAX];
	struct urn_flow_msg *m;

	if (!w.held_n)
		return;
	m = take(fuzz_u8(in) % w.held_n);
	if (how & 8) {
		struct urn_flow_from from = {.qid = m->src_qid, .node = {[15] = how >> 4 & 1}};

		code = make_message(m, buf)
			       ? urn_am_flow_user.deliver(w.tp, &from, m->qid, buf, m->len)
			       : (uint8_t)URN_FLOW_GONE;
	}
	urn_am_flow_user.answered(w.tp, m, code);
}

static void
step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 15) {
	case 0:
	case 1:
		arrive(in);
		break;
	case 2:
	case 14:
		arrive_tagged(in);
		break;
	case 3:
	case 4:
		command(in);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		answer(in);
		break;
	case 9:
		scribble(in);
		break;
	case 10:
		read_events();
		break;
	case 11:
		w.refuse = what & 64 ? (what & 128 ? URN_MSG_NO_NODE : URN_MSG_BUSY) : 0;
		break;
	case 12:
		turn(1ull << fuzz_u8(in) % 35);
		break;
	case 13:
		close_end(what >> 4 & 1);
		open_end(what >> 4 & 1);
		break;
	default:
		turn(2000);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {.p = data, .end = data + size};
	static struct urn_tp_share *const siblings[URN_ABI_MAX_ENGINES];

	memset(&w, 0, sizeof(w));
	w.share.sibling = siblings;
	w.tp = calloc(1, sizeof(*w.tp));
	w.am = urn_am_create(0, 5, true);
	w.mem = urn_mem_create(1000, 2);
	fuzz_check(w.tp && w.am && w.mem && urn_mem_alloc_pd(w.mem, &w.pd) == 0);
	w.tp->cfg.am = w.am;
	w.tp->cfg.mem = w.mem;
	w.tp->cfg.mtu = w.tp->cfg.flow_mtu = 1024;
	w.tp->now = 1000000000;
	urn_wheel_init(&w.tp->wheel, w.tp->now);
	for (unsigned int i = 0; i < ENDS; i++)
		open_end(i);
	for (unsigned int n = 0; n < STEPS && fuzz_more(&in); n++)
		step(&in);
	w.refuse = URN_MSG_NO_NODE;
	for (unsigned int i = 0; i < 30;
	     i++) { /* operations of the program that keeps the rules end */
		turn(1000000000);
		read_events();
	}
	fuzz_check(w.end[0].posted == w.end[0].read);
	for (unsigned int i = 0; i < ENDS; i++)
		close_end(i);
	while (w.held_n)
		urn_am_flow_user.answered(w.tp, take(0), URN_MSG_UNREACHABLE);
	fuzz_check(!w.am->tagged->n && !w.am->tagged->early_n && !w.am->tagged->turns);
	fuzz_check(!w.am->outs && !w.am->replies && !w.share.am && !w.tp->wheel.count);
	urn_am_destroy(w.am);
	urn_mem_destroy(w.mem);
	free(w.tp);
	return 0;
}
