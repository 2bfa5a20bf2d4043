/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corners of sessions, one a run: two queue pairs of one program that are connected to each other,
 * by the system's headers alone.
 *
 * usage: corners CASE
 *
 * Cases with a loss print "ready", and go on when a line comes: the primary adapter is gone then.
 */
#include "../check.h"

#include <infiniband/verbs.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 64, BYTES = 64, GID_INDEX = 1, PATIENCE = 60, MANY = 40, WORD = 8, LONG = 65536 };

struct end {
	struct ibv_cq *sends, *recvs;
	struct ibv_qp *qp;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static union ibv_gid gid;
static struct {
	char from[MANY][WORD], to[BYTES];
} mem; /* one region */
static struct end a, b;
static struct ibv_comp_channel *channel; /* channel of a's sends; NULL: none */
static int sends_signalled = 1;
static uint8_t reads = 1; /* READs that a queue pair may have in flight */
static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

static void
make(struct end *e)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = sends_signalled,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	e->sends = init.send_cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, e == &a ? channel : NULL, 0);
	e->recvs = init.recv_cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	CHECK(e->sends != NULL && e->recvs != NULL);
	e->qp = ibv_create_qp(pd, &init);
	CHECK(e->qp != NULL);
	EQUAL(ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      0);
}

static void
connect_to(const struct end *e, uint32_t qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = reads,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = gid, .sgid_index = GID_INDEX, .hop_limit = 64}}};

	EQUAL(ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	      0);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = reads;
	EQUAL(ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      0);
}

static void
receive(const struct end *e)
{
	struct ibv_sge sge = {(uintptr_t)mem.to, BYTES, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	EQUAL(ibv_post_recv(e->qp, &wr, &bad), 0);
}

/* Post a request with a word of the memory. */
static void
post(const struct end *e, int word, enum ibv_wr_opcode op, void *addr, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)mem.from[word], WORD, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)addr;
	wr.wr.rdma.rkey = rkey;
	EQUAL(ibv_post_send(e->qp, &wr, &bad), 0);
}

/* Wait for a completion. returns: its status */
static enum ibv_wc_status
completion(struct ibv_cq *cq)
{
	const struct timespec pause = {.tv_nsec = 200000};
	time_t end = time(NULL) + PATIENCE;
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0) {
		CHECK(time(NULL) < end);
		nanosleep(&pause, NULL);
	}
	return wc.status;
}

/* A message from a to b. */
static void
message(void)
{
	receive(&b);
	post(&a, 0, IBV_WR_SEND, NULL, 0);
	EQUAL(completion(a.sends), IBV_WC_SUCCESS);
	EQUAL(completion(b.recvs), IBV_WC_SUCCESS);
}

/* Let the test kill the primary adapter, and the connection move. */
static void
lose_primary(void)
{
	message();
	puts("ready");
	fflush(stdout);
	CHECK(getchar() != EOF);
	message();
}

static struct ibv_mr *
region(char *at)
{
	struct ibv_mr *r = ibv_reg_mr(pd, at, BYTES, rights);

	CHECK(r != NULL);
	return r;
}

/* FO-2: the key of a region that is gone names no other one on the backup adapter. That serves one
 * region more, so the key is there that of the region before. */
static void
key_of_a_region_that_is_gone(void)
{
	static char gone[BYTES], other[BYTES];
	struct ibv_mr *before = region(other), *r = region(gone);
	uint32_t key = r->rkey;

	CHECK(key != before->rkey);
	EQUAL(ibv_dereg_mr(r), 0);
	lose_primary();
	memset(mem.from[0], 'x', WORD);
	post(&a, 0, IBV_WR_RDMA_WRITE, other, key);
	EQUAL(completion(a.sends), IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < BYTES; i++)
		EQUAL(other[i], 0);
}

/* FO-2: a region that is registered after the loss has a key that no region had before: the peer
 * may still know what that key meant. */
