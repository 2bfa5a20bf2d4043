/* SPDX-License-Identifier: BSD-3-Clause */
#include "dropin/rdmacm/rsocket/dgram.h"

#include <urnic/attach.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 16 };

int
urn_rs_dgram_new(struct urn_rs *rs)
{
	struct urn_rs_dgram *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return ENOMEM;
	rs->dgram = d;
	return rdma_create_id(rs->channel, &d->listener, rs, RDMA_PS_UDP) != 0 ? errno : 0;
}

void
urn_rs_dgram_free(struct urn_rs *rs)
{
	struct urn_rs_dgram *d = rs->dgram;

	if (d == NULL)
		return;
	urn_rs_peers_free(rs);
	if (d->qp != NULL)
		(void)ibv_destroy_qp(d->qp);
	if (d->mr != NULL)
		(void)ibv_dereg_mr(d->mr);
	if (d->listener != NULL)
		rdma_destroy_id(d->listener);
	free(d->ready);
	free(d->ready_len);
	free(d->free_tx);
	free(d);
	rs->dgram = NULL;
}

/* ---- the queue pair */

static int
post_recv(struct urn_rs *rs, uint32_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)rs->mem + (uint64_t)slot * URN_RS_DGRAM_STRIDE,
			      .length = URN_RS_DGRAM_GRH + URN_RS_DGRAM_BYTES,
			      .lkey = rs->dgram->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(rs->dgram->qp, &wr, &bad);
}

static uint8_t *
tx_slot(const struct urn_rs *rs, uint32_t slot)
{
	return rs->mem + (size_t)rs->dgram->rx_slots * URN_RS_DGRAM_STRIDE +
	       (size_t)slot * URN_RS_DGRAM_BYTES;
}

/* returns: 0, or an errno value */
static int
memory(struct urn_rs *rs, struct ibv_pd *pd)
{
	struct urn_rs_dgram *d = rs->dgram;

	rs->mem_size = (size_t)d->rx_slots * URN_RS_DGRAM_STRIDE +
		       (size_t)d->tx_slots * URN_RS_DGRAM_BYTES;
	rs->mem = urn_alloc(rs->mem_size);
	d->ready = calloc(d->rx_slots, sizeof(*d->ready));
	d->ready_len = calloc(d->rx_slots, sizeof(*d->ready_len));
	d->free_tx = calloc(d->tx_slots, sizeof(*d->free_tx));
	if (rs->mem == NULL || d->ready == NULL || d->ready_len == NULL || d->free_tx == NULL)
		return ENOMEM;
	for (uint32_t i = 0; i < d->tx_slots; i++)
		d->free_tx[d->free_tx_n++] = i;
	d->mr = ibv_reg_mr(pd, rs->mem, rs->mem_size, IBV_ACCESS_LOCAL_WRITE);
	return d->mr == NULL ? errno : 0;
}

