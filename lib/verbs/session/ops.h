/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of the provider of sessions that make, change or ask objects. */
#ifndef URN_VERBS_SESSION_OPS_H
#define URN_VERBS_SESSION_OPS_H

#include "verbs/session/sv.h"

/* ---- query.c */

/* Remember what outlives the primary adapter. returns: 0 or an errno value with its text */
int urn_sv_remember(struct urn_sv_ctx *ctx);
int urn_sv_query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr);
int urn_sv_query_port(struct ibv_context *c, struct ibv_port_attr *attr);
int urn_sv_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid);
int urn_sv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init);
int urn_sv_get_async_event(struct ibv_context *c, struct ibv_async_event *event);

/* ---- cm.c */

extern const struct urn_verbs_cm_ops urn_sv_cm;

/* ---- memory.c */

struct ibv_pd *urn_sv_alloc_pd(struct ibv_context *c);
int urn_sv_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *urn_sv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			     unsigned int access);
int urn_sv_dereg_mr(struct ibv_mr *mr);
struct ibv_mw *urn_sv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urn_sv_dealloc_mw(struct ibv_mw *mw);
struct ibv_ah *urn_sv_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr);
int urn_sv_destroy_ah(struct ibv_ah *ah);
struct ibv_srq *urn_sv_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr,
				  const struct ibv_cq *cq);
int urn_sv_modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask);
int urn_sv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int urn_sv_destroy_srq(struct ibv_srq *srq);

/* ---- calls.c */

/* A call of the program begins that makes, changes or ends objects; the lock is not held. */
void urn_sv_enter(struct urn_sv_ctx *ctx);
/* Begin a call that does not wait, and needs the primary adapter alone. returns: false: that is
 * lost, and no call has begun */
bool urn_sv_enter_now(struct urn_sv_ctx *ctx);
/* The call ends. */
void urn_sv_exit(struct urn_sv_ctx *ctx);
/*
 * Let new calls wait, or go on; for the thread, with the lock.
 *
 * replaces: an adapter is to be replaced, or is being given the program's objects
 * now: ms
 * returns: ms: when to call again at the latest; UINT64_MAX: no need to
 */
uint64_t urn_sv_hold(struct urn_sv_ctx *ctx, bool replaces, uint64_t now);
/* The operations of the provider's table, each in such a call. */
int urn_sv_in_query_port(struct ibv_context *c, struct ibv_port_attr *attr);
int urn_sv_in_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid);
struct ibv_pd *urn_sv_in_alloc_pd(struct ibv_context *c);
int urn_sv_in_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *urn_sv_in_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access);
int urn_sv_in_dereg_mr(struct ibv_mr *mr);
struct ibv_ah *urn_sv_in_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr);
int urn_sv_in_destroy_ah(struct ibv_ah *ah);
struct ibv_comp_channel *urn_sv_in_create_channel(struct ibv_context *c);
int urn_sv_in_destroy_channel(struct ibv_comp_channel *channel);
struct ibv_cq_ex *urn_sv_in_create_cq(struct ibv_context *c,
				      const struct ibv_cq_init_attr_ex *attr);
int urn_sv_in_resize_cq(struct ibv_cq *cq, uint32_t cqe);
struct ibv_srq *urn_sv_in_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr,
				     const struct ibv_cq *cq);
int urn_sv_in_destroy_srq(struct ibv_srq *srq);
struct ibv_qp *urn_sv_in_create_qp(struct ibv_qp_init_attr_ex *attr);
int urn_sv_in_modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
int urn_sv_in_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		       struct ibv_qp_init_attr *init);
int urn_sv_in_destroy_qp(struct ibv_qp *qp);

#endif
