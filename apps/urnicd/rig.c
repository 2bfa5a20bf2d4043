/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include "admin_proto.h"
#include "folder.h"
#include "pdump.h"

#include "dataplane/memory/space.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_TRIES = 8 };

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

/* Offer ports for capture by their names; the ends of cables of an adapter on switches, by theirs.
 */
static int
captures_up(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	int rc = 0;

	rig->captures = urn_captures_create(c->urnicd.capture_dir, rig->base.dp, err);
	if (rig->captures == NULL)
		return -1;
	for (unsigned int i = 0; i < c->ports && rc == 0; i++)
		rc = urn_captures_add(rig->captures, c->port[i].port.name, rig->base.port[i], err);
	for (unsigned int i = 0; i < 2 * c->adapters && rc == 0; i++)
		if (rig->base.ring[i][0] != NULL)
			rc = urn_captures_add(rig->captures, rig->base.ring[i][0]->cfg.name,
					      rig->base.ring[i][0], err);
	return rc;
}

int
nicd_rig_open(struct nicd_rig *rig, const struct urn_config *cfg, struct urn_err *err)
{
	const struct urn_rig_opts opts = {.program = "urnicd", .mbufs = urn_captures_mbufs()};

	memset(rig, 0, sizeof(*rig));
	rig->cfg = cfg;
	if (cores_take(cfg, err) != 0 || urn_rig_start(&rig->base, cfg, &opts, err) != 0 ||
	    urn_rig_ports(&rig->base, err) != 0 || urn_rig_dataplane(&rig->base, err) != 0)
		return -1;
	nicd_pdump_quiesce(urn_captures_quiesce, rig->base.dp);
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
		rig->server = urn_server_open(rig->base.dp, &rig->server_config, err);
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
		.max =
			{
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
				[URN_QUOTA_QUEUE] = q->queue,
				[URN_QUOTA_MSG] = q->msg,
			},
	};
}

void
nicd_rig_limits(const struct urn_config *cfg, struct urn_server_config *out)
{
	const struct urn_limits now = limits_of(&cfg->limits.per_client);

	/* Reports read them meanwhile. */
	__atomic_store_n(&out->clients, few(cfg->limits.clients), __ATOMIC_RELAXED);
	__atomic_store_n(&out->clients_per_uid, few(cfg->limits.clients_per_uid), __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < URN_QUOTAS; i++)
		__atomic_store_n(&out->per_client.max[i], now.max[i], __ATOMIC_RELAXED);
}

static int
metrics_up(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	struct urn_metrics_source src = {
		.dp = rig->base.dp,
		.port = rig->base.port,
		.ports = c->ports,
		.server = rig->server,
		.captures = rig->captures,
		.sw = rig->metrics_sw,
		.switches = c->switches,
	};

	for (unsigned int i = 0; i < c->switches; i++)
		rig->metrics_sw[i] =
			(struct urn_metrics_switch){rig->base.sw[i], rig->base.fabric[c->sw[i].engine]};
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
	nicd_rig_limits(rig->cfg, &cfg);
	cfg.per_uid = limits_of(&l->per_uid);
	cfg.queues = l->queue;
	cfg.shared = urn_config_shared(rig->cfg);
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

void
nicd_rig_abandon(struct nicd_rig *rig)
{
	urn_rig_abandon(&rig->base);
}

void
nicd_rig_close(struct nicd_rig *rig)
{
	nicd_pdump_quiesce(NULL, NULL);
	urn_rig_close(&rig->base, NULL, NULL);
	memset(rig, 0, sizeof(*rig));
}
