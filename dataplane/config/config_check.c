/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks values that must fit together or differ; then fills in the fields that follow from them. */
#include "config/config_priv.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* ---- engines */

static void
check_lcores(struct urn_config_ctx *ctx, unsigned int e)
{
	const struct urn_config *cfg = ctx->cfg;
	unsigned int line = urn_config_line(ctx->engine[e], "lcore");
	int lcore = cfg->engine[e].lcore;

	if (lcore < 0)
		return;
	if (CPU_COUNT(&cfg->eal.cores) > 0 && !CPU_ISSET((size_t)lcore, &cfg->eal.cores))
		urn_config_say(
			ctx, line,
			"lcore = %d is not among the cores of [eal] (line %u); add it there, "
			"or choose one of those",
			lcore, urn_config_line(ctx->only[URN_CK_EAL], "cores"));
	for (unsigned int i = 0; i < e; i++) {
		if (cfg->engine[i].lcore == lcore)
			urn_config_say(
				ctx, line,
				"lcore = %d is that of engine %u already (line %u); give each "
				"engine its own, or leave lcore out",
				lcore, i, urn_config_line(ctx->engine[i], "lcore"));
	}
}

static void
check_engines(struct urn_config_ctx *ctx)
{
	struct urn_config *cfg = ctx->cfg;
	bool gap = false;

	for (unsigned int e = 0; e < cfg->engines; e++) {
		if (!ctx->engine[e]) {
			gap = true;
			continue;
		}
		if (gap)
			urn_config_say(
				ctx, ctx->engine[e]->kind.line,
				"[engine %u], and there is no [engine %u]; number them from 0 "
				"on without a gap",
				e, e - 1);
		gap = false;
		check_lcores(ctx, e);
	}
	if (cfg->engines == 0)
		cfg->engines = 1;
}

/* ---- ports */

static void
check_device(struct urn_config_ctx *ctx, unsigned int i)
{
	const struct urn_config_port *p = ctx->cfg->port;
	char id[64], other[64], why[384];

	if (!urn_ini_find(ctx->port[i], "device")) {
		urn_config_say(
			ctx, p[i].line,
			"port %s has no device; give one, such as device = net_tap0,iface=urn0",
			p[i].port.name);
		return;
	}
	urn_config_device_id(p[i].port.device, id, sizeof(id));
	for (unsigned int k = 0; k < i && id[0] != '\0'; k++) {
		urn_config_device_id(p[k].port.device, other, sizeof(other));
		if (strcmp(id, other) == 0)
			urn_config_say(ctx, urn_config_line(ctx->port[i], "device"),
				       "device %s is that of port %s already (line %u); give each "
				       "port its own",
				       id, p[k].port.name, urn_config_line(ctx->port[k], "device"));
		else if (urn_config_memif_clash(p[i].port.device, p[k].port.device, why,
						sizeof(why)))
			urn_config_say(ctx, urn_config_line(ctx->port[i], "device"),
				       "port %s has %s already (line %u); give one of the two "
				       "another role, id or socket",
				       p[k].port.name, why,
				       urn_config_line(ctx->port[k], "device"));
	}
}

static void
check_ports(struct urn_config_ctx *ctx)
{
	unsigned int rings = 0;
	struct urn_config *cfg = ctx->cfg;

	for (unsigned int i = 0; i < cfg->ports; i++) {
		struct urn_config_port *p = &cfg->port[i];

		check_device(ctx, i);
		p->pci = strncmp(p->port.device, "net_", 4) != 0;
		if (p->adapter < 0 && p->sw < 0)
			urn_config_say(ctx, p->line,
				       "port %s is used by nobody; give an adapter port = %s or a "
				       "switch ports = %s, or leave it out",
				       p->port.name, p->port.name, p->port.name);
		else if (p->port.queues == 0)
			p->port.queues =
				p->adapter < 0 ? 1
					       : (uint16_t)__builtin_popcount(
							 cfg->adapter[p->adapter].adapter.engines);
	}
	for (unsigned int i = 0; i < cfg->adapters; i++)
		rings += cfg->adapter[i].sw < 0 ? 0 : cfg->adapter[i].two ? 4 : 2;
	if (cfg->ports + rings > URN_CONFIG_MAX_PORTS)
		urn_config_say(ctx, 0,
			       "%u ports, and two for each of %u adapters on a switch, are more "
			       "than the %u that DPDK has; leave some out",
			       cfg->ports, rings / 2, URN_CONFIG_MAX_PORTS);
}

