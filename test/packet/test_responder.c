/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that the responder refuses or drops, and how (doc/reference/wire.md "Lengths", "BTH",
 * "Errors at the requester"): each drop under its own counter, each NAK in its
 * turn, and the QP in the state that belongs to it.
 */
#include "probe.h"

/* The program's side after a refusal: receives and sends end, and the event tells. */
static void
ended(struct probe *p, const char *file, int line)
{
	probe_silent(p, file, line);
	if (p->qp->state != URN_QPS_ERR || p->tp->kept != 0) {
		print_error("the QP is in %s\n", urn_qp_state_name(p->qp->state));
		_fail(file, line);
	}
}
#define expect_ended(p) ended(p, __FILE__, __LINE__)

/* ---- receiver not ready */

/* SEND only and first without a receive: RNR NAK with our code, nothing is lost. */
static void
no_receive(void **state)
{
	(void)state;
	for (int srq = 0; srq < 2; srq++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.min_rnr_timer = 14, .srq = srq});
		probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
		expect_aeth(&p, RQ(0), SYN_RNR | 14, 0);
		/* Later packets are dropped silently: the peer repeats all of them. */
		probe_send(&p, SEND_ONLY, RQ(1), 32, 2);
		probe_send(&p, SEND_ONLY, RQ(2), 32, 3);
		expect_silence(&p);
		expect_count(&p, DROP_OOO, 2);
		assert_int_equal(p.tp->kept, 0);
		probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
		expect_aeth(&p, RQ(0), SYN_RNR | 14, 0); /* again, again */
		probe_recv(&p, 0, 64, 5);
		probe_recv(&p, 64, 4000, 6);
		probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
		expect_aeth(&p, RQ(0), SYN_ACK, 1);
		expect_recv(&p, 5, SUCCESS);
		check_fill(probe_at(&p, 0), 32, 1, 0);
		probe_send(&p, SEND_FIRST, RQ(1), 1024, 2);
		probe_send(&p, SEND_LAST, RQ(2), 10, 3);
		expect_aeth(&p, RQ(2), SYN_ACK, 2);
		expect_recv(&p, 6, SUCCESS);
		probe_send(&p, SEND_FIRST, RQ(3), 1024, 2);
		probe_send(&p, SEND_LAST, RQ(4), 10, 3);
		expect_aeth(&p, RQ(3), SYN_RNR | 14, 2);
		expect_silence(&p);
		expect_count(&p, TX_RNR_NAKS, 3);
		assert_int_equal(p.qp->state, URN_QPS_RTS);
		expect_no_cqe(&p);
		probe_close(&p);
	}
}

/* WRITE with immediate: the packet with the immediate needs the receive, the others don't. */
static void
no_receive_for_imm(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.min_rnr_timer = 1});
	probe_write(&p, WRITE_ONLY_IMM, RQ(0), 0, 8, 8, 1);
	expect_aeth(&p, RQ(0), SYN_RNR | 1, 0);
	assert_int_equal(*probe_at(&p, 0), 0); /* not executed */
	probe_recv(&p, 4096, 0, 1);
	probe_write(&p, WRITE_ONLY_IMM, RQ(0), 0, 8, 8, 1);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	expect_recv(&p, 1, SUCCESS);
	assert_int_equal(probe_cqe(&p, true)->opcode, URN_WCO_RECV_RDMA_WITH_IMM);
	assert_int_equal(probe_cqe(&p, true)->byte_len, 8);
	probe_write(&p, WRITE_FIRST, RQ(1), 0, 2000, 1024, 1);
	probe_write(&p, WRITE_LAST_IMM, RQ(2), 0, 0, 976, 2);
	expect_aeth(&p, RQ(2), SYN_RNR | 1, 1);
	probe_recv(&p, 4096, 0, 2);
	probe_write(&p, WRITE_LAST_IMM, RQ(2), 0, 0, 976, 2);
	expect_aeth(&p, RQ(2), SYN_ACK, 2);
	expect_recv(&p, 2, SUCCESS);
	assert_int_equal(probe_cqe(&p, true)->byte_len, 2000);
	check_fill(probe_at(&p, 1024), 976, 2, 0);
	probe_close(&p);
}

