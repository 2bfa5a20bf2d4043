/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages, active messages and operations on remote memory that nobody takes, or too many. */
#include "attacks.h"

#include <urnic/am.h>
#include <urnic/msg.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FLOOD = 256, /* sets that send to one queue */
	LONG = 32,   /* sets with long messages */
	SHORT_BYTES = 64,
	LONG_BYTES = 1 << 20,
	EVER = 65535, /* retries without end */
	HANDLER = 7,
	REQUESTS = 4096,
	OPERATIONS = 1024,
	OPERATION_BYTES = 1 << 20,
	NODES = 64, /* that there are not */
};

/* ---- messages */

struct flood {
	struct urn_msg_dev *dev[2];
	struct urn_register_set **set; /* n senders, on node a */
	struct urn_register_set *to;   /* on node b */
	struct urn_msg_to target;
	unsigned int n;
};

static void
flood_open(struct flood *l, const struct foe *f, unsigned int n, uint32_t bytes)
{
	const struct urn_msg_attr send = {.send_size = bytes},
				  recv = {.recv_size = bytes, .entries = 4};

	memset(l, 0, sizeof(*l));
	for (unsigned int i = 0; i < 2; i++) {
		l->dev[i] = urn_msg_dev_connect(f->path, i ? "b" : "a");
		FOE_MUST(l->dev[i] != NULL, "attach");
	}
	l->to = urn_msg_set_create(l->dev[1], &recv);
	l->set = calloc(n, sizeof(*l->set));
	FOE_MUST(l->to != NULL && l->set != NULL, "queue");
	l->n = n;
	for (unsigned int i = 0; i < n; i++) {
		l->set[i] = urn_msg_set_create(l->dev[0], &send);
		FOE_MUST(l->set[i] != NULL, "register set");
		memset(urn_msg_set_buffer(l->set[i]), 0xee, bytes);
	}
	FOE_MUST(urn_msg_dev_gid(l->dev[1], 1, l->target.node) == 0, "GID");
	l->target.qid = urn_msg_set_qid(l->to);
	l->target.retry_us = 1;
	l->target.retries = EVER;
	l->target.retry_kinds = URN_MSG_RETRY_KINDS;
}

/* Send from each set whose message before is answered. */
static void
flood_once(struct flood *l, uint32_t bytes)
{
	for (unsigned int i = 0; i < l->n; i++)
		(void)urn_msg_set_send(l->set[i], &l->target, urn_msg_set_buffer(l->set[i]), bytes);
}

/* The queue is read at times, so that messages go on: its state changes all the time. */
static void __attribute__((noreturn)) flood_ever(struct flood *l, struct foe *f, uint32_t bytes)
{
	struct urn_msg m;

	foe_ready(f);
	for (;;) {
		flood_once(l, bytes);
		if (urn_msg_set_poll(l->to, &m))
			urn_msg_set_release(l->to);
		sched_yield();
		foe_round(f);
	}
}

void
attack_queue_full(struct foe *f)
{
	struct flood l;

	flood_open(&l, f, FLOOD, SHORT_BYTES);
	flood_ever(&l, f, SHORT_BYTES);
}

void
attack_long_messages(struct foe *f)
{
	struct flood l;

	flood_open(&l, f, LONG, LONG_BYTES);
	flood_ever(&l, f, LONG_BYTES);
}

void
attack_no_node(struct foe *f)
{
	struct flood l;

	flood_open(&l, f, FLOOD, SHORT_BYTES);
	l.target.retries = 0;
	foe_ready(f);
	for (;;) {
		for (unsigned int i = 0; i < NODES; i++) {
			l.target.node[15] = (uint8_t)(100 + i);
			flood_once(&l, SHORT_BYTES);
		}
		sched_yield();
		foe_round(f);
	}
}

/* ---- endpoints */

struct talk {
	struct urn_msg_dev *dev[2];
	struct urn_am_endpoint *ep[2];
	struct urn_am_address to;
};

static void
talk_open(struct talk *t, const struct foe *f)
{
	const struct urn_am_attr attr = {.queue = 4096,
					 .requests = REQUESTS,
					 .operations = OPERATIONS,
					 .answer_ms = 1000,
					 .wakes = 1};

	for (unsigned int i = 0; i < 2; i++) {
		t->dev[i] = urn_msg_dev_connect(f->path, i ? "b" : "a");
		FOE_MUST(t->dev[i] != NULL, "attach");
		t->ep[i] = urn_am_endpoint_create(t->dev[i], &attr);
		FOE_MUST(t->ep[i] != NULL, "endpoint");
	}
	FOE_MUST(urn_am_address(t->ep[1], 1, &t->to) == 0, "address");
}

static void
never_return(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	(void)m;
	(void)arg;
	for (;;)
		pause();
}

void
attack_stuck_handler(struct foe *f)
{
	uint8_t payload[1024] = {0};
	struct talk t;

	talk_open(&t, f);
	FOE_MUST(urn_am_handle(t.ep[1], HANDLER, never_return, NULL) == 0, "handler");
	FOE_MUST(urn_am_thread_start(t.ep[1]) == 0, "thread");
	foe_ready(f);
	for (;;) {
		while (urn_am_request(t.ep[0], &t.to, HANDLER, NULL, 0, payload, sizeof(payload),
				      NULL) == 0)
			;
		(void)urn_am_progress(t.ep[0]);
		sched_yield();
		foe_round(f);
	}
}

void
attack_rma(struct foe *f)
{
	struct urn_am_memory memory[2];
	struct urn_am_part all;
	struct urn_rma op;
	struct talk t;
	uint8_t *buf[2];
	uint64_t key;

	talk_open(&t, f);
	for (unsigned int i = 0; i < 2; i++) {
		buf[i] = urn_alloc(OPERATION_BYTES);
		FOE_MUST(buf[i] != NULL && urn_am_memory_add(t.ep[i], buf[i], OPERATION_BYTES,
							     &memory[i]) == 0,
			 "memory");
	}
	all = (struct urn_am_part){&memory[1], buf[1], OPERATION_BYTES};
	FOE_MUST(urn_am_region_create(t.ep[1], &all, 1, URN_AM_ACCESS_ALL, &key) == 0, "region");
	op = (struct urn_rma){.to = &t.to,
			      .remote = (uintptr_t)buf[1],
			      .key = key,
			      .memory = &memory[0],
			      .local = buf[0],
			      .len = OPERATION_BYTES};
	foe_ready(f);
	for (;;) {
		op.way = (uint8_t)(foe_below(f, 2) ? URN_AM_PIPELINED : URN_AM_TAGGED);
		while ((foe_below(f, 2) ? urn_rma_write : urn_rma_read)(t.ep[0], &op) == 0)
			;
		(void)urn_am_progress(t.ep[0]);
		sched_yield();
		foe_round(f);
	}
}
