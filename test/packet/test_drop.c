/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that are not for this QP, or not sound: dropped, each under its own
 * counter, without an answer, and the QP does not notice (doc/reference/wire.md "BTH",
 * "Errors at the requester"; architecture rule 4).
 */
#include "probe.h"

static uint64_t
drops(const struct probe *p)
{
	uint64_t n = 0;

	for (unsigned int i = URN_C_DROP_NEIGH; i <= URN_C_DROP_HANDOVER; i++)
		n += p->tp->c.v[i];
	return n;
}

/* The frame is dropped under this counter and no other, silently. */
#define drop(p, f, why)                                                                        \
	do {                                                                                   \
		uint64_t all_ = drops(p), had_ = (p)->tp->c.v[URN_C_##why];                    \
		probe_put(p, f);                                                               \
		probe_settle(p);                                                               \
		if (drops(p) != all_ + 1 || (p)->tp->c.v[URN_C_##why] != had_ + 1)             \
			fail_msg("line %d: not dropped as " #why, __LINE__);                   \
		expect_silence(p);                                                             \
		expect_no_cqe(p);                                                              \
	} while (0)

static struct frame
good(struct probe *p)
{
	struct frame f = frame_of(WRITE_ONLY, RQ(0));

	f.va = PROBE_VA;
	f.rkey = p->key;
	f.length = f.len = 8;
	f.ack = true;
	return f;
}

/* Frames for other addresses and QPs. */
static void
to_whom(void **state)
{
	struct probe p;
	struct frame f;

	(void)state;
	probe_open(&p, NULL);
	f = good(&p);
	f.dqpn = p.qp->qpn + 1;
	drop(&p, &f, DROP_NO_QP);
	f.dqpn = 0x0fffff;
	drop(&p, &f, DROP_NO_QP);
	f.dqpn = 1; /* QP1, which this adapter has not: its configuration has no gsi */
	drop(&p, &f, DROP_NO_QP);
	p.node.mac[5] ^= 1;
	f = good(&p);
	drop(&p, &f, DROP_ADDRESS);
	p.node.mac[5] ^= 1;
	p.node.gid[15] ^= 8;
	drop(&p, &f, DROP_ADDRESS);
	p.node.gid[15] ^= 8;
	p.peer.gid[15] ^= 8; /* from another sender */
	drop(&p, &f, DROP_PEER);
	p.peer.gid[15] ^= 8;
	probe_put(&p, &f);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_close(&p);
}

/* The same over IPv6. */
static void
to_whom_v6(void **state)
{
	struct probe p;
	struct frame f;

	(void)state;
	probe_open(&p, &(struct probe_config){.ipv6 = true});
	f = good(&p);
	p.node.gid[7] ^= 1;
	drop(&p, &f, DROP_ADDRESS);
	p.node.gid[7] ^= 1;
	p.peer.gid[0] ^= 1;
	drop(&p, &f, DROP_PEER);
	p.peer.gid[0] ^= 1;
	probe_put(&p, &f);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_close(&p);

	/* The peer's IPv4 address is not its IPv6 address, nor the other way round. */
	probe_open(&p, NULL);
	f = good(&p);
	memcpy(p.node.gid, p.tp->cfg.gid[1], 16);
	memcpy(p.peer.gid, p.tp->cfg.gid[1], 16);
	p.peer.gid[15] = 2;
	drop(&p, &f, DROP_PEER);
	probe_close(&p);
}

/* P_Key: low 15 bits equal and not 0, one side a full member; we are one. */
static void
pkeys(void **state)
{
	static const uint16_t bad[] = {0x0000, 0x8000, 0x7ffe, 0xfffe, 0x0001, 0x8001};
	struct probe p;
	struct frame f;

	(void)state;
	probe_open(&p, NULL);
	f = good(&p);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		f.pkey = bad[i];
		drop(&p, &f, DROP_PKEY);
	}
	f.pkey = 0x7fff; /* a limited member */
	probe_put(&p, &f);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_close(&p);
}

/* The M bit either way; reserved bits of the BTH are not looked at. */
static void
migration_bit(void **state)
{
	struct probe p;
	struct frame f;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		f = good(&p);
		f.psn = RQ(i);
		f.no_m = i & 1;
		f.dqpn = p.qp->qpn | (i & 2 ? 0xff000000u : 0); /* F, B and the rest */
		probe_put(&p, &f);
		expect_aeth(&p, RQ(i), SYN_ACK, i + 1);
	}
	probe_close(&p);
}

/* ARP and the like are put aside for others; frames without room there are counted. */
static void
for_others(void **state)
{
	static const uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (unsigned int i = 0; i < URN_TP_OUT + 3; i++) {
		probe_put_raw(&p, arp, sizeof(arp));
		urn_tp_rx(p.tp, p.in, p.in_n, false);
		p.in_n = 0;
	}
	assert_int_equal(p.tp->other_n, URN_TP_OUT);
	expect_count(&p, DROP_OTHER, 3);
	assert_int_equal(drops(&p), 3);
	probe_settle(&p); /* gives back those put aside */
	probe_close(&p);
}

/* A link that nobody calls. */
static uint32_t
learns_nothing(void *ctx, const uint8_t gid_peer[16])
{
	(void)ctx;
	(void)gid_peer;
	return 0;
}

/* Put in the frame that probe_put() made, and count frames that are put aside. */
static void
put_aside(struct probe *p, struct frame *f, unsigned int n)
{
	probe_put(p, f);
	urn_tp_rx(p->tp, p->in, p->in_n, false);
	p->in_n = 0;
	assert_int_equal(p->tp->other_n, n);
	assert_int_equal(p->tp->handover_n, 0);
}

/*
 * Frames to QP1 are put aside for others, by any engine, once they are known to
 * be sound and for us; others look at their contents.
 */
static void
to_qp1(void **state)
{
	struct probe p;
	struct frame f;

	(void)state;
	for (unsigned int engine = 0; engine < 2; engine++) {
		probe_open(&p, NULL);
		p.tp->cfg.gsi = true;
		p.tp->cfg.learn = learns_nothing;
		p.tp->cfg.engine = engine;
		f = frame_of(UD_SEND, 77);
		f.dqpn = 1;
		f.qkey = 0x80010000;
		f.sqpn = 1;
		f.len = 256;
		put_aside(&p, &f, 1);
		assert_int_equal(urn_pkt(p.tp->other[0])->kind, URN_FRAME_ROCE);
		f.qkey = 0;
		put_aside(&p, &f, 2);
		probe_settle(&p);
		assert_int_equal(drops(&p), 0);
		f.pkey = 0x1234;
		drop(&p, &f, DROP_PKEY);
		f.pkey = 0xffff;
		p.node.gid[15] ^= 8;
		drop(&p, &f, DROP_ADDRESS);
		p.node.gid[15] ^= 8;
		for (unsigned int i = 0; i < URN_TP_OUT + 3; i++)
			put_aside(&p, &f, i < URN_TP_OUT ? i + 1 : URN_TP_OUT);
		expect_count(&p, DROP_OTHER, 3);
		probe_settle(&p);
		p.tp->cfg.engine = 0;
		f = good(&p);
		probe_put(&p, &f);
		expect_aeth(&p, RQ(0), SYN_ACK, 1);
		probe_close(&p);
	}
}

/* Opcodes of other transports, and of none. */
static void
opcodes(void **state)
{
	struct probe p;
	struct frame f;
	unsigned int known = 0;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t op = 0; op < 256; op++) {
		f = frame_of((uint8_t)op, RQ(0));
		f.qkey = PROBE_QKEY;
		if (op == UD_SEND || op == UD_SEND_IMM) {
			drop(&p, &f, DROP_QP_TYPE);
		} else if (op == CNP) {
			probe_put(&p, &f);
			expect_silence(&p);
			expect_count(&p, CNP_RX, 1);
		} else if (op <= SEND_ONLY_INV && op != 0x15) {
			known++;
		} else if (op < 0x20) {
			continue; /* reserved: refused (reserved_opcodes()) */
		} else if ((op >= UC && op <= (UC | WRITE_ONLY_IMM)) || op == UC_WORD) {
			drop(&p, &f, DROP_QP_TYPE);
		} else if (op >= SACK && op <= 0xc3) {
			drop(&p, &f, DROP_SHORT); /* headers of SACKs and flows are not there */
		} else if (op == WRITE_TWO || op == WRITE_TWO_IMM) {
			continue; /* refused, like those reserved (test_aligned_two.c) */
		} else {
			drop(&p, &f, DROP_OPCODE); /* RD, XRC, vendor's, unknown */
		}
	}
	assert_int_equal(known, 23);
	f = good(&p);
	probe_put(&p, &f);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_close(&p);

	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD});
	for (uint32_t op = 0; op <= SEND_ONLY_INV; op++) {
		if (op == 0x15)
			continue;
		f = frame_of((uint8_t)op, RQ(0));
		drop(&p, &f, DROP_QP_TYPE);
	}
	probe_close(&p);
}

