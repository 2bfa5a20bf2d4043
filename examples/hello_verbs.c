/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest complete program: two nodes in one process, joined by rings; node
 * "a" writes a sentence into the memory of node "b" by RDMA and checks that the
 * sentence arrived. Needs no root, no huge pages and no NIC.
 *
 * The NIC is a thread here, which polls the engine that serves both nodes. The
 * verbs below are those of <infiniband/verbs.h>; only the call that gives a context
 * is urnic's own.
 */
#include <urnic/verbs.h>
#include <urnic/attach.h>

#include "control/dataplane.h"
#include "pmd_glue/eal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

enum { BYTES = 4096, FIRST_PSN = 1000 };

/* One end of the connection: a node with its adapter, and the verbs objects there. */
struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char buf[BYTES]; /* registered with the adapter */
};

/* The parts that must be up before a program can attach. */
struct nic {
	struct urn_port *port[2]; /* two ports joined back to back */
	struct urn_dp *dp;
	pthread_t thread;
	volatile bool stop;
};

static void
check(bool ok, const char *what, const char *why)
{
	if (ok)
		return;
	fprintf(stderr, "hello_verbs: %s failed: %s\n", what, why);
	exit(1); /* urn_eal_stop() runs at exit and removes the runtime files */
}

/* ---- the NIC */

static void *
nic_main(void *arg)
{
	struct nic *nic = arg;

	rte_thread_register(); /* gives the thread a cache of packets; optional */
	urn_engine_run(urn_dp_engine(nic->dp, 0), &nic->stop);
	rte_thread_unregister();
	return NULL;
}

static void
nic_up(struct nic *nic)
{
	struct urn_eal_config eal = {.program = "hello_verbs",
				     .memory_mb = urn_eal_memory_mb(4096)};
	struct urn_port_config port[2] = {{.name = "p0", .mbufs = 2048},
					  {.name = "p1", .mbufs = 2048}};
	struct urn_adapter_config adapter[2] = {
		{.node = "a", .ipv4 = {10, 0, 0, 1}, .engines = 1},
		{.node = "b", .ipv4 = {10, 0, 0, 2}, .engines = 1},
	};
	struct urn_dp_config dp = {.engines = 1, .adapters = 2, .adapter = adapter};
	struct urn_err err = {""};

	check(urn_eal_start(&eal, &err) == 0, "starting DPDK", err.text);
	atexit(urn_eal_stop);
	check(urn_port_open_ring_pair(port, nic->port, &err) == 0, "opening the ports", err.text);
	adapter[0].port = nic->port[0];
	adapter[1].port = nic->port[1];
	dp.engine[0].idle = URN_IDLE_PAUSE;
	nic->dp = urn_dp_create(&dp, &err);
	check(nic->dp != NULL, "making the dataplane", err.text);
	check(pthread_create(&nic->thread, NULL, nic_main, nic) == 0, "starting a thread",
	      "no room");
}

static void
nic_down(struct nic *nic)
{
	nic->stop = true;
	pthread_join(nic->thread, NULL);
	urn_dp_destroy(nic->dp);
	urn_port_close(nic->port[0]);
	urn_port_close(nic->port[1]);
}

/* ---- a program with verbs */

static void
node_open(struct node *n, struct urn_dp *dp, unsigned int adapter)
{
	struct urn_err err = {""};
	struct urn_abi_channel *channel = urn_dp_attach(dp, adapter, &err);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};

	check(channel != NULL, "attaching", err.text);
	n->ctx = urn_attach_open(channel);
	check(n->ctx != NULL, "opening the adapter", urn_attach_error());
	n->pd = ibv_alloc_pd(n->ctx);
	check(n->pd != NULL, "ibv_alloc_pd", urn_attach_error());
	n->mr = ibv_reg_mr(n->pd, n->buf, sizeof(n->buf),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(n->mr != NULL, "ibv_reg_mr", urn_attach_error());
	n->cq = ibv_create_cq(n->ctx, 32, NULL, NULL, 0);
	check(n->cq != NULL, "ibv_create_cq", urn_attach_error());
	init.send_cq = init.recv_cq = n->cq;
	n->qp = ibv_create_qp(n->pd, &init);
	check(n->qp != NULL, "ibv_create_qp", urn_attach_error());
	/* GID 0 is the link-local IPv6 address, GID 1 the IPv4 address. */
	check(ibv_query_gid(n->ctx, 1, 1, &n->gid) == 0, "ibv_query_gid", "no such GID");
}

/* Programs on two hosts send each other QP number, GID and key; here both nodes' values are at hand. */
static void
node_connect(struct node *n, const struct node *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = FIRST_PSN,
		.sq_psn = FIRST_PSN,
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
	      "going to INIT", urn_attach_error());
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(n->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0,
	      "going to RTR", urn_attach_error());
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(n->qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	      "going to RTS", urn_attach_error());
}

static void
write_to(struct node *n, const struct node *peer)
{
	struct ibv_sge sge = {(uintptr_t)n->buf, BYTES, n->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = 1,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {.remote_addr = (uintptr_t)peer->buf,
						       .rkey = peer->mr->rkey},
				   },
			   *bad;
	struct ibv_wc wc;
	int got;

	check(ibv_post_send(n->qp, &wr, &bad) == 0, "ibv_post_send", "the queue is full");
	while ((got = ibv_poll_cq(n->cq, 1, &wc)) == 0)
		;
	check(got == 1, "ibv_poll_cq", "the completion queue is broken");
	check(wc.status == IBV_WC_SUCCESS, "the WRITE", ibv_wc_status_str(wc.status));
}

static void
node_close(struct node *n)
{
	ibv_destroy_qp(n->qp);
	ibv_destroy_cq(n->cq);
	ibv_dereg_mr(n->mr);
	ibv_dealloc_pd(n->pd);
	ibv_close_device(n->ctx);
}

int
main(void)
{
	static struct node a, b;
	struct nic nic = {.stop = false};

	nic_up(&nic);
	node_open(&a, nic.dp, 0);
	node_open(&b, nic.dp, 1);
	node_connect(&a, &b);
	node_connect(&b, &a);

	snprintf(a.buf, sizeof(a.buf), "hello from node a, QP 0x%06x", a.qp->qp_num);
	write_to(&a, &b);
	check(memcmp(a.buf, b.buf, BYTES) == 0, "comparing", "node b has other bytes");
	printf("node b, QP 0x%06x, was written: \"%s\"\n", b.qp->qp_num, b.buf);

	node_close(&a);
	node_close(&b);
	nic_down(&nic);
	return 0;
}
