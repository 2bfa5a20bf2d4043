/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAKE_AREA (32u << 20)

void *
fake_at(struct fake *f, uint64_t off)
{
	return (uint8_t *)f->channel.area + off;
}

static uint64_t
fake_alloc(struct fake *f, uint64_t bytes)
{
	uint64_t off = f->used;

	f->used += (bytes + 63) & ~63ull;
	assert_true(f->used <= FAKE_AREA);
	return off;
}

static uint32_t
fake_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

struct fake_cq *
fake_cq(struct fake *f, uint32_t handle)
{
	assert_in_range(handle, 1, FAKE_OBJS);
	return &f->cq[handle - 1];
}

struct fake_srq *
fake_srq(struct fake *f, uint32_t handle)
{
	assert_in_range(handle, 1, FAKE_OBJS);
	return &f->srq[handle - 1];
}

/* QPNs are 0x100 and up. */
struct fake_qp *
fake_qp(struct fake *f, uint32_t qpn)
{
	assert_in_range(qpn, 0x100, 0x100 + FAKE_OBJS - 1);
	return &f->qp[qpn - 0x100];
}

bool
fake_qp_gone(struct fake *f, uint32_t qpn)
{
	bool gone;

	pthread_mutex_lock(&f->lock);
	gone = fake_qp(f, qpn)->qpn == 0;
	pthread_mutex_unlock(&f->lock);
	return gone;
}

bool
fake_cq_gone(struct fake *f, uint32_t handle)
{
	bool gone;

	pthread_mutex_lock(&f->lock);
	gone = fake_cq(f, handle)->handle == 0;
	pthread_mutex_unlock(&f->lock);
	return gone;
}

static void
fake_create_cq(struct fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct fake_cq *q = f->cq;

	while (q->handle != 0)
		q++;
	memset(q, 0, sizeof(*q));
	q->handle = (uint32_t)(q - f->cq) + 1;
	q->entries = fake_pow2(req->create_cq.cqe);
	q->beside = f->beside && req->create_cq.beside;
	q->off = fake_alloc(f, urn_abi_beside_off(q->entries) +
				       (uint64_t)q->entries * sizeof(struct urn_abi_beside) *
					       q->beside);
	q->cookie = req->create_cq.cookie;
	q->fd = req->create_cq.channel_fd;
	rep->handle = q->handle;
	rep->queue.off = q->off;
	rep->queue.entries = q->entries;
	rep->queue.stride = sizeof(struct urn_abi_cqe);
	rep->queue.beside = q->beside;
}

/* Carries over the completions between cons and prod; the new indices start elsewhere on purpose. */
static void
fake_resize_cq(struct fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct fake_cq *q = fake_cq(f, req->handle), old;
	struct urn_abi_cq *hdr;
	struct urn_abi_cqe *from, *to;
	uint32_t i, cons, start;

	if (f->in_resize != NULL)
		f->in_resize(f, f->in_resize_arg);
	old = *q;
	hdr = fake_at(f, old.off);
	cons = atomic_load(&hdr->cons);
	q->entries = fake_pow2(req->resize_cq.cqe);
	q->off = fake_alloc(f, urn_abi_beside_off(q->entries) +
				       (uint64_t)q->entries * sizeof(struct urn_abi_beside) *
					       q->beside);
	start = 2 * q->entries; /* an even lap: phase 1, and zeroed slots hold none */
	q->prod = start + (old.prod - cons);
	for (i = 0; cons + i != old.prod; i++) {
		from = (struct urn_abi_cqe *)fake_at(f, old.off + URN_ABI_CQ_SLOTS) +
			((cons + i) & (old.entries - 1));
		to = (struct urn_abi_cqe *)fake_at(f, q->off + URN_ABI_CQ_SLOTS) +
			((start + i) & (q->entries - 1));
		memcpy(to, from, 31);
		atomic_store(&to->phase, 1);
		if (q->beside)
			((struct urn_abi_beside *)fake_at(
				f, q->off + urn_abi_beside_off(
						    q->entries)))[(start + i) & (q->entries - 1)] =
				((struct urn_abi_beside *)fake_at(
					f, old.off + urn_abi_beside_off(
							     old.entries)))[(cons + i) &
									    (old.entries - 1)];
	}
	/* A reader that still uses the old queue must notice. */
	memset(fake_at(f, old.off), 0xa5, URN_ABI_CQ_SLOTS + old.entries * sizeof(*from));
	hdr = fake_at(f, q->off);
	atomic_store(&hdr->cons, start);
	rep->handle = q->handle;
	rep->queue.off = q->off;
	rep->queue.entries = q->entries;
}

