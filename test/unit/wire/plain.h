/* SPDX-License-Identifier: BSD-3-Clause */
/* A second parser, written to be plain instead of fast, to compare verdicts with. */
#ifndef URN_TEST_PLAIN_H
#define URN_TEST_PLAIN_H

#include "counters.h"
#include "wire/pkt.h"

struct verdict {
	enum urn_frame_kind kind;
	enum urn_counter drop;  /* for URN_FRAME_BAD and URN_FRAME_OTHER */
	/* For URN_FRAME_ROCE: bytes of the frame without Ethernet's padding, and so on. */
	uint32_t len, payload_off, payload_len;
};

static inline uint32_t
be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* The verdict that urn_wire_parse() must give on a frame. */
struct verdict plain_parse(const uint8_t *f, uint32_t len);

#endif
