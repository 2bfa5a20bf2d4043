/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes on the peer's cache lines (AW-3; doc/inside/aligned-writes.md): one request goes as two
 * WRITEs, the bulk from the next line on and then the head, with one completion.
 */
#include "probe.h"

#include "base/rnd.h"
#include "transport/reshape.h"

enum { MTU = 1024, LEN = 2501, OFF = 5, SKIP = 64 - OFF, FROM = 100000, TARGET_MAX = 8192 };

static void
open_aligned(struct probe *p, const struct probe_config *cfg, uint32_t line)
{
	probe_open(p, cfg);
	assert_int_equal(urn_qp_align_writes(p->qp, line), 0);
	probe_fill(probe_at(p, FROM), TARGET_MAX, 7, 0);
}

/* The bulk of LEN bytes to OFF, from PSN number n on: three packets. */
static void
expect_bulk(struct probe *p, uint32_t n)
{
	const struct frame *f = expect_frame(p, WRITE_FIRST, SQ(n));

	assert_true(f->va == PROBE_VA + OFF + SKIP);
	assert_int_equal(f->length, LEN - SKIP);
	check_fill(f->data, MTU, 7, SKIP);
	assert_false(f->se);
	f = expect_frame(p, WRITE_MIDDLE, SQ(n + 1));
	check_fill(f->data, MTU, 7, SKIP + MTU);
	f = expect_frame(p, WRITE_LAST, SQ(n + 2));
	assert_int_equal(f->len, LEN - SKIP - 2 * MTU);
	check_fill(f->data, f->len, 7, SKIP + 2 * MTU);
	assert_false(f->se);
}

static const struct frame *
expect_head(struct probe *p, uint8_t op, uint32_t n)
{
	const struct frame *f = expect_frame(p, op, SQ(n));

	assert_true(f->va == PROBE_VA + OFF);
	assert_int_equal(f->length, SKIP);
	assert_int_equal(f->len, SKIP);
	check_fill(f->data, SKIP, 7, 0);
	return f;
}

/* Two messages and one completion, when the second is acknowledged; immediate and event with the
 * second. */
static void
two_messages(void **state)
{
	const struct frame *f;
	struct probe p;

	(void)state;
	open_aligned(&p, NULL, 64);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 1);
	expect_bulk(&p, 0);
	assert_true(expect_head(&p, WRITE_ONLY, 3)->ack);
	expect_silence(&p);
	probe_ack(&p, SQ(2), SYN_ACK, 1);
	expect_no_cqe(&p);
	probe_ack(&p, SQ(3), SYN_ACK, 2);
	expect_sent(&p, 1, SUCCESS);
	assert_int_equal(probe_cqe(&p, false)->byte_len, LEN);
	assert_int_equal(probe_cqe(&p, false)->opcode, URN_WCO_RDMA_WRITE);
	expect_no_cqe(&p);

	probe_prepare(&p, URN_WR_RDMA_WRITE_IMM, URN_WRF_SIGNALED | URN_WRF_SOLICITED, FROM, LEN,
		      OFF, 2);
	probe_slot(&p)->imm = rte_cpu_to_be_32(0x01020304);
	probe_ring(&p);
	expect_bulk(&p, 4);
	f = expect_head(&p, WRITE_ONLY_IMM, 7);
	assert_int_equal(f->imm, 0x01020304);
	assert_true(f->ack && f->se);
	probe_ack(&p, SQ(7), SYN_ACK, 4);
	expect_sent(&p, 2, SUCCESS);
	expect_no_cqe(&p);
	expect_count(&p, ALIGNED, 2);
	probe_close(&p);
}

/* An unsignaled request leaves nothing; the index of the queue counts it once. */
static void
quiet(void **state)
{
	struct probe p;

	(void)state;
	open_aligned(&p, NULL, 64);
	probe_prepare(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 1);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 2);
	expect_bulk(&p, 0);
	expect_head(&p, WRITE_ONLY, 3);
	expect_bulk(&p, 4);
	expect_head(&p, WRITE_ONLY, 7);
	probe_ack(&p, SQ(7), SYN_ACK, 4);
	expect_sent(&p, 2, SUCCESS);
	expect_no_cqe(&p);
	assert_int_equal(atomic_load(&p.q[0].sq->cons), 2);
	probe_close(&p);
}

/* A write goes as posted when its line is not known, and where a line or a packet is all that
 * remains. */
