/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram sockets: one UD queue pair of one adapter. Each datagram has a header with its sender's
 * address and port, as rdma-core writes it. A peer's queue pair is looked up by connection
 * management (SIDR, RDMA_PS_UDP, the socket's port) before the first datagram to it.
 */
#ifndef URN_RSOCKET_DGRAM_H
#define URN_RSOCKET_DGRAM_H

#include "dropin/rdmacm/rsocket/rs.h"

enum {
	URN_RS_DGRAM_BYTES = 2048, /* header and data, at most */
	URN_RS_DGRAM_GRH = 40,
	URN_RS_DGRAM_STRIDE = 2112, /* a receive slot: GRH, header, data, rounded up */
	URN_RS_DGRAM_V4 = 8,	    /* bytes of the header */
	URN_RS_DGRAM_V6 = 24,
	URN_RS_DGRAM_PEERS = 1024,    /* that a socket remembers */
	URN_RS_DGRAM_FRESH_MS = 5000, /* after that a peer is looked up again */
	URN_RS_DGRAM_LOOK_MS = 10000, /* a blocking send waits so long for the look-up */
};

/* A header, as it stands before the data. */
struct urn_rs_dgram_hdr {
	uint8_t version; /* 4 or 6 */
	uint8_t length;	 /* bytes of the header */
	uint16_t port;	 /* network order, as the rest */
	union {
		uint8_t v4[4];
		struct {
			uint32_t flow;
			uint8_t addr[16];
		} v6;
	} addr;
};
_Static_assert(sizeof(struct urn_rs_dgram_hdr) == URN_RS_DGRAM_V6, "layout of the protocol");

/* A peer that datagrams go to. */
struct urn_rs_peer {
	struct sockaddr_storage addr;
	struct rdma_cm_id *look; /* look-up under way; NULL: none */
	bool waits;		 /* ... and sends wait for it: counted in `looking` */
	struct ibv_ah *ah;	 /* NULL: not known yet */
	uint32_t qpn, qkey;
	int err;		     /* why the last look-up failed: errno value */
	uint64_t learned;	     /* ms */
	struct urn_rs_dgram_hdr hdr; /* with the own address towards the peer */
	LIST_ENTRY(urn_rs_peer) next;
};

struct urn_rs_dgram {
	struct rdma_cm_id *listener; /* answers look-ups */
	struct urn_cma_dev *dev;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t rx_slots, tx_slots; /* in the memory */
	uint32_t mtu;		     /* bytes of header and data that the adapter sends */
	uint32_t *ready;	     /* ring of received slots and their bytes */
	uint32_t *ready_len;
	uint32_t head, count;
	uint32_t *free_tx; /* stack of free send slots */
	uint32_t free_tx_n;
	uint32_t looking; /* look-ups for sends that wait */
	LIST_HEAD(, urn_rs_peer) peers;
	uint32_t peer_count;
	struct urn_rs_peer *last;   /* the last one found */
	struct sockaddr_storage to; /* rconnect()'s; family 0: none */
};

/* Write a header for an address. returns: its bytes */
uint8_t urn_rs_dgram_hdr_write(const struct sockaddr *a, uint16_t port,
			       struct urn_rs_dgram_hdr *out);
/* Read a header. len: bytes that there are. returns: bytes of the header; 0: it is none */
uint32_t urn_rs_dgram_hdr_read(const uint8_t *p, uint32_t len, struct sockaddr_storage *from);

/* ---- peers.c; the lock is held */

/* True when two addresses and their ports are the same. */
bool urn_rs_same_addr(const struct sockaddr *a, const struct sockaddr *b);
/* Find a peer, or make one. returns: NULL: no memory */
struct urn_rs_peer *urn_rs_peer_find(struct urn_rs *rs, const struct sockaddr *addr);
/* Begin to look a peer up. returns: 0, or an errno value */
int urn_rs_peer_look(struct urn_rs *rs, struct urn_rs_peer *p);
/* Handle an event of the socket's channel and acknowledge it: the end of a look-up, a peer's
 * look-up of us, or the adapter's end. An id whose last event it is goes. */
void urn_rs_dgram_event(struct urn_rs *rs, struct rdma_cm_event *e);
void urn_rs_peers_free(struct urn_rs *rs);

#endif
