/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane's counters in Prometheus' text format 0.0.4: doc/reference/urnicd.md lists the
 * families. Counters of adapters and switches take name and text from their tables.
 */
#ifndef URN_REPORT_PROMETHEUS_TEXT_H
#define URN_REPORT_PROMETHEUS_TEXT_H

#include "control/dataplane.h"

#include <stdio.h>

struct urn_captures;
struct urn_server;
struct urn_switch;
struct urn_fabric;

struct urn_metrics_switch {
	struct urn_switch *sw;
	const struct urn_fabric *fabric;
};

/* The objects that have counters; they outlive every call. Owner: the caller. */
struct urn_metrics_source {
	struct urn_dp *dp;
	struct urn_port *const *port; /* their names differ */
	unsigned int ports;
	const struct urn_metrics_switch *sw;
	unsigned int switches;
	const struct urn_server *server; /* NULL: none */
	struct urn_captures *captures;	 /* NULL: none */
};

/*
 * Write all families. Any thread: never waits, asks no engine; each value
 * is right for itself, and two values may be of different moments.
 */
void urn_prometheus_text(const struct urn_metrics_source *src, FILE *out);

#endif
