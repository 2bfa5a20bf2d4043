/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include "line.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TO_DUT, TO_PEER };

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

/* One connection: a peer of its own, and a flow each way. */
struct joint {
	struct run *r;
	unsigned int i;
	struct peer peer;
	struct flow flow[2];          /* by direction: TO_DUT, TO_PEER */
	struct flow_side side[2];     /* the product's side, the peer's */
	uint8_t *ram;                 /* the peer's memory */
	uint32_t top;                 /* PSN after the newest request of the product */
	bool silent;                  /* that request did not ask for an ACK */
	uint32_t nak_psn;             /* the gap of the product's last NAK */
	bool nak_open;                /* ... and that PSN has not come since */
	uint32_t rnr_psn;             /* the request that the product must delay */
	uint64_t rnr_from, rnr_until; /* ns */
	uint64_t timeout, retries;    /* settings of the product; timeout in ns */
	uint64_t asked_of, answers;   /* frames that the product may answer with; those it sent */
	uint64_t acks_due, acks;      /* the same for ACKs and NAKs */
	uint32_t most;                /* largest count of one PSN's packets since the wire was cut */
	uint16_t sent[1024];          /* the count for each PSN, by its low bits */
	char name[2][32];
};

struct run {
	struct dut *dut;
	struct joint joint[DUT_CONNS];
	unsigned int joints;
	struct line line[2];          /* by direction */
	enum run_scenario sc;
	uint64_t seed, now;
	uint64_t asked, repeated, asks;
	uint64_t fired[FLOW_ERRORS];
	bool calm;                    /* the wire loses nothing */
	bool failed;
	char why[RUN_WHY];
	FILE *trace;
};

/* A scenario's parameters, from the seed. */
struct plan {
	struct rnd rng;
	uint32_t mtu, max_len, ops;
	bool v6, perfect;
	bool reads;            /* the product reads large messages from a slow peer */
	struct line_faults faults;
	struct pw_addr dut, peer;
	enum flow_error error; /* the flow of the error */
	int error_way;
};

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

