/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_post_send() and ibv_bind_mw(): contents of the send queue (lib/abi/queue.h), and refusals. */
#include "test.h"

#include <errno.h>
#include <string.h>

/* A signalled SEND of one element. */
static struct ibv_send_wr
wr_send(struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){.addr = 0x1122334455667788, .length = 99, .lkey = 0xabcd};
	return (struct ibv_send_wr){.wr_id = 42, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
}

static void
send_layout(void **state)
{
	struct env *e = *state;
	const struct urn_abi_swqe *w;
	const struct urn_abi_sge *s;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge[2];
	uint32_t db = 0;

	wr = wr_send(&sge[0]);
	sge[1] = (struct ibv_sge){.addr = 5, .length = 0, .lkey = 6};
	wr.num_sge = 2;
	wr.send_flags |= IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	w = fake_send_wqe(e->f, e->qpn);
	assert_non_null(w);
	assert_int_equal(w->wr_id, 42);
	assert_int_equal(w->opcode, URN_WR_SEND);
	assert_int_equal(w->flags, URN_WRF_SIGNALED | URN_WRF_FENCE | URN_WRF_SOLICITED);
	assert_int_equal(w->num_sge, 2);
	assert_int_equal(w->rdma.inline_len, 0);
	s = (const struct urn_abi_sge *)(w + 1);
	assert_int_equal(s[0].addr, 0x1122334455667788);
	assert_int_equal(s[0].length, 99);
	assert_int_equal(s[0].lkey, 0xabcd);
	assert_int_equal(s[1].addr, 5);
	assert_int_equal(s[1].length, 0);
	assert_int_equal(s[1].lkey, 6);
	/* One bit of the doorbell; an engine that is awake is not woken. */
	assert_int_equal(fake_doorbells(e->f, &db), 1);
	assert_int_equal(db, fake_qp(e->f, e->qpn)->db);
	assert_int_equal(e->f->wakes, 0);
}

static void
send_rdma_and_atomics(void **state)
{
	struct env *e = *state;
	const struct urn_abi_swqe *w;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;

	wr = wr_send(&sge);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = 0x04030201;
	wr.wr.rdma.remote_addr = 0xdeadbeef00;
	wr.wr.rdma.rkey = 0x77;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	w = fake_send_wqe(e->f, e->qpn);
	assert_int_equal(w->opcode, URN_WR_RDMA_WRITE_IMM);
	assert_int_equal(w->imm, 0x04030201);
	assert_int_equal(w->rdma.remote_addr, 0xdeadbeef00);
	assert_int_equal(w->rdma.rkey, 0x77);
	fake_retire(e->f, e->qpn, 1);

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.remote_addr = 0x8000;
	wr.wr.atomic.rkey = 0x78;
	wr.wr.atomic.compare_add = 0x1111222233334444;
	wr.wr.atomic.swap = 0x5555666677778888;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	w = fake_send_wqe(e->f, e->qpn);
	assert_int_equal(w->opcode, URN_WR_CMP_SWAP);
	assert_int_equal(w->rdma.remote_addr, 0x8000);
	assert_int_equal(w->rdma.rkey, 0x78);
	assert_int_equal(w->rdma.compare_add, 0x1111222233334444);
	assert_int_equal(w->rdma.swap, 0x5555666677778888);
	assert_int_equal(w->num_sge, 1);
}

static void
send_every_rc_opcode(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV};
	struct env *e = *state;
	const struct urn_abi_swqe *w;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		wr = wr_send(&sge);
		wr.opcode = ops[i];
		wr.invalidate_rkey = 0x5a5a;
		assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
		w = fake_send_wqe(e->f, e->qpn);
		assert_int_equal(w->opcode, ops[i]);
		assert_int_equal(w->imm, 0x5a5a);
		fake_finish(e->f, e->qpn);
		env_poll(e->cq, 1);
	}
}

