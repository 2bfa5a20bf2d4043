/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_priv.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(id, name, text) name,
	RUN_SCENARIOS(X)
#undef X
};
static const char *const texts[] = {
#define X(id, name, text) text,
	RUN_SCENARIOS(X)
#undef X
};

const char *
run_scenario_name(unsigned int i)
{
	return i < RUN_COUNT ? names[i] : NULL;
}

const char *
run_scenario_text(unsigned int i)
{
	return i < RUN_COUNT ? texts[i] : NULL;
}

struct run *
run_new(void)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r || !(r->dut = dut_new()))
		return NULL;
	for (unsigned int i = 0; i < DUT_CONNS; i++) {
		r->joint[i].r = r;
		r->joint[i].i = i;
		r->joint[i].ram = malloc(FLOW_RAM);
		if (!r->joint[i].ram)
			return NULL;
	}
	return r;
}

void
run_free(struct run *r)
{
	for (unsigned int i = 0; i < DUT_CONNS; i++)
		free(r->joint[i].ram);
	line_free(&r->line[0]);
	line_free(&r->line[1]);
	dut_free(r->dut);
	free(r);
}

/* ---- failures; the first counts */

static void __attribute__((format(printf, 2, 0)))
vwrong(struct run *r, const char *fmt, va_list ap)
{
	if (r->failed)
		return;
	r->failed = true;
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	if (r->trace)
		fprintf(r->trace, "%12llu  WRONG: %s\n", (unsigned long long)r->now, r->why);
}

void
run_wrong(void *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwrong(ctx, fmt, ap);
	va_end(ap);
}

void
run_peer_wrong(void *ctx, const char *fmt, ...)
{
	struct joint *j = ctx;
	va_list ap;

	va_start(ap, fmt);
	vwrong(j->r, fmt, ap);
	va_end(ap);
}

/* ---- the wire */

static void
note(struct run *r, const char *what, const uint8_t *frame, size_t len, bool spoilt)
{
	size_t l4 = 14 + ((frame[12] << 8 | frame[13]) == 0x86dd ? 40 : 20) + 8;
	const uint8_t *bth = frame + l4;
	uint32_t aeth;

	if (!r->trace)
		return;
	fprintf(r->trace, "%12llu  %-9s QP 0x%06x %-16s PSN %8u %s", (unsigned long long)r->now, what,
		(unsigned int)(bth[5] << 16 | bth[6] << 8 | bth[7]), pw_name(bth[0]),
		(unsigned int)(bth[9] << 16 | bth[10] << 8 | bth[11]), bth[8] & 0x80 ? "A" : " ");
	aeth = (uint32_t)bth[12] << 24 | (uint32_t)bth[13] << 16 | (uint32_t)bth[14] << 8 | bth[15];
	if (pw_is(bth[0]) & PWI_AETH)
		fprintf(r->trace, " syndrome 0x%02x MSN %u", aeth >> 24, aeth & 0xffffff);
	fprintf(r->trace, " %zu bytes%s\n", len, spoilt ? ", spoilt" : "");
}

void
run_peer_emits(void *ctx, const uint8_t *frame, size_t len)
{
	struct joint *j = ctx;

	note(j->r, "peer sends", frame, len, false);
	line_put(&j->r->line[TO_DUT], j->r->now, frame, len);
}

