/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring in a peer's memory (lib/rbuf) over queue pairs: a stream from end 0 to end 1, with each
 * of the strategies of AW-4, over good and bad wires. RIG_REMOTE: over a dataplane's socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "rbuf/rbuf.h"

#include <string.h>

#include <urnic/align.h>

/* Offsets in the ends' buffers. */
enum {
	NOTE = 0,
	RING = 8192,
	SIZE = 65536,
	GUARD = 1024,
	DATA = 262144,
	PAD = 524288,
	MOST = 20000,
	STREAM = 600000
};

struct stream {
	struct rig r;
	struct urn_rbuf_out out;
	struct urn_rbuf_in in;
	uint64_t sent, seen; /* bytes posted, taken */
	uint64_t posted;     /* requests of end 0 */
	uint32_t busy[2];    /* requests of an end without a completion */
};

static uint8_t
byte_of(uint64_t n)
{
	return (uint8_t)(n * 2654435761u >> 13);
}

/* Post the write of end e to the other end; the note's value goes inline. */
static void
post(struct stream *s, int e, const struct urn_rbuf_write *w)
{
	struct rig_end *me = &s->r.end[e], *peer = &s->r.end[!e];
	uint64_t count = w->count;
	struct ibv_sge sge[2] = {{w->note ? (uintptr_t)&count : (uintptr_t)me->buf + DATA + w->from,
				  w->bytes, me->mr->lkey},
				 {(uintptr_t)me->buf + PAD, w->pad, me->mr->lkey}};
	struct ibv_send_wr wr = {.wr_id = s->posted++,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .sg_list = sge,
				 .num_sge = w->pad ? 2 : 1,
				 .send_flags = IBV_SEND_SIGNALED | (w->note ? IBV_SEND_INLINE : 0),
				 .wr.rdma = {(uintptr_t)peer->buf + (w->note ? NOTE : RING + w->at),
					     peer->mr->rkey}};

	rig_send_on(me->qp, &wr);
	s->busy[e]++;
}

/* Wait until all requests of an end are done, so that its data may change. */
static void
settle(struct stream *s, int e)
{
	for (; s->busy[e]; s->busy[e]--)
		rig_expect(&s->r, e, IBV_WC_SUCCESS);
}

static void
append(struct stream *s, uint32_t bytes)
{
	struct urn_rbuf_write w[URN_RBUF_WRITES];
	uint8_t *data = s->r.end[0].buf + DATA;
	uint32_t taken;
	int n;

	settle(s, 0);
	for (uint32_t i = 0; i < bytes; i++)
		data[i] = byte_of(s->sent + i);
	n = urn_rbuf_append(&s->out, bytes, w, &taken);
	assert_true(n >= 0);
	for (int i = 0; i < n; i++)
		post(s, 0, &w[i]);
	s->sent += taken;
}

/* Take all that is there: every byte that the note counts. */
static void
take(struct stream *s)
{
	struct urn_rbuf_write w;
	const uint8_t *at;
	uint64_t n;

	for (;;) {
		assert_int_equal(urn_rbuf_peek(&s->in, &at, &n), 0);
		if (n == 0)
			return;
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(at[i], byte_of(s->seen + i));
		s->seen += n;
		if (!urn_rbuf_take(&s->in, n, &w))
			continue;
		settle(s, 1);
		post(s, 1, &w);
	}
}

static void
run(const struct rig_config *cfg, uint32_t how, uint32_t line)
{
	struct stream s = {0};
	uint64_t rng = 5 + how;
	uint8_t *ring;

	rig_open(&s.r, cfg, NULL);
	ring = s.r.end[1].buf + RING;
	memset(ring - GUARD, 0xc5, GUARD);
	memset(ring + SIZE, 0xc5, GUARD);
	if (how & URN_RBUF_ONE)
		assert_int_equal(urn_qp_align(s.r.end[0].qp, line), 0);
	assert_int_equal(
		urn_rbuf_out_init(&s.out, (void *)(s.r.end[0].buf + NOTE), SIZE, line, how), 0);
	assert_int_equal(urn_rbuf_in_init(&s.in, ring, (void *)(s.r.end[1].buf + NOTE), SIZE), 0);
	while (s.seen < STREAM) {
		append(&s, 1 + (uint32_t)(rig_rand(&rng) % MOST));
		rig_turns(&s.r, 3);
		take(&s);
	}
	settle(&s, 0);
	settle(&s, 1);
	take(&s);
	assert_true(s.seen == s.sent);
	for (int i = 0; i < GUARD; i++)
		assert_true(ring[-1 - i] == 0xc5 && ring[SIZE + i] == 0xc5);
	settle(&s, 1);
	if ((how & URN_RBUF_ONE) && (how & URN_RBUF_ROUND_UP))
		assert_true(rig_counter(&s.r, 0, URN_C_ALIGNED) > 0);
	rig_close(&s.r);
}

static void
strategies(void **state)
{
	(void)state;
	for (uint32_t how = 0; how < 8; how++)
		run(&(struct rig_config){0}, how, how % 2 ? 64 : 256);
}

static void
bad_wires(void **state)
{
	static const struct rig_config cfg = {.wire_seed = 7, .lose = 10, .twice = 10, .late = 30};

	(void)state;
	for (uint32_t how = 0; how < 8; how++)
		run(&cfg, how, 128);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strategies),
		cmocka_unit_test(bad_wires),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
