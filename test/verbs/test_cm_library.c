/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management by the library's calls (urnic/cm.h), and the queue pairs of its
 * connections: their numbers, their path MTU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cm_rig.h"
#include <urnic/cm.h>

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct urn_abi_cm_event
end_event(struct rig *r, struct urn_cm_end *c, enum urn_cm_event_type type)
{
	time_t start = time(NULL);
	struct urn_abi_cm_event ev;
	int rc;

	while ((rc = urn_cm_end_event(c, &ev)) == EAGAIN) {
		assert_true(time(NULL) - start < 60);
		rig_turns(r, 4);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(ev.type, type);
	return ev;
}

/* The library's calls, from the first to the last, with private data both ways. */
static void
test_library(void **state)
{
	struct urn_abi_cm_accept acc = {.psn = 1, .data_len = 196};
	struct urn_abi_cm_reject rej = {.reason = URN_CM_REJ_CONSUMER, .data_len = 148};
	struct urn_cm_end *c[2];
	struct urn_abi_cm_event ev;
	struct urn_abi_req req;
	uint8_t data[URN_CM_DATA_MAX + 1];
	uint32_t l, id, other;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	for (int e = 0; e < 2; e++)
		assert_int_equal(urn_cm_end_open(&c[e], r.end[e].ctx), 0);
	assert_int_equal(urn_cm_end_listen(c[1], SERVICE, 0xaa, INT_MAX, &l), 0);
	assert_int_equal(urn_cm_end_listen(c[1], SERVICE, 0xaa, 0, &id), EADDRINUSE);
	assert_non_null(strstr(urn_attach_error(), "listens"));
	req = rig_cm_request(&r, 0, r.end[0].qp->qp_num);
	assert_int_equal(urn_cm_end_connect(c[0], &req.cm_connect, &id), 0);
	ev = end_event(&r, c[1], URN_CM_EVENT_REQUEST);
	rig_cm_check_data(&ev, 92, ev.qpn);
	assert_int_equal(ev.cookie, 0xaa);
	other = ev.id;
	acc.qpn = r.end[1].qp->qp_num;
	rig_fill(acc.data, 196, 5);
	assert_int_equal(urn_cm_end_accept(c[1], other, &acc), 0);
	ev = end_event(&r, c[0], URN_CM_EVENT_REPLY);
	rig_cm_check_data(&ev, 196, 5);
	rig_fill(data, 224, 6);
	assert_int_equal(urn_cm_end_establish(c[0], id, data, 225), EINVAL);
	assert_int_equal(urn_cm_end_establish(c[0], id, data, 224), 0);
	ev = end_event(&r, c[1], URN_CM_EVENT_ESTABLISHED);
	rig_cm_check_data(&ev, 224, 6);
	assert_int_equal(urn_cm_end_disconnect(c[0], id, data, 220), 0);
	end_event(&r, c[1], URN_CM_EVENT_DISCONNECT);
	assert_int_equal(urn_cm_end_disconnect(c[1], other, NULL, 0), 0);
	end_event(&r, c[0], URN_CM_EVENT_DISCONNECTED);
	assert_int_equal(urn_cm_end_destroy(c[0], id), 0);
	assert_int_equal(urn_cm_end_destroy(c[0], id), ENOENT);
	end_event(&r, c[1], URN_CM_EVENT_TIMEWAIT);

	/* Refused; a look-up that nobody answers; and a destroyed id leaves only its notice. */
	assert_int_equal(urn_cm_end_connect(c[0], &req.cm_connect, &id), 0);
	other = end_event(&r, c[1], URN_CM_EVENT_REQUEST).id;
	assert_int_equal(urn_cm_end_reject(c[1], other, &rej), 0);
	assert_int_equal(end_event(&r, c[0], URN_CM_EVENT_REJECTED).reason, URN_CM_REJ_CONSUMER);
	req.cm_connect.service_id = 99;
	assert_int_equal(urn_cm_end_resolve(c[0], &req.cm_connect, &id), 0);
	rig_turns(&r, 200);
	assert_int_equal(urn_cm_end_destroy(c[0], id), 0);
	assert_int_equal(urn_cm_end_resolve(c[0], &req.cm_connect, &id), 0);
	assert_int_equal(end_event(&r, c[0], URN_CM_EVENT_SIDR_REPLY).id, id);
	assert_int_equal(urn_cm_end_event(c[0], &ev), EAGAIN);
	rig_close(&r);
	for (int e = 0; e < 2; e++)
		urn_cm_end_close(c[e]);
}

/* Two ends share a service by its cookie, and one takes over a request that came to the other one.
 */
static void
test_shared(void **state)
{
	static const struct urn_abi_cm_reject no = {.reason = URN_CM_REJ_CONSUMER};
	struct urn_abi_cm_accept acc = {.psn = 1};
	struct urn_abi_cm_event ev;
	struct urn_cm_end *c[3];
	struct urn_abi_req req;
	uint32_t l, id;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	for (int e = 0; e < 3; e++)
		assert_int_equal(urn_cm_end_open(&c[e], r.end[e > 0].ctx), 0);
	req = rig_cm_request(&r, 0, r.end[0].qp->qp_num);
	acc.qpn = r.end[1].qp->qp_num;
	assert_int_equal(urn_cm_end_listen(c[1], SERVICE, 0xaa, URN_CM_SHARED, &id), 0);
	assert_int_equal(urn_cm_end_listen(c[2], SERVICE, 0xaa, 0, &l), EADDRINUSE);
	assert_int_equal(urn_cm_end_listen(c[2], SERVICE, 0xaa, URN_CM_SHARED | URN_CM_HEIR, &l),
			 0);
	assert_int_equal(urn_cm_end_connect(c[0], &req.cm_connect, &id), 0);
	ev = end_event(&r, c[2], URN_CM_EVENT_REQUEST);
	assert_int_equal(ev.listen_id, l);
	assert_int_equal(urn_cm_end_reject(c[2], ev.id, &no), 0);
	end_event(&r, c[0], URN_CM_EVENT_REJECTED);
	assert_int_equal(urn_cm_end_destroy(c[2], l), 0);

	assert_int_equal(urn_cm_end_connect(c[0], &req.cm_connect, &id), 0);
	ev = end_event(&r, c[1], URN_CM_EVENT_REQUEST);
	assert_int_equal(urn_cm_end_take(c[2], ev.id, 0xab), ENOENT);
	assert_int_equal(urn_cm_end_take(c[2], ev.id, 0xaa), 0);
	assert_int_equal(urn_cm_end_accept(c[2], ev.id, &acc), 0);
	end_event(&r, c[0], URN_CM_EVENT_REPLY);
	assert_int_equal(urn_cm_end_establish(c[0], id, NULL, 0), 0);
	assert_int_equal(end_event(&r, c[2], URN_CM_EVENT_ESTABLISHED).id, ev.id);
	rig_close(&r);
	for (int e = 0; e < 3; e++)
		urn_cm_end_close(c[e]);
}

/* Make as many queue pairs as there are numbers, one after the other. returns: true when one of
 * them was qpn */
static bool
number_comes_again(struct rig *r, uint32_t qpn)
{
	static const struct rig_qp o = {.depth = 1, .sge = 1, .inline_bytes = 1};
	bool again = false;

	for (int i = 0; i < 1100; i++) {
		struct ibv_qp *qp = rig_make_qp(r, 0, &o);

		again |= qp->qp_num == qpn;
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	return again;
}

/* A queue pair may go as soon as its connection has ended: its number stays reserved until timewait
 * is over. */
static void
test_number_rests(void **state)
{
	static const struct rig_qp o;
	struct urn_abi_cm_event req;
	struct ibv_qp *qp;
	uint32_t id, qpn;
	struct rig r;

	(void)state;
	rig_cm_open(&r, &(struct rig_config){.max_qp = 512});
	rig_cm_listen(&r, 1, SERVICE, 0);
	qp = rig_make_qp(&r, 0, &o);
	qpn = qp->qp_num;
	assert_true(number_comes_again(&r, qpn + 1)); /* the test has used all the numbers */
	id = rig_cm_connect(&r, 0, qpn);
	req = rig_cm_expect(&r, 1, URN_CM_EVENT_REQUEST);
	rig_cm_accept(&r, 1, req.id, r.end[1].qp->qp_num);
	rig_cm_expect(&r, 0, URN_CM_EVENT_REPLY);
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_ESTABLISH, id, 0), 0);
	rig_cm_expect(&r, 1, URN_CM_EVENT_ESTABLISHED);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_false(number_comes_again(&r, qpn));
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DISCONNECT, id, 0), 0);
	rig_cm_expect(&r, 1, URN_CM_EVENT_DISCONNECT);
	assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DISCONNECT, req.id, 0), 0);
	rig_cm_expect(&r, 0, URN_CM_EVENT_DISCONNECTED);
	rig_cm_expect(&r, 0, URN_CM_EVENT_TIMEWAIT);
	assert_true(number_comes_again(&r, qpn));
	rig_cm_close(&r);
}

