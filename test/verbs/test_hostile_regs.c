/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bad input to register sets, one kind a test (doorbell.md DB-1, DB-2, DB-5, DB-7): a process of
 * another user does it again and again, and checks the codes that it gets. Meanwhile a pair of sets
 * on its node, and another over the wire, have to deliver a number of messages, whose bytes are
 * checked. Each kind raises its counters. The process is killed in the midst of it, and all that it
 * had is given back. Progress is a number of messages, never a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile_good.h"

#include "control/dataplane.h"
#include "control/objects.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

enum {
	SIZE = HOSTILE_SIZE,
	ENTRIES = HOSTILE_ENTRIES,
	ENTRY = 320,	      /* bytes of an entry that holds SIZE bytes: a multiple of 64 */
	LONGEST = ENTRY - 32, /* bytes of the longest message of such an entry */
	ARENA = SIZE + ENTRIES * ENTRY, /* bytes of a set's arena: the send buffer, then the ring */
	MESSAGES = 200,			/* messages that each good pair delivers */
	CROWD = 256,			/* sets that name nodes that do not exist */
	LONGS = 8,			/* sets that are closed with long messages under way */
};

/* ---- the hostile process */

static struct hostile_page *page;
static struct urn_register_set *from, *queue, *other;
static uint8_t own[16]; /* the node */

#define HOLD(cond) HOSTILE_HOLD(page, cond)

static struct urn_register_set *
open_set(struct urn_msg_dev *dev, uint32_t send_size)
{
	const struct urn_msg_attr attr = {
		.send_size = send_size, .recv_size = SIZE, .entries = ENTRIES};
	struct urn_register_set *s = urn_msg_set_create(dev, &attr);

	HOLD(s != NULL);
	memset(s->arena, HOSTILE_BYTE, send_size);
	return s;
}

static uint8_t
bell(struct urn_register_set *s, uint64_t addr, uint32_t size, const uint8_t node[16], uint64_t qid)
{
	return hostile_answer(s, hostile_ring(s, addr, size, node, qid));
}

/* A sound message to the queue. returns: the code */
static uint8_t
send_one(void)
{
	return bell(from, 0, SIZE, own, queue->qid);
}

static uint32_t
tail_of(const struct urn_register_set *s)
{
	return atomic_load_explicit(&s->regs->rstat.tail, memory_order_acquire);
}

static uint32_t
state_of(const struct urn_register_set *s)
{
	return atomic_load_explicit(&s->regs->rstat.state, memory_order_acquire);
}

static void
set_head(struct urn_register_set *s, uint32_t head)
{
	atomic_store_explicit(&s->regs->ctrl.head, head, memory_order_release);
}

static void
prepare(const char *path)
{
	struct urn_msg_dev *dev = hostile_msg_connect(page, path);

	HOLD(urn_msg_dev_gid(dev, 1, own) == 0);
	from = open_set(dev, SIZE);
	queue = open_set(dev, SIZE);
	other = open_set(dev, SIZE); /* its registers and arena lie behind those of `queue` */
	HOLD((uint8_t *)other->regs >= queue->arena + ARENA);
}

/* ---- doorbells with a bad address, size or node */

enum node { OWN, NOTHING, LOCALHOST, GROUP4, GROUP6, BROADCAST, ABSENT };
static const uint8_t node_of[][16] = {
	[NOTHING] = {0},
	[LOCALHOST] = {[10] = 0xff, 0xff, 127, 0, 0, 1},
	[GROUP4] = {[10] = 0xff, 0xff, 224, 0, 0, 5},
	[GROUP6] = {0xff, 2, [15] = 1},
	[BROADCAST] = {[10] = 0xff, 0xff, 255, 255, 255, 255},
	[ABSENT] = {[10] = 0xff, 0xff, 10, 0, 0, 77},
};