/* Immediate data reaches the program as it came, solicited or not. */
static void
immediate(void **state)
{
	struct probe p;
	struct frame f = frame_of(SEND_ONLY_IMM, RQ(0));
	uint32_t imm;

	(void)state;
	probe_open(&p, NULL);
	probe_recv(&p, 0, 64, 1);
	f.imm = 0x01020304;
	f.len = 3;
	probe_put(&p, &f);
	expect_recv(&p, 1, SUCCESS);
	imm = probe_cqe(&p, true)->imm;
	assert_memory_equal(&imm, "\1\2\3\4", 4);
	assert_int_equal(probe_cqe(&p, true)->wc_flags, URN_WCF_WITH_IMM);
	assert_int_equal(probe_cqe(&p, true)->byte_len, 3);
	probe_close(&p);
}

/* ---- messages that do not fit */

/* A message longer than its receive: NAK 0x61, LOC_LEN_ERR; flushed is the rest. */
static void
too_long(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++) {
		struct probe p;

		probe_open(&p, NULL);
		probe_recv(&p, 0, k == 0 ? 31 : k == 1 ? 1023 : 1033, 1);
		probe_recv(&p, 4096, 64, 2);
		if (k == 0)
			probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
		else
			probe_send(&p, SEND_FIRST, RQ(0), 1024, 1);
		if (k == 2)
			probe_send(&p, SEND_LAST, RQ(1), 10, 1);
		expect_aeth(&p, RQ(k == 2), NAK_INV, 0);
		expect_recv(&p, 1, LOC_LEN_ERR);
		expect_recv(&p, 2, WR_FLUSH_ERR);
		expect_ended(&p);
		expect_no_cqe(&p);
		expect_count(&p, NAK_INV_REQ, 1);
		assert_int_equal(*probe_at(&p, 1033), 0);
		probe_close(&p);
	}
}

/* A receive whose memory may not be written: NAK 0x63 and LOC_PROT_ERR. */
static void
bad_receive(void **state)
{
	struct probe p;
	struct urn_abi_rwqe *w;

	(void)state;
	for (int k = 0; k < 2; k++) {
		probe_open(&p, NULL);
		probe_recv(&p, 0, 64, 1);
		w = (void *)((uint8_t *)p.q[0].rq + URN_ABI_WQ_SLOTS);
		if (k)
			w->num_sge = 5; /* more than the queue has: a lie */
		else
			((struct urn_abi_sge *)(w + 1))->lkey = p.key_read;
		probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
		expect_aeth(&p, RQ(0), NAK_OP, 0);
		if (k)
			expect_recv(&p, 1, LOC_QP_OP_ERR);
		else
			expect_recv(&p, 1, LOC_PROT_ERR);
		expect_ended(&p);
		assert_int_equal(*probe_at(&p, 0), 0);
		probe_close(&p);
	}
}

/* A packet that must be refused as an invalid request (NAK 0x61), after `before` good packets. */
struct wrong {
	uint8_t before;      /* 0: nothing, 1: SEND first, 2: WRITE first of 3000 bytes */
	uint8_t op;
	uint32_t len;
	uint32_t length;     /* RETH */
	int pad;             /* claimed; 0: right */
};

/* doc/reference/wire.md "Opcodes": the order of first, middle, last. */
static const struct wrong sequence[] = {
	{0, SEND_MIDDLE, 1024, 0, 0},	 {0, SEND_LAST, 8, 0, 0},
	{0, SEND_LAST_IMM, 8, 0, 0},	 {0, SEND_LAST_INV, 8, 0, 0},
	{0, WRITE_MIDDLE, 1024, 0, 0},	 {0, WRITE_LAST, 8, 0, 0},
	{0, WRITE_LAST_IMM, 8, 0, 0},	 {1, SEND_FIRST, 1024, 0, 0},
	{1, SEND_ONLY, 8, 0, 0},	 {1, WRITE_FIRST, 1024, 3000, 0},
	{1, WRITE_MIDDLE, 1024, 0, 0},	 {1, WRITE_LAST, 8, 0, 0},
	{1, WRITE_ONLY, 8, 8, 0},	 {1, READ_REQ, 0, 8, 0},
	{1, CMP_SWAP, 0, 0, 0},		 {2, SEND_LAST, 8, 0, 0},
	{2, SEND_MIDDLE, 1024, 0, 0},	 {2, SEND_ONLY, 8, 0, 0},
	{2, SEND_FIRST, 1024, 0, 0},	 {2, WRITE_FIRST, 1024, 3000, 0},
	{2, WRITE_ONLY, 8, 8, 0},	 {2, READ_REQ, 0, 8, 0},
	{2, FETCH_ADD, 0, 0, 0},
};

