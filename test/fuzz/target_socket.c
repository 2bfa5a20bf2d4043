/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane's socket (lib/abi/socket.h) with any messages, on several
 * connections at a time, with any descriptors along with them; peers that hang up,
 * ask without taking answers, or end one direction.
 *
 * Invariants: each question is answered, or the connection ends; answers are complete;
 * when all have hung up nothing of theirs is left, no descriptor, handle or byte of a
 * quota; then a well-behaved program gets all that a user may have.
 *
 * Input: steps: a byte for the kind, and its bytes.
 */
#include "peers.h"

#include "common/test_cm_look.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { STEPS = 64, SERVICE = 0x01061234 };

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	peers_init();
	return 0;
}

/* ---- questions of the input */

static uint32_t
held(const struct peers_conn *c, enum peers_kind k, uint8_t which)
{
	return which < 0xe0 ? c->h[k][which % PEERS_HELD] : which;
}

static void
hold(struct peers_conn *c, enum peers_kind k, uint32_t handle)
{
	c->h[k][c->n[k]++ % PEERS_HELD] = handle;
}

/* Remember the handle from a successful call. */
static void
remember(struct peers_conn *c, const struct urn_abi_req *req, const struct urn_abi_rep *rep)
{
	switch (req->op) {
	case URN_CTL_ALLOC_PD:
		hold(c, PD, rep->handle);
		break;
	case URN_CTL_REG_MR:
		hold(c, MR, rep->mr.lkey);
		break;
	case URN_CTL_ALLOC_MW:
		hold(c, MW, rep->mr.rkey);
		break;
	case URN_CTL_CREATE_CQ:
		hold(c, CQ, rep->handle);
		break;
	case URN_CTL_CREATE_SRQ:
		hold(c, SRQ, rep->handle);
		break;
	case URN_CTL_CREATE_QP:
		hold(c, QP, rep->handle);
		break;
	case URN_CTL_CREATE_AH:
		hold(c, AH, rep->handle);
		break;
	case URN_CTL_SHARE:
		hold(c, SHARE, rep->handle);
		break;
	case URN_CTL_CREATE_CHANNEL:
		hold(c, CHANNEL, rep->handle);
		break;
	case URN_CTL_CM_LISTEN:
	case URN_CTL_CM_CONNECT:
	case URN_CTL_CM_RESOLVE:
		hold(c, ID, rep->handle);
		break;
	case URN_CTL_CM_EVENT:
		hold(c, ID, rep->cm_event.id);
		break;
	}
}

static const uint8_t peer[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};

