/* SPDX-License-Identifier: BSD-3-Clause */
/* The log as a whole (log/log.h, log/writer.h): events get to the file, in bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "log/log.h"
#include "log/ring.h"
#include "log/writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[96], text[1 << 20];

static struct urn_log *
open_log(void)
{
	struct urn_log_out out = {.name = "urnicd"};
	struct urn_log *log = urn_log_create(1);
	char why[200] = "";

	snprintf(out.file, sizeof(out.file), "%s", path);
	assert_non_null(log);
	if (urn_log_start(log, &out, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	return log;
}

/* The text of a file. */
static const char *
read_file(const char *name)
{
	FILE *f = fopen(name, "re");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static unsigned int
lines_with(const char *name, const char *words)
{
	unsigned int n = 0;

	for (const char *at = read_file(name); (at = strstr(at, words)); at++)
		n++;
	return n;
}

static int
setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), P_tmpdir "/urnic-test.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	return 0;
}

static int
teardown(void **state)
{
	char other[128];

	(void)state;
	(void)unlink(path);
	snprintf(other, sizeof(other), "%s.1", path);
	(void)unlink(other);
	return rmdir(dir);
}

/* Levels hold from the next event on, and the file is for its owner and group. */
static void
levels(void **state)
{
	struct urn_log *log = open_log();
	struct urn_log_counts c;
	struct stat st;

	(void)state;
	urn_log_say(log, URN_LOG_STARTED, NULL, "begins");
	urn_log_set(log, URN_LOG_DAEMON, URN_LOG_WARNING);
	urn_log_say(log, URN_LOG_STOPPED, NULL, "is not shown");
	urn_log_say(log, URN_LOG_NOT_RELOADED, NULL, "is shown");
	urn_log_set(log, URN_LOG_DAEMON, URN_LOG_OFF);
	urn_log_say(log, URN_LOG_NOT_RELOADED, NULL, "is not shown");
	urn_log_say(NULL, URN_LOG_NOT_RELOADED, NULL, "goes nowhere");
	urn_log_stop(log);
	assert_int_equal(lines_with(path, "\n"), 2);
	assert_int_equal(lines_with(path, " notice daemon start: begins\n"), 1);
	assert_int_equal(lines_with(path, " error daemon no-reload: is shown\n"), 1);
	urn_log_counts(log, &c);
	assert_int_equal(c.lines, 2);
	assert_int_equal(c.more + c.lost, 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07, 0);
	urn_log_free(log);
}

static void *
shout(void *arg)
{
	const struct urn_log_who who = {.client = 1, .pid = getpid(), .program = "loud"};

	for (unsigned int i = 0; i < 5000; i++)
		urn_log_say(arg, URN_LOG_REACHED, &who, "reached a limit");
	return NULL;
}

/* Some threads of a program shout: others' events are there, and the rest is counted. */
static void
flood(void **state)
{
	const struct urn_log_who calm = {.client = 2, .pid = getpid(), .uid = 1, .program = "calm"};
	struct urn_log *log = open_log();
	struct urn_log_counts c;
	pthread_t thread[3];

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, shout, log), 0);
	urn_log_say(log, URN_LOG_ATTACHED, &calm, "attached");
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	urn_log_stop(log);
	urn_log_counts(log, &c);
	assert_int_equal(lines_with(path, "program calm "), 1);
	assert_true(lines_with(path, " more like this within a second\n") >= 1);
	/* However slow the machine is, most of 15,000 events were not lines. */
	assert_true(c.more > 5000);
	assert_int_equal(c.lost, 0);
	assert_int_equal(lines_with(path, "program loud ") - lines_with(path, " more like this") +
				 c.more,
			 15000);
	urn_log_free(log);
}

/* An engine's error is a line with its sentence; errors that were only counted are said. */
static void
errors(void **state)
{
	struct urn_log *log = open_log();
	const struct urn_log_failure f = {
		.at = {.tv_sec = 1796013742},
		.who = {.client = 5, .pid = 1234, .program = "ib_send_bw"},
		.adapter = "a0",
		.port = "p0",
		.f = {.kind = URN_FAILURE_REQUEST,
		      .qpn = 0x11,
		      .status = 12,
		      .tried = 8,
		      .obstacle = URN_OBSTACLE_PORT_DOWN},
	};

	(void)state;
	*urn_log_ring_place(urn_log_ring_of(log, 0)) = f;
	urn_log_ring_put(urn_log_ring_of(log, 0));
	for (unsigned int i = 0; i < 37; i++)
		urn_log_ring_more(urn_log_ring_of(log, 0), 5);
	assert_null(urn_log_ring_of(log, 1));
	assert_null(urn_log_ring_of(NULL, 0));
	urn_log_stop(log);
	assert_int_equal(lines_with(path, "2026-11-30T04:42:22.000Z urnicd["), 1);
	assert_int_equal(lines_with(path,
				    "warning qp error: program ib_send_bw (process 1234, user "
				    "root, client 5) has an error on adapter a0: QP 0x11"),
			 1);
	assert_int_equal(lines_with(path, "port p0 is administratively down"), 1);
	assert_int_equal(lines_with(path, "has 37 more like this"), 1);
	urn_log_free(log);
}

