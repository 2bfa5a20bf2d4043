/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of byte streams (lib/stream) over queue pairs, both ways at once, over good and bad
 * wires (SF-1 to SF-11). The test is the shell of both machines. RIG_REMOTE: over a dataplane's
 * socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "stream/stream.h"

#include <stdlib.h>
#include <string.h>

enum {
	BUFFERS = 8,
	SIZE = 1024,
	SLOT = URN_ST_WIRE_MAX + SIZE,
	OUT_SLOTS = 16, /* messages on their way, one more for Abort */
	IN_SLOTS = URN_ST_CONTROL + BUFFERS,
	MOST = 60000, /* bytes of a send or receive */
	STREAM = 400000,
	/* offsets in an end's buffer */
	OUT = 0,
	IN = 65536,
	SEND = 262144,
	RECEIVE = 524288,
};

/* Bits of wr_id above the slot. */
enum { WR_SEND = 1 << 16, WR_WRITE = 2 << 16, WR_READ = 3 << 16, WR_RECEIVE = 4 << 16 };

struct end_of_stream {
	struct urn_st st;
	struct urn_st_piece pieces[BUFFERS];
	struct rig_end *end;
	uint32_t spare[IN_SLOTS], spares; /* receives that are not posted */
	uint32_t out;			  /* number of the next message */
	uint64_t sent, got;		  /* bytes of complete sends; bytes received */
	uint64_t begun;			  /* bytes of sends begun */
	bool sending, receiving, shut, ended, closed, died, fenced;
	enum urn_st_status status; /* end of the newest send */
	uint32_t forged; /* added to keys of receives: memory that this end does not have */
	uint64_t rng;
};

struct pair {
	struct rig r;
	struct end_of_stream side[2];
};

static uint8_t
byte_of(uint64_t n)
{
	return (uint8_t)(n * 2654435761u >> 13);
}

/* ---- actions */

static void
post_send(struct end_of_stream *w, const struct urn_st_action *a)
{
	uint32_t slot = w->out++ % OUT_SLOTS, head;
	uint8_t *to = w->end->buf + OUT + (size_t)slot * SLOT;
	struct ibv_sge sge = {(uintptr_t)to, 0, w->end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = WR_SEND | slot,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED};

	head = urn_st_wire_put(to, a->message);
	if (a->message->length)
		memcpy(to + head, (const void *)(uintptr_t)a->addr, a->message->length);
	sge.length = head + a->message->length;
	rig_send_on(w->end->qp, &wr);
}

static void
post_transfer(struct end_of_stream *w, const struct urn_st_action *a)
{
	bool read = a->act == URN_ST_A_READ;
	struct ibv_sge sge = {a->addr, (uint32_t)a->bytes, a->lkey};
	struct ibv_send_wr wr = {.wr_id = read ? WR_READ : WR_WRITE,
				 .opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {a->raddr, a->rkey}};

	rig_send_on(w->end->qp, &wr);
}

static void
post_receives(struct end_of_stream *w, uint64_t n)
{
	for (; n; n--) {
		uint32_t slot;

		assert_true(w->spares > 0);
		slot = w->spare[--w->spares];
		rig_recv_on(w->end->qp, w->end->buf + IN + (size_t)slot * SLOT, SLOT,
			    w->end->mr->lkey, WR_RECEIVE | slot);
	}
}

static void
received(struct end_of_stream *w, const struct urn_st_action *a)
{
	w->receiving = false;
	if (a->status != URN_ST_OK)
		return;
	w->ended = a->bytes == 0;
	for (uint64_t i = 0; i < a->bytes; i++)
		assert_int_equal(w->end->buf[RECEIVE + i], byte_of(w->got + i));
	w->got += a->bytes;
	memset(w->end->buf + RECEIVE, 0, MOST);
}

