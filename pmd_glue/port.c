/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/port.h"
#include "pmd_glue/eal_log.h"
#include "pmd_glue/family.h"
#include "pmd_glue/fault.h"
#include "pmd_glue/intr.h"
#include "pmd_glue/mtu.h"
#include "pmd_glue/numa.h"
#include "pmd_glue/plug.h"
#include "pmd_glue/pool.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_flow.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define PORT_QUEUES_MAX 64u
#define PORT_MBUFS_MAX (1u << 22)
/* Packets that a port's users may hold in addition to descriptors: windows, caches, bursts. */
#define PORT_MBUFS_USERS 2048u
/* Longest time that a poll may still run on a port that is being stopped, ns. */
#define PORT_STOP_GRACE_NS 2000000
/* Wait between attempts while a closed queue is still busy in the kernel (family->late_free), ns. */
#define PORT_BUSY_NS 50000000
#define PORT_BUSY_TRIES 100u

struct port_inner {
	struct urn_port port;
	struct rte_device *device; /* removed at close */
};

/* Ethdev ports that are open through this file. Owner: control threads, atomic. */
static uint8_t port_used[RTE_MAX_ETHPORTS];
static unsigned int pools_made; /* makes names unique; likewise */

static struct port_inner *
inner(struct urn_port *port)
{
	return (struct port_inner *)port;
}

void
urn_err_name(struct urn_err *err, const struct urn_port_config *cfg)
{
	char device[64];
	struct urn_err what;

	if (err == NULL)
		return;
	what = *err;
	urn_devargs_name(cfg->device, device, sizeof(device));
	urn_err_set(err, "port %.*s (%s): %s", (int)sizeof(cfg->name), cfg->name, device,
		    what.text);
}

/* ---- before the device */

int
urn_port_check(const struct urn_port_config *cfg, struct urn_err *err)
{
	uint16_t m = cfg->roce_mtu;

	if (rte_eal_get_runtime_dir()[0] == '\0') {
		urn_err_set(err, "DPDK is not running; start it first");
		return -1;
	}
	if (memchr(cfg->device, '\0', sizeof(cfg->device)) == NULL ||
	    memchr(cfg->name, '\0', sizeof(cfg->name)) == NULL || cfg->name[0] == '\0') {
		urn_err_set(err, "a port needs a name of 1..%zu bytes and a device of at most %zu",
			    sizeof(cfg->name) - 1, sizeof(cfg->device) - 1);
		return -1;
	}
	if (m != 0 && m != 256 && m != 512 && m != 1024 && m != 2048 && m != 4096) {
		urn_err_set(err,
			    "a path MTU of %u does not exist; use 256, 512, 1024, 2048 or 4096", m);
		return -1;
	}
	if (cfg->queues > PORT_QUEUES_MAX || cfg->mbufs > PORT_MBUFS_MAX) {
		urn_err_set(err,
			    "%u queues and %u packets asked for; at most %u and %u are allowed",
			    cfg->queues, cfg->mbufs, PORT_QUEUES_MAX, PORT_MBUFS_MAX);
		return -1;
	}
	if (cfg->mac[0] & 1) {
		urn_err_set(err, "the MAC address given is a multicast address; clear the lowest "
				 "bit of its first byte");
		return -1;
	}
	return 0;
}

/* ---- probing */

static void
explain(const struct urn_port_config *cfg, const struct urn_port_family *family, int code,
	struct urn_err *err)
{
	urn_err_set(err, "the device does not come up: %s%s%s", rte_strerror(code),
		    urn_eal_log_reason()[0] != '\0' ? "; its driver says: " : "",
		    urn_eal_log_reason());
	if (family->explain != NULL)
		family->explain(cfg, err);
}

/* Find or make the ethdev port of a device. returns 0, or -1 with *err */
static int
probe(const struct urn_port_config *cfg, const struct urn_port_family *family, uint16_t *id,
      struct urn_err *err)
{
	char args[URN_DEVARGS_MAX], name[RTE_ETH_NAME_MAX_LEN];
	int ret;

