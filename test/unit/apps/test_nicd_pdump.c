/* SPDX-License-Identifier: BSD-3-Clause */
/* A callback of a port that urnicd polls is removed when no engine can be in it any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "urnicd/pdump.h"

#include "pmd_glue/eal.h"
#include "pmd_glue/port.h"

#include <rte_ethdev.h>

#include <errno.h>
#include <string.h>

static struct urn_port *port;
static unsigned int waits; /* calls of quiesce() */

static int
setup(void **state)
{
	const struct urn_eal_config eal = {.program = "test_nicd_pdump", .memory_mb = 128};
	struct urn_port_config cfg = {.device = "net_null0", .queues = 1, .mbufs = 2048};
	struct urn_err err;

	(void)state;
	strcpy(cfg.name, "n");
	if (urn_eal_start(&eal, &err) != 0)
		return -1;
	port = urn_port_open(&cfg, &err);
	return port != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	urn_port_close(port);
	urn_eal_stop();
	return 0;
}

static void
quiesce(void *arg)
{
	assert_ptr_equal(arg, &waits);
	waits++;
}

static uint16_t
rx_seen(uint16_t id, uint16_t queue, struct rte_mbuf *m[], uint16_t n, uint16_t max, void *arg)
{
	(void)id, (void)queue, (void)m, (void)max, (void)arg;
	return n;
}

static uint16_t
tx_seen(uint16_t id, uint16_t queue, struct rte_mbuf *m[], uint16_t n, void *arg)
{
	(void)id, (void)queue, (void)m, (void)arg;
	return n;
}

/* Add and remove a callback of each direction. */
static void
add_and_remove(void)
{
	const struct rte_eth_rxtx_callback *rx, *tx;

	rx = rte_eth_add_rx_callback(port->id, 0, rx_seen, NULL);
	tx = rte_eth_add_tx_callback(port->id, 0, tx_seen, NULL);
	assert_non_null(rx);
	assert_non_null(tx);
	assert_int_equal(rte_eth_remove_rx_callback(port->id, 0, rx), 0);
	assert_int_equal(rte_eth_remove_tx_callback(port->id, 0, tx), 0);
	/* Ethdev itself removed them: there is nothing to remove. */
	assert_int_equal(rte_eth_remove_rx_callback(port->id, 0, rx), -EINVAL);
}

static void
test_waits(void **state)
{
	(void)state;
	nicd_pdump_quiesce(quiesce, &waits);
	add_and_remove();
	assert_int_equal(waits, 2);
}

static void
test_no_engines(void **state)
{
	(void)state;
	nicd_pdump_quiesce(NULL, NULL);
	waits = 0;
	add_and_remove();
	assert_int_equal(waits, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_no_engines),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
