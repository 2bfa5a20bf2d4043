/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of measurements of messages: sending, reading, ping-pong. */
#include "msg.h"

#include "stage.h"

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#define MSG_READS 64u /* messages read in one step */
#define MSG_MISSES 4u /* senders in a row without an answer after which a step looks no further */

static struct msg_end *
end_of(struct side *s)
{
	return (struct msg_end *)s;
}

/* True when all queues take messages; until then a message would find none. */
static bool
is_up(struct msg_end *e)
{
	struct urn_regset *q[2] = {e->reads, e->peer->reads};

	if (likely(e->up))
		return true;
	for (unsigned int i = 0; i < 2; i++) {
		int ready = q[i] != NULL ? urn_regset_ready(q[i]) : 1;

		if (ready < 0)
			run_fail(e->side.run, "the dataplane refused the receive queue: %s",
				 "give a smaller --size or --entries");
		if (ready != 1)
			return false;
	}
	e->up = true;
	return true;
}

/* ---- sending */

/* Send a sender's next message. n: the sender's number */
static void
ring(struct msg_end *e, uint32_t n, uint64_t now)
{
	const struct perf_opts *o = e->side.o;
	struct msg_sender *m = &e->sender[n];
	uint64_t off;

	m->seq++;
	off = (m->seq & (msg_slots(o) - 1)) * msg_stride(o);
	pattern_put_stamp(m->set.out + off, o->size, pattern_stamp(n, m->seq));
	m->rung_at = now;
	m->pending = true;
	e->pending++;
	URN_STAGE(LIBRARY);
	urn_regset_send(&m->set, off, (uint32_t)o->size);
	URN_STAGE(PROGRAM);
}

static void
failed(struct msg_sender *m, uint8_t code)
{
	if (code & URN_MSG_MAY_BE_THERE)
		m->maybe++;
	else
		m->seq--; /* the message is not there: the next one has the same number */
}

/* Take the answer to a sender's message. returns: its code; URN_MSG_PENDING: there is none yet */
static uint8_t
take_answer(struct msg_end *e, struct msg_sender *m)
{
	uint8_t code = urn_regset_answer(&m->set), plain = code & (uint8_t)~URN_MSG_MAY_BE_THERE;

	if (code == URN_MSG_PENDING)
		return code;
	m->pending = false;
	e->pending--;
	e->code[plain < URN_MSG_CODES ? plain : URN_MSG_BUSY]++;
	if (likely(code == URN_MSG_DONE)) {
		m->done++;
		e->done++;
	} else {
		failed(m, code);
	}
	return code;
}

/* True when a sender may send. A message after one that failed counts in the place of that one. */
static bool
may_send(struct meter *m, uint8_t code)
{
	if (code != URN_MSG_DONE && code != URN_MSG_IDLE)
		return m->phase != METER_OVER;
	if (meter_allow(m, 1) == 0)
		return false;
	m->posted++;
	return true;
}

/* Look for answers, and send anew. Answers come mostly in the order of the sends. returns: answers
 */
static unsigned int
take_answers(struct msg_end *e, uint64_t now)
{
	uint32_t misses = e->idle_turn ? e->senders : MSG_MISSES, done = 0, got = 0;
	struct meter *meter = e->side.meter;

	for (uint32_t i = 0; i < e->senders && misses > 0; i++) {
		struct msg_sender *m = &e->sender[e->next];
		uint8_t code = m->pending ? take_answer(e, m) : URN_MSG_IDLE;

		if (code == URN_MSG_PENDING) {
			misses--;
		} else if (code == URN_MSG_DONE) {
			meter_latency(meter, now - m->rung_at);
			done++;
		}
		got += code != URN_MSG_PENDING && code != URN_MSG_IDLE;
		if (code != URN_MSG_PENDING && may_send(meter, code))
			ring(e, e->next, now);
		if (++e->next == e->senders)
			e->next = 0;
	}
	if (done > 0)
		meter_count(meter, done, now);
	e->idle_turn = got == 0;
	return got;
}

static bool
is_gone(struct msg_end *e)
{
	for (unsigned int i = 0; i < PERF_NODES_MAX && e->port[i].open; i++) {
		if (likely(urn_dev_gone(&e->port[i].dev) == URN_DEV_THERE))
			continue;
		run_fail(e->side.run, "the dataplane that node %c is attached to is gone",
			 'A' + (int)e->side.index);
		return true;
	}
	return false;
}

unsigned int
msg_send_step(struct side *s, uint64_t now)
{
	struct msg_end *e = end_of(s);
	unsigned int work;

	side_watch(s, now);
	if (!is_up(e))
		return 0;
	work = take_answers(e, rte_rdtsc());
	if (work == 0 && is_gone(e))
		return 0;
	if (s->meter->phase == METER_OVER && e->pending == 0 && !s->done) {
		atomic_store(&s->run->final, s->meter->done);
		side_done(s);
	}
	return work;
}

/* ---- reading */

/* True when the message's bytes are those that its sender wrote. */
static bool
check_bytes(struct side *s, const uint8_t *data, uint32_t from, uint64_t seq)
{
	uint64_t size = s->o->size, compared = 0;
	uint32_t start = pattern_start(from, (uint32_t)seq & (msg_slots(s->o) - 1));
	bool ok = pattern_stamp_ok(data, size, pattern_stamp(from, seq));

	if (s->o->check == PERF_CHECK_NONE)
		return true;
	if (ok && size <= PATTERN_SHORT) {
		ok = pattern_short_body_ok(s->p, data, size, start);
		compared = size > PATTERN_STAMPS ? size - PATTERN_STAMPS : 0;
	} else if (ok) {
		ok = pattern_body_ok(s->p, data, size, start, seq, check_most(s), &compared);
	}
	s->checked += compared + (size < PATTERN_STAMPS ? size : PATTERN_STAMPS);
	return ok;
}