static void
fill_modify(struct urn_abi_req *r, uint8_t n)
{
	static const uint32_t masks[] = {
		[URN_QPS_RESET] = 0,
		[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS,
		[URN_QPS_RTR] = URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN | URN_QPM_RQ_PSN |
				URN_QPM_MAX_DEST_RD_ATOMIC | URN_QPM_MIN_RNR_TIMER,
		[URN_QPS_RTS] = URN_QPM_TIMEOUT | URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY |
				URN_QPM_SQ_PSN | URN_QPM_MAX_RD_ATOMIC,
		[URN_QPS_SQD] = 0,
		[URN_QPS_SQE] = 0,
		[URN_QPS_ERR] = 0,
		[URN_QP_STATES] = 0,
	};
	struct urn_abi_qp_attr *a = &r->modify_qp.attr;

	*a = (struct urn_abi_qp_attr){
		.state = n & 7,
		.port_num = 1,
		.path_mtu = 3,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = n >> 4,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 3,
		.rnr_retry = 2,
		.dest_qpn = 7,
		.qkey = 1,
		.av = {.sgid_index = 1, .port_num = 1},
	};
	memcpy(a->av.dgid, peer, 16);
	r->modify_qp.mask = URN_QPM_STATE | masks[n & 7];
	if (n & 8) { /* like a UD QP's */
		r->modify_qp.mask &=
			URN_QPM_STATE | URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_SQ_PSN;
		r->modify_qp.mask |= (n & 7) == URN_QPS_INIT ? URN_QPM_QKEY : 0;
	}
}

/* Mostly valid; else with any two changes. */
static void
fill_connect(struct urn_abi_req *r, uint8_t y, uint8_t n)
{
	struct urn_abi_req one = {.op = 0}, two = {.op = 0};

	fill_modify(&one, y & 0x80 ? y : (n & 0xf0) | URN_QPS_RTR);
	fill_modify(&two, y & 0x40 ? n : URN_QPS_RTS);
	r->connect_qp.rtr_mask = one.modify_qp.mask;
	r->connect_qp.rtr = one.modify_qp.attr;
	r->connect_qp.rts_mask = two.modify_qp.mask;
	r->connect_qp.rts = two.modify_qp.attr;
}

static void
fill_make(const struct peers_conn *c, struct urn_abi_req *r, uint8_t x, uint8_t y, uint8_t n)
{
	uint32_t pd = held(c, PD, x), channel = held(c, CHANNEL, y);

	switch (r->op) {
	case URN_CTL_REG_MR:
		r->reg_mr.pd = pd;
		r->reg_mr.access = y & 31;
		r->reg_mr.addr = (uintptr_t)peers.shared + (n & 1) * 64u;
		r->reg_mr.length = n & 2 ? PEERS_SHARED : n;
		r->reg_mr.iova = (uint64_t)y << (n & 63);
		break;
	case URN_CTL_ALLOC_MW:
		r->alloc_mw.pd = pd;
		r->alloc_mw.type = 1 + (n & 1);
		break;
	case URN_CTL_CREATE_CQ:
		r->create_cq.cqe = n;
		r->create_cq.comp_vector = x >> 7;
		r->create_cq.channel_fd = y & 1 ? -1 : (int32_t)channel;
		break;
	case URN_CTL_CREATE_SRQ:
		r->create_srq.pd = pd;
		r->create_srq.max_wr = n;
		r->create_srq.max_sge = n & 7;
		r->create_srq.cq_hint = y & 1 ? 0 : held(c, CQ, y);
		break;
	case URN_CTL_CREATE_QP:
		r->create_qp.pd = pd;
		r->create_qp.type = n & 1 ? URN_QPT_UD : URN_QPT_RC;
		r->create_qp.send_cq = held(c, CQ, y);
		r->create_qp.recv_cq = held(c, CQ, (uint8_t)(y >> 2));
		r->create_qp.srq = n & 2 ? held(c, SRQ, y) : 0;
		r->create_qp.cap = (struct urn_abi_qp_cap){n >> 2, n >> 3, n & 3, n & 3, n};
		break;
	case URN_CTL_CREATE_AH:
		r->create_ah.pd = pd;
		r->create_ah.av.port_num = 1;
		r->create_ah.av.sgid_index = n & 3;
		memcpy(r->create_ah.av.dgid, peer, 16);
		break;
	case URN_CTL_SHARE:
		r->share.addr = (uintptr_t)peers.shared;
		r->share.length = n & 1 ? PEERS_SHARED : n;
		break;
	}
}

static void
fill_id(const struct peers_conn *c, struct urn_abi_req *r, uint8_t x, uint8_t y, uint8_t n)
{
	int32_t channel = y & 1 ? -1 : (int32_t)held(c, CHANNEL, y);

	r->handle = held(c, ID, x);
	switch (r->op) {
	case URN_CTL_CM_LISTEN:
		r->cm_listen = (struct urn_abi_cm_listen){
			.service_id = SERVICE + (n & 3), .channel_fd = channel, .backlog = n >> 4};
		break;
	case URN_CTL_CM_CONNECT:
	case URN_CTL_CM_RESOLVE:
		r->cm_connect = (struct urn_abi_cm_connect){
			.service_id = SERVICE + (n & 3),
			.channel_fd = channel,
			.sgid_index = 1,
			.mtu = 3,
			.timeout = y & 31,
			.qpn = r->op == URN_CTL_CM_CONNECT ? held(c, QP, x) : 0,
			.max_retries = n >> 4,
			.data_len = n};
		memcpy(r->cm_connect.dgid, n & 4 ? peer : peers.a->gid[1], 16);
		break;
	case URN_CTL_CM_ACCEPT:
		r->cm_accept.qpn = held(c, QP, y);
		r->cm_accept.data_len = n;
		break;
	case URN_CTL_CM_REJECT:
		r->cm_reject.reason = y;
		r->cm_reject.data_len = n;
		break;
	case URN_CTL_CM_EVENT:
		r->handle = n & 1 ? r->handle : 0;
		break;
	default:
		r->cm_data.data_len = n;
	}
}

static void
fill_call(const struct peers_conn *c, struct urn_abi_req *r, uint8_t op, uint8_t x, uint8_t y,
	  uint8_t n)
{
	static const uint8_t names[URN_CTL_OPS] = {
		[URN_CTL_DEALLOC_PD] = PD + 1, [URN_CTL_DEREG_MR] = MR + 1,
		[URN_CTL_DEALLOC_MW] = MW + 1, [URN_CTL_RESIZE_CQ] = CQ + 1,
		[URN_CTL_DESTROY_CQ] = CQ + 1, [URN_CTL_MODIFY_SRQ] = SRQ + 1,
		[URN_CTL_QUERY_SRQ] = SRQ + 1, [URN_CTL_DESTROY_SRQ] = SRQ + 1,
		[URN_CTL_MODIFY_QP] = QP + 1,  [URN_CTL_QUERY_QP] = QP + 1,
		[URN_CTL_DESTROY_QP] = QP + 1, [URN_CTL_DESTROY_AH] = AH + 1,
		[URN_CTL_UNSHARE] = SHARE + 1, [URN_CTL_DESTROY_CHANNEL] = CHANNEL + 1,
		[URN_CTL_CONNECT_QP] = QP + 1,
	};

	memset(r, 0, sizeof(*r));
	r->op = op % (URN_CTL_OPS + 2);
	if (r->op < URN_CTL_OPS && names[r->op])
		r->handle = held(c, names[r->op] - 1, x);
	if (r->op == URN_CTL_HELLO)
		r->hello.oldest = n < 0x80 ? URN_ABI_VERSION : n;
	else if (r->op == URN_CTL_QUERY_GID)
		r->gid.index = n & 3;
	else if (r->op == URN_CTL_RESIZE_CQ)
		r->resize_cq.cqe = n;
	else if (r->op == URN_CTL_MODIFY_SRQ)
		r->modify_srq.limit = r->modify_srq.set_limit = n;
	else if (r->op == URN_CTL_MODIFY_QP)
		fill_modify(r, n);
	else if (r->op == URN_CTL_CONNECT_QP)
		fill_connect(r, y, n);
	else if (r->op == URN_CTL_ASYNC_FD)
		r->async_fd.fd = n < 0xe0 ? -1 : n;
	else if (r->op >= URN_CTL_CM_LISTEN && r->op < URN_CTL_OPS)
		fill_id(c, r, x, y, n);
	else
		fill_make(c, r, x, y, n);
}

/* The input's descriptors; `usual`: those that such a message brings. returns: their number */
static unsigned int
pick_fds(uint8_t how, int *fds, int usual, int usual_too)
{
	unsigned int n = 0;

	if (how < 0xc0) {
		if (usual >= 0)
			fds[n++] = peers_fd[usual];
		if (usual_too >= 0)
			fds[n++] = peers_fd[usual_too];
		return n;
	}
	for (n = 0; n < (how < 0xf8 ? how & 3u : PEERS_FDS); n++)
		fds[n] = peers_fd[(how >> 2 & 15u) % FD_KINDS];
	return n;
}

static struct urn_sock_ask
next_question(struct peers_conn *c, struct fuzz_in *in, uint8_t kind, int *fds, unsigned int *fds_n)
{
	uint8_t how = fuzz_u8(in), n = fuzz_u8(in), patches = fuzz_u8(in), op, x, y;
	struct urn_sock_ask q = peers_question(c, kind);
	int usual = -1, too = -1;

	switch (kind) {
	case URN_SOCK_HELLO:
		q.hello.oldest = n < 0xe0 ? URN_ABI_VERSION : n;
		q.hello.newest = n < 0xc0   ? 0
				 : n < 0xe0 ? n - 0xc0u
					    : n - 0xe4u; /* any range, and none */
		break;
	case URN_SOCK_LIST:
		q.list.index = n & 1;
		break;
	case URN_SOCK_EVENTS:
		q.events.max = n < 0xe0 ? n % 24u : UINT32_MAX - n;
		break;
	case URN_SOCK_OPEN:
		q.open.name[0] = n < 0xe0 ? 'a' : (char)n;
		if (n & 1) {
			usual = FD_MEM;
			too = FD_MAPS;
		}
		break;
	case URN_SOCK_MEMORY:
		usual = FD_MEM;
		too = FD_MAPS;
		break;
	default:
		op = fuzz_u8(in);
		x = fuzz_u8(in);
		y = fuzz_u8(in);
		fill_call(c, &q.call, op, x, y, n);
		usual = q.call.op == URN_CTL_SHARE ? FD_SHARE : -1;
	}
	*fds_n = pick_fds(how, fds, usual, too);
	for (unsigned int i = patches >= 0xc0 ? patches & 3u : 0; i; i--) {
		uint16_t at = fuzz_u16(in);

		/* Mostly behind the head. */
		at = at & 0x8000 ? at % sizeof(q) : (uint16_t)(16 + at % (sizeof(q) - 16));
		((uint8_t *)&q)[at] = fuzz_u8(in);
	}
	return q;
}

static void
send_question(struct peers_conn *c, struct fuzz_in *in, uint8_t kind)
{
	int fds[PEERS_FDS];
	unsigned int n;
	struct urn_sock_ask q = next_question(c, in, kind, fds, &n);
	uint32_t bytes = urn_sock_ask_bytes(kind);
	struct urn_sock_answer a;

	if (c->fd < 0)
		return;
	/* The size of the kind is sent, whatever the head says by now. */
	if (!peers_say(c, &q, bytes, fds, n) || !peers_hear(c, &a)) {
		peers_hang_up(c);
		return;
	}
	peers_check(&q, &a);
	if (q.head.kind == URN_SOCK_CALL && a.err == 0 && a.call.err == 0)
		remember(c, &q.call, &a.call);
}

static void
send_raw(struct peers_conn *c, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), bytes[512];
	uint32_t len = fuzz_u16(in) % sizeof(bytes), left = (uint32_t)(in->end - in->p);
	struct urn_sock_answer a;
	int fds[PEERS_FDS];

	len = len < left ? len : left;
	memcpy(bytes, in->p, len);
	in->p += len;
	/* An empty message means the end to its receiver. */
	if (c->fd >= 0 &&
	    (!peers_say(c, bytes, len, fds, pick_fds(how, fds, -1, -1)) || !peers_hear(c, &a)))
		peers_hang_up(c);
}

