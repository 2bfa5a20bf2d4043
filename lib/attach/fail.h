/* SPDX-License-Identifier: BSD-3-Clause */
/* The error text of a thread, urn_attach_error() (urnic/attach.h). */
#ifndef URN_ATTACH_FAIL_H
#define URN_ATTACH_FAIL_H

/*
 * Fail: set errno and this thread's error text.
 * returns: err
 */
int urn_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
