/* SPDX-License-Identifier: BSD-3-Clause */
/* An object that is loaded at run time, and contains urnic's library: test_unload.c loads and unloads it. */
#include "plugin.h"

#include <urnic/attach.h>

int
plugin_list(void)
{
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	ibv_free_device_list(list);
	return n;
}

void *
plugin_open(const char *path)
{
	return urn_attach_connect(path, "a");
}

int
plugin_close(void *device)
{
	return ibv_close_device(device);
}
