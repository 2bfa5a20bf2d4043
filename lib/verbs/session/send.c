/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send requests. A request is kept until it is complete, inline data too, so that it can be posted
 * again on another path (FO-15). A Send gets a header in front (FO-7); behind messages goes a flush
 * READ (FO-8), one at a time: messages that are posted meanwhile share the next one. Real messages
 * are not signalled, for the flush READ behind them proves more.
 */
#include "verbs/front.h"
#include "verbs/session/atomic.h"
#include "verbs/session/heal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Flags that go on to the real request. */
#define URN_SV_FLAGS ((unsigned int)(IBV_SEND_FENCE | IBV_SEND_SOLICITED))
#define URN_SV_ALL_FLAGS (URN_SV_FLAGS | (unsigned int)(IBV_SEND_SIGNALED | IBV_SEND_INLINE))

/* Flush READs of one connection. */
enum {
	URN_SV_FLUSHES = 4, /* READs in flight, at most */
	/* Bytes behind which a READ does not wait for the one before it, and those that are enough
	 * for that when they are a quarter of the send queue. */
	URN_SV_FLUSH_BYTES = 256 * 1024,
	URN_SV_FLUSH_PART = 64 * 1024,
};

static struct urn_sv_swr *
urn_sv_swr(const struct urn_sv_qp *q, uint64_t seq)
{
	return &q->swr[seq & (q->wrs - 1)];
}

static struct ibv_sge *
urn_sv_sges(const struct urn_sv_qp *q, uint64_t seq)
{
	return &q->sge[(seq & (q->wrs - 1)) * q->cap.max_send_sge];
}

/* Memory of a request: its header, then inline data. */
static uint8_t *
urn_sv_send_memory(const struct urn_sv_qp *q, uint64_t seq)
{
	return q->memory + q->sends_at + (seq & (q->wrs - 1)) * q->send_room;
}

/* ---- to the path in use */

/*
 * Key of memory of the program on an adapter. A key that is unknown becomes one that no adapter
 * has: as it is, it may be that of another region there.
 */
uint32_t
urn_sv_local_key(const struct urn_sv_qp *q, uint32_t adapter, uint32_t key)
{
	return urn_sv_pd_key(q->pd, adapter, key);
}

uint32_t
urn_sv_pd_key(const struct urn_sv_pd *pd, uint32_t adapter, uint32_t key)
{
	uint32_t other;

	/* Names are the keys of the primary adapter, until that is another one. */
	if (adapter == 0 && urn_sv_ctx(pd->ibv.context)->returned[0] == 0)
		return key;
	return urn_sv_keys_find(&pd->local, key, adapter, &other) ? other : URN_SV_NO_KEY;
}

struct ibv_sge *
urn_sv_translated(const struct urn_sv_pd *pd, struct ibv_sge *to, struct ibv_sge *from, int n)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(pd->ibv.context);

	if (n < 0 || n > URN_SV_SGES + 1)
		return from; /* the adapter refuses the request */
	urn_sv_lock(ctx);
	for (int i = 0; i < n; i++) {
		to[i] = from[i];
		if (!urn_sv_keys_find(&pd->local, from[i].lkey, 0, &to[i].lkey))
			to[i].lkey = URN_SV_NO_KEY;
	}
	urn_sv_unlock(ctx);
	return to;
}

/* Key of the peer's memory on the peer's adapter of a path. returns: false: not known */
static bool
urn_sv_remote_key(const struct urn_sv_qp *q, const struct urn_sv_path *p, uint32_t key,
		  uint32_t *other)
{
	*other = key;
	/* Names are the keys of the peer's primary adapter, until that is another one. */
	return (p->theirs == 0 && p->heal.end.to == 1 && q->peer.path[0].psn == 0) ||
	       urn_sv_keys_find((const void *)(q->memory + URN_SV_AT_KEYS), key, p->theirs, other);
}

static bool
urn_sv_names_memory(enum ibv_wr_opcode op)
{
	return op != IBV_WR_SEND;
}

static void
urn_sv_header(struct urn_sv_qp *q, uint64_t seq, const struct urn_sv_swr *s)
{
	struct urn_sess_header h = {
		.id = q->wr[seq & (q->wrs - 1)].id,
		.acked = q->c.received,
		.conn = q->peer.number,
		.length = s->length,
		.word = be32toh(s->word),
		.epoch = (uint16_t)q->c.used,
		.flags = (uint8_t)((s->imm ? URN_SESS_H_IMM : 0) |
				   (s->flags & IBV_SEND_SOLICITED ? URN_SESS_H_SOLICITED : 0)),
		.op = s->recv_op,
	};

	urn_sess_header_put((struct urn_sess_wire *)urn_sv_send_memory(q, seq), &h);
}

