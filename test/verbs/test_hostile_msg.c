/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that writes rubbish over its register sets and arenas, rings all doorbells, fills another client's queue
 * and is killed with all of that in flight (doorbell.md DB-1, DB-5, DB-7). Nothing here depends on time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"
#include "msg/set.h"

#include "control/adapter.h"
#include "control/objects.h"
#include "msg/msg.h"

#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETS = 200, ENTRIES = 8, SIZE = 256, MESSAGES = 300, NOBODY = 65534 };

/* Target of the hostile process. */
struct target {
	struct urn_msg_to to;
};

/* Send from each set to the victim's queue. Ends the process unless the queue takes ENTRIES messages and no more. */
static void
fill_queue(struct urn_register_set **s, const struct target *t)
{
	uint8_t bytes[SIZE], code;
	unsigned int done = 0, full = 0;

	memset(bytes, 0x5a, sizeof(bytes));
	for (unsigned int i = 0; i < SETS; i++) {
		if (urn_msg_set_send_wait(s[i], &t->to, bytes, SIZE, -1, &code) != 0)
			_exit(3);
		done += code == URN_MSG_DONE;
		full += code == URN_MSG_QUEUE_FULL;
	}
	if (done != ENTRIES || full != SETS - ENTRIES)
		_exit(4);
}

/* Write rubbish over a set, and ring a doorbell, of whoever. */
static void
scribble(struct urn_register_set *s, uint32_t *rnd, const struct target *t)
{
	uint8_t *at = (uint8_t *)s->regs;
	size_t bytes = sizeof(*s->regs) + SIZE;

	for (unsigned int i = 0; i < 64; i++) {
		*rnd = *rnd * 1103515245u + 12345u;
		((volatile uint8_t *)at)[(*rnd >> 8) % bytes] = (uint8_t)(*rnd >> 4);
	}
	if (*rnd & 0x10000) { /* a sound target, so that messages get that far */
		memcpy(s->regs->send.node, t->to.node, 16);
		s->regs->send.qid = t->to.qid;
		s->regs->send.size = (*rnd >> 17) % SIZE;
		s->regs->send.addr = 0;
	}
	atomic_fetch_add(&s->regs->send.seq, 1);
	urn_dev_ring(&s->dev->dev, s->engine, *rnd & 0x20000 ? s->db : (*rnd >> 18) % 1024);
}

static void
attacker(const char *path, int in, int say)
{
	const struct urn_msg_attr attr = {.send_size = SIZE, .recv_size = SIZE, .entries = ENTRIES};
	struct urn_register_set *s[SETS];
	struct urn_msg_dev *dev;
	struct target t;
	bool root = geteuid() == 0;
	uint32_t rnd = 1;

	alarm(300);
	/* Another user, who may use the socket all the same: files are looked up for root until the process is attached. */
	if (root && (seteuid(NOBODY) != 0 || setfsuid(0) < 0))
		_exit(1);
	if (read(in, &t, sizeof(t)) != (ssize_t)sizeof(t) || !(dev = urn_msg_dev_connect(path, "a")))
		_exit(2);
	if (root && (seteuid(0) != 0 || setuid(NOBODY) != 0))
		_exit(1);
	for (unsigned int i = 0; i < SETS; i++)
		if (!(s[i] = urn_msg_set_create(dev, &attr)))
			_exit(5);
	fill_queue(s, &t);
	for (uint32_t n = 0;; n++) {
		if (n == 20 * SETS && write(say, "", 1) != 1)
			_exit(6);
		scribble(s[n % SETS], &rnd, &t);
	}
}

/* A message of the victim's between its own sets arrives once, with its bytes. */
static void
one_message(struct urn_register_set *from, struct urn_register_set *to, const struct urn_msg_to *where, uint32_t n)
{
	uint8_t bytes[SIZE], code = 0;
	struct urn_msg m;

	memset(bytes, (int)n, sizeof(bytes));
	assert_int_equal(urn_msg_set_send_wait(from, where, bytes, SIZE, -1, &code), 0);
	assert_int_equal(code, URN_MSG_DONE);
	assert_int_equal(urn_msg_set_waiting(to), 1);
	assert_int_equal(urn_msg_set_poll(to, &m), 1);
	assert_int_equal(m.len, SIZE);
	assert_true(m.qid == urn_msg_set_qid(from));
	assert_memory_equal(m.data, bytes, SIZE);
	urn_msg_set_release(to);
}

static uint32_t
sets_of(const struct rig *r)
{
	const struct urn_adapter *a = r->dp->adapter[0];
	uint32_t n = 0;

	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++)
		n += a->shard[e] ? urn_msg_count(a->shard[e]->msg) : 0;
	return n;
}

static void
test_scribbler(void **state)
{
	const struct urn_msg_attr attr = {.send_size = SIZE, .recv_size = SIZE, .entries = ENTRIES};
	struct urn_register_set *from, *to, *full;
	struct rig *r = *state;
	int in[2], say[2], status;
	struct urn_msg_dev *dev;
	struct target t = {0};
	struct urn_msg m;
	pid_t pid;
	char c;

	assert_int_equal(pipe(in) | pipe(say), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(say[0]);
		attacker(r->path, in[0], say[1]);
	}
	close(say[1]);
	dev = urn_msg_dev_connect(r->path, "a");
	assert_non_null(dev);
	assert_non_null(from = urn_msg_set_create(dev, &attr));
	assert_non_null(to = urn_msg_set_create(dev, &attr));
	assert_non_null(full = urn_msg_set_create(dev, &attr));
	assert_int_equal(urn_msg_dev_gid(dev, 1, t.to.node), 0);
	t.to.qid = urn_msg_set_qid(full);
	assert_int_equal(write(in[1], &t, sizeof(t)), sizeof(t));
	if (read(say[0], &c, 1) != 1) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		fail_msg("the hostile process ended with status 0x%x", (unsigned int)status);
	}
	memset(full->arena, 0xc5, SIZE); /* the send buffer: nobody writes there */
	t.to.qid = urn_msg_set_qid(to);
	for (uint32_t n = 0; n < MESSAGES; n++)
		one_message(from, to, &t.to, n);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(hostile_clients(r, 3), 3);
	assert_int_equal(sets_of(r), 3);
	one_message(from, to, &t.to, 7);
	for (unsigned int i = 0; i < SIZE; i++)
		assert_int_equal(full->arena[i], 0xc5);
	assert_int_equal(urn_msg_set_waiting(full), ENTRIES);
	for (unsigned int i = 0; i < ENTRIES; i++) {
		assert_int_equal(urn_msg_set_poll(full, &m), 1);
		assert_int_equal(m.len, SIZE);
		for (unsigned int k = 0; k < SIZE; k++)
			assert_int_equal(((const uint8_t *)m.data)[k], 0x5a);
		urn_msg_set_release(full);
	}
	urn_msg_set_destroy(from);
	urn_msg_set_destroy(to);
	urn_msg_set_destroy(full);
	urn_msg_dev_close(dev);
	assert_int_equal(hostile_clients(r, 2), 2);
	assert_int_equal(sets_of(r), 0);
	hostile_others_go_on(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_scribbler)};

	return cmocka_run_group_tests_name("hostile_msg", tests, hostile_setup, hostile_teardown);
}