/* Opcode 10 is TSO in verbs and another one in the ABI: it must not get through. */
static void
send_refuses_opcodes(void **state)
{
	static const int bad_ops[] = {IBV_WR_TSO, IBV_WR_DRIVER1, IBV_WR_ATOMIC_WRITE, 31, 32, 1000, -1};
	struct env *e = *state;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	size_t i;

	for (i = 0; i < sizeof(bad_ops) / sizeof(bad_ops[0]); i++) {
		wr = wr_send(&sge);
		wr.opcode = (enum ibv_wr_opcode)bad_ops[i];
		bad = NULL;
		assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr);
	}
	assert_null(fake_send_wqe(e->f, e->qpn));
	assert_int_equal(fake_doorbells(e->f, NULL), 0);
}

static void
send_inline(void **state)
{
	struct env *e = *state;
	uint8_t data[65], expect[64];
	const struct urn_abi_swqe *w;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge[2];
	unsigned int i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	wr = wr_send(&sge[0]);
	wr.send_flags |= IBV_SEND_INLINE;
	wr.num_sge = 2;
	sge[0] = (struct ibv_sge){.addr = (uintptr_t)data, .length = 10};
	sge[1] = (struct ibv_sge){.addr = (uintptr_t)data + 11, .length = 54};
	memcpy(expect, data, 10);
	memcpy(expect + 10, data + 11, 54);
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	memset(data, 0, sizeof(data)); /* the buffer may be reused at once */
	w = fake_send_wqe(e->f, e->qpn);
	assert_int_equal(w->flags, URN_WRF_SIGNALED | URN_WRF_INLINE);
	assert_int_equal(w->num_sge, 0);
	assert_int_equal(w->rdma.inline_len, 64);
	assert_memory_equal(w + 1, expect, 64);

	/* One byte more than max_inline, in one element and in sum. */
	sge[1].length = 55;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	sge[0].length = UINT32_MAX;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	/* A response has no place in a request: READs and atomics can't be inline. */
	sge[0].length = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	fake_retire(e->f, e->qpn, 1);
	assert_null(fake_send_wqe(e->f, e->qpn));
}

static void
send_refuses_too_many_elements(void **state)
{
	struct env *e = *state;
	struct ibv_sge sge[5] = {{0}};
	struct ibv_send_wr *bad, wr;

	wr = wr_send(&sge[0]);
	wr.num_sge = 4;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	wr.num_sge = 5;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_IP_CSUM;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
}

