/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs connect their queue pairs by connection management: control calls,
 * events, notices in a pipe, messages on QP1 between two nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cm_rig.h"
#include <urnic/cm.h>

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 1000, WAYS = 10 };

/* A connection that has ended: at each end its id and its queue pair stay until timewait is over.
 */
struct cm_way {
	struct ibv_qp *qp[2];
	uint32_t id[2];
	bool over[2]; /* timewait is, and the id is destroyed */
};

static struct cm_way way[WAYS]; /* since ways_end() */
static unsigned int ways;

/* Timewait of an id is over: it is an id of a connection that has ended, and can be destroyed once.
 */
static void
way_over(struct rig *r, int e, uint32_t id)
{
	for (unsigned int i = 0; i < ways; i++) {
		if (way[i].over[e] || way[i].id[e] != id)
			continue;
		way[i].over[e] = true;
		assert_int_equal(rig_cm_call(r, e, URN_CTL_CM_DESTROY, id, 0), 0);
		assert_int_equal(rig_cm_call(r, e, URN_CTL_CM_DESTROY, id, 0), ENOENT);
		return;
	}
	fail_msg("end %d: timewait of id %u is over, which was in none", e, id);
}

/* The next event but the ends of earlier connections' timewaits, which come whenever they come. */
static struct urn_abi_cm_event
way_event(struct rig *r, int e, enum urn_cm_event_type type)
{
	struct urn_abi_cm_event ev;

	while ((ev = rig_cm_event(r, e)).type == URN_CM_EVENT_TIMEWAIT)
		way_over(r, e, ev.id);
	assert_int_equal(ev.type, type);
	return ev;
}

/* The timewaits of all connections so far pass, at the same time. */
static void
ways_end(struct rig *r)
{
	for (unsigned int i = 0; i < ways; i++) {
		for (int e = 0; e < 2; e++) {
			while (!way[i].over[e])
				way_over(r, e, rig_cm_expect(r, e, URN_CM_EVENT_TIMEWAIT).id);
			assert_int_equal(ibv_destroy_qp(way[i].qp[e]), 0);
		}
	}
	ways = 0;
	for (int e = 0; e < 2; e++)
		rig_cm_nothing(r, e);
}

/* The connection carries data both ways. */
static void
way_carries(struct rig *r, struct ibv_qp *qp[2])
{
	struct ibv_qp *kept;

	for (int e = 0; e < 2; e++) {
		kept = r->end[e].qp;
		r->end[e].qp = qp[e];
		rig_fill(r->end[e].buf, 5000, (uint32_t)e + 7);
		rig_post(r, e, IBV_WR_RDMA_WRITE, 0, 5000, 8192, 1);
		rig_expect(r, e, IBV_WC_SUCCESS);
		assert_memory_equal(r->end[!e].buf + 8192, r->end[e].buf, 5000);
		r->end[e].qp = kept;
	}
}

/* The whole life of a connection until its timewait, which ways_end() awaits: two queue pairs, a
 * WRITE over them, the end. */
static void
whole_way(struct rig *r, int from)
{
	static const struct rig_qp o;
	struct cm_way *w = &way[ways];
	struct urn_abi_cm_event req, rep, ev;
	int to = !from;

	assert_true(ways < WAYS);
	*w = (struct cm_way){.qp = {rig_make_qp(r, 0, &o), rig_make_qp(r, 1, &o)}};
	w->id[from] = rig_cm_connect(r, from, w->qp[from]->qp_num);
	req = way_event(r, to, URN_CM_EVENT_REQUEST);
	rig_cm_check_data(&req, 92, w->qp[from]->qp_num);
	assert_int_equal(req.qpn, w->qp[from]->qp_num);
	assert_int_equal(req.mtu, 3);
	w->id[to] = req.id;
	rig_connect(r, to, w->qp[to], req.psn, req.qpn, 0x2000 + (w->qp[to]->qp_num & 0xfff), &o);
	rig_cm_accept(r, to, w->id[to], w->qp[to]->qp_num);
	rep = way_event(r, from, URN_CM_EVENT_REPLY);
	rig_cm_check_data(&rep, 196, w->qp[to]->qp_num);
	assert_int_equal(rep.qpn, w->qp[to]->qp_num);
	rig_connect(r, from, w->qp[from], rep.psn, rep.qpn, 0x1000 + (w->qp[from]->qp_num & 0xfff),
		    &o);
	assert_int_equal(rig_cm_call(r, from, URN_CTL_CM_ESTABLISH, w->id[from], 224), 0);
	ev = way_event(r, to, URN_CM_EVENT_ESTABLISHED);
	rig_cm_check_data(&ev, 224, URN_CTL_CM_ESTABLISH);
	way_carries(r, w->qp);
	assert_int_equal(rig_cm_call(r, to, URN_CTL_CM_DISCONNECT, w->id[to], 220), 0);
	ev = way_event(r, from, URN_CM_EVENT_DISCONNECT);
	rig_cm_check_data(&ev, 220, URN_CTL_CM_DISCONNECT);
	assert_int_equal(rig_cm_call(r, from, URN_CTL_CM_DISCONNECT, w->id[from], 224), 0);
	ev = way_event(r, to, URN_CM_EVENT_DISCONNECTED);
	assert_int_equal(ev.reason, 0);
	rig_cm_check_data(&ev, 224, URN_CTL_CM_DISCONNECT);
	ways++; /* in timewait at both ends from now on */
}

