/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams, end to end through verbs: both families, our own address, late memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <string.h>

enum { GRH = 40, MTU = 4096, QKEY = 0x1234 /* the rig's values */ };

static const struct rig_qp datagram = {.type = IBV_QPT_UD};

static struct ibv_ah *
ah_by(struct rig *r, int from, int to, uint8_t traffic_class, uint8_t hop_limit)
{
	struct ibv_ah_attr a = {.is_global = 1,
				.port_num = 1,
				.grh = {.hop_limit = hop_limit, .traffic_class = traffic_class}};
	struct ibv_ah *ah;

	a.grh.sgid_index = (uint8_t)rig_sgid_index(r);
	rig_gid(r, to, &a.grh.dgid);
	ah = ibv_create_ah(r->end[from].pd, &a);
	assert_non_null(ah);
	return ah;
}

static struct ibv_ah *
ah_to(struct rig *r, int from, int to)
{
	return ah_by(r, from, to, 0, 64);
}

/* Send the first `len` bytes of the buffer, with an immediate. */
static void
send_to(struct rig *r, int e, struct ibv_ah *ah, uint32_t qkey, uint32_t len, uint64_t wr_id)
{
	struct rig_end *me = &r->end[e];
	struct ibv_sge sge = {(uintptr_t)me->buf, len, me->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32((uint32_t)wr_id),
		.wr.ud = {.ah = ah, .remote_qpn = r->end[!e].qp->qp_num, .remote_qkey = qkey},
	};

	rig_send_on(me->qp, &wr);
}

/* A datagram of every kind of length comes whole, and can be answered by the data in its completion. */
static void
to_and_fro(struct rig *r)
{
	static const uint32_t sizes[] = {0, 1, 3, 64, 1000, MTU - 1, MTU};
	struct ibv_ah *ah = ah_to(r, 0, 1), *back;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rig_end *to = &r->end[1];
		uint32_t n = sizes[i];
		struct ibv_wc wc;

		rig_fill(r->end[0].buf, n, i + 1);
		memset(to->buf + 8192, 0xee, GRH + n + 8);
		rig_recv(r, 1, 8192, GRH + n, 70 + i);
		send_to(r, 0, ah, QKEY, n, 7 + i);
		wc = rig_expect(r, 1, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, 70 + i);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, GRH + n);
		assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
		assert_int_equal(be32toh(wc.imm_data), 7 + i);
		assert_int_equal(wc.src_qp, r->end[0].qp->qp_num);
		assert_memory_equal(to->buf + 8192 + GRH, r->end[0].buf, n);
		assert_int_equal(to->buf[8192 + GRH + n], 0xee);
		wc = rig_expect(r, 0, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, 7 + i);
		assert_int_equal(wc.opcode, IBV_WC_SEND);

		back = ibv_create_ah_from_wc(to->pd, &wc, (struct ibv_grh *)(to->buf + 8192), 1);
		assert_null(back); /* a send completion has no address to answer to */
		wc.wc_flags = IBV_WC_GRH;
		back = ibv_create_ah_from_wc(to->pd, &wc, (struct ibv_grh *)(to->buf + 8192), 1);
		assert_non_null(back);
		rig_recv(r, 0, 8192, GRH + 8, 1);
		send_to(r, 1, back, QKEY, 8, 2);
		rig_expect(r, 0, IBV_WC_SUCCESS);
		rig_expect(r, 1, IBV_WC_SUCCESS);
		assert_memory_equal(r->end[0].buf + 8192 + GRH, to->buf, 8);
		assert_int_equal(ibv_destroy_ah(back), 0);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void
run(const struct rig_config *cfg)
{
	struct rig r;

	rig_open(&r, cfg, &datagram);
	to_and_fro(&r);
	rig_close(&r);
}

static void
test_ipv4(void **state)
{
	(void)state;
	run(NULL);
}

static void
test_ipv6(void **state)
{
	(void)state;
	run(&(struct rig_config){.ipv6 = true});
}

static void
test_loopback(void **state)
{
	(void)state;
	run(&(struct rig_config){.loopback = true});
	run(&(struct rig_config){.loopback = true, .ipv6 = true});
}

static void
test_late(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		run(&(struct rig_config){.delay_seed = seed});
}

