/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of an endpoint with a helper thread; endpoints without have none. */
#ifndef URN_AM_LOCK_H
#define URN_AM_LOCK_H

#include "am/endpoint.h"

#include <errno.h>
#include <pthread.h>

struct urn_am_thread {
	pthread_t id;
	pthread_mutex_t lock;	  /* recursive; lock protects the endpoint, and `doze` */
	_Atomic uint32_t waiters; /* threads of the program that wait for the lock */
	_Atomic bool stop;
	int doze; /* ms that the thread sleeps at most; -1: until a descriptor wakes it; 0: it is
		     awake, or rung */
	int epoll, bell; /* descriptors; bell: rung by other threads */
};

void urn_am_lock(const struct urn_am_endpoint *ep);
void urn_am_unlock(const struct urn_am_endpoint *ep);

extern uint32_t urn_am_fork_count; /* read it by urn_am_forks() first, which begins the count */
/* Forks from the first process that asked to this one. */
uint32_t urn_am_forks(void);
/* Refuse a call on an endpoint of a parent of this process. returns: EPERM, with its text and errno
 * set */
int urn_am_refuse_child(void);

/* True when a parent of this process made the endpoint: rings, lanes and thread are the parent's.
 */
static inline bool
urn_am_is_parents(const struct urn_am_endpoint *ep)
{
	return ep->forks != urn_am_fork_count;
}

/* True when the calling thread is inside a function of the program that the endpoint called. */
bool urn_am_is_inside(const struct urn_am_endpoint *ep);

/*
 * Endpoint whose handler runs in the calling thread; NULL: none. Set by the library around each
 * handler.
 */
extern _Thread_local const struct urn_am_endpoint *urn_am_handling;

/*
 * True when the calling thread is inside a handler of another endpoint, with the sentence of EPERM,
 * and errno. Requests and operations are refused there as inside this one's (AM-1), and a handler
 * that waited for the lock of an endpoint whose handler waits for this one's would do so for ever.
 */
bool urn_am_is_elsewhere(const struct urn_am_endpoint *ep);

/*
 * A function of the program has returned. Ends this process with status 0 if it is a child that the
 * function made by fork(): the child would go on with the parent's endpoint, and send its answers a
 * second time; in the endpoint's thread it would wait for the parent's lock, too.
 */
void urn_am_returned(const struct urn_am_endpoint *ep);

/* A call on the endpoint begins. returns: 0, and urn_am_leave() follows; else EPERM */
static inline int
urn_am_enter(const struct urn_am_endpoint *ep)
{
	if (urn_am_handling != NULL && urn_am_is_elsewhere(ep))
		return EPERM;
	if (urn_am_is_parents(ep))
		return urn_am_refuse_child();
	if (ep->thread != NULL)
		urn_am_lock(ep);
	return 0;
}

static inline void
urn_am_leave(const struct urn_am_endpoint *ep)
{
	if (ep->thread != NULL)
		urn_am_unlock(ep);
}

#endif
