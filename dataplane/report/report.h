/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports on the objects and counters of a dataplane, for console, urnicctl and
 * telemetry. A report walks objects and feeds a sink with one flat object each;
 * the sink makes a table, JSON or telemetry's data of them.
 *
 * Any thread may ask, at any time. Control's objects are read under the lock of
 * their adapter, which is held for a bounded number of objects and waited for for a
 * bounded time; values that engines write are read with single loads, so each value is
 * right for itself, and two values may be of different moments. Only one queue
 * pair in detail, and switches, are asked of the thread that owns them. A sink
 * is called with the lock held: the sink must not wait for anything.
 */
#ifndef URN_REPORT_REPORT_H
#define URN_REPORT_REPORT_H

#include "control/dataplane.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_fabric;
struct urn_report_base;
struct urn_server;
struct urn_server_config;
struct urn_switch;

/* Receiver of a report. Keys are lower case with _ between words; values may be any text. */
struct urn_report_sink {
	/*
	 * An object begins. kind: "qp". card: the object has so many fields that each is
	 * best shown on a line of its own. Objects do not nest; the objects of one report
	 * are of one kind and have the same keys, except objects of counters.
	 */
	void (*begin)(struct urn_report_sink *s, const char *kind, bool card);
	void (*str)(struct urn_report_sink *s, const char *key, const char *value);
	void (*u64)(struct urn_report_sink *s, const char *key, uint64_t value);
	void (*flag)(struct urn_report_sink *s, const char *key, bool value);
	void (*end)(struct urn_report_sink *s);
};

struct urn_report_switch {
	struct urn_switch *sw;
	struct urn_fabric *fabric; /* the fabric that polls the switch */
	unsigned int engine;	   /* the engine whose thread does so */
};

/* The objects to report on. All of them outlive the reports; owner: the caller. */
struct urn_report_source {
	struct urn_dp *dp;
	struct urn_port *const
		*port; /* ports of adapters and switches; ring ports: the adapter's end */
	unsigned int ports;
	const struct urn_report_switch *sw;
	unsigned int switches;
	const struct urn_server *server;	       /* NULL: none */
	const struct urn_server_config *server_config; /* the server's limits, which may change
							  meanwhile: read atomically; NULL: none */
};

/* The place at which a report goes on; all zero: the beginning. */
struct urn_report_at {
	uint32_t outer, middle, inner; /* indices or ids, known to the report only */
	bool on;		       /* the report has begun */
};

/* The objects asked for. All zero: everything. A name that no object has fails. */
struct urn_report_query {
	const char
		*name; /* name of the port, adapter, switch ...; NULL: all. A single object comes as a card */
	const char *adapter; /* objects of this adapter; NULL: of all */
	uint32_t client;     /* objects of this client; 0: of all */
	const char *state;   /* queue pairs in this state; NULL: in any */
	bool by_qpn;	     /* the queue pair qpn alone, in detail */
	uint32_t qpn;
	bool all;		 /* with counters that are zero */
	struct urn_report_base
		*base; /* counters of adapters and ports since then; NULL: since the start */
	uint32_t rows;		 /* objects at most; 0: 256 */
	struct urn_report_at at; /* moves on with each call */
};

/* Results of a report. */
enum {
	URN_REPORT_DONE = 0,
	URN_REPORT_MORE = 1,	/* ask again with the same query; perhaps nothing came this time */
	URN_REPORT_FAILED = -1, /* *err says why */
};

typedef int urn_report_fn(const struct urn_report_source *src, struct urn_report_query *q,
			  struct urn_report_sink *s, struct urn_err *err);

/* report.c */
urn_report_fn urn_report_ports;
urn_report_fn urn_report_adapters;
urn_report_fn urn_report_engines;
urn_report_fn
	urn_report_counters; /* an object for each adapter; without q->all only counters that are not zero */
urn_report_fn urn_report_limits;
urn_report_fn urn_report_version;
urn_report_fn urn_report_server; /* counters of the server */

/* report_net.c */
urn_report_fn urn_report_neighbours;
urn_report_fn urn_report_routes; /* longest prefix first */

/* report_objects.c: clients and their objects */
urn_report_fn urn_report_clients;
urn_report_fn urn_report_cqs;
urn_report_fn urn_report_srqs;
urn_report_fn urn_report_mrs; /* regions and windows */
/* report_msg.c */
urn_report_fn urn_report_msgs; /* register sets of messages */
/* report_am.c */
urn_report_fn urn_report_ams; /* endpoints of remote memory access */
/* report_qp.c */
urn_report_fn urn_report_qps;

/* report_errors.c */
urn_report_fn urn_report_errors; /* latest errors of programs, also of some that have gone */

/* report_switch.c */
urn_report_fn urn_report_switches;  /* an object for each port of a switch */
urn_report_fn urn_report_addresses; /* tables of addresses of switches */

/* Name of an idle policy: "spin". NULL: no such policy */
const char *urn_idle_name(unsigned int idle);

/*
 * Make the counts from which people have counters shown: none yet. src: the objects; they do not
 * change any more. returns: NULL with *err: no memory
 */
struct urn_report_base *urn_report_base_create(const struct urn_report_source *src,
					       struct urn_err *err);
/* NULL is allowed. */
void urn_report_base_destroy(struct urn_report_base *b);
/*
 * Note the counts of ports, for the rates that people are shown: call a few times a second. now:
 * CLOCK_MONOTONIC, ns. From any thread, which polls no engine.
 */
void urn_report_base_sample(struct urn_report_base *b, const struct urn_report_source *src,
			    uint64_t now);
/* Have counters shown from now on. src: that of urn_report_base_create(). Any thread that polls no
 * engine. */
void urn_report_base_set(struct urn_report_base *b, const struct urn_report_source *src);

/*
 * Take the lock of an adapter, from a thread that polls no engine. returns: 0, or
 * -1 with *err: the adapter was busy for two seconds (a client's call waits for its memory)
 */
struct urn_adapter;
int urn_report_lock(struct urn_adapter *a, struct urn_err *err);
void urn_report_unlock(struct urn_adapter *a);

/* Register sets of an adapter, all together. */
struct urn_report_msg_totals {
	uint64_t sets;		/* register sets */
	uint64_t pending;	/* ... whose message is on its way */
	uint64_t queues;	/* ... that have a receive queue */
	uint64_t ring_bytes;	/* bytes of the rings of those */
	uint64_t waiting;	/* messages in them, by the heads that clients wrote */
	uint64_t waiting_bytes; /* bytes of the entries of these messages */
	uint64_t flows;		/* flows of all engines */
	bool busy;		/* the caller's; false */
};
/*
 * Sum up the register sets of an adapter, some of them under its lock at a time: sets that come and
 * go meanwhile are counted or not. From a thread that polls no engine. returns: 0, or -1 with *err
 * like urn_report_lock()
 */
int urn_report_msg_totals(struct urn_adapter *a, struct urn_report_msg_totals *t,
			  struct urn_err *err);

/*
 * End the connection of a remote client, like a hang-up of its own: all its objects are
 * taken back. returns: 0, or -1 with *err: there is no client with that id
 */
int urn_report_kick(const struct urn_report_source *src, uint32_t client, struct urn_err *err);

#endif
