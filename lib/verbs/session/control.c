/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control paths: a queue pair for each path, with receives of its own, for REPORT, MIGRATED and
 * LEAVE, and OFFER. A Send that finds no room is dropped: the machine repeats what was not
 * answered. Over the control path of a new path the peer's table of keys is read, which proves that
 * the path is alive.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* How long the end of a queue pair waits for the peer to know. */
enum { URN_SV_LEAVE_SECONDS = 1 };

/* Bit of the wr_id of a Send of LEAVE, beside its slot; see URN_SV_ID_BITS. */
#define URN_SV_ID_LEAVE (1ull << 59)

_Static_assert((int)URN_SESS_WIRE_MAX <= (int)URN_SV_CONTROL_BYTES, "a message fits a receive");

/* Memory of a control message. half: 0 receives, 1 Sends */
static uint8_t *
urn_sv_slot(const struct urn_sv_path *p, uint32_t half, uint32_t slot)
{
	const struct urn_sv_qp *q = p->qp;
	uint32_t path = p->mine * URN_SV_ADAPTERS + p->theirs;
	uint32_t n = (half * URN_SV_PATHS + path) * URN_SV_CONTROLS + slot;

	return q->memory + URN_SV_AT_CONTROL + (size_t)n * URN_SV_CONTROL_BYTES;
}

static struct ibv_sge
urn_sv_slot_sge(const struct urn_sv_path *p, const uint8_t *at, uint32_t bytes)
{
	return (struct ibv_sge){(uintptr_t)at, bytes, p->qp->memory_mr[p->mine]->lkey};
}

