/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of measurements of remote memory access and active messages. */
#include "am.h"

#include "stage.h"

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include <errno.h>
#include <string.h>

#include <urnic/attach.h>

static struct am_end *
end_of(struct side *s)
{
	return (struct am_end *)s;
}

static uint32_t
slot_of(const struct side *s, uint64_t seq)
{
	return (uint32_t)(seq - 1) & (s->l->src_slots - 1);
}

/* ---- messages that end */

/* Retire messages in the order of their numbers, and check what they moved. */
static void
retire(struct am_end *e)
{
	struct side *s = &e->side;
	struct perf_qp *q = e->seq;
	bool check = perf_op_is_rma(s->o->op) && s->o->check != PERF_CHECK_NONE;

	while (q->done < q->seq && e->slot[slot_of(s, q->done + 1)].ended) {
		e->slot[slot_of(s, q->done + 1)].ended = false;
		if (check && !check_done(s, q, 0, (q->done + 1) % s->o->chain == 0))
			return;
		q->done++;
		if (++q->dst_done == s->l->dst_slots)
			q->dst_done = 0;
	}
}

/*
 * The messages of a slot ended well. The meter counts them as they end: a message that ends late
 * would hold back the count of all behind it, and measuring began and ended at one time.
 */
static void
ended(struct am_slot *slot)
{
	struct am_end *e = slot->end;
	struct side *s = &e->side;
	uint32_t first = (uint32_t)(slot - e->slot), mask = s->l->src_slots - 1;
	uint64_t now = rte_rdtsc(), took = now - slot->at;

	meter_latency(s->meter, perf_op_is_pingpong(s->o->op) ? took / 2 : took);
	for (uint32_t i = 0; i < slot->count; i++)
		e->slot[(first + i) & mask].ended = true;
	retire(e);
	meter_count(s->meter, slot->count, now);
}

/* The operations of a chain ended. */
static void
operations_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	struct am_slot *slot = arg;
	struct side *s = &slot->end->side;

	(void)ep;
	URN_STAGE(PROGRAM);
	if (likely(code == URN_AM_DONE && bytes == s->l->size * slot->count))
		ended(slot);
	else
		run_fail(s->run, "%s: an operation of way %s ended with %s after %llu bytes: %s",
			 perf_op_name(s->o->op), perf_way_names[s->o->way], urn_am_code_word(code),
			 (unsigned long long)bytes, urn_am_code_text(code));
	URN_STAGE(LIBRARY);
}

/* A request failed. */
static void
request_failed(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	struct am_end *e = arg;

	(void)ep;
	run_fail(e->side.run, "%s: a request failed: %s", perf_op_name(e->side.o->op), f->text);
}

/* ---- active messages */

/* Compare a payload with that of its number. *seq: set to the number. returns: false, and the run
 * failed */
static bool
payload_ok(struct side *s, const struct urn_am_message *m, uint64_t *seq)
{
	struct message_id id = {.qp = 0};

	if (m->len != s->l->size) {
		run_fail(s->run, "%s: a payload of %u bytes came instead of %llu",
			 perf_op_name(s->o->op), m->len, (unsigned long long)s->l->size);
		return false;
	}
	*seq = id.seq = id.stamp = pattern_number(m->data, m->len);
	id.slot = slot_of(s, id.seq);
	return s->o->check == PERF_CHECK_NONE || check_message(s, m->data, &id, check_most(s));
}

/* A request came to B: a new one in its slot. The reply tells its number. */
static void
serve(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct am_end *e = arg;
	struct side *s = &e->side;
	const uint8_t *data = NULL;
	uint64_t seq;
	int rc;

	URN_STAGE(PROGRAM);
	if (!payload_ok(s, m, &seq))
		return;
	if (seq <= e->seen[slot_of(s, seq)]) {
		run_fail(s->run, "%s: the handler ran twice for request %llu",
			 perf_op_name(s->o->op), (unsigned long long)seq);
		return;
	}
	e->seen[slot_of(s, seq)] = seq;
	s->received++;
	if (s->o->op == PERF_AM_LAT) {
		uint8_t *own = s->mem.src + layout_src_off(s->l, 0, slot_of(s, seq));

		pattern_put_stamp(own, s->l->size, pattern_stamp(0, seq));
		data = own;
	}
	URN_STAGE(LIBRARY);
	rc = urn_am_reply(ep, m->token, AM_ANSWERED, &seq, 1, data,
			  data != NULL ? (uint32_t)s->l->size : 0);
	if (rc != 0)
		run_fail(s->run, "%s: node B cannot reply: %s", perf_op_name(s->o->op),
			 urn_attach_error());
}

