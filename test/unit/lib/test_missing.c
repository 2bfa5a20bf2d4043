/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that say why no dataplane was reached (attach/missing.h). */
#include "test.h"

#include "attach/missing.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { STRANGER = 65534 };

/* A folder with the socket of a dataplane, or without. */
struct spot {
	char dir[64], path[80];
	int fd; /* the socket; -1: there is none */
};

static void
make(struct spot *p, bool with_socket)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	snprintf(p->dir, sizeof(p->dir), P_tmpdir "/urnic-missing.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/sock", p->dir);
	p->fd = -1;
	if (!with_socket)
		return;
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(addr.sun_path, p->path, strlen(p->path) + 1);
	assert_int_equal(bind(p->fd, (void *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(p->fd, 8), 0);
}

static void
drop(struct spot *p)
{
	if (p->fd >= 0)
		close(p->fd);
	unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0);
}

/* Attaching fails with this number, and the text has these words. */
static void
fails(const char *path, int err, const char *words)
{
	errno = 0;
	assert_null(urn_attach_connect(path, NULL));
	assert_int_equal(errno, err);
	if (!strstr(urn_attach_error(), words) || !strstr(urn_attach_error(), path))
		fail_msg("'%s' is not in: %s", words, urn_attach_error());
}

/* Nothing is there; something is, and nobody listens; something is, and it is no socket. */
static void
not_there(void **state)
{
	struct spot p;
	FILE *f;

	(void)state;
	make(&p, false);
	fails(p.path, ENOENT, "start urnicd, or say where by URNIC_SOCKET");
	f = fopen(p.path, "w");
	assert_non_null(f);
	fclose(f);
	fails(p.path, ECONNREFUSED, "is no socket");
	drop(&p);
	make(&p, true);
	close(p.fd);
	p.fd = -1;
	fails(p.path, ECONNREFUSED, "nobody listens any more");
	drop(&p);
}

/* A user who may not connect learns whose the socket is, and which group may. Root may do all, so
 * it becomes another user for the call. */
static void
may_not(void **state)
{
	bool root = geteuid() == 0;
	struct spot p;
	char owner[64];

	(void)state;
	make(&p, true);
	snprintf(owner, sizeof(owner), "the socket is of user %u and group ",
		 (unsigned int)geteuid());
	assert_int_equal(chmod(p.path, root ? 0600 : 0), 0);
	assert_int_equal(chmod(p.dir, root ? 0700 : 0), 0);
	assert_int_equal(seteuid(root ? STRANGER : geteuid()), 0);
	fails(p.path, EACCES, "a folder on the way is closed");
	assert_int_equal(seteuid(root ? 0 : geteuid()), 0);
	assert_int_equal(chmod(p.dir, 0755), 0);
	assert_int_equal(seteuid(root ? STRANGER : geteuid()), 0);
	fails(p.path, EACCES, owner);
	assert_non_null(strstr(urn_attach_error(), root ? "mode 0600" : "mode 0000"));
	assert_int_equal(seteuid(root ? 0 : geteuid()), 0);
	drop(&p);
}

/* Where no path was named, the text names both places; and why one of them was not looked at. */
static void
both_places(void **state)
{
	static const char machine[] = "/run/urnic/urnicd.sock";
	const char *told = getenv("URNIC_SOCKET");
	struct spot p;

	(void)state;
	make(&p, false);
	unsetenv("URNIC_SOCKET");
	setenv("XDG_RUNTIME_DIR", p.dir, 1);
	assert_int_equal(urn_missing(machine, ENOENT), ENOENT);
	assert_non_null(strstr(urn_attach_error(), machine));
	assert_non_null(strstr(urn_attach_error(), p.dir));
	assert_null(strstr(urn_attach_error(), "not this user's"));
	if (geteuid() == 0)
		assert_int_equal(chown(p.dir, STRANGER, STRANGER), 0);
	else
		setenv("XDG_RUNTIME_DIR", "/usr", 1);
	assert_int_equal(urn_missing(machine, ENOENT), ENOENT);
	assert_non_null(strstr(urn_attach_error(), "not this user's"));
	/* A path that the program or a variable names is the only place. */
	assert_int_equal(urn_missing("/else", ENOENT), ENOENT);
	assert_null(strstr(urn_attach_error(), "XDG_RUNTIME_DIR"));
	unsetenv("XDG_RUNTIME_DIR");
	if (told)
		setenv("URNIC_SOCKET", told, 1);
	drop(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_there),
		cmocka_unit_test(may_not),
		cmocka_unit_test(both_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
