/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors that explain: after a completion with an error, a sentence that says which queue pair,
 * which peer, which request, why, how often it was tried, for how long there was no progress, and
 * what stands in the way. doc/reference/errors.md has examples of all of them.
 */
#ifndef URNIC_EXPLAIN_H
#define URNIC_EXPLAIN_H

#include <urnic/verbs.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The library hides all other names. */
#pragma GCC visibility push(default)

/* Bytes that every sentence fits in, with the zero at its end. */
#define URN_EXPLAIN_TEXT 512

/*
 * Say why a completion has an error. The dataplane keeps the last 16 errors of a program on each of
 * its engines, also of queue pairs that are gone, and besides one of each queue pair that is there:
 * the one that ended it, or else its last one. RESET, and a new queue pair with the number, forget
 * those of the number. Asks the dataplane, and so is a control call: not for the fast path. On the
 * virtual device of a session, the sentence is that of the adapter whose queue pair had the
 * request, which it names, or says since when the connection has no path, and why.
 *
 * ctx: context of the queue pair
 * wc: the completion; qp_num, status and vendor_err are looked at
 * text, size: set to the sentence, cut to `size` bytes; in every case, if size is not 0
 * returns: 0; ENOENT: the dataplane has no record of this error; EOPNOTSUPP: the dataplane keeps
 *          none; EIO, ETIMEDOUT: the dataplane is gone, or silent.
 *          Then the sentence says what the completion itself tells
 */
int urn_wc_explain(struct ibv_context *ctx, const struct ibv_wc *wc, char *text, size_t size);

/*
 * The name of a value of ibv_wc.vendor_err: "timeout", "bad-lkey".
 *
 * returns: a constant; "?" for a number that this release does not know
 */
const char *urn_vendor_err_name(uint32_t vendor_err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
