/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving by registers: answers, the ring, waking (DB-2 to DB-8). */
#include "test.h"

#include "abi/clock.h"
#include "msg_fake.h"
#include "msg/set.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

struct rig {
	struct msg_fake *f;
	struct urn_msg_dev *dev;
	struct urn_register_set *a, *b;
	struct urn_msg_to to; /* queue of b */
};

static int
setup(void **state)
{
	static struct rig r;
	const struct urn_msg_attr attr = {
		.send_size = 4096, .recv_size = 1000, .entries = 4, .wakes = 1};

	memset(&r, 0, sizeof(r));
	r.f = msg_fake_new();
	r.dev = urn_msg_dev_open(&r.f->channel);
	r.a = urn_msg_set_create(r.dev, &attr);
	r.b = urn_msg_set_create(r.dev, &attr);
	memcpy(r.to.node, r.f->gid[0], 16);
	r.to.qid = urn_msg_set_qid(r.b);
	*state = &r;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *r = *state;

	urn_msg_set_destroy(r->a);
	urn_msg_set_destroy(r->b);
	urn_msg_dev_close(r->dev);
	msg_fake_free(r->f);
	return 0;
}

static uint8_t
send_one(struct rig *r, const void *data, uint32_t len)
{
	uint8_t code = URN_MSG_IDLE;

	assert_int_equal(urn_msg_set_send_wait(r->a, &r->to, data, len, 5000000, &code), 0);
	return code;
}

/* A message whose answer is DONE is in the queue once, with its source (DB-4, DB-7). */
static void
delivers(void **state)
{
	struct rig *r = *state;
	struct urn_msg m;
	unsigned int i;

	assert_int_equal(urn_msg_set_status(r->a), URN_MSG_IDLE);
	assert_int_equal(urn_msg_set_poll(r->b, &m), 0);
	for (i = 0; i < 10; i++) { /* more than the ring has entries: each is used again */
		assert_int_equal(send_one(r, "hello", 5), URN_MSG_DONE);
		assert_int_equal(urn_msg_set_status(r->a), URN_MSG_DONE);
		assert_int_equal(urn_msg_set_poll(r->b, &m), 1);
		assert_int_equal(m.len, 5);
		assert_memory_equal(m.data, "hello", 5);
		assert_int_equal(m.qid, urn_msg_set_qid(r->a));
		assert_memory_equal(m.node, r->f->gid[0], 16);
		assert_int_equal(urn_msg_set_poll(r->b, &m),
				 1); /* the entry stays until it is released */
		urn_msg_set_release(r->b);
		assert_int_equal(urn_msg_set_poll(r->b, &m), 0);
	}
	assert_int_equal(send_one(r, NULL, 0), URN_MSG_DONE);
	assert_int_equal(urn_msg_set_poll(r->b, &m), 1);
	assert_int_equal(m.len, 0);
}

