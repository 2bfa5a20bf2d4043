/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_tap: an interface of this host's kernel whose wire ends in this process.
 * The PMD's MAC is the kernel's side of that wire: ours must differ. Transmit
 * rejects frames over 1522 bytes and stalls the burst behind them, so the MTU
 * stays at 1500.
 */
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#define TUN_DEVICE "/dev/net/tun"

static int
tap_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC);
	char name[32];

	(void)cfg;
	if (fd < 0) {
		urn_err_set(err, "cannot open " TUN_DEVICE ": %s; %s", strerror(errno),
			    errno == EACCES || errno == EPERM
				    ? "run as root"
				    : "load the kernel's module (modprobe tun)");
		return -1;
	}
	close(fd);
	/* The kernel would give us part of the frames of the process that has the interface. */
	if (urn_devargs_get(args, "iface", name, sizeof(name)) && urn_netdev_running(name)) {
		urn_err_set(err,
			    "the interface %s is in use by another program or port; choose "
			    "another name (iface=)",
			    name);
		return -1;
	}
	if (urn_have_cap(CAP_NET_ADMIN))
		return 0;
	urn_err_set(err, "no permission to make a network interface (CAP_NET_ADMIN); run as root, "
			 "or use net_memif, which needs no rights");
	return -1;
}

static void
tap_explain(const struct urn_port_config *cfg, struct urn_err *err)
{
	char name[32];

	if (urn_devargs_get(cfg->device, "iface", name, sizeof(name)) && urn_netdev_mtu(name) >= 0)
		urn_err_set(err,
			    "there is an interface %s already, and it is none to attach to; "
			    "choose another name (iface=)",
			    name);
}

const struct urn_port_family urn_family_tap = {
	.prefix = "net_tap",
	.keys = " iface remote mac persist ",
	.mtu_max = 1500,
	.desc = 256,
	.queues_max = 16,
	.rx_holds = true,
	.rx_interrupt = true,
	.mac_own = true,
	.prepare = tap_prepare,
	.explain = tap_explain,
};
