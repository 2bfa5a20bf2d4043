/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages for memory that is not shared with the dataplane: they come beside their
 * completions, and are in the memory of their receives once the program has polled those, or has
 * taken the memory, the queue pair or the queue away. RIG_REMOTE: over a dataplane's socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "verbs/adapter/adapter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 112, GRH = 40, SLOT = 4096, QKEY = 0x1234, PATIENCE = 60 /* seconds */ };

/* Memory of the receiving program, end 1, that only this test registers. */
struct bench {
	struct rig r;
	uint8_t *at; /* 64 * SLOT bytes, all 0xaa at first */
	struct ibv_mr *mr;
};

static void
open_bench(struct bench *b, const struct rig_qp *qp)
{
	memset(b, 0, sizeof(*b));
	rig_open(&b->r, &(struct rig_config){.foreign = true, .engines = 1}, qp);
	b->at = malloc(64 * SLOT);
	memset(b->at, 0xaa, 64 * SLOT);
	b->mr = ibv_reg_mr(b->r.end[1].pd, b->at, 64 * SLOT, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(b->mr);
}

static void
close_bench(struct bench *b)
{
	if (b->mr)
		assert_int_equal(ibv_dereg_mr(b->mr), 0);
	free(b->at);
	rig_close(&b->r);
}

static uint8_t *
slot(const struct bench *b, unsigned int i)
{
	return b->at + (size_t)i * SLOT;
}

static void
post_recv(struct bench *b, unsigned int i)
{
	rig_recv_on(b->r.end[1].qp, slot(b, i), SLOT, b->mr->lkey, i);
}

/* SEND `len` bytes of a pattern, with an immediate if the seed is odd. */
static void
post_send(struct bench *b, uint32_t len, uint32_t seed)
{
	uint8_t *from = b->r.end[0].buf + (size_t)(seed % 64) * SLOT;
	struct ibv_sge sge = {(uintptr_t)from, len, b->r.end[0].mr->lkey};
	struct ibv_send_wr wr = {.wr_id = seed,
				 .opcode = seed & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				 .imm_data = htobe32(seed),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED};

	rig_fill(from, len, seed);
	rig_send_on(b->r.end[0].qp, &wr);
}

/* These bytes hold the pattern, and those behind are as they were. */
static void
expect_at(const uint8_t *at, uint32_t len, uint32_t seed)
{
	uint8_t want[SLOT];

	memset(want, 0xaa, sizeof(want));
	rig_fill(want, len, seed);
	assert_memory_equal(at, want, sizeof(want));
}

static uint64_t
count(struct bench *b)
{
	return rig_counter(&b->r, 1, URN_C_BESIDE);
}

/* Turn until n messages in all were written beside completions. */
static void
wait_written(struct bench *b, uint64_t n)
{
	time_t start = time(NULL);

	while (count(b) < n && time(NULL) - start < PATIENCE)
		rig_turn(&b->r);
	assert_int_equal(count(b), n);
	/* An engine of another thread counts a message before its completion shows. */
	rig_turns(&b->r, 1);
}

/* Give both ends another queue pair, connected; o: end 1's. old: the ones before, if wanted */
static void
renew(struct bench *b, const struct rig_qp *o, struct ibv_qp *old[2])
{
	const struct rig_qp plain = {0};

	for (int e = 0; e < 2; e++) {
		if (old)
			old[e] = b->r.end[e].qp;
		else
			assert_int_equal(ibv_destroy_qp(b->r.end[e].qp), 0);
		b->r.end[e].qp = rig_make_qp(&b->r, e, e ? o : &plain);
	}
	rig_connect(&b->r, 1, b->r.end[1].qp, 5, b->r.end[0].qp->qp_num, 9, &plain);
	rig_connect(&b->r, 0, b->r.end[0].qp, 9, b->r.end[1].qp->qp_num, 5, &plain);
}

/* Replace the queue pair of an end, which was made for RC, by one of UC. */
static void
make_uc(struct bench *b, int e)
{
	assert_int_equal(ibv_destroy_qp(b->r.end[e].qp), 0);
	b->r.end[e].qp = rig_make_qp(&b->r, e, &(struct rig_qp){.type = IBV_QPT_UC});
}

static void
connect_uc(struct bench *b, int e, const struct ibv_qp *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	struct ibv_qp *qp = b->r.end[e].qp;

	a.ah_attr.grh.sgid_index = (uint8_t)rig_sgid_index(&b->r);
	rig_gid(&b->r, !e, &a.ah_attr.grh.dgid);
	assert_int_equal(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &a,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
			 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* Short messages take the short way, by the byte; longer ones and empty ones go as ever. The last
 * round: the program has another file at the number of the library's descriptor. */
static void
lengths(void **state)
{
	static const uint32_t len[] = {0, 1, 64, 111, 112, 113, 1024};
	const struct urn_abi_channel *ch;
	struct bench b;

	(void)state;
	for (int way = 0; way < 3; way++) {
		open_bench(&b, &(struct rig_qp){0});
		for (int e = 0; way == 1 && e < 2; e++)
			make_uc(&b, e);
		for (int e = 0; way == 1 && e < 2; e++)
			connect_uc(&b, e, b.r.end[!e].qp);
		ch = urn_ctx_dev(b.r.end[1].ctx)->channel;
		if (way == 2 && ch->proof)
			assert_true(dup2(open("/dev/zero", O_RDONLY), ch->proof(ch->ctx)) >= 0);
		for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			uint64_t before = count(&b);
			struct ibv_wc wc;

			post_recv(&b, i);
			post_send(&b, len[i], i);
			rig_expect(&b.r, 0, IBV_WC_SUCCESS);
			wc = rig_expect(&b.r, 1, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, i);
			assert_int_equal(wc.byte_len, len[i]);
			assert_int_equal(wc.wc_flags, i & 1 ? IBV_WC_WITH_IMM : 0);
			assert_true(!(i & 1) || wc.imm_data == htobe32(i));
			expect_at(slot(&b, i), len[i], i);
			assert_int_equal(count(&b) - before, len[i] >= 1 && len[i] <= MOST);
		}
		close_bench(&b);
	}
}

/* Short and long messages come in their order, though a worker places the long ones. */
static void
order(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){.depth = 64});
	for (unsigned int round = 0; round < 4; round++) {
		for (unsigned int i = 0; i < 32; i++)
			post_recv(&b, i);
		for (unsigned int i = 0; i < 32; i++)
			post_send(&b, i % 3 ? 64 : 4000, round * 32 + i);
		for (unsigned int i = 0; i < 32; i++) {
			assert_int_equal(rig_expect(&b.r, 1, IBV_WC_SUCCESS).wr_id, i);
			expect_at(slot(&b, i), i % 3 ? 64 : 4000, round * 32 + i);
			memset(slot(&b, i), 0xaa, SLOT);
			rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		}
	}
	assert_int_equal(count(&b), 4 * 21);
	close_bench(&b);
}

