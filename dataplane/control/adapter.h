/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapters: made, taken down. */
#ifndef URN_CONTROL_ADAPTER_H
#define URN_CONTROL_ADAPTER_H

#include "control/objects.h"

struct urn_adapter *urn_adapter_create(struct urn_dp *dp, unsigned int index,
				       const struct urn_adapter_config *cfg, struct urn_err *err);
/* Take an adapter down whose clients have all gone (urn_dp_destroy()). NULL is allowed. */
void urn_adapter_destroy(struct urn_adapter *a);
/* Enter the neighbours and routes of the adapter's configuration, which it forgets. returns: 0 or
 * -1 with *err (adapter_net.c) */
int urn_adapter_fix(struct urn_adapter *a, struct urn_err *err);
/*
 * Replace the adapter's routes, but for prefixes of its own addresses, which stay. Any thread.
 * returns: like urn_neigh_set_routes()
 */
int urn_adapter_set_routes(struct urn_adapter *a, const struct urn_neigh_route *route,
			   unsigned int n);
/* Value of a counter: the sum over the adapter's engines and tellers, from any thread.
 * (dataplane.c) */
uint64_t urn_adapter_count(const struct urn_adapter *a, enum urn_counter id);
/* Wait until no engine is in the middle of a turn that began before this call. */
void urn_adapter_barrier(struct urn_adapter *a);
/*
 * Bring a client's completions that are on their way between two engines (vectors) to their queues.
 * The adapter's lock is held during the call, which ends: only completions that were late at its
 * start are waited for. There are no more of them than the client's completion queues and send
 * queues have entries (struct urn_late_cqes); two calls to the engines bring a ring of them.
 */
void urn_adapter_pass_completions(const struct urn_client *c, uint32_t from, uint32_t to);

#endif