static void
test_connect(void **state)
{
	static const struct rig_config cfg[] = {
		{0}, {.ipv6 = true}, {.engines = 1}, {.engines = 4}, {.engines = 4, .queues = 1}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cfg) / sizeof(cfg[0]); i++) {
		struct rig r;

		rig_cm_open(&r, &cfg[i]);
		rig_cm_listen(&r, 0, SERVICE, 0);
		rig_cm_listen(&r, 1, SERVICE, 0);
		whole_way(&r, 0);
		whole_way(&r, 1);
		ways_end(&r);
		assert_int_equal(rig_cm_ids(&r, 0), 1);
		assert_int_equal(rig_cm_ids(&r, 1), 1);
		rig_cm_close(&r);
	}
}

static uint64_t
of_both(struct rig *r, enum urn_counter id)
{
	return rig_counter(r, 0, id) + rig_counter(r, 1, id);
}

/*
 * A wire that loses a tenth of the frames, duplicates some and delays others. The clock has a part
 * in which frames: where no message of connection management was hit, there are more connections.
 */
static void
bad_wire(uint64_t seed)
{
	struct rig_config cfg = {.wire_seed = seed, .lose = 100, .twice = 100, .late = 100};
	bool hit = false;
	struct rig r;

	rig_cm_open(&r, &cfg);
	rig_cm_listen(&r, 0, SERVICE, 0);
	rig_cm_listen(&r, 1, SERVICE, 0);
	for (int tries = 0; tries < 10 && !hit; tries++) {
		for (int i = 0; i < WAYS; i++)
			whole_way(&r, i & 1);
		ways_end(&r);
		hit = of_both(&r, URN_C_CM_RETRANSMITS) > 0 && of_both(&r, URN_C_CM_DUPLICATE) > 0;
	}
	assert_true(hit);
	rig_cm_close(&r);
}

static void
test_bad_wire(void **state)
{
	(void)state;
	bad_wire(5);
	/* This seed duplicates a REP, whose second copy is answered by an MRA, and then loses the RTU. */
	bad_wire(19);
}

/* Both ends on one adapter: nothing goes over the wire. */
static void
test_loopback(void **state)
{
	struct rig_config cfg = {.loopback = true};
	uint64_t sent;
	struct rig r;

	(void)state;
	rig_cm_open(&r, &cfg);
	rig_cm_listen(&r, 1, SERVICE, 0);
	/* Announcements of the start go out first; an engine of another thread takes its time for them. */
	do {
		sent = rig_counter(&r, 0, URN_C_TX_PACKETS);
		rig_turns(&r, 100);
		if (r.cfg.remote)
			usleep(50000);
	} while (rig_counter(&r, 0, URN_C_TX_PACKETS) != sent);
	whole_way(&r, 0);
	ways_end(&r);
	assert_int_equal(rig_counter(&r, 0, URN_C_TX_PACKETS), sent);
	rig_cm_close(&r);
}

/* Turn until a node's counter is n at least. */
static void
await_counter(struct rig *r, int node, enum urn_counter id, uint64_t n)
{
	time_t start = time(NULL);

	while (rig_counter(r, node, id) < n) {
		assert_true(time(NULL) - start < 60);
		rig_turns(r, 16);
	}
}