	snprintf(args, sizeof(args), "%s", cfg->device);
	if (urn_devargs_check(args, family->keys, err) != 0)
		return -1;
	if (family->prepare != NULL && family->prepare(cfg, args, err) != 0)
		return -1;
	urn_devargs_name(args, name, sizeof(name));
	/* The EAL brings up PCI devices at its start; vdevs come now. */
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return 0;
	urn_eal_log_hold();
	ret = rte_dev_probe(args);
	urn_eal_log_release();
	if (ret != 0 || rte_eth_dev_get_port_by_name(name, id) != 0) {
		explain(cfg, family, ret != 0 ? -ret : ENODEV, err);
		return -1;
	}
	return 0;
}

/* Claim a port: only one opener may have it. */
static int
claim(uint16_t id, struct urn_err *err)
{
	uint8_t unused = 0;

	if (__atomic_compare_exchange_n(&port_used[id], &unused, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		return 0;
	urn_err_set(err,
		    "the device is in use by another port; give each port a device of its own");
	return -1;
}

/* ---- capabilities */

static int
caps_read(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	const struct urn_port_family *f = port->family;
	struct urn_port_caps *caps = &port->caps;
	uint16_t queues = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
	int socket = rte_eth_dev_socket_id(port->id);

	if (f->queues_max != 0)
		queues = RTE_MIN(queues, f->queues_max);
	caps->queues = RTE_MIN(RTE_MAX(port->cfg.queues, 1), queues);
	caps->mtu = RTE_MIN(f->mtu_max, URN_PORT_MTU_MAX);
	if (f->mtu_configure)
		caps->mtu = RTE_MIN(caps->mtu, info->max_mtu);
	caps->memory = f->memory;
	caps->socket = socket > 0 ? socket : 0;
	caps->link_interrupt = (*info->dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	caps->rx_interrupt = f->rx_interrupt;
	caps->tx_ip_csum = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
	caps->rx_csum = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
	/* On a wire of memory, queue i is joined to queue i: no flow is spread. */
	caps->rss = !f->memory && caps->queues > 1 &&
		    (info->flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0;
	if (queues == 0) {
		urn_err_set(err, "the device has no pair of receive and transmit queues");
		return -1;
	}
	if (f->probed != NULL && f->probed(port, info, err) != 0)
		return -1;
	caps->roce_mtu = urn_port_roce_mtu(caps->mtu);
	if (caps->roce_mtu == 0) {
		urn_err_set(
			err,
			"the device's MTU of %u carries no RoCEv2 packet; raise it to 1500 or more",
			caps->mtu);
		return -1;
	}
	if (port->cfg.roce_mtu != 0)
		caps->roce_mtu = RTE_MIN(caps->roce_mtu, port->cfg.roce_mtu);
	caps->flow_mtu = urn_port_flow_mtu(caps->mtu, caps->roce_mtu);
	return 0;
}

/* True when the PMD has flow rules at all. */
static bool
caps_flow(uint16_t id)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_item items[] = {{.type = RTE_FLOW_ITEM_TYPE_ETH},
					      {.type = RTE_FLOW_ITEM_TYPE_END}};
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;

	return rte_flow_validate(id, &attr, items, actions, &error) != -ENOSYS;
}

/* ---- configure */

/* The family of a device; a port without one is the end of a pair of rings. */
static const struct urn_port_family *
family_of(const struct urn_port_config *cfg)
{
	const struct urn_port_family *f = urn_family_find(cfg->device);

	return f != NULL ? f : &urn_family_ring;
}

uint16_t
urn_port_tx_desc(const struct urn_port_config *cfg)
{
	return cfg->tx_desc != 0 ? cfg->tx_desc : family_of(cfg)->desc;
}

static uint32_t
mbufs_needed(const struct urn_port_config *cfg, const struct urn_port_family *f, uint16_t queues)
{
	uint32_t rx = cfg->rx_desc != 0 ? cfg->rx_desc : f->desc;
	uint32_t tx = cfg->tx_desc != 0 ? cfg->tx_desc : f->desc;

	tx += cfg->other_tx_desc;
	return rte_align32pow2(PORT_MBUFS_USERS + (tx + (f->rx_holds ? rx : 0)) * queues) - 1;
}

uint32_t
urn_port_mbufs(const struct urn_port_config *cfg)
{
	return mbufs_needed(cfg, family_of(cfg), RTE_MAX(cfg->queues, 1));
}

static int
pool_make(struct urn_port *port, struct urn_err *err)
{
	const struct urn_port_config *cfg = &port->cfg;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct urn_pool_config pool = {
		.name = name,
		.mbufs = cfg->mbufs,
		.room = port->room,
		.page = port->family->page_room,
		.node = port->caps.socket,
	};

	if (pool.mbufs == 0)
		pool.mbufs = mbufs_needed(cfg, port->family, port->caps.queues);
	snprintf(name, sizeof(name), "urnp%u",
		 __atomic_fetch_add(&pools_made, 1, __ATOMIC_RELAXED));
	port->pool = urn_pool_create(&pool, err);
	return port->pool != NULL ? 0 : -1;
}

static void
conf_fill(const struct urn_port *port, const struct rte_eth_dev_info *info,
	  struct rte_eth_conf *conf)
{
	const struct urn_port_caps *caps = &port->caps;

	memset(conf, 0, sizeof(*conf));
	if (port->family->mtu_configure)
		conf->rxmode.mtu = caps->mtu;
	if (caps->tx_ip_csum)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	if (caps->rx_csum)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	conf->intr_conf.lsc = caps->link_interrupt;
	conf->intr_conf.rxq = caps->rx_interrupt;
	if (caps->rss) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf =
			info->flow_type_rss_offloads &
			(RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
	}
}

static int
queue_setup(struct urn_port *port, uint16_t q)
{
	const struct timespec a_bit = {.tv_nsec = PORT_BUSY_NS};
	int ret, socket = rte_eal_has_hugepages() ? port->caps.socket : SOCKET_ID_ANY;
	unsigned int tries = port->family->late_free ? PORT_BUSY_TRIES : 1;

	while ((ret = rte_eth_rx_queue_setup(port->id, q, port->cfg.rx_desc, (unsigned int)socket,
					     NULL, port->pool)) != 0 &&
	       --tries > 0)
		nanosleep(&a_bit, NULL);
	if (ret != 0)
		return ret;
	return rte_eth_tx_queue_setup(port->id, q, port->cfg.tx_desc, (unsigned int)socket, NULL);
}

static int
queues_setup(struct urn_port *port)
{
	int ret = 0;
	uint16_t q;

	for (q = 0; q < port->caps.queues && ret == 0; q++)
		ret = queue_setup(port, q);
	return ret;
}

static int
configure(struct urn_port *port, const struct rte_eth_dev_info *info, struct urn_err *err)
{
	struct rte_eth_conf conf;
	int ret;

	conf_fill(port, info, &conf);
	urn_eal_log_hold();
	ret = rte_eth_dev_configure(port->id, port->caps.queues, port->caps.queues, &conf);
	if (port->cfg.rx_desc == 0)
		port->cfg.rx_desc = port->family->desc;
	if (port->cfg.tx_desc == 0)
		port->cfg.tx_desc = port->family->desc;
	if (ret == 0)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &port->cfg.rx_desc,
						       &port->cfg.tx_desc);
	urn_eal_log_release();
	if (ret != 0) {
		explain(&port->cfg, port->family, -ret, err);
		return -1;
	}
	if (pool_make(port, err) != 0)
		return -1;
	urn_eal_log_hold();
	ret = queues_setup(port);
	urn_eal_log_release();
	if (ret != 0) {
		explain(&port->cfg, port->family, -ret, err);
		return -1;
	}
	return 0;
}

/* ---- addresses */

static bool
mac_is_zero(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return memcmp(mac, zero, 6) == 0;
}

static void
mac_random(uint8_t mac[6])
{
	if (getrandom(mac, 6, 0) != 6) {
		uint64_t t = rte_get_tsc_cycles();

		memcpy(mac, &t, 6);
	}
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02); /* locally administered, unicast */
}

/* Choose the MAC, and receive frames to it and to multicast groups. */
static void
mac_setup(struct urn_port *port)
{
	const struct urn_port_family *f = port->family;
	struct rte_ether_addr addr = {{0}};
	bool set = true;

	if (rte_eth_macaddr_get(port->id, &addr) == 0 && !f->mac_own)
		memcpy(port->mac, addr.addr_bytes, 6);
	if (!mac_is_zero(port->cfg.mac))
		memcpy(port->mac, port->cfg.mac, 6);
	else if (mac_is_zero(port->mac))
		mac_random(port->mac);
	if (f->memory || f->mac_own)
		return;
	urn_eal_log_hold();
	if (memcmp(addr.addr_bytes, port->mac, 6) != 0) {
		memcpy(addr.addr_bytes, port->mac, 6);
		set = !f->mac_fixed && rte_eth_dev_default_mac_addr_set(port->id, &addr) == 0;
	}
	/* Neighbour discovery is multicast. */
	if (rte_eth_allmulticast_enable(port->id) != 0 || !set)
		(void)rte_eth_promiscuous_enable(port->id);
	urn_eal_log_release();
}

/* ---- start, stop, link */

/* Hold the interrupt thread for calls during which the PMD's handlers must not run (intr.h). */
static bool
handlers_hold(const struct urn_port *port)
{
	return port->family->intr_alone && urn_intr_hold() == 0;
}

static void
handlers_release(bool held)
{
	if (held)
		urn_intr_release();
}

int
urn_port_start(struct urn_port *port, struct urn_err *err)
{
	bool held;
	int ret;

	port->wanted = true;
	if (port->started)
		return 0;
	if (port->family->starting != NULL && port->family->starting(port, err) != 0) {
		urn_err_name(err, &port->cfg);
		return -1;
	}
	urn_eal_log_hold();
	held = handlers_hold(port);
	ret = rte_eth_dev_start(port->id);
	handlers_release(held);
	urn_eal_log_release();
	if (ret != 0 && port->family->start_later != NULL && port->family->start_later(port))
		return 0;
	if (ret != 0) {
		explain(&port->cfg, port->family, -ret, err);
		urn_err_name(err, &port->cfg);
		return -1;
	}
	if (port->family->started != NULL && port->family->started(port, err) != 0) {
		held = handlers_hold(port);
		rte_eth_dev_stop(port->id);
		handlers_release(held);
		urn_err_name(err, &port->cfg);
		return -1;
	}
	__atomic_store_n(&port->faulted, false, __ATOMIC_RELAXED);
	__atomic_store_n(&port->started, true, __ATOMIC_RELEASE);
	__atomic_store_n(&port->direct,
			 !port->family->faults && urn_port_plugged(port) == URN_PORT_UP, __ATOMIC_RELEASE);
	return 0;
}

int
urn_port_stop(struct urn_port *port, struct urn_err *err)
{
	const struct timespec grace = {.tv_nsec = PORT_STOP_GRACE_NS};
	bool held;
	int ret;

	port->wanted = false;
	if (!port->started)
		return 0;
	if (port->family->stopping != NULL)
		port->family->stopping(port);
	/* New bursts see the flag; a burst that is running gets time to end. */
	__atomic_store_n(&port->direct, false, __ATOMIC_RELAXED);
	__atomic_store_n(&port->started, false, __ATOMIC_SEQ_CST);
	nanosleep(&grace, NULL);
	held = handlers_hold(port);
	ret = rte_eth_dev_stop(port->id);
	handlers_release(held);
	if (ret != 0) {
		urn_err_set(err, "the driver does not stop the device: %s", rte_strerror(-ret));
		urn_err_name(err, &port->cfg);
		return -1;
	}
	return 0;
}

/* ---- open, close */

/* All steps of opening once the ethdev port exists and is ours. */
static int
bring_up(struct urn_port *port, struct urn_err *err)
{
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port->id, &info);

	if (ret != 0) {
		urn_err_set(err, "the driver does not describe the device: %s", rte_strerror(-ret));
		goto fail;
	}
	inner(port)->device = info.device;
	if (caps_read(port, &info, err) != 0 || configure(port, &info, err) != 0)
		goto fail;
	mac_setup(port);
	if (urn_port_start(port, err) != 0)
		return -1; /* *err names the port already */
	port->caps.flow = caps_flow(port->id);
	(void)urn_port_ask_link(port); /* the speed, also of a port that is to start later */
	(void)urn_port_poll_link(port);
	return 0;
fail:
	urn_err_name(err, &port->cfg);
	return -1;
}

