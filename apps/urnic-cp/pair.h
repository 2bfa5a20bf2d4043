/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver of the one-command form: this program again, as a process of
 * its own, with a dataplane of its own. Both keep their runtime files in one
 * private folder, which the last process alive removes.
 */
#ifndef URN_CP_PAIR_H
#define URN_CP_PAIR_H

#include "opts.h"

#include "pmd_glue/eal_dir.h"
#include "pmd_glue/port.h"

#include <sys/types.h>

struct cp_pair {
	struct urn_eal_dir dir; /* private folder of both processes */
	pid_t pid;              /* the receiver; 0: none */
};

/*
 * Start the receiver. Call before this process starts its EAL, which does not survive a
 * fork. returns: the control socket, or -1 with *err
 */
int cp_pair_start(struct cp_pair *pair, const struct cp_opts *o, struct urn_err *err);
/*
 * Wait for the receiver's end and remove the folder. The control socket must
 * be closed. returns: 0 when the receiver ended well, or -1 with *err
 */
int cp_pair_end(struct cp_pair *pair, struct urn_err *err);

/*
 * In the receiver: take the control socket over, and leave Ctrl-C, which the
 * terminal sends to both, to the sender.
 */
void cp_pair_child(const struct cp_opts *o);
/*
 * In the receiver, when the transfer did not end well: remove the folder if the
 * sender died, for no other process is left to remove it.
 */
void cp_pair_child_tidy(const struct cp_opts *o);

#endif