/* Lost without notice to the sender: no receive, another Q_Key, no such QP. */
static void
test_lost(void **state)
{
	struct ibv_ah *ah;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &datagram);
	ah = ah_to(&r, 0, 1);
	send_to(&r, 0, ah, QKEY, 64, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_quiet(&r, 1);
	assert_int_equal(rig_counter(&r, 1, URN_C_DROP_UD_NO_RECV), 1);
	rig_recv(&r, 1, 8192, 4096, 2);
	send_to(&r, 0, ah, QKEY + 1, 64, 3);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_quiet(&r, 1);
	assert_int_equal(rig_counter(&r, 1, URN_C_DROP_QKEY), 1);
	/* The top bit selects the QP's own Q_Key, which both have. */
	send_to(&r, 0, ah, 0x80000000, 64, 4);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, 2);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	rig_close(&r);
}

/* Too long for the receive: the receive fails, and the QP lives. Too long to send: SQE, and back. */
static void
test_lengths(void **state)
{
	struct ibv_ah *ah;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &datagram);
	ah = ah_to(&r, 0, 1);
	memset(r.end[1].buf + 8192, 0xee, 256);
	rig_recv(&r, 1, 8192, GRH + 63, 1);
	rig_recv(&r, 1, 8192, GRH + 64, 2);
	send_to(&r, 0, ah, QKEY, 64, 3);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_int_equal(rig_expect(&r, 1, IBV_WC_LOC_LEN_ERR).wr_id, 1);
	assert_int_equal(r.end[1].buf[8192], 0xee);
	send_to(&r, 0, ah, QKEY, 64, 4);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, 2);

	send_to(&r, 0, ah, QKEY, MTU + 1, 5);
	send_to(&r, 0, ah, QKEY, 64, 6);
	assert_int_equal(rig_expect(&r, 0, IBV_WC_LOC_LEN_ERR).wr_id, 5);
	assert_int_equal(rig_expect(&r, 0, IBV_WC_WR_FLUSH_ERR).wr_id, 6);
	assert_int_equal(rig_state(r.end[0].qp), IBV_QPS_SQE);
	rig_to(r.end[0].qp, IBV_QPS_RTS);
	rig_recv(&r, 1, 8192, 4096, 7);
	send_to(&r, 0, ah, QKEY, 64, 8);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, 7);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	rig_close(&r);
}

/* A datagram has the traffic class and the hop limit of its address handle on the wire; a hop limit
 * of 0 is 64. The receiver's copy of the header has both, too. */
static void
test_traffic_class(void **state)
{
	static const struct {
		uint8_t class, hops, want;
	} cases[] = {{0, 0, 64}, {0xb8, 3, 3}, {0x44, 255, 255}};

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		/* Link requests have their own: there are none. */
		struct rig_config cfg = {.wire_seed = 1, .ipv6 = i % 2, .no_learn = 3};
		unsigned int class = cases[i / 2].class, want = cases[i / 2].want;
		const uint8_t *grh;
		struct ibv_ah *ah;
		struct rig r;

		rig_open(&r, &cfg, &datagram);
		ah = ah_by(&r, 0, 1, cases[i / 2].class, cases[i / 2].hops);
		rig_recv(&r, 1, 8192, GRH + 64, 1);
		send_to(&r, 0, ah, QKEY, 64, 2);
		rig_expect(&r, 1, IBV_WC_SUCCESS);
		assert_int_equal(r.way[1], class << 8 | want);
		grh = r.end[1].buf + 8192;
		assert_int_equal(cfg.ipv6 ? (grh[0] << 4 | grh[1] >> 4) & 0xff : grh[21], class);
		assert_int_equal(grh[cfg.ipv6 ? 7 : 28], want);
		assert_int_equal(ibv_destroy_ah(ah), 0);
		rig_close(&r);
	}
}

/* ---- multicast */

static const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 9}};

static struct ibv_ah *
ah_to_group(struct rig *r, int from)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.dgid = group}};

	a.grh.sgid_index = (uint8_t)rig_sgid_index(r);
	return ibv_create_ah(r->end[from].pd, &a);
}

/* A datagram to a group comes to the attached end, which can answer by the header in front of it.
 */
