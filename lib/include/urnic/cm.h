/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management: how a program finds a peer's queue pair and connects its own to it, by
 * the messages that RDMA-CM uses, on one device of urnic's. No librdmacm is needed.
 *
 * A program opens an end on its context. With it the program listens at services, and asks
 * for connections; either makes an id. All news about ids comes as events. The file descriptor of
 * the end is readable when an event waits:
 *
 *   server                                    client
 *   urn_cm_end_listen()                       urn_cm_end_connect(), with its queue pair's number
 *   REQUEST: a queue pair, up to RTR and RTS
 *            by the event's values
 *   urn_cm_end_accept()                       REPLY: bring the queue pair up in the same way
 *   ESTABLISHED                               urn_cm_end_establish()
 *   DISCONNECT                                urn_cm_end_disconnect()
 *   urn_cm_end_disconnect()                   DISCONNECTED
 *   urn_cm_end_destroy()                      urn_cm_end_destroy()
 *
 * doc/reference/cm.md has the calls that an id allows in each state, and the meaning of events. The
 * structs of calls and events are those of abi/cm.h.
 *
 * Several threads may call at a time, but only one of them urn_cm_end_event(). All calls return 0
 * or an errno value, which errno holds too; urn_attach_error() says why. EOPNOTSUPP: the dataplane
 * has no connection management. EIO: the dataplane of another process is gone.
 */
#ifndef URNIC_CM_H
#define URNIC_CM_H

#include <urnic/verbs.h>

#include "abi/cm.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A program's end of connection management on one device. */
struct urn_cm_end;

/*
 * Open an end.
 *
 * out: set on success, else NULL
 * ctx: a context of urnic's, which may be closed before the end
 * returns: 0, or an errno value (ENOMEM, EMFILE, ...)
 */
int urn_cm_end_open(struct urn_cm_end **out, struct ibv_context *ctx);
/*
 * Close. The program has destroyed all ids before, or closed the context, which destroys them.
 * Works in a child of fork() too. NULL is allowed.
 */
void urn_cm_end_close(struct urn_cm_end *c);
/* The descriptor, for poll() only. Readable: call urn_cm_end_event() until EAGAIN. */
int urn_cm_end_fd(const struct urn_cm_end *c);

/*
 * Listen at a service.
 *
 * service: service id; urn_cm_service() makes one of a port number
 * cookie: comes back in the listener's events
 * backlog: requests that may wait to be accepted, 0: 128; with URN_CM_SHARED and URN_CM_HEIR of
 *   abi/cm.h processes related by fork() share the service, and `cookie` is their secret
 * id: set on success
 */
int urn_cm_end_listen(struct urn_cm_end *c, uint64_t service, uint64_t cookie, uint32_t backlog,
		      uint32_t *id);
/*
 * Take over a request that came to another process with the same service and cookie, which has
 * fetched it, and not answered it. From now on the id is this end's.
 *
 * returns: ENOENT: there is no such request, or its peer took it back; ENOTCONN: it was answered
 */
int urn_cm_end_take(struct urn_cm_end *c, uint32_t id, uint64_t cookie);
/*
 * Ask for a connection, or for the queue pair that serves datagrams.
 *
 * p: peer and parameters; the call fills p->channel_fd in
 * id: set on success
 */
int urn_cm_end_connect(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id);
int urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id);
/* Accept a request for a connection, or answer one for datagrams. */
int urn_cm_end_accept(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_accept *p);
int urn_cm_end_reject(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_reject *p);
/*
 * Establish: send the RTU, or say that the peer's data came before its RTU. Disconnect: end a
 * connection, or agree to its end.
 *
 * data: private data of `len` bytes; more than the message takes is EINVAL
 */
int urn_cm_end_establish(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len);
int urn_cm_end_disconnect(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len);
/*
 * Destroy an id: no more events come of it; a listener's requests that were not fetched are
 * destroyed too.
 */
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
 * is gone, and there are no more events: the descriptor stays readable
 */
int urn_cm_end_event(struct urn_cm_end *c, struct urn_abi_cm_event *ev);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
