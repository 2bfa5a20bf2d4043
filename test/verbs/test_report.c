/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on a dataplane that works: their contents, in parts and by filters, embedded and remote. */
#include "report_bench.h"

#include "control/objects.h"

#include <stdio.h>
#include <string.h>

/* ---- objects that exist from the start */

static void
ports_and_adapters(void **state)
{
	char text[128];

	(void)state;
	report_all_of(urn_report_ports);
	assert_int_equal(report_notes.objects, 2);
	assert_int_equal(report_notes.cards, 0);
	report_has("port name=p0 adapter=urnic0 use= state=up link=yes ");
	report_has("port name=p1 adapter=urnic1 ");
	assert_int_equal(
		report_ask(urn_report_ports, &(struct urn_report_query){.name = "p1"}, NULL), 1);
	assert_int_equal(report_notes.cards, 1);
	report_has("name=p1 ");
	report_has(" tx_packets=");
	report_fails(urn_report_ports, (struct urn_report_query){.name = "p2"},
		     "no port has the name p2");

	report_all_of(urn_report_adapters);
	assert_int_equal(report_notes.objects, 2);
	report_has("adapter name=urnic0 node=a port=p0 link=yes ");
	report_has(" ipv4=10.0.0.2 ipv6= engines=1 clients=1 qps=1 msg_sets=0 am_endpoints=0 "
		   "flows=0 window=256 rto_floor_us=4000 ");
	assert_int_equal(
		report_ask(urn_report_adapters, &(struct urn_report_query){.name = "urnic1"}, NULL),
		1);
	assert_int_equal(report_notes.cards, 1);
	report_has(" sack=yes ");
	snprintf(text, sizeof(text), " max_qp=1024 max_mr=1024 area_bytes=%u ", 64u << 20);
	report_has(text);
	report_fails(urn_report_adapters, (struct urn_report_query){.name = "x"},
		     "no adapter has the name x");

	report_all_of(urn_report_engines);
	assert_int_equal(report_notes.objects, 2);
	report_has("engine engine=1 idle=spin empty_polls=1024 sleep_us=100 adapters=1 switches=0 "
		   "turns=");
	report_fails(urn_report_engines, (struct urn_report_query){.name = "7"},
		     "no engine has the number 7");
	report_all_of(urn_report_version);
	report_has("version urnic=" URN_VERSION " dpdk=DPDK ");
}

static void
neighbours(void **state)
{
	(void)state;
	rig_recv(&report_rig, 1, 0, 64, 1);
	rig_post(&report_rig, 0, IBV_WR_SEND, 0, 64, 0, 2);
	rig_expect(&report_rig, 0, IBV_WC_SUCCESS);
	rig_expect(&report_rig, 1, IBV_WC_SUCCESS);
	report_all_of(urn_report_neighbours);
	report_has("neighbour adapter=urnic0 address=10.0.0.2 mac=");
	report_has(" state=reachable static=no routes=0 peer=");
	assert_true(report_ask(urn_report_neighbours,
			       &(struct urn_report_query){.adapter = "urnic1"}, NULL) > 0);
	assert_null(strstr(report_notes.text, "adapter=urnic0"));
	report_fails(urn_report_neighbours, (struct urn_report_query){.adapter = "x"},
		     "no adapter");
}

static void
counters(void **state)
{
	struct urn_report_query all = {.all = true, .adapter = "urnic1"};
	unsigned int fields = 0;

	(void)state;
	rig_recv(&report_rig, 1, 0, 64, 1);
	rig_post(&report_rig, 0, IBV_WR_SEND, 0, 64, 0, 2);
	rig_expect(&report_rig, 0, IBV_WC_SUCCESS);
	rig_expect(&report_rig, 1, IBV_WC_SUCCESS);
	report_all_of(urn_report_counters);
	assert_int_equal(report_notes.objects, 2);
	report_has("counters adapter=urnic0 rx_packets=");
	report_has(" tx_requests=1 ");
	assert_null(strstr(report_notes.text, "drop_icrc"));
	assert_int_equal(report_ask(urn_report_counters, &all, NULL), 1);
	report_has(" drop_icrc=0 ");
	for (const char *p = report_notes.text; (p = strchr(p, '=')); p++)
		fields++;
	assert_int_equal(fields, 1 + URN_COUNTER_COUNT);
}

/* ---- queue pairs */

