/* SPDX-License-Identifier: BSD-3-Clause */
#include "rail.h"

#include "rail_msg.h"

#include <urnic/attach.h>

#include "abi/queue.h"
#include "pmd_glue/eal.h"

#include <rte_pause.h>

#include <endian.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

/* Messages that can be in flight in addition to one a slot: FILE, END, VERDICT of one file. */
#define EXTRA 16u
/* Turns of the engine in a row before the program runs again. */
#define TURNS 4u
#define EMPTY_POLLS 1024u
/* Area of an adapter for messages beside the chunks, bytes, and chunks that the queue has more than
 * slots. */
#define MSG_AREA (64ull << 20)
#define MSG_SPARE 64u
#define SLEEP_NS 100000l
/* Empty rounds from one yield of the CPU to the next: a dataplane in another process may want the
 * CPU. */
#define YIELD_EVERY 64u
#define YIELD_ATTACHED 8u

/* wr_id: kind of request in the top byte, its number below. */
#define WR_WRITE (UINT64_C(1) << 56)
#define WR_SEND (UINT64_C(2) << 56)
#define WR_RECV (UINT64_C(3) << 56)
#define WR_KIND (UINT64_C(0xff) << 56)

int
cp_rail_start(struct cp_rail *r, struct urn_err *err)
{
	return urn_node_start(&r->node, "urnic-cp", err);
}

/* Describe a port on the memif socket that joins the two sides. returns: 0, or -1 with *err */
static int
memif_port(struct cp_rail *r, struct urn_port_config *pc, struct urn_err *err)
{
	const struct cp_rail_config *cfg = &r->cfg;
	int n;

	if (cfg->server)
		n = snprintf(r->memif, sizeof(r->memif), "%s/memif.sock", urn_eal_dir());
	else
		n = snprintf(r->memif, sizeof(r->memif), "%s", cfg->memif);
	if (n >= (int)sizeof(r->memif)) {
		urn_err_set(err, "the folder for temporary files has too long a name for a socket; set "
				 "TMPDIR to a shorter one.");
		return -1;
	}
	pc->roce_mtu = (uint16_t)cfg->mtu;
	/* No name in the abstract name space: the socket is a file in a 0700 folder. */
	snprintf(pc->device, sizeof(pc->device),
		 "net_memif0,role=%s,id=0,socket=%s,socket-abstract=no",
		 cfg->server ? "server" : "client", r->memif);
	return 0;
}

/* Open the node. The two ends of the memif are a network of their own: any two addresses will do. */
static int
open_node(struct cp_rail *r, struct urn_err *err)
{
	const struct cp_rail_config *cfg = &r->cfg;
	struct urn_node_config nc = {
		.attach = cfg->attach,
		.session = cfg->session,
		.name = cfg->attach != NULL ? cfg->node
			: cfg->server	    ? "receiver"
					    : "sender",
		.adapter = {.ipv4 = {10, 77, 0, cfg->server ? 1 : 2}, .no_icrc = cfg->no_icrc},
		.idle = cfg->idle,
		.capture = cfg->capture,
	};

	/* Over messages slots and queue lie in the area for queues: about three windows of chunks.
	 */
	if (cfg->over_msg)
		nc.adapter.area_size =
			MSG_AREA + 4ull * cfg->slots * cfg->chunk + 2ull * MSG_SPARE * cfg->chunk;
	if (cfg->attach == NULL && memif_port(r, &nc.port, err) != 0)
		return -1;
	return urn_node_open(&r->node, &nc, err);
}

