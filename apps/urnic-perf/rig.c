/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL, the two joined ports, capture. */
#include "perf.h"

#include "common/text.h"
#include "pmd_glue/eal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

/* Longest wait for a link to come up. memif's two ends find each other in some 200 ms. */
#define LINK_UP_MS 5000u
#define LINK_POLL_MS 10u
#define TSC_MS 50u /* time for measuring the rate of the TSC */
/* Turns without a frame after which everything has arrived. */
#define DRAIN_TURNS 1000u
/* Bytes of a frame that are no payload: Ethernet, IPv6, UDP, BTH, RETH, ICRC. */
#define FRAME_HEADERS (14u + 40u + 8u + 12u + 16u + 4u)

static void
sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&ts, NULL);
}

static int
eal_up(const struct perf_opts *o, struct urn_err *err)
{
	struct urn_eal_config cfg = {
		.program = "urnic-perf",
		.memory_mb = urn_eal_memory_mb((o->wire.on ? 5 : 2) * (uint64_t)o->mbufs),
	};

	return urn_eal_start(&cfg, err);
}

/* side: the node's; end: 0 the node's port, 1 the port it is joined to: the other node's or the switch's */
static void
port_config(struct urn_port_config *cfg, const struct perf_opts *o, unsigned int side,
	    unsigned int end)
{
	memset(cfg, 0, sizeof(*cfg));
	snprintf(cfg->name, sizeof(cfg->name), end == 0 ? "%c" : "switch-%c", 'A' + (int)side);
	cfg->roce_mtu = (uint16_t)o->mtu;
	cfg->queues = 1;
	cfg->rx_desc = (uint16_t)o->descs;
	cfg->tx_desc = (uint16_t)o->descs;
	cfg->mbufs = o->mbufs;
	if (o->link == PERF_MEMIF)
		snprintf(cfg->device, sizeof(cfg->device),
			 "net_memif%u,role=%s,id=0,socket=%.400s/perf%u.sock,socket-abstract=no",
			 2 * side + end, end == 0 ? "server" : "client", urn_eal_dir(), side);
	else if (o->link == PERF_NULL)
		snprintf(cfg->device, sizeof(cfg->device), "net_null%u,size=%u,copy=0", side,
			 (unsigned int)(o->size < o->mtu ? o->size : o->mtu) + FRAME_HEADERS);
}

/* Open two ports that are joined. On failure out has those that are open. */
static int
pair_up(const struct urn_port_config cfg[2], const struct perf_opts *o, struct urn_port *out[2],
	struct urn_err *err)
{
	out[0] = out[1] = NULL;
	if (o->link == PERF_RING)
		return urn_port_open_ring_pair(cfg, out, err);
	for (unsigned int i = 0; i < 2; i++) {
		out[i] = urn_port_open(&cfg[i], err);
		if (out[i] == NULL)
			return -1;
	}
	return 0;
}

static int
ports_up(struct rig *rig, const struct perf_opts *o, struct urn_err *err)
{
	struct urn_port_config cfg[2];

	port_config(&cfg[0], o, 0, 0);
	if (o->link == PERF_NULL) {
		port_config(&cfg[1], o, 1, 0);
	} else {
		port_config(&cfg[1], o, 0, 1);
		snprintf(cfg[1].name, sizeof(cfg[1].name), "B");
	}
	return pair_up(cfg, o, rig->port, err);
}

/* Join each node's port with a port of the switch. */
static int
wire_up(struct rig *rig, const struct perf_opts *o, struct urn_err *err)
{
	struct urn_port_config cfg[2];
	struct urn_port *pair[2];
	int rc;

	for (unsigned int i = 0; i < 2; i++) {
		port_config(&cfg[0], o, i, 0);
		port_config(&cfg[1], o, i, 1);
		rc = pair_up(cfg, o, pair, err);
		rig->port[i] = pair[0];
		rig->wire.plug[i] = pair[1];
		if (rc != 0)
			return -1;
	}
	return perf_wire_open(&rig->wire, &o->wire, o->mbufs, err);
}

/* Lower the MTU, before anything is measured, when the ports carry less than was asked for, or the default. */
static int
settle_mtu(const struct rig *rig, struct perf_opts *o, struct urn_err *err)
{
	for (unsigned int i = 0; i < 2; i++)
		if (perf_options_mtu(o, rig->port[i]->caps.roce_mtu, rig->port[i]->cfg.name, err) != 0)
			return -1;
	return 0;
}

static int
wait_link(struct rig *rig, struct urn_err *err)
{
	for (unsigned int ms = 0; ms < LINK_UP_MS; ms += LINK_POLL_MS) {
		urn_port_poll_link(rig->port[0]);
		urn_port_poll_link(rig->port[1]);
		if (perf_wire_is_up(&rig->wire) && rig->port[0]->link_up && rig->port[1]->link_up)
			return 0;
		if (urn_stop_requested()) {
			urn_err_set(err, "interrupted while the link came up");
			return -1;
		}
		sleep_ms(LINK_POLL_MS);
	}
	urn_err_set(err, "the link between the two ports is still down after %u seconds",
		    LINK_UP_MS / 1000);
	return -1;
}

void
rig_attach(struct rig *rig)
{
	struct timespec a, b;
	uint64_t tsc;

	memset(rig, 0, sizeof(*rig));
	/* Measure the TSC's rate: the EAL, which knows it, was not started. */
	clock_gettime(CLOCK_MONOTONIC, &a);
	tsc = rte_rdtsc();
	sleep_ms(TSC_MS);
	clock_gettime(CLOCK_MONOTONIC, &b);
	tsc = rte_rdtsc() - tsc;
	rig->tsc_hz = (uint64_t)((double)tsc * 1e9 / ((double)(b.tv_sec - a.tv_sec) * 1e9 +
						       (double)(b.tv_nsec - a.tv_nsec)));
}

int
rig_open(struct rig *rig, struct perf_opts *o, struct urn_err *err)
{
	memset(rig, 0, sizeof(*rig));
	if (eal_up(o, err) || (o->wire.on ? wire_up : ports_up)(rig, o, err) ||
	    settle_mtu(rig, o, err) || wait_link(rig, err))
		return -1;
	rig->tsc_hz = rte_get_tsc_hz();
	if (o->capture != NULL) {
		rig->capture = urn_capture_open(o->capture, rig->port, 2, err);
		if (rig->capture == NULL)
			return -1;
	}
	return 0;
}

void
rig_drain(struct rig *rig)
{
	struct rte_mbuf *m[PERF_BATCH];
	unsigned int n, empty = 0;

	if (rig->port[0] == NULL)
		return;
	while (empty < DRAIN_TURNS) {
		n = perf_wire_poll(&rig->wire);
		for (unsigned int i = 0; i < 2; i++) {
			unsigned int k = urn_port_rx(rig->port[i], 0, m, PERF_BATCH);

			rte_pktmbuf_free_bulk(m, k);
			n += k;
		}
		empty = n > 0 ? 0 : empty + 1;
	}
}

int
rig_close(struct rig *rig, uint64_t *capture_lost, struct urn_err *err)
{
	int rc = 0;

	*capture_lost = 0;
	if (rig->capture != NULL)
		rc = urn_capture_close(rig->capture, capture_lost, err);
	perf_wire_close(&rig->wire);
	urn_port_close(rig->port[0]);
	urn_port_close(rig->port[1]);
	memset(rig, 0, sizeof(*rig));
	urn_eal_stop();
	return rc;
}