/* Receives of an SRQ, as many as it has. */
static void
shared_queue(void **state)
{
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq;
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){0});
	srq = ibv_create_srq(b.r.end[1].pd, &sa);
	assert_non_null(srq);
	renew(&b, &(struct rig_qp){.srq = srq}, NULL);
	for (unsigned int i = 0; i < 8; i++) {
		struct ibv_sge sge = {(uintptr_t)slot(&b, i), SLOT, b.mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
		post_send(&b, 100, i);
		wait_written(&b, i + 1);
	}
	for (unsigned int i = 0; i < 8; i++) {
		assert_int_equal(rig_expect(&b.r, 1, IBV_WC_SUCCESS).wr_id, i);
		expect_at(slot(&b, i), 100, i);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_destroy_qp(b.r.end[1].qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	b.r.end[1].qp = rig_make_qp(&b.r, 1, &(struct rig_qp){0});
	close_bench(&b);
}

static struct ibv_ah *
ah_to(struct bench *b)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	struct ibv_ah *ah;

	a.grh.sgid_index = (uint8_t)rig_sgid_index(&b->r);
	rig_gid(&b->r, 1, &a.grh.dgid);
	ah = ibv_create_ah(b->r.end[0].pd, &a);
	assert_non_null(ah);
	return ah;
}

/* Datagrams with the 40 bytes in front of them. */
static void
datagrams(void **state)
{
	static const uint32_t len[] = {1, MOST - GRH - 1, MOST - GRH, MOST - GRH + 1};
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED};
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){.type = IBV_QPT_UD});
	wr.wr.ud.ah = ah_to(&b);
	wr.wr.ud.remote_qpn = b.r.end[1].qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t before = count(&b);
		struct ibv_ah *back;
		struct ibv_wc wc;
		uint8_t want[SLOT];

		sge = (struct ibv_sge){(uintptr_t)b.r.end[0].buf, len[i], b.r.end[0].mr->lkey};
		rig_fill(b.r.end[0].buf, len[i], i);
		post_recv(&b, i);
		rig_send_on(b.r.end[0].qp, &wr);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		wc = rig_expect(&b.r, 1, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, len[i] + GRH);
		assert_int_equal(wc.wc_flags, IBV_WC_GRH);
		assert_int_equal(wc.src_qp, b.r.end[0].qp->qp_num);
		rig_fill(want, len[i], i);
		assert_memory_equal(slot(&b, i) + GRH, want, len[i]);
		assert_int_equal(slot(&b, i)[GRH + len[i]], 0xaa);
		/* The header is that of the datagram. */
		back = ibv_create_ah_from_wc(b.r.end[1].pd, &wc, (struct ibv_grh *)slot(&b, i), 1);
		assert_non_null(back);
		assert_int_equal(ibv_destroy_ah(back), 0);
		assert_int_equal(count(&b) - before, len[i] + GRH <= MOST);
	}
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
	close_bench(&b);
}

