/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urn_dp_destroy() lets clients go before adapters, and adapters before
 * engines. Clients that are still attached lose all they made, through an adapter and engines that
 * are whole; their channels say so, and can be closed.
 */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "engine/sources.h"
#include "pmd_glue/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

enum { ADAPTERS = 2, ENGINES = 2, CLIENTS = 3 };

void __real_urn_client_orphan(struct urn_client *c);
void __wrap_urn_client_orphan(struct urn_client *c);
void __real_urn_adapter_destroy(struct urn_adapter *a);
void __wrap_urn_adapter_destroy(struct urn_adapter *a);
void __real_urn_engine_destroy(struct urn_engine *e);
void __wrap_urn_engine_destroy(struct urn_engine *e);
urn_ctl_fn __real_urn_ctl_destroy_qp, __wrap_urn_ctl_destroy_qp, __real_urn_ctl_destroy_cq,
	__wrap_urn_ctl_destroy_cq;
int __real_urn_ctl_remove_pd(struct urn_adapter *a, uint32_t pd, struct urn_abi_rep *rep);
int __wrap_urn_ctl_remove_pd(struct urn_adapter *a, uint32_t pd, struct urn_abi_rep *rep);

static struct urn_port *port[ADAPTERS]; /* the two ends of a cable */
static struct urn_dp *dp;
static struct urn_abi_channel *channel[CLIENTS]; /* the last client is of adapter 1 */
static struct {
	unsigned int clients, adapters, engines; /* that have gone */
	unsigned int qps, cqs, pds;              /* that were taken back */
} gone;

/* Everything stands that a client's objects are taken back through. */
static void
all_stands(const struct urn_client *c)
{
	assert_int_equal(gone.adapters, 0);
	assert_int_equal(gone.engines, 0);
	assert_non_null(c->adapter->mem);
	for (unsigned int i = 0; i < ENGINES; i++)
		assert_ptr_equal(c->adapter->shard[i]->engine, dp->engine[i]);
}

void
__wrap_urn_client_orphan(struct urn_client *c)
{
	all_stands(c);
	__real_urn_client_orphan(c);
	gone.clients++;
}

void
__wrap_urn_adapter_destroy(struct urn_adapter *a)
{
	assert_int_equal(gone.engines, 0);
	for (unsigned int i = gone.adapters; i < ADAPTERS; i++) /* nor has any adapter that comes later */
		assert_true(LIST_EMPTY(&dp->adapter[i]->clients));
	assert_int_equal(a->pairs.n, 0);
	__real_urn_adapter_destroy(a);
	gone.adapters++;
}

void
__wrap_urn_engine_destroy(struct urn_engine *e)
{
	assert_int_equal(gone.adapters, ADAPTERS);
	assert_int_equal(e->shards_n, 0);
	__real_urn_engine_destroy(e);
	gone.engines++;
}

#define WATCH(fn, count)                                                                           \
	int __wrap_urn_ctl_##fn(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep) \
	{                                                                                          \
		all_stands(c);                                                                     \
		gone.count++;                                                                      \
		return __real_urn_ctl_##fn(c, req, rep);                                           \
	}
WATCH(destroy_qp, qps)
WATCH(destroy_cq, cqs)

int
__wrap_urn_ctl_remove_pd(struct urn_adapter *a, uint32_t pd, struct urn_abi_rep *rep)
{
	all_stands(a->pd_owner[pd]);
	gone.pds++;
	return __real_urn_ctl_remove_pd(a, pd, rep);
}

static int
setup_eal(void **state)
{
	struct urn_eal_config cfg = {.program = "test", .memory_mb = 128};
	struct urn_err err;

	(void)state;
	return urn_eal_start(&cfg, &err);
}

static int
teardown_eal(void **state)
{
	(void)state;
	urn_eal_stop();
	return 0;
}

static int
setup(void **state)
{
	struct urn_port_config pc[ADAPTERS] = {{.name = "near", .queues = ENGINES, .mbufs = 1024},
					       {.name = "far", .queues = ENGINES, .mbufs = 1024}};
	struct urn_adapter_config ac[ADAPTERS];
	struct urn_dp_config dc = {.engines = ENGINES, .adapters = ADAPTERS, .adapter = ac};
	struct urn_err err = {{0}};

	(void)state;
	if (urn_port_open_ring_pair(pc, port, &err) != 0)
		fail_msg("%s", err.text);
	for (unsigned int i = 0; i < ADAPTERS; i++)
		ac[i] = (struct urn_adapter_config){.node = "n", .port = port[i], .engines = (1 << ENGINES) - 1,
						    .ipv4 = {10, 0, 0, 1 + i}, .max_qp = 16, .max_mr = 16,
						    .area_size = 1 << 20};
	dp = urn_dp_create(&dc, &err);
	if (!dp)
		fail_msg("%s", err.text);
	memset(&gone, 0, sizeof(gone));
	for (unsigned int i = 0; i < CLIENTS; i++) {
		channel[i] = urn_dp_attach(dp, i == CLIENTS - 1, &err);
		if (!channel[i])
			fail_msg("%s", err.text);
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ADAPTERS; i++)
		urn_port_close(port[i]);
	return 0;
}

