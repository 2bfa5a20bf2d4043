/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on a dataplane that works: their contents, in parts and by filters, embedded and remote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/objects.h"
#include "report/report.h"
#include "server/server.h"
#include "rig.h"
#include <urnic/cm.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct rig rig;
static struct urn_report_source src;

/* ---- a sink that remembers: "qp qpn=2 state=RTS \n" for each object */

static struct notes {
	struct urn_report_sink sink;
	char text[1 << 20];
	size_t len;
	unsigned int objects, cards;
	bool inside;
} notes;

static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	notes.len +=
		(size_t)vsnprintf(notes.text + notes.len, sizeof(notes.text) - notes.len, fmt, ap);
	va_end(ap);
	assert_true(notes.len < sizeof(notes.text));
}

static void
on_begin(struct urn_report_sink *s, const char *kind, bool card)
{
	(void)s;
	assert_false(notes.inside);
	notes.inside = true;
	notes.objects++;
	notes.cards += card;
	note("%s ", kind);
}

static void
on_str(struct urn_report_sink *s, const char *key, const char *value)
{
	(void)s;
	assert_true(notes.inside);
	note("%s=%s ", key, value);
}

static void
on_u64(struct urn_report_sink *s, const char *key, uint64_t value)
{
	(void)s;
	assert_true(notes.inside);
	note("%s=%" PRIu64 " ", key, value);
}

static void
on_flag(struct urn_report_sink *s, const char *key, bool value)
{
	on_str(s, key, value ? "yes" : "no");
}

static void
on_end(struct urn_report_sink *s)
{
	(void)s;
	assert_true(notes.inside);
	notes.inside = false;
	note("\n");
}

/* Make a whole report, over as many parts as it takes. returns: the parts; 0: it failed, with err */
static unsigned int
ask(urn_report_fn *fn, struct urn_report_query *q, struct urn_err *err)
{
	unsigned int parts = 0;
	int rc;

	memset(&notes, 0, sizeof(notes));
	notes.sink = (struct urn_report_sink){on_begin, on_str, on_u64, on_flag, on_end};
	do {
		rc = fn(&src, q, &notes.sink, err);
		parts++;
		assert_true(parts < 100000);
		assert_false(notes.inside);
	} while (rc == URN_REPORT_MORE);
	return rc == URN_REPORT_DONE ? parts : 0;
}

static void
all_of(urn_report_fn *fn)
{
	struct urn_report_query q = {0};
	struct urn_err err = {{0}};

	if (ask(fn, &q, &err) == 0)
		fail_msg("%s", err.text);
}

static void
has(const char *text)
{
	if (!strstr(notes.text, text))
		fail_msg("no '%s' in\n%s", text, notes.text);
}

static void
fails(urn_report_fn *fn, struct urn_report_query q, const char *words)
{
	struct urn_err err = {{0}};

	assert_int_equal(ask(fn, &q, &err), 0);
	assert_int_equal(notes.objects, 0);
	if (!strstr(err.text, words))
		fail_msg("no '%s' in '%s'", words, err.text);
}

static void
begin(bool remote, unsigned int engines)
{
	const struct rig_config cfg = {.remote = remote, .engines = engines};

	rig_open(&rig, &cfg, NULL);
	src = (struct urn_report_source){
		.dp = rig.dp,
		.port = rig.port,
		.ports = RIG_NODES,
		.server = rig.server,
	};
}

static int
setup(void **state)
{
	(void)state;
	begin(false, 0);
	return 0;
}

static int
setup_remote(void **state)
{
	(void)state;
	begin(true, 0);
	return 0;
}

