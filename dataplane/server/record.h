/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that come, go and are refused, for the log of events (dataplane/log). */
#ifndef URN_SERVER_RECORD_H
#define URN_SERVER_RECORD_H

#include "server/attached.h"

struct urn_log;

/* A connection that no program has yet is refused. fd: the connection; why: a sentence */
void urn_record_turn_away(struct urn_log *log, int fd, const char *why);
/* The program uses its adapter from now on. */
void urn_record_attach(const struct urn_attached *s);
/* A question of the program that would have opened an adapter is refused. */
void urn_record_refuse(const struct urn_attached *s, const char *why);
/* The program sent a message that makes no sense. */
void urn_record_nonsense(const struct urn_attached *s, const char *why);
/* A control call of the program failed; a limit may be the reason. err: an errno value */
void urn_record_call(const struct urn_attached *s, int err, const char *why);
/* The program goes. stops: because the dataplane does */
void urn_record_leave(const struct urn_attached *s, bool stops);

#endif