/* returns: the reply to a call that succeeds */
static struct urn_abi_rep
ask(unsigned int i, const struct urn_abi_req *req)
{
	struct urn_abi_rep rep;

	channel[i]->call(channel[i]->ctx, req, &rep);
	if (rep.err)
		fail_msg("request %u: %s", req->op, rep.why);
	return rep;
}

static void
make_objects(unsigned int i)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	uint32_t pd = ask(i, &req).handle, cq;

	req = (struct urn_abi_req){.op = URN_CTL_CREATE_CQ,
				   .create_cq = {.cqe = 8, .comp_vector = i, .channel_fd = -1}};
	cq = ask(i, &req).handle;
	req = (struct urn_abi_req){.op = URN_CTL_CREATE_QP,
				   .create_qp = {.pd = pd, .type = URN_QPT_RC, .send_cq = cq, .recv_cq = cq,
						 .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
							 .max_recv_sge = 1}}};
	ask(i, &req);
}

/* A channel whose dataplane is gone says so, and can be closed. */
static void
close_orphan(unsigned int i)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_PORT};
	struct urn_abi_rep rep;

	channel[i]->call(channel[i]->ctx, &req, &rep);
	assert_int_equal(rep.err, ENODEV);
	assert_non_null(strstr(rep.why, "taken down"));
	channel[i]->wake(channel[i]->ctx, 0);
	channel[i]->close(channel[i]->ctx);
}

static void
clients_go_first(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CLIENTS; i++)
		make_objects(i);
	urn_dp_destroy(dp);
	assert_int_equal(gone.clients, CLIENTS);
	assert_int_equal(gone.adapters, ADAPTERS);
	assert_int_equal(gone.engines, ENGINES);
	assert_int_equal(gone.qps, CLIENTS);
	assert_int_equal(gone.cqs, CLIENTS);
	assert_int_equal(gone.pds, CLIENTS);
	for (unsigned int i = 0; i < CLIENTS; i++)
		close_orphan(i);
}

/* A client that closed its channel before is not let go again. */
static void
closed_before(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CLIENTS; i++)
		make_objects(i);
	channel[0]->close(channel[0]->ctx);
	assert_int_equal(gone.qps, 1);
	urn_dp_destroy(dp);
	assert_int_equal(gone.clients, CLIENTS - 1);
	assert_int_equal(gone.qps, CLIENTS);
	for (unsigned int i = 1; i < CLIENTS; i++)
		close_orphan(i);
}

/* A source that is no queue pair, and ends when it was asked three times. */
struct slow {
	struct urn_source_ops_user user;
	int asked;
};

static bool
end_slowly(struct urn_tp *tp, struct urn_source *src)
{
	struct slow *s = (struct slow *)src;

	assert_ptr_equal(tp, urn_adapter_shard(dp->adapter[0], 0)->tp);
	return ++s->asked == 3;
}

/* A client that goes has every source ended, of whatever kind, and none of them twice
 * (architecture.md, seam 6). */
static void
other_sources_end(void **state)
{
	static const struct urn_source_ops ops = {.end = end_slowly};
	struct slow s[2] = {{.user.ops = &ops}, {.user.ops = &ops}};
	struct urn_client_shard *cs = urn_client_shard(LIST_FIRST(&dp->adapter[0]->clients), 0);
	uint32_t id;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(urn_sources_take(cs, &id), 0);
		s[i].user.source =
			(struct urn_source){.kind = URN_SOURCE_OPS, .db = id, .share = &cs->share};
		urn_sources_enter(cs, &s[i].user.source);
		make_objects(i);
	}
	urn_dp_destroy(dp);
	assert_int_equal(s[0].asked, 3);
	assert_int_equal(s[1].asked, 3);
	assert_int_equal(gone.qps, 2);
	assert_int_equal(gone.clients, CLIENTS);
	for (unsigned int i = 0; i < CLIENTS; i++)
		close_orphan(i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(clients_go_first, setup, teardown),
		cmocka_unit_test_setup_teardown(closed_before, setup, teardown),
		cmocka_unit_test_setup_teardown(other_sources_end, setup, teardown),
	};

	return cmocka_run_group_tests_name("dataplane", tests, setup_eal, teardown_eal);
}
