/* SPDX-License-Identifier: BSD-3-Clause */
/* One device with an end of connection management whose peer is the test. */
#ifndef TEST_RDMACM_FAKE_H
#define TEST_RDMACM_FAKE_H

#include "dropin/rdmacm/rdmacm.h"

/* The device's address, and a peer's. */
#define FAKE_OWN "10.9.0.1"
#define FAKE_PEER "10.9.0.2"

/* Counts of what the library asked the end for, and the last of each. */
struct fake {
	unsigned int listens, connects, accepts, rejects, establishes, disconnects, destroys;
	unsigned int qps_up, qps_error;
	union ibv_gid group;   /* the one that was attached to last */
	unsigned int attached; /* attachments now */
	int attach_fails;      /* errno value that attaching fails with; 0: none */
	struct urn_abi_cm_connect connect;
	struct urn_abi_cm_accept accept;
	uint32_t id;	   /* last id given out */
	uint32_t listener; /* last listener's */
	uint32_t destroyed;
	int fails; /* errno value of the next call at the end; 0: none fails */
};
extern struct fake fake;

/* An event comes from the peer. */
void fake_event(const struct urn_abi_cm_event *ev);
/* A request of the peer's, or a look-up, comes to the last listener, with RDMA-CM's addresses.
 * returns: its id */
uint32_t fake_request(enum urn_cm_event_type type);
/* Wait until the library has fetched all events. */
void fake_settle(void);

#endif
