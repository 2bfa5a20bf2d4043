/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random peer: well-formed frames, with the right ICRC, whose opcodes, PSNs,
 * lengths, addresses and keys are nearly right, now and then wrong, from a
 * seed; and a program that posts, and errs, at the same time.
 * Rules for any input: no byte outside the region is touched (the probe's
 * guards), no buffer is lost, every frame sent is sound (the probe's
 * judge), every request completes once, in order, and the QP's accounts agree.
 */
#include "probe.h"

#include <stdlib.h>

enum { MTU = 256, STEPS = 4000 };

struct chaos {
	struct probe p;
	uint64_t rng;
	uint64_t sent, recvs; /* posted */
	uint64_t sent_done, recvs_done;
	uint32_t ends; /* times that the QP was ended */
	uint32_t care; /* one of this many choices is wrong */
	bool burst;    /* several frames a turn */
};

static uint32_t
rnd(struct chaos *c, uint32_t n)
{
	c->rng = c->rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(c->rng >> 33) % n;
}

static bool
often(struct chaos *c)
{
	return rnd(c, c->care) != 0;
}

/* A value about `base`: mostly base, sometimes one near it, seldom any value. */
static uint32_t
about(struct chaos *c, uint32_t base)
{
	if (often(c))
		return base;
	return rnd(c, 8) ? base + rnd(c, 16) - 8 : rnd(c, 1u << 24);
}

static uint32_t
some_key(struct chaos *c)
{
	const uint32_t key[] = {c->p.key_local,	   c->p.key_other, c->p.key_read, c->p.key ^ 1, 0,
				rnd(c, UINT32_MAX)};

	return often(c) ? c->p.key : key[rnd(c, 6)];
}

/* An address from which `len` bytes are mostly in the region. */
static uint64_t
some_va(struct chaos *c, uint32_t len)
{
	const uint64_t edge[] = {PROBE_VA - 1,
				 PROBE_VA + PROBE_LEN - len + 1,
				 0,
				 UINT64_MAX - len,
				 UINT64_MAX,
				 PROBE_VA + PROBE_LEN};

	return often(c) ? PROBE_VA + rnd(c, (PROBE_LEN - len) / 8) * 8ull : edge[rnd(c, 6)];
}

static uint32_t
some_len(struct chaos *c)
{
	static const uint32_t len[] = {0, 1, 3, 8, 255, 256, 257, 512, 1000, 4096};

	return len[rnd(c, 10)];
}

/* ---- the peer */

/* An opcode that mostly may follow in the responder's state. */
static uint8_t
some_request(struct chaos *c)
{
	static const uint8_t begin[] = {SEND_FIRST, SEND_ONLY,	    SEND_ONLY_IMM, WRITE_FIRST,
					WRITE_ONLY, WRITE_ONLY_IMM, READ_REQ,	   CMP_SWAP,
					FETCH_ADD,  SEND_ONLY_INV};
	static const uint8_t send[] = {SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_LAST_INV};
	static const uint8_t write[] = {WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM};
	const struct urn_qp *qp = c->p.qp;

	if (!often(c))
		return (uint8_t)rnd(c, 0x18);
	if (qp->msg == URN_MSG_WRITE)
		return write[qp->msg_len - qp->msg_off > MTU ? 0 : 1 + rnd(c, 2)];
	return qp->msg == URN_MSG_SEND ? send[rnd(c, c->care * 2) ? rnd(c, 3) : 3]
				       : begin[rnd(c, c->care * 4) ? rnd(c, 9) : 9];
}

static uint32_t
payload_of(struct chaos *c, uint8_t op, uint32_t length)
{
	const struct urn_qp *qp = c->p.qp;

	if (!often(c))
		return rnd(c, 2 * MTU);
	switch (op) {
	case SEND_FIRST:
	case SEND_MIDDLE:
	case WRITE_FIRST:
	case WRITE_MIDDLE:
	case READ_FIRST:
	case READ_MIDDLE:
		return MTU;
	case WRITE_ONLY:
	case WRITE_ONLY_IMM:
		return length % FRAME_DATA;
	case WRITE_LAST:
	case WRITE_LAST_IMM:
		return qp->msg_len - qp->msg_off <= MTU ? qp->msg_len - qp->msg_off : 1;
	case READ_REQ:
	case CMP_SWAP:
	case FETCH_ADD:
	case ACK:
	case ATOMIC_ACK:
		return 0;
	default:
		return 1 + rnd(c, MTU);
	}
}

