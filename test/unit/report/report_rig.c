/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report_rig.h"

#include "pmd_glue/eal.h"
#include "report/report_out.h"
#include "report/report_priv.h"

#include <stdio.h>
#include <string.h>

struct urn_dp *rig_dp;
struct urn_abi_channel *rig_channel;
static struct urn_port *port[2];
static struct urn_report_buf out;

struct urn_abi_rep
rig_ask(const struct urn_abi_req *req)
{
	struct urn_abi_rep rep;

	rig_channel->call(rig_channel->ctx, req, &rep);
	if (rep.err)
		fail_msg("request %u: %s", req->op, rep.why);
	return rep;
}

int
rig_setup(void **state)
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
					.area_size = 1 << 20,
					.am_unregistered = true};
	struct urn_dp_config dc = {.engines = ENGINES, .adapters = 1, .adapter = &ac};
	struct urn_abi_req req = {
		.op = URN_CTL_HELLO,
		.hello = {URN_ABI_VERSION_OLDEST, URN_ABI_VERSION, 0, URN_ABI_FEATURES}};
	struct urn_err err = {{0}};

	(void)state;
	if (urn_eal_start(&ec, &err) != 0 || urn_port_open_ring_pair(pc, port, &err) != 0)
		fail_msg("%s", err.text);
	ac.port = port[0];
	rig_dp = urn_dp_create(&dc, &err);
	rig_channel = rig_dp ? urn_dp_attach(rig_dp, 0, &err) : NULL;
	if (!rig_channel) {
		fail_msg("%s", err.text);
		return -1;
	}
	rig_ask(&req);
	return 0;
}

int
rig_teardown(void **state)
{
	(void)state;
	urn_report_buf_free(&out);
	rig_channel->close(rig_channel->ctx);
	urn_dp_destroy(rig_dp);
	urn_port_close(port[0]);
	urn_port_close(port[1]);
	urn_eal_stop();
	return 0;
}

void *
rig_at(uint64_t off)
{
	return (uint8_t *)rig_channel->area + off;
}

void
rig_ring(uint32_t db)
{
	const struct urn_client *c = rig_channel->ctx;

	(void)urn_abi_db_ring(rig_at(c->db_off[0]), db);
	urn_engine_turn(rig_dp->engine[0], urn_engine_now(rig_dp->engine[0]));
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

const char *
rig_report(urn_report_fn *fn, uint32_t client, uint32_t rows)
{
	const struct urn_report_source src = {.dp = rig_dp};
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

void
rig_no_client(urn_report_fn *fn, uint32_t client)
{
	const struct urn_report_source src = {.dp = rig_dp};
	struct urn_report_query q = {.client = client};
	struct urn_report_json json;
	struct urn_err err;

	urn_report_buf_free(&out);
	urn_report_json_init(&json, &out);
	assert_int_equal(fn(&src, &q, &json.sink, &err), URN_REPORT_FAILED);
	assert_non_null(strstr(err.text, "no client has the number"));
}

unsigned int
rig_fields(const char *name)
{
	const char *text = out.data ? out.data : "";
	char key[32];
	unsigned int n = 0;

	snprintf(key, sizeof(key), "\"%s\":", name);
	for (; (text = strstr(text, key)); text++)
		n++;
	return n;
}

void
rig_has(const char *text)
{
	if (!out.data || !strstr(out.data, text))
		fail_msg("no %s in %s", text, out.data ? out.data : "nothing");
}