static void
fake_create_srq(struct fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct fake_srq *q = f->srq;

	while (q->handle != 0)
		q++;
	memset(q, 0, sizeof(*q));
	q->handle = (uint32_t)(q - f->srq) + 1;
	q->entries = fake_pow2(req->create_srq.max_wr);
	q->stride = urn_abi_rq_stride(req->create_srq.max_sge);
	q->off = fake_alloc(f, URN_ABI_WQ_SLOTS + (uint64_t)q->entries * q->stride);
	q->cookie = req->create_srq.cookie;
	q->limit = req->create_srq.limit;
	q->max_sge = req->create_srq.max_sge;
	rep->handle = q->handle;
	rep->queue.off = q->off;
	rep->queue.entries = q->entries;
	rep->queue.stride = q->stride;
}

static void
fake_create_qp(struct fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const struct urn_abi_qp_cap *cap = &req->create_qp.cap;
	struct fake_qp *q = f->qp;

	while (q->qpn != 0)
		q++;
	memset(q, 0, sizeof(*q));
	q->qpn = (uint32_t)(q - f->qp) + 0x100;
	q->sq_entries = fake_pow2(cap->max_send_wr);
	q->sq_stride = urn_abi_sq_stride(cap->max_send_sge, cap->max_inline);
	q->sq_off = fake_alloc(f, URN_ABI_WQ_SLOTS + (uint64_t)q->sq_entries * q->sq_stride);
	if (req->create_qp.srq == 0) {
		q->rq_entries = fake_pow2(cap->max_recv_wr);
		q->rq_stride = urn_abi_rq_stride(cap->max_recv_sge);
		q->rq_off = fake_alloc(f, URN_ABI_WQ_SLOTS + (uint64_t)q->rq_entries * q->rq_stride);
	} else {
		q->rq_off = fake_alloc(f, URN_ABI_WQ_SLOTS + URN_ABI_TAKEN * sizeof(uint64_t));
	}
	q->cookie = req->create_qp.cookie;
	q->send_cq = req->create_qp.send_cq;
	q->recv_cq = req->create_qp.recv_cq;
	q->db = (q->qpn - 0x100) * 5003 % URN_ABI_MAX_QP_ENGINE; /* spread over the words */
	rep->handle = q->qpn;
	rep->qp.sq_off = q->sq_off;
	rep->qp.rq_off = q->rq_off;
	rep->qp.sq_entries = q->sq_entries;
	rep->qp.rq_entries = q->rq_entries;
	rep->qp.sq_stride = q->sq_stride;
	rep->qp.rq_stride = q->rq_stride;
	rep->qp.db = q->db;
	rep->qp.cap = *cap;
	rep->qp.cap.max_send_wr = q->sq_entries;
	rep->qp.cap.max_recv_wr = q->rq_entries;
	q->attr.cap = rep->qp.cap;
}

static void
fake_reset_wq(struct fake *f, uint64_t off, uint32_t *cons)
{
	struct urn_abi_wq *hdr = fake_at(f, off);

	if (f->zero_reset)
		atomic_store(&hdr->prod, 0);
	*cons = atomic_load(&hdr->prod);
	atomic_store(&hdr->cons, *cons);
	atomic_store(&hdr->done, *cons);
}

static void
fake_modify_qp(struct fake *f, const struct urn_abi_req *req)
{
	struct fake_qp *q = fake_qp(f, req->handle);
	struct urn_abi_qp_cap cap = q->attr.cap;

	q->attr = req->modify_qp.attr;
	q->attr.cap = cap;
	if (!(req->modify_qp.mask & URN_QPM_STATE) || q->attr.state != URN_QPS_RESET)
		return;
	fake_reset_wq(f, q->sq_off, &q->sq_cons);
	if (q->rq_entries != 0)
		fake_reset_wq(f, q->rq_off, &q->rq_cons);
}

