/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic's: a dataplane on the port DEVICE with the address IP, in a thread of its own. */
#include "rw.h"

#include <urnic/attach.h>

#include "control/dataplane.h"
#include "pmd_glue/capture.h"
#include "pmd_glue/eal.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_lcore.h>

static struct {
	struct urn_port *port;
	struct urn_capture *capture;
	struct urn_dp *dp;
	pthread_t thread;
	volatile bool stop;
} nic;

static void *
nic_main(void *arg)
{
	rte_thread_register();
	urn_engine_run(urn_dp_engine(nic.dp, 0), &nic.stop);
	rte_thread_unregister();
	return arg;
}

static void
need(bool ok, const struct urn_err *err)
{
	if (!ok)
		rw_fail("%s", err->text);
}

/* DEVICE IP CAPTURE */
struct ibv_context *
rw_open(char **argv, int n)
{
	struct urn_eal_config eal = {.program = "rw", .memory_mb = urn_eal_memory_mb(8192)};
	struct urn_port_config pc = {.name = "rw", .queues = 1, .mbufs = 8192};
	struct urn_adapter_config ac = {.node = "rw", .engines = 1, .max_qp = 64, .max_mr = 64,
					.area_size = 64u << 20};
	struct urn_dp_config dc = {.engines = 1, .adapters = 1, .adapter = &ac};
	struct urn_abi_channel *channel;
	struct urn_err err = {""};

	if (n != 3 || (inet_pton(AF_INET, argv[1], ac.ipv4) != 1 &&
		       inet_pton(AF_INET6, argv[1], ac.ipv6) != 1))
		rw_fail("wants DEVICE IP CAPTURE besides");
	need(urn_eal_start(&eal, &err) == 0, &err);
	snprintf(pc.device, sizeof(pc.device), "%s", argv[0]);
	nic.port = urn_port_open(&pc, &err);
	need(nic.port != NULL, &err);
	nic.capture = urn_capture_open(argv[2], &nic.port, 1, &err);
	need(nic.capture != NULL, &err);
	ac.port = nic.port;
	dc.engine[0].idle = URN_IDLE_PAUSE;
	nic.dp = urn_dp_create(&dc, &err);
	need(nic.dp != NULL, &err);
	if (pthread_create(&nic.thread, NULL, nic_main, NULL) != 0)
		rw_fail("no thread for the NIC");
	while (!nic.port->link_up) /* the engine looks at it */
		usleep(1000);
	channel = urn_dp_attach(nic.dp, 0, &err);
	need(channel != NULL, &err);
	return urn_attach_open(channel);
}

void
rw_close(void)
{
	struct urn_counters c;
	struct urn_err err;
	uint64_t lost = 0;

	nic.stop = true;
	pthread_join(nic.thread, NULL);
	urn_dp_counters(nic.dp, 0, &c);
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		if (c.v[i] != 0)
			printf("counter %s %llu\n", urn_counter_name(i), (unsigned long long)c.v[i]);
	}
	urn_dp_destroy(nic.dp);
	if (urn_capture_close(nic.capture, &lost, &err) != 0)
		rw_fail("%s", err.text);
	printf("capture_lost %llu\n", (unsigned long long)lost);
	urn_port_close(nic.port);
	urn_eal_stop();
}
