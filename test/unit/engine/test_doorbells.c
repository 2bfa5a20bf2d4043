/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of a shard come and go at the same cost, however many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "transport/sched.h"

#include <string.h>
#include <sys/mman.h>

enum {
	CLIENTS = 30,
	CROWD = 400,
	PAGE = 4096,
	QUIET_TURNS = 6000, /* turns until all but MOST_HOT are cold */
	MOST_HOT = 8,
	SOON_TURNS = 300, /* turns until all but MANY_HOT are */
	MANY_HOT = 256,
};

static struct urn_tp tp;
static struct urn_shard shard;
static struct urn_abi_db db[CLIENTS];
static uint8_t *page; /* one page for each client */

static struct urn_client_shard *
client(unsigned int i)
{
	return (void *)(page + (size_t)i * PAGE);
}

static int
setup(void **state)
{
	(void)state;
	memset(&tp, 0, sizeof(tp));
	memset(db, 0, sizeof(db));
	shard = (struct urn_shard){.tp = &tp};
	urn_shard_init_lists(&shard);
	page = mmap(NULL, CLIENTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		client(i)->scan.db = &db[i];
		client(i)->scan.tops = 1;
		client(i)->scan.top = UINT32_MAX;
		client(i)->shard = &shard;
		urn_shard_add_client(&shard, client(i));
	}
	assert_int_equal(shard.hot_n, CLIENTS);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	munmap(page, CLIENTS * PAGE);
	return 0;
}

/* The client before this one in the list of all clients, or of hot ones. NULL: none */
static const struct urn_client_shard *
before(const struct urn_client_shard *c, bool hot)
{
	const struct urn_client_shard *prev = NULL, *at = hot ? LIST_FIRST(&shard.hot) : LIST_FIRST(&shard.clients);

	while (at && at != c) {
		prev = at;
		at = hot ? LIST_NEXT(at, hot_link) : LIST_NEXT(at, link);
	}
	return prev;
}

/* All lists agree. returns: the number of clients */
static unsigned int
sound(void)
{
	const struct urn_client_shard *c;
	unsigned int n = 0, hot = 0;

	LIST_FOREACH(c, &shard.clients, link) {
		assert_ptr_equal(*c->link.le_prev, c);
		n++;
	}
	LIST_FOREACH(c, &shard.hot, hot_link) {
		assert_ptr_equal(*c->hot_link.le_prev, c);
		assert_true(c->hot);
		hot++;
	}
	assert_int_equal(hot, shard.hot_n);
	assert_int_equal(shard.hot_n + shard.cold_n, n);
	return n;
}

