/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of the kernel's and their twins on urnic (DB-1, DB-11). */
#include "rig.h"

#include "abi/clock.h"

#include <stdlib.h>

/* Each UDP socket has a twin, and no other descriptor; a twin has a urnic socket only after need.
 */
static void
adds(void **state)
{
	struct rig *r = *state;
	int tcp = socket(AF_INET, SOCK_STREAM, 0);

	assert_null(urn_twin_get(tcp));
	assert_null(urn_twin_get(-1));
	assert_null(urn_twin_get(URN_TWIN_FDS));
	assert_non_null(rig_sock(r->s));
	assert_null(rig_sock(r->t));
	assert_int_equal(msg_fake_open_sets(r->f), 1);
	rig_send(r, "x");
	assert_int_equal(msg_fake_open_sets(r->f), 2);
	assert_int_equal(close(tcp), 0);
}

/* The last descriptor ends the urnic socket, but a call that is under way keeps it (DB-1). */
static void
references(void **state)
{
	struct rig *r = *state;
	struct urn_twin *t = urn_twin_get(r->s);
	int d = dup(r->s);

	assert_true(urn_twin_has(t, r->s) && urn_twin_has(t, d) && !urn_twin_has(t, r->t) &&
		    !urn_twin_has(t, -1));
	assert_int_equal(close(r->s), 0);
	assert_false(urn_twin_has(t, r->s));
	rig_send(r, "by the copy");
	rig_gets(d, "by the copy");
	assert_int_equal(close(d), 0);
	assert_int_equal(msg_fake_open_sets(r->f), 2);
	urn_twin_put(t);
	assert_int_equal(msg_fake_open_sets(r->f), 1);
	urn_twin_put(NULL);
}

/* A new file under a number that the library thinks open is not the old socket. */
static void
reused(void **state)
{
	struct rig *r = *state;
	int s = r->s;

	assert_int_equal(urn_real()->close(s), 0); /* the library does not see it */
	assert_int_equal(socket(AF_INET, SOCK_STREAM, 0), s);
	assert_null(urn_twin_get(s));
}

/* A socket without a name and a peer becomes urnic's before it waits, others do not. */
static void
early(void **state)
{
	struct rig *r = *state;
	struct urn_twin *t = urn_twin_get(r->t);
	int k = socket(AF_INET, SOCK_DGRAM, 0);

	urn_twin_early(NULL);
	urn_twin_early(t);
	assert_non_null(rig_sock(r->t));
	urn_twin_put(t);
	assert_int_equal(connect(k, SA(r->ka), sizeof(r->ka)), 0);
	t = urn_twin_get(k);
	urn_twin_early(t);
	assert_null(rig_sock(k));
	urn_twin_put(t);
	assert_int_equal(close(k), 0);
}

/* With a new dataplane a socket has its name, its peer, its timeout and its epolls again (DB-11).
 */
static void
revives(void **state)
{
	struct rig *r = *state;
	struct msg_fake *f = msg_fake_new();
	struct urn_msg_dev *dev = urn_msg_dev_open(&f->channel), *old = r->dev;
	struct urn_sock *dead = rig_sock(r->s), *s;
	struct timeval tv = {.tv_sec = 3};
	struct sockaddr_in peer = rig_in("10.0.0.1", 9);
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 5};
	struct urn_twin *t;
	int ep = epoll_create1(0);

	assert_int_equal(setsockopt(r->s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(connect(r->s, SA(peer), sizeof(peer)), 0);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, r->s, &ev), 0);
	atomic_store(&old->dev.gone, URN_DEV_DIED);
	assert_int_equal(urn_socket_use(dev), 0);
	t = urn_twin_get(r->s);
	assert_true(urn_twin_revive(t, dead));
	s = atomic_load(&t->sock);
	assert_ptr_not_equal(s, dead);
	assert_true(urn_twin_revive(t, dead)); /* another thread has seen the dead one, too */
	assert_ptr_equal(atomic_load(&t->sock), s);
	urn_twin_put(t);
	assert_int_equal(s->local.port, 7);
	assert_int_equal(s->peer.port, 9);
	assert_int_equal(s->sndtimeo_ns, 3000000000u);
	assert_int_equal(bind(r->t, SA(peer), sizeof(peer)), 0);
	rig_send(r, "new");
	assert_int_equal(epoll_wait(ep, &ev, 1, 60000), 1);
	assert_int_equal(ev.data.u64, 5);
	rig_gets(r->s, "new");
	assert_int_equal(msg_fake_open_sets(f), 2);
	close(ep);
	close(r->s);
	close(r->t);
	assert_int_equal(msg_fake_open_sets(f), 0);
	atomic_store(&old->dev.gone, URN_DEV_THERE);
	r->f = f; /* nobody tells a dataplane that is gone */
}

/* A name that another has meanwhile: the socket waits for it. */
static void
revives_not(void **state)
{
	struct rig *r = *state;
	struct msg_fake *f = msg_fake_new();
	struct urn_msg_dev *dev = urn_msg_dev_open(&f->channel);
	struct urn_sock *dead = rig_sock(r->s);
	struct urn_twin *t = urn_twin_get(r->s);

	assert_int_equal(urn_socket_use(dev), 0);
	assert_int_equal(bind(r->t, SA(r->a), sizeof(r->a)), 0);
	assert_false(urn_twin_revive(t, dead));
	assert_ptr_equal(atomic_load(&t->sock), dead);
	assert_int_equal(msg_fake_open_sets(f), 1);
	assert_int_equal(close(r->t), 0);
	assert_true(urn_twin_revive(t, dead));
	urn_twin_put(t);
}

static void
child(struct rig *r)
{
	char buf[8];

	CHILD_CHECK(recv(r->s, buf, sizeof(buf), 0) == 4);
	CHILD_CHECK(sendto(r->t, "up", 2, 0, SA(r->a), sizeof(r->a)) == 2);
	CHILD_CHECK(close(r->s) == 0 && close(r->t) == 0);
}

/* Parent and child share a twin; it outlives the child's close. */
static void
forks(void **state)
{
	struct rig *r = *state;

	rig_send(r, "down");
	rig_in_child(child, r);
	rig_gets(r->s, "up");
	rig_send(r, "on");
	rig_gets(r->s, "on");
}

static void
ends(struct rig *r)
{
	CHILD_CHECK(sendto(r->t, "last", 4, MSG_DONTWAIT, SA(r->a), sizeof(r->a)) == 4);
	exit(0);
}

/* A program that ends without a close waits for its datagrams, a tenth of a second at most. */
static void
flush(void **state)
{
	struct rig *r = *state;
	uint64_t start;

	rig_send(r, "first");
	rig_gets(r->s, "first");
	atomic_store(&r->f->hold, true);
	start = urn_clock_ms();
	rig_in_child(ends, r);
	assert_in_range(urn_clock_ms() - start, 90, 5000);
	atomic_store(&r->f->hold, false);
	rig_gets(r->s, "last");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(adds, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(references, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(reused, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(early, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(revives, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(revives_not, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(forks, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(flush, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