static void
request(struct chaos *c)
{
	struct frame f = frame_of(some_request(c), about(c, c->p.qp->rx.epsn));

	if (rnd(c, 6) == 0)
		f.psn = (c->p.qp->rx.epsn - 1 - rnd(c, 6)) & 0xffffff; /* a duplicate */
	f.length = f.op == WRITE_FIRST ? MTU + 1 + rnd(c, 1000) : some_len(c);
	if (f.op == WRITE_ONLY || f.op == WRITE_ONLY_IMM)
		f.length %= MTU + 1;
	if (!rnd(c, c->care * 10))
		f.length = rnd(c, UINT32_MAX);
	f.len = payload_of(c, f.op, f.length);
	if (c->p.cfg.type == URN_QPT_UC && often(c))
		f.op |= UC;
	f.va = some_va(c, f.length < 5000 ? f.length : 5000);
	f.rkey = some_key(c);
	f.swap = rnd(c, 100);
	f.compare = rnd(c, 2);
	f.imm = rnd(c, 2) ? c->p.key : rnd(c, UINT32_MAX);
	f.ack = rnd(c, 2);
	f.se = rnd(c, 2);
	f.pkey = often(c) ? 0xffff : (uint16_t)rnd(c, 65536);
	probe_put(&c->p, &f);
}

static void
response(struct chaos *c)
{
	static const uint8_t syn[] = {SYN_ACK, SYN_ACK, SYN_ACK, SYN_ACK, SYN_ACK,
				      SYN_ACK, SYN_ACK, 5,	 NAK_SEQ, SYN_RNR + 1};
	const struct urn_qp *qp = c->p.qp;
	const struct urn_work *w = qp->tx.fetch;
	/* Mostly no further than a READ that waits: responses behind it say that it was lost. */
	uint32_t to = w && often(c) ? w->first_psn + w->accepted : qp->tx.next;
	uint32_t out = (to - qp->tx.una) & 0xffffff;
	struct frame f = frame_of(ACK, about(c, qp->tx.una + rnd(c, out + 1) - 1));

	f.syn = often(c) ? syn[rnd(c, 10)] : (uint8_t)rnd(c, 256);
	f.msn = about(c, qp->tx.ssn);
	if (w && rnd(c, 4)) {
		bool last = w->accepted + 1 == w->npsn, first = w->accepted == 0;

		f.psn = about(c, w->first_psn + w->accepted) & 0xffffff;
		f.op = w->opcode != URN_WR_RDMA_READ ? ATOMIC_ACK
		       : last			     ? first ? READ_ONLY : READ_LAST
		       : first			     ? READ_FIRST
						     : READ_MIDDLE;
		f.syn = SYN_ACK;
		f.len = f.op == ATOMIC_ACK ? 0 : last ? w->length - w->accepted * MTU : MTU;
		if (!rnd(c, c->care * 5))
			f.op = (uint8_t)(READ_FIRST + rnd(c, 6));
		if (!rnd(c, c->care * 5))
			f.len = payload_of(c, f.op, 0);
	}
	f.psn &= 0xffffff;
	f.len = f.op == ACK || f.op == ATOMIC_ACK ? 0 : f.len;
	probe_put(&c->p, &f);
}

static void
datagram(struct chaos *c)
{
	struct frame f = frame_of(often(c) ? UD_SEND : UD_SEND_IMM, rnd(c, 1u << 24));

	f.qkey = often(c) ? PROBE_QKEY : rnd(c, UINT32_MAX);
	f.sqpn = rnd(c, UINT32_MAX);
	f.len = rnd(c, FRAME_DATA);
	probe_put(&c->p, &f);
}

/* ---- the program */

static void
post_send(struct chaos *c)
{
	static const uint8_t ops[] = {URN_WR_SEND,	     URN_WR_SEND_IMM,  URN_WR_RDMA_WRITE,
				      URN_WR_RDMA_WRITE_IMM, URN_WR_RDMA_READ, URN_WR_CMP_SWAP,
				      URN_WR_FETCH_ADD,	     URN_WR_SEND_INV,  URN_WR_LOCAL_INV};
	uint8_t op = ops[rnd(c, c->care * 5) ? rnd(c, 8) : 8];
	uint32_t len = op == URN_WR_CMP_SWAP || op == URN_WR_FETCH_ADD ? 8 : some_len(c);
	struct urn_abi_swqe *w;
	struct urn_abi_sge *sge;

	if (c->sent - c->sent_done >= PROBE_SLOTS)
		return;
	if (c->p.cfg.type == URN_QPT_UD)
		op = ops[rnd(c, 2)];
	probe_prepare(&c->p, op, URN_WRF_SIGNALED, 0, len, 8 * rnd(c, 100), c->sent++);
	w = probe_slot(&c->p);
	sge = (void *)(w + 1);
	if (rnd(c, 10) == 0)
		w->flags |= URN_WRF_FENCE;
	if (rnd(c, 10) == 0 && len <= 64 && op <= URN_WR_SEND_IMM)
		w->flags |= URN_WRF_INLINE;
	if (len)
		sge->addr =
			rnd(c, c->care * 8) ? PROBE_VA + rnd(c, PROBE_LEN - len) : some_va(c, len);
	if (!rnd(c, c->care * 10))
		sge->lkey = some_key(c);
	if (!rnd(c, c->care * 20))
		w->num_sge = (uint8_t)rnd(c, 256);
	if (rnd(c, 3))
		probe_ring(&c->p);
}

