/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes with two addresses (AW-4; doc/inside/aligned-writes.md): the last packet has the end of
 * the bulk, and the head with an address of its own. Requester and responder.
 */
#include "probe.h"

#include "transport/reshape.h"

enum {
	MTU = 1024,
	LEN = 2501,
	OFF = 5,
	SKIP = 64 - OFF,
	FROM = 100000,
	BULK = LEN - SKIP,
	END = LEN - 2 * MTU - SKIP /* bytes of the bulk in the last packet */
};

/* A node, and a peer, that know the operation. */
static void
open_two(struct probe *p, const struct probe_config *cfg)
{
	probe_open(p, cfg);
	p->tp->cfg.features |= URN_LINK_F_WRITE_TWO;
	urn_tp_peer_learned(p->tp, p->peer.gid, URN_LINK_F_ALL);
	assert_int_equal(urn_qp_align_writes(p->qp, 64), 0);
	probe_fill(probe_at(p, FROM), 8192, 7, 0);
}

/* ---- requester */

/* The packets of a WRITE of LEN bytes to OFF, from PSN number n on. returns: the last */
static const struct frame *
expect_two(struct probe *p, uint8_t op, uint32_t n)
{
	const struct frame *f = expect_frame(p, WRITE_FIRST, SQ(n));

	assert_true(f->va == PROBE_VA + OFF + SKIP);
	assert_int_equal(f->length, BULK);
	check_fill(f->data, MTU, 7, SKIP);
	f = expect_frame(p, WRITE_MIDDLE, SQ(n + 1));
	check_fill(f->data, MTU, 7, SKIP + MTU);
	f = expect_frame(p, op, SQ(n + 2));
	assert_true(f->va == PROBE_VA + OFF);
	assert_int_equal(f->rkey, p->key);
	assert_int_equal(f->length, SKIP);
	assert_int_equal(f->len, END + SKIP);
	check_fill(f->data, END, 7, SKIP + 2 * MTU);
	check_fill(f->data + END, SKIP, 7, 0);
	return f;
}

static void
one_message(void **state)
{
	const struct frame *f;
	struct probe p;

	(void)state;
	open_two(&p, NULL);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 1);
	assert_true(expect_two(&p, WRITE_TWO, 0)->ack);
	expect_silence(&p);
	probe_ack(&p, SQ(2), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	assert_int_equal(probe_cqe(&p, false)->byte_len, LEN);

	probe_prepare(&p, URN_WR_RDMA_WRITE_IMM, URN_WRF_SIGNALED | URN_WRF_SOLICITED, FROM, LEN,
		      OFF, 2);
	probe_slot(&p)->imm = rte_cpu_to_be_32(0x01020304);
	probe_ring(&p);
	f = expect_two(&p, WRITE_TWO_IMM, 3);
	assert_int_equal(f->imm, 0x01020304);
	assert_true(f->se);
	probe_ack(&p, SQ(5), SYN_ACK, 2);
	expect_sent(&p, 2, SUCCESS);
	expect_count(&p, ALIGNED, 2);
	expect_count(&p, ALIGNED_ONE, 2);
	/* A peer that was started anew, and knows less, gets what it knows. */
	urn_tp_peer_learned(p.tp, p.peer.gid, 0);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 3);
	expect_frame(&p, WRITE_FIRST, SQ(6));
	expect_frame(&p, WRITE_MIDDLE, SQ(7));
	expect_frame(&p, WRITE_LAST, SQ(8));
	expect_frame(&p, WRITE_ONLY, SQ(9));
	probe_ack(&p, SQ(9), SYN_ACK, 4);
	expect_sent(&p, 3, SUCCESS);
	probe_close(&p);
}

/* Where head and end don't fit one packet, or the end is empty, there are two messages. */
static void
does_not_fit(void **state)
{
	struct probe p;

	(void)state;
	open_two(&p, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t len = 2 * MTU + SKIP - 1 + i;

		probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, len, OFF, i);
		expect_frame(&p, WRITE_FIRST, SQ(3 * i));
		expect_frame(&p, i < 2 ? WRITE_LAST : WRITE_MIDDLE, SQ(3 * i + 1));
		expect_frame(&p, i < 2 ? WRITE_ONLY : WRITE_TWO, SQ(3 * i + 2));
		expect_silence(&p);
		probe_ack(&p, SQ(3 * i + 2), SYN_ACK, 2 * i + 2);
		expect_sent(&p, i, SUCCESS);
	}
	expect_count(&p, ALIGNED_ONE, 1);
	probe_close(&p);
}

