/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs that are connected step by step, by lines on the standard input, by the system's
 * headers alone. Each line is answered by one.
 *
 * usage: meet
 *
 * make         make a queue pair, up to INIT, with a receive. answer: its place and its number
 * free P       destroy the queue pair of a place. answer: 0
 * gid          answer: the GID of the device
 * rtr P N GID  change the queue pair to RTR, for queue pair N of that GID. answer: the errno value
 * rts P        change the queue pair to RTS. answer: the errno value
 * timer P N    change the least RNR timer of a queue pair in RTS to code N. answer: the errno value
 * allow P      let the peer write, by a change in INIT. answer: the errno value
 * memory       answer: the address and the key of memory that peers may write to
 * write P A K  write a word to the address A by the key K. answer: the status of the completion
 * send P TEXT  send a message. answer: the status of its completion
 * got P        wait for the next completion of a receive. answer: its status, its length and the
 *              message
 */
#include "../check.h"

#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <stdint.h>
#include <time.h>

enum { QPS = 8, BYTES = 256, GID_INDEX = 1, PATIENCE = 60, LINE = 512 };

struct end {
	struct ibv_cq *sends, *recvs;
	struct ibv_qp *qp; /* NULL: the place is free */
	char from[BYTES], to[BYTES];
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct end ends[QPS];
static char written[8]; /* by peers */
static struct ibv_mr *written_mr;

static void
receive(struct end *e)
{
	struct ibv_sge sge = {(uintptr_t)e->to, BYTES, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	memset(e->to, 0, sizeof(e->to));
	EQUAL(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void
make(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct end *e = ends;

	while (e->qp != NULL)
		e++;
	CHECK(e < ends + QPS);
	e->sends = init.send_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	e->recvs = init.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	CHECK(e->sends != NULL && e->recvs != NULL);
	e->qp = ibv_create_qp(pd, &init);
	CHECK(e->qp != NULL);
	EQUAL(ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      0);
	receive(e);
	printf("%td %u\n", e - ends, e->qp->qp_num);
}

static void
unmake(struct end *e)
{
	EQUAL(ibv_destroy_qp(e->qp), 0);
	EQUAL(ibv_destroy_cq(e->sends), 0);
	EQUAL(ibv_destroy_cq(e->recvs), 0);
	e->qp = NULL;
	puts("0");
}

static void
show_gid(void)
{
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	EQUAL(ibv_query_gid(ctx, 1, GID_INDEX, &gid), 0);
	puts(inet_ntop(AF_INET6, gid.raw, text, sizeof(text)));
}

static void
to_rtr(const struct end *e, const char *rest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .ah_attr = {.is_global = 1,
					       .port_num = 1,
					       .grh = {.sgid_index = GID_INDEX, .hop_limit = 64}}};
	char gid[INET6_ADDRSTRLEN];

	EQUAL(sscanf(rest, "%u %45s", &attr.dest_qp_num, gid), 2);
	EQUAL(inet_pton(AF_INET6, gid, attr.ah_attr.grh.dgid.raw), 1);
	printf("%d\n", ibv_modify_qp(e->qp, &attr,
				     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER));
}

static void
to_rts(const struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1};

	printf("%d\n",
	       ibv_modify_qp(e->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void
change_timer(const struct end *e, const char *rest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = (uint8_t)atoi(rest)};

	printf("%d\n", ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
}

/* Wait for a completion. */
static struct ibv_wc
completion(struct ibv_cq *cq)
{
	const struct timespec pause = {.tv_nsec = 200000};
	time_t end = time(NULL) + PATIENCE;
	struct ibv_wc wc = {0};
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
		CHECK(time(NULL) < end);
		nanosleep(&pause, NULL);
	}
	EQUAL(n, 1);
	return wc;
}

static void
post(struct end *e, const char *text)
{
	struct ibv_sge sge = {(uintptr_t)e->from, (uint32_t)strlen(text), mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	CHECK(sge.length <= BYTES);
	memcpy(e->from, text, sge.length);
	EQUAL(ibv_post_send(e->qp, &wr, &bad), 0);
	printf("%d\n", (int)completion(e->sends).status);
}

static void
allow(const struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};

	printf("%d\n", ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
}

static void
write_word(const struct end *e, const char *rest)
{
	struct ibv_sge sge = {(uintptr_t)e->from, sizeof(written), mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	EQUAL(sscanf(rest, "%lu %u", &wr.wr.rdma.remote_addr, &wr.wr.rdma.rkey), 2);
	EQUAL(ibv_post_send(e->qp, &wr, &bad), 0);
	printf("%d\n", (int)completion(e->sends).status);
}

static void
got(struct end *e)
{
	struct ibv_wc wc = completion(e->recvs);
	int bytes = wc.status == IBV_WC_SUCCESS ? (int)wc.byte_len : 0;

	printf("%d %d %.*s\n", (int)wc.status, bytes, bytes, e->to);
	if (wc.status == IBV_WC_SUCCESS)
		receive(e);
}

static void
obey(const char *line)
{
	char word[8], rest[LINE] = "";
	unsigned int place = 0;
	struct end *e;

	CHECK(sscanf(line, "%7s %u %511[^\n]", word, &place, rest) >= 1);
	CHECK(place < QPS);
	e = &ends[place];
	if (strcmp(word, "make") == 0)
		make();
	else if (strcmp(word, "gid") == 0)
		show_gid();
	else if (strcmp(word, "free") == 0)
		unmake(e);
	else if (strcmp(word, "rtr") == 0)
		to_rtr(e, rest);
	else if (strcmp(word, "rts") == 0)
		to_rts(e);
	else if (strcmp(word, "allow") == 0)
		allow(e);
	else if (strcmp(word, "memory") == 0)
		printf("%lu %u\n", (unsigned long)(uintptr_t)written, written_mr->rkey);
	else if (strcmp(word, "write") == 0)
		write_word(e, rest);
	else if (strcmp(word, "timer") == 0)
		change_timer(e, rest);
	else if (strcmp(word, "send") == 0)
		post(e, rest);
	else if (strcmp(word, "got") == 0)
		got(e);
	else
		CHECK(!"a known word");
	fflush(stdout);
}

int
main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char line[LINE];

	CHECK(list != NULL && list[0] != NULL);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx != NULL);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL);
	mr = ibv_reg_mr(pd, ends, sizeof(ends), IBV_ACCESS_LOCAL_WRITE);
	written_mr = ibv_reg_mr(pd, written, sizeof(written),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr != NULL && written_mr != NULL);
	while (fgets(line, sizeof(line), stdin) != NULL)
		obey(line);
	return 0;
}
