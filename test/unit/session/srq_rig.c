/* SPDX-License-Identifier: BSD-3-Clause */
#include "srq_rig.h"

#include "verbs/session/atomic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct srq_rig *srq_rig;

enum { ROUNDS = 64, TURNS = 200 };

/* ---- atomics: there are none */

void __wrap_urn_sv_record(struct urn_sv_qp *q, struct urn_sess_record *record);

void
__wrap_urn_sv_record(struct urn_sv_qp *q, struct urn_sess_record *record)
{
	(void)q;
	*record = (struct urn_sess_record){.log = true};
}

/* ---- the look-up */

int __wrap_urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id);
int __wrap_urn_cm_end_destroy(struct urn_cm_end *c, uint32_t id);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
uint64_t __wrap_urn_sv_now_ms(void);

int
__wrap_urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id)
{
	(void)c, (void)p;
	*id = 1;
	return 0;
}

int
__wrap_urn_cm_end_destroy(struct urn_cm_end *c, uint32_t id)
{
	(void)c, (void)id;
	return 0;
}

uint64_t
__wrap_urn_sv_now_ms(void)
{
	return srq_rig->now;
}

/* The peer answers a question. */
static void
reply(struct srq_rig *r, const struct urn_sv_qp *q)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_SIDR_REPLY,
				      .id = q->question,
				      .qpn = q->rtr.dest_qp_num,
				      .data_len = URN_SV_PEER_BYTES,
				      .reason = r->plain ? URN_CM_SIDR_UNSUPPORTED
							 : URN_CM_SIDR_VALID};
	struct urn_sv_peer peer = {.number = q->rtr.dest_qp_num};

	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		peer.path[i] = (struct urn_sv_ends){.qpn = peer.number + 100 * i,
						    .ctl_qpn = peer.number + 100 * i + 50};
	urn_sv_peer_put(ev.data, &peer);
	urn_sv_cm_event(&r->ctx, &ev);
}

/* A program waits for an answer: others do what they do meanwhile. */
int
__wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	struct urn_sv_qp *q;

	assert_ptr_equal(cond, &srq_rig->ctx.cond);
	pthread_mutex_unlock(lock);
	if (srq_rig->window != NULL)
		srq_rig->window(srq_rig);
	pthread_mutex_lock(lock);
	LIST_FOREACH(q, &srq_rig->ctx.qps, link)
		if (q->asked == URN_SV_ASKED)
			reply(srq_rig, q);
	return 0;
}

/* ---- messages */

struct srq_below_qp *
srq_used(struct srq_rig *r, uint32_t n)
{
	return (struct srq_below_qp *)urn_sv_used(&r->q[n])->real;
}

bool
srq_take(struct srq_rig *r, struct srq_below_qp *qp, const struct urn_sess_header *h)
{
	struct srq_below *b = (struct srq_below *)qp->ibv.srq;

	if (r->ctx.dead[srq_adapter(qp->ibv.context)] || b->head == b->tail ||
	    (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS))
		return false;
	qp->bytes[qp->has] = (uint32_t)sizeof(struct urn_sess_wire) +
			     (h->op == (uint8_t)IBV_WC_RECV_RDMA_WITH_IMM ? 0 : h->length);
	qp->taken[qp->has++] = b->wr_id[b->head % SRQ_ENTRIES];
	urn_sess_header_put(b->header[b->head++ % SRQ_ENTRIES], h);
	return true;
}

bool
srq_send(struct srq_rig *r, uint32_t n)
{
	struct srq_peer *p = &r->peer[n];
	struct srq_below_qp *qp = srq_used(r, n);
	struct urn_sess_header h = {.id = p->next,
				    .conn = SRQ_NUMBER + n,
				    .length = (uint32_t)p->next,
				    .epoch = (uint16_t)r->q[n].c.used,
				    .op = IBV_WC_RECV};
	uint32_t used = r->q[n].c.used;

	if (p->waits || p->next > p->all || !srq_take(r, qp, &h))
		return false;
	/* The adapter may die when the first packet has come, when all have and the peer does not
	 * know, when it does, and when the completion is there. */
	for (uint32_t at = 0; at < 4; at++) {
		srq_step(r);
		if (r->ctx.dead[srq_adapter(qp->ibv.context)] || used != r->q[n].c.used ||
		    qp->state == IBV_QPS_ERR)
			return true;
		if (at == 1)
			p->flushed = p->next++;
		if (at == 2)
			srq_complete(qp, IBV_WC_SUCCESS);
	}
	return true;
}