static uint32_t
qpn_of(const uint8_t *frame)
{
	const uint8_t *bth = frame + 14 + ((frame[12] << 8 | frame[13]) == 0x86dd ? 40 : 20) + 8;

	return (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
}

/* The connection of a frame for its peer (to_dut: for its QP of the product). */
static struct joint *
joint_of(struct run *r, const uint8_t *frame, bool to_dut)
{
	uint32_t qpn = qpn_of(frame);

	for (unsigned int i = 0; i < r->joints; i++) {
		const struct peer_cfg *c = &r->joint[i].peer.c;

		if ((to_dut ? c->other_qpn : c->qpn) == qpn)
			return &r->joint[i];
	}
	return NULL;
}

static void
count(struct run *r, struct joint *j, const struct pw *f)
{
	if (pw_is(f->op) & PWI_RESPONSE) {
		j->acks += f->op == PW_ACKNOWLEDGE;
		j->answers += f->op != PW_ACKNOWLEDGE;
		return;
	}
	r->asked++;
	if (pw_diff(f->psn, j->top) >= 0)
		j->top = pw_add(f->psn, f->op == PW_READ ? peer_packets(&j->peer, f->dmalen) : 1);
	else if (j->silent && f->ack && pw_add(f->psn, 1) == j->top)
		r->asks++; /* more requests were meant to follow, and could not: nobody would have answered */
	else
		r->repeated++;
	j->silent = !f->ack && pw_add(f->psn, 1) == j->top;
	if (r->line[TO_PEER].dead && ++j->sent[f->psn % 1024] > j->most)
		j->most = j->sent[f->psn % 1024];
}

/* A gap gets one NAK until its packet comes (IBTA 9.7.5.1.2 "sequence error"). */
static void
judge_nak(struct run *r, struct joint *j, const struct pw *f)
{
	if (f->op != PW_ACKNOWLEDGE || f->syn != PW_NAK_SEQ)
		return;
	if (j->nak_open && j->nak_psn == f->psn)
		run_wrong(r, "the gap before PSN %u was told twice, and nothing came in between",
			  f->psn);
	j->nak_open = true;
	j->nak_psn = f->psn;
}

/* A request refused for want of a receive waits for the time in the NAK (IBTA 9.7.5.2.8). */
static void
judge_rnr(struct run *r, struct joint *j, const struct pw *f)
{
	/* Where a response was lost, the product goes back for that, and continues from there. */
	if (!r->calm || (pw_is(f->op) & PWI_RESPONSE) || f->psn != j->rnr_psn)
		return;
	if (r->now > j->rnr_from && r->now < j->rnr_until)
		run_wrong(r, "PSN %u was sent again %llu ns before the receiver wanted it", f->psn,
			  (unsigned long long)(j->rnr_until - r->now));
}

/* A frame arrives at the product. */
static void
heard(struct run *r, struct joint *j, const uint8_t *frame, size_t len)
{
	const struct peer_cfg *c = &j->peer.c;
	struct pw f;

	/* A flipped bit may be one that the reader ignores. */
	if (pw_read(frame, len, &c->self, &c->other, &f)) {
		j->acks_due++;
		j->asked_of += peer_packets(&j->peer, FLOW_LEN);
		return;
	}
	if (!(pw_is(f.op) & PWI_RESPONSE)) {
		j->acks_due++;
		j->asked_of += f.op == PW_READ ? peer_packets(&j->peer, f.dmalen)
					       : !!(pw_is(f.op) & PWI_FETCH);
		j->nak_open = j->nak_open && f.psn != j->nak_psn;
		return;
	}
	if (f.op == PW_ACKNOWLEDGE && f.syn >> 5 == 1) {
		if (f.psn == j->rnr_psn && r->now < j->rnr_until)
			return; /* the product waits already */
		j->rnr_psn = f.psn;
		j->rnr_from = r->now + 30000; /* packets that the product has in hand go out */
		j->rnr_until = r->now + peer_rnr_ns(f.syn);
	} else if (pw_diff(f.psn, j->rnr_psn) >= 0) {
		j->rnr_until = 0;
	}
}

static void
dut_emits(void *ctx, const uint8_t *frame, size_t len)
{
	struct run *r = ctx;
	struct joint *j = joint_of(r, frame, false);
	struct pw f;

	note(r, "dut sends", frame, len, false);
	if (!j) {
		run_wrong(r, "the product sent a frame of %zu bytes to a QP that there is not",
			  len);
	} else if (!pw_read(frame, len, &j->peer.c.other, &j->peer.c.self, &f)) {
		count(r, j, &f);
		judge_nak(r, j, &f);
		judge_rnr(r, j, &f);
	}
	line_put(&r->line[TO_PEER], r->now, frame, len);
}

static void
deliver(struct run *r)
{
	const struct line_frame *f;

	while ((f = line_take(&r->line[TO_DUT], r->now))) {
		struct joint *j = joint_of(r, f->bytes, true);

		if (j)
			heard(r, j, f->bytes, f->len);
		dut_rx(r->dut, f->bytes, f->len);
	}
	while ((f = line_take(&r->line[TO_PEER], r->now))) {
		struct joint *j = joint_of(r, f->bytes, false);

		note(r, "peer gets", f->bytes, f->len, f->spoilt);
		if (j)
			peer_rx(&j->peer, r->now, f->bytes, f->len, f->spoilt);
	}
}

/* ---- the course of a run */

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Cut the wire once enough requests were posted. */
static void
maybe_cut(struct run *r)
{
	for (unsigned int i = 0; i < r->joints; i++)
		for (int way = 0; way < 2; way++) {
			struct flow *f = &r->joint[i].flow[way];

			if (f->error != FLOW_SILENT || f->cut || f->posted < f->error_at)
				continue;
			r->line[0].dead = r->line[1].dead = true;
			for (unsigned int k = 0; k < r->joints; k++) {
				flow_cut(&r->joint[k].flow[0], r->now);
				flow_cut(&r->joint[k].flow[1], r->now);
			}
			return;
		}
}

/* Run all programs and peers now. returns: ns: time of the next call */
static uint64_t
programs(struct run *r)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < r->joints; i++) {
		struct joint *j = &r->joint[i];

		for (int way = 0; way < 2; way++)
			next = earlier(next, flow_run(&j->flow[way], r->now));
		peer_turn(&j->peer, r->now);
		next = earlier(next, peer_due(&j->peer));
	}
	return next;
}

