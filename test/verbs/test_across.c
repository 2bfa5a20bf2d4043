/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes of one engine, joined by a wire (engine/across.h): frames have no ICRC there, unless
 * somebody looks at the wire.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "control/objects.h"
#include "transport/unsealed.h"
#include "wire/pkt.h"

#include <string.h>

enum { LEN = 20000, AT = 65536 }; /* bytes of a message; place at end 1, and of a READ at end 0 */

static unsigned int made, checked; /* ICRCs */

uint32_t __real_urn_icrc(const uint8_t *l3, uint32_t len, int ipv6);
uint32_t __wrap_urn_icrc(const uint8_t *l3, uint32_t len, int ipv6);
void __real_urn_icrc_gather(const uint8_t *l3, uint8_t *payload, const uint8_t *src, uint32_t len);
void __wrap_urn_icrc_gather(const uint8_t *l3, uint8_t *payload, const uint8_t *src, uint32_t len);
int __real_urn_wire_icrc_ok(struct rte_mbuf *m);
int __wrap_urn_wire_icrc_ok(struct rte_mbuf *m);

uint32_t
__wrap_urn_icrc(const uint8_t *l3, uint32_t len, int ipv6)
{
	made++;
	return __real_urn_icrc(l3, len, ipv6);
}

void
__wrap_urn_icrc_gather(const uint8_t *l3, uint8_t *payload, const uint8_t *src, uint32_t len)
{
	made++;
	__real_urn_icrc_gather(l3, payload, src, len);
}

int
__wrap_urn_wire_icrc_ok(struct rte_mbuf *m)
{
	checked++;
	made--; /* the check computes one, too */
	return __real_urn_wire_icrc_ok(m);
}

/* One message of each kind from end 0 to end 1, and a READ back; compare the bytes. */
static void
talk(struct rig *r)
{
	struct rig_end *e = r->end;

	rig_fill(e[0].buf, LEN, 3);
	rig_post(r, 0, IBV_WR_RDMA_WRITE, 0, LEN, AT, 1);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	assert_memory_equal(e[1].buf + AT, e[0].buf, LEN);
	rig_post(r, 0, IBV_WR_RDMA_READ, AT, LEN, AT, 2);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	assert_memory_equal(e[0].buf + AT, e[0].buf, LEN);
	for (uint32_t len = 24; len <= LEN; len = len * 5 + 1) {
		memset(e[1].buf, 0, LEN);
		rig_recv(r, 1, 0, LEN, 4);
		rig_post(r, 0, IBV_WR_SEND, 0, len, 0, 3);
		rig_expect(r, 0, IBV_WC_SUCCESS);
		rig_expect(r, 1, IBV_WC_SUCCESS);
		assert_memory_equal(e[1].buf, e[0].buf, len);
	}
}

/* Open a rig whose nodes know each other, so that from now on only queue pairs send. */
static void
open_rig(struct rig *r, unsigned int engines)
{
	struct rig_config cfg = {.engines = engines};

	rig_open(r, &cfg, NULL);
	rig_turns(r, 200);
	talk(r);
	rig_turns(r, 200);
	made = checked = 0;
}

/* With one engine no ICRC is made or checked, and no byte is lost. */
static void
test_joined(void **state)
{
	struct rig r;

	(void)state;
	open_rig(&r, 1);
	for (unsigned int i = 0; i < 2; i++) {
		assert_ptr_equal(r.dp->adapter[i]->shard[0]->across, r.port[!i]);
		assert_int_equal(r.dp->adapter[i]->shard[0]->tp->unsealed, urn_unsealed_bit());
	}
	talk(&r);
	assert_int_equal(checked, 0);
	assert_int_equal(made, 0);
	rig_close(&r);
}

/* The same between two programs of one adapter, whose frames no port sees; with one engine and with
 * two. */
static void
test_looped(void **state)
{
	(void)state;
	for (unsigned int engines = 1; engines <= 2; engines++) {
		struct rig_config cfg = {.engines = engines, .loopback = true};
		struct rig r;

		rig_open(&r, &cfg, NULL);
		rig_turns(&r, 200);
		made = checked = 0;
		talk(&r);
		assert_true(r.dp->adapter[0]->shard[0]->tp->c.v[URN_C_LOOPBACK] > 10);
		assert_int_equal(checked, 0);
		assert_int_equal(made, 0);
		rig_close(&r);
	}
}

/* Each node has an engine: each frame has its ICRC, and each is checked. */
static void
test_apart(void **state)
{
	struct rig r;

	(void)state;
	open_rig(&r, 2);
	for (unsigned int i = 0; i < 2; i++)
		assert_null(r.dp->adapter[i]->shard[i]->across);
	talk(&r);
	assert_true(checked > 0);
	assert_int_equal(made, checked);
	rig_close(&r);
}

/* ---- somebody looks */

static struct {
	unsigned int frames, bad; /* seen; without the right ICRC */
	unsigned int spoil;	  /* number of the frame that is changed on its way; 0: none */
} eye;

static void
look(struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);

	assert_non_null(c);
	if (urn_wire_parse(c) == URN_FRAME_ROCE) {
		eye.frames++;
		eye.bad += !__real_urn_wire_icrc_ok(c);
		made--;
		if (eye.frames == eye.spoil)
			rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 20] ^= 1;
	}
	rte_pktmbuf_free(c);
}

static uint16_t
on_tx(uint16_t port, uint16_t queue, struct rte_mbuf *m[], uint16_t n, void *arg)
{
	(void)port;
	(void)queue;
	(void)arg;
	for (uint16_t i = 0; i < n; i++)
		look(m[i]);
	return n;
}

static uint16_t
on_rx(uint16_t port, uint16_t queue, struct rte_mbuf *m[], uint16_t n, uint16_t max, void *arg)
{
	(void)max;
	return on_tx(port, queue, m, n, arg);
}

/*
 * A callback of ethdev at either end, as dpdk-dumpcap has them, sees whole frames. A frame that it
 * changes is dropped for that, and repeated. Without the callback there are no ICRCs again.
 */
static void
test_seen(void **state)
{
	(void)state;
	for (unsigned int end = 0; end < 2; end++) {
		const struct rte_eth_rxtx_callback *cb;
		const struct urn_tp *tp;
		struct rig r;

		open_rig(&r, 1);
		tp = r.dp->adapter[1]->shard[0]->tp;
		memset(&eye, 0, sizeof(eye));
		eye.spoil = 3;
		cb = end ? rte_eth_add_rx_callback(r.port[1]->id, 0, on_rx, NULL)
			 : rte_eth_add_tx_callback(r.port[0]->id, 0, on_tx, NULL);
		assert_non_null(cb);
		talk(&r);
		assert_true(eye.frames > 10);
		assert_int_equal(eye.bad, 0);
		assert_int_equal(tp->c.v[URN_C_DROP_ICRC], 1);
		if (end)
			rte_eth_remove_rx_callback(r.port[1]->id, 0, cb);
		else
			rte_eth_remove_tx_callback(r.port[0]->id, 0, cb);
		/* The first frames may have begun before. */
		for (unsigned int i = 0; i < 10 && (i == 0 || made + checked != 0); i++) {
			made = checked = 0;
			talk(&r);
		}
		assert_int_equal(made + checked, 0);
		rig_close(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_looped),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_seen),
	};

	return cmocka_run_group_tests_name("verbs_across", tests, NULL, NULL);
}
