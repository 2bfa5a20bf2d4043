/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "transport/sched.h"

#include <stdlib.h>
#include <string.h>

#define PIECE (sizeof(struct urn_abi_msg_set) + RIG_ARENA)
#define STEP (PIECE + RIG_MARGIN)
#define MARGIN_BYTE 0xa5

uint8_t __wrap_urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m);
void __wrap_urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m);

struct rig rig;
static struct urn_tp_share *const siblings[URN_ABI_MAX_ENGINES];

uint8_t
__wrap_urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m)
{
	assert_ptr_equal(tp, rig.tp);
	rig.sends++;
	if (rig.refuse)
		return rig.refuse;
	for (unsigned int i = 0; i < RIG_MSGS; i++) {
		struct rig_msg *r = &rig.flow[i];

		assert_ptr_not_equal(r->m, m); /* a flow has the message already */
		if (r->m)
			continue;
		*r = (struct rig_msg){.m = m, .at = tp->now};
		memcpy(r->gid, gid, 16);
		rig.held++;
		return URN_MSG_PENDING;
	}
	return URN_MSG_BUSY;
}

static struct rig_msg *
holds(const struct urn_flow_msg *m)
{
	for (unsigned int i = 0; i < RIG_MSGS; i++)
		if (rig.flow[i].m == m)
			return &rig.flow[i];
	return NULL;
}

void
__wrap_urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m)
{
	struct rig_msg *r = holds(m);

	assert_ptr_equal(tp, rig.tp);
	assert_non_null(r);
	r->m = NULL;
	rig.held--;
}

int
rig_setup(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.tp = calloc(1, sizeof(*rig.tp));
	rig.regs = urn_msg_regs_create(RIG_ENGINE, RIG_ENGINE, 4711);
	rig.area = aligned_alloc(64, RIG_SETS * STEP);
	for (unsigned int i = 0; i < 2; i++) {
		rig.client[i] = calloc(1, sizeof(*rig.client[i]));
		rig.client[i]->sibling = siblings;
	}
	memset(rig.area, MARGIN_BYTE, RIG_SETS * STEP);
	rig.tp->cfg.engine = RIG_ENGINE;
	rig.tp->cfg.flow_ctx = rig.regs;
	urn_wheel_init(&rig.tp->wheel, 0);
	return 0;
}

int
rig_teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < RIG_SETS; i++)
		if (rig.set[i])
			rig_close(i);
	assert_int_equal(rig.held, 0);
	assert_int_equal(rig.tp->wheel.count, 0);
	assert_int_equal(rig.tp->sched.n, 0);
	assert_int_equal(urn_msg_count(rig.regs), 0);
	assert_false(*urn_msg_untold_at(rig.regs));
	assert_true(rig_margins());
	urn_msg_regs_destroy(rig.regs);
	free(rig.client[0]);
	free(rig.client[1]);
	free(rig.area);
	free(rig.tp);
	return 0;
}

struct urn_abi_msg_set *
rig_regs(unsigned int i)
{
	return (void *)(rig.area + i * STEP);
}

uint8_t *
rig_arena(unsigned int i)
{
	return (uint8_t *)(rig_regs(i) + 1);
}

bool
rig_margins(void)
{
	for (unsigned int i = 0; i < RIG_SETS; i++)
		for (unsigned int k = 0; k < RIG_MARGIN; k++)
			if (rig.area[i * STEP + PIECE + k] != MARGIN_BYTE)
				return false;
	return true;
}

void
rig_open(unsigned int i, int fd, uint64_t cookie)
{
	struct urn_msg_config cfg = {
		.share = rig.client[i % 2],
		.db = i,
		.regs = rig_regs(i),
		.arena = RIG_ARENA,
		.channel_fd = fd,
		.cookie = cookie,
	};

	memset(rig_regs(i), 0, PIECE);
	assert_int_equal(urn_msg_open(rig.regs, &cfg, &rig.set[i]), 0);
}

void
rig_close(unsigned int i)
{
	assert_true(urn_msg_ops.end(rig.tp, urn_msg_source(rig.set[i])));
	rig.set[i] = NULL;
}

uint64_t
rig_qid(unsigned int i)
{
	return urn_msg_number(rig.regs, rig.set[i]->slot);
}

void
rig_gid(uint8_t gid[16], uint8_t node)
{
	memset(gid, 0, 16);
	gid[0] = 0xfd;
	gid[15] = node;
}

void
rig_ring(unsigned int i)
{
	urn_msg_ops.rung(rig.tp, urn_msg_source(rig.set[i]));
}

void
rig_send(unsigned int i, uint64_t addr, uint32_t size, uint64_t qid)
{
	struct urn_abi_msg_send *l = &rig_regs(i)->send;

	l->addr = addr;
	l->size = size;
	l->qid = qid;
	rig_gid(l->node, 9);
	atomic_store(&l->seq, atomic_load(&l->seq) + 1);
	rig_ring(i);
	rig_turn(rig.tp->now);
}

uint32_t
rig_configure(unsigned int i, uint64_t base, uint32_t entries, uint32_t entry_size)
{
	struct urn_abi_msg_set *r = rig_regs(i);
	uint32_t seq = atomic_load(&r->conf.seq) + 1;

	r->conf.base = base;
	r->conf.entries = entries;
	r->conf.entry_size = entry_size;
	atomic_store(&r->conf.seq, seq);
	rig_ring(i);
	rig_turn(rig.tp->now);
	assert_int_equal(atomic_load(&r->rstat.conf_seq), seq);
	return atomic_load(&r->rstat.state);
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
	for (uint32_t n = rig.tp->sched.n; n; n--) {
		struct urn_source *src = urn_sched_take(&rig.tp->sched);

		if (urn_source_ops(src)->serve(rig.tp, src))
			urn_sched_add(&rig.tp->sched, src);
	}
}

struct rig_msg *
rig_held(unsigned int i)
{
	return holds(&rig.set[i]->msg);
}

void
rig_answer(unsigned int i, uint8_t code)
{
	struct rig_msg *r = rig_held(i);
	struct urn_flow_msg *m;

	assert_non_null(r);
	m = r->m;
	r->m = NULL;
	rig.held--;
	urn_msg_flow_user.answered(rig.tp, m, code);
}

uint8_t
rig_code(unsigned int i)
{
	return urn_msg_answer_code(atomic_load(&rig_regs(i)->sstat.answer));
}

uint32_t
rig_answered_seq(unsigned int i)
{
	return urn_msg_answer_seq(atomic_load(&rig_regs(i)->sstat.answer));
}

uint8_t
rig_deliver(uint64_t qid, uint32_t len, uint8_t fill)
{
	struct urn_flow_from from = {.qid = 77};
	uint8_t *data = malloc(len + 1);
	uint8_t code;

	assert_non_null(data);
	rig_gid(from.node, 1);
	memset(data, fill, len + 1);
	code = urn_msg_flow_user.deliver(rig.tp, &from, qid, data, len);
	free(data);
	return code;
}

uint64_t
rig_count(enum urn_counter id)
{
	return rig.tp->c.v[id];
}
