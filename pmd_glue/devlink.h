/* SPDX-License-Identifier: BSD-3-Clause */
/* One question to the kernel's devlink: does a PCI device keep RoCE for itself? */
#ifndef URN_PMD_GLUE_DEVLINK_H
#define URN_PMD_GLUE_DEVLINK_H

#include <stddef.h>

/* returns 1: enable_roce is on; 0: off; -1: the device or kernel does not say */
int urn_devlink_roce(const char *pci_addr);
/*
 * The value of enable_roce in a reply of the kernel (DEVLINK_CMD_PARAM_GET), as
 * it is in effect since the driver's initialisation. Same values. The reply
 * may be anything: nothing outside of its `len` bytes is read.
 */
int urn_devlink_parse(const void *reply, size_t len);

#endif
