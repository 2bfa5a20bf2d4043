/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses from an attacker who does not see the wire: they must not take the place of those
 * that the peer sends (doc/inside/recovery.md "Frames that somebody made up").
 */
#include "blind.h"

/* A part of a READ that was kept may be asked for again. */
static void
part_of_read(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.mtu = 256});
	probe_read(&p, RQ(1), 0, 4 * 256);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_read(&p, RQ(1), 0, 2 * 256);
	expect_frame(&p, READ_FIRST, RQ(1));
	expect_frame(&p, READ_LAST, RQ(2));
	expect_count(&p, CONTRADICTS, 0);
	probe_close(&p);
}

/* Two responses that wait and differ: that part of the READ is asked for again. */
static void
two_responses(void **state)
{
	enum { PACKETS = 20 };
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, PACKETS * 256, 0, 1);
	expect_frame(&p, READ_REQ, SQ(0));
	probe_resp(&p, READ_MIDDLE, SQ(2), 256, 99);
	probe_resp(&p, READ_MIDDLE, SQ(3), 256, 3);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 2);
	probe_resp(&p, READ_MIDDLE, SQ(2), 256, 2);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 1);
	expect_count(&p, CONTRADICTS, 1);
	probe_resp(&p, READ_FIRST, SQ(0), 256, 0);
	probe_resp(&p, READ_MIDDLE, SQ(1), 256, 1);
	for (uint32_t i = 4; i < PACKETS - 1; i++)
		probe_resp(&p, READ_MIDDLE, SQ(i), 256, i);
	probe_resp(&p, READ_LAST, SQ(PACKETS - 1), 256, PACKETS - 1);
	assert_int_equal(expect_frame(&p, READ_REQ, SQ(2))->length, 256);
	probe_resp(&p, READ_ONLY, SQ(2), 256, 2);
	expect_sent(&p, 1, SUCCESS);
	for (uint32_t i = 0; i < PACKETS; i++)
		check_fill(probe_at(&p, i * 256), 256, i, 0);
	expect_count(&p, CONTRADICTS, 1);
	probe_close(&p);
}

/* Two responses that differ in their last byte only differ, too. */
static void
last_byte(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 4 * 256, 0, 1);
	expect_frame(&p, READ_REQ, SQ(0));
	for (uint8_t last = 0; last < 2; last++) {
		struct frame f = frame_of(READ_MIDDLE, SQ(2));

		f.len = 256;
		probe_fill(f.data, f.len, 2, 0);
		f.data[f.len - 1] = last;
		probe_put(&p, &f);
		probe_settle(&p);
	}
	assert_int_equal(p.tp->kept, 0);
	expect_count(&p, CONTRADICTS, 1);
	probe_close(&p);
}

/* ---- responses that were taken up */

enum { PARTS = 8 };

/* A READ whose response of PSN `which` is a made-up one that came first, and was taken up. */
static void
read_with(struct probe *p, uint32_t which)
{
	probe_open(p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, PARTS * 256, 0, 1);
	expect_frame(p, READ_REQ, SQ(0));
	probe_resp(p, which == PARTS - 1 ? READ_LAST : READ_MIDDLE, SQ(which), 256, 99);
	for (uint32_t i = 0; i < which; i++)
		probe_resp(p, i ? READ_MIDDLE : READ_FIRST, SQ(i), 256, i);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 0);
	assert_int_equal(p->qp->tx.repair, 0);
}

/* The rest of the READ's responses come as usual. */
static void
rest_of_read(struct probe *p, uint32_t which)
{
	for (uint32_t i = which + 1; i < PARTS; i++)
		probe_resp(p, i < PARTS - 1 ? READ_MIDDLE : READ_LAST, SQ(i), 256, i);
	expect_sent(p, 1, SUCCESS);
	expect_no_cqe(p);
	assert_int_equal(p->qp->state, URN_QPS_RTS);
	assert_int_equal(p->events, 0);
	probe_close(p);
}

/* A READ's memory may change between two answers: a difference is counted, and the READ completes.
 */