/*
 * Reserved opcodes of RC (IBTA 9.7.4.1.1, 9.9.3): a live RC QP refuses them in their turn with
 * an invalid request NAK and is in the error state; behind its turn, from somebody else, and
 * at a UD QP they are dropped.
 */
static void
reserved_opcodes(void **state)
{
	(void)state;
	for (uint32_t op = 0x15; op < 0x20; op += op == 0x15 ? 3 : 1) {
		struct probe p;
		struct frame f;

		probe_open(&p, NULL);
		probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
		expect_aeth(&p, RQ(0), SYN_ACK, 1);
		f = frame_of((uint8_t)op, RQ(0));
		f.len = op & 1 ? 12 : 0;
		drop(&p, &f, DROP_QP_TYPE); /* again, as it seems */
		p.peer.gid[15] ^= 1;
		f.psn = RQ(1);
		drop(&p, &f, DROP_PEER);
		p.peer.gid[15] ^= 1;
		f.psn = RQ(2);
		probe_put(&p, &f); /* ahead of its turn: only the gap is told */
		expect_aeth(&p, RQ(1), NAK_SEQ, 1);
		assert_int_equal(p.qp->state, URN_QPS_RTS);
		probe_write(&p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
		expect_aeth(&p, RQ(2), NAK_INV, 2);
		expect_silence(&p);
		assert_int_equal(p.qp->state, URN_QPS_ERR);
		expect_count(&p, NAK_INV_REQ, 1);
		assert_int_equal(p.event[p.events - 1], URN_EVENT_QP_REQ_ERR);
		probe_close(&p);

		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD});
		f = frame_of((uint8_t)op, RQ(0));
		drop(&p, &f, DROP_QP_TYPE);
		probe_close(&p);
	}
}

