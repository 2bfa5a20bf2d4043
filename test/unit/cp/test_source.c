/* SPDX-License-Identifier: BSD-3-Clause */
/* Files to send: a file that can't be sent is named; one that changes while it is sent is noticed. */
#include "cp_test.h"

#include "source.h"

/* A file that shrinks or grows while it is sent is an error, not a wrong copy. */
static void
test_changes(void **state)
{
	struct cp_source src = {.path = test_path("f")};
	struct urn_err err;
	uint8_t buf[16];
	int fd;

	(void)state;
	test_file(src.path, "0123456789", 10);
	fd = cp_source_open(&src);
	assert_true(fd >= 0);
	assert_int_equal(src.size, 10);
	assert_int_equal(cp_source_read(&src, fd, buf, 6, 0, false, &err), 0);
	assert_int_equal(cp_source_read(&src, fd, buf, 4, 6, true, &err), 0);
	assert_memory_equal(buf, "6789", 4);
	assert_int_equal(truncate(src.path, 9), 0);
	assert_int_equal(cp_source_read(&src, fd, buf, 4, 6, true, &err), -1);
	assert_says(err.text, "shorter");
	assert_int_equal(truncate(src.path, 11), 0);
	assert_int_equal(cp_source_read(&src, fd, buf, 4, 6, false, &err), 0);
	assert_int_equal(cp_source_read(&src, fd, buf, 4, 6, true, &err), -1);
	assert_says(err.text, "longer");
	close(fd);
}

static void
test_kinds(void **state)
{
	struct cp_source src = {.path = test_path("f")};
	int fd;

	(void)state;
	assert_int_equal(cp_source_open(&src), -1);
	assert_says(src.why.text, "No such file");
	src.path = test_dir;
	assert_int_equal(cp_source_open(&src), -1);
	assert_says(src.why.text, "folder");
	src.path = test_path("fifo");
	assert_int_equal(mkfifo(src.path, 0600), 0);
	assert_int_equal(cp_source_open(&src), -1);
	assert_says(src.why.text, "regular");
	src.path = test_path("empty");
	test_file(src.path, "", 0);
	assert_int_equal(chmod(src.path, 04640), 0);
	fd = cp_source_open(&src);
	assert_true(fd >= 0);
	assert_int_equal(src.size, 0);
	assert_int_equal(src.mode, 0640);
	close(fd);
	/* The file claims to be empty, and is not. */
	src.path = "/proc/self/status";
	assert_int_equal(cp_source_open(&src), -1);
	assert_says(src.why.text, "longer");
}

/* Only the first of two files of one name is sent; missing ones don't count. */
static void
test_names(void **state)
{
	char paths[5][600];
	char *argv[5];
	struct cp_source *src;
	unsigned int sendable;
	uint64_t bytes;

	(void)state;
	assert_int_equal(mkdir(test_path("d"), 0700), 0);
	test_file(test_path("d/x"), "123", 3);
	test_file(test_path("x"), "12345", 5);
	test_file(test_path("y"), "1", 1);
	for (int i = 0; i < 5; i++)
		argv[i] = paths[i];
	snprintf(paths[0], sizeof(paths[0]), "%s/none/x", test_dir);
	snprintf(paths[1], sizeof(paths[1]), "%s/x", test_dir);
	snprintf(paths[2], sizeof(paths[2]), "%s/d/x", test_dir);
	snprintf(paths[3], sizeof(paths[3]), "%s/y", test_dir);
	snprintf(paths[4], sizeof(paths[4]), "%s/d/", test_dir);
	src = cp_sources_look(argv, 5, &sendable, &bytes);
	assert_non_null(src);
	assert_int_equal(sendable, 2);
	assert_int_equal(bytes, 6);
	assert_int_equal(src[0].state, CP_UNSENT);
	assert_int_equal(src[1].state, CP_TODO);
	assert_string_equal(src[1].name, "x");
	assert_int_equal(src[2].state, CP_UNSENT);
	assert_says(src[2].why.text, "same name");
	assert_int_equal(src[3].state, CP_TODO);
	assert_int_equal(src[4].state, CP_UNSENT);
	free(src);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_changes, test_dir_make, test_dir_remove),
		cmocka_unit_test_setup_teardown(test_kinds, test_dir_make, test_dir_remove),
		cmocka_unit_test_setup_teardown(test_names, test_dir_make, test_dir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