/* Fill in the parts of a real request that its opcode has. */
static void
urn_sv_remote(const struct urn_sv_swr *s, uint32_t key, struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = s->addr;
		wr->wr.atomic.rkey = key;
		wr->wr.atomic.compare_add = s->compare;
		wr->wr.atomic.swap = s->swap;
	} else {
		wr->wr.rdma.remote_addr = s->addr;
		wr->wr.rdma.rkey = key;
	}
}

/* Post a request to the path in use. key: the peer's, of that path. returns: 0 or an errno value */
static int
urn_sv_post_real(struct urn_sv_qp *q, uint64_t seq, uint32_t key)
{
	const struct urn_sv_path *p = urn_sv_used(q);
	const struct urn_sv_swr *s = urn_sv_swr(q, seq);
	const struct ibv_sge *from = urn_sv_sges(q, seq);
	struct ibv_sge sge[URN_SV_SGES + 1];
	struct ibv_send_wr wr = {.wr_id = seq,
				 .sg_list = sge,
				 .opcode = s->op,
				 .send_flags = s->flags & URN_SV_FLAGS},
			   *bad;
	int n = 0;

	if (s->op == IBV_WR_SEND) {
		urn_sv_header(q, seq, s);
		sge[n++] =
			(struct ibv_sge){(uintptr_t)urn_sv_send_memory(q, seq),
					 sizeof(struct urn_sess_wire), q->memory_mr[p->mine]->lkey};
	} else {
		urn_sv_remote(s, key, &wr);
	}
	for (uint32_t i = 0; i < s->num_sge; i++, n++)
		sge[n] = (struct ibv_sge){from[i].addr, from[i].length,
					  urn_sv_local_key(q, p->mine, from[i].lkey)};
	wr.num_sge = n;
	if (s->op != IBV_WR_SEND && s->op != IBV_WR_RDMA_WRITE)
		wr.send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(p->real, &wr, &bad);
}

/* The request stays in its ring: EIO is a dead adapter's, of which an event comes. */
void
urn_sv_posted(struct urn_sv_qp *q, int err)
{
	if (err == 0 || err == EIO)
		return;
	q->todo |= URN_SV_TO_AWAY;
	urn_sv_kick(q->ctx);
}

/*
 * True when there is so much behind the last flush READ that the next one does not wait for it:
 * otherwise all slots of the send queue may come free at once, and the path has nothing to send
 * until the program has posted again.
 */
static bool
urn_sv_flush_long(const struct urn_sv_qp *q)
{
	return q->unflushed_bytes >= URN_SV_FLUSH_BYTES ||
	       (q->unflushed_bytes >= URN_SV_FLUSH_PART && q->unflushed >= q->cap.max_send_wr / 4);
}

/* Post a request to the path in use. key: like urn_sv_post_real()'s */
static void
urn_sv_send_now(struct urn_sv_qp *q, uint64_t seq, uint32_t key)
{
	struct urn_sv_swr *s = urn_sv_swr(q, seq);

	s->posted = true;
	urn_sv_used(q)->epoch = q->c.used;
	urn_sv_posted(q, urn_sv_post_real(q, seq, key));
	if (s->op == IBV_WR_SEND || s->op == IBV_WR_RDMA_WRITE) {
		q->last_message = seq;
		q->unflushed++;
		q->unflushed_bytes += s->length;
		if (urn_sv_flush_long(q))
			urn_sv_flush(q);
	}
}

/* True when a request is an atomic that the peer's record would have no room for (FO-15). */
static bool
urn_sv_too_many(const struct urn_sv_qp *q, uint64_t seq)
{
	const struct urn_sess_wr *w = &q->wr[seq & (q->wrs - 1)];

	return w->kind == URN_SESS_ATOMIC && w->number - q->atomics_done > URN_SV_ATOMICS;
}

/*
 * Post a request, or hold it and all behind it back. newest: the copy of the peer's table of keys
 * is new, so a key that it lacks is one that the peer is to refuse.
 */
