/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipes of events: whole records, and a writer that never blocks. */
#include "test.h"

#include "attach/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void
records(void **state)
{
	struct urn_abi_event in = {.type = 1, .handle = 2, .cookie = 3}, out;
	int r, w;

	(void)state;
	assert_int_equal(urn_pipe_open(&r, &w), 0);
	assert_int_equal(fcntl(r, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(urn_pipe_write(w, &in), 0);
	assert_int_equal(urn_pipe_read(r, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	close(w);
	assert_int_equal(urn_pipe_read(r, &out), EIO);
	close(r);
}

static void
full(void **state)
{
	struct urn_abi_event ev = {.type = 1};
	unsigned int n = 0, more = 0;
	int r, w;

	(void)state;
	assert_int_equal(urn_pipe_open(&r, &w), 0);
	while (urn_pipe_write(w, &ev) == 0)
		n++;
	assert_int_equal(errno, EAGAIN);
	assert_true(n >= 4096 / sizeof(ev));
	/* More room on request, unless the user's share of pipe memory is spent. */
	urn_pipe_reserve(w, 2 * n);
	while (urn_pipe_write(w, &ev) == 0)
		more++;
	if (fcntl(w, F_GETPIPE_SZ) >= (int)(2 * n * sizeof(ev)))
		assert_true(n + more >= 2 * n);
	urn_pipe_reserve(w, UINT32_MAX); /* refused without harm */
	close(r);
	close(w);
}

static void
none_left(void **state)
{
	struct rlimit old, none;
	int r, w;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(urn_pipe_open(&r, &w), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_non_null(strstr(urn_attach_error(), "pipe"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records),
		cmocka_unit_test(full),
		cmocka_unit_test(none_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
