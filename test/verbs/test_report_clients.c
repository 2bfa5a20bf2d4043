/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on programs: clients that come and go, those of other processes, and their limits. */
#include "report_bench.h"

#include "control/objects.h"
#include "server/server.h"
#include <urnic/cm.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A client goes that a list had reached: the list goes on with the next client, from its beginning.
 */
static void
clients_go_meanwhile(void **state)
{
	struct urn_report_query q = {.rows = 3};
	struct ibv_context *second = rig_attach(&report_rig, 0);
	struct ibv_cq *cq[8];
	int rc;

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		cq[i] = ibv_create_cq(second, 8, NULL, NULL, 0);
	report_forget();
	assert_int_equal(urn_report_cqs(&report_src, &q, &report_notes.sink, NULL),
			 URN_REPORT_MORE);
	assert_int_equal(report_notes.objects, 3);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	assert_int_equal(ibv_close_device(second), 0);
	while ((rc = urn_report_cqs(&report_src, &q, &report_notes.sink, NULL)) == URN_REPORT_MORE)
		;
	assert_int_equal(rc, URN_REPORT_DONE);
	assert_int_equal(report_notes.objects, 5);
}

/* ---- clients in other processes */

static void
remote_clients(void **state)
{
	struct ibv_context *second = rig_attach(&report_rig, 1);
	uint32_t id = LIST_FIRST(&report_rig.dp->adapter[1]->clients)->id;
	struct urn_server_counters c;
	struct urn_err err = {{0}};
	char text[128];

	(void)state;
	report_all_of(urn_report_clients);
	assert_int_equal(report_notes.objects, 3);
	snprintf(text, sizeof(text),
		 "client client=%u adapter=urnic1 pid=%d uid=%u program=test_verbs_repo "
		 "remote=yes ",
		 id, (int)getpid(), getuid());
	report_has(text);
	report_all_of(urn_report_server);
	report_has("server clients=3 ");

	assert_int_equal(urn_report_kick(&report_src, id, &err), 0);
	for (time_t end = time(NULL) + 20; time(NULL) < end;) {
		urn_server_counters(report_rig.server, &c);
		if (c.clients == 2)
			break;
		usleep(1000);
	}
	assert_int_equal(c.clients, 2);
	assert_int_equal(urn_report_kick(&report_src, id, &err), -1);
	assert_non_null(strstr(err.text, "no client has the number"));
	report_all_of(urn_report_clients);
	assert_int_equal(report_notes.objects, 2);
	(void)ibv_close_device(second);
	/* The other clients did not notice. */
	rig_recv(&report_rig, 1, 0, 64, 1);
	rig_post(&report_rig, 0, IBV_WR_SEND, 0, 64, 0, 2);
	rig_expect(&report_rig, 0, IBV_WC_SUCCESS);
	rig_expect(&report_rig, 1, IBV_WC_SUCCESS);
}

static void
limits(void **state)
{
	const struct urn_server_config cfg = {
		.clients = 10,
		.clients_per_uid = 5,
		.per_client = {.max = {[URN_QUOTA_QP] = 3}},
		.per_uid = {.max = {[URN_QUOTA_QP] = UINT64_MAX,
				    [URN_QUOTA_PINNED] = 4096,
				    [URN_QUOTA_AREA] = 1 << 30}},
	};

	(void)state;
	report_src.server_config = &cfg;
	report_all_of(urn_report_limits);
	report_has("limit limit=clients per_client=1 per_uid=5 total=10 ");
	report_has("limit limit=qp per_client=3 per_uid=unlimited total=unlimited ");
	report_has("limit limit=pinned per_client=unlimited per_uid=4096 ");
	report_has("limit limit=area per_client=unlimited per_uid=1073741824 total=unlimited ");
	for (int i = 0; i < 3; i++) { /* each limit that can be set is reported */
		static const char *const more[] = {"channels", "shares", "shared"};
		char want[64];

		snprintf(want, sizeof(want), "limit limit=%s per_client=unlimited ", more[i]);
		report_has(want);
	}
}

/*
 * The use of each limit is reported beside it: by the client that has most, or by one; it goes up
 * and down with the objects.
 */
static void
limits_used(void **state)
{
	const struct urn_server_config cfg = {.clients = 10,
					      .per_client = {.max = {[URN_QUOTA_QP] = 9}}};
	uint32_t few = LIST_FIRST(&report_rig.dp->adapter[1]->clients)->id,
		 many = LIST_FIRST(&report_rig.dp->adapter[0]->clients)->id;
	struct urn_report_query q = {.client = few};
	const struct rig_qp small = {.depth = 1};
	struct urn_cm_end *cm;
	struct ibv_qp *qp[3];
	uint32_t id;

	(void)state;
	report_src.server_config = &cfg;
	for (int i = 0; i < 3; i++)
		qp[i] = rig_make_qp(&report_rig, 0, &small);
	assert_int_equal(urn_cm_end_open(&cm, report_rig.end[0].ctx), 0);
	assert_int_equal(urn_cm_end_listen(cm, 77, 0, 0, &id), 0);
	report_all_of(urn_report_limits);
	report_has("limit=clients per_client=1 per_uid=unlimited total=10 used_client=1 used_uid=2 "
		   "used_total=2 ");
	report_has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=4 "
		   "used_uid=5 used_total=5 ");
	report_has("limit=cm per_client=unlimited per_uid=unlimited total=unlimited used_client=1 "
		   "used_uid=1 used_total=1 ");
	report_has("limit=mr per_client=unlimited per_uid=unlimited total=unlimited used_client=1 "
		   "used_uid=2 used_total=2 ");
	assert_int_equal(report_ask(urn_report_limits, &q, NULL), 1);
	report_has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=1 "
		   "used_uid=5 used_total=5 ");
	report_has("limit=cm per_client=unlimited per_uid=unlimited total=unlimited used_client=0 "
		   "used_uid=1 used_total=1 ");
	q.client = many;
	assert_int_equal(report_ask(urn_report_limits, &q, NULL), 1);
	report_has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=4 "
		   "used_uid=5 used_total=5 ");
	report_fails(urn_report_limits, (struct urn_report_query){.client = many + few},
		     "no client has the number");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(urn_cm_end_destroy(cm, id), 0);
	urn_cm_end_close(cm);
	report_all_of(urn_report_limits);
	report_has("limit=qp per_client=9 per_uid=unlimited total=unlimited used_client=1 "
		   "used_uid=2 used_total=2 ");
	report_has("limit=cm per_client=unlimited per_uid=unlimited total=unlimited used_client=0 "
		   "used_uid=0 used_total=0 ");
}

int
main(void)
{
#define TEST(f, s) cmocka_unit_test_setup_teardown(f, s, report_teardown)
	const struct CMUnitTest tests[] = {
		TEST(clients_go_meanwhile, report_setup),
		TEST(remote_clients, report_setup_remote),
		TEST(limits, report_setup),
		TEST(limits_used, report_setup_remote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