static void
urn_sv_send_try(struct urn_sv_qp *q, uint64_t seq, bool newest)
{
	const struct urn_sv_swr *s = urn_sv_swr(q, seq);
	uint32_t key = 0;

	q->held_from = seq;
	q->full = urn_sv_too_many(q, seq);
	if (q->full)
		return;
	if (urn_sv_names_memory(s->op) && !urn_sv_remote_key(q, urn_sv_used(q), s->key, &key)) {
		if (!newest) {
			q->holds = true; /* FO-2: an unknown key holds the request and asks */
			q->todo |= URN_SV_TO_KEYS;
			urn_sv_kick(q->ctx);
			return;
		}
		key = URN_SV_NO_KEY;
	}
	urn_sv_send_now(q, seq, key);
}

void
urn_sv_send_go(struct urn_sv_qp *q, uint64_t seq)
{
	struct urn_sv_swr *s = urn_sv_swr(q, seq);

	s->go = true;
	s->posted = false;
	if (!q->holds && !q->full)
		urn_sv_send_try(q, seq, false);
}

/* Post what was held back. newest: like urn_sv_send_try()'s */
static void
urn_sv_send_held(struct urn_sv_qp *q, bool newest)
{
	uint64_t seq = q->held_from > q->c.head ? q->held_from : q->c.head;

	q->holds = q->full = false;
	for (; seq != q->c.tail && !q->holds && !q->full; seq++) {
		const struct urn_sv_swr *s = urn_sv_swr(q, seq);

		if (s->go && !s->posted)
			urn_sv_send_try(q, seq, newest);
	}
	urn_sv_flush(q);
}

void
urn_sv_send_again(struct urn_sv_qp *q)
{
	urn_sv_send_held(q, true);
}

void
urn_sv_send_more(struct urn_sv_qp *q)
{
	if (q->full && urn_sv_flows(q) && !urn_sv_too_many(q, q->held_from))
		urn_sv_send_held(q, false);
}

bool
urn_sv_send_result(struct urn_sv_qp *q, const struct urn_sess_action *a)
{
	const struct urn_sv_swr *s = urn_sv_swr(q, a->seq);
	bool atomic = q->wr[a->seq & (q->wrs - 1)].kind == URN_SESS_ATOMIC;

	q->atomics_done += atomic;
	return !atomic || !a->known || urn_sv_result(q, urn_sv_sges(q, a->seq), s->num_sge, a->old);
}

/* True when the messages behind the last flush READ need another one now. */
static bool
urn_sv_flush_due(const struct urn_sv_qp *q)
{
	if (q->unflushed == 0)
		return false;
	/* Half of the READs that the queue pair may have in flight are the program's. */
	return q->flushes == 0 || (urn_sv_flush_long(q) && q->flushes < URN_SV_FLUSHES &&
				   q->flushes < q->rts.max_rd_atomic / 2U);
}

void
urn_sv_flush(struct urn_sv_qp *q)
{
	const struct urn_sv_path *p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (!urn_sv_flush_due(q) || !urn_sv_flows(q))
		return;
	p = urn_sv_used(q);
	sge = (struct ibv_sge){(uintptr_t)(q->memory + URN_SV_AT_LAND), 1,
			       q->memory_mr[p->mine]->lkey};
	wr.wr_id = URN_SV_ID_FLUSH | q->last_message;
	wr.wr.rdma.remote_addr = q->peer.addr;
	wr.wr.rdma.rkey = p->key;
	q->unflushed = 0;
	q->unflushed_bytes = 0;
	q->flushes++;
	urn_sv_posted(q, ibv_post_send(p->real, &wr, &bad));
}

/* ---- from the program */

/* Kinds of the machine, and opcodes of completions, by opcode. */
struct urn_sv_op {
	bool ok;
	enum urn_sess_kind kind;
	enum ibv_wr_opcode real;
	enum ibv_wc_opcode told;
};