static int
setup_engines(void **state)
{
	(void)state;
	begin(false, 4);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* ---- objects that exist from the start */

static void
ports_and_adapters(void **state)
{
	char text[128];

	(void)state;
	all_of(urn_report_ports);
	assert_int_equal(notes.objects, 2);
	assert_int_equal(notes.cards, 0);
	has("port name=p0 adapter=urnic0 state=up link=yes ");
	has("port name=p1 adapter=urnic1 ");
	assert_int_equal(ask(urn_report_ports, &(struct urn_report_query){.name = "p1"}, NULL), 1);
	assert_int_equal(notes.cards, 1);
	has("name=p1 ");
	has(" tx_packets=");
	fails(urn_report_ports, (struct urn_report_query){.name = "p2"}, "no port has the name p2");

	all_of(urn_report_adapters);
	assert_int_equal(notes.objects, 2);
	has("adapter name=urnic0 node=a port=p0 link=yes ");
	has(" ipv4=10.0.0.2 ipv6= engines=1 clients=1 qps=1 window=256 rto_floor_us=4000 ");
	assert_int_equal(
		ask(urn_report_adapters, &(struct urn_report_query){.name = "urnic1"}, NULL), 1);
	assert_int_equal(notes.cards, 1);
	has(" sack=yes ");
	snprintf(text, sizeof(text), " max_qp=1024 max_mr=1024 area_bytes=%u ", 64u << 20);
	has(text);
	fails(urn_report_adapters, (struct urn_report_query){.name = "x"},
	      "no adapter has the name x");

	all_of(urn_report_engines);
	assert_int_equal(notes.objects, 2);
	has("engine engine=1 idle=spin empty_polls=1024 sleep_us=100 adapters=1 switches=0 turns=");
	fails(urn_report_engines, (struct urn_report_query){.name = "7"},
	      "no engine has the number 7");
	all_of(urn_report_version);
	has("version urnic=" URN_VERSION " dpdk=DPDK ");
}

static void
neighbours(void **state)
{
	(void)state;
	rig_recv(&rig, 1, 0, 64, 1);
	rig_post(&rig, 0, IBV_WR_SEND, 0, 64, 0, 2);
	rig_expect(&rig, 0, IBV_WC_SUCCESS);
	rig_expect(&rig, 1, IBV_WC_SUCCESS);
	all_of(urn_report_neighbours);
	has("neighbour adapter=urnic0 address=10.0.0.2 mac=");
	has(" state=reachable static=no peer=");
	assert_true(ask(urn_report_neighbours, &(struct urn_report_query){.adapter = "urnic1"},
			NULL) > 0);
	assert_null(strstr(notes.text, "adapter=urnic0"));
	fails(urn_report_neighbours, (struct urn_report_query){.adapter = "x"}, "no adapter");
}

static void
counters(void **state)
{
	struct urn_report_query all = {.all = true, .adapter = "urnic1"};
	unsigned int fields = 0;

	(void)state;
	rig_recv(&rig, 1, 0, 64, 1);
	rig_post(&rig, 0, IBV_WR_SEND, 0, 64, 0, 2);
	rig_expect(&rig, 0, IBV_WC_SUCCESS);
	rig_expect(&rig, 1, IBV_WC_SUCCESS);
	all_of(urn_report_counters);
	assert_int_equal(notes.objects, 2);
	has("counters adapter=urnic0 rx_packets=");
	has(" tx_requests=1 ");
	assert_null(strstr(notes.text, "drop_icrc"));
	assert_int_equal(ask(urn_report_counters, &all, NULL), 1);
	has(" drop_icrc=0 ");
	for (const char *p = notes.text; (p = strchr(p, '=')); p++)
		fields++;
	assert_int_equal(fields, 1 + URN_COUNTER_COUNT);
}

/* ---- queue pairs */

static void
queue_pairs(void **state)
{
	uint32_t qpn = rig.end[0].qp->qp_num;
	struct urn_report_query one = {.by_qpn = true, .qpn = qpn, .adapter = "urnic0"};
	char text[256];

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		rig_recv(&rig, 0, 0, 64, i);
	all_of(urn_report_qps);
	assert_int_equal(notes.objects, 2);
	snprintf(text, sizeof(text),
		 "qp qpn=%u adapter=urnic0 client=%u type=RC state=RTS peer=10.0.0.2 "
		 "peer_qpn=%u mtu=1024 sends=0 receives=3 outstanding=0 \n",
		 qpn, rig.dp->adapter[0]->clients->id, rig.end[1].qp->qp_num);
	has(text);
	assert_int_equal(ask(urn_report_qps, &one, NULL), 1);
	assert_int_equal(notes.objects, 1);
	assert_int_equal(notes.cards, 1);
	has(" waits_for= engine=0 pd=");
	has(" next_psn=16777214 first_sq_psn=16777214 selective=");
	has(" retries=7 retries_left=7 ");
	one.qpn = 77;
	fails(urn_report_qps, (struct urn_report_query){.by_qpn = true, .qpn = 77},
	      "the number 77");
	fails(urn_report_qps, (struct urn_report_query){.by_qpn = true, .qpn = UINT32_MAX},
	      "has the number");
	fails(urn_report_qps, (struct urn_report_query){.state = "RTX"}, "RTX is no state");
}

static void
what_is_under_way(void **state)
{
	uint32_t qpn = rig.end[0].qp->qp_num;
	struct urn_report_query one = {.by_qpn = true, .qpn = qpn, .adapter = "urnic0"};

	const uint64_t *requests = &rig.dp->adapter[0]->shard[0]->tp->c.v[URN_C_TX_REQUESTS];
	uint64_t sent;

	(void)state;
	rig_post(&rig, 0, IBV_WR_RDMA_WRITE, 0, 64, 0, 2); /* the address is known from here on */
	rig_expect(&rig, 0, IBV_WC_SUCCESS);
	sent = *requests;
	rig_post(&rig, 0, IBV_WR_RDMA_WRITE, 0, 3000, 0, 2);
	rig_post(&rig, 0, IBV_WR_RDMA_WRITE, 0, 3000, 0, 2);
	all_of(urn_report_qps);
	has(" sends=2 receives=0 outstanding=0 ");
	/* Only node 0 is polled: its packets go out, and none is answered. */
	while (*requests < sent + 6)
		urn_engine_poll(urn_dp_engine(rig.dp, 0));
	assert_int_equal(ask(urn_report_qps, &one, NULL), 1);
	has(" outstanding=6 waits_for=acknowledgement ");
	rig_expect(&rig, 0, IBV_WC_SUCCESS);
	rig_expect(&rig, 0, IBV_WC_SUCCESS);
	all_of(urn_report_qps);
	has(" sends=0 receives=0 outstanding=0 ");
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
		qp[i] = rig_make_qp(&rig, (int)(i & 1), &small);
	rig_to(qp[4], IBV_QPS_ERR);
	for (unsigned int rows = 1; rows < 2 * MANY; rows = rows * 3 + 1) {
		struct urn_report_query q = {.rows = rows};

		assert_true(ask(urn_report_qps, &q, NULL) >= (MANY + 2) / rows);
		assert_int_equal(notes.objects, MANY + 2);
		for (unsigned int i = 0; i < MANY; i++) {
			snprintf(text, sizeof(text), "qp qpn=%u adapter=urnic%u ", qp[i]->qp_num,
				 i & 1);
			has(text);
		}
	}
	assert_true(ask(urn_report_qps, &(struct urn_report_query){.state = "err", .rows = 2},
			NULL) > 0);
	assert_int_equal(notes.objects, 1);
	assert_true(ask(urn_report_qps, &(struct urn_report_query){.adapter = "urnic1", .rows = 7},
			NULL) > 0);
	assert_int_equal(notes.objects, MANY / 2 + 1);
	assert_true(ask(urn_report_qps,
			&(struct urn_report_query){.client = rig.dp->adapter[0]->clients->id,
						   .rows = 7},
			NULL) > 0);
	assert_int_equal(notes.objects, MANY / 2 + 1);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
}

/* Objects of several engines of an adapter; their numbers tell them apart. */
static void
several_engines(void **state)
{
	const struct rig_qp small = {.depth = 1, .sge = 1};
	struct ibv_cq *cq[2] = {ibv_create_cq(rig.end[0].ctx, 8, NULL, NULL, 0),
				ibv_create_cq(rig.end[0].ctx, 8, NULL, NULL, 1)};
	struct ibv_qp *qp[8];
	char text[64];

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct rig_qp o = small;

		o.send_cq = o.recv_cq = cq[i & 1];
		qp[i] = rig_make_qp(&rig, 0, &o);
	}
	for (unsigned int rows = 1; rows < 12; rows++) {
		assert_true(ask(urn_report_qps, &(struct urn_report_query){.rows = rows}, NULL) >
			    0);
		assert_int_equal(notes.objects, 10);
	}
	for (unsigned int i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), " engine=%u ", i & 1 ? 2 : 0);
		assert_true(ask(urn_report_qps,
				&(struct urn_report_query){
					.by_qpn = true, .qpn = qp[i]->qp_num, .adapter = "urnic0"},
				NULL) > 0);
		has(text);
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	}
	assert_int_equal(ibv_destroy_cq(cq[0]), 0);
	assert_int_equal(ibv_destroy_cq(cq[1]), 0);
}

