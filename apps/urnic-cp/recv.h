/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of a transfer (proto.h). */
#ifndef URN_CP_RECV_H
#define URN_CP_RECV_H

#include "link.h"
#include "opts.h"
#include "report.h"
#include "store.h"

/*
 * Take files until the sender says that it is done (its counters are in the
 * link's body then). verbose: say on standard error what went wrong with a
 * file; the sender says so anyway. *res: everything but the peer's counters.
 * returns: 0, or -1 with *err when the connection is lost; nothing is left of
 * a file that was under way
 */
int cp_recv_files(struct cp_link *l, const struct cp_offer *offer, struct cp_store *store,
		  bool verbose, struct cp_result *res, struct urn_err *err);

#endif
