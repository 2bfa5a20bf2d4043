/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urn_dp_destroy() lets clients go before adapters, and adapters before
 * engines. Clients that are still attached lose all they made, through an adapter and engines that
 * are whole; their channels say so, and can be closed. And the end of a process with clients that
 * can't be let go (urn_dp_freeze()).
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
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { ADAPTERS = 2, ENGINES = 2, CLIENTS = 3 };

void __real_urn_client_orphan(struct urn_client *c);
void __wrap_urn_client_orphan(struct urn_client *c);
void __real_urn_adapter_destroy(struct urn_adapter *a);
void __wrap_urn_adapter_destroy(struct urn_adapter *a);
void __real_urn_engine_destroy(struct urn_engine *e);
void __wrap_urn_engine_destroy(struct urn_engine *e);
void __real_urn_ctl_end_qps(struct urn_client *c, const uint32_t *qpn, unsigned int n);
void __wrap_urn_ctl_end_qps(struct urn_client *c, const uint32_t *qpn, unsigned int n);
void __real_urn_ctl_take_back_cqs(struct urn_client *c);
void __wrap_urn_ctl_take_back_cqs(struct urn_client *c);
void __real_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);
void __wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);
int __real_urn_ctl_remove_pd(struct urn_adapter *a, uint32_t pd, struct urn_abi_rep *rep);
int __wrap_urn_ctl_remove_pd(struct urn_adapter *a, uint32_t pd, struct urn_abi_rep *rep);

static struct urn_port *port[ADAPTERS]; /* the two ends of a cable */
static struct urn_dp *dp;
static struct urn_abi_channel *channel[CLIENTS]; /* the last client is of adapter 1 */
static struct {
	unsigned int clients, adapters, engines; /* that have gone */
	unsigned int qps, cqs, pds;              /* that were taken back */
} gone;
static unsigned int questions; /* that engines were asked */

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

void
__wrap_urn_ctl_end_qps(struct urn_client *c, const uint32_t *qpn, unsigned int n)
{
	all_stands(c);
	gone.qps += n;
	__real_urn_ctl_end_qps(c, qpn, n);
}

void
__wrap_urn_ctl_take_back_cqs(struct urn_client *c)
{
	all_stands(c);
	gone.cqs += c->cqs.n;
	__real_urn_ctl_take_back_cqs(c);
	assert_int_equal(c->cqs.n, 0);
}

void
__wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg)
{
	questions++;
	__real_urn_engine_call(e, fn, arg);
}

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
		ac[i] = (struct urn_adapter_config){.node = "n",
						    .port = port[i],
						    .engines = (1 << ENGINES) - 1,
						    .ipv4 = {10, 0, 0, 1 + i},
						    .max_qp = 512,
						    .max_mr = 512,
						    .area_size = 8 << 20};
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

static uint32_t
make_pd(unsigned int i)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};

	return ask(i, &req).handle;
}

/* Make a completion queue, and a queue pair that uses it. */
static void
make_queues(unsigned int i, uint32_t pd)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_CQ,
				  .create_cq = {.cqe = 8, .comp_vector = i, .channel_fd = -1}};
	uint32_t cq = ask(i, &req).handle;

	req = (struct urn_abi_req){.op = URN_CTL_CREATE_QP,
				   .create_qp = {.pd = pd, .type = URN_QPT_RC, .send_cq = cq, .recv_cq = cq,
						 .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
							 .max_recv_sge = 1}}};
	ask(i, &req);
}

