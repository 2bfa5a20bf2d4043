/* SPDX-License-Identifier: BSD-3-Clause */
/* The opening of a run: parameters from the seed, the wire, the product, its peers and their flows.
 */
#include "run_priv.h"

#include <string.h>

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
	if (p->perfect || p->error == FLOW_SILENT || p->error == FLOW_NO_RECEIVE ||
	    (r->sc >= RUN_RNR && rnd(rng, 3) == 0))
		return;
	f->drop = rnd(rng, 8) ? rnd(rng, 30000) : rnd(rng, 60000);
	if (r->sc != RUN_MESS)
		return;
	f->dup = rnd(rng, 2) ? rnd(rng, 50000) : 0;
	f->reorder = rnd(rng, 2) ? rnd(rng, 50000) : 0;
	f->spoil = rnd(rng, 2) ? rnd(rng, 10000) : 0;
}

void
run_draw_plan(struct run *r, struct plan *p)
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

void
run_open_lines(struct run *r, struct plan *p)
{
	uint64_t delay = rnd_from(&p->rng, 500, 20000),
		 jitter = rnd(&p->rng, 2) ? rnd(&p->rng, 5000) : 0;
	uint64_t ps_byte = rnd_from(&p->rng, 80, 800); /* 100 to 10 Gbit/s */

	for (int i = 0; i < 2; i++)
		line_open(&r->line[i], &p->faults, delay, jitter, ps_byte,
			  rnd_of(r->seed, 2 + (uint64_t)i + r->sc * 100));
}

void
run_open_dut(struct run *r, struct plan *p)
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
	f->wrong = run_wrong;
	snprintf(j->name[way], sizeof(j->name[way]), "QP %u to the %s", j->i,
		 way ? "peer" : "product");
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
		.emit = run_peer_emits,
		.done = peer_done,
		.received = peer_received,
		.wrong = run_peer_wrong,
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

void
run_open_joint(struct joint *j, struct plan *p)
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
	*side = (struct flow_side){.ctx = j,
				   .ram = j->ram,
				   .va = pc.va,
				   .key = pc.key,
				   .key_read = pc.key_read,
				   .post = peer_posts,
				   .post_recv = peer_posts_recv,
				   .invs = PEER_KEYS};
	for (uint32_t i = 0; i < PEER_KEYS; i++)
		side->inv[i] = j->peer.key[i] = 0x800000 + (i << 8) + rnd(&p->rng, 256);
	open_flow(j, p, TO_DUT);
	open_flow(j, p, TO_PEER);
	dut_flows(j->r->dut, j->i, &j->flow[TO_PEER], &j->flow[TO_DUT]);
}
