/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC between two dataplanes (transport/uc_hold.h, uc_tell.c): a receiver whose program has foreign
 * memory tells how far it is, and a sender has no more frames on their way than the receiver's
 * window.
 */
#include "probe.h"

#include "transport/uc.h"
#include "transport/uc_hold.h"
#include "worker.h"

enum { MTU = 1024, WINDOW = 32, STEP = WINDOW / 4 };

struct fix {
	struct probe p;
	struct urn_space *space; /* NULL: the program has no foreign memory */
	uint32_t far_key;
};

/* Open a probe whose peer is in a dataplane with these features. */
static void
open_fix(struct fix *f, uint32_t features, bool foreign, uint8_t state)
{
	char why[160];

	memset(f, 0, sizeof(*f));
	probe_open(&f->p,
		   &(struct probe_config){.type = URN_QPT_UC, .kept = 2 * WINDOW, .state = state});
	f->p.tp->cfg.features = URN_LINK_F_ALL;
	urn_tp_peer_learned(f->p.tp, f->p.peer.gid, features);
	if (!foreign)
		return;
	f->space = worker_open();
	assert_non_null(f->space);
	assert_int_equal(urn_mem_add_foreign(
				 f->p.mem, f->p.pd, f->space, (uintptr_t)probe_at(&f->p, 0), 4096,
				 PROBE_VA + 0x100000000ull, URN_ACCESS_LOCAL_WRITE | PROBE_RIGHTS,
				 &f->far_key, why, sizeof(why)),
			 0);
}

static void
close_fix(struct fix *f)
{
	struct urn_region *region;

	if (f->space) {
		assert_int_equal(urn_mem_kill_mr(f->p.mem, f->far_key, &region), 0);
		urn_mem_free_mr(f->p.mem, region);
		worker_close(f->space);
	}
	probe_close(&f->p);
}

/* ---- the receiver */

static void
writes(struct fix *f, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		probe_write(&f->p, UC | WRITE_ONLY, RQ(i), 8 * i, 8, 8, i);
		probe_turn(&f->p, 0);
	}
}

static void
expect_word(struct fix *f, uint32_t psn, uint32_t window)
{
	const struct frame *w = expect_frame(&f->p, UC_WORD, psn);

	assert_int_equal(w->msn, window);
	assert_int_equal(w->syn, 0);
	assert_int_equal(w->len, 0);
}

/* The receiver tells with the first packet, and each time that a quarter of its window was taken or
 * dropped. */
static void
tells(void **state)
{
	static const uint8_t states[] = {URN_QPS_RTR, URN_QPS_RTS, URN_QPS_SQD};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct fix f;

		open_fix(&f, URN_LINK_F_ALL, true, states[i]);
		expect_silence(&f.p);
		writes(&f, 0, 1);
		expect_word(&f, RQ(1), WINDOW);
		writes(&f, 1, STEP - 1);
		expect_silence(&f.p);
		writes(&f, STEP - 1, 2 * STEP - 1);
		expect_word(&f, RQ(STEP), WINDOW);
		expect_silence(&f.p);
		/* The first packet of the message was lost: the rest is dropped, and counts. */
		probe_send(&f.p, UC | SEND_LAST, RQ(4 * STEP), 64, 1);
		expect_word(&f, RQ(4 * STEP + 1), WINDOW);
		expect_silence(&f.p);
		expect_count(&f.p, TX_UC_WINDOWS, 3);
		close_fix(&f);
	}
}

/* Without the feature, with memory that is shared only, or to a sender of this dataplane, the
 * receiver tells nothing. */
static void
tells_not(void **state)
{
	static _Atomic uint8_t full[0x8000];

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct fix f;

		open_fix(&f, URN_LINK_F_ALL & ~(i == 0 ? (uint32_t)URN_LINK_F_UC_WINDOW : 0),
			 i != 1, URN_QPS_RTS);
		if (i == 2) {
			f.p.near = (struct urn_tp_near){full, NULL, 0x8000};
			probe_reconnect(&f.p);
			urn_tp_peer_learned(f.p.tp, f.p.peer.gid, URN_LINK_F_ALL);
		}
		writes(&f, 0, 4 * STEP);
		expect_silence(&f.p);
		expect_count(&f.p, TX_UC_WINDOWS, 0);
		f.p.near = (struct urn_tp_near){0};
		close_fix(&f);
	}
}

