/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from somebody who does not see the wire and guesses PSNs, with everything else
 * about them right: they must not take the place of a peer's packets (doc/recovery.md
 * "Frames that somebody made up").
 */
#include "sack.h"

enum { SPREAD = 64, REAL = 8 };

/* SENDs with other bytes, spread over all PSNs that are ahead. */
static void
guess(struct probe *p)
{
	for (uint32_t i = 1; i <= SPREAD; i++) {
		probe_send(p, SEND_ONLY, RQ(i * ((1u << 23) / SPREAD) - 1), 40, 1000 + i);
		if (p->in_n == URN_TP_BURST)
			probe_turn(p, 0);
	}
	probe_settle(p);
}

/* The peer's own messages come, in order, and are what the program receives. */
static void
truth(struct probe *p)
{
	for (uint32_t i = 0; i < REAL; i++)
		probe_send(p, SEND_ONLY, RQ(i), 40, i);
	probe_settle(p);
	for (uint32_t i = 0; i < REAL; i++) {
		expect_recv(p, i, SUCCESS);
		check_fill(probe_at(p, i * 64), 40, i, 0);
	}
	expect_no_cqe(p);
}

static void
receives(struct probe *p)
{
	for (uint32_t i = 0; i < REAL; i++)
		probe_recv(p, i * 64, 64, i);
}

/* Nothing is kept beyond what the peer can have in flight, and a urnic peer hears nothing of it. */
static void
far_from_urnic(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .kept = 1000});
	receives(&p);
	guess(&p);
	assert_int_equal(p.tp->kept, 0);
	expect_count(&p, DROP_FAR, SPREAD);
	expect_silence(&p);
	truth(&p);
	expect_aeth(&p, RQ(REAL - 1), SYN_ACK, REAL);
	probe_close(&p);
}

/* A standard peer is told of a gap, once, since it may have sent READs of many PSNs. */
static void
far_from_standard(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.kept = 1000});
	receives(&p);
	guess(&p);
	assert_int_equal(p.tp->kept, 0);
	expect_count(&p, DROP_FAR, SPREAD);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	expect_silence(&p);
	truth(&p);
	expect_aeth(&p, RQ(REAL - 1), SYN_ACK, REAL);
	probe_close(&p);
}

/* The border: so far ahead as a window reaches, and one further. */
static void
border(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .kept = 1000});
	probe_send(&p, SEND_ONLY, RQ(URN_TP_OOO_QP), 40, 1);
	probe_send(&p, SEND_ONLY, RQ(URN_TP_OOO_QP + 1), 40, 1);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, DROP_FAR, 1);
	probe_close(&p);
}

/* Responses: no further ahead than a QP keeps of them, however long the READ is. */
static void
far_responses(void **state)
{
	enum { PACKETS = 1500 };
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .kept = 2000,
					      .retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, PACKETS * 256, 0, 1);
	expect_frame(&p, READ_REQ, SQ(0));
	probe_resp(&p, READ_MIDDLE, SQ(URN_TP_OOO_READ), 256, 1);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, DROP_FAR, 0);
	probe_resp(&p, READ_MIDDLE, SQ(URN_TP_OOO_READ + 1), 256, 1);
	probe_resp(&p, READ_LAST, SQ(PACKETS - 1), 256, 1);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, DROP_FAR, 2);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_from_urnic), cmocka_unit_test(far_from_standard),
		cmocka_unit_test(border), cmocka_unit_test(far_responses),
	};

	return cmocka_run_group_tests_name("blind", tests, NULL, NULL);
}
