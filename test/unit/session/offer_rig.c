/* SPDX-License-Identifier: BSD-3-Clause */
#include "offer_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

enum { BEGIN_MS = 1000 };

uint64_t clock_ms;
unsigned int made, told, posted, returned, asked;
int make_err, init_err;
uint32_t told_flags;
bool lacking;
struct ibv_qp real_qp, ctl_qp;
struct ibv_wc waiting;
static struct ibv_context below;

/* ---- queue pairs, as the test has them */

uint64_t __wrap_urn_sv_now_ms(void);
void __wrap_urn_sv_path_end(struct urn_sv_path *p, bool real);
bool __wrap_urn_sv_ready(const struct urn_sv_qp *q, uint32_t adapter);
int __wrap_urn_sv_real_anew(struct urn_sv_path *p);
int __wrap_urn_sv_ctl_make(struct urn_sv_qp *q, struct urn_sv_path *p);
int __wrap_urn_sv_path_init(struct urn_sv_path *p);
int __wrap_urn_sv_path_rtr(struct urn_sv_qp *q, const struct urn_sv_path *p,
			   const struct urn_sv_ends *to);
int __wrap_urn_sv_ctl_connect(struct urn_sv_qp *q, struct urn_sv_path *p,
			      const struct urn_sv_ends *to);
void __wrap_urn_sv_control_send(struct urn_sv_qp *q, const void *bytes, uint32_t length);
void __wrap_urn_sv_after(struct urn_sv_qp *q);
void __wrap_urn_sess_fail_back(struct urn_sess_conn *c);
int __wrap_urn_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

uint64_t
__wrap_urn_sv_now_ms(void)
{
	return clock_ms;
}

void
__wrap_urn_sv_path_end(struct urn_sv_path *p, bool real)
{
	if (real)
		p->real = NULL;
	if (p->ctl != NULL)
		LIST_REMOVE(p, ctl_link);
	p->ctl = NULL;
}

bool
__wrap_urn_sv_ready(const struct urn_sv_qp *q, uint32_t adapter)
{
	(void)q, (void)adapter;
	asked++;
	return !lacking;
}

int
__wrap_urn_sv_real_anew(struct urn_sv_path *p)
{
	made++;
	p->real = &real_qp;
	return 0;
}

int
__wrap_urn_sv_ctl_make(struct urn_sv_qp *q, struct urn_sv_path *p)
{
	if (make_err != 0)
		return make_err;
	p->ctl = &ctl_qp;
	LIST_INSERT_HEAD(&q->ctx->ctl_bucket[CTL % URN_SV_BUCKETS], p, ctl_link);
	return 0;
}

int
__wrap_urn_sv_path_init(struct urn_sv_path *p)
{
	(void)p;
	return init_err;
}

int
__wrap_urn_sv_path_rtr(struct urn_sv_qp *q, const struct urn_sv_path *p,
		       const struct urn_sv_ends *to)
{
	(void)q, (void)p, (void)to;
	return 0;
}

int
__wrap_urn_sv_ctl_connect(struct urn_sv_qp *q, struct urn_sv_path *p, const struct urn_sv_ends *to)
{
	(void)q, (void)p, (void)to;
	return 0;
}

void
__wrap_urn_sv_control_send(struct urn_sv_qp *q, const void *bytes, uint32_t length)
{
	struct urn_sess_msg m;

	assert_int_equal(urn_sess_wire_get(bytes, length, q->peer.number, &m), URN_SESS_V_OK);
	told_flags = m.offer.flags;
	told++;
}

void
__wrap_urn_sv_after(struct urn_sv_qp *q)
{
	(void)q;
}

int
__wrap_urn_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp, (void)attr, (void)mask;
	return 0;
}

void
__wrap_urn_sess_fail_back(struct urn_sess_conn *c)
{
	(void)c;
	returned++;
}

static int
poll_one(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq, (void)n;
	*wc = waiting;
	waiting.qp_num = 0;
	return wc->qp_num != 0 ? 1 : 0;
}

static int
post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)wr, (void)bad;
	assert_ptr_equal(qp, &ctl_qp);
	posted++;
	return 0;
}

/* ---- a connection whose second path is lost */

int
offer_setup(void **state)
{
	struct offer_rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	clock_ms = BEGIN_MS;
	made = told = posted = returned = asked = 0;
	make_err = init_err = 0;
	lacking = false;
	below.ops.poll_cq = poll_one;
	below.ops.post_recv = post_recv;
	ctl_qp = (struct ibv_qp){.context = &below, .qp_num = CTL};
	real_qp.qp_num = REAL;
	r->cq.context = &below;
	r->ctx.log_fd = -1;
	r->ctx.options.probe = PROBE_MS;
	r->ctx.ctl_cq[0] = &r->cq;
	r->pd.remote_mr[0] = &r->mr;
	r->q.ctx = &r->ctx;
	r->q.pd = &r->pd;
	r->q.mode = URN_SV_SESSION;
	r->q.lower = true;
	r->q.ibv.state = IBV_QPS_RTS;
	r->q.ibv.qp_num = NUMBER;
	r->q.c.state = URN_SESS_CONNECTED;
	r->q.c.open = true;
	r->q.c.alive = 1;
	r->q.memory = calloc(1, URN_SV_AT_REST);
	assert_non_null(r->q.memory);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		r->q.path[i].qp = &r->q;
		r->q.path[i].mine = i / URN_SV_ADAPTERS;
		r->q.path[i].theirs = i % URN_SV_ADAPTERS;
		urn_sess_heal_begin(&r->q.path[i].heal.end);
	}
	r->q.memory_mr[0] = &r->mr;
	*state = r;
	return 0;
}

int
offer_teardown(void **state)
{
	struct offer_rig *r = *state;

	free(r->q.memory);
	free(r);
	return 0;
}
