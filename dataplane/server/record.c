/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/record.h"

#include "abi/clock.h"
#include "control/client.h"
#include "log/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

/* The program of a connection, as the log names it. */
static struct urn_log_who
who_of(const struct urn_attached *s)
{
	struct urn_log_who who = {.pid = s->peer.pid, .uid = s->peer.uid};

	if (s->client)
		return s->client->engine.who;
	urn_log_who_program(&who);
	return who;
}

void
urn_record_turn_away(struct urn_log *log, int fd, const char *why)
{
	struct urn_log_who who = {0};
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (!log)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
		urn_log_say(log, URN_LOG_REFUSED, NULL, "a program was refused: %s", why);
		return;
	}
	who.pid = peer.pid;
	who.uid = peer.uid;
	urn_log_who_program(&who);
	urn_log_say(log, URN_LOG_REFUSED, &who, "was refused: %s", why);
}

void
urn_record_attach(const struct urn_attached *s)
{
	const struct urn_adapter *a = s->client->adapter;
	struct urn_log_who who = who_of(s);

	urn_log_say(s->dp->log, URN_LOG_ATTACHED, &who, "attached to adapter %s of node %s",
		    a->cfg.name, a->cfg.node);
}

void
urn_record_refuse(const struct urn_attached *s, const char *why)
{
	struct urn_log_who who;

	if (!s->dp->log)
		return;
	who = who_of(s);
	urn_log_say(s->dp->log, URN_LOG_REFUSED, &who, "was refused: %s", why);
}

void
urn_record_nonsense(const struct urn_attached *s, const char *why)
{
	struct urn_log_who who;

	if (!s->dp->log)
		return;
	who = who_of(s);
	urn_log_say(s->dp->log, URN_LOG_NONSENSE, &who, "loses its connection: %s", why);
}

void
urn_record_call(const struct urn_attached *s, int err, const char *why)
{
	/* ENOSPC: an adapter, or a program, has places for so many objects, and all are taken. */
	if (err == EDQUOT || err == EMFILE || err == ENOSPC)
		urn_log_say(s->dp->log, URN_LOG_REACHED, &s->client->engine.who,
			    "reached a limit: %s", why);
}

/* The reason why a connection ends. */
static const char *
reason(const struct urn_attached *s, bool stops)
{
	struct pollfd owner = {.fd = s->owner_fd, .events = POLLIN};

	if (stops)
		return "urnicd stops";
	if (s->bad)
		return "urnicd closed the connection";
	if (s->owner_fd == -ESRCH || (s->owner_fd >= 0 && poll(&owner, 1, 0) == 1))
		return "the process has ended";
	return "the program closed the connection";
}

void
urn_record_leave(const struct urn_attached *s, bool stops)
{
	const struct urn_client *c = s->client;
	uint64_t qps, mrs;
	char back[96] = "";
	double seconds;

	if (!c || !c->started || !s->dp->log)
		return;
	/* Threads of other clients change these only where objects are shared. */
	qps = __atomic_load_n(&c->quota.used[URN_QUOTA_QP], __ATOMIC_RELAXED);
	mrs = __atomic_load_n(&c->quota.used[URN_QUOTA_MR], __ATOMIC_RELAXED);
	seconds = (double)(urn_clock_ns() - s->since) / 1e9;
	if (qps || mrs)
		snprintf(back, sizeof(back),
			 "; %" PRIu64 " queue pair%s and %" PRIu64
			 " memory region%s were taken back",
			 qps, qps == 1 ? "" : "s", mrs, mrs == 1 ? "" : "s");
	urn_log_say(s->dp->log, URN_LOG_LEFT, &c->engine.who, "left adapter %s after %.1f s: %s%s",
		    c->adapter->cfg.name, seconds, reason(s, stops), back);
}