/* A reply came to A. */
static void
answered(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct am_end *e = arg;
	struct side *s = &e->side;
	uint64_t seq = m->arg[0], inside = seq;

	(void)ep;
	URN_STAGE(PROGRAM);
	if (seq <= e->seq->done || seq > e->seq->seq || e->slot[slot_of(s, seq)].ended) {
		run_fail(s->run, "%s: a reply to request %llu came, which does not wait for one",
			 perf_op_name(s->o->op), (unsigned long long)seq);
		return;
	}
	ended(&e->slot[slot_of(s, seq)]);
	if (s->o->op == PERF_AM_LAT && payload_ok(s, m, &inside) && inside != seq)
		run_fail(s->run, "%s: the reply to request %llu has the payload of %llu",
			 perf_op_name(s->o->op), (unsigned long long)seq,
			 (unsigned long long)inside);
	URN_STAGE(LIBRARY);
}

void
am_handlers(struct am_end *e)
{
	(void)urn_am_handle(e->ep, AM_SERVE, serve, e);
	(void)urn_am_handle(e->ep, AM_ANSWERED, answered, e);
	urn_am_on_failure(e->ep, request_failed, e);
}

/* ---- messages that leave */

/* Write the payload of the next request. */
static void
write_payload(const struct am_end *e, uint8_t *data)
{
	const struct side *s = &e->side;
	uint64_t seq = e->seq->seq + 1;

	if (s->o->fill)
		pattern_fill(s->p, data, s->l->size, pattern_start(0, slot_of(s, seq)));
	pattern_put_stamp(data, s->l->size, pattern_stamp(0, seq));
}

/* Send the next request, whose payload is written in place. returns: like urn_am_request() */
static int
send_prepared(struct am_end *e)
{
	uint32_t size = (uint32_t)e->side.l->size;
	struct urn_am_prepared p;
	int rc;

	URN_STAGE(LIBRARY);
	rc = urn_am_request_prepare(e->ep, &e->peer->address, size, &p);
	URN_STAGE(PROGRAM);
	if (rc != 0)
		return rc;
	write_payload(e, p.data);
	URN_STAGE(LIBRARY);
	return urn_am_request_commit(e->ep, &p, AM_SERVE, NULL, 0, size, NULL);
}

/* Send the next request. returns: like urn_am_request() */
static int
send_request(struct am_end *e)
{
	struct side *s = &e->side;
	uint8_t *data;

	if (s->o->prepare)
		return send_prepared(e);
	data = s->mem.src + layout_src_off(s->l, 0, slot_of(s, e->seq->seq + 1));
	write_payload(e, data);
	URN_STAGE(LIBRARY);
	return urn_am_request(e->ep, &e->peer->address, AM_SERVE, NULL, 0, data,
			      (uint32_t)s->l->size, NULL);
}

/* Fill in the piece of the message behind the next `ahead` ones. */
static void
fill_piece(const struct am_end *e, uint32_t ahead, struct urn_rma_piece *p)
{
	const struct side *s = &e->side;
	uint64_t seq = e->seq->seq + ahead + 1, src = layout_src_off(s->l, 0, slot_of(s, seq));
	uint32_t slot = e->seq->dst + ahead;
	bool is_read = perf_op_is_read(s->o->op);
	uint64_t dst;

	if (slot >= s->l->dst_slots)
		slot -= s->l->dst_slots;
	dst = layout_dst_off(s->l, 0, slot);
	p->remote = e->remote + (is_read ? src : dst);
	p->memory = is_read ? &e->dst : &e->src;
	p->local = is_read ? s->mem.dst + dst : s->mem.src + src;
	p->len = (uint32_t)s->l->size;
	if (!is_read && s->o->check != PERF_CHECK_NONE)
		pattern_put_stamp(p->local, s->l->size, pattern_stamp(0, seq));
}

