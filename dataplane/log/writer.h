/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that writes the log (log.h): the only one that waits for the log's reader or disk. */
#ifndef URN_LOG_WRITER_H
#define URN_LOG_WRITER_H

#include "log/log.h"

/* Where lines go. */
struct urn_log_out {
	char name[16];	 /* the name of this program, in each line */
	char file[256];	 /* path; "": the standard error, by stdio */
	bool priorities; /* lines begin with "<N>", for a journal */
};

/* Called by the writer's thread about ten times a second, to look at things and say them. */
typedef void urn_log_tick_fn(void *arg);

/*
 * Start to write. The file is appended to, and made if it is not there, with mode 0640; a link, or
 * something that is no file, is refused.
 *
 * out: copied
 * why, size: set to a sentence about a failure
 * returns: 0, or -1 with the sentence
 */
int urn_log_start(struct urn_log *log, const struct urn_log_out *out, char *why, size_t size);
/* Write all that was said so far and end the thread; events that come later stay unwritten. Waits
 * some seconds for a disk that stalls, then goes on without it. log: NULL: none */
void urn_log_stop(struct urn_log *log);
/* Have the writer call this; NULL: nothing any more. Returns when no call of the one before runs.
 * log: NULL: none */
void urn_log_set_tick(struct urn_log *log, urn_log_tick_fn *tick, void *arg);
/* Open the file again, soon: its name was given to another file. log: NULL: none. Any thread. */
void urn_log_reopen(struct urn_log *log);

#endif