/* Memory that is deregistered has its bytes first, and none is written afterwards. */
static void
deregistered(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){0});
	for (unsigned int i = 0; i < 3; i++) {
		post_recv(&b, i);
		post_send(&b, 50, i);
	}
	wait_written(&b, 3);
	assert_int_equal(ibv_dereg_mr(b.mr), 0);
	b.mr = NULL;
	for (unsigned int i = 0; i < 3; i++)
		expect_at(slot(&b, i), 50, i);
	memset(b.at, 0x55, 64 * SLOT);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(rig_expect(&b.r, 1, IBV_WC_SUCCESS).wr_id, i);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
	}
	for (unsigned int i = 0; i < 64 * SLOT; i++)
		assert_int_equal(b.at[i], 0x55);
	close_bench(&b);
}

/* Memory that the program has unmapped before it takes the region and the queue pair away. */
static void
unmapped(void **state)
{
	struct bench b;

	(void)state;
	for (int qp_first = 0; qp_first < 2; qp_first++) {
		struct ibv_mr *mr;
		uint8_t *at;

		open_bench(&b, &(struct rig_qp){0});
		at = mmap(NULL, SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mr = ibv_reg_mr(b.r.end[1].pd, at, SLOT, IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(mr);
		rig_recv_on(b.r.end[1].qp, at, SLOT, mr->lkey, 1);
		post_send(&b, 64, 1);
		wait_written(&b, 1);
		assert_int_equal(munmap(at, SLOT), 0);
		if (qp_first) {
			assert_int_equal(ibv_destroy_qp(b.r.end[1].qp), 0);
			b.r.end[1].qp = rig_make_qp(&b.r, 1, &(struct rig_qp){0});
		}
		assert_int_equal(ibv_dereg_mr(mr), 0);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		close_bench(&b);
	}
}

/* Pages that the program has unmapped, or protected, before it polls. */
static void
pages(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){0});
	for (int gone = 0; gone < 2; gone++) {
		uint8_t *at = mmap(NULL, SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);
		struct ibv_mr *mr = ibv_reg_mr(b.r.end[1].pd, at, SLOT, IBV_ACCESS_LOCAL_WRITE);

		assert_non_null(mr);
		memset(at, 0xaa, SLOT);
		rig_recv_on(b.r.end[1].qp, at, SLOT, mr->lkey, 1);
		post_send(&b, 64, 1);
		wait_written(&b, (uint64_t)gone + 1);
		if (gone)
			assert_int_equal(munmap(at, SLOT), 0);
		else
			assert_int_equal(mprotect(at, SLOT, PROT_READ), 0);
		rig_expect(&b.r, 1, gone ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		if (!gone)
			expect_at(at, 64, 1);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		if (!gone)
			munmap(at, SLOT);
	}
	close_bench(&b);
}

/* The same for a region that gets other memory. */
static void
reregistered(void **state)
{
	uint8_t *other = calloc(1, SLOT);
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){0});
	post_recv(&b, 0);
	post_send(&b, 50, 0);
	wait_written(&b, 1);
	assert_int_equal(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, SLOT, 0),
			 0);
	expect_at(slot(&b, 0), 50, 0);
	memset(b.at, 0x55, SLOT);
	rig_expect(&b.r, 1, IBV_WC_SUCCESS);
	rig_expect(&b.r, 0, IBV_WC_SUCCESS);
	assert_int_equal(slot(&b, 0)[0], 0x55);
	assert_int_equal(other[0], 0);
	close_bench(&b);
	free(other);
}