/* A port with a smaller path MTU than the request's, at either node. */
static void
test_path_mtu(void **state)
{
	struct urn_abi_req req;
	struct urn_abi_rep rep;
	struct rig r;

	(void)state;
	rig_cm_open(&r, &(struct rig_config){.mtu = {4096, 1024}});
	rig_cm_listen(&r, 0, SERVICE, 0);
	rig_cm_listen(&r, 1, SERVICE, 0);
	req = rig_cm_request(&r, 0, r.end[0].qp->qp_num);
	req.cm_connect.mtu = 4;
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_CONNECT, &req, &rep), 0);
	assert_int_equal(rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED).reason,
			 URN_CM_REJ_INVALID_MTU);
	/* Engines that had no processor for a while repeat the request. */
	assert_in_range(rig_counter(&r, 1, URN_C_CM_UNSUPPORTED), 1,
			1 + rig_counter(&r, 0, URN_C_CM_RETRANSMITS));
	req = rig_cm_request(&r, 1, r.end[1].qp->qp_num);
	req.cm_connect.mtu = 4;
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_CONNECT, &req, &rep), EINVAL);
	assert_non_null(strstr(rep.why, "1024"));
	req.cm_connect.mtu = 3;
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_CONNECT, &req, &rep), 0);
	rig_cm_expect(&r, 0, URN_CM_EVENT_REQUEST);
	rig_cm_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_number_rests),
		cmocka_unit_test(test_path_mtu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
