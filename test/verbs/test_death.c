/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane (urnicd, a process of its own) is killed under programs that work. argv[1]:
 * urnicd; argv[2]: how many times the busy test kills it.
 * Every request completes once, at whatever moment the death comes; no program waits; and
 * shared memory is as the dataplane left it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/queue.h"
#include "death.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned int rounds = 30;
static uint64_t total, flushes; /* requests of all rounds; requests that the death cut off */
static uint64_t logged; /* atomics that were logged as done */

/* ---- requests and completions */

/* wr_id: the way, and the request's number there. */
#define WAY_SEND(q) ((uint64_t)(q) << 32)
#define WAY_RECV(q) ((uint64_t)(16 + (q)) << 32)
#define WAY_SHARED ((uint64_t)32 << 32)

static struct way *
way_of(struct death_end *e, uint64_t wr_id)
{
	uint32_t k = (uint32_t)(wr_id >> 32);

	return k == 32 ? &e->shared : k >= 16 ? &e->recv[k - 16] : &e->send[k];
}

/* A number for the next request of a way; given back when posting fails. */
static uint64_t
way_take(struct way *w, uint64_t kind)
{
	assert_true(w->posted < DEATH_IDS);
	w->fate[w->posted] = POSTED;
	w->out++;
	return kind | w->posted++;
}

static void
way_take_back(struct way *w)
{
	w->fate[--w->posted] = 0;
	w->out--;
}

/* returns: 0, or the error of posting */
static int
post_recvs(struct death_end *e, int q)
{
	bool srq = q == DEATH_SHARED || q == DEATH_FAR;
	struct way *w = srq ? &e->shared : &e->recv[q];
	int err = 0;

	while (err == 0 && w->out < (srq ? 2 * DEATH_DEPTH : DEATH_DEPTH)) {
		struct ibv_sge sge = {(uintptr_t)e->buf + 32768, 4096, e->mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		wr.wr_id = way_take(w, srq ? WAY_SHARED : WAY_RECV(q));
		err = srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp[q], &wr, &bad);
		if (err != 0) {
			assert_ptr_equal(bad, &wr);
			way_take_back(w);
		}
	}
	return err;
}

static int
post_sends(struct death_end *e, const struct death_end *peer, int q)
{
	static const enum ibv_wr_opcode ops[DEATH_QPS] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
	struct way *w = &e->send[q];
	int err = 0;

	while (err == 0 && w->out < DEATH_DEPTH) {
		uint64_t id = way_take(w, WAY_SEND(q));
		bool fetch = q == DEATH_FETCHES;
		struct ibv_sge sge = {(uintptr_t)e->buf + (fetch ? 64 * (id % DEATH_DEPTH) : 16384),
			fetch ? 8 : (uint32_t)id * 37 % 3000, e->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = ops[q]}, *bad;

		if (!w->loose || id % 8 == 7)
			wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + 40960;
		wr.wr.rdma.rkey = peer->mr->rkey;
		if (fetch) {
			wr.wr.atomic.remote_addr = (uintptr_t)peer->buf + 65528;
			wr.wr.atomic.compare_add = 1;
			wr.wr.atomic.rkey = peer->mr->rkey;
		}
		err = ibv_post_send(e->qp[q], &wr, &bad);
		if (err != 0)
			way_take_back(w);
	}
	return err;
}

static void
completed(struct death_end *e, const struct ibv_wc *wc)
{
	struct way *w = way_of(e, wc->wr_id);
	uint32_t n = (uint32_t)wc->wr_id;

	assert_true(n < w->posted);
	if (w->fate[n] != POSTED)
		fail_msg("request %llx completes twice: %s, was %u", (unsigned long long)wc->wr_id,
			 ibv_wc_status_str(wc->status), w->fate[n]);
	if (wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR)
		fail_msg("request %llx: %s", (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status));
	w->fate[n] = wc->status == IBV_WC_SUCCESS ? SUCCEEDED : FLUSHED;
	if (w == &e->shared) {
		w->out--;
		return;
	}
	assert_true(n >= w->told); /* completions come in order */
	w->out -= n + 1 - w->told;
	w->told = n + 1;
}

