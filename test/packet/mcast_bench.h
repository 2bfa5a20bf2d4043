/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups, datagrams to them, and clients with queue pairs there, for the tests of multicast. */
#ifndef URN_TEST_MCAST_BENCH_H
#define URN_TEST_MCAST_BENCH_H

#include "bare.h"
#include "probe.h"
#include "transport/mcast.h"

enum { MCAST_LEN = 33 }; /* bytes of the datagrams */

/* A client with queue pairs of its own. */
struct mcast_crowd {
	struct urn_tp_share share;
	unsigned int n;		    /* queue pairs */
	struct urn_qp **qp;	    /* all of them are attached to the group */
	struct urn_abi_wq *sq, *rq; /* shared by all: nothing is posted */
};

/* The address of a group, IPv4 or IPv6, and its MAC. */
struct frame_addr mcast_group(bool v6, uint8_t last);
void mcast_attach(struct probe *p, struct urn_qp *qp, const struct frame_addr *group);
void mcast_detach(struct probe *p, struct urn_qp *qp, const struct frame_addr *group);
struct frame mcast_datagram(void);
/* Put a frame to a group. */
void mcast_put(struct probe *p, struct frame *f, const struct frame_addr *group);

/* Make a queue pair of a crowd, in the state RESET. */
struct urn_qp *crowd_qp(struct probe *p, struct mcast_crowd *c);
/* Bring a queue pair from RESET to RTS. */
void crowd_up(struct probe *p, struct urn_qp *qp);
void crowd_state(struct probe *p, struct urn_qp *qp, uint8_t state);
/*
 * Make a client of n queue pairs that are attached to a group; more than URN_MCAST_CLIENT too,
 * which no client can: the worst that all clients together can do, and in one place.
 */
void crowd_open(struct probe *p, struct mcast_crowd *c, unsigned int n,
		const struct frame_addr *group);
/* The client dies, its queue pairs attached as they are. */
void crowd_close(struct probe *p, struct mcast_crowd *c);

#endif