/* A client that gave an engine up is a line of its own area, which is as bounded as others. */
static void
leaves(void **state)
{
	struct urn_log_failure f = {
		.who = {.client = 5, .pid = 1234, .program = "hpc"},
		.adapter = "a0",
		.left = 3,
	};
	struct urn_log *log = open_log();
	struct urn_log_counts c;

	(void)state;
	urn_log_set(log, URN_LOG_QP, URN_LOG_OFF);
	for (unsigned int i = 0; i < 8; i++, f.left = 1) {
		*urn_log_ring_place(urn_log_ring_of(log, 0)) = f;
		urn_log_ring_put(urn_log_ring_of(log, 0));
	}
	urn_log_stop(log);
	assert_int_equal(lines_with(path, "warning session move: program hpc (process 1234, user "
					  "root, client 5) gave up 3 queue pairs of adapter a0, "),
			 1);
	assert_true(lines_with(path, "gave up 1 queue pair of adapter a0, ") >= 1);
	urn_log_counts(log, &c);
	/* Those beyond the program's lines in a second are counted. */
	assert_int_equal(lines_with(path, " queue pair") + c.more, 8);
	urn_log_free(log);
}

static void
count_tick(void *arg)
{
	atomic_fetch_add((_Atomic unsigned int *)arg, 1);
}

/* A file that was moved away gets no more lines once the log was opened again. */
static void
rotates(void **state)
{
	struct urn_log *log = open_log();
	_Atomic unsigned int ticks = 0;
	char old[128];

	(void)state;
	snprintf(old, sizeof(old), "%s.1", path);
	urn_log_set_tick(log, count_tick, &ticks);
	urn_log_say(log, URN_LOG_STARTED, NULL, "first");
	while (atomic_load(&ticks) < 2) /* a tick comes after what was said before it */
		usleep(1000);
	assert_int_equal(rename(path, old), 0);
	urn_log_reopen(log);
	while (access(path, F_OK) != 0)
		usleep(1000);
	urn_log_set_tick(log, NULL, NULL);
	urn_log_say(log, URN_LOG_STOPPED, NULL, "second");
	urn_log_stop(log);
	assert_int_equal(lines_with(old, "first"), 1);
	assert_int_equal(lines_with(old, "second"), 0);
	assert_int_equal(lines_with(path, "second"), 1);
	urn_log_free(log);
}

/* Let no file grow beyond a size, as on a full disk. */
static void
disk_holds(rlim_t bytes)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
	r.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* Wait until so many lines were written, and so many lost. */
static void
await_counts(const struct urn_log *log, uint64_t lines, uint64_t lost)
{
	struct urn_log_counts c;

	do {
		usleep(1000);
		urn_log_counts(log, &c);
	} while (c.lines < lines || c.lost < lost);
}

/* Column of a word in its line of the file. */
static size_t
column(const char *word)
{
	const char *found = strstr(read_file(path), word), *at = found;

	assert_non_null(found);
	while (at > text && at[-1] != '\n')
		at--;
	return (size_t)(found - at);
}

/* A full disk takes a part of a line: the next line that it takes begins on a new line. */
static void
cut_line(void **state)
{
	struct urn_log *log = open_log();
	struct stat st;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	urn_log_say(log, URN_LOG_STARTED, NULL, "first");
	await_counts(log, 1, 0);
	assert_int_equal(stat(path, &st), 0);
	disk_holds((rlim_t)st.st_size + 20);
	urn_log_say(log, URN_LOG_STOPPED, NULL, "second");
	await_counts(log, 1, 1);
	urn_log_say(log, URN_LOG_STOPPED, NULL, "third");
	await_counts(log, 1, 2);
	disk_holds(RLIM_INFINITY);
	urn_log_say(log, URN_LOG_STARTED, NULL, "fourth");
	urn_log_stop(log);
	assert_int_equal(lines_with(path, "second"), 0);
	assert_int_equal(lines_with(path, "third"), 0);
	assert_int_equal(column("fourth"), column("first"));
	/* The first line, the part of the second, the fourth, and the one about lost lines. */
	assert_int_equal(lines_with(path, "\n"), 4);
	assert_int_equal(lines_with(path, "2 events found no room"), 1);
	urn_log_free(log);
}

/* A link or a pipe in the place of the file is refused, with a sentence. */
static void
refused(void **state)
{
	struct urn_log_out out = {.name = "urnicd"};
	struct urn_log *log = urn_log_create(0);
	char why[200], other[128];
	FILE *file;

	(void)state;
	snprintf(out.file, sizeof(out.file), "%s", path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(urn_log_start(log, &out, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "can't be opened: a link, or no file"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(urn_log_start(log, &out, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "a link, or no file"));
	unlink(path);
	snprintf(other, sizeof(other), "%s/other", dir);
	file = fopen(other, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(link(other, path), 0);
	assert_int_equal(urn_log_start(log, &out, why, sizeof(why)), -1);
	unlink(path);
	unlink(other);
	snprintf(out.file, sizeof(out.file), "%s/none/log", dir);
	assert_int_equal(urn_log_start(log, &out, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "No such file"));
	urn_log_stop(log);
	urn_log_free(log);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(levels, setup, teardown),
		cmocka_unit_test_setup_teardown(flood, setup, teardown),
		cmocka_unit_test_setup_teardown(errors, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves, setup, teardown),
		cmocka_unit_test_setup_teardown(rotates, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_line, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
