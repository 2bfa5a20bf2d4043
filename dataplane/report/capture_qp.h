/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames of one queue pair, for captures. A RoCEv2 frame names its destination only, so the
 * frames that a queue pair sends are found by its peer's number.
 */
#ifndef URN_REPORT_CAPTURE_QP_H
#define URN_REPORT_CAPTURE_QP_H

#include "control/dataplane.h"

#include <rte_mbuf.h>

#include <stdbool.h>
#include <stdint.h>

/* Adapters number their queue pairs apart, so one number can have a peer on each adapter. */
enum { URN_CAPTURE_QPS = 1 + 16 };

struct urn_capture_qps {
	unsigned int n;
	uint32_t qpn[URN_CAPTURE_QPS]; /* the queue pair first, then its peers */
};

/*
 * Begin with the frames of queue pair qpn, of at most 24 bits: to it, and to the peers that the
 * queue pairs of this number have on the adapters of dp now. dp: NULL: to it only. From a thread
 * that polls no engine. returns: 0, or -1 with *err: an adapter is busy
 */
int urn_capture_qps_find(struct urn_capture_qps *q, struct urn_dp *dp, uint32_t qpn,
			 struct urn_err *err);
/*
 * urn_capture_filter with a struct urn_capture_qps: true for a RoCEv2 frame to one of the queue
 * pairs, and for a datagram from the first. The frame is not trusted; VLAN tags are allowed.
 */
bool urn_capture_qps_want(const void *qps, const struct rte_mbuf *m);

#endif
