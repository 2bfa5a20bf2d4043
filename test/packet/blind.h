/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the tests of frames that somebody made up. */
#ifndef URN_TEST_BLIND_H
#define URN_TEST_BLIND_H

#include "sack.h"

/* The program and the peer are told of a packet that no requester repeats in this form. */
static inline void
blind_ends(struct probe *p, uint32_t msn)
{
	expect_aeth(p, RQ(2), NAK_OP, msn);
	expect_count(p, CONTRADICTS, 1);
	assert_int_equal(p->qp->state, URN_QPS_ERR);
	assert_int_equal(p->events, 1);
	assert_int_equal(p->event[0], URN_EVENT_QP_FATAL);
	probe_close(p);
}

/* The WRITE of PSN 1 was kept, and is taken up, since that of PSN 0 came. */
static inline void
blind_take_up(struct probe *p)
{
	probe_write(p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 1);
	probe_write(p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 0);
	assert_true(p->qp->trace != 0);
	p->looked = p->seen_n;
}

/* One more WRITE of PSN 1 to that offset is a duplicate like others: it ends no connection. */
static inline void
blind_duplicate(struct probe *p, uint32_t off, uint32_t len, uint32_t fill, uint32_t contradicts)
{
	probe_write(p, WRITE_ONLY, RQ(1), off, len, len, fill);
	probe_settle(p);
	expect_count(p, CONTRADICTS, contradicts);
	expect_aeth(p, (p->qp->rx.epsn - 1) & URN_PSN_MASK, SYN_ACK,
		    (p->qp->rx.epsn - RQ(0)) & URN_PSN_MASK);
	assert_int_equal(p->qp->state, URN_QPS_RTS);
	assert_int_equal(p->events, 0);
}

#endif