static void
test_group(void **state)
{
	struct ibv_ah *ah, *back;
	struct rig_end *to;
	struct ibv_wc wc;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &datagram);
	to = &r.end[1];
	ah = ah_to_group(&r, 0);
	assert_non_null(ah);
	rig_fill(r.end[0].buf, 64, 5);
	rig_recv(&r, 1, 8192, GRH + 64, 70);
	for (int attached = 0; attached < 2; attached++) {
		struct ibv_sge sge = {(uintptr_t)r.end[0].buf, 64, r.end[0].mr->lkey};
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = QKEY}};

		if (attached) {
			assert_int_equal(ibv_attach_mcast(to->qp, &group, 0), 0);
			assert_int_equal(ibv_attach_mcast(r.end[0].qp, &group, 0),
					 0); /* the sender gets none */
		}
		rig_send_on(r.end[0].qp, &wr);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		if (!attached)
			rig_quiet(&r, 1);
	}
	wc = rig_expect(&r, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, GRH + 64);
	assert_int_equal(wc.src_qp, r.end[0].qp->qp_num);
	assert_memory_equal(to->buf + 8192 + GRH, r.end[0].buf, 64);
	back = ibv_create_ah_from_wc(to->pd, &wc, (struct ibv_grh *)(to->buf + 8192), 1);
	assert_non_null(back);
	rig_recv(&r, 0, 8192, GRH + 8, 1);
	send_to(&r, 1, back, QKEY, 8, 2);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_expect(&r, 1, IBV_WC_SUCCESS);
	/* Attached queue pairs are in use; a second time nothing is left to detach. */
	for (int e = 0; e < 2; e++) {
		assert_int_equal(ibv_destroy_qp(r.end[e].qp), EBUSY);
		assert_int_equal(ibv_detach_mcast(r.end[e].qp, &group, 0), 0);
		assert_int_equal(ibv_detach_mcast(r.end[e].qp, &group, 0), EINVAL);
	}
	assert_int_equal(ibv_destroy_ah(back), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	rig_close(&r);
}

/* Groups that are none, and more attachments than a client may have; the device says how many. */
static void
test_group_limits(void **state)
{
	union ibv_gid gid = group, none = {.raw = {0}};
	struct ibv_device_attr a;
	struct rig r;
	int rc = 0, n;

	(void)state;
	rig_open(&r, NULL, &datagram);
	assert_int_equal(ibv_query_device(r.end[0].qp->context, &a), 0);
	assert_in_range(a.max_mcast_qp_attach, 1, a.max_mcast_grp);
	assert_int_equal(ibv_attach_mcast(r.end[0].qp, &none, 0), EINVAL);
	rig_gid(&r, 1, &gid);
	assert_int_equal(ibv_attach_mcast(r.end[0].qp, &gid, 0), EINVAL);
	gid = group;
	for (n = 0; rc == 0; n++) {
		gid.raw[14] = (uint8_t)n;
		rc = ibv_attach_mcast(r.end[0].qp, &gid, 0);
	}
	assert_int_equal(rc, ENOMEM);
	assert_int_equal(n - 1, a.max_mcast_qp_attach);
	while (--n > 0) {
		gid.raw[14] = (uint8_t)(n - 1);
		assert_int_equal(ibv_detach_mcast(r.end[0].qp, &gid, 0), 0);
	}
	rig_close(&r);
}

/* Requests without a completion, whose address handle goes at once, go out all the same. */
static void
test_handle_goes(void **state)
{
	struct ibv_ah *ah;
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.remote = true}, &datagram);
	for (unsigned int i = 0; i < 20; i++) {
		struct ibv_sge sge = {(uintptr_t)r.end[0].buf, 64, r.end[0].mr->lkey};
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1},
				   *bad;

		ah = ah_to(&r, 0, 1);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = r.end[1].qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		rig_recv(&r, 1, 8192, GRH + 64, i);
		assert_int_equal(ibv_post_send(r.end[0].qp, &wr, &bad), 0);
		assert_int_equal(ibv_destroy_ah(ah), 0);
		assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, i);
	}
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipv4),	    cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_loopback),    cmocka_unit_test(test_late),
		cmocka_unit_test(test_lost),	    cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_group),	    cmocka_unit_test(test_group_limits),
		cmocka_unit_test(test_handle_goes), cmocka_unit_test(test_traffic_class),
	};

	return cmocka_run_group_tests_name("ud", tests, NULL, NULL);
}
