/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles, and answering the sender of a datagram (doc/reference/wire.md Lengths: the 40 bytes before a UD payload). */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

static const uint8_t src_ip[4] = {192, 0, 2, 9}, our_ip[4] = {192, 0, 2, 1};

static void
ah_passes_all(void **state)
{
	struct env *e = *state;
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 3, .hop_limit = 5,
		.traffic_class = 6, .flow_label = 0x54321}};
	const struct urn_abi_av *av = &e->f->last.create_ah.av;
	struct ibv_ah *ah;

	memset(a.grh.dgid.raw, 0x2a, 16);
	ah = ibv_create_ah(e->pd, &a);
	assert_non_null(ah);
	assert_int_equal(e->f->last.create_ah.pd, e->pd->handle);
	assert_int_equal(av->sgid_index, 3);
	assert_int_equal(av->hop_limit, 5);
	assert_int_equal(av->traffic_class, 6);
	assert_int_equal(av->flow_label, 0x54321);
	assert_int_equal(av->port_num, 1);
	assert_memory_equal(av->dgid, a.grh.dgid.raw, 16);
	assert_int_equal(ah->handle, 0x77);
	fake_fail_next(e->f, URN_CTL_DESTROY_AH, EIO, "x");
	assert_int_equal(ibv_destroy_ah(ah), EIO);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(e->f->last.handle, 0x77);
	a.is_global = 0;
	errno = 0;
	assert_null(ibv_create_ah(e->pd, &a));
	assert_int_equal(errno, EINVAL);
	a.is_global = 1;
	fake_fail_next(e->f, URN_CTL_CREATE_AH, EINVAL, "no such GID");
	assert_null(ibv_create_ah(e->pd, &a));
}

/* The 40 bytes with an IPv4 header in the last 20, and a right checksum. */
static void
fill_ipv4(uint8_t *grh)
{
	uint8_t *h = grh + 20;
	uint32_t sum = 0;
	int i;

	memset(grh, 0x66, 20); /* unused bytes may hold anything, even what looks like IPv6 */
	memset(h, 0, 20);
	h[0] = 0x45;
	h[1] = 0x88; /* type of service */
	h[8] = 64;
	h[9] = 17;
	memcpy(h + 12, src_ip, 4);
	memcpy(h + 16, our_ip, 4);
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)h[i] << 8 | h[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	h[10] = (uint8_t)(~sum >> 8);
	h[11] = (uint8_t)~sum;
}

static void
set_gid_ipv4(struct env *e, int index, const uint8_t *ip)
{
	memset(e->f->gid[index], 0, 16);
	e->f->gid[index][10] = e->f->gid[index][11] = 0xff;
	memcpy(e->f->gid[index] + 12, ip, 4);
}

static void
from_wc_ipv4(void **state)
{
	struct env *e = *state;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .src_qp = 5};
	struct ibv_ah_attr a;
	struct ibv_ah *ah;
	union {
		struct ibv_grh grh;
		uint8_t b[40];
	} u;

	fill_ipv4(u.b);
	set_gid_ipv4(e, 2, our_ip);
	assert_int_equal(ibv_init_ah_from_wc(e->c, 1, &wc, &u.grh, &a), 0);
	assert_int_equal(a.is_global, 1);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(a.grh.sgid_index, 2);
	assert_int_equal(a.grh.traffic_class, 0x88);
	assert_int_equal(a.grh.dgid.raw[11], 0xff);
	assert_memory_equal(a.grh.dgid.raw + 12, src_ip, 4);
	ah = ibv_create_ah_from_wc(e->pd, &wc, &u.grh, 1);
	assert_non_null(ah);
	assert_memory_equal(e->f->last.create_ah.av.dgid + 12, src_ip, 4);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void
