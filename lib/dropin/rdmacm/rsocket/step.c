/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of a stream: completions and events of connection management change its state. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <arpa/inet.h>

enum { BURST = 16 };

void
urn_rs_down(struct urn_rs *rs, int why)
{
	if (rs->state == URN_RS_DOWN || rs->state == URN_RS_FAILED)
		return;
	rs->state = rs->state == URN_RS_CONNECTING ? URN_RS_FAILED : URN_RS_DOWN;
	rs->why = why;
	rs->error = why;
	rs->readable = rs->writable = false;
	/* The peer is told, so that it need not find out. */
	if (why != 0 && rs->id != NULL && rs->id->qp != NULL)
		(void)rdma_disconnect(rs->id);
}

static void
on_ctrl(struct urn_rs *rs, uint32_t arg)
{
	if (arg == URN_RS_DISCONNECT || (arg == URN_RS_SHUTDOWN && !rs->writable))
		urn_rs_down(rs, 0);
	else if (arg == URN_RS_SHUTDOWN)
		rs->readable = false;
}

/* A message of the peer's. returns: 0; EPROTO: one that the peer may not send */
static int
on_message(struct urn_rs *rs, uint32_t msg)
{
	switch (urn_rs_msg_op(msg)) {
	case URN_RS_DATA:
		return urn_rs_rx_data(&rs->rx, urn_rs_msg_arg(msg));
	case URN_RS_SGL:
		return urn_rs_tx_limit(&rs->tx, (uint16_t)urn_rs_msg_arg(msg));
	case URN_RS_IOMAP:
		urn_rs_rx_spend(&rs->rx);
		return 0;
	case URN_RS_CTRL:
		on_ctrl(rs, urn_rs_msg_arg(msg));
		return 0;
	default:
		return EPROTO;
	}
}

static void
on_recv(struct urn_rs *rs, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	rs->recvs++;
	/* The peer is up, even when its RTU is not there yet. */
	if (rs->state == URN_RS_ACCEPTING)
		rs->state = URN_RS_UP;
	if (rs->state != URN_RS_UP)
		return;
	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM ||
	    on_message(rs, ntohl(wc->imm_data)) != 0)
		urn_rs_down(rs, ECONNRESET);
}

static void
on_sent(struct urn_rs *rs, const struct ibv_wc *wc)
{
	rs->in_flight--;
	if (wc->wr_id >> 56 == URN_RS_KIND_CTRL)
		rs->tx.ctrl++;
	else
		urn_rs_tx_done(&rs->tx, (uint32_t)wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS)
		urn_rs_down(rs, ECONNRESET);
}

bool
urn_rs_completions(struct urn_rs *rs)
{
	struct ibv_wc wc[BURST];
	bool any = false;
	int n;

	if (rs->type == SOCK_DGRAM)
		return urn_rs_dgram_completions(rs);
	while ((n = ibv_poll_cq(rs->cq, BURST, wc)) > 0) {
		any = true;
		for (int i = 0; i < n; i++)
			if (wc[i].wr_id >> 56 == URN_RS_KIND_RECV)
				on_recv(rs, &wc[i]);
			else
				on_sent(rs, &wc[i]);
		urn_rs_post_recvs(rs);
	}
	if (n < 0)
		urn_rs_down(rs, ECONNRESET);
	return any;
}

void
urn_rs_step(struct urn_rs *rs)
{
	enum urn_rs_state before = rs->state;
	bool changed = false;

	if (rs->type == SOCK_DGRAM) {
		urn_rs_dgram_step(rs);
		return;
	}
	if (rs->state == URN_RS_LISTENING || rs->state == URN_RS_NEW)
		return;
	if (rs->cq != NULL)
		changed = urn_rs_completions(rs);
	/* After the completions: the peer's last messages came before its DREQ. */
	while (urn_rs_cm_event(rs))
		changed = true;
	urn_rs_post_credits(rs);
	if (changed || rs->state != before)
		urn_rs_wake(rs);
}

/* ---- tests */

bool
urn_rs_can_read(struct urn_rs *rs)
{
	if (rs->type == SOCK_DGRAM)
		return urn_rs_dgram_readable(rs);
	return rs->rx.bytes != 0 || (urn_rs_connected(rs) && !rs->readable) ||
	       rs->state == URN_RS_FAILED;
}

bool
urn_rs_can_write(struct urn_rs *rs)
{
	if (rs->type == SOCK_DGRAM)
		return urn_rs_dgram_writable(rs);
	if (rs->state == URN_RS_UP)
		return !rs->writable || urn_rs_tx_ready(&rs->tx);
	return rs->state == URN_RS_DOWN || rs->state == URN_RS_FAILED;
}

/* True when it is known whether the connection came about. */
bool
urn_rs_is_settled(struct urn_rs *rs)
{
	return rs->state != URN_RS_CONNECTING && rs->state != URN_RS_ACCEPTING;
}

bool
urn_rs_ctrl_or_end(struct urn_rs *rs)
{
	return rs->tx.ctrl != 0 || rs->state != URN_RS_UP;
}

bool
urn_rs_all_sent(struct urn_rs *rs)
{
	return rs->in_flight == 0 || rs->state != URN_RS_UP;
}
