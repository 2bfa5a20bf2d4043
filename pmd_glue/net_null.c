/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_null: drops all frames sent. The PMD also makes up frames for every
 * receive unless told not to; the dataplane has no use for such frames.
 */
#include "pmd_glue/family.h"

#include <stdio.h>

static int
null_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	char value[8];

	snprintf(args, URN_DEVARGS_MAX, "%s", cfg->device);
	/* "copy" and "no-rx" exclude one another in the PMD. */
	if (urn_devargs_get(args, "copy", value, sizeof(value)))
		return 0;
	if (urn_devargs_default(args, "no-rx", "1") != 0) {
		urn_err_set(err, "the device arguments are too long");
		return -1;
	}
	return 0;
}

const struct urn_port_family urn_family_null = {
	.prefix = "net_null",
	.keys = " size copy no-rx ",
	.mtu_max = URN_PORT_MTU_MAX,
	.mtu_configure = true,
	.desc = 1024,
	.memory = true,
	.prepare = null_prepare,
};