/* Frames that are not sound. */
static void
unsound(void **state)
{
	struct probe p;
	struct frame f;
	uint8_t bytes[FRAME_ROOM];
	uint32_t len, n = 3;

	(void)state;
	probe_open(&p, NULL);
	f = good(&p);
	f.tver = 1;
	drop(&p, &f, DROP_BTH_VERSION);
	f = good(&p);
	f.len = f.length = 0;
	f.pad = 1;
	drop(&p, &f, DROP_PAD);
	f = frame_of(READ_REQ, RQ(0));
	f.len = 4;
	drop(&p, &f, DROP_LENGTH);
	f = good(&p);
	f.dqpn = p.qp->qpn;
	len = frame_write(&f, &p.peer, &p.node, bytes);
	for (uint32_t i = 14 + 20; i < len; i++) {
		if (i == 40 || i == 41 || i == 46)
			continue; /* UDP checksum, reserved byte of the BTH: the ICRC covers all else */
		bytes[i] ^= 0x10;
		probe_put_raw(&p, bytes, len);
		bytes[i] ^= 0x10;
		expect_silence(&p);
		assert_int_equal(drops(&p), ++n);
	}
	assert_true(p.tp->c.v[URN_C_DROP_ICRC] > 20);
	assert_int_equal(*probe_at(&p, 0), 0);
	probe_put(&p, &f);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_close(&p);
}

