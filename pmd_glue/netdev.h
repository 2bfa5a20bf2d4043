/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's network interfaces, and the capabilities of this process. */
#ifndef URN_PMD_GLUE_NETDEV_H
#define URN_PMD_GLUE_NETDEV_H

#include "pmd_glue/port.h"

/* MTU of an interface in bytes; -1: there is none of that name */
int urn_netdev_mtu(const char *name);
/* MAC of an interface. returns 0, or -1: there is none of that name */
int urn_netdev_mac(const char *name, uint8_t mac[6]);
/* True when the interface is a bridge of the kernel. */
bool urn_netdev_is_bridge(const char *name);
/* True when the interface is up, with a carrier. */
bool urn_netdev_running(const char *name);
/*
 * The interface that a device line names with `key`: args must have the key, and the
 * interface must exist. name: at least 32 bytes. returns 0, or -1 with *err
 */
int urn_netdev_of(const char *args, const char *key, char name[32], struct urn_err *err);
/* True when this process has a capability (CAP_NET_ADMIN, ...) in effect. */
bool urn_have_cap(unsigned int cap);

#endif