/* Deregistration in the middle of an extended poll, of this completion and of one behind it. */
static void
extended(void **state)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_poll_cq_attr none = {0};
	struct ibv_qp *old[2];
	struct ibv_cq_ex *cq;
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){0});
	cq = ibv_create_cq_ex(b.r.end[1].ctx, &attr);
	assert_non_null(cq);
	renew(&b, &(struct rig_qp){.recv_cq = ibv_cq_ex_to_cq(cq)}, old);
	for (unsigned int i = 0; i < 3; i++) {
		post_recv(&b, i);
		post_send(&b, 60, i);
	}
	wait_written(&b, 3);
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	assert_int_equal(cq->wr_id, 0);
	expect_at(slot(&b, 0), 60, 0);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	expect_at(slot(&b, 1), 60, 1);
	assert_int_equal(ibv_dereg_mr(b.mr), 0);
	b.mr = NULL;
	expect_at(slot(&b, 2), 60, 2);
	memset(b.at, 0x55, 64 * SLOT);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 2);
	ibv_end_poll(cq);
	assert_int_equal(slot(&b, 2)[0], 0x55);
	for (unsigned int i = 0; i < 3; i++)
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(b.r.end[1].qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	b.r.end[1].qp = old[1];
	assert_int_equal(ibv_destroy_qp(old[0]), 0);
	close_bench(&b);
}

/* Messages move with their completions when the queue gets another size, either way. */
static void
resized(void **state)
{
	static const int size[] = {1024, 16, 32};
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){.depth = 64});
	for (unsigned int t = 0; t < 3; t++) {
		uint64_t before = count(&b);

		for (unsigned int i = 0; i < 10; i++) {
			post_recv(&b, i);
			post_send(&b, i == 4 ? 2000 : 100, t * 10 + i);
			rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		}
		wait_written(&b, before + 9);
		assert_int_equal(ibv_resize_cq(b.r.end[1].cq, size[t]), 0);
		for (unsigned int i = 0; i < 10; i++) {
			assert_int_equal(rig_expect(&b.r, 1, IBV_WC_SUCCESS).wr_id, i);
			expect_at(slot(&b, i), i == 4 ? 2000 : 100, t * 10 + i);
			memset(slot(&b, i), 0xaa, SLOT);
		}
	}
	/* Several laps of the small queue. */
	for (unsigned int i = 0; i < 100; i++) {
		post_recv(&b, i % 64);
		post_send(&b, 112, i);
		rig_expect(&b.r, 1, IBV_WC_SUCCESS);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		expect_at(slot(&b, i % 64), 112, i);
	}
	close_bench(&b);
}

