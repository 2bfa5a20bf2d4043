/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream's queue pair, completion queue and buffers. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <urnic/attach.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t
within(uint32_t n, uint32_t least, uint32_t most)
{
	return n < least ? least : n > most ? most : n;
}

/* Round up to whole pages, so that halves are whole and parts of the allocation stay apart. */
static uint32_t
pages(uint32_t bytes)
{
	return (bytes + 4095u) & ~4095u;
}

void
urn_rs_sizes(struct urn_rs *rs)
{
	rs->sq = within(rs->sq, URN_RS_QUEUE_LEAST, URN_RS_QUEUE_MOST);
	rs->rq = within(rs->rq, URN_RS_QUEUE_LEAST, URN_RS_QUEUE_MOST);
	rs->inl = within(rs->inl, 0, URN_RS_INLINE_MOST);
	rs->sndbuf = pages(within(rs->sndbuf, URN_RS_BUF_LEAST, URN_RS_BUF_MOST));
	rs->rcvbuf = pages(within(rs->rcvbuf, URN_RS_BUF_LEAST, URN_RS_BUF_MOST));
}

/* Let a descriptor not block. returns: 0, or an errno value */
static int
unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? errno : 0;
}

static int
queues(struct urn_rs *rs)
{
	rs->comp = ibv_create_comp_channel(rs->id->verbs);
	if (rs->comp == NULL)
		return errno;
	rs->cq = ibv_create_cq(rs->id->verbs, (int)(rs->sq + rs->rq), rs, rs->comp, 0);
	return rs->cq == NULL ? errno : unblock(rs->comp->fd);
}

static int
pair(struct urn_rs *rs)
{
	struct ibv_qp_init_attr a = {
		.qp_context = rs,
		.send_cq = rs->cq,
		.recv_cq = rs->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = rs->sq,
			.max_recv_wr = rs->rq,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = rs->inl},
	};

	return rdma_create_qp(rs->id, NULL, &a) != 0 ? errno : 0;
}

/* Memory that dataplanes reach directly, where that is to be had; else other memory. */
static int
memory(struct urn_rs *rs, uint32_t list)
{
	uint32_t slots = pages(URN_RS_CTRL_SLOTS * URN_RS_CTRL_BYTES);

	rs->mem_size = (size_t)rs->rcvbuf + rs->sndbuf + slots + pages(list);
	rs->mem = urn_alloc(rs->mem_size);
	rs->msgs = calloc((size_t)rs->rq + 1, sizeof(*rs->msgs));
	if (rs->mem == NULL || rs->msgs == NULL)
		return ENOMEM;
	urn_rs_rx_init(&rs->rx, rs->mem, rs->rcvbuf, rs->msgs, (uint16_t)rs->rq);
	urn_rs_tx_init(&rs->tx, rs->mem + rs->rcvbuf, rs->sndbuf, rs->sq);
	rs->tx.targets = (struct urn_rs_sge *)(rs->mem + rs->rcvbuf + rs->sndbuf + slots);
	rs->maps = (struct urn_rs_map *)(rs->tx.targets + URN_RS_TARGETS);
	return 0;
}

static int
regions(struct urn_rs *rs, uint32_t list)
{
	int write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_pd *pd = rs->id->qp->pd;

	rs->remote_mr = ibv_reg_mr(pd, rs->mem, rs->rcvbuf, write);
	if (rs->remote_mr == NULL)
		return errno;
	rs->local_mr = ibv_reg_mr(pd, rs->mem + rs->rcvbuf,
				  rs->sndbuf + URN_RS_CTRL_SLOTS * URN_RS_CTRL_BYTES,
				  IBV_ACCESS_LOCAL_WRITE);
	if (rs->local_mr == NULL)
		return errno;
	rs->list_mr = ibv_reg_mr(pd, rs->tx.targets, list, write);
	return rs->list_mr == NULL ? errno : 0;
}

int
urn_rs_endpoint(struct urn_rs *rs, enum urn_rs_state state)
{
	uint32_t list;
	int err;

	urn_rs_sizes(rs);
	list = (uint32_t)(URN_RS_TARGETS * sizeof(struct urn_rs_sge) +
			  rs->iomaps * sizeof(struct urn_rs_map));
	err = queues(rs);
	if (err == 0)
		err = pair(rs);
	if (err == 0)
		err = memory(rs, list);
	if (err == 0)
		err = regions(rs, list);
	if (err != 0)
		return err;
	rs->recvs = rs->rq;
	rs->state = state;
	urn_rs_post_recvs(rs);
	return rs->state == state ? 0 : rs->why;
}

void
urn_rs_own_conn(const struct urn_rs *rs, struct urn_rs_conn_wire *out)
{
	struct urn_rs_conn c = {
		.credits = (uint16_t)rs->rq,
		.big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
		.iomaps = rs->iomaps,
		.targets = {.addr = (uintptr_t)rs->tx.targets,
			    .key = rs->list_mr->rkey,
			    .length = URN_RS_TARGETS},
		.buffer = {.addr = (uintptr_t)rs->rx.buf,
			   .key = rs->remote_mr->rkey,
			   .length = rs->rx.size / 2},
	};

	urn_rs_conn_write(&c, out);
}

static void
mr_free(struct ibv_mr **mr)
{
	if (*mr != NULL)
		(void)ibv_dereg_mr(*mr);
	*mr = NULL;
}

void
urn_rs_endpoint_free(struct urn_rs *rs)
{
	(void)urn_rs_keepalive_set(rs, false);
	urn_rs_dgram_free(rs);
	urn_rs_regions_free(rs);
	if (rs->id != NULL && rs->id->qp != NULL)
		rdma_destroy_qp(rs->id);
	if (rs->cq != NULL)
		(void)ibv_destroy_cq(rs->cq);
	if (rs->comp != NULL)
		(void)ibv_destroy_comp_channel(rs->comp);
	mr_free(&rs->local_mr);
	mr_free(&rs->remote_mr);
	mr_free(&rs->list_mr);
	if (rs->id != NULL)
		rdma_destroy_id(rs->id);
	if (rs->channel != NULL)
		rdma_destroy_event_channel(rs->channel);
	urn_free(rs->mem);
	free(rs->msgs);
}
