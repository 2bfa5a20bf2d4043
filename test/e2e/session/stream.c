/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs that send each other numbered messages until they are told to stop, by the system's
 * headers alone: they know nothing of sessions. Each Send has a pattern made from its number, and a
 * write in front of it; the receiver checks that each Send comes once, in order and whole, and that
 * the write before it is there. READs and the order of completions are checked, too.
 *
 * usage: stream listen PORT [events] [extended] [register] [atomics] [srq] [patient]
 *        stream connect PORT [events] [extended] [register] [atomics] [srq] [patient]
 *
 * events: sleep on the completion channel. extended: post by ibv_wr_*(), and poll by
 * ibv_start_poll(), posting meanwhile. register: each message is in a region of its own.
 * atomics: each tenth message has a fetch-and-add, too. srq: receives are in a shared receive
 * queue, and the end waits for the event of the last of them. patient: eight seconds without an
 * answer end a connection, not half a second. "got N" on the standard output: so
 * many messages were received. A line on the standard input: stop.
 */
#include "../check.h"

#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	WINDOW = 8,	 /* messages of each direction in flight */
	BYTES = 8192,	 /* bytes of a message, at most */
	SLOTS = 32,	 /* words that writes of the peer go to, in turn */
	READ_EVERY = 16, /* messages between READs */
	SHOW_EVERY = 100,
	INLINE = 64,
	GID_INDEX = 1,
};

/* The beginning of a message. */
struct head {
	uint64_t number; /* from 1 on */
	uint32_t length; /* length of the whole message */
	uint32_t last;	 /* 1: no more come */
};

/* Memory that the peer reaches. */
struct shared {
	uint64_t slot[SLOTS]; /* number of the newest message whose write went there */
	uint64_t fixed;	      /* word that READs find */
	uint64_t sum;	      /* word that atomics of the peer add to */
};

/* The ends tell each other this. */
struct hello {
	uint32_t qpn, psn, rkey, pad;
	uint64_t addr;
	union ibv_gid gid;
};

static struct {
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* NULL: the queue pair has receives of its own */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t send[WINDOW][BYTES], recv[WINDOW][BYTES];
	uint64_t word[WINDOW], read, old;
	struct shared shared;
} m; /* one region */

static struct ibv_mr *region[WINDOW]; /* with `register`: of messages in flight */
static struct hello peer;
static bool events, extended, atomics, registers, shared, patient, stopping, sent_last, got_last;
static uint64_t sent, completed, got, ops, ops_done, added;
static uint64_t seen[SLOTS]; /* the greatest number that each slot had */

static uint8_t
pattern(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static uint32_t
length_of(uint64_t number)
{
	return (uint32_t)(sizeof(struct head) +
			  number * 2654435761u % (BYTES - sizeof(struct head)));
}

/* ---- connecting */

static int
tcp(bool listens, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, on;

	CHECK(fd >= 0);
	if (!listens) {
		EQUAL(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	EQUAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	EQUAL(listen(fd, 1), 0);
	on = accept(fd, NULL, NULL);
	CHECK(on >= 0);
	close(fd);
	return on;
}

static void
make_queues(void)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 8 * WINDOW, .channel = m.ch, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = WINDOW, .max_sge = 1}};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {4 * WINDOW, WINDOW, 1, 1, INLINE},
		.pd = m.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (extended ? (uint32_t)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	if (extended)
		m.cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(m.c, &cq));
	else
		m.cq = ibv_create_cq(m.c, 8 * WINDOW, NULL, m.ch, 0);
	CHECK(m.cq != NULL);
	init.send_cq = init.recv_cq = m.cq;
	if (shared)
		CHECK((m.srq = ibv_create_srq(m.pd, &srq)) != NULL);
	init.srq = m.srq;
	CHECK((m.qp = ibv_create_qp_ex(m.c, &init)) != NULL);
}

