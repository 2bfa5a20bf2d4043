/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs and calls that the files of the reports share. */
#ifndef URN_REPORT_REPORT_PRIV_H
#define URN_REPORT_REPORT_PRIV_H

#include "control/objects.h"
#include "report/report.h"
#include "wire/features.h"

#include <string.h>

enum {
	REPORT_ROWS = 256,   /* objects a call, unless told */
	REPORT_SCAN = 65536, /* places of tables looked at under a lock, at most */
};

/* A value that another thread writes. */
#define LOOK(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

static inline uint32_t
report_rows(const struct urn_report_query *q)
{
	return q->rows ? q->rows : REPORT_ROWS;
}

/* True when this is the name that was asked for, or none was asked for. */
static inline bool
report_named(const char *asked, const char *name)
{
	return asked == NULL || strcmp(asked, name) == 0;
}

/* Entries in a queue; no more than it can hold, even if its client's index lies. */
static inline uint32_t
report_fill(uint32_t prod, uint32_t cons, uint32_t mask)
{
	return prod - cons <= mask + 1 ? prod - cons : mask + 1;
}

/* Check that an adapter has the name, if one was given. returns: 0 or -1 with *err */
int report_check_adapter(const struct urn_report_source *src, const char *name,
			 struct urn_err *err);
/* Report a client's adapter and id: the first fields of its objects. */
void report_owner(struct urn_report_sink *s, const struct urn_client *c);
/* Name of a client's process, from the kernel: any bytes; "": it is not known. */
void report_program(const struct urn_client *c, char name[32]);
/* Report each feature of a list by its word: yes, when its bit is set in offered. */
void report_features(struct urn_report_sink *s, const struct urn_features *list, uint32_t offered);
/* Report the counters v of an object of the scope that are not zero, or all; prefix: before each
 * name. */
void report_counters(struct urn_report_sink *s, const struct urn_counter_scope *scope,
		     const char *prefix, const uint64_t *v, bool all);
/* Read the counts of an adapter or port, by its number, since they were cleared. b: NULL: never. A
 * device that does not count gives zeros. */
void report_since_adapter(struct urn_report_base *b, const struct urn_report_source *src,
			  unsigned int i, struct urn_counters *c);
struct rte_eth_stats;
void report_since_port(struct urn_report_base *b, const struct urn_port *p, unsigned int i,
		       struct rte_eth_stats *st);
/* Write a GID as "10.0.0.1" or "fe80::1". returns buf */
const char *report_gid(const uint8_t gid[16], char buf[48]);
const char *report_mac(const uint8_t mac[6], char buf[18]);

/*
 * Use of limits: by a client and its user, or by the client and the user
 * that have most of each; and by all clients.
 */
struct report_use {
	uint64_t clients, clients_uid; /* connections */
	uint64_t max[URN_QUOTAS];      /* limits of all clients together; UINT64_MAX: any number */
	uint64_t client[URN_QUOTAS], uid[URN_QUOTAS], all[URN_QUOTAS];
};

/* id: the client's; 0: the client and the user that have most. returns: 0 or -1 with *err */
int report_use(const struct urn_report_source *src, uint32_t id, struct report_use *use,
	       struct urn_err *err);

/* The counts that people had cleared (report_base.c). b: NULL: none, and nothing is done */
void report_base_lock(struct urn_report_base *b);
void report_base_unlock(struct urn_report_base *b);
/* Subtract cleared counts of a switch from n words, those from `first` on. Under the lock. */
void report_since_words(const struct urn_report_base *b, unsigned int sw, unsigned int first,
			uint64_t *word, unsigned int n);
/* Number of words with counters of a switch; and these words, read now. (report_switch.c) */
unsigned int report_switch_words(void);
void report_switch_read(const struct urn_report_source *src, unsigned int i, uint64_t *words);

/* Traffic of a port now: bits and packets a second, over the last one or two seconds. */
struct report_rates {
	uint64_t rx_bps, tx_bps, rx_pps, tx_pps;
};
/* Rates of port number i. now: CLOCK_MONOTONIC, ns */
void report_rates_port(struct urn_report_base *b, const struct urn_report_source *src,
		       unsigned int i, uint64_t now, struct report_rates *out);

/* A walk over objects, and how much it may still do in this call. */
struct report_walk {
	const struct urn_report_source *src;
	struct urn_report_query *q;
	struct urn_report_sink *s;
	uint32_t rows; /* objects that may be reported */
	uint32_t scan; /* places that may be looked at */
};

/* True when the walk has done enough in this call. */
static inline bool
report_full(const struct report_walk *w)
{
	return w->rows == 0 || w->scan == 0;
}

/* Work on an adapter or client. returns: true when all of it is done; false: q->at is the place to go on */
typedef bool report_adapter_fn(struct report_walk *w, struct urn_adapter *a);
typedef bool report_client_fn(struct report_walk *w, const struct urn_client *c);

/*
 * Walk the adapters that the query asks for, each under its lock, from q->at on.
 * The other fields of q->at are the function's, all zero when an adapter begins. returns:
 * like a report
 */
int report_adapters_walk(struct report_walk *w, struct urn_err *err, report_adapter_fn *one);
/* Walk the clients of those adapters, newest first; q->at.inner is 0 when a client begins. */
int report_clients_walk(struct report_walk *w, struct urn_err *err, report_client_fn *one);
/*
 * The same for one adapter, as a part of a walk over adapters. Clients with numbers above
 * q->at.middle are done when q->at.on is set. returns: like report_adapter_fn
 */
bool report_clients_of(struct report_walk *w, struct urn_adapter *a, report_client_fn *one);
/*
 * Walk the slots below n of an engine's table from q->at.inner on. one: reports the object of a
 * slot, if there is one. returns: like report_adapter_fn
 */
typedef void report_slot_fn(struct report_walk *w, const struct urn_adapter *a, unsigned int engine,
			    uint32_t slot);
bool report_slots_walk(struct report_walk *w, const struct urn_adapter *a, unsigned int engine,
		       uint32_t n, report_slot_fn *one);
/* True when the query asks for objects of the client of a share. c: set: that client; NULL: none */
bool report_asks_for(const struct report_walk *w, const struct urn_tp_share *share,
		     const struct urn_client **c);
struct report_walk report_walk_begin(const struct urn_report_source *src,
				     struct urn_report_query *q, struct urn_report_sink *s);

#endif