static void
response_taken(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, 5);
	probe_resp(&p, READ_MIDDLE, SQ(5), 256, 99);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 0);
	probe_resp(&p, READ_MIDDLE, SQ(5), 256, 5);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	rest_of_read(&p, 5);
}

/* ... also when the READ is whole with it, and no other response is waited for. */
static void
last_response_taken(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, PARTS - 1);
	probe_resp(&p, READ_LAST, SQ(PARTS - 1), 256, PARTS - 1);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	rest_of_read(&p, PARTS - 1);
}

/* ... and another length or kind, which no answer to this READ has, ends nothing either. */
static void
response_of_other_kind(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, 5);
	probe_resp(&p, READ_LAST, SQ(5), 252, 99);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	probe_resp(&p, ATOMIC_ACK, SQ(5), 99, 0);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 2);
	rest_of_read(&p, 5);
}

/* Responses far behind are forgotten, as requests are. */
static void
response_forgotten(void **state)
{
	struct probe p;

	(void)state;
	read_with(&p, PARTS - 1);
	expect_sent(&p, 1, SUCCESS);
	assert_true(p.qp->trace != 0);
	for (uint32_t i = 0; i < URN_TRACE_REACH + 2; i++) {
		probe_post(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, 0, 8, 0, i);
		probe_turn(&p, 0);
		probe_ack(&p, SQ(PARTS + i), SYN_ACK, i + 2);
		probe_turn(&p, 0);
		expect_sent(&p, i, SUCCESS);
		p.looked = p.seen_n;
	}
	assert_int_equal(p.qp->trace, 0);
	probe_close(&p);
}

/* An atomic whose answer was made up: it came ahead of that of a READ, and was taken up. */
static void
atomic_taken(struct probe *p)
{
	probe_open(p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 7});
	probe_post(p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 256, 0, 1);
	probe_post(p, URN_WR_FETCH_ADD, URN_WRF_SIGNALED, 512, 8, 0, 2);
	expect_frame(p, READ_REQ, SQ(0));
	expect_frame(p, FETCH_ADD, SQ(1));
	probe_resp(p, ATOMIC_ACK, SQ(1), 99, 0);
	probe_settle(p);
	assert_int_equal(p->tp->kept, 1);
	probe_resp(p, READ_ONLY, SQ(0), 256, 0);
	expect_sent(p, 1, SUCCESS);
	expect_sent(p, 2, SUCCESS);
	probe_resp(p, ATOMIC_ACK, SQ(1), 99, 0);
	probe_settle(p);
	expect_count(p, CONTRADICTS, 0);
	assert_int_equal(p->qp->state, URN_QPS_RTS);
}

/* No responder gives another value when it answers again: the program's may be wrong. */
static void
other_value(void **state)
{
	struct probe p;

	(void)state;
	atomic_taken(&p);
	probe_post(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, 0, 8, 0, 3);
	probe_resp(&p, ATOMIC_ACK, SQ(1), 5, 0);
	expect_sent(&p, 3, WR_FLUSH_ERR);
	expect_count(&p, CONTRADICTS, 1);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	assert_int_equal(p.qp->trace, 0);
	assert_int_equal(p.events, 1);
	assert_int_equal(p.event[0], URN_EVENT_QP_FATAL);
	probe_close(&p);
}

/* A READ's response in the place of an atomic's is no answer to it, and ends nothing. */
static void
no_value(void **state)
{
	struct probe p;

	(void)state;
	atomic_taken(&p);
	probe_resp(&p, READ_ONLY, SQ(1), 8, 5);
	probe_settle(&p);
	expect_count(&p, CONTRADICTS, 1);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	assert_int_equal(p.events, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(part_of_read),
		cmocka_unit_test(two_responses),
		cmocka_unit_test(last_byte),
		cmocka_unit_test(response_taken),
		cmocka_unit_test(last_response_taken),
		cmocka_unit_test(response_of_other_kind),
		cmocka_unit_test(response_forgotten),
		cmocka_unit_test(other_value),
		cmocka_unit_test(no_value),
	};

	return cmocka_run_group_tests_name("blind", tests, NULL, NULL);
}