/* Map memory for messages; attached: shared, as a dataplane in another process reaches shared memory faster. */
static uint8_t *
map(const struct cp_rail *r, size_t len)
{
	void *p;

	if (r->cfg.attach != NULL)
		return urn_alloc(len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void
unmap(const struct cp_rail *r, uint8_t *p, size_t len)
{
	if (p != NULL && r->cfg.attach != NULL)
		urn_free(p);
	else if (p != NULL)
		munmap(p, len);
}

static int
make_buffers(struct cp_rail *r, struct urn_err *err)
{
	size_t ring = (size_t)r->cfg.slots * r->cfg.chunk;
	int access = IBV_ACCESS_LOCAL_WRITE | (r->cfg.server ? IBV_ACCESS_REMOTE_WRITE : 0);

	r->n_recv = r->n_send = r->cfg.slots + EXTRA;
	r->slot = map(r, ring);
	r->recv = map(r, (size_t)r->n_recv * CP_MSG_MAX);
	r->send = map(r, (size_t)r->n_send * CP_MSG_MAX);
	r->free_send = calloc(r->n_send, sizeof(*r->free_send));
	if (!r->slot || !r->recv || !r->send || !r->free_send) {
		urn_err_set(err, "no memory for %u chunks of %u bytes; use a smaller --chunk or "
				 "--depth.", r->cfg.slots, r->cfg.chunk);
		return -1;
	}
	for (uint32_t i = 0; i < r->n_send; i++)
		r->free_send[r->n_free_send++] = i;
	r->slot_mr = ibv_reg_mr(r->pd, r->slot, ring, access);
	r->recv_mr = ibv_reg_mr(r->pd, r->recv, (size_t)r->n_recv * CP_MSG_MAX,
				IBV_ACCESS_LOCAL_WRITE);
	r->send_mr = ibv_reg_mr(r->pd, r->send, (size_t)r->n_send * CP_MSG_MAX, 0);
	if (!r->slot_mr || !r->recv_mr || !r->send_mr) {
		urn_err_set(err, "cannot register memory with the adapter: %s", urn_attach_error());
		return -1;
	}
	return 0;
}

static int
post_recv(struct cp_rail *r, uint32_t i, struct urn_err *err)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(r->recv + (size_t)i * CP_MSG_MAX),
		.length = CP_MSG_MAX,
		.lkey = r->recv_mr->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = WR_RECV | i, .sg_list = &sge, .num_sge = 1}, *bad;
	int rc = ibv_post_recv(r->qp, &wr, &bad);

	if (rc != 0)
		urn_err_set(err, "QP 0x%06x takes no receive: %s.", r->qp->qp_num, strerror(rc));
	return rc == 0 ? 0 : -1;
}

static int
open_qp(struct cp_rail *r, struct urn_err *err)
{
	/* Sends: a WRITE for each slot, and all messages. */
	int sends = (int)(r->cfg.slots + r->n_send), recvs = (int)r->n_recv;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = (uint32_t)sends, .max_recv_wr = (uint32_t)recvs,
			.max_send_sge = 1, .max_recv_sge = 1},
	};
	uint32_t psn = 0;

	r->cq = ibv_create_cq(r->node.ctx, sends + recvs, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = r->cq;
	r->qp = r->cq != NULL ? ibv_create_qp(r->pd, &attr) : NULL;
	if (r->qp == NULL) {
		urn_err_set(err, "cannot make a queue pair: %s", urn_attach_error());
		return -1;
	}
	if (urn_ep_init(r->qp, r->cfg.server ? IBV_ACCESS_REMOTE_WRITE : 0, err) != 0)
		return -1;
	/* A random first PSN tells packets of an earlier connection from ours. */
	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn))
		psn = (uint32_t)time(NULL);
	if (urn_ep_local(r->qp, psn, 0, &r->local, err) != 0)
		return -1;
	for (uint32_t i = 0; i < r->n_recv; i++)
		if (post_recv(r, i, err) != 0)
			return -1;
	return 0;
}

int
cp_rail_open(struct cp_rail *r, const struct cp_rail_config *cfg, struct urn_err *err)
{
	r->cfg = *cfg;
	if (open_node(r, err) != 0)
		return -1;
	if (cfg->over_msg)
		return cp_rail_msg_open(r, err);
	r->pd = ibv_alloc_pd(r->node.ctx);
	if (r->pd == NULL) {
		urn_err_set(err, "cannot make a protection domain: %s", urn_attach_error());
		return -1;
	}
	return make_buffers(r, err) != 0 || open_qp(r, err) != 0 ? -1 : 0;
}

int
cp_rail_connect(struct cp_rail *r, const struct urn_ep_addr *peer, const struct cp_queue *queue,
		struct urn_err *err)
{
	struct urn_ep_opts o;
	uint32_t code = peer->mtu_code < r->local.mtu_code ? peer->mtu_code : r->local.mtu_code;

