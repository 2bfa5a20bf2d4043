/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link requests and responses as a peer sends them, byte by byte from
 * doc/inside/link.md: nothing here is shared with dataplane/wire.
 */
#ifndef URN_TEST_LINK_MAD_H
#define URN_TEST_LINK_MAD_H

#include <stdint.h>

enum { LINK_MAD = 256, LINK_FRAME_ROOM = 512 };

/* Contents of the MAD, and of the packet around it; link_good() makes a valid one. */
struct link_spec {
	uint8_t base_version, mgmt_class, class_version, method;
	uint16_t status, attr;
	uint64_t tid;
	uint8_t oui[3];
	uint32_t magic;
	uint8_t major, minor;
	uint16_t length;
	uint64_t epoch;
	uint32_t features;
	uint8_t arw;
	const uint8_t *options; /* bytes behind the body, or NULL */
	uint32_t options_len;
	/* The packet. */
	uint8_t opcode;
	uint32_t qkey, sqpn;
	uint32_t bytes;         /* bytes of payload: 256 */
};

/* A valid request or response. Epoch 0x1111, features and ARW code 1. */
struct link_spec link_good(int response, uint64_t tid);

/* Write the 256 bytes of a MAD. */
void link_mad(uint8_t *mad, const struct link_spec *s);

/* A frame between two addresses, GIDs of one family. The ICRC is 0. returns: its length */
uint32_t link_frame(uint8_t *out, const struct link_spec *s, const uint8_t smac[6],
		    const uint8_t src[16], const uint8_t dmac[6], const uint8_t dst[16]);

/* Transaction id of a sent frame, and the start of its body. */
uint64_t link_tid(const uint8_t *frame);
const uint8_t *link_body(const uint8_t *frame);
/* Number of `n` bytes in network order. */
uint64_t link_get(const uint8_t *p, unsigned int n);

#endif
