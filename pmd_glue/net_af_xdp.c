/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_af_xdp: packets straight from an interface's driver into our pool.
 *
 * The pool is the memory that the kernel writes to: an array of objects of one
 * page each. A page holds the object's and the mbuf's headers, our private
 * bytes, and the headroom of the mbuf and of XDP; the rest carries a RoCE
 * MTU of 2048. ethdev is not told an MTU: the PMD would change the interface's.
 *
 * When the port is closed the PMD leaks its sockets, and the kernel keeps the
 * interface's queues busy until the sockets are closed, too (measured: opening again
 * in the same process fails with EBUSY). So we note the sockets of a port (fds.h). Even then
 * the kernel frees the queues some time later.
 *
 * The PMD's own XDP program takes every frame of its queues. With cfg.filter it loads ours
 * instead (xdp_filter.h).
 */
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/numa.h"
#include "pmd_glue/pool.h"
#include "pmd_glue/xdp_filter.h"

#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The PMD fills its ring with this many packets, whatever number is asked for. */
#define DESC 2048
#define XDP_HEADROOM 256u
#define ETH_VLAN_BYTES 18u

struct xdp {
	struct urn_fds before;	      /* the process's, before the port was open */
	struct urn_fds own;	      /* the port's, once it is open; owner: this struct */
	struct urn_xdp_filter filter; /* all zero: none */
	bool opening;		      /* holds open_lock */
};

/* open_lock is held while a port opens its sockets: new descriptors are then the port's. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

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

/* True when the port's program is ours: asked for, and none of the user's in its place. */
static bool
wants_filter(const struct urn_port_config *cfg)
{
	char prog[8];

	return cfg->filter && !urn_devargs_get(cfg->device, "xdp_prog", prog, sizeof(prog)) &&
	       urn_xdp_filter_path() != NULL;
}

static int
af_xdp_prepare(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX], struct urn_err *err)
{
	char name[32];

	if (urn_netdev_of(args, "iface", name, err) != 0 || permission(err) != 0)
		return -1;
	if (wants_filter(cfg) &&
	    urn_devargs_default(args, "xdp_prog", "%s", urn_xdp_filter_path()) != 0) {
		urn_err_set(err, "the device arguments are too long");
		return -1;
	}
	return 0;
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

/* ---- descriptors */

static void
cannot_tell(struct urn_err *err)
{
	urn_err_set(err,
		    "cannot tell the port's descriptors from others: /proc/self/fd can't be "
		    "read, or the process has more than %u AF_XDP sockets and BPF objects",
		    URN_FDS_MAX);
}

/* returns: false: not all of the port's descriptors are known */
static bool
opened(struct xdp *x, bool bpf)
{
	bool all;

	if (!x->opening)
		return true;
	x->opening = false;
	all = urn_fds_find(&x->own, &x->before, bpf);
	pthread_mutex_unlock(&open_lock);
	return all;
}

static void
af_xdp_closing(struct urn_port *port)
{
	struct xdp *x = port->family_data;

	/* The PMD takes off what it attached; the program isn't that any more. */
	if (x != NULL)
		urn_xdp_filter_end(&x->filter);
}

static void
af_xdp_closed(struct urn_port *port)
{
	struct xdp *x = port->family_data;

	port->family_data = NULL;
	if (x == NULL)
		return;
	(void)opened(x, wants_filter(&port->cfg));
	urn_fds_close(&x->own);
	free(x);
}

/* ---- the filter */

static int
af_xdp_started(struct urn_port *port, struct urn_err *err)
{
	struct xdp *x = port->family_data;
	char name[32];

	if (!opened(x, wants_filter(&port->cfg))) {
		cannot_tell(err);
		return -1;
	}
	if (!wants_filter(&port->cfg) || port->filter != URN_PORT_FILTER_NONE)
		return 0;
	if (urn_netdev_of(port->cfg.device, "iface", name, err) != 0 ||
	    urn_xdp_filter_begin(&x->filter, &x->own, if_nametoindex(name), err) != 0)
		return -1;
	port->filter = URN_PORT_FILTER_XDP;
	return 0;
}

static int
af_xdp_filter(struct urn_port *port, const struct urn_filter_key *key, unsigned int n,
	      uint16_t vlan, struct urn_err *err)
{
	struct xdp *x = port->family_data;

	return urn_xdp_filter_set(&x->filter, key, n, vlan, err);
}

static bool
af_xdp_filter_counts(const struct urn_port *port, struct urn_port_filter_counts *out)
{
	const struct xdp *x = port->family_data;

	return urn_xdp_filter_counts(&x->filter, out);
}

static void
af_xdp_tend(struct urn_port *port)
{
	struct xdp *x = port->family_data;

	if (port->filter == URN_PORT_FILTER_XDP)
		urn_xdp_filter_tend(&x->filter);
}

/* ---- the port */

static int
af_xdp_probed(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	uint32_t carries =
		urn_pool_room_page() - RTE_PKTMBUF_HEADROOM - XDP_HEADROOM - ETH_VLAN_BYTES;
	char name[32];
	struct xdp *x;
	int mtu;

	(void)info;
	if (urn_netdev_of(port->cfg.device, "iface", name, err) != 0)
		return -1;
	port->caps.socket = urn_numa_of_device(name);
	mtu = urn_netdev_mtu(name);
	if (mtu >= 0 && (uint32_t)mtu < carries)
		carries = (uint32_t)mtu;
	port->caps.mtu = (uint16_t)RTE_MIN(carries, port->caps.mtu);
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		urn_err_set(err, "out of memory");
		return -1;
	}
	pthread_mutex_lock(&open_lock);
	if (!urn_fds_find(&x->before, NULL, true)) {
		pthread_mutex_unlock(&open_lock);
		free(x);
		cannot_tell(err);
		return -1;
	}
	x->opening = true;
	port->family_data = x;
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
	.late_free = true,
	.pmd_keeps = true,
	.prepare = af_xdp_prepare,
	.explain = af_xdp_explain,
	.probed = af_xdp_probed,
	.started = af_xdp_started,
	.tend = af_xdp_tend,
	.filter = af_xdp_filter,
	.filter_counts = af_xdp_filter_counts,
	.closing = af_xdp_closing,
	.closed = af_xdp_closed,
	.link = af_xdp_link,
};
