/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile_good.h"

#include <string.h>

enum {
	SIZE = HOSTILE_SIZE,
	ENTRIES = HOSTILE_ENTRIES,
	ARENA = SIZE + ENTRIES * 320, /* bytes of the arena of a set that takes SIZE bytes and sends
					 as many */
	GUARD = 0xc5,		      /* each byte of an arena where nobody writes */
};

static struct urn_register_set *
good_set(struct urn_msg_dev *dev, uint32_t send_size, uint32_t recv_size, bool guarded)
{
	struct urn_msg_attr attr = {
		.send_size = send_size, .recv_size = recv_size, .entries = ENTRIES};
	struct urn_register_set *s;

	if (guarded) {
		attr.permit_bits = 128;
		memset(attr.permit, 0xfd, sizeof(attr.permit));
	}
	s = urn_msg_set_create(dev, &attr);
	assert_non_null(s);
	return s;
}

void
good_open(struct good_sets *g, const struct rig *r, struct hostile_page *p)
{
	memset(g, 0, sizeof(*g));
	for (int i = 0; i < 2; i++) {
		g->dev[i] = urn_msg_dev_connect(r->path, i ? "b" : "a");
		assert_non_null(g->dev[i]);
	}
	g->from = good_set(g->dev[0], 20000, 0, false);
	g->near = good_set(g->dev[0], 0, SIZE, false);
	g->guard = good_set(g->dev[0], SIZE, SIZE, true);
	g->far = good_set(g->dev[1], 0, 20000, false);
	g->sink = good_set(g->dev[1], 0, HOSTILE_LONG, false);
	assert_int_equal(urn_msg_dev_gid(g->dev[0], 1, g->to_near.node), 0);
	assert_int_equal(urn_msg_dev_gid(g->dev[1], 1, g->to_far.node), 0);
	g->to_near.qid = urn_msg_set_qid(g->near);
	g->to_far.qid = urn_msg_set_qid(g->far);
	/* Clients share room in a flow by the hash of their address (flow.c): with bad luck, these
	 * two. */
	g->to_far.retries = UINT16_MAX;
	g->to_far.retry_kinds = URN_MSG_RETRY_BUSY;
	memset(g->guard->arena, GUARD, ARENA);
	p->near = g->to_near;
	p->far = g->to_far;
	p->far.qid = urn_msg_set_qid(g->sink);
	p->guarded = urn_msg_set_qid(g->guard);
}

void
good_close(struct good_sets *g)
{
	urn_msg_set_destroy(g->from);
	urn_msg_set_destroy(g->near);
	urn_msg_set_destroy(g->guard);
	urn_msg_set_destroy(g->far);
	urn_msg_set_destroy(g->sink);
	urn_msg_dev_close(g->dev[0]);
	urn_msg_dev_close(g->dev[1]);
}

/* A message of the good sets arrives once, with its bytes. */
static void
good_message(struct good_sets *g, struct urn_register_set *to, const struct urn_msg_to *where,
	     uint32_t len)
{
	uint8_t bytes[20000], code = 0;
	struct urn_msg m;

	rig_fill(bytes, len, ++g->n);
	assert_int_equal(urn_msg_set_send_wait(g->from, where, bytes, len, -1, &code), 0);
	assert_int_equal(code, URN_MSG_DONE);
	assert_int_equal(urn_msg_set_waiting(to), 1);
	assert_int_equal(urn_msg_set_poll(to, &m), 1);
	assert_int_equal(m.len, len);
	assert_true(m.qid == urn_msg_set_qid(g->from));
	assert_memory_equal(m.data, bytes, len);
	urn_msg_set_release(to);
}

/* Hostile messages have bytes of their sender's alone. */
static void
good_drain(struct good_sets *g)
{
	struct urn_msg m;

	while (urn_msg_set_poll(g->sink, &m)) {
		const uint8_t *p = m.data;

		assert_true(m.len > 0 && p[0] == HOSTILE_BYTE);
		assert_memory_equal(p, p + 1, m.len - 1);
		urn_msg_set_release(g->sink);
	}
}

void
good_messages(struct good_sets *g, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		good_message(g, g->near, &g->to_near, SIZE);
		good_message(g, g->far, &g->to_far, i % 8 ? 64 : 20000);
		good_drain(g);
	}
}

void
good_guard(const struct good_sets *g)
{
	assert_int_equal(urn_msg_set_waiting(g->guard), 0);
	for (unsigned int i = 0; i < ARENA; i++)
		assert_int_equal(g->guard->arena[i], GUARD);
}
