/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bringing an RC queue pair up by hand: each side tells the other its queue
 * pair number, first PSN, GID and MTU out of band, then both connect.
 */
#ifndef URN_APPS_COMMON_ENDPOINT_H
#define URN_APPS_COMMON_ENDPOINT_H

#include <urnic/verbs.h>
#include "pmd_glue/port.h"

#include <stdint.h>

/* A queue pair's address, which its peer must know. Host order; fixed size, may be sent unchanged. */
struct urn_ep_addr {
	uint32_t qpn;      /* queue pair number, 24 bits */
	uint32_t psn;      /* first PSN that this side sends, 24 bits */
	uint8_t gid[16];   /* IPv4 as ::ffff:a.b.c.d */
	uint32_t mtu_code; /* largest path MTU of its port, 1..5 = 256..4096 */
};
_Static_assert(sizeof(struct urn_ep_addr) == 28, "goes between programs");

/* Behaviour of a connection. Units as in struct ibv_qp_attr. */
struct urn_ep_opts {
	uint8_t mtu_code;           /* path MTU, 1..5; 0: the largest both ports carry */
	uint8_t timeout;            /* ACK timeout, 4.096 us * 2^timeout; 0: none */
	uint8_t retry_cnt;          /* 0..7 */
	uint8_t rnr_retry;          /* 0..6; 7: for ever */
	uint8_t min_rnr_timer;      /* code 0..31 (doc/reference/wire.md "Acknowledgement") */
	uint8_t max_rd_atomic;      /* READs and atomics in flight from this side */
	uint8_t max_dest_rd_atomic; /* ... towards this side */
	uint8_t sgid_index;         /* index into this side's GID table */
};

/* Sensible values: 67 ms timeout, 7 retries, 16 READs or atomics each way. */
void urn_ep_opts_default(struct urn_ep_opts *o);

/*
 * RESET to INIT. access: enum ibv_access_flags that the peer may use.
 * returns: 0, or -1 with *err
 */
int urn_ep_init(struct ibv_qp *qp, unsigned int access, struct urn_err *err);

/*
 * Fill in this side's address, to be handed to the peer. psn: first PSN that this
 * side sends; 24 bits are used. returns: 0, or -1 with *err
 */
int urn_ep_local(struct ibv_qp *qp, uint32_t psn, uint8_t sgid_index, struct urn_ep_addr *out,
		 struct urn_err *err);

/*
 * INIT to RTR to RTS, towards the peer. local->psn is used, and the smallest
 * of the MTUs of local, remote and o that are not 0. returns: 0, or -1 with *err
 */
int urn_ep_connect(struct ibv_qp *qp, const struct urn_ep_addr *local,
		   const struct urn_ep_addr *remote, const struct urn_ep_opts *o,
		   struct urn_err *err);

#endif