void
srq_tell(struct srq_rig *r, uint32_t n, uint32_t paths)
{
	struct srq_peer *p = &r->peer[n];
	struct urn_sess_report told = {.epoch = r->q[n].c.epoch + 1,
				       .flags = URN_SESS_R_LOG,
				       .paths = paths,
				       .sent = p->flushed,
				       .sends = p->flushed};

	p->paths = paths;
	p->waits = true;
	urn_sv_srq_shun(&r->q[n]);
	urn_sess_report(&r->q[n].c, &told);
	urn_sv_after(&r->q[n]);
}

/* The peer answers a REPORT that it heard, and goes on when we have migrated. */
static void
answer(struct srq_rig *r, uint32_t n)
{
	struct srq_peer *p = &r->peer[n];
	struct urn_sv_qp *q = &r->q[n];
	struct urn_sess_report told = {.epoch = q->c.epoch,
				       .flags = URN_SESS_R_LOG | URN_SESS_R_READY,
				       .paths = p->paths,
				       .sent = p->flushed,
				       .sends = p->flushed};

	if (q->mode != URN_SV_SESSION)
		return;
	if (q->c.state == URN_SESS_REPORTED && p->reported == q->c.epoch) {
		urn_sv_srq_shun(q);
		urn_sess_report(&q->c, &told);
	} else if (q->c.state == URN_SESS_ANSWERED) {
		urn_sess_migrated(&q->c, q->c.epoch);
	}
	urn_sv_after(q);
	if (!p->waits || !urn_sv_flows(q) || p->reported != q->c.epoch)
		return;
	p->waits = false;
	p->next = (p->flushed > p->received ? p->flushed : p->received) + 1;
}

void
srq_settle(struct srq_rig *r)
{
	for (int i = 0; i < ROUNDS; i++) {
		urn_sv_settle(&r->ctx);
		for (uint32_t a = 0; a < URN_SV_ADAPTERS; a++)
			urn_sv_control_poll(&r->ctx, a);
		for (uint32_t n = 0; n < r->connections; n++)
			answer(r, n);
	}
}

void
srq_post(struct srq_rig *r, uint64_t id)
{
	static uint8_t memory[SRQ_RECEIVES];
	struct ibv_sge sge = {(uintptr_t)&memory[id], 1 << 20, 0};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	assert_true(id < SRQ_RECEIVES && !r->posted[id]);
	assert_int_equal(urn_sv_post_srq_recv(&r->srq->ibv, &wr, &bad), 0);
	r->posted[id] = true;
}

void
srq_poll(struct srq_rig *r)
{
	struct ibv_wc wc;

	while (urn_sv_poll_cq(&r->cq.ibv, 1, &wc) == 1) {
		uint32_t n = wc.qp_num - SRQ_NUMBER;

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_true(n < r->connections && wc.wr_id < SRQ_RECEIVES);
		assert_true(r->posted[wc.wr_id]);
		r->posted[wc.wr_id] = false;
		/* FO-18: each Send once, and in order. */
		assert_int_equal(wc.byte_len, ++r->got[n]);
		srq_step(r);
		srq_post(r, wc.wr_id);
	}
}

/* ---- all messages */

struct srq_below *
srq_real(const struct srq_rig *r, uint32_t adapter)
{
	return (struct srq_below *)r->srq->shared[adapter]->ibv;
}

uint32_t
srq_waiting(const struct srq_rig *r, uint32_t adapter)
{
	return srq_real(r, adapter)->tail - srq_real(r, adapter)->head;
}

static bool
all_got(const struct srq_rig *r)
{
	for (uint32_t n = 0; n < r->connections; n++)
		if (r->got[n] != r->peer[n].all)
			return false;
	return true;
}

void
srq_run(struct srq_rig *r, uint32_t more)
{
	for (uint32_t n = 0; n < r->connections; n++)
		r->peer[n].all += more;
	for (int i = 0; i < TURNS && !all_got(r); i++) {
		for (uint32_t n = 0; n < r->connections; n++) {
			(void)srq_send(r, n);
			srq_step(r);
		}
		srq_settle(r);
		srq_step(r);
		srq_poll(r);
	}
	srq_settle(r);
	srq_poll(r);
	assert_true(all_got(r));
}

void
srq_whole(const struct srq_rig *r)
{
	assert_int_equal(r->srq->held, SRQ_RECEIVES);
	assert_int_equal(srq_waiting(r, r->srq->home), SRQ_RECEIVES);
	assert_int_equal(r->srq->kept, URN_SV_SLOT_NONE);
	for (uint32_t i = 0; i < r->srq->size; i++)
		assert_int_equal(r->srq->slot[i].state, URN_SV_SLOT_ON);
}

