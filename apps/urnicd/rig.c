/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include "admin_proto.h"
#include "folder.h"

#include "dataplane/memory/space.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/pool.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_MBUFS = 8192, COPIES = 4096, FOLDER_TRIES = 8 };

/* Number of packets in all pools together, for the EAL's memory. */
static uint64_t
mbufs_of(const struct urn_config *c)
{
	uint64_t n = (c->switches ? COPIES : 0) + urn_captures_mbufs();

	for (unsigned int i = 0; i < c->ports; i++)
		n += c->port[i].port.mbufs ? c->port[i].port.mbufs : DEFAULT_MBUFS;
	for (unsigned int i = 0; i < c->adapters; i++)
		for (unsigned int k = 0; c->adapter[i].port < 0 && k < 2; k++)
			n += c->adapter[i].ring[k].mbufs ? c->adapter[i].ring[k].mbufs : DEFAULT_MBUFS;
	return n;
}

static int
eal_up(const struct urn_config *c, struct urn_err *err)
{
	const char *pci[URN_CONFIG_MAX_PORTS];
	struct urn_eal_config cfg = {
		.program = "urnicd",
		.memory_mb = c->eal.memory ? (unsigned int)(c->eal.memory >> 20)
					   : urn_eal_memory_mb(mbufs_of(c)),
		.huge_pages = c->eal.huge_pages == URN_CONFIG_HUGE_AUTO,
		.extra = c->eal.extra[0] ? c->eal.extra : NULL,
		.log_level = c->urnicd.log_level[0] ? c->urnicd.log_level : NULL,
		.file_prefix = c->eal.file_prefix[0] ? c->eal.file_prefix : NULL,
		.no_telemetry = !c->urnicd.telemetry,
		.pdump = true,
		.workers = c->engines,
		.pci = pci,
	};

	for (unsigned int i = 0; i < c->ports; i++)
		if (c->port[i].pci)
			pci[cfg.pci_count++] = c->port[i].port.device;
	return urn_eal_start(&cfg, err);
}

/* From here on all threads run on the cores of [eal]: DPDK's, programs' workers, our own. */
static int
cores_take(const struct urn_config *c, struct urn_err *err)
{
	if (CPU_COUNT(&c->eal.cores) == 0)
		return 0;
	urn_space_set_cpus(&c->eal.cores);
	if (sched_setaffinity(0, sizeof(c->eal.cores), &c->eal.cores) == 0)
		return 0;
	urn_err_set(err, "[eal] cores: this process may run on none of them: %s", strerror(errno));
	return -1;
}

static int
ports_up(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;

	for (unsigned int i = 0; i < c->ports; i++) {
		rig->port[i] = urn_port_open(&c->port[i].port, err);
		if (rig->port[i] == NULL)
			return -1;
	}
	for (unsigned int i = 0; i < c->adapters; i++)
		if (c->adapter[i].port < 0 &&
		    urn_port_open_ring_pair(c->adapter[i].ring, rig->ring[i], err) != 0)
			return -1;
	return 0;
}

/* ---- switches */

/* The port that is plugged in here; NULL: a link. */
static struct urn_port *
plugged(const struct nicd_rig *rig, const struct urn_config_plug *p)
{
	switch (p->kind) {
	case URN_CONFIG_PLUG_PORT:
		return rig->port[p->index];
	case URN_CONFIG_PLUG_ADAPTER:
		return rig->ring[p->index][1];
	case URN_CONFIG_PLUG_LINK:
		break;
	}
	return NULL;
}

static int
switch_up(struct nicd_rig *rig, unsigned int i, struct urn_err *err)
{
	const struct urn_config_switch *s = &rig->cfg->sw[i];
	struct urn_fabric **f = &rig->fabric[s->engine];
	struct urn_switch_config cfg = s->sw;
	int rc = 0;

	cfg.copies = rig->copies;
	if (*f == NULL)
		*f = urn_fabric_create(rig->copies);
	rig->sw[i] = *f ? urn_switch_create(&cfg) : NULL;
	if (rig->sw[i] == NULL || urn_fabric_add(*f, rig->sw[i]) < 0) {
		urn_err_set(err, "switch %s: no memory", s->sw.name);
		return -1;
	}
	for (unsigned int k = 0; k < s->plugs && rc >= 0; k++) {
		struct urn_switch_port_config port = s->plug[k].port;
		struct urn_port *dev = plugged(rig, &s->plug[k]);

		port.max_frame = dev ? urn_fabric_max_frame(dev) : 0;
		rc = urn_switch_add_port(rig->sw[i], &port);
		if (rc >= 0 && dev)
			rc = urn_fabric_plug(*f, rig->sw[i], (uint16_t)k, dev, true);
	}
	for (unsigned int k = 0; k < s->statics && rc >= 0; k++)
		rc = urn_fdb_set(urn_switch_fdb(rig->sw[i]), urn_mac(s->fixed[k].mac),
				 (uint16_t)s->fixed[k].plug);
	if (rc < 0)
		urn_err_set(err, "switch %s: %s", s->sw.name, strerror(-rc));
	return rc < 0 ? -1 : 0;
}

