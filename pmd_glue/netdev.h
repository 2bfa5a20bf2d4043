/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about its network interfaces and about our rights. */
#ifndef URN_PMD_GLUE_NETDEV_H
#define URN_PMD_GLUE_NETDEV_H

#include "pmd_glue/port.h"

/* MTU of an interface in bytes; -1: there is none of that name */
int urn_netdev_mtu(const char *name);
/* MAC of an interface. returns 0, or -1: there is none of that name */
int urn_netdev_mac(const char *name, uint8_t mac[6]);
/* Is it up, with a carrier? */
bool urn_netdev_running(const char *name);
/*
 * The interface that a device line names with `key`: present in args, and
 * there. name: at least 32 bytes. returns 0, or -1 with *err
 */
int urn_netdev_of(const char *args, const char *key, char name[32], struct urn_err *err);
/* Has this process a capability (CAP_NET_ADMIN, ...) in effect? */
bool urn_have_cap(unsigned int cap);

#endif