/* ---- the other objects */

static void
queues_and_memory(void **state)
{
	struct ibv_context *second = rig_attach(&rig, 0);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(rig.end[0].pd, &attr);
	struct ibv_cq *cq[40];
	uint32_t id = rig.dp->adapter[0]->clients->id;
	char text[128];

	(void)state;
	assert_non_null(srq);
	for (unsigned int i = 0; i < 40; i++)
		cq[i] = ibv_create_cq(second, 8, NULL, NULL, 0);
	for (unsigned int rows = 1; rows < 50; rows += 6) {
		assert_true(ask(urn_report_cqs, &(struct urn_report_query){.rows = rows}, NULL) >
			    0);
		assert_int_equal(notes.objects, 42);
		assert_true(ask(urn_report_cqs,
				&(struct urn_report_query){.rows = rows, .client = id}, NULL) > 0);
		assert_int_equal(notes.objects, 40);
	}
	snprintf(text, sizeof(text),
		 "cq adapter=urnic0 client=%u cq=1 engine=0 entries=8 waiting=0 "
		 "written=0 users=0 channel=no events=0 overrun=no ",
		 id);
	has(text);
	all_of(urn_report_srqs);
	assert_int_equal(notes.objects, 1);
	has(" entries=16 posted=0 limit=0 users=0 ");
	for (unsigned int rows = 1; rows < 4; rows++) {
		assert_true(ask(urn_report_mrs, &(struct urn_report_query){.rows = rows}, NULL) >
			    0);
		assert_int_equal(notes.objects, 2);
	}
	has(" kind=region pd=1 address=0x");
	snprintf(text, sizeof(text),
		 " bytes=%u access=local-write,write,read,atomic,bind foreign=", RIG_BUF);
	has(text);
	for (unsigned int rows = 1; rows < 4; rows++) {
		assert_true(ask(urn_report_clients, &(struct urn_report_query){.rows = rows},
				NULL) > 0);
		assert_int_equal(notes.objects, 3);
	}
	snprintf(text, sizeof(text),
		 "client client=%u adapter=urnic0 pid=0 uid=0 program= remote=no qps=0 "
		 "cqs=40 srqs=0 channels=0 ",
		 id);
	has(text);
	fails(urn_report_clients, (struct urn_report_query){.client = id + 100},
	      "no client has the number");
	for (unsigned int i = 0; i < 40; i++)
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_device(second), 0);
}

