/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The format wants all samples of a family together, so each function goes over
 * its objects once for a counter.
 */
#include "report/prometheus_text.h"

#include "control/adapter.h"
#include "report/capture.h"
#include "report/report.h"
#include "server/server.h"
#include "switch/fabric.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_version.h>

/* A value that another thread writes. */
#define LOOK(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

enum kind { GAUGE, COUNTER };

/* Begin a family. prefix and name make the family's name; help: a line */
static void
family(FILE *out, enum kind kind, const char *prefix, const char *name, const char *help)
{
	const char *end = kind == COUNTER ? "_total" : "";

	fprintf(out, "# HELP %s%s%s ", prefix, name, end);
	for (const char *p = help; *p; p++) {
		if (*p == '\\' || *p == '\n')
			fputc('\\', out);
		fputc(*p == '\n' ? 'n' : *p, out);
	}
	fprintf(out, "\n# TYPE %s%s%s %s\n", prefix, name, end,
		kind == COUNTER ? "counter" : "gauge");
}

/* Begin the family of a counter of the scope. */
static void
counter_family(FILE *out, const struct urn_counter_scope *scope, unsigned int id)
{
	char prefix[48];

	snprintf(prefix, sizeof(prefix), "urnic_%s_", scope->word);
	family(out, COUNTER, prefix, urn_counter_name_in(scope, id),
	       urn_counter_text_in(scope, id));
}

static void
label(FILE *out, char before, const char *name, const char *value)
{
	fprintf(out, "%c%s=\"", before, name);
	for (const char *p = value; *p; p++) {
		if (*p == '\\' || *p == '\n' || *p == '"')
			fputc('\\', out);
		fputc(*p == '\n' ? 'n' : *p, out);
	}
	fputc('"', out);
}

static void
value(FILE *out, uint64_t v)
{
	fprintf(out, "} %" PRIu64 "\n", v);
}

static void
single(FILE *out, enum kind kind, const char *name, const char *help, uint64_t v)
{
	family(out, kind, "urnic_", name, help);
	fprintf(out, "urnic_%s%s %" PRIu64 "\n", name, kind == COUNTER ? "_total" : "", v);
}

static void
build_info(FILE *out)
{
	family(out, GAUGE, "urnic_", "build_info", "1; which versions run");
	fputs("urnic_build_info", out);
	label(out, '{', "version", URN_VERSION);
	label(out, ',', "dpdk", rte_version());
	value(out, 1);
}

static void
server(const struct urn_server *s, FILE *out)
{
	struct urn_server_counters c;

	if (s == NULL)
		return;
	urn_server_counters(s, &c);
	single(out, GAUGE, "clients", "connections of programs now", c.clients);
	single(out, COUNTER, "client_connections", "connections of programs", c.accepted);
	single(out, COUNTER, "client_refused", "connections turned away", c.refused);
	single(out, COUNTER, "client_opened", "adapters opened", c.opened);
	single(out, COUNTER, "client_calls", "control calls", c.calls);
	single(out, COUNTER, "client_bad_messages", "messages that made no sense", c.bad);
	single(out, COUNTER, "queue_memory_refused",
	       "requests for memory of queues refused, since all programs together had it",
	       c.queue_memory_refused);
}

/* Metrics of captures. Frames that found no room are missing in the capture's file, and nowhere else. */
static void
captures(struct urn_captures *c, FILE *out)
{
	struct urn_capture_status all;

	if (c == NULL)
		return;
	urn_capture_totals(c, &all);
	single(out, COUNTER, "capture_frames", "frames written by captures", all.frames);
	single(out, COUNTER, "capture_bytes", "bytes of the files of captures", all.bytes);
	single(out, COUNTER, "capture_dropped",
	       "frames that captures had no room for, or could not write", all.dropped);
}

/* ---- engines */

