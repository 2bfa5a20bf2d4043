/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of stream rsockets, version 1, as rdma-core speaks it.
 *
 * Private data of the REQ and REP tell each side's credits, its first receive buffer, and its
 * *target list*: two entries that name receive buffers of the other side, and behind them the map
 * entries of riomap(). All messages are RDMA WRITEs with immediate data: bytes go into the peer's
 * receive buffer, new entries into the peer's target list. The immediate data have the operation in
 * the upper three bits.
 */
#ifndef URN_RSOCKET_WIRE_H
#define URN_RSOCKET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	URN_RS_VERSION = 1,
	URN_RS_FLAG_BIG = 1 << 0,   /* the sender is big endian */
	URN_RS_FLAG_IOMAP = 1 << 1, /* map entries follow the target list */
	URN_RS_TARGETS = 2,	    /* entries of the own target list */
	URN_RS_TARGETS_MOST = 1024, /* entries of a peer's target list that are believed */
	URN_RS_IOMAPS_MOST = 16384, /* map entries that the private data can tell */
};

/* Operations: bits 31..29 of the immediate data. */
enum urn_rs_op {
	URN_RS_DATA = 0,  /* argument: bytes written to the receive buffer */
	URN_RS_SGL = 4,	  /* argument: number of the last message that may be sent, 16 bits */
	URN_RS_IOMAP = 6, /* argument: index of the map entry */
	URN_RS_CTRL = 7,  /* argument: enum urn_rs_ctrl */
};

enum urn_rs_ctrl { URN_RS_DISCONNECT = 0, URN_RS_KEEPALIVE = 1, URN_RS_SHUTDOWN = 2 };

#define URN_RS_ARG_MASK 0x1fffffffu

/* An entry of a target list, in the byte order of its owner. In private data: network order. */
struct urn_rs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t length; /* bytes; last, so that an entry counts when it is complete */
};
_Static_assert(sizeof(struct urn_rs_sge) == 16, "layout of the protocol");

/* A map entry, in the byte order of its owner. */
struct urn_rs_map {
	uint64_t offset; /* that riowrite() names */
	struct urn_rs_sge sge;
};
_Static_assert(sizeof(struct urn_rs_map) == 24, "layout of the protocol");

/* Private data as they stand in a message. */
struct urn_rs_conn_wire {
	uint8_t version;
	uint8_t flags;
	uint8_t credits[2];
	uint8_t reserved[3];
	uint8_t iomaps; /* number of map entries, scaled */
	struct urn_rs_sge targets;
	struct urn_rs_sge buffer;
};
_Static_assert(sizeof(struct urn_rs_conn_wire) == 40, "layout of the protocol");

/* Private data, read. */
struct urn_rs_conn {
	uint16_t credits;	   /* messages that the sender takes at first */
	bool big;		   /* the sender is big endian */
	uint32_t iomaps;	   /* map entries behind the target list */
	struct urn_rs_sge targets; /* the sender's target list; length: entries */
	struct urn_rs_sge buffer;  /* the sender's first receive buffer */
};

static inline uint32_t
urn_rs_msg(enum urn_rs_op op, uint32_t arg)
{
	return (uint32_t)op << 29 | (arg & URN_RS_ARG_MASK);
}

static inline enum urn_rs_op
urn_rs_msg_op(uint32_t msg)
{
	return (enum urn_rs_op)(msg >> 29);
}

static inline uint32_t
urn_rs_msg_arg(uint32_t msg)
{
	return msg & URN_RS_ARG_MASK;
}

/* Write private data. */
void urn_rs_conn_write(const struct urn_rs_conn *c, struct urn_rs_conn_wire *out);
/* Read and check a peer's private data. returns: 0; EPROTO: not of this protocol, or impossible */
int urn_rs_conn_read(const void *data, size_t len, struct urn_rs_conn *out);

/* Numbers of map entries go through private data in 8 bits. returns: the number that arrives */
uint32_t urn_rs_iomaps_round(uint32_t n);

/* Write an entry for a peer. swap: the peer's byte order is the other one */
void urn_rs_sge_write(struct urn_rs_sge *out, uint64_t addr, uint32_t key, uint32_t length,
		      bool swap);
/* Read an entry of the own list, which the peer may write at any time. */
struct urn_rs_sge urn_rs_sge_read(const struct urn_rs_sge *shared);

/*
 * Find the map entry with an offset; the peer may write the entries at any time.
 *
 * sge: set to what lies at the offset and behind it
 */
bool urn_rs_map_find(const struct urn_rs_map *shared, uint32_t n, uint64_t offset,
		     struct urn_rs_sge *sge);

#endif