static void
as_posted(void **state)
{
	static const struct {
		uint32_t line, told, remote, len;
	} c[] = {
		{URN_ALIGN_OFF, 64, OFF, LEN},	  /* not asked for */
		{URN_ALIGN_PEER, 0, OFF, LEN},	  /* the peer told nothing (AW-2) */
		{URN_ALIGN_PEER, 1000, OFF, LEN}, /* ... or nonsense */
		{64, 0, 128, LEN},		  /* on a line */
		{64, 0, OFF, SKIP + MTU},	  /* one packet remains */
		{64, 0, OFF, MTU},		  /* one packet in all */
	};
	struct probe p;
	uint32_t psn = 0;

	(void)state;
	open_aligned(&p, NULL, 64);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		uint32_t n = (c[i].len + MTU - 1) / MTU;
		const struct frame *f;

		assert_int_equal(urn_qp_align_writes(p.qp, c[i].line), 0);
		urn_tp_peer_line(p.tp, p.peer.gid, c[i].told);
		probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, c[i].len, c[i].remote, i);
		f = expect_frame(&p, n == 1 ? WRITE_ONLY : WRITE_FIRST, SQ(psn));
		assert_true(f->va == PROBE_VA + c[i].remote);
		assert_int_equal(f->length, c[i].len);
		for (uint32_t k = 1; k < n; k++)
			expect_frame(&p, k + 1 < n ? WRITE_MIDDLE : WRITE_LAST, SQ(psn + k));
		expect_silence(&p);
		psn += n;
		probe_ack(&p, SQ(psn - 1), SYN_ACK, (uint32_t)i + 1);
		expect_sent(&p, i, SUCCESS);
	}
	expect_count(&p, ALIGNED, 0);
	probe_close(&p);
}

/* The line of the peer is that which it told last; RESET keeps the setting. */
static void
peers_line(void **state)
{
	struct probe p;

	(void)state;
	open_aligned(&p, NULL, URN_ALIGN_PEER);
	for (uint32_t line = 64, n = 0; line <= 256; line *= 2, n++) {
		urn_tp_peer_line(p.tp, p.peer.gid, line);
		probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, n);
		assert_true(expect_frame(&p, WRITE_FIRST, SQ(4 * n))->va == PROBE_VA + line);
		expect_frame(&p, WRITE_MIDDLE, SQ(4 * n + 1));
		expect_frame(&p, WRITE_LAST, SQ(4 * n + 2));
		assert_int_equal(expect_frame(&p, WRITE_ONLY, SQ(4 * n + 3))->length, line - OFF);
		probe_ack(&p, SQ(4 * n + 3), SYN_ACK, 2 * n + 2);
		expect_sent(&p, n, SUCCESS);
	}
	probe_reconnect(&p);
	assert_int_equal(p.qp->align, URN_QP_ALIGN_PEER);
	assert_int_equal(urn_qp_align_writes(p.qp, 32), EINVAL);
	assert_int_equal(urn_qp_align_writes(p.qp, 2), EINVAL);
	assert_int_equal(p.qp->align, URN_QP_ALIGN_PEER);
	probe_close(&p);
}

/* A lost packet of either message is repeated as it was; a peer that knows the standard only goes
 * back. */
static void
repeated(void **state)
{
	struct probe p;

	(void)state;
	open_aligned(&p, &(struct probe_config){.retry_cnt = 7}, 64);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 1);
	expect_bulk(&p, 0);
	expect_head(&p, WRITE_ONLY, 3);
	/* The line that is known changes meanwhile: a request under way stays as it is. */
	assert_int_equal(urn_qp_align_writes(p.qp, 256), 0);
	probe_ack(&p, SQ(1), 0x60, 0); /* NAK: PSN sequence error */
	expect_frame(&p, WRITE_MIDDLE, SQ(1));
	expect_frame(&p, WRITE_LAST, SQ(2));
	expect_head(&p, WRITE_ONLY, 3);
	probe_ack(&p, SQ(2), SYN_ACK, 1);
	expect_no_cqe(&p);
	probe_ack(&p, SQ(3), SYN_ACK, 2);
	expect_sent(&p, 1, SUCCESS);
	probe_close(&p);
}