static void
act(void *arg, const struct urn_st_action *a)
{
	struct end_of_stream *w = arg;

	if (a->act == URN_ST_A_SEND) {
		post_send(w, a);
	} else if (a->act == URN_ST_A_WRITE || a->act == URN_ST_A_READ) {
		post_transfer(w, a);
	} else if (a->act == URN_ST_A_COPY) {
		memcpy((void *)(uintptr_t)a->addr,
		       w->end->buf + IN + (size_t)a->slot * SLOT + a->from, a->bytes);
	} else if (a->act == URN_ST_A_MERGE) {
		memcpy(w->end->buf + IN + (size_t)a->into * SLOT + a->at,
		       w->end->buf + IN + (size_t)a->slot * SLOT + a->from, a->bytes);
	} else if (a->act == URN_ST_A_FREE) {
		w->spare[w->spares++] = a->slot;
	} else if (a->act == URN_ST_A_POST) {
		post_receives(w, a->bytes);
	} else if (a->act == URN_ST_A_SENT) {
		w->sending = false;
		w->sent += a->bytes;
		w->status = a->status;
		memset(w->end->buf + SEND, 0, MOST);
	} else if (a->act == URN_ST_A_RECEIVED) {
		received(w, a);
	} else if (a->act == URN_ST_A_CLOSED) {
		w->closed = true;
	} else if (a->act == URN_ST_A_DIED) {
		w->died = true;
	}
}

/* ---- completions */

/* The first error says why; all requests behind it are flushed. */
static void
failed(struct end_of_stream *w, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_REM_ACCESS_ERR)
		urn_st_refused(&w->st);
	else
		urn_st_down(&w->st);
}

static void
complete(struct end_of_stream *w, const struct ibv_wc *wc)
{
	uint32_t slot = wc->wr_id & 0xffff;

	if (wc->status != IBV_WC_SUCCESS) {
		failed(w, wc);
		return;
	}
	switch (wc->wr_id & ~0xffffull) {
	case WR_SEND:
		urn_st_sent(&w->st);
		break;
	case WR_WRITE:
		urn_st_written(&w->st);
		break;
	case WR_READ:
		urn_st_read(&w->st);
		break;
	default:
		urn_st_arrived(&w->st, slot, w->end->buf + IN + (size_t)slot * SLOT, wc->byte_len);
		break;
	}
}

static void
poll_all(struct end_of_stream *w)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(w->end->cq, 1, &wc) == 1)
		complete(w, &wc);
	if (w->died && !w->fenced) {
		rig_to(w->end->qp, IBV_QPS_ERR);
		w->fenced = true;
		urn_st_fenced(&w->st);
	}
}

/* ---- programs */

static struct urn_st_area
area(struct end_of_stream *w, uint32_t at, uint64_t bytes)
{
	uint32_t forged = at == RECEIVE ? w->forged : 0;

	return (struct urn_st_area){.addr = (uintptr_t)w->end->buf + at,
				    .bytes = bytes,
				    .lkey = w->end->mr->lkey,
				    .rkey = w->end->mr->rkey + forged};
}

/* Sizes from one byte on, in each order of magnitude. */
static uint64_t
size(struct end_of_stream *w, uint64_t most)
{
	uint64_t n = 1 + rig_rand(&w->rng) % (1u << rig_rand(&w->rng) % 17);

	n = n < MOST ? n : MOST;
	return n < most ? n : most;
}

static void
program(struct end_of_stream *w)
{
	struct urn_st_area a;

	if (!w->sending && w->begun < STREAM && !w->died) {
		a = area(w, SEND, size(w, STREAM - w->begun));
		for (uint64_t i = 0; i < a.bytes; i++)
			w->end->buf[SEND + i] = byte_of(w->begun + i);
		w->begun += a.bytes;
		w->sending = true;
		assert_int_equal(urn_st_send(&w->st, &a), 0);
	}
	if (!w->receiving && !w->ended && !w->died && rig_rand(&w->rng) % 4 == 0) {
		a = area(w, RECEIVE, size(w, MOST));
		w->receiving = true;
		assert_int_equal(urn_st_receive(&w->st, &a, rig_rand(&w->rng) % 4 == 0), 0);
	}
	if (w->begun == STREAM && !w->shut) {
		w->shut = true;
		urn_st_shutdown(&w->st);
	}
	if (w->shut && w->ended)
		urn_st_close(&w->st);
}

/* ---- runs */

