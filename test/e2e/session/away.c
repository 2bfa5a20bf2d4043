/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that are made while an adapter of the virtual device is away, and after it came back. By
 * the system's headers alone.
 *
 * A line on the standard input is a command; "ok" on the standard output: it was carried out.
 *   domain  make a protection domain with a region, and a completion queue with a channel
 *   pair    make two queue pairs that are connected to each other, in the newest domain
 *   old     the same in the first domain
 *   drop    destroy the first pair
 *   none    try to make a queue pair, which must fail with EIO
 *   talk    each pair exchanges a write and a message, both ways
 *   keep    make an address of the first domain, which stays
 *   gone    register memory in the first domain, and unmap it
 *   mend    map that memory again
 *   plain   a pair of datagram queue pairs is made in the first domain, exchanges a message, and is
 *           destroyed
 */
#include "../check.h"

#include <infiniband/verbs.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	DOMAINS = 4,
	PAIRS = 8,
	DEPTH = 8,
	WORD = 8,
	GRH = 40,
	GID_INDEX = 1,
	PATIENCE = 60,
	MAPPED = 1 << 16,
};

/* A domain, and memory in it. */
struct domain {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct {
		uint64_t from[2], written[2], received[2];
		char datagram[GRH + WORD];
	} mem; /* the region */
};

struct pair {
	struct domain *in;
	struct ibv_qp *qp[2];
};

static struct ibv_context *ctx;
static struct domain domain[DOMAINS];
static struct pair pair[PAIRS];
static unsigned int domains, pairs;
static struct ibv_ah *kept;
static struct ibv_mr *gone;
static uint64_t round_number;
static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

static void
make_domain(void)
{
	struct domain *d = &domain[domains++];

	CHECK(domains <= DOMAINS);
	CHECK((d->pd = ibv_alloc_pd(ctx)) != NULL);
	CHECK((d->mr = ibv_reg_mr(d->pd, &d->mem, sizeof(d->mem), rights)) != NULL);
	CHECK((d->channel = ibv_create_comp_channel(ctx)) != NULL);
	CHECK((d->cq = ibv_create_cq(ctx, DEPTH, NULL, d->channel, 0)) != NULL);
}

static struct ibv_qp *
make_qp(const struct domain *d, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.qp_type = type,
					.send_cq = d->cq,
					.recv_cq = d->cq,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	return ibv_create_qp(d->pd, &init);
}

static void
connect_qp(struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = to,
				   .max_dest_rd_atomic = 1,
				   .max_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .ah_attr = {.is_global = 1,
					       .port_num = 1,
					       .grh = {.sgid_index = GID_INDEX, .hop_limit = 64}}};

	EQUAL(ibv_query_gid(ctx, 1, GID_INDEX, &attr.ah_attr.grh.dgid), 0);
	EQUAL(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      0);
	attr.qp_state = IBV_QPS_RTR;
	EQUAL(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	      0);
	attr.qp_state = IBV_QPS_RTS;
	EQUAL(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      0);
}

static void
make_pair(struct domain *d)
{
	struct pair *p = &pair[pairs++];

	CHECK(pairs <= PAIRS);
	p->in = d;
	for (int i = 0; i < 2; i++)
		CHECK((p->qp[i] = make_qp(d, IBV_QPT_RC)) != NULL);
	/* Numbers are the program's names of queue pairs: no two are alike. */
	for (unsigned int i = 0; i < 2 * pairs; i++)
		for (unsigned int k = 0; k < i; k++)
			CHECK(pair[i / 2].qp[i % 2]->qp_num != pair[k / 2].qp[k % 2]->qp_num);
	for (int i = 0; i < 2; i++)
		connect_qp(p->qp[i], p->qp[!i]->qp_num);
}

static void
drop_pair(void)
{
	for (int i = 0; i < 2; i++)
		EQUAL(ibv_destroy_qp(pair[0].qp[i]), 0);
	memmove(pair, pair + 1, --pairs * sizeof(pair[0]));
}

static void
make_none(void)
{
	CHECK(make_qp(&domain[0], IBV_QPT_RC) == NULL);
	EQUAL(errno, EIO);
}

/* Wait for n completions. */
static void
completions(const struct domain *d, int n)
{
	time_t end = time(NULL) + PATIENCE;
	struct ibv_wc wc;

	while (n > 0) {
		int got = ibv_poll_cq(d->cq, 1, &wc);

		CHECK(got >= 0 && time(NULL) < end);
		if (got == 1)
			EQUAL(wc.status, IBV_WC_SUCCESS);
		n -= got;
	}
}

static void
receive(const struct domain *d, struct ibv_qp *qp, void *at, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)at, bytes, d->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	EQUAL(ibv_post_recv(qp, &wr, &bad), 0);
}