/* ---- deaths */

/* A dead adapter's library flushes what queue pairs had in hand, then what nobody took, to any of
 * them. */
static void
flush(struct srq_rig *r, uint32_t adapter)
{
	struct srq_below *b = (struct srq_below *)r->srq->shared[adapter]->ibv;
	struct srq_below_qp *heir = NULL;

	for (uint32_t n = 0; n < r->connections; n++)
		for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
			struct srq_below_qp *qp = (struct srq_below_qp *)r->q[n].path[i].real;

			if (r->q[n].path[i].mine != adapter || qp == NULL)
				continue;
			heir = qp;
			while (qp->has != 0)
				srq_complete(qp, IBV_WC_WR_FLUSH_ERR);
		}
	for (; heir != NULL && b->head != b->tail; b->head++) {
		heir->taken[heir->has++] = b->wr_id[b->head % SRQ_ENTRIES];
		srq_complete(heir, IBV_WC_WR_FLUSH_ERR);
	}
}

void
srq_kill(struct srq_rig *r, uint32_t adapter)
{
	if (r->srq->shared[adapter] != NULL)
		flush(r, adapter);
	r->ctx.dead[adapter] = true;
	for (uint32_t n = 0; n < r->connections; n++)
		if (r->q[n].c.state != URN_SESS_DEAD)
			urn_sv_lost(&r->q[n], adapter);
}

/* The paths of a connection on an adapter are made anew, and trusted. */
static void
renew(struct srq_rig *r, struct urn_sv_qp *q, uint32_t adapter)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &q->path[i];

		if (p->mine != adapter)
			continue;
		assert_int_equal(urn_sv_real_anew(p), 0);
		((struct srq_below_qp *)p->real)->state = IBV_QPS_RTS;
		assert_int_equal(urn_sv_ctl_make(q, p), 0);
		p->ctl_ok = true;
		p->ctl_busy = p->epoch = 0;
		urn_sess_up(&q->c, urn_sv_bit(q, i));
	}
	(void)r;
}

void
srq_heal(struct srq_rig *r, uint32_t adapter)
{
	if (!r->ctx.dead[adapter])
		return;
	srq_settle(r);
	srq_back(r, adapter);
}

void
srq_back(struct srq_rig *r, uint32_t adapter)
{
	urn_sv_cq_drain(&r->cq, adapter);
	for (uint32_t n = 0; n < r->connections; n++)
		for (uint32_t i = 0; i < URN_SV_PATHS; i++)
			if (r->q[n].path[i].mine == adapter)
				urn_sv_path_end(&r->q[n].path[i], true);
	urn_sv_srq_lost(r->srq, adapter);
	r->ctx.dead[adapter] = false;
	for (uint32_t n = 0; n < r->connections; n++)
		renew(r, &r->q[n], adapter);
}

void
srq_step(struct srq_rig *r)
{
	uint32_t at = r->step++;

	if (at == r->kill_at)
		srq_kill(r, r->kill);
	if (at == r->heal_at)
		srq_heal(r, r->kill);
	if (at == r->again_at && !r->ctx.dead[r->kill])
		srq_kill(r, r->again);
}

/* ---- beginning and end */

struct urn_sv_qp *
srq_init(struct srq_rig *r)
{
	uint32_t n = r->connections++;
	struct urn_sv_qp *q = &r->q[n];
	struct ibv_qp_init_attr_ex attr = {.send_cq = &r->cq.ibv,
					   .recv_cq = &r->cq.ibv,
					   .cap = {.max_send_wr = 4, .max_send_sge = 1},
					   .qp_type = IBV_QPT_RC};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	q->ctx = &r->ctx;
	q->pd = &r->pd;
	q->srq = r->own ? NULL : r->srq;
	q->can = true;
	q->cap = attr.cap;
	q->cap.max_recv_wr = q->cap.max_recv_sge = r->own ? SRQ_RECEIVES : 0;
	q->ibv.qp_num = SRQ_NUMBER + n;
	q->ibv.send_cq = q->ibv.recv_cq = &r->cq.ibv;
	r->peer[n] = (struct srq_peer){.next = 1, .paths = (1u << URN_SV_PATHS) - 1};
	assert_int_equal(urn_sv_rings(q), 0);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &q->path[i];

		*p = (struct urn_sv_path){.qp = q,
					  .mine = i / URN_SV_ADAPTERS,
					  .theirs = i % URN_SV_ADAPTERS,
					  .heal.end.own = 1};
		assert_int_equal(urn_sv_real_make(q, p, &attr), 0);
		assert_int_equal(urn_sv_ctl_make(q, p), 0);
	}
	LIST_INSERT_HEAD(&r->ctx.qps, q, link);
	assert_int_equal(urn_sv_modify_qp(&q->ibv, &init, IBV_QP_STATE | IBV_QP_PORT), 0);
	q->ibv.state = IBV_QPS_INIT; /* the front does so */
	return q;
}