static int
poll_all(struct death_end *e)
{
	struct ibv_wc wc[32];
	int n = 0;

	for (int k = 0; k < 2; k++) {
		int got = ibv_poll_cq(e->cq[k], 32, wc);

		assert_true(got >= 0);
		for (int i = 0; i < got; i++)
			completed(e, &wc[i]);
		n += got;
	}
	return n;
}

/* Post and poll until posting reports the death. returns: posting's error */
static int
work(struct death_end e[2])
{
	for (;;) {
		int err = 0;

		for (int i = 0; i < 2; i++) {
			for (int q = 0; q < DEATH_QPS; q++) {
				int rc = post_recvs(&e[i], q);

				err = rc != 0 && rc != ENOMEM ? rc : err;
				rc = post_sends(&e[i], &e[1 - i], q);
				err = rc != 0 && rc != ENOMEM ? rc : err;
			}
			poll_all(&e[i]);
		}
		if (err != 0)
			return err;
	}
}

/*
 * Each request completed once; requests that are not signalled may have no completion, but only
 * until a failure.
 */
static void
way_check(const struct way *w, const char *what, int q)
{
	bool flushed = false;

	for (uint32_t n = 0; n < w->posted; n++) {
		bool quiet = w->loose && n % 8 != 7 && strcmp(what, "send") == 0;

		if (w->fate[n] == POSTED && (!quiet || flushed))
			fail_msg("%s %u of pair %d of %u never completed", what, n, q, w->posted);
		if (w->fate[n] == SUCCEEDED && flushed && !(w->loose && strcmp(what, "shared") == 0))
			fail_msg("%s %u of pair %d succeeded after a flushed one", what, n, q);
		flushed |= w->fate[n] == FLUSHED;
		flushes += w->fate[n] == FLUSHED;
	}
	total += w->posted;
}

/* All completions come within a moment, and then no more. */
static void
drain(struct death_end *e)
{
	uint64_t start = death_now_ms();
	int idle = 0;

	/*
	 * Posting may fail before the completion queues know: by the time that their thread waits
	 * for its core.
	 */
	while (idle < 3) {
		bool told = atomic_load(&urn_cq(e->cq[0])->gone) != URN_CQ_THERE &&
			    atomic_load(&urn_cq(e->cq[1])->gone) != URN_CQ_THERE;

		idle = poll_all(e) > 0 || !told ? 0 : idle + 1;
		assert_true(death_now_ms() - start < DEATH_SOON_MS);
	}
	for (int q = 0; q < DEATH_QPS; q++) {
		way_check(&e->send[q], "send", q);
		if (q != DEATH_SHARED && q != DEATH_FAR)
			way_check(&e->recv[q], "receive", q);
	}
	way_check(&e->shared, "shared", 0);
}

/* ---- the memory that the dataplane left is exact */

static void
check_memory(struct death_end *e)
{
	for (int q = 0; q < DEATH_QPS; q++) {
		const struct urn_adapter_qp *qp = urn_qp(e->qp[q]);
		uint32_t prod = atomic_load(&qp->sq.hdr->prod), cons = atomic_load(&qp->sq.hdr->cons);

		assert_int_equal(prod, e->send[q].posted);
		assert_true(prod - cons <= DEATH_DEPTH);
		/* cons says where completed requests end and flushed ones begin. */
		for (uint32_t n = 0; n < prod; n++)
			assert_true(n < cons ? e->send[q].fate[n] != FLUSHED : e->send[q].fate[n] == FLUSHED);
		if (q == DEATH_SHARED || q == DEATH_FAR) {
			uint32_t done = atomic_load(&qp->taken->done), took = atomic_load(&qp->taken->cons);

			assert_true(took - done <= URN_ABI_TAKEN);
			continue;
		}
		prod = atomic_load(&qp->rq.hdr->prod);
		cons = atomic_load(&qp->rq.hdr->done);
		assert_int_equal(prod, e->recv[q].posted);
		assert_true(atomic_load(&qp->rq.hdr->cons) - cons <= DEATH_DEPTH);
		for (uint32_t n = 0; n < prod; n++)
			assert_int_equal(e->recv[q].fate[n], n < cons ? SUCCEEDED : FLUSHED);
	}
}

