/* SPDX-License-Identifier: BSD-3-Clause */
/* The users that a program takes for its dataplane (attach/trust.h). Root runs listeners of other
 * users, too. */
#include "test.h"

#include "attach/remote.h"
#include "attach/trust.h"

#include <urnic/attach.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRANGER = 65534 };

/* Name of a file or folder that is to be made where everybody may make files; mkstemp() and
 * mkdtemp() take it. */
#define TRY P_tmpdir "/urnic-trust.XXXXXX"

static void
names(void **state)
{
	(void)state;
	assert_int_equal(urn_trust_named(NULL, 1000), 0);
	assert_int_equal(urn_trust_named("", 1000), 0);
	assert_int_equal(urn_trust_named("1000", 1000), 1);
	assert_int_equal(urn_trust_named("7,1000", 1000), 1);
	assert_int_equal(urn_trust_named("7,8", 1000), 0);
	assert_int_equal(urn_trust_named("root", 0), 1);
	assert_int_equal(urn_trust_named("root,7", 8), 0);
}

#define LONG_NAME "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A wrong entry is named, also behind the one that fits. */
static void
wrong_names(void **state)
{
	static const char *const wrong[] = {
		",",  "1000,",	    ",1000", "1000,,7", "1000,no such user",
		"-1", "4294967295", "0x7",   "1000 ",	LONG_NAME,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		errno = 0;
		assert_int_equal(urn_trust_named(wrong[i], 1000), -1);
		assert_int_equal(errno, EINVAL);
		assert_non_null(strstr(urn_attach_error(), "URNIC_TRUST"));
	}
}

/* Only root makes files in /run; in /tmp everybody does, so that nothing there was given by root.
 */
static void
given(void **state)
{
	char dir[] = TRY;
	uid_t owner;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_false(urn_trust_given(dir, &owner));
	assert_int_equal(rmdir(dir), 0);
	assert_false(urn_trust_given("/nowhere", &owner));
	assert_false(urn_trust_given("run", &owner));
	assert_true(urn_trust_given("/etc", &owner));
	assert_int_equal(owner, 0);
}

/* Numbers of users that a namespace has. */
static void
mapped(void **state)
{
	char path[] = TRY;
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	(void)state;
	assert_non_null(f);
	fprintf(f, "         0       1000          1\n         5     100000        100\n");
	fclose(f);
	assert_true(urn_trust_mapped(path, 0));
	assert_false(urn_trust_mapped(path, 1));
	assert_true(urn_trust_mapped(path, 5) && urn_trust_mapped(path, 104));
	assert_false(urn_trust_mapped(path, 105) || urn_trust_mapped(path, STRANGER));
	assert_int_equal(unlink(path), 0);
	assert_true(urn_trust_mapped("/proc/self/uid_map", geteuid()));
	assert_true(urn_trust_mapped("/nowhere", STRANGER));
}

static void
given_by_root(void **state)
{
	char dir[] = "/run/urnic-trust.XXXXXX", link[64], under[64];
	uid_t owner;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s.link", dir);
	snprintf(under, sizeof(under), "%s/urnic", dir);
	assert_int_equal(chown(dir, STRANGER, STRANGER), 0);
	assert_int_equal(symlink(dir, link), 0);
	assert_int_equal(mkdir(under, 0755), 0);
	assert_true(urn_trust_given(dir, &owner));
	assert_int_equal(owner, STRANGER);
	assert_false(urn_trust_given(link, &owner));
	assert_false(urn_trust_given(under, &owner)); /* the stranger may have put it there */
	assert_int_equal(rmdir(under) | unlink(link) | rmdir(dir), 0);
}

/* ---- a listener of another user */

struct listener {
	char dir[64], path[96];
	pid_t child;
	int fd; /* hears whether anything was said: one byte */
};

