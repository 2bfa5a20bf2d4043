/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_af_xdp: packets straight from an interface's driver into our pool.
 *
 * The pool is the memory that the kernel writes to: an array of objects of one
 * page each. From a page go the object's and the mbuf's headers, our private
 * bytes, and the headroom of the mbuf and of XDP; what is left carries a RoCE
 * MTU of 2048. ethdev is not told an MTU: the PMD would change the interface's.
 */
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/numa.h"
#include "pmd_glue/pool.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The PMD fills its ring with as many packets, whatever is asked for. */
#define DESC 2048
#define XDP_HEADROOM 256u
#define ETH_VLAN_BYTES 18u

static int
permission(struct urn_err *err)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0 && errno == EAFNOSUPPORT) {
		urn_err_set(err, "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS); use "
				 "net_af_packet");
		return -1;
	}
	if (fd >= 0)
		close(fd);
	if (fd < 0 || !urn_have_cap(CAP_NET_ADMIN)) {
		urn_err_set(err,
			    "no permission to use AF_XDP (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF); "
			    "run as root");
		return -1;
	}
	return 0;
}

static int
af_xdp_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	char name[32];

	(void)cfg;
	if (urn_netdev_of(args, "iface", name, err) != 0)
		return -1;
	return permission(err);
}

static void
af_xdp_explain(const struct urn_port_config *cfg, struct urn_err *err)
{
	struct urn_err what = *err;
	char name[32] = "";

	(void)urn_devargs_get(cfg->device, "iface", name, sizeof(name));
	urn_err_set(err,
		    "%.130s; is %s used by another XDP program, its MTU or its peer's over "
		    "3400, or are there fewer queues? net_af_packet asks for less",
		    what.text, name);
}

static int
af_xdp_probed(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	uint32_t carries =
		urn_pool_room_page() - RTE_PKTMBUF_HEADROOM - XDP_HEADROOM - ETH_VLAN_BYTES;
	char name[32];
	int mtu;

	(void)info;
	if (urn_netdev_of(port->cfg.device, "iface", name, err) != 0)
		return -1;
	port->caps.socket = urn_numa_of_device(name);
	mtu = urn_netdev_mtu(name);
	if (mtu >= 0 && (uint32_t)mtu < carries)
		carries = (uint32_t)mtu;
	port->caps.mtu = (uint16_t)RTE_MIN(carries, port->caps.mtu);
	return 0;
}

static bool
af_xdp_link(struct urn_port *port)
{
	char name[32];

	return port->started && urn_devargs_get(port->cfg.device, "iface", name, sizeof(name)) &&
	       urn_netdev_running(name);
}

const struct urn_port_family urn_family_af_xdp = {
	.prefix = "net_af_xdp",
	.keys = " iface start_queue queue_count shared_umem xdp_prog busy_budget force_copy ",
	.mtu_max = 3500,
	.desc = DESC,
	.page_room = true,
	.rx_holds = true,
	.mac_fixed = true,
	.prepare = af_xdp_prepare,
	.explain = af_xdp_explain,
	.probed = af_xdp_probed,
	.link = af_xdp_link,
};
