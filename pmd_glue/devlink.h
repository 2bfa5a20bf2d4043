/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel's devlink whether a PCI device keeps RoCE for itself (enable_roce). */
#ifndef URN_PMD_GLUE_DEVLINK_H
#define URN_PMD_GLUE_DEVLINK_H

#include <stddef.h>

/* returns 1: enable_roce is on; 0: off; -1: the device or kernel does not say */
int urn_devlink_roce(const char *pci_addr);
/*
 * The value of enable_roce in a reply of the kernel (DEVLINK_CMD_PARAM_GET): the one in
 * effect since the driver's initialisation. Values of urn_devlink_roce(). The reply
 * may be anything: nothing outside of its `len` bytes is read.
 */
int urn_devlink_parse(const void *reply, size_t len);

#endif