/* A refusal of either message fails the request once; requests behind it are flushed once each. */
static void
refused(void **state)
{
	struct probe p;

	(void)state;
	for (uint32_t at = 0; at < 4; at++) {
		open_aligned(&p, NULL, 64);
		probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 1);
		probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 2);
		probe_settle(&p);
		probe_ack(&p, SQ(at), 0x62, 0); /* NAK: remote access error */
		expect_sent(&p, 1, REM_ACCESS_ERR);
		expect_sent(&p, 2, WR_FLUSH_ERR);
		expect_no_cqe(&p);
		assert_int_equal(atomic_load(&p.q[0].sq->cons), 2);
		p.looked = p.seen_n;
		probe_close(&p);
	}
}

/* Memory that can't be read ends the request once, in whichever message. */
static void
unreadable(void **state)
{
	struct probe p;

	(void)state;
	for (unsigned int op = 1; op <= 4; op++) {
		for (int late = 0; late < 2; late++) {
			open_aligned(&p, &(struct probe_config){.delay_seed = late ? 3 : 0}, 64);
			probe_prepare(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, FROM, LEN, OFF, 1);
			probe_fail_op(&p, op, late);
			probe_ring(&p);
			probe_settle(&p);
			/* The packets that went out before the failure are acknowledged. */
			probe_ack(&p, SQ(op - 2), SYN_ACK, op > 3);
			expect_sent(&p, 1, LOC_PROT_ERR);
			expect_no_cqe(&p);
			assert_int_equal(atomic_load(&p.q[0].sq->cons), 1);
			p.looked = p.seen_n;
			probe_close(&p);
		}
	}
}

/* A request that was begun ends in SQD, the head too; the event comes after it (IBTA 10.3.1.5). */
static void
drained(void **state)
{
	struct probe p;

	(void)state;
	open_aligned(&p, &(struct probe_config){.window = 3}, 64);
	p.qp->en_sqd_notify = 1;
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 1);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, OFF, 2);
	probe_settle(&p);
	probe_state(&p, URN_QPS_SQD);
	expect_bulk(&p, 0);
	expect_silence(&p);
	assert_int_equal(p.events, 0);
	probe_ack(&p, SQ(2), SYN_ACK, 1);
	expect_head(&p, WRITE_ONLY, 3);
	expect_silence(&p);
	assert_int_equal(p.events, 0);
	probe_ack(&p, SQ(3), SYN_ACK, 2);
	expect_sent(&p, 1, SUCCESS);
	assert_int_equal(p.events, 1);
	assert_int_equal(p.event[0], URN_EVENT_SQ_DRAINED);
	probe_state(&p, URN_QPS_RTS);
	expect_bulk(&p, 4);
	probe_ack(&p, SQ(6), SYN_ACK, 3);
	expect_head(&p, WRITE_ONLY, 7);
	probe_ack(&p, SQ(7), SYN_ACK, 4);
	expect_sent(&p, 2, SUCCESS);
	probe_close(&p);
}

/* Without a second entry of work the request goes as posted, and is counted. */
static void
no_room(void **state)
{
	struct probe p;
	uint32_t n;

	(void)state;
	open_aligned(&p, &(struct probe_config){.work = 16, .window = 256}, 64);
	for (n = 0; n < 64; n++)
		probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, LEN, n % 3 ? OFF : 0, n);
	/* A node without room looks again each turn, and never comes to rest before all is posted.
	 */
	for (uint32_t turns = 0; turns < 1000 && p.scq.prod < n; turns++) {
		probe_turn(&p, 0);
		p.looked = p.seen_n;
		if (turns % 16 == 15 && p.qp->tx.next != p.qp->tx.una)
			probe_ack(&p, (p.qp->tx.next - 1) & URN_PSN_MASK, SYN_ACK, 0);
	}
	for (uint32_t i = 0; i < n; i++)
		expect_sent(&p, i, SUCCESS);
	expect_no_cqe(&p);
	assert_true(p.tp->c.v[URN_C_ALIGN_NO_WORK] > 0);
	assert_int_equal(p.tp->c.v[URN_C_ALIGN_NO_WORK] + p.tp->c.v[URN_C_ALIGNED], n - 22);
	p.looked = p.seen_n;
	probe_close(&p);
}

/* Place the frames that the node sent into `to`, as a peer does, and acknowledge them. */
static void
place_all(struct probe *p, uint8_t *to, uint32_t line)
{
	uint64_t va = 0;
	uint32_t psn = 0;

	probe_settle(p);
	while (p->looked != p->seen_n) {
		const struct frame *f = &p->seen[p->looked++ % PROBE_SEEN];

		if (f->op == WRITE_FIRST || f->op == WRITE_ONLY)
			va = f->va - PROBE_VA;
		if (f->op == WRITE_FIRST)
			assert_int_equal(va % line, 0);
		memcpy(to + va, f->data, f->len);
		va += f->len;
		psn = f->psn;
	}
	probe_ack(p, psn, SYN_ACK, 0);
}