static void
fake_answer(struct fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	switch (req->op) {
	case URN_CTL_HELLO: rep->device = f->info; break;
	case URN_CTL_QUERY_PORT: rep->port = f->port; break;
	case URN_CTL_QUERY_GID: memcpy(rep->gid.gid, f->gid[req->gid.index], 16); break;
	case URN_CTL_ALLOC_PD: rep->handle = 7; break;
	case URN_CTL_REG_MR:
	case URN_CTL_ALLOC_MW: rep->mr.lkey = rep->mr.rkey = f->next_key += 0x100; break;
	case URN_CTL_CREATE_CQ: fake_create_cq(f, req, rep); break;
	case URN_CTL_RESIZE_CQ: fake_resize_cq(f, req, rep); break;
	case URN_CTL_DESTROY_CQ: fake_cq(f, req->handle)->handle = 0; break;
	case URN_CTL_CREATE_SRQ: fake_create_srq(f, req, rep); break;
	case URN_CTL_MODIFY_SRQ:
		if (req->modify_srq.set_limit)
			fake_srq(f, req->handle)->limit = req->modify_srq.limit;
		break;
	case URN_CTL_QUERY_SRQ:
		rep->srq_attr.max_wr = fake_srq(f, req->handle)->entries;
		rep->srq_attr.max_sge = fake_srq(f, req->handle)->max_sge;
		rep->srq_attr.limit = fake_srq(f, req->handle)->limit;
		break;
	case URN_CTL_DESTROY_SRQ: fake_srq(f, req->handle)->handle = 0; break;
	case URN_CTL_CREATE_QP: fake_create_qp(f, req, rep); break;
	case URN_CTL_MODIFY_QP: fake_modify_qp(f, req); break;
	case URN_CTL_CONNECT_QP: fake_qp(f, req->handle)->attr.state = req->connect_qp.rts.state; break;
	case URN_CTL_QUERY_QP: rep->qp_attr = fake_qp(f, req->handle)->attr; break;
	case URN_CTL_DESTROY_QP: fake_qp(f, req->handle)->qpn = 0; break;
	case URN_CTL_CREATE_AH: rep->handle = 0x77; break;
	case URN_CTL_ASYNC_FD: f->async_fd = req->async_fd.fd; break;
	default: break;
	}
}

static void
fake_call(void *ctx, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct fake *f = ctx;

	pthread_mutex_lock(&f->lock);
	f->last = *req;
	assert_in_range(req->op, 1, URN_CTL_OPS - 1);
	f->calls[req->op]++;
	memset(rep, 0, sizeof(*rep));
	if (f->fail_op == req->op) {
		f->fail_op = 0;
		rep->err = f->fail_err;
		snprintf(rep->why, sizeof(rep->why), "%s", f->fail_why);
	} else {
		fake_answer(f, req, rep);
	}
	pthread_mutex_unlock(&f->lock);
}

static void
fake_wake(void *ctx, uint32_t engine)
{
	struct fake *f = ctx;

	assert_int_equal(engine, 0);
	atomic_fetch_add(&f->wakes, 1);
}

static void
fake_close(void *ctx)
{
	((struct fake *)ctx)->closed++;
}

static void
fake_info(struct fake *f)
{
	struct urn_abi_device *d = &f->info;

	d->version = URN_ABI_VERSION;
	d->features = URN_ABI_FEATURES;
	d->engines = 1;
	d->node_guid = 0x0011223344556677;
	d->max_mr_size = 1ull << 40;
	d->max_qp = d->max_cq = d->max_mr = d->max_mw = d->max_pd = d->max_ah = d->max_srq = 1000;
	d->max_wr = URN_ABI_MAX_WR;
	d->max_sge = URN_ABI_MAX_SGE;
	d->max_cqe = URN_ABI_MAX_CQE;
	d->max_rd_atomic = 16;
	d->max_inline = URN_ABI_MAX_INLINE;
	d->gids = FAKE_GIDS;
	d->area_size = FAKE_AREA;
	strcpy(d->name, "fake0");
	strcpy(d->fw_ver, "1.2.3");
	f->port = (struct urn_abi_port){.state = 4, .max_mtu = 5, .active_mtu = 3, .mtu_bytes = 1500,
		.speed = 10000000000u};
}

