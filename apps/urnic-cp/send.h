/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a transfer (proto.h). */
#ifndef URN_CP_SEND_H
#define URN_CP_SEND_H

#include "ends.h"
#include "opts.h"
#include "report.h"
#include "source.h"

/*
 * Send those of n files that can be sent. Each file ends as CP_SENT or CP_UNSENT;
 * an error with one file is printed on standard error and does not stop the
 * others. *res: everything but the peer's counters.
 * returns: 0, or -1 with *err when the connection is lost
 */
int cp_send_files(struct cp_ends *e, const struct cp_opts *o, struct cp_source *src, unsigned int n,
		  struct cp_result *res, struct urn_err *err);

#endif