static void
engines(const struct urn_dp *dp, FILE *out)
{
	struct urn_engine_usage u;

	family(out, COUNTER, "urnic_", "engine_turns", "turns of an engine");
	for (unsigned int i = 0; i < dp->engines_n; i++) {
		urn_engine_usage(dp->engine[i], &u);
		fprintf(out, "urnic_engine_turns_total{engine=\"%u\"} %" PRIu64 "\n", i, u.turns);
	}
	family(out, COUNTER, "urnic_", "engine_busy_seconds",
	       "time of turns that found something to do");
	for (unsigned int i = 0; i < dp->engines_n; i++) {
		urn_engine_usage(dp->engine[i], &u);
		fprintf(out,
			"urnic_engine_busy_seconds_total{engine=\"%u\"} %" PRIu64 ".%09" PRIu64
			"\n",
			i, u.busy_ns / 1000000000u, u.busy_ns % 1000000000u);
	}
}

/* ---- adapters */

static void
adapter_labels(const struct urn_adapter *a, const char *name, const char *end, FILE *out)
{
	fprintf(out, "urnic_adapter_%s%s", name, end);
	label(out, '{', "adapter", a->cfg.name);
	label(out, ',', "node", a->cfg.node);
}

static uint64_t
qps_of(const struct urn_adapter *a)
{
	uint64_t n = 0;

	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++)
		if (a->shard[e])
			n += LOOK(a->shard[e]->tp->qp_count);
	return n;
}

static void
adapters(const struct urn_dp *dp, FILE *out)
{
	family(out, GAUGE, "urnic_adapter_", "up", "1 while the link of its port is up");
	for (unsigned int i = 0; i < dp->adapters_n; i++) {
		adapter_labels(dp->adapter[i], "up", "", out);
		value(out, LOOK(dp->adapter[i]->cfg.port->link_up));
	}
	family(out, GAUGE, "urnic_adapter_", "qps", "queue pairs now");
	for (unsigned int i = 0; i < dp->adapters_n; i++) {
		adapter_labels(dp->adapter[i], "qps", "", out);
		value(out, qps_of(dp->adapter[i]));
	}
	for (unsigned int k = 0; k < URN_COUNTER_COUNT; k++) {
		counter_family(out, &urn_adapter_scope, k);
		for (unsigned int i = 0; i < dp->adapters_n; i++) {
			adapter_labels(dp->adapter[i], urn_counter_name(k), "_total", out);
			value(out, urn_adapter_count(dp->adapter[i], k));
		}
	}
}

/* ---- register sets of messages, all of an adapter together: their number is the programs' choice
 */

static const struct {
	const char *name, *text;
	size_t offset; /* in struct urn_report_msg_totals */
} msg_gauges[] = {
	{"msg_sets", "register sets now", offsetof(struct urn_report_msg_totals, sets)},
	{"msg_sets_pending", "register sets whose message is on its way now",
	 offsetof(struct urn_report_msg_totals, pending)},
	{"msg_queues", "receive queues of messages now",
	 offsetof(struct urn_report_msg_totals, queues)},
	{"msg_queue_bytes", "bytes of the rings of receive queues now",
	 offsetof(struct urn_report_msg_totals, ring_bytes)},
	{"msg_waiting", "messages in receive queues now, by their readers' word",
	 offsetof(struct urn_report_msg_totals, waiting)},
	{"msg_waiting_bytes", "bytes of the ring entries that hold these messages",
	 offsetof(struct urn_report_msg_totals, waiting_bytes)},
	{"flows", "flows of messages to and from nodes now",
	 offsetof(struct urn_report_msg_totals, flows)},
};

/* Gauges of one adapter after the other would split families: all adapters are looked at first. */
static void
messages(const struct urn_dp *dp, FILE *out)
{
	struct urn_report_msg_totals *t = calloc(dp->adapters_n + 1, sizeof(*t));
	struct urn_err err;

	if (t == NULL)
		return; /* the page lacks these families, as it would lack all without memory */
	for (unsigned int i = 0; i < dp->adapters_n; i++)
		t[i].busy = urn_report_msg_totals(dp->adapter[i], &t[i], &err) != 0;
	for (unsigned int k = 0; k < RTE_DIM(msg_gauges); k++) {
		family(out, GAUGE, "urnic_adapter_", msg_gauges[k].name, msg_gauges[k].text);
		for (unsigned int i = 0; i < dp->adapters_n; i++) {
			uint64_t v;

			if (t[i].busy)
				continue;
			memcpy(&v, (const char *)&t[i] + msg_gauges[k].offset, sizeof(v));
			adapter_labels(dp->adapter[i], msg_gauges[k].name, "", out);
			value(out, v);
		}
	}
	free(t);
}

