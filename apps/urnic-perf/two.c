/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of a measurement between two processes, each a client of a dataplane
 * (meet.h). A worker thread takes the side's steps; the main thread listens to
 * the other side meanwhile, and sleeps.
 */
#include "perf.h"

#include "meet.h"

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_MS 20
#define STEP_SECONDS 20u /* the other side has this long for each step */
#define STEP_NS (STEP_SECONDS * 1000000000ull)
#define WINDOW 256u      /* connections being set up at a time */

struct two {
	struct perf_opts o;
	struct layout l;
	struct pattern p;
	struct side side;        /* A when it asks, B when it listens */
	struct run run;
	struct meter meter;      /* A's */
	struct meet *m;
	struct urn_ep_opts ep;
	uint32_t asked, up;      /* connections; up: both sides are ready */
	uint32_t ends;           /* queue pairs for which the other side said END or ENDED */
	uint64_t sent;           /* messages that A says it sent, over all QPs */
	uint64_t counter;        /* A: value of the atomics' counter, as B found it */
	uint64_t peer_checked;   /* A: bytes that B compared */
	bool lost;               /* the other side is gone: do not tell it anything */
	uint64_t setup_ns;	 /* A: time in which queue pairs were made and connected */
	struct urn_failover *failover; /* the loss of an adapter, or NULL; owner: main.c */
};

/* ---- messages to the other side */

static void
own_peer(const struct two *t, uint32_t n, struct meet_peer *p)
{
	const struct side *s = &t->side;
	const struct perf_opts *o = &t->o;

	memset(p, 0, sizeof(*p));
	p->ep.qpn = s->qp[n].qp->qp_num;
	p->ep.psn = side_psn(s->index, n);
	p->ep.mtu_code = t->ep.mtu_code;
	memcpy(p->ep.gid, s->gid.raw, 16);
	p->hello = (struct meet_hello){
		.magic = MEET_MAGIC,
		.op = (uint8_t)o->op,
		.check = (uint8_t)o->check,
		.srq = o->use_srq,
		.mtu_code = t->ep.mtu_code,
		.qps = o->qps,
		.number = n,
		.size = o->size,
		.va_src = (uintptr_t)s->mem.src,
		.va_dst = (uintptr_t)s->mem.dst,
		.rkey_src = s->mr_src != NULL ? s->mr_src->rkey : 0,
		.rkey_dst = s->mr_dst != NULL ? s->mr_dst->rkey : 0,
		.depth = (uint16_t)o->depth,
		.rd_atomic = (uint8_t)o->rd_atomic,
		.timeout = o->timeout,
		.ud_qpn = o->ud ? s->qp[n].qp->qp_num : 0,
	};
}

/* Take the asker's settings over into the listener's options. */
static int
follow(struct two *t, const struct meet_hello *h, struct urn_err *err)
{
	struct perf_opts *o = &t->o;

	if (h->op != o->op) {
		urn_err_set(err, "this side measures %s and the other %s; give both the same",
			    perf_op_name(o->op), perf_op_name((enum perf_op)h->op));
		return -1;
	}
	o->check = (enum perf_check)h->check;
	o->use_srq = h->srq != 0;
	o->ud = h->ud_qpn != 0;
	if (o->mtu > 128u << h->mtu_code)
		o->mtu = 128u << h->mtu_code;
	o->qps = h->qps;
	o->size = h->size;
	o->depth = h->depth;
	o->rd_atomic = h->rd_atomic;
	o->timeout = h->timeout;
	if (o->ud && o->size > o->mtu) {
		urn_err_set(err, "a datagram is one packet, and this side's port carries a path MTU of %u; give "
			    "a --size of at most %u", o->mtu, o->mtu);
		return -1;
	}
	return 0;
}

static int
protocol(struct urn_err *err)
{
	urn_err_set(err, "the other side sent a message out of turn; use one release on both");
	return -1;
}

static int
connect_one(struct two *t, const struct meet_news *news, struct urn_err *err)
{
	const struct meet_hello *h = &news->peer.hello;
	struct side *s = &t->side;
	struct meet_peer own;

	if (!meet_hello_ok(h) || h->qps != t->o.qps || h->size != t->o.size ||
	    h->number != news->n || (h->ud_qpn != 0) != t->o.ud)
		return protocol(err);
	own_peer(t, news->n, &own);
	s->peer_va_src = h->va_src;
	s->peer_va_dst = h->va_dst;
	s->peer_rkey_src = h->rkey_src;
	s->peer_rkey_dst = h->rkey_dst;
	return side_connect(s, news->n, &own.ep, &news->peer.ep, &t->ep, err);
}

