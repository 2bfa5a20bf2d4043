/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends that have each other carry out atomics without pause, over two queue pairs, by the
 * system's headers alone. All fetches of both queue pairs add 1 to one word of the peer: their
 * results must be 0, 1, 2, ..., each once. Compare and swap of a queue pair counts in a word of its
 * own, and each fourth one compares with a value that is not there.
 *
 * usage: atomics listen|connect PORT [extended] [many]
 *
 * many: the queue pairs allow for all atomics in flight, so nothing but the session bounds them
 *
 * A line of the standard input ends the stream, and "did FETCHES SWAPS" is printed when all is
 * complete. Another line ends the program: "has FETCHES SWAPS" tells what the peer did here.
 * "unknown FETCHES SWAPS" says that an atomic's outcome is unknown, and what was complete before.
 */
#include "../check.h"

#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	QPS = 2,
	FEW = 4,
	DEPTH = 40, /* atomics of a queue pair in flight; more than a session lets through */
	SWAP_EVERY = 4,
	SHOW_EVERY = 100,
	MOST = 1 << 22, /* fetches, at most */
	GID_INDEX = 1,
	UNKNOWN = 17, /* vendor_err of an atomic whose outcome is unknown */
};

/* Memory that the peer reaches. */
struct shared {
	uint64_t count;	    /* word that all fetches add to */
	uint64_t swap[QPS]; /* words that swaps of a queue pair count in */
};

/* The ends tell each other this. */
struct hello {
	uint32_t qpn[QPS], rkey, pad;
	uint64_t addr;
	union ibv_gid gid;
};

static struct {
	struct shared shared;
	uint64_t old[QPS][DEPTH]; /* results, by request */
} m;				  /* one region */

static struct ibv_context *c;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp[QPS];
static struct hello peer;
static uint8_t seen[MOST]; /* results of fetches that were had */
static bool extended, stopping;
static uint8_t reads = FEW;		  /* READs and atomics that a queue pair allows for */
static uint64_t posted[QPS], done[QPS];	  /* requests of a queue pair */
static uint64_t swaps[QPS], swapped[QPS]; /* swaps that count: posted, and complete */
static uint64_t fetched;

/* ---- connecting */

