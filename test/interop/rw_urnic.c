/* SPDX-License-Identifier: BSD-3-Clause */
/* rw_open() with urnic: a dataplane on port DEVICE with address IP, in a thread of its own. */
#include "rw.h"

#include "common/node.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

static struct urn_node nic;

static void
need(bool ok, const struct urn_err *err)
{
	if (!ok)
		rw_fail("%s", err->text);
}

/* Arguments: DEVICE IP CAPTURE. */
struct ibv_context *
rw_open(char **argv, int n)
{
	struct urn_node_config cfg = {.name = "rw", .idle = URN_IDLE_PAUSE, .thread = true};
	struct urn_err err = {""};
	struct ibv_context *ctx;

	if (n != 3 || (inet_pton(AF_INET, argv[1], cfg.adapter.ipv4) != 1 &&
		       inet_pton(AF_INET6, argv[1], cfg.adapter.ipv6) != 1))
		rw_fail("wants DEVICE IP CAPTURE besides");
	snprintf(cfg.port.device, sizeof(cfg.port.device), "%s", argv[0]);
	cfg.capture = argv[2];
	need(urn_node_start(&nic, "rw", &err) == 0, &err);
	need(urn_node_open(&nic, &cfg, &err) == 0, &err);
	while (!nic.port->link_up) /* the engine updates the link's state */
		usleep(1000);
	ctx = nic.ctx;
	nic.ctx = NULL; /* the program closes the context */
	return ctx;
}

void
rw_close(void)
{
	struct urn_counters c;
	struct urn_err err;
	uint64_t lost = 0;
	int rc;

	urn_node_counters(&nic, &c);
	rc = urn_node_close(&nic, &lost, &err);
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		if (c.v[i] != 0)
			printf("counter %s %llu\n", urn_counter_name(i),
			       (unsigned long long)c.v[i]);
	}
	if (rc != 0)
		rw_fail("%s", err.text);
	printf("capture_lost %llu\n", (unsigned long long)lost);
}