static void
post_recv(struct chaos *c)
{
	uint32_t len = rnd(c, c->care * 2) ? 5000 : some_len(c);

	if (c->recvs - c->recvs_done < PROBE_SLOTS)
		probe_recv(&c->p, rnd(c, PROBE_LEN - len), len, c->recvs++);
}

/* Every request completes once, in order. */
static void
completions(struct chaos *c)
{
	struct probe *p = &c->p;

	for (; p->scq_seen != p->scq.prod; c->sent_done++) {
		p->scq_seen++;
		assert_int_equal(probe_cqe(p, false)->wr_id, c->sent_done);
	}
	for (; p->rcq_seen != p->rcq.prod; c->recvs_done++) {
		p->rcq_seen++;
		assert_int_equal(probe_cqe(p, true)->wr_id, c->recvs_done);
	}
	atomic_store(&p->scq.hdr->cons, p->scq_seen);
	atomic_store(&p->rcq.hdr->cons, p->rcq_seen);
	assert_true(c->sent_done <= c->sent && c->recvs_done <= c->recvs);
}

/* ---- accounts */

static void
requester_agrees(const struct urn_qp *qp)
{
	uint32_t fetches = 0, psn = 0;
	bool any = false;

	assert_true(urn_psn_diff(qp->tx.cur.psn, qp->tx.una) >= 0);
	assert_true(urn_psn_diff(qp->tx.next, qp->tx.cur.psn) >= 0);
	for (const struct urn_work *w = qp->tx.head; w; w = w->next) {
		if (any)
			assert_int_equal(w->first_psn, psn);
		psn = urn_psn_add(w->first_psn, w->npsn);
		any = true;
		if (urn_work_is_fetch(w) && w->npsn) {
			assert_true(w->placed <= w->accepted && w->accepted <= w->npsn);
			fetches += w->state == URN_WORK_SENT || w->state == URN_WORK_DONE ||
				   w->state == URN_WORK_BROKEN;
		}
	}
	assert_true(!any || urn_psn_diff(psn, qp->tx.next) >= 0); /* all that was sent belongs to work */
	assert_int_equal(fetches, qp->tx.fetch_out);
	assert_true(fetches <= qp->tx.max_fetch);
}

static void
agrees(struct chaos *c)
{
	const struct urn_qp *qp = c->p.qp;
	uint32_t kept = 0, pending = 0, last = qp->rx.epsn;

	for (struct rte_mbuf *m = qp->rx.ooo ? urn_pkt(qp->rx.ooo)->next : NULL; m;
	     m = m == qp->rx.ooo ? NULL : urn_pkt(m)->next, kept++) {
		assert_true(urn_psn_diff(urn_pkt(m)->psn, last) > 0);
		last = urn_pkt(m)->psn;
	}
	assert_int_equal(kept, qp->rx.ooo_count);
	assert_int_equal(kept, c->p.tp->kept);
	for (uint32_t i = 0; qp->rec && i <= qp->rec_mask; i++)
		pending += qp->rec[i].pending;
	assert_int_equal(pending, qp->rec_pending);
	if (qp->type == URN_QPT_RC && (qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD))
		requester_agrees(qp);
}

/* ---- the course of it */

