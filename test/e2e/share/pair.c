/* SPDX-License-Identifier: BSD-3-Clause */
#include "share.h"

#include "../shared_page.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct end ends[2];
static char *bounce; /* source and target at ends[0] */
static struct ibv_mr *bounce_mr;

static void
end_open(struct end *e, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};

	CHECK((e->ctx = ibv_open_device(device)) != NULL);
	CHECK((e->pd = ibv_alloc_pd(e->ctx)) != NULL);
	CHECK((e->cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0)) != NULL);
	init.send_cq = init.recv_cq = e->cq;
	CHECK((e->qp = ibv_create_qp(e->pd, &init)) != NULL);
	CHECK(ibv_query_gid(e->ctx, 1, 1, &e->gid) == 0);
}

static void
end_connect(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS};

	CHECK(ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	      0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 8}}};
	CHECK(ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 18,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4};
	CHECK(ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

void
pair_open(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(list != NULL && n == 2);
	end_open(&ends[0], list[0]);
	end_open(&ends[1], list[1]);
	ibv_free_device_list(list);
	end_connect(&ends[0], &ends[1]);
	end_connect(&ends[1], &ends[0]);
	bounce = fresh(PAGE);
	CHECK((bounce_mr = ibv_reg_mr(ends[0].pd, bounce, PAGE, IBV_ACCESS_LOCAL_WRITE)) != NULL);
}

void
pair_close(void)
{
	unsigned int i;

	dereg(bounce_mr);
	for (i = 0; i < 2; i++) {
		CHECK(ibv_destroy_qp(ends[i].qp) == 0);
		CHECK(ibv_destroy_cq(ends[i].cq) == 0);
		CHECK(ibv_dealloc_pd(ends[i].pd) == 0);
		CHECK(ibv_close_device(ends[i].ctx) == 0);
	}
}

struct ibv_mr *
reg(void *p, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(ends[1].pd, p, length, RIGHTS);

	CHECK(mr != NULL);
	return mr;
}

void
dereg(struct ibv_mr *mr)
{
	CHECK(ibv_dereg_mr(mr) == 0);
}

static void
move(enum ibv_wr_opcode op, struct ibv_mr *mr, void *p, size_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)bounce, .length = (uint32_t)length, .lkey = bounce_mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	wr.wr.rdma.remote_addr = (uintptr_t)p;
	wr.wr.rdma.rkey = mr->rkey;
	CHECK(ibv_post_send(ends[0].qp, &wr, &bad) == 0);
	while ((n = ibv_poll_cq(ends[0].cq, 1, &wc)) == 0)
		;
	CHECK(n == 1);
	if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
}

void
put(struct ibv_mr *mr, void *p, const void *from, size_t length)
{
	memcpy(bounce, from, length);
	move(IBV_WR_RDMA_WRITE, mr, p, length);
}

void
get(struct ibv_mr *mr, void *p, void *to, size_t length)
{
	move(IBV_WR_RDMA_READ, mr, p, length);
	memcpy(to, bounce, length);
}

void *
fresh(size_t length)
{
	char *p = mmap(NULL, length + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	CHECK(p != MAP_FAILED);
	/* Beside nothing else. */
	CHECK(mprotect(p, PAGE, PROT_NONE) == 0 &&
	      mprotect(p + PAGE + length, PAGE, PROT_NONE) == 0);
	return p + PAGE;
}

bool
shared(const void *p)
{
	int is = page_is_shared(p);

	CHECK(is >= 0);
	return is == 1;
}