static void
test_reject(void **state)
{
	struct urn_abi_req rej = {.cm_reject = {.reason = URN_CM_REJ_CONSUMER, .info_len = 72,
						.data_len = 148}};
	struct urn_abi_cm_event ev;
	struct urn_abi_rep rep;
	uint32_t id, l;
	struct rig r;

	(void)state;
	rig_cm_open(&r, NULL);
	/* Nobody listens. */
	id = rig_cm_connect(&r, 0, r.end[0].qp->qp_num);
	ev = rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.reason, URN_CM_REJ_INVALID_SERVICE_ID);
	/* Engines that had no processor for a while repeat the request. */
	assert_in_range(rig_counter(&r, 1, URN_C_CM_NO_SERVICE), 1,
			1 + rig_counter(&r, 0, URN_C_CM_RETRANSMITS));
	/* The program does not want it. */
	l = rig_cm_listen(&r, 1, SERVICE, 0);
	id = rig_cm_connect(&r, 0, r.end[0].qp->qp_num);
	rej.handle = rig_cm_expect(&r, 1, URN_CM_EVENT_REQUEST).id;
	rig_fill(rej.cm_reject.info, 72, 3);
	rig_fill(rej.cm_reject.data, 148, 4);
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_REJECT, &rej, &rep), 0);
	ev = rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.reason, URN_CM_REJ_CONSUMER);
	rig_cm_check_data(&ev, 148, 4);
	assert_int_equal(ev.info_len, 72);
	assert_memory_equal(ev.data + 148, rej.cm_reject.info, 72);
	assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DESTROY, rej.handle, 0), 0);
	/* The program never hears of the request, and then stops listening. */
	id = rig_cm_connect(&r, 0, r.end[0].qp->qp_num);
	rig_cm_await_ids(&r, 1, 3); /* the refused id waits for repeats */
	assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DESTROY, l, 0), 0);
	assert_int_equal(rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED).id, id);
	rig_cm_close(&r);
}

/* A channel stays while connection ids tell their events by it. */
static void
test_channel_stays(void **state)
{
	struct rig_config cfg = {.remote = true}; /* inside one process a channel has no handle */
	struct urn_abi_req end = {0};
	struct urn_abi_rep rep;
	struct rig r;
	uint32_t id;

	(void)state;
	rig_cm_open(&r, &cfg);
	id = rig_cm_listen(&r, 0, SERVICE, 0);
	end.handle = (uint32_t)rig_cm_pipe[0].handle;
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_DESTROY_CHANNEL, &end, &rep), EBUSY);
	assert_non_null(strstr(rep.why, "connection ids use the channel"));
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DESTROY, id, 0), 0);
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_DESTROY_CHANNEL, &end, &rep), 0);
	rig_cm_close(&r);
}

/* A peer that does not exist, and one without connection management. */
static void
test_unreachable(void **state)
{
	struct rig_config cfg = {.no_learn = 2};
	struct urn_abi_req req;
	struct urn_abi_rep rep;
	struct rig r;

	(void)state;
	rig_cm_open(&r, &cfg);
	for (int there = 0; there < 2; there++) {
		req = rig_cm_request(&r, 0, r.end[0].qp->qp_num);
		req.cm_connect.timeout = 8;
		req.cm_connect.max_retries = 3;
		if (!there)
			req.cm_connect.dgid[15] = 99;
		assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_CONNECT, &req, &rep), 0);
		assert_int_equal(rig_cm_expect(&r, 0, URN_CM_EVENT_UNREACHABLE).id, rep.handle);
	}
	assert_int_equal(rig_counter(&r, 0, URN_C_CM_TIMEOUTS), 2);
	await_counter(&r, 1, URN_C_DROP_NO_QP, 4);
	/* The peer says so itself. */
	req = rig_cm_request(&r, 1, r.end[1].qp->qp_num);
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_CONNECT, &req, &rep), EOPNOTSUPP);
	rig_cm_close(&r);
}

