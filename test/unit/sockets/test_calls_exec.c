/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that execute programs: each hands the table on, and a failure changes nothing (DB-11). */
#include "rig.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

/* A program that ends well when its environment names a descriptor that it has, and A is 1. */
#define SCRIPT "test \"$A\" = 1 && test -e /proc/self/fd/\"$URNIC_SOCKETS_EXEC\""

static char sh[] = "/bin/sh", flag[] = "-c", script[] = SCRIPT, set[] = "A=1";
static char *const args[] = {sh, flag, script, NULL};
static char *const env[] = {set, NULL};

static int
run(int how)
{
	int fd = open(sh, O_RDONLY | O_CLOEXEC);

	switch (how) {
	case 0:
		return execve(sh, args, env);
	case 1:
		return execv(sh, args);
	case 2:
		return execvp("sh", args);
	case 3:
		return execvpe("sh", args, env);
	case 4:
		return execl(sh, sh, flag, script, (char *)NULL);
	case 5:
		return execlp("sh", sh, flag, script, (char *)NULL);
	case 6:
		return execle(sh, sh, flag, script, (char *)NULL, env);
	case 7:
		return fexecve(fd, args, env);
	default:
		return execveat(AT_FDCWD, sh, args, env, 0);
	}
}

/* Wait for a child, which is to end well. */
static void
ends_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Each of the functions hands the table on, from a child of fork(). */
static void
hands_on(void **state)
{
	int how;

	(void)state;
	assert_int_equal(setenv("A", "1", 1), 0);
	for (how = 0; how < 9; how++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)run(how);
			_exit(99);
		}
		ends_well(pid);
	}
	assert_int_equal(unsetenv("A"), 0);
}

/* A child of vfork() hands a socket on under a number that it chose itself, and changes nothing in
 * the parent. */
static void
stranger(void **state)
{
	struct rig *r = *state;
	int next = dup(0);
	pid_t pid;

	close(next);
	assert_int_equal(fcntl(r->s, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(fcntl(r->t, F_SETFD, FD_CLOEXEC), 0);
	pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
	if (pid == 0) {
		(void)dup2(r->s, 0); // NOLINT(clang-analyzer-unix.Vfork): this is what is tested
		(void)execve(sh, args, env);
		_exit(99);
	}
	ends_well(pid);
	assert_int_equal(dup(0), next); /* no descriptor is left */
	close(next);
	assert_null(urn_twin_glance(0));
	rig_send(r, "still there");
	rig_gets(r->s, "still there");
}

/* posix_spawn() and posix_spawnp(), whose child the library does not see. */
static void
spawns(void **state)
{
	pid_t pid;

	(void)state;
	assert_int_equal(posix_spawn(&pid, sh, NULL, NULL, args, env), 0);
	ends_well(pid);
	assert_int_equal(posix_spawnp(&pid, "sh", NULL, NULL, args, env), 0);
	ends_well(pid);
	assert_int_equal(posix_spawn(&pid, "/nowhere", NULL, NULL, args, env), ENOENT);
}

/* A call that fails leaves descriptors and environment as they were. */
static void
fails(void **state)
{
	struct rig *r = *state;
	int high = urn_real()->fcntl(0, F_DUPFD, 512), again;

	(void)urn_real()->close(high);
	/* A folder of the search path that may not be searched would say EACCES. */
	assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0);
	FAILS(execve("/nowhere", args, env), ENOENT);
	FAILS(execv("/nowhere", args), ENOENT);
	FAILS(execvp("nowhere-at-all", args), ENOENT);
	FAILS(execl("/nowhere", sh, (char *)NULL), ENOENT);
	FAILS(fexecve(-1, args, env), EINVAL);
	again = urn_real()->fcntl(0, F_DUPFD, 512);
	assert_int_equal(again, high);
	(void)urn_real()->close(again);
	assert_null(getenv("URNIC_SOCKETS_EXEC"));
	rig_send(r, "x");
	rig_gets(r->s, "x");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hands_on, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(stranger, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(spawns, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(fails, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
