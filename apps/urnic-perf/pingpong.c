/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong: A sends, B answers with a message of the same kind and size, and the
 * latency is half the time. The QPs take turns. WRITEs are seen by their last byte,
 * which is the low byte of the message's number (pattern.h); SENDs by their
 * receive completion.
 *
 * Each side compares the message it got while the other is at work or before it
 * starts the clock again, so the time of checking is in no figure.
 */
#include "perf.h"

#include "stage.h"

#include <rte_cycles.h>

/* State of a side, in its scratch memory, which is zero at first. */
struct pingpong {
	uint32_t turn;        /* QP whose turn it is */
	bool waiting;         /* A: a message is in flight */
	bool owing;           /* B: an answer could not be posted yet */
	bool due;             /* a message is still to be checked */
	struct arrival got;   /* that message */
	uint64_t posted_at;   /* A: TSC */
};
_Static_assert(sizeof(struct pingpong) <= 64, "fits struct side");

static struct pingpong *
state_of(struct side *s)
{
	return (struct pingpong *)(void *)s->scratch;
}

/* Messages from one signalled request to the next: a fourth of the send queue. */
static uint32_t
signal_every(const struct side *s)
{
	return s->l->src_slots < 4 ? 1 : s->l->src_slots / 4;
}

/* Post one message on the QP whose turn it is. returns: false when there is no room yet */
static bool
post_one(struct side *s, uint32_t turn, uint64_t now)
{
	struct perf_qp *q = &s->qp[turn];
	uint32_t every = signal_every(s);

	if (q->seq - q->done >= s->l->src_slots)
		return false;
	post_messages(s, turn, 1, (q->seq + 1) % every == 0, every, now);
	return true;
}

static void
next_turn(struct side *s, struct pingpong *pp)
{
	if (++pp->turn == s->l->qps)
		pp->turn = 0;
}

/* True when the WRITE that is expected next has arrived. */
static bool
write_arrived(struct side *s, struct pingpong *pp)
{
	struct perf_qp *q = &s->qp[pp->turn];
	const uint8_t *data = s->mem.dst + layout_dst_off(s->l, pp->turn, q->rx_next);
	const volatile uint8_t *end = data + s->l->size - 1;

	if (*end != (uint8_t)(q->last + 1))
		return false;
	pp->got = (struct arrival){.qp = pp->turn, .data = data, .slot = q->rx_next};
	if (++q->rx_next == s->l->dst_slots)
		q->rx_next = 0;
	return true;
}

/* Take completions. returns: true when a SEND arrived */
static bool
poll_side(struct side *s, struct pingpong *pp)
{
	struct ibv_wc wc[4];
	bool arrived = false;
	int n;

	URN_STAGE(LIBRARY);
	n = ibv_poll_cq(s->cq, 4, wc);
	URN_STAGE(PROGRAM);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fail_completion(s, &wc[i]);
			return false;
		}
		if (wc[i].opcode & IBV_WC_RECV) {
			if (!receive_take(s, &wc[i], &pp->got))
				return false;
			arrived = true;
		} else {
			s->qp[wr_id_qp(wc[i].wr_id)].done += wr_id_count(wc[i].wr_id);
		}
	}
	return arrived;
}

/* True when a message has arrived. Counts the message; check_got() must check it. */
static bool
take_arrival(struct side *s, struct pingpong *pp)
{
	bool arrived = poll_side(s, pp);

	if (s->o->op == PERF_WRITE_LAT)
		arrived = write_arrived(s, pp);
	if (!arrived)
		return false;
	s->qp[pp->got.qp].last++;
	s->received++;
	pp->due = true;
	return true;
}

/* Compare the message that arrived last and post its receive again. */
static void
check_got(struct side *s, struct pingpong *pp)
{
	uint64_t seq = s->qp[pp->got.qp].last;
	struct message_id id = {
		.qp = pp->got.qp,
		.slot = (uint32_t)(seq - 1) & (s->l->src_slots - 1),
		.seq = seq,
		.stamp = seq,
	};

	pp->due = false;
	if (s->o->check != PERF_CHECK_NONE && !check_message(s, pp->got.data, &id, check_most(s)))
		return;
	if (s->o->op == PERF_SEND_LAT)
		receive_again(s, &pp->got);
}

unsigned int
ping_step(struct side *s, uint64_t now)
{
	struct pingpong *pp = state_of(s);

	if (pp->waiting) {
		if (!take_arrival(s, pp)) {
			side_watch(s, now);
			return 0;
		}
		now = rte_rdtsc();
		meter_latency(s->meter, (now - pp->posted_at) / 2);
		meter_count(s->meter, 1, now);
		pp->waiting = false;
		next_turn(s, pp);
		check_got(s, pp);
	} else {
		poll_side(s, pp);
	}
	side_watch(s, now);
	if (meter_allow(s->meter, 1) > 0) {
		pp->posted_at = rte_rdtsc();
		pp->waiting = post_one(s, pp->turn, pp->posted_at);
	} else if (!s->done) {
		atomic_store(&s->run->final, s->meter->done);
		side_done(s);
	}
	return 1;
}

unsigned int
pong_step(struct side *s, uint64_t now)
{
	struct pingpong *pp = state_of(s);

	if (pp->due && !pp->owing)
		check_got(s, pp);
	if (!pp->owing && !take_arrival(s, pp)) {
		if (s->l->grh != 0 ? datagram_over(s, 0)
				   : s->received == atomic_load_explicit(&s->run->final,
									 memory_order_relaxed))
			side_done(s);
		return 0;
	}
	s->quiet_since = 0;
	if (pp->owing)
		poll_side(s, pp);
	pp->owing = !post_one(s, pp->turn, now);
	if (!pp->owing)
		next_turn(s, pp);
	return 1;
}
