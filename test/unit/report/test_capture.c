/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "report/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>

static char dir[] = "/tmp/urn-cap-XXXXXX";

static struct urn_captures *
captures_up(struct urn_port *p[2])
{
	struct urn_port_config cfg[2] = {port_cfg("a0", ""), port_cfg("b0", "")};
	struct urn_err err = {""};
	struct urn_captures *c;

	eal_up();
	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
	c = urn_captures_create(dir, NULL, &err);
	check_ok(c == NULL, &err);
	check_ok(urn_captures_add(c, "a0", p[0], &err), &err);
	check_ok(urn_captures_add(c, "b0", p[1], &err), &err);
	return c;
}

static void
down(struct urn_captures *c, struct urn_port *p[2])
{
	urn_captures_destroy(c);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

static uint64_t
size_of(const char *file)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return lstat(path, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

/* All ports and one; the reports while the capture runs and afterwards. */
static void
one_at_a_time(void *arg)
{
	struct urn_capture_status st, all;
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct urn_captures *c;

	(void)arg;
	c = captures_up(p);
	urn_capture_status(c, &st);
	check(!st.running && st.file[0] == '\0');
	check(urn_capture_stop(c, &st, &err) == -1);
	check_says(&err, "no capture is running");
	check_ok(urn_capture_start(c, NULL, "all.pcapng", 0, 0, &err), &err);
	check(urn_capture_start(c, NULL, "second", 0, 0, &err) == -1);
	check_says(&err, "all.pcapng is being captured");
	check(size_of("second") == UINT64_MAX);
	urn_capture_status(c, &st);
	check(st.running && !st.ended && st.port[0] == '\0');
	frames_cross(p[0], p[1], 0, 100);
	check_ok(urn_capture_stop(c, &st, &err), &err);
	check(st.frames > 0 && st.dropped == 0 && st.bytes == size_of("all.pcapng"));
	check(st.frames % 2 == 0);

	check_ok(urn_capture_start(c, "b0", "b", 0, 0, &err), &err);
	frames_cross(p[0], p[1], 0, 100);
	check_ok(urn_capture_stop(c, NULL, &err), &err);
	{
		uint64_t both = st.frames;

		urn_capture_status(c, &st);
		check(!st.running && st.ended && strcmp(st.port, "b0") == 0 &&
		      strcmp(st.file, "b") == 0);
		check(st.frames == both / 2);
		urn_capture_totals(c, &all);
		check(all.frames == both + st.frames && all.dropped == 0);
		check(all.bytes == size_of("all.pcapng") + size_of("b"));
	}
	/* A running capture is stopped with the rest. */
	check_ok(urn_capture_start(c, "", "left", 0, 0, &err), &err);
	frames_cross(p[0], p[1], 0, 100);
	down(c, p);
	check(size_of("left") > size_of("b"));
}

static void
names(void *arg)
{
	static const char *const bad[] = {"-",	    "",	   ".",	  "..",	  ".hidden",  "../x",
					  "/tmp/x", "a/b", "a b", "a\nb", "\xc3\xa4", "a;b"};
	char path[256], target[256];
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct urn_captures *c;
	char name[200];

	(void)arg;
	c = captures_up(p);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		check(urn_capture_start(c, NULL, bad[i], 0, 0, &err) == -1);
		check_says(&err, "no name for a capture");
	}
	memset(name, 'x', sizeof(name));
	name[URN_CAPTURE_FILE] = '\0';
	check(urn_capture_start(c, NULL, name, 0, 0, &err) == -1);
	check_says(&err, "no name for a capture");
	name[URN_CAPTURE_FILE - 1] = '\0';
	check_ok(urn_capture_start(c, NULL, name, 0, 0, &err), &err);
	check_ok(urn_capture_stop(c, NULL, &err), &err);
	/* An existing file stays as it is, and a link is not followed. */
	check(urn_capture_start(c, NULL, name, 0, 0, &err) == -1);
	check_says(&err, "choose another name");
	snprintf(path, sizeof(path), "%s/link", dir);
	snprintf(target, sizeof(target), "%s.target", dir);
	check(symlink(target, path) == 0);
	check(urn_capture_start(c, NULL, "link", 0, 0, &err) == -1);
	check(access(target, F_OK) == -1 && errno == ENOENT);
	check(urn_capture_start(c, "c0", "x", 0, 0, &err) == -1);
	check_says(&err,
		   "'c0' is no port that can be captured; did you mean a0? there are: a0, b0");
	check(size_of("x") == UINT64_MAX);
	down(c, p);
}

/* A capture ends by itself, and a full disk is reported. */
static void
ends(void *arg)
{
	const struct rlimit small = {.rlim_cur = 100000, .rlim_max = 100000};
	struct urn_capture_status st, few, all;
	struct urn_err err = {""};
	struct urn_port *p[2];
	struct urn_captures *c;

	(void)arg;
	c = captures_up(p);
	check_ok(urn_capture_start(c, NULL, "few", 5, 0, &err), &err);
	do {
		frames_cross(p[0], p[1], 0, 100);
		urn_capture_status(c, &st);
		check(st.running);
	} while (!st.ended);
	check_ok(urn_capture_stop(c, &few, &err), &err);
	check(few.frames == 5 && few.failure[0] == '\0');

	/* A capture that ended by itself hinders no other, and counts. */
	check_ok(urn_capture_start(c, NULL, "again", 5, 0, &err), &err);
	do {
		frames_cross(p[0], p[1], 0, 100);
		urn_capture_status(c, &st);
	} while (!st.ended);
	check_ok(urn_capture_start(c, NULL, "next", 0, 0, &err), &err);
	urn_capture_totals(c, &all);
	check(all.frames == 10);
	check_ok(urn_capture_stop(c, &st, &err), &err);

	signal(SIGXFSZ, SIG_IGN);
	check(setrlimit(RLIMIT_FSIZE, &small) == 0);
	check_ok(urn_capture_start(c, NULL, "full", 0, 0, &err), &err);
	do {
		frames_cross(p[0], p[1], 0, 4000);
		urn_capture_status(c, &st);
	} while (!st.ended);
	check(st.running && strstr(st.failure, "full can't be written: ") != NULL);
	check(urn_capture_start(c, NULL, "after", 0, 0, &err) == -1);
	check_says(&err, "full can't be written: ");
	check(urn_capture_stop(c, &st, &err) == -1);
	check_says(&err, "not whole");
	check(strstr(st.failure, "not whole") != NULL && st.dropped > 0);
	urn_capture_totals(c, &all);
	check(all.dropped >= few.dropped + st.dropped && all.frames == 2 * few.frames + st.frames);
	down(c, p);
}

static void
folders(void *arg)
{
	struct urn_err err = {""};
	struct urn_captures *c;
	char path[256];

	(void)arg;
	check(urn_captures_create("/nowhere", NULL, &err) == NULL);
	check_says(&err, "capture_dir /nowhere: No such file");
	check(urn_captures_create("/dev/null", NULL, &err) == NULL);
	check_says(&err, "Not a directory");
	check(chdir(dir) == 0);
	c = urn_captures_create("", NULL, &err);
	check_ok(c == NULL, &err);
	check(urn_capture_start(c, NULL, "x", 0, 0, &err) == -1);
	check_says(&err, "no port to capture");
	urn_captures_destroy(c);
	snprintf(path, sizeof(path), "%s/closed", dir);
	check(mkdir(path, 0555) == 0);
	become_user();
	{
		struct urn_port_config cfg[2] = {port_cfg("a0", ""), port_cfg("b0", "")};
		struct urn_port *p[2];

		eal_up();
		check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
		c = urn_captures_create(path, NULL, &err);
		check_ok(c == NULL, &err);
		check_ok(urn_captures_add(c, "a0", p[0], &err), &err);
		check(urn_capture_start(c, NULL, "x", 0, 0, &err) == -1);
		check_says(&err, "x can't be made in capture_dir: Permission denied");
		down(c, p);
	}
}

CHILD_TEST(one_at_a_time)
CHILD_TEST(names)
CHILD_TEST(ends)
CHILD_TEST(folders)

static int
setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL || chmod(dir, 0755) != 0;
}

static int
teardown(void **state)
{
	char cmd[64];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_folders),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