static void __attribute__((format(printf, 2, 3)))
wrong(void *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwrong(ctx, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
peer_wrong(void *ctx, const char *fmt, ...)
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

static void
peer_emits(void *ctx, const uint8_t *frame, size_t len)
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

/* The connection whose peer (to_dut: whose QP of the product) a frame is for. */
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
		wrong(r, "the gap before PSN %u was told twice, and nothing came in between", f->psn);
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
		wrong(r, "PSN %u was sent again %llu ns before the receiver wanted it", f->psn,
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
		wrong(r, "the product sent a frame of %zu bytes to a QP that there is not", len);
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

/* ---- the peer's programs */

static void
peer_done(void *ctx, const struct peer_wr *wr, enum peer_end end)
{
	struct joint *j = ctx;

	flow_sent(&j->flow[TO_DUT], j->r->now, wr->id, end);
}

static void
peer_received(void *ctx, const struct peer_recv *recv)
{
	struct joint *j = ctx;

	flow_received(&j->flow[TO_PEER], j->r->now, recv);
}

static void
peer_posts(void *ctx, const struct peer_wr *wr, bool signalled)
{
	struct joint *j = ctx;

	(void)signalled; /* every request is signalled */
	peer_post(&j->peer, j->r->now, wr);
}

static void
peer_posts_recv(void *ctx, uint64_t id, uint32_t at, uint32_t room)
{
	struct joint *j = ctx;

	peer_post_recv(&j->peer, id, at, room);
}

/* ---- opening */

static uint32_t
some_psn(struct rnd *rng)
{
	return rnd(rng, 3) ? (0x1000000 - rnd(rng, 200)) & PW_PSN_MASK : rnd(rng, 0x1000000);
}

static void
draw_faults(struct run *r, struct plan *p)
{
	struct line_faults *f = &p->faults;
	struct rnd *rng = &p->rng;

	memset(f, 0, sizeof(*f));
	p->perfect = r->sc == RUN_PERFECT;
	if (r->sc == RUN_ERRORS) {
		p->error = 1 + rnd(rng, FLOW_ERRORS - 1);
		p->error_way = (int)rnd(rng, 2);
	}
	if (p->perfect || p->error == FLOW_SILENT || p->error == FLOW_NO_RECEIVE || (r->sc >= RUN_RNR && rnd(rng, 3) == 0))
		return;
	f->drop = rnd(rng, 8) ? rnd(rng, 30000) : rnd(rng, 60000);
	if (r->sc != RUN_MESS)
		return;
	f->dup = rnd(rng, 2) ? rnd(rng, 50000) : 0;
	f->reorder = rnd(rng, 2) ? rnd(rng, 50000) : 0;
	f->spoil = rnd(rng, 2) ? rnd(rng, 10000) : 0;
}

static void
draw_plan(struct run *r, struct plan *p)
{
	static const uint32_t lens[] = {100, 5000, 5000, FLOW_LEN};
	static const uint8_t v6[15] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0};

	memset(p, 0, sizeof(*p));
	p->rng = rnd_of(r->seed, 1 + r->sc * 100);
	p->mtu = 256u << rnd(&p->rng, 5);
	p->max_len = lens[rnd(&p->rng, 4)];
	p->ops = rnd_from(&p->rng, 15, 60);
	p->v6 = rnd(&p->rng, 2);
	p->dut.v6 = p->peer.v6 = p->v6;
	p->dut.mac[0] = p->peer.mac[0] = 2;
	p->dut.mac[5] = 1;
	p->peer.mac[5] = 2;
	if (p->v6) {
		memcpy(p->dut.ip, v6, 15);
		memcpy(p->peer.ip, v6, 15);
		p->dut.ip[15] = 1;
		p->peer.ip[15] = 2;
	} else {
		memcpy(p->dut.ip, (uint8_t[]){10, 0, 0, 1}, 4);
		memcpy(p->peer.ip, (uint8_t[]){10, 0, 0, 2}, 4);
	}
	p->reads = r->sc == RUN_SLOW && rnd(&p->rng, 3) == 0;
	if (p->reads)
		p->max_len = FLOW_LEN;
	draw_faults(r, p);
}

static void
open_lines(struct run *r, struct plan *p)
{
	uint64_t delay = rnd_from(&p->rng, 500, 20000), jitter = rnd(&p->rng, 2) ? rnd(&p->rng, 5000) : 0;
	uint64_t ps_byte = rnd_from(&p->rng, 80, 800); /* 100 to 10 Gbit/s */

	for (int i = 0; i < 2; i++)
		line_open(&r->line[i], &p->faults, delay, jitter, ps_byte,
			  rnd_of(r->seed, 2 + (uint64_t)i + r->sc * 100));
}

static void
open_dut(struct run *r, struct plan *p)
{
	static const uint32_t windows[] = {16, 64, 128, 256};
	struct rnd *rng = &p->rng;
	struct dut_cfg c = {
		.self = p->dut,
		.other = p->peer,
		.window = windows[rnd(rng, 4)],
		.kept = rnd(rng, 4) ? 256 : 5,
		.work = rnd(rng, 4) ? 512 : 16,
		.rto_floor = rnd(rng, 4) ? 4000000 : 0,
		.rng = rnd_of(r->seed, 5 + r->sc * 100),
	};

	if (r->sc == RUN_LATE) {
		c.foreign = rnd(rng, 2);
		c.gate = rnd_from(rng, 4, 60);
		c.late_seed = c.foreign ? 0 : r->seed + 1;
	}
	dut_open(r->dut, &c, r->now);
}

static void
open_flow(struct joint *j, struct plan *p, int way)
{
	struct flow *f = &j->flow[way];
	struct rnd *rng = &p->rng;

	memset(f, 0, sizeof(*f));
	f->from = &j->side[!way];
	f->to = &j->side[way];
	f->rng = rnd_of(j->r->seed, 10 + j->i * 2 + (uint64_t)way + j->r->sc * 100);
	f->total = p->ops;
	f->max_len = p->max_len;
	for (int i = 0; i < PEER_KINDS; i++)
		f->weight[i] = (uint8_t)(rnd(rng, 4) ? rnd(rng, 8) : 0);
	f->weight[PEER_SEND] += f->weight[PEER_SEND_INV] / 4;
	f->weight[rnd(rng, PEER_KINDS)] += 4;
	if (p->reads && way == TO_PEER) {
		memset(f->weight, 0, sizeof(f->weight));
		f->weight[PEER_READ] = 1;
		f->exact = true;
	}
	f->late_recvs = j->r->sc == RUN_RNR;
	f->fences = rnd(rng, 2);
	f->pause = rnd(rng, 4) ? rnd_from(rng, 1, 20000) : 1000000;
	f->burst = rnd_from(rng, 1, 8);
	f->other = &j->flow[!way];
	f->lossy = p->faults.drop;
	if (p->error && way == p->error_way && j->i == 0) {
		f->error = p->error;
		f->error_at = rnd_from(rng, 1, 8);
		j->r->fired[p->error]++;
	}
	f->ctx = j->r;
	f->wrong = wrong;
	snprintf(j->name[way], sizeof(j->name[way]), "QP %u to the %s", j->i, way ? "peer" : "product");
	f->name = j->name[way];
	flow_open(f);
}

static void
draw_product(const struct run *r, struct plan *p, unsigned int i, struct dut_conn_cfg *c)
{
	struct rnd *rng = &p->rng;
	bool patient = p->perfect || r->sc == RUN_SLOW;

	*c = (struct dut_conn_cfg){
		.mtu = p->mtu,
		.peer_qpn = 0x2001 + i * 0x111,
		.sq_psn = some_psn(rng),
		.rq_psn = some_psn(rng),
		.timeout = (uint8_t)(patient ? rnd_from(rng, 14, 18) : rnd_from(rng, 11, 14)),
		.retry_cnt = (uint8_t)(p->error == FLOW_SILENT ? rnd_from(rng, 1, 7) : 7),
		.rnr_retry = (uint8_t)(p->error == FLOW_NO_RECEIVE ? rnd_from(rng, 1, 6) : 7),
		.rnr_code = (uint8_t)rnd_from(rng, 1, 14),
		.max_rd = (uint8_t)(p->reads ? 16 : rnd_from(rng, 1, 16)),
		.max_dest_rd = (uint8_t)rnd_from(rng, 1, 16),
	};
}

/* Addresses of a peer, and the parameters that it must agree on with the product. */
static void
introduce(struct joint *j, const struct plan *p, const struct dut_conn_cfg *dc, struct peer_cfg *c)
{
	*c = (struct peer_cfg){
		.self = p->peer,
		.other = p->dut,
		.qpn = dc->peer_qpn,
		.mtu = dc->mtu,
		.sq_psn = dc->rq_psn,
		.rq_psn = dc->sq_psn,
		.ram = j->ram,
		.va = 0x7700000000 + ((uint64_t)j->i << 32),
		.ram_len = FLOW_RAM,
		.key = 0x1234500 + j->i,
		.key_read = 0x5432100 + j->i,
		.max_dest_rd = dc->max_rd,
		.stale = j->r->sc == RUN_LATE,
		.perfect = p->perfect,
		.ctx = j,
		.emit = peer_emits,
		.done = peer_done,
		.received = peer_received,
		.wrong = peer_wrong,
	};
}

static void
draw_peer(struct joint *j, struct plan *p, const struct dut_conn_cfg *dc, struct peer_cfg *c)
{
	struct rnd *rng = &p->rng;

	introduce(j, p, dc, c);
	c->sport = (uint16_t)(0xc000 + rnd(rng, 0x4000));
	c->max_rd = rnd_from(rng, 1, dc->max_dest_rd);
	c->window = rnd(rng, 3) ? rnd_from(rng, 4, 128) : 1;
	c->ack_every = rnd_from(rng, 1, 32);
	c->timeout = p->perfect ? 500000000 : rnd_from(rng, 2000000, 20000000);
	c->retries = p->error ? 7 : 100000;
	c->rnr_retries = p->error == FLOW_NO_RECEIVE ? rnd_from(rng, 1, 6) : 7;
	c->rnr_code = rnd_from(rng, 1, 14);
	c->service = j->r->sc == RUN_SLOW ? rnd_from(rng, 500, 30000) : 0;
	if (p->reads) { /* all READs in flight within 50 ms: less than the timeout */
		c->service = 25000000 / (dc->max_rd * ((FLOW_LEN + p->mtu - 1) / p->mtu));
		c->wake = rnd(rng, 25000000);
	}
	c->ack_delay = rnd(rng, 2) ? rnd(rng, 20000) : 0;
	c->ack_all = rnd(rng, 2);
	c->mig = rnd(rng, 2);
	c->credits = rnd(rng, 3) == 0;
}

static void
open_joint(struct joint *j, struct plan *p)
{
	struct flow_side *side = &j->side[TO_PEER];
	struct dut_conn_cfg dc;
	struct peer_cfg pc;

	draw_product(j->r, p, j->i, &dc);
	draw_peer(j, p, &dc, &pc);
	j->top = dc.sq_psn;
	j->silent = j->nak_open = false;
	j->rnr_psn = dc.sq_psn;
	j->rnr_from = j->rnr_until = 0;
	j->timeout = 4096ull << dc.timeout;
	j->retries = dc.retry_cnt;
	j->asked_of = j->answers = j->acks_due = j->acks = 0;
	j->most = 0;
	memset(j->sent, 0, sizeof(j->sent));
	pc.other_qpn = dut_connect(j->r->dut, j->i, &dc, &j->side[TO_DUT]);
	peer_open(&j->peer, &pc, j->r->now);
	*side = (struct flow_side){.ctx = j, .ram = j->ram, .va = pc.va, .key = pc.key,
				   .key_read = pc.key_read, .post = peer_posts,
				   .post_recv = peer_posts_recv, .invs = PEER_KEYS};
	for (uint32_t i = 0; i < PEER_KEYS; i++)
		side->inv[i] = j->peer.key[i] = 0x800000 + (i << 8) + rnd(&p->rng, 256);
	open_flow(j, p, TO_DUT);
	open_flow(j, p, TO_PEER);
	dut_flows(j->r->dut, j->i, &j->flow[TO_PEER], &j->flow[TO_DUT]);
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
				wrong(r, "nothing moves any more; %s: %u of %u requests posted, %u done, %u of %u "
				      "messages received", f->name, f->posted, f->total, f->done, f->recvd,
				      f->msgs);
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
			wrong(r, "it takes longer than 200 s of virtual time");
		if (turns == RUN_TURNS)
			wrong(r, "it takes more than %d turns", RUN_TURNS);
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
		wrong(r, "%s: given up %llu us after the wire was cut; %llu retries, timeout %llu us", f->name,
		      (unsigned long long)(f->failed_at - f->wrong_since) / 1000,
		      (unsigned long long)j->retries, (unsigned long long)j->timeout / 1000);
	/* A repeat may come before each timeout, and another one of the newest request that asks for an ACK. */
	if (j->most > 2 * (j->retries + 1) + 2)
		wrong(r, "%s: a request was sent %u times after the wire was cut; %llu retries", f->name,
		      j->most, (unsigned long long)j->retries);
	if (f->failed_at > from + 4 * (j->retries + 1) * j->timeout + 20000000)
		wrong(r, "%s: given up only %llu us after the last request; %llu retries, timeout %llu us",
		      f->name, (unsigned long long)(f->failed_at - from) / 1000,
		      (unsigned long long)j->retries, (unsigned long long)j->timeout / 1000);
}

/* No request is answered more often than it asked for. */
static void
judge_answers(struct run *r, const struct joint *j)
{
	if (j->acks > j->acks_due || j->answers > j->asked_of)
		wrong(r, "QP %u: %llu ACKs for %llu requests, %llu responses where %llu were asked for", j->i,
		      (unsigned long long)j->acks, (unsigned long long)j->acks_due,
		      (unsigned long long)j->answers, (unsigned long long)j->asked_of);
}

static void
judge(struct run *r, const struct plan *p)
{
	if (p->perfect && r->repeated)
		wrong(r, "%llu requests were repeated, on a wire that loses nothing",
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
	draw_plan(r, &p);
	r->calm = p.faults.drop == 0;
	open_lines(r, &p);
	open_dut(r, &p);
	r->joints = rnd(&p.rng, 3) ? 1 : rnd_from(&p.rng, 2, DUT_CONNS);
	for (unsigned int i = 0; i < r->joints; i++)
		open_joint(&r->joint[i], &p);
	course(r);
	if (!r->failed)
		judge(r, &p);
	for (unsigned int i = 0; i < 2 * r->joints; i++)
		flow_close(&r->joint[i / 2].flow[i % 2]);
	left = dut_close(r->dut);
	if (left)
		wrong(r, "%s", left);
	r->now -= 1000000000;
	add_stats(r, st);
	memcpy(why, r->why, RUN_WHY);
	return !r->failed;
}