/* Take the queue pair to RTS. */
static int
pair_up(struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
	int err = ibv_modify_qp(qp, &init,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	if (err == 0)
		err = ibv_modify_qp(qp, &rtr, IBV_QP_STATE);
	return err != 0 ? err : ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int
pair(struct urn_rs *rs, struct ibv_pd *pd)
{
	struct urn_rs_dgram *d = rs->dgram;
	struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_UD,
				     .sq_sig_all = 1,
				     .cap = {.max_send_wr = d->tx_slots,
					     .max_recv_wr = d->rx_slots,
					     .max_send_sge = 1,
					     .max_recv_sge = 1,
					     .max_inline_data = rs->inl}};

	rs->comp = ibv_create_comp_channel(pd->context);
	if (rs->comp == NULL)
		return errno;
	rs->cq = ibv_create_cq(pd->context, (int)(d->tx_slots + d->rx_slots), rs, rs->comp, 0);
	if (rs->cq == NULL)
		return errno;
	a.send_cq = a.recv_cq = rs->cq;
	d->qp = ibv_create_qp(pd, &a);
	return d->qp == NULL ? errno : pair_up(d->qp);
}

/* Make the queue pair on the adapter of the bound address, or on the first one. returns: 0, or an
 * errno value */
static int
endpoint(struct urn_rs *rs)
{
	struct urn_rs_dgram *d = rs->dgram;
	struct urn_cma_id *id = urn_cma_of(d->listener);
	struct ibv_pd *pd;
	int err;

	urn_rs_sizes(rs);
	d->dev = id->dev != NULL ? id->dev : &urn_cma_devs[0];
	d->rx_slots =
		rs->rcvbuf / URN_RS_DGRAM_BYTES < rs->rq ? rs->rcvbuf / URN_RS_DGRAM_BYTES : rs->rq;
	d->tx_slots =
		rs->sndbuf / URN_RS_DGRAM_BYTES < rs->sq ? rs->sndbuf / URN_RS_DGRAM_BYTES : rs->sq;
	d->mtu = 128u << d->dev->mtu;
	if (d->mtu > URN_RS_DGRAM_BYTES)
		d->mtu = URN_RS_DGRAM_BYTES;
	pthread_mutex_lock(&urn_cma_lock);
	if (d->dev->pd == NULL)
		d->dev->pd = ibv_alloc_pd(d->dev->ctx);
	pd = d->dev->pd;
	pthread_mutex_unlock(&urn_cma_lock);
	err = pd == NULL ? ENOMEM : pair(rs, pd);
	if (err == 0)
		err = memory(rs, pd);
	for (uint32_t i = 0; err == 0 && i < d->rx_slots; i++)
		err = post_recv(rs, i);
	return err;
}

/* True when the address is the host's own for itself: sockets at it take datagrams from all
 * adapters, as rdma-core's do. */
static bool
loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* Make a new socket able to send and receive. returns: 0, or an errno value */
static int
start(struct urn_rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage own = {0};
	struct urn_rs_dgram *d = rs->dgram;
	int err, reuse = rs->reuse;

	if (rs->state == URN_RS_BOUND)
		return 0;
	if (rs->state != URN_RS_NEW)
		return rs->why;
	own.ss_family = (sa_family_t)rs->domain;
	if (addr != NULL && loopback(addr))
		urn_cma_addr_set_port((struct sockaddr *)&own, urn_cma_addr_port(addr));
	else if (addr != NULL)
		memcpy(&own, addr, urn_cma_addr_len(addr));
	(void)rdma_set_option(d->listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse,
			      sizeof(reuse));
	if (rdma_bind_addr(d->listener, (struct sockaddr *)&own) != 0)
		return errno == ENODEV ? EADDRNOTAVAIL : errno;
	err = endpoint(rs);
	if (err == 0 && rdma_listen(d->listener, 0) != 0)
		err = errno;
	if (err == 0) {
		rs->state = URN_RS_BOUND;
		return 0;
	}
	rs->state = URN_RS_FAILED;
	rs->why = err;
	return err;
}

int
urn_rs_dgram_bind(struct urn_rs *rs, const struct sockaddr *addr)
{
	return rs->state == URN_RS_NEW ? start(rs, addr) : EINVAL;
}

int
urn_rs_dgram_connect(struct urn_rs *rs, const struct sockaddr *addr)
{
	int err = start(rs, NULL);

	if (err == 0) {
		memset(&rs->dgram->to, 0, sizeof(rs->dgram->to));
		memcpy(&rs->dgram->to, addr, urn_cma_addr_len(addr));
	}
	return err;
}

bool
urn_rs_dgram_name(struct urn_rs *rs, bool peer, struct sockaddr_storage *out)
{
	if (peer && rs->dgram->to.ss_family == 0)
		return false;
	if (peer)
		*out = rs->dgram->to;
	else if (rs->state == URN_RS_BOUND)
		*out = rs->dgram->listener->route.addr.src_storage;
	return true;
}

/* ---- steps */

static void
received(struct urn_rs *rs, const struct ibv_wc *wc)
{
	struct urn_rs_dgram *d = rs->dgram;
	uint32_t slot = (uint32_t)wc->wr_id, len = wc->byte_len - URN_RS_DGRAM_GRH;
	struct sockaddr_storage from;
	const uint8_t *p = rs->mem + (size_t)slot * URN_RS_DGRAM_STRIDE + URN_RS_DGRAM_GRH;
	struct sockaddr_storage *to = &d->to;
	bool good = wc->status == IBV_WC_SUCCESS && wc->byte_len >= URN_RS_DGRAM_GRH &&
		    urn_rs_dgram_hdr_read(p, len, &from) != 0;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	/* A connected socket takes datagrams of its peer only. */
	if (good && to->ss_family != 0 &&
	    !urn_rs_same_addr((struct sockaddr *)&from, (struct sockaddr *)to))
		good = false;
	if (!good) {
		(void)post_recv(rs, slot);
		return;
	}
	d->ready[(d->head + d->count) % d->rx_slots] = slot;
	d->ready_len[(d->head + d->count) % d->rx_slots] = len;
	d->count++;
}

bool
urn_rs_dgram_completions(struct urn_rs *rs)
{
	struct urn_rs_dgram *d = rs->dgram;
	struct ibv_wc wc[BURST];
	bool any = false;
	int n;

	if (d->mr == NULL)
		return false;
	while ((n = ibv_poll_cq(rs->cq, BURST, wc)) > 0) {
		any = true;
		for (int i = 0; i < n; i++)
			if (wc[i].wr_id >> 56 == URN_RS_KIND_DATA)
				d->free_tx[d->free_tx_n++] = (uint32_t)wc[i].wr_id;
			else
				received(rs, &wc[i]);
	}
	if (n < 0) {
		rs->state = URN_RS_FAILED;
		rs->why = rs->error = ENETDOWN;
	}
	return any;
}

void
urn_rs_dgram_step(struct urn_rs *rs)
{
	struct rdma_cm_event *e;
	bool changed;

	if (rs->state != URN_RS_BOUND)
		return;
	changed = urn_rs_dgram_completions(rs);
	while (urn_rs_has_event(rs) && rdma_get_cm_event(rs->channel, &e) == 0) {
		changed = true;
		urn_rs_dgram_event(rs, e);
	}
	if (changed)
		urn_rs_wake(rs);
}

bool
urn_rs_dgram_readable(struct urn_rs *rs)
{
	return rs->dgram->count != 0 || rs->state == URN_RS_FAILED;
}

bool
urn_rs_dgram_writable(struct urn_rs *rs)
{
	return rs->state == URN_RS_FAILED || rs->state == URN_RS_NEW ||
	       (rs->dgram->free_tx_n != 0 && rs->dgram->looking == 0);
}

bool
urn_rs_dgram_all_sent(struct urn_rs *rs)
{
	return rs->state != URN_RS_BOUND || rs->dgram->free_tx_n == rs->dgram->tx_slots;
}

/* ---- sending and receiving */

/* Let the peer's queue pair be known. returns: 0, or an errno value */
static int
know(struct urn_rs *rs, struct urn_rs_peer **pp, const struct sockaddr *to, int flags)
{
	struct urn_rs_peer *p = *pp;
	int err = 0;

	urn_rs_step(rs);
	if (p->ah == NULL || urn_rs_now_ms() - p->learned > URN_RS_DGRAM_FRESH_MS)
		err = p->look == NULL ? urn_rs_peer_look(rs, p) : 0;
	if (err != 0 || p->ah != NULL)
		return p->ah != NULL ? 0 : err;
	err = urn_rs_wait(rs, urn_rs_dgram_writable,
			  urn_rs_nonblocking(rs, flags) ? 0 : URN_RS_DGRAM_LOOK_MS);
	/* The list may have changed while the thread slept. */
	p = *pp = urn_rs_peer_find(rs, to);
	if (p == NULL || p->ah != NULL)
		return p == NULL ? ENOMEM : 0;
	if (rs->state == URN_RS_FAILED)
		return rs->why;
	if (err != 0)
		return err == EAGAIN && !urn_rs_nonblocking(rs, flags) ? EHOSTUNREACH : err;
	return p->err != 0 ? p->err : EHOSTUNREACH;
}

/* Send a datagram to a peer that is known; a slot is free. returns: 0, or an errno value */
static int
post_to(struct urn_rs *rs, const struct urn_rs_peer *p, const struct iovec *iov, int n, size_t len)
{
	struct urn_rs_dgram *d = rs->dgram;
	uint32_t slot = d->free_tx[d->free_tx_n - 1];
	uint8_t *at = tx_slot(rs, slot);
	struct ibv_sge sge = {.addr = (uintptr_t)at,
			      .length = (uint32_t)(p->hdr.length + len),
			      .lkey = d->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = urn_rs_wr_id(URN_RS_KIND_DATA, slot),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = sge.length <= rs->inl ? IBV_SEND_INLINE : 0};
	struct ibv_send_wr *bad;
	int err;

	wr.wr.ud.ah = p->ah;
	wr.wr.ud.remote_qpn = p->qpn;
	wr.wr.ud.remote_qkey = p->qkey;
	memcpy(at, &p->hdr, p->hdr.length);
	at += p->hdr.length;
	for (int i = 0; i < n; i++) {
		memcpy(at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	err = ibv_post_send(d->qp, &wr, &bad);
	if (err == 0)
		d->free_tx_n--;
	return err;
}

static bool
has_slot(struct urn_rs *rs)
{
	return rs->dgram->free_tx_n != 0 || rs->state != URN_RS_BOUND;
}

ssize_t
urn_rs_dgram_send(struct urn_rs *rs, const struct iovec *iov, int n, int flags,
		  const struct sockaddr *to, socklen_t to_len)
{
	struct urn_rs_dgram *d = rs->dgram;
	struct urn_rs_peer *p;
	size_t len = 0;
	int err;

	if (to == NULL && d->to.ss_family != 0)
		to = (const struct sockaddr *)&d->to;
	else if (to == NULL)
		return urn_cma_result(EDESTADDRREQ);
	else if (to_len < sizeof(sa_family_t) || urn_cma_addr_len(to) == 0 ||
		 to_len < urn_cma_addr_len(to))
		return urn_cma_result(EINVAL);
	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	err = start(rs, NULL);
	if (err == 0 && len > d->mtu - URN_RS_DGRAM_V6)
		err = EMSGSIZE;
	if (err != 0)
		return urn_cma_result(err);
	p = urn_rs_peer_find(rs, to);
	if (p == NULL)
		return urn_cma_result(ENOMEM);
	err = urn_rs_wait(rs, has_slot, urn_rs_nonblocking(rs, flags) ? 0 : -1);
	if (err == 0)
		err = know(rs, &p, to, flags);
	if (err == 0 && rs->state != URN_RS_BOUND)
		err = rs->why;
	if (err == 0 && d->free_tx_n == 0)
		err = EAGAIN;
	if (err == 0)
		err = post_to(rs, p, iov, n, len);
	return err != 0 ? urn_cma_result(err) : (ssize_t)len;
}

/* Copy a datagram to the program. returns: bytes copied */
static size_t
copy_out(const uint8_t *p, size_t len, const struct iovec *iov, int n)
{
	size_t done = 0;

	for (int i = 0; i < n && done < len; i++) {
		size_t m = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		memcpy(iov[i].iov_base, p + done, m);
		done += m;
	}
	return done;
}

ssize_t
urn_rs_dgram_recv(struct urn_rs *rs, const struct iovec *iov, int n, int flags,
		  struct sockaddr *from, socklen_t *from_len, int *out_flags)
{
	struct urn_rs_dgram *d = rs->dgram;
	struct sockaddr_storage src;
	uint32_t slot, hdr;
	const uint8_t *p;
	size_t len, got;
	int err = start(rs, NULL);

	if (err == 0 && d->count == 0)
		err = urn_rs_wait(rs, urn_rs_dgram_readable,
				  urn_rs_nonblocking(rs, flags) ? 0 : -1);
	if (err == 0 && d->count == 0)
		err = rs->why;
	if (err != 0)
		return urn_cma_result(err);
	slot = d->ready[d->head];
	p = rs->mem + (size_t)slot * URN_RS_DGRAM_STRIDE + URN_RS_DGRAM_GRH;
	hdr = urn_rs_dgram_hdr_read(p, d->ready_len[d->head], &src);
	len = d->ready_len[d->head] - hdr;
	got = copy_out(p + hdr, len, iov, n);
	if (from != NULL && from_len != NULL)
		urn_rs_addr_out(rs, (struct sockaddr *)&src, from, from_len);
	if (out_flags != NULL && got < len)
		*out_flags |= MSG_TRUNC;
	if (!(flags & MSG_PEEK)) {
		d->head = (d->head + 1) % d->rx_slots;
		d->count--;
		(void)post_recv(rs, slot);
	}
	return (ssize_t)(flags & MSG_TRUNC ? len : got);
}
