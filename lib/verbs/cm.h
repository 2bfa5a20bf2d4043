/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program's end of connection management on one device: the control calls of
 * abi/cm.h, and a pipe that becomes readable when an event waits. What an id can
 * be asked in which state, and what events mean, is in doc/cm.md. Calls may come from
 * several threads, urn_cm_end_event() from one at a time.
 */
#ifndef URN_VERBS_CM_H
#define URN_VERBS_CM_H

#include "abi/cm.h"
#include "attach/pipe.h"

#include <urnic/verbs.h>

#include <pthread.h>

/* Events that are fetched at a time. */
enum { URN_CM_END_EVENTS = 16 };

/* Stays where it is while it is open. */
struct urn_cm_end {
	struct ibv_context *ctx;  /* the program's */
	int fd;                   /* for poll() alone; readable: call urn_cm_end_event() until EAGAIN */
	struct urn_way way;       /* the other end; in no list: the context was closed */
	uint32_t due;             /* notices read whose events are still to be fetched */
	int32_t handle;           /* what the dataplane calls the pipe */
	/*
	 * Of a dataplane in another process: around fetching, and what was fetched and not given
	 * out, ev[first, end), oldest first.
	 */
	pthread_mutex_t lock;
	uint32_t first, end;
	struct urn_abi_cm_event ev[URN_CM_END_EVENTS];
};

/* Make it. returns: 0, or an errno value with errno and urn_attach_error() set, as all of these */
int urn_cm_end_open(struct urn_cm_end *c, struct ibv_context *ctx);
/*
 * Ids are destroyed before; or the context is closed before, and they go with it. For a child
 * of fork() as for its parent.
 */
void urn_cm_end_close(struct urn_cm_end *c);

/* Listen at a service. backlog: requests that may wait; 0: 128. cookie: comes back in events. */
int urn_cm_end_listen(struct urn_cm_end *c, uint64_t service, uint64_t cookie, uint32_t backlog,
	uint32_t *id);
/* Ask for a connection, or who serves datagrams. p->channel_fd is filled in. */
int urn_cm_end_connect(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id);
int urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id);
int urn_cm_end_accept(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_accept *p);
int urn_cm_end_reject(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_reject *p);
/* Private data of `len` bytes; more than the message takes is EINVAL. */
int urn_cm_end_establish(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len);
int urn_cm_end_disconnect(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len);
/* Of an id, and of what came to a listener that was not fetched, no event comes any more. */
int urn_cm_end_destroy(struct urn_cm_end *c, uint32_t id);

/*
 * Bring a queue pair from INIT to RTR and on to RTS by one control call, when what is needed
 * for both is known, as it is with a request or a reply: as ibv_modify_qp() would with each
 * of the two. returns: 0, or an errno value; qp->state says how far it got
 */
int urn_cm_qp_ready(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
	const struct ibv_qp_attr *rts, int rts_mask);

/*
 * The oldest event. returns: 0; EAGAIN: there is none; EIO: the dataplane is gone, and there
 * are no more: `fd` stays readable. Does not wait
 */
int urn_cm_end_event(struct urn_cm_end *c, struct urn_abi_cm_event *ev);

#endif