static void
key_of_a_new_region(void)
{
	static char gone[BYTES], fresh[BYTES];
	struct ibv_mr *r = region(gone);

	lose_primary();
	EQUAL(ibv_dereg_mr(r), 0);
	r = region(fresh);
	memset(mem.from[0], 'x', WORD);
	post(&a, 0, IBV_WR_RDMA_WRITE, fresh, r->rkey);
	EQUAL(completion(a.sends), IBV_WC_SUCCESS);
	EQUAL(memcmp(fresh, mem.from[0], WORD), 0);
}

/* The peer leaves, and its keys can't be read any more: a request that waits for them fails. */
static void
key_of_a_peer_that_left(void)
{
	lose_primary();
	EQUAL(ibv_destroy_qp(b.qp), 0);
	post(&a, 0, IBV_WR_RDMA_WRITE, mem.to, 0xdeadbe00);
	CHECK(completion(a.sends) != IBV_WC_SUCCESS);
}

/* A refused call changes nothing: the domain's connections move on all the same. */
static void
domain_in_use(void)
{
	EQUAL(ibv_dealloc_pd(pd), EBUSY);
	lose_primary();
	EQUAL(ibv_dealloc_pd(pd), EBUSY);
}

/* The one completion of a write with immediate data, which goes as two requests, has the reason. */
static void
write_with_immediate(void)
{
	receive(&b);
	post(&a, 0, IBV_WR_RDMA_WRITE_WITH_IMM, mem.to, 0xdeadbe00);
	EQUAL(completion(a.sends), IBV_WC_REM_ACCESS_ERR);
}

/* All messages that came before a queue pair was destroyed are complete, polled or not. A
 * message the other way, after the last one's bytes are there, shows that the dataplane has told of
 * all of them. */
static void
messages_before_the_end(void)
{
	const volatile char *last = mem.to;
	time_t end = time(NULL) + PATIENCE;

	for (int i = 0; i < MANY; i++) {
		mem.from[i][0] = (char)(i + 1);
		receive(&b);
	}
	for (int i = 0; i < MANY; i++)
		post(&a, i, IBV_WR_SEND, NULL, 0);
	while (*last != MANY)
		CHECK(time(NULL) < end);
	receive(&a);
	post(&b, 0, IBV_WR_SEND, NULL, 0);
	EQUAL(completion(b.sends), IBV_WC_SUCCESS);
	EQUAL(ibv_destroy_qp(b.qp), 0);
	for (int i = 0; i < MANY; i++)
		EQUAL(completion(a.sends), IBV_WC_SUCCESS);
}

/* A message that came before a request fails, which ends the connection, is complete, polled or
 * not. */
static void
receive_before_a_failure(void)
{
	receive(&a);
	receive(&a);
	post(&b, 0, IBV_WR_SEND, NULL, 0);
	EQUAL(completion(b.sends), IBV_WC_SUCCESS);
	post(&a, 0, IBV_WR_RDMA_WRITE, mem.to, 0xdeadbe00);
	EQUAL(completion(a.sends), IBV_WC_REM_ACCESS_ERR);
	EQUAL(completion(a.recvs), IBV_WC_SUCCESS);
	EQUAL(completion(a.recvs), IBV_WC_WR_FLUSH_ERR);
}

/* Requests that are posted together with one that fails: those before it were carried out. */
static void
sends_before_a_failure(void)
{
	struct ibv_sge sge = {(uintptr_t)mem.from[0], WORD, mr->lkey};
	struct ibv_send_wr wr[4], *bad;

	memset(wr, 0, sizeof(wr));
	for (int i = 0; i < 4; i++) {
		receive(&b);
		wr[i].opcode = i == 2 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].wr.rdma.rkey = i == 2 ? 0xdeadbe00 : 0;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	EQUAL(ibv_post_send(a.qp, wr, &bad), 0);
	EQUAL(completion(a.sends), IBV_WC_SUCCESS);
	EQUAL(completion(a.sends), IBV_WC_SUCCESS);
	EQUAL(completion(a.sends), IBV_WC_REM_ACCESS_ERR);
	EQUAL(completion(a.sends), IBV_WC_WR_FLUSH_ERR);
	EQUAL(completion(b.recvs), IBV_WC_SUCCESS);
	EQUAL(completion(b.recvs), IBV_WC_SUCCESS);
}

