/* SPDX-License-Identifier: BSD-3-Clause */
/* An adapter whose cable is pulled (pmd_glue/plug.h): the view of programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pmd_glue/plug.h"
#include "rig.h"

static struct rig rig;

static void
write_once(uint64_t id)
{
	rig_post(&rig, 0, IBV_WR_RDMA_WRITE, 0, 3000, 4096, id);
	assert_int_equal(rig_expect(&rig, 0, IBV_WC_SUCCESS).wr_id, id);
}

/* Both ends are told; posted requests wait, and go on when the cable is in again. */
static void
comes_and_goes(void **state)
{
	enum urn_port_plug how = *(enum urn_port_plug *)*state;
	const struct rig_qp patient = {.timeout = -1}; /* waits as long as it takes */

	rig_open(&rig, NULL, &patient);
	write_once(1);
	rig_no_event(&rig, 0);
	for (unsigned int round = 0; round < 2; round++) {
		assert_int_equal(urn_port_plug(rig.port[0], how, NULL), 0);
		rig_event(&rig, 0, IBV_EVENT_PORT_ERR);
		rig_event(&rig, 1, IBV_EVENT_PORT_ERR);
		rig_post(&rig, 1, IBV_WR_RDMA_WRITE, 0, 3000, 4096, 2);
		rig_quiet(&rig, 1);
		assert_int_equal(urn_port_plug(rig.port[0], URN_PORT_UP, NULL), 0);
		rig_event(&rig, 0, IBV_EVENT_PORT_ACTIVE);
		rig_event(&rig, 1, IBV_EVENT_PORT_ACTIVE);
	}
	rig_no_event(&rig, 0);
	rig_no_event(&rig, 1);
	rig_close(&rig);
}

/* With a timeout the requester repeats until the cable is in, or fails when its retries are used up. */
static void
retries(void **state)
{
	const struct rig_qp hasty = {.timeout = 8, .retry_cnt = 2};

	(void)state;
	rig_open(&rig, NULL, &hasty);
	write_once(1);
	assert_int_equal(urn_port_plug(rig.port[1], URN_PORT_FAILED, NULL), 0);
	rig_post(&rig, 0, IBV_WR_RDMA_WRITE, 0, 3000, 4096, 2);
	assert_int_equal(rig_expect(&rig, 0, IBV_WC_RETRY_EXC_ERR).wr_id, 2);
	assert_int_equal(urn_port_plug(rig.port[1], URN_PORT_UP, NULL), 0);
	rig_close(&rig);
}

int
main(void)
{
	static enum urn_port_plug down = URN_PORT_DOWN, failed = URN_PORT_FAILED;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(comes_and_goes, &failed),
		cmocka_unit_test_prestate(comes_and_goes, &down),
		cmocka_unit_test(retries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