enum target {
	QUEUE,
	GUARDED,
	ZERO,
	NO_GENERATION,
	RESERVED,
	LONG_NAME,
	NO_NAME,
	NO_SLOT,
	BEFORE,
	NO_ENGINE
};

static uint64_t
qid_of(enum target t)
{
	switch (t) {
	case QUEUE:
		return queue->qid;
	case GUARDED:
		return page->guarded;
	case ZERO:
		return 0;
	case NO_GENERATION:
		return queue->qid & UINT32_MAX;
	case RESERVED:
		return queue->qid | 1u << 20;
	case LONG_NAME:
		return URN_MSG_NAME(7) | 1ull << 32;
	case NO_NAME:
		return URN_MSG_NAME(0x1234567);
	case NO_SLOT:
		return (queue->qid & ~0xffffull) | 60000;
	case BEFORE:
		return queue->qid ^ 1ull << 33;
	case NO_ENGINE:
		return (queue->qid & ~0xf0000ull) | 9u << 16;
	}
	return 0;
}

static const struct {
	uint64_t addr;
	uint32_t size;
	enum node node;
	enum target to;
	uint8_t code;
} bells[] = {
	/* Addresses: behind the arena, over its end, around 2^64, 0 in the lower half alone. */
	{ARENA + 1, 0, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{ARENA, 1, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{ARENA - 15, 16, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{ARENA + sizeof(struct urn_abi_msg_set), SIZE, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{UINT64_MAX, 1, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{UINT64_MAX - 15, 32, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{1ull << 32, 16, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{1ull << 63, 16, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	/* The arena's last bytes, and nothing behind them, are a message. */
	{ARENA - 16, 16, OWN, QUEUE, URN_MSG_DONE},
	{ARENA, 0, OWN, QUEUE, URN_MSG_DONE},
	/* Sizes: 0 is a message; more than the arena, than any message, than the entry; around
	   2^32. */
	{0, 0, OWN, QUEUE, URN_MSG_DONE},
	{0, ARENA + 1, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, URN_MSG_MAX, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, URN_MSG_MAX + 1, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, UINT32_MAX, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{1, UINT32_MAX, OWN, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, LONGEST, OWN, QUEUE, URN_MSG_DONE},
	{0, LONGEST + 1, OWN, QUEUE, URN_MSG_TOO_LONG},
	{0, ARENA, OWN, QUEUE, URN_MSG_TOO_LONG},
	/* Nodes: none, groups, and those that nobody is. */
	{0, SIZE, NOTHING, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, SIZE, GROUP4, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, SIZE, GROUP6, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, SIZE, BROADCAST, QUEUE, URN_MSG_BAD_DOORBELL},
	{0, SIZE, LOCALHOST, QUEUE, URN_MSG_NO_NODE},
	{0, SIZE, ABSENT, QUEUE, URN_MSG_NO_NODE},
	/* Queues: numbers that none can have, and that none has; one that permits nobody. */
	{0, SIZE, OWN, ZERO, URN_MSG_BAD_DOORBELL},
	{0, SIZE, OWN, NO_GENERATION, URN_MSG_BAD_DOORBELL},
	{0, SIZE, OWN, RESERVED, URN_MSG_BAD_DOORBELL},
	{0, SIZE, OWN, LONG_NAME, URN_MSG_BAD_DOORBELL},
	{0, SIZE, OWN, NO_NAME, URN_MSG_NO_QUEUE},
	{0, SIZE, OWN, NO_SLOT, URN_MSG_NO_QUEUE},
	{0, SIZE, OWN, BEFORE, URN_MSG_NO_QUEUE},
	{0, SIZE, OWN, NO_ENGINE, URN_MSG_NO_QUEUE},
	{0, SIZE, OWN, GUARDED, URN_MSG_NOT_PERMITTED},
};

static void
bad_doorbells(struct hostile_page *p, const char *path)
{
	(void)p;
	prepare(path);
	for (;; page->rounds++)
		for (unsigned int i = 0; i < RTE_DIM(bells); i++) {
			const uint8_t *node = bells[i].node == OWN ? own : node_of[bells[i].node];
			uint8_t code;

			/* Nobody answers for seconds: once is enough. */
			if (bells[i].node == ABSENT && page->rounds)
				continue;
			code = bell(from, bells[i].addr, bells[i].size, node, qid_of(bells[i].to));
			if (code != bells[i].code)
				hostile_msg_fail(page, 10000 + 100 * i + code);
			set_head(queue, tail_of(queue));
		}
}

/* ---- heads that jump */

static void
bad_heads(struct hostile_page *p, const char *path)
{
	static const uint32_t jump[] = {
		1,	   ENTRIES,	    ENTRIES + 1,     1u << 31,	 (1u << 31) + 1,
		INT32_MAX, -(ENTRIES + 1u), -(2u * ENTRIES), -(1u << 20)};

	(void)p;
	prepare(path);
	for (;; page->rounds++)
		for (unsigned int i = 0; i < RTE_DIM(jump); i++) {
			uint32_t tail = tail_of(queue);

			set_head(queue, tail + jump[i]);
			HOLD(send_one() == URN_MSG_QUEUE_FULL);
			HOLD(state_of(queue) == URN_MSGQ_BAD_HEAD);
			HOLD(tail_of(queue) == tail);
			set_head(queue, tail - ENTRIES); /* backwards, to a head that a full ring
							    can have */
			HOLD(send_one() == URN_MSG_QUEUE_FULL);
			set_head(queue, tail);
			HOLD(send_one() == URN_MSG_DONE);
			HOLD(state_of(queue) == URN_MSGQ_OPEN);
			HOLD(tail_of(queue) == tail + 1);
			for (unsigned int k = 0; k < SIZE; k++)
				HOLD(queue->arena[k] == HOSTILE_BYTE);
		}
}

/* ---- a ring that is reconfigured while it is busy */

/* Rings that can't be: entries and entry sizes, then places outside the arena, over its end and
 * over another set's. */
static const struct {
	uint64_t base;
	uint32_t entries, entry_size;
} rings[] = {
	{SIZE, 3, ENTRY},
	{SIZE, ENTRIES - 1, ENTRY},
	{SIZE, 1u << 31, ENTRY},
	{SIZE, UINT32_MAX, ENTRY},
	{SIZE, 2 * URN_MSG_ENTRIES_MAX, URN_MSG_ENTRY_MIN},
	{SIZE, 1u << 26, 64},
	{SIZE, ENTRIES, 0},
	{SIZE, ENTRIES, 32},
	{SIZE, ENTRIES, ENTRY - 1},
	{SIZE, ENTRIES, ENTRY - 63},
	{SIZE, ENTRIES, UINT32_MAX - 63},
	{SIZE, 1, URN_MSG_ENTRY_MAX + 64},
	{SIZE + 1, ENTRIES, ENTRY - 64},
	{SIZE + 64, ENTRIES, ENTRY},
	{SIZE, 2 * ENTRIES, ENTRY},
	{SIZE, ENTRIES, ENTRY + 64},
	{ARENA, 1, 64},
	{ARENA + sizeof(struct urn_abi_msg_set), 1, 64},
	{ARENA + sizeof(struct urn_abi_msg_set) + SIZE, ENTRIES, ENTRY},
	{UINT64_MAX - 63, 1, 64},
	{UINT64_MAX - 63, 2, 64},
	{1ull << 32, 1, 64},
	{1ull << 63, ENTRIES, ENTRY},
};

/* The ring is full and a message waits for room: no other ring is taken, and the messages stay. */
static void
while_full(void)
{
	static uint8_t before[ARENA];
	uint32_t tail, seq;

	while (send_one() == URN_MSG_DONE)
		;
	tail = tail_of(queue);
	memcpy(before, queue->arena, ARENA);
	other->regs->send.retries = URN_MSG_NO_END;
	other->regs->send.retry_us = 1000;
	other->regs->send.retry_kinds = URN_MSG_RETRY_QUEUE_FULL;
	seq = hostile_ring(other, 0, SIZE, own, queue->qid);
	HOLD(hostile_configure(queue, 0, ENTRIES, ENTRY) == URN_MSGQ_IN_USE);
	HOLD(hostile_configure(queue, SIZE, ENTRIES / 2, ENTRY) == URN_MSGQ_IN_USE);
	HOLD(hostile_configure(queue, SIZE, ENTRIES, ENTRY - 64) == URN_MSGQ_IN_USE);
	for (unsigned int i = 0; i < RTE_DIM(rings); i++)
		HOLD(hostile_configure(queue, rings[i].base, rings[i].entries,
				       rings[i].entry_size) == URN_MSGQ_BAD_RING);
	HOLD(tail_of(queue) == tail);
	HOLD(memcmp(before, queue->arena, ARENA) == 0);
	/* A smaller ring, taken before the waiting message or after it. */
	set_head(queue, tail);
	if (hostile_configure(queue, SIZE, 2, 64) != URN_MSGQ_IN_USE) {
		set_head(queue, 0);
		HOLD(hostile_answer(other, seq) == URN_MSG_TOO_LONG);
		HOLD(tail_of(queue) == 0);
	} else {
		HOLD(hostile_answer(other, seq) == URN_MSG_DONE);
	}
}

static void
bad_rings(struct hostile_page *p, const char *path)
{
	(void)p;
	prepare(path);
	for (;; page->rounds++) {
		while_full();
		/* Nothing is in the ring; other sets are not touched by rings that would reach
		 * them. */
		set_head(queue, tail_of(queue));
		for (unsigned int i = 0; i < RTE_DIM(rings); i++) {
			HOLD(hostile_configure(queue, rings[i].base, rings[i].entries,
					       rings[i].entry_size) == URN_MSGQ_BAD_RING);
			(void)send_one();
			set_head(queue, tail_of(queue));
		}
		for (unsigned int k = 0; k < SIZE; k++)
			HOLD(other->arena[k] == HOSTILE_BYTE);
		/* No queue at all, then one over the send buffer, which is the set's own. */
		HOLD(hostile_configure(queue, 0, 0, 0) == URN_MSGQ_NONE);
		HOLD(send_one() == URN_MSG_NO_QUEUE);
		set_head(queue, 0);
		HOLD(hostile_configure(queue, 0, ENTRIES, ENTRY) == URN_MSGQ_OPEN);
		for (unsigned int i = 0; i < 3; i++)
			HOLD(bell(queue, 16 * i, SIZE, own, queue->qid) == URN_MSG_DONE);
		HOLD(tail_of(queue) == 3);
		set_head(queue, 3);
		HOLD(hostile_configure(queue, SIZE, ENTRIES, ENTRY) == URN_MSGQ_OPEN);
		set_head(queue, 0);
	}
}

/* ---- ringing while PENDING */

static void
rung_pending(struct hostile_page *p, const char *path)
{
	struct urn_abi_msg_send *l;
	uint32_t first, last, tail;
	uint64_t a;

	(void)p;
	prepare(path);
	l = &other->regs->send;
	for (;; page->rounds++) {
		while (send_one() == URN_MSG_DONE)
			;
		l->retries = URN_MSG_NO_END;
		l->retry_us = 10;
		l->retry_kinds = URN_MSG_RETRY_QUEUE_FULL;
		first = hostile_ring(other, 0, 100, own, queue->qid);
		last = first;
		while (atomic_load(&other->regs->sstat.answer) !=
		       URN_MSG_ANSWER(first, URN_MSG_PENDING))
			sched_yield();
		/* The line changes under the message that it named, and the doorbell rings. */
		for (unsigned int i = 0; i < 8; i++) {
			last = hostile_ring(other, UINT64_MAX - i, UINT32_MAX - i,
					    node_of[i % 6 + 1], i);
			HOLD(send_one() == URN_MSG_QUEUE_FULL);
		}
		HOLD(atomic_load(&other->regs->sstat.answer) ==
		     URN_MSG_ANSWER(first, URN_MSG_PENDING));
		tail = tail_of(queue);
		set_head(queue, tail - ENTRIES + 1);
		do {
			sched_yield();
			a = atomic_load_explicit(&other->regs->sstat.answer, memory_order_acquire);
		} while (urn_msg_answer_code(a) == URN_MSG_PENDING);
		/* The message that was pending; perhaps already the line that was refused. */
		HOLD(a == URN_MSG_ANSWER(first, URN_MSG_DONE) ||
		     a == URN_MSG_ANSWER(last, URN_MSG_BAD_DOORBELL));
		HOLD(tail_of(queue) == tail + 1);
		set_head(queue, tail + 1);
		/* A ring does not send the line that was refused; the next write is taken. */
		urn_dev_ring(&other->dev->dev, other->engine, other->db);
		last = hostile_ring(other, UINT64_MAX, UINT32_MAX, node_of[1], 0);
		HOLD(hostile_answer(other, last) == URN_MSG_BAD_DOORBELL);
	}
}

/* ---- sets that come and go with messages under way */

/* A queue goes while a message to it is under way, and comes back as another. */
static void
reopen_queue(struct urn_msg_dev *dev)
{
	uint64_t before = queue->qid;
	uint32_t seq = hostile_ring(from, 0, SIZE, own, before);
	uint8_t code;

	urn_msg_set_destroy(queue);
	queue = open_set(dev, SIZE);
	code = hostile_answer(from, seq);
	HOLD(code == URN_MSG_DONE || code == URN_MSG_NO_QUEUE);
	HOLD(queue->qid != before);
	HOLD(tail_of(queue) == 0);
	HOLD(bell(from, 0, SIZE, own, before) == URN_MSG_NO_QUEUE);
}

static void
closing(struct hostile_page *p, const char *path)
{
	struct urn_register_set *s[LONGS];
	struct urn_msg_dev *dev;

	(void)p;
	prepare(path);
	dev = from->dev;
	for (;; page->rounds++) {
		for (unsigned int i = 0; i < LONGS; i++) {
			s[i] = open_set(dev, i % 2 ? HOSTILE_LONG : SIZE);
			hostile_ring(s[i], 0, i % 2 ? HOSTILE_LONG - page->rounds % 1000 : SIZE,
				     p->far.node, p->far.qid);
		}
		reopen_queue(dev);
		for (unsigned int i = 0; i < LONGS; i++) {
			memset(s[i]->arena, HOSTILE_BYTE, SIZE);
			urn_msg_set_destroy(s[i]);
		}
	}
}

/* ---- nodes that do not exist, ever others */

static void
nobodies(struct hostile_page *p, const char *path)
{
	struct urn_register_set *s[CROWD];
	uint8_t node[16];
	uint32_t seq[CROWD], n = 0;

	(void)p;
	prepare(path);
	memcpy(node, node_of[LOCALHOST], 16);
	for (unsigned int i = 0; i < CROWD; i++)
		s[i] = open_set(from->dev, SIZE);
	for (;; page->rounds++) {
		for (unsigned int i = 0; i < CROWD; i++, n++) {
			memcpy(node + 13, &n, 3);
			seq[i] = hostile_ring(s[i], 0, SIZE, node, queue->qid);
		}
		for (unsigned int i = 0; i < CROWD; i++)
			HOLD(hostile_answer(s[i], seq[i]) == URN_MSG_NO_NODE);
	}
}

/* ---- tests */

/* A kind of bad input. */
struct bad_kind {
	void (*body)(struct hostile_page *p, const char *path);
	uint32_t rounds; /* rounds at least, while the good sets work */
	enum urn_counter
		rises[8]; /* counters of node a, each by one a round at least; 0: the end */
};

/* The pair and the hostile process work at the same time: each has something to show for it. */
static void
attack(void **state, const struct bad_kind *k)
{
	struct hostile_have before;
	struct rig *r = *state;
	uint64_t count[8];
	struct good_sets g;
	pid_t pid;

	hostile_have(r, &before);
	page = hostile_page_new();
	good_open(&g, r, page);
	for (unsigned int i = 0; k->rises[i]; i++)
		count[i] = rig_counter(r, 0, k->rises[i]);
	pid = hostile_msg_start(r, page, k->body);
	hostile_msg_wait(page, pid, 1);
	good_messages(&g, MESSAGES);
	while (page->rounds < k->rounds) {
		good_messages(&g, 1);
		hostile_msg_wait(page, pid, 0);
	}
	for (unsigned int i = 0; k->rises[i]; i++)
		assert_true(rig_counter(r, 0, k->rises[i]) >= count[i] + page->rounds);
	hostile_msg_kill(page, r, pid, 4);
	good_messages(&g, 10);
	good_guard(&g);
	good_close(&g);
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_have_again(r, &before);
	hostile_others_go_on(r);
}

/* DB-2, DB-5: addresses outside of the arena, sizes, nodes and queues that make no sense. */
static void
test_doorbells(void **state)
{
	static const struct bad_kind k = {bad_doorbells,
					  20,
					  {URN_C_MSG_BAD_DOORBELL, URN_C_MSG_NO_NODE,
					   URN_C_MSG_NO_QUEUE, URN_C_MSG_TOO_LONG,
					   URN_C_MSG_NOT_PERMITTED, URN_C_DROP_MSG_PERMIT}};

	attack(state, &k);
}

/* DB-4: heads beyond the tail, too far behind it, and half of 2^32 away. */
static void
test_heads(void **state)
{
	static const struct bad_kind k = {
		bad_heads, 100, {URN_C_DROP_MSG_HEAD, URN_C_DROP_MSG_FULL}};

	attack(state, &k);
}

/* DB-2: other rings while messages wait in the ring or for room in it; rings that can't be. */
static void
test_rings(void **state)
{
	static const struct bad_kind k = {
		bad_rings, 50, {URN_C_MSG_CONF_REFUSED, URN_C_DROP_MSG_FULL}};

	attack(state, &k);
}

/* DB-2: a doorbell that rings while its message is pending is counted, and changes nothing. */
static void
test_rung_pending(void **state)
{
	static const struct bad_kind k = {
		rung_pending, 50, {URN_C_MSG_RUNG_PENDING, URN_C_MSG_RETRIES}};

	attack(state, &k);
}

/* DB-1: sets are closed and opened again with messages from them and to them under way. */
static void
test_closing(void **state)
{
	static const struct bad_kind k = {closing, 50, {URN_C_MSG_NO_QUEUE}};

	attack(state, &k);
}

/* DB-6: more nodes that do not exist than there may be flows; nobody misses a flow. */
static void
test_nobodies(void **state)
{
	static const struct bad_kind k = {nobodies, 2 + 65536 / CROWD, {URN_C_MSG_NO_NODE}};
	uint64_t none = rig_counter(*state, 0, URN_C_FLOW_NONE);

	attack(state, &k);
	assert_int_equal(rig_counter(*state, 0, URN_C_FLOW_NONE), none);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doorbells), cmocka_unit_test(test_heads),
		cmocka_unit_test(test_rings),	  cmocka_unit_test(test_rung_pending),
		cmocka_unit_test(test_closing),	  cmocka_unit_test(test_nobodies),
	};

	return cmocka_run_group_tests_name("hostile_regs", tests, hostile_setup, hostile_teardown);
}