static void
test_resolve(void **state)
{
	struct urn_abi_req req, acc = {.cm_accept = {.psn = 0x11112222, .data_len = 136}};
	struct urn_abi_cm_event ev;
	struct urn_abi_rep rep;
	struct rig r;

	(void)state;
	rig_cm_open(&r, NULL);
	rig_cm_listen(&r, 1, SERVICE, 0);
	req = rig_cm_request(&r, 0, 0);
	req.cm_connect.data_len = 216;
	rig_fill(req.cm_connect.data, 216, 9);
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_RESOLVE, &req, &rep), 0);
	ev = rig_cm_expect(&r, 1, URN_CM_EVENT_SIDR_REQUEST);
	rig_cm_check_data(&ev, 216, 9);
	acc.handle = ev.id;
	acc.cm_accept.qpn = 12345;
	rig_fill(acc.cm_accept.data, 136, 10);
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_ACCEPT, &acc, &rep), EINVAL); /* another QP than the request's */
	acc.cm_accept.qpn = r.end[1].qp->qp_num;
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_ACCEPT, &acc, &rep), 0);
	ev = rig_cm_expect(&r, 0, URN_CM_EVENT_SIDR_REPLY);
	assert_int_equal(ev.reason, 0);
	assert_int_equal(ev.qpn, r.end[1].qp->qp_num);
	assert_int_equal(ev.qkey, 0x11112222);
	rig_cm_check_data(&ev, 136, 10);
	rig_cm_close(&r);
}

/* Calls that a client may not make: the answer says why. */
static void
test_refused_calls(void **state)
{
	struct urn_abi_req req, acc = {.cm_accept = {.qpn = 0}};
	struct urn_abi_rep rep;
	uint32_t l;
	struct rig r;

	(void)state;
	rig_cm_open(&r, NULL);
	l = rig_cm_listen(&r, 1, SERVICE, 0);
	req = (struct urn_abi_req){.cm_listen = {.service_id = SERVICE, .channel_fd = -1}};
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_LISTEN, &req, &rep), EADDRINUSE);
	assert_true(rep.why[0]);
	req = rig_cm_request(&r, 0, r.end[1].qp->qp_num + 100);
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_CONNECT, &req, &rep), EINVAL);
	req = rig_cm_request(&r, 0, r.end[0].qp->qp_num);
	req.cm_connect.sgid_index = 2;
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_CONNECT, &req, &rep), EINVAL);
	req.cm_connect.sgid_index = 0; /* from IPv6 to IPv4 */
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_CONNECT, &req, &rep), EINVAL);
	req = rig_cm_request(&r, 0, r.end[0].qp->qp_num);
	req.cm_connect.data_len = 93;
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_CONNECT, &req, &rep), EINVAL);
	assert_true(rep.why[0]);
	/* Another client's listener, and an id without listener. */
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DESTROY, l, 0), ENOENT);
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DISCONNECT, 0, 0), ENOENT);
	assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DISCONNECT, l, 0), ENOTCONN);
	assert_true(rep.why[0]);
	acc.handle = l;
	acc.cm_accept.qpn = r.end[1].qp->qp_num;
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_ACCEPT, &acc, &rep), ENOTCONN);
	rig_cm_nothing(&r, 0);
	rig_cm_nothing(&r, 1);
	rig_cm_close(&r);
}

/* A client goes: its peers hear of it, and nothing of the client is left. */
static void
test_client_goes(void **state)
{
	struct ibv_context *other;
	struct urn_abi_req req, acc;
	struct urn_abi_rep rep;
	struct urn_abi_cm_event ev;
	uint32_t id;
	struct rig r;

	(void)state;
	rig_cm_open(&r, NULL);
	other = rig_attach(&r, 1);
	req = (struct urn_abi_req){.op = URN_CTL_CM_LISTEN, .cm_listen = {.service_id = SERVICE,
									  .channel_fd = -1}};
	assert_int_equal(urn_dev_call(urn_ctx_dev(other), &req, &rep), 0);
	id = rig_cm_connect(&r, 0, r.end[0].qp->qp_num);
	rig_cm_await_ids(&r, 1, 2);
	req = (struct urn_abi_req){.op = URN_CTL_CM_EVENT};
	assert_int_equal(urn_dev_call(urn_ctx_dev(other), &req, &rep), 0);
	ev = rep.cm_event;
	assert_int_equal(ev.type, URN_CM_EVENT_REQUEST);
	acc = (struct urn_abi_req){.op = URN_CTL_CM_ACCEPT, .handle = ev.id};
	acc.cm_accept.qpn = r.end[1].qp->qp_num; /* another client's QP */
	assert_int_equal(urn_dev_call(urn_ctx_dev(other), &acc, &rep), EINVAL);
	assert_int_equal(ibv_close_device(other), 0);
	ev = rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.reason, URN_CM_REJ_CONSUMER);
	rig_cm_await_ids(&r, 1, 0);
	rig_cm_close(&r);
}

