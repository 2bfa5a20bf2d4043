/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue without room: the QP that has something to complete goes to the error
 * state, and a message whose receive can't be completed is refused, not acknowledged (IBTA
 * 11.6.3, 9.7.5.2.8).
 */
#include "probe.h"

/* Fill a completion queue: its program polls no more. */
static void
fill(struct urn_cq *cq)
{
	atomic_store(&cq->hdr->cons, cq->prod - PROBE_CQES);
	cq->cons = cq->prod - PROBE_CQES;
}

static void
expect_broken(struct probe *p)
{
	probe_settle(p);
	assert_int_equal(p->qp->state, URN_QPS_ERR);
	assert_int_equal(p->events, 2);
	assert_int_equal(p->event[0], URN_EVENT_CQ_ERR);
	assert_int_equal(p->event[1], URN_EVENT_QP_FATAL);
}

static void
receive(void **state)
{
	(void)state;
	for (int imm = 0; imm < 2; imm++)
		for (uint64_t seed = 0; seed < 2; seed++) {
			struct probe p;

			probe_open(&p, &(struct probe_config){.delay_seed = seed});
			probe_recv(&p, 0, 64, 1);
			probe_recv(&p, 0, 64, 2);
			probe_send(&p, SEND_ONLY, RQ(0), 64, 1);
			expect_recv(&p, 1, SUCCESS);
			expect_aeth(&p, RQ(0), SYN_ACK, 1);
			fill(&p.rcq);
			if (imm)
				probe_write(&p, WRITE_ONLY_IMM, RQ(1), 4096, 8, 8, 1);
			else
				probe_send(&p, SEND_ONLY, RQ(1), 64, 1);
			expect_aeth(&p, RQ(1), NAK_OP, 1);
			expect_broken(&p);
			/* The message is not acknowledged when it comes again, either. */
			probe_send(&p, SEND_ONLY, RQ(1), 64, 1);
			expect_silence(&p);
			probe_close(&p);
		}
}

/* Requests that can't be completed are over; READs and WRITEs of the peer are served until then. */
static void
request(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 64, 0, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	fill(&p.scq);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_broken(&p);
	expect_no_cqe(&p);
	assert_int_equal(atomic_load(&p.q[0].sq->cons), 1); /* its slot is free */
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive),
		cmocka_unit_test(request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