/* Make each link once, from the switch with the lower number. */
static int
links_up(struct nicd_rig *rig, struct urn_err *err)
{
	for (unsigned int i = 0; i < rig->cfg->switches; i++) {
		const struct urn_config_switch *s = &rig->cfg->sw[i];

		for (unsigned int k = 0; k < s->plugs; k++) {
			const struct urn_config_plug *p = &s->plug[k];
			int rc;

			if (p->kind != URN_CONFIG_PLUG_LINK || p->index < i)
				continue;
			rc = urn_switch_link(rig->sw[i], (uint16_t)k, rig->sw[p->index],
					     (uint16_t)p->peer);
			if (rc != 0) {
				urn_err_set(err, "switches %s and %s can't be linked: %s", s->sw.name,
					    rig->cfg->sw[p->index].sw.name, strerror(-rc));
				return -1;
			}
		}
	}
	return 0;
}

static int
switches_up(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_pool_config pool = {.name = "copies", .mbufs = COPIES};

	if (rig->cfg->switches == 0)
		return 0;
	rig->copies = urn_pool_create(&pool, err);
	if (rig->copies == NULL)
		return -1;
	for (unsigned int i = 0; i < rig->cfg->switches; i++)
		if (switch_up(rig, i, err) != 0)
			return -1;
	return links_up(rig, err);
}

/* ---- dataplane */

static int
dataplane_up(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	struct urn_adapter_config *a = calloc(c->adapters, sizeof(*a));
	struct urn_dp_config dp = {.engines = c->engines, .adapters = c->adapters, .adapter = a};

	if (a == NULL) {
		urn_err_set(err, "no memory for %u adapters", c->adapters);
		return -1;
	}
	for (unsigned int i = 0; i < c->engines; i++)
		dp.engine[i] = c->engine[i].engine;
	for (unsigned int i = 0; i < c->adapters; i++) {
		a[i] = c->adapter[i].adapter;
		a[i].port = c->adapter[i].port < 0 ? rig->ring[i][0] : rig->port[c->adapter[i].port];
	}
	rig->dp = urn_dp_create(&dp, err);
	free(a);
	return rig->dp ? 0 : -1;
}

/* Offer ports for capture by their names; an adapter on a switch by its own, at its end of the cable. */
static int
captures_up(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	int rc = 0;

	rig->captures = urn_captures_create(c->urnicd.capture_dir, rig->dp, err);
	if (rig->captures == NULL)
		return -1;
	for (unsigned int i = 0; i < c->ports && rc == 0; i++)
		rc = urn_captures_add(rig->captures, c->port[i].port.name, rig->port[i], err);
	for (unsigned int i = 0; i < c->adapters && rc == 0; i++)
		if (c->adapter[i].port < 0)
			rc = urn_captures_add(rig->captures, c->adapter[i].adapter.name,
					      rig->ring[i][0], err);
	return rc;
}

int
nicd_rig_open(struct nicd_rig *rig, const struct urn_config *cfg, struct urn_err *err)
{
	memset(rig, 0, sizeof(*rig));
	rig->cfg = cfg;
	rig->port = calloc(cfg->ports + 1, sizeof(*rig->port));
	rig->ring = calloc(cfg->adapters + 1, sizeof(*rig->ring));
	rig->sw = calloc(cfg->switches + 1, sizeof(struct urn_switch *));
	if (rig->port == NULL || rig->ring == NULL || rig->sw == NULL) {
		urn_err_set(err, "no memory");
		return -1;
	}
	if (cores_take(cfg, err) != 0 || eal_up(cfg, err) != 0 || ports_up(rig, err) != 0 ||
	    switches_up(rig, err) != 0 || dataplane_up(rig, err) != 0)
		return -1;
	return captures_up(rig, err);
}

/* ---- server */

/* Retry when the previous dataplane removes the folder on its way out, while this one starts. */
static int
listen_in_folder(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config_daemon *d = &rig->cfg->urnicd;
	bool shared = (d->mode & 077) || d->control_group[0] != '\0';

	for (unsigned int i = 0; i < FOLDER_TRIES; i++) {
		if (nicd_folder_make(rig->socket, shared, &rig->made_dir, err) != 0)
			return -1;
		rig->server = urn_server_open(rig->dp, &rig->server_config, err);
		if (rig->server != NULL)
			return 0;
		if (!nicd_folder_gone(rig->socket))
			break;
	}
	return -1;
}

static int
group_of(const char *name, gid_t *gid, struct urn_err *err)
{
	struct group g, *found = NULL;
	char buf[4096];

	*gid = (gid_t)-1;
	if (name[0] == '\0')
		return 0;
	if (getgrnam_r(name, &g, buf, sizeof(buf), &found) == 0 && found != NULL) {
		*gid = g.gr_gid;
		return 0;
	}
	urn_err_set(err, "group %s: there is none of that name", name);
	return -1;
}