struct fake *
fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->channel.ctx = f;
	f->channel.call = fake_call;
	f->channel.wake = fake_wake;
	f->channel.close = fake_close;
	f->channel.area = mmap(NULL, FAKE_AREA, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(f->channel.area, MAP_FAILED);
	pthread_mutex_init(&f->lock, NULL);
	fake_info(f);
	f->info.db_off[0] = fake_alloc(f, sizeof(struct urn_abi_db));
	f->db = fake_at(f, f->info.db_off[0]);
	f->async_fd = -1;
	f->next_key = 0x1000;
	return f;
}

void
fake_free(struct fake *f)
{
	munmap(f->channel.area, FAKE_AREA);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Low bits of the index of the newest request that a queue retired; 0 of unknown QPs. */
static uint16_t
fake_newest(struct fake *f, const struct fake_wc *wc)
{
	const struct urn_abi_wq *hdr;
	const struct fake_qp *q;

	if (wc->qpn < 0x100 || wc->qpn >= 0x100 + FAKE_OBJS || fake_qp(f, wc->qpn)->qpn == 0)
		return 0;
	q = fake_qp(f, wc->qpn);
	hdr = fake_at(f, wc->opcode & URN_WCO_RECV ? q->rq_off : q->sq_off);
	return (uint16_t)(atomic_load(wc->opcode & URN_WCO_RECV ? &hdr->done : &hdr->cons) - 1);
}

bool
fake_try_complete(struct fake *f, uint32_t handle, const struct fake_wc *wc)
{
	struct fake_cq *q = fake_cq(f, handle);
	struct urn_abi_cq *hdr = fake_at(f, q->off);
	struct urn_abi_cqe *cqe = fake_at(f, q->off + URN_ABI_CQ_SLOTS);
	struct urn_abi_event ev = {.handle = handle, .cookie = q->cookie};
	uint32_t arm;

	if (q->prod - atomic_load_explicit(&hdr->cons, memory_order_acquire) >= q->entries)
		return false;
	cqe += q->prod & (q->entries - 1);
	cqe->wr_id = wc->wr_id;
	cqe->byte_len = wc->byte_len;
	cqe->imm = wc->imm;
	cqe->qp_num = wc->qpn;
	cqe->src_qp = wc->src_qp;
	cqe->vendor_err = wc->status ? URN_VE_NAK : 0;
	cqe->status = wc->status;
	cqe->opcode = wc->opcode;
	cqe->wc_flags = wc->flags;
	if (wc->flags & URN_WCF_BESIDE) {
		struct urn_abi_beside *b = fake_at(f, q->off + urn_abi_beside_off(q->entries));

		b += q->prod & (q->entries - 1);
		b->addr = (uintptr_t)wc->to;
		b->length = wc->byte_len;
		memcpy(b->data, wc->bytes, wc->byte_len);
	}
	cqe->wqe = fake_newest(f, wc);
	atomic_store_explicit(&cqe->phase, (uint8_t)((q->prod / q->entries & 1) ^ 1), memory_order_release);
	q->prod++;
	atomic_thread_fence(memory_order_seq_cst);
	arm = atomic_load(&hdr->arm);
	if (arm == URN_CQ_ARM_NEXT || (arm == URN_CQ_ARM_SOLICITED && (wc->solicited || wc->status)))
		if (atomic_exchange(&hdr->arm, URN_CQ_ARM_NONE) != URN_CQ_ARM_NONE)
			assert_int_equal(write(q->fd, &ev, sizeof(ev)), sizeof(ev));
	return true;
}

void
fake_complete(struct fake *f, uint32_t handle, const struct fake_wc *wc)
{
	assert_true(fake_try_complete(f, handle, wc));
}

const struct urn_abi_swqe *
fake_send_wqe(struct fake *f, uint32_t qpn)
{
	struct fake_qp *q = fake_qp(f, qpn);
	struct urn_abi_wq *hdr = fake_at(f, q->sq_off);

	if (atomic_load_explicit(&hdr->prod, memory_order_acquire) == q->sq_cons)
		return NULL;
	return fake_at(f, q->sq_off + URN_ABI_WQ_SLOTS + (q->sq_cons & (q->sq_entries - 1)) * q->sq_stride);
}

void
fake_retire(struct fake *f, uint32_t qpn, uint32_t n)
{
	struct fake_qp *q = fake_qp(f, qpn);
	struct urn_abi_wq *hdr = fake_at(f, q->sq_off);

	q->sq_cons += n;
	atomic_store_explicit(&hdr->cons, q->sq_cons, memory_order_release);
}

void
fake_finish(struct fake *f, uint32_t qpn)
{
	uint64_t wr_id = fake_send_wqe(f, qpn)->wr_id;

	fake_retire(f, qpn, 1);
	fake_complete(f, fake_qp(f, qpn)->send_cq, &(struct fake_wc){.wr_id = wr_id, .qpn = qpn});
}

const struct urn_abi_rwqe *
fake_take_recv(struct fake *f, uint32_t qpn)
{
	struct fake_qp *q = fake_qp(f, qpn);
	struct urn_abi_wq *hdr = fake_at(f, q->rq_off);
	uint32_t i = q->rq_cons;

	if (atomic_load_explicit(&hdr->prod, memory_order_acquire) == i)
		return NULL;
	atomic_store_explicit(&hdr->cons, ++q->rq_cons, memory_order_release);
	atomic_store_explicit(&hdr->done, q->rq_cons, memory_order_release);
	return fake_at(f, q->rq_off + URN_ABI_WQ_SLOTS + (i & (q->rq_entries - 1)) * q->rq_stride);
}

const struct urn_abi_rwqe *
fake_take_srq(struct fake *f, uint32_t handle, uint32_t qpn)
{
	struct fake_srq *q = fake_srq(f, handle);
	struct urn_abi_wq *hdr = fake_at(f, q->off);
	struct urn_abi_rwqe *wqe;
	uint32_t i = q->cons;

	if (atomic_load_explicit(&hdr->prod, memory_order_acquire) == i)
		return NULL;
	wqe = fake_at(f, q->off + URN_ABI_WQ_SLOTS + (i & (q->entries - 1)) * q->stride);
	wqe->taker = qpn;
	atomic_fetch_add(&((struct urn_abi_wq *)fake_at(f, fake_qp(f, qpn)->rq_off))->cons, 1);
	atomic_fetch_add(&((struct urn_abi_wq *)fake_at(f, fake_qp(f, qpn)->rq_off))->done, 1);
	atomic_store_explicit(&hdr->cons, ++q->cons, memory_order_release);
	return wqe;
}

unsigned int
fake_doorbells(struct fake *f, uint32_t *last)
{
	unsigned int rang = 0, t;

	for (t = 0; t < URN_ABI_DB_TOPS; t++) {
		uint64_t top = atomic_exchange(&f->db->top[t], 0);

		for (; top != 0; top &= top - 1) {
			unsigned int w = t * 64 + (unsigned int)__builtin_ctzll(top);
			uint64_t leaf = atomic_exchange(&f->db->leaf[w], 0);

			for (; leaf != 0; leaf &= leaf - 1) {
				rang++;
				if (last != NULL)
					*last = w * 64 + (unsigned int)__builtin_ctzll(leaf);
			}
		}
	}
	return rang;
}

void
fake_async(struct fake *f, uint32_t type, uint32_t handle, uint64_t cookie)
{
	struct urn_abi_event ev = {.type = type, .handle = handle, .cookie = cookie};

	assert_int_equal(write(f->async_fd, &ev, sizeof(ev)), sizeof(ev));
}

void
fake_fail_next(struct fake *f, enum urn_ctl_op op, int err, const char *why)
{
	f->fail_op = op;
	f->fail_err = err;
	f->fail_why = why;
}
