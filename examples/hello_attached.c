/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program attached to urnicd: two nodes of one dataplane; node a writes a sentence into the
 * memory of node b by RDMA.
 *
 *   cc hello_attached.c $(pkg-config --cflags --libs urnic)
 *
 * Compiler and linker see no DPDK, and the program needs no root. Start "urnicd -c
 * two-nodes.ini" before it, as the same user; URNIC_SOCKET names a socket of its.
 */
#include <urnic/verbs.h>
#include <urnic/attach.h>

#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 4096, PSN = 1000 };

struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char *buf;
};

static void
check(int ok, const char *call)
{
	if (ok)
		return;
	fprintf(stderr, "hello_attached: %s: %s\n", call, urn_attach_error());
	exit(1);
}

static void
node_open(struct node *n, const char *name)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};

	n->ctx = urn_attach_connect(NULL, name); /* NULL: the socket at the usual place */
	check(n->ctx != NULL, "urn_attach_connect");
	n->buf = urn_alloc(BYTES); /* shared with the dataplane: fast */
	check(n->buf != NULL, "urn_alloc");
	n->pd = ibv_alloc_pd(n->ctx);
	check(n->pd != NULL, "ibv_alloc_pd");
	n->mr = ibv_reg_mr(n->pd, n->buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(n->mr != NULL, "ibv_reg_mr");
	n->cq = ibv_create_cq(n->ctx, 32, NULL, NULL, 0);
	check(n->cq != NULL, "ibv_create_cq");
	init.send_cq = init.recv_cq = n->cq;
	n->qp = ibv_create_qp(n->pd, &init);
	check(n->qp != NULL, "ibv_create_qp");
	check(ibv_query_gid(n->ctx, 1, 1, &n->gid) == 0, "ibv_query_gid"); /* GID 1: IPv4 */
}

static void
node_connect(struct node *n, const struct node *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
	};

	check(ibv_modify_qp(n->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		      0,
	      "to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(n->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0,
	      "to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(n->qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	      "to RTS");
}

static void
node_close(struct node *n)
{
	ibv_destroy_qp(n->qp);
	ibv_destroy_cq(n->cq);
	ibv_dereg_mr(n->mr);
	ibv_dealloc_pd(n->pd);
	ibv_close_device(n->ctx);
	urn_free(n->buf);
}

int
main(void)
{
	struct node a, b;

	node_open(&a, "a");
	node_open(&b, "b");
	node_connect(&a, &b); /* programs on two hosts tell each other number, GID and key */
	node_connect(&b, &a);

	struct ibv_sge sge = {(uintptr_t)a.buf, BYTES, a.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = (uintptr_t)b.buf, .rkey = b.mr->rkey},
		};
	struct ibv_wc wc;

	snprintf(a.buf, BYTES, "hello from node a, QP 0x%06x", a.qp->qp_num);
	check(ibv_post_send(a.qp, &wr, &bad) == 0, "ibv_post_send");
	while (ibv_poll_cq(a.cq, 1, &wc) == 0)
		;
	printf("WRITE: %s; node b has: \"%s\"\n", ibv_wc_status_str(wc.status), b.buf);

	node_close(&a);
	node_close(&b);
	return wc.status == IBV_WC_SUCCESS ? 0 : 1;
}