/* ---- addresses */

/* A MAC address that is given, and its line. */
struct given {
	const uint8_t *mac;
	const char *kind, *name;
	unsigned int line;
};

static void
check_macs(struct urn_config_ctx *ctx)
{
	static const uint8_t none[6];
	struct urn_config *cfg = ctx->cfg;
	struct given list[2 * URN_CONFIG_MAX_PORTS];
	unsigned int n = 0;

	for (unsigned int i = 0; i < cfg->ports; i++)
		list[n++] = (struct given){cfg->port[i].port.mac, "port", cfg->port[i].port.name,
					   urn_config_line(ctx->port[i], "mac")};
	for (unsigned int i = 0; i < cfg->adapters; i++)
		list[n++] = (struct given){cfg->adapter[i].ring[0].mac, "adapter",
					   cfg->adapter[i].adapter.name,
					   urn_config_line(ctx->adapter[i], "mac")};
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < i; k++) {
			const struct given *a = &list[i], *b = &list[k];

			if (memcmp(a->mac, none, 6) == 0 || memcmp(a->mac, b->mac, 6) != 0)
				continue;
			urn_config_say(ctx, a->line,
				       "%02x:%02x:%02x:%02x:%02x:%02x is the MAC address of %s %s "
				       "already (line %u); give each its own",
				       a->mac[0], a->mac[1], a->mac[2], a->mac[3], a->mac[4],
				       a->mac[5], b->kind, b->name, b->line);
		}
	}
}

/* Check that no earlier adapter has the same address of a family as adapter i. */
static void
check_address(struct urn_config_ctx *ctx, unsigned int i, bool v6)
{
	const struct urn_config_adapter *a = ctx->cfg->adapter;
	const uint8_t *mine = v6 ? a[i].adapter.ipv6 : a[i].adapter.ipv4;
	static const uint8_t none[16];
	const char *key = v6 ? "ipv6" : "ipv4";
	size_t size = v6 ? 16 : 4;
	char text[INET6_ADDRSTRLEN];

	if (memcmp(mine, none, size) == 0)
		return;
	for (unsigned int k = 0; k < i; k++) {
		if (memcmp(mine, v6 ? a[k].adapter.ipv6 : a[k].adapter.ipv4, size) != 0)
			continue;
		inet_ntop(v6 ? AF_INET6 : AF_INET, mine, text, sizeof(text));
		urn_config_say(
			ctx, urn_config_line(ctx->adapter[i], key),
			"%s is the address of adapter %s already (line %u); give each its own",
			text, a[k].adapter.name, urn_config_line(ctx->adapter[k], key));
	}
}

/* ---- adapters and nodes */

static bool
has_section(const struct urn_ini *ini, const char *kind)
{
	for (unsigned int i = 0; i < ini->sections; i++) {
		if (strcmp(ini->section[i].kind.s, kind) == 0)
			return true;
	}
	return false;
}

