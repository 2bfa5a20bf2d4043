/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: rw active HOST TCP-PORT GID-INDEX MTU TIMEOUT EVERY TCLASS [...]
 *        rw passive - TCP-PORT GID-INDEX MTU TIMEOUT EVERY TCLASS [...]
 *
 * TIMEOUT is the code of the acknowledgement timeout, 4.096 us * 2^TIMEOUT. One size in EVERY is
 * used. TCLASS is the traffic class of the queue pair's packets, whose low two bits are the ECN
 * field.
 *
 * Both sides go through the same list of steps. Before a step each fills its
 * buffer with a pattern that the other side knows too; the active side does one
 * operation. Then each side compares its whole buffer with the expected bytes,
 * and not only the bytes of the operation. A word over TCP before and after each
 * step keeps the sides together.
 */
#include "rw.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
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

enum {
	MARGIN = 8192, /* bytes around those of a step that are compared, too */
	BUF = (1 << 20) + MARGIN,
	DEPTH = 64,
	PATIENCE = 200,
	BATCH = 32,
	READS = 16,
	LATE = 0x1a7e0001
};

enum op {
	OP_WRITE,
	OP_WRITE_IMM,
	OP_SEND,
	OP_SEND_IMM,
	OP_READ,
	OP_READS, /* READS parallel READs, each with its share of the bytes */
	OP_FADD,
	OP_SWAP,      /* the comparison succeeds */
	OP_NO_SWAP,   /* the comparison fails */
	OP_FADDS,     /* BATCH parallel fetch-and-adds */
	OP_SEND_LATE, /* the receive is posted when the message has come: RNR */
	OP_BAD_KEY,   /* WRITE with another key: the last step */
	OPS,
};

static const char *const op_names[OPS] = {
	"WRITE", "WRITE with immediate", "SEND", "SEND with immediate", "READ", "READs",
	"fetch-and-add", "compare-and-swap", "compare-and-swap that differs", "fetch-and-adds",
	"SEND before its receive", "WRITE with a wrong key"};

static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097,
				 65533, 65535, 65536, 1 << 20};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

struct step {
	enum op op;
	uint32_t size;
	uint32_t off; /* in both buffers */
	uint32_t seed;
};

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
	uint8_t *buf, *want;
	struct meet mine, peer;
	bool active;
	bool bad_wire;
	int tcp;
	struct step now;
} s;

void
rw_fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "rw %s: ", s.active ? "active" : "passive");
	if (s.now.seed != 0)
		fprintf(stderr, "%s of %u bytes at %u: ", op_names[s.now.op], s.now.size, s.now.off);
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
tcp_send(const void *p, size_t n)
{
	need(send(s.tcp, p, n, MSG_NOSIGNAL) == (ssize_t)n, "telling the peer");
}

static void
tcp_recv(void *p, size_t n)
{
	if (recv(s.tcp, p, n, MSG_WAITALL) != (ssize_t)n)
		rw_fail("the peer ended; it says why");
}

/* Wait until both sides have reached this point; the active side speaks first. */
static void
in_step(uint32_t word)
{
	uint32_t theirs;

	if (s.active)
		tcp_send(&word, sizeof(word));
	tcp_recv(&theirs, sizeof(theirs));
	if (theirs != word)
		rw_fail("the peer is at 0x%x, this side at 0x%x", theirs, word);
	if (!s.active)
		tcp_send(&word, sizeof(word));
}

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

/* ---- verbs */

