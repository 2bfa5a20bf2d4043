/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of every opcode, made with the builder, for the tests of wire/. */
#ifndef URN_TEST_FRAMES_H
#define URN_TEST_FRAMES_H

#include "wire/build.h"

enum { FRAME_ROOM = 4608 }; /* bytes; the longest frame fits */

/* Contents of a frame. */
struct frame_spec {
	uint8_t opcode;
	int ipv6;         /* 0 or 1 */
	uint32_t payload; /* bytes */
	uint32_t dqpn, psn;
	uint8_t tos, ttl;
	int ackreq;
};

/* A path between two made-up nodes. */
struct urn_path frame_path(int ipv6);

/*
 * Build a frame with its ICRC; payload and extension headers are filled with
 * bytes that depend on psn. out: FRAME_ROOM bytes. returns its length
 */
uint32_t frame_make(uint8_t *out, const struct frame_spec *spec);

/* Correct the IPv4 header checksum after a change. IPv6: nothing. */
void frame_fix_csum(uint8_t *frame, uint32_t len);

/* Known opcodes in ascending order; returns how many. */
unsigned int frame_opcodes(uint8_t out[256]);

#endif
