/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions of the machine: they become requests of the queue pair, copies, and ends of calls. */
#include "stream/shell/shell.h"

#include <stdio.h>
#include <string.h>

/* The kind of a request, in wr_id above the slot. */
enum { WR_SEND = 1, WR_WRITE, WR_READ, WR_RECV };

static uint8_t *
in_slot(const struct urn_stream *s, uint32_t slot)
{
	return s->mem + URN_SH_FLOOR + (size_t)slot * s->in_bytes;
}

/* A request that is not taken ends the connection, at the next look: the machine must not be called
 * from its own action. */
static void
post(struct urn_stream *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (!s->down && ibv_post_send(s->qp, wr, &bad) != 0)
		s->down = true;
}

static void
act_send(struct urn_stream *s, const struct urn_st_action *a)
{
	uint8_t *to = s->out + (size_t)(s->emitted++ % (URN_SH_SLOTS + 1)) * s->out_bytes;
	uint32_t head = urn_st_wire_put(to, a->message);
	struct ibv_sge sge = {(uintptr_t)to, head + a->message->length, s->out_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = WR_SEND, .opcode = IBV_WR_SEND, .sg_list = &sge};

	if (a->message->length)
		memcpy(to + head, (const void *)(uintptr_t)a->addr, a->message->length);
	post(s, &wr);
}

static void
act_transfer(struct urn_stream *s, const struct urn_st_action *a)
{
	bool read = a->act == URN_ST_A_READ;
	struct ibv_sge sge = {a->addr, (uint32_t)a->bytes, a->lkey};
	struct ibv_send_wr wr = {.wr_id = read ? WR_READ : WR_WRITE,
				 .opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				 .sg_list = &sge,
				 .wr.rdma = {a->raddr, a->rkey}};

	if (read) {
		s->read_at = a->addr;
		s->read_bytes = a->bytes;
	}
	post(s, &wr);
}

/* Memory of the program for an address of the receive, which may be that of the bounce. */
static uint8_t *
place(const struct urn_stream *s, uint64_t addr)
{
	return s->to ? s->to + (addr - (uintptr_t)s->mem) : (uint8_t *)(uintptr_t)addr;
}

static void
act_post(struct urn_stream *s, uint64_t n)
{
	for (; n && s->spares; n--) {
		uint32_t slot = s->spare[--s->spares];
		struct ibv_sge sge = {(uintptr_t)in_slot(s, slot), s->in_bytes, s->mr->lkey};
		struct ibv_recv_wr wr = {
			.wr_id = (uint64_t)slot << 8 | WR_RECV, .sg_list = &sge, .num_sge = 1};
		struct ibv_recv_wr *bad;

		if (!s->down && ibv_post_recv(s->qp, &wr, &bad) != 0)
			s->down = true;
	}
}

static void
ended(struct urn_stream *s, struct urn_sh_op *op, const struct urn_st_action *a)
{
	op->open = false;
	op->status = a->status;
	op->bytes = a->bytes;
	urn_sh_happened(s);
}

static void
act_died(struct urn_stream *s)
{
	size_t len;

	s->died = true;
	s->inputs++;
	s->died_ms = urn_sh_now();
	urn_st_error(&s->st, s->why, sizeof(s->why));
	len = strlen(s->why);
	if (s->gone && s->st.reason == URN_ST_R_DOWN)
		snprintf(s->why + len, sizeof(s->why) - len, ": the dataplane is gone");
	urn_sh_happened(s);
}

void
urn_sh_act(void *arg, const struct urn_st_action *a)
{
	struct urn_stream *s = arg;

	switch (a->act) {
	case URN_ST_A_SEND:
		act_send(s, a);
		break;
	case URN_ST_A_WRITE:
	case URN_ST_A_READ:
		act_transfer(s, a);
		break;
	case URN_ST_A_COPY:
		memcpy(place(s, a->addr), in_slot(s, a->slot) + a->from, a->bytes);
		break;
	case URN_ST_A_MERGE:
		memcpy(in_slot(s, a->into) + a->at, in_slot(s, a->slot) + a->from, a->bytes);
		break;
	case URN_ST_A_FREE:
		s->spare[s->spares++] = a->slot;
		break;
	case URN_ST_A_POST:
		act_post(s, a->bytes);
		break;
	case URN_ST_A_SENT:
		ended(s, &s->tx, a);
		break;
	case URN_ST_A_RECEIVED:
		ended(s, &s->rx, a);
		break;
	case URN_ST_A_CLOSED:
		s->closed = true;
		urn_sh_happened(s);
		break;
	case URN_ST_A_DIED:
		act_died(s);
		break;
	default: /* READABLE, OFFERED: those who wait look at both */
		urn_sh_happened(s);
		break;
	}
}

/* ---- completions */

/* The first error says why; all requests behind it are flushed. The machine is told when all that
 * came is taken in. */
static void
failed(struct urn_stream *s, const struct ibv_wc *wc)
{
	if (!s->down)
		s->refused = wc->status == IBV_WC_REM_ACCESS_ERR;
	s->down = true;
}

/* Bytes that were read to the bounce go to the program. */
static void
read_done(struct urn_stream *s)
{
	if (s->to && s->read_bytes)
		memcpy(place(s, s->read_at), (const void *)(uintptr_t)s->read_at, s->read_bytes);
	s->read_bytes = 0;
	urn_st_read(&s->st);
}

void
urn_sh_complete(struct urn_stream *s, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)(wc->wr_id >> 8);

	if (wc->status != IBV_WC_SUCCESS) {
		failed(s, wc);
		return;
	}
	switch (wc->wr_id & 0xff) {
	case WR_SEND:
		urn_st_sent(&s->st);
		break;
	case WR_WRITE:
		urn_st_written(&s->st);
		break;
	case WR_READ:
		read_done(s);
		break;
	default:
		s->inputs++;
		urn_st_arrived(&s->st, slot, in_slot(s, slot), wc->byte_len);
		break;
	}
}