static int
urn_sv_control_recv(struct urn_sv_path *p, uint32_t slot)
{
	struct ibv_sge sge = urn_sv_slot_sge(p, urn_sv_slot(p, 0, slot), URN_SV_CONTROL_BYTES);
	struct ibv_recv_wr *bad,
		wr = {.wr_id = URN_SV_ID_RECV | slot, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(p->ctl, &wr, &bad);
}

int
urn_sv_control_open(struct urn_sv_path *p)
{
	int err = 0;

	for (uint32_t i = 0; i < URN_SV_CONTROLS && err == 0; i++)
		err = urn_sv_control_recv(p, i);
	return err;
}

/* ---- out */

/* Send a message over a path. id: bits of the request beside its slot. returns: false: the path is
 * not alive, or has no room */
static bool
urn_sv_control_on(struct urn_sv_path *p, const void *bytes, uint32_t length, uint64_t id)
{
	uint32_t free = ~p->ctl_busy & ((1u << URN_SV_CONTROLS) - 1);
	struct ibv_send_wr *bad, wr = {.num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_sge sge;
	uint32_t slot;

	if (!p->ctl_ok || p->qp->ctx->dead[p->mine] || free == 0)
		return false;
	slot = (uint32_t)__builtin_ctz(free);
	memcpy(urn_sv_slot(p, 1, slot), bytes, length);
	sge = urn_sv_slot_sge(p, urn_sv_slot(p, 1, slot), length);
	wr.wr_id = id | slot;
	wr.sg_list = &sge;
	if (ibv_post_send(p->ctl, &wr, &bad) != 0)
		return false;
	p->ctl_busy |= 1u << slot;
	return true;
}

void
urn_sv_control_send(struct urn_sv_qp *q, const void *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		(void)urn_sv_control_on(&q->path[i], bytes, length, 0);
}

bool
urn_sv_control_keys(struct urn_sv_path *p)
{
	const struct urn_sv_qp *q = p->qp;
	struct ibv_sge sge =
		urn_sv_slot_sge(p, q->memory + URN_SV_AT_KEYS, sizeof(struct urn_sv_keys));
	struct ibv_send_wr *bad, wr = {.wr_id = URN_SV_ID_KEYS,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_READ};

	wr.wr.rdma.remote_addr = q->peer.addr;
	wr.wr.rdma.rkey = p->key;
	return p->ctl_ok && !q->ctx->dead[p->mine] && ibv_post_send(p->ctl, &wr, &bad) == 0;
}

/* The bytes of the probe land beside those of flush READs: the copy of the table of keys is in use.
 */
bool
urn_sv_control_probe(struct urn_sv_path *p)
{
	const struct urn_sv_qp *q = p->qp;
	struct ibv_sge sge = urn_sv_slot_sge(p, q->memory + URN_SV_AT_LAND + 8, 8);
	struct ibv_send_wr *bad, wr = {.wr_id = URN_SV_ID_PROBE,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_READ};

	wr.wr.rdma.remote_addr = q->peer.addr;
	wr.wr.rdma.rkey = p->key;
	return p->ctl_ok && !q->ctx->dead[p->mine] && ibv_post_send(p->ctl, &wr, &bad) == 0;
}

/* ---- in */

/* The peer has left: its last word completes the Sends that it received. */
static void
urn_sv_left(struct urn_sv_qp *q, const struct urn_sess_report *last)
{
	q->left = true;
	q->last = *last;
	q->why = "the peer has left";
	if (urn_sv_flows(q))
		urn_sess_acked(&q->c, last->received);
	urn_sv_ends_over(q);
	urn_sv_after(q);
	pthread_cond_broadcast(&q->ctx->cond);
}

static void
urn_sv_reported(struct urn_sv_qp *q, const struct urn_sess_report *r)
{
	if (r->epoch >= q->c.epoch)
		urn_sv_heal_reported(q, r->paths);
	urn_sv_srq_shun(q);
	urn_sess_report(&q->c, r);
}

static void
urn_sv_control_heard(struct urn_sv_path *p, const uint8_t *from, uint32_t bytes)
{
	struct urn_sv_qp *q = p->qp;
	struct urn_sess_msg m;
	enum urn_sess_verdict v = urn_sess_wire_get(from, bytes, q->ibv.qp_num, &m);

	if (q->mode != URN_SV_SESSION)
		return;
	q->verdicts[v]++;
	if (v != URN_SESS_V_OK) {
		urn_sv_log(q, URN_SV_E_REFUSED,
			   "dropped a message of its peer, because %s\trefused bytes=%u because %s",
			   urn_sess_wire_text(v), bytes, urn_sess_wire_text(v));
		return;
	}
	m.told.epoch = m.epoch;
	if (m.kind == URN_SESS_WIRE_OFFER)
		urn_sv_log_offer(q, "hear", m.epoch, &m.offer);
	else
		urn_sv_log_message(q, "hear", m.kind, &m.told);
	q->why = "the peer's message says so";
	if (m.kind == URN_SESS_WIRE_LEAVE)
		urn_sv_left(q, &m.told);
	else if (m.kind == URN_SESS_WIRE_MIGRATED)
		urn_sess_migrated(&q->c, m.epoch);
	else if (m.kind == URN_SESS_WIRE_OFFER)
		urn_sv_heal_heard(q, &m.offer);
	else
		urn_sv_reported(q, &m.told);
	q->why = NULL;
	urn_sv_after(q);
}

/* The peer's table of keys is there, or can't be had. */
static void
urn_sv_keys_read(struct urn_sv_path *p, bool ok)
{
	struct urn_sv_qp *q = p->qp;
	uint32_t bit = urn_sv_bit(q, p->mine * URN_SV_ADAPTERS + p->theirs);

	if (q->reading != bit + 1)
		return;
	q->reading = 0;
	if (!ok)
		return; /* the path is down */
	if (q->c.state == URN_SESS_BINDING && q->c.next == bit) {
		if (urn_sv_srq_there(q))
			urn_sv_rebound(q);
	} else if (q->holds && urn_sv_flows(q) && q->c.path == bit) {
		urn_sv_send_again(q);
	}
}

/* Read a receive. The receive is posted again before the message is heard: an OFFER may be of this
 * very path, and its queue pairs another end's afterwards, or none. */
static void
urn_sv_control_read(struct urn_sv_path *p, uint32_t slot, uint32_t bytes)
{
	uint8_t message[URN_SV_CONTROL_BYTES];

	if (bytes > sizeof(message))
		return; /* impossible: the receive is no longer */
	memcpy(message, urn_sv_slot(p, 0, slot), bytes);
	(void)urn_sv_control_recv(p, slot);
	urn_sv_control_heard(p, message, bytes);
}

static void
urn_sv_control_take(struct urn_sv_path *p, const struct ibv_wc *wc)
{
	struct urn_sv_qp *q = p->qp;
	uint32_t slot = (uint32_t)wc->wr_id % URN_SV_CONTROLS;

	if (wc->status != IBV_WC_SUCCESS) {
		if (!p->ctl_ok)
			return;
		p->ctl_ok = false;
		pthread_cond_broadcast(&q->ctx->cond);
		urn_sv_keys_read(p, false);
		q->why = "its control path failed";
		if (q->mode == URN_SV_SESSION && !q->left)
			urn_sv_down(q, urn_sv_bit(q, p->mine * URN_SV_ADAPTERS + p->theirs));
		else if (q->mode == URN_SV_SESSION)
			urn_sv_after(q);
		return;
	}
	if (wc->wr_id & URN_SV_ID_RECV) {
		urn_sv_control_read(p, slot, wc->byte_len);
	} else if (wc->wr_id & URN_SV_ID_KEYS) {
		urn_sv_keys_read(p, true);
	} else if (wc->wr_id & URN_SV_ID_PROBE) {
		urn_sv_heal_carried(p);
	} else {
		p->ctl_busy &= ~(1u << slot);
		q->known |= (wc->wr_id & URN_SV_ID_LEAVE) != 0;
		pthread_cond_broadcast(&q->ctx->cond);
	}
}

void
urn_sv_control_poll(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_wc wc[URN_SV_BATCH];
	int n;

	do {
		n = ibv_poll_cq(ctx->ctl_cq[adapter], URN_SV_BATCH, wc);
		for (int i = 0; i < n; i++) {
			struct urn_sv_path *p = urn_sv_find_ctl(ctx, adapter, wc[i].qp_num);

			if (p != NULL)
				urn_sv_control_take(p, &wc[i]);
		}
	} while (n == URN_SV_BATCH);
}

/* ---- the end of a queue pair */

static bool
urn_sv_can_tell(const struct urn_sv_qp *q)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if (q->path[i].ctl_ok && !q->ctx->dead[q->path[i].mine])
			return true;
	return false;
}

/* Send LEAVE over each path that has not got it: one that was agreed meanwhile, or had no room. */
static void
urn_sv_leave_by_all(struct urn_sv_qp *q, const void *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &q->path[i];

		if (!p->leaves)
			p->leaves = urn_sv_control_on(p, bytes, length, URN_SV_ID_LEAVE);
	}
}

void
urn_sv_leave(struct urn_sv_qp *q)
{
	uint8_t bytes[URN_SESS_WIRE_MAX];
	struct urn_sess_report last;
	struct timespec until;
	uint32_t length;

	/* Messages count that came, and that the program has not polled. */
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		urn_sv_cq_drain((struct urn_sv_cq *)q->ibv.recv_cq, i);
	if (q->left || q->told || q->c.state == URN_SESS_DEAD)
		return;
	last = (struct urn_sess_report){.epoch = q->c.epoch,
					.received = q->c.received,
					.sent = q->c.sent,
					.sends = q->c.sends};
	urn_sv_log_message(q, "tell", URN_SESS_WIRE_LEAVE, &last);
	length = urn_sess_wire_leave(bytes, q->peer.number, q->c.epoch, &last);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += URN_SV_LEAVE_SECONDS;
	do
		urn_sv_leave_by_all(q, bytes, length);
	while (!q->left && !q->known && urn_sv_can_tell(q) &&
	       pthread_cond_clockwait(&q->ctx->cond, &q->ctx->lock, CLOCK_MONOTONIC, &until) == 0);
	q->told = true;
}
