/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL, the ports, the switches; and their counters. */
#ifndef URNIC_SWITCH_RIG_H
#define URNIC_SWITCH_RIG_H

#include "opts.h"

struct sw_rig {
	const struct sw_opts *o;
	struct urn_fabric *fabric;
	struct rte_mempool *copies;
	struct urn_port
		*dev[SW_MAX_PORTS + 2 * SW_MAX_LINKS]; /* by index of the port; NULL: a link */
	struct urn_switch *sw[URN_FABRIC_MAX_SWITCHES];
	uint16_t number[SW_MAX_PORTS + 2 * SW_MAX_LINKS]; /* number of the port in its switch */
};

/* Bring everything up. returns: 0, or -1 with *err (call sw_rig_close all the same) */
int sw_rig_open(struct sw_rig *rig, const struct sw_opts *o, struct urn_err *err);
void sw_rig_close(struct sw_rig *rig);

/* Print all counters. seconds: time since polling began. */
void sw_report(const struct sw_rig *rig, double seconds);

#endif
