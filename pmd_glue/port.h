/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One way to bring any Ethernet port up: probe, capabilities, configure,
 * start, stop, close. The code particular to a family of drivers is in a
 * small file of its own and is reached through struct urn_port_family.
 */
#ifndef URN_PMD_GLUE_PORT_H
#define URN_PMD_GLUE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

/* A message that says what failed, where, and what to do. */
struct urn_err {
	char text[256];
};

void urn_err_set(struct urn_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Configuration of one port. */
struct urn_port_config {
	char name[32];	   /* ours, for messages: "p0" */
	char device[512];  /* vdev arguments ("net_memif0,role=server,...") or PCI address */
	uint16_t roce_mtu; /* largest path MTU wanted, 256..4096; 0: the port's largest */
	uint16_t queues;   /* receive and transmit queues wanted, each; fewer may be granted */
	uint16_t rx_desc, tx_desc; /* descriptors a queue; 0: 1024 or the family's */
	uint32_t mbufs;		   /* packets in the port's pool; 0: urn_port_mbufs() */
	/* Transmit descriptors a queue of the other port of the same adapter, which come to hold
	 * packets of this pool; 0: there is no other port */
	uint16_t other_tx_desc;
	uint8_t mac[6];		   /* all zero: the port's own */
	bool steer;		   /* take only RoCEv2, ARP and ND to our MAC, where the PMD can (mlx5) */
	bool filter; /* take only frames for given addresses, where the family can (filter.h) */
};

/* Capabilities of a port that is up. */
struct urn_port_caps {
	uint16_t queues;	  /* receive and transmit queues, each, as granted */
	uint16_t roce_mtu;	  /* largest path MTU that passes: 256..4096 */
	uint16_t mtu;		  /* Ethernet MTU in bytes that passes, both ways */
	uint16_t flow_mtu; /* bytes behind the flow header of the longest packet of a flow: all that
			      `mtu` has room for, unless a lower path MTU was asked for */
	bool rss;		  /* spreads RoCEv2 flows over queues */
	bool tx_ip_csum, rx_csum; /* checksum offloads */
	bool link_interrupt;	  /* link state changes come by interrupt; else polled */
	bool rx_interrupt;	  /* can sleep on receive */
	bool flow;		  /* rte_flow steering */
	bool memory;		  /* the "wire" is this host's memory (ring, memif, null) */
	int socket;		  /* NUMA node, or 0 */
};

/*
 * Largest Ethernet MTU asked for, in bytes: 4 KiB of memory, or of an active message with all its
 * arguments, in one packet of a flow, with all headers. Path MTU 4096 alone needs 4188.
 */
#define URN_PORT_MTU_MAX 4392u
/* Bytes of an Ethernet MTU beside the payload: IPv6, UDP, the longest BTH and extensions, ICRC. */
#define URN_PORT_ROCE_HEADERS 92u
/* ... of a packet of a flow: IPv6, UDP, BTH, flow header, ICRC. */
#define URN_PORT_FLOW_HEADERS 80u

/* State of the port's cable (plug.h). */
enum urn_port_plug {
	URN_PORT_UP,
	URN_PORT_DOWN,	 /* taken down by a person */
	URN_PORT_FAILED, /* as if the cable had been pulled */
};

struct urn_port {
	uint16_t id; /* ethdev port; of a bond that of the active member, and atomic */
	struct urn_port_config cfg;
	struct urn_port_caps caps;
	uint8_t mac[6];		  /* in use */
	uint16_t room;		  /* data room of a packet, bytes, headroom included */
	struct rte_mempool *pool; /* receive and transmit packets, URN_PORT_PRIV private bytes */
	const struct urn_port_family *family;
	void *family_data; /* owner: the family */
	bool started;	   /* frames may pass; atomic */
	bool direct;	   /* started, plugged in, and of a family whose memory stays; atomic */
	bool faulted;	   /* the port's memory vanished in a burst; atomic */
	bool wanted;	   /* to be started, when the other side allows (memif) */
	bool link_up;	   /* state at the last urn_port_poll_link() */
	uint32_t speed_mbps; /* the link's, at that time; 0: the driver does not know; atomic */
	uint8_t plug;	   /* enum urn_port_plug; atomic */
	uint8_t filter; /* enum urn_port_filter_kind (filter.h); valid once the port was started */
	uint32_t link_changes; /* times that link_up changed; wraps; atomic */
	struct urn_port *active; /* active member of a bond (bond.h); atomic; NULL: no bond */
	uint32_t moves; /* times that another member of a bond became active; wraps; atomic */
	struct urn_port *bond; /* bond of a member; owner: bond.c; NULL: the port is no member */
	/*
	 * Makes a frame whole that crosses the port, before anybody but the two ends of the wire
	 * looks at it; on the lcore that has the frame. Set before frames pass; NULL: all frames
	 * are whole.
	 */
	void (*complete)(struct rte_mbuf *m);
};

/*
 * Private bytes of every mbuf. The dataplane keeps a struct urn_pkt there and
 * asserts that the struct fits.
 */
#define URN_PORT_PRIV 128u

/* Transmit descriptors of each queue that a port will ask for. Needs no EAL. */
uint16_t urn_port_tx_desc(const struct urn_port_config *cfg);
/*
 * Packets that a port needs in its pool, for its descriptors, for the transmit descriptors of the
 * adapter's other port, and for its users. Drivers give packets back that were sent when they
 * send again, so that after a move the rings of the port left go on holding them. Needs no EAL.
 */
uint32_t urn_port_mbufs(const struct urn_port_config *cfg);

/*
 * Bring a port up: probe or attach the device, read its capabilities, make
 * the pool and queues on its NUMA node, start. returns: the port, or NULL with
 * *err. The EAL must be up (eal.h).
 */
struct urn_port *urn_port_open(const struct urn_port_config *cfg, struct urn_err *err);
/* Stop, close, free; removes a vdev that urn_port_open made. NULL is allowed. */
void urn_port_close(struct urn_port *port);

/*
 * Two ports of this process joined back to back by rings (net_ring), each
 * with `cfg[i].queues` queues. returns 0, or -1 with *err.
 */
int urn_port_open_ring_pair(const struct urn_port_config cfg[2], struct urn_port *out[2],
			    struct urn_err *err);

/* The other end of a pair that is open; NULL: the port is none of a pair, or the other end was
 * closed. */
struct urn_port *urn_port_other_end(const struct urn_port *port);

/*
 * Look at the link (by interrupt state or by asking the PMD); call about every
 * 5 ms, never per packet, on one thread at a time: that which polls the port, while one
 * does. Others read link_up and urn_port_speed(). returns: 1 when the link changed since the
 * last call
 */
int urn_port_poll_link(struct urn_port *port);

/*
 * Stop and start again, as when a person pulls the cable. While a port is
 * stopped urn_port_rx() and urn_port_tx() move nothing. returns 0 or -1 with *err
 */
int urn_port_stop(struct urn_port *port, struct urn_err *err);
int urn_port_start(struct urn_port *port, struct urn_err *err);

/* Bits a second of the port's link at the last look, of a bond that of the active member; 0: the
 * driver does not know. Any thread. */
static inline uint64_t
urn_port_speed(const struct urn_port *p)
{
	const struct urn_port *m = __atomic_load_n(&p->active, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&(m != NULL ? m : p)->speed_mbps, __ATOMIC_RELAXED) * 1000000ull;
}

/* Bursts on a port that is stopped or not plugged in, or whose memory can vanish (fault.h). */
uint16_t urn_port_rx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m,
			  uint16_t n);