/* A lost last packet is sent again as it was. */
static void
repeated(void **state)
{
	struct probe p;

	(void)state;
	open_two(&p, &(struct probe_config){.retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 1);
	expect_two(&p, WRITE_TWO, 0);
	probe_ack(&p, SQ(0), 0x60, 0); /* NAK: PSN sequence error */
	expect_two(&p, WRITE_TWO, 0);
	probe_ack(&p, SQ(2), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	probe_close(&p);
}

/* Memory that can't be read, under either address, ends the request once. */
static void
unreadable(void **state)
{
	struct probe p;

	(void)state;
	for (unsigned int op = 1; op <= 4; op++) {
		for (int late = 0; late < 2; late++) {
			open_two(&p, &(struct probe_config){.delay_seed = late ? 3 : 0});
			probe_prepare(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, FROM, LEN, OFF, 1);
			probe_fail_op(&p, op, late);
			probe_ring(&p);
			probe_settle(&p);
			if (op > 1) /* the packets that went out before are acknowledged */
				probe_ack(&p, SQ(op > 2 ? 1 : 0), SYN_ACK, 0);
			expect_sent(&p, 1, LOC_PROT_ERR);
			expect_no_cqe(&p);
			p.looked = p.seen_n;
			probe_close(&p);
		}
	}
	/* A key that is none, for the head only: nothing of the packet is gathered. */
	open_two(&p, NULL);
	probe_prepare(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, FROM, LEN, OFF, 1);
	probe_slot(&p)->num_sge = 2;

	struct urn_abi_sge *sge = (void *)(probe_slot(&p) + 1);

	sge[0] = (struct urn_abi_sge){PROBE_VA + FROM, p.key_local ^ 0x100000, SKIP};
	sge[1] = (struct urn_abi_sge){PROBE_VA + FROM + SKIP, p.key_local, BULK};
	probe_ring(&p);
	expect_sent(&p, 1, LOC_PROT_ERR);
	expect_no_cqe(&p);
	p.looked = p.seen_n;
	probe_close(&p);
}

/* A gather that is taken back does not touch the frame of another QP that gets its buffer. */
static void
taken_back(void **state)
{
	struct probe p;

	(void)state;
	for (uint32_t seed = 1; seed < 20; seed++) {
		const struct frame *f;
		struct urn_abi_sge *sge;

		open_two(&p, &(struct probe_config){.qps = 2, .delay_seed = seed});
		probe_prepare(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, FROM, LEN, OFF, 1);
		probe_slot(&p)->num_sge = 2;
		sge = (void *)(probe_slot(&p) + 1);
		sge[0] = (struct urn_abi_sge){PROBE_VA + FROM, p.key_local ^ 0x100000, SKIP};
		sge[1] = (struct urn_abi_sge){PROBE_VA + FROM + SKIP, p.key_local, BULK};
		probe_ring(&p);
		probe_use(&p, 1);
		probe_post(&p, URN_WR_SEND, 0, FROM, MTU, 0, 2);
		probe_settle(&p);
		while (p.seen[p.looked % PROBE_SEEN].op != SEND_ONLY) {
			assert_true(p.looked != p.seen_n);
			p.looked++;
		}
		f = &p.seen[p.looked % PROBE_SEEN];
		assert_int_equal(f->len, MTU);
		check_fill(f->data, MTU, 7, 0);
		p.looked = p.seen_n;
		p.scq_seen = p.scq.prod;
		probe_close(&p);
	}
}

/* ---- responder */

/* The first two packets of a WRITE of BULK bytes to OFF + SKIP. */
static void
begin(struct probe *p)
{
	probe_write(p, WRITE_FIRST, RQ(0), OFF + SKIP, BULK, MTU, 1);
	probe_write(p, WRITE_MIDDLE, RQ(1), 0, 0, MTU, 2);
}

/* Only the range of the WRITE was written, with the payloads of seeds 1, 2 and 3. */
static void
expect_bytes(struct probe *p, bool all)
{
	const uint8_t *at = probe_at(p, 0);
	uint8_t last[END + SKIP];

	probe_fill(last, sizeof(last), 3, 0);
	check_fill(at + OFF + SKIP, MTU, 1, 0);
	check_fill(at + OFF + SKIP + MTU, MTU, 2, 0);
	for (uint32_t i = 0; i < OFF; i++)
		assert_int_equal(at[i], 0);
	for (uint32_t i = 0; i < 512; i++)
		assert_int_equal(at[OFF + LEN + i], 0);
	if (all) {
		assert_memory_equal(at + OFF + SKIP + 2 * MTU, last, END);
		assert_memory_equal(at + OFF, last + END, SKIP);
		return;
	}
	for (uint32_t i = 0; i < SKIP; i++)
		assert_int_equal(at[OFF + i], 0);
	for (uint32_t i = 0; i < END; i++)
		assert_int_equal(at[OFF + SKIP + 2 * MTU + i], 0);
}

static void
taken(void **state)
{
	struct probe p;

	(void)state;
	for (int late = 0; late < 2; late++) {
		open_two(&p, &(struct probe_config){.delay_seed = late ? 5 : 0});
		begin(&p);
		probe_write(&p, WRITE_TWO, RQ(2), OFF, SKIP, END + SKIP, 3);
		probe_settle(&p);
		while (p.looked != p.seen_n)
			assert_int_equal(p.seen[p.looked++ % PROBE_SEEN].syn, SYN_ACK);
		expect_bytes(&p, true);
		expect_no_cqe(&p);
		/* The next message follows as usual. */
		probe_write(&p, WRITE_ONLY, RQ(3), 9000, 8, 8, 4);
		expect_aeth(&p, RQ(3), SYN_ACK, 2);
		probe_close(&p);
	}
}

/* The immediate takes a receive, whose length is that of both parts; without one the peer is to try
 * again. */
static void
immediate(void **state)
{
	struct probe p;

	(void)state;
	open_two(&p, NULL);
	begin(&p);
	probe_write(&p, WRITE_TWO_IMM, RQ(2), OFF, SKIP, END + SKIP, 3);
	probe_settle(&p);
	assert_int_equal(p.seen[(p.seen_n - 1) % PROBE_SEEN].syn & 0x60, 0x20); /* RNR NAK */
	p.looked = p.seen_n;
	expect_bytes(&p, false);
	probe_recv(&p, 20000, 16, 77);
	probe_write(&p, WRITE_TWO_IMM, RQ(2), OFF, SKIP, END + SKIP, 3);
	expect_recv(&p, 77, SUCCESS);
	assert_int_equal(probe_cqe(&p, true)->byte_len, LEN);
	assert_int_equal(probe_cqe(&p, true)->opcode, URN_WCO_RECV_RDMA_WITH_IMM);
	expect_aeth(&p, RQ(2), SYN_ACK, 1);
	expect_bytes(&p, true);
	probe_close(&p);
}

/* Lengths that don't add up, and an operation that was not offered, are invalid requests. */
static void
invalid(void **state)
{
	static const struct {
		uint32_t length, len;
		bool off;
	} c[] = {
		{SKIP + 1, END + SKIP, false},
		{SKIP - 1, END + SKIP, false},
		{0, END, false},
		{SKIP, END, false},
		{SKIP, END - 1, false},
		{UINT32_MAX, END - 1, false},
		{SKIP, END + SKIP, true},
	};
	struct probe p;

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		open_two(&p, NULL);
		if (c[i].off)
			p.tp->cfg.features = 0;
		begin(&p);
		probe_settle(&p);
		p.looked = p.seen_n;
		probe_write(&p, WRITE_TWO, RQ(2), OFF, c[i].length, c[i].len, 3);
		expect_aeth(&p, RQ(2), 0x61, 0);
		expect_bytes(&p, false);
		probe_close(&p);
	}
	/* Without a first packet, and in the middle of a SEND. */
	for (int send = 0; send < 2; send++) {
		open_two(&p, NULL);
		probe_recv(&p, 20000, 4096, 1);
		if (send)
			probe_send(&p, SEND_FIRST, RQ(0), MTU, 1);
		probe_settle(&p);
		p.looked = p.seen_n;
		probe_write(&p, WRITE_TWO, RQ(send), OFF, SKIP, END + SKIP, 3);
		expect_aeth(&p, RQ(send), 0x61, 0);
		p.rcq_seen = p.rcq.prod; /* the receive was flushed */
		probe_close(&p);
	}
}

/* The head's key and range are checked like the bulk's, and a refused packet places nothing. */
static void
access_refused(void **state)
{
	struct probe p;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct frame f = frame_of(WRITE_TWO, RQ(2));

		open_two(&p, NULL);
		begin(&p);
		probe_settle(&p);
		p.looked = p.seen_n;
		f.va = PROBE_VA + (i == 0 ? PROBE_LEN - SKIP + 1u : OFF) - (i == 1 ? OFF + 1 : 0);
		f.rkey = i == 2 ? p.key_read : i == 3 ? p.key_other : p.key;
		f.length = SKIP;
		f.len = END + SKIP;
		probe_put(&p, &f);
		expect_aeth(&p, RQ(2), 0x62, 0);
		expect_bytes(&p, false);
		probe_close(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_message),	  cmocka_unit_test(does_not_fit),
		cmocka_unit_test(repeated),	  cmocka_unit_test(unreadable),
		cmocka_unit_test(taken_back),	  cmocka_unit_test(taken),
		cmocka_unit_test(immediate),	  cmocka_unit_test(invalid),
		cmocka_unit_test(access_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
