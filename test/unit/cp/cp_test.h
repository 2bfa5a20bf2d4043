/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of urnic-cp's unit tests: cmocka, and a folder that is removed afterwards. */
#ifndef URN_TEST_CP_H
#define URN_TEST_CP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char test_dir[64]; /* the current test's folder */

static inline int
test_dir_make(void **state)
{
	(void)state;
	strcpy(test_dir, "/tmp/urn-cp-test-XXXXXX");
	return mkdtemp(test_dir) == NULL ? -1 : 0;
}

static inline int
test_dir_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int
test_dir_remove(void **state)
{
	(void)state;
	return nftw(test_dir, test_dir_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A path in the folder; valid until the fourth call from here. */
static inline const char *
test_path(const char *name)
{
	static char path[4][512];
	static unsigned int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", test_dir, name);
	return p;
}

static inline void
test_file(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static inline void
assert_holds(const char *path, const void *data, size_t len)
{
	uint8_t *got = malloc(len + 1);
	int fd = open(path, O_RDONLY);

	assert_non_null(got);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, got, len + 1), (ssize_t)len);
	assert_memory_equal(got, data, len);
	close(fd);
	free(got);
}

/* Number of names in a folder. */
static inline unsigned int
entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
	closedir(d);
	return n;
}

/* Fails the test when the text does not contain the sentence. */
static inline void
assert_says(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' is not in '%s'", part, text);
}

#endif
