/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on register sets: queues, names, counts; and clients that have sets and no queue
 * pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/client.h"
#include "pmd_glue/eal.h"
#include "report/report_out.h"
#include "report/report_priv.h"

#include <stdio.h>
#include <string.h>

enum { ENGINES = 2, SETS = 40 };

static struct urn_port *port[2];
static struct urn_dp *dp;
static struct urn_abi_channel *channel;
static struct urn_report_buf out;
static struct urn_abi_rep set[SETS];

static struct urn_abi_rep
ask(const struct urn_abi_req *req)
{
	struct urn_abi_rep rep;

	channel->call(channel->ctx, req, &rep);
	if (rep.err)
		fail_msg("request %u: %s", req->op, rep.why);
	return rep;
}

static int
setup(void **state)
{
	struct urn_eal_config ec = {.program = "test", .memory_mb = 128};
	struct urn_port_config pc[2] = {{.name = "near", .queues = ENGINES, .mbufs = 1024},
					{.name = "far", .queues = ENGINES, .mbufs = 1024}};
	struct urn_adapter_config ac = {.name = "a0",
					.node = "n",
					.engines = 3,
					.ipv4 = {10, 0, 0, 1},
					.max_qp = 16,
					.max_mr = 16,
					.area_size = 1 << 20};
	struct urn_dp_config dc = {.engines = ENGINES, .adapters = 1, .adapter = &ac};
	struct urn_abi_req req = {
		.op = URN_CTL_HELLO,
		.hello = {URN_ABI_VERSION_OLDEST, URN_ABI_VERSION, 0, URN_ABI_FEATURES}};
	struct urn_err err = {{0}};

	(void)state;
	if (urn_eal_start(&ec, &err) != 0 || urn_port_open_ring_pair(pc, port, &err) != 0)
		fail_msg("%s", err.text);
	ac.port = port[0];
	dp = urn_dp_create(&dc, &err);
	channel = dp ? urn_dp_attach(dp, 0, &err) : NULL;
	if (!channel)
		fail_msg("%s", err.text);
	ask(&req);
	for (unsigned int i = 0; i < SETS; i++) {
		req = (struct urn_abi_req){.op = URN_CTL_MSG_OPEN,
					   .msg_open = {.comp_vector = i,
							.flags = i ? 0 : URN_MSG_OPEN_NAMED,
							.arena = 4096,
							.channel_fd = -1}};
		set[i] = ask(&req);
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	urn_report_buf_free(&out);
	channel->close(channel->ctx);
	urn_dp_destroy(dp);
	urn_port_close(port[0]);
	urn_port_close(port[1]);
	urn_eal_stop();
	return 0;
}

/* Take the spaces out of a text; NULL is taken. */
static void
squeeze(char *text)
{
	char *to = text;

	for (; text && *text; text++)
		if (*text != ' ')
			*to++ = *text;
	if (to)
		*to = '\0';
}

/* Ask in steps of `rows` objects. returns: the report as JSON, without spaces */
static const char *
report(urn_report_fn *fn, uint32_t client, uint32_t rows)
{
	const struct urn_report_source src = {.dp = dp};
	struct urn_report_query q = {.client = client, .rows = rows};
	struct urn_report_json json;
	struct urn_err err;
	int rc;

	urn_report_buf_free(&out);
	urn_report_json_init(&json, &out);
	do
		rc = fn(&src, &q, &json.sink, &err);
	while (rc == URN_REPORT_MORE);
	assert_int_equal(rc, URN_REPORT_DONE);
	squeeze(out.data);
	return out.data ? out.data : "";
}

static unsigned int
objects(const char *text)
{
	unsigned int n = 0;

	for (; (text = strstr(text, "\"set\"")); text++)
		n++;
	return n;
}

static void
has(const char *text)
{
	if (!strstr(out.data, text))
		fail_msg("no %s in %s", text, out.data);
}

static void
each_set_once(void **state)
{
	uint32_t id = LIST_FIRST(&dp->adapter[0]->clients)->id;

	(void)state;
	for (uint32_t rows = 1; rows < 50; rows += 6)
		assert_int_equal(objects(report(urn_report_msgs, 0, rows)), SETS);
	assert_int_equal(objects(report(urn_report_msgs, id, 0)), SETS);
	assert_int_equal(objects(report(urn_report_msgs, id + 1, 0)), 0);
}

static void
queue_and_answer(void **state)
{
	struct urn_abi_req req = {
		.op = URN_CTL_MSG_BIND, .handle = set[0].handle, .msg_bind = {.name = 0x35}};
	struct urn_abi_msg_set *r = (void *)((uint8_t *)channel->area + set[0].msg.off);
	struct urn_client *c = channel->ctx;
	char text[160];

	(void)state;
	ask(&req);
	r->conf.entries = 4;
	r->conf.entry_size = 128;
	atomic_store(&r->conf.seq, 1);
	r->send.size = 1 << 30;
	atomic_store(&r->send.seq, 1);
	(void)urn_abi_db_ring((void *)((uint8_t *)channel->area + c->db_off[0]), set[0].msg.db);
	urn_engine_turn(dp->engine[0], urn_engine_now(dp->engine[0]));
	report(urn_report_msgs, 0, 0);
	snprintf(text, sizeof(text),
		 "\"queue\":\"0x%016llx\",\"name\":\"0x35\",\"state\":\"open\",\"entries\":4,"
		 "\"entry_bytes\":128,"
		 "\"head\":0,\"tail\":0,\"waiting\":0,\"sent\":1,\"answer\":\"bad-doorbell\"",
		 (unsigned long long)set[0].msg.qid);
	has(text);
	has("\"name\":\"\",\"state\":\"none\",\"entries\":0,");
	atomic_store(&r->ctrl.head, 77); /* a head that lies */
	report(urn_report_msgs, 0, 0);
	has("\"head\":77,\"tail\":0,\"waiting\":4,");
}

/* Register sets have doorbells as queue pairs do, and are counted apart. */
static void
clients_have_sets(void **state)
{
	(void)state;
	report(urn_report_clients, 0, 0);
	has("\"qps\":0,");
	has("\"msg_sets\":40,");
	report(urn_report_adapters, 0, 0);
	has("\"msg_sets\":40,");
	has("\"flows\":0");
}

/* All sets of an adapter in one sum, whatever heads their clients write; a message for a node that
 * is looked for. */
static void
totals(void **state)
{
	static const uint8_t node[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
	struct urn_abi_msg_set *r = (void *)((uint8_t *)channel->area + set[0].msg.off);
	struct urn_abi_msg_set *sender = (void *)((uint8_t *)channel->area + set[2].msg.off);
	struct urn_client *c = channel->ctx;
	struct urn_report_msg_totals t;
	struct urn_err err;

	(void)state;
	atomic_store(&r->ctrl.head, 77);
	assert_int_equal(urn_report_msg_totals(dp->adapter[0], &t, &err), 0);
	assert_int_equal(t.sets, SETS);
	assert_int_equal(t.queues, 1);
	assert_int_equal(t.ring_bytes, 4 * 128);
	assert_int_equal(t.waiting, 4);
	assert_int_equal(t.waiting_bytes, 4 * 128);
	assert_int_equal(t.pending, 0);
	assert_int_equal(t.flows, 0);
	atomic_store(&r->ctrl.head, UINT32_MAX); /* one message before the tail */
	memcpy(sender->send.node, node, 16);
	sender->send.qid = URN_MSG_NAME(3);
	atomic_store(&sender->send.seq, 1);
	(void)urn_abi_db_ring((void *)((uint8_t *)channel->area + c->db_off[0]), set[2].msg.db);
	urn_engine_turn(dp->engine[0], urn_engine_now(dp->engine[0]));
	assert_int_equal(urn_report_msg_totals(dp->adapter[0], &t, &err), 0);
	assert_int_equal(t.waiting, 1);
	assert_int_equal(t.waiting_bytes, 128);
	assert_int_equal(t.pending, 1);
	assert_int_equal(t.flows, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_set_once),
		cmocka_unit_test(queue_and_answer),
		cmocka_unit_test(clients_have_sets),
		cmocka_unit_test(totals),
	};

	return cmocka_run_group_tests_name("msg", tests, setup, teardown);
}