static void
queue_pairs(void **state)
{
	uint32_t qpn = report_rig.end[0].qp->qp_num;
	struct urn_report_query one = {.by_qpn = true, .qpn = qpn, .adapter = "urnic0"};
	char text[256];

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		rig_recv(&report_rig, 0, 0, 64, i);
	report_all_of(urn_report_qps);
	assert_int_equal(report_notes.objects, 2);
	snprintf(
		text, sizeof(text),
		"qp qpn=%u adapter=urnic0 client=%u pid=0 program= type=RC state=RTS peer=10.0.0.2 "
		"peer_qpn=%u mtu=1024 sends=0 receives=3 outstanding=0 \n",
		qpn, LIST_FIRST(&report_rig.dp->adapter[0]->clients)->id,
		report_rig.end[1].qp->qp_num);
	report_has(text);
	assert_int_equal(report_ask(urn_report_qps, &one, NULL), 1);
	assert_int_equal(report_notes.objects, 1);
	assert_int_equal(report_notes.cards, 1);
	report_has(" waits_for= engine=0 pd=");
	report_has(" next_psn=16777214 first_sq_psn=16777214 selective=");
	report_has(" retries=7 retries_left=7 ");
	one.qpn = 77;
	report_fails(urn_report_qps, (struct urn_report_query){.by_qpn = true, .qpn = 77},
		     "the number 77");
	report_fails(urn_report_qps, (struct urn_report_query){.by_qpn = true, .qpn = UINT32_MAX},
		     "has the number");
	report_fails(urn_report_qps, (struct urn_report_query){.state = "RTX"}, "RTX is no state");
}

static void
what_is_under_way(void **state)
{
	uint32_t qpn = report_rig.end[0].qp->qp_num;
	struct urn_report_query one = {.by_qpn = true, .qpn = qpn, .adapter = "urnic0"};

	const uint64_t *requests = &report_rig.dp->adapter[0]->shard[0]->tp->c.v[URN_C_TX_REQUESTS];
	uint64_t sent;

	(void)state;
	rig_post(&report_rig, 0, IBV_WR_RDMA_WRITE, 0, 64, 0,
		 2); /* the address is known from here on */
	rig_expect(&report_rig, 0, IBV_WC_SUCCESS);
	sent = *requests;
	rig_post(&report_rig, 0, IBV_WR_RDMA_WRITE, 0, 3000, 0, 2);
	rig_post(&report_rig, 0, IBV_WR_RDMA_WRITE, 0, 3000, 0, 2);
	report_all_of(urn_report_qps);
	report_has(" sends=2 receives=0 outstanding=0 ");
	/* Only node 0 is polled: its packets go out, and none is answered. */
	while (*requests < sent + 6)
		urn_engine_poll(urn_dp_engine(report_rig.dp, 0));
	assert_int_equal(report_ask(urn_report_qps, &one, NULL), 1);
	report_has(" outstanding=6 next_hop=10.0.0.2 waits_for=acknowledgement ");
	rig_expect(&report_rig, 0, IBV_WC_SUCCESS);
	rig_expect(&report_rig, 0, IBV_WC_SUCCESS);
	report_all_of(urn_report_qps);
	report_has(" sends=0 receives=0 outstanding=0 ");
}

enum { MANY = 300 };

/* In parts of any size each object is reported once; filters hold for all parts. */
static void
many_in_parts(void **state)
{
	const struct rig_qp small = {.depth = 1, .sge = 1};
	static struct ibv_qp *qp[MANY];
	char text[64];

	(void)state;
	for (unsigned int i = 0; i < MANY; i++)
		qp[i] = rig_make_qp(&report_rig, (int)(i & 1), &small);
	rig_to(qp[4], IBV_QPS_ERR);
	for (unsigned int rows = 1; rows < 2 * MANY; rows = rows * 3 + 1) {
		struct urn_report_query q = {.rows = rows};

		assert_true(report_ask(urn_report_qps, &q, NULL) >= (MANY + 2) / rows);
		assert_int_equal(report_notes.objects, MANY + 2);
		for (unsigned int i = 0; i < MANY; i++) {
			snprintf(text, sizeof(text), "qp qpn=%u adapter=urnic%u ", qp[i]->qp_num,
				 i & 1);
			report_has(text);
		}
	}
	assert_true(report_ask(urn_report_qps,
			       &(struct urn_report_query){.state = "err", .rows = 2}, NULL) > 0);
	assert_int_equal(report_notes.objects, 1);
	assert_true(report_ask(urn_report_qps,
			       &(struct urn_report_query){.adapter = "urnic1", .rows = 7},
			       NULL) > 0);
	assert_int_equal(report_notes.objects, MANY / 2 + 1);
	assert_true(
		report_ask(urn_report_qps,
			   &(struct urn_report_query){
				   .client = LIST_FIRST(&report_rig.dp->adapter[0]->clients)->id,
				   .rows = 7},
			   NULL) > 0);
	assert_int_equal(report_notes.objects, MANY / 2 + 1);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
}

