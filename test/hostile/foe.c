/* SPDX-License-Identifier: BSD-3-Clause */
#include "foe.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PSN = 77, SKIPPED = 77 };

void
foe_die(const char *what)
{
	fprintf(stderr, "%s: %s (%s)\n", what, urn_attach_error(), strerror(errno));
	_exit(1);
}

void
foe_skip(const char *why)
{
	fprintf(stderr, "skipped: %s (%s)\n", why, strerror(errno));
	_exit(SKIPPED);
}

void
foe_ready(struct foe *f)
{
	atomic_store(&f->page->ready, 1);
}

void
foe_round(struct foe *f)
{
	atomic_fetch_add_explicit(&f->page->rounds, 1, memory_order_relaxed);
}

uint64_t
foe_random(struct foe *f)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed;
}

uint32_t
foe_below(struct foe *f, uint32_t n)
{
	return (uint32_t)(foe_random(f) >> 20) % n;
}

unsigned long
foe_descriptors(void)
{
	struct rlimit r;

	FOE_MUST(getrlimit(RLIMIT_NOFILE, &r) == 0, "getrlimit");
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
	FOE_MUST(getrlimit(RLIMIT_NOFILE, &r) == 0, "getrlimit");
	return r.rlim_cur;
}

void
foe_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	FOE_MUST(pthread_create(&t, NULL, fn, arg) == 0 && pthread_detach(t) == 0, "thread");
}

void
foe_open(struct foe_end *e, const struct foe *f, const char *node, size_t bytes, int cqe)
{
	memset(e, 0, sizeof(*e));
	e->ctx = urn_attach_connect(f->path, node);
	FOE_MUST(e->ctx != NULL, "attach");
	e->pd = ibv_alloc_pd(e->ctx);
	FOE_MUST(e->pd != NULL, "protection domain");
	e->ch = ibv_create_comp_channel(e->ctx);
	FOE_MUST(e->ch != NULL, "channel");
	e->cq = ibv_create_cq(e->ctx, cqe, NULL, e->ch, 0);
	FOE_MUST(e->cq != NULL, "completion queue");
	e->buf = urn_alloc(bytes);
	FOE_MUST(e->buf != NULL, "memory");
	e->mr = ibv_reg_mr(e->pd, e->buf, bytes, FOE_ACCESS);
	FOE_MUST(e->mr != NULL, "region");
	FOE_MUST(ibv_query_gid(e->ctx, 1, 1, &e->gid) == 0, "GID");
}

void
foe_close(struct foe_end *e)
{
	FOE_MUST(ibv_dereg_mr(e->mr) == 0, "deregister");
	FOE_MUST(ibv_destroy_cq(e->cq) == 0, "destroy the completion queue");
	FOE_MUST(ibv_destroy_comp_channel(e->ch) == 0, "destroy the channel");
	FOE_MUST(ibv_dealloc_pd(e->pd) == 0, "free the protection domain");
	FOE_MUST(ibv_close_device(e->ctx) == 0, "close");
	urn_free(e->buf);
}

struct ibv_qp *
foe_qp(const struct foe_end *e, enum ibv_qp_type type, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = type,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 2,
			.max_recv_sge = 2},
	};

	return ibv_create_qp(e->pd, &init);
}

int
foe_connect(struct ibv_qp *qp, const struct foe_peer *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RESET,
		.port_num = 1,
		.qp_access_flags = FOE_ACCESS & ~IBV_ACCESS_LOCAL_WRITE,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qpn,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = peer->timeout,
		.retry_cnt = peer->retries,
		.rnr_retry = peer->retries,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
	};
	int err = ibv_modify_qp(qp, &a, IBV_QP_STATE);

	a.qp_state = IBV_QPS_INIT;
	if (err == 0)
		err = ibv_modify_qp(qp, &a,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS);
	a.qp_state = IBV_QPS_RTR;
	if (err == 0)
		err = ibv_modify_qp(qp, &a,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER);
	a.qp_state = IBV_QPS_RTS;
	if (err == 0)
		err = ibv_modify_qp(qp, &a,
				    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC);
	return err;
}

int
foe_datagrams(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = FOE_QKEY, .sq_psn = PSN};
	int err =
		ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	a.qp_state = IBV_QPS_RTR;
	if (err == 0)
		err = ibv_modify_qp(qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	if (err == 0)
		err = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return err;
}

void
foe_pair(const struct foe_end *a, const struct foe_end *b, uint32_t depth, struct ibv_qp *qp[2])
{
	const struct foe_end *end[2] = {a, b};
	struct foe_peer peer[2];

	for (unsigned int i = 0; i < 2; i++) {
		qp[i] = foe_qp(end[i], IBV_QPT_RC, depth);
		FOE_MUST(qp[i] != NULL, "queue pair");
		/* All tries of a request together last half a minute: nothing fails on a busy
		 * machine. */
		peer[!i] = (struct foe_peer){end[i]->gid, qp[i]->qp_num, 20, 7};
	}
	for (unsigned int i = 0; i < 2; i++)
		FOE_MUST(foe_connect(qp[i], &peer[i]) == 0, "connect");
}

int
foe_post(struct ibv_qp *qp, enum ibv_wr_opcode op, const struct ibv_sge *sge, uint64_t remote,
	 uint32_t rkey)
{
	struct ibv_sge own = *sge;
	struct ibv_send_wr wr = {.sg_list = &own,
				 .num_sge = 1,
				 .opcode = op,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(qp, &wr, &bad);
}

unsigned int
foe_drain(struct ibv_cq *cq)
{
	struct ibv_wc wc[32];
	unsigned int all = 0;
	int n;

	while ((n = ibv_poll_cq(cq, 32, wc)) > 0)
		all += (unsigned int)n;
	return all;
}
