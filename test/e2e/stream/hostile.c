/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of byte streams that breaks the protocol in one way, by verbs and connection management of
 * its own (stream.py), and says what the other end told it.
 *
 * Usage: stream-hostile SOCKET NODE ADDRESS PORT WAY
 */
#include "../check.h"

#include "ends.h"

#include "stream/stream.h"

#include <urnic/attach.h>
#include <urnic/cm.h>

#include <arpa/inet.h>
#include <poll.h>

#define SERVICE 0x5553545200000000ull

enum { SLOT = 8192 + URN_ST_WIRE_MAX, RECVS = 28, SECONDS = 20, SENDS = 18, GUSH = 1 << 20 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct urn_cm_end *cm;
static struct ends_wish wished; /* bytes of each message as long as a wish */
static uint8_t *buf;		/* RECVS slots, and SENDS of this end's messages */

static uint8_t
gid_index(void)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid gid;

	for (int i = 0; i < 16; i++)
		if (ibv_query_gid(ctx, 1, i, &gid) == 0 && memcmp(gid.raw, v4, sizeof(v4)) == 0)
			return (uint8_t)i;
	CHECK(!"an address");
	return 0;
}

static void
open_all(const char *socket, const char *node)
{
	struct ibv_qp_init_attr init = {.cap = {SENDS, RECVS, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};

	ctx = urn_attach_connect(socket, node);
	CHECK(ctx != NULL);
	pd = ibv_alloc_pd(ctx);
	buf = calloc(RECVS + SENDS, SLOT);
	mr = ibv_reg_mr(pd, buf, (size_t)(RECVS + SENDS) * SLOT, IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	CHECK(mr && cq && qp);
	EQUAL(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      0);
	EQUAL(urn_cm_end_open(&cm, ctx), 0);
	for (uint32_t i = 0; i < RECVS; i++) {
		struct ibv_sge sge = {(uintptr_t)buf + (size_t)i * SLOT, SLOT, mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		EQUAL(ibv_post_recv(qp, &wr, &bad), 0);
	}
}

/* Ask for a connection. how: the way, which may spoil the greeting */
static uint32_t
ask(const char *address, const char *port, const char *how)
{
	const struct urn_st_hello h = {8, 4096, URN_ST_CAN_READ};
	struct urn_abi_cm_connect p = {.service_id = SERVICE | strtoul(port, NULL, 10),
				       .qpn = qp->qp_num,
				       .psn = 100,
				       .sgid_index = gid_index(),
				       .responder_resources = 4,
				       .initiator_depth = 4,
				       .retry_count = 7,
				       .rnr_retry = 7,
				       .mtu = IBV_MTU_1024,
				       .ack_timeout = 14,
				       .max_retries = 15,
				       .data_len = 24};
	uint32_t id;

	memset(p.dgid + 10, 0xff, 2);
	EQUAL(inet_pton(AF_INET, address, p.dgid + 12), 1);
	(void)urn_st_hello_put(p.data, &h);
	if (strcmp(how, "version") == 0)
		p.data[4] = 9;
	if (strcmp(how, "line") == 0)
		p.data[17] = 65;
	if (strcmp(how, "magic") == 0)
		p.data[0] ^= 1;
	if (strcmp(how, "buffers") == 0)
		memset(p.data + 8, 0, 4);
	EQUAL(urn_cm_end_connect(cm, &p, &id), 0);
	return id;
}

static struct urn_abi_cm_event
event(void)
{
	struct pollfd p = {.fd = urn_cm_end_fd(cm), .events = POLLIN};
	struct urn_abi_cm_event ev;
	int err;

	while ((err = urn_cm_end_event(cm, &ev)) == EAGAIN)
		EQUAL(poll(&p, 1, SECONDS * 1000), 1);
	EQUAL(err, 0);
	return ev;
}

static void
bring_up(const struct urn_abi_cm_event *ev)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = ev->qpn,
				  .rq_psn = 100,
				  .max_dest_rd_atomic = 4,
				  .min_rnr_timer = 1,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.sgid_index = gid_index(), .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .sq_psn = ev->psn,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 4};

	memcpy(rtr.ah_attr.grh.dgid.raw, ev->gid, 16);
	EQUAL(urn_cm_qp_ready(qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER,
			      &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      0);
}

/* Send messages in one chain, so that the other end can't answer the first before the last is out.
 * spoil: change the first byte of each */
static void
send_messages(const struct urn_st_msg *m, uint32_t n, bool spoil)
{
	struct ibv_send_wr wr[SENDS] = {0}, *bad;
	struct ibv_sge sge[SENDS];

	CHECK(n <= SENDS);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *to = buf + (size_t)(RECVS + i) * SLOT;
		struct urn_st_msg own = m[i];

		own.credit = 8;
		sge[i] = (struct ibv_sge){(uintptr_t)to, 0, mr->lkey};
		sge[i].length = urn_st_wire_put(to, &own) + own.length;
		if (own.length == sizeof(wished))
			memcpy(to + sge[i].length - own.length, &wished, sizeof(wished));
		if (spoil)
			to[0] ^= 1;
		wr[i] = (struct ibv_send_wr){.wr_id = 1000,
					     .opcode = IBV_WR_SEND,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .send_flags = IBV_SEND_SIGNALED,
					     .next = i + 1 < n ? &wr[i + 1] : NULL};
	}
	EQUAL(ibv_post_send(qp, wr, &bad), 0);
}

/* Send one message of a kind. */
static void
send_message(struct urn_st_msg m, bool spoil)
{
	send_messages(&m, 1, spoil);
}

/* A message that wishes for a kind of honest end. */
static struct urn_st_msg
wish(uint32_t mode, uint64_t bytes)
{
	wished = (struct ends_wish){ENDS_MAGIC, mode, 1, bytes};
	return (struct urn_st_msg){.kind = URN_ST_DATA, .length = sizeof(wished)};
}

/* Data beyond the credit of the greeting: more messages than a stream has buffers by default, to an
 * end that reads nothing but the wish. */
static void
send_beyond(void)
{
	struct urn_st_msg m[SENDS] = {wish(ENDS_IDLE, 0)};
	const uint32_t whole = SLOT - URN_ST_WIRE_MAX;

	for (uint32_t i = 1; i < SENDS; i++)
		m[i] = (struct urn_st_msg){.kind = URN_ST_DATA,
					   .offset = sizeof(struct ends_wish) + (i - 1) * whole,
					   .length = whole};
	send_messages(m, SENDS, false);
}

/* A large send of the other end, to memory that this end does not have. */
static void
announce_foreign(void)
{
	const struct urn_st_msg m[] = {
		{.kind = URN_ST_SINK_AVAIL, .bytes = GUSH, .addr = 4096, .key = 1},
		wish(ENDS_GUSH, GUSH)};

	send_messages(m, 2, false);
}

/* Break the protocol. */
static void
misbehave(const char *how)
{
	struct urn_st_msg offer = {.kind = URN_ST_SRC_AVAIL,
				   .flags = URN_ST_F_READ,
				   .bytes = 10,
				   .addr = 4096,
				   .key = 1};

	static const struct urn_st_msg fins[] = {{.kind = URN_ST_FIN}, {.kind = URN_ST_FIN}};
	/* A SrcAvail that allows SendSm alone, and an end short of its bytes. */
	const struct urn_st_msg cut[] = {{.kind = URN_ST_SRC_AVAIL, .bytes = 10},
					 {.kind = URN_ST_FIN}};

	if (strcmp(how, "form") == 0)
		send_message((struct urn_st_msg){.kind = URN_ST_DATA, .length = 10}, true);
	else if (strcmp(how, "offset") == 0)
		send_message((struct urn_st_msg){.kind = URN_ST_DATA, .offset = 5, .length = 10},
			     false);
	else if (strcmp(how, "stale") == 0)
		send_message((struct urn_st_msg){.kind = URN_ST_RD_COMPL, .offset = 9, .bytes = 9},
			     false);
	else if (strcmp(how, "written") == 0)
		send_message((struct urn_st_msg){.kind = URN_ST_WR_COMPL, .bytes = 9}, false);
	else if (strcmp(how, "two-fins") == 0)
		send_messages(fins, 2, false);
	else if (strcmp(how, "foreign") == 0)
		send_message(offer, false);
	else if (strcmp(how, "short-fin") == 0)
		send_messages(cut, 2, false);
	else if (strcmp(how, "beyond") == 0)
		send_beyond();
	else if (strcmp(how, "sink") == 0)
		announce_foreign();
	else
		CHECK(!"a way");
}

/* Wait until the other end says why it ends the connection, or the connection breaks. */
static void
hear(void)
{
	struct pollfd p = {.fd = urn_cm_end_fd(cm), .events = POLLIN};
	struct urn_abi_cm_event ev;
	struct urn_st_msg m;
	struct ibv_wc wc;
	uint32_t at;

	for (;;) {
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			if (wc.status != IBV_WC_SUCCESS || wc.wr_id >= RECVS)
				continue;
			(void)urn_st_wire_get(buf + wc.wr_id * SLOT, wc.byte_len, &m, &at);
			if (m.kind != URN_ST_ABORT)
				continue;
			printf("abort: %s\n", urn_st_reason_text((unsigned int)m.bytes));
			return;
		}
		if (urn_cm_end_event(cm, &ev) == 0 && ev.type == URN_CM_EVENT_DISCONNECT) {
			puts("disconnected");
			return;
		}
		(void)poll(&p, 1, 1);
	}
}

int
main(int argc, char **argv)
{
	struct urn_abi_cm_event ev;
	uint32_t id;

	EQUAL(argc, 6);
	open_all(argv[1], argv[2]);
	id = ask(argv[3], argv[4], argv[5]);
	ev = event();
	if (ev.type == URN_CM_EVENT_REJECTED) {
		printf("refused (%u): %.*s\n", ev.reason, URN_CM_REJ_DATA - 4,
		       (const char *)ev.data + 4);
		return 0;
	}
	EQUAL(ev.type, URN_CM_EVENT_REPLY);
	bring_up(&ev);
	EQUAL(urn_cm_end_establish(cm, id, NULL, 0), 0);
	misbehave(argv[5]);
	hear();
	return 0;
}