/* Check that no port with rules for untagged frames has an adapter in a VLAN. */
static void
check_vlans(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++) {
		const struct urn_config_adapter *a = &ctx->cfg->adapter[i];

		for (unsigned int k = 0; k < 2 && (a->adapter.vlan || a->adapter.priority); k++) {
			int p = k == 0 ? a->port : a->port2;

			if (p < 0 || !ctx->cfg->port[p].port.steer)
				continue;
			urn_config_say(ctx,
				       urn_config_line(ctx->adapter[i],
						       a->adapter.vlan ? "vlan" : "priority"),
				       "steer = yes of port %s (line %u) lets untagged frames in "
				       "alone; leave out steer, or vlan and priority",
				       ctx->cfg->port[p].port.name,
				       urn_config_line(ctx->port[p], "steer"));
		}
	}
}

static void
check_adapters(struct urn_config_ctx *ctx)
{
	if (!has_section(ctx->ini, "adapter"))
		urn_config_say(
			ctx, 0,
			"there is no [adapter NAME], so there is nothing to attach to; write "
			"one with port = NAME or switch = NAME");
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++) {
		check_address(ctx, i, false);
		check_address(ctx, i, true);
	}
	check_macs(ctx);
	check_vlans(ctx);
}

/* Fill in the far end of the rings between an adapter and a switch; the name of the near end is
 * the adapter's, with the switch's behind it when there are two. */
static void
name_ends(struct urn_port_config ring[2], const char *adapter, const char *sw, bool two)
{
	ring[1] = ring[0];
	memset(ring[1].mac, 0, sizeof(ring[1].mac));
	if (two)
		snprintf(ring[0].name, sizeof(ring[0].name), "%.15s.%.15s", adapter, sw);
	else
		snprintf(ring[0].name, sizeof(ring[0].name), "%.15s", adapter);
	snprintf(ring[1].name, sizeof(ring[1].name), "%.15s.%.15s", sw, adapter);
}

/* Fill in the two ends of the rings between an adapter and its switch, or each of two. */
static void
make_rings(struct urn_config *cfg, struct urn_config_adapter *a)
{
	if (a->sw < 0) {
		memset(a->ring, 0, sizeof(a->ring));
		return;
	}
	/* A switch uses one queue; the first engine of the adapter has it. */
	a->ring[0].queues = 1;
	a->ring2[0] = a->ring[0];
	name_ends(a->ring, a->adapter.name, cfg->sw[a->sw].sw.name, a->two);
	if (a->two && a->sw2 >= 0)
		name_ends(a->ring2, a->adapter.name, cfg->sw[a->sw2].sw.name, true);
}

static int
find_node(const struct urn_config *cfg, const char *name)
{
	for (unsigned int i = 0; i < cfg->nodes; i++) {
		if (strcmp(cfg->node[i], name) == 0)
			return (int)i;
	}
	return -1;
}

static void
make_nodes(struct urn_config_ctx *ctx)
{
	struct urn_config *cfg = ctx->cfg;

	cfg->node = calloc(cfg->adapters + 1, sizeof(*cfg->node));
	if (!cfg->node) {
		ctx->no_room = true;
		return;
	}
	for (unsigned int i = 0; i < cfg->adapters; i++) {
		struct urn_config_adapter *a = &cfg->adapter[i];
		int node = find_node(cfg, a->adapter.node);

		if (node < 0) {
			node = (int)cfg->nodes++;
			snprintf(cfg->node[node], sizeof(cfg->node[node]), "%.15s",
				 a->adapter.node);
		}
		a->node = (unsigned int)node;
	}
}

/* Check that the node of clients that name none has an adapter. */
static void
check_node(struct urn_config_ctx *ctx)
{
	struct urn_config *cfg = ctx->cfg;
	struct urn_config_daemon *d = &cfg->urnicd;
	struct urn_near near;

	if (!cfg->node)
		return;
	if (d->node[0] == '\0') {
		if (cfg->nodes == 1)
			memcpy(d->node, cfg->node[0], sizeof(d->node));
		return;
	}
	if (find_node(cfg, d->node) >= 0)
		return;
	urn_near_begin(&near, d->node);
	for (unsigned int i = 0; i < cfg->nodes; i++)
		urn_near_try(&near, cfg->node[i]);
	urn_config_say(ctx, urn_config_line(ctx->only[URN_CK_URNICD], "node"),
		       "node %s has no adapter; %s%s%s", d->node,
		       near.best ? "did you mean " : "give one of them node = ",
		       near.best ? near.best : d->node, near.best ? "?" : "");
}

