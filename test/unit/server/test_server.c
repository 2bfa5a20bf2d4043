/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of programs, of a dataplane without adapters: admission of programs, and the remains
 * when they go.
 */
#include "server_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A new connection is refused, with a sentence. */
static void
refused(int err, const char *words)
{
	int fd = server_dial();
	struct urn_sock_answer a = server_take(fd);

	assert_int_equal(a.err, err);
	if (!strstr(a.why, words))
		fail_msg("'%s' is not in '%s'", words, a.why);
	server_hung_up_on(fd);
}

static void
answers(void **state)
{
	struct urn_sock_ask q = server_question(URN_SOCK_HELLO);
	struct urn_sock_answer a;
	int fd = server_dial();

	(void)state;
	a = server_ask(fd, &q);
	assert_int_equal(a.head.serial, 5);
	assert_int_equal(a.hello.abi, URN_ABI_VERSION);
	assert_int_equal(a.hello.adapters, 0);
	q = server_question(URN_SOCK_LIST);
	assert_int_equal(server_ask(fd, &q).err, ENOENT);
	q = server_question(URN_SOCK_OPEN);
	memcpy(q.open.name, "none", 5);
	a = server_ask(fd, &q);
	assert_int_equal(a.err, ENODEV);
	assert_non_null(strstr(a.why, "'none'"));
	close(fd);
	server_clients(0);
	assert_int_equal(server_counts().accepted, 1);
	assert_int_equal(server_counts().opened | server_counts().calls | server_counts().bad |
				 server_counts().refused,
			 0);
}

/* ---- architecture.md, seam 10: ranges of versions */

/* Say hello with a range. returns: 0, or an errno value; text: words of the refusal */
static int
hello(uint32_t oldest, uint32_t newest, uint32_t version, const char *text)
{
	struct urn_sock_ask q = server_question(URN_SOCK_HELLO),
			    list = server_question(URN_SOCK_LIST);
	struct urn_sock_answer a;
	int fd;

	server_clients(0); /* those before are gone, and make room */
	fd = server_dial();
	q.hello.oldest = oldest;
	q.hello.newest = newest;
	a = server_ask(fd, &q);
	assert_int_equal(a.hello.abi, version);
	if (a.err == 0) {
		assert_int_equal(server_ask(fd, &list).err, ENOENT); /* let in */
		close(fd);
		return 0;
	}
	if (!strstr(a.why, text))
		fail_msg("'%s' is not in '%s'", text, a.why);
	assert_int_equal(server_ask(fd, &list).err, EPROTO); /* not let in */
	server_hung_up_on(fd);
	return a.err;
}

/* The newest common version counts; without one both ranges are named, and who is too old. */
static void
ranges(void **state)
{
	(void)state;
	server_dp.speaks = (struct urn_abi_offer){.oldest = 8, .newest = 11, .features = 1u << 31};
	assert_int_equal(hello(7, 9, 9, ""), 0);
	assert_int_equal(hello(11, UINT32_MAX, 11, ""), 0);
	assert_int_equal(hello(8, 0, 8, ""), 0); /* without a range */
	assert_int_equal(hello(6, 7, 11,
			       "speaks versions 8 to 11 of the interface, the library 6 to 7: "
			       "upgrade the library"),
			 EPROTO);
	assert_int_equal(hello(12, 13, 11, "upgrade the dataplane"), EPROTO);
	/* A library of version 6 gets the answer that it always got. */
	assert_int_equal(
		hello(6, 0, 11, "of the interface, the library 6: use the two of one release"),
		EPROTO);
	assert_int_equal(hello(9, 8, 11, "no range"), EPROTO);
	assert_int_equal(hello(0, 9, 11, "no range"), EPROTO);
	assert_int_equal(hello(0, 0, 11, "no range"), EPROTO);
	server_dp.speaks = URN_ABI_OFFER;
	assert_int_equal(hello(6, 0, 6, ""), 0); /* a library of version 6 */
	assert_int_equal(hello(URN_ABI_VERSION_OLDEST, URN_ABI_VERSION + 5, URN_ABI_VERSION, ""),
			 0);
	server_clients(0);
}

/* A newer library's HELLO may be longer; other questions and shorter HELLOs are not. */
static void
longer(void **state)
{
	struct urn_sock_ask q = server_question(URN_SOCK_HELLO);
	uint64_t bad = server_counts().bad;
	int fd;

	(void)state;
	memset((char *)&q + q.head.bytes, 0xa5, sizeof(q) - q.head.bytes);
	for (q.head.bytes = urn_sock_ask_bytes(URN_SOCK_HELLO); q.head.bytes <= sizeof(q);
	     q.head.bytes += 8) {
		server_clients(0);
		fd = server_dial();
		assert_int_equal(server_ask(fd, &q).err, 0);
		close(fd);
	}
	server_clients(0);
	assert_int_equal(server_counts().bad, bad);
	for (unsigned int n = sizeof(q.head); n < urn_sock_ask_bytes(URN_SOCK_HELLO); n++) {
		server_clients(0);
		fd = server_dial();
		q.head.bytes = n;
		assert_int_equal(server_ask(fd, &q).err, EPROTO);
		server_hung_up_on(fd);
	}
	server_clients(0);
	fd = server_dial(); /* beyond any question: without an answer */
	assert_int_equal(send(fd, (char[sizeof(q) + 1]){0}, sizeof(q) + 1, MSG_NOSIGNAL),
			 sizeof(q) + 1);
	server_hung_up_on(fd);
	server_clients(0);
	assert_int_equal(server_counts().bad, bad + 9);
}