/* ---- ports */

static const struct {
	const char *name, *text;
	size_t offset; /* in struct rte_eth_stats */
} port_counters[] = {
	{"rx_packets", "frames received", offsetof(struct rte_eth_stats, ipackets)},
	{"tx_packets", "frames sent", offsetof(struct rte_eth_stats, opackets)},
	{"rx_bytes", "bytes of frames received, as the device counts them",
	 offsetof(struct rte_eth_stats, ibytes)},
	{"tx_bytes", "bytes of frames sent, as the device counts them",
	 offsetof(struct rte_eth_stats, obytes)},
	{"rx_missed", "frames the device had no room for", offsetof(struct rte_eth_stats, imissed)},
	{"rx_errors", "frames received with an error", offsetof(struct rte_eth_stats, ierrors)},
	{"tx_errors", "frames that could not be sent", offsetof(struct rte_eth_stats, oerrors)},
	{"rx_no_mbuf", "times there was no packet to receive into",
	 offsetof(struct rte_eth_stats, rx_nombuf)},
};

static void
port_value(const struct urn_port *p, const char *name, const char *end, uint64_t v, FILE *out)
{
	fprintf(out, "urnic_port_%s%s", name, end);
	label(out, '{', "port", p->cfg.name);
	value(out, v);
}

static void
ports(const struct urn_metrics_source *src, FILE *out)
{
	if (src->ports == 0)
		return;
	family(out, GAUGE, "urnic_port_", "up", "1 while the link is up");
	for (unsigned int i = 0; i < src->ports; i++)
		port_value(src->port[i], "up", "", LOOK(src->port[i]->link_up), out);
	family(out, GAUGE, "urnic_port_", "mbufs", "packets in its pool");
	for (unsigned int i = 0; i < src->ports; i++)
		port_value(src->port[i], "mbufs", "", src->port[i]->pool->size, out);
	family(out, GAUGE, "urnic_port_", "mbufs_free", "of these, free now");
	for (unsigned int i = 0; i < src->ports; i++)
		port_value(src->port[i], "mbufs_free", "",
			   rte_mempool_avail_count(src->port[i]->pool), out);
	for (unsigned int k = 0; k < RTE_DIM(port_counters); k++) {
		family(out, COUNTER, "urnic_port_", port_counters[k].name, port_counters[k].text);
		for (unsigned int i = 0; i < src->ports; i++) {
			struct rte_eth_stats st = {0};
			uint64_t v;

			(void)rte_eth_stats_get(src->port[i]->id, &st);
			memcpy(&v, (const char *)&st + port_counters[k].offset, sizeof(v));
			port_value(src->port[i], port_counters[k].name, "_total", v, out);
		}
	}
}

/* ---- switches */

static void
plug_labels(const struct urn_metrics_switch *s, unsigned int port, const char *prefix, const char *name,
	    FILE *out)
{
	fprintf(out, "urnic_switch_%s%s%s", prefix, name, strcmp(name, "up") ? "_total" : "");
	label(out, '{', "switch", urn_switch_name(s->sw));
	label(out, ',', "port", urn_switch_port_name(s->sw, (uint16_t)port));
}

/* Go over all ports of all switches. */
// NOLINTBEGIN(bugprone-macro-parentheses): s and i are names of variables
#define EACH_PLUG(src, s, i)                                                                       \
	for (const struct urn_metrics_switch *s = (src)->sw; s < (src)->sw + (src)->switches; s++) \
		for (unsigned int i = 0; i < urn_switch_ports(s->sw); i++)
