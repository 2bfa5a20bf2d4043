/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An id's states: the calls that each allows, and its answer to events of the connection.
 *
 *   client                                   server
 *   IDLE, BOUND  rdma_resolve_addr           IDLE, BOUND  rdma_listen
 *   ADDR         rdma_resolve_route          LISTEN       a request makes an id
 *   ROUTE        rdma_connect                REQUESTED    rdma_accept; rdma_reject
 *   CONNECTING   the reply                   ACCEPTED     the RTU
 *   REPLIED      RTU sent
 *   UP           rdma_disconnect: LEAVING; the peer's: LEFT
 *   OVER
 */
#include "dropin/rdmacm/rdmacm.h"

#define CALL(name) (1u << URN_CMA_CALL_##name)

static const uint32_t calls[URN_CMA_STATES] = {
	[URN_CMA_IDLE] = CALL(BIND) | CALL(RESOLVE_ADDR),
	[URN_CMA_BOUND] = CALL(LISTEN) | CALL(RESOLVE_ADDR),
	[URN_CMA_ADDR] = CALL(RESOLVE_ROUTE),
	[URN_CMA_ROUTE] = CALL(CONNECT),
	[URN_CMA_CONNECTING] = CALL(DISCONNECT),
	[URN_CMA_REPLIED] = CALL(ESTABLISH) | CALL(REJECT) | CALL(DISCONNECT),
	[URN_CMA_REQUESTED] = CALL(ACCEPT) | CALL(REJECT) | CALL(DISCONNECT),
	[URN_CMA_ACCEPTED] = CALL(NOTIFY) | CALL(REJECT) | CALL(DISCONNECT),
	[URN_CMA_UP] = CALL(NOTIFY) | CALL(DISCONNECT),
	[URN_CMA_LEAVING] = CALL(DISCONNECT),
	[URN_CMA_LEFT] = CALL(DISCONNECT),
	[URN_CMA_OVER] = CALL(DISCONNECT),
};

bool
urn_cma_allows(const struct urn_cma_id *id, enum urn_cma_call call)
{
	return !urn_cma_foreign(id) && (calls[id->state] & 1u << call) != 0;
}

static const char *const names[URN_CMA_STATES] = {
	[URN_CMA_IDLE] = "idle",
	[URN_CMA_BOUND] = "bound",
	[URN_CMA_LISTEN] = "listen",
	[URN_CMA_ADDR] = "address resolved",
	[URN_CMA_ROUTE] = "route resolved",
	[URN_CMA_CONNECTING] = "connecting",
	[URN_CMA_REPLIED] = "replied",
	[URN_CMA_REQUESTED] = "requested",
	[URN_CMA_ACCEPTED] = "accepted",
	[URN_CMA_UP] = "established",
	[URN_CMA_LEAVING] = "disconnecting",
	[URN_CMA_LEFT] = "left by the peer",
	[URN_CMA_OVER] = "over",
};

const char *
urn_cma_state_name(enum urn_cma_state s)
{
	return (unsigned int)s < URN_CMA_STATES ? names[s] : "unknown";
}

static void
over(struct urn_cma_id *id, enum rdma_cm_event_type type, int status,
     const struct urn_abi_cm_event *ev)
{
	id->state = URN_CMA_OVER;
	(void)urn_cma_post(id, type, status, ev->data, ev->data_len);
}

/* The ends that a connection has in each state. */
static void
on_end(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	switch (ev->type) {
	case URN_CM_EVENT_REJECTED:
		over(id, RDMA_CM_EVENT_REJECTED, ev->reason, ev);
		break;
	case URN_CM_EVENT_UNREACHABLE:
		over(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ev);
		break;
	case URN_CM_EVENT_DISCONNECT:
		id->state = URN_CMA_LEFT;
		(void)urn_cma_post(id, RDMA_CM_EVENT_DISCONNECTED, 0, ev->data, ev->data_len);
		break;
	case URN_CM_EVENT_DISCONNECTED:
		over(id, RDMA_CM_EVENT_DISCONNECTED, 0, ev);
		break;
	case URN_CM_EVENT_TIMEWAIT:
		if (urn_cma_datagrams(id))
			break; /* the answer to a look-up is forgotten */
		id->state = URN_CMA_OVER;
		(void)urn_cma_post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL, 0);
		break;
	default:
		break;
	}
}

static void
on_connecting(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	struct urn_cma_event *e;

	if (ev->type == URN_CM_EVENT_SIDR_REPLY) {
		urn_cma_answered(id, ev);
		return;
	}
	if (ev->type != URN_CM_EVENT_REPLY) {
		on_end(id, ev);
		return;
	}
	id->peer = *ev;
	id->state = URN_CMA_REPLIED;
	e = urn_cma_post(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, ev->data, ev->data_len);
	if (e == NULL)
		return;
	e->reply = true;
	/* The peer's values are given from this side's view, in the same way as the kernel gives
	 * them. */
	e->pub.param.conn.responder_resources = ev->initiator_depth;
	e->pub.param.conn.initiator_depth = ev->responder_resources;
	e->pub.param.conn.flow_control = ev->flow_control;
	e->pub.param.conn.rnr_retry_count = ev->rnr_retry;
	e->pub.param.conn.srq = ev->srq;
	e->pub.param.conn.qp_num = ev->qpn;
}

static void
on_accepted(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	if (ev->type != URN_CM_EVENT_ESTABLISHED) {
		on_end(id, ev);
		return;
	}
	id->state = URN_CMA_UP;
	(void)urn_cma_post(id, RDMA_CM_EVENT_ESTABLISHED, 0, ev->data, ev->data_len);
}

/* Both sides end the connection at once: the one event is enough. */
static void
on_leaving(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	if (ev->type != URN_CM_EVENT_REJECTED)
		on_end(id, ev);
	else
		over(id, RDMA_CM_EVENT_DISCONNECTED, 0, ev);
}

/* Only the end of timewait counts. */
static void
on_over(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	if (ev->type == URN_CM_EVENT_TIMEWAIT)
		on_end(id, ev);
}

static void
on_nothing(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	(void)id, (void)ev;
}

static void (*const steps[URN_CMA_STATES])(struct urn_cma_id *, const struct urn_abi_cm_event *) = {
	[URN_CMA_IDLE] = on_nothing,	  [URN_CMA_BOUND] = on_nothing,
	[URN_CMA_LISTEN] = on_nothing,	  [URN_CMA_ADDR] = on_nothing,
	[URN_CMA_ROUTE] = on_nothing,	  [URN_CMA_CONNECTING] = on_connecting,
	[URN_CMA_REPLIED] = on_end,	  [URN_CMA_REQUESTED] = on_end,
	[URN_CMA_ACCEPTED] = on_accepted, [URN_CMA_UP] = on_end,
	[URN_CMA_LEAVING] = on_leaving,	  [URN_CMA_LEFT] = on_over,
	[URN_CMA_OVER] = on_over,
};

void
urn_cma_step(struct urn_cma_id *id, const struct urn_abi_cm_event *ev)
{
	steps[id->state](id, ev);
}