static bool
finished(const struct run *r)
{
	for (unsigned int i = 0; i < r->joints; i++)
		if (!flow_finished(&r->joint[i].flow[0]) || !flow_finished(&r->joint[i].flow[1]))
			return false;
	return true;
}

static void
stuck(struct run *r)
{
	for (unsigned int i = 0; i < r->joints; i++)
		for (int way = 0; way < 2; way++) {
			const struct flow *f = &r->joint[i].flow[way];

			if (!flow_finished(f))
				run_wrong(r,
					  "nothing moves any more; %s: %u of %u requests posted, "
					  "%u done, %u of %u "
					  "messages received",
					  f->name, f->posted, f->total, f->done, f->recvd, f->msgs);
		}
}

static void
course(struct run *r)
{
	const uint64_t limit = r->now + 200000000000ull;

	for (uint32_t turns = 0; !r->failed; turns++) {
		uint64_t next = programs(r);

		if (r->sc == RUN_ERRORS)
			maybe_cut(r);
		next = earlier(next, dut_due(r->dut));
		next = earlier(next, line_due(&r->line[TO_DUT]));
		next = earlier(next, line_due(&r->line[TO_PEER]));
		if (next == UINT64_MAX && !finished(r))
			stuck(r);
		if (next > limit && next != UINT64_MAX)
			run_wrong(r, "the run takes longer than 200 s of virtual time");
		if (turns == RUN_TURNS)
			run_wrong(r, "the run takes more than %d turns", RUN_TURNS);
		if (next == UINT64_MAX || r->failed)
			return;
		r->now = next > r->now ? next : r->now;
		deliver(r);
		if (dut_due(r->dut) <= r->now)
			dut_turn(r->dut, r->now, dut_emits, r);
	}
}

/* A requester gives up after all tries, each of its timeout (IBTA 9.7.6.1.3: up to 4 times that). */
static void
judge_patience(struct run *r, struct joint *j)
{
	const struct flow *f = &j->flow[TO_PEER];
	uint64_t from = f->posted_at > f->wrong_since ? f->posted_at : f->wrong_since;

	if (!f->cut || !f->failed)
		return;
	if (f->failed_at < f->wrong_since + j->retries * j->timeout)
		run_wrong(r,
			  "%s: given up %llu us after the wire was cut; %llu retries, timeout %llu "
			  "us",
			  f->name, (unsigned long long)(f->failed_at - f->wrong_since) / 1000,
			  (unsigned long long)j->retries, (unsigned long long)j->timeout / 1000);
	/* A repeat may come before each timeout, and another one of the newest request that asks for an ACK. */
	if (j->most > 2 * (j->retries + 1) + 2)
		run_wrong(r, "%s: a request was sent %u times after the wire was cut; %llu retries",
			  f->name, j->most, (unsigned long long)j->retries);
	if (f->failed_at > from + 4 * (j->retries + 1) * j->timeout + 20000000)
		run_wrong(r,
			  "%s: given up only %llu us after the last request; %llu retries, timeout "
			  "%llu us",
			  f->name, (unsigned long long)(f->failed_at - from) / 1000,
			  (unsigned long long)j->retries, (unsigned long long)j->timeout / 1000);
}

