/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of connection management by the library, when many wait: it fetches several at a
 * time from a dataplane in another process, and a program sees no difference. All tests
 * run embedded and over the socket, and expect the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/socket.h"
#include "cm_rig.h"
#include "server/server.h"
#include "verbs/adapter/cm_end.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

enum {
	MANY = 2 * URN_CM_END_EVENTS + 5,
	NOBODY = 99, /* a service that nobody serves */
};

struct pair {
	struct rig r;
	struct urn_cm_end *c[2]; /* end 1 listens */
	struct ibv_qp *qp[MANY]; /* at end 0: one for each request, else a later request would end the earlier one */
	uint32_t listener;
	uint64_t refused; /* requests refused before */
};

static void
pair_close(struct pair *p)
{
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ibv_destroy_qp(p->qp[i]), 0);
	rig_close(&p->r);
	for (int e = 0; e < 2; e++)
		urn_cm_end_close(p->c[e]);
}

static uint64_t
questions(const struct pair *p)
{
	struct urn_server_counters c = {0};

	if (p->r.cfg.remote)
		urn_server_counters(p->r.server, &c);
	return c.calls;
}

/* End 0 asks for n connections, the i-th with private data of seed i and cookie i. */
static void
ask(struct pair *p, uint64_t service, uint32_t n, uint32_t *id)
{
	for (uint32_t i = 0; i < n; i++) {
		struct urn_abi_req req = rig_cm_request(&p->r, 0, p->qp[i]->qp_num);

		req.cm_connect.service_id = service;
		req.cm_connect.cookie = i;
		rig_fill(req.cm_connect.data, 92, i);
		assert_int_equal(urn_cm_end_connect(p->c[0], &req.cm_connect, &id[i]), 0);
	}
}

/* The next event. */
static struct urn_abi_cm_event
next(struct pair *p, int e)
{
	time_t start = time(NULL);
	struct urn_abi_cm_event ev;
	int rc;

	while ((rc = urn_cm_end_event(p->c[e], &ev)) == EAGAIN) {
		assert_true(time(NULL) - start < 60);
		rig_turns(&p->r, 4);
	}
	assert_int_equal(rc, 0);
	return ev;
}

static void
pair_open(struct pair *p)
{
	static const struct rig_qp o = {.depth = 1, .sge = 1, .inline_bytes = 1};
	uint32_t id;

	rig_open(&p->r, NULL, NULL);
	for (int e = 0; e < 2; e++)
		assert_int_equal(urn_cm_end_open(&p->c[e], p->r.end[e].ctx), 0);
	for (int i = 0; i < MANY; i++)
		p->qp[i] = rig_make_qp(&p->r, 0, &o);
	assert_int_equal(urn_cm_end_listen(p->c[1], SERVICE, 0xaa, 0, &p->listener), 0);
	/*
	 * A request that waits for a MAC address may be overtaken by one that does not:
	 * let node 0 learn the address first.
	 */
	ask(p, NOBODY, 1, &id);
	assert_int_equal(next(p, 0).id, id);
	assert_int_equal(urn_cm_end_destroy(p->c[0], id), 0);
	p->refused = rig_counter(&p->r, 1, URN_C_CM_NO_SERVICE);
}

static void
nothing(struct pair *p, int e)
{
	struct urn_abi_cm_event ev;

	rig_turns(&p->r, 200);
	assert_int_equal(urn_cm_end_event(p->c[e], &ev), EAGAIN);
}

/* Requests that node 1 did not refuse wait there, each with its notice. */
static void
all_wait(struct pair *p, uint32_t n)
{
	rig_cm_await_ids(&p->r, 1, 1 + n);
	rig_turns(&p->r, 200);
}

/* n requests for the service that nobody serves were refused, and end 0 was told so. */
static void
all_refused(struct pair *p, uint32_t n)
{
	for (time_t start = time(NULL); rig_counter(&p->r, 1, URN_C_CM_NO_SERVICE) - p->refused < n;) {
		assert_true(time(NULL) - start < 60);
		rig_turns(&p->r, 16);
	}
	rig_turns(&p->r, 2000);
}

