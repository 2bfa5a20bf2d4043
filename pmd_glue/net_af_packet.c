/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_af_packet: a ring shared with the kernel's packet socket on an interface.
 *
 * ethdev's MTU stays at its default (configure refuses more). A frame passes when
 * the interface carries it and a slot of the ring holds it. The kernel puts a
 * received frame 66 bytes into its slot, the PMD puts a frame to send 32 bytes in;
 * the PMD wants a packet to hold a slot less 32 bytes, and slots to fill their block
 * without a gap.
 */
#include "pmd_glue/eal_log.h"
#include "pmd_glue/family.h"
#include "pmd_glue/filter.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/numa.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* 8 slots to a block of 9 pages: 4608 - 66 bytes are more than our largest frame. */
#define SLOT 4608u
#define BLOCK 36864u
#define SLOTS_PER_BLOCK (BLOCK / SLOT)
#define DESC 512u
/* TPACKET2_HDRLEN + the Ethernet header's room, rounded as the kernel does, less the header. */
#define SLOT_RX_OFF 66u
#define SLOT_TX_OFF (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
#define ETH_VLAN_BYTES 18u
_Static_assert(SLOT - SLOT_RX_OFF >= URN_PORT_MTU_MAX + ETH_VLAN_BYTES, "slot too small");
_Static_assert(BLOCK % SLOT == 0 && BLOCK % 4096 == 0, "gap at a block's end");

static int
permission(struct urn_err *err)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), why = errno;

	if (fd >= 0) {
		close(fd);
		/* A port that starts sets the interface's MAC and flags (SIOCSIFHWADDR, SIOCSIFFLAGS). */
		if (urn_have_cap(CAP_NET_ADMIN))
			return 0;
		why = EPERM;
	}
	if (why == EPERM || why == EACCES)
		urn_err_set(err,
			    "no permission to use an interface by a packet socket (CAP_NET_RAW for the "
			    "socket, CAP_NET_ADMIN for the interface's MAC and flags; both are wanted); run as "
			    "root, or use net_memif, which needs no rights");
	else
		urn_err_set(err, "cannot open a packet socket: %s", strerror(why));
	return -1;
}

static int
af_packet_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX],
		  struct urn_err *err)
{
	uint32_t desc = RTE_MAX(cfg->rx_desc, cfg->tx_desc);
	char name[32], frame[16];

	if (urn_netdev_of(args, "iface", name, err) != 0 || permission(err) != 0)
		return -1;
	desc = RTE_ALIGN_CEIL(desc != 0 ? desc : DESC, SLOTS_PER_BLOCK);
	/* A device line that sets one size must set all: the sizes depend on one another. */
	if (!urn_devargs_get(args, "framesz", frame, sizeof(frame)) &&
	    !urn_devargs_get(args, "blocksz", frame, sizeof(frame)) &&
	    (urn_devargs_default(args, "blocksz", "%u", BLOCK) != 0 ||
	     urn_devargs_default(args, "framesz", "%u", SLOT) != 0 ||
	     urn_devargs_default(args, "framecnt", "%u", desc) != 0))
		goto too_long;
	if (urn_devargs_default(args, "qpairs", "%u", RTE_MAX(cfg->queues, 1u)) != 0)
		goto too_long;
	return 0;
too_long:
	urn_err_set(err, "the device arguments are too long");
	return -1;
}

static int
af_packet_probed(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	unsigned long slot = SLOT, carries;
	char name[32], frame[16];
	int mtu;

	(void)info;
	if (urn_netdev_of(port->cfg.device, "iface", name, err) != 0)
		return -1;
	port->caps.socket = urn_numa_of_device(name);
	if (urn_devargs_get(port->cfg.device, "framesz", frame, sizeof(frame)))
		slot = strtoul(frame, NULL, 10);
	else if (urn_devargs_get(port->cfg.device, "blocksz", frame, sizeof(frame)))
		slot = 2048; /* the PMD's default */
	if (slot < 512 || slot > 32768) {
		urn_err_set(err, "slots of %lu bytes (framesz) are no use; leave framesz out",
			    slot);
		return -1;
	}
	port->room = (uint16_t)RTE_ALIGN_CEIL(slot - SLOT_TX_OFF + RTE_PKTMBUF_HEADROOM,
					      RTE_CACHE_LINE_SIZE);
	carries = slot - SLOT_RX_OFF - ETH_VLAN_BYTES;
	mtu = urn_netdev_mtu(name);
	if (mtu >= 0 && (unsigned long)mtu < carries)
		carries = (unsigned long)mtu;
	port->caps.mtu = (uint16_t)RTE_MIN(carries, (unsigned long)port->caps.mtu);
	return 0;
}

/*
 * The PMD joins the sockets of a port's queues to a fanout group. The group's number is
 * getpid() ^ interface index, 16 bits of it, and one number can't stand for two interfaces:
 * two processes on two interfaces may get the same number. No device argument changes it.
 */
static void
af_packet_explain(const struct urn_port_config *cfg, struct urn_err *err)
{
	char name[32];

	if (strstr(urn_eal_log_reason(), "PACKET_FANOUT") == NULL ||
	    urn_netdev_of(cfg->device, "iface", name, err) != 0)
		return;
	urn_err_set(err,
		    "interface %s: the fanout group of its packet sockets, numbered by this "
		    "process's id (%d) and the interface, is taken by another process with another "
		    "interface; start this program again, to get another process id",
		    name, (int)getpid());
}

/* ---- the filter */

static int
af_packet_filter(struct urn_port *port, const struct urn_filter_key *key, unsigned int n,
		 uint16_t vlan, struct urn_err *err)
{
	char name[32];
	int sockets;

	if (urn_netdev_of(port->cfg.device, "iface", name, err) != 0)
		return -1;
	sockets = urn_filter_classic_attach(if_nametoindex(name), key, n, vlan);
	if (sockets > 0)
		return 0;
	urn_err_set(err,
		    "no filter on the sockets of interface %s: %s; \"filter = no\" goes without",
		    name, sockets < 0 ? strerror(-sockets) : "DPDK's sockets are not found");
	return -1;
}

static int
af_packet_started(struct urn_port *port, struct urn_err *err)
{
	/* No address yet. The PMD opens its sockets once, at its probe. */
	if (!port->cfg.filter || port->filter != URN_PORT_FILTER_NONE)
		return 0;
	if (af_packet_filter(port, NULL, 0, 0, err) != 0)
		return -1;
	port->filter = URN_PORT_FILTER_SOCKET;
	return 0;
}

static bool
af_packet_link(struct urn_port *port)
{
	char name[32];

	return port->started && urn_devargs_get(port->cfg.device, "iface", name, sizeof(name)) &&
	       urn_netdev_running(name);
}

const struct urn_port_family urn_family_af_packet = {
	.prefix = "net_af_packet",
	.keys = " iface qpairs blocksz framesz framecnt qdisc_bypass ",
	.mtu_max = URN_PORT_MTU_MAX,
	.desc = DESC,
	.mac_fixed = true,
	.prepare = af_packet_prepare,
	.explain = af_packet_explain,
	.probed = af_packet_probed,
	.started = af_packet_started,
	.filter = af_packet_filter,
	.link = af_packet_link,
};