/* Packets that wait for memory are told when they are taken. */
static void
tells_late(void **state)
{
	static uint8_t closed[11];
	static struct urn_memx_gate gate = {.pds = 10, .pd = closed};
	struct fix f;

	(void)state;
	open_fix(&f, URN_LINK_F_ALL, true, URN_QPS_RTS);
	f.p.tp->gate = &gate;
	writes(&f, 0, 1);
	expect_word(&f, RQ(1), WINDOW);
	closed[f.p.pd] = 1;
	gate.closed = 1;
	writes(&f, 1, 2 * STEP);
	assert_int_equal(f.p.seen_n, f.p.looked);
	closed[f.p.pd] = 0;
	gate.closed = 0;
	expect_word(&f, RQ(2 * STEP), WINDOW); /* one word for all that were taken in a turn */
	expect_silence(&f.p);
	close_fix(&f);
}

/* The send queue's error does not end the receiver. */
static void
tells_on(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, URN_LINK_F_ALL, true, URN_QPS_RTS);
	probe_post(&f.p, URN_WR_FETCH_ADD, URN_WRF_SIGNALED, 0, 8, 0, 2);
	expect_sent(&f.p, 2, LOC_QP_OP_ERR);
	assert_int_equal(f.p.qp->state, URN_QPS_SQE);
	writes(&f, 0, 1);
	expect_word(&f, RQ(1), WINDOW);
	close_fix(&f);
}

/* While nobody knows the sender's MAC address nothing is told, and the next quarter is told again.
 */
static void
tells_nobody(void **state)
{
	struct fix f;

	(void)state;
	for (int neigh = -2; neigh < 0; neigh++) {
		open_fix(&f, URN_LINK_F_ALL, true, URN_QPS_RTS);
		f.p.neigh = neigh;
		writes(&f, 0, 1);
		expect_silence(&f.p);
		f.p.neigh = 0;
		writes(&f, 1, STEP);
		expect_word(&f, RQ(STEP), WINDOW);
		close_fix(&f);
	}
}

/* ---- the sender */

/* Put a word for the sender. */
static void
put_word(struct fix *f, uint32_t psn, uint32_t window)
{
	struct frame w = frame_of(UC_WORD, psn);

	w.syn = 0;
	w.msn = window;
	probe_put(&f->p, &w);
}

/* Frames that the node has sent, after some turns. */
static unsigned int
frames(struct fix *f)
{
	unsigned int before = f->p.seen_n;

	for (int i = 0; i < 20; i++)
		probe_turn(&f->p, 0);
	return f->p.seen_n - before;
}

/* A sender that has heard a word sends so many frames, and goes on with the next word. */
static void
obeys(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, URN_LINK_F_ALL, false, URN_QPS_RTS);
	probe_post(&f.p, URN_WR_SEND, 0, 0, 4 * MTU, 0, 1);
	assert_int_equal(frames(&f), 4); /* no word yet: no bound */
	put_word(&f, SQ(1), URN_UC_WINDOW_LEAST);
	expect_count(&f.p, UC_WAITS, 0);
	probe_post(&f.p, URN_WR_SEND, 0, 0, 30 * MTU, 0, 2);
	assert_int_equal(frames(&f), URN_UC_WINDOW_LEAST - 3);
	expect_count(&f.p, UC_WAITS, 1);
	put_word(&f, SQ(4), URN_UC_WINDOW_LEAST);
	assert_int_equal(frames(&f), 3);
	put_word(&f, SQ(6), URN_UC_WINDOW_LEAST);
	put_word(&f, SQ(2), URN_UC_WINDOW_LEAST); /* overtaken: says nothing */
	assert_int_equal(frames(&f), 2);
	put_word(&f, SQ(14), URN_UC_WINDOW);
	assert_int_equal(frames(&f), 20);
	expect_count(&f.p, RX_UC_WINDOWS, 5);
	expect_count(&f.p, DROP_UC_WINDOW, 0);
	f.p.looked = f.p.seen_n;
	expect_sent(&f.p, 1, SUCCESS);
	expect_sent(&f.p, 2, SUCCESS);
	close_fix(&f);
}