/* ---- paths of the process */

/* Check that no two files or sockets of the process have the same path. */
static void
check_paths(struct urn_config_ctx *ctx)
{
	const struct urn_config_daemon *d = &ctx->cfg->urnicd;
	const struct urn_ini_section *s = ctx->only[URN_CK_URNICD];
	char lock[sizeof(d->socket) + 8] = "", control[sizeof(d->socket) + 8] = "";
	char control_lock[sizeof(control) + 8] = "";
	const struct {
		const char *path, *what, *key;
	} list[] = {
		{d->socket, "socket", "socket"},
		{lock, "the lock beside the socket", "socket"},
		{control, d->control[0] ? "control" : "the control socket beside the socket",
		 "control"},
		{control_lock, "the lock beside the control socket", "control"},
		{d->pid_file, "pid_file", "pid_file"},
		{d->log_file, "log_file", "log_file"},
	};

	if (d->socket[0]) {
		snprintf(lock, sizeof(lock), "%s.lock", d->socket);
		snprintf(control, sizeof(control), "%s.ctl", d->socket);
	}
	if (d->control[0])
		snprintf(control, sizeof(control), "%s", d->control);
	else if (strlen(control) >= sizeof(d->control))
		urn_config_say(ctx, urn_config_line(s, "socket"),
			       "socket is too long for the control socket beside it, %s, which has "
			       "%zu bytes; %zu are the "
			       "most; give control = PATH, or a shorter socket",
			       control, strlen(control), sizeof(d->control) - 1);
	if (control[0] && strcmp(control, d->socket) != 0)
		snprintf(control_lock, sizeof(control_lock), "%s.lock", control);
	for (unsigned int i = 1; i < RTE_DIM(list); i++)
		for (unsigned int k = 0; k < i; k++)
			if (list[i].path[0] && strcmp(list[i].path, list[k].path) == 0)
				urn_config_say(ctx, urn_config_line(s, list[i].key),
					       "%s is the path of %s as well as of %s; give each its own",
					       list[i].path, list[k].what, list[i].what);
}

/* ---- congestion */

static void
check_marks(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->switches; i++) {
		char why[80];

		if (urn_mark_check(&ctx->cfg->sw[i].sw.mark, why, sizeof(why)) != 0)
			urn_config_say(ctx, urn_config_line(ctx->sw[i], "kmin"), "switch %s: %s",
				       ctx->cfg->sw[i].sw.name, why);
	}
}

static void
check_congestion(struct urn_config_ctx *ctx)
{
	const struct urn_config_congestion *c = &ctx->cfg->congestion;

	if (c->dcqcn.hyper < c->dcqcn.additive)
		urn_config_say(
			ctx, urn_config_line(ctx->only[URN_CK_CONGESTION], "hyper"),
			"hyper is less than additive, and the rate would rise slower after more "
			"steps; raise the one or lower the other");
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++) {
		ctx->cfg->adapter[i].adapter.dcqcn = c->dcqcn;
		ctx->cfg->adapter[i].adapter.delay_limit_ns = c->delay_limit_ns;
	}
	check_marks(ctx);
}

void
urn_config_check(struct urn_config_ctx *ctx)
{
	check_engines(ctx);
	urn_config_refer(ctx);
	urn_config_plug(ctx);
	check_ports(ctx);
	check_adapters(ctx);
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++)
		make_rings(ctx->cfg, &ctx->cfg->adapter[i]);
	make_nodes(ctx);
	check_node(ctx);
	urn_config_limits(ctx);
	check_paths(ctx);
	check_congestion(ctx);
}