/* After any input, a QP that has refused nothing answers a duplicate. */
static void
answers(struct chaos *c)
{
	struct probe *p = &c->p;
	bool found = false;
	uint32_t psn;

	p->neigh = 0;
	probe_pass(p, 2000000, 500000); /* packets that wait for the peer's address ask again */
	psn = (p->qp->rx.epsn - 1) & 0xffffff;
	if (p->cfg.type != URN_QPT_RC || p->qp->state == URN_QPS_ERR)
		return;
	/* The frame is no copy of the packet executed there, which must not be remembered (transport/kept.h). */
	urn_trace_end(p->tp, p->qp);
	p->looked = p->seen_n;
	probe_send(p, SEND_ONLY, psn, 0, 0);
	probe_settle(p);
	for (; p->looked != p->seen_n; p->looked++) {
		const struct frame *f = &p->seen[p->looked % PROBE_SEEN];

		found |= f->op == ACK && f->syn == SYN_ACK && f->psn == psn;
	}
	assert_true(found);
}

/* Expect that all posted requests are flushed; then restart the QP. */
static void
end(struct chaos *c)
{
	answers(c);
	probe_state(&c->p, URN_QPS_ERR);
	probe_ring(&c->p);
	probe_pass(&c->p, 2000000, 1000000);
	completions(c);
	assert_int_equal(c->sent_done, c->sent);
	assert_int_equal(c->recvs_done, c->recvs);
	agrees(c);
	probe_reconnect(&c->p);
	c->ends++;
}

static void
step(struct chaos *c)
{
	struct probe *p = &c->p;
	uint32_t what = rnd(c, 100);
	bool rc = p->cfg.type == URN_QPT_RC, uc = p->cfg.type == URN_QPT_UC;

	if (what < 35)
		rc || uc ? request(c) : datagram(c);
	else if (what < 55)
		rc ? response(c) : uc ? request(c) : datagram(c);
	else if (what < 70)
		post_send(c);
	else if (what < 85)
		post_recv(c);
	else if (what < 86)
		p->hold = !p->hold && p->cfg.delay_seed;
	else if (what < 87)
		p->neigh = -(int)rnd(c, 2);
	if (p->in_n == URN_TP_BURST || !c->burst || rnd(c, 3) == 0)
		probe_turn(p, rnd(c, 50) ? rnd(c, 1000) : rnd(c, 3000000));
	p->looked = p->seen_n;
	completions(c);
	agrees(c);
	if (p->qp->state == URN_QPS_RTS && rnd(c, 200) == 0)
		probe_state(p, URN_QPS_SQD);
	else if (p->qp->state == URN_QPS_SQD && rnd(c, 50) == 0)
		probe_state(p, URN_QPS_RTS);
	if (p->qp->state >= URN_QPS_SQE || !rnd(c, c->care * 50)) {
		p->hold = false;
		end(c);
	}
}

static void
run(uint64_t seed, uint8_t type, struct chaos *c)
{
	struct probe_config cfg = {
		.mtu = MTU,
		.type = type,
		.window = 4u << seed % 4,
		.kept = seed % 3 ? 64 : 5,
		.ipv6 = seed & 1,
		.delay_seed = seed & 2 ? seed : 0,
		.delay_percent = 60,
		.fail_per_million = seed & 4 ? 3000 : 0,
		.timeout = seed & 8 ? 6 : 0,
		.retry_cnt = 5,
		.rnr_retry = seed & 16 ? 7 : 3,
		.work = seed % 5 ? 0 : 12,
	};

	memset(c, 0, sizeof(*c));
	c->rng = seed;
	c->care = seed % 3 == 0 ? 12 : seed % 3 == 1 ? 100 : 1000;
	c->burst = seed % 4 == 0;
	probe_open(&c->p, &cfg);
	for (unsigned int i = 0; i < STEPS; i++)
		step(c);
	c->p.hold = false;
	end(c);
	assert_true(c->p.tp->c.v[URN_C_RX_ROCE] > STEPS / 4);
	print_message("seed %u: %u sends, %u receives, %u frames, the QP ended %u times\n",
		      (unsigned int)seed, (unsigned int)c->sent, (unsigned int)c->recvs,
		      c->p.seen_n, c->ends);
	probe_close(&c->p);
}

/* Number of seeds: URNIC_TEST_SEEDS, for a long run, or the usual number. */
static uint64_t
seeds(uint64_t usual)
{
	const char *n = getenv("URNIC_TEST_SEEDS");

	return n ? strtoull(n, NULL, 10) : usual;
}

static void
rc(void **state)
{
	static struct chaos c;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds(64); seed++)
		run(seed, URN_QPT_RC, &c);
}

static void
ud(void **state)
{
	static struct chaos c;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds(16); seed++)
		run(seed, URN_QPT_UD, &c);
}

static void
uc(void **state)
{
	static struct chaos c;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds(24); seed++)
		run(seed, URN_QPT_UC, &c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rc),
		cmocka_unit_test(ud),
		cmocka_unit_test(uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