/* The pipe is full: notices wait, keep their order, and none is lost. */
static void
test_full_pipe(void **state)
{
	struct urn_abi_event note = {.type = 0};
	struct urn_abi_req req = {.op = 0};
	struct urn_abi_rep rep;
	unsigned int full = 0, found = 0;
	struct rig r;

	(void)state;
	rig_cm_open(&r, NULL);
	/* The peer's MAC address is known from here on: a request that waits for it may be overtaken. */
	(void)rig_cm_connect(&r, 0, r.end[0].qp->qp_num);
	(void)rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED);
	while (write(rig_cm_pipe[0].write_fd, &note, sizeof(note)) == (ssize_t)sizeof(note))
		full++;
	for (int i = 0; i < 5; i++) {
		req = rig_cm_request(&r, 0, r.end[0].qp->qp_num);
		req.cm_connect.cookie = (uint64_t)i;
		assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_CONNECT, &req, &rep), 0);
	}
	rig_cm_await_ids(&r, 0, 6);
	await_counter(&r, 1, URN_C_CM_NO_SERVICE, 6);
	rig_turns(&r, 100);
	while (full--)
		assert_int_equal(read(rig_cm_pipe[0].read_fd, &note, sizeof(note)), sizeof(note));
	for (found = 0; found < 5; found++)
		assert_int_equal(rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED).cookie, found);
	rig_cm_nothing(&r, 0);
	rig_cm_close(&r);
}

/* A thousand connections at once, of one client to another. */
static void
test_many(void **state)
{
	static const struct rig_qp o = {.depth = 1, .sge = 1, .inline_bytes = 1};
	struct rig_config cfg = {.max_qp = 2048};
	static struct ibv_qp *qp[2][MANY];
	static uint32_t id[2][MANY];
	unsigned int left;
	struct rig r;

	(void)state;
	rig_cm_open(&r, &cfg);
	rig_cm_listen(&r, 1, SERVICE, MANY);
	for (unsigned int i = 0; i < MANY; i++) {
		qp[0][i] = rig_make_qp(&r, 0, &o);
		qp[1][i] = rig_make_qp(&r, 1, &o);
		id[0][i] = rig_cm_connect(&r, 0, qp[0][i]->qp_num);
		rig_turn(&r);
	}
	for (unsigned int i = 0; i < MANY; i++) {
		struct urn_abi_cm_event ev = rig_cm_expect(&r, 1, URN_CM_EVENT_REQUEST);

		id[1][i] = ev.id;
		rig_cm_check_data(&ev, 92, ev.qpn);
		rig_connect(&r, 1, qp[1][i], ev.psn, ev.qpn, 0x2000 + (qp[1][i]->qp_num & 0xfff), &o);
		rig_cm_accept(&r, 1, ev.id, qp[1][i]->qp_num);
	}
	for (unsigned int i = 0; i < MANY; i++) {
		struct urn_abi_cm_event ev = rig_cm_expect(&r, 0, URN_CM_EVENT_REPLY);
		unsigned int k = 0;

		while (id[0][k] != ev.id)
			k++;
		rig_cm_check_data(&ev, 196, ev.qpn);
		rig_connect(&r, 0, qp[0][k], ev.psn, ev.qpn, 0x1000 + (qp[0][k]->qp_num & 0xfff), &o);
		assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_ESTABLISH, ev.id, 1), 0);
	}
	for (unsigned int i = 0; i < MANY; i++)
		rig_cm_expect(&r, 1, URN_CM_EVENT_ESTABLISHED);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DESTROY, id[0][i], 0), 0);
	for (left = MANY; left;) {
		struct urn_abi_cm_event ev = rig_cm_event(&r, 1);

		if (ev.type == URN_CM_EVENT_DISCONNECT)
			assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DESTROY, ev.id, 0), 0), left--;
	}
	rig_cm_await_ids(&r, 0, 0);
	rig_cm_await_ids(&r, 1, 1);
	for (unsigned int i = 0; i < MANY; i++)
		for (int e = 0; e < 2; e++)
			assert_int_equal(ibv_destroy_qp(qp[e][i]), 0);
	rig_cm_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),	      cmocka_unit_test(test_bad_wire),
		cmocka_unit_test(test_loopback),      cmocka_unit_test(test_reject),
		cmocka_unit_test(test_unreachable),   cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_refused_calls), cmocka_unit_test(test_client_goes),
		cmocka_unit_test(test_full_pipe),     cmocka_unit_test(test_many),
		cmocka_unit_test(test_channel_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