/* ---- meeting */

/* returns: 1 with *news, 0: nothing came for a while, -1 with *err */
static int
hear(struct two *t, uint64_t since, struct meet_news *news, struct urn_err *err)
{
	int rc = meet_look(t->m, news, LOOK_MS, err);

	if (rc < 0)
		t->lost = true;
	if (rc > 0 && news->what == MEET_END && news->end.failed) {
		t->lost = true;
		return meet_gave_up(&news->end, err);
	}
	/* An interrupted measurement still goes through END and ENDED. */
	if (rc == 0 && urn_stop_requested() && !t->run.interrupted) {
		urn_err_set(err, "interrupted");
		return -1;
	}
	if (rc == 0 && since != 0 && urn_clock_ns() - since > STEP_NS) {
		urn_err_set(err, "the other side said nothing for %u seconds", STEP_SECONDS);
		return -1;
	}
	return rc;
}

static void
prepare(struct two *t)
{
	urn_ep_opts_default(&t->ep);
	t->ep.mtu_code = side_mtu_code(t->o.mtu);
	t->ep.sgid_index = t->side.gid_index;
	t->ep.timeout = t->o.timeout;
	t->ep.max_rd_atomic = t->ep.max_dest_rd_atomic = (uint8_t)t->o.rd_atomic;
}

