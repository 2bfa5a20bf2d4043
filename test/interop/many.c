/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: many active HOST TCP-PORT GID-INDEX MTU TIMEOUT RETRIES read|write SIZE COUNT [...]
 *        many passive - TCP-PORT GID-INDEX MTU TIMEOUT RETRIES read|write SIZE COUNT [...]
 *
 * COUNT READs or WRITEs of SIZE bytes by the active side, DEPTH outstanding: the most that
 * a slow peer is ever asked for at once. The first completion with an error ends both sides.
 * The bytes of the last DEPTH operations are compared.
 */
#include "rw.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 16, PATIENCE = 200, ARGS = 11 };

/* Values that each side tells the other; network order. */
struct meet {
	uint32_t qpn, psn, rkey, rsvd;
	uint64_t va;
	uint8_t gid[16];
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;              /* DEPTH pieces of `size` bytes */
	uint32_t size, count;
	struct meet mine, peer;
	bool active, reads;
	int tcp;
} s;

void
rw_fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "many %s: ", s.active ? "active" : "passive");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void
need(bool ok, const char *what)
{
	if (!ok)
		rw_fail("%s failed", what);
}

/* ---- TCP */

static void
tcp_open(const char *host, const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!s.active) {
		need(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0, "listening");
		s.tcp = accept(fd, NULL, NULL);
		close(fd);
		return;
	}
	need(inet_pton(AF_INET, host, &at.sin_addr) == 1, "the peer's address");
	for (int i = 0; connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0; i++) {
		need(i < PATIENCE * 20, "connecting");
		usleep(50000); /* the peer does not listen yet */
		close(fd);
		fd = socket(AF_INET, SOCK_STREAM, 0);
	}
	s.tcp = fd;
}

static void
exchange(const void *mine, void *theirs, size_t n)
{
	need(send(s.tcp, mine, n, MSG_NOSIGNAL) == (ssize_t)n, "telling the peer");
	if (recv(s.tcp, theirs, n, MSG_WAITALL) != (ssize_t)n)
		rw_fail("the peer ended; it says why");
}

static void
in_step(void)
{
	uint32_t word = 1, theirs;

	exchange(&word, &theirs, sizeof(word));
}

/* ---- verbs */

static void
make_objects(uint8_t gid_index)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	size_t bytes = (size_t)s.size * DEPTH;
	union ibv_gid gid;

	s.pd = ibv_alloc_pd(s.ctx);
	s.cq = ibv_create_cq(s.ctx, 2 * DEPTH, NULL, NULL, 0);
	need(s.pd != NULL && s.cq != NULL, "making a PD and a CQ");
	s.buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(s.buf != MAP_FAILED, "getting memory");
	s.mr = ibv_reg_mr(s.pd, s.buf, bytes,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	need(s.mr != NULL, "registering memory");
	attr.send_cq = attr.recv_cq = s.cq;
	s.qp = ibv_create_qp(s.pd, &attr);
	need(s.qp != NULL, "making a QP");
	need(ibv_query_gid(s.ctx, 1, gid_index, &gid) == 0, "asking for the GID");
	s.mine.qpn = htobe32(s.qp->qp_num);
	s.mine.psn = htobe32(0xfffff0u); /* wraps soon */
	s.mine.rkey = htobe32(s.mr->rkey);
	s.mine.va = htobe64((uintptr_t)s.buf);
	memcpy(s.mine.gid, gid.raw, 16);
}

static void
connect_qp(uint8_t gid_index, unsigned int mtu, uint8_t timeout, uint8_t retries)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(mtu) - 7),
		.dest_qp_num = be32toh(s.peer.qpn),
		.rq_psn = be32toh(s.peer.psn),
		.sq_psn = be32toh(s.mine.psn),
		.max_rd_atomic = DEPTH,
		.max_dest_rd_atomic = DEPTH,
		.min_rnr_timer = 12,
		.timeout = timeout,
		.retry_cnt = retries,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1,
			    .grh = {.sgid_index = gid_index, .hop_limit = 64}},
	};

	memcpy(a.ah_attr.grh.dgid.raw, s.peer.gid, 16);
	need(ibv_modify_qp(s.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS) == 0, "going to INIT");
	a.qp_state = IBV_QPS_RTR;
	need(ibv_modify_qp(s.qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER) == 0, "going to RTR");
	a.qp_state = IBV_QPS_RTS;
	need(ibv_modify_qp(s.qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC) == 0, "going to RTS");
}

static uint8_t
pattern(size_t i)
{
	return (uint8_t)(i * 0x9e3779b1u >> 24);
}

static void
post(uint32_t n)
{
	uint32_t off = n % DEPTH * s.size;
	struct ibv_sge sge = {(uintptr_t)s.buf + off, s.size, s.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1,
				 .opcode = s.reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				 .wr.rdma = {be64toh(s.peer.va) + off, be32toh(s.peer.rkey)}};
	struct ibv_send_wr *bad;

	need(ibv_post_send(s.qp, &wr, &bad) == 0, "posting");
}

static void
ask(void)
{
	time_t limit = time(NULL) + PATIENCE;
	uint32_t posted = 0, done = 0;

	while (done < s.count) {
		struct ibv_wc wc;
		int n;

		while (posted < s.count && posted - done < DEPTH)
			post(posted++);
		n = ibv_poll_cq(s.cq, 1, &wc);
		need(n >= 0, "polling");
		if (n == 0 && time(NULL) > limit)
			rw_fail("%u of %u are done in %d s", done, s.count, PATIENCE);
		if (n == 0)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			rw_fail("request %u of %u ended with: %s", done, s.count,
				ibv_wc_status_str(wc.status));
		done++;
	}
}

int
main(int argc, char **argv)
{
	uint8_t gid_index;
	bool fills;

	if (argc < ARGS)
		rw_fail("wants active|passive HOST TCP-PORT GID-INDEX MTU TIMEOUT RETRIES read|write SIZE COUNT");
	s.active = strcmp(argv[1], "active") == 0;
	s.reads = strcmp(argv[8], "read") == 0;
	s.size = (uint32_t)atoi(argv[9]);
	s.count = (uint32_t)atoi(argv[10]);
	gid_index = (uint8_t)atoi(argv[4]);
	s.ctx = rw_open(argv + ARGS, argc - ARGS);
	need(s.ctx != NULL, "opening the device");
	make_objects(gid_index);
	fills = s.active != s.reads;
	for (size_t i = 0; fills && i < (size_t)s.size * DEPTH; i++)
		s.buf[i] = pattern(i);
	tcp_open(argv[2], argv[3]);
	exchange(&s.mine, &s.peer, sizeof(s.mine));
	connect_qp(gid_index, (unsigned int)atoi(argv[5]), (uint8_t)atoi(argv[6]),
		   (uint8_t)atoi(argv[7]));
	in_step();
	if (s.active)
		ask();
	in_step();
	for (size_t i = 0; i < (size_t)s.size * DEPTH && s.count >= DEPTH; i++)
		if (s.buf[i] != pattern(i))
			rw_fail("byte %zu is 0x%02x, not 0x%02x", i, s.buf[i], pattern(i));
	printf("all steps done\n");
	ibv_destroy_qp(s.qp);
	ibv_destroy_cq(s.cq);
	ibv_dereg_mr(s.mr);
	ibv_dealloc_pd(s.pd);
	ibv_close_device(s.ctx);
	rw_close();
	return 0;
}
