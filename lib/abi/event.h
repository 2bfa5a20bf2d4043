/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that the dataplane writes to the descriptors of a client. */
#ifndef URN_ABI_EVENT_H
#define URN_ABI_EVENT_H

#include <stdint.h>

/*
 * Event, written whole to a channel or to the async descriptor: a pipe when the
 * dataplane is in this process, a pair of sockets when it is in another.
 */
struct urn_abi_event {
	uint32_t type;	 /* async: enum ibv_event_type; channel: 0, or URN_EVENT_CM */
	uint32_t handle; /* QPN, CQ or SRQ handle; id of connection management */
	uint64_t cookie; /* the cookie of the CQ, QP, SRQ or id; of an event of the port: when the
			    port was last seen in its state of before, ns of CLOCK_MONOTONIC, 0:
			    not known */
};
_Static_assert(sizeof(struct urn_abi_event) == 16, "event");

/* Async events; equal to enum ibv_event_type. */
enum urn_abi_event_type {
	URN_EVENT_CQ_ERR = 0,
	URN_EVENT_QP_FATAL = 1,
	URN_EVENT_QP_REQ_ERR = 2,
	URN_EVENT_QP_ACCESS_ERR = 3,
	URN_EVENT_COMM_EST = 4,
	URN_EVENT_SQ_DRAINED = 5,
	URN_EVENT_PORT_ACTIVE = 9,
	URN_EVENT_PORT_ERR = 10,
	URN_EVENT_SRQ_ERR = 14,
	URN_EVENT_SRQ_LIMIT = 15,
	URN_EVENT_LAST_WQE = 16,
	URN_EVENT_LOST = 17, /* IBV_EVENT_CLIENT_REREGISTER: events were lost, look at everything */
	URN_EVENT_MSG = 257, /* no ibv_event_type: a register set's ARM INTR fired; handle and
				cookie are the set's */
	URN_EVENT_AM = 258,  /* no ibv_event_type: an endpoint's ARM INTR fired; handle and cookie
				are the endpoint's */
	URN_EVENT_CM = 256,  /* no ibv_event_type: fetch the event with URN_CTL_CM_EVENT */
};

#endif
