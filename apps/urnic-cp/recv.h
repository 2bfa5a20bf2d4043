/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of a transfer (proto.h). */
#ifndef URN_CP_RECV_H
#define URN_CP_RECV_H

#include "ends.h"
#include "opts.h"
#include "report.h"
#include "store.h"

/*
 * Receive files until the sender says DONE (its counters are in the link's
 * body then). verbose: print errors about files on standard error; the sender
 * prints them anyway. *res: everything but the peer's counters.
 * returns: 0, or -1 with *err when the connection is lost; an unfinished file
 * is removed
 */
int cp_recv_files(struct cp_ends *e, const struct cp_offer *offer, struct cp_store *store,
		  bool verbose, struct cp_result *res, struct urn_err *err);

#endif