/* A receiver that is heard no more holds the sender up once, for a second. */
static void
silence(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, URN_LINK_F_ALL, false, URN_QPS_RTS);
	put_word(&f, SQ(0), URN_UC_WINDOW_LEAST);
	probe_post(&f.p, URN_WR_SEND, 0, 0, 40 * MTU, 0, 1);
	assert_int_equal(frames(&f), URN_UC_WINDOW_LEAST);
	probe_turn(&f.p, URN_UC_WAIT_NS - 100);
	assert_int_equal(frames(&f), 0);
	probe_turn(&f.p, 200);
	assert_in_range(frames(&f), 1, 40 - URN_UC_WINDOW_LEAST);
	probe_settle(&f.p);
	expect_count(&f.p, UC_WAITS, 1);
	f.p.looked = f.p.seen_n;
	expect_sent(&f.p, 1, SUCCESS);
	close_fix(&f);
}

/* Words that make no sense, and those of strangers, hold nobody up. */
static void
forged(void **state)
{
	static const struct {
		uint32_t psn, window;
	} bad[] = {
		{0, URN_UC_WINDOW_LEAST - 1},  {0, 0},
		{0, URN_UC_WINDOW_FAR + 1},    {1, URN_UC_WINDOW},
		{-URN_UC_LATE, URN_UC_WINDOW}, {0x800000, URN_UC_WINDOW},
	};
	struct fix f;

	(void)state;
	open_fix(&f, URN_LINK_F_ALL, false, URN_QPS_RTS);
	for (unsigned int i = 0; i < 6; i++) {
		put_word(&f, SQ(bad[i].psn), bad[i].window);
		probe_settle(&f.p);
		expect_count(&f.p, DROP_UC_WINDOW, i + 1);
	}
	f.p.peer.gid[15] ^= 4;
	put_word(&f, SQ(0), URN_UC_WINDOW_LEAST);
	probe_settle(&f.p);
	expect_count(&f.p, DROP_PEER, 1);
	f.p.peer.gid[15] ^= 4;
	probe_post(&f.p, URN_WR_SEND, 0, 0, 30 * MTU, 0, 1);
	assert_int_equal(frames(&f), 30);
	expect_count(&f.p, RX_UC_WINDOWS, 0);
	f.p.looked = f.p.seen_n;
	expect_sent(&f.p, 1, SUCCESS);
	close_fix(&f);
}

/* A connection knows nothing of the one before, and a sender in the receiver's dataplane looks at
 * its tables. */
static void
anew(void **state)
{
	static _Atomic uint8_t full[0x8000];
	struct fix f;

	(void)state;
	open_fix(&f, URN_LINK_F_ALL, false, URN_QPS_RTS);
	put_word(&f, SQ(0), URN_UC_WINDOW_LEAST);
	probe_settle(&f.p);
	assert_int_equal(f.p.qp->near, URN_UC_FAR);
	probe_reconnect(&f.p);
	assert_int_equal(f.p.qp->near, 0);
	probe_post(&f.p, URN_WR_SEND, 0, 0, 30 * MTU, 0, 1);
	assert_int_equal(frames(&f), 30);
	f.p.looked = f.p.seen_n;
	expect_sent(&f.p, 1, SUCCESS);
	f.p.near = (struct urn_tp_near){full, NULL, 0x8000};
	probe_reconnect(&f.p);
	assert_int_equal(f.p.qp->near, 1);
	put_word(&f, SQ(0), URN_UC_WINDOW_LEAST);
	probe_settle(&f.p);
	expect_count(&f.p, DROP_UC_WINDOW, 1);
	assert_int_equal(f.p.qp->near, 1);
	f.p.near = (struct urn_tp_near){0};
	close_fix(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells),	cmocka_unit_test(tells_not),
		cmocka_unit_test(tells_late),	cmocka_unit_test(tells_on),
		cmocka_unit_test(tells_nobody), cmocka_unit_test(obeys),
		cmocka_unit_test(silence),	cmocka_unit_test(forged),
		cmocka_unit_test(anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
