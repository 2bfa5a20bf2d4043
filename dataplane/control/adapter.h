/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapters: made, taken down. */
#ifndef URN_CONTROL_ADAPTER_H
#define URN_CONTROL_ADAPTER_H

#include "control/objects.h"

struct urn_adapter *urn_adapter_create(struct urn_dp *dp, unsigned int index,
				       const struct urn_adapter_config *cfg, struct urn_err *err);
void urn_adapter_destroy(struct urn_adapter *a);
/* Wait until no engine is in the middle of a turn that began before this call. */
void urn_adapter_barrier(struct urn_adapter *a);
/*
 * Bring a client's completions on their way between two engines (vectors) to their queues. The
 * adapter's lock is held that long: they are those that were late when it began, which are no
 * more than its completion queues and send queues have entries (struct urn_late_cqes), a ring of
 * them between two calls to the engines.
 */
void urn_adapter_pass_completions(const struct urn_client *c, uint32_t from, uint32_t to);

#endif