/* A limit for a user, then for all users; programs that go make room. */
static void
too_many(void **state)
{
	int fd[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		fd[i] = server_comes();
	refused(EDQUOT, "a user may have at most 3 programs attached");
	assert_int_equal(server_counts().clients, 3);
	close(fd[1]);
	server_clients(2);
	fd[1] = server_comes();
	assert_int_equal(server_counts().refused, 1);
	assert_int_equal(server_counts().accepted, 5);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	server_clients(0);
}

static void
too_many_of_all(void **state)
{
	int fd[2];

	(void)state;
	assert_int_equal(urn_server_close(server), 0);
	server_start(2, 0); /* the limit of a user is the limit of all */
	for (int i = 0; i < 2; i++)
		fd[i] = server_comes();
	refused(EUSERS, "at most 2 programs may be attached");
	for (int i = 0; i < 2; i++)
		close(fd[i]);
}

/* Descriptors of this process that are open now; all have low numbers. */
static unsigned int
open_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Connect as the n-th program, and say nothing. returns: the descriptor; -1: turned away */
static int
admitted(uint64_t n)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int fd = server_dial();

	for (int i = 0; i < 20000 && server_counts().clients != n && !server_counts().refused; i++)
		nanosleep(&ms, NULL);
	if (server_counts().clients == n)
		return fd;
	close(fd);
	return -1;
}

/*
 * Where users share the dataplane, one of them gets half of its descriptors by connections alone,
 * though none of these opens an adapter. A connection counts with 5 descriptors, and the process
 * keeps 64 for itself.
 */
static void
half_of_the_descriptors(void **state)
{
	const struct urn_server_config cfg = {
		.path = server_path, .gid = (gid_t)-1, .shared = true};
	struct urn_err err = {""};
	struct rlimit was, few;
	unsigned int n = 0;
	int fd[64] = {0};

	(void)state;
	assert_int_equal(urn_server_close(server), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = open_fds() + 64 + 200;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	server = urn_server_open(&server_dp, &cfg, &err);
	assert_non_null(server);
	while (n < 64 && (fd[n] = admitted(n + 1)) >= 0)
		n++;
	assert_in_range(n, 18, 20); /* 200 / 2 / 5; the server has a few itself */
	refused(EMFILE, "no descriptors left for a program more");
	close(fd[--n]);
	server_clients(n);
	fd[n++] = server_comes();
	refused(EMFILE, "no descriptors left for a program more");
	while (n)
		close(fd[--n]);
	server_clients(0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/* A senseless message ends its connection, is counted, and nobody else notices. */
static void
nonsense(void **state)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(3 * sizeof(int))];
	} control = {{0}};
	struct urn_sock_ask q = server_question(URN_SOCK_LIST);
	struct iovec iov = {.iov_base = &q, .iov_len = q.head.bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int other = server_comes(), fd = server_dial(), three[3];

	(void)state;
	assert_int_equal(server_ask(fd, &q).err, EPROTO); /* before the program named its version */
	server_hung_up_on(fd);
	fd = server_comes();
	assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(server_take(fd).err, EPROTO);
	server_hung_up_on(fd);
	server_clients(1);
	assert_int_equal(server_counts().bad, 2);
	assert_int_equal(server_counts().truncated, 0);
	/* More descriptors than any message may have. */
	fd = server_comes();
	for (int i = 0; i < 3; i++)
		three[i] = fd;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(three));
	memcpy(CMSG_DATA(c), three, sizeof(three));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), q.head.bytes);
	server_hung_up_on(fd);
	server_clients(1);
	assert_int_equal(server_counts().truncated, 1);
	assert_int_equal(server_ask(other, &q).err, ENOENT);
	close(other);
}

/* The server hangs up on every client when it ends, whether the client sends something or not. */
static void
ends(void **state)
{
	int fd[3] = {server_comes(), server_comes(), server_dial()};

	(void)state;
	server_clients(3);
	assert_int_equal(urn_server_close(server), 0);
	for (int i = 0; i < 3; i++)
		server_hung_up_on(fd[i]);
	server_start(4, 4);
	server_clients(0);
}

/* The socket has its mode and group before anybody can connect; one path, one server. */
static void
place(void **state)
{
	struct urn_server_config cfg = {.path = server_path, .mode = 0620, .gid = getgid()};
	struct urn_err err = {""};
	struct stat st;

	(void)state;
	assert_int_equal(stat(server_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_null(urn_server_open(&server_dp, &cfg, &err));
	assert_non_null(strstr(err.text, "another dataplane listens here"));
	close(server_comes());
	server_clients(0);
	assert_int_equal(urn_server_close(server), 0);
	if (geteuid() == 0)
		cfg.gid = 54321;
	server = urn_server_open(&server_dp, &cfg, &err);
	assert_non_null(server);
	assert_int_equal(stat(server_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0620);
	assert_int_equal(st.st_gid, cfg.gid);
	assert_int_equal(urn_server_close(NULL), 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, server_setup, server_teardown)
	const struct CMUnitTest tests[] = {
		TEST(answers),	TEST(ranges),	       TEST(longer),
		TEST(too_many), TEST(too_many_of_all), TEST(nonsense),
		TEST(ends),	TEST(place),	       TEST(half_of_the_descriptors),
	};
	int rc;

	if (!mkdtemp(server_dir))
		return 1;
	snprintf(server_path, sizeof(server_path), "%s/s", server_dir);
	rc = cmocka_run_group_tests_name("server", tests, NULL, NULL);
	return rmdir(server_dir) == 0 ? rc : 1;
}