/* Each entry of the SRQ that was taken names its QP; the entries and the QPs' counts agree. */
static void
check_takers(struct death_end *e)
{
	const struct urn_adapter_rq *rq = &urn_srq(e->srq)->rq;
	uint32_t cons = atomic_load(&rq->hdr->cons), prod = atomic_load(&rq->hdr->prod), took = 0;

	assert_int_equal(prod, e->shared.posted);
	for (uint32_t i = prod > rq->mask ? prod - rq->mask - 1 : 0; i != prod; i++) {
		const struct urn_abi_rwqe *w = (const void *)(rq->slots + (size_t)(i & rq->mask) * rq->stride);

		assert_int_equal((uint32_t)w->wr_id, i);
		if ((int32_t)(i - cons) < 0)
			assert_true(w->taker == e->qp[DEATH_SHARED]->qp_num || w->taker == e->qp[DEATH_FAR]->qp_num);
	}
	for (int q = 0; q < DEATH_QPS; q++)
		if (urn_qp(e->qp[q])->taken != NULL)
			took += atomic_load(&urn_qp(e->qp[q])->taken->cons);
	assert_int_equal(took, cons);
}

/*
 * The log of atomics against the memory: all add 1 to one word, one QP at a time. The
 * effect of an atomic that is logged as done is in memory; that of one only intended is
 * there, or memory is unchanged.
 */
static void
check_atomics(struct death_end *e)
{
	const struct urn_adapter_qp *qp = urn_qp(e->qp[DEATH_FETCHES]);
	uint32_t n = atomic_load(&qp->rq.hdr->atomics), meant = 0, i;
	uint64_t word = *(uint64_t *)(e->buf + 65528), done = 0;
	const struct urn_abi_atomic *log;

	assert_int_equal(n, 16);
	log = urn_dev_at(qp->dev, qp->rq.hdr->atomics_off);
	for (i = 0; i < n; i++) {
		uint32_t how = atomic_load(&log[i].state);

		if (how == URN_ATOMIC_NONE)
			continue;
		assert_int_equal(log[i].addr, (uintptr_t)e->buf + 65528);
		assert_int_equal(log[i].new, log[i].old + 1);
		assert_int_equal(log[i].number % n, i);
		if (how == URN_ATOMIC_DONE) {
			assert_true(log[i].new <= word);
			done = log[i].new > done ? log[i].new : done;
			continue;
		}
		assert_int_equal(how, URN_ATOMIC_INTENT);
		assert_true(word == log[i].old || word == log[i].new);
		meant++;
	}
	/* Memory has the newest atomic that is done; only one under way may be in doubt. */
	assert_true(meant <= 1);
	assert_true(word == done || (meant == 1 && word == done + 1));
	logged += done;
}

/* ---- threads that sleep */

struct sleeper {
	pthread_t thread;
	struct death_end *e;
	struct ibv_cq *cq;
	struct ibv_async_event ev;
	int rc;
};

static void *
sleep_on_channel(void *arg)
{
	struct sleeper *s = arg;
	void *context;

	s->rc = ibv_get_cq_event(s->e->channel, &s->cq, &context);
	return NULL;
}

static void *
sleep_on_async(void *arg)
{
	struct sleeper *s = arg;

	s->rc = ibv_get_async_event(s->e->ctx, &s->ev);
	return NULL;
}

