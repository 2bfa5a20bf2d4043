/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss of the primary adapter of a session, on purpose: its ways, and their carrying out.
 *
 *   port          the adapter's port fails, as `port PORT fail` of urnicctl does; it is up again in
 *                 the end
 *   kill          SIGKILL to the dataplane process of the primary adapter
 *   kill=PID      SIGKILL to this process
 *   run=COMMAND   a command of the shell
 */
#ifndef URN_APPS_COMMON_LOSS_H
#define URN_APPS_COMMON_LOSS_H

#include "common/session.h"

#include <sys/types.h>

enum urn_loss_kind { URN_LOSS_PORT, URN_LOSS_KILL, URN_LOSS_RUN };

struct urn_loss_spec {
	enum urn_loss_kind kind;
	int pid;	     /* KILL: the process; 0: the primary adapter's dataplane */
	const char *command; /* RUN; owner: argv */
};

/*
 * Read the words above. option: its name, for *err; text: NULL: port. returns: 0, or -1 with *err
 */
int urn_loss_parse(const char *option, const char *text, struct urn_loss_spec *spec,
		   struct urn_err *err);

/* Kinds of pictures that a plot of the run can be, by the end of the file's name. */
enum urn_plot_kind { URN_PLOT_NONE, URN_PLOT_PNG, URN_PLOT_SVG };
enum urn_plot_kind urn_plot_kind(const char *path);

/* A loss that is prepared, or done. Owner: one thread at a time. */
struct urn_loss {
	struct urn_loss_spec spec;
	struct urn_session_place primary; /* PORT, and KILL without a process number */
	char port[32];			  /* PORT: name of the adapter's port */
	int fd;		  /* KILL: a pidfd; PORT: the question to the dataplane; -1: none */
	pid_t child;	  /* RUN: the command, until it has ended; else 0 */
	bool begun;	  /* urn_loss_begin() was called */
	bool failed_port; /* PORT: the port is to be up again in the end */
	char what[160];	  /* the loss in words: "port p0 of adapter ap failed" */
};

/*
 * Find the primary adapter's port, or the process. Call before the device is opened.
 *
 * session: text of URNIC_SESSION
 * returns: 0, or -1 with *err; urn_loss_close() in either case
 */
int urn_loss_prepare(struct urn_loss *l, const struct urn_loss_spec *spec, const char *session,
		     struct urn_err *err);
/* Do it, without a wait. returns: 0, or -1 with *err: nothing was done */
int urn_loss_begin(struct urn_loss *l, struct urn_err *err);
/* Look whether it is done. returns: 1: yes; 0: not yet; -1 with *err: it failed */
int urn_loss_done(struct urn_loss *l, struct urn_err *err);
/* Let the port be up again, and give back what the loss has. returns: 0, or -1 with *err: it is
 * not up */
int urn_loss_close(struct urn_loss *l, struct urn_err *err);

#endif