	while (code > 1 && 128u << code > r->cfg.mtu)
		code--;
	urn_ep_opts_default(&o);
	o.mtu_code = (uint8_t)code;
	/*
	 * On a machine with fewer cores than busy threads a side may not run for many
	 * milliseconds, which must not count as packet loss. The control socket tells of
	 * a peer that died long before these 7 times 0.54 s are over.
	 */
	o.timeout = 17;
	r->mtu = 128u << code;
	if (r->msg != NULL || queue->qid != 0) {
		if (!cp_queue_ok(queue, r->msg != NULL)) {
			urn_err_set(err,
				    "the other side tells a receive queue that cannot be one.");
			return -1;
		}
		cp_rail_msg_connect(r, peer->gid, queue);
		return 0;
	}
	return urn_ep_connect(r->qp, &r->local, peer, &o, err);
}

void
cp_rail_queue(const struct cp_rail *r, struct cp_queue *own)
{
	memset(own, 0, sizeof(*own));
	if (r->msg != NULL)
		cp_rail_msg_own(r, own);
}

bool
cp_rail_link(struct cp_rail *r)
{
	/* When the peer dies, the control socket tells. */
	return urn_node_link(&r->node, true);
}

/* ---- down */

static void
close_verbs(struct cp_rail *r)
{
	if (r->qp != NULL)
		ibv_destroy_qp(r->qp);
	if (r->cq != NULL)
		ibv_destroy_cq(r->cq);
	if (r->slot_mr != NULL)
		ibv_dereg_mr(r->slot_mr);
	if (r->recv_mr != NULL)
		ibv_dereg_mr(r->recv_mr);
	if (r->send_mr != NULL)
		ibv_dereg_mr(r->send_mr);
	if (r->pd != NULL)
		ibv_dealloc_pd(r->pd);
}

int
cp_rail_close(struct cp_rail *r, struct urn_err *err)
{
	uint64_t dropped = 0;
	int rc;

	cp_rail_msg_close(r);
	close_verbs(r);
	rc = urn_node_close(&r->node, &dropped, err);
	if (rc == 0 && dropped > 0) {
		urn_err_set(err, "%llu packets are missing in '%s': the disk was too slow for them.",
			    (unsigned long long)dropped, r->cfg.capture);
		rc = -1;
	}
	unmap(r, r->slot, (size_t)r->cfg.slots * r->cfg.chunk);
	unmap(r, r->recv, (size_t)r->n_recv * CP_MSG_MAX);
	unmap(r, r->send, (size_t)r->n_send * CP_MSG_MAX);
	free(r->free_send);
	free(r->at);
	memset(r, 0, sizeof(*r));
	return rc;
}

/* ---- at work */

unsigned int
cp_rail_turn(struct cp_rail *r)
{
	unsigned int sum = 0, n;

	for (unsigned int i = 0; i < TURNS; i++) {
		n = urn_node_turn(&r->node);
		sum += n;
		if (n == 0)
			break;
	}
	return sum;
}

void
cp_rail_idle(struct cp_rail *r, unsigned int busy)
{
	static const struct timespec nap = {0, SLEEP_NS};
	uint32_t every = r->cfg.attach != NULL ? YIELD_ATTACHED : YIELD_EVERY;

	if (busy > 0) {
		r->empty = 0;
		return;
	}
	r->empty++;
	if (r->cfg.idle == URN_IDLE_SPIN)
		return;
	if (r->cfg.idle == URN_IDLE_SLEEP && r->empty > EMPTY_POLLS)
		nanosleep(&nap, NULL);
	else if (r->cfg.idle == URN_IDLE_PAUSE && r->empty % every == 0)
		sched_yield();
	else
		rte_pause();
}