/* A: ask for all queue pairs, some at a time. */
static int
ask_all(struct two *t, struct urn_err *err)
{
	uint64_t since = urn_clock_ns();
	struct meet_news news;
	struct meet_peer own;
	int rc;

	while (t->up < t->o.qps) {
		for (; t->asked < t->o.qps && t->asked - t->up < WINDOW; t->asked++) {
			own_peer(t, t->asked, &own);
			if (meet_ask(t->m, t->asked, &own, err) != 0)
				return -1;
		}
		rc = hear(t, since, &news, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			continue;
		if (news.what != MEET_ANSWER || news.n >= t->asked)
			return protocol(err);
		if (connect_one(t, &news, err) != 0 || meet_ready(t->m, news.n, err) != 0)
			return -1;
		t->up++;
		since = urn_clock_ns();
	}
	return 0;
}

/* B: bring the side up as the first ASK wants it. */
static int
open_as_asked(struct two *t, const struct meet_news *news, struct urn_err *err)
{
	const struct meet_hello *h = &news->peer.hello;

	if (!meet_hello_ok(h))
		return protocol(err);
	if (follow(t, h, err) != 0 || perf_answer_gid(t->side.ctx, news->own_gid, news->peer.ep.gid,
						      &t->side.gid_index, &t->side.gid, err) != 0)
		return -1;
	layout_make(&t->l, &t->o);
	prepare(t);
	return side_open_more(&t->side, err);
}

static int
answer_all(struct two *t, struct urn_err *err)
{
	uint64_t since = 0; /* no time limit for the first ASK */
	struct meet_news news;
	struct meet_peer own;
	int rc;

	while (since == 0 || t->up < t->o.qps) {
		rc = hear(t, since, &news, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			continue;
		if (news.what == MEET_ASK) {
			if ((since == 0 && open_as_asked(t, &news, err) != 0) ||
			    connect_one(t, &news, err) != 0)
				return -1;
			own_peer(t, news.n, &own);
			if (meet_answer(t->m, news.n, &own, err) != 0)
				return -1;
			/* Do not wait for READY: it may be lost, or come behind the END. */
			t->up++;
		} else if (news.what != MEET_READY || news.n >= t->o.qps || since == 0) {
			return protocol(err);
		}
		since = urn_clock_ns();
	}
	return 0;
}

/* ---- measuring */

/* B: A has sent all messages of a queue pair. After the last queue pair the side knows its final count. */
static int
on_end(struct two *t, const struct meet_news *news, struct urn_err *err)
{
	if (t->side.index == 0 || (news->what != MEET_END && news->what != MEET_READY) ||
	    news->n >= t->o.qps)
		return protocol(err);
	if (news->what == MEET_READY) /* the queue pair was counted as up when it was answered */
		return 0;
	if (t->o.op == PERF_WRITE_BW) /* for final_check(); in other operations the worker owns it */
		t->side.qp[news->n].done = news->end.done;
	t->sent += news->end.done;
	if (++t->ends == t->o.qps)
		atomic_store(&t->run.final, t->sent);
	return 0;
}

/* Called repeatedly while the worker runs. */
static void
meanwhile(void *arg)
{
	struct two *t = arg;
	struct meet_news news;
	struct urn_err err;
	int rc = meet_look(t->m, &news, LOOK_MS, &err);

	if (rc < 0) {
		t->lost = true;
	} else if (rc > 0 && news.what == MEET_END && news.end.failed) {
		t->lost = true;
		rc = meet_gave_up(&news.end, &err);
	} else if (rc > 0) {
		rc = on_end(t, &news, &err);
	} else if (urn_stop_requested() && t->side.index == 1) {
		urn_err_set(&err, "interrupted");
		rc = -1;
	}
	if (rc < 0)
		run_fail(&t->run, "%s", err.text);
}

static int
final_check(struct two *t)
{
	struct side *s = &t->side;
	enum perf_op op = t->o.op;

	if (t->o.check == PERF_CHECK_NONE)
		return 0;
	if (perf_op_is_atomic(op))
		return s->index == 1 || atomics_ok(s, t->counter) ? 0 : -1;
	if (op == PERF_WRITE_BW && s->index == 1)
		return check_all(s, s->mem.dst, s->qp) ? 0 : -1;
	if (perf_op_is_read(op) && s->index == 0)
		return check_all(s, s->mem.dst, s->qp) ? 0 : -1;
	return 0;
}

/* A: say how many messages were sent, and take B's result. B: send the result. */
static int
part(struct two *t, struct urn_err *err)
{
	bool asks = t->side.index == 0;
	uint64_t since = urn_clock_ns();
	struct meet_end end = {.magic = MEET_MAGIC};
	struct meet_news news;
	bool heard = false;
	int rc;

	if (!asks && perf_op_is_atomic(t->o.op))
		memcpy(&end.counter, t->side.mem.dst, sizeof(end.counter));
	if (!asks && t->o.ud)
		end.counter = t->side.received;
	end.checked = t->side.checked;
	for (uint32_t n = 0; n < t->o.qps; n++) {
		end.done = t->side.qp[n].done;
		if (perf_op_is_pingpong(t->o.op)) /* each message was answered */
			end.done = t->side.qp[n].last;
		if (meet_end(t->m, n, &end, !asks, err) != 0)
			return -1;
	}
	while (asks && t->ends < t->o.qps) {
		rc = hear(t, since, &news, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			continue;
		if (news.what != MEET_ENDED)
			return protocol(err);
		if (news.end.failed) {
			t->lost = true;
			return meet_gave_up(&news.end, err);
		}
		t->ends++;
		since = urn_clock_ns();
		if (news.end.magic != MEET_MAGIC)
			continue;
		/* Every ENDED has the same values. */
		heard = true;
		t->counter = news.end.counter;
		t->peer_checked = news.end.checked;
	}
	if (asks && !heard) {
		t->lost = true;
		urn_err_set(err, "the other side is gone: it ended without its results");
		return -1;
	}
	return 0;
}

static void
tell_failure(struct two *t, const struct urn_err *err)
{
	struct meet_end end = {.magic = MEET_MAGIC, .failed = 1};
	struct urn_err more;

	snprintf(end.text, sizeof(end.text), "%.175s", err->text);
	if (t->m != NULL && !t->lost)
		(void)meet_end(t->m, 0, &end, t->ends == t->o.qps && t->side.index == 1, &more);
}

/* ---- */

static void
init(struct two *t, const struct rig *rig, const struct perf_opts *o)
{
	uint64_t warm = o->iters / 10, each = (uint64_t)o->qps * o->depth;

	t->o = *o;
	t->failover = rig->failover;
	t->side.index = o->role == PERF_LISTENS ? 1 : 0;
	layout_make(&t->l, o);
	pattern_init(&t->p);
	warm = warm < each ? each : warm;
	meter_init(&t->meter, o->iters, (warm + o->chain - 1) / o->chain * o->chain, o->duration_ns,
		   rig->tsc_hz);
	atomic_store(&t->run.final, UINT64_MAX);
	atomic_store(&t->run.done, 1); /* the other side is not in this process */
	t->side.run = &t->run;
	t->side.o = &t->o;
	t->side.l = &t->l;
	t->side.p = &t->p;
	t->side.meter = t->side.index == 0 ? &t->meter : NULL;
	t->side.step = side_step_of(o->op, t->side.index);
}

/* Tell the failover how far the measurement is. arg: struct meter */
static enum urn_run_state
look(void *arg, uint64_t *units)
{
	switch (meter_look(arg, units)) {
	case METER_WARM:
		return URN_RUN_WARM;
	case METER_RUN:
		return URN_RUN_GOING;
	default:
		return URN_RUN_OVER;
	}
}

/* Run the worker, and have the adapter lost meanwhile if options say so. */
static int
work(struct two *t, struct urn_err *err)
{
	const struct urn_failover_run run = {.at_ns = t->o.fail_ns,
					     .unit = t->o.size,
					     .messages = true,
					     .look = look,
					     .arg = &t->meter};
	int rc;

	if (t->failover != NULL && urn_failover_start(t->failover, &run, err) != 0)
		return -1;
	rc = worker_run(&t->side, &t->run, meanwhile, t);
	if (t->failover != NULL)
		urn_failover_stop(t->failover);
	if (rc != 0) {
		run_explain(&t->run);
		*err = t->run.err;
	}
	return rc;
}

static int
go(struct two *t, struct urn_err *err)
{
	struct side *s = &t->side;
	uint64_t begun;

	if (side_open_device(s, NULL, err) != 0)
		return -1;
	prepare(t);
	begun = urn_clock_ns();
	if (s->index == 0 && side_open_more(s, err) != 0)
		return -1;
	t->m = meet_open(&t->o, s->ctx, s->gid_index, &s->gid, err);
	if (t->m == NULL)
		return -1;
	if ((s->index == 0 ? ask_all : answer_all)(t, err) != 0)
		return -1;
	t->setup_ns = urn_clock_ns() - begun;
	if (work(t, err) != 0)
		return -1;
	/* The asker takes the other side's result before it checks its own. */
	if ((s->index == 1 && final_check(t) != 0) || part(t, err) != 0 ||
	    (s->index == 0 && final_check(t) != 0)) {
		if (atomic_load(&t->run.failed))
			*err = t->run.err;
		return -1;
	}
	return 0;
}

static void
result(const struct two *t, struct result *res)
{
	uint64_t ways = perf_op_is_pingpong(t->o.op) ? 2 : 1;

	result_from_meter(res, &t->o, &t->meter);
	res->interrupted = t->run.interrupted;
	res->setup_ns = t->setup_ns;
	res->checked = t->side.checked + t->peer_checked;
	res->moved = t->meter.done * t->l.size * ways;
	res->sent = t->meter.done;
	if (t->o.ud && t->counter < res->sent)
		res->lost = res->sent - t->counter;
}

/* Print the listener's results: no times, for the listener has no meter. */
static void
tell_served(const struct two *t)
{
	uint64_t served = t->o.ud ? t->side.received : t->sent;
	struct urn_json j;

	if (!t->o.json) {
		printf("urnic-perf %s: served %llu messages of %llu bytes, %llu bytes compared\n",
		       perf_op_name(t->o.op), (unsigned long long)served,
		       (unsigned long long)t->o.size, (unsigned long long)t->side.checked);
		return;
	}
	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "op", perf_op_name(t->o.op));
	urn_json_str(&j, "role", "listener");
	urn_json_u64(&j, "size", t->o.size);
	urn_json_u64(&j, "qps", t->o.qps);
	urn_json_u64(&j, "served", served);
	urn_json_u64(&j, "checked_bytes", t->side.checked);
	urn_json_end(&j);
}

int
two_run(const struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err)
{
	struct two *t = aligned_alloc(64, (sizeof(*t) + 63) & ~(size_t)63);
	int rc;

	if (t == NULL) {
		urn_err_set(err, "no memory to measure with");
		return -1;
	}
	memset(t, 0, sizeof(*t));
	init(t, rig, o);
	rc = go(t, err);
	if (rc != 0)
		tell_failure(t, err);
	else if (t->side.index == 1)
		tell_served(t);
	else
		result(t, res);
	meet_close(t->m);
	side_close(&t->side);
	free(t);
	return rc;
}
