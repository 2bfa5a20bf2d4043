/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a socket. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <unistd.h>

/* Note what this side shuts. *ctrl: the message that tells the peer. returns: true: there is one */
static bool
shut_note(struct urn_rs *rs, int how, enum urn_rs_ctrl *ctrl)
{
	bool could_write = rs->writable;

	if (how != SHUT_RD)
		rs->writable = false;
	if (how != SHUT_WR)
		rs->readable = false;
	*ctrl = rs->readable ? URN_RS_SHUTDOWN : URN_RS_DISCONNECT;
	return !rs->writable && (could_write || how != SHUT_WR);
}

int
urn_rs_shut(struct urn_rs *rs, int how, int ms)
{
	enum urn_rs_ctrl ctrl;
	int err = 0;

	if (!shut_note(rs, how, &ctrl))
		return 0;
	if (rs->state == URN_RS_ACCEPTING)
		err = urn_rs_wait(rs, urn_rs_is_settled, ms);
	if (err == 0 && rs->tx.ctrl == 0)
		err = urn_rs_wait(rs, urn_rs_ctrl_or_end, ms);
	if (err == 0 && rs->state == URN_RS_UP && !urn_rs_post_ctrl(rs, ctrl))
		return 0; /* the connection ended otherwise */
	/* The bytes before the message have arrived when the call returns. */
	if (err == 0)
		err = urn_rs_wait(rs, urn_rs_all_sent, ms);
	if (ctrl == URN_RS_DISCONNECT && rs->state == URN_RS_UP)
		urn_rs_down(rs, err == EAGAIN ? ETIMEDOUT : 0);
	urn_rs_wake(rs);
	return err == EAGAIN ? ETIMEDOUT : err;
}

int
rshutdown(int socket, int how)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int err = 0;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		err = EINVAL;
	else if (rs->state == URN_RS_UP || rs->state == URN_RS_ACCEPTING)
		err = urn_rs_shut(rs, how, URN_RS_LINGER_MS);
	else if (rs->state != URN_RS_DOWN)
		err = ENOTCONN;
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return urn_cma_result(err);
}

/* End a stream's connection. */
static void
end_stream(struct urn_rs *rs)
{
	int ms = rs->linger.l_onoff && rs->linger.l_linger > 0
			 ? (rs->linger.l_linger < URN_RS_LINGER_MS / 1000
				    ? rs->linger.l_linger * 1000
				    : URN_RS_LINGER_MS)
			 : URN_RS_LINGER_MS;

	/* A peer's RTU comes at once, or it is not to be waited for. */
	if (rs->state == URN_RS_ACCEPTING && ms > URN_RS_RTU_MS)
		ms = URN_RS_RTU_MS;
	if (rs->state == URN_RS_UP || rs->state == URN_RS_ACCEPTING)
		(void)urn_rs_shut(rs, SHUT_RDWR, ms);
	if (rs->state >= URN_RS_CONNECTING && rs->id != NULL && rs->id->qp != NULL)
		(void)rdma_disconnect(rs->id);
}

int
rclose(int socket)
{
	struct urn_rs *rs = urn_rs_take(socket);

	if (rs == NULL)
		return -1;
	/* A child of fork() has only the descriptor; the rest belongs to its parent. */
	if (rs->foreign)
		return close(socket);
	pthread_mutex_lock(&rs->lock);
	if (rs->type == SOCK_STREAM)
		end_stream(rs);
	else
		(void)urn_rs_wait(rs, urn_rs_dgram_all_sent, URN_RS_LINGER_MS);
	rs->closed = true;
	urn_rs_wake(rs);
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return 0;
}
