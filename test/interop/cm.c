/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program does the steps of rdma-core's ucmatose over urnic's control calls: connect
 * several queue pairs by RDMA-CM's rules, exchange messages, disconnect. The other side is
 * ucmatose itself, over the kernel's connection management.
 *
 * usage: cm active|passive PEER CONNECTIONS MESSAGES BYTES FAMILY DEVICE IP CAPTURE
 *
 * FAMILY is 4 or 6. Messages go both ways: first from the passive side to the active
 * side, then back.
 */
#include "rw.h"

#include "abi/cm.h"
#include "verbs/adapter/adapter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	PORT = 7471,
	OUR_PORT = 4711,
	MOST = 64,
	/* s; a peer whose program is slow may put a repeat off for 68 s (MRA), and its RTU be lost
	 */
	PATIENCE = 100,
	STALE_PAUSE = 500000, /* us */
	LISTEN_PAUSE = 50000, /* us */
};

struct conn {
	struct ibv_qp *qp;
	uint32_t id, psn;
	bool up, over;
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf;
	struct conn conn[MOST];
	unsigned int conns, messages, bytes, asked;
	unsigned int up, over, received, sent;
	bool listens; /* the peer's program does */
	bool looks;   /* a look-up is under way, and nothing else */
	uint8_t family, peer[16], own[16], mtu;
	int sgid;
} me;

void
rw_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "cm: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static struct urn_abi_rep
call(uint32_t op, struct urn_abi_req *req)
{
	struct urn_abi_rep rep;

	req->op = op;
	if (urn_dev_call(urn_ctx_dev(me.ctx), req, &rep) != 0 && rep.err != EAGAIN)
		rw_fail("%s", rep.why);
	return rep;
}

/* An address as a GID. */
static void
gid_of(const char *text, uint8_t gid[16])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid, v4, sizeof(v4));
	if (inet_pton(AF_INET, text, gid + 12) != 1 && inet_pton(AF_INET6, text, gid) != 1)
		rw_fail("'%s' is no address", text);
}

static void
objects(void)
{
	struct ibv_port_attr pa;

	me.buf = calloc(2, me.bytes + 1u);
	me.pd = ibv_alloc_pd(me.ctx);
	me.cq = ibv_create_cq(me.ctx, 4096, NULL, NULL, 0);
	if (!me.buf || !me.pd || !me.cq)
		rw_fail("no room");
	me.mr = ibv_reg_mr(me.pd, me.buf, 2 * (me.bytes + 1u), IBV_ACCESS_LOCAL_WRITE);
	if (!me.mr || ibv_query_port(me.ctx, 1, &pa) != 0)
		rw_fail("no region, or no port");
	me.mtu = (uint8_t)pa.active_mtu;
	memset(me.buf, 0x5a, me.bytes);
}

static void
make_qp(struct conn *c)
{
	struct ibv_qp_init_attr init = {
		.send_cq = me.cq, .recv_cq = me.cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = me.messages + 1, .max_recv_wr = me.messages + 1,
			.max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_sge sge = {(uintptr_t)me.buf + me.bytes + 1, me.bytes, me.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	c->qp = ibv_create_qp(me.pd, &init);
	if (!c->qp || ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						       IBV_QP_ACCESS_FLAGS) != 0)
		rw_fail("no queue pair");
	c->psn = 0x700000 + c->qp->qp_num;
	for (unsigned int i = 0; i < me.messages; i++)
		if (ibv_post_recv(c->qp, &wr, &bad) != 0)
			rw_fail("can't post a receive");
}

/* Bring the queue pair to RTS with the values of the event, towards the event's sender. */
static void
bring_up(struct conn *c, const struct urn_abi_cm_event *ev, uint8_t mtu)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = (enum ibv_mtu)mtu, .dest_qp_num = ev->qpn,
		.rq_psn = c->psn, .sq_psn = ev->psn, .min_rnr_timer = 1, .timeout = 17, .retry_cnt = 7,
		.rnr_retry = 7, .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};

	a.ah_attr.grh.sgid_index = (uint8_t)me.sgid;
	memcpy(a.ah_attr.grh.dgid.raw, ev->gid, 16);
	if (ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER) != 0)
		rw_fail("not ready to receive");
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		rw_fail("not ready to send");
}

static struct conn *
by_id(uint32_t id)
{
	for (unsigned int i = 0; i < MOST; i++)
		if (me.conn[i].id == id)
			return &me.conn[i];
	rw_fail("an event of no connection");
}

/* Address a request, and give it to the connection management. returns: its id */
static uint32_t
request(uint32_t op, struct urn_abi_req *req)
{
	struct urn_cm_ip ip = {.version = me.family, .port = OUR_PORT};

	req->cm_connect.service_id = urn_cm_service(URN_CM_PS_TCP, PORT);
	req->cm_connect.channel_fd = -1;
	req->cm_connect.sgid_index = (uint8_t)me.sgid;
	memcpy(req->cm_connect.dgid, me.peer, 16);
	memcpy(ip.src, me.own, 16);
	memcpy(ip.dst, me.peer, 16);
	urn_cm_ip_write(req->cm_connect.data, &ip);
	return call(op, req).handle;
}

