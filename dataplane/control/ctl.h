/* SPDX-License-Identifier: BSD-3-Clause */
/* Control calls: a handler for each, and the one function that calls the handlers. */
#ifndef URN_CONTROL_CTL_H
#define URN_CONTROL_CTL_H

#include "control/lock.h"

/* ctl.c: one request, validated and carried out */
void urn_ctl_call(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep);

/* ctl_*.c: each returns 0 or an errno value; the adapter's lock is held */
typedef int urn_ctl_fn(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep);
urn_ctl_fn urn_ctl_hello, urn_ctl_query_port, urn_ctl_query_gid, urn_ctl_async_fd;
urn_ctl_fn urn_ctl_alloc_pd, urn_ctl_dealloc_pd, urn_ctl_reg_mr, urn_ctl_dereg_mr, urn_ctl_alloc_mw,
	urn_ctl_dealloc_mw;
urn_ctl_fn urn_ctl_create_cq, urn_ctl_resize_cq, urn_ctl_destroy_cq;
urn_ctl_fn urn_ctl_create_srq, urn_ctl_modify_srq, urn_ctl_query_srq, urn_ctl_destroy_srq;
urn_ctl_fn urn_ctl_create_qp, urn_ctl_modify_qp, urn_ctl_connect_qp, urn_ctl_query_qp, urn_ctl_destroy_qp;
urn_ctl_fn urn_ctl_create_ah, urn_ctl_destroy_ah;
urn_ctl_fn urn_ctl_share, urn_ctl_unshare;
urn_ctl_fn urn_ctl_create_channel, urn_ctl_destroy_channel;
urn_ctl_fn urn_ctl_cm_listen, urn_ctl_cm_connect, urn_ctl_cm_resolve, urn_ctl_cm_accept, urn_ctl_cm_reject,
	urn_ctl_cm_establish, urn_ctl_cm_disconnect, urn_ctl_cm_destroy, urn_ctl_cm_event;

/* An object of a client that goes was taken back: now and then let other clients' calls in. (client.c) */
void urn_ctl_took_back(struct urn_client *c);
/* Take back all keys of a client that goes: windows before the regions that they are bound to. (ctl_mem.c) */
void urn_ctl_take_back_keys(struct urn_client *c);

#endif
