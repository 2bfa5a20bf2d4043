/* SPDX-License-Identifier: BSD-3-Clause */
/* Configures the common rig: two nodes whose ports are joined directly or by a switch; waits for
 * links. */
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

/* Addresses of the first two nodes, from the ranges for documentation; those of others follow. */
const uint8_t perf_node_ipv4[2][4] = {{192, 0, 2, 1}, {192, 0, 2, 2}};
const uint8_t perf_node_ipv6[2][16] = {
	{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
	{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};

static void
sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&ts, NULL);
}

/* ---- the configuration */

/* Number of nodes: A, B, and in msg_incast others that send. */
static unsigned int
nodes_of(const struct perf_opts *o)
{
	return perf_op_is_msg(o->op) ? o->senders + 1 : 2;
}

/* Number of node i's port in the configuration; the switch's end of it, if there is one, follows.
 */
static unsigned int
port_of(const struct perf_opts *o, unsigned int i)
{
	return o->wire.on ? 2 * i : i;
}

/* Port k but for its device, which name_devices() adds. */
static void
port_config(struct urn_config_port *p, const struct perf_opts *o, unsigned int k)
{
	struct urn_port_config *cfg = &p->port;
	bool plug = o->wire.on && k % 2 == 1;
	unsigned int side = o->wire.on ? k / 2 : k;

	snprintf(cfg->name, sizeof(cfg->name), plug ? "switch-%c" : "%c", 'A' + (int)side);
	cfg->roce_mtu = (uint16_t)o->mtu;
	cfg->queues = 1;
	cfg->rx_desc = (uint16_t)o->descs;
	cfg->tx_desc = (uint16_t)o->descs;
	cfg->mbufs = o->mbufs;
	p->adapter = plug ? -1 : (int)side;
	p->sw = plug ? 0 : -1;
	p->plug = plug ? (int)side : -1;
}

/* Node i, as all operations have it. The last node has an engine of its own. */
static void
adapter_config(struct urn_config_adapter *a, const struct perf_opts *o, unsigned int i)
{
	struct urn_adapter_config *cfg = &a->adapter;

	snprintf(cfg->node, sizeof(cfg->node), "%c", 'A' + (int)i);
	cfg->engines = i + 1 == nodes_of(o) ? 2u : 1u;
	memcpy(cfg->ipv4, perf_node_ipv4[0], sizeof(cfg->ipv4));
	memcpy(cfg->ipv6, perf_node_ipv6[0], sizeof(cfg->ipv6));
	cfg->ipv4[3] = cfg->ipv6[15] = (uint8_t)(i + 1);
	cfg->no_icrc = o->no_icrc;
	a->port = (int)port_of(o, i);
	a->sw = a->plug = -1;
	a->node = i;
}

static void
configure(struct rig *rig, const struct perf_opts *o)
{
	struct urn_config *c = &rig->cfg;
	unsigned int nodes = nodes_of(o);

	c->urnicd.telemetry = true;
	c->engines = 2;
	c->ports = o->wire.on ? 2 * nodes : nodes;
	c->port = rig->cfg_port;
	for (unsigned int k = 0; k < c->ports; k++)
		port_config(&c->port[k], o, k);
	c->adapters = nodes;
	c->adapter = rig->cfg_adapter;
	for (unsigned int i = 0; i < nodes; i++)
		adapter_config(&c->adapter[i], o, i);
	if (!o->wire.on)
		return;
	c->switches = 1;
	c->sw = &rig->cfg_sw;
	perf_wire_config(c->sw, rig->cfg_plug, nodes, &o->wire);
}

/* Name the ports' devices: sockets of memif are in the EAL's folder. Ring pairs have no names. */
static void
name_devices(struct rig *rig, const struct perf_opts *o)
{
	for (unsigned int k = 0; k < rig->cfg.ports; k++) {
		struct urn_port_config *cfg = &rig->cfg_port[k].port;

		if (o->link == PERF_MEMIF)
			snprintf(cfg->device, sizeof(cfg->device),
				 "net_memif%u,role=%s,id=0,socket=%.400s/perf%u.sock,"
				 "socket-abstract=no",
				 k, k % 2 == 0 ? "server" : "client", urn_eal_dir(), k / 2);
		else if (o->link == PERF_NULL)
			snprintf(cfg->device, sizeof(cfg->device), "net_null%u,size=%u,copy=0", k,
				 (unsigned int)(o->size < o->mtu ? o->size : o->mtu) +
					 FRAME_HEADERS);
	}
}

/* ---- up and down */

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
		if (urn_rig_links_up(&rig->base))
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
	const struct urn_rig_opts opts = {.program = "urnic-perf", .copies = o->mbufs};

	memset(rig, 0, sizeof(*rig));
	configure(rig, o);
	if (urn_rig_start(&rig->base, &rig->cfg, &opts, err) != 0)
		return -1;
	name_devices(rig, o);
	if (urn_rig_ports(&rig->base, err) != 0)
		return -1;
	for (unsigned int i = 0; i < 2; i++)
		rig->port[i] = rig->base.port[port_of(o, i == 0 ? 0 : nodes_of(o) - 1)];
	perf_wire_open(&rig->wire, &rig->base);
	if (settle_mtu(rig, o, err) || wait_link(rig, err))
		return -1;
	rig->tsc_hz = rte_get_tsc_hz();
	return o->capture != NULL ? urn_rig_capture(&rig->base, o->capture, err) : 0;
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
	int rc = urn_rig_close(&rig->base, capture_lost, err);

	memset(rig, 0, sizeof(*rig));
	return rc;
}