static int
tcp(bool listens, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, on;

	CHECK(fd >= 0);
	if (!listens) {
		EQUAL(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	EQUAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	EQUAL(listen(fd, 1), 0);
	on = accept(fd, NULL, NULL);
	CHECK(on >= 0);
	close(fd);
	return on;
}

static struct ibv_qp *
make_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {DEPTH, 1, 1, 1, 0},
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags =
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp *made = ibv_create_qp_ex(c, &init);

	CHECK(made != NULL);
	EQUAL(ibv_modify_qp(made, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      0);
	return made;
}

static void
make(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list != NULL && list[0] != NULL);
	CHECK((c = ibv_open_device(list[0])) != NULL);
	ibv_free_device_list(list);
	CHECK((pd = ibv_alloc_pd(c)) != NULL);
	CHECK((cq = ibv_create_cq(c, QPS * DEPTH, NULL, NULL, 0)) != NULL);
	CHECK((mr = ibv_reg_mr(pd, &m, sizeof(m),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != NULL);
	for (int i = 0; i < QPS; i++)
		qp[i] = make_qp();
}

static void
join(int i)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now, attr = {
					.qp_state = IBV_QPS_RTR,
					.path_mtu = IBV_MTU_1024,
					.dest_qp_num = peer.qpn[i],
					.max_dest_rd_atomic = reads,
					.min_rnr_timer = 12,
					.ah_attr = {.is_global = 1,
						    .port_num = 1,
						    .grh = {.dgid = peer.gid,
							    .sgid_index = GID_INDEX,
							    .hop_limit = 64}},
					.max_rd_atomic = reads,
					.timeout = 14,
					.retry_cnt = 7,
					.rnr_retry = 7,
				};

	EQUAL(ibv_modify_qp(qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	      0);
	attr.qp_state = IBV_QPS_RTS;
	EQUAL(ibv_modify_qp(qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      0);
	/* The program's attributes are shown, not those that the session needs. */
	EQUAL(ibv_query_qp(qp[i], &now, IBV_QP_MAX_DEST_RD_ATOMIC, &init), 0);
	EQUAL(now.max_dest_rd_atomic, reads);
}

static void
meet(bool listens, uint16_t port)
{
	struct hello own = {.addr = (uintptr_t)&m.shared};
	int fd;

	make();
	own.rkey = mr->rkey;
	for (int i = 0; i < QPS; i++)
		own.qpn[i] = qp[i]->qp_num;
	EQUAL(ibv_query_gid(c, 1, GID_INDEX, &own.gid), 0);
	fd = tcp(listens, port);
	EQUAL(write(fd, &own, sizeof(own)), sizeof(own));
	EQUAL(recv(fd, &peer, sizeof(peer), MSG_WAITALL), sizeof(peer));
	for (int i = 0; i < QPS; i++)
		join(i);
	/* Both ends are in RTS before the first request. */
	EQUAL(write(fd, "x", 1), 1);
	EQUAL(read(fd, &own, 1), 1);
	close(fd);
}

/* ---- atomics */

static bool
is_swap(uint64_t n)
{
	return n % SWAP_EVERY == SWAP_EVERY - 1;
}

/* A swap that compares with a value that is not there. */
static bool
is_wrong(uint64_t n)
{
	return n / SWAP_EVERY % 4 == 3;
}

static void
post_extended(int i, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp[i]);

	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
	else
		ibv_wr_atomic_cmp_swp(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
	ibv_wr_set_sge(ex, wr->sg_list->lkey, wr->sg_list->addr, wr->sg_list->length);
	EQUAL(ibv_wr_complete(ex), 0);
}

static void
post(int i)
{
	uint64_t n = posted[i]++;
	struct ibv_sge sge = {(uintptr_t)&m.old[i][n % DEPTH], 8, mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = n,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				       .send_flags = IBV_SEND_SIGNALED};

	m.old[i][n % DEPTH] = UINT64_MAX;
	wr.wr.atomic.rkey = peer.rkey;
	wr.wr.atomic.remote_addr = peer.addr + offsetof(struct shared, count);
	wr.wr.atomic.compare_add = 1;
	if (is_swap(n)) {
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.remote_addr = peer.addr + offsetof(struct shared, swap) + 8ull * i;
		wr.wr.atomic.compare_add = is_wrong(n) ? UINT64_MAX : swaps[i]++;
		wr.wr.atomic.swap = swaps[i];
	}
	if (extended)
		post_extended(i, &wr);
	else
		EQUAL(ibv_post_send(qp[i], &wr, &bad), 0);
}

/* ---- results */

static void
tell(const char *what, uint64_t fetches, const uint64_t *its_swaps)
{
	unsigned long long sum = its_swaps[0];

	for (int i = 1; i < QPS; i++)
		sum += its_swaps[i];
	printf("%s %llu %llu\n", what, (unsigned long long)fetches, sum);
	fflush(stdout);
}

static void
failed(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_GENERAL_ERR && wc->vendor_err == UNKNOWN) {
		tell("unknown", fetched, swapped);
		exit(3);
	}
	fprintf(stderr, "atomic %llu failed: %s\n", (unsigned long long)wc->wr_id,
		ibv_wc_status_str(wc->status));
	exit(1);
}

static void
check(const struct ibv_wc *wc)
{
	int i = wc->qp_num == qp[1]->qp_num;
	uint64_t n = wc->wr_id, old = m.old[i][n % DEPTH];

	if (wc->status != IBV_WC_SUCCESS)
		failed(wc);
	EQUAL(n, done[i]);
	EQUAL(wc->opcode, is_swap(n) ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
	done[i]++;
	if (is_swap(n)) {
		EQUAL(old, swapped[i]);
		swapped[i] += !is_wrong(n);
		return;
	}
	CHECK(old < MOST);
	EQUAL(seen[old], 0);
	seen[old] = 1;
	if (++fetched % SHOW_EVERY == 0) {
		printf("got %llu\n", (unsigned long long)fetched);
		fflush(stdout);
	}
}

static void
check_all(void)
{
	for (uint64_t n = 0; n < fetched; n++)
		EQUAL(seen[n], 1);
	tell("did", fetched, swapped);
}

static bool
take(void)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(cq, 8, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++)
		check(&wc[i]);
	return n != 0;
}

static void
look(void)
{
	static uint32_t calls;
	struct pollfd p = {.fd = 0, .events = POLLIN};
	char line[64];

	if (!stopping && ++calls % SHOW_EVERY == 0 && poll(&p, 1, 0) > 0) {
		stopping = true;
		CHECK(fgets(line, sizeof(line), stdin) != NULL);
	}
}

int
main(int argc, char **argv)
{
	char line[64];

	if (argc < 3)
		return 2;
	for (int i = 3; i < argc; i++) {
		extended |= strcmp(argv[i], "extended") == 0;
		if (strcmp(argv[i], "many") == 0)
			reads = DEPTH;
	}
	setvbuf(stdin, NULL, _IONBF, 0);
	meet(strcmp(argv[1], "listen") == 0, (uint16_t)atoi(argv[2]));
	while (!stopping || posted[0] != done[0] || posted[1] != done[1]) {
		for (int i = 0; i < QPS; i++)
			while (!stopping && posted[i] - done[i] < DEPTH)
				post(i);
		if (!take())
			sched_yield();
		look();
	}
	check_all();
	CHECK(fgets(line, sizeof(line), stdin) != NULL);
	tell("has", m.shared.count, m.shared.swap);
	for (int i = 0; i < QPS; i++)
		EQUAL(ibv_destroy_qp(qp[i]), 0);
	EQUAL(ibv_destroy_cq(cq), 0);
	EQUAL(ibv_dereg_mr(mr), 0);
	EQUAL(ibv_dealloc_pd(pd), 0);
	EQUAL(ibv_close_device(c), 0);
	return 0;
}
