/* SPDX-License-Identifier: BSD-3-Clause */
/* Half-close, close and death (SF-10), and bad configurations. */
#include "rig.h"

/* Fin follows all that was sent, and the other way goes on. */
static void
test_half(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, 2000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 2000);
	urn_st_shutdown(&r.st);
	rig_nothing(&r);
	assert_int_equal(urn_st_send(&r.st, &(struct urn_st_area){.bytes = 1}), EPIPE);
	rig_kind(&r, URN_ST_RD_COMPL, 2000, 2000);
	rig_sent(&r, 1, 2000, URN_ST_OK);
	rig_sends(&r, URN_ST_FIN, 2000, 0);
	rig_data(&r, 0, 5);
	rig_receive(&r, 2, 10, false);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 2, 5, URN_ST_OK);
	rig_nothing(&r);
}

/* The end of the stream: data first, then 0 bytes; a SinkAvail is void. */
static void
test_end(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_data(&r, 0, 5);
	rig_kind(&r, URN_ST_FIN, 5, 0);
	assert_true(urn_st_readable(&r.st));
	rig_receive(&r, 1, 10, true);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 1, 5, URN_ST_OK);
	rig_receive(&r, 2, 10, false);
	rig_received(&r, 2, 0, URN_ST_OK);

	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_kind(&r, URN_ST_FIN, 0, 0);
	rig_received(&r, 1, 0, URN_ST_OK);
	assert_int_equal(r.st.count[URN_ST_D_VOID_END], 1);
}

/* Close sends what is left, reads no more, and is over when both ways have ended and all was
 * acknowledged. */
static void
test_close(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_data(&r, 0, 5);
	rig_send(&r, 1, 2000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 2000);
	urn_st_close(&r.st);
	rig_sends(&r, URN_ST_STOP, 5, 0);
	assert_int_equal(r.freed, 1);
	assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 1}, false), EPIPE);
	/* Data that was on its way is dropped. */
	rig_data(&r, 5, 5);
	assert_int_equal(r.freed, 2);
	rig_kind(&r, URN_ST_RD_COMPL, 2000, 2000);
	rig_sent(&r, 1, 2000, URN_ST_OK);
	rig_sends(&r, URN_ST_FIN, 2000, 0);
	rig_kind(&r, URN_ST_FIN, 10, 0);
	urn_st_sent(&r.st);
	urn_st_sent(&r.st);
	rig_nothing(&r);
	urn_st_sent(&r.st);
	rig_next(&r, URN_ST_A_CLOSED);
	assert_int_equal(r.st.state, URN_ST_S_CLOSED);
}

/* Reads under way come to their end before Stop, which says how much was read. */
static void
test_close_in_read(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_offer(&r, URN_ST_F_READ, 0, 3000, 0);
	rig_next(&r, URN_ST_A_READ);
	rig_receive(&r, 2, 2000, false);
	urn_st_close(&r.st);
	rig_sends(&r, URN_ST_FIN, 0, 0);
	rig_nothing(&r);
	urn_st_read(&r.st);
	rig_received(&r, 1, 2000, URN_ST_OK);
	rig_sends(&r, URN_ST_STOP, 2000, 0);
	rig_received(&r, 2, 0, URN_ST_GONE);
}

/* Announced memory stays with the machine until the source can't write to it any more. */
static void
test_close_advertised(void **state)
{
	struct rig r;

	(void)state;
	for (int written = 0; written < 2; written++) {
		rig_init(&r);
		rig_open(&r);
		rig_receive(&r, 1, 2000, false);
		rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
		urn_st_close(&r.st);
		rig_sends(&r, URN_ST_STOP, 0, 0);
		rig_sends(&r, URN_ST_FIN, 0, 0);
		rig_nothing(&r);
		if (written)
			rig_kind(&r, URN_ST_WR_COMPL, 0, 20);
		else
			rig_kind(&r, URN_ST_FIN, 0, 0);
		rig_received(&r, 1, written ? 20 : 0, written ? URN_ST_OK : URN_ST_GONE);
		rig_nothing(&r);
	}
}

/* The peer's sink reads no more: sends end, with what was read, and Fin follows. */
static void
test_stopped(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, 2000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 2000);
	rig_send(&r, 2, 20);
	rig_kind(&r, URN_ST_STOP, 500, 0);
	rig_sent(&r, 1, 500, URN_ST_GONE);
	rig_sent(&r, 2, 0, URN_ST_GONE);
	rig_sends(&r, URN_ST_FIN, 500, 0);
	assert_int_equal(urn_st_send(&r.st, &(struct urn_st_area){.bytes = 1}), EPIPE);

	/* All was read: the send is whole. */
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, 2000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 2000);
	rig_kind(&r, URN_ST_STOP, 2000, 0);
	rig_sent(&r, 1, 2000, URN_ST_OK);
	rig_sends(&r, URN_ST_FIN, 2000, 0);
	rig_kind(&r, URN_ST_STOP, 2000, 0);
	rig_dies(&r, URN_ST_R_PLACE, true);
}

