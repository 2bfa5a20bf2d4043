/* SPDX-License-Identifier: BSD-3-Clause */
/* poll() of twins beside other descriptors (DB-8, DB-11). */
#include "rig.h"

#include <poll.h>
#include <pthread.h>

enum { WAIT_MS = 60000 };

/* More descriptors than the stack has room for, of all kinds; each with its own events. */
static void
many(void **state)
{
	struct rig *r = *state;
	struct pollfd p[80];
	int way[2], i;

	assert_int_equal(pipe(way), 0);
	for (i = 0; i < 80; i++)
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	p[3].fd = r->s;
	p[40].fd = way[0];
	p[79] = (struct pollfd){.fd = r->t, .events = POLLOUT};
	p[41].fd = 1000; /* not open */
	assert_int_equal(poll(p, 80, WAIT_MS), 2);
	assert_int_equal(p[41].revents, POLLNVAL);
	assert_int_equal(p[79].revents, POLLOUT);
	p[41].fd = p[79].fd = -1;
	assert_int_equal(poll(p, 80, 10), 0);
	rig_send(r, "x");
	assert_int_equal(write(way[1], "x", 1), 1);
	assert_int_equal(poll(p, 80, WAIT_MS), 2);
	assert_int_equal(p[3].revents, POLLIN);
	assert_int_equal(p[40].revents, POLLIN);
	close(way[0]);
	close(way[1]);
}

struct later {
	struct rig *r;
	void (*what)(struct rig *r);
};

static void *
do_later(void *arg)
{
	struct later *l = arg;

	usleep(50000);
	l->what(l->r);
	return NULL;
}

static void
sends(struct rig *r)
{
	rig_send(r, "x");
}

static void
shuts(struct rig *r)
{
	(void)shutdown(r->s, SHUT_RDWR);
}

/* A poll that sleeps is woken by what happens to the socket. */
static void
wakes(void **state)
{
	struct rig *r = *state;
	struct pollfd p = {.fd = r->s, .events = POLLIN | POLLRDHUP};
	struct later l = {r, sends};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, do_later, &l), 0);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(p.revents, POLLIN);
	pthread_join(thread, NULL);
	rig_gets(r->s, "x");
	l.what = shuts;
	assert_int_equal(pthread_create(&thread, NULL, do_later, &l), 0);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(p.revents, POLLIN | POLLRDHUP | POLLHUP);
	pthread_join(thread, NULL);
}

/* The twin lives for the time of a poll, whoever closes the descriptor. */
static void
keeps(void **state)
{
	struct rig *r = *state;
	struct urn_twin *t = urn_twin_get(r->s);
	struct pollfd p = {.fd = r->s, .events = POLLIN};

	assert_int_equal(t->refs, 2);
	assert_int_equal(poll(&p, 1, 1), 0);
	assert_int_equal(t->refs, 2);
	urn_twin_put(t);
}

/* With the next dataplane a poll is about the socket there. */
static void
revives(void **state)
{
	struct rig *r = *state;
	struct msg_fake *f = msg_fake_new();
	struct urn_msg_dev *dev = urn_msg_dev_open(&f->channel), *old = r->dev;
	struct pollfd p = {.fd = r->s, .events = POLLIN};

	atomic_store(&old->dev.gone, URN_DEV_DIED);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLERR);
	assert_int_equal(urn_socket_use(dev), 0);
	assert_int_equal(poll(&p, 1, 10), 0);
	assert_int_equal(msg_fake_open_sets(f), 1);
	rig_send(r, "x");
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(p.revents, POLLIN);
	atomic_store(&old->dev.gone, URN_DEV_THERE);
	r->f = f; /* nobody tells a dataplane that is gone */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(wakes, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(keeps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(revives, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