from_wc_ipv6(void **state)
{
	struct env *e = *state;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_ah_attr a;
	union {
		struct ibv_grh grh;
		uint8_t b[40];
	} u;

	memset(u.b, 0, sizeof(u.b));
	u.b[0] = 0x6a; /* version 6, traffic class 0xa5, flow label 0x12345 */
	u.b[1] = 0x51;
	u.b[2] = 0x23;
	u.b[3] = 0x45;
	memset(u.b + 8, 0xaa, 16);
	memset(u.b + 24, 0xbb, 16);
	memset(e->f->gid[1], 0xbb, 16);
	assert_int_equal(ibv_init_ah_from_wc(e->c, 1, &wc, &u.grh, &a), 0);
	assert_int_equal(a.grh.sgid_index, 1);
	assert_int_equal(a.grh.traffic_class, 0xa5);
	assert_int_equal(a.grh.flow_label, 0x12345);
	assert_memory_equal(a.grh.dgid.raw, u.b + 8, 16);
}

static void
from_wc_refuses(void **state)
{
	struct env *e = *state;
	struct ibv_wc wc = {.wc_flags = 0};
	struct ibv_ah_attr a;
	union {
		struct ibv_grh grh;
		uint8_t b[40];
	} u;

	fill_ipv4(u.b);
	set_gid_ipv4(e, 2, our_ip);
	assert_int_not_equal(ibv_init_ah_from_wc(e->c, 1, &wc, &u.grh, &a), 0);
	wc.wc_flags = IBV_WC_GRH;
	u.b[28] ^= 1; /* the checksum is wrong now */
	u.b[0] = 0;
	assert_int_not_equal(ibv_init_ah_from_wc(e->c, 1, &wc, &u.grh, &a), 0);
	assert_int_equal(errno, EINVAL);
	fill_ipv4(u.b);
	set_gid_ipv4(e, 2, src_ip); /* not sent to our address */
	assert_int_not_equal(ibv_init_ah_from_wc(e->c, 1, &wc, &u.grh, &a), 0);
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_create_ah_from_wc(e->pd, &wc, &u.grh, 1));
}

/* Times that the library yielded the core, as it does while it waits. */
static unsigned int yields;

int
sched_yield(void)
{
	yields++;
	return 0;
}

/* A dataplane whose core others hold: it takes the request after a tenth of a second. */
static void *
take_late(void *arg)
{
	struct env *e = arg;

	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	fake_retire(e->f, e->qpn, 1);
	return NULL;
}

/* A handle goes after the requests that were posted with it, however late the dataplane takes them. */
static void
destroy_waits(void **state)
{
	struct env *e = *state;
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_ah *ah = ibv_create_ah(e->pd, &a);
	pthread_t late;

	assert_non_null(ah);
	wr.wr.ud.ah = ah;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	assert_int_equal(pthread_create(&late, NULL, take_late, e), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_null(fake_send_wqe(e->f, e->qpn));
	assert_int_equal(pthread_join(late, NULL), 0);
}

/* A queue in SQD keeps nobody waiting; one that nobody serves keeps a program waiting once. */
static void
destroy_of_still_queue(void **state)
{
	struct env *e = *state;
	struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD};
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_ah *ah[4];

	for (unsigned int i = 0; i < 4; i++) {
		ah[i] = ibv_create_ah(e->pd, &a);
		assert_non_null(ah[i]);
	}
	wr.wr.ud.ah = ah[0];
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	yields = 0;
	assert_int_equal(ibv_destroy_ah(ah[0]), 0);
	assert_int_not_equal(yields, 0);
	yields = 0;
	assert_int_equal(ibv_destroy_ah(ah[1]), 0);
	assert_int_equal(yields, 0);
	/* A request went, and another one is waited for. */
	wr.wr.ud.ah = ah[3];
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	fake_retire(e->f, e->qpn, 1);
	assert_int_equal(ibv_destroy_ah(ah[2]), 0);
	assert_int_not_equal(yields, 0);
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	fake_retire(e->f, e->qpn, 1);
	assert_int_equal(ibv_modify_qp(e->qp, &sqd, IBV_QP_STATE), 0);
	yields = 0;
	assert_int_equal(ibv_destroy_ah(ah[3]), 0);
	assert_int_equal(yields, 0);
	assert_non_null(fake_send_wqe(e->f, e->qpn));
}

#define UD(fn) cmocka_unit_test_setup_teardown(fn, env_setup_ud, env_teardown)
#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(ah_passes_all), RC(from_wc_ipv4), RC(from_wc_ipv6), RC(from_wc_refuses),
		UD(destroy_waits), UD(destroy_of_still_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
