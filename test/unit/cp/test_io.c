/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread for calls that may block: jobs run in order, each once, and none is lost at the end. */
#include "cp_test.h"

#include "io.h"

#define JOBS 1000

struct counted {
	struct cp_job job; /* must be first */
	unsigned int at;   /* the job's position in the order of running */
};

static unsigned int ran; /* the thread's; read after its end */

static void
count(struct cp_job *job)
{
	((struct counted *)job)->at = ran++;
}

static void
test_order(void **state)
{
	static struct counted c[JOBS];
	struct urn_err err;
	struct cp_io io;

	(void)state;
	ran = 0;
	assert_int_equal(cp_io_start(&io, &err), 0);
	for (unsigned int i = 0; i < JOBS; i++) {
		c[i].job.run = count;
		cp_io_submit(&io, &c[i].job);
	}
	/* The end waits for all jobs that were handed over. */
	cp_io_stop(&io);
	assert_int_equal(ran, JOBS);
	for (unsigned int i = 0; i < JOBS; i++) {
		assert_true(cp_job_done(&c[i].job));
		assert_int_equal(c[i].at, i);
	}
	cp_io_stop(&io);
}

/* A job's results are there when it is done, and a job can be used again. */
static void
test_again(void **state)
{
	struct counted c = {.job = {.run = count}};
	struct urn_err err;
	struct cp_io io;

	(void)state;
	ran = 0;
	assert_int_equal(cp_io_start(&io, &err), 0);
	for (unsigned int i = 0; i < 100; i++) {
		c.at = UINT32_MAX;
		cp_io_submit(&io, &c.job);
		while (!cp_job_done(&c.job))
			;
		assert_int_equal(c.at, i);
	}
	cp_io_stop(&io);
}

static void
test_never_started(void **state)
{
	struct cp_io io = {.running = false};

	(void)state;
	cp_io_stop(&io);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_never_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