/* A QP takes requests from RTR on, responses from RTS on, and nothing once in error. */
static void
states(void **state)
{
	static const uint8_t at[] = {URN_QPS_INIT, URN_QPS_RTR, URN_QPS_RTS, URN_QPS_SQD, URN_QPS_ERR};

	(void)state;
	for (int i = 0; i < 5; i++) {
		bool takes = at[i] >= URN_QPS_RTR && at[i] != URN_QPS_ERR;
		struct probe p;
		struct frame f;

		probe_open(&p, &(struct probe_config){.state = at[i]});
		f = good(&p);
		if (!takes) {
			drop(&p, &f, DROP_QP_STATE);
		} else {
			probe_put(&p, &f);
			expect_aeth(&p, RQ(0), SYN_ACK, 1);
		}
		f = frame_of(ACK, SQ(0));
		if (at[i] == URN_QPS_RTS || at[i] == URN_QPS_SQD)
			drop(&p, &f, DROP_PSN);
		else
			drop(&p, &f, DROP_QP_STATE);
		probe_state(&p, URN_QPS_RESET);
		f = good(&p);
		drop(&p, &f, DROP_QP_STATE);
		probe_close(&p);
	}
}

/* ---- UD */

/* Q_Key, receive, length: dropped each for its reason; 40 bytes stand before the payload. */
static void
datagrams(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct probe p;
		struct frame f = frame_of(UD_SEND, 0x123456);
		uint8_t bytes[FRAME_ROOM], none[20] = {0};
		const struct urn_abi_cqe *c;

		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .ipv6 = v6});
		f.qkey = PROBE_QKEY;
		f.sqpn = 0x4711;
		f.len = 33;
		probe_fill(f.data, 33, 5, 0);
		drop(&p, &f, DROP_UD_NO_RECV);
		probe_recv(&p, 0, 73, 1);
		f.qkey ^= 1;
		drop(&p, &f, DROP_QKEY);
		f.qkey ^= 1;
		f.len = 4100; /* more than the MTU of the port */
		drop(&p, &f, DROP_UD_LENGTH);
		f.len = 33;
		probe_put(&p, &f);
		expect_recv(&p, 1, SUCCESS);
		c = probe_cqe(&p, true);
		assert_int_equal(c->byte_len, 73);
		assert_int_equal(c->src_qp, 0x4711);
		assert_int_equal(c->wc_flags, URN_WCF_GRH | (v6 ? 0 : URN_WCF_IPV4));
		check_fill(probe_at(&p, 40), 33, 5, 0);
		frame_write(&f, &p.peer, &p.node, bytes);
		if (v6) {
			assert_memory_equal(probe_at(&p, 0), bytes + 14, 40);
		} else {
			assert_memory_equal(probe_at(&p, 0), none, 20);
			assert_memory_equal(probe_at(&p, 20), bytes + 14, 20);
		}
		/* The receive is too short: it says so, and the QP lives on. */
		probe_recv(&p, 4096, 72, 2);
		probe_put(&p, &f);
		expect_recv(&p, 2, LOC_LEN_ERR);
		expect_count(&p, DROP_UD_LENGTH, 2);
		assert_int_equal(p.qp->state, URN_QPS_RTS);
		assert_int_equal(*probe_at(&p, 4096), 0);
		/* Any order of PSNs, with immediate. */
		probe_recv(&p, 0, 100, 3);
		f.op = UD_SEND_IMM;
		f.psn = 0;
		f.imm = 0x01020304;
		probe_put(&p, &f);
		expect_recv(&p, 3, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->wc_flags,
				 URN_WCF_GRH | URN_WCF_WITH_IMM | (v6 ? 0 : URN_WCF_IPV4));
		expect_silence(&p); /* never acknowledged */
		probe_close(&p);
	}
}

/* A receive that is bad, or whose memory fails, completes with the error, and the QP lives on. */
static void
datagram_receive_fails(void **state)
{
	enum { BAD_KEY, TOO_MANY_ELEMENTS, PLACE_FAILS, PLACE_FAILS_LATE, CASES };

	(void)state;
	for (int k = 0; k < CASES; k++) {
		struct frame f = frame_of(UD_SEND, 0x123456);
		struct urn_abi_rwqe *w;
		struct probe p;

		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD,
						      .delay_seed = k == PLACE_FAILS_LATE});
		f.qkey = PROBE_QKEY;
		f.len = 33;
		probe_recv(&p, 0, 73, 1);
		w = (void *)((uint8_t *)p.q[0].rq + URN_ABI_WQ_SLOTS);
		if (k == BAD_KEY)
			((struct urn_abi_sge *)(w + 1))->lkey = p.key_read;
		else if (k == TOO_MANY_ELEMENTS)
			w->num_sge = 5;
		else
			probe_fail_op(&p, 1, k == PLACE_FAILS_LATE);
		probe_put(&p, &f);
		if (k == TOO_MANY_ELEMENTS)
			expect_recv(&p, 1, LOC_QP_OP_ERR);
		else
			expect_recv(&p, 1, LOC_PROT_ERR);
		expect_count(&p, DROP_UD_MEMORY, 1);
		assert_int_equal(p.qp->state, URN_QPS_RTS);
		probe_recv(&p, 0, 73, 2);
		probe_put(&p, &f);
		expect_recv(&p, 2, SUCCESS);
		expect_count(&p, DROP_UD_MEMORY, 1);
		expect_silence(&p);
		probe_close(&p);
	}
}

