/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of programs, of a dataplane without adapters: admission of programs, and the remains
 * when they go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/socket.h"
#include "control/objects.h"
#include "server/server.h"

#include <dirent.h>
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
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Linux before 6.5: a connection's process is known by its number only. */
static _Atomic bool old_kernel;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (!old_kernel || level != SOL_SOCKET || name != SO_PEERPIDFD)
		return __real_getsockopt(fd, level, name, value, len);
	errno = ENOPROTOOPT;
	return -1;
}

static char dir[] = "/tmp/urnic-test.XXXXXX", path[64];
static struct urn_dp dp;
static struct urn_server *server;
static unsigned int fds_before;

static unsigned int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void
start(unsigned int clients, unsigned int per_uid)
{
	const struct urn_server_config cfg = {
		.path = path, .gid = (gid_t)-1, .clients = clients, .clients_per_uid = per_uid};
	struct urn_err err = {""};

	fds_before = open_fds();
	dp.speaks = URN_ABI_OFFER;
	server = urn_server_open(&dp, &cfg, &err);
	if (!server)
		fail_msg("%s", err.text);
}

static int
setup(void **state)
{
	(void)state;
	start(4, 3);
	return 0;
}

/* Nothing is left: no path, no descriptor. */
static int
teardown(void **state)
{
	(void)state;
	assert_int_equal(urn_server_close(server), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(open_fds(), fds_before);
	server = NULL;
	return 0;
}

static int
dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval tv = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(connect(fd, (void *)&addr, sizeof(addr)), 0);
	return fd;
}

static struct urn_sock_ask
question(uint16_t kind)
{
	return (struct urn_sock_ask){
		.head = {URN_SOCK_MAGIC, URN_SOCK_VERSION, kind, 5, urn_sock_ask_bytes(kind)},
		.hello = {.oldest = kind == URN_SOCK_HELLO ? URN_ABI_VERSION : 0},
	};
}

static struct urn_sock_answer
take(int fd)
{
	struct urn_sock_answer a;

	assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
	return a;
}

static struct urn_sock_answer
ask(int fd, const struct urn_sock_ask *q)
{
	assert_int_equal(send(fd, q, q->head.bytes, MSG_NOSIGNAL), q->head.bytes);
	return take(fd);
}

/* Connect, and be let in. returns: the descriptor */
static int
comes(void)
{
	const struct urn_sock_ask q = question(URN_SOCK_HELLO);
	int fd = dial();

	assert_int_equal(ask(fd, &q).err, 0);
	return fd;
}

static void
hung_up_on(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
}

/* A new connection is refused, with a sentence. */
static void
refused(int err, const char *words)
{
	int fd = dial();
	struct urn_sock_answer a = take(fd);

	assert_int_equal(a.err, err);
	if (!strstr(a.why, words))
		fail_msg("'%s' is not in '%s'", words, a.why);
	hung_up_on(fd);
}

static struct urn_server_counters
counters(void)
{
	struct urn_server_counters c;

	urn_server_counters(server, &c);
	return c;
}

/* Wait until n connections are open. */
static void
clients(uint64_t n)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < 20000 && counters().clients != n; i++)
		nanosleep(&ms, NULL);
	assert_int_equal(counters().clients, n);
}

static void
answers(void **state)
{
	struct urn_sock_ask q = question(URN_SOCK_HELLO);
	struct urn_sock_answer a;
	int fd = dial();

	(void)state;
	a = ask(fd, &q);
	assert_int_equal(a.head.serial, 5);
	assert_int_equal(a.hello.abi, URN_ABI_VERSION);
	assert_int_equal(a.hello.adapters, 0);
	q = question(URN_SOCK_LIST);
	assert_int_equal(ask(fd, &q).err, ENOENT);
	q = question(URN_SOCK_OPEN);
	memcpy(q.open.name, "none", 5);
	a = ask(fd, &q);
	assert_int_equal(a.err, ENODEV);
	assert_non_null(strstr(a.why, "'none'"));
	close(fd);
	clients(0);
	assert_int_equal(counters().accepted, 1);
	assert_int_equal(counters().opened | counters().calls | counters().bad | counters().refused, 0);
}

/* ---- HOUSE seam 10: ranges of versions */

