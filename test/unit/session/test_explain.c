/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about errors of the virtual device (urnic/explain.h; doc/reference/errors.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/queue.h"
#include "verbs/session/heal.h"

#include <urnic/explain.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { QPN = 0x12, ADAPTERS = URN_SV_ADAPTERS };

static struct urn_sv_ctx ctx;
static struct urn_sv_qp qp;
static struct urn_verbs_ctx adapter[ADAPTERS];
static struct ibv_qp real[ADAPTERS]; /* numbers 0x50, 0x51 */
static uint64_t now;
static uint32_t has;   /* number of the queue pair that an adapter has a record of; 0: none has */
static uint32_t asked; /* status that was asked for */
static unsigned int asks;

uint64_t __wrap_urn_sv_now_ms(void);
uint64_t
__wrap_urn_sv_now_ms(void)
{
	return now;
}

/* An adapter's answer. */
static int
answer(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text, size_t size)
{
	asked = status;
	asks++;
	if (qpn != has)
		return ENOENT;
	snprintf(text, size, "QP 0x%x to 10.0.0.2 QP 0x9: failed on %s", qpn,
		 urn_verbs_ctx(c)->id.name);
	return 0;
}

static const struct urn_verbs_ops adapter_ops = {.explain = answer};

static int
setup(void **state)
{
	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	memset(&qp, 0, sizeof(qp));
	ctx.front.ops = &urn_session_ops;
	ctx.wake_fd = ctx.log_fd = -1;
	LIST_INIT(&ctx.qps);
	LIST_INSERT_HEAD(&ctx.qps, &qp, link);
	qp.ctx = &ctx;
	qp.ibv.qp_num = QPN;
	qp.mode = URN_SV_SESSION;
	qp.lower = true;
	qp.c.state = URN_SESS_CONNECTED;
	qp.c.alive = 0xf;
	for (uint32_t i = 0; i < ADAPTERS; i++) {
		adapter[i].ops = &adapter_ops;
		snprintf(adapter[i].id.name, sizeof(adapter[i].id.name), i ? "as" : "ap");
		real[i].context = &adapter[i].vctx.context;
		real[i].qp_num = 0x50 + i;
	}
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		qp.path[i] = (struct urn_sv_path){
			.qp = &qp, .mine = i / 2, .theirs = i % 2, .real = &real[i / 2]};
	now = 5000;
	has = asked = asks = 0;
	return 0;
}

/* The sentence about a completion with this status. expect: the whole of it */
static void
says(enum ibv_wc_status status, const char *expect)
{
	const struct ibv_wc wc = {.status = status, .qp_num = QPN};
	char text[URN_EXPLAIN_TEXT];

	assert_int_equal(urn_wc_explain(&ctx.front.vctx.context, &wc, text, sizeof(text)), 0);
	assert_string_equal(text, expect);
}

/* The connection dies. */
static void
die(enum urn_sess_reason reason)
{
	urn_sv_act(&qp, &(struct urn_sess_action){.act = URN_SESS_DIED, .reason = reason});
	qp.c.state = URN_SESS_DEAD;
}

/* A request that failed by itself is explained by the adapter whose queue pair had it, which the
 * connection keeps. */
static void
by_the_adapter(void **state)
{
	(void)state;
	has = 0x51;
	qp.c.path = 2; /* from the backup adapter to the primary one */
	die(URN_SESS_NO_REQUEST);
	says(IBV_WC_REM_ACCESS_ERR,
	     "QP 0x12, over adapter as: QP 0x51 to 10.0.0.2 QP 0x9: failed on as");
	assert_int_equal(asked, URN_WC_REM_ACCESS_ERR);
	says(IBV_WC_WR_FLUSH_ERR,
	     "QP 0x12, over adapter as: QP 0x51 to 10.0.0.2 QP 0x9: failed on as");
	assert_int_equal(asked, URN_WC_WR_FLUSH_ERR);
}

/* A queue pair without a session is one of the primary adapter. */
static void
of_a_plain_one(void **state)
{
	(void)state;
	has = 0x50;
	qp.mode = URN_SV_PLAIN;
	qp.c.path = 3;
	says(IBV_WC_RETRY_EXC_ERR,
	     "QP 0x12, over adapter ap: QP 0x50 to 10.0.0.2 QP 0x9: failed on ap");
}

/* Without a path the connection says since when, and which path went last, and why. An adapter that
 * is gone is not asked. */
static void
no_path(void **state)
{
	(void)state;
	qp.c.path = 2;
	qp.why = "transport retry counter exceeded";
	urn_sv_note_lost(&qp, 1);
	qp.c.alive &= ~2u;
	now += 100;
	qp.why = "the backup adapter is gone";
	urn_sv_note_lost(&qp, 2);
	qp.c.alive = 0;
	qp.why = "is lost already";
	urn_sv_note_lost(&qp, 1);
	die(URN_SESS_NO_PATH);
	ctx.dead[1] = true;
	now += 1200;
	has = 0x51;
	says(IBV_WC_RETRY_EXC_ERR,
	     "QP 0x12: its session has been dead for 1200 ms, because no path is alive on both "
	     "sides; the path from the backup adapter here to the primary one of its peer was lost "
	     "last, 1200 ms ago, because the backup adapter is gone");
	assert_int_equal(asks, 0);
	/* The adapter is there: it knows what stood in the way. */
	ctx.dead[1] = false;
	says(IBV_WC_WR_FLUSH_ERR,
	     "QP 0x12: its session has been dead for 1200 ms, because no path is alive on both "
	     "sides; the path from the backup adapter here to the primary one of its peer was lost "
	     "last, 1200 ms ago, because the backup adapter is gone; over adapter as: QP 0x51 to "
	     "10.0.0.2 QP 0x9: failed on as");
}

/* Without a record, a dead connection has its state; one that goes on has none. */
static void
no_record(void **state)
{
	const struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR, .qp_num = QPN};
	const struct ibv_wc other = {.status = IBV_WC_WR_FLUSH_ERR, .qp_num = QPN + 1};
	char text[URN_EXPLAIN_TEXT];

	(void)state;
	assert_int_equal(urn_wc_explain(&ctx.front.vctx.context, &wc, text, sizeof(text)), ENOENT);
	assert_int_equal(urn_wc_explain(&ctx.front.vctx.context, &other, text, sizeof(text)),
			 ENOENT);
	assert_int_equal(asks, 1);
	die(URN_SESS_NO_REQUEST);
	says(IBV_WC_WR_FLUSH_ERR,
	     "QP 0x12: its session has been dead for 0 ms, because a request failed for a reason "
	     "of its own, or this end goes");
	qp.left = true;
	says(IBV_WC_WR_FLUSH_ERR,
	     "QP 0x12: its session has been dead for 0 ms, because its peer has left");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(by_the_adapter, setup),
		cmocka_unit_test_setup(of_a_plain_one, setup),
		cmocka_unit_test_setup(no_path, setup),
		cmocka_unit_test_setup(no_record, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