static void
make_objects(uint8_t gid_index)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2,
			.max_recv_sge = 2},
	};
	union ibv_gid gid;

	s.pd = ibv_alloc_pd(s.ctx);
	s.cq = ibv_create_cq(s.ctx, 4 * DEPTH, NULL, NULL, 0);
	need(s.pd != NULL && s.cq != NULL, "making a PD and a CQ");
	s.buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s.want = malloc(BUF);
	need(s.buf != MAP_FAILED && s.want != NULL, "getting memory");
	s.mr = ibv_reg_mr(s.pd, s.buf, BUF,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_ATOMIC);
	need(s.mr != NULL, "registering memory");
	attr.send_cq = attr.recv_cq = s.cq;
	s.qp = ibv_create_qp(s.pd, &attr);
	need(s.qp != NULL, "making a QP");
	need(ibv_query_gid(s.ctx, 1, gid_index, &gid) == 0, "asking for the GID");
	s.mine.qpn = htobe32(s.qp->qp_num);
	s.mine.psn = htobe32(0xfffff0u + (s.active ? 0 : 9)); /* wraps soon */
	s.mine.rkey = htobe32(s.mr->rkey);
	s.mine.va = htobe64((uintptr_t)s.buf);
	memcpy(s.mine.gid, gid.raw, 16);
}

static void
connect_qp(uint8_t gid_index, unsigned int mtu, uint8_t timeout, uint8_t tclass)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(mtu) - 7),
		.dest_qp_num = be32toh(s.peer.qpn),
		.rq_psn = be32toh(s.peer.psn),
		.sq_psn = be32toh(s.mine.psn),
		.max_rd_atomic = READS,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = 12,
		.timeout = timeout,
		.retry_cnt = 6, /* with 7, soft-RoCE repeats without end, also when a bad wire lost
				   the last NAK */
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = gid_index,
				    .hop_limit = 64,
				    .traffic_class = tclass}},
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

static void
completion(struct ibv_wc *wc)
{
	time_t limit = time(NULL) + PATIENCE;
	int n;

	while ((n = ibv_poll_cq(s.cq, 1, wc)) == 0) {
		if (time(NULL) > limit)
			rw_fail("no completion in %d s", PATIENCE);
	}
	need(n == 1, "polling");
}

static void
completion_ok(struct ibv_wc *wc)
{
	completion(wc);
	if (wc->status != IBV_WC_SUCCESS)
		rw_fail("ended with: %s", ibv_wc_status_str(wc->status));
}

/* Split the bytes of a step into two pieces, the first of odd length. returns: number of pieces */
static int
pieces(struct ibv_sge sge[2], uint32_t off, uint32_t size)
{
	uint32_t first = size < 3 ? size : (size / 3) | 1;

	sge[0] = (struct ibv_sge){(uintptr_t)s.buf + off, first, s.mr->lkey};
	sge[1] = (struct ibv_sge){(uintptr_t)s.buf + off + first, size - first, s.mr->lkey};
	return size == 0 ? 0 : first < size ? 2 : 1;
}

/* ---- patterns */

static void
pattern(uint8_t *p, uint32_t seed)
{
	for (uint32_t j = 0; j < s.now.size + MARGIN; j++)
		p[j] = (uint8_t)((j * 0x9e3779b1u >> 24) + 3 * seed);
}

/* Put the other side's bytes of a step into the expected bytes of this side. */
static void
want_theirs(const struct step *t)
{
	uint32_t seed = s.active ? t->seed + 1 : t->seed;

	for (uint32_t j = t->off; j < t->off + t->size; j++)
		s.want[j] = (uint8_t)((j * 0x9e3779b1u >> 24) + 3 * seed);
}

static void
compare(void)
{
	for (uint32_t j = 0; j < s.now.size + MARGIN; j++) {
		if (s.buf[j] != s.want[j])
			rw_fail("byte %u of the buffer is 0x%02x, not 0x%02x", j, s.buf[j],
				s.want[j]);
	}
}

static uint64_t
number_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static void
put_number(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

/* The value that an atomic finds: the passive side's pattern, computed on both sides. */
static uint64_t
original(const struct step *t)
{
	uint8_t p[8];

	for (uint32_t j = 0; j < 8; j++)
		p[j] = (uint8_t)(((t->off + j) * 0x9e3779b1u >> 24) + 3 * (t->seed + 1));
	return number_at(p);
}

#define ADDEND 0x0102030405060708ull
#define SWAPPED 0xfedcba9876543210ull

/* ---- the active side */

static void
post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	need(ibv_post_send(s.qp, wr, &bad) == 0, "posting");
}

static uint64_t
remote(uint32_t off)
{
	return be64toh(s.peer.va) + off;
}