/* Say hello with a range. returns: 0, or an errno value; text: words of the refusal */
static int
hello(uint32_t oldest, uint32_t newest, uint32_t version, const char *text)
{
	struct urn_sock_ask q = question(URN_SOCK_HELLO), list = question(URN_SOCK_LIST);
	struct urn_sock_answer a;
	int fd;

	clients(0); /* those before are gone, and make room */
	fd = dial();
	q.hello.oldest = oldest;
	q.hello.newest = newest;
	a = ask(fd, &q);
	assert_int_equal(a.hello.abi, version);
	if (a.err == 0) {
		assert_int_equal(ask(fd, &list).err, ENOENT); /* let in */
		close(fd);
		return 0;
	}
	if (!strstr(a.why, text))
		fail_msg("'%s' is not in '%s'", text, a.why);
	assert_int_equal(ask(fd, &list).err, EPROTO); /* not let in */
	hung_up_on(fd);
	return a.err;
}

/* The newest common version counts; without one both ranges are named, and who is too old. */
static void
ranges(void **state)
{
	(void)state;
	dp.speaks = (struct urn_abi_offer){.oldest = 8, .newest = 11, .features = 1u << 31};
	assert_int_equal(hello(7, 9, 9, ""), 0);
	assert_int_equal(hello(11, UINT32_MAX, 11, ""), 0);
	assert_int_equal(hello(8, 0, 8, ""), 0); /* without a range */
	assert_int_equal(hello(6, 7, 11,
			       "speaks versions 8 to 11 of the interface, the library 6 to 7: "
			       "upgrade the library"),
			 EPROTO);
	assert_int_equal(hello(12, 13, 11, "upgrade the dataplane"), EPROTO);
	/* As a library of version 6 always was told. */
	assert_int_equal(
		hello(6, 0, 11, "of the interface, the library 6: use the two of one release"),
		EPROTO);
	assert_int_equal(hello(9, 8, 11, "no range"), EPROTO);
	assert_int_equal(hello(0, 9, 11, "no range"), EPROTO);
	assert_int_equal(hello(0, 0, 11, "no range"), EPROTO);
	dp.speaks = URN_ABI_OFFER;
	assert_int_equal(hello(6, 0, 6, ""), 0); /* a library of version 6 */
	assert_int_equal(hello(URN_ABI_VERSION_OLDEST, URN_ABI_VERSION + 5, URN_ABI_VERSION, ""),
			 0);
	clients(0);
}

/* A newer library's HELLO may be longer; other questions and shorter HELLOs are not. */
static void
longer(void **state)
{
	struct urn_sock_ask q = question(URN_SOCK_HELLO);
	uint64_t bad = counters().bad;
	int fd;

	(void)state;
	memset((char *)&q + q.head.bytes, 0xa5, sizeof(q) - q.head.bytes);
	for (q.head.bytes = urn_sock_ask_bytes(URN_SOCK_HELLO); q.head.bytes <= sizeof(q);
	     q.head.bytes += 8) {
		clients(0);
		fd = dial();
		assert_int_equal(ask(fd, &q).err, 0);
		close(fd);
	}
	clients(0);
	assert_int_equal(counters().bad, bad);
	for (unsigned int n = sizeof(q.head); n < urn_sock_ask_bytes(URN_SOCK_HELLO); n++) {
		fd = dial();
		q.head.bytes = n;
		assert_int_equal(ask(fd, &q).err, EPROTO);
		hung_up_on(fd);
	}
	fd = dial(); /* beyond any question: without an answer */
	assert_int_equal(send(fd, (char[sizeof(q) + 1]){0}, sizeof(q) + 1, MSG_NOSIGNAL),
			 sizeof(q) + 1);
	hung_up_on(fd);
	clients(0);
	assert_int_equal(counters().bad, bad + 9);
}

/* A limit for a user, then for all users; programs that go make room. */
static void
too_many(void **state)
{
	int fd[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		fd[i] = comes();
	refused(EDQUOT, "a user may have at most 3 programs attached");
	assert_int_equal(counters().clients, 3);
	close(fd[1]);
	clients(2);
	fd[1] = comes();
	assert_int_equal(counters().refused, 1);
	assert_int_equal(counters().accepted, 5);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	clients(0);
}

static void
too_many_of_all(void **state)
{
	int fd[2];

	(void)state;
	assert_int_equal(urn_server_close(server), 0);
	start(2, 0); /* the limit of a user is the limit of all */
	for (int i = 0; i < 2; i++)
		fd[i] = comes();
	refused(EUSERS, "at most 2 programs may be attached");
	for (int i = 0; i < 2; i++)
		close(fd[i]);
}

/* A senseless message ends its connection, is counted, and nobody else notices. */
static void
nonsense(void **state)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(3 * sizeof(int))];
	} control = {{0}};
	struct urn_sock_ask q = question(URN_SOCK_LIST);
	struct iovec iov = {.iov_base = &q, .iov_len = q.head.bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int other = comes(), fd = dial(), three[3];

	(void)state;
	assert_int_equal(ask(fd, &q).err, EPROTO); /* before the program named its version */
	hung_up_on(fd);
	fd = comes();
	assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(take(fd).err, EPROTO);
	hung_up_on(fd);
	clients(1);
	assert_int_equal(counters().bad, 2);
	assert_int_equal(counters().truncated, 0);
	/* More descriptors than any message may have. */
	fd = comes();
	for (int i = 0; i < 3; i++)
		three[i] = fd;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(three));
	memcpy(CMSG_DATA(c), three, sizeof(three));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), q.head.bytes);
	hung_up_on(fd);
	clients(1);
	assert_int_equal(counters().truncated, 1);
	assert_int_equal(ask(other, &q).err, ENOENT);
	close(other);
}

