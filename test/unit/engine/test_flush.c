/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames that an engine gives to its port are complete (doc/inside/messages.md "Packets"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/test_eal.h"
#include "engine/engine.h"
#include "wire/build.h"

#include <stdlib.h>
#include <string.h>

enum { LEN = 200 }; /* bytes of a frame */

/* A shard whose transport has nothing but a list of frames. */
static struct {
	struct urn_shard shard;
	struct urn_port port;
	struct urn_tp *tp;
	uint8_t want[LEN];  /* a frame with its ICRC */
	unsigned int taken; /* frames that the port took */
} t;

uint16_t __wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m,
				 uint16_t n);

/* The port takes all frames. */
uint16_t
__wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	assert_ptr_equal(p, &t.port);
	assert_int_equal(queue, 0);
	for (uint16_t i = 0; i < n; i++) {
		assert_memory_equal(rte_pktmbuf_mtod(m[i], uint8_t *), t.want, LEN);
		rte_pktmbuf_free(m[i]);
	}
	t.taken += n;
	return n;
}

static int
setup(void **state)
{
	(void)state;
	test_eal_pool();
	memset(&t, 0, sizeof(t));
	t.tp = calloc(1, sizeof(*t.tp));
	assert_non_null(t.tp);
	t.tp->cfg.icrc = true;
	t.shard = (struct urn_shard){.tp = t.tp, .port = &t.port};
	t.want[12] = 0x08;
	t.want[14] = 0x45;
	urn_build_icrc(t.want, LEN - URN_ICRC_BYTES, 0, 1);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	urn_obey_destroy(t.shard.obey);
	free(t.tp);
	assert_int_equal(rte_mempool_avail_count(test_eal_pool()), TEST_EAL_MBUFS);
	return 0;
}

/* The transport has a frame of a flow, whose ICRC is still to be written. */
static void
add(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, LEN), t.want, LEN - URN_ICRC_BYTES);
	memset(rte_pktmbuf_mtod_offset(m, uint8_t *, LEN - URN_ICRC_BYTES), 0x55, URN_ICRC_BYTES);
	t.tp->tx[t.tp->tx_n++] = m;
	t.tp->flow_emit = m;
}

/* The last frame of a flow has its ICRC when it goes, whoever made it in the turn, and none is
 * written to it later. */
static void
last_frame(void **state)
{
	(void)state;
	add();
	urn_shard_flush(&t.shard);
	assert_int_equal(t.taken, 1);
	assert_null(t.tp->flow_emit);
}

/* The same for a frame that a pause puts aside. */
static void
frame_put_aside(void **state)
{
	struct urn_obey_config cfg = {.on = true};
	struct urn_pfc pfc = {.enable = 1, .quanta = {0xffff}};

	(void)state;
	urn_classify_preset(&cfg.map);
	t.shard.obey = urn_obey_create(&cfg, 0);
	assert_non_null(t.shard.obey);
	urn_shard_obey(&t.shard, &pfc);
	add();
	urn_shard_flush(&t.shard);
	assert_int_equal(t.tp->held, 1);
	assert_null(t.tp->flow_emit);
	pfc.quanta[0] = 0;
	urn_shard_obey(&t.shard, &pfc);
	urn_shard_flush(&t.shard);
	assert_int_equal(t.taken, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(last_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(frame_put_aside, setup, teardown),
	};

	return cmocka_run_group_tests_name("engine_flush", tests, NULL, NULL);
}