/* Each error has its code (DB-5). */
static void
errors(void **state)
{
	struct rig *r = *state;
	static char big[4097];
	unsigned int i;
	uint8_t code;

	assert_int_equal(urn_msg_set_send(r->a, &r->to, big, sizeof(big)), EMSGSIZE);
	assert_int_equal(send_one(r, big, 4000), URN_MSG_TOO_LONG);
	for (i = 0; i < 4; i++)
		assert_int_equal(send_one(r, "x", 1), URN_MSG_DONE);
	assert_int_equal(send_one(r, "x", 1), URN_MSG_QUEUE_FULL);
	r->to.qid ^= 1ull << 40; /* another generation */
	assert_int_equal(send_one(r, "x", 1), URN_MSG_NO_QUEUE);
	r->to.node[15] = 200;
	assert_int_equal(send_one(r, "x", 1), URN_MSG_NO_NODE);
	r->to.node[15] = 9;
	code = send_one(r, "x", 1);
	assert_int_equal(code, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	assert_string_equal(urn_msg_code_word(code), "unreachable");
}

/* A send channel has one message at a time, and a stale answer is not taken for a new one (DB-2).
 */
static void
pending(void **state)
{
	struct rig *r = *state;
	uint8_t code = 0;

	assert_int_equal(send_one(r, "x", 1), URN_MSG_DONE);
	atomic_store(&r->f->hold, true);
	assert_int_equal(urn_msg_set_send(r->a, &r->to, "y", 1), 0);
	assert_int_equal(urn_msg_set_status(r->a), URN_MSG_PENDING);
	assert_int_equal(urn_msg_set_send(r->a, &r->to, "z", 1), EBUSY);
	assert_int_equal(urn_msg_set_send_wait(r->a, &r->to, "z", 1, -1, &code), EBUSY);
	assert_int_equal(urn_msg_set_wait(r->a, 20000), URN_MSG_PENDING);
	atomic_store(&r->f->hold, false);
	assert_int_equal(urn_msg_set_wait(r->a, 5000000), URN_MSG_DONE);
}

/* A wait for the answer ends when the dataplane is gone, and says that the message may be there. */
static void
gone(void **state)
{
	struct rig *r = *state;

	atomic_store(&r->f->hold, true);
	assert_int_equal(urn_msg_set_send(r->a, &r->to, "y", 1), 0);
	urn_msg_dev_gone(r->dev);
	assert_int_equal(urn_msg_set_wait(r->a, -1), URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	atomic_store(&r->f->hold, false);
}

/* Nanoseconds that a poll of the descriptor took are bounded; returns: true: readable */
static bool
readable(struct urn_register_set *set, int ms)
{
	struct pollfd p = {.fd = urn_msg_set_fd(set), .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* ARM INTR is one-shot, and tells when messages wait already (DB-8). */
static void
wakes(void **state)
{
	struct rig *r = *state;

	assert_int_equal(send_one(r, "x", 1), URN_MSG_DONE);
	assert_false(readable(r->b, 10)); /* not armed */
	assert_int_equal(urn_msg_set_arm(r->b), 1);
	urn_msg_set_release(r->b);
	assert_int_equal(urn_msg_set_arm(r->b), 0);
	assert_int_equal(send_one(r, "x", 1), URN_MSG_DONE);
	assert_int_equal(send_one(r, "x", 1), URN_MSG_DONE);
	assert_true(readable(r->b, 5000));
	assert_int_equal(atomic_load(&r->f->events), 1);
	assert_int_equal(urn_msg_set_drain(r->b), 0);
	assert_false(readable(r->b, 0));
}

/* The descriptor tells sleepers the truth whatever came before: armed or not, drained or not. */
static void
shows(void **state)
{
	struct rig *r = *state;

	assert_false(urn_msg_set_show(r->b));
	assert_false(readable(r->b, 0));
	assert_int_equal(send_one(r, "x", 1), URN_MSG_DONE);
	assert_true(readable(r->b, 5000));
	assert_true(urn_msg_set_show(r->b));
	urn_msg_set_release(r->b);
	assert_false(urn_msg_set_show(r->b)); /* the event of before is gone */
	assert_false(readable(r->b, 0));
	urn_msg_set_disarm(r->b);
	assert_int_equal(send_one(r, "x", 1), URN_MSG_DONE);
	assert_false(readable(r->b, 10));
	assert_true(urn_msg_set_show(r->b)); /* a message came while nobody was armed */
	assert_true(readable(r->b, 5000));
}

static unsigned int waits; /* calls of poll() that may wait */

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	waits += ms != 0;
	return __real_poll(p, n, ms);
}

/* A dataplane in another process counts an event before the program has it: nobody waits for the
 * event, and it is read when it has come. */
static void
late(void **state)
{
	const struct urn_abi_event ev = {.type = URN_EVENT_MSG};
	struct rig *r = *state;
	int fd = r->f->set[r->b->handle - 1].fd;

	waits = 0;
	atomic_fetch_add(&r->b->regs->rstat.pending, 1);
	assert_int_equal(urn_msg_set_drain(r->b), 0);
	assert_false(urn_msg_set_show(r->b));
	assert_int_equal(waits, 0);
	assert_int_equal(write(fd, &ev, sizeof(ev)), sizeof(ev));
	assert_true(readable(r->b, 0));
	assert_false(urn_msg_set_show(r->b));
	assert_false(readable(r->b, 0));
	assert_int_equal(waits, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(delivers, setup, teardown),
		cmocka_unit_test_setup_teardown(errors, setup, teardown),
		cmocka_unit_test_setup_teardown(pending, setup, teardown),
		cmocka_unit_test_setup_teardown(gone, setup, teardown),
		cmocka_unit_test_setup_teardown(wakes, setup, teardown),
		cmocka_unit_test_setup_teardown(shows, setup, teardown),
		cmocka_unit_test_setup_teardown(late, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