static void
make(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list != NULL && list[0] != NULL);
	CHECK((m.c = ibv_open_device(list[0])) != NULL);
	ibv_free_device_list(list);
	CHECK((m.pd = ibv_alloc_pd(m.c)) != NULL);
	CHECK((m.mr = ibv_reg_mr(m.pd, &m, sizeof(m),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)) !=
	      NULL);
	CHECK((m.ch = ibv_create_comp_channel(m.c)) != NULL);
	make_queues();
	EQUAL(ibv_modify_qp(m.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      0);
}

static void
join(const struct hello *own)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.rq_psn = peer.psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer.gid, .sgid_index = GID_INDEX, .hop_limit = 64}},
		.sq_psn = own->psn,
		.max_rd_atomic = 4,
		.timeout = patient ? 18 : 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	EQUAL(ibv_modify_qp(m.qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	      0);
	attr.qp_state = IBV_QPS_RTS;
	EQUAL(ibv_modify_qp(m.qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      0);
}

static void
post_recv(uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)m.recv[i], BYTES, m.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	memset(m.recv[i], 0xee, BYTES);
	EQUAL(shared ? ibv_post_srq_recv(m.srq, &wr, &bad) : ibv_post_recv(m.qp, &wr, &bad), 0);
}

static void
meet(bool listens, uint16_t port)
{
	struct hello own = {.psn = 0x123456, .addr = (uintptr_t)&m.shared};
	int fd;

	make();
	own.qpn = m.qp->qp_num;
	own.rkey = m.mr->rkey;
	EQUAL(ibv_query_gid(m.c, 1, GID_INDEX, &own.gid), 0);
	m.shared.fixed = own.qpn * 0x100000001ull;
	for (uint32_t i = 0; i < WINDOW; i++)
		post_recv(i);
	fd = tcp(listens, port);
	EQUAL(write(fd, &own, sizeof(own)), sizeof(own));
	EQUAL(recv(fd, &peer, sizeof(peer), MSG_WAITALL), sizeof(peer));
	join(&own);
	/* Both ends are in RTS before the first message. */
	EQUAL(write(fd, "x", 1), 1);
	EQUAL(read(fd, &own, 1), 1);
	close(fd);
}

/* ---- messages */

static void
post_extended(const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(m.qp);
	const struct ibv_sge *sge = wr->sg_list;

	CHECK(qp != NULL);
	ibv_wr_start(qp);
	qp->wr_id = wr->wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	if (wr->opcode == IBV_WR_SEND)
		ibv_wr_send(qp);
	else if (wr->opcode == IBV_WR_RDMA_WRITE)
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	else if (wr->opcode == IBV_WR_RDMA_READ)
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	else
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)sge->addr, sge->length);
	else
		ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
	EQUAL(ibv_wr_complete(qp), 0);
}

static void
post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = ++ops;
	wr->send_flags |= IBV_SEND_SIGNALED;
	if (extended)
		post_extended(wr);
	else
		EQUAL(ibv_post_send(m.qp, wr, &bad), 0);
}

