/* SPDX-License-Identifier: BSD-3-Clause */
/* Epolls that hold a socket of urnic's (DB-8, DB-11). */
#include "rig.h"

#include <poll.h>

enum { WAIT_MS = 60000 };

static int
ctl(int ep, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	return epoll_ctl(ep, op, fd, &ev);
}

/* Check that one event is told, with these data. */
static void
tells(int ep, uint64_t data, uint32_t events)
{
	struct epoll_event ev[4];

	assert_int_equal(epoll_wait(ep, ev, 4, WAIT_MS), 1);
	assert_int_equal(ev[0].data.u64, data);
	assert_int_equal(ev[0].events, events);
}

static void
tells_none(int ep)
{
	struct epoll_event ev;

	assert_int_equal(epoll_wait(ep, &ev, 1, 20), 0);
}

/* An entry tells of datagrams as long as there are some (DB-8), with its newest data. */
static void
level(void **state)
{
	struct rig *r = *state;
	int ep = epoll_create1(0);

	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, r->s, EPOLLIN, 7), 0);
	FAILS(ctl(ep, EPOLL_CTL_ADD, r->s, EPOLLIN, 7), EEXIST);
	tells_none(ep);
	rig_send(r, "1");
	rig_send(r, "2");
	tells(ep, 7, EPOLLIN);
	rig_gets(r->s, "1");
	assert_int_equal(ctl(ep, EPOLL_CTL_MOD, r->s, EPOLLIN, 8), 0);
	tells(ep, 8, EPOLLIN);
	rig_gets(r->s, "2");
	rig_gets_none(r->s);
	tells_none(ep);
	assert_int_equal(ctl(ep, EPOLL_CTL_DEL, r->s, 0, 0), 0);
	FAILS(ctl(ep, EPOLL_CTL_DEL, r->s, 0, 0), ENOENT);
	rig_send(r, "3");
	tells_none(ep);
	close(ep);
}

/* With EPOLLET each datagram is told once. */
static void
edge(void **state)
{
	struct rig *r = *state;
	int ep = epoll_create1(0);

	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, r->s, EPOLLIN | EPOLLET, 7), 0);
	tells_none(ep);
	rig_send(r, "1");
	tells(ep, 7, EPOLLIN);
	tells_none(ep);
	rig_gets(r->s, "1");
	rig_gets_none(r->s);
	rig_send(r, "2");
	tells(ep, 7, EPOLLIN);
	close(ep);
}

/*
 * With EPOLLET a datagram is told also while others wait, which the program has not read (DB-8):
 * one that reads one datagram for each event must not wait for ever. Events that nobody reads do
 * not pile up.
 */
static void
edge_behind(void **state)
{
	struct rig *r = *state;
	int ep = epoll_create1(0);

	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, r->s, EPOLLIN | EPOLLET, 7), 0);
	for (int i = 0; i < 8; i++) {
		rig_send(r, "1");
		tells(ep, 7, EPOLLIN);
		tells_none(ep);
	}
	for (int i = 0; i < 200; i++) {
		struct urn_register_set *set = &rig_sock(r->s)->outlet[0].set;

		rig_send(r, "1");
		tells(ep, 7, EPOLLIN);
		rig_gets(r->s, "1");
		assert_in_range(atomic_load(&set->regs->rstat.pending) - set->drained, 1, 2);
	}
	assert_int_equal(ctl(ep, EPOLL_CTL_MOD, r->s, EPOLLIN, 7), 0);
	for (int i = 0; i < 8; i++) {
		tells(ep, 7, EPOLLIN);
		rig_gets(r->s, "1");
	}
	rig_gets_none(r->s);
	tells_none(ep);
	close(ep);
}

/* Have the engine's event come by itself: its datagram was read before. */
static void
late_event(struct rig *r)
{
	struct urn_register_set *set = &rig_sock(r->s)->outlet[0].set;
	struct urn_abi_event ev = {.type = URN_EVENT_MSG};

	assert_int_equal(write(set->write_fd, &ev, sizeof(ev)), sizeof(ev));
	atomic_fetch_add(&set->regs->rstat.pending, 1);
}

/*
 * A datagram is in the queue before its event is told, so that a program that polls may have read
 * it already. The late event is not told, because the kernel tells of no input that is not there
 * (DB-11).
 */
static void
late(void **state)
{
	static const uint32_t kinds[] = {0, EPOLLET, EPOLLONESHOT};
	struct rig *r = *state;
	struct epoll_event ev;
	int ep = epoll_create1(0);

	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, r->s, EPOLLIN, 7), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ctl(ep, EPOLL_CTL_MOD, r->s, EPOLLIN | kinds[i], 7), 0);
		late_event(r);
		tells_none(ep);
		late_event(r);
		assert_int_equal(
			epoll_pwait2(ep, &ev, 1, &(struct timespec){.tv_nsec = 20000000}, NULL), 0);
		late_event(r);
		assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
		rig_send(r, "1");
		tells(ep, 7, EPOLLIN);
		rig_gets(r->s, "1");
		rig_gets_none(r->s);
	}
	assert_int_equal(ctl(ep, EPOLL_CTL_MOD, r->s, EPOLLIN | EPOLLOUT, 7), 0);
	late_event(r);
	tells(ep, 7, EPOLLOUT);
	close(ep);
}

