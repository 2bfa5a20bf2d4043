/* SPDX-License-Identifier: BSD-3-Clause */
/* Received files: each has its name only when it is whole, and nothing is left of others. */
#include "cp_test.h"

#include "store.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static uint8_t data[300000];

/* Both ways of writing: unnamed files, and hidden ones where there are no unnamed. */
static const bool named_too[] = {false, true};

static void
open_store(struct cp_store *s, bool force, bool named)
{
	struct urn_err err;

	assert_int_equal(cp_store_open(s, test_dir, force, &err), 0);
	s->named = named;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
}

static void
close_store(struct cp_store *s)
{
	struct urn_err err;

	assert_int_equal(cp_store_close(s, &err), 0);
	assert_int_equal(cp_store_close(s, &err), 0);
}

/* The name appears with the commit, and not before. */
static void
test_commit(void **state)
{
	struct cp_store_file f;
	struct cp_store s;
	struct stat st;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_store(&s, false, named_too[i]);
		assert_int_equal(cp_store_begin(&s, &f, "x", sizeof(data), 0640), 0);
		assert_int_equal(cp_store_write(&f, data, 200000, 0), 0);
		assert_int_equal(access(test_path("x"), F_OK), -1);
		assert_int_equal(entries(test_dir), named_too[i]);
		assert_int_equal(cp_store_write(&f, data + 200000, 100000, 200000), 0);
		assert_int_equal(cp_store_commit(&f), 0);
		cp_store_abort(&f);
		assert_int_equal(entries(test_dir), 1);
		assert_holds(test_path("x"), data, sizeof(data));
		assert_int_equal(stat(test_path("x"), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640 & ~s.umask);
		close_store(&s);
		unlink(test_path("x"));
	}
}

static void
test_abort(void **state)
{
	struct cp_store_file f;
	struct cp_store s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_store(&s, false, named_too[i]);
		assert_int_equal(cp_store_begin(&s, &f, "x", 10, 0644), 0);
		assert_int_equal(cp_store_write(&f, data, 10, 0), 0);
		cp_store_abort(&f);
		cp_store_abort(&f);
		assert_int_equal(entries(test_dir), 0);
		assert_int_equal(cp_store_write(&f, data, 10, 0), -1);
		assert_int_equal(cp_store_commit(&f), -1);
		assert_int_equal(entries(test_dir), 0);
		close_store(&s);
	}
}

/* A file that exists is refused at the beginning, and when it appears meanwhile. */
static void
test_exists(void **state)
{
	struct cp_store_file f;
	struct cp_store s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_store(&s, false, named_too[i]);
		test_file(test_path("x"), "old", 3);
		assert_int_equal(cp_store_begin(&s, &f, "x", 10, 0644), -1);
		assert_true(f.refused);
		assert_says(f.err.text, "already");
		unlink(test_path("x"));
		assert_int_equal(cp_store_begin(&s, &f, "x", 10, 0644), 0);
		test_file(test_path("x"), "new", 3);
		assert_int_equal(cp_store_write(&f, data, 10, 0), 0);
		assert_int_equal(cp_store_commit(&f), -1);
		assert_says(f.err.text, "by now");
		assert_holds(test_path("x"), "new", 3);
		assert_int_equal(entries(test_dir), 1);
		close_store(&s);
	}
}

/* force replaces a file, never through a link, never a folder. */
static void
test_force(void **state)
{
	struct cp_store_file f;
	struct cp_store s;
	struct stat st;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_store(&s, true, named_too[i]);
		test_file(test_path("target"), "kept", 4);
		unlink(test_path("x"));
		assert_int_equal(symlink(test_path("target"), test_path("x")), 0);
		assert_int_equal(cp_store_begin(&s, &f, "x", 10, 0644), 0);
		assert_int_equal(cp_store_write(&f, data, 10, 0), 0);
		assert_int_equal(cp_store_commit(&f), 0);
		assert_int_equal(lstat(test_path("x"), &st), 0);
		assert_true(S_ISREG(st.st_mode));
		assert_holds(test_path("x"), data, 10);
		assert_holds(test_path("target"), "kept", 4);
		assert_int_equal(entries(test_dir), 2);
		mkdir(test_path("folder"), 0700);
		assert_int_equal(cp_store_begin(&s, &f, "folder", 10, 0644), -1);
		assert_says(f.err.text, "folder");
		rmdir(test_path("folder"));
		close_store(&s);
	}
}

