/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"
#include "am/tagged.h"
#include "transport/sched.h"

#include <stdlib.h>
#include <string.h>

uint8_t __wrap_urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m);
void __wrap_urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m);

struct rig rig;
static struct urn_tp_share *const siblings[URN_ABI_MAX_ENGINES];

uint8_t
__wrap_urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m)
{
	assert_ptr_equal(tp, rig.tp);
	assert_true(urn_am_qid_is(m->qid) && urn_am_qid_is(m->src_qid));
	assert_true(m->len <= URN_AM_MSG_MAX);
	if (rig.refuse)
		return rig.refuse;
	assert_true(rig.held_n < MSGS);
	for (unsigned int i = 0; i < rig.held_n; i++)
		assert_ptr_not_equal(rig.held[i], m);
	memcpy(rig.node[rig.held_n], gid, 16);
	m->strand = rig.grow ? (struct urn_flow_strand *)(void *)&rig : NULL;
	m->state = 0; /* queued */
	rig.held[rig.held_n++] = m;
	return URN_MSG_PENDING;
}

static void
drop(unsigned int n)
{
	assert_true(n < rig.held_n);
	rig.held_n--;
	memmove(rig.held + n, rig.held + n + 1, (rig.held_n - n) * sizeof(rig.held[0]));
	memmove(rig.node + n, rig.node + n + 1, (rig.held_n - n) * sizeof(rig.node[0]));
}

void
__wrap_urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m)
{
	assert_ptr_equal(tp, rig.tp);
	for (unsigned int i = 0; i < rig.held_n; i++)
		if (rig.held[i] == m) {
			drop(i);
			return;
		}
	fail_msg("no flow has the message");
}

static void
open_end(unsigned int i)
{
	struct end *e = &rig.end[i];
	struct urn_am_config cfg = {.share = rig.client[i % 2],
				    .db = i,
				    .entries = ENTRIES,
				    .ranges = RANGES,
				    .pd = rig.pd,
				    .channel_fd = i < NO_CHANNEL ? 100 + (int)i : -1,
				    .cookie = 7000 + i};
	struct urn_am_region_config all = {.access = URN_AM_ACCESS_ALL, .n = 1};
	size_t bytes = (urn_am_ep_bytes(ENTRIES, RANGES) + 63) & ~63ull;

	cfg.regs = e->regs = aligned_alloc(64, bytes);
	e->mem = malloc(MEM + 2 * GUARD);
	assert_true(e->regs && e->mem);
	memset(e->regs, 0, bytes);
	memset(e->mem, GUARD_BYTE, MEM + 2 * GUARD);
	e->mem += GUARD;
	assert_int_equal(urn_mem_reg_mr(rig.urn_mem, rig.pd, e->mem, MEM, (uintptr_t)e->mem,
					URN_ACCESS_LOCAL_WRITE, &e->lkey),
			 0);
	assert_int_equal(urn_am_ep_open(rig.am, &cfg, &e->ep), 0);
	*urn_am_ranges(e->regs, ENTRIES) =
		(struct urn_abi_am_range){.addr = (uintptr_t)e->mem, .len = MEM, .lkey = e->lkey};
	assert_int_equal(urn_am_region_add(rig.tp, e->ep, &all), 0);
	e->key = all.key;
}

int
rig_setup(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.tp = calloc(1, sizeof(*rig.tp));
	rig.am = urn_am_create(3, 4711, true);
	urn_am_tagged_from(rig.am, UINT32_MAX); /* tests that want a tag say so */
	rig.urn_mem = urn_mem_create(64, 4);
	assert_true(rig.tp && rig.am && rig.urn_mem);
	assert_int_equal(urn_mem_alloc_pd(rig.urn_mem, &rig.pd), 0);
	for (unsigned int i = 0; i < 2; i++) {
		rig.client[i] = calloc(1, sizeof(*rig.client[i]));
		rig.client[i]->sibling = siblings;
	}
	rig.tp->cfg.am = rig.am;
	rig.tp->cfg.mem = rig.urn_mem;
	rig.tp->cfg.mtu = rig.tp->cfg.flow_mtu = MTU;
	rig.tp->now = 1000000000;
	urn_wheel_init(&rig.tp->wheel, rig.tp->now);
	for (unsigned int i = 0; i < ENDS; i++)
		open_end(i);
	return 0;
}

