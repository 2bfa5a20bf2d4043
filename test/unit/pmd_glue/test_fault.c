/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/eal_dir.h"
#include "pmd_glue/fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static volatile char *page; /* mapped, or not */

static uint16_t
touch_rx(uint16_t port, uint16_t q, struct rte_mbuf *m[], uint16_t n, uint16_t max, void *arg)
{
	(void)port;
	(void)q;
	(void)m;
	(void)max;
	(void)arg;
	*page = 1;
	return n;
}

static uint16_t
touch_tx(uint16_t port, uint16_t q, struct rte_mbuf *m[], uint16_t n, void *arg)
{
	(void)port;
	(void)q;
	(void)m;
	(void)arg;
	*page = 1;
	return n;
}

static struct urn_port *
port_that_touches(void)
{
	struct urn_port_config cfg = port_cfg("n", "net_null0,no-rx=0");
	struct urn_port *port;

	eal_up();
	port = port_up(&cfg);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(page != MAP_FAILED);
	check(rte_eth_add_rx_callback(port->id, 0, touch_rx, NULL) != NULL);
	check(rte_eth_add_tx_callback(port->id, 0, touch_tx, NULL) != NULL);
	check(urn_fault_setup() == 0 && urn_fault_setup() == 0);
	return port;
}

/* Memory that vanishes under a burst ends the burst, not the process; again and again. */
static void
vanishes(void *arg)
{
	struct urn_port *port = port_that_touches();
	struct urn_err err = {""};
	struct rte_mbuf *m[4];
	int i;

	(void)arg;
	check(urn_fault_rx(port, 0, m, 4) == 4 && !port->faulted);
	rte_pktmbuf_free_bulk(m, 4);
	check(munmap((void *)(uintptr_t)page, 4096) == 0);
	for (i = 0; i < 3; i++) {
		/* Complete packets that were received are handed over. */
		check(urn_fault_rx(port, 0, m, 4) == 4 && port->faulted);
		rte_pktmbuf_free_bulk(m, 4);
		port->faulted = false;
		m[0] = frame_make(port, 60, 1);
		check(urn_fault_tx(port, 0, m, 1) == 1 && port->faulted);
		rte_pktmbuf_free(m[0]);
		/* Until the port is started again nothing enters the PMD. */
		port->direct = false;
		check(urn_port_rx(port, 0, m, 4) == 0 && urn_port_tx(port, 0, m, 0) == 0);
		check(urn_port_poll_link(port) == 1 && !port->link_up);
		check_ok(urn_port_stop(port, &err), &err);
		check_ok(urn_port_start(port, &err), &err);
		check(!port->faulted && port->direct);
		check(urn_port_poll_link(port) == 1 && port->link_up);
	}
	urn_port_close(port);
}

/* A fault anywhere else has its usual effect. */
static void
elsewhere(void *arg)
{
	(void)arg;
	port_that_touches();
	munmap((void *)(uintptr_t)page, 4096);
	*page = 1;
}

static void
on_segv(int sig)
{
	(void)sig;
	_exit(7);
}

/* The program's own handler still gets its faults. */
static void
handled(void *arg)
{
	signal(SIGSEGV, on_segv);
	elsewhere(arg);
}

CHILD_TEST(vanishes)

static void
test_elsewhere(void **state)
{
	int status = child_run(elsewhere, NULL);
	struct urn_eal_dir dir;
	struct urn_err err;

	(void)state;
	/* The address sanitizer turns the signal into an exit. */
	assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ||
		    (WIFEXITED(status) && WEXITSTATUS(status) != 0));
	status = child_run(handled, NULL);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	/* The runtime folder of a process that dies so is left to the next one that starts. */
	assert_int_equal(urn_eal_dir_make(&dir, &err), 0);
	urn_eal_dir_remove(&dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vanishes),
		cmocka_unit_test(test_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
