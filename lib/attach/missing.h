/* SPDX-License-Identifier: BSD-3-Clause */
/* Why no dataplane was reached at a path, in words that say what to do. */
#ifndef URN_ATTACH_MISSING_H
#define URN_ATTACH_MISSING_H

/*
 * Fail, because a connection to the dataplane's socket was refused. The text tells a socket that is
 * not there from one that this user may not open, and from one that nobody listens at; it names the
 * other place that was looked at.
 *
 * path: of the socket; err: errno value of connect()
 * returns: err
 */
int urn_missing(const char *path, int err);

#endif
