/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests of a stream. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <arpa/inet.h>
#include <string.h>

enum { RECV_BURST = 32 };

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Post a request. A queue pair that takes none is one in error. returns: false: so it is */
static bool
post(struct urn_rs *rs, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(rs->id->qp, wr, &bad) != 0) {
		urn_rs_down(rs, ECONNRESET);
		return false;
	}
	rs->in_flight++;
	return true;
}

/* Put bytes where the adapter finds them: into the request, or into the ring. Fills in the
 * request's elements. returns: bytes in the ring */
static uint32_t
stage(struct urn_rs *rs, struct ibv_send_wr *wr, struct ibv_sge sge[2], const void *buf, uint32_t n)
{
	struct iovec parts[2];

	wr->sg_list = sge;
	wr->num_sge = 1;
	if (n <= rs->inl) {
		sge[0] = (struct ibv_sge){.addr = (uintptr_t)buf, .length = n};
		wr->send_flags = IBV_SEND_INLINE;
		return 0;
	}
	wr->num_sge = urn_rs_tx_copy(&rs->tx, buf, n, parts);
	for (int i = 0; i < wr->num_sge; i++)
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)parts[i].iov_base,
					  .length = (uint32_t)parts[i].iov_len,
					  .lkey = rs->local_mr->lkey};
	return n;
}

int64_t
urn_rs_post_data(struct urn_rs *rs, const void *buf, size_t len)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
	struct ibv_sge sge[2];
	struct urn_rs_sge to;
	uint32_t n;

	if (!urn_rs_tx_target(&rs->tx, &to))
		return 0;
	n = (uint32_t)least(least(len, to.length), rs->tx.free);
	wr.wr.rdma.remote_addr = to.addr;
	wr.wr.rdma.rkey = to.key;
	wr.imm_data = htonl(urn_rs_msg(URN_RS_DATA, n));
	urn_rs_tx_use(&rs->tx, &to, n);
	rs->tx.slots--;
	wr.wr_id = urn_rs_wr_id(URN_RS_KIND_DATA, stage(rs, &wr, sge, buf, n));
	return post(rs, &wr) ? (int64_t)n : -1;
}

int64_t
urn_rs_post_direct(struct urn_rs *rs, const struct urn_rs_sge *to, const void *buf, size_t len)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	uint32_t n = (uint32_t)least(least(len, to->length), rs->tx.free);
	struct ibv_sge sge[2];

	wr.wr.rdma.remote_addr = to->addr;
	wr.wr.rdma.rkey = to->key;
	rs->tx.slots--;
	wr.wr_id = urn_rs_wr_id(URN_RS_KIND_DATA, stage(rs, &wr, sge, buf, n));
	return post(rs, &wr) ? (int64_t)n : -1;
}

/* Post a control message, with `len` bytes for the peer's memory. */
static bool
post_slot(struct urn_rs *rs, struct ibv_send_wr *wr, const void *buf, uint32_t len)
{
	uint8_t *slot = rs->tx.buf + rs->tx.size + rs->tx.ctrl_next * URN_RS_CTRL_BYTES;
	struct ibv_sge sge = {.addr = (uintptr_t)slot, .length = len, .lkey = rs->local_mr->lkey};

	rs->tx.ctrl--;
	rs->tx.ctrl_next = (rs->tx.ctrl_next + 1) % URN_RS_CTRL_SLOTS;
	wr->wr_id = urn_rs_wr_id(URN_RS_KIND_CTRL, 0);
	if (len != 0) {
		memcpy(slot, buf, len);
		wr->sg_list = &sge;
		wr->num_sge = 1;
		wr->send_flags = len <= rs->inl ? IBV_SEND_INLINE : 0;
	}
	return post(rs, wr);
}

bool
urn_rs_post_ctrl(struct urn_rs *rs, enum urn_rs_ctrl ctrl)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .imm_data = htonl(urn_rs_msg(URN_RS_CTRL, ctrl))};

	/* The peer needs to know nothing of a message that only keeps the connection alive. */
	if (ctrl == URN_RS_KEEPALIVE)
		wr.opcode = IBV_WR_RDMA_WRITE;
	return post_slot(rs, &wr, NULL, 0);
}

bool
urn_rs_post_region(struct urn_rs *rs, const struct urn_rs_region *r)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .imm_data = htonl(urn_rs_msg(URN_RS_IOMAP, r->index))};
	struct urn_rs_map m = {.offset = rs->tx.swap ? __builtin_bswap64(r->offset) : r->offset};

	urn_rs_sge_write(&m.sge, (uintptr_t)r->mr->addr, r->mr->rkey, (uint32_t)r->mr->length,
			 rs->tx.swap);
	wr.wr.rdma.remote_addr = rs->tx.peer.addr + rs->tx.peer.length * sizeof(struct urn_rs_sge) +
				 r->index * sizeof(struct urn_rs_map);
	wr.wr.rdma.rkey = rs->tx.peer.key;
	rs->tx.seq++;
	return post_slot(rs, &wr, &m, sizeof(m));
}

void
urn_rs_post_credits(struct urn_rs *rs)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
	struct urn_rs_sge s;
	uint16_t limit;
	int64_t half;

	if (rs->state != URN_RS_UP || rs->tx.ctrl == 0 || !urn_rs_rx_owes(&rs->rx))
		return;
	limit = urn_rs_rx_tell(&rs->rx, &half);
	wr.imm_data = htonl(urn_rs_msg(URN_RS_SGL, limit));
	if (half >= 0) {
		urn_rs_sge_write(&s, (uintptr_t)rs->rx.buf + (uint64_t)half, rs->remote_mr->rkey,
				 rs->rx.size / 2, rs->tx.swap);
		wr.wr.rdma.remote_addr = urn_rs_tx_peer_entry(&rs->tx);
		wr.wr.rdma.rkey = rs->tx.peer.key;
	}
	(void)post_slot(rs, &wr, &s, half >= 0 ? sizeof(s) : 0);
}

void
urn_rs_post_recvs(struct urn_rs *rs)
{
	while (rs->recvs != 0 && (rs->state == URN_RS_UP || rs->state == URN_RS_CONNECTING ||
				  rs->state == URN_RS_ACCEPTING)) {
		struct ibv_recv_wr wr[RECV_BURST], *bad;
		uint32_t n = (uint32_t)least(rs->recvs, RECV_BURST);

		for (uint32_t i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){.wr_id = urn_rs_wr_id(URN_RS_KIND_RECV, 0),
						     .next = i + 1 < n ? &wr[i + 1] : NULL};
		if (ibv_post_recv(rs->id->qp, wr, &bad) != 0)
			urn_rs_down(rs, ECONNRESET);
		else
			rs->recvs -= n;
	}
}
