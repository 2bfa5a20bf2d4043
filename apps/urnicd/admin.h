/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands to a running dataplane. A command is begun, carried out in steps that
 * each make a bounded piece of output, and ended; the caller that runs the command
 * writes the pieces to its reader, and waits for the reader only between steps.
 */
#ifndef URNICD_ADMIN_H
#define URNICD_ADMIN_H

#include "admin_words.h"
#include "rig.h"

#include "dataplane/log/who.h"
#include "dataplane/report/report_out.h"

/* A port, or an adapter's end of a cable to a switch, by its name in commands. */
struct nicd_admin_port {
	const char *name;
	struct urn_port *port;
};

/* State of a port that the log has told of. */
struct nicd_admin_seen {
	bool known;	  /* it has */
	bool up;	  /* the port has a link */
	uint32_t changes; /* urn_port.link_changes then */
};

/* The objects that commands work on. Made once the dataplane is up; but for base and what the log
 * has told, read-only from then on. */
struct nicd_admin {
	struct nicd_rig *rig;
	struct urn_report_source src;
	struct nicd_admin_port *ports; /* owner; src.ports entries */
	struct urn_port **port;	       /* owner; the same ports, for src.port */
	struct nicd_admin_seen *seen;  /* owner; by port: the log's thread's */
	uint32_t *moved; /* owner; by adapter: urn_port.moves that the log has told; the log's
			    thread's */
	uint32_t *heard; /* owner; by adapter: news of its routers that the log has told; the log's
			    thread's */
	uint64_t looked_at; /* ns of urn_clock_ns(): when the log's thread looked last; its own; 0:
			       not yet */
	struct urn_report_switch *sw;  /* owner */
	struct urn_report_base *base;  /* counts at the last `clear counters`; owner */
};

/* Exit codes of a command, the same as urnicctl's. */
enum nicd_run_status { NICD_RUN_OK, NICD_RUN_FAILED, NICD_RUN_USAGE };

/* A command that is being carried out. */
struct nicd_run {
	struct nicd_admin *admin;
	struct admin_call call;
	struct urn_report_query query;
	struct urn_report_buf out; /* the piece made last; the caller empties it */
	struct urn_report_text text;
	struct urn_report_json json;
	struct urn_report_sink *sink; /* one of these two */
	struct urn_err err;	      /* reason for a failure */
	enum nicd_run_status status;  /* valid once the command has ended */
	bool console;	       /* given at the console: only there may it end the dataplane */
	bool quit;	       /* the dataplane is to end */
	struct urn_log_who by; /* process and user of the asker, by the kernel's word; not valid
				  at the console */
	bool told;	       /* the log has the command */
	char said[160];	       /* the words, cut, for the log */
	int fd; /* descriptor that goes to the asker with the end of the answer; owner: the run; -1:
		   none */
};

/* returns: 0, or -1 with *err: no memory */
int nicd_admin_init(struct nicd_admin *a, struct nicd_rig *rig, struct urn_err *err);
void nicd_admin_fini(struct nicd_admin *a);

/*
 * Begin a command of n words, which outlive the run. A wrong command is begun, too,
 * and fails at its first step. Call nicd_run_end() in any case.
 */
void nicd_run_begin(struct nicd_run *r, struct nicd_admin *a, bool json, bool console,
		    char *const *words, unsigned int n);
/* Run one step. returns: true when there are more; else r->status is set, and r->err unless the
 * status is OK */
bool nicd_run_step(struct nicd_run *r);
void nicd_run_end(struct nicd_run *r);

/* Keep the words of a command, and tell the log of them once the command has changed something.
 * (admin_log.c) */
void nicd_admin_note(struct nicd_run *r, char *const *words, unsigned int n);
void nicd_admin_tell(struct nicd_run *r);

/* Print the head of a table without a row, when the answer was one. (admin_heads.c) */
void nicd_admin_head(struct nicd_run *r);

/* Values of a kind, for completion; admin_values_fn with the struct nicd_admin. */
bool nicd_admin_values(void *admin, const char *kind, unsigned int i, char value[ADMIN_VALUE]);

/* The function of a command. returns: as a report; NICD_RUN_WRONG: wrong usage, with r->err */
enum { NICD_RUN_WRONG = -2 };
typedef int nicd_run_fn(struct nicd_run *r);
#define X(fn, words, args, help) nicd_run_fn nicd_run_##fn;
ADMIN_COMMANDS(X)
#undef X

#endif
