/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ConnectX by the mlx5 PMD, which works beside the kernel's driver: through
 * libibverbs and its mlx5 provider. So a port needs, in this order, the PCI
 * device; mlx5_core with its interface; mlx5_ib with its RDMA device; the
 * provider library that knows it; rights; and, since the NIC would keep RoCEv2
 * frames for its own transport, enable_roce off.
 *
 * In isolated mode the kernel keeps all other traffic, ARP included. With the
 * kernel's own MAC its neighbour table serves both; with a MAC of our own,
 * address resolution is ours too (steer.c).
 */
#include "pmd_glue/devlink.h"
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/pci.h"
#include "pmd_glue/steer.h"

#include <infiniband/verbs.h>
#include <linux/capability.h>

#include <stdio.h>
#include <string.h>

#define MLX5_VENDOR 0x15b3

bool
urn_mlx5_is(const char *device)
{
	char addr[URN_PCI_ADDR];

	return urn_pci_addr(device, addr) == 0 && urn_pci_vendor(addr) == MLX5_VENDOR;
}

/* True when libibverbs, with its providers, knows an RDMA device. */
static bool
verbs_knows(const char *rdma)
{
	struct ibv_device **list;
	bool found = false;
	int i, n = 0;

	list = ibv_get_device_list(&n);
	for (i = 0; list != NULL && i < n; i++)
		found |= strcmp(ibv_get_device_name(list[i]), rdma) == 0;
	if (list != NULL)
		ibv_free_device_list(list);
	return found;
}

/* Check all that must stand between the PCI device and the PMD. returns 0, or -1 with *err: the part that is missing */
static int
chain_check(const char *addr, struct urn_err *err)
{
	char driver[32], netdev[32], rdma[64];

	urn_pci_driver(addr, driver, sizeof(driver));
	urn_pci_child(addr, "net", netdev, sizeof(netdev));
	urn_pci_child(addr, "infiniband", rdma, sizeof(rdma));
	if (strcmp(driver, "mlx5_core") != 0)
		urn_err_set(err,
			    "the device belongs to %s, and the mlx5 driver works through the "
			    "kernel's: load it (modprobe mlx5_core)",
			    driver[0] != '\0' ? driver : "no driver");
	else if (netdev[0] == '\0')
		urn_err_set(err, "the kernel shows no network interface for it; is its port "
				 "InfiniBand? Set it to Ethernet (mlxconfig LINK_TYPE_P1=2)");
	else if (rdma[0] == '\0')
		urn_err_set(err,
			    "the kernel shows no RDMA device for %s; load mlx5_ib and "
			    "ib_uverbs (modprobe mlx5_ib ib_uverbs)",
			    netdev);
	else if (!verbs_knows(rdma))
		urn_err_set(err,
			    "libibverbs does not know %s of %s; install libmlx5 (package "
			    "ibverbs-providers)",
			    rdma, netdev);
	else if (!urn_have_cap(CAP_NET_RAW))
		urn_err_set(err,
			    "no permission to send raw frames on %s (CAP_NET_RAW); run as root",
			    netdev);
	else
		return 0;
	return -1;
}

static int
mlx5_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	const char *rest = strchr(cfg->device, ',');
	char addr[URN_PCI_ADDR];

	if (urn_pci_ready(cfg->device, addr, err) != 0 || chain_check(addr, err) != 0)
		return -1;
	if (urn_devlink_roce(addr) == 1) {
		urn_err_set(err,
			    "the NIC keeps RoCEv2 for itself (enable_roce); run \"devlink dev "
			    "param set pci/%s name enable_roce value false cmode driverinit\" "
			    "and \"devlink dev reload pci/%s\"",
			    addr, addr);
		return -1;
	}
	snprintf(args, URN_DEVARGS_MAX, "%s%s", addr, rest != NULL ? rest : "");
	return 0;
}

static int
mlx5_probed(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	(void)info;
	return port->cfg.steer ? urn_steer_isolate(port->id, err) : 0;
}

/* True when our MAC is the interface's own, and so the kernel's too. */
static bool
mac_is_kernels(const struct urn_port *port)
{
	char netdev[32], addr[URN_PCI_ADDR];
	uint8_t mac[6];

	if (urn_pci_addr(port->cfg.device, addr) != 0)
		return false;
	urn_pci_child(addr, "net", netdev, sizeof(netdev));
	return urn_netdev_mac(netdev, mac) == 0 && memcmp(mac, port->mac, 6) == 0;
}

static int
mlx5_started(struct urn_port *port, struct urn_err *err)
{
	struct urn_steer s = {.queues = port->caps.queues};

	if (!port->cfg.steer)
		return 0;
	memcpy(s.mac, port->mac, sizeof(s.mac));
	s.mac_ours = !mac_is_kernels(port);
	return urn_steer_apply(port->id, &s, err);
}

const struct urn_port_family urn_family_mlx5 = {
	.mtu_max = URN_PORT_MTU_MAX,
	.mtu_configure = true,
	.desc = 1024,
	.rx_holds = true,
	.rx_interrupt = true,
	.prepare = mlx5_prepare,
	.probed = mlx5_probed,
	.started = mlx5_started,
};
