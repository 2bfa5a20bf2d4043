/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes and times as people read them; Ctrl-C; the progress bar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/text.h"

static void
numbers_read_well(void **state)
{
	char b[32];

	(void)state;
	assert_string_equal(urn_text_size(b, sizeof(b), 0), "0 B");
	assert_string_equal(urn_text_size(b, sizeof(b), 1023), "1023 B");
	assert_string_equal(urn_text_size(b, sizeof(b), 65536), "64 KiB");
	assert_string_equal(urn_text_size(b, sizeof(b), 1572864), "1.50 MiB");
	assert_string_equal(urn_text_size(b, sizeof(b), UINT64_MAX), "16777216 TiB");
	assert_string_equal(urn_text_time(b, sizeof(b), 850), "850 ns");
	assert_string_equal(urn_text_time(b, sizeof(b), 12340), "12.3 us");
	assert_string_equal(urn_text_time(b, sizeof(b), 4560000), "4.56 ms");
	assert_string_equal(urn_text_time(b, sizeof(b), 7890000000), "7.89 s");
	assert_string_equal(urn_text_rate(b, sizeof(b), 12340000), "12.3 M/s");
	assert_string_equal(urn_text_rate(b, sizeof(b), 3), "3.00 /s");
}

/* The first signal sets the flag, in both its forms. */
static void
signal_sets_the_flag(void **state)
{
	(void)state;
	signal(SIGHUP, SIG_DFL); /* the caller of this test may ignore it */
	assert_int_equal(urn_stop_install(), 0);
	assert_int_equal(urn_stop_requested(), 0);
	assert_false(*urn_stop_flag());
	raise(SIGTERM);
	assert_int_equal(urn_stop_requested(), SIGTERM);
	assert_true(*urn_stop_flag());
	assert_int_equal(urn_stop_install(), 0);
	assert_int_equal(urn_stop_requested(), 0);
	/* The signal of a closed terminal counts, unless nohup ignores it. */
	raise(SIGHUP);
	assert_int_equal(urn_stop_requested(), SIGHUP);
	signal(SIGHUP, SIG_IGN);
	assert_int_equal(urn_stop_install(), 0);
	raise(SIGHUP);
	assert_int_equal(urn_stop_requested(), 0);
}

/*
 * Fork a process, and send it two signals; the second counts after `ms` milliseconds. returns: how
 * the process ends
 */
static int
two_signals(unsigned int ms)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		urn_stop_again(ms);
		urn_stop_install();
		raise(SIGTERM);
		raise(SIGINT);
		_exit(urn_stop_requested());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The second signal ends the program, so that a hang can be left. */
static void
second_signal_ends_it(void **state)
{
	(void)state;
	assert_int_equal(two_signals(0), 128 + SIGINT);
}

/* timeout(1) sends two signals at once, and means one. */
static void
an_echo_is_no_second_signal(void **state)
{
	(void)state;
	assert_int_equal(two_signals(3600000), SIGTERM);
}

/* Standard error is no terminal here: the bar writes no byte. */
static void
no_bar_without_terminal(void **state)
{
	struct urn_progress p;
	char byte;
	int fd[2], old = dup(STDERR_FILENO);

	(void)state;
	assert_int_equal(pipe(fd), 0);
	dup2(fd[1], STDERR_FILENO);
	urn_progress_begin(&p, "copy", 100);
	urn_progress_update(&p, 50);
	urn_progress_update(&p, 100);
	urn_progress_end(&p);
	dup2(old, STDERR_FILENO);
	close(fd[1]);
	assert_int_equal(read(fd[0], &byte, 1), 0);
	close(fd[0]);
	close(old);
}

/* The clock counts nanoseconds of CLOCK_MONOTONIC, and never goes back. */
static void
the_clock_goes_on(void **state)
{
	struct timespec ts = {.tv_nsec = 2000000};
	uint64_t a = urn_clock_ns(), b;

	(void)state;
	nanosleep(&ts, NULL);
	b = urn_clock_ns();
	assert_true(b - a >= 2000000);
	assert_true(b - a < 60000000000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_read_well),
		cmocka_unit_test(signal_sets_the_flag),
		cmocka_unit_test(second_signal_ends_it),
		cmocka_unit_test(an_echo_is_no_second_signal),
		cmocka_unit_test(no_bar_without_terminal),
		cmocka_unit_test(the_clock_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