int
srq_connect(struct urn_sv_qp *q)
{
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR,
				 .dest_qp_num = q->ibv.qp_num - SRQ_NUMBER + SRQ_PEER};
	int err = urn_sv_modify_qp(&q->ibv, &to, IBV_QP_STATE | IBV_QP_DEST_QPN);

	to.qp_state = IBV_QPS_RTS;
	if (err == 0)
		err = urn_sv_modify_qp(&q->ibv, &to, IBV_QP_STATE);
	if (err == 0)
		q->ibv.state = IBV_QPS_RTS;
	return err;
}

void
srq_begin(struct srq_rig *r, uint32_t connections)
{
	struct ibv_srq_attr attr = {.max_wr = SRQ_RECEIVES, .max_sge = 1};

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		r->below[i] = r->ctx.below[i] = urn_verbs_open(&srq_below_ops, r);
		assert_non_null(r->below[i]);
		r->ctx.ctl_cq[i] = ibv_create_cq(r->below[i], SRQ_ENTRIES, NULL, NULL, 0);
		r->cq.below[i] = ibv_create_cq(r->below[i], SRQ_ENTRIES, NULL, NULL, 0);
		r->pd.below[i] = ibv_alloc_pd(r->below[i]);
	}
	r->ctx.device.orig_attr.max_srq_wr = SRQ_ENTRIES;
	r->ctx.device.orig_attr.max_srq_sge = 4;
	r->pd.ibv.context = r->cq.ibv.context = &r->ctx.front.vctx.context;
	assert_int_equal(urn_sv_cq_load(&r->cq, SRQ_ENTRIES, 0), 0);
	r->srq = (struct urn_sv_srq *)urn_sv_create_srq(&r->pd.ibv, &attr, NULL);
	assert_non_null(r->srq);
	for (uint32_t i = 0; i < SRQ_RECEIVES; i++)
		srq_post(r, i);
	while (r->connections < connections)
		assert_int_equal(srq_connect(srq_init(r)), 0);
}

static void
end_qp(struct urn_sv_qp *q)
{
	if (q->mode == URN_SV_SESSION)
		urn_sess_fini(&q->c);
	urn_sv_srq_take_back(q);
	urn_sv_last_forget(q);
	LIST_REMOVE(q, link);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		urn_sv_path_end(&q->path[i], true);
	urn_sv_srq_quit(q);
	urn_sv_cq_clean((struct urn_sv_cq *)q->ibv.recv_cq, q);
	urn_sv_rings_free(q);
}

void
srq_leave(struct srq_rig *r)
{
	end_qp(&r->q[--r->connections]);
}

void
srq_end(struct srq_rig *r)
{
	while (r->connections != 0)
		srq_leave(r);
	assert_int_equal(urn_sv_destroy_srq(&r->srq->ibv), 0);
	free(r->srq);
	free(r->cq.ring);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		r->ctx.dead[i] = false;
		assert_int_equal(ibv_destroy_cq(r->cq.below[i]), 0);
		assert_int_equal(ibv_destroy_cq(r->ctx.ctl_cq[i]), 0);
		assert_int_equal(ibv_dealloc_pd(r->pd.below[i]), 0);
		assert_int_equal(ibv_close_device(r->below[i]), 0);
	}
}

int
srq_setup(void **state)
{
	struct srq_rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->kill_at = r->again_at = r->heal_at = SRQ_NEVER;
	r->ctx.log_fd = r->ctx.wake_fd = -1;
	r->now = 1;
	r->ctx.life = urn_sv_life_begin();
	assert_non_null(r->ctx.life);
	r->ctx.front.vctx.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	pthread_mutex_init(&r->ctx.lock, NULL);
	pthread_cond_init(&r->ctx.cond, NULL);
	*state = srq_rig = r;
	return 0;
}

int
srq_teardown(void **state)
{
	struct srq_rig *r = *state;

	close(r->ctx.front.vctx.context.async_fd);
	urn_sv_life_leave(r->ctx.life);
	free(r);
	return 0;
}
