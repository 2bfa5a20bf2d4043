/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A web server for one page, /metrics, and for Prometheus only: one thread, a
 * few connections at a time, each of bounded length and time, one request each.
 * Peers are not trusted; a request is only checked for "GET /metrics".
 */
#ifndef URN_REPORT_PROMETHEUS_H
#define URN_REPORT_PROMETHEUS_H

#include "report/prometheus_text.h"

struct urn_prometheus;

enum {
	URN_PROMETHEUS_CONNS =
		8, /* connections at a time; another one makes one of them go (seats.h) */
	URN_PROMETHEUS_REQUEST = 4096, /* bytes of a request */
	URN_PROMETHEUS_MS = 5000,      /* longest life of a connection, ms */
};

/* Counts, each since the start. */
struct urn_prometheus_counters {
	uint64_t pages;	  /* pages sent whole */
	uint64_t refused; /* requests for anything else, or too long */
	uint64_t cut;	  /* connections that took too long, or broke */
};

/*
 * Listen at host, an IPv4 or IPv6 address, and port; 0: any free one. src: copied;
 * the objects that it points to outlive the server. returns: NULL with *err
 */
struct urn_prometheus *urn_prometheus_open(const char *host, uint16_t port,
					   const struct urn_metrics_source *src,
					   struct urn_err *err);
/* Stop, and close all connections. NULL is allowed. */
void urn_prometheus_close(struct urn_prometheus *p);
/* The port that the server listens at. For tests, which open with port 0: only the server knows the
 * port then. */
uint16_t urn_prometheus_port(const struct urn_prometheus *p);
/* From any thread. */
void urn_prometheus_counters(const struct urn_prometheus *p, struct urn_prometheus_counters *out);

#endif