/* Data room of a packet, headroom included, bytes. */
static uint16_t
room_of(const struct urn_port_family *family)
{
	const uint32_t most = URN_POOL_ROOM - RTE_PKTMBUF_HEADROOM;

	if (family->buffer_unit == 0)
		return URN_POOL_ROOM;
	return (uint16_t)(RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(most, family->buffer_unit));
}

struct urn_port *
urn_port_open_by(const struct urn_port_config *cfg, const struct urn_port_family *family,
		 void *family_data, struct urn_err *err)
{
	struct port_inner *in = calloc(1, sizeof(*in));
	uint16_t id;

	if (in == NULL) {
		urn_err_set(err, "out of memory");
		urn_err_name(err, cfg);
		return NULL;
	}
	in->port.id = RTE_MAX_ETHPORTS;
	in->port.cfg = *cfg;
	in->port.room = room_of(family);
	in->port.family = family;
	in->port.family_data = family_data;
	if (urn_port_check(cfg, err) != 0 || probe(cfg, family, &id, err) != 0 ||
	    claim(id, err) != 0) {
		urn_err_name(err, cfg);
		goto fail;
	}
	in->port.id = id;
	if (bring_up(&in->port, err) == 0)
		return &in->port;
fail:
	urn_port_close(&in->port);
	return NULL;
}