/* Objects of several engines of an adapter; their numbers tell them apart. */
static void
several_engines(void **state)
{
	const struct rig_qp small = {.depth = 1, .sge = 1};
	struct ibv_cq *cq[2] = {ibv_create_cq(report_rig.end[0].ctx, 8, NULL, NULL, 0),
				ibv_create_cq(report_rig.end[0].ctx, 8, NULL, NULL, 1)};
	struct ibv_qp *qp[8];
	char text[64];

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct rig_qp o = small;

		o.send_cq = o.recv_cq = cq[i & 1];
		qp[i] = rig_make_qp(&report_rig, 0, &o);
	}
	for (unsigned int rows = 1; rows < 12; rows++) {
		assert_true(report_ask(urn_report_qps, &(struct urn_report_query){.rows = rows},
				       NULL) > 0);
		assert_int_equal(report_notes.objects, 10);
	}
	for (unsigned int i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), " engine=%u ", i & 1 ? 2 : 0);
		assert_true(report_ask(urn_report_qps,
				       &(struct urn_report_query){.by_qpn = true,
								  .qpn = qp[i]->qp_num,
								  .adapter = "urnic0"},
				       NULL) > 0);
		report_has(text);
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	}
	assert_int_equal(ibv_destroy_cq(cq[0]), 0);
	assert_int_equal(ibv_destroy_cq(cq[1]), 0);
}

/* ---- the other objects */

static void
queues_and_memory(void **state)
{
	struct ibv_context *second = rig_attach(&report_rig, 0);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(report_rig.end[0].pd, &attr);
	struct ibv_cq *cq[40];
	uint32_t id = LIST_FIRST(&report_rig.dp->adapter[0]->clients)->id;
	char text[128];

	(void)state;
	assert_non_null(srq);
	for (unsigned int i = 0; i < 40; i++)
		cq[i] = ibv_create_cq(second, 8, NULL, NULL, 0);
	for (unsigned int rows = 1; rows < 50; rows += 6) {
		assert_true(report_ask(urn_report_cqs, &(struct urn_report_query){.rows = rows},
				       NULL) > 0);
		assert_int_equal(report_notes.objects, 42);
		assert_true(report_ask(urn_report_cqs,
				       &(struct urn_report_query){.rows = rows, .client = id},
				       NULL) > 0);
		assert_int_equal(report_notes.objects, 40);
	}
	snprintf(text, sizeof(text),
		 "cq adapter=urnic0 client=%u cq=1 engine=0 entries=8 waiting=0 "
		 "written=0 users=0 channel=no events=0 overrun=no ",
		 id);
	report_has(text);
	report_all_of(urn_report_srqs);
	assert_int_equal(report_notes.objects, 1);
	report_has(" entries=16 posted=0 limit=0 users=0 ");
	for (unsigned int rows = 1; rows < 4; rows++) {
		assert_true(report_ask(urn_report_mrs, &(struct urn_report_query){.rows = rows},
				       NULL) > 0);
		assert_int_equal(report_notes.objects, 2);
	}
	report_has(" kind=region pd=1 address=0x");
	snprintf(text, sizeof(text),
		 " bytes=%u access=local-write,write,read,atomic,bind foreign=", RIG_BUF);
	report_has(text);
	for (unsigned int rows = 1; rows < 4; rows++) {
		assert_true(report_ask(urn_report_clients, &(struct urn_report_query){.rows = rows},
				       NULL) > 0);
		assert_int_equal(report_notes.objects, 3);
	}
	snprintf(text, sizeof(text),
		 "client client=%u adapter=urnic0 pid=0 uid=0 program= remote=no qps=0 "
		 "cqs=40 srqs=0 channels=0 ",
		 id);
	report_has(text);
	report_fails(urn_report_clients, (struct urn_report_query){.client = id + 100},
		     "no client has the number");
	for (unsigned int i = 0; i < 40; i++)
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_device(second), 0);
}

/* A control call that does not end makes a report fail instead of waiting for ever. */
static void
busy_adapter(void **state)
{
	(void)state;
	pthread_mutex_lock(&report_rig.dp->adapter[1]->lock);
	report_fails(urn_report_cqs, (struct urn_report_query){.adapter = "urnic1"},
		     "urnic1 is busy");
	pthread_mutex_unlock(&report_rig.dp->adapter[1]->lock);
	report_all_of(urn_report_cqs);
	assert_int_equal(report_notes.objects, 2);
}

int
main(void)
{
#define TEST(f, s) cmocka_unit_test_setup_teardown(f, s, report_teardown)
	const struct CMUnitTest tests[] = {
		TEST(ports_and_adapters, report_setup),
		TEST(neighbours, report_setup),
		TEST(counters, report_setup),
		TEST(queue_pairs, report_setup),
		TEST(what_is_under_way, report_setup),
		TEST(many_in_parts, report_setup),
		TEST(several_engines, report_setup_engines),
		TEST(queues_and_memory, report_setup),
		TEST(busy_adapter, report_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
