/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of an adapter: they attach, and all their objects are taken back when they go. */
#ifndef URN_CONTROL_CLIENT_H
#define URN_CONTROL_CLIENT_H

#include "control/objects.h"

/*
 * Make a client; who: its owner in another process; NULL: in this one. who->space is the client's
 * from now on; on failure it is released. A client in another process is known to nobody, its area to
 * no engine, before urn_client_start(). returns: NULL with *err and errno on failure
 */
struct urn_client *urn_client_create(struct urn_adapter *a, const struct urn_client_who *who,
				     struct urn_err *err);
/*
 * The client has mapped its area: seal the area against holes, show its doorbells to the
 * engines, and the client to all others. Does nothing the second time. Waits for a hole
 * that the client is punching. returns 0, or an errno value with *err: then only
 * urn_client_destroy() may follow
 */
int urn_client_start(struct urn_client *c, struct urn_err *err);
/*
 * Take back everything the client made, and detach the client from its adapter. The client's area
 * stays mapped and its calls fail with ENODEV until its channel is closed.
 */
void urn_client_orphan(struct urn_client *c);
/* Orphan the client, if it is not orphaned yet, and free it. */
void urn_client_destroy(struct urn_client *c);

/*
 * A number in the client's area proves that reads of the client's memory are really of its memory
 * (memory/direct.c): put it there, once the client has told where its area lies and has handed its
 * memory over. Without it reads are only slower. In the middle of a control call
 */
void urn_client_mark(struct urn_client *c);
/*
 * The client hands its memory over: regions may lie in all of it from now on. A call of its own,
 * once; the client has started. space: the client's from now on; NULL: it can't be reached, by why
 */
void urn_client_reach(struct urn_client *c, struct urn_space *space, const char *why);

/* True when this PD is the client's. */
bool urn_client_owns_pd(const struct urn_client *c, uint32_t pd);
/* True when the client may make objects in this PD: its own, or one that its family shares.
 * (ctl_import.c) */
bool urn_client_uses_pd(const struct urn_client *c, uint32_t pd);
/* The client's QP with this number. NULL: none. The adapter's lock is held. (ctl_qp.c) */
struct urn_qp *urn_client_qp(struct urn_client *c, uint32_t qpn);
/* True when this QP is the client's. The adapter's lock is held. (ctl_qp.c) */
bool urn_client_owns_qp(struct urn_client *c, uint32_t qpn);
/*
 * urn_area_alloc() from the client's area, in the middle of a control call: a slow allocation
 * lets other clients' calls in (urn_ctl_unlock()). returns like that, or EDQUOT (urn_quota_queue())
 */
int urn_client_alloc(struct urn_client *c, uint64_t bytes, uint64_t *off);

#endif