/* The connection breaks: memory returns when the queue pair is fenced, and no message goes out. */
static void
test_down(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, 2000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 2000);
	rig_receive(&r, 2, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	urn_st_down(&r.st);
	rig_dies(&r, URN_ST_R_DOWN, false);
	rig_sent(&r, 1, INLINED, URN_ST_FAILED);
	rig_received(&r, 2, 0, URN_ST_FAILED);
	assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 1}, false), ENOTCONN);
	urn_st_fenced(&r.st);
	rig_nothing(&r);
}

/* The peer went when all was said: no error, and data that waits is read. Before Fin was
 * acknowledged it is one. */
static void
test_down_behind_end(void **state)
{
	struct rig r;

	(void)state;
	for (int acknowledged = 0; acknowledged < 2; acknowledged++) {
		rig_init(&r);
		rig_open(&r);
		rig_data(&r, 0, 5);
		rig_kind(&r, URN_ST_FIN, 5, 0);
		urn_st_shutdown(&r.st);
		rig_sends(&r, URN_ST_FIN, 0, 0);
		if (acknowledged)
			urn_st_sent(&r.st);
		urn_st_down(&r.st);
		if (!acknowledged) {
			rig_dies(&r, URN_ST_R_DOWN, false);
			continue;
		}
		rig_receive(&r, 1, 10, false);
		rig_next(&r, URN_ST_A_COPY);
		rig_received(&r, 1, 5, URN_ST_OK);
		urn_st_close(&r.st);
		rig_next(&r, URN_ST_A_CLOSED);
	}
}

/* Counts of messages wrap: more than 2^31 of them behind Fin do not make a good end an error. */
static void
test_down_long_behind_end(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	urn_st_shutdown(&r.st);
	rig_sends(&r, URN_ST_FIN, 0, 0);
	urn_st_sent(&r.st);
	rig_kind(&r, URN_ST_FIN, 0, 0);
	r.st.emitted += 1u << 31;
	r.st.completed += 1u << 31;
	urn_st_down(&r.st);
	rig_nothing(&r);
	assert_int_equal(r.st.state, URN_ST_S_OPEN);
	urn_st_close(&r.st);
	rig_next(&r, URN_ST_A_CLOSED);
}

/* Bytes that came before the connection broke are received before the error is, also by receives
 * that are posted behind it, and when the queue pair is fenced. */
static void
test_rest(void **state)
{
	struct rig r;

	(void)state;
	for (int fenced = 0; fenced < 2; fenced++) {
		rig_init(&r);
		rig_open(&r);
		rig_data(&r, 0, 5);
		rig_data(&r, 5, 7);
		urn_st_down(&r.st);
		rig_next(&r, URN_ST_A_DIED);
		if (fenced)
			urn_st_fenced(&r.st);
		assert_int_equal(r.freed, 0);
		rig_receive(&r, 1, 8, false);
		rig_next(&r, URN_ST_A_COPY);
		rig_next(&r, URN_ST_A_COPY);
		rig_received(&r, 1, 8, URN_ST_OK);
		/* A receive that would be full is complete with what there is. */
		rig_receive(&r, 2, 20, true);
		rig_next(&r, URN_ST_A_COPY);
		rig_received(&r, 2, 4, URN_ST_OK);
		assert_int_equal(r.freed, 2);
		assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 1}, 0),
				 ENOTCONN);
	}
}

/* A receive that waits for more has its bytes at once; the one behind it has the error. */
static void
test_rest_partial(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 20, true);
	rig_receive(&r, 2, 20, true);
	rig_data(&r, 0, 5);
	rig_next(&r, URN_ST_A_COPY);
	rig_send(&r, 3, 20);
	rig_sends(&r, URN_ST_DATA, 0, 0);
	rig_sent(&r, 3, 20, URN_ST_OK);
	urn_st_down(&r.st);
	rig_next(&r, URN_ST_A_DIED);
	rig_received(&r, 1, 5, URN_ST_OK);
	rig_received(&r, 2, 0, URN_ST_FAILED);
	rig_nothing(&r);
}

