/* SPDX-License-Identifier: BSD-3-Clause */
/* The reason for a completion with an error, for the programs that poll completions. */
#ifndef URN_APPS_COMMON_EXPLAIN_H
#define URN_APPS_COMMON_EXPLAIN_H

#include <urnic/verbs.h>

#include <stddef.h>

/*
 * Say why a completion has an error, as urn_wc_explain() does: a control call of its context.
 *
 * text, size: set to the sentence; empty: there is nobody to ask, as the dataplane is gone
 * returns: text
 */
const char *urn_explain_text(struct ibv_context *ctx, const struct ibv_wc *wc, char *text,
			     size_t size);
/* Print that sentence on the standard error, behind the program's name; nothing when it is empty.
 */
void urn_explain_print(const char *program, struct ibv_context *ctx, const struct ibv_wc *wc);

#endif