/* A queue pair that goes leaves the bytes, and others' completions keep theirs. */
static void
destroyed(void **state)
{
	struct rig_qp o = {0};
	struct ibv_qp *gone[2];
	struct bench b;

	(void)state;
	open_bench(&b, &o);
	post_recv(&b, 0);
	post_send(&b, 70, 0);
	wait_written(&b, 1);
	renew(&b, &o, gone);
	post_recv(&b, 1);
	post_send(&b, 70, 1);
	wait_written(&b, 2);
	rig_recv_on(gone[1], slot(&b, 2), SLOT, b.mr->lkey, 2);
	assert_int_equal(ibv_destroy_qp(gone[1]), 0);
	expect_at(slot(&b, 0), 70, 0);
	assert_int_equal(rig_expect(&b.r, 1, IBV_WC_SUCCESS).wr_id, 1);
	expect_at(slot(&b, 1), 70, 1);
	assert_int_equal(ibv_destroy_qp(gone[0]), 0);
	close_bench(&b);
}

/* The dataplane checks keys and lengths before it says that a message has come. */
static void
refused(void **state)
{
	struct ibv_mr *weak;
	struct bench b;

	(void)state;
	for (int t = 0; t < 3; t++) {
		open_bench(&b, &(struct rig_qp){0});
		weak = ibv_reg_mr(b.r.end[1].pd, slot(&b, 0), SLOT, 0);
		assert_non_null(weak);
		rig_recv_on(b.r.end[1].qp, t == 2 ? slot(&b, 64) - 10 : slot(&b, 0), 64,
			    t == 0   ? b.mr->lkey ^ 0x5500
			    : t == 1 ? weak->lkey
				     : b.mr->lkey,
			    7);
		post_send(&b, 64, 1);
		rig_expect(&b.r, 1, IBV_WC_LOC_PROT_ERR);
		rig_expect(&b.r, 0, IBV_WC_REM_OP_ERR);
		assert_int_equal(count(&b), 0);
		assert_int_equal(slot(&b, 0)[0], 0xaa);
		assert_int_equal(ibv_dereg_mr(weak), 0);
		close_bench(&b);
	}
}

/* A receive of several pieces whose first is too short goes as ever; a long enough first one does
 * not. */
static void
pieces(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b, &(struct rig_qp){0});
	for (unsigned int t = 0; t < 2; t++) {
		uint32_t first = t ? 64 : 63;
		struct ibv_sge sge[2] = {{(uintptr_t)slot(&b, 0), first, b.mr->lkey},
					 {(uintptr_t)slot(&b, 0) + first, 100, b.mr->lkey}};
		struct ibv_recv_wr wr = {.wr_id = t, .sg_list = sge, .num_sge = 2}, *bad;

		assert_int_equal(ibv_post_recv(b.r.end[1].qp, &wr, &bad), 0);
		post_send(&b, 64, t);
		rig_expect(&b.r, 1, IBV_WC_SUCCESS);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		expect_at(slot(&b, 0), 64, t);
		assert_int_equal(count(&b), t);
	}
	close_bench(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),	cmocka_unit_test(order),
		cmocka_unit_test(shared_queue), cmocka_unit_test(datagrams),
		cmocka_unit_test(deregistered), cmocka_unit_test(unmapped),
		cmocka_unit_test(pages),	cmocka_unit_test(reregistered),
		cmocka_unit_test(extended),	cmocka_unit_test(resized),
		cmocka_unit_test(destroyed),	cmocka_unit_test(refused),
		cmocka_unit_test(pieces),
	};

	return cmocka_run_group_tests_name("beside", tests, NULL, NULL);
}