/* doc/reference/wire.md "Lengths". */
static const struct wrong lengths[] = {
	{0, SEND_FIRST, 1020, 0, 0},	    {0, SEND_FIRST, 1028, 0, 0},
	{0, SEND_FIRST, 0, 0, 0},	    {0, SEND_ONLY, 1028, 0, 0},
	{1, SEND_MIDDLE, 1020, 0, 0},	    {1, SEND_MIDDLE, 1028, 0, 0},
	{1, SEND_LAST, 0, 0, 0},	    {1, SEND_LAST, 1025, 0, 0},
	{0, WRITE_FIRST, 1020, 3000, 0},    {0, WRITE_FIRST, 1028, 3000, 0},
	{0, WRITE_FIRST, 1024, 1024, 0},    {0, WRITE_FIRST, 1024, 500, 0},
	{0, WRITE_ONLY, 8, 9, 0},	    {0, WRITE_ONLY, 9, 8, 0},
	{0, WRITE_ONLY, 8, 0, 0},	    {0, WRITE_ONLY, 0, 8, 0},
	{0, WRITE_ONLY, 1028, 1028, 0},	    {2, WRITE_MIDDLE, 1020, 0, 0},
	{2, WRITE_LAST, 1024, 0, 0},	    {2, WRITE_LAST, 0, 0, 0},
	{2, WRITE_LAST, 1028, 0, 0},	    {0, WRITE_FIRST, 1024, 0x80000001, 0},
	{0, WRITE_FIRST, 1024, 0xffffffff, 0}, {0, WRITE_ONLY, 8, 0x80000008, 0},
	{0, READ_REQ, 0, 0x80000001, 0},    {0, READ_REQ, 0, 0xffffffff, 0},
	{0, SEND_FIRST, 1024, 0, 1},	    {0, WRITE_FIRST, 1024, 3000, 2},
};

static void
refused(const struct wrong *w, unsigned int index)
{
	uint32_t psn = w->before ? 1 : 0;
	struct probe p;
	struct frame f;

	probe_open(&p, NULL);
	probe_recv(&p, 0, 8192, 1);
	if (w->before == 1)
		probe_send(&p, SEND_FIRST, RQ(0), 1024, 1);
	if (w->before == 2)
		probe_write(&p, WRITE_FIRST, RQ(0), 0, 3000, 1024, 1);
	f = frame_of(w->op, RQ(psn));
	f.va = PROBE_VA + 16384;
	f.rkey = p.key;
	f.length = w->length;
	f.len = w->len;
	f.pad = w->pad ? w->pad : -1;
	memset(f.data, 0xee, f.len);
	probe_put(&p, &f);
	probe_settle(&p);
	if (p.seen_n == 0 || p.seen[(p.seen_n - 1) % PROBE_SEEN].syn != NAK_INV)
		fail_msg("case %u, opcode 0x%02x: not refused", index, w->op);
	expect_aeth(&p, RQ(psn), NAK_INV, 0);
	expect_ended(&p);
	expect_count(&p, NAK_INV_REQ, 1);
	if (p.rcq.prod != 1)
		fail_msg("case %u: %u receive completions", index, p.rcq.prod);
	for (uint32_t i = 8192; i < 32768; i++)
		assert_int_equal(*probe_at(&p, i), 0);
	/* Nothing is taken any more. */
	probe_write(&p, WRITE_ONLY, RQ(psn), 16384, 8, 8, 1);
	probe_write(&p, WRITE_ONLY, RQ(psn + 1), 16384, 8, 8, 1);
	expect_silence(&p);
	expect_count(&p, DROP_QP_STATE, 2);
	probe_close(&p);
}