static void
do_atomic(const struct step *t)
{
	unsigned int n = t->op == OP_FADDS ? BATCH : 1;
	uint64_t at = original(t);
	struct ibv_wc wc;

	for (unsigned int i = 0; i < n; i++) {
		struct ibv_sge sge = {(uintptr_t)s.buf + t->off + 8 * i, 8, s.mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};

		wr.opcode = t->op == OP_FADD || t->op == OP_FADDS ? IBV_WR_ATOMIC_FETCH_AND_ADD
								  : IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.remote_addr = remote(t->off);
		wr.wr.atomic.rkey = be32toh(s.peer.rkey);
		wr.wr.atomic.compare_add = t->op == OP_SWAP	 ? at
					   : t->op == OP_NO_SWAP ? at + 1
								 : ADDEND;
		wr.wr.atomic.swap = SWAPPED;
		post(&wr);
		put_number(s.want + t->off + 8 * i, at + i * ADDEND);
	}
	for (unsigned int i = 0; i < n; i++)
		completion_ok(&wc);
}

static void
do_reads(const struct step *t)
{
	uint32_t share = t->size / READS;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < READS; i++) {
		uint32_t at = t->off + i * share;
		uint32_t n = i + 1 < READS ? share : t->size - i * share;
		struct ibv_sge sge = {(uintptr_t)s.buf + at, n, s.mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = n != 0,
					 .opcode = IBV_WR_RDMA_READ,
					 .wr.rdma = {remote(at), be32toh(s.peer.rkey)}};

		post(&wr);
	}
	for (uint32_t i = 0; i < READS; i++)
		completion_ok(&wc);
	want_theirs(t);
}