/* Several questions, without taking an answer meanwhile. */
static void
send_many(struct peers_conn *c, struct fuzz_in *in)
{
	unsigned int n = 1 + (fuzz_u8(in) & 3), sent = 0, fds_n;
	struct urn_sock_answer a;
	int fds[PEERS_FDS];

	for (unsigned int i = 0; i < n && c->fd >= 0; i++) {
		struct urn_sock_ask q = next_question(c, in, URN_SOCK_CALL, fds, &fds_n);

		sent += peers_say(c, &q, sizeof(q.head) + sizeof(q.call), fds, fds_n);
	}
	for (; c->fd >= 0 && sent; sent--)
		if (!peers_hear(c, &a))
			break;
}

static void
one_step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);
	struct peers_conn *c = &peers.conn[what >> 4 & 3];

	switch (what & 15) {
	case 0:
		peers_dial(c);
		break;
	case 1:
		send_question(c, in, URN_SOCK_HELLO);
		break;
	case 2:
		send_question(c, in, URN_SOCK_LIST);
		break;
	case 3:
		send_question(c, in, URN_SOCK_OPEN);
		break;
	case 4:
	case 5:
		peers_begin(c);
		break;
	case 6:
		send_raw(c, in);
		break;
	case 7:
		send_many(c, in);
		break;
	case 8:
		if (c->fd >= 0)
			(void)shutdown(c->fd, what & 0x40 ? SHUT_RD : SHUT_WR);
		break;
	case 9:
		if (what & 0x80)
			peers_hang_up(c);
		else
			peers_turn(1ull << (what >> 4) * 4);
		break;
	case 10:
		send_question(c, in, what >= 0xc0 ? URN_SOCK_EVENTS : URN_SOCK_CALL);
		break;
	default:
		send_question(c, in, what == 0xff ? URN_SOCK_MEMORY : URN_SOCK_CALL);
	}
}

