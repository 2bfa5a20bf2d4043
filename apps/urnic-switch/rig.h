/* SPDX-License-Identifier: BSD-3-Clause */
/* The rig of the switches that the options name; and their counters. */
#ifndef URNIC_SWITCH_RIG_H
#define URNIC_SWITCH_RIG_H

#include "opts.h"

#include "common/rig.h"

struct sw_rig {
	const struct sw_opts *o;
	struct urn_config *cfg;	   /* made of *o (config.c); owner: this struct */
	struct urn_rig base;	   /* everything that cfg names, brought up */
	struct urn_fabric *fabric; /* polls the switches; owner: base */
	struct urn_switch **sw;	   /* by index in o->sw; owner: base */
	struct urn_port *dev[SW_MAX_PORTS + 2 * SW_MAX_LINKS]; /* by index of the port; NULL: a
								  link; owner: base */
	uint16_t number[SW_MAX_PORTS + 2 * SW_MAX_LINKS]; /* number of the port in its switch */
};

/* Make a configuration of the options, for urn_config_free(). returns: NULL with *err on failure */
struct urn_config *sw_config(const struct sw_opts *o, uint16_t *number, struct urn_err *err);

/* Bring everything up. returns: 0, or -1 with *err (call sw_rig_close all the same) */
int sw_rig_open(struct sw_rig *rig, const struct sw_opts *o, struct urn_err *err);
void sw_rig_close(struct sw_rig *rig);

/* Print all counters. seconds: time since polling began. */
void sw_report(const struct sw_rig *rig, double seconds);

#endif