/* A client goes that a list had reached: the list goes on with the next client, from its beginning. */
static void
clients_go_meanwhile(void **state)
{
	struct urn_report_query q = {.rows = 3};
	struct ibv_context *second = rig_attach(&rig, 0);
	struct ibv_cq *cq[8];
	int rc;

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		cq[i] = ibv_create_cq(second, 8, NULL, NULL, 0);
	memset(&notes, 0, sizeof(notes));
	notes.sink = (struct urn_report_sink){on_begin, on_str, on_u64, on_flag, on_end};
	assert_int_equal(urn_report_cqs(&src, &q, &notes.sink, NULL), URN_REPORT_MORE);
	assert_int_equal(notes.objects, 3);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	assert_int_equal(ibv_close_device(second), 0);
	while ((rc = urn_report_cqs(&src, &q, &notes.sink, NULL)) == URN_REPORT_MORE)
		;
	assert_int_equal(rc, URN_REPORT_DONE);
	assert_int_equal(notes.objects, 5);
}

/* A control call that does not end makes a report fail instead of waiting for ever. */
static void
busy_adapter(void **state)
{
	(void)state;
	pthread_mutex_lock(&rig.dp->adapter[1]->lock);
	fails(urn_report_cqs, (struct urn_report_query){.adapter = "urnic1"}, "urnic1 is busy");
	pthread_mutex_unlock(&rig.dp->adapter[1]->lock);
	all_of(urn_report_cqs);
	assert_int_equal(notes.objects, 2);
}

/* ---- clients in other processes */

static void
remote_clients(void **state)
{
	struct ibv_context *second = rig_attach(&rig, 1);
	uint32_t id = rig.dp->adapter[1]->clients->id;
	struct urn_server_counters c;
	struct urn_err err = {{0}};
	char text[128];

	(void)state;
	all_of(urn_report_clients);
	assert_int_equal(notes.objects, 3);
	snprintf(text, sizeof(text),
		 "client client=%u adapter=urnic1 pid=%d uid=%u program=test_verbs_repo "
		 "remote=yes ",
		 id, (int)getpid(), getuid());
	has(text);
	all_of(urn_report_server);
	has("server clients=3 ");

	assert_int_equal(urn_report_kick(&src, id, &err), 0);
	for (time_t end = time(NULL) + 20; time(NULL) < end;) {
		urn_server_counters(rig.server, &c);
		if (c.clients == 2)
			break;
		usleep(1000);
	}
	assert_int_equal(c.clients, 2);
	assert_int_equal(urn_report_kick(&src, id, &err), -1);
	assert_non_null(strstr(err.text, "no client has the number"));
	all_of(urn_report_clients);
	assert_int_equal(notes.objects, 2);
	(void)ibv_close_device(second);
	/* The other clients did not notice. */
	rig_recv(&rig, 1, 0, 64, 1);
	rig_post(&rig, 0, IBV_WR_SEND, 0, 64, 0, 2);
	rig_expect(&rig, 0, IBV_WC_SUCCESS);
	rig_expect(&rig, 1, IBV_WC_SUCCESS);
}

