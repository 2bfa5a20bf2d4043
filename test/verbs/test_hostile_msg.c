/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process with 1,024 register sets that writes rubbish over them and their arenas, rings all
 * doorbells, fills another client's queue and is killed with all of that in flight (doorbell.md
 * DB-1, DB-5, DB-7). Nothing here depends on time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile_msg.h"

#include <string.h>

enum { SETS = 1024, ENTRIES = HOSTILE_ENTRIES, SIZE = HOSTILE_SIZE, MESSAGES = 300 };

/* Send from each set to the victim's queue: the queue takes ENTRIES messages and no more. */
static void
fill_queue(struct hostile_page *p, struct urn_register_set **s)
{
	uint8_t bytes[SIZE], code;
	unsigned int done = 0, full = 0;

	memset(bytes, HOSTILE_BYTE, sizeof(bytes));
	for (unsigned int i = 0; i < SETS; i++) {
		HOSTILE_HOLD(p, urn_msg_set_send_wait(s[i], &p->near, bytes, SIZE, -1, &code) == 0);
		done += code == URN_MSG_DONE;
		full += code == URN_MSG_QUEUE_FULL;
	}
	HOSTILE_HOLD(p, done == ENTRIES && full == SETS - ENTRIES);
}

/* Write rubbish over a set, and ring a doorbell, of whoever. */
static void
scribble(struct urn_register_set *s, uint32_t *rnd, const struct urn_msg_to *to)
{
	uint8_t *at = (uint8_t *)s->regs;
	size_t bytes = sizeof(*s->regs) + SIZE;

	for (unsigned int i = 0; i < 64; i++) {
		*rnd = *rnd * 1103515245u + 12345u;
		((volatile uint8_t *)at)[(*rnd >> 8) % bytes] = (uint8_t)(*rnd >> 4);
	}
	if (*rnd & 0x10000) { /* a sound target, so that messages get that far */
		memcpy(s->regs->send.node, to->node, 16);
		s->regs->send.qid = to->qid;
		s->regs->send.size = (*rnd >> 17) % SIZE;
		s->regs->send.addr = 0;
	}
	atomic_fetch_add(&s->regs->send.seq, 1);
	urn_dev_ring(&s->dev->dev, s->engine, *rnd & 0x20000 ? s->db : (*rnd >> 18) % 4096);
}

static void
attacker(struct hostile_page *p, const char *path)
{
	const struct urn_msg_attr attr = {.send_size = SIZE, .recv_size = SIZE, .entries = ENTRIES};
	struct urn_register_set *s[SETS];
	struct urn_msg_dev *dev = hostile_msg_connect(p, path);
	uint32_t rnd = 1;

	for (unsigned int i = 0; i < SETS; i++) {
		s[i] = urn_msg_set_create(dev, &attr);
		HOSTILE_HOLD(p, s[i] != NULL);
	}
	fill_queue(p, s);
	for (uint32_t n = 0;; n++) {
		if (n % SETS == 0)
			p->rounds++;
		scribble(s[n % SETS], &rnd, &p->near);
	}
}

/*
 * Take the messages of a queue. A hostile one may be there, because scribbled numbers of queues hit
 * this one now and then. returns: how many were the sender's of the pair, with the bytes of message
 * n
 */
static unsigned int
take(struct urn_register_set *to, const struct urn_register_set *from, uint32_t n)
{
	uint8_t bytes[SIZE];
	unsigned int found = 0;
	struct urn_msg m;

	memset(bytes, (int)n, sizeof(bytes));
	for (; urn_msg_set_poll(to, &m); urn_msg_set_release(to)) {
		if (m.qid != urn_msg_set_qid(from))
			continue;
		assert_int_equal(m.len, SIZE);
		assert_memory_equal(m.data, bytes, SIZE);
		found++;
	}
	return found;
}

/* A message of the victim's between its own sets arrives once, with its bytes. */
static void
one_message(struct urn_register_set *from, struct urn_register_set *to, const struct urn_msg_to *where, uint32_t n)
{
	uint8_t bytes[SIZE], code = 0;

	memset(bytes, (int)n, sizeof(bytes));
	do {
		assert_int_equal(take(to, from, n), 0);
		assert_int_equal(urn_msg_set_send_wait(from, where, bytes, SIZE, -1, &code), 0);
	} while (code == URN_MSG_QUEUE_FULL);
	assert_int_equal(code, URN_MSG_DONE);
	assert_int_equal(take(to, from, n), 1);
}

/* The queue that was filled holds what the hostile process sent then, and nothing else. */
static void
check_full(struct urn_register_set *full)
{
	uint8_t bytes[SIZE];
	struct urn_msg m;

	for (unsigned int i = 0; i < SIZE; i++)
		assert_int_equal(full->arena[i], 0xc5);
	memset(bytes, HOSTILE_BYTE, sizeof(bytes));
	assert_int_equal(urn_msg_set_waiting(full), ENTRIES);
	for (unsigned int i = 0; i < ENTRIES; i++) {
		assert_int_equal(urn_msg_set_poll(full, &m), 1);
		assert_int_equal(m.len, SIZE);
		assert_memory_equal(m.data, bytes, SIZE);
		urn_msg_set_release(full);
	}
}

static void
test_scribbler(void **state)
{
	const struct urn_msg_attr attr = {.send_size = SIZE, .recv_size = SIZE, .entries = ENTRIES};
	struct urn_register_set *from, *to, *full;
	struct hostile_page *page = hostile_page_new();
	struct hostile_have before, mine;
	struct rig *r = *state;
	struct urn_msg_dev *dev;
	struct urn_msg_to t = {0};
	pid_t pid;

	hostile_have(r, &before);
	dev = urn_msg_dev_connect(r->path, "a");
	assert_non_null(dev);
	assert_non_null(from = urn_msg_set_create(dev, &attr));
	assert_non_null(to = urn_msg_set_create(dev, &attr));
	assert_non_null(full = urn_msg_set_create(dev, &attr));
	assert_int_equal(urn_msg_dev_gid(dev, 1, t.node), 0);
	t.qid = urn_msg_set_qid(full);
	page->near = t;
	memset(full->arena, 0xc5, SIZE); /* the send buffer: nobody writes there */
	hostile_have(r, &mine);
	assert_int_equal(mine.sets, 3);
	pid = hostile_msg_start(r, page, attacker);
	hostile_msg_wait(page, pid, 20);
	t.qid = urn_msg_set_qid(to);
	for (uint32_t n = 0; n < MESSAGES; n++)
		one_message(from, to, &t, n);
	hostile_msg_wait(page, pid, 60);
	hostile_msg_kill(page, r, pid, 3);
	hostile_have_again(r, &mine);
	one_message(from, to, &t, 7);
	check_full(full);
	urn_msg_set_destroy(from);
	urn_msg_set_destroy(to);
	urn_msg_set_destroy(full);
	urn_msg_dev_close(dev);
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_have_again(r, &before);
	hostile_others_go_on(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_scribbler)};

	return cmocka_run_group_tests_name("hostile_msg", tests, hostile_setup, hostile_teardown);
}