static void
ask(struct conn *c)
{
	struct urn_abi_req req = {.cm_connect = {.mtu = me.mtu,
						 .retry_count = 7,
						 .rnr_retry = 7,
						 .timeout = 18,
						 .max_retries = 15,
						 .ack_timeout = 17,
						 .data_len = URN_CM_REQ_DATA}};

	if (!c->qp)
		make_qp(c);
	req.cm_connect.qpn = c->qp->qp_num;
	req.cm_connect.psn = c->psn;
	c->id = request(URN_CTL_CM_CONNECT, &req);
}

static void
on_request(const struct urn_abi_cm_event *ev)
{
	struct urn_abi_req req = {.handle = ev->id, .cm_accept = {
		.rnr_retry = 7, .ack_delay = 15, .responder_resources = ev->initiator_depth,
		.initiator_depth = ev->responder_resources}};
	struct urn_cm_ip ip;
	struct conn *c = &me.conn[me.asked++];

	if (me.asked > me.conns)
		rw_fail("more requests than connections");
	if (urn_cm_ip_read(ev->data, ev->data_len, &ip) != 0 || memcmp(ip.src, me.peer, 16) != 0 ||
	    memcmp(ip.dst, me.own, 16) != 0 || memcmp(ev->gid, me.peer, 16) != 0)
		rw_fail("the request says other addresses");
	c->id = ev->id;
	make_qp(c);
	bring_up(c, ev, ev->mtu < me.mtu ? ev->mtu : me.mtu);
	req.cm_accept.qpn = c->qp->qp_num;
	req.cm_accept.psn = c->psn;
	call(URN_CTL_CM_ACCEPT, &req);
}

static void
simply(uint32_t op, uint32_t id)
{
	struct urn_abi_req req = {.handle = id};

	call(op, &req);
}

/* The answer to a look-up. A program that listens for connections refuses it. */
static void
on_look_up(const struct urn_abi_cm_event *ev)
{
	me.listens = ev->type == URN_CM_EVENT_SIDR_REPLY && ev->reason == URN_CM_SIDR_REJECT;
	if (ev->type == URN_CM_EVENT_SIDR_REPLY && !me.listens &&
	    ev->reason != URN_CM_SIDR_UNSUPPORTED)
		rw_fail("look-up: status %u", ev->reason);
	me.looks = false;
}

static void
on_event(const struct urn_abi_cm_event *ev)
{
	struct conn *c;

	if (ev->type == URN_CM_EVENT_REQUEST) {
		on_request(ev);
		return;
	}
	if (me.looks) {
		on_look_up(ev);
		return;
	}
	c = by_id(ev->id);
	switch (ev->type) {
	case URN_CM_EVENT_REPLY:
		bring_up(c, ev, me.mtu);
		simply(URN_CTL_CM_ESTABLISH, c->id);
		c->up = true;
		me.up++;
		break;
	case URN_CM_EVENT_ESTABLISHED:
		c->up = true;
		me.up++;
		break;
	case URN_CM_EVENT_DISCONNECT:
		simply(URN_CTL_CM_DISCONNECT, c->id);
		c->over = true;
		me.over++;
		break;
	case URN_CM_EVENT_DISCONNECTED:
		if (ev->reason)
			rw_fail("no answer to a DREQ");
		c->over = true;
		me.over++;
		break;
	case URN_CM_EVENT_TIMEWAIT:
		break;
	case URN_CM_EVENT_REJECTED:
		if (ev->reason != URN_CM_REJ_STALE_CONN)
			rw_fail("rejected, reason %u", ev->reason);
		/*
		 * The peer still has a connection with a queue pair of this number, which the
		 * program before this one had: queue pairs of each are numbered from 2. The pause
		 * is long, because a copy of the refused request may come when that connection has
		 * ended: the peer accepts the copy then, and nobody knows its answer here.
		 */
		simply(URN_CTL_CM_DESTROY, c->id);
		usleep(STALE_PAUSE);
		ask(c);
		break;
	default:
		rw_fail("connection event %u, reason %u", ev->type, ev->reason);
	}
}

/*
 * True when the completion is of a message whose acknowledgement was lost, on a connection that the
 * peer has ended since. The peer ends a connection when the peer has all messages, and answers no
 * retransmission from then on; the peer's exit code says whether all arrived. A receive has
 * wr_id 1.
 */
static bool
peer_had_it(const struct ibv_wc *wc)
{
	if ((wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_WR_FLUSH_ERR) || wc->wr_id != 0)
		return false;
	for (unsigned int i = 0; i < me.conns; i++)
		if (me.conn[i].qp->qp_num == wc->qp_num)
			return me.conn[i].over;
	return false;
}

