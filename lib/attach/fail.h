/* SPDX-License-Identifier: BSD-3-Clause */
/* The error text of a thread, urn_attach_error() (urnic/attach.h). */
#ifndef URN_ATTACH_FAIL_H
#define URN_ATTACH_FAIL_H

/* Bytes of an error text, with the 0 at its end; a longer one is cut. */
enum { URN_ERROR_TEXT = 256 };

/*
 * Fail: set errno and this thread's error text.
 * returns: err
 */
int urn_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