/* A list is posted up to the first bad request, which is reported; the doorbell rings once. */
static void
send_list_stops_at_bad(void **state)
{
	struct env *e = *state;
	struct ibv_send_wr *bad = NULL, wr[4];
	struct ibv_sge sge;
	int i;

	for (i = 0; i < 4; i++) {
		wr[i] = wr_send(&sge);
		wr[i].wr_id = (uint64_t)i;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = 100;
	assert_int_equal(ibv_post_send(e->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(fake_send_wqe(e->f, e->qpn)->wr_id, 0);
	fake_retire(e->f, e->qpn, 1);
	assert_int_equal(fake_send_wqe(e->f, e->qpn)->wr_id, 1);
	fake_retire(e->f, e->qpn, 1);
	assert_null(fake_send_wqe(e->f, e->qpn));
	assert_int_equal(fake_doorbells(e->f, NULL), 1);
}

/*
 * All slots can be used, no more; indices wrap. A slot is free when the completion of its request,
 * or of a later one, is polled (doc/reference/verbs.md).
 */
static void
send_full_and_wrap(void **state)
{
	struct env *e = *state;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	unsigned int lap, i;

	wr = wr_send(&sge);
	for (lap = 0; lap < 5; lap++) {
		for (i = 0; i < 8; i++) {
			wr.wr_id = lap * 8 + i;
			assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
		}
		bad = NULL;
		assert_int_equal(ibv_post_send(e->qp, &wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr);
		for (i = 0; i < 8; i++) {
			assert_int_equal(fake_send_wqe(e->f, e->qpn)->wr_id, lap * 8 + i);
			fake_retire(e->f, e->qpn, 1);
			assert_int_equal(ibv_post_send(e->qp, &wr, &bad), ENOMEM);
		}
		fake_complete(e->f, e->cq->handle, &(struct fake_wc){.qpn = e->qpn});
		assert_int_equal(ibv_post_send(e->qp, &wr, &bad), ENOMEM);
		env_poll(e->cq, 1);
	}
}

/* verbs: posting is an error before RTS; in ERR it is allowed, to be flushed. */
static void
send_by_state(void **state)
{
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} want[] = {
		{IBV_QPS_RESET, EINVAL, EINVAL}, {IBV_QPS_INIT, EINVAL, 0}, {IBV_QPS_RTR, EINVAL, 0},
		{IBV_QPS_RTS, 0, 0}, {IBV_QPS_SQD, 0, 0}, {IBV_QPS_SQE, 0, 0}, {IBV_QPS_ERR, 0, 0},
	};
	struct env *e = *state;
	struct ibv_recv_wr *rbad, rwr = {.num_sge = 0};
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	size_t i;

	wr = wr_send(&sge);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(env_modify(e->qp, want[i].state), 0);
		assert_int_equal(ibv_post_send(e->qp, &wr, &bad), want[i].send);
		assert_int_equal(ibv_post_recv(e->qp, &rwr, &rbad), want[i].recv);
	}
}

/* A dataplane that sleeps is woken, once for a call. */
static void
send_wakes_sleeper(void **state)
{
	struct env *e = *state;
	struct ibv_send_wr *bad, wr[2];
	struct ibv_sge sge;

	wr[0] = wr[1] = wr_send(&sge);
	wr[0].next = &wr[1];
	atomic_store(&e->f->db->asleep, 1);
	assert_int_equal(ibv_post_send(e->qp, wr, &bad), 0);
	assert_int_equal(e->f->wakes, 1);
}

static void
send_ud(void **state)
{
	struct env *e = *state;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);
	const struct urn_abi_swqe *w;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	uint8_t data[4] = {1, 2, 3, 4};

	wr = wr_send(&sge);
	sge = (struct ibv_sge){.addr = (uintptr_t)data, .length = 4};
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x99;
	wr.send_flags |= IBV_SEND_INLINE;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x123456;
	wr.wr.ud.remote_qkey = 0x11111111;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	w = fake_send_wqe(e->f, e->qpn);
	assert_int_equal(w->ud.ah, ah->handle);
	assert_int_equal(w->ud.remote_qpn, 0x123456);
	assert_int_equal(w->ud.remote_qkey, 0x11111111);
	assert_int_equal(w->ud.inline_len, 4);
	assert_memory_equal(w + 1, data, 4);
	assert_int_equal(w->imm, 0x99);

	wr.opcode = IBV_WR_RDMA_WRITE; /* not on UD */
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = NULL;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void
bind_type_1(void **state)
{
	struct env *e = *state;
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	struct ibv_mr mr = {.pd = e->pd, .lkey = 0x4444};
	struct ibv_mw_bind bind = {.wr_id = 9, .send_flags = IBV_SEND_SIGNALED};
	const struct urn_abi_swqe *w;
	uint32_t key;

	assert_non_null(mw);
	mw->rkey |= 0xff; /* the 8-bit key wraps and leaves the index alone */
	key = mw->rkey;
	bind.bind_info = (struct ibv_mw_bind_info){.mr = &mr, .addr = 0x7000, .length = 0x123,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	assert_int_equal(ibv_bind_mw(e->qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, key & ~0xffu);
	w = fake_send_wqe(e->f, e->qpn);
	assert_int_equal(w->opcode, URN_WR_BIND_MW1);
	assert_int_equal(w->flags, URN_WRF_SIGNALED);
	assert_int_equal(w->wr_id, 9);
	assert_int_equal(w->bind.addr, 0x7000);
	assert_int_equal(w->bind.length, 0x123);
	assert_int_equal(w->bind.mw_rkey, key);
	assert_int_equal(w->bind.new_rkey, mw->rkey);
	assert_int_equal(w->bind.mr_lkey, 0x4444);
	assert_int_equal(w->bind.access, URN_ACCESS_REMOTE_WRITE);
	assert_int_equal(fake_doorbells(e->f, NULL), 1);

	/* A bind that is not posted leaves the key as it was. */
	assert_int_equal(env_modify(e->qp, IBV_QPS_RESET), 0);
	key = mw->rkey;
	assert_int_equal(ibv_bind_mw(e->qp, mw, &bind), EINVAL);
	assert_int_equal(mw->rkey, key);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void
bind_type_2(void **state)
{
	struct env *e = *state;
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
	struct ibv_mr mr = {.pd = e->pd, .lkey = 0x4444};
	const struct urn_abi_swqe *w;
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW};
	uint32_t key;

	assert_non_null(mw);
	key = mw->rkey;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(key);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = &mr, .addr = 1, .length = 2,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED};
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	w = fake_send_wqe(e->f, e->qpn);
	assert_int_equal(w->opcode, URN_WR_BIND_MW);
	assert_int_equal(w->num_sge, 0);
	assert_int_equal(w->bind.mw_rkey, key);
	assert_int_equal(w->bind.new_rkey, key + 1);
	assert_int_equal(w->bind.access, URN_ACCESS_REMOTE_READ | URN_ACCESS_ZERO_BASED);
	assert_int_equal(mw->rkey, key); /* verbs: the window's key stays */
	mw->type = IBV_MW_TYPE_1;
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

#define THREADS 4
#define EACH 50000

/* The queue that all threads post to: deep, so that they run in parallel. */
static struct ibv_qp *deep;

static void *
poster(void *arg)
{
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	int err;
	unsigned int i;

	wr = wr_send(&sge);
	wr.wr_id = (uint64_t)(uintptr_t)pthread_self();
	for (i = 0; i < EACH; i++) {
		sge.length = i;
		while ((err = ibv_post_send(deep, &wr, &bad)) == ENOMEM)
			sched_yield();
		if (err != 0)
			return (void *)(intptr_t)err;
	}
	return arg;
}

/*
 * doc/reference/verbs.md "Threads": no request of several threads is lost or torn, each thread's
 * requests stay in order, and a published request always has its doorbell set.
 */
static void
send_from_threads(void **state)
{
	struct env *e = *state;
	struct ibv_qp_init_attr qi = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4096, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	const struct urn_abi_swqe *w;
	uint32_t next[THREADS] = {0}, qpn;
	pthread_t t[THREADS];
	unsigned int seen = 0, i;
	void *ret;

	deep = ibv_create_qp(e->pd, &qi);
	assert_non_null(deep);
	qpn = deep->qp_num;
	env_connect(deep);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, poster, e), 0);
	while (seen < THREADS * EACH) {
		if (fake_doorbells(e->f, NULL) == 0) {
			sched_yield();
			continue;
		}
		while ((w = fake_send_wqe(e->f, qpn)) != NULL) {
			for (i = 0; i < THREADS && (uint64_t)(uintptr_t)t[i] != w->wr_id; i++)
				;
			assert_in_range(i, 0, THREADS - 1);
			assert_int_equal(((const struct urn_abi_sge *)(w + 1))->length, next[i]++);
			fake_finish(e->f, qpn);
			env_poll(e->cq, 1);
			seen++;
		}
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i], &ret), 0);
		assert_ptr_equal(ret, e);
	}
	assert_int_equal(ibv_destroy_qp(deep), 0);
}

#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(send_layout), RC(send_rdma_and_atomics), RC(send_every_rc_opcode), RC(send_refuses_opcodes),
		RC(send_inline), RC(send_refuses_too_many_elements), RC(send_list_stops_at_bad),
		RC(send_full_and_wrap), RC(send_by_state), RC(send_wakes_sleeper),
		cmocka_unit_test_setup_teardown(send_ud, env_setup_ud, env_teardown),
		RC(bind_type_1), RC(bind_type_2), RC(send_from_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