/* Handle all pending events and completions. */
static void
look(void)
{
	struct urn_abi_req req = {.handle = 0};
	struct urn_abi_rep rep;
	struct ibv_wc wc;

	for (;;) {
		rep = call(URN_CTL_CM_EVENT, &req);
		if (rep.err)
			break;
		on_event(&rep.cm_event);
	}
	while (ibv_poll_cq(me.cq, 1, &wc) == 1) {
		if (peer_had_it(&wc)) {
			me.sent++;
			continue;
		}
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			rw_fail("completion: %s", ibv_wc_status_str(wc.status));
		if (wc.opcode == IBV_WC_RECV && wc.byte_len != me.bytes)
			rw_fail("a message of %u bytes", wc.byte_len);
		me.received += wc.opcode == IBV_WC_RECV;
		me.sent += wc.opcode == IBV_WC_SEND;
	}
	usleep(200);
}

static void
await(const unsigned int *n, unsigned int want, const char *what)
{
	time_t start = time(NULL);

	while (*n < want) {
		if (time(NULL) - start > PATIENCE)
			rw_fail("%u of %u %s in %d s", *n, want, what, PATIENCE);
		look();
	}
}

/*
 * Wait until the peer listens. A look-up tells, and leaves nothing. A request for a connection does
 * not do: the peer refuses it, begins to listen, and accepts the copy that the wire made of it, and
 * nobody knows the answer here.
 */
static void
await_listener(void)
{
	time_t start = time(NULL);

	while (!me.listens) {
		struct urn_abi_req req = {.cm_connect = {.timeout = 18,
							 .max_retries = 15,
							 .data_len = URN_CM_IP_BYTES}};
		uint32_t id = request(URN_CTL_CM_RESOLVE, &req);

		me.looks = true;
		while (me.looks) {
			if (time(NULL) - start > PATIENCE)
				rw_fail("the peer does not listen in %d s", PATIENCE);
			look();
		}
		simply(URN_CTL_CM_DESTROY, id);
		if (!me.listens)
			usleep(LISTEN_PAUSE);
	}
}

static void
send_all(void)
{
	struct ibv_sge sge = {(uintptr_t)me.buf, me.bytes, me.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	for (unsigned int i = 0; i < me.conns; i++)
		for (unsigned int k = 0; k < me.messages; k++)
			if (ibv_post_send(me.conn[i].qp, &wr, &bad) != 0)
				rw_fail("can't post a message");
	await(&me.sent, me.conns * me.messages, "messages sent");
}

static void
finish(bool active)
{
	time_t start = time(NULL);

	/* The passive side ends each connection, as ucmatose does and expects; the active waits. */
	while (active && me.over < me.conns && time(NULL) - start < PATIENCE)
		look();
	for (unsigned int i = 0; i < me.conns; i++)
		if (!me.conn[i].over)
			simply(URN_CTL_CM_DISCONNECT, me.conn[i].id);
	await(&me.over, me.conns, "connections ended");
	for (unsigned int i = 0; i < me.conns; i++) {
		simply(URN_CTL_CM_DESTROY, me.conn[i].id);
		ibv_destroy_qp(me.conn[i].qp);
	}
	ibv_dereg_mr(me.mr);
	ibv_destroy_cq(me.cq);
	ibv_dealloc_pd(me.pd);
	ibv_close_device(me.ctx);
	usleep(50000); /* the last DREP is on its way */
}

int
main(int argc, char **argv)
{
	struct urn_abi_req req = {.cm_listen = {.service_id = urn_cm_service(URN_CM_PS_TCP, PORT),
						.channel_fd = -1}};
	bool active;

	if (argc != 10)
		rw_fail("usage: cm active|passive PEER CONNECTIONS MESSAGES BYTES FAMILY DEVICE IP CAPTURE");
	active = strcmp(argv[1], "active") == 0;
	gid_of(argv[2], me.peer);
	me.conns = (unsigned int)atoi(argv[3]);
	me.messages = (unsigned int)atoi(argv[4]);
	me.bytes = (unsigned int)atoi(argv[5]);
	me.family = (uint8_t)atoi(argv[6]);
	me.sgid = me.family == 6 ? 2 : 1;
	gid_of(argv[8], me.own);
	if (me.conns > MOST)
		rw_fail("at most %d connections", MOST);
	me.ctx = rw_open(argv + 7, 3);
	objects();
	if (active) {
		await_listener();
		for (unsigned int i = 0; i < me.conns; i++)
			ask(&me.conn[i]);
	} else {
		call(URN_CTL_CM_LISTEN, &req);
		fprintf(stderr, "listening\n");
	}
	await(&me.up, me.conns, "connections up");
	if (!active)
		send_all();
	await(&me.received, me.conns * me.messages, "messages received");
	if (active)
		send_all();
	finish(active);
	printf("all steps done\n");
	rw_close();
	return 0;
}