/* The child's work: let one program connect, and tell whether it says anything. */
static void
listen_as(const struct listener *l, uid_t uid, int told)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), got;
	char byte;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", l->path);
	if (bind(fd, (void *)&addr, sizeof(addr)) != 0 || chmod(l->path, 0777) != 0 ||
	    setuid(uid) != 0 || listen(fd, 1) != 0 || write(told, "r", 1) != 1)
		_exit(1);
	got = accept(fd, NULL, NULL);
	_exit(recv(got, &byte, 1, 0) == 0 && write(told, "n", 1) == 1 ? 0 : 2);
}

static void
start(struct listener *l, uid_t uid)
{
	int told[2];
	char byte;

	snprintf(l->dir, sizeof(l->dir), "%s", TRY);
	assert_non_null(mkdtemp(l->dir));
	assert_int_equal(chmod(l->dir, 0755), 0);
	snprintf(l->path, sizeof(l->path), "%s/sock", l->dir);
	assert_int_equal(pipe(told), 0);
	l->child = fork();
	if (l->child == 0)
		listen_as(l, uid, told[1]);
	close(told[1]);
	l->fd = told[0];
	assert_int_equal(read(l->fd, &byte, 1), 1);
}

static int
finish(struct listener *l)
{
	int status;

	kill(l->child, SIGKILL);
	assert_int_equal(waitpid(l->child, &status, 0), l->child);
	close(l->fd);
	assert_int_equal(unlink(l->path) | rmdir(l->dir), 0);
	return status;
}

/* A stranger's socket hears nothing, not even a greeting. */
static void
stranger(void **state)
{
	struct listener l;
	char byte;

	(void)state;
	start(&l, STRANGER);
	assert_int_equal(urn_remote_connect(l.path, NULL), -1);
	assert_int_equal(errno, EACCES);
	assert_non_null(strstr(urn_attach_error(), "user 65534"));
	assert_non_null(strstr(urn_attach_error(), "URNIC_TRUST=65534"));
	assert_int_equal(read(l.fd, &byte, 1), 1);
	assert_int_equal(byte, 'n');
	(void)finish(&l);
}

/* One that URNIC_TRUST names is greeted. */
static void
named_stranger(void **state)
{
	struct listener l;
	char byte;

	(void)state;
	start(&l, STRANGER);
	setenv("URNIC_TRUST", "7,65534", 1);
	assert_int_equal(urn_remote_connect(l.path, NULL), -1); /* greeted, and not answered */
	assert_int_not_equal(errno, EACCES);
	assert_int_equal(read(l.fd, &byte, 1), 0);
	unsetenv("URNIC_TRUST");
	(void)finish(&l);
}

/* A runtime folder of another user is no place to look for the user's own dataplane. */
static void
runtime_folder(void **state)
{
	char dir[] = TRY, sub[64], file[80], path[108];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/urnic", dir);
	snprintf(file, sizeof(file), "%s/urnicd.sock", sub);
	assert_int_equal(mkdir(sub, 0755), 0);
	fclose(fopen(file, "w"));
	unsetenv("URNIC_SOCKET");
	setenv("XDG_RUNTIME_DIR", dir, 1);
	assert_string_equal(urn_remote_path(path, sizeof(path)), file);
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, STRANGER, STRANGER), 0);
		assert_string_equal(urn_remote_path(path, sizeof(path)), "/run/urnic/urnicd.sock");
	}
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(unlink(file) | rmdir(sub) | rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),  cmocka_unit_test(wrong_names),    cmocka_unit_test(given),
		cmocka_unit_test(mapped), cmocka_unit_test(runtime_folder),
	};
	const struct CMUnitTest as_root[] = {
		cmocka_unit_test(given_by_root),
		cmocka_unit_test(stranger),
		cmocka_unit_test(named_stranger),
	};
	int failed = cmocka_run_group_tests_name("trust", tests, NULL, NULL);

	if (geteuid() == 0)
		failed += cmocka_run_group_tests_name("trust, as root", as_root, NULL, NULL);
	return failed;
}