/* Datagrams that a UD QP sends; the top bit of the Q_Key means the QP's own. */
static void
datagrams_sent(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .ipv6 = v6});
		probe_fill(probe_at(&p, 0), 4096, 6, 0);
		for (uint32_t i = 0; i < 4; i++) {
			static const uint32_t len[] = {0, 1, 1000, 4096};
			const struct frame *f;

			probe_prepare(&p, i & 1 ? URN_WR_SEND_IMM : URN_WR_SEND, URN_WRF_SIGNALED, 0,
				      len[i], 0, i);
			probe_slot(&p)->ud.remote_qkey = i == 3 ? 0x80000000 : 0x7777;
			probe_slot(&p)->imm = rte_cpu_to_be_32(0xabcd);
			probe_ring(&p);
			f = expect_frame(&p, i & 1 ? UD_SEND_IMM : UD_SEND, SQ(i));
			assert_int_equal(f->len, len[i]);
			check_fill(f->data, len[i], 6, 0);
			assert_int_equal(f->qkey, i == 3 ? PROBE_QKEY : 0x7777);
			assert_int_equal(f->sqpn, p.qp->qpn);
			assert_int_equal(f->dqpn, p.q[0].peer_qpn);
			if (i & 1)
				assert_int_equal(f->imm, 0xabcd);
			expect_sent(&p, i, SUCCESS);
		}
		probe_post(&p, URN_WR_SEND, 0, 0, 4097, 0, 9);
		expect_sent(&p, 9, LOC_LEN_ERR);
		assert_int_equal(p.qp->state, URN_QPS_SQE);
		probe_close(&p);
	}
}

/*
 * Datagrams behind one whose memory can't be read are flushed, not sent, even
 * if their frames were made already.
 */
static void
datagram_fails(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD,
						      .delay_seed = (uint64_t)late});
		probe_fail_op(&p, 2, late);
		for (uint32_t i = 0; i < 4; i++)
			probe_prepare(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 32, 0, i);
		probe_ring(&p);
		expect_frame(&p, UD_SEND, SQ(0));
		expect_silence(&p);
		expect_sent(&p, 0, SUCCESS);
		expect_sent(&p, 1, LOC_PROT_ERR);
		assert_int_equal(probe_cqe(&p, false)->vendor_err, URN_VE_MEMORY);
		expect_sent(&p, 2, WR_FLUSH_ERR);
		expect_sent(&p, 3, WR_FLUSH_ERR);
		assert_int_equal(p.qp->state, URN_QPS_SQE);
		/* The QP still receives, flushes posted requests, and sends again once it may. */
		probe_post(&p, URN_WR_SEND, 0, 0, 32, 0, 4);
		expect_sent(&p, 4, WR_FLUSH_ERR);
		probe_state(&p, URN_QPS_RTS);
		probe_post(&p, URN_WR_SEND, 0, 0, 32, 0, 5);
		expect_sent(&p, 5, SUCCESS);
		expect_frame(&p, UD_SEND, p.seen[p.looked % PROBE_SEEN].psn);
		expect_silence(&p);
		probe_close(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_whom),
		cmocka_unit_test(to_whom_v6),
		cmocka_unit_test(pkeys),
		cmocka_unit_test(migration_bit),
		cmocka_unit_test(opcodes),
		cmocka_unit_test(reserved_opcodes),
		cmocka_unit_test(unsound),
		cmocka_unit_test(states),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(datagrams_sent),
		cmocka_unit_test(datagram_fails),
		cmocka_unit_test(datagram_receive_fails),
		cmocka_unit_test(for_others),
		cmocka_unit_test(to_qp1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