static const struct urn_sv_op urn_sv_ops[] = {
	[IBV_WR_RDMA_WRITE] = {true, URN_SESS_WRITE, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {true, URN_SESS_SEND, IBV_WR_SEND, IBV_WC_RDMA_WRITE},
	[IBV_WR_SEND] = {true, URN_SESS_SEND, IBV_WR_SEND, IBV_WC_SEND},
	[IBV_WR_SEND_WITH_IMM] = {true, URN_SESS_SEND, IBV_WR_SEND, IBV_WC_SEND},
	[IBV_WR_RDMA_READ] = {true, URN_SESS_READ, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {true, URN_SESS_ATOMIC, IBV_WR_ATOMIC_CMP_AND_SWP,
				       IBV_WC_COMP_SWAP},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {true, URN_SESS_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD,
					 IBV_WC_FETCH_ADD},
};

/* The facts of an opcode. returns: NULL: not on a queue pair with a session */
static const struct urn_sv_op *
urn_sv_op(enum ibv_wr_opcode op)
{
	const unsigned int n = sizeof(urn_sv_ops) / sizeof(urn_sv_ops[0]);

	return (unsigned int)op < n && urn_sv_ops[op].ok ? &urn_sv_ops[op] : NULL;
}

/* Keep the data of a request: its elements, or the bytes of inline data. returns: its length */
static uint32_t
urn_sv_keep(struct urn_sv_qp *q, uint64_t seq, const struct ibv_send_wr *wr)
{
	struct ibv_sge *to = urn_sv_sges(q, seq);
	struct urn_sv_swr *s = urn_sv_swr(q, seq);
	uint8_t *data = urn_sv_send_memory(q, seq) + sizeof(struct urn_sess_wire);
	uint32_t length = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *e = &wr->sg_list[i];

		if (wr->send_flags & IBV_SEND_INLINE)
			memcpy(data + length, (const void *)(uintptr_t)e->addr, e->length);
		else
			to[i] = *e;
		length += e->length;
	}
	s->num_sge = (uint32_t)wr->num_sge;
	if (wr->send_flags & IBV_SEND_INLINE) {
		to[0] = (struct ibv_sge){(uintptr_t)data, length, q->memory_key};
		s->num_sge = length != 0;
	}
	return length;
}

/* True when a request is of a window, or takes a key back: a session has neither. */
static bool
urn_sv_of_window(enum ibv_wr_opcode op)
{
	return op == IBV_WR_BIND_MW || op == IBV_WR_LOCAL_INV || op == IBV_WR_SEND_WITH_INV;
}

/* Check a request. returns: 0 or an errno value */
static int
urn_sv_check(const struct urn_sv_qp *q, const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;

	if (urn_sv_of_window(wr->opcode))
		return EOPNOTSUPP;
	if (urn_sv_op(wr->opcode) == NULL || wr->num_sge < 0 ||
	    (uint32_t)wr->num_sge > q->cap.max_send_sge || (wr->send_flags & ~URN_SV_ALL_FLAGS))
		return EINVAL;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return 0;
	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes <= q->cap.max_inline_data && q->cap.max_send_sge != 0 &&
			       urn_sv_op(wr->opcode)->kind <= URN_SESS_WRITE
		       ? 0
		       : EINVAL;
}

/* Fill in what a request of the machine is to the shell. */
static struct urn_sv_swr *
urn_sv_fill(struct urn_sv_qp *q, uint64_t seq, const struct ibv_send_wr *wr,
	    const struct urn_sv_op *op)
{
	struct urn_sv_swr *s = urn_sv_swr(q, seq);

	*s = (struct urn_sv_swr){
		.wr_id = wr->wr_id,
		.op = op->real,
		.told = op->told,
		.flags = wr->send_flags & URN_SV_FLAGS,
		.recv_op = IBV_WC_RECV,
		.signaled = q->sig_all || (wr->send_flags & IBV_SEND_SIGNALED),
	};
	if (op->kind == URN_SESS_ATOMIC) {
		s->addr = wr->wr.atomic.remote_addr;
		s->key = wr->wr.atomic.rkey;
		s->compare = wr->wr.atomic.compare_add;
		s->swap = wr->wr.atomic.swap;
	} else if (op->kind != URN_SESS_SEND) {
		s->addr = wr->wr.rdma.remote_addr;
		s->key = wr->wr.rdma.rkey;
	} else if (wr->opcode != IBV_WR_SEND) {
		s->imm = true;
		s->word = wr->imm_data;
	}
	return s;
}

/* Give a request to the machine. length: bytes of a write before it. returns: 0 or ENOMEM */
static int
urn_sv_give(struct urn_sv_qp *q, const struct ibv_send_wr *wr, enum ibv_wr_opcode as, bool first,
	    uint32_t *length)
{
	const struct urn_sv_op *op = urn_sv_op(as);
	bool second = as == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct urn_sv_swr *s;
	uint64_t seq;
	int now = urn_sess_post(&q->c, op->kind, &seq);

	if (now < 0)
		return ENOMEM;
	s = urn_sv_fill(q, seq, wr, op);
	s->silent = first;
	if (second) {
		s->recv_op = (uint8_t)IBV_WC_RECV_RDMA_WITH_IMM;
		s->length = *length;
	} else {
		s->length = *length = urn_sv_keep(q, seq, wr);
	}
	if (first)
		s->flags &= ~(unsigned int)IBV_SEND_SOLICITED;
	if (now > 0)
		urn_sv_send_go(q, seq);
	return 0;
}

/* The connection is dead: complete a request as a queue pair in the error state does. */
static void
urn_sv_refuse(struct urn_sv_qp *q, const struct ibv_send_wr *wr)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id,
			    .status = IBV_WC_WR_FLUSH_ERR,
			    .opcode = urn_sv_op(wr->opcode)->told,
			    .qp_num = q->ibv.qp_num};

	q->send_held++;
	urn_sv_push((struct urn_sv_cq *)q->ibv.send_cq, &wc, q, true, true);
}

