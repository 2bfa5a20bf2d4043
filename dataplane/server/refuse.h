/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Refuses connections that the server can't take: tells the reason and hangs up. A thread of
 * its own does so: closing a connection drops the unread descriptors in it, and one of them can
 * be the last of a socket which lingers. A close that lasts is interrupted, so
 * that the next connection gets its turn.
 */
#ifndef URN_SERVER_REFUSE_H
#define URN_SERVER_REFUSE_H

#include <stdbool.h>

struct urn_refuser;

/* Start the thread. NULL: no thread or memory for it. */
struct urn_refuser *urn_refuser_start(void);
/* Stop once all connections are told, or a second later at the most. NULL is allowed. */
void urn_refuser_stop(struct urn_refuser *r);

/* True when there is room for a connection more. The server accepts nobody until then. */
bool urn_refuser_has_room(struct urn_refuser *r);
/* Refuse a connection, the refuser's from now on, with an errno value and a sentence. There must be room. */
void urn_refuser_put(struct urn_refuser *r, int fd, int err, const char *why);
/* Interrupt a close that lasts. returns: milliseconds until the next call; -1: no connection waits */
int urn_refuser_tend(struct urn_refuser *r);

#endif
