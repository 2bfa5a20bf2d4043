/* SPDX-License-Identifier: BSD-3-Clause */
/* Urnic sockets of twins that came over exec(), and their ports (DB-11). */
#include "rig.h"

#include "abi/clock.h"
#include "sockets/heir.h"

#include <sys/mman.h>

/* A socket that came over exec() with a port of 10.0.0.1. returns: its descriptor */
static int
heir(uint16_t port)
{
	int fd = urn_real()->socket(AF_INET, SOCK_DGRAM, 0);
	int table = memfd_create("x", MFD_ALLOW_SEALING);
	struct urn_heir_head head = {.count = 1};
	struct urn_heir_entry e = {
		.cookie = urn_twin_cookie(fd),
		.family = AF_INET,
		.flags = URN_HEIR_BOUND,
		.local_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.local_port = port,
	};

	memcpy(head.magic, urn_heir_magic, sizeof(head.magic));
	assert_int_equal(urn_real()->write(table, &head, sizeof(head)), sizeof(head));
	assert_int_equal(urn_real()->write(table, &e, sizeof(e)), sizeof(e));
	assert_true(urn_heir_read(table));
	(void)urn_real()->close(table);
	return fd;
}

enum { SETTLE_MS = 1000 };

/*
 * True when one of some calls that fail with EADDRINUSE came back in less than a second, which a
 * call that waits for the port never does: a busy machine can hold up each.
 */
static bool
at_once(ssize_t (*call)(struct rig *r, int fd), struct rig *r, int fd)
{
	uint64_t start, took = UINT64_MAX;

	for (int i = 0; i < 20 && took >= SETTLE_MS; i++) {
		usleep(150000); /* a call soon after another one repeats its answer */
		start = urn_clock_ms();
		FAILS(call(r, fd), EADDRINUSE);
		took = urn_clock_ms() - start;
	}
	return took < SETTLE_MS;
}

static ssize_t
sends(struct rig *r, int fd)
{
	return sendto(fd, "x", 1, 0, SA(r->a), sizeof(r->a));
}

static ssize_t
binds(struct rig *r, int fd)
{
	return bind(fd, SA(r->a), sizeof(r->a));
}

/* A port that another has stays the other's: calls fail with EADDRINUSE, and work when it is free.
 */
static void
taken(void **state)
{
	struct rig *r = *state;
	int fd = heir(7);
	uint64_t start = urn_clock_ms();
	char buf[8];

	FAILS(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), EADDRINUSE);
	assert_in_range(urn_clock_ms() - start, SETTLE_MS, 60000);
	assert_true(at_once(sends, r, fd)); /* later calls don't wait */
	FAILS(getpeername(fd, SA(r->a), &(socklen_t){sizeof(r->a)}), ENOTCONN);
	assert_int_equal(close(r->s), 0);
	usleep(150000);
	FAILS(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	rig_send(r, "mine");
	rig_gets(fd, "mine");
	assert_int_equal(close(fd), 0);
}

/* A new socket does not get the port of one from before exec(). */
static void
claims(void **state)
{
	struct rig *r = *state;
	int fd = heir(21);
	struct sockaddr_in in = rig_in("10.0.0.1", 21);

	FAILS(bind(r->t, SA(in), sizeof(in)), EADDRINUSE);
	assert_int_equal(close(fd), 0);
	assert_int_equal(bind(r->t, SA(in), sizeof(in)), 0);
}

/* In the first second after exec() a bind waits for a port, and later it does not. */
static void
replaced(void **state)
{
	struct rig *r = *state;
	uint64_t start;

	assert_true(at_once(binds, r, r->t));
	start = urn_clock_ms();
	urn_twin_replaced();
	FAILS(binds(r, r->t), EADDRINUSE);
	assert_in_range(urn_clock_ms() - start, SETTLE_MS, 60000);
	assert_true(at_once(binds, r, r->t));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(taken, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(claims, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(replaced, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