static void
wrong_sequence(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(sequence) / sizeof(sequence[0]); i++)
		refused(&sequence[i], i);
}

static void
wrong_lengths(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		refused(&lengths[i], i);
}

/* ---- rights and keys */

/* A right that the QP does not give is an invalid request; atomics must be aligned. */
static void
rights_of_qp(void **state)
{
	static const uint8_t op[] = {WRITE_ONLY, READ_REQ, CMP_SWAP, FETCH_ADD, WRITE_ONLY};
	static const int give[] = {
		URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC,
		URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_ATOMIC,
		URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ,
		URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ, -1,
	};

	(void)state;
	for (int zero = 0; zero < 2; zero++)
		for (int i = 0; i < 5; i++) {
			struct probe p;
			struct frame f = frame_of(op[i], RQ(0));

			probe_open(&p, &(struct probe_config){.access = give[i]});
			f.va = PROBE_VA;
			f.rkey = p.key;
			f.length = zero ? 0 : 8; /* without the right, 0 bytes won't do either */
			f.len = op[i] == WRITE_ONLY ? f.length : 0;
			probe_put(&p, &f);
			expect_aeth(&p, RQ(0), NAK_INV, 0);
			expect_ended(&p);
			probe_close(&p);
		}
	for (uint32_t off = 1; off < 8; off++) {
		struct probe p;

		probe_open(&p, NULL);
		probe_atomic(&p, FETCH_ADD, RQ(0), 64 + off, 1, 0);
		expect_aeth(&p, RQ(0), NAK_INV, 0);
		expect_ended(&p);
		assert_int_equal(*probe_at(&p, 64), 0);
		probe_close(&p);
	}
}

/* Key, PD, right of the region, range: NAK 0x62, and not a byte is touched. */
static void
keys(void **state)
{
	static const uint8_t op[] = {WRITE_ONLY, WRITE_FIRST, READ_REQ, CMP_SWAP, FETCH_ADD};
	enum { CASES = 10 };

	(void)state;
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < CASES; k++) {
			bool write = op[i] <= WRITE_ONLY;
			struct probe p;
			struct frame f = frame_of(op[i], RQ(0));
			uint64_t end = PROBE_VA + PROBE_LEN;

			if (k == 3 && op[i] == READ_REQ)
				continue; /* that one may be read */
			probe_open(&p, NULL);
			f.len = op[i] == WRITE_FIRST ? 1024 : op[i] == WRITE_ONLY ? 8 : 0;
			f.length = op[i] == WRITE_FIRST ? 2000 : 8;
			f.va = k == 4 ? end - f.length + 8 : k == 5 ? end : k == 6 ? PROBE_VA - 8
			     : k == 7 ? UINT64_MAX - 7 : k == 8 ? 0 : PROBE_VA;
			f.rkey = k == 0 ? p.key + 0x100 * 50 : k == 1 ? p.key_other : k == 2 ? p.key_local
			       : k == 3 ? p.key_read : k == 9 ? p.key ^ 1 : p.key;
			memset(f.data, 0xee, f.len);
			probe_put(&p, &f);
			expect_aeth(&p, RQ(0), NAK_ACCESS, 0);
			expect_ended(&p);
			expect_count(&p, NAK_ACCESS, 1);
			assert_int_equal(p.event[(p.events - 1) % 64], URN_EVENT_QP_ACCESS_ERR);
			for (uint32_t n = 0; write && n < PROBE_LEN; n++)
				if (*probe_at(&p, n))
					fail_msg("written at %u", n);
			probe_close(&p);
		}
}

/* The region is deregistered in the middle of a WRITE: refused from there on. */
static void
key_goes(void **state)
{
	struct probe p;
	struct urn_region *r;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_FIRST, RQ(0), 0, 2000, 1024, 1);
	expect_aeth(&p, RQ(0), SYN_ACK, 0);
	assert_int_equal(urn_mem_kill_mr(p.mem, p.key, &r), 0);
	probe_write(&p, WRITE_LAST, RQ(1), 0, 0, 976, 1);
	expect_aeth(&p, RQ(1), NAK_ACCESS, 0);
	expect_ended(&p);
	assert_int_equal(*probe_at(&p, 1024), 0);
	urn_mem_free_mr(p.mem, r);
	probe_close(&p);
}

