/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting RC queue pairs by hand: the attributes of each transition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/endpoint.h"

#include <urnic/attach.h>
#include <urnic/cm.h>

/* ---- a library that only records its calls */

static struct {
	struct ibv_qp_attr attr;
	int mask;
} calls[4];
static int call_count, fail_at;
static const char *why = "";

#undef ibv_query_port

const char *
urn_attach_error(void)
{
	return why;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	calls[call_count].attr = *attr;
	calls[call_count].mask = mask;
	return ++call_count == fail_at ? EINVAL : 0;
}

/* Recorded as two calls. */
int
urn_cm_qp_ready(struct ibv_qp *q, const struct ibv_qp_attr *rtr, int rtr_mask, const struct ibv_qp_attr *rts,
		int rts_mask)
{
	struct ibv_qp_attr a = *rtr, b = *rts;
	int rc = ibv_modify_qp(q, &a, rtr_mask);

	q->state = rc == 0 ? IBV_QPS_RTR : IBV_QPS_INIT;
	return rc == 0 ? ibv_modify_qp(q, &b, rts_mask) : rc;
}

int
ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *out)
{
	struct ibv_port_attr attr = {.active_mtu = IBV_MTU_1024};

	(void)ctx;
	assert_int_equal(port, 1);
	memcpy(out, &attr, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

int
ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	assert_int_equal(port, 1);
	if (index > 2)
		return -1;
	memset(gid->raw, 0x40 + index, sizeof(gid->raw));
	return 0;
}

static struct ibv_context context;
static struct ibv_qp qp = {.context = &context, .qp_num = 0x12};
static struct urn_err err;

static int
setup(void **state)
{
	(void)state;
	call_count = fail_at = 0;
	why = "";
	memset(calls, 0, sizeof(calls));
	memset(&err, 0, sizeof(err));
	return 0;
}

static void
init_sets_what_init_needs(void **state)
{
	(void)state;
	assert_int_equal(urn_ep_init(&qp, IBV_ACCESS_REMOTE_WRITE, &err), 0);
	assert_int_equal(call_count, 1);
	assert_int_equal(calls[0].mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS);
	assert_int_equal(calls[0].attr.qp_state, IBV_QPS_INIT);
	assert_int_equal(calls[0].attr.port_num, 1);
	assert_int_equal(calls[0].attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
}

static void
local_address_is_complete(void **state)
{
	struct urn_ep_addr a;

	(void)state;
	assert_int_equal(urn_ep_local(&qp, 0xff123456, 2, &a, &err), 0);
	assert_int_equal(a.qpn, 0x12);
	assert_int_equal(a.psn, 0x123456);
	assert_int_equal(a.mtu_code, IBV_MTU_1024);
	assert_int_equal(a.gid[0], 0x42);
	assert_int_equal(a.gid[15], 0x42);
	assert_int_equal(urn_ep_local(&qp, 0, 3, &a, &err), -1);
	assert_non_null(strstr(err.text, "GID 3"));
}

/* The first PSN of each side is set where it belongs, and the smallest MTU is used. */
static void
connect_crosses_the_addresses(void **state)
{
	struct urn_ep_addr local = {.qpn = 0x12, .psn = 100, .mtu_code = IBV_MTU_4096};
	struct urn_ep_addr remote = {.qpn = 0x34, .psn = 200, .mtu_code = IBV_MTU_2048};
	struct urn_ep_opts o;

	(void)state;
	memset(remote.gid, 0x77, sizeof(remote.gid));
	urn_ep_opts_default(&o);
	o.sgid_index = 3;
	o.max_rd_atomic = 5;
	o.max_dest_rd_atomic = 6;
	assert_int_equal(urn_ep_connect(&qp, &local, &remote, &o, &err), 0);
	assert_int_equal(call_count, 2);
	assert_int_equal(calls[0].mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(calls[0].attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(calls[0].attr.path_mtu, IBV_MTU_2048);
	assert_int_equal(calls[0].attr.dest_qp_num, 0x34);
	assert_int_equal(calls[0].attr.rq_psn, 200);
	assert_int_equal(calls[0].attr.max_dest_rd_atomic, 6);
	assert_int_equal(calls[0].attr.ah_attr.is_global, 1);
	assert_int_equal(calls[0].attr.ah_attr.port_num, 1);
	assert_int_equal(calls[0].attr.ah_attr.grh.sgid_index, 3);
	assert_int_equal(calls[0].attr.ah_attr.grh.dgid.raw[15], 0x77);
	assert_int_equal(calls[1].mask, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						IBV_QP_MAX_QP_RD_ATOMIC);
	assert_int_equal(calls[1].attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(calls[1].attr.sq_psn, 100);
	assert_int_equal(calls[1].attr.max_rd_atomic, 5);
}

static void
mtu_is_the_smallest_given(void **state)
{
	static const struct {
		uint32_t local, remote;
		uint8_t wanted;
		int used; /* 0: refused */
	} cases[] = {{5, 5, 3, 3}, {5, 2, 3, 2}, {1, 5, 0, 1}, {0, 5, 0, 5}, {0, 0, 0, 0}, {6, 6, 0, 0}};
	struct urn_ep_opts o;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct urn_ep_addr local = {.mtu_code = cases[i].local};
		struct urn_ep_addr remote = {.mtu_code = cases[i].remote};

		setup(NULL);
		urn_ep_opts_default(&o);
		o.mtu_code = cases[i].wanted;
		assert_int_equal(urn_ep_connect(&qp, &local, &remote, &o, &err),
				 cases[i].used ? 0 : -1);
		assert_int_equal(call_count, cases[i].used ? 2 : 0);
		if (cases[i].used)
			assert_int_equal(calls[0].attr.path_mtu, cases[i].used);
	}
}

/* A failure's message names the step and the reason, in the dataplane's words when it has some. */
static void
failures_name_the_step(void **state)
{
	struct urn_ep_addr a = {.qpn = 0x34, .mtu_code = IBV_MTU_1024};
	struct urn_ep_opts o;

	(void)state;
	urn_ep_opts_default(&o);
	fail_at = 1;
	assert_int_equal(urn_ep_connect(&qp, &a, &a, &o, &err), -1);
	assert_non_null(strstr(err.text, "RTR"));
	assert_non_null(strstr(err.text, strerror(EINVAL)));
	assert_int_equal(call_count, 1);

	setup(NULL);
	fail_at = 2;
	why = "no such path";
	assert_int_equal(urn_ep_connect(&qp, &a, &a, &o, &err), -1);
	assert_non_null(strstr(err.text, "RTS"));
	assert_non_null(strstr(err.text, "no such path"));

	setup(NULL);
	fail_at = 1;
	assert_int_equal(urn_ep_init(&qp, 0, &err), -1);
	assert_non_null(strstr(err.text, "0x000012"));
	assert_non_null(strstr(err.text, "INIT"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(init_sets_what_init_needs, setup),
		cmocka_unit_test_setup(local_address_is_complete, setup),
		cmocka_unit_test_setup(connect_crosses_the_addresses, setup),
		cmocka_unit_test_setup(mtu_is_the_smallest_given, setup),
		cmocka_unit_test_setup(failures_name_the_step, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