void
rig_close(unsigned int i)
{
	assert_true(urn_am_ep_ops.end(rig.tp, urn_am_ep_source(rig.end[i].ep)));
	rig.end[i].ep = NULL;
}

void
rig_deregister(unsigned int i)
{
	struct urn_region *r;

	assert_int_equal(urn_mem_kill_mr(rig.urn_mem, rig.end[i].lkey, &r), 0);
	urn_mem_free_mr(rig.urn_mem, r);
}

int
rig_teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ENDS; i++)
		if (rig.end[i].ep)
			rig_close(i);
	rig.refuse = URN_MSG_NO_NODE; /* replies that wait are lost */
	rig_turn(rig.tp->now);
	while (rig.held_n)
		rig_answer(0, URN_MSG_UNREACHABLE);
	assert_int_equal(rig.am->outs, 0);
	assert_int_equal(rig.am->replies, 0);
	assert_int_equal(rig.am->tagged->n, 0);
	assert_int_equal(rig.am->tagged->early_n, 0);
	assert_int_equal(rig.am->tagged->turns, 0);
	for (unsigned int i = 0; i < URN_AM_NODES; i++)
		assert_int_equal(rig.am->node[i], 0);
	assert_int_equal(rig.am->kept, URN_AM_NODES * URN_AM_KEEP_REPLIES);
	assert_int_equal(rig.am->tagged->kept, URN_AM_NODES * URN_AM_KEEP_TRANSFERS);
	assert_int_equal(rig.am->tagged->early_kept, URN_AM_NODES * URN_AM_KEEP_EARLY);
	assert_int_equal(rig.client[0]->am + rig.client[1]->am, 0);
	assert_int_equal(rig.tp->wheel.count, 0);
	assert_int_equal(urn_am_count(rig.am), 0);
	for (unsigned int i = 0; i < ENDS; i++) {
		uint8_t *mem = rig.end[i].mem - GUARD;

		for (unsigned int k = 0; k < GUARD; k++)
			assert_int_equal(mem[k] ^ mem[GUARD + MEM + k], 0);
		assert_int_equal(mem[0], GUARD_BYTE);
		free(mem);
		free(rig.end[i].regs);
	}
	urn_am_destroy(rig.am);
	urn_mem_destroy(rig.urn_mem);
	free(rig.client[0]);
	free(rig.client[1]);
	free(rig.tp);
	return 0;
}

uint64_t
rig_qid(unsigned int i)
{
	return urn_am_number(rig.am, rig.end[i].ep->slot);
}

void
rig_gid(uint8_t gid[16], uint8_t node)
{
	memset(gid, 0, 16);
	gid[0] = 0xfd;
	gid[15] = node;
}

struct urn_abi_am_cmd *
rig_next(unsigned int i, uint8_t op, unsigned int to, uint64_t remote, uint64_t local, uint32_t len)
{
	struct end *e = &rig.end[i], *t = &rig.end[to];
	struct urn_abi_am_cmd *c = urn_am_cmds(e->regs) + e->posted % ENTRIES;

	*c = (struct urn_abi_am_cmd){.op = op,
				     .len = len,
				     .qid = rig_qid(to),
				     .remote = (uintptr_t)t->mem + remote,
				     .key = t->key,
				     .local = (uintptr_t)e->mem + local,
				     .lkey = e->lkey,
				     .id = e->posted};
	rig_gid(c->node, 9);
	return c;
}

void
rig_post(unsigned int i)
{
	atomic_store(&rig.end[i].regs->client.commands, ++rig.end[i].posted);
	urn_am_ep_ops.rung(rig.tp, urn_am_ep_source(rig.end[i].ep));
	rig_turn(rig.tp->now);
}

void
rig_command(unsigned int i, uint8_t op, unsigned int to, uint64_t remote, uint64_t local,
	    uint32_t len)
{
	rig_next(i, op, to, remote, local, len);
	rig_post(i);
}

void
rig_tagged(unsigned int i, uint8_t op, unsigned int to, uint64_t remote, uint64_t local,
	   uint32_t len)
{
	rig_next(i, op, to, remote, local, len)->way = URN_AM_TAGGED;
	rig_post(i);
}

