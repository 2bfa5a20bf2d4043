/* SPDX-License-Identifier: BSD-3-Clause */
/* net_pcap: receives from a capture file, transmits into one; or an interface by libpcap. */
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/numa.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const iface_keys[] = {"iface", "rx_iface", "rx_iface_in", "tx_iface"};

static int
read_check(const char *path, struct urn_err *err)
{
	if (access(path, R_OK) == 0)
		return 0;
	urn_err_set(err, "cannot read %.150s: %s", path, strerror(errno));
	return -1;
}

/* Check that the file can be written, before the PMD makes or empties it. */
static int
write_check(const char *path, struct urn_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	urn_err_set(err, "cannot write %.150s: %s", path, strerror(errno));
	return -1;
}

static int
pcap_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	char value[PATH_MAX], name[32];
	unsigned int i, given = 0;

	(void)cfg;
	if (urn_devargs_get(args, "rx_pcap", value, sizeof(value))) {
		given++;
		if (read_check(value, err) != 0)
			return -1;
	}
	if (urn_devargs_get(args, "tx_pcap", value, sizeof(value))) {
		given++;
		if (write_check(value, err) != 0)
			return -1;
	}
	for (i = 0; i < RTE_DIM(iface_keys); i++) {
		if (!urn_devargs_get(args, iface_keys[i], value, sizeof(value)))
			continue;
		given++;
		if (urn_netdev_of(args, iface_keys[i], name, err) != 0)
			return -1;
	}
	if (given > 0)
		return 0;
	urn_err_set(err, "neither file nor interface named; write \"rx_pcap=<file>\" or "
			 "\"tx_pcap=<file>\" or \"iface=<interface>\" behind the device");
	return -1;
}

/* A file takes frames of any size, an interface those up to its MTU. */
static int
pcap_probed(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	char name[32];
	unsigned int i;

	(void)info;
	(void)err;
	for (i = 0; i < RTE_DIM(iface_keys); i++) {
		int mtu = -1;

		if (urn_devargs_get(port->cfg.device, iface_keys[i], name, sizeof(name))) {
			mtu = urn_netdev_mtu(name);
			port->caps.socket = urn_numa_of_device(name);
		}
		if (mtu >= 0 && mtu < port->caps.mtu)
			port->caps.mtu = (uint16_t)mtu;
	}
	return 0;
}

const struct urn_port_family urn_family_pcap = {
	.prefix = "net_pcap",
	.keys = " rx_pcap tx_pcap rx_iface rx_iface_in tx_iface iface phy_mac infinite_rx ",
	.mtu_max = URN_PORT_MTU_MAX,
	.mtu_configure = true,
	.desc = 512,
	.mac_fixed = true,
	.prepare = pcap_prepare,
	.probed = pcap_probed,
};