/* No request is answered more often than it asked for. */
static void
judge_answers(struct run *r, const struct joint *j)
{
	if (j->acks > j->acks_due || j->answers > j->asked_of)
		run_wrong(r,
			  "QP %u: %llu ACKs for %llu requests, %llu responses where %llu were "
			  "asked for",
			  j->i, (unsigned long long)j->acks, (unsigned long long)j->acks_due,
			  (unsigned long long)j->answers, (unsigned long long)j->asked_of);
}

static void
judge(struct run *r, const struct plan *p)
{
	if (p->perfect && r->repeated)
		run_wrong(r, "%llu requests were repeated, on a wire that loses nothing",
			  (unsigned long long)r->repeated);
	for (unsigned int i = 0; i < r->joints; i++) {
		struct joint *j = &r->joint[i];

		flow_judge(&j->flow[TO_DUT], dut_in_error(r->dut, i));
		flow_judge(&j->flow[TO_PEER], j->peer.failed);
		judge_patience(r, j);
		judge_answers(r, j);
	}
}

static void
add_stats(struct run *r, struct run_stats *st)
{
	st->runs++;
	st->failed += r->failed;
	st->asked += r->asked;
	st->repeated += r->repeated;
	for (int i = 0; i < 2; i++) {
		st->frames += r->line[i].carried;
		st->lost += r->line[i].lost;
	}
	for (unsigned int i = 0; i < r->joints; i++) {
		const struct peer_stats *p = &r->joint[i].peer.st;

		for (int way = 0; way < 2; way++) {
			st->requests += r->joint[i].flow[way].posted;
			st->messages += r->joint[i].flow[way].msgs;
			for (int e = 1; e <= PEER_OTHER; e++)
				st->errors += r->joint[i].flow[way].ends[e];
		}
		st->refused += p->ahead + p->rnr + p->full;
		st->seq_naks += p->seq_naks;
		st->rnr_naks += p->rnr_naks;
		st->timeouts += p->timeouts;
	}
	st->ns += r->now;
	st->calm_asked += r->calm ? r->asked : 0;
	st->calm_repeated += r->calm ? r->repeated : 0;
	for (int e = 0; e < FLOW_ERRORS; e++)
		st->fired[e] += r->fired[e];
}

bool
run_seed(struct run *r, enum run_scenario sc, uint64_t seed, FILE *trace, struct run_stats *st,
	 char why[RUN_WHY])
{
	struct plan p;
	const char *left;

	r->sc = sc;
	r->seed = seed;
	r->trace = trace;
	r->now = 1000000000;
	r->failed = false;
	r->asked = r->repeated = r->asks = 0;
	memset(r->fired, 0, sizeof(r->fired));
	r->why[0] = '\0';
	run_draw_plan(r, &p);
	r->calm = p.faults.drop == 0;
	run_open_lines(r, &p);
	run_open_dut(r, &p);
	r->joints = rnd(&p.rng, 3) ? 1 : rnd_from(&p.rng, 2, DUT_CONNS);
	for (unsigned int i = 0; i < r->joints; i++)
		run_open_joint(&r->joint[i], &p);
	course(r);
	if (!r->failed)
		judge(r, &p);
	for (unsigned int i = 0; i < 2 * r->joints; i++)
		flow_close(&r->joint[i / 2].flow[i % 2]);
	left = dut_close(r->dut);
	if (left)
		run_wrong(r, "%s", left);
	r->now -= 1000000000;
	add_stats(r, st);
	memcpy(why, r->why, RUN_WHY);
	return !r->failed;
}