static int
readable(int ms)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	return poll(&p, 1, ms);
}

static void
only_events_of_the_program_before(void)
{
	channel = ibv_create_comp_channel(ctx);
	CHECK(channel != NULL);
	sends_signalled = 0;
}

/* The signalled message's event is the only one. */
static void
one_event(void)
{
	struct ibv_cq *cq;
	void *arg;

	EQUAL(readable(PATIENCE * 1000), 1);
	EQUAL(ibv_get_cq_event(channel, &cq, &arg), 0);
	CHECK(cq == a.sends);
	ibv_ack_cq_events(cq, 1);
	EQUAL(readable(0), 0);
}

/* Unsignalled messages, which only flush READs are signalled for, make a channel's descriptor never
 * readable; a signalled one does, until its event is taken. */
static void
only_events_of_the_program(void)
{
	struct ibv_sge sge = {(uintptr_t)mem.from[0], WORD, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_cq *cq;
	void *arg;

	EQUAL(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	EQUAL(ibv_req_notify_cq(a.sends, 0), 0);
	/* A request finds room only when the flush READs of those before are complete. */
	for (int i = 0; i < 4 * DEPTH; i++) {
		time_t end = time(NULL) + PATIENCE;

		receive(&b);
		while (ibv_post_send(a.qp, &wr, &bad) != 0)
			CHECK(time(NULL) < end);
		EQUAL(completion(b.recvs), IBV_WC_SUCCESS);
		EQUAL(readable(0), 0);
	}
	EQUAL(ibv_get_cq_event(channel, &cq, &arg), -1);
	EQUAL(errno, EAGAIN);
	wr.send_flags = IBV_SEND_SIGNALED;
	receive(&b);
	EQUAL(ibv_post_send(a.qp, &wr, &bad), 0);
	one_event();
	EQUAL(completion(a.sends), IBV_WC_SUCCESS);
}

static volatile bool hammering = true;

/* Hold the locks of the device nearly all the time. */
static void *
hammer(void *arg)
{
	struct ibv_wc wc;

	while (hammering)
		EQUAL(ibv_poll_cq(arg, 1, &wc), 0);
	return NULL;
}

static void
destroy_all(void)
{
	struct ibv_cq *cq[] = {a.sends, a.recvs, b.sends, b.recvs};

	EQUAL(ibv_destroy_qp(a.qp), 0);
	EQUAL(ibv_destroy_qp(b.qp), 0);
	for (int i = 0; i < 4; i++)
		EQUAL(ibv_destroy_cq(cq[i]), 0);
	EQUAL(ibv_dereg_mr(mr), 0);
	EQUAL(ibv_dealloc_pd(pd), 0);
	EQUAL(ibv_close_device(ctx), 0);
}

/* A child has no use of the device, and no call waits there. returns: its exit code */
static int
child_of_fork(void)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;

	alarm(PATIENCE);
	EQUAL(ibv_poll_cq(a.sends, 1, &wc), -1);
	EQUAL(ibv_post_send(a.qp, &send, &bad_send), EIO);
	EQUAL(ibv_post_recv(a.qp, &recv, &bad_recv), EIO);
	EQUAL(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), EIO);
	CHECK(ibv_alloc_pd(ctx) == NULL);
	EQUAL(errno, EIO);
	destroy_all();
	return 0;
}

static void
children(void)
{
	pthread_t thread;

	EQUAL(pthread_create(&thread, NULL, hammer, b.sends), 0);
	for (int i = 0; i < MANY; i++) {
		int status = -1;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(child_of_fork());
		EQUAL(waitpid(pid, &status, 0), pid);
		EQUAL(status, 0);
		message();
	}
	hammering = false;
	EQUAL(pthread_join(thread, NULL), 0);
}