// NOLINTEND(bugprone-macro-parentheses)

static void
impairments(const struct urn_metrics_source *src, FILE *out)
{
	static const char *const dirs[] = {[URN_SWITCH_IN] = "in", [URN_SWITCH_OUT] = "out"};

	for (unsigned int k = 0; k < URN_IMPAIR_COUNTER_COUNT; k++) {
		counter_family(out, &urn_impair_scope, k);
		EACH_PLUG(src, s, i)
		{
			for (unsigned int d = 0; d < 2; d++) {
				const struct urn_impair *imp =
					urn_switch_impair(s->sw, (uint16_t)i, (enum urn_switch_dir)d);

				plug_labels(s, i, "impair_", urn_impair_counter_name(k), out);
				label(out, ',', "direction", dirs[d]);
				value(out, LOOK(urn_impair_counters(imp)->v[k]));
			}
		}
	}
}

/* Priorities above 0 stand for themselves once they have counted: most ports use none of them. */
static void
queues(const struct urn_metrics_source *src, FILE *out)
{
	char priority[8];

	for (unsigned int k = 0; k < URN_SWQ_COUNTER_COUNT; k++) {
		counter_family(out, &urn_swq_scope, k);
		EACH_PLUG(src, s, i)
		{
			for (unsigned int p = 0; p < URN_SWQ_PRIORITIES; p++) {
				const struct urn_swq *q = urn_switch_queues(s->sw, (uint16_t)i);
				uint64_t v = LOOK(q->level[p].c.v[k]);

				if (p > 0 && v == 0)
					continue;
				plug_labels(s, i, "queue_", urn_swq_counter_name(k), out);
				snprintf(priority, sizeof(priority), "%u", p);
				label(out, ',', "priority", priority);
				value(out, v);
			}
		}
	}
}

static void
marks(const struct urn_metrics_source *src, FILE *out)
{
	for (unsigned int k = 0; k < URN_MARK_COUNTER_COUNT; k++) {
		counter_family(out, &urn_mark_scope, k);
		EACH_PLUG(src, s, i)
		{
			plug_labels(s, i, "mark_", urn_mark_counter_name(k), out);
			value(out, LOOK(urn_switch_marks(s->sw, (uint16_t)i)->c.v[k]));
		}
	}
}

static void
switches(const struct urn_metrics_source *src, FILE *out)
{
	if (src->switches == 0)
		return;
	family(out, GAUGE, "urnic_switch_", "up", "1 while the port of the switch is up");
	EACH_PLUG(src, s, i)
	{
		plug_labels(s, i, "", "up", out);
		value(out, urn_switch_port_is_up(s->sw, (uint16_t)i));
	}
	for (unsigned int k = 0; k < URN_SWITCH_COUNTER_COUNT; k++) {
		counter_family(out, &urn_switch_scope, k);
		EACH_PLUG(src, s, i)
		{
			plug_labels(s, i, "", urn_switch_counter_name(k), out);
			value(out, LOOK(urn_switch_counters(s->sw, (uint16_t)i)->v[k]));
		}
	}
	for (unsigned int k = 0; k < URN_FABRIC_COUNTER_COUNT; k++) {
		counter_family(out, &urn_fabric_scope, k);
		EACH_PLUG(src, s, i)
		{
			const struct urn_fabric_counters *c =
				urn_fabric_counters(s->fabric, s->sw, (uint16_t)i);

			if (c == NULL)
				continue;
			plug_labels(s, i, "device_", urn_fabric_counter_name(k), out);
			value(out, LOOK(c->v[k]));
		}
	}
	impairments(src, out);
	queues(src, out);
	marks(src, out);
}

void
urn_prometheus_text(const struct urn_metrics_source *src, FILE *out)
{
	build_info(out);
	server(src->server, out);
	captures(src->captures, out);
	engines(src->dp, out);
	adapters(src->dp, out);
	messages(src->dp, out);
	ports(src, out);
	switches(src, out);
}