static unsigned int
few(uint64_t n)
{
	return n < UINT32_MAX ? (unsigned int)n : UINT32_MAX;
}

static struct urn_limits
limits_of(const struct urn_config_quota *q)
{
	return (struct urn_limits){
		.max = {
			[URN_QUOTA_QP] = q->qp,
			[URN_QUOTA_CQ] = q->cq,
			[URN_QUOTA_SRQ] = q->srq,
			[URN_QUOTA_PD] = q->pd,
			[URN_QUOTA_AH] = q->ah,
			[URN_QUOTA_MR] = q->mr,
			[URN_QUOTA_PINNED] = q->pinned,
			[URN_QUOTA_CM] = q->cm,
			[URN_QUOTA_CHANNEL] = q->channel,
			[URN_QUOTA_SHARE] = q->share,
			[URN_QUOTA_SHARED] = q->shared,
			[URN_QUOTA_AREA] = q->area,
		},
	};
}

static int
metrics_up(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	struct urn_metrics_source src = {
		.dp = rig->dp,
		.port = rig->port,
		.ports = c->ports,
		.server = rig->server,
		.captures = rig->captures,
		.sw = rig->metrics_sw,
		.switches = c->switches,
	};

	for (unsigned int i = 0; i < c->switches; i++)
		rig->metrics_sw[i] =
			(struct urn_metrics_switch){rig->sw[i], rig->fabric[c->sw[i].engine]};
	if (c->urnicd.prometheus_host[0] == '\0')
		return 0;
	rig->prometheus = urn_prometheus_open(c->urnicd.prometheus_host, c->urnicd.prometheus_port,
					      &src, err);
	return rig->prometheus ? 0 : -1;
}

int
nicd_rig_listen(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config_daemon *d = &rig->cfg->urnicd;
	const struct urn_config_limits *l = &rig->cfg->limits;
	struct urn_server_config cfg = {.path = rig->socket, .mode = d->mode, .node = d->node};

	snprintf(rig->socket, sizeof(rig->socket), "%s", d->socket);
	if (rig->socket[0] == '\0' &&
	    urn_config_socket_default(geteuid() == 0, getenv("XDG_RUNTIME_DIR"), rig->socket, err) != 0)
		return -1;
	snprintf(rig->control, sizeof(rig->control), d->control[0] ? "%s" : "%s" ADMIN_SUFFIX,
		 d->control[0] ? d->control : rig->socket);
	if (group_of(d->group, &cfg.gid, err) != 0 ||
	    group_of(d->control_group, &rig->control_gid, err) != 0)
		return -1;
	cfg.clients = few(l->clients);
	cfg.clients_per_uid = few(l->clients_per_uid);
	cfg.per_client = limits_of(&l->per_client);
	cfg.per_uid = limits_of(&l->per_uid);
	rig->server_config = cfg;
	return listen_in_folder(rig, err) == 0 ? metrics_up(rig, err) : -1;
}

unsigned int
nicd_rig_hang_up(struct nicd_rig *rig)
{
	unsigned int held;

	urn_prometheus_close(rig->prometheus);
	rig->prometheus = NULL;
	held = urn_server_close(rig->server);
	rig->server = NULL;
	urn_captures_destroy(rig->captures);
	rig->captures = NULL;
	nicd_folder_leave(rig->socket, rig->made_dir);
	rig->made_dir = false;
	return held;
}

/* Close a port but keep its pool: stalled copies of foreign memory may still use the packets. */
static void
abandon_port(struct urn_port *p)
{
	if (p == NULL)
		return;
	p->pool = NULL;
	urn_port_close(p);
}

void
nicd_rig_abandon(struct nicd_rig *rig)
{
	for (unsigned int i = 0; rig->ring != NULL && i < rig->cfg->adapters; i++) {
		abandon_port(rig->ring[i][0]);
		abandon_port(rig->ring[i][1]);
	}
	for (unsigned int i = 0; rig->port != NULL && i < rig->cfg->ports; i++)
		abandon_port(rig->port[i]);
	urn_eal_stop();
}

void
nicd_rig_close(struct nicd_rig *rig)
{
	urn_dp_destroy(rig->dp);
	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES; i++)
		urn_fabric_destroy(rig->fabric[i]);
	for (unsigned int i = 0; rig->ring != NULL && i < rig->cfg->adapters; i++) {
		urn_port_close(rig->ring[i][0]);
		urn_port_close(rig->ring[i][1]);
	}
	for (unsigned int i = 0; rig->port != NULL && i < rig->cfg->ports; i++)
		urn_port_close(rig->port[i]);
	urn_pool_free(rig->copies);
	free(rig->port);
	free(rig->ring);
	free(rig->sw);
	urn_eal_stop();
	memset(rig, 0, sizeof(*rig));
}
