/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/eal_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PROCESSES 4
#define ROUNDS 1500

static char base[] = "/tmp/urn-dir-XXXXXX";

/* Called once before a lock is taken; NULL: no call. */
static void (*before_lock)(void);

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

int
__wrap_flock(int fd, int how)
{
	void (*hook)(void) = before_lock;

	before_lock = NULL;
	if (hook != NULL)
		hook();
	before_lock = hook;
	return __real_flock(fd, how);
}

static void
makes_and_removes(void *arg)
{
	struct urn_eal_dir dir;
	struct urn_err err = {""};
	char sub[128];
	int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		check_ok(urn_eal_dir_make(&dir, &err), &err);
		snprintf(sub, sizeof(sub), "%s/sub", dir.path);
		check(mkdir(sub, 0700) == 0);
		urn_eal_dir_remove(&dir);
		check(mkdir(sub, 0700) == -1 && errno == ENOENT);
	}
}

/* Processes that start at the same time sweep, and never remove each other's folder. */
static void
test_many(void **state)
{
	pid_t pid[PROCESSES];
	int i, bad = 0;

	(void)state;
	for (i = 0; i < PROCESSES; i++)
		pid[i] = child_start(makes_and_removes, NULL);
	for (i = 0; i < PROCESSES; i++)
		bad += child_wait(pid[i]) != 0;
	assert_int_equal(bad, 0);
	assert_int_equal(leftovers(base), 0);
}

static void
sweeps(void *arg)
{
	struct urn_eal_dir dir;
	struct urn_err err = {""};

	(void)arg;
	before_lock = NULL;
	check_ok(urn_eal_dir_make(&dir, &err), &err);
	urn_eal_dir_remove(&dir);
}

static void
another_sweeps(void)
{
	assert_int_equal(child_run(sweeps, NULL), 0);
}

/*
 * A sweep between the making of a lock file and its locking does not remove the folder, however
 * often it comes.
 */
static void
test_swept_before_locked(void **state)
{
	struct urn_eal_dir dir;
	struct urn_err err = {""};
	int ret;

	(void)state;
	before_lock = another_sweeps;
	ret = urn_eal_dir_make(&dir, &err);
	before_lock = NULL;
	assert_string_equal(err.text, "");
	assert_int_equal(ret, 0);
	assert_int_equal(leftovers(base), 1);
	urn_eal_dir_remove(&dir);
	assert_int_equal(leftovers(base), 0);
}

/* Only our own folders are swept: others' folders, and ones that never had a lock, stay. */
static void
test_spares(void **state)
{
	struct urn_eal_dir dir;
	struct urn_err err = {""};
	char path[128], lock[160];
	FILE *f;

	(void)state;
	/* A folder without a lock: its owner may be about to make one. */
	snprintf(path, sizeof(path), "%s/urnic-rt-young1", base);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(urn_eal_dir_make(&dir, &err), 0);
	urn_eal_dir_remove(&dir);
	assert_int_equal(leftovers(base), 1);
	/* A mode that we never use. */
	snprintf(lock, sizeof(lock), "%s/lock", path);
	f = fopen(lock, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(urn_eal_dir_make(&dir, &err), 0);
	urn_eal_dir_remove(&dir);
	assert_int_equal(leftovers(base), 1);
	/* Now it is a folder of ours whose process died. */
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(urn_eal_dir_make(&dir, &err), 0);
	urn_eal_dir_remove(&dir);
	assert_int_equal(leftovers(base), 0);
	urn_eal_dir_remove(&dir);
}

/* A symbolic link in the folder is removed, not its target. */
static void
test_links(void **state)
{
	struct urn_eal_dir dir;
	struct urn_err err = {""};
	char link[128], target[128];
	struct stat st;

	(void)state;
	snprintf(target, sizeof(target), "%s/target", base);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(urn_eal_dir_make(&dir, &err), 0);
	snprintf(link, sizeof(link), "%s/link", dir.path);
	assert_int_equal(symlink(target, link), 0);
	urn_eal_dir_remove(&dir);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(rmdir(target), 0);
}

static void
make_deep(struct urn_eal_dir *dir, int name)
{
	struct urn_err err = {""};
	char sub[128];

	check_ok(urn_eal_dir_make(dir, &err), &err);
	snprintf(sub, sizeof(sub), "%.90s/%d", dir->path, name);
	check(mkdir(sub, 0700) == 0);
	snprintf(sub, sizeof(sub), "%.90s/%d/below", dir->path, name);
	check(mkdir(sub, 0700) == 0);
}

/*
 * Remove folders with too few descriptors left to look far below them. The first entry
 * depends on the names, hence several folders.
 */
static void
removes_badly(void *arg)
{
	struct urn_eal_dir dir[16];
	struct rlimit limit;

	(void)arg;
	for (int i = 0; i < 16; i++)
		make_deep(&dir[i], i);
	check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = (rlim_t)dup(0) + 2;
	check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < 16; i++)
		urn_eal_dir_remove(&dir[i]);
}

/* A folder that could not be removed keeps its lock, so that the next start tries again. */
static void
test_half_removed(void **state)
{
	struct urn_eal_dir dir;
	struct urn_err err = {""};

	(void)state;
	assert_int_equal(child_wait(child_start(removes_badly, NULL)), 0);
	assert_int_equal(urn_eal_dir_make(&dir, &err), 0);
	urn_eal_dir_remove(&dir);
	assert_int_equal(leftovers(base), 0);
}

static int
setup(void **state)
{
	(void)state;
	if (mkdtemp(base) == NULL)
		return -1;
	return setenv("XDG_RUNTIME_DIR", base, 1);
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
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_swept_before_locked),
		cmocka_unit_test(test_spares),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_half_removed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