/* The server hangs up on every client when it ends, whether the client sends something or not. */
static void
ends(void **state)
{
	int fd[3] = {comes(), comes(), dial()};

	(void)state;
	clients(3);
	assert_int_equal(urn_server_close(server), 0);
	for (int i = 0; i < 3; i++)
		hung_up_on(fd[i]);
	start(4, 4);
	clients(0);
}

/* ---- a program's death */

/*
 * A process that connects and forks a child behind the library's back; the child keeps
 * the descriptor until `go` tells it to end. The child reports by `say`, and waits.
 */
static void __attribute__((noreturn))
parent_of_a_keeper(int say, int go)
{
	int fd = comes();
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
	int say[2], go[2], status, other = comes();
	const struct urn_sock_ask q = question(URN_SOCK_LIST);
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
	clients(2);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	clients(1);
	assert_int_equal(read(say[0], &c, 1), 1); /* it lives, and was hung up on */
	assert_int_equal(ask(other, &q).err, ENOENT);
	close(go[1]);
	close(say[0]);
	close(other);
	clients(0);
}

static void
dies(void **state)
{
	(void)state;
	a_child_keeps_it();
	old_kernel = true;
	a_child_keeps_it();
	old_kernel = false;
}

/* A message sent before its program ended is read, though the program was gone when it was accepted. */
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
			int fd = dial();

			_exit(send(fd, "x", 1, MSG_NOSIGNAL) != 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		/* One after the other: four at once would exceed the limit of programs. */
		for (int k = 0; k < 20000 && counters().bad != (uint64_t)i + 1; k++)
			nanosleep(&ms, NULL);
		assert_int_equal(counters().bad, i + 1);
		clients(0);
	}
	assert_int_equal(counters().accepted, 20);
}

static void *
connects(void *arg)
{
	*(int *)arg = comes();
	return NULL;
}

/*
 * The end of a thread is not the end of a program: neither that of the thread that connected,
 * nor of the first one.
 */
static void
a_thread_ends(void **state)
{
	const struct urn_sock_ask q = question(URN_SOCK_LIST);
	pthread_t t;
	int fd;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, connects, &fd), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(ask(fd, &q).err, ENOENT);
	close(fd);
}

/* The thread that goes on when the first one, whose number is the process's, has ended. */
static void *
goes_on_alone(void *arg)
{
	const struct urn_sock_ask q = question(URN_SOCK_LIST);
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
		if (send(fd, &q, q.head.bytes, MSG_NOSIGNAL) != q.head.bytes || take(fd).err != ENOENT)
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
		fd = comes();
		if (pthread_create(&t, NULL, goes_on_alone, &fd) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	clients(0);
}

/* The socket has its mode and group before anybody can connect; one path, one server. */
static void
place(void **state)
{
	struct urn_server_config cfg = {.path = path, .mode = 0620, .gid = getgid()};
	struct urn_err err = {""};
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_null(urn_server_open(&dp, &cfg, &err));
	assert_non_null(strstr(err.text, "another dataplane listens here"));
	close(comes());
	clients(0);
	assert_int_equal(urn_server_close(server), 0);
	if (geteuid() == 0)
		cfg.gid = 54321;
	server = urn_server_open(&dp, &cfg, &err);
	assert_non_null(server);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0620);
	assert_int_equal(st.st_gid, cfg.gid);
	assert_int_equal(urn_server_close(NULL), 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(answers),	  TEST(ranges),		 TEST(longer),
		TEST(too_many),	  TEST(too_many_of_all), TEST(nonsense),
		TEST(ends),	  TEST(place),		 TEST(dies),
		TEST(last_words), TEST(a_thread_ends),	 TEST(the_first_thread_ends),
	};
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/s", dir);
	rc = cmocka_run_group_tests_name("server", tests, NULL, NULL);
	return rmdir(dir) == 0 ? rc : 1;
}