/* A remote invalidation holds from the packet behind it on, in the same burst too. */
static void
invalidated(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 2; seed++) {
		struct probe p;
		struct frame f = frame_of(SEND_ONLY_INV, RQ(1));
		uint32_t mw;

		probe_open(&p, &(struct probe_config){.delay_seed = seed});
		assert_int_equal(urn_mem_alloc_mw(p.mem, p.pd, 2, &mw), 0);
		assert_int_equal(urn_mem_bind(p.mem, 2, mw, mw + 1, p.key, PROBE_VA + 64, 64,
					      URN_ACCESS_REMOTE_WRITE, p.pd, p.qp->qpn,
					      &(struct urn_mem_binding){.windows = &p.qp->windows}),
				 URN_MEM_OK);
		probe_recv(&p, 0, 32, 1);
		for (uint32_t i = 0; i < 3; i += 2) {
			struct frame w = frame_of(WRITE_ONLY, RQ(i));

			w.va = PROBE_VA + 64 + 8 * i;
			w.rkey = mw + 1;
			w.length = w.len = 8;
			memset(w.data, 0xab, 8);
			probe_put(&p, &w);
			f.imm = mw + 1;
			f.len = 16;
			if (i == 0)
				probe_put(&p, &f);
		}
		expect_aeth(&p, RQ(2), NAK_ACCESS, 2);
		expect_recv(&p, 1, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->wc_flags, URN_WCF_WITH_INV);
		assert_int_equal(probe_cqe(&p, true)->imm, mw + 1);
		expect_ended(&p);
		assert_int_equal(*probe_at(&p, 64), 0xab);
		assert_int_equal(*probe_at(&p, 80), 0);
		probe_close(&p);
	}
}

/* A key that may not be invalidated is refused, and the receive's completion says why. */
static void
invalidation_refused(void **state)
{
	struct probe p;
	struct frame f = frame_of(SEND_ONLY_INV, RQ(0));

	(void)state;
	probe_open(&p, NULL);
	probe_recv(&p, 0, 32, 1);
	f.imm = p.key; /* a region */
	f.len = 16;
	probe_put(&p, &f);
	expect_aeth(&p, RQ(0), NAK_ACCESS, 0);
	expect_recv(&p, 1, LOC_ACCESS_ERR);
	expect_ended(&p);
	probe_close(&p);
}

/* ---- shared receive queues */

static uint32_t
taker_of(struct probe *p, unsigned int slot)
{
	const struct urn_abi_rwqe *w = (void *)((uint8_t *)p->srq.rq.hdr + URN_ABI_WQ_SLOTS +
						(size_t)slot * urn_abi_rq_stride(4));

	return w->taker;
}

/* QPs take receives from one queue, which remembers the QP; below the limit the queue's event comes. */
static void
shared(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.srq = true, .qps = 2});
	for (uint32_t i = 0; i < 6; i++)
		probe_recv(&p, i * 64, 64, i);
	p.srq.limit = 4;
	for (uint32_t i = 0; i < 4; i++) {
		probe_use(&p, i & 1);
		if (i < 2)
			probe_send(&p, SEND_ONLY, RQ(i / 2), 64, i);
		else
			probe_write(&p, WRITE_ONLY_IMM, RQ(i / 2), 4096, 8, 8, i);
		expect_recv(&p, i, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->qp_num, p.qp->qpn);
		assert_int_equal(taker_of(&p, i), p.qp->qpn);
		assert_int_equal(p.events, i == 2 ? 1 : i / 3); /* 3 are left; once */
	}
	assert_int_equal(p.event[0], URN_EVENT_SRQ_LIMIT);
	assert_int_equal(p.srq.limit, 0);
	p.srq.limit = 2; /* armed again: 2 are left, then 1 */
	probe_settle(&p);
	assert_int_equal(p.events, 1);
	probe_send(&p, SEND_ONLY, RQ(2), 8, 9);
	expect_recv(&p, 4, SUCCESS);
	assert_int_equal(p.events, 2);
	probe_close(&p);
}

/*
 * Keys of a shared queue's entries are of the queue's protection domain, even when the QP's is
 * another (IBTA 10.2.9); keys that the peer uses are of the QP's.
 */