static void
make_objects(unsigned int i)
{
	make_queues(i, make_pd(i));
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

/* Make a region, a memory window and an address handle in a protection domain. */
static void
make_more(unsigned int i, uint32_t pd)
{
	static char bytes[64];
	struct urn_abi_req req = {.op = URN_CTL_REG_MR,
				  .reg_mr = {.pd = pd,
					     .addr = (uintptr_t)bytes,
					     .iova = (uintptr_t)bytes,
					     .length = sizeof(bytes)}};

	ask(i, &req);
	req = (struct urn_abi_req){.op = URN_CTL_ALLOC_MW, .alloc_mw = {.pd = pd, .type = 2}};
	ask(i, &req);
	req = (struct urn_abi_req){.op = URN_CTL_CREATE_AH,
				   .create_ah = {.pd = pd,
						 .av = {.dgid = {[10] = 0xff, 0xff, 10, 0, 0, 9},
							.sgid_index = 1,
							.port_num = 1}}};
	ask(i, &req);
}

/*
 * Objects of a client that goes are ended in groups: each question to an engine takes one of its
 * turns, which is as long as others have the processor on a busy machine.
 */
static void
in_groups(void **state)
{
	enum { MANY = 192, QUESTIONS = 100 }; /* one at a time they would take 1,900 */
	uint32_t pd = make_pd(0);

	(void)state;
	for (unsigned int i = 0; i < MANY; i++) {
		make_queues(0, pd);
		make_more(0, pd);
	}
	questions = 0;
	channel[0]->close(channel[0]->ctx);
	assert_int_equal(gone.qps, MANY);
	assert_int_equal(gone.cqs, MANY);
	assert_int_equal(gone.pds, 1);
	assert_null(dp->adapter[0]->pd_owner[pd]); /* nothing was left in it */
	assert_in_range(questions, 1, QUESTIONS);
	urn_dp_destroy(dp);
	for (unsigned int i = 1; i < CLIENTS; i++)
		close_orphan(i);
}

/* ---- an end with threads that are left; the adapter of these tests is a lock, and no more */

enum { THREADS = 8 };

static struct frozen {
	struct urn_dp dp;
	struct urn_adapter a, *adapters[1];
	struct urn_client c;	    /* a thread takes its objects back */
	_Atomic unsigned int began; /* threads that are about to ask for the lock */
	_Atomic unsigned int
		went_on;    /* threads that came back with it though the dataplane is frozen */
	_Atomic bool holds; /* a thread that takes objects back has the lock */
} f;

static void *
wants_the_lock(void *arg)
{
	(void)arg;
	atomic_fetch_add(&f.began, 1);
	urn_ctl_lock(&f.a, true);
	atomic_fetch_add(&f.went_on, 1);
	pthread_mutex_unlock(&f.a.lock);
	return NULL;
}

static void *
takes_back(void *arg)
{
	(void)arg;
	urn_ctl_lock(&f.a, true);
	atomic_store(&f.holds, true);
	while (!atomic_load(&f.dp.frozen))
		sched_yield();
	urn_ctl_took_back(&f.c, 1);
	atomic_fetch_add(&f.went_on, 1);
	return NULL;
}

static void
start(void *(*fn)(void *arg))
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, fn, NULL), 0);
	assert_int_equal(pthread_detach(t), 0); /* it stands still, until the process ends */
}

/*
 * A process that ends waits neither for threads that want an adapter's lock, nor for all that a
 * thread still takes back: that one gives the lock away after the object in hand. No thread goes
 * on.
 */
static void
freezes(void **state)
{
	(void)state;
	f.adapters[0] = &f.a;
	f.dp.adapter = f.adapters;
	f.dp.adapters_n = 1;
	f.a.dp = &f.dp;
	f.c.adapter = &f.a;
	f.c.remote = true;
	assert_int_equal(pthread_mutex_init(&f.a.lock, NULL), 0);
	start(takes_back);
	while (!atomic_load(&f.holds))
		sched_yield();
	for (unsigned int i = 0; i < THREADS; i++)
		start(wants_the_lock);
	while (atomic_load(&f.began) < THREADS)
		sched_yield();
	urn_dp_freeze(&f.dp);
	assert_int_equal(pthread_mutex_trylock(&f.a.lock), EBUSY);
	assert_int_equal(atomic_load(&f.went_on), 0);
	/* A thread that waited until now finds that, too. */
	pthread_mutex_unlock(&f.a.lock);
	start(wants_the_lock);
	while (atomic_load(&f.began) < THREADS + 1)
		sched_yield();
	pthread_mutex_lock(&f.a.lock);
	assert_int_equal(atomic_load(&f.went_on), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(clients_go_first, setup, teardown),
		cmocka_unit_test_setup_teardown(closed_before, setup, teardown),
		cmocka_unit_test_setup_teardown(other_sources_end, setup, teardown),
		cmocka_unit_test_setup_teardown(in_groups, setup, teardown),
		cmocka_unit_test(freezes),
	};

	return cmocka_run_group_tests_name("dataplane", tests, setup_eal, teardown_eal);
}
