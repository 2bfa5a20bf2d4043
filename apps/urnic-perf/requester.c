/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester of streams, and of READ and atomic latency.
 *
 * Each QP has chains of requests in flight; the last request of a chain is signalled.
 * When a chain completes, the QP gets the next one: nothing is ever searched,
 * so the cost of 10,000 QPs is that of their traffic. Latency is a stream with one
 * request in flight over all QPs.
 */
#include "perf.h"

#include "stage.h"

#include <rte_cycles.h>

/* QPs that have their first requests posted in one step. */
#define FILL_AT_ONCE 32u
/* Batches polled in one step. */
#define REQUESTER_POLLS 4u

/* WRITEs shorter than this, in bytes, are checked less often. */
#define SHORT_WRITE 4096u

/* Mix a value, so that the sum of mixed values tells one set of values from another. */
static uint64_t
mix(uint64_t v)
{
	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
	return v ^ (v >> 31);
}

/* Take the value that an atomic returned: it must be greater than the one before on its QP. */
static bool
take_atomic(struct side *s, struct perf_qp *q, const uint8_t *data)
{
	uint64_t v = *(const uint64_t *)(const void *)data;

	s->checked += sizeof(v);
	s->sum += mix(v);
	if (v >= q->last) {
		q->last = v + 1;
		return true;
	}
	run_fail(s->run, "%s: QP 0x%06x got %llu back after %llu; an atomic was executed twice or "
			 "out of order",
		 perf_op_name(s->o->op), q->qp->qp_num, (unsigned long long)v,
		 (unsigned long long)q->last - 1);
	return false;
}

bool
atomics_ok(struct side *a, uint64_t counter)
{
	uint64_t n = a->meter->done, sum = 0;

	for (uint64_t v = 0; v < n; v++)
		sum += mix(v);
	if (counter == n && sum == a->sum)
		return true;
	run_fail(a->run, "%s: %llu additions left the counter at %llu, and the values they returned "
			 "are %s 0 to %llu, each once",
		 perf_op_name(a->o->op), (unsigned long long)n, (unsigned long long)counter,
		 sum == a->sum ? "indeed" : "not", (unsigned long long)n - 1);
	return false;
}

/*
 * True when a WRITE is checked as it completes. The data is in the peer's memory, whose
 * cache lines the peer's thread is using, so only the last WRITE of a chain is checked,
 * and only a fourth of the short ones. check_all() checks the rest; --check full
 * checks every WRITE.
 */
static bool
looks_at_write(const struct side *s, uint64_t seq, bool is_last)
{
	if (!perf_op_is_put(s->o->op) || s->peer == NULL) /* another process's memory */
		return false;
	if (s->o->check == PERF_CHECK_FULL)
		return true;
	return is_last && (s->l->size >= SHORT_WRITE || (seq >> 4 & 3) == 0);
}

bool
check_done(struct side *s, struct perf_qp *q, uint32_t qp, bool is_last)
{
	uint64_t off = layout_dst_off(s->l, qp, q->dst_done);
	struct message_id id = {
		.qp = qp,
		.slot = (uint32_t)q->done & (s->l->src_slots - 1),
		.seq = q->done + 1,
		.stamp = q->done + 1,
	};

	if (perf_op_is_atomic(s->o->op))
		return take_atomic(s, q, s->mem.dst + off);
	if (perf_op_is_read(s->o->op)) {
		id.stamp = id.slot;
		return check_message(s, s->mem.dst + off, &id, check_most(s));
	}
	if (!looks_at_write(s, id.seq, is_last))
		return true;
	return check_message(s, s->peer->mem.dst + off, &id,
			     s->o->check == PERF_CHECK_FULL ? UINT64_MAX : 0);
}

/* Count messages of a QP as completed. returns: false when the run failed */
static bool
retire(struct side *s, struct perf_qp *q, uint32_t qp, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (s->o->check != PERF_CHECK_NONE && !check_done(s, q, qp, i + 1 == count))
			return false;
		q->done++;
		if (++q->dst_done == s->l->dst_slots)
			q->dst_done = 0;
	}
	return true;
}

/* Post a chain on a QP, as many messages as the meter allows. returns: messages posted */
static uint32_t
post_chain(struct side *s, uint32_t qp, uint64_t now)
{
	uint32_t n = (uint32_t)meter_allow(s->meter, s->o->chain);

	if (n == 0 || post_messages(s, qp, n, true, n, now))
		return 0;
	return n;
}

static void
complete(struct side *s, const struct ibv_wc *wc, uint64_t now)
{
	uint32_t qp = wr_id_qp(wc->wr_id), count = wr_id_count(wc->wr_id);

	if (wc->status != IBV_WC_SUCCESS || qp >= s->l->qps) {
		fail_completion(s, wc);
		return;
	}
	meter_latency(s->meter, wr_id_cycles(wc->wr_id, now));
	if (!retire(s, &s->qp[qp], qp, count))
		return;
	meter_count(s->meter, count, now);
	if (perf_op_is_lat(s->o->op)) {
		qp = qp + 1 == s->l->qps ? 0 : qp + 1;
		now = rte_rdtsc();
	}
	post_chain(s, qp, now);
}

/* Post the first requests of some more QPs. */
static unsigned int
fill_some(struct side *s, uint64_t now)
{
	uint32_t last = s->l->qps, depth = s->o->depth;

	if (perf_op_is_lat(s->o->op)) {
		post_chain(s, 0, rte_rdtsc());
		s->fill = last;
		return 1;
	}
	if (last - s->fill > FILL_AT_ONCE)
		last = s->fill + FILL_AT_ONCE;
	for (; s->fill < last; s->fill++) {
		for (uint32_t n = 0; n + s->o->chain <= depth; n += s->o->chain) {
			if (post_chain(s, s->fill, now) == 0)
				break;
		}
	}
	return 1;
}

unsigned int
requester_step(struct side *s, uint64_t now)
{
	struct ibv_wc wc[PERF_BATCH];
	unsigned int work = 0;
	int n = PERF_BATCH;

	side_watch(s, now);
	for (unsigned int k = 0; k < REQUESTER_POLLS && n == PERF_BATCH; k++) {
		URN_STAGE(LIBRARY);
		n = ibv_poll_cq(s->cq, PERF_BATCH, wc);
		URN_STAGE(PROGRAM);
		if (n < 0) {
			run_fail(s->run, "node A: the completion queue cannot be polled");
			return work;
		}
		if (n > 0)
			now = rte_rdtsc();
		for (int i = 0; i < n && !atomic_load_explicit(&s->run->failed, memory_order_relaxed);
		     i++)
			complete(s, &wc[i], now);
		work += (unsigned int)n;
	}
	if (s->fill < s->l->qps)
		work += fill_some(s, now);
	if (s->meter->phase == METER_OVER && s->meter->posted == s->meter->done && !s->done) {
		atomic_store(&s->run->final, s->meter->done);
		side_done(s);
	}
	return work;
}
