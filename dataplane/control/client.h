/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of an adapter: they come, and all that they made is taken back when they go. */
#ifndef URN_CONTROL_CLIENT_H
#define URN_CONTROL_CLIENT_H

#include "control/objects.h"

/*
 * who: in another process; NULL: in this one. Its space is the client's, or is
 * released. A client in another process is known to nobody, and its area to no engine,
 * before urn_client_start(). returns: NULL with *err and errno on failure
 */
struct urn_client *urn_client_create(struct urn_adapter *a, const struct urn_client_who *who,
				     struct urn_err *err);
/*
 * The client has mapped its area: seal the area against holes, show its doorbells to the
 * engines and the client to all others. Does nothing the second time. Waits for a hole
 * that the client is punching. returns 0, or an errno value with *err: urn_client_destroy()
 * is all that is left to do
 */
int urn_client_start(struct urn_client *c, struct urn_err *err);
/*
 * Take back everything the client made, and let it go from its adapter. Its area
 * stays mapped, its calls fail with ENODEV, until its channel is closed.
 */
void urn_client_orphan(struct urn_client *c);
/* The same, if need be, and free it. */
void urn_client_destroy(struct urn_client *c);

/* Is this PD the client's? */
bool urn_client_owns_pd(const struct urn_client *c, uint32_t pd);
/* Is this QP the client's? The adapter's lock is held. (ctl_qp.c) */
bool urn_client_owns_qp(struct urn_client *c, uint32_t qpn);
/*
 * urn_area_alloc() from the client's area. In the midst of a control call: what takes
 * its time is done while others are let in (urn_ctl_unlock()).
 */
int urn_client_alloc(struct urn_client *c, uint64_t bytes, uint64_t *off);

#endif