/* ---- invariants */

static struct urn_abi_rep
good_call(struct peers_conn *c, const struct urn_abi_req *req, int fd, int err)
{
	struct urn_sock_ask q = peers_question(c, URN_SOCK_CALL);
	struct urn_sock_answer a;

	q.call = *req;
	fuzz_check(peers_ask(c, &q, &a, &fd, fd >= 0));
	if (a.err || a.call.err != err)
		fuzz_fail("a good program's call %u: %s", req->op, a.err ? a.why : a.call.why);
	return a.call;
}

/* A user gets its whole quota; one more is refused. returns: the last handle */
static uint32_t
good_calls(struct peers_conn *c, const struct urn_abi_req *req, unsigned int quota)
{
	uint32_t handle = 0;

	for (unsigned int i = 0; i < quota; i++)
		handle = good_call(c, req, -1, 0).handle;
	good_call(c, req, -1, EDQUOT);
	return handle;
}

/* A well-behaved program gets all that there is. */
static void
good_program(void)
{
	struct peers_conn c = {.fd = -1};
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	uint32_t pd;

	peers_begin(&c);
	pd = good_call(&c, &req, -1, 0).handle;
	req = (struct urn_abi_req){
		.op = URN_CTL_SHARE,
		.share = {.addr = (uintptr_t)peers.shared, .length = PEERS_SHARED}};
	good_call(&c, &req, peers_fd[FD_SHARE], 0);
	req = (struct urn_abi_req){.op = URN_CTL_REG_MR};
	req.reg_mr.pd = pd;
	req.reg_mr.addr = (uintptr_t)peers.shared;
	req.reg_mr.length = PEERS_SHARED;
	good_calls(&c, &req, QUOTA_MR);
	req = (struct urn_abi_req){.op = URN_CTL_CREATE_CQ,
				   .create_cq = {.cqe = 4, .channel_fd = -1}};
	c.h[CQ][0] = good_calls(&c, &req, QUOTA_CQ);
	req = (struct urn_abi_req){.op = URN_CTL_CREATE_SRQ,
				   .create_srq = {.pd = pd, .max_wr = 4, .max_sge = 1}};
	good_calls(&c, &req, QUOTA_SRQ);
	req = (struct urn_abi_req){
		.op = URN_CTL_CREATE_QP,
		.create_qp = {.pd = pd, .type = URN_QPT_RC, .cap = {4, 4, 1, 1, 0}}};
	req.create_qp.send_cq = req.create_qp.recv_cq = c.h[CQ][0];
	good_calls(&c, &req, QUOTA_QP);
	peers_hang_up(&c);
}