/* Explain a failed completion in *err. returns -1 */
static int
wc_failed(struct cp_rail *r, const struct ibv_wc *wc, struct urn_err *err)
{
	const char *peer = r->cfg.server ? "sender" : "receiver";

	r->failed = *wc;
	if (wc->vendor_err == URN_VE_GONE)
		urn_err_set(err, "the dataplane that this side is attached to is gone.");
	else if (wc->status == IBV_WC_RETRY_EXC_ERR)
		urn_err_set(err, "the %s no longer answers: QP 0x%06x repeated a request 7 times in "
				 "vain (%s).", peer, wc->qp_num, ibv_wc_status_str(wc->status));
	else
		urn_err_set(err, "the connection to the %s broke: QP 0x%06x: %s (vendor error %u).",
			    peer, wc->qp_num, ibv_wc_status_str(wc->status), wc->vendor_err);
	return -1;
}

static int
take_recv(struct cp_rail *r, const struct ibv_wc *wc, struct cp_event *ev, struct urn_err *err)
{
	uint32_t i = (uint32_t)(wc->wr_id & ~WR_KIND);
	const char *why = NULL;

	memset(ev, 0, sizeof(*ev));
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		ev->type = CP_EV_CHUNK;
		ev->seq = be32toh(wc->imm_data);
		ev->len = wc->byte_len;
	} else {
		ev->type = CP_EV_MSG;
		cp_msg_decode(r->recv + (size_t)i * CP_MSG_MAX, wc->byte_len, &ev->msg, &why);
	}
	if (why != NULL) {
		urn_err_set(err, "the %s sent %s.", r->cfg.server ? "sender" : "receiver", why);
		return -1;
	}
	return post_recv(r, i, err) == 0 ? 1 : -1;
}

int
cp_rail_poll(struct cp_rail *r, struct cp_event *ev, struct urn_err *err)
{
	struct ibv_wc wc;

	if (r->msg != NULL)
		return cp_rail_msg_poll(r, ev, err);
	while (ibv_poll_cq(r->cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			return wc_failed(r, &wc, err);
		switch (wc.wr_id & WR_KIND) {
		case WR_SEND:
			r->free_send[r->n_free_send++] = (uint32_t)(wc.wr_id & ~WR_KIND);
			break;
		case WR_WRITE:
			memset(ev, 0, sizeof(*ev));
			ev->type = CP_EV_WRITTEN;
			ev->seq = (uint32_t)(wc.wr_id & ~WR_KIND);
			return 1;
		default:
			return take_recv(r, &wc, ev, err);
		}
	}
	return 0;
}

static int
post_send(struct cp_rail *r, struct ibv_send_wr *wr, struct urn_err *err)
{
	struct ibv_send_wr *bad;
	int rc = ibv_post_send(r->qp, wr, &bad);

	if (rc != 0)
		urn_err_set(err, "QP 0x%06x takes no request: %s.", r->qp->qp_num, strerror(rc));
	return rc == 0 ? 0 : -1;
}

int
cp_rail_write(struct cp_rail *r, uint64_t seq, uint32_t len, struct urn_err *err)
{
	uint64_t offset = (seq % r->cfg.slots) * r->cfg.chunk;
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->slot + offset,
		.length = len,
		.lkey = r->slot_mr != NULL ? r->slot_mr->lkey : 0,
	};
	struct ibv_send_wr wr = {
		.wr_id = WR_WRITE | (uint32_t)seq,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32((uint32_t)seq),
		.wr.rdma = {.remote_addr = r->peer_addr + offset, .rkey = r->peer_rkey},
	};

	return r->msg != NULL ? cp_rail_msg_write(r, seq, len, err) : post_send(r, &wr, err);
}

int
cp_rail_send(struct cp_rail *r, const struct cp_msg *msg, struct urn_err *err)
{
	struct ibv_sge sge = {.lkey = r->send_mr != NULL ? r->send_mr->lkey : 0};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	uint8_t *buf;

	if (r->msg != NULL)
		return cp_rail_msg_send(r, msg, err);
	if (r->n_free_send == 0)
		return 0;
	wr.wr_id = WR_SEND | r->free_send[--r->n_free_send];
	buf = r->send + (wr.wr_id & ~WR_KIND) * CP_MSG_MAX;
	sge.addr = (uintptr_t)buf;
	sge.length = (uint32_t)cp_msg_encode(msg, buf);
	return post_send(r, &wr, err) == 0 ? 1 : -1;
}

void
cp_rail_counters(struct cp_rail *r, struct urn_counters *out)
{
	urn_node_counters(&r->node, out);
}
