/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Management datagrams: 256 bytes that one queue pair 1 sends to another as the payload of a UD
 * SEND (IBTA 13.4, 16.5; linux include/rdma/ib_mad.h). QP1 belongs to the dataplane: no program has
 * it.
 *
 * All fields are in network byte order, and the structs may lie at any address.
 */
#ifndef URN_WIRE_MAD_H
#define URN_WIRE_MAD_H

#include "counters.h"
#include "wire/build.h"

#define URN_MAD_BYTES 256u

enum {
	URN_MAD_BASE_VERSION = 1,

	/* Method: the action; the top bit marks a response. */
	URN_MAD_GET = 0x01,
	URN_MAD_GET_RESP = 0x81,

	/* Management class. */
	URN_MAD_CLASS_CM = 0x07,
	URN_MAD_CLASS_VENDOR2_FIRST = 0x30, /* vendors' classes that carry an OUI */
	URN_MAD_CLASS_VENDOR2_LAST = 0x4f,
};

struct urn_mad_hdr {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;         /* status of a response; 0: good */
	uint16_t class_specific;
	uint64_t tid;            /* transaction id: a response has the id of its request */
	uint16_t attr_id;
	uint16_t rsvd;
	uint32_t attr_mod;
} __attribute__((packed));

/* Segmentation of long MADs; all zero in a MAD that stands alone. */
struct urn_mad_rmpp {
	uint8_t version;
	uint8_t type;
	uint8_t rtime_flags;
	uint8_t status;
	uint32_t segment;
	uint32_t paylen;
} __attribute__((packed));

/* A MAD of a vendor's class from 0x30 to 0x4f. */
struct urn_mad_vendor {
	struct urn_mad_hdr hdr;
	struct urn_mad_rmpp rmpp;
	uint8_t rsvd;
	uint8_t oui[3];          /* vendor that owns the class */
	uint8_t data[216];
} __attribute__((packed));

_Static_assert(sizeof(struct urn_mad_hdr) == 24, "mad header");
_Static_assert(offsetof(struct urn_mad_hdr, tid) == 8, "transaction id");
_Static_assert(offsetof(struct urn_mad_hdr, attr_id) == 16, "attribute id");
_Static_assert(sizeof(struct urn_mad_rmpp) == 12, "rmpp header");
_Static_assert(offsetof(struct urn_mad_vendor, oui) == 37, "oui");
_Static_assert(offsetof(struct urn_mad_vendor, data) == 40, "vendor data");
_Static_assert(sizeof(struct urn_mad_vendor) == URN_MAD_BYTES, "vendor mad");

/*
 * Write a whole frame that carries a MAD from our QP1 to the peer's into an empty mbuf, or over a
 * frame that was received in the mbuf. mad: its URN_MAD_BYTES; path: source and destination; psn:
 * counts up, means nothing; icrc: 0 or 1.
 * returns: 0, or -1 when the mbuf has no room
 */
int urn_mad_frame(struct rte_mbuf *m, const struct urn_path *path, const uint8_t *mad,
		  uint32_t psn, int icrc);

/*
 * Look for a MAD in a received RoCEv2 frame to QP1, parsed and with a good ICRC. *mad then points
 * to its URN_MAD_BYTES within the frame, *sqpn is the queue pair that sent it.
 * returns: 0, or the counter for the reason to drop it: DROP_QP_TYPE, DROP_QKEY, DROP_MAD_LENGTH or
 * DROP_MAD_VERSION
 */
int urn_mad_find(struct rte_mbuf *m, const uint8_t **mad, uint32_t *sqpn);

#endif