int
urn_sv_send_one(struct urn_sv_qp *q, const struct ibv_send_wr *wr)
{
	uint32_t length = 0;
	int err = urn_sv_check(q, wr);

	if (err != 0)
		return err;
	/* Requests without a completion for the program are complete when their flush READ is. */
	if (q->send_held >= q->cap.max_send_wr)
		urn_sv_progress((struct urn_sv_cq *)q->ibv.send_cq);
	if (q->send_held >= q->cap.max_send_wr)
		return ENOMEM;
	if (q->c.state == URN_SESS_DEAD) {
		urn_sv_refuse(q, wr);
		return 0;
	}
	q->send_held++;
	if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		err = urn_sv_give(q, wr, IBV_WR_RDMA_WRITE, true, &length);
	if (err == 0)
		err = urn_sv_give(q, wr, wr->opcode, false, &length);
	if (err != 0)
		q->send_held--;
	return err;
}

static int
urn_sv_post_session(struct urn_sv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = q->ibv.state == IBV_QPS_RTS || q->ibv.state == IBV_QPS_ERR ? 0 : EINVAL;

	*bad = wr;
	for (; wr != NULL && err == 0; wr = wr->next) {
		*bad = wr;
		err = urn_sv_send_one(q, wr);
	}
	urn_sv_flush(q);
	return err;
}

/* Take the primary adapter's address of a datagram. returns: 0; EIO: the address was the primary
 * adapter's before that was lost */
static int
urn_sv_address(const struct urn_sv_qp *q, struct ibv_send_wr *wr)
{
	if (q->ibv.qp_type != IBV_QPT_UD || wr->wr.ud.ah == NULL)
		return 0;
	wr->wr.ud.ah = ((struct urn_sv_ah *)wr->wr.ud.ah)->below;
	return wr->wr.ud.ah->context == q->path[0].real->context ? 0 : EIO;
}

/*
 * Post one by one: datagrams name an address, which is the primary adapter's; a queue pair that
 * might have had a session was not made to signal all requests; and keys are not those of a primary
 * adapter that came back.
 */
static int
urn_sv_post_changed(const struct urn_sv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_sge sge[URN_SV_SGES + 1];
	int err = 0;

	for (; wr != NULL && err == 0; wr = wr->next) {
		struct ibv_send_wr one = *wr, *unused;

		*bad = wr;
		one.next = NULL;
		err = urn_sv_address(q, &one);
		if (q->can && q->sig_all)
			one.send_flags |= IBV_SEND_SIGNALED;
		if (q->ctx->returned[0] != 0 && !(wr->send_flags & IBV_SEND_INLINE))
			one.sg_list = urn_sv_translated(q->pd, sge, wr->sg_list, wr->num_sge);
		if (err == 0)
			err = ibv_post_send(q->path[0].real, &one, &unused);
	}
	return err;
}

int
urn_sv_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct urn_sv_qp *q = (struct urn_sv_qp *)ibqp;
	int err;

	if (q->mode == URN_SV_SESSION) {
		urn_sv_lock(q->ctx);
		*bad = wr;
		err = q->ctx->forked ? EIO : urn_sv_post_session(q, wr, bad);
		urn_sv_unlock(q->ctx);
		return err;
	}
	if (ibqp->qp_type == IBV_QPT_UD || (q->can && q->sig_all) || q->ctx->returned[0] != 0)
		return urn_sv_post_changed(q, wr, bad);
	return ibv_post_send(q->path[0].real, wr, bad);
}
