/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of sockets that outlive exec(): written, read, and hostile (DB-11). */
#include "rig.h"

#include "sockets/heir.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The table of an own socket of the kernel's that has no twin yet. */
static struct urn_heir_entry
entry(int fd)
{
	struct urn_heir_entry e = {
		.cookie = urn_twin_cookie(fd),
		.family = AF_INET,
		.flags = URN_HEIR_BOUND | URN_HEIR_CONNECTED | URN_HEIR_SHUT_WR,
		.local_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.peer_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.local_port = 21,
		.peer_port = 7,
	};

	return e;
}

/* Read a table of entries. returns: urn_heir_read()'s answer */
static bool
reads(const struct urn_heir_entry *e, uint32_t count, uint32_t there)
{
	struct urn_heir_head head = {.count = count};
	int fd = memfd_create("x", MFD_ALLOW_SEALING);
	bool was;

	memcpy(head.magic, urn_heir_magic, sizeof(head.magic));
	assert_int_equal(urn_real()->write(fd, &head, sizeof(head)), sizeof(head));
	assert_int_equal(urn_real()->write(fd, e, there * sizeof(*e)), there * sizeof(*e));
	was = urn_heir_read(fd);
	(void)urn_real()->close(fd);
	return was;
}

/* A table makes a twin with name and peer, and a copy shares it; the urnic socket comes with the
 * first call that needs it. */
static void
inherits(void **state)
{
	struct rig *r = *state;
	int fd = urn_real()->socket(AF_INET, SOCK_DGRAM, 0), copy = urn_real()->dup(fd);
	struct urn_heir_entry e = entry(fd);
	struct sockaddr_in in = {0};
	socklen_t len = sizeof(in);
	struct urn_twin *t;

	e.flags = URN_HEIR_BOUND | URN_HEIR_CONNECTED;
	assert_int_equal(urn_real()->fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_true(reads(&e, 1, 1));
	t = urn_twin_peek(fd);
	assert_true(t != NULL && urn_twin_has(t, copy) && atomic_load(&t->nonblock));
	assert_null(urn_twin_glance(r->k)); /* another socket of the kernel's */
	assert_int_equal(getsockname(copy, SA(in), &len), 0);
	assert_int_equal(ntohs(in.sin_port), 21);
	assert_int_equal(getpeername(fd, SA(in), &len), 0);
	assert_int_equal(ntohs(in.sin_port), 7);
	assert_null(rig_sock(r->t));
	assert_null(atomic_load(&t->sock));
	assert_int_equal(send(copy, "heir", 4, 0), 4);
	rig_gets(r->s, "heir");
	assert_false(atomic_load(&t->pending));
	urn_twin_put(t);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(copy), 0);
}

/* Entries that make no sense, or tell another socket than the descriptor's, make no twin. */
static void
hostile(void **state)
{
	int fd = urn_real()->socket(AF_INET, SOCK_DGRAM, 0), i;
	int tcp = urn_real()->socket(AF_INET, SOCK_STREAM, 0);
	struct urn_heir_entry good = entry(fd), bad[9];

	(void)state;
	for (i = 0; i < 9; i++)
		bad[i] = good;
	bad[0].cookie = 0;
	bad[1].cookie++;
	bad[2].family = AF_UNIX;
	bad[3].family = AF_INET6;
	bad[4].flags = ~0u;
	bad[5].local_port = 0;
	memset(bad[6].local_gid, 0xfd, 16); /* no IPv4 address */
	memset(bad[7].peer_gid, 0, 16);
	bad[8].cookie = urn_twin_cookie(tcp);
	for (i = 0; i < 9; i++) {
		assert_true(reads(&bad[i], 1, 1));
		assert_null(urn_twin_glance(fd));
		assert_null(urn_twin_glance(tcp));
	}
	/* Counts that the file does not hold, or beyond the bound. */
	assert_true(reads(&good, 2, 1));
	assert_true(reads(&good, 0, 1));
	assert_true(reads(&good, URN_HEIR_MAX + 1, 1));
	assert_true(reads(&good, UINT32_MAX, 1));
	assert_null(urn_twin_glance(fd));
	assert_true(reads(&good, 1, 1));
	assert_non_null(urn_twin_glance(fd));
	assert_int_equal(close(fd), 0);
	(void)urn_real()->close(tcp);
}

/* Other files than tables are left alone. */
static void
others(void **state)
{
	int way[2], memory = memfd_create("x", MFD_ALLOW_SEALING);
	char zero[64] = "";

	(void)state;
	assert_int_equal(pipe(way), 0);
	assert_false(urn_heir_read(-1) || urn_heir_read(1 << 20) || urn_heir_read(way[0]));
	assert_false(urn_heir_read(memory));
	assert_int_equal(urn_real()->write(memory, zero, sizeof(zero)), sizeof(zero));
	assert_false(urn_heir_read(memory));
	(void)urn_real()->close(memory);
	close(way[0]);
	close(way[1]);
}

/* The writer tells name, peer and directions; a descriptor that closes at exec() is told only where
 * descriptors may change unseen. */
static void
writes(void **state)
{
	struct rig *r = *state;
	struct urn_heir_head head;
	struct urn_heir_entry e;
	int fd;

	assert_int_equal(connect(r->s, SA(r->a), sizeof(r->a)), 0);
	assert_int_equal(fcntl(r->t, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(shutdown(r->s, SHUT_WR), 0);
	fd = urn_heir_write(false);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.count, 1);
	assert_int_equal(pread(fd, &e, sizeof(e), sizeof(head)), sizeof(e));
	assert_int_equal(e.cookie, urn_twin_cookie(r->s));
	assert_int_equal(e.flags, URN_HEIR_BOUND | URN_HEIR_CONNECTED | URN_HEIR_SHUT_WR);
	assert_int_equal(e.local_port, 7);
	assert_int_equal(e.peer_port, 7);
	(void)urn_real()->close(fd);
	fd = urn_heir_write(true);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.count, 2);
	(void)urn_real()->close(fd);
	assert_int_equal(fcntl(r->s, F_SETFD, FD_CLOEXEC), 0);
	fd = urn_heir_write(false); /* none goes on, and their ports become free */
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.count, 0);
	assert_int_equal(head.pid, getpid());
	(void)urn_real()->close(fd);
	assert_int_equal(close(r->s), 0);
	assert_int_equal(urn_heir_write(false), -1);
}

/* The variable is added, and takes the place of an old one. */
static void
variable(void **state)
{
	char one[] = "A=1", old[] = "URNIC_SOCKETS_EXEC=9", two[] = "URNIC_SOCKETS_EXECUTE=2";
	char *before[] = {one, old, two, NULL}, *env[5], text[URN_HEIR_TEXT];

	(void)state;
	assert_int_equal(urn_heir_env_count(before), 3);
	assert_int_equal(urn_heir_env_count(NULL), 0);
	urn_heir_env(env, text, before, 2147483647);
	assert_ptr_equal(env[0], one);
	assert_ptr_equal(env[1], two);
	assert_string_equal(env[2], "URNIC_SOCKETS_EXEC=2147483647");
	assert_null(env[3]);
	urn_heir_env(env, text, NULL, 0);
	assert_string_equal(env[0], "URNIC_SOCKETS_EXEC=0");
	assert_null(env[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(inherits, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(hostile, rig_setup, rig_teardown),
		cmocka_unit_test(others),
		cmocka_unit_test_setup_teardown(writes, rig_setup, rig_teardown),
		cmocka_unit_test(variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