static void
wait_until_alone(void)
{
	struct urn_server_counters counters;
	time_t start = time(NULL);

	for (urn_server_counters(peers.server, &counters); counters.clients;
	     urn_server_counters(peers.server, &counters))
		peers_yield(start, "clients are not let go");
}

/* No object of clients is left. */
static void
check_adapter(void)
{
	const struct urn_adapter *a = peers.a;

	fuzz_check(LIST_EMPTY(&a->clients) && a->shard[0]->tp->qp_count == 0);
	for (uint32_t i = 0; i <= a->cfg.max_mr; i++)
		fuzz_check(!a->key_owner[i] && !a->key_shm[i]);
	for (uint32_t i = 0; i <= URN_ADAPTER_MAX_PD; i++)
		fuzz_check(!a->pd_owner[i]);
	for (uint32_t i = 0; i < a->ah_used; i++)
		fuzz_check(!a->ah[i]);
}

static uint32_t
ids(void)
{
	uint32_t n = test_cm_count(urn_cm_agent_lock(peers.a->cm));

	urn_cm_agent_unlock(peers.a->cm);
	return n;
}

static void
finish(void)
{
	time_t start = time(NULL);

	for (unsigned int i = 0; i < PEERS_CONNS; i++)
		peers_hang_up(&peers.conn[i]);
	wait_until_alone();
	check_adapter();
	for (unsigned int i = 0; ids(); i++) {
		fuzz_check(i < 10000);
		peers_turn(1000000000);
	}
	good_program();
	wait_until_alone();
	while (peers_count_fds() != peers.fds)
		peers_yield(start, "descriptors are lost");
	peers_turn(1000);
	peers_turn(1000);
	fuzz_check(rte_mempool_full(peers.port[0]->pool));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};

	peers.fds = peers_count_fds(); /* the fuzzer may open some of its own between inputs */
	for (unsigned int i = 0; i < STEPS && fuzz_more(&in); i++)
		one_step(&in);
	finish();
	return 0;
}