static void
do_message(const struct step *t)
{
	static const enum ibv_wr_opcode codes[OPS] = {
		[OP_WRITE] = IBV_WR_RDMA_WRITE,	   [OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[OP_SEND] = IBV_WR_SEND,	   [OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[OP_SEND_LATE] = IBV_WR_SEND_WITH_IMM, [OP_READ] = IBV_WR_RDMA_READ,
		[OP_BAD_KEY] = IBV_WR_RDMA_WRITE};
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.sg_list = sge, .opcode = codes[t->op],
				 .imm_data = htobe32(0x5eed0000u + t->seed),
				 .wr.rdma = {remote(t->off), be32toh(s.peer.rkey)}};
	struct ibv_wc wc;

	wr.num_sge = pieces(sge, t->off, t->size);
	if (t->op == OP_BAD_KEY)
		wr.wr.rdma.rkey ^= 1;
	post(&wr);
	if (t->op == OP_SEND_LATE)
		in_step(LATE);
	if (t->op == OP_BAD_KEY) {
		completion(&wc);
		/* A QP in error sends its NAK once and answers nothing more: a bad wire may drop
		 * the NAK. */
		if (wc.status != IBV_WC_REM_ACCESS_ERR &&
		    !(s.bad_wire && wc.status == IBV_WC_RETRY_EXC_ERR))
			rw_fail("ended with: %s", ibv_wc_status_str(wc.status));
		return;
	}
	completion_ok(&wc);
	if (t->op == OP_READ)
		want_theirs(t);
}

static void
do_step(const struct step *t)
{
	if (t->op == OP_READS)
		do_reads(t);
	else if (t->op >= OP_FADD && t->op <= OP_FADDS)
		do_atomic(t);
	else
		do_message(t);
}

/* ---- the passive side */

static bool
takes_receive(enum op op)
{
	return op == OP_WRITE_IMM || op == OP_SEND || op == OP_SEND_IMM || op == OP_SEND_LATE;
}

static void
post_receive(const struct step *t)
{
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;

	wr.num_sge = t->op == OP_WRITE_IMM ? 0 : pieces(sge, t->off, t->size);
	need(ibv_post_recv(s.qp, &wr, &bad) == 0, "posting a receive");
}

static void
take_receive(const struct step *t)
{
	struct ibv_wc wc;

	completion_ok(&wc);
	if (wc.opcode != (t->op == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		rw_fail("the receive completed with opcode %u", wc.opcode);
	if (wc.byte_len != t->size)
		rw_fail("the receive has %u bytes", wc.byte_len);
	if (t->op != OP_SEND &&
	    (!(wc.wc_flags & IBV_WC_WITH_IMM) || be32toh(wc.imm_data) != 0x5eed0000u + t->seed))
		rw_fail("the receive has flags 0x%x, immediate 0x%x", wc.wc_flags,
			be32toh(wc.imm_data));
}

static void
suffer_step(const struct step *t)
{
	uint64_t was = original(t);

	if (t->op == OP_SEND_LATE) {
		/* The message is in flight: wait until the message has arrived. */
		in_step(LATE);
		usleep(100000);
		post_receive(t);
	}
	if (takes_receive(t->op))
		take_receive(t);
	if (t->op <= OP_SEND_IMM || t->op == OP_SEND_LATE)
		want_theirs(t);
	else if (t->op == OP_FADD)
		put_number(s.want + t->off, was + ADDEND);
	else if (t->op == OP_FADDS)
		put_number(s.want + t->off, was + BATCH * ADDEND);
	else if (t->op == OP_SWAP)
		put_number(s.want + t->off, SWAPPED);
}

/* ---- the steps */

static void
run_step(enum op op, uint32_t size, uint32_t off)
{
	static uint32_t seed;
	bool atomic = op >= OP_FADD && op <= OP_FADDS;

	seed += 2;
	s.now = (struct step){op, size, atomic ? off & ~7u : off, seed};
	pattern(s.buf, s.active ? seed : seed + 1);
	pattern(s.want, s.active ? seed : seed + 1);
	if (!s.active && takes_receive(op) && op != OP_SEND_LATE)
		post_receive(&s.now);
	in_step(seed);
	if (s.active)
		do_step(&s.now);
	else
		suffer_step(&s.now);
	in_step(seed + 1);
	compare();
}

static void
run_steps(unsigned int every)
{
	static const enum op by_size[] = {OP_WRITE, OP_READ, OP_SEND_IMM, OP_WRITE_IMM, OP_SEND, OP_READS};
	uint32_t n = 0;

	for (unsigned int i = 0; i < SIZES; i += every) {
		for (unsigned int k = 0; k < sizeof(by_size) / sizeof(by_size[0]); k++, n++)
			run_step(by_size[k], sizes[i], n % 5);
		run_step(OP_SEND_LATE, sizes[i], 1);
		for (enum op op = OP_FADD; op <= OP_FADDS; op++)
			run_step(op, 8, 64 * i);
	}
	run_step(OP_BAD_KEY, 5000, 0);
}

int
main(int argc, char **argv)
{
	uint8_t gid_index;

	if (argc < RW_ARGS)
		rw_fail("wants active|passive HOST TCP-PORT GID-INDEX MTU TIMEOUT EVERY TCLASS");
	s.active = strcmp(argv[1], "active") == 0;
	s.bad_wire = atoi(argv[7]) > 1; /* EVERY is above 1 only on a bad wire */
	gid_index = (uint8_t)atoi(argv[4]);
	s.ctx = rw_open(argv + RW_ARGS, argc - RW_ARGS);
	need(s.ctx != NULL, "opening the device");
	make_objects(gid_index);
	tcp_open(argv[2], argv[3]);
	tcp_send(&s.mine, sizeof(s.mine));
	tcp_recv(&s.peer, sizeof(s.peer));
	connect_qp(gid_index, (unsigned int)atoi(argv[5]), (uint8_t)atoi(argv[6]),
		   (uint8_t)atoi(argv[8]));
	in_step(0);
	run_steps(atoi(argv[7]) > 0 ? (unsigned int)atoi(argv[7]) : 1);
	printf("all steps done\n");
	ibv_destroy_qp(s.qp);
	ibv_destroy_cq(s.cq);
	ibv_dereg_mr(s.mr);
	ibv_dealloc_pd(s.pd);
	ibv_close_device(s.ctx);
	rw_close();
	return 0;
}