static void
join_soon(struct sleeper *s)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += DEATH_SOON_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(s->thread, NULL, &ts), 0);
	assert_int_equal(s->rc, 0);
}

/* Calls after the death are answered at once, with an error. */
static void
check_calls(struct death_end *e)
{
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad;
	struct pollfd p = {.fd = e->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event ev;
	struct ibv_port_attr port;
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_post_send(e->qp[0], &send, &bad), EIO);
	assert_int_equal(ibv_post_recv(e->qp[0], &recv, &bad_recv), EIO);
	assert_int_equal(ibv_post_srq_recv(e->srq, &recv, &bad_recv), EIO);
	assert_int_equal(ibv_query_port(e->ctx, 1, &port), EIO);
	errno = 0;
	assert_null(ibv_alloc_pd(e->ctx));
	assert_int_equal(errno, EIO);
	assert_non_null(strstr(urn_attach_error(), "gone"));
	assert_null(ibv_create_comp_channel(e->ctx));
	assert_null(ibv_reg_mr(e->pd, e->buf, 64, 0));
	/* The event came once; a program that asks again is not kept waiting. */
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ibv_get_async_event(e->ctx, &ev), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_req_notify_cq(e->quiet, 0), 0);
	assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), -1);
	assert_int_equal(errno, EIO);
}

/* ---- tests */

static void
one_round(unsigned int round, int sig)
{
	struct sleeper waits[2][2];
	struct death_end e[2], again[2];
	unsigned int engines = 1 + round % 2;
	pid_t pid = death_start(engines);
	pid_t killer;

	for (int i = 0; i < 2; i++)
		death_open(&e[i], i ? "b" : "a");
	for (int i = 0; i < 2; i++) {
		death_connect(&e[i], &e[1 - i]);
		waits[i][0] = waits[i][1] = (struct sleeper){.e = &e[i]};
		pthread_create(&waits[i][0].thread, NULL, sleep_on_channel, &waits[i][0]);
		pthread_create(&waits[i][1].thread, NULL, sleep_on_async, &waits[i][1]);
	}
	killer = fork();
	if (killer == 0) {
		death_nap_us(500 + (long)(round * 7919u % 60000u));
		kill(pid, sig);
		_exit(0);
	}
	assert_int_equal(work(e), EIO);
	assert_int_equal(waitpid(killer, NULL, 0), killer);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 2; i++) {
		drain(&e[i]);
		join_soon(&waits[i][0]);
		assert_ptr_equal(waits[i][0].cq, e[i].quiet);
		ibv_ack_cq_events(waits[i][0].cq, 1);
		join_soon(&waits[i][1]);
		assert_int_equal(waits[i][1].ev.event_type, IBV_EVENT_DEVICE_FATAL);
		ibv_ack_async_event(&waits[i][1].ev);
		check_memory(&e[i]);
		check_takers(&e[i]);
		check_atomics(&e[i]);
		check_calls(&e[i]);
	}
	/* Another dataplane takes its place, while the remains of the first are still there. */
	pid = death_start(engines);
	for (int i = 0; i < 2; i++)
		death_open(&again[i], i ? "b" : "a");
	for (int i = 0; i < 2; i++)
		death_close(&e[i]);
	for (int i = 0; i < 2; i++)
		death_close(&again[i]);
	death_kill(pid, SIGTERM);
}

static void
test_busy(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < rounds; i++)
		one_round(i, i % 5 == 4 ? SIGTERM : SIGKILL);
	print_message("%llu requests, of which %llu were flushed\n", (unsigned long long)total,
		      (unsigned long long)flushes);
	assert_true(total > flushes && flushes > 0 && logged > 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_busy, death_setup, death_teardown),
	};
	int rc = death_begin(argc, argv);

	if (rc != 0)
		return rc;
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 10);
	return death_finish(cmocka_run_group_tests_name("death", tests, NULL, NULL));
}
