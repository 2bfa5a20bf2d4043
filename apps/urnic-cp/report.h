/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of urnic-cp: complaints on standard error, a summary on standard output. */
#ifndef URN_CP_REPORT_H
#define URN_CP_REPORT_H

#include "common/failover.h"
#include "common/hist.h"
#include "dataplane/counters.h"
#include "source.h"

#include <stdbool.h>
#include <stdint.h>

/* Result of a transfer, for the side that reports it. */
struct cp_result {
	bool sender;                 /* else the receiver */
	bool checked;                /* SHA-256 was compared */
	bool icrc;                   /* packets carried an ICRC; not known when attached */
	bool attached;               /* attached: the dataplane's counters are not this side's alone */
	bool over_msg;               /* over messages, not a queue pair */
	bool complete;		     /* the transfer ended in order */
	const char *to;              /* folder of the copies, when this side knows it */
	unsigned int files, ok;      /* number of files; of those that arrived */
	uint64_t bytes;              /* bytes of the files that arrived */
	uint64_t ns;                 /* from the first announcement to the last verdict */
	uint64_t store_ns;           /* part of ns: waiting for the disk at the end of files */
	uint32_t mtu, chunk, depth;  /* in use */
	uint64_t messages;           /* chunks sent or received */
	struct urn_hist latency;     /* latency of chunks, post to completion; sender only */
	struct urn_counters own, peer; /* counters of the two dataplanes; peer: when complete */
	struct urn_failover *failover; /* the loss of an adapter, or NULL; owner: main.c */
	const struct cp_source *sources; /* sender only; `files` entries */
};

/* Print "urnic-cp: " and a message on standard error, after clearing the progress bar. */
void cp_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The bar that cp_complain() wipes; NULL: none. */
struct urn_progress;
void cp_complain_over(struct urn_progress *bar);
/* Set the name of the side that complains: "" or "receiver: "; static text. */
void cp_complain_as(const char *who);

/* Print the summary for people, or as JSON. */
void cp_report_text(const struct cp_result *r);
void cp_report_json(const struct cp_result *r);

#endif