struct urn_port *
urn_port_open(const struct urn_port_config *cfg, struct urn_err *err)
{
	const struct urn_port_family *family = urn_family_find(cfg->device);

	if (family == NULL) {
		urn_err_set(err, "no such kind of device; use a PCI address or net_null, net_ring, "
				 "net_memif, net_tap, net_af_packet, net_af_xdp, net_pcap with a "
				 "number (net_tap0)");
		urn_err_name(err, cfg);
		return NULL;
	}
	return urn_port_open_by(cfg, family, NULL, err);
}

/* Close the ethdev port and remove its device, so that it can be probed again. */
static void
device_close(struct urn_port *port)
{
	uint16_t id = port->id;
	bool held;

	(void)urn_port_stop(port, NULL);
	if (port->family->closing != NULL)
		port->family->closing(port);
	urn_eal_log_hold();
	held = handlers_hold(port);
	rte_eth_dev_close(id);
	if (inner(port)->device != NULL)
		rte_dev_remove(inner(port)->device);
	handlers_release(held);
	urn_eal_log_release();
	__atomic_store_n(&port_used[id], 0, __ATOMIC_RELEASE);
}

void
urn_port_close(struct urn_port *port)
{
	if (port == NULL)
		return;
	if (port->id != RTE_MAX_ETHPORTS)
		device_close(port);
	if (port->family->closed != NULL)
		port->family->closed(port);
	if (port->family->pmd_keeps)
		urn_pool_free_kept(port->pool);
	else
		urn_pool_free(port->pool);
	free(inner(port));
}