/* Remove one client, while only it and its neighbours in a list can be accessed. */
static void
leave(unsigned int i)
{
	struct urn_client_shard *c = client(i);
	const struct urn_client_shard *near[] = {c, LIST_NEXT(c, link), before(c, false),
						 c->hot ? LIST_NEXT(c, hot_link) : NULL,
						 c->hot ? before(c, true) : NULL};

	for (unsigned int k = 0; k < CLIENTS; k++) {
		bool allowed = false;

		for (unsigned int n = 0; n < sizeof(near) / sizeof(near[0]); n++)
			allowed = allowed || near[n] == client(k);
		if (!allowed)
			assert_int_equal(mprotect(client(k), PAGE, PROT_NONE), 0);
	}
	urn_shard_remove_client(&shard, c);
	assert_int_equal(mprotect(page, CLIENTS * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(c, 0xa5, sizeof(*c));
}

/* The first client that is, or is not, hot. */
static const struct urn_client_shard *
one(bool hot)
{
	const struct urn_client_shard *c = LIST_FIRST(&shard.clients);

	while (c && c->hot != hot)
		c = LIST_NEXT(c, link);
	return c;
}

static void
leaves_without_a_walk(void **state)
{
	unsigned int left = CLIENTS - 3;

	(void)state;
	leave(15);
	leave(CLIENTS - 1); /* first of the list */
	leave(0);           /* last */
	assert_int_equal(sound(), left);
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	assert_in_range(shard.hot_n, 1, MOST_HOT);
	assert_int_equal(sound(), left);
	/* In turn a cold client, a hot one, and any. */
	while (left) {
		const struct urn_client_shard *c = left % 3 == 2 ? LIST_FIRST(&shard.clients) : one(left % 3);

		c = c ? c : LIST_FIRST(&shard.clients);
		leave((unsigned int)(((const uint8_t *)c - page) / PAGE));
		assert_int_equal(sound(), --left);
		urn_shard_doorbells(&shard);
	}
	assert_true(LIST_EMPTY(&shard.clients));
	assert_true(LIST_EMPTY(&shard.hot));
}

/* A quiet client costs nothing; when it rings, and the engine hears it, it is hot again. */
static void
cold_ones_warm_up(void **state)
{
	(void)state;
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		uint64_t bad = tp.c.v[URN_C_BAD_DOORBELL];
		bool was_hot = client(i)->hot;

		urn_client_shard_heard(client(i)); /* an eventfd write without a doorbell */
		assert_int_equal(client(i)->hot, was_hot);
		assert_int_equal(urn_abi_db_ring(&db[i], 0), !was_hot);
		urn_client_shard_heard(client(i));
		assert_true(client(i)->hot);
		urn_client_shard_heard(client(i)); /* again */
		assert_int_equal(urn_shard_doorbells(&shard), 1);
		assert_int_equal(tp.c.v[URN_C_BAD_DOORBELL], bad + 1); /* the client has no QP */
		assert_int_equal(urn_abi_db_ring(&db[i], 0), 0);
		assert_int_equal(urn_shard_doorbells(&shard), 1);
		assert_int_equal(sound(), CLIENTS);
	}
}

/* The engine does not access the memory of cold clients. */
static void
cold_ones_cost_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (!client(i)->hot)
			assert_int_equal(mprotect(client(i), PAGE, PROT_NONE), 0);
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	assert_int_equal(mprotect(page, CLIENTS * PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(sound(), CLIENTS);
}

/* Clients of a large crowd cool down sooner: those that ring rarely are not walked in each turn. */
static void
crowds_cool_down_soon(void **state)
{
	static struct urn_client_shard crowd[CROWD];

	(void)state;
	memset(crowd, 0, sizeof(crowd));
	for (unsigned int i = 0; i < CROWD; i++) {
		crowd[i].scan.db = &db[i % CLIENTS];
		crowd[i].scan.tops = 1;
		crowd[i].shard = &shard;
		urn_shard_add_client(&shard, &crowd[i]);
	}
	for (int i = 0; i < SOON_TURNS; i++)
		urn_shard_doorbells(&shard);
	assert_int_equal(shard.hot_n, MANY_HOT);
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	assert_in_range(shard.hot_n, 1, MOST_HOT);
	for (unsigned int i = 0; i < CROWD; i++)
		urn_shard_remove_client(&shard, &crowd[i]);
	assert_int_equal(sound(), CLIENTS);
}

/* Clients of a crowd ring all at once: a turn takes a bounded number of doorbells, and some of
 * each. */
static void
crowds_ring_at_once(void **state)
{
	enum { ALL = 1024, EACH = 64 };
	static struct urn_client_shard crowd[CROWD];
	static struct urn_abi_db many[CROWD];
	unsigned int n, most = ALL / (CROWD + CLIENTS), total = 0;

	(void)state;
	memset(crowd, 0, sizeof(crowd));
	for (unsigned int i = 0; i < CROWD; i++) {
		crowd[i].scan.db = &many[i];
		crowd[i].scan.tops = 1;
		crowd[i].scan.top = UINT32_MAX;
		crowd[i].shard = &shard;
		urn_shard_add_client(&shard, &crowd[i]);
		for (uint32_t k = 0; k < EACH; k++)
			(void)urn_abi_db_ring(&many[i], k);
	}
	for (unsigned int turns = 1; (n = urn_shard_doorbells(&shard)); turns++) {
		assert_true(n <= ALL);
		total += n;
		assert_true(turns > EACH / most || n == most * CROWD);
	}
	assert_int_equal(total, CROWD * EACH);
	for (unsigned int i = 0; i < CROWD; i++)
		urn_shard_remove_client(&shard, &crowd[i]);
	assert_int_equal(sound(), CLIENTS);
}

/* A QP that has to be looked at again is, in the next turn, whether its client was cold or not. */
static void
rings_again(void **state)
{
	struct urn_qp qp = {.source = {.db = 5}}; /* the client has no QP, so the doorbell counts as bad */
	uint64_t bad;

	(void)state;
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		client(i)->shard = &shard;
		qp.share = &client(i)->share;
		bad = tp.c.v[URN_C_BAD_DOORBELL];
		urn_shard_ring_again(&shard, &qp.source);
		assert_int_equal(sound(), CLIENTS);
		assert_int_equal(urn_shard_doorbells(&shard), 1);
		assert_int_equal(tp.c.v[URN_C_BAD_DOORBELL] - bad, 1);
		assert_true(client(i)->hot);
	}
}

/* ---- a source that only counts */

struct counter {
	struct urn_source_ops_user user;
	unsigned int rung;
};

static void
count_ring(struct urn_tp *t, struct urn_source *src)
{
	assert_ptr_equal(t, &tp);
	((struct counter *)src)->rung++;
}

/* A doorbell bit leads to its source, queue pair or not: an idle source is not looked at
 * (architecture.md, seam 6). */
static void
rings_any_source(void **state)
{
	static const struct urn_source_ops ops = {.rung = count_ring};
	struct counter idle = {.user.source = {.db = 1, .kind = URN_SOURCE_OPS}};
	struct counter busy = {.user = {.source = {.db = 2, .kind = URN_SOURCE_OPS}, .ops = &ops}};
	struct urn_qp qp = {.source = {.db = 3}, .state = URN_QPS_RTS};
	struct urn_source *source[] = {NULL, &idle.user.source, &busy.user.source, &qp.source};
	struct urn_client_shard *c = client(0);

	(void)state;
	c->source = source;
	c->used = sizeof(source) / sizeof(source[0]);
	qp.share = &c->share;
	for (unsigned int i = 1; i <= 3; i++) {
		urn_abi_db_ring(&db[0], 2);
		assert_int_equal(urn_shard_doorbells(&shard), 1);
		assert_int_equal(busy.rung, i);
		assert_false(qp.flags & URN_QPF_SCHED);
	}
	urn_abi_db_ring(&db[0], 3);
	assert_int_equal(urn_shard_doorbells(&shard), 1);
	assert_true(qp.flags & URN_QPF_SCHED);
	busy.user.source.share = &c->share;
	urn_shard_ring_again(&shard, &busy.user.source);
	assert_int_equal(urn_shard_doorbells(&shard), 1);
	assert_int_equal(busy.rung, 4);
	assert_int_equal(idle.rung, 0);
	urn_sched_remove(&tp.sched, &qp.source);
	assert_false(urn_tp_busy(&tp));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(leaves_without_a_walk),  TEST(cold_ones_warm_up),
		TEST(cold_ones_cost_nothing), TEST(crowds_cool_down_soon),
		TEST(crowds_ring_at_once),    TEST(rings_again),
		TEST(rings_any_source),
	};

	return cmocka_run_group_tests_name("doorbells", tests, NULL, NULL);
}
