/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that a configuration names, brought up: a rig (common/rig.h), and what others reach it by. */
#ifndef URNICD_RIG_H
#define URNICD_RIG_H

#include "common/rig.h"

#include "dataplane/config/config.h"
#include "dataplane/report/capture.h"
#include "dataplane/report/prometheus.h"
#include "dataplane/server/server.h"

struct nicd_reload;
struct urn_log;

struct nicd_rig {
	const struct urn_config *cfg;        /* owner: the caller */
	struct urn_rig base;                 /* the EAL, ports, switches, the dataplane */
	struct urn_captures *captures; /* by name of a port or of an adapter */
	struct urn_metrics_switch metrics_sw[URN_CONFIG_MAX_SWITCHES];
	struct urn_prometheus *prometheus; /* NULL: not asked for */
	struct urn_log *log;		   /* the log of events (log.h) */
	struct nicd_reload *reload;	   /* the configuration that was read last (reload.h) */
	struct urn_server *server;
	struct urn_server_config server_config; /* the server's limits; clients, clients_per_uid,
						   per_client: atomic */
	char socket[108];                    /* path of the socket for programs */
	char control[112];                   /* path of the control socket */
	gid_t control_gid;                   /* group that may control, beside user and root; (gid_t)-1: none */
	bool made_dir;                       /* this process made the socket's folder */
};

/* Bring up all but the server. returns: 0, or -1 with *err; nicd_rig_close() in either case */
int nicd_rig_open(struct nicd_rig *rig, const struct urn_config *cfg, struct urn_err *err);
/* Listen for programs; the engines are polled by now. returns: 0, or -1 with *err */
int nicd_rig_listen(struct nicd_rig *rig, struct urn_err *err);
/* Take the limits of a configuration that can change while programs are attached; atomically, field
 * by field. */
void nicd_rig_limits(const struct urn_config *cfg, struct urn_server_config *out);
/*
 * Let all programs go and end captures; the engines are still polled. returns: 0, or how many programs can't
 * be let go; then only nicd_rig_abandon() may take the rig down
 */
unsigned int nicd_rig_hang_up(struct nicd_rig *rig);
/* Take everything down; no engine is polled any more. */
void nicd_rig_close(struct nicd_rig *rig);
/* Close devices and remove files, but free nothing; the process must end after this. */
void nicd_rig_abandon(struct nicd_rig *rig);

#endif