static void
shared_domain(void **state)
{
	(void)state;
	for (int ud = 0; ud < 2; ud++)
		for (int own = 0; own < 2; own++) { /* the keys in the receive are of the QP's domain */
			struct probe p;
			struct frame f;
			uint32_t key;

			probe_open(&p, &(struct probe_config){.srq = true, .type = ud ? URN_QPT_UD : 0});
			p.srq.pd = p.other_pd;
			if (!ud) {
				probe_write(&p, WRITE_ONLY, RQ(0), 8192, 64, 64, 3);
				probe_settle(&p);
				check_fill(probe_at(&p, 8192), 64, 3, 0);
				p.looked = p.seen_n;
			}
			key = p.key_local;
			if (!own)
				p.key = p.key_local = p.key_other;
			probe_recv(&p, 0, 256, 1);
			p.key_local = key;
			f = frame_of(ud ? UD_SEND : SEND_ONLY, ud ? 0 : RQ(1));
			f.qkey = PROBE_QKEY;
			f.len = 64;
			probe_fill(f.data, 64, 7, 0);
			probe_put(&p, &f);
			if (own) {
				expect_recv(&p, 1, LOC_PROT_ERR);
				assert_int_equal(probe_cqe(&p, true)->vendor_err, URN_VE_BAD_LKEY);
			} else {
				expect_recv(&p, 1, SUCCESS);
				check_fill(probe_at(&p, ud ? 40 : 0), 64, 7, 0);
			}
			probe_close(&p);
		}
}

/* The receive of a message that was begun is flushed; other QPs go on using the queue. */
static void
shared_and_error(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.srq = true, .qps = 2});
	probe_recv(&p, 0, 2048, 1);
	probe_recv(&p, 4096, 64, 2);
	probe_send(&p, SEND_FIRST, RQ(0), 1024, 1);
	probe_settle(&p);
	probe_state(&p, URN_QPS_ERR);
	expect_recv(&p, 1, WR_FLUSH_ERR);
	expect_no_cqe(&p);
	assert_int_equal(p.events, 1);
	assert_int_equal(p.event[0], URN_EVENT_LAST_WQE);
	probe_use(&p, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 2);
	expect_recv(&p, 2, SUCCESS);
	probe_close(&p);
}

/* ---- the turn of a NAK */

/* A NAK comes after the responses that are owed, and acknowledges all earlier requests. */
static void
nak_in_turn(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.delay_seed = seed});
		probe_recv(&p, 4096, 64, 1);
		probe_recv(&p, 4096 + 64, 64, 2);
		probe_send(&p, SEND_ONLY, RQ(0), 64, 1);
		probe_read(&p, RQ(1), 4096, 3000);
		probe_atomic(&p, FETCH_ADD, RQ(4), 64, 1, 0);
		probe_send(&p, SEND_MIDDLE, RQ(5), 1024, 1);
		probe_write(&p, WRITE_ONLY, RQ(6), 0, 8, 8, 1);
		expect_frame(&p, READ_FIRST, RQ(1));
		expect_frame(&p, READ_MIDDLE, RQ(2));
		expect_frame(&p, READ_LAST, RQ(3));
		expect_frame(&p, ATOMIC_ACK, RQ(4));
		expect_aeth(&p, RQ(5), NAK_INV, 3);
		expect_recv(&p, 1, SUCCESS);
		expect_recv(&p, 2, WR_FLUSH_ERR);
		expect_ended(&p);
		probe_close(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_receive),	 cmocka_unit_test(no_receive_for_imm),
		cmocka_unit_test(immediate),	 cmocka_unit_test(too_long),
		cmocka_unit_test(bad_receive),	 cmocka_unit_test(wrong_sequence),
		cmocka_unit_test(wrong_lengths), cmocka_unit_test(rights_of_qp),
		cmocka_unit_test(keys),		 cmocka_unit_test(key_goes),
		cmocka_unit_test(invalidated),	 cmocka_unit_test(invalidation_refused),
		cmocka_unit_test(shared), cmocka_unit_test(shared_domain),	 cmocka_unit_test(shared_and_error),
		cmocka_unit_test(nak_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
