/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of plugin.c, which test_unload.c finds by name. */
#ifndef URN_TEST_PLUGIN_H
#define URN_TEST_PLUGIN_H

/* returns: the number of devices */
int plugin_list(void);
/* returns: an open device, or NULL */
void *plugin_open(const char *path);
int plugin_close(void *device);

#endif