/* Fin came: the stream is whole, and its end is told, whatever breaks behind it. */
static void
test_rest_fin(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_data(&r, 0, 5);
	rig_kind(&r, URN_ST_FIN, 5, 0);
	urn_st_down(&r.st);
	rig_dies(&r, URN_ST_R_DOWN, false);
	rig_receive(&r, 1, 8, false);
	rig_next(&r, URN_ST_A_COPY);
	rig_received(&r, 1, 5, URN_ST_OK);
	rig_receive(&r, 2, 8, false);
	rig_received(&r, 2, 0, URN_ST_OK);
	urn_st_close(&r.st);
	assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 1}, 0), ENOTCONN);
}

/* Memory that the queue pair may touch waits for the fence; a read that was complete before counts.
 */
static void
test_rest_touched(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_receive(&r, 1, 2000, false);
	rig_sends(&r, URN_ST_SINK_AVAIL, 0, 2000);
	rig_receive(&r, 2, 10, false);
	rig_offer(&r, URN_ST_F_READ, 0, 3000, 0);
	rig_next(&r, URN_ST_A_READ);
	rig_next(&r, URN_ST_A_READ);
	urn_st_down(&r.st);
	rig_next(&r, URN_ST_A_DIED);
	rig_nothing(&r);
	urn_st_read(&r.st);
	rig_received(&r, 1, 2000, URN_ST_OK);
	rig_nothing(&r);
	urn_st_fenced(&r.st);
	rig_received(&r, 2, 0, URN_ST_FAILED);
}

/* A send that nobody reads from fails at once; close gives data that waits back. */
static void
test_rest_closed(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	for (uint64_t i = 0; i < BUFFERS + 1; i++) {
		rig_send(&r, i, 10);
		if (i == BUFFERS)
			break;
		rig_sends(&r, URN_ST_DATA, i * 10, 0);
		rig_sent(&r, i, 10, URN_ST_OK);
	}
	rig_data(&r, 0, 5);
	urn_st_down(&r.st);
	rig_next(&r, URN_ST_A_DIED);
	rig_sent(&r, BUFFERS, 0, URN_ST_FAILED);
	urn_st_close(&r.st);
	assert_int_equal(r.freed, 1);
	rig_nothing(&r);
}

/* The program reads no more, and sends on: Stop goes out, receives end, and what waits is dropped.
 */
static void
test_shutdown_read(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_data(&r, 0, 5);
	urn_st_shutdown_read(&r.st);
	rig_sends(&r, URN_ST_STOP, 5, 0);
	assert_int_equal(r.freed, 1);
	assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 1}, 0), EPIPE);
	rig_send(&r, 1, 50);
	rig_sends(&r, URN_ST_DATA, 0, 0);
	rig_sent(&r, 1, 50, URN_ST_OK);
	rig_data(&r, 5, 5);
	assert_int_equal(r.freed, 2);
	rig_kind(&r, URN_ST_FIN, 10, 0);
	rig_nothing(&r);
	urn_st_close(&r.st);
	rig_sends(&r, URN_ST_FIN, 50, 0);
	for (int i = 0; i < 3; i++)
		urn_st_sent(&r.st);
	rig_next(&r, URN_ST_A_CLOSED);
}

/* The program ends the connection at once: the peer is told, what waits is dropped, and only memory
 * that the queue pair may touch waits. */
static void
test_abort_call(void **state)
{
	char why[200];
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, 2000);
	rig_sends(&r, URN_ST_SRC_AVAIL, 0, 2000);
	rig_receive(&r, 2, 20, true);
	rig_data(&r, 0, 5);
	rig_next(&r, URN_ST_A_COPY);
	urn_st_abort(&r.st);
	rig_sends(&r, URN_ST_ABORT, 5, URN_ST_R_ABORTED);
	rig_next(&r, URN_ST_A_DIED);
	rig_received(&r, 2, 5, URN_ST_OK);
	rig_nothing(&r);
	urn_st_fenced(&r.st);
	rig_sent(&r, 1, INLINED, URN_ST_FAILED);
	urn_st_error(&r.st, why, sizeof(why));
	assert_string_equal(why, urn_st_reason_text(URN_ST_R_ABORTED));
	urn_st_abort(&r.st);
	rig_nothing(&r);
}

/* Abort of the peer: its reason is part of the error. */
static void
test_abort(void **state)
{
	char why[200];
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_kind(&r, URN_ST_ABORT, 0, URN_ST_R_TWO_OFFERS);
	rig_dies(&r, URN_ST_R_PEER, false);
	urn_st_error(&r.st, why, sizeof(why));
	assert_non_null(strstr(why, urn_st_reason_text(URN_ST_R_TWO_OFFERS)));
	rig_init(&r);
	rig_open(&r);
	rig_kind(&r, URN_ST_ABORT, 0, UINT64_MAX);
	rig_dies(&r, URN_ST_R_PEER, false);
	urn_st_error(&r.st, why, sizeof(why));
}

