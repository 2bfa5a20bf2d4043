/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run during which the primary adapter of the program's session is lost on purpose, and the
 * figures of that: how long until the session noticed, how long its connections took to move, and
 * the rate before, meanwhile and after.
 *
 * A thread looks at the run's progress every millisecond, and has the adapter lost when that is
 * due; the threads that work are not disturbed. A loss that takes longer than a minute has failed.
 * Detection and migration are read from the log of steps (moves.h).
 *
 *     prepare - device is opened - start ... now - stop - text, json, plot - close
 */
#ifndef URN_APPS_COMMON_FAILOVER_H
#define URN_APPS_COMMON_FAILOVER_H

#include "common/json.h"
#include "common/loss.h"
#include "common/moves.h"
#include "common/samples.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

enum urn_run_state {
	URN_RUN_WARM,  /* nothing counts yet */
	URN_RUN_GOING, /* the time of the run begins, or goes on */
	URN_RUN_OVER,
};

struct urn_failover_run {
	uint64_t at_ns; /* time of the loss from the begin of the run on; UINT64_MAX: when
			   urn_failover_now() is called */
	uint64_t unit;	/* bytes of a unit of progress */
	bool messages;	/* units are messages, whose rate is told, too */
	/* Tell the units that are done so far. Called by start(), by stop(), and between them by
	 * the thread of the failover. */
	enum urn_run_state (*look)(void *arg, uint64_t *units);
	void *arg; /* for look */
};

enum urn_failover_state {
	URN_FAILOVER_WAITS,  /* the adapter is there */
	URN_FAILOVER_ACTS,   /* the loss has begun */
	URN_FAILOVER_DONE,   /* the adapter was lost */
	URN_FAILOVER_FAILED, /* the adapter could not be lost; err says why */
};

struct urn_failover {
	/* Set by prepare() and start(). */
	struct urn_loss loss;
	struct urn_failover_run run;
	FILE *log;	      /* log of steps, to be read; NULL: not open */
	bool log_ours;	      /* it is a file without a name, for this run alone */
	bool started;	      /* the thread was made, and not joined */
	uint64_t patience_ns; /* longest time that the loss may take: a minute */
	pthread_t thread;
	sem_t wake;		  /* ends a nap of the thread; valid when started */
	_Atomic bool stop, asked; /* the thread shall end; the loss is due */
	/* The thread's; others read after stop(), but for state. */
	_Atomic uint32_t state; /* enum urn_failover_state */
	struct urn_err err;	/* FAILED: the reason */
	struct urn_samples samples;
	uint64_t begun_ns; /* CLOCK_MONOTONIC of the begin of the run; 0: not yet */
	uint64_t acted_ns; /* time of the loss from there on; valid from ACTS on */
	bool over;	   /* the run is over */
	/* Valid after stop(). */
	struct urn_moves moves;
	uint64_t moved_ns; /* time from the begin of the run until all connections had moved; 0:
			      they have not */
};

/*
 * Prepare the loss, and have a log of steps. Call before the virtual device is opened.
 * returns: 0, or -1 with *err; urn_failover_close() in either case
 */
int urn_failover_prepare(struct urn_failover *f, const struct urn_loss_spec *spec,
			 struct urn_err *err);
/* Begin to look at a run. returns: 0, or -1 with *err */
int urn_failover_start(struct urn_failover *f, const struct urn_failover_run *run,
		       struct urn_err *err);
/* Have the adapter lost now. Any thread. */
void urn_failover_now(struct urn_failover *f);
/* True when the adapter was lost, or could not be. Any thread. */
static inline bool
urn_failover_past(const struct urn_failover *f)
{
	return atomic_load_explicit(&f->state, memory_order_acquire) >= URN_FAILOVER_DONE;
}
/* End looking, let the port be up again, and compute the figures. Call once the run is over. */
void urn_failover_stop(struct urn_failover *f);
/* Judge. returns: 0; -1 with *err: the adapter was not lost during the run */
int urn_failover_judge(const struct urn_failover *f, struct urn_err *err);
void urn_failover_close(struct urn_failover *f);

/* ---- figures, after urn_failover_stop() (failover_report.c) */

/* Print lines that begin with `indent`. */
void urn_failover_print(const struct urn_failover *f, const char *indent, FILE *out);
/* Add an object "failover". */
void urn_failover_json(const struct urn_failover *f, struct urn_json *j);
/*
 * Draw the rate over time by gnuplot. path: one that urn_plot_kind() knows.
 * returns: 0, or -1 with *err
 */
int urn_failover_plot(const struct urn_failover *f, const char *path, struct urn_err *err);
/*
 * Write the progress over time into a file, a line of CSV for each sample: seconds since 1970, and
 * bytes that are done. returns: 0, or -1 with *err
 */
int urn_failover_progress(const struct urn_failover *f, const char *path, struct urn_err *err);
/* Write the script for gnuplot. svg: draw SVG, else PNG */
void urn_failover_script(const struct urn_failover *f, bool svg, FILE *out);

#endif