/* Events come in order and whole, and with fewer questions than events. */
static void
test_order(void **state)
{
	struct urn_abi_cm_event ev;
	uint32_t id[MANY];
	struct pair p;
	uint64_t asked;

	(void)state;
	pair_open(&p);
	ask(&p, SERVICE, MANY, id);
	all_wait(&p, MANY);
	asked = questions(&p);
	for (uint32_t i = 0; i < MANY; i++) {
		ev = next(&p, 1);
		assert_int_equal(ev.type, URN_CM_EVENT_REQUEST);
		assert_int_equal(ev.cookie, 0xaa);
		rig_cm_check_data(&ev, 92, i);
	}
	/* A few questions more than need be: notices of the last events came when fetching had begun. */
	if (p.r.cfg.remote)
		assert_in_range(questions(&p) - asked, MANY / URN_CM_END_EVENTS, MANY / 2);
	nothing(&p, 1);
	pair_close(&p);
}

/* An answer has at most as many events as it has room for, however many are asked for; the rest wait. */
static void
test_room(void **state)
{
	struct urn_abi_cm_event ev[MANY];
	struct urn_dev *dev;
	uint32_t id[MANY], n, got = 0;
	struct pair p;

	(void)state;
	pair_open(&p);
	dev = urn_ctx_dev(p.r.end[1].ctx);
	if (p.r.cfg.remote) {
		ask(&p, SERVICE, MANY, id);
		all_wait(&p, MANY);
		while (got < MANY) {
			memset(ev, 0, sizeof(ev));
			assert_int_equal(urn_dev_cm_events(dev, ev, MANY, &n), 0);
			assert_int_equal(n, MANY - got < URN_SOCK_EVENTS_MAX ? MANY - got : URN_SOCK_EVENTS_MAX);
			for (uint32_t i = 0; i < n; i++)
				rig_cm_check_data(&ev[i], 92, got + i);
			got += n;
		}
		assert_int_equal(urn_dev_cm_events(dev, ev, MANY, &n), 0);
		assert_int_equal(n, 0);
	}
	pair_close(&p);
}

/* A destroyed id takes along its events that were fetched together with another id's. */
static void
test_destroyed(void **state)
{
	uint32_t id[6];
	struct pair p;

	(void)state;
	pair_open(&p);
	ask(&p, NOBODY, 6, id);
	all_refused(&p, 6);
	assert_int_equal(next(&p, 0).id, id[0]);
	assert_int_equal(urn_cm_end_destroy(p.c[0], id[3]), 0);
	assert_int_equal(urn_cm_end_destroy(p.c[0], id[1]), 0);
	assert_int_equal(urn_cm_end_destroy(p.c[0], id[1]), ENOENT);
	assert_int_equal(next(&p, 0).id, id[2]);
	assert_int_equal(urn_cm_end_destroy(p.c[0], id[5]), 0);
	assert_int_equal(next(&p, 0).id, id[4]);
	nothing(&p, 0);
	/* A later event is told as before. */
	ask(&p, NOBODY, 1, id);
	assert_int_equal(next(&p, 0).id, id[0]);
	pair_close(&p);
}

/* A listener that goes takes along requests that the program has not been told of: their peers hear it. */
static void
test_listener_destroyed(void **state)
{
	struct urn_abi_cm_event first, ev;
	struct urn_abi_cm_accept acc = {.psn = 1};
	uint32_t id[5], heard = 0;
	uint64_t taken;
	struct pair p;

	(void)state;
	pair_open(&p);
	ask(&p, SERVICE, 5, id);
	all_wait(&p, 5);
	/* One peer gave up already: its request has two events. */
	taken = rig_counter(&p.r, 1, URN_C_CM_RX);
	assert_int_equal(urn_cm_end_destroy(p.c[0], id[3]), 0);
	for (time_t start = time(NULL); rig_counter(&p.r, 1, URN_C_CM_RX) == taken;) {
		assert_true(time(NULL) - start < 60);
		rig_turns(&p.r, 16);
	}
	rig_turns(&p.r, 2000);
	first = next(&p, 1);
	assert_int_equal(first.type, URN_CM_EVENT_REQUEST);
	rig_cm_check_data(&first, 92, 0);
	assert_int_equal(urn_cm_end_destroy(p.c[1], p.listener), 0);
	nothing(&p, 1);
	for (; heard < 3; heard++) {
		ev = next(&p, 0);
		assert_int_equal(ev.type, URN_CM_EVENT_REJECTED);
		assert_int_equal(ev.id == id[1] || ev.id == id[2] || ev.id == id[4], 1);
	}
	rig_cm_await_ids(&p.r, 1, 1);
	/* The request that the program was told of stays its own. */
	acc.qpn = p.r.end[1].qp->qp_num;
	assert_int_equal(urn_cm_end_accept(p.c[1], first.id, &acc), 0);
	ev = next(&p, 0);
	assert_int_equal(ev.type, URN_CM_EVENT_REPLY);
	assert_int_equal(ev.id, id[0]);
	pair_close(&p);
}