static void
test_garbage(void **state)
{
	uint8_t bytes[URN_ST_WIRE_HEAD] = {0};
	char why[200];
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	urn_st_arrived(&r.st, 0, bytes, sizeof(bytes));
	rig_dies(&r, URN_ST_R_FORM, true);
	urn_st_error(&r.st, why, sizeof(why));
	assert_non_null(strstr(why, urn_st_verdict_text(URN_ST_V_MAGIC)));
}

static void
test_limits(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_open(&r);
	rig_send(&r, 1, 2000);
	for (uint64_t i = 1; i < URN_ST_JOBS; i++)
		rig_send(&r, 1 + i, 5);
	assert_false(urn_st_writable(&r.st));
	assert_int_equal(urn_st_send(&r.st, &(struct urn_st_area){.bytes = 1}), EAGAIN);
	for (uint64_t i = 0; i < URN_ST_RECVS; i++)
		rig_receive(&r, i, 5, false);
	assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 1}, false), EAGAIN);
	assert_int_equal(urn_st_receive(&r.st, &(struct urn_st_area){.bytes = 0}, false), EINVAL);
	assert_int_equal(urn_st_set_threshold(&r.st, true, &(struct urn_st_threshold){0}), EINVAL);
}

static void
test_configuration(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 9; i++) {
		rig_init(&r);
		r.cfg.self.buffers = i == 0 ? 0 : BUFFERS;
		r.cfg.self.size = i == 1 ? 0 : SIZE;
		r.cfg.peer.buffers = i == 2 ? URN_ST_BUFFERS_MAX + 1 : BUFFERS;
		r.cfg.peer.size = i == 3 ? URN_ST_SIZE_MAX + 1 : SIZE;
		r.cfg.slots = i != 4;
		r.cfg.patience = i != 5;
		r.cfg.pieces = i == 6 ? NULL : r.pieces;
		r.cfg.tx.floor = i == 7 ? 0 : FLOOR;
		r.cfg.act = i == 8 ? NULL : rig_act;
		assert_int_equal(urn_st_init(&r.st, &r.cfg), EINVAL);
		assert_non_null(urn_st_refusal(&r.cfg));
		assert_int_equal(r.acts, 0);
	}
}

/* A greeting whose messages are longer than the shell's slots is refused, before anything is sent.
 */
static void
test_slots(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 5; i++) {
		rig_init(&r);
		r.cfg.peer.size = i == 0 ? SIZE + 1 : i == 1 ? URN_ST_SIZE_MAX : SIZE;
		r.cfg.self.size = i == 2 ? SIZE + 1 : SIZE;
		r.cfg.send_slot = i == 3 ? 0 : r.cfg.send_slot;
		r.cfg.recv_slot = i == 4 ? URN_ST_WIRE_MAX : r.cfg.recv_slot;
		assert_int_equal(urn_st_init(&r.st, &r.cfg), EMSGSIZE);
		assert_int_equal(r.acts, 0);
		if (i < 2)
			assert_non_null(strstr(urn_st_refusal(&r.cfg), "the peer's BCopy buffers"));
	}
	rig_init(&r);
	assert_null(urn_st_refusal(&r.cfg));
}

static void
test_names(void **state)
{
	(void)state;
	assert_string_equal(urn_st_tx_name(URN_ST_TX_OFFERED), "OFFERED");
	assert_string_equal(urn_st_rx_name(URN_ST_RX_READING), "READING");
	assert_string_equal(urn_st_state_name(URN_ST_S_DYING), "DYING");
	assert_string_equal(urn_st_tx_name(URN_ST_TX_COUNT), "?");
	assert_string_equal(urn_st_rx_name(URN_ST_RX_COUNT), "?");
	assert_string_equal(urn_st_state_name(URN_ST_S_COUNT), "?");
	assert_string_equal(urn_st_decision_text(URN_ST_D_COUNT), "?");
	assert_string_equal(urn_st_reason_text(URN_ST_R_COUNT), "?");
	assert_string_equal(urn_st_kind_text(0), "?");
	assert_string_equal(urn_st_verdict_text(URN_ST_V_COUNT), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_close_in_read),
		cmocka_unit_test(test_close_advertised),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_down),
		cmocka_unit_test(test_down_behind_end),
		cmocka_unit_test(test_down_long_behind_end),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_rest_partial),
		cmocka_unit_test(test_rest_fin),
		cmocka_unit_test(test_rest_touched),
		cmocka_unit_test(test_rest_closed),
		cmocka_unit_test(test_shutdown_read),
		cmocka_unit_test(test_abort_call),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
