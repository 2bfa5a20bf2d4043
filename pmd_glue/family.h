/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The properties and hooks of a family of drivers. port.c does the rest, the same
 * way for all. The facts are in doc/reference/ports.md "Ports, one by one".
 */
#ifndef URN_PMD_GLUE_FAMILY_H
#define URN_PMD_GLUE_FAMILY_H

#include "pmd_glue/port.h"

struct urn_filter_key;
struct urn_port_filter_counts;

/* Room for completed device arguments. */
#define URN_DEVARGS_MAX 768

struct urn_port_family {
	const char *prefix; /* device names begin so, "net_memif"; NULL: any PCI address */
	const char *keys; /* arguments that the PMD knows, each between spaces; NULL: not checked */
	uint16_t mtu_max; /* largest Ethernet MTU that passes, both ways, bytes */
	bool mtu_configure;  /* tell ethdev the MTU; else its default must stay */
	uint16_t desc;	     /* default descriptors a queue */
	uint16_t queues_max; /* 0: as ethdev says */
	bool page_room;	     /* one packet object a page */
	uint16_t buffer_unit; /* data rooms behind the headroom are multiples of it, bytes; 0: of a
				 cache line */
	bool rx_interrupt;   /* can sleep on receive */
	bool mac_own;	     /* the device's MAC is the kernel's, ours must differ */
	bool mac_fixed;	     /* the device's MAC cannot be changed: receive promiscuously instead */
	bool rx_holds;	     /* receive descriptors hold packets of the pool */
	bool faults;	     /* the port's shared memory can vanish in a burst (fault.h) */
	bool memory;	     /* the wire is this host's memory */
	bool late_free;	     /* the kernel frees queues some time after their port was closed */
	bool pmd_keeps;	     /* the PMD never gives back packets of the pool that the kernel had */
	bool intr_alone;     /* the PMD's interrupt handlers must not run during a start, stop or close */

	/*
	 * All of these may be NULL. Functions with *err return 0, or -1 with *err set
	 * (the sentence need not name the port: port.c puts its name in front).
	 */

	/* Before probing: complete cfg->device into args, and check that its interface, file or rights are there. */
	int (*prepare)(const struct urn_port_config *cfg, char args[URN_DEVARGS_MAX],
		       struct urn_err *err);
	/* After a failed probe (the driver's reason is held, eal_log.h): say why and what to do. */
	void (*explain)(const struct urn_port_config *cfg, struct urn_err *err);
	/*
	 * After probing, before rte_eth_dev_configure(). port->caps and mtu may be
	 * lowered; caps.socket is the node of the interface behind a vdev, which
	 * ethdev does not know.
	 */
	int (*probed)(struct urn_port *port, const struct rte_eth_dev_info *info,
		      struct urn_err *err);
	/* True when a failed rte_eth_dev_start() is no error, because tend() will retry. */
	bool (*start_later)(struct urn_port *port);
	/* In every urn_port_poll_link(). */
	void (*tend)(struct urn_port *port);
	/* Just before each rte_eth_dev_start(). */
	int (*starting)(struct urn_port *port, struct urn_err *err);
	/* Just after each rte_eth_dev_start(). */
	int (*started)(struct urn_port *port, struct urn_err *err);
	/* Just before each rte_eth_dev_stop(). */
	void (*stopping)(struct urn_port *port);
	/* After the port's cable was pulled or plugged in (plug.h). */
	void (*plugged)(struct urn_port *port, bool in);
	/* True when the link is up; in place of what the driver says. */
	bool (*link)(struct urn_port *port);
	/* Have the frames for these addresses in a VLAN, 0: in none, come, no others (filter.h);
	 * port->filter is set. */
	int (*filter)(struct urn_port *port, const struct urn_filter_key *key, unsigned int n,
		      uint16_t vlan, struct urn_err *err);
	/* Read the filter's counts into *out, which is zero. returns: false: it does not count */
	bool (*filter_counts)(const struct urn_port *port, struct urn_port_filter_counts *out);
	/* Just before the ethdev port is closed. */
	void (*closing)(struct urn_port *port);
	/* After the ethdev port was closed: free family_data; may take over the pool. */
	void (*closed)(struct urn_port *port);
};

extern const struct urn_port_family urn_family_null;
extern const struct urn_port_family urn_family_ring;
extern const struct urn_port_family urn_family_memif;
extern const struct urn_port_family urn_family_tap;
extern const struct urn_port_family urn_family_af_packet;
extern const struct urn_port_family urn_family_af_xdp;
extern const struct urn_port_family urn_family_pcap;
extern const struct urn_port_family urn_family_mlx5;
extern const struct urn_port_family urn_family_pci;

/* The family of a device string, or NULL. */
const struct urn_port_family *urn_family_find(const char *device);

/* True when the device is a PCI address ("0000:3b:00.0" or "3b:00.0"). */
bool urn_devargs_is_pci(const char *device);
/* Check that all arguments are "key=value" with keys of the list. returns 0, or -1 with *err */
int urn_devargs_check(const char *args, const char *keys, struct urn_err *err);
/* Value of a key in device arguments, into out ("" when empty). returns: true when the key is there */
bool urn_devargs_get(const char *args, const char *key, char *out, size_t size);
/* Append ",key=value" unless the key is there already. returns 0, or -1: too long */
int urn_devargs_default(char args[URN_DEVARGS_MAX], const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Name of the device: up to the first comma. */
void urn_devargs_name(const char *args, char *out, size_t size);

/* Ask the driver for the link, and note its speed. returns: true: it is up */
bool urn_port_ask_link(struct urn_port *port);
/* Put a port's name and device in front of the message in *err. */
void urn_err_name(struct urn_err *err, const struct urn_port_config *cfg);
/* Check that a port with this configuration could come up. returns 0, or -1 with *err */
int urn_port_check(const struct urn_port_config *cfg, struct urn_err *err);
/*
 * Open a port of a known family; cfg->device names an ethdev port that exists
 * or can be probed. family->closed is called once, by urn_port_close() or when
 * urn_port_open_by() fails. NULL with *err, which names the port.
 */
struct urn_port *urn_port_open_by(const struct urn_port_config *cfg,
				  const struct urn_port_family *family, void *family_data,
				  struct urn_err *err);

#endif
