/* SPDX-License-Identifier: BSD-3-Clause */
/* Software completion queues and their channels. */
#ifndef URN_VERBS_SESSION_CQ_H
#define URN_VERBS_SESSION_CQ_H

#include "verbs/session/sv.h"

/* ---- channel.c */

struct ibv_comp_channel *urn_sv_create_channel(struct ibv_context *c);
int urn_sv_destroy_channel(struct ibv_comp_channel *channel);
int urn_sv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq);
/* The descriptor is readable no longer, unless an event is due; the lock is held. */
void urn_sv_channel_calm(struct urn_sv_ctx *ctx, const struct urn_sv_channel *ch);
/* Read the events of adapters' channels; for the thread. */
void urn_sv_channel_events(struct urn_sv_ctx *ctx);
/* Let a queue's event be handed out; the lock is held. */
void urn_sv_fire(struct urn_sv_cq *cq);
int urn_sv_req_notify(struct ibv_cq *cq, int solicited_only);

/* ---- cq.c */

struct ibv_cq_ex *urn_sv_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr);
int urn_sv_resize_cq(struct ibv_cq *cq, uint32_t cqe);
int urn_sv_destroy_cq(struct ibv_cq *cq);
int urn_sv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
/*
 * A queue pair with so many requests here, and so many in each queue pair below, is on the queue
 * now. returns: 0 or an errno value with its text
 */
int urn_sv_cq_load(struct urn_sv_cq *cq, uint32_t here, uint32_t below);
/* That queue pair is gone. */
void urn_sv_cq_unload(struct urn_sv_cq *cq, uint32_t here, uint32_t below);
/* Forget the completions of a queue pair. */
void urn_sv_cq_clean(struct urn_sv_cq *cq, const struct urn_sv_qp *qp);
/* Put a completion in; there is room for it. solicited: its sender asked for an event */
void urn_sv_push(struct urn_sv_cq *cq, const struct ibv_wc *wc, struct urn_sv_qp *qp, bool send,
		 bool solicited);
/* Take a completion out. returns: false: there is none */
bool urn_sv_pop(struct urn_sv_cq *cq, struct urn_sv_wc *out);
/* Take all completions of an adapter's queue. */
void urn_sv_cq_drain(struct urn_sv_cq *cq, uint32_t adapter);
/* Take completions of the adapters. */
void urn_sv_progress(struct urn_sv_cq *cq);
/* Set the operations of ibv_start_poll() and so on (cq_ex.c). */
void urn_sv_cq_ex(struct urn_sv_cq *cq);

#endif
