/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/node.h"

#include "common/session.h"

#include <urnic/attach.h>

#include "pmd_glue/intr.h"

#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>

enum { MBUFS = 8192, MAX_OBJECTS = 64 };
#define AREA (64u << 20) /* bytes for queues */

int
urn_node_start(struct urn_node *n, const char *program, struct urn_err *err)
{
	const struct urn_rig_opts opts = {.program = program};

	memset(n, 0, sizeof(*n));
	n->cfg.urnicd.telemetry = true;
	n->cfg.engines = 1;
	n->cfg.ports = 1;
	n->cfg.port = &n->cfg_port;
	n->cfg.adapters = 1;
	n->cfg.adapter = &n->cfg_adapter;
	n->cfg_port.port.mbufs = MBUFS;
	n->cfg_port.sw = -1;
	return urn_rig_start(&n->rig, &n->cfg, &opts, err);
}

/* Fill in the configuration of which the rig is built. */
static void
configure(struct urn_node *n, const struct urn_node_config *cfg)
{
	struct urn_port_config *port = &n->cfg_port.port;
	struct urn_adapter_config *adapter = &n->cfg_adapter.adapter;

	*port = cfg->port;
	snprintf(port->name, sizeof(port->name), "%s", cfg->name);
	port->queues = 1;
	port->mbufs = MBUFS;
	*adapter = cfg->adapter;
	snprintf(adapter->node, sizeof(adapter->node), "%s", cfg->name);
	adapter->engines = 1;
	adapter->max_qp = adapter->max_mr = MAX_OBJECTS;
	if (adapter->area_size == 0)
		adapter->area_size = AREA;
	n->cfg.engine[0].engine.idle = cfg->idle;
}

static void *
poll_engine(void *arg)
{
	struct urn_node *n = arg;

	rte_thread_register();
	urn_engine_run(n->engine, &n->stop);
	rte_thread_unregister();
	return NULL;
}

/* Have the engine polled, by a thread of the node's or by the caller. */
static int
engine_up(struct urn_node *n, bool thread, struct urn_err *err)
{
	n->engine = urn_dp_engine(n->rig.dp, 0);
	if (!thread) {
		urn_engine_bind(n->engine);
		return 0;
	}
	n->threaded = pthread_create(&n->thread, NULL, poll_engine, n) == 0;
	if (!n->threaded)
		urn_err_set(err, "no thread for the node's engine");
	return n->threaded ? 0 : -1;
}

static int
embed(struct urn_node *n, const struct urn_node_config *cfg, struct urn_err *err)
{
	configure(n, cfg);
	if (urn_rig_ports(&n->rig, err) != 0)
		return -1;
	n->port = n->rig.port[0];
	if (cfg->capture != NULL && urn_rig_capture(&n->rig, cfg->capture, err) != 0)
		return -1;
	return urn_rig_dataplane(&n->rig, err) != 0 ? -1 : engine_up(n, cfg->thread, err);
}

struct ibv_context *
urn_node_context(struct urn_dp *dp, unsigned int index, const char *attach, const char *name,
		 struct urn_err *err)
{
	bool usual = attach == NULL || strcmp(attach, "auto") == 0;
	struct urn_abi_channel *channel;
	struct ibv_context *ctx;

	if (dp == NULL) {
		ctx = urn_attach_connect(usual ? NULL : attach, name);
		if (ctx == NULL)
			urn_err_set(err, "%s", urn_attach_error());
		return ctx;
	}
	channel = urn_dp_attach(dp, index, err);
	if (channel == NULL)
		return NULL;
	ctx = urn_attach_open(channel);
	if (ctx == NULL)
		urn_err_set(err, "cannot open the adapter: %s", urn_attach_error());
	return ctx;
}

int
urn_node_open(struct urn_node *n, const struct urn_node_config *cfg, struct urn_err *err)
{
	if (cfg->attach == NULL && embed(n, cfg, err) != 0)
		return -1;
	n->ctx = cfg->session ? urn_session_open(err)
			      : urn_node_context(n->rig.dp, 0, cfg->attach, cfg->name, err);
	return n->ctx != NULL ? 0 : -1;
}

unsigned int
urn_node_turn(struct urn_node *n)
{
	return n->engine != NULL ? urn_engine_poll(n->engine) : 0;
}

void
urn_node_turn_idle(struct urn_node *n)
{
	n->empty = urn_node_turn(n) > 0 ? 0 : n->empty + 1;
	if (n->engine != NULL)
		urn_engine_idle(n->engine, n->empty);
}

bool
urn_node_link(struct urn_node *n, bool hold)
{
	if (n->port == NULL)
		return true;
	urn_port_poll_link(n->port);
	/*
	 * When the peer of a memif dies, the PMD's handler would unmap the rings during
	 * our bursts; held still, the handler leaves them.
	 */
	if (hold && n->port->link_up && !n->held)
		n->held = urn_intr_hold() == 0;
	return n->port->link_up;
}

int
urn_node_failed(const char *what, struct urn_err *err)
{
	urn_err_set(err, "cannot %s: %s", what, urn_attach_error());
	return -1;
}

void
urn_node_counters(const struct urn_node *n, struct urn_counters *out)
{
	memset(out, 0, sizeof(*out));
	if (n->rig.dp != NULL)
		urn_dp_counters(n->rig.dp, 0, out);
}

int
urn_node_close(struct urn_node *n, uint64_t *lost, struct urn_err *err)
{
	struct urn_err ignored;
	int rc;

	if (n->ctx != NULL)
		ibv_close_device(n->ctx);
	if (n->threaded) {
		__atomic_store_n(&n->stop, true, __ATOMIC_RELAXED);
		pthread_join(n->thread, NULL);
	} else if (n->engine != NULL) {
		urn_engine_unbind(n->engine);
	}
	rc = urn_rig_down(&n->rig, lost, err);
	if (n->held)
		urn_intr_release();
	urn_rig_close(&n->rig, NULL, &ignored);
	memset(n, 0, sizeof(*n));
	return rc;
}