uint16_t urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m,
			  uint16_t n);

/*
 * True when somebody, a capture of ours or of another program, looks at the frames that a queue
 * sends, or receives. Any thread; somebody may have begun or ended when the call returns.
 */
static inline bool
urn_port_tx_seen(const struct urn_port *p, uint16_t queue)
{
	return __atomic_load_n(&rte_eth_fp_ops[p->id].txq.clbk[queue], __ATOMIC_RELAXED) != NULL;
}

static inline bool
urn_port_rx_seen(const struct urn_port *p, uint16_t queue)
{
	return __atomic_load_n(&rte_eth_fp_ops[p->id].rxq.clbk[queue], __ATOMIC_RELAXED) != NULL;
}

/*
 * Receive or send up to n packets on a queue; one thread at a time each. Packets
 * that were sent belong to the port. returns: how many
 */
static inline uint16_t
urn_port_rx(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	if (__builtin_expect(!__atomic_load_n(&p->direct, __ATOMIC_RELAXED), 0))
		return urn_port_rx_slow(p, queue, m, n);
	return rte_eth_rx_burst(__atomic_load_n(&p->id, __ATOMIC_RELAXED), queue, m, n);
}

static inline uint16_t
urn_port_tx(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	if (__builtin_expect(!__atomic_load_n(&p->direct, __ATOMIC_RELAXED), 0))
		return urn_port_tx_slow(p, queue, m, n);
	return rte_eth_tx_burst(__atomic_load_n(&p->id, __ATOMIC_RELAXED), queue, m, n);
}

#endif
