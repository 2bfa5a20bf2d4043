/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI devices as the kernel shows them. Used by mlx5.c and net_pci.c. */
#ifndef URN_PMD_GLUE_PCI_H
#define URN_PMD_GLUE_PCI_H

#include "pmd_glue/port.h"

/* "0000:3b:00.0" */
#define URN_PCI_ADDR 16

/* The full address in a device line, domain included. returns 0, or -1 if it is none */
int urn_pci_addr(const char *device, char addr[URN_PCI_ADDR]);
/* True when the host has such a device. */
bool urn_pci_there(const char *addr);
/* Vendor, 0 if unknown. */
unsigned int urn_pci_vendor(const char *addr);
/* Class code, 24 bits: 0x020000 is Ethernet; 0 if unknown. */
unsigned int urn_pci_class(const char *addr);
/* Kernel driver that is bound to the device; "" if none. */
void urn_pci_driver(const char *addr, char *out, size_t size);
/* First entry of a folder of the device ("net", "infiniband"); "" if there is none. */
void urn_pci_child(const char *addr, const char *folder, char *out, size_t size);

/*
 * Find the file by which vfio gives the device to a process: "/dev/vfio/11", "" if no IOMMU has the
 * device. returns: true: this process may read and write the file
 */
bool urn_pci_vfio(const char *addr, char *path, size_t size);

/* Check that the device is there, can be a network device, and that DPDK may use it. returns: 0 and
 * addr, or -1 with *err (net_pci.c) */
int urn_pci_ready(const char *device, char addr[URN_PCI_ADDR], struct urn_err *err);

/* True when the device is the PCI address of a ConnectX. */
bool urn_mlx5_is(const char *device);

#endif
