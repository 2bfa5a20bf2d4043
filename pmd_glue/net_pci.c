/* SPDX-License-Identifier: BSD-3-Clause */
/* Any PCI device that DPDK drives by itself: virtio, Intel, ... through VFIO or UIO. */
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/pci.h"
#include "pmd_glue/steer.h"

#include <rte_eal.h>

#include <linux/capability.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Name the kind of a device that is no network device by its class (PCI Code and ID Assignment
 * Specification, 1). returns: NULL: the device may be one */
static const char *
no_nic(unsigned int class)
{
	static const struct {
		unsigned int class, shift; /* code without its low `shift` bits */
		const char *text;
	} none[] = {
		{0x0600, 8, "a host bridge"},
		{0x01, 16, "for storage"},
		{0x03, 16, "for a display"},
		{0x04, 16, "for sound or video"},
		{0x05, 16, "memory"},
		{0x06, 16, "a bridge"},
		{0x07, 16, "a serial or parallel port"},
		{0x08, 16, "a part of the machine itself"},
		{0x0c, 16, "the controller of a serial bus"},
	};

	for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (class >> none[i].shift == none[i].class)
			return none[i].text;
	return NULL;
}

int
urn_pci_ready(const char *device, char addr[URN_PCI_ADDR], struct urn_err *err)
{
	const char *what;

	if (urn_pci_addr(device, addr) != 0 || !urn_pci_there(addr)) {
		urn_err_set(err, "there is no such PCI device on this machine; \"lspci -D\" lists "
				 "them");
		return -1;
	}
	what = no_nic(urn_pci_class(addr));
	if (what != NULL) {
		urn_err_set(err,
			    "the device is %s, no network device; \"lspci -D\" lists those as "
			    "Ethernet or Network controller",
			    what);
		return -1;
	}
	if (!rte_eal_has_pci()) {
		urn_err_set(err, "DPDK was started without PCI; name the address when it starts");
		return -1;
	}
	return 0;
}

static int
pci_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	char addr[URN_PCI_ADDR], driver[32];
	const char *rest = strchr(cfg->device, ',');

	if (urn_pci_ready(cfg->device, addr, err) != 0)
		return -1;
	/* virtio works through UIO, VFIO or the device's I/O ports: with any driver but the kernel's. */
	urn_pci_driver(addr, driver, sizeof(driver));
	if (strncmp(driver, "vfio", 4) != 0 && strncmp(driver, "uio", 3) != 0 &&
	    strcmp(driver, "igb_uio") != 0) {
		urn_err_set(err,
			    "the device belongs to %s; give it to DPDK first: \"dpdk-devbind.py "
			    "-b vfio-pci %s\"",
			    driver[0] != '\0' ? driver : "no driver", addr);
		return -1;
	}
	snprintf(args, URN_DEVARGS_MAX, "%s%s", addr, rest != NULL ? rest : "");
	return 0;
}

/* Say which right is missing for vfio, if one is. */
static void
pci_explain(const struct urn_port_config *cfg, struct urn_err *err)
{
	char addr[URN_PCI_ADDR], driver[32], file[32];
	const struct urn_err why = *err;
	struct rlimit lock;
	bool may;

	if (urn_pci_addr(cfg->device, addr) != 0)
		return;
	urn_pci_driver(addr, driver, sizeof(driver));
	if (strncmp(driver, "vfio", 4) != 0)
		return;
	may = urn_pci_vfio(addr, file, sizeof(file));
	if (file[0] == '\0')
		urn_err_set(err, "%.180s; no IOMMU has the device: turn the machine's on",
			    why.text);
	else if (!may)
		urn_err_set(err, "%.180s; give %s to the user (chown)", why.text, file);
	else if (getrlimit(RLIMIT_MEMLOCK, &lock) == 0 && lock.rlim_cur != RLIM_INFINITY &&
		 !urn_have_cap(CAP_IPC_LOCK))
		urn_err_set(err,
			    "%.160s; locked memory is limited to %llu KiB (ulimit -l), and must "
			    "hold all of DPDK's",
			    why.text, (unsigned long long)lock.rlim_cur / 1024);
}

static int
pci_probed(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	(void)err;
	/* An 82574 by MSI-X raises one interrupt for its link, and no further one (seen with
	 * qemu's): the link is asked for. */
	if (info != NULL && strcmp(info->driver_name, "net_e1000_em") == 0)
		port->caps.link_interrupt = false;
	/* When the PMD cannot isolate, all frames arrive and the parser drops the others. */
	if (port->cfg.steer && urn_steer_isolate(port->id, NULL) == 0)
		port->family_data = port; /* says that rules are needed */
	return 0;
}

static int
pci_started(struct urn_port *port, struct urn_err *err)
{
	/* No kernel driver shares the device: its MAC is ours alone. */
	struct urn_steer s = {.queues = port->caps.queues, .mac_ours = true};

	if (port->family_data == NULL)
		return 0;
	memcpy(s.mac, port->mac, sizeof(s.mac));
	return urn_steer_apply(port->id, &s, err);
}

const struct urn_port_family urn_family_pci = {
	.mtu_max = URN_PORT_MTU_MAX,
	.mtu_configure = true,
	.desc = 1024,
	/* Most of Intel's cards know lengths of receive buffers in KiB, and would cut the longest
	 * frame in two; virtio's header lies in the buffer, before the frame. */
	.buffer_unit = 1024,
	.rx_holds = true,
	.prepare = pci_prepare,
	.explain = pci_explain,
	.probed = pci_probed,
	.started = pci_started,
};
