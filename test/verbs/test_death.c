/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane that is killed under programs that work: urnicd, a process of its
 * own. argv[1] is it, argv[2] says how many times the busy test kills it.
 * Every request completes once, whatever the moment; nobody waits; and what the
 * dataplane had in shared memory is as it left it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/queue.h"
#include "verbs/cm.h"
#include "verbs/verbs_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	QPS = 5,            /* pairs of a busy program */
	DEPTH = 64,         /* requests of a queue */
	BYTES = 65536,      /* of a buffer */
	IDS = 1 << 22,      /* requests of a run, each way and pair */
	SOON_MS = 2000,     /* what must not take long may take so long */
};

static const char *urnicd;
static unsigned int rounds = 30;
static char dir[64], sock[96], config[96];
static uint64_t total, flushes; /* requests of all rounds; those that the death cut off */
static uint64_t logged; /* atomics that were */

/* ---- the dataplane */

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void
nap_us(long us)
{
	const struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static void
write_config(unsigned int engines)
{
	FILE *f = fopen(config, "w");

	assert_non_null(f);
	fprintf(f, "[urnicd]\nsocket = %s\nidle = pause\nempty_polls = 4\n", sock);
	for (unsigned int i = 0; i < engines; i++)
		fprintf(f, "[engine %u]\n", i);
	fprintf(f, "[adapter a0]\nnode = a\nswitch = wire\nipv4 = 10.0.0.1\nmbufs = 4k\n"
		   "[adapter b0]\nnode = b\nswitch = wire\nipv4 = 10.0.0.2\nmbufs = 4k\n[switch wire]\n");
	assert_int_equal(fclose(f), 0);
}

/* Start it, and wait until it is there. */
static pid_t
nicd_start(unsigned int engines)
{
	struct ibv_context *ctx = NULL;
	pid_t pid;

	write_config(engines);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* however this test ends */
		dup2(null, 2);
		execl(urnicd, urnicd, "-c", config, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	for (uint64_t end = now_ms() + 60000; ctx == NULL && now_ms() < end; nap_us(5000))
		ctx = urn_attach_connect(sock, "a");
	assert_non_null(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);
	return pid;
}

static void
nicd_kill(pid_t pid, int sig)
{
	assert_int_equal(kill(pid, sig), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- a busy program: both nodes, one thread */

/* What became of a request. */
enum fate { POSTED = 1, SUCCEEDED = 2, FLUSHED = 4 };

/* One way of one end of a pair: its requests, numbered as they are posted. */
struct way {
	uint8_t *fate;      /* by number */
	uint32_t posted;    /* numbers given out */
	uint32_t told;      /* one past the newest number that a completion came for */
	uint32_t out;       /* posted, and not known to be done */
	bool loose;         /* some requests are not signalled, or others take turns in the queue */
};

/* The kinds of pairs. */
enum pair { SENDS, WRITES, SHARED, FETCHES, FAR };

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq[2]; /* sends, receives */
	struct ibv_comp_channel *channel;
	struct ibv_cq *quiet; /* armed; nothing ever comes */
	struct ibv_srq *srq;
	struct ibv_qp *qp[QPS];
	uint8_t *buf;
	union ibv_gid gid;
	struct way send[QPS], recv[QPS], shared;
};

/* wr_id: its way, and its number there. */
#define WAY_SEND(q) ((uint64_t)(q) << 32)
#define WAY_RECV(q) ((uint64_t)(16 + (q)) << 32)
#define WAY_SHARED ((uint64_t)32 << 32)

static struct way *
way_of(struct end *e, uint64_t wr_id)
{
	uint32_t k = (uint32_t)(wr_id >> 32);

	return k == 32 ? &e->shared : k >= 16 ? &e->recv[k - 16] : &e->send[k];
}

static void
way_open(struct way *w, bool loose)
{
	w->fate = mmap(NULL, IDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(w->fate, MAP_FAILED);
	w->loose = loose;
}

static void
end_open(struct end *e, const char *node)
{
	unsigned int far;

	memset(e, 0, sizeof(*e));
	e->ctx = urn_attach_connect(sock, node);
	assert_non_null(e->ctx);
	far = (unsigned int)e->ctx->num_comp_vectors - 1;
	e->pd = ibv_alloc_pd(e->ctx);
	e->buf = urn_alloc(BYTES);
	e->mr = ibv_reg_mr(e->pd, e->buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(e->mr);
	/* Completions of sends may be another engine's than their QPs'. */
	e->cq[0] = ibv_create_cq(e->ctx, 4096, NULL, NULL, (int)far);
	e->cq[1] = ibv_create_cq(e->ctx, 4096, NULL, NULL, 0);
	e->channel = ibv_create_comp_channel(e->ctx);
	e->quiet = ibv_create_cq(e->ctx, 16, e, e->channel, 0);
	assert_int_equal(ibv_req_notify_cq(e->quiet, 0), 0);
	e->srq = ibv_create_srq(e->pd, &(struct ibv_srq_init_attr){
		.attr = {.max_wr = 2 * DEPTH, .max_sge = 1}});
	assert_non_null(e->srq);
	assert_int_equal(ibv_query_gid(e->ctx, 1, 1, &e->gid), 0);
	for (int q = 0; q < QPS; q++) {
		struct ibv_qp_init_attr init = {
			.send_cq = e->cq[0],
			.recv_cq = e->cq[1],
			.srq = q == SHARED || q == FAR ? e->srq : NULL,
			.cap = {DEPTH, DEPTH, 1, 1, 64},
			.qp_type = IBV_QPT_RC,
		};

		e->qp[q] = ibv_create_qp(e->pd, &init);
		assert_non_null(e->qp[q]);
		way_open(&e->send[q], q == WRITES);
		way_open(&e->recv[q], false);
	}
	way_open(&e->shared, true);
}

static void
end_connect(struct end *e, const struct end *peer)
{
	for (int q = 0; q < QPS; q++) {
		struct ibv_qp_attr a = {
			.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer->qp[q]->qp_num,
			.max_dest_rd_atomic = 16,
			.max_rd_atomic = 16,
			.min_rnr_timer = 1,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .sgid_index = 1}},
		};

		assert_int_equal(ibv_modify_qp(e->qp[q], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			IBV_QP_ACCESS_FLAGS), 0);
		a.qp_state = IBV_QPS_RTR;
		assert_int_equal(ibv_modify_qp(e->qp[q], &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
		a.qp_state = IBV_QPS_RTS;
		assert_int_equal(ibv_modify_qp(e->qp[q], &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	}
}

static void
way_close(struct way *w)
{
	munmap(w->fate, IDS);
}

/* Everything can be given back, dataplane or not. */
static void
end_close(struct end *e)
{
	for (int q = 0; q < QPS; q++) {
		assert_int_equal(ibv_destroy_qp(e->qp[q]), 0);
		way_close(&e->send[q]);
		way_close(&e->recv[q]);
	}
	way_close(&e->shared);
	assert_int_equal(ibv_destroy_srq(e->srq), 0);
	assert_int_equal(ibv_destroy_cq(e->cq[0]), 0);
	assert_int_equal(ibv_destroy_cq(e->cq[1]), 0);
	assert_int_equal(ibv_destroy_cq(e->quiet), 0);
	assert_int_equal(ibv_destroy_comp_channel(e->channel), 0);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	assert_int_equal(ibv_close_device(e->ctx), 0);
	urn_free(e->buf);
}

/* A number for the next request of a way; taken back when it could not be posted. */
static uint64_t
way_take(struct way *w, uint64_t kind)
{
	assert_true(w->posted < IDS);
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

/* returns: 0, or what posting answered */
static int
post_recvs(struct end *e, int q)
{
	bool srq = q == SHARED || q == FAR;
	struct way *w = srq ? &e->shared : &e->recv[q];
	int err = 0;

	while (err == 0 && w->out < (srq ? 2 * DEPTH : DEPTH)) {
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
post_sends(struct end *e, const struct end *peer, int q)
{
	static const enum ibv_wr_opcode ops[QPS] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
	struct way *w = &e->send[q];
	int err = 0;

	while (err == 0 && w->out < DEPTH) {
		uint64_t id = way_take(w, WAY_SEND(q));
		bool fetch = q == FETCHES;
		struct ibv_sge sge = {(uintptr_t)e->buf + (fetch ? 64 * (id % DEPTH) : 16384),
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
completed(struct end *e, const struct ibv_wc *wc)
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
	assert_true(n >= w->told); /* in their order */
	w->out -= n + 1 - w->told;
	w->told = n + 1;
}

static int
poll_all(struct end *e)
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

/* Post and poll until posting says that it is over. returns: what it said */
static int
work(struct end e[2])
{
	for (;;) {
		int err = 0;

		for (int i = 0; i < 2; i++) {
			for (int q = 0; q < QPS; q++) {
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

/* Each request completed once; what is not signalled may be quiet, but not once something failed. */
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

/* All is said within a moment, and nothing more comes. */
static void
drain(struct end *e)
{
	uint64_t start = now_ms();
	int idle = 0;

	/* Posting ends before the completion queues know: by as long as that thread is kept from its core. */
	while (idle < 3) {
		bool told = atomic_load(&urn_cq(e->cq[0])->gone) != URN_CQ_THERE &&
			    atomic_load(&urn_cq(e->cq[1])->gone) != URN_CQ_THERE;

		idle = poll_all(e) > 0 || !told ? 0 : idle + 1;
		assert_true(now_ms() - start < SOON_MS);
	}
	for (int q = 0; q < QPS; q++) {
		way_check(&e->send[q], "send", q);
		if (q != SHARED && q != FAR)
			way_check(&e->recv[q], "receive", q);
	}
	way_check(&e->shared, "shared", 0);
}

/* ---- what the dataplane left in memory is exact */

static void
check_memory(struct end *e)
{
	for (int q = 0; q < QPS; q++) {
		const struct urn_qp *qp = urn_qp(e->qp[q]);
		uint32_t prod = atomic_load(&qp->sq.hdr->prod), cons = atomic_load(&qp->sq.hdr->cons);

		assert_int_equal(prod, e->send[q].posted);
		assert_true(prod - cons <= DEPTH);
		/* cons says where what completed ends, and what was flushed begins. */
		for (uint32_t n = 0; n < prod; n++)
			assert_true(n < cons ? e->send[q].fate[n] != FLUSHED : e->send[q].fate[n] == FLUSHED);
		if (q == SHARED || q == FAR) {
			uint32_t done = atomic_load(&qp->taken->done), took = atomic_load(&qp->taken->cons);

			assert_true(took - done <= URN_ABI_TAKEN);
			continue;
		}
		prod = atomic_load(&qp->rq.hdr->prod);
		cons = atomic_load(&qp->rq.hdr->done);
		assert_int_equal(prod, e->recv[q].posted);
		assert_true(atomic_load(&qp->rq.hdr->cons) - cons <= DEPTH);
		for (uint32_t n = 0; n < prod; n++)
			assert_int_equal(e->recv[q].fate[n], n < cons ? SUCCEEDED : FLUSHED);
	}
}

/* Who took an entry of the SRQ stands in it; as many as the QPs say, and nobody else. */
static void
check_takers(struct end *e)
{
	const struct urn_rq *rq = &urn_srq(e->srq)->rq;
	uint32_t cons = atomic_load(&rq->hdr->cons), prod = atomic_load(&rq->hdr->prod), took = 0;

	assert_int_equal(prod, e->shared.posted);
	for (uint32_t i = prod > rq->mask ? prod - rq->mask - 1 : 0; i != prod; i++) {
		const struct urn_abi_rwqe *w = (const void *)(rq->slots + (size_t)(i & rq->mask) * rq->stride);

		assert_int_equal((uint32_t)w->wr_id, i);
		if ((int32_t)(i - cons) < 0)
			assert_true(w->taker == e->qp[SHARED]->qp_num || w->taker == e->qp[FAR]->qp_num);
	}
	for (int q = 0; q < QPS; q++)
		if (urn_qp(e->qp[q])->taken != NULL)
			took += atomic_load(&urn_qp(e->qp[q])->taken->cons);
	assert_int_equal(took, cons);
}

/*
 * The log of atomics against the memory: all add 1 to one word, one QP at a time. What is
 * done is in memory; what was only meant is there, or memory is as it was found.
 */
static void
check_atomics(struct end *e)
{
	const struct urn_qp *qp = urn_qp(e->qp[FETCHES]);
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
		if (how == URN_ATOMIC_DONE) {
			assert_true(log[i].new <= word);
			done = log[i].new > done ? log[i].new : done;
			continue;
		}
		assert_int_equal(how, URN_ATOMIC_INTENT);
		assert_true(word == log[i].old || word == log[i].new);
		meant++;
	}
	/* The newest that is done is what is there, but for one that was under way. */
	assert_true(meant <= 1);
	assert_true(word == done || (meant == 1 && word == done + 1));
	logged += done;
}

/* ---- those who sleep */

struct sleeper {
	pthread_t thread;
	struct end *e;
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
	ts.tv_sec += SOON_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(s->thread, NULL, &ts), 0);
	assert_int_equal(s->rc, 0);
}

/* What is asked after the death is answered at once, and with an error. */
static void
check_calls(struct end *e)
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
	/* It was told once; whoever asks again is not kept waiting. */
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
	struct end e[2], again[2];
	unsigned int engines = 1 + round % 2;
	pid_t pid = nicd_start(engines);
	pid_t killer;

	for (int i = 0; i < 2; i++)
		end_open(&e[i], i ? "b" : "a");
	for (int i = 0; i < 2; i++) {
		end_connect(&e[i], &e[1 - i]);
		waits[i][0] = waits[i][1] = (struct sleeper){.e = &e[i]};
		pthread_create(&waits[i][0].thread, NULL, sleep_on_channel, &waits[i][0]);
		pthread_create(&waits[i][1].thread, NULL, sleep_on_async, &waits[i][1]);
	}
	killer = fork();
	if (killer == 0) {
		nap_us(500 + (long)(round * 7919u % 60000u));
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
	/* Another one takes its place, while what the first left is still there. */
	pid = nicd_start(engines);
	for (int i = 0; i < 2; i++)
		end_open(&again[i], i ? "b" : "a");
	for (int i = 0; i < 2; i++)
		end_close(&e[i]);
	for (int i = 0; i < 2; i++)
		end_close(&again[i]);
	nicd_kill(pid, SIGTERM);
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

/* Requests that nobody looks at while it lives, in queues of every kind. */
static void
test_quiet(void **state)
{
	struct ibv_recv_wr *bad_recv;
	struct ibv_wc wc[8];
	struct end e;
	pid_t pid;

	(void)state;
	pid = nicd_start(1);
	end_open(&e, "a");
	end_connect(&e, &e);
	for (uint64_t i = 0; i < 3; i++) {
		struct ibv_recv_wr wr = {.wr_id = 100 + i}, srq = {.wr_id = 200 + i};

		assert_int_equal(ibv_post_recv(e.qp[0], &wr, &bad_recv), 0);
		assert_int_equal(ibv_post_srq_recv(e.srq, &srq, &bad_recv), 0);
	}
	assert_int_equal(ibv_poll_cq(e.cq[1], 8, wc), 0);
	nicd_kill(pid, SIGKILL);
	for (uint64_t end = now_ms() + SOON_MS; ibv_post_recv(e.qp[0], &(struct ibv_recv_wr){.wr_id = 103},
			&bad_recv) != EIO && now_ms() < end;)
		assert_true(ibv_poll_cq(e.cq[0], 8, wc) == 0);
	for (int i = 0, n = 0, got; n < 6 && i < 1000; i++, n += got) {
		got = ibv_poll_cq(e.cq[1], 2, wc);
		for (int k = 0; k < got; k++) {
			assert_int_equal(wc[k].status, IBV_WC_WR_FLUSH_ERR);
			assert_int_equal(wc[k].vendor_err, URN_VE_GONE);
			assert_true(wc[k].opcode & IBV_WC_RECV);
			if (wc[k].wr_id < 200)
				assert_int_equal(wc[k].qp_num, e.qp[0]->qp_num);
		}
		assert_true(i < 999);
	}
	end_close(&e);
}

/* Who waits for an event of connection management, there or in poll(), is woken and told. */
static void
test_cm(void **state)
{
	struct urn_cm_end c, late, kept;
	struct urn_abi_cm_event ev;
	struct ibv_context *ctx;
	struct pollfd p;
	uint32_t id;
	pid_t pid = nicd_start(1), killer;
	int status;

	(void)state;
	ctx = urn_attach_connect(sock, "a");
	assert_non_null(ctx);
	assert_int_equal(urn_cm_end_open(&late, ctx), 0);
	urn_cm_end_close(&late);
	assert_int_equal(urn_cm_end_open(&c, ctx), 0);
	assert_int_equal(urn_cm_end_open(&kept, ctx), 0);
	assert_int_equal(urn_cm_end_listen(&c, 77, 0, 0, &id), 0);
	assert_int_equal(urn_cm_end_event(&c, &ev), EAGAIN);
	killer = fork();
	if (killer == 0) {
		bool ok = urn_cm_end_event(&c, &ev) == EIO && strstr(urn_attach_error(), "fork") != NULL;

		urn_cm_end_close(&c);
		nap_us(50000);
		kill(pid, SIGKILL);
		_exit(ok ? 0 : 1);
	}
	p = (struct pollfd){.fd = c.fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(urn_cm_end_event(&c, &ev), EIO);
	assert_non_null(strstr(urn_attach_error(), "gone"));
	assert_int_equal(urn_cm_end_destroy(&c, id), 0);
	assert_int_equal(urn_cm_end_open(&late, ctx), EIO);
	urn_cm_end_close(&c);
	assert_int_equal(ibv_close_device(ctx), 0);
	urn_cm_end_close(&kept); /* after the context is right, too */
	assert_int_equal(waitpid(killer, &status, 0), killer);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A child of fork() is told so, and its parent goes on. */
static void
test_fork(void **state)
{
	struct end e;
	pid_t pid = nicd_start(1), child;
	void *p = urn_alloc(4096);
	int status;

	(void)state;
	end_open(&e, "a");
	memset(p, 7, 4096);
	child = fork();
	if (child == 0) {
		struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad;
		struct ibv_recv_wr recv = {0}, *bad_recv;
		struct ibv_async_event ev;
		struct ibv_wc wc;
		struct end own;
		bool ok = ibv_post_send(e.qp[0], &send, &bad) == EIO &&
			ibv_post_recv(e.qp[0], &recv, &bad_recv) == EIO &&
			ibv_post_srq_recv(e.srq, &recv, &bad_recv) == EIO &&
			ibv_poll_cq(e.cq[0], 1, &wc) == -1 && ibv_alloc_pd(e.ctx) == NULL && errno == EIO &&
			strstr(urn_attach_error(), "fork") != NULL && ibv_get_async_event(e.ctx, &ev) == -1;

		atomic_store(&urn_qp(e.qp[0])->sq.hdr->prod, 77); /* not the parent's queue */
		urn_free(p);
		end_close(&e);
		end_open(&own, "b"); /* one of its own works */
		end_close(&own);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(*(uint8_t *)p, 7);
	assert_int_equal(atomic_load(&urn_qp(e.qp[0])->sq.hdr->prod), 0);
	urn_free(p);
	end_connect(&e, &e);
	end_close(&e);
	nicd_kill(pid, SIGTERM);
}

/* Descriptors and threads of this program are as many as before. */
static unsigned int
entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static unsigned int fds_before, threads_before;

static int
setup(void **state)
{
	(void)state;
	fds_before = entries("/proc/self/fd");
	threads_before = entries("/proc/self/task");
	return 0;
}

static int
teardown(void **state)
{
	unsigned int segments = 0;

	(void)state;
	/* Memory of urn_alloc() stays: a segment is kept for the next who asks. */
	for (unsigned int i = 0; i < 64; i++) {
		char path[64], to[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%u", i);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		segments += strstr(to, "urnic-memory") != NULL;
	}
	if (segments > 1 || entries("/proc/self/fd") > fds_before + segments ||
	    entries("/proc/self/task") != threads_before)
		return -1;
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_quiet, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cm, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy, setup, teardown),
	};
	int rc;

	if (argc < 2)
		return 2;
	urnicd = argv[1];
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 10);
	snprintf(dir, sizeof(dir), "/tmp/urnic-death.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(config, sizeof(config), "%s/c.ini", dir);
	/* The dataplane's runtime files: of one that was killed the next takes them away. */
	setenv("TMPDIR", dir, 1);
	unsetenv("XDG_RUNTIME_DIR");
	rc = cmocka_run_group_tests_name("death", tests, NULL, NULL);
	(void)unlink(config);
	(void)unlink(sock);
	if (rmdir(dir) != 0) {
		fprintf(stderr, "%s: something is left: %s\n", dir, strerror(errno));
		(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		rc = rc ? rc : 1;
	}
	return rc;
}