static void
open_pair(struct pair *p, const struct rig_config *cfg, uint8_t abilities)
{
	const struct urn_st_hello h = {BUFFERS, SIZE, abilities};
	const struct urn_st_threshold t = {4096, 512, 32768, false, 0};

	memset(p, 0, sizeof(*p));
	rig_open(&p->r, cfg, NULL);
	for (int e = 0; e < 2; e++) {
		struct end_of_stream *w = &p->side[e];
		const struct urn_st_config c = {.self = h,
						.peer = h,
						.pieces = w->pieces,
						.send_slot = SLOT,
						.recv_slot = SLOT,
						.slots = OUT_SLOTS - 1,
						.inlined = 200,
						.patience = 50,
						.tx = t,
						.rx = t,
						.act = act,
						.arg = w};

		w->end = &p->r.end[e];
		w->rng = 77 + (uint64_t)e;
		for (w->spares = 0; w->spares < IN_SLOTS; w->spares++)
			w->spare[w->spares] = w->spares;
		assert_int_equal(urn_st_init(&w->st, &c), 0);
	}
}

static void
step(struct pair *p)
{
	rig_turn(&p->r);
	for (int e = 0; e < 2; e++) {
		poll_all(&p->side[e]);
		program(&p->side[e]);
		urn_st_tick(&p->side[e].st);
	}
}

static void
run(const struct rig_config *cfg, uint8_t abilities)
{
	struct pair *p = test_malloc(sizeof(*p));
	uint64_t read = 0, written = 0, copied = 0;

	open_pair(p, cfg, abilities);
	/* Time is counted in turns, and a thread of its own may turn the engines of a remote
	 * dataplane. */
	while (!(p->side[0].closed && p->side[1].closed)) {
		step(p);
		assert_false(p->side[0].died || p->side[1].died);
	}
	for (int e = 0; e < 2; e++) {
		assert_int_equal(p->side[e].sent, STREAM);
		assert_int_equal(p->side[e].got, STREAM);
		read += p->side[e].st.count[URN_ST_D_READ];
		written += p->side[e].st.count[URN_ST_D_WRITE];
		copied += p->side[e].st.count[URN_ST_D_COPY];
	}
	assert_true(abilities & URN_ST_CAN_READ || read == 0);
	/* With all on one thread, and memory that is mapped, the same things happen in each run. */
	if (!p->r.cfg.remote && !p->r.cfg.foreign && !getenv("URNIC_TEST_FOREIGN")) {
		/* Where ends can read, SrcAvail wins each time that it crosses a SinkAvail. */
		assert_true(written > 0 || abilities & URN_ST_CAN_READ);
		assert_true(read > 0 || !(abilities & URN_ST_CAN_READ));
		assert_true(copied > 0 || abilities & URN_ST_ON_DEMAND);
	}
	rig_close(&p->r);
	test_free(p);
}

static void
good_wires(void **state)
{
	(void)state;
	run(&(struct rig_config){0}, URN_ST_CAN_READ);
	run(&(struct rig_config){0}, URN_ST_CAN_READ | URN_ST_RESUMES);
	run(&(struct rig_config){0}, URN_ST_CAN_READ | URN_ST_ON_DEMAND);
	run(&(struct rig_config){0}, 0);
}

static void
bad_wires(void **state)
{
	static const struct rig_config cfg = {.wire_seed = 7, .lose = 10, .twice = 10, .late = 30};

	(void)state;
	run(&cfg, URN_ST_CAN_READ);
	run(&cfg, URN_ST_RESUMES);
}

/* SinkAvail for memory that its end may not name: the write is refused, and both ends break with an
 * error. */
static void
forged_memory(void **state)
{
	struct pair *p = test_malloc(sizeof(*p));
	char why[200];

	(void)state;
	open_pair(p, &(struct rig_config){0}, 0);
	p->side[0].forged = 0x100;
	urn_st_set_force(&p->side[1].st, URN_ST_FORCE_WRITE);
	while (!p->side[1].fenced && !p->side[1].closed) {
		step(p);
	}
	assert_true(p->side[1].fenced);
	urn_st_error(&p->side[1].st, why, sizeof(why));
	assert_string_equal(why, urn_st_reason_text(URN_ST_R_REFUSED));
	assert_int_equal(p->side[1].status, URN_ST_FAILED);
	assert_false(p->side[1].sending);
	while (!p->side[0].fenced) {
		step(p);
	}
	assert_int_equal(p->side[0].st.reason, URN_ST_R_DOWN);
	rig_close(&p->r);
	test_free(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_wires),
		cmocka_unit_test(bad_wires),
		cmocka_unit_test(forged_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