/* AW-8: the bytes are those of the source for every offset and line, and others stay as they are.
 */
static void
bytes(void **state)
{
	enum { ROOM = 16384, GUARD = 512, MOST = 12288 };
	uint8_t *to = malloc(ROOM), *want = malloc(ROOM);
	uint64_t rng = 11;

	(void)state;
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		struct probe p;
		uint32_t wr = 0;

		open_aligned(&p, &(struct probe_config){.mtu = mtu}, 64);
		probe_fill(probe_at(&p, FROM), MOST, 9, 0);
		for (uint32_t off = 0; off < 256; off++) {
			for (uint32_t line = 64; line <= 256; line *= 2) {
				/* Past the line and the packet that must remain, so that it is
				 * reshaped. */
				uint32_t len = mtu + 2 * line +
					       (uint32_t)(urn_rnd_next(&rng) % (MOST - 8192 + 1));

				assert_int_equal(urn_qp_align_writes(p.qp, line), 0);
				memset(to, 0xa5, ROOM);
				memset(want, 0xa5, ROOM);
				memcpy(want + GUARD + off, probe_at(&p, FROM), len);
				probe_post(&p, URN_WR_RDMA_WRITE, 0, FROM, len, GUARD + off, wr);
				place_all(&p, to, line);
				expect_sent(&p, wr++, SUCCESS);
				assert_memory_equal(to, want, ROOM);
			}
		}
		expect_count(&p, ALIGNED, 252 + 254 + 255);
		probe_close(&p);
	}
	free(to);
	free(want);
}

/* A list of elements that does not fit beside the request: the head has a copy of it. */
static void
elements(void **state)
{
	uint8_t to[TARGET_MAX], want[TARGET_MAX];
	struct urn_abi_sge *sge;
	struct probe p;
	uint32_t at = 0;

	(void)state;
	open_aligned(&p, NULL, 128);
	probe_prepare(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, FROM, 1, 3, 1);
	probe_slot(&p)->num_sge = PROBE_SGES;
	sge = (void *)(probe_slot(&p) + 1);
	memset(to, 0xa5, sizeof(to));
	memset(want, 0xa5, sizeof(want));
	for (uint32_t i = 0; i < PROBE_SGES; i++) {
		uint32_t len = i ? 1111 : 50; /* the first line ends in the second element */

		sge[i] = (struct urn_abi_sge){PROBE_VA + FROM + 1500 * i, p.key_local, len};
		memcpy(want + 3 + at, probe_at(&p, FROM + 1500 * i), len);
		at += len;
	}
	probe_ring(&p);
	place_all(&p, to, 128);
	expect_sent(&p, 1, SUCCESS);
	assert_memory_equal(to, want, sizeof(to));
	expect_count(&p, ALIGNED, 1);
	probe_close(&p);
}

/* urn_reshape_skip() at its edges. */
static void
skipped(void **state)
{
	(void)state;
	assert_int_equal(urn_reshape_skip(1, 63 + 1024, 64, 1024), 0);
	assert_int_equal(urn_reshape_skip(1, 63 + 1025, 64, 1024), 63);
	assert_int_equal(urn_reshape_skip(0, 4096, 64, 1024), 0);
	assert_int_equal(urn_reshape_skip(1, 4096, 0, 1024), 0);
	assert_int_equal(urn_reshape_skip(255, 4096, 256, 256), 1);
	assert_int_equal(urn_reshape_skip(1, 10, 256, 256), 0);
	assert_int_equal(urn_reshape_skip(UINT64_MAX - 100, 4096, 64, 256),
			 0); /* wraps: for the peer to refuse */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skipped),    cmocka_unit_test(two_messages),
		cmocka_unit_test(quiet),      cmocka_unit_test(as_posted),
		cmocka_unit_test(peers_line), cmocka_unit_test(repeated),
		cmocka_unit_test(refused),    cmocka_unit_test(unreadable),
		cmocka_unit_test(drained),    cmocka_unit_test(no_room),
		cmocka_unit_test(elements),   cmocka_unit_test(bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
