/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telling those whom the server can't take why, and hanging up on them. A thread of
 * its own does it: what lies unread in a connection goes with it, and that can be the
 * last descriptor of a socket which lingers. A close that lasts is interrupted, so
 * that the next one gets its turn.
 */
#ifndef URN_SERVER_REFUSE_H
#define URN_SERVER_REFUSE_H

#include <stdbool.h>

struct urn_refuser;

/* NULL: no thread or memory for it. */
struct urn_refuser *urn_refuser_start(void);
/* Ends when all are told, or a second later at the most. NULL is allowed. */
void urn_refuser_stop(struct urn_refuser *r);

/* Is there room for one more? The server accepts nobody until there is. */
bool urn_refuser_has_room(struct urn_refuser *r);
/* Tell the connection, which is the refuser's from now on: errno value and a sentence. There is room. */
void urn_refuser_put(struct urn_refuser *r, int fd, int err, const char *why);
/* Interrupt what lasts. returns: milliseconds until this is to be called again; -1: nothing is under way */
int urn_refuser_tend(struct urn_refuser *r);

#endif