/* Issue a single operation, which alone can say how often it is replied to. */
static int
issue_one(struct am_end *e, struct am_slot *slot, const struct urn_rma_piece *p)
{
	struct side *s = &e->side;
	struct urn_rma op = {
		.to = &e->peer->address,
		.remote = p->remote,
		.key = e->peer->key,
		.memory = p->memory,
		.local = p->local,
		.len = p->len,
		.way = (uint8_t)s->o->way,
		.every = s->o->every,
		.done = operations_done,
		.arg = slot,
	};

	URN_STAGE(LIBRARY);
	return perf_op_is_read(s->o->op) ? urn_rma_read(e->ep, &op) : urn_rma_write(e->ep, &op);
}

/* Issue the next n operations with one completion. returns: like urn_rma_write() */
static int
issue_operations(struct am_end *e, struct am_slot *slot, uint32_t n)
{
	struct side *s = &e->side;
	struct urn_rma_piece pieces[AM_BATCH];
	struct urn_rma_vector v = {
		.to = &e->peer->address,
		.key = e->peer->key,
		.pieces = pieces,
		.n = n,
		.way = (uint8_t)s->o->way,
		.done = operations_done,
		.arg = slot,
	};

	for (uint32_t i = 0; i < n; i++)
		fill_piece(e, i, &pieces[i]);
	if (n == 1)
		return issue_one(e, slot, &pieces[0]);
	URN_STAGE(LIBRARY);
	return perf_op_is_read(s->o->op) ? urn_rma_readv(e->ep, &v) : urn_rma_writev(e->ep, &v);
}

/* Issue the next n messages: one, or a chain of operations. returns: false: not now, or the run
 * failed */
static bool
issue(struct am_end *e, uint32_t n)
{
	struct side *s = &e->side;
	struct perf_qp *q = e->seq;
	struct am_slot *slot = &e->slot[slot_of(s, q->seq + 1)];
	int rc;

	slot->at = rte_rdtsc();
	slot->count = n;
	rc = perf_op_is_am(s->o->op) ? send_request(e) : issue_operations(e, slot, n);
	URN_STAGE(PROGRAM);
	if (rc == EAGAIN)
		return false;
	if (rc != 0) {
		run_fail(s->run, "%s: node A cannot go on: %s", perf_op_name(s->o->op),
			 urn_attach_error());
		return false;
	}
	q->seq += n;
	s->meter->posted += n;
	q->dst += n;
	if (q->dst >= s->l->dst_slots)
		q->dst -= s->l->dst_slots;
	return true;
}

unsigned int
am_issue_step(struct side *s, uint64_t now)
{
	struct am_end *e = end_of(s);
	uint32_t chain = s->o->chain, n;
	unsigned int work;

	side_watch(s, now);
	URN_STAGE(LIBRARY);
	work = urn_am_progress(e->ep);
	URN_STAGE(PROGRAM);
	if (atomic_load_explicit(&s->run->failed, memory_order_relaxed))
		return work;
	for (unsigned int i = 0; i < AM_BATCH; i += chain) {
		if (e->seq->seq - e->seq->done + chain > s->o->depth)
			break;
		n = (uint32_t)meter_allow(s->meter, chain);
		if (n == 0 || !issue(e, n))
			break;
		work += n;
	}
	if (s->meter->phase == METER_OVER && s->meter->posted == s->meter->done && !s->done) {
		atomic_store(&s->run->final, s->meter->done);
		side_done(s);
	}
	return work;
}

unsigned int
am_serve_step(struct side *s, uint64_t now)
{
	struct am_end *e = end_of(s);
	unsigned int work;

	(void)now;
	URN_STAGE(LIBRARY);
	work = urn_am_progress(e->ep);
	URN_STAGE(PROGRAM);
	if (s->received >= atomic_load_explicit(&s->run->final, memory_order_acquire))
		side_done(s);
	return work;
}