/* Number of the sender that a message says it is of, by the stamp at its end, which is whole in any
 * message. */
static uint32_t
sender_number(const uint8_t *data, uint64_t size)
{
	uint64_t stamp;

	memcpy(&stamp, data + size - sizeof(stamp), sizeof(stamp));
	if (size > sizeof(stamp))
		stamp ^= PATTERN_TAIL;
	return (uint32_t)(stamp >> 40) & 0xffff;
}

/* Check a message: its length, its source, its number and its bytes. returns: false, and the run
 * failed */
static bool
check_message_of(struct msg_end *e, const struct urn_abi_msg_entry *h)
{
	const uint8_t *data = (const uint8_t *)(h + 1);
	uint32_t n = sender_number(
		data, e->side.o->size); /* an entry has room for so many bytes, whatever came */
	struct msg_source *m = n < e->sources ? &e->source[n] : NULL;
	uint64_t seq = pattern_number(data, e->side.o->size);

	if (h->len != e->side.o->size || m == NULL || h->qid != m->qid ||
	    memcmp(h->node, m->gid, 16) != 0) {
		run_fail(e->side.run, "%s: a message of %u bytes came, of which no sender knows",
			 perf_op_name(e->side.o->op), h->len);
		return false;
	}
	if (seq <= m->seq || !check_bytes(&e->side, data, n, seq)) {
		run_fail(e->side.run,
			 "%s: message %llu of register set %u did not arrive as it was sent, or "
			 "came twice; "
			 "the one before was %llu",
			 perf_op_name(e->side.o->op), (unsigned long long)seq, n,
			 (unsigned long long)m->seq);
		return false;
	}
	m->got++;
	m->seq = seq;
	return true;
}

unsigned int
msg_read_step(struct side *s, uint64_t now)
{
	struct msg_end *e = end_of(s);
	const struct urn_abi_msg_entry *h;
	unsigned int n;

	(void)now;
	URN_STAGE(PROGRAM);
	for (n = 0; n < MSG_READS && (h = urn_regset_poll(e->reads)) != NULL; n++) {
		if (!check_message_of(e, h))
			return n;
		urn_regset_next(e->reads);
	}
	if (n > 0) {
		urn_regset_give(e->reads);
		s->received += n;
		return n;
	}
	/* A message that was answered DONE is in the queue already. */
	if (atomic_load_explicit(&s->run->final, memory_order_acquire) != UINT64_MAX &&
	    urn_regset_poll(e->reads) == NULL)
		side_done(s);
	return 0;
}

/* ---- ping-pong */

/* Take a message, if one came. *got: whether. returns: false, and the run failed */
static bool
take_one(struct msg_end *e, bool *got)
{
	const struct urn_abi_msg_entry *h = urn_regset_poll(e->reads);

	*got = h != NULL;
	if (h == NULL)
		return true;
	if (!check_message_of(e, h))
		return false;
	urn_regset_next(e->reads);
	urn_regset_give(e->reads);
	e->side.received++;
	return true;
}

/* Take the answers that are there. A message that fails ends a ping-pong. */
static void
take_all_answers(struct msg_end *e)
{
	for (uint32_t i = 0; i < e->senders && e->pending > 0; i++) {
		uint8_t code = e->sender[i].pending ? take_answer(e, &e->sender[i])
						    : (uint8_t)URN_MSG_DONE;

		if (code != URN_MSG_PENDING && code != URN_MSG_DONE)
			run_fail(e->side.run, "%s: node %c's message failed: %s",
				 perf_op_name(e->side.o->op), 'A' + (int)e->side.index,
				 urn_msg_code_text(code));
	}
}

/* Send by the set whose turn it is. returns: false: its message before is still on its way */
static bool
ring_next(struct msg_end *e, uint64_t now)
{
	if (e->sender[e->next].pending)
		return false;
	ring(e, e->next, now);
	if (++e->next == e->senders)
		e->next = 0;
	return true;
}

/* Send the next ping, or end. */
static unsigned int
ping(struct msg_end *e)
{
	struct side *s = &e->side;

	if (meter_allow(s->meter, 1) > 0) {
		e->rung_at = rte_rdtsc();
		e->waiting = ring_next(e, e->rung_at);
		s->meter->posted += e->waiting;
	} else if (!s->done && e->pending == 0) {
		atomic_store(&s->run->final, s->received);
		side_done(s);
	}
	return 1;
}

unsigned int
msg_ping_step(struct side *s, uint64_t now)
{
	struct msg_end *e = end_of(s);
	bool got;

	side_watch(s, now);
	if (!is_up(e))
		return 0;
	if (e->waiting && urn_regset_poll(e->reads) != NULL) {
		now = rte_rdtsc();
		meter_latency(s->meter, (now - e->rung_at) / 2);
		e->waiting = false;
		if (!take_one(e, &got))
			return 1;
	}
	take_all_answers(e);
	/* A round counts when its message was answered and the other side's message has come. */
	while (s->meter->done < s->received && s->meter->done < e->done)
		meter_count(s->meter, 1, now);
	if (e->waiting)
		return is_gone(e);
	return ping(e);
}

unsigned int
msg_pong_step(struct side *s, uint64_t now)
{
	struct msg_end *e = end_of(s);
	bool got = false;

	if (!e->owing && !take_one(e, &got))
		return 1;
	e->owing = e->owing || got;
	if (e->owing && ring_next(e, now)) {
		e->owing = false;
		return 1;
	}
	take_all_answers(e);
	if (!got && e->pending == 0 &&
	    atomic_load_explicit(&s->run->final, memory_order_acquire) == e->done)
		side_done(s);
	return got;
}
