/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link request and the link response, by which two adapters tell each other their features
 * beyond RoCEv2 (doc/inside/link.md).
 */
#ifndef URN_WIRE_LINK_H
#define URN_WIRE_LINK_H

#include "wire/features.h"
#include "wire/mad.h"

#include <stdbool.h>

/* Align-RDMA-write code: the length of a cache line. Unknown codes mean NONE. */
enum urn_link_arw {
	URN_LINK_ARW_NONE = 0, /* not supported */
	URN_LINK_ARW_64 = 1,
	URN_LINK_ARW_128 = 2,
	URN_LINK_ARW_256 = 3,
};

enum {
	URN_LINK_CLASS = 0x4e,         /* management class */
	URN_LINK_CLASS_VERSION = 1,
	URN_LINK_ATTR_REQUEST = 0x0010,
	URN_LINK_ATTR_RESPONSE = 0x0011,
	URN_LINK_MAJOR = 1,            /* messages of another major version are not understood */
	URN_LINK_MINOR = 0,            /* a newer minor version adds only fields that we ignore */
};
#define URN_LINK_MAGIC 0x55524e4cu     /* "URNL" */

/* Body of a message, in urn_mad_vendor.data; network byte order. */
struct urn_link_body {
	uint32_t magic;
	uint8_t major, minor;
	uint16_t length;   /* bytes of this struct and of the options behind it; a multiple of 4 */
	uint64_t epoch;    /* random number drawn when the adapter came up */
	uint32_t features; /* features offered: URN_LINK_F_ bits */
	uint8_t arw;       /* low four bits: enum urn_link_arw */
	uint8_t rsvd[11];  /* sent as 0, ignored */
} __attribute__((packed));
_Static_assert(sizeof(struct urn_link_body) == 32, "link body");
_Static_assert(offsetof(struct urn_link_body, features) == 16, "link features");

/* An option: a value of `length` bytes and pad to a multiple of 4 follow. */
struct urn_link_option {
	uint16_t type;     /* no type is known yet: all options are skipped */
	uint16_t length;
} __attribute__((packed));
_Static_assert(sizeof(struct urn_link_option) == 4, "link option");

/* Information of one adapter about itself; host byte order. */
struct urn_link_info {
	uint64_t epoch;
	uint32_t features; /* features offered, including unknown bits */
	uint8_t major, minor;
	uint8_t arw;       /* enum urn_link_arw */
};

struct urn_link_msg {
	bool response;
	uint64_t tid;
	struct urn_link_info info; /* for another major version only epoch, major and minor */
};

/* Write a MAD, all of its URN_MAD_BYTES. major and minor are ours; those of the info are ignored. */
void urn_link_write(uint8_t *mad, const struct urn_link_msg *msg);

/*
 * Read a MAD of base version 1, URN_MAD_BYTES long, sent by queue pair sqpn.
 * returns: LINK_REQ_RX or LINK_RESP_RX with *msg filled in; LINK_REFUSED: a request of ours, with
 * transaction id msg->tid, came back with a status; or the reason to drop the MAD: DROP_MAD_CLASS:
 * not of this class, DROP_MAD_METHOD, DROP_LINK_SOURCE, DROP_LINK_MAGIC, DROP_LINK_LENGTH,
 * DROP_LINK_OPTION
 */
enum urn_counter urn_link_read(const uint8_t *mad, uint32_t sqpn, struct urn_link_msg *msg);

/* The code of a cache line of this many bytes. */
enum urn_link_arw urn_link_arw_code(long line_bytes);
/* Bytes of the cache line of a code; 0: NONE, or an unknown code (AW-2). */
uint32_t urn_link_arw_bytes(uint8_t code);

#endif