void
rig_turn(uint64_t now)
{
	struct urn_timer *t;

	rig.tp->now = now;
	while ((t = urn_wheel_expire(&rig.tp->wheel, now))) {
		struct urn_source *src = ((struct urn_source_timer *)(void *)t)->source;

		urn_source_ops(src)->due(rig.tp, src);
	}
	for (unsigned int n = 0; n < 32 && rig.tp->sched.n; n++) {
		struct urn_source *src = urn_sched_take(&rig.tp->sched);

		if (urn_source_ops(src)->serve(rig.tp, src))
			urn_sched_add(&rig.tp->sched, src);
	}
}

void
rig_answer(unsigned int n, uint8_t code)
{
	struct urn_flow_msg *m = rig.held[n];

	drop(n);
	m->strand = NULL;
	urn_am_flow_user.answered(rig.tp, m, code);
}

/* Make a frame of message n, in buf. returns: false: its bytes are gone */
static bool
make_frame(unsigned int n, uint8_t buf[URN_AM_MSG_MAX])
{
	const struct urn_flow_msg *m = rig.held[n];
	uint32_t head = m->head ? m->head : m->len, half = (m->len - head) / 2;
	struct urn_flow_slice to = {.at = buf + head};

	memcpy(buf, m->data, head);
	if (!m->head)
		return true;
	/* In two parts, as of a long message. */
	return (!half || urn_am_flow_user.gather(rig.tp, m, 0, half, &to)) &&
	       urn_am_flow_user.gather(rig.tp, m, half, m->len - head - half, &to) &&
	       to.at == buf + m->len;
}

uint8_t
rig_deliver(unsigned int n, uint8_t node)
{
	struct urn_flow_from from = {.qid = rig.held[n]->src_qid};
	const struct urn_flow_msg *m = rig.held[n];
	uint8_t buf[URN_AM_MSG_MAX];

	rig_gid(from.node, node);
	if (!make_frame(n, buf))
		return URN_FLOW_GONE;
	return urn_am_flow_user.deliver(rig.tp, &from, m->qid, buf, m->len);
}

void
rig_run(void)
{
	for (unsigned int i = 0; i < 100000 && (rig.held_n || rig.tp->sched.n); i++) {
		if (rig.held_n)
			rig_answer(0, rig_deliver(0, 9));
		rig_turn(rig.tp->now);
	}
	assert_int_equal(rig.held_n, 0);
}

struct urn_am_msg
rig_parsed(unsigned int n)
{
	static uint8_t buf[URN_AM_MSG_MAX];
	struct urn_am_msg m;

	assert_true(n < rig.held_n);
	assert_true(make_frame(n, buf));
	assert_true(urn_am_parse(buf, rig.held[n]->len, &m));
	return m;
}

uint8_t
rig_forge(const struct urn_am_msg *m, uint64_t from_qid, uint8_t node, uint64_t to)
{
	static uint8_t buf[URN_AM_MSG_MAX];
	struct urn_flow_from from = {.qid = from_qid};
	uint32_t len;

	memset(buf, 0xee, sizeof(buf));
	len = urn_am_build(buf, m);
	rig_gid(from.node, node);
	return urn_am_flow_user.deliver(rig.tp, &from, to, buf, len);
}

uint8_t
rig_bytes(const uint8_t *data, uint32_t len, uint64_t from, uint64_t to)
{
	struct urn_flow_from f = {.qid = from};
	uint8_t *exact = malloc(len), code;

	assert_non_null(exact);
	memcpy(exact, data, len);
	rig_gid(f.node, 9);
	code = urn_am_flow_user.deliver(rig.tp, &f, to, exact, len);
	free(exact);
	return code;
}

void
rig_no_event(unsigned int i)
{
	assert_int_equal(atomic_load(&rig.end[i].regs->dp.events), rig.end[i].read);
}

void
rig_expect(unsigned int i, uint8_t code, uint64_t bytes)
{
	struct end *e = &rig.end[i];
	struct urn_abi_am_event ev;

	assert_int_not_equal(atomic_load(&e->regs->dp.events), e->read);
	ev = urn_am_events(e->regs, ENTRIES)[e->read % ENTRIES];
	atomic_store(&e->regs->client.events, ++e->read);
	assert_string_equal(urn_am_code_word(ev.code), urn_am_code_word(code));
	assert_int_equal(ev.code, code);
	assert_int_equal(ev.bytes, bytes);
}

uint64_t
rig_count(enum urn_counter id)
{
	return rig.tp->c.v[id];
}
