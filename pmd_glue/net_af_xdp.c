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
 * in the same process fails with EBUSY). So we note the sockets of a port. Even then
 * the kernel frees the queues some time later.
 */
#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/numa.h"
#include "pmd_glue/pool.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The PMD fills its ring with this many packets, whatever number is asked for. */
#define DESC 2048
#define XDP_HEADROOM 256u
#define ETH_VLAN_BYTES 18u
#define SOCKETS_MAX 64u

struct sockets {
	unsigned int n;
	struct {
		int fd;
		ino_t ino; /* tells whether fd is still the same socket */
	} of[SOCKETS_MAX];
};

struct xdp {
	struct sockets before; /* the process's sockets, before the port was open */
	struct sockets own;    /* the port's sockets, once it is open */
	bool opening;	       /* holds open_lock */
};

/* open_lock is held while a port opens its sockets: new sockets of the process are then the port's. */
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

/* ---- sockets */

/* True when fd is an AF_XDP socket; *ino identifies it. */
static bool
is_xdp(int fd, ino_t *ino)
{
	socklen_t len = sizeof(int);
	struct stat st;
	int domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_XDP ||
	    fstat(fd, &st) != 0)
		return false;
	*ino = st.st_ino;
	return true;
}

static bool
knows(const struct sockets *s, int fd, ino_t ino)
{
	unsigned int i;

	for (i = 0; i < s->n; i++)
		if (s->of[i].fd == fd && s->of[i].ino == ino)
			return true;
	return false;
}

/* All AF_XDP sockets of the process but those in `but`. */
static void
sockets_find(struct sockets *s, const struct sockets *but)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	ino_t ino;
	int fd;

	while (d != NULL && s->n < SOCKETS_MAX && (e = readdir(d)) != NULL) {
		fd = atoi(e->d_name);
		if (e->d_name[0] == '.' || !is_xdp(fd, &ino) || (but && knows(but, fd, ino)))
			continue;
		s->of[s->n].fd = fd;
		s->of[s->n++].ino = ino;
	}
	if (d != NULL)
		closedir(d);
}

static void
opened(struct xdp *x)
{
	if (!x->opening)
		return;
	x->opening = false;
	sockets_find(&x->own, &x->before);
	pthread_mutex_unlock(&open_lock);
}

static int
af_xdp_started(struct urn_port *port, struct urn_err *err)
{
	(void)err;
	opened(port->family_data);
	return 0;
}

static void
af_xdp_closed(struct urn_port *port)
{
	struct xdp *x = port->family_data;
	unsigned int i;
	ino_t ino;

	port->family_data = NULL;
	if (x == NULL)
		return;
	opened(x);
	for (i = 0; i < x->own.n; i++)
		if (is_xdp(x->own.of[i].fd, &ino) && ino == x->own.of[i].ino)
			close(x->own.of[i].fd);
	free(x);
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
	port->family_data = x;
	pthread_mutex_lock(&open_lock);
	x->opening = true;
	sockets_find(&x->before, NULL);
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
	.closed = af_xdp_closed,
	.link = af_xdp_link,
};