/* From one end of a pair to the other. */
static void
talk_way(const struct pair *p, int from)
{
	struct domain *d = p->in;
	struct ibv_sge sge = {(uintptr_t)&d->mem.from[from], WORD, d->mr->lkey};
	struct ibv_send_wr *bad,
		send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
		wr = {.next = &send, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	d->mem.from[from] = ++round_number;
	wr.wr.rdma.remote_addr = (uintptr_t)&d->mem.written[from];
	wr.wr.rdma.rkey = d->mr->rkey;
	receive(d, p->qp[!from], &d->mem.received[from], WORD);
	EQUAL(ibv_post_send(p->qp[from], &wr, &bad), 0);
	completions(d, 3);
	EQUAL(d->mem.written[from], round_number);
	EQUAL(d->mem.received[from], round_number);
}

static void
talk(void)
{
	for (unsigned int i = 0; i < 2 * pairs; i++)
		talk_way(&pair[i / 2], (int)(i % 2));
}

static void
ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7};

	EQUAL(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	      0);
	attr.qp_state = IBV_QPS_RTR;
	EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void
plain(void)
{
	struct domain *d = &domain[0];
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = GID_INDEX, .hop_limit = 64}};
	struct ibv_sge sge = {(uintptr_t)d->mem.from, WORD, d->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_qp *qp[2] = {make_qp(d, IBV_QPT_UD), make_qp(d, IBV_QPT_UD)};

	CHECK(qp[0] != NULL && qp[1] != NULL);
	ready(qp[0]);
	ready(qp[1]);
	EQUAL(ibv_query_gid(ctx, 1, GID_INDEX, &to.grh.dgid), 0);
	CHECK((wr.wr.ud.ah = ibv_create_ah(d->pd, &to)) != NULL);
	wr.wr.ud.remote_qpn = qp[1]->qp_num;
	wr.wr.ud.remote_qkey = 7;
	d->mem.from[0] = ++round_number;
	receive(d, qp[1], d->mem.datagram, sizeof(d->mem.datagram));
	EQUAL(ibv_post_send(qp[0], &wr, &bad), 0);
	completions(d, 2);
	CHECK(memcmp(d->mem.datagram + GRH, &round_number, WORD) == 0);
	EQUAL(ibv_destroy_ah(wr.wr.ud.ah), 0);
	EQUAL(ibv_destroy_qp(qp[0]), 0);
	EQUAL(ibv_destroy_qp(qp[1]), 0);
}

static void
keep(void)
{
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = GID_INDEX, .hop_limit = 64}};

	EQUAL(ibv_query_gid(ctx, 1, GID_INDEX, &to.grh.dgid), 0);
	CHECK((kept = ibv_create_ah(domain[0].pd, &to)) != NULL);
}

static void
make_gone(void)
{
	void *at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	CHECK((gone = ibv_reg_mr(domain[0].pd, at, MAPPED, rights)) != NULL);
	EQUAL(munmap(at, MAPPED), 0);
}

static void
mend(void)
{
	CHECK(mmap(gone->addr, MAPPED, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == gone->addr);
}

static void
end_all(void)
{
	if (gone != NULL)
		EQUAL(ibv_dereg_mr(gone), 0);
	if (kept != NULL)
		EQUAL(ibv_destroy_ah(kept), 0);
	for (unsigned int i = 0; i < 2 * pairs; i++)
		EQUAL(ibv_destroy_qp(pair[i / 2].qp[i % 2]), 0);
	for (unsigned int i = 0; i < domains; i++) {
		EQUAL(ibv_destroy_cq(domain[i].cq), 0);
		EQUAL(ibv_destroy_comp_channel(domain[i].channel), 0);
		EQUAL(ibv_dereg_mr(domain[i].mr), 0);
		EQUAL(ibv_dealloc_pd(domain[i].pd), 0);
	}
	EQUAL(ibv_close_device(ctx), 0);
}

static void
carry_out(const char *command)
{
	if (strcmp(command, "domain\n") == 0)
		make_domain();
	else if (strcmp(command, "pair\n") == 0)
		make_pair(&domain[domains - 1]);
	else if (strcmp(command, "old\n") == 0)
		make_pair(&domain[0]);
	else if (strcmp(command, "none\n") == 0)
		make_none();
	else if (strcmp(command, "drop\n") == 0)
		drop_pair();
	else if (strcmp(command, "plain\n") == 0)
		plain();
	else if (strcmp(command, "keep\n") == 0)
		keep();
	else if (strcmp(command, "gone\n") == 0)
		make_gone();
	else if (strcmp(command, "mend\n") == 0)
		mend();
	else
		talk();
}

int
main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char command[16];

	CHECK(list != NULL && list[0] != NULL);
	CHECK((ctx = ibv_open_device(list[0])) != NULL);
	ibv_free_device_list(list);
	while (fgets(command, sizeof(command), stdin) != NULL) {
		carry_out(command);
		puts("ok");
		fflush(stdout);
	}
	end_all();
	return 0;
}
