/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that change while programs run, each in the thread that owns it: for commands and for a
 * configuration that is read again. Call from a thread that polls no engine. */
#ifndef URNICD_APPLY_H
#define URNICD_APPLY_H

#include "rig.h"

struct urn_adapter;

/* Set the way in which an engine waits. */
void nicd_apply_engine(struct urn_engine *e, const struct urn_engine_config *cfg);
/* Set packets in flight of a queue pair, and the least time to a repeat, ns, of an adapter; 0:
 * unchanged. Packets in flight beyond a smaller window are acknowledged as usual. */
void nicd_apply_adapter(const struct urn_adapter *a, uint32_t window, uint64_t rto_ns);
/* Set the impairment of a switch's port in some directions. sw: number of the switch; dir: by enum
 * urn_switch_dir. returns: 0 or a negative errno value */
int nicd_apply_impair(const struct nicd_rig *rig, unsigned int sw, uint16_t port, const bool dir[2],
		      const struct urn_impair_config *cfg);

#endif
