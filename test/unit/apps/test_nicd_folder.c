/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last dataplane that leaves the folder of urnicd's sockets removes it, whichever made it;
 * a folder that no dataplane made stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "urnicd/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/urn-folder-XXXXXX";
static char dir[64], sock_a[80], sock_b[80];

static void
put(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool
there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool
makes(const char *socket)
{
	struct urn_err err = {""};
	bool made = false;

	assert_int_equal(nicd_folder_make(socket, false, &made, &err), 0);
	assert_string_equal(err.text, "");
	return made;
}

static void
test_alone(void **state)
{
	(void)state;
	assert_true(nicd_folder_gone(sock_a));
	assert_true(makes(sock_a));
	assert_false(nicd_folder_gone(sock_a));
	nicd_folder_leave(sock_a, true);
	assert_false(there(dir));
}

/* The maker loses the socket to another, or stops first: the other removes the folder. */
static void
test_maker_leaves_first(void **state)
{
	(void)state;
	assert_true(makes(sock_a));
	assert_false(makes(sock_b));
	put(sock_b);
	nicd_folder_leave(sock_a, true);
	assert_true(there(sock_b));
	unlink(sock_b);
	nicd_folder_leave(sock_b, false);
	assert_false(there(dir));
}

static void
test_maker_leaves_last(void **state)
{
	(void)state;
	assert_true(makes(sock_a));
	put(sock_a);
	assert_false(makes(sock_b));
	nicd_folder_leave(sock_b, false);
	assert_true(there(sock_a));
	unlink(sock_a);
	nicd_folder_leave(sock_a, true);
	assert_false(there(dir));
}

/* A dataplane that was killed leaves folder and marker behind; the next one removes them. */
static void
test_maker_killed(void **state)
{
	(void)state;
	assert_true(makes(sock_a));
	assert_false(makes(sock_a));
	nicd_folder_leave(sock_a, false);
	assert_false(there(dir));
}

static void
test_stays(void **state)
{
	struct urn_err err = {""};
	bool made = false;

	(void)state;
	/* A folder made by a person, empty or not. */
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_false(makes(sock_a));
	nicd_folder_leave(sock_a, false);
	assert_true(there(dir));
	assert_int_equal(rmdir(dir), 0);
	/* The dataplane's own folder, made for all users to enter, with a person's file in it. */
	assert_int_equal(nicd_folder_make(sock_a, true, &made, &err), 0);
	assert_true(made);
	put(sock_b);
	nicd_folder_leave(sock_a, true);
	assert_true(there(sock_b));
	unlink(sock_b);
	nicd_folder_leave(sock_a, true);
	assert_false(there(dir));
	/* A path without a folder; none can be made. */
	nicd_folder_leave("", true);
	nicd_folder_leave("nicd.sock", true);
	nicd_folder_leave("/nicd.sock", true);
	assert_int_equal(nicd_folder_make("/proc/none/nicd.sock", false, &made, &err), -1);
	assert_non_null(strstr(err.text, "/proc/none: the folder of the socket can't be made"));
}

static int
setup(void **state)
{
	(void)state;
	if (mkdtemp(base) == NULL)
		return -1;
	snprintf(dir, sizeof(dir), "%s/run", base);
	snprintf(sock_a, sizeof(sock_a), "%s/a.sock", dir);
	snprintf(sock_b, sizeof(sock_b), "%s/b.sock", dir);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return rmdir(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),	     cmocka_unit_test(test_maker_leaves_first),
		cmocka_unit_test(test_maker_leaves_last), cmocka_unit_test(test_maker_killed),
		cmocka_unit_test(test_stays),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