static void
limits(void **state)
{
	const struct urn_server_config cfg = {
		.clients = 10,
		.clients_per_uid = 5,
		.per_client = {.max = {[URN_QUOTA_QP] = 3}},
		.per_uid = {.max = {[URN_QUOTA_QP] = UINT64_MAX, [URN_QUOTA_PINNED] = 4096,
				    [URN_QUOTA_AREA] = 1 << 30}},
	};

	(void)state;
	src.server_config = &cfg;
	all_of(urn_report_limits);
	has("limit limit=clients per_client=1 per_uid=5 total=10 ");
	has("limit limit=qp per_client=3 per_uid=unlimited total=unlimited ");
	has("limit limit=pinned per_client=unlimited per_uid=4096 ");
	has("limit limit=area per_client=unlimited per_uid=1073741824 total=unlimited ");
	for (int i = 0; i < 3; i++) { /* each limit that can be set is reported */
		static const char *const more[] = {"channels", "shares", "shared"};
		char want[64];

		snprintf(want, sizeof(want), "limit limit=%s per_client=unlimited ", more[i]);
		has(want);
	}
}

/*
 * The use of each limit is reported beside it: by the client that has most, or by one; it goes up
 * and down with the objects.
 */
static void
limits_used(void **state)
{
	const struct urn_server_config cfg = {.clients = 10, .per_client = {.max = {[URN_QUOTA_QP] = 9}}};
	uint32_t few = rig.dp->adapter[1]->clients->id, many = rig.dp->adapter[0]->clients->id;
	struct urn_report_query q = {.client = few};
	const struct rig_qp small = {.depth = 1};
	struct urn_cm_end *cm;
	struct ibv_qp *qp[3];
	uint32_t id;

	(void)state;
	src.server_config = &cfg;
	for (int i = 0; i < 3; i++)
		qp[i] = rig_make_qp(&rig, 0, &small);
	assert_int_equal(urn_cm_end_open(&cm, rig.end[0].ctx), 0);
	assert_int_equal(urn_cm_end_listen(cm, 77, 0, 0, &id), 0);
	all_of(urn_report_limits);
	has("limit=clients per_client=1 per_uid=unlimited total=10 used_client=1 used_uid=2 used_total=2 ");
	has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=4 used_uid=5 used_total=5 ");
	has("limit=cm per_client=unlimited per_uid=unlimited total=unlimited used_client=1 used_uid=1 used_total=1 ");
	has("limit=mr per_client=unlimited per_uid=unlimited total=unlimited used_client=1 used_uid=2 used_total=2 ");
	assert_int_equal(ask(urn_report_limits, &q, NULL), 1);
	has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=1 used_uid=5 used_total=5 ");
	has("limit=cm per_client=unlimited per_uid=unlimited total=unlimited used_client=0 used_uid=1 used_total=1 ");
	q.client = many;
	assert_int_equal(ask(urn_report_limits, &q, NULL), 1);
	has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=4 used_uid=5 used_total=5 ");
	fails(urn_report_limits, (struct urn_report_query){.client = many + few}, "no client has the number");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(urn_cm_end_destroy(cm, id), 0);
	urn_cm_end_close(cm);
	all_of(urn_report_limits);
	has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=1 used_uid=2 used_total=2 ");
	has("limit=cm per_client=unlimited per_uid=unlimited total=unlimited used_client=0 used_uid=0 used_total=0 ");
}

int
main(void)
{
#define TEST(f, s) cmocka_unit_test_setup_teardown(f, s, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ports_and_adapters, setup),
		TEST(neighbours, setup),
		TEST(counters, setup),
		TEST(queue_pairs, setup),
		TEST(what_is_under_way, setup),
		TEST(many_in_parts, setup),
		TEST(several_engines, setup_engines),
		TEST(queues_and_memory, setup),
		TEST(clients_go_meanwhile, setup),
		TEST(busy_adapter, setup),
		TEST(remote_clients, setup_remote),
		TEST(limits, setup),
		TEST(limits_used, setup_remote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
