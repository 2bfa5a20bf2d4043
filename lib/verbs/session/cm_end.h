/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's end of connection management on a virtual device: its operations (cm.c), and its life
 * on the primary adapter (cm_life.c). */
#ifndef URN_VERBS_SESSION_CM_END_H
#define URN_VERBS_SESSION_CM_END_H

#include "verbs/provider/cm.h"
#include "verbs/session/cm_ids.h"
#include "verbs/session/heal.h"

/* An end, which owns one of the primary adapter's. */
struct urn_sv_end {
	struct urn_cm_end front;     /* first; fd is an epoll set of event_fd and the fd below */
	LIST_ENTRY(urn_sv_end) link; /* in the context; its lock */
	struct urn_sv_ctx *ctx;	     /* NULL: the device was closed */
	struct urn_cm_end *below; /* NULL: not on the primary adapter; changes beside calls only */
	uint32_t tried[URN_SV_ADAPTERS]; /* rounds in which it was last tried; context's lock */
	int event_fd;			 /* eventfd: readable while an event of our own waits */
	pthread_mutex_t lock;		 /* lock protects ids, and what event_fd says */
	/* making is held while the adapter gives an id, until that is one of ids, and while an
	 * event is taken: an event finds the id, though it may be faster than the call. Taken in a
	 * call, before all other locks. */
	pthread_mutex_t making;
	bool forked; /* this is a child of fork(): ids and event_fd are the parent's */
	struct urn_sv_cm_ids ids;
};

/* Watch a descriptor by that of the end. returns: 0 or an errno value with its text */
int urn_sv_end_watch(const struct urn_sv_end *e, int fd);
/* No more events come from below. A child of fork() leaves the parent's set alone. */
void urn_sv_end_over(const struct urn_sv_end *e, const struct urn_sv_ctx *ctx);
/* Events of our own wait, or not; the lock of the end is held. */
void urn_sv_end_fire(struct urn_sv_end *e);
/* The primary adapter was lost: no id has a part there any more. The locks of the device and of the
 * end are held. */
void urn_sv_end_lost(struct urn_sv_end *e);
/* Make the end below. returns: 0 or an errno value with its text */
int urn_sv_end_make(struct urn_sv_end *e);

#endif
