/* SPDX-License-Identifier: BSD-3-Clause */
/* A standard error that nobody reads holds nobody up, and lost messages are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "urnicd/errout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int real; /* the test's own stderr */

static int
teardown(void **state)
{
	(void)state;
	return dup2(real, STDERR_FILENO) < 0;
}

/* Make stderr a pipe. returns: the pipe's other end, which does not block */
static int
divert(void)
{
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	assert_true(dup2(fd[1], STDERR_FILENO) >= 0);
	close(fd[1]);
	return fd[0];
}

static size_t
read_all(int fd, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	buf[n] = '\0';
	return n;
}

static void
waits_for_nobody(void **state)
{
	static char buf[200000], line[1001], longer[5 * 4096];
	unsigned int n = 0;
	int fd = divert();

	(void)state;
	fprintf(stderr, "one %d", 1);
	errno = EPIPE;
	perror(" two");
	assert_true(read_all(fd, buf, sizeof(buf)) > 0);
	assert_string_equal(buf, "one 1 two: Broken pipe\n");
	memset(longer, 'y', sizeof(longer) - 1);
	fputs(longer, stderr);
	assert_int_equal(read_all(fd, buf, sizeof(buf)), sizeof(longer) - 1);
	/* Ten times as many bytes as a pipe holds, and nobody reads. */
	memset(line, 'x', sizeof(line) - 2);
	line[sizeof(line) - 2] = '\n';
	for (int i = 0; i < 700; i++)
		fputs(line, stderr);
	assert_in_range(read_all(fd, buf, sizeof(buf)), 30000, 70000);
	for (const char *s = buf; (s = strchr(s, '\n')); s++)
		n++;
	assert_int_equal(strlen(buf), n * 1000u); /* whole messages */
	fputs("again\n", stderr);
	fputs("and again\n", stderr);
	read_all(fd, buf, sizeof(buf));
	snprintf(line, sizeof(line), "urnicd: %u messages found no room here and are lost\nagain\nand again\n", 700 - n);
	assert_string_equal(buf, line);
	assert_false(ferror(stderr));
	close(fd);
}

/* The other end is closed: the same as a full pipe. */
static void
nobody_is_there(void **state)
{
	int fd = divert();

	(void)state;
	close(fd);
	for (int i = 0; i < 10; i++)
		fputs("nobody\n", stderr);
	assert_false(ferror(stderr));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(waits_for_nobody, teardown),
		cmocka_unit_test_teardown(nobody_is_there, teardown),
	};

	real = dup(STDERR_FILENO);
	(void)signal(SIGPIPE, SIG_IGN);
	nicd_errout_open();
	return cmocka_run_group_tests_name("errout", tests, NULL, NULL);
}