/* No room for notices: events come in order all the same, once each, and poll() shows that some wait. */
static void
test_full(void **state)
{
	const struct urn_abi_event note = {.type = URN_EVENT_CM};
	struct pollfd poll_it;
	uint32_t id[MANY];
	struct pair p;

	(void)state;
	pair_open(&p);
	/* An end of an adapter begins with the front's. */
	while (urn_pipe_write(((struct urn_adapter_cm_end *)p.c[0])->way.write_fd, &note) == 0)
		;
	ask(&p, NOBODY, MANY, id);
	all_refused(&p, MANY);
	poll_it = (struct pollfd){.fd = urn_cm_end_fd(p.c[0]), .events = POLLIN};
	assert_int_equal(poll(&poll_it, 1, 0), 1);
	for (uint32_t i = 0; i < MANY; i++) {
		struct urn_abi_cm_event ev = next(&p, 0);

		assert_int_equal(ev.id, id[i]);
		assert_int_equal(ev.cookie, i);
	}
	nothing(&p, 0);
	/* Over the socket, notices of events that were fetched already may still be on their way.
	 */
	for (time_t start = time(NULL); p.r.cfg.remote && poll(&poll_it, 1, 100) == 1;) {
		nothing(&p, 0);
		assert_true(time(NULL) - start < 60);
	}
	assert_int_equal(poll(&poll_it, 1, 0), 0);
	pair_close(&p);
}

/* A program goes that has fetched some events and not looked at them: all its peers hear of it. */
static void
test_goes(void **state)
{
	struct urn_cm_end *other;
	struct ibv_context *ctx;
	struct urn_abi_cm_event ev;
	uint32_t id[5], l;
	time_t start = time(NULL);
	struct pair p;

	(void)state;
	pair_open(&p);
	ctx = rig_attach(&p.r, 1);
	assert_int_equal(urn_cm_end_open(&other, ctx), 0);
	assert_int_equal(urn_cm_end_listen(other, SERVICE + 1, 0, 0, &l), 0);
	ask(&p, SERVICE + 1, 5, id);
	rig_cm_await_ids(&p.r, 1, 2 + 5);
	while (urn_cm_end_event(other, &ev) == EAGAIN) {
		assert_true(time(NULL) - start < 60);
		rig_turns(&p.r, 4);
	}
	rig_cm_check_data(&ev, 92, 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	urn_cm_end_close(other);
	for (int i = 0; i < 5; i++)
		assert_int_equal(next(&p, 0).type, URN_CM_EVENT_REJECTED);
	rig_cm_await_ids(&p.r, 1, 1);
	pair_close(&p);
}

/* Another end of the same context listens, too: each end takes its own events, also while older
 * ones of the other end wait. */
static void
test_ends(void **state)
{
	time_t start = time(NULL);
	struct urn_abi_cm_event ev;
	struct urn_cm_end *other;
	struct urn_abi_req req;
	uint32_t id[7], l;
	struct pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(urn_cm_end_open(&other, p.r.end[1].ctx), 0);
	assert_int_equal(urn_cm_end_listen(other, SERVICE + 1, 0xbb, 0, &l), 0);
	ask(&p, SERVICE, 6, id);
	rig_cm_await_ids(&p.r, 1, 2 + 6);
	req = rig_cm_request(&p.r, 0, p.qp[6]->qp_num);
	req.cm_connect.service_id = SERVICE + 1;
	assert_int_equal(urn_cm_end_connect(p.c[0], &req.cm_connect, &id[6]), 0);
	while (urn_cm_end_event(other, &ev) == EAGAIN) {
		assert_true(time(NULL) - start < 60);
		rig_turns(&p.r, 4);
	}
	assert_int_equal(ev.listen_id, l);
	assert_int_equal(ev.cookie, 0xbb);
	assert_int_equal(urn_cm_end_event(other, &ev), EAGAIN);
	for (uint32_t i = 0; i < 6; i++) {
		ev = next(&p, 1);
		assert_int_equal(ev.listen_id, p.listener);
		rig_cm_check_data(&ev, 92, i);
	}
	nothing(&p, 1);
	pair_close(&p);
	urn_cm_end_close(other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	  cmocka_unit_test(test_room),
		cmocka_unit_test(test_destroyed), cmocka_unit_test(test_listener_destroyed),
		cmocka_unit_test(test_full),	  cmocka_unit_test(test_goes),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests_name("cm_events", tests, NULL, NULL);
}