static void
long_writes_before(void)
{
	reads = 16;
}

/* A queue full of long writes does not come free at once: flush READs are in flight behind parts
 * of it. */
static void
long_writes(void)
{
	static char from[LONG], to[LONG];
	struct ibv_mr *source = ibv_reg_mr(pd, from, LONG, rights);
	struct ibv_mr *target = ibv_reg_mr(pd, to, LONG, rights);
	struct ibv_sge sge = {(uintptr_t)from, LONG, source->lkey};
	struct ibv_send_wr wr[DEPTH], *bad;
	struct ibv_wc wc[DEPTH];
	time_t end = time(NULL) + PATIENCE;
	int parts = 0;

	for (int i = 0; i < DEPTH; i++) {
		wr[i] = (struct ibv_send_wr){.next = i + 1 < DEPTH ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE};
		wr[i].wr.rdma.remote_addr = (uintptr_t)to;
		wr[i].wr.rdma.rkey = target->rkey;
	}
	/* With one READ in flight at a time it comes free in two parts at most. */
	while (parts < 3) {
		CHECK(time(NULL) < end);
		EQUAL(ibv_post_send(a.qp, wr, &bad), 0);
		parts = 0;
		for (int left = DEPTH, n; left != 0; left -= n) {
			n = ibv_poll_cq(a.sends, DEPTH, wc);
			CHECK(n >= 0);
			parts += n > 0;
			for (int i = 0; i < n; i++)
				EQUAL(wc[i].status, IBV_WC_SUCCESS);
		}
	}
	EQUAL(ibv_dereg_mr(source), 0);
	EQUAL(ibv_dereg_mr(target), 0);
}

static volatile sig_atomic_t handled;

static void
on_signal(int number)
{
	(void)number;
	handled = 1;
}

/* Signals are for the program's threads alone: one that all of them block stays pending. */
static void
signals(void)
{
	sigset_t all, waiting;

	signal(SIGUSR1, on_signal);
	sigfillset(&all);
	EQUAL(sigprocmask(SIG_BLOCK, &all, NULL), 0);
	EQUAL(kill(getpid(), SIGUSR1), 0);
	message();
	EQUAL(handled, 0);
	EQUAL(sigpending(&waiting), 0);
	CHECK(sigismember(&waiting, SIGUSR1));
}

static const struct {
	const char *name;
	void (*run)(void);
	void (*before)(void); /* before the queues are made; NULL: nothing */
} cases[] = {
	{"key_gone", key_of_a_region_that_is_gone, NULL},
	{"key_new", key_of_a_new_region, NULL},
	{"key_left", key_of_a_peer_that_left, NULL},
	{"domain", domain_in_use, NULL},
	{"immediate", write_with_immediate, NULL},
	{"leave", messages_before_the_end, NULL},
	{"failed_receives", receive_before_a_failure, NULL},
	{"failed_sends", sends_before_a_failure, NULL},
	{"fork", children, NULL},
	{"events", only_events_of_the_program, only_events_of_the_program_before},
	{"signals", signals, NULL},
	{"long_writes", long_writes, long_writes_before},
};

static void
open_all(void (*before)(void))
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list != NULL && list[0] != NULL);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx != NULL);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL);
	mr = ibv_reg_mr(pd, &mem, sizeof(mem), rights);
	CHECK(mr != NULL);
	EQUAL(ibv_query_gid(ctx, 1, GID_INDEX, &gid), 0);
	if (before != NULL)
		before();
	make(&a);
	make(&b);
	connect_to(&a, b.qp->qp_num);
	connect_to(&b, a.qp->qp_num);
}

int
main(int argc, char **argv)
{
	EQUAL(argc, 2);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].name, argv[1]) == 0) {
			open_all(cases[i].before);
			cases[i].run();
			puts("right");
			return 0;
		}
	fprintf(stderr, "there is no case %s\n", argv[1]);
	return 2;
}
