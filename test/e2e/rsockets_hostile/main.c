/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of a stream rsocket, by verbs, that does one forbidden thing.
 *
 * usage: rsockets-hostile ADDRESS PORT ATTACK
 * prints: "served": the server answered; "ended": the server ended or refused the connection
 */
#include <arpa/inet.h>
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 8192, SECONDS = 30, FAR = 1 << 26 };

struct sge {
	uint64_t addr;
	uint32_t key, length;
};

struct conn {
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3], iomaps;
	struct sge targets, buffer;
};

static struct rdma_cm_id *id;
static uint8_t room[ROOM] __attribute__((aligned(4096))); /* target list; receive buffer; bytes */
static struct ibv_mr *mr;
static struct conn peer;

static void
check(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* Post a request with room's last bytes, or others. */
static void
post(enum ibv_wr_opcode op, uint32_t imm, uint64_t addr, uint32_t key, const void *from,
     uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = len, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.opcode = op,
				 .sg_list = &sge,
				 .num_sge = len != 0,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htonl(imm)};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = key;
	check(ibv_post_send(id->qp, &wr, &bad) == 0, "ibv_post_send");
}

/* Send bytes as rsockets do, with any immediate data. */
static void
data(uint32_t imm, uint32_t len)
{
	memset(room + 6000, 'h', 8);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, imm, peer.buffer.addr, peer.buffer.key, room + 6000, len);
}

static void
attack(const char *what)
{
	struct sge *wrong = (struct sge *)(room + 7000);

	if (strcmp(what, "none") == 0) {
		data(2, 2);
	} else if (strcmp(what, "length") == 0) {
		data(0x1fffffff, 2);
	} else if (strcmp(what, "credits") == 0) {
		data(0x8000ffff, 0);
	} else if (strcmp(what, "opcode") == 0) {
		data(0x20000002, 2);
	} else if (strcmp(what, "send") == 0) {
		post(IBV_WR_SEND, 0, 0, 0, room + 6000, 8);
	} else if (strcmp(what, "outside") == 0) {
		post(IBV_WR_RDMA_WRITE_WITH_IMM, 8, peer.buffer.addr + FAR, peer.buffer.key,
		     room + 6000, 8);
	} else {
		/* Targets that are not there; the server's answer goes to one. */
		wrong[0] = wrong[1] = (struct sge){0xdead0000, 0x55555555, UINT32_MAX};
		post(IBV_WR_RDMA_WRITE, 0, peer.targets.addr, peer.targets.key, wrong,
		     2 * sizeof(*wrong));
		data(2, 2);
	}
}

static void
prepare(const char *address, const char *port)
{
	struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC,
				     .cap = {.max_send_wr = 16,
					     .max_recv_wr = 16,
					     .max_send_sge = 1,
					     .max_recv_sge = 1}};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	struct ibv_recv_wr wr = {0}, *bad;

	check(inet_pton(AF_INET, address, &to.sin_addr) == 1, "address");
	check(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
	check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000) == 0, "rdma_resolve_addr");
	check(rdma_resolve_route(id, 2000) == 0, "rdma_resolve_route");
	check(rdma_create_qp(id, NULL, &a) == 0, "rdma_create_qp");
	mr = rdma_reg_write(id, room, sizeof(room));
	check(mr != NULL, "rdma_reg_write");
	for (int i = 0; i < 16; i++)
		check(ibv_post_recv(id->qp, &wr, &bad) == 0, "ibv_post_recv");
}

/* returns: false: the server refuses */
static bool
join(const char *what)
{
	struct conn own = {
		.version = 1,
		.credits = htobe16(16),
		.targets = {htobe64((uintptr_t)room), htobe32(mr->rkey), htobe32(2)},
		.buffer = {htobe64((uintptr_t)room + 1024), htobe32(mr->rkey), htobe32(4096)}};
	struct rdma_conn_param p = {.private_data = &own,
				    .private_data_len = sizeof(own),
				    .retry_count = 7,
				    .rnr_retry_count = 7};

	if (strcmp(what, "version") == 0)
		own.version = 2;
	else if (strcmp(what, "list") == 0)
		own.targets.length = 0;
	else if (strcmp(what, "short") == 0)
		p.private_data_len = 3;
	if (rdma_connect(id, &p) != 0)
		return false;
	memcpy(&peer, id->event->param.conn.private_data, sizeof(peer));
	peer.targets.addr = be64toh(peer.targets.addr);
	peer.targets.key = be32toh(peer.targets.key);
	peer.buffer.addr = be64toh(peer.buffer.addr);
	peer.buffer.key = be32toh(peer.buffer.key);
	return true;
}

/* Wait for an answer with bytes. returns: false: the connection failed */
static bool
answered(void)
{
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(id->recv_cq, 1, &wc);

		if (n == 0) {
			usleep(1000);
			continue;
		}
		if (n < 0 || wc.status != IBV_WC_SUCCESS)
			return false;
		if (ntohl(wc.imm_data) >> 29 == 0 && memcmp(room + 1024, "hh", 2) == 0)
			return true;
	}
}

int
main(int argc, char **argv)
{
	struct rdma_cm_event *e;
	bool served = false;

	if (argc != 4)
		return 2;
	alarm(SECONDS);
	prepare(argv[1], argv[2]);
	if (join(argv[3])) {
		attack(argv[3]);
		if (strcmp(argv[3], "none") == 0) {
			served = answered();
		} else {
			/* Nothing but the end comes. */
			rdma_ack_cm_event(id->event);
			id->event = NULL;
			check(rdma_get_cm_event(id->channel, &e) == 0, "rdma_get_cm_event");
			check(e->event == RDMA_CM_EVENT_DISCONNECTED, rdma_event_str(e->event));
			rdma_ack_cm_event(e);
		}
		(void)rdma_disconnect(id);
	}
	puts(served ? "served" : "ended");
	return 0;
}
