/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program's end of connection management on one device: the control calls of
 * abi/cm.h, and a pipe that becomes readable when an event waits. doc/reference/cm.md has the calls
 * that an id allows in each state, and the meaning of events. Several threads may call at a
 * time, but only one of them urn_cm_end_event().
 */
#ifndef URN_VERBS_CM_H
#define URN_VERBS_CM_H

#include "abi/cm.h"
#include "attach/pipe.h"

#include <urnic/verbs.h>

#include <pthread.h>

/* Events that are fetched at a time. */
enum { URN_CM_END_EVENTS = 16 };

/* Must not be moved while it is open. */
struct urn_cm_end {
	struct ibv_context *ctx;  /* the program's context */
	int fd;                   /* for poll() only; readable: call urn_cm_end_event() until EAGAIN */
	struct urn_way way;       /* the other end; in no list: the context was closed */
	uint32_t due;             /* notices read whose events are still to be fetched */
	int32_t handle;           /* the dataplane's name for the pipe */
	/*
	 * For a dataplane in another process: the lock is held while events are fetched, and
	 * protects the events fetched and not given out, ev[first, end), oldest first.
	 */
	pthread_mutex_t lock;
	uint32_t first, end;
	struct urn_abi_cm_event ev[URN_CM_END_EVENTS];
};

/* Open. returns: 0, or an errno value with errno and urn_attach_error() set, like all calls below */
int urn_cm_end_open(struct urn_cm_end *c, struct ibv_context *ctx);
/*
 * Close. The program has destroyed all ids before, or closed the context, which destroys them.
 * Works in a child of fork() too.
 */
void urn_cm_end_close(struct urn_cm_end *c);

/* Listen at a service. backlog: requests that may wait to be accepted; 0: 128. cookie: comes back in events. */
int urn_cm_end_listen(struct urn_cm_end *c, uint64_t service, uint64_t cookie, uint32_t backlog,
	uint32_t *id);
/* Ask for a connection, or for the queue pair that serves datagrams. The call fills p->channel_fd in. */
int urn_cm_end_connect(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id);
int urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id);
int urn_cm_end_accept(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_accept *p);
int urn_cm_end_reject(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_reject *p);
/* Private data of `len` bytes; more than the message takes is EINVAL. */
int urn_cm_end_establish(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len);
int urn_cm_end_disconnect(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len);
/* Destroy an id: no more events come of it; a listener's requests that were not fetched are destroyed too. */
int urn_cm_end_destroy(struct urn_cm_end *c, uint32_t id);

/*
 * Bring a queue pair from INIT to RTR and on to RTS by one control call, when the attributes
 * for both are known, for example from a request or a reply: the same as two calls of
 * ibv_modify_qp(). returns: 0, or an errno value; qp->state is the state that it reached
 */
int urn_cm_qp_ready(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
	const struct ibv_qp_attr *rts, int rts_mask);

/*
 * Get the oldest event, without a wait. returns: 0; EAGAIN: there is none; EIO: the dataplane
 * is gone, and there are no more events: `fd` stays readable
 */
int urn_cm_end_event(struct urn_cm_end *c, struct urn_abi_cm_event *ev);

#endif
