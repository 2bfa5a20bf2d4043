/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane dies while programs sleep until operations on remote memory end: each operation ends
 * with an error that says that its outcome is not known. argv[1]: urnicd.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "death.h"
#include <urnic/am.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

/* A program whose operations go to a node that nobody is. */
struct am_end {
	struct urn_msg_dev *dev;
	struct urn_am_endpoint *ep;
	struct urn_am_memory memory;
	struct urn_am_address nobody;
	uint8_t *buf;
};

static void
end_open(struct am_end *e)
{
	static const struct urn_am_attr attr = {.wakes = 1};

	memset(e, 0, sizeof(*e));
	e->dev = urn_msg_dev_connect(death_sock, "a");
	assert_non_null(e->dev);
	e->ep = urn_am_endpoint_create(e->dev, &attr);
	assert_non_null(e->ep);
	e->buf = urn_alloc(4096);
	assert_int_equal(urn_am_memory_add(e->ep, e->buf, 4096, &e->memory), 0);
	assert_int_equal(urn_am_address(e->ep, 1, &e->nobody), 0);
	e->nobody.node[15] = 77;
}

static void
end_close(struct am_end *e)
{
	(void)urn_am_memory_remove(e->ep, &e->memory);
	urn_am_endpoint_destroy(e->ep);
	urn_msg_dev_close(e->dev);
	urn_free(e->buf);
}

static struct urn_rma
make_write(const struct am_end *e)
{
	return (struct urn_rma){.to = &e->nobody,
				.memory = &e->memory,
				.local = e->buf,
				.key = 1,
				.remote = 4096,
				.len = 8};
}

/* Milliseconds of processor time that the process has used. */
static uint64_t
cpu_ms(void)
{
	struct rusage r;

	assert_int_equal(getrusage(RUSAGE_SELF, &r), 0);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

/* A reader of a queue of events is woken, gets an event for each operation, and can sleep again. */
static void
test_queue(void **state)
{
	struct urn_am_queue *q = urn_am_queue_create(0);
	struct urn_am_event ev[8];
	uint64_t start, cpu;
	struct am_end e;
	struct urn_rma op;
	uint32_t n = 0;
	pid_t pid;

	(void)state;
	assert_non_null(q);
	pid = death_start(1);
	end_open(&e);
	op = make_write(&e);
	op.flags = URN_RMA_EVENT;
	assert_int_equal(urn_am_queue_add(q, e.ep), 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(urn_rma_write(e.ep, &op), 0);
	assert_int_equal(urn_am_queue_wait(q, ev, 8, 50), 0);
	death_kill(pid, SIGKILL);
	start = death_now_ms();
	while (n < 5) {
		uint32_t got = urn_am_queue_wait(q, ev, 8, 60000);

		assert_true(got > 0);
		for (uint32_t i = 0; i < got; i++)
			assert_int_equal(ev[i].code, URN_AM_UNREACHABLE | URN_AM_MAY_BE_THERE);
		n += got;
	}
	assert_true(death_now_ms() - start < DEATH_SOON_MS);
	assert_int_equal(urn_rma_write(e.ep, &op), EIO);
	cpu = cpu_ms();
	assert_int_equal(urn_am_queue_wait(q, ev, 8, 400), 0);
	assert_true(cpu_ms() - cpu < 200); /* the descriptors of a dead dataplane wake no more */
	assert_int_equal(urn_am_queue_remove(q, e.ep), 0);
	end_close(&e);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

static void
note(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)ep;
	(void)bytes;
	if (code == (URN_AM_UNREACHABLE | URN_AM_MAY_BE_THERE))
		atomic_fetch_add((_Atomic unsigned int *)arg, 1);
}

/* The helper thread tells the ends, sleeps again, and can be stopped; a flush ends. */
static void
test_thread(void **state)
{
	_Atomic unsigned int ended = 0;
	struct am_end e;
	struct urn_rma op;
	uint8_t code = 0;
	uint64_t cpu;
	pid_t pid;
	int err;

	(void)state;
	pid = death_start(1);
	end_open(&e);
	op = make_write(&e);
	op.done = note;
	op.arg = &ended;
	assert_int_equal(urn_am_thread_start(e.ep), 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(urn_rma_write(e.ep, &op), 0);
	death_nap_us(50000);
	death_kill(pid, SIGTERM); /* it removes what the killed one left, too */
	err = urn_rma_flush(e.ep, 60000, &code);
	assert_true(err == EREMOTEIO || (err == 0 && code == 0)); /* 0: the thread was faster */
	for (uint64_t end = death_now_ms() + DEATH_SOON_MS; atomic_load(&ended) < 5;) {
		assert_true(death_now_ms() < end);
		death_nap_us(1000);
	}
	cpu = cpu_ms();
	death_nap_us(400000);
	assert_true(cpu_ms() - cpu < 200);
	assert_int_equal(urn_am_thread_stop(e.ep), 0);
	end_close(&e);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_queue, death_setup, death_teardown),
		cmocka_unit_test_setup_teardown(test_thread, death_setup, death_teardown),
	};
	int rc = death_begin(argc, argv);

	return rc != 0 ? rc
		       : death_finish(cmocka_run_group_tests_name("am_death", tests, NULL, NULL));
}