/* Zeros become holes; the bytes around them are kept; a file may end in a hole. */
static void
test_holes(void **state)
{
	uint8_t *big = calloc(1, 4 << 20), *got = malloc(4 << 20);
	struct cp_store_file f;
	struct cp_store s;
	struct stat st;
	int fd;

	(void)state;
	assert_true(big != NULL && got != NULL);
	big[0] = big[65535] = big[1 << 20] = 1;
	open_store(&s, false, false);
	assert_int_equal(cp_store_begin(&s, &f, "x", 4 << 20, 0644), 0);
	assert_int_equal(cp_store_write(&f, big, 4 << 20, 0), 0);
	assert_int_equal(cp_store_commit(&f), 0);
	fd = open(test_path("x"), O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 4 << 20);
	assert_true(st.st_blocks * 512 <= 1 << 20);
	assert_int_equal(read(fd, got, 4 << 20), 4 << 20);
	assert_memory_equal(got, big, 4 << 20);
	close(fd);
	close_store(&s);
	free(big);
	free(got);
}

/* A receiver that was killed leaves at most a hidden file: the next start removes it. */
static void
test_killed(void **state)
{
	int ready[2], status;
	struct cp_store_file f;
	struct cp_store s, next;
	struct urn_err err;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (cp_store_open(&s, test_dir, false, &err) != 0)
			_exit(1);
		s.named = true;
		cp_store_begin(&s, &f, "x", 10, 0644);
		cp_store_write(&f, data, 10, 0);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(entries(test_dir), 1);
	/* While the receiver lives, another one leaves its file alone. */
	open_store(&next, false, false);
	assert_int_equal(entries(test_dir), 1);
	close_store(&next);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(entries(test_dir), 1);
	open_store(&next, false, false);
	assert_int_equal(entries(test_dir), 0);
	close_store(&next);
	close(ready[0]);
	close(ready[1]);
}

/* A full disk: a sentence, and nothing left. */
static void
test_full(void **state)
{
	struct rlimit old, small = {1 << 17, 1 << 17};
	struct cp_store_file f;
	struct cp_store s;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	for (int i = 0; i < 2; i++) {
		open_store(&s, false, named_too[i]);
		assert_int_equal(cp_store_begin(&s, &f, "x", sizeof(data), 0644), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		assert_int_equal(cp_store_write(&f, data, sizeof(data), 0), -1);
		assert_int_equal(cp_store_write(&f, data, 10, 0), -1);
		assert_int_equal(cp_store_commit(&f), -1);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_says(f.err.text, "ulimit");
		assert_false(f.refused);
		assert_int_equal(entries(test_dir), 0);
		close_store(&s);
	}
}

/* The case of /dev/full: no space left. */
static void
test_no_space(void **state)
{
	struct cp_store_file f;
	struct cp_store s;

	(void)state;
	open_store(&s, false, false);
	assert_int_equal(cp_store_begin(&s, &f, "x", 10, 0644), 0);
	close(f.fd);
	f.fd = open("/dev/full", O_RDWR);
	assert_true(f.fd >= 0);
	assert_int_equal(cp_store_write(&f, data, 10, 0), -1);
	assert_says(f.err.text, "is full");
	close_store(&s);
}

static void
test_bad_folder(void **state)
{
	struct cp_store s;
	struct urn_err err;

	(void)state;
	test_file(test_path("file"), "", 0);
	assert_int_equal(cp_store_open(&s, test_path("file"), false, &err), -1);
	assert_says(err.text, "not a folder");
	assert_int_equal(cp_store_open(&s, test_path("a/b"), false, &err), -1);
	assert_says(err.text, "cannot make");
	/* The folder is made when only the last part of its path is missing. */
	assert_int_equal(cp_store_open(&s, test_path("a"), false, &err), 0);
	close_store(&s);
	if (geteuid() != 0) {
		assert_int_equal(chmod(test_path("a"), 0500), 0);
		assert_int_equal(cp_store_open(&s, test_path("a"), false, &err), -1);
		assert_says(err.text, "cannot write");
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, test_dir_make, test_dir_remove)
	const struct CMUnitTest tests[] = {
		T(test_commit), T(test_abort),	T(test_exists),	  T(test_force),      T(test_holes),
		T(test_killed), T(test_full),	T(test_no_space), T(test_bad_folder),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