/* Copies of a descriptor are entries of their own in one epoll, which come and go one by one. */
static void
copies(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a = rig_in("10.0.0.1", 8);
	struct epoll_event ev[4];
	int ep = epoll_create1(0), u = socket(AF_INET, SOCK_DGRAM, 0), d = dup(u), d2 = dup(u);

	/* Two before the socket is urnic's, and one behind. */
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, u, EPOLLIN, 1), 0);
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, d, EPOLLIN, 2), 0);
	assert_int_equal(bind(u, SA(a), sizeof(a)), 0);
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, d2, EPOLLIN | EPOLLONESHOT, 4), 0);
	assert_int_equal(sendto(r->t, "x", 1, 0, SA(a), sizeof(a)), 1);
	usleep(20000);
	assert_int_equal(epoll_wait(ep, ev, 4, WAIT_MS), 3);
	assert_int_equal(ev[0].data.u64 + ev[1].data.u64 + ev[2].data.u64, 7);
	assert_int_equal(epoll_wait(ep, ev, 4, WAIT_MS), 2);
	assert_int_equal(ctl(ep, EPOLL_CTL_DEL, d, 0, 0), 0);
	tells(ep, 1, EPOLLIN);
	assert_int_equal(ctl(ep, EPOLL_CTL_MOD, d2, EPOLLIN, 5), 0);
	assert_int_equal(ctl(ep, EPOLL_CTL_DEL, u, 0, 0), 0);
	tells(ep, 5, EPOLLIN);
	assert_int_equal(ctl(ep, EPOLL_CTL_DEL, d2, 0, 0), 0);
	tells_none(ep);
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, d, EPOLLIN, 6), 0);
	tells(ep, 6, EPOLLIN);
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, u, EPOLLIN, 7), 0);
	/* The last of them ends the socket, and nothing of it stays in the epoll. */
	close(u);
	close(d);
	close(d2);
	tells_none(ep);
	close(ep);
}

/* A socket is in the epoll already when it becomes urnic's. */
static void
before(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a = rig_in("10.0.0.1", 8);
	int ep = epoll_create1(0), u = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, u, EPOLLIN, 9), 0);
	assert_null(rig_sock(u));
	assert_int_equal(bind(u, SA(a), sizeof(a)), 0);
	assert_int_equal(sendto(r->t, "x", 1, 0, SA(a), sizeof(a)), 1);
	tells(ep, 9, EPOLLIN);
	close(u);
	tells_none(ep);
	close(ep);
}

/* Events of the kernel's socket and of urnic's are one event; those of other descriptors stay
 * apart. */
static void
merge(void **state)
{
	struct rig *r = *state;
	struct epoll_event ev[4];
	int ep = epoll_create1(0), way[2];

	assert_int_equal(pipe(way), 0);
	assert_int_equal(write(way[1], "x", 1), 1);
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, r->s, EPOLLIN | EPOLLOUT, 7), 0);
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, way[0], EPOLLIN, 8), 0);
	rig_send(r, "1");
	usleep(20000);
	assert_int_equal(epoll_pwait(ep, ev, 4, WAIT_MS, NULL), 2);
	assert_int_equal(ev[0].data.u64 + ev[1].data.u64, 15);
	assert_int_equal(ev[0].events | ev[1].events, EPOLLIN | EPOLLOUT);
	assert_int_equal(epoll_pwait2(ep, ev, 4, NULL, NULL), 2);
	assert_int_equal(ctl(ep, EPOLL_CTL_DEL, r->s, 0, 0), 0);
	/* Two descriptors that know nothing of urnic have the same data. */
	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, way[1], EPOLLOUT, 8), 0);
	assert_int_equal(epoll_wait(ep, ev, 4, WAIT_MS), 2);
	close(way[0]);
	close(way[1]);
	close(ep);
}

/* After its event an entry with EPOLLONESHOT rests until it is armed again: both of its sides. */
static void
oneshot(void **state)
{
	struct rig *r = *state;
	int ep = epoll_create1(0);

	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, r->s, EPOLLIN | EPOLLOUT | EPOLLONESHOT, 7), 0);
	tells(ep, 7, EPOLLOUT);
	rig_send(r, "1");
	tells_none(ep);
	assert_int_equal(ctl(ep, EPOLL_CTL_MOD, r->s, EPOLLIN | EPOLLONESHOT, 7), 0);
	tells(ep, 7, EPOLLIN);
	tells_none(ep);
	assert_int_equal(ctl(ep, EPOLL_CTL_MOD, r->s, EPOLLIN, 7), 0);
	tells(ep, 7, EPOLLIN);
	tells(ep, 7, EPOLLIN);
	close(ep);
}

/* The number of an epoll that was closed may be another epoll's: no socket gets into that one. */
static void
closed(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a = rig_in("10.0.0.1", 8);
	int ep = epoll_create1(0), again, u = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(ctl(ep, EPOLL_CTL_ADD, u, EPOLLIN, 9), 0);
	assert_int_equal(close(ep), 0);
	again = epoll_create1(0);
	assert_int_equal(again, ep);
	assert_int_equal(bind(u, SA(a), sizeof(a)), 0);
	assert_int_equal(sendto(r->t, "x", 1, 0, SA(a), sizeof(a)), 1);
	tells_none(again);
	assert_int_equal(ctl(again, EPOLL_CTL_ADD, u, EPOLLIN, 10), 0);
	tells(again, 10, EPOLLIN);
	/* The socket goes before its epoll. */
	close(u);
	close(again);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(level, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(edge, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(edge_behind, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(late, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(copies, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(before, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(merge, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(oneshot, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(closed, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