static void
post_write(uint64_t number)
{
	struct ibv_sge sge = {(uintptr_t)&m.word[number % WINDOW], 8, m.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	m.word[number % WINDOW] = number;
	/* Inline data is the program's again at once. */
	if (number % 2) {
		wr.send_flags = IBV_SEND_INLINE;
		sge.addr = (uintptr_t)&number;
	}
	wr.wr.rdma.remote_addr = peer.addr + 8 * (number % SLOTS);
	wr.wr.rdma.rkey = peer.rkey;
	post(&wr);
}

static void
post_read(void)
{
	struct ibv_sge sge = {(uintptr_t)&m.read, 8, m.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};

	wr.wr.rdma.remote_addr = peer.addr + offsetof(struct shared, fixed);
	wr.wr.rdma.rkey = peer.rkey;
	post(&wr);
}

static void
post_atomic(void)
{
	struct ibv_sge sge = {(uintptr_t)&m.old, 8, m.mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	wr.wr.atomic.remote_addr = peer.addr + offsetof(struct shared, sum);
	wr.wr.atomic.rkey = peer.rkey;
	wr.wr.atomic.compare_add = 1;
	post(&wr);
}

static void
post_message(void)
{
	uint64_t number = ++sent;
	struct head h = {number, length_of(number), stopping};
	uint8_t *to = m.send[number % WINDOW];
	struct ibv_sge sge = {(uintptr_t)to, h.length, m.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	if (registers) {
		if (region[number % WINDOW] != NULL)
			EQUAL(ibv_dereg_mr(region[number % WINDOW]), 0);
		CHECK((region[number % WINDOW] = ibv_reg_mr(m.pd, to, BYTES, 0)) != NULL);
		sge.lkey = region[number % WINDOW]->lkey;
	}
	memcpy(to, &h, sizeof(h));
	for (uint32_t i = sizeof(h); i < h.length; i++)
		to[i] = pattern(number, i);
	post_write(number);
	if (number % READ_EVERY == 0)
		post_read();
	if (atomics && number % READ_EVERY == READ_EVERY / 2)
		post_atomic();
	post(&wr);
	sent_last = stopping;
}

/* Slots never go back: an old write that comes late would set one back. */
static void
check_slots(void)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint64_t now = *(volatile uint64_t *)&m.shared.slot[i];

		if (now < seen[i]) {
			fprintf(stderr, "slot %u went back from %llu to %llu\n", i,
				(unsigned long long)seen[i], (unsigned long long)now);
			exit(1);
		}
		seen[i] = now;
	}
}

static void
check_message(uint32_t i, uint32_t bytes)
{
	const uint8_t *from = m.recv[i];
	struct head h;

	memcpy(&h, from, sizeof(h));
	EQUAL(h.number, got + 1);
	EQUAL(h.length, length_of(h.number));
	EQUAL(bytes, h.length);
	for (uint32_t k = sizeof(h); k < h.length; k++)
		if (from[k] != pattern(h.number, k)) {
			fprintf(stderr, "message %llu: byte %u is wrong\n",
				(unsigned long long)h.number, k);
			exit(1);
		}
	/* A later message may have been written there already. */
	CHECK(*(volatile uint64_t *)&m.shared.slot[h.number % SLOTS] >= h.number);
	check_slots();
	CHECK(!got_last);
	got++;
	got_last = h.last;
	post_recv(i);
	if (got % SHOW_EVERY == 0) {
		printf("got %llu\n", (unsigned long long)got);
		fflush(stdout);
	}
}

static void
check_completion(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr,
			"a completion failed: %s, opcode %d, wr_id %llu, sent %llu, got %llu\n",
			ibv_wc_status_str(wc->status), (int)wc->opcode,
			(unsigned long long)wc->wr_id, (unsigned long long)sent,
			(unsigned long long)got);
		exit(1);
	}
	EQUAL(wc->qp_num, m.qp->qp_num);
	if (wc->opcode & IBV_WC_RECV) {
		check_message((uint32_t)wc->wr_id, wc->byte_len);
		return;
	}
	EQUAL(wc->wr_id, ops_done + 1);
	ops_done++;
	completed += wc->opcode == IBV_WC_SEND;
	if (wc->opcode == IBV_WC_RDMA_READ)
		EQUAL(m.read, peer.qpn * 0x100000001ull);
	if (wc->opcode == IBV_WC_FETCH_ADD)
		EQUAL(m.old, added++);
}

static int
take_extended(void)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)m.cq;
	struct ibv_poll_cq_attr attr = {0};
	int n = 0, err = ibv_start_poll(cq, &attr);

	if (err == ENOENT)
		return 0;
	for (; err == 0; err = ibv_next_poll(cq), n++) {
		struct ibv_wc wc = {.wr_id = cq->wr_id,
				    .status = cq->status,
				    .opcode = ibv_wc_read_opcode(cq),
				    .byte_len = ibv_wc_read_byte_len(cq),
				    .qp_num = ibv_wc_read_qp_num(cq)};

		check_completion(&wc);
	}
	EQUAL(err, ENOENT);
	ibv_end_poll(cq);
	return n;
}

