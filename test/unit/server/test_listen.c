/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of the server's socket: one server has it, and no other takes it away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/urnic-test.XXXXXX";
static char path[64], lock[80];

static int
setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	return 0;
}

/* Nothing is left behind. */
static int
teardown(void **state)
{
	(void)state;
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void
test_one(void **state)
{
	struct urn_listen a, b;
	struct urn_err err = {""};
	struct stat st;

	(void)state;
	assert_int_equal(urn_listen_open(&a, path, 0640, (gid_t)-1, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(urn_listen_open(&b, path, 0, (gid_t)-1, &err), -1);
	assert_non_null(strstr(err.text, "another dataplane listens here"));
	urn_listen_close(&b);
	assert_int_equal(stat(path, &st) | stat(lock, &st), 0);
	urn_listen_close(&a);
	assert_int_equal(urn_listen_open(&b, path, 0, (gid_t)-1, &err), 0);
	urn_listen_close(&b);
}

/* Looks at the socket when its mode is about to be set. */
static struct {
	bool on;       /* do so */
	mode_t mode;   /* the mode that the file had; 0: no call came */
	int connected; /* errno value of a connection that somebody tried to make */
} looked;

int __real_chmod(const char *name, mode_t mode);
int __wrap_chmod(const char *name, mode_t mode);

int
__wrap_chmod(const char *name, mode_t mode)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct stat st;
	int fd;

	if (looked.on) {
		assert_int_equal(stat(path, &st), 0);
		looked.mode = st.st_mode & 07777;
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		assert_true(fd >= 0);
		snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
		looked.connected = connect(fd, (void *)&to, sizeof(to)) == 0 ? 0 : errno;
		close(fd);
	}
	return __real_chmod(name, mode);
}

/* Until the socket has its mode and its group, its file is the owner's alone, and nobody can
 * connect. */
static void
test_rights_first(void **state)
{
	struct urn_err err = {""};
	mode_t was = umask(0);
	struct urn_listen a;
	struct stat st;

	(void)state;
	looked.on = true;
	assert_int_equal(urn_listen_open(&a, path, 0666, (gid_t)-1, &err), 0);
	looked.on = false;
	umask(was);
	assert_int_equal(looked.mode, 0600);
	assert_int_equal(looked.connected, ECONNREFUSED);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	urn_listen_close(&a);
}

/* A file that takes the place of the socket between bind() and chmod(). */
static const char *swap; /* the file that a link at the path leads to; NULL: no link */

int __real_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);

int
__wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	int rc = __real_bind(fd, addr, len);

	if (rc == 0 && swap) {
		assert_int_equal(unlink(path), 0);
		assert_int_equal(symlink(swap, path), 0);
	}
	return rc;
}

/* A link that takes the socket's place leads to no other file: that one keeps its mode. */
static void
test_swapped(void **state)
{
	struct urn_err err = {""};
	struct urn_listen a;
	struct stat st;
	char other[80];
	int fd;

	(void)state;
	snprintf(other, sizeof(other), "%s.other", path);
	fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	swap = other;
	assert_int_equal(urn_listen_open(&a, path, 0666, (gid_t)-1, &err), -1);
	swap = NULL;
	assert_non_null(strstr(err.text, "mode and group can't be set"));
	urn_listen_close(&a);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(unlink(other), 0);
}

/* Another server holds the lock and has not bound yet: the second does not look at the socket at all. */
static void
test_lock_first(void **state)
{
	struct urn_listen a, b;
	struct urn_err err = {""};

	(void)state;
	assert_int_equal(urn_listen_open(&a, path, 0, (gid_t)-1, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(urn_listen_open(&b, path, 0, (gid_t)-1, &err), -1);
	assert_non_null(strstr(err.text, "another dataplane listens here"));
	urn_listen_close(&b);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(lock, F_OK), 0);
	urn_listen_close(&a);
}

/* Lock and socket of a killed server are replaced; another server's file is not. */
static void
test_left_behind(void **state)
{
	struct urn_listen a;
	struct urn_err err = {""};
	int status, fd;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(urn_listen_open(&a, path, 0, (gid_t)-1, &err) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(path, F_OK) | access(lock, F_OK), 0);
	assert_int_equal(urn_listen_open(&a, path, 0, (gid_t)-1, &err), 0);
	/* Another file is put there: it stays. */
	assert_int_equal(unlink(path), 0);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	urn_listen_close(&a);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(urn_listen_open(&a, path, 0, (gid_t)-1, &err), -1);
	assert_non_null(strstr(err.text, "can't be made"));
	urn_listen_close(&a);
	assert_int_equal(unlink(path), 0);
}

/* A link in the lock's place is not followed. */
static void
test_link(void **state)
{
	struct urn_listen a;
	struct urn_err err = {""};

	(void)state;
	assert_int_equal(symlink("/dev/null", lock), 0);
	assert_int_equal(urn_listen_open(&a, path, 0, (gid_t)-1, &err), -1);
	assert_non_null(strstr(err.text, lock));
	urn_listen_close(&a);
	assert_int_equal(unlink(lock), 0);
}

/* net_memif greets a client that connects, and DPDK 22.11 ends its process when the client has gone. */
static void
test_greeting(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct urn_err err = {""};
	struct urn_listen l;
	int status, fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	pid_t pid;

	(void)state;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (void *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 8), 0);
	pid = fork();
	if (pid == 0)
		_exit(send(accept(fd, NULL, NULL), "hello", 5, MSG_NOSIGNAL) != 5);
	assert_int_equal(urn_listen_open(&l, path, 0, (gid_t)-1, &err), -1);
	assert_non_null(strstr(err.text, "another dataplane listens here"));
	urn_listen_close(&l);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

/* Another user's file stays, whatever it is, and the error tells the cases apart. */
static void
test_of_others(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat before, after;
	struct urn_err err = {""};
	struct urn_listen l;

	(void)state;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
		int fd = socket(AF_UNIX, type, 0);

		assert_int_equal(bind(fd, (void *)&addr, sizeof(addr)), 0);
		if (type == SOCK_STREAM)
			assert_int_equal(listen(fd, 8), 0);
		assert_int_equal(stat(path, &before), 0);
		assert_int_equal(urn_listen_open(&l, path, 0, (gid_t)-1, &err), -1);
		assert_non_null(strstr(err.text, "the socket of another program"));
		urn_listen_close(&l);
		assert_int_equal(stat(path, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		close(fd);
		unlink(path);
	}
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(urn_listen_open(&l, path, 0, (gid_t)-1, &err), -1);
	assert_non_null(strstr(err.text, "no socket"));
	urn_listen_close(&l);
	assert_int_equal(rmdir(path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),	    cmocka_unit_test(test_greeting),
		cmocka_unit_test(test_of_others),   cmocka_unit_test(test_lock_first),
		cmocka_unit_test(test_left_behind), cmocka_unit_test(test_link),
		cmocka_unit_test(test_swapped),	    cmocka_unit_test(test_rights_first),
	};

	return cmocka_run_group_tests_name("listen", tests, setup, teardown);
}
