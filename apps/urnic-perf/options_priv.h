/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files that read the command line. */
#ifndef URN_PERF_OPTIONS_PRIV_H
#define URN_PERF_OPTIONS_PRIV_H

#include "options.h"

/* Options that were given explicitly, where the default depends on other options. */
struct perf_given {
	bool size, iters, duration, depth, inl, rd_atomic, timeout, srq, lcores, mtu;
	bool no_check, full_check;
	bool offset, align;
	struct perf_role_given role;
	struct perf_msg_given msg;
	struct perf_am_given am;
	struct perf_fail_given fail;
};

/* Check that options fit each other and the operation. returns: 0, or -1 with *err (option_check.c) */
int perf_options_check(const struct perf_opts *o, const struct perf_given *g, struct urn_err *err);

#endif
