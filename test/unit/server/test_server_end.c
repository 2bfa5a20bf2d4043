/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that end while they are attached: killed, by a thread's end, with children that keep
 * the connection.
 */
#include "server_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a program's death */

/*
 * A process that connects and forks a child behind the library's back; the child keeps
 * the descriptor until `go` tells it to end. The child reports by `say`, and waits.
 */
static void __attribute__((noreturn)) parent_of_a_keeper(int say, int go)
{
	int fd = server_comes();
	char c = 0;

	alarm(60);
	if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
		alarm(60);
		/* The child reports that the server hung up; then it may end. */
		if (recv(fd, &c, 1, 0) == 0 && write(say, &c, 1) == 1)
			(void)!read(go, &c, 1);
		_exit(0);
	}
	if (write(say, &c, 1) == 1)
		pause();
	_exit(1);
}

/* The connection of a killed process ends at once, though another process has its descriptor. */
static void
a_child_keeps_it(void)
{
	int say[2], go[2], status, other = server_comes();
	const struct urn_sock_ask q = server_question(URN_SOCK_LIST);
	pid_t pid;
	char c;

	assert_int_equal(pipe2(say, O_CLOEXEC) | pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(say[0]);
		close(go[1]);
		close(other);
		parent_of_a_keeper(say[1], go[0]);
	}
	close(say[1]);
	close(go[0]);
	assert_int_equal(read(say[0], &c, 1), 1);
	server_clients(2);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	server_clients(1);
	assert_int_equal(read(say[0], &c, 1), 1); /* it lives, and was hung up on */
	assert_int_equal(server_ask(other, &q).err, ENOENT);
	close(go[1]);
	close(say[0]);
	close(other);
	server_clients(0);
}

static void
dies(void **state)
{
	(void)state;
	a_child_keeps_it();
	server_old_kernel = true;
	a_child_keeps_it();
	server_old_kernel = false;
}

/* A message sent before its program ended is read, though the program was gone when it was
 * accepted. */
static void
last_words(void **state)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int status;
	pid_t pid;

	(void)state;
	for (int i = 0; i < 20; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			int fd = server_dial();

			_exit(send(fd, "x", 1, MSG_NOSIGNAL) != 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		/* One after the other: four at once would exceed the limit of programs. */
		for (int k = 0; k < 20000 && server_counts().bad != (uint64_t)i + 1; k++)
			nanosleep(&ms, NULL);
		assert_int_equal(server_counts().bad, i + 1);
		server_clients(0);
	}
	assert_int_equal(server_counts().accepted, 20);
}

static void *
connects(void *arg)
{
	*(int *)arg = server_comes();
	return NULL;
}

/*
 * The end of a thread is not the end of a program: neither that of the thread that connected,
 * nor of the first one.
 */
static void
a_thread_ends(void **state)
{
	const struct urn_sock_ask q = server_question(URN_SOCK_LIST);
	pthread_t t;
	int fd;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, connects, &fd), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(server_ask(fd, &q).err, ENOENT);
	close(fd);
}

/* The thread that goes on when the first one, whose number is the process's, has ended. */
static void *
goes_on_alone(void *arg)
{
	const struct urn_sock_ask q = server_question(URN_SOCK_LIST);
	const struct timespec ms = {.tv_nsec = 1000000};
	char path_of[64], line[256] = "";
	int fd = *(int *)arg;

	snprintf(path_of, sizeof(path_of), "/proc/self/task/%d/stat", (int)getpid());
	while (!strstr(line, ") Z ")) {
		FILE *f = fopen(path_of, "re");

		nanosleep(&ms, NULL);
		if (f == NULL || fgets(line, sizeof(line), f) == NULL)
			_exit(2);
		fclose(f);
	}
	for (int i = 0; i < 50; i++, nanosleep(&ms, NULL))
		if (send(fd, &q, q.head.bytes, MSG_NOSIGNAL) != q.head.bytes ||
		    server_take(fd).err != ENOENT)
			_exit(3);
	_exit(0);
}

static void
the_first_thread_ends(void **state)
{
	static int fd;
	pthread_t t;
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		fd = server_comes();
		if (pthread_create(&t, NULL, goes_on_alone, &fd) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	server_clients(0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, server_setup, server_teardown)
	const struct CMUnitTest tests[] = {
		TEST(dies),
		TEST(last_words),
		TEST(a_thread_ends),
		TEST(the_first_thread_ends),
	};
	int rc;

	if (!mkdtemp(server_dir))
		return 1;
	snprintf(server_path, sizeof(server_path), "%s/s", server_dir);
	rc = cmocka_run_group_tests_name("server_end", tests, NULL, NULL);
	return rmdir(server_dir) == 0 ? rc : 1;
}