/* Take completions. returns: how many there were */
static int
take(void)
{
	struct ibv_wc wc[4];
	int n;

	if (extended)
		return take_extended();
	n = ibv_poll_cq(m.cq, 4, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++)
		check_completion(&wc[i]);
	return n;
}

/* A program that is never idle has to stop, too. */
static void
look(void)
{
	static uint32_t calls;
	struct pollfd p = {.fd = 0, .events = POLLIN};

	if (!stopping && ++calls % SHOW_EVERY == 0)
		stopping = poll(&p, 1, 0) > 0;
}

/* Nothing was there: look whether to stop, and let others run. */
static void
idle(void)
{
	struct pollfd p[2] = {{.fd = stopping ? -1 : 0, .events = POLLIN},
			      {.fd = m.ch->fd, .events = POLLIN}};
	struct ibv_cq *cq;
	void *arg;

	if (events) {
		EQUAL(ibv_req_notify_cq(m.cq, 0), 0);
		if (take() != 0)
			return;
	}
	CHECK(poll(p, events ? 2 : 1, events ? -1 : 0) >= 0);
	stopping |= p[0].revents != 0;
	if (!events)
		sched_yield();
	else if (p[1].revents && ibv_get_cq_event(m.ch, &cq, &arg) == 0)
		ibv_ack_cq_events(cq, 1);
}

/* A queue pair with a shared receive queue has given back all receives before it is destroyed. */
static void
wait_for_last(void)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event ev;

	EQUAL(ibv_modify_qp(m.qp, &err, IBV_QP_STATE), 0);
	do {
		EQUAL(ibv_get_async_event(m.c, &ev), 0);
		if (ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
			CHECK(ev.element.qp == m.qp);
		ibv_ack_async_event(&ev);
	} while (ev.event_type != IBV_EVENT_QP_LAST_WQE_REACHED);
}

static void
destroy(void)
{
	if (shared)
		wait_for_last();
	EQUAL(ibv_destroy_qp(m.qp), 0);
	if (shared)
		EQUAL(ibv_destroy_srq(m.srq), 0);
	for (int i = 0; i < WINDOW; i++)
		EQUAL(region[i] != NULL ? ibv_dereg_mr(region[i]) : 0, 0);
	EQUAL(ibv_destroy_cq(m.cq), 0);
	EQUAL(ibv_destroy_comp_channel(m.ch), 0);
	EQUAL(ibv_dereg_mr(m.mr), 0);
	EQUAL(ibv_dealloc_pd(m.pd), 0);
	EQUAL(ibv_close_device(m.c), 0);
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	for (int i = 3; i < argc; i++) {
		events |= strcmp(argv[i], "events") == 0;
		extended |= strcmp(argv[i], "extended") == 0;
		registers |= strcmp(argv[i], "register") == 0;
		atomics |= strcmp(argv[i], "atomics") == 0;
		shared |= strcmp(argv[i], "srq") == 0;
		patient |= strcmp(argv[i], "patient") == 0;
	}
	meet(strcmp(argv[1], "listen") == 0, (uint16_t)atoi(argv[2]));
	if (events)
		EQUAL(fcntl(m.ch->fd, F_SETFL, fcntl(m.ch->fd, F_GETFL) | O_NONBLOCK), 0);
	while (!got_last || !sent_last || ops_done != ops) {
		while (!sent_last && sent - completed < WINDOW)
			post_message();
		if (take() == 0)
			idle();
		else
			look();
	}
	EQUAL(completed, sent);
	printf("sent %llu, got %llu\n", (unsigned long long)sent, (unsigned long long)got);
	destroy();
	return 0;
}
