/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the log: its struct, for log.c and writer.c. */
#ifndef URN_LOG_LOG_PRIV_H
#define URN_LOG_LOG_PRIV_H

#include "log/limit.h"
#include "log/line.h"
#include "log/ring.h"
#include "log/writer.h"

#include <pthread.h>
#include <stdatomic.h>

enum { URN_LOG_KNOWN = 64 }; /* clients that the writer knows by their numbers */

/* The writer's own. */
struct urn_log_writer {
	struct urn_log_out out; /* constant while the thread runs */
	pthread_t thread;	/* valid while running */
	bool running;		/* the owner's of the log */
	int fd;			/* the file; -1: none is open, or stderr is written */
	bool failed;		/* the file took the last line in part, or not: people know */
	bool torn;		/* the file ends in a part of a line */
	struct urn_log_users users;
	struct urn_log_who known[URN_LOG_KNOWN]; /* clients seen last, by number modulo the size */
	uint64_t told_lost;			 /* lost events that a line has told of */
};

struct urn_log {
	_Atomic uint8_t level[URN_LOG_AREA_COUNT]; /* enum urn_log_level */
	unsigned int rings;			   /* constant */
	struct urn_log_ring *ring;		   /* owner: the log; constant; NULL: none */
	_Atomic uint64_t lines, more, lost;	   /* struct urn_log_counts */
	pthread_mutex_t lock;			   /* protects the fields up to the next comment */
	pthread_cond_t some;			   /* something is in the queue, or stop is set */
	struct urn_log_limit limit;
	unsigned int first, n; /* the oldest of the queue, and how many there are */
	struct urn_log_entry queue[URN_LOG_QUEUE];
	bool stop;		   /* the writer is to end */
	pthread_mutex_t tick_lock; /* protects tick and its argument while tick runs */
	urn_log_tick_fn *tick;	   /* NULL: none */
	void *tick_arg;
	_Atomic bool reopen; /* the file is to be opened again */
	struct urn_log_writer w;
};

/* Take the oldest event out of the queue. returns: false: the queue is empty */
bool urn_log_next(struct urn_log *log, struct urn_log_entry *e);

#endif
