/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two adapters learn what each other can, by one exchange of management
 * datagrams between their QPs 1, and programs notice nothing of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/adapter.h"
#include "engine/engine.h"
#include "rig.h"

#include <string.h>
#include <time.h>

/* What the transports were told, as urn_tp_link_changed() is called. */
static struct {
	unsigned int calls;
	uint32_t features;
	uint8_t gid[16];
} told[URN_ABI_MAX_ENGINES];

void __real_urn_tp_link_changed(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features);
void __wrap_urn_tp_link_changed(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features);

void
__wrap_urn_tp_link_changed(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features)
{
	unsigned int e = tp->cfg.engine;

	told[e].calls++;
	told[e].features = features;
	memcpy(told[e].gid, gid_peer, 16);
	__real_urn_tp_link_changed(tp, gid_peer, features);
}

static void
open_rig(struct rig *r, const struct rig_config *cfg)
{
	memset(told, 0, sizeof(told));
	rig_open(r, cfg, NULL);
}

static struct urn_link *
link_of(struct rig *r, int node)
{
	return r->dp->adapter[node]->peers;
}

/* What node `node` holds of the other. */
static enum urn_link_state
look(struct rig *r, int node, struct urn_link_info *info)
{
	union ibv_gid gid;

	rig_gid(r, !node, &gid);
	return urn_link_peek(link_of(r, node), gid.raw, info);
}

/* Turn until node `node` is done asking. */
static enum urn_link_state
settle(struct rig *r, int node)
{
	time_t start = time(NULL);
	enum urn_link_state s;

	while ((s = look(r, node, NULL)) != URN_LINK_KNOWN && s != URN_LINK_PLAIN) {
		if (time(NULL) - start > 60)
			fail_msg("node %d: %s after a minute", node, urn_link_state_name(s));
		rig_turns(r, 16);
	}
	return s;
}

static void
learn_each_other(const struct rig_config *cfg)
{
	struct rig r;

	open_rig(&r, cfg);
	for (int i = 0; i < 2; i++) {
		struct urn_link_info info;
		union ibv_gid gid;

		assert_int_equal(settle(&r, i), URN_LINK_KNOWN);
		assert_int_equal(look(&r, i, &info), URN_LINK_KNOWN);
		rig_gid(&r, !i, &gid);
		assert_int_equal(info.features, URN_LINK_F_ALL);
		assert_int_equal(info.major, URN_LINK_MAJOR);
		assert_int_equal(urn_link_features(link_of(&r, i), gid.raw), URN_LINK_F_ALL);
	}
	rig_turns(&r, 100);
	/* Each engine of a node was told, and only it. */
	for (unsigned int e = 0; e < r.engines; e++) {
		union ibv_gid gid;

		rig_gid(&r, !(e & 1), &gid);
		assert_int_equal(told[e].calls, r.engines == 1 ? 2 : 1);
		assert_int_equal(told[e].features, URN_LINK_F_ALL);
		if (r.engines > 1)
			assert_memory_equal(told[e].gid, gid.raw, 16);
	}
	/* Programs saw nothing of it. */
	rig_quiet(&r, 0);
	rig_quiet(&r, 1);
	rig_no_event(&r, 0);
	rig_no_event(&r, 1);
	rig_close(&r);
}

static void
test_learn(void **state)
{
	static const struct rig_config cfg[] = {
		{0}, {.ipv6 = true}, {.engines = 1}, {.engines = 4}, {.engines = 4, .queues = 1}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cfg) / sizeof(cfg[0]); i++)
		learn_each_other(&cfg[i]);
}

/* A peer without link requests is plain, and gets its data all the same. */
static void
test_plain_peer(void **state)
{
	struct rig_config cfg = {.no_link = 2};
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_int_equal(settle(&r, 0), URN_LINK_PLAIN);
	assert_int_equal(rig_counter(&r, 0, URN_C_LINK_REQ_TX), URN_LINK_TRIES);
	assert_int_equal(rig_counter(&r, 1, URN_C_DROP_NO_QP), URN_LINK_TRIES);
	assert_int_equal(told[0].calls, 0);
	rig_post(&r, 1, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 1, IBV_WC_SUCCESS);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_plain_peer),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
