/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <string.h>

int
sw_rig_open(struct sw_rig *rig, const struct sw_opts *o, struct urn_err *err)
{
	const struct urn_rig_opts opts = {
		.program = "urnic-switch", .copies = o->mbufs, .tap_stays_up = true};
	unsigned int n = 0;

	memset(rig, 0, sizeof(*rig));
	rig->o = o;
	rig->cfg = sw_config(o, rig->number, err);
	if (rig->cfg == NULL || urn_rig_start(&rig->base, rig->cfg, &opts, err) != 0 ||
	    urn_rig_ports(&rig->base, err) != 0)
		return -1;
	rig->fabric = rig->base.fabric[0];
	rig->sw = rig->base.sw;
	for (unsigned int i = 0; i < o->ports; i++)
		if (o->port[i].device[0] != '\0')
			rig->dev[i] = rig->base.port[n++];
	return 0;
}

void
sw_rig_close(struct sw_rig *rig)
{
	urn_rig_close(&rig->base, NULL, NULL);
	urn_config_free(rig->cfg);
	memset(rig, 0, sizeof(*rig));
}
