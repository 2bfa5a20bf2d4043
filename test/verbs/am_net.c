/* SPDX-License-Identifier: BSD-3-Clause */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

struct urn_am_attr net_attr = {.payload = PAYLOAD, .queue = 8, .requests = 8, .answer_ms = 1000};
bool net_unregistered;

static struct urn_msg_dev *
open_dev(struct rig *r, unsigned int node, bool socket)
{
	char name[2] = {(char)('a' + node), '\0'};
	struct urn_abi_channel *ch;
	struct urn_err err;

	if (socket)
		return urn_msg_dev_connect(r->path, name);
	ch = urn_dp_attach(r->dp, node, &err);
	return ch ? urn_msg_dev_open(ch) : NULL;
}

static struct net *
make_net(bool socket)
{
	struct rig_config cfg = {.remote = true, .global = true, .unregistered = net_unregistered};
	struct net *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	rig_open(&n->rig, &cfg, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = &n->side[i];

		s->dev = open_dev(&n->rig, i, socket);
		assert_non_null(s->dev);
		s->ep = urn_am_endpoint_create(s->dev, &net_attr);
		if (!s->ep)
			fail_msg("%s", urn_attach_error());
		assert_int_equal(urn_am_address(s->ep, 1, &s->address), 0);
		s->buf = urn_alloc(MEM);
		assert_non_null(s->buf);
		assert_int_equal(urn_am_memory_add(s->ep, s->buf, MEM, &s->memory), 0);
	}
	return n;
}

int
net_setup(void **state)
{
	*state = make_net(*state != NULL);
	return 0;
}

int
net_teardown(void **state)
{
	struct net *n = *state;

	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = &n->side[i];

		(void)urn_am_memory_remove(s->ep, &s->memory);
		urn_am_endpoint_destroy(s->ep);
		urn_msg_dev_close(s->dev);
		urn_free(s->buf);
	}
	rig_close(&n->rig);
	free(n);
	return 0;
}

void
net_until(struct net *n, const unsigned int *number, unsigned int value)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (*number < value) {
		if (urn_clock_ms() > end)
			fail_msg("nothing came for a minute");
		(void)urn_am_progress(n->side[0].ep);
		(void)urn_am_progress(n->side[1].ep);
		sched_yield();
	}
}

void
net_until_quiet(struct net *n, const struct side *s)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (urn_am_pending(s->ep) || urn_rma_pending(s->ep)) {
		if (urn_clock_ms() > end)
			fail_msg("something is pending after a minute");
		(void)urn_am_progress(n->side[0].ep);
		(void)urn_am_progress(n->side[1].ep);
		sched_yield();
	}
}

uint8_t
net_operate(struct net *n, struct side *s, bool write, struct urn_rma op)
{
	unsigned int done = s->done;

	op.memory = &s->memory;
	op.done = net_note_done;
	op.arg = s;
	assert_int_equal(write ? urn_rma_write(s->ep, &op) : urn_rma_read(s->ep, &op), 0);
	net_until(n, &s->done, done + 1);
	return s->code;
}

void
net_note_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	struct side *s = arg;

	(void)ep;
	s->code = code;
	s->bytes = bytes;
	s->done++;
}

void
net_ask_rudely(struct net_rude *r, const struct urn_am_address *to, uint64_t reply_to)
{
	struct urn_am_head h = {.magic = URN_AM_MAGIC, .kind = URN_AM_M_REQUEST, .args = 1};
	struct urn_msg_to t = {.qid = to->requests};
	uint64_t arg = htobe64(NET_RUDE_ARG);
	uint8_t msg[sizeof(h) + sizeof(arg)];

	if (urn_msg_set_status(r->set) == URN_MSG_PENDING)
		return;
	memcpy(t.node, to->node, sizeof(t.node));
	h.handler = htobe32(7);
	h.number = htobe64(++r->number);
	h.reply_to = htobe64(reply_to);
	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), &arg, sizeof(arg));
	assert_int_equal(urn_msg_set_send(r->set, &t, msg, sizeof(msg)), 0);
}

struct urn_am_peer *
net_node_of(struct urn_am_outbox *box, const uint8_t node[16])
{
	struct urn_am_peer *queue = urn_am_peer_get(box, node, 0), *p;

	assert_non_null(queue);
	p = queue->above;
	p->users++;
	urn_am_peer_put(box, queue);
	return p;
}
