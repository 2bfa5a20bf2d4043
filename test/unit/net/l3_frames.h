/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP, neighbour discovery and echo frames as other nodes send them, byte by byte. */
#ifndef URN_TEST_L3_FRAMES_H
#define URN_TEST_L3_FRAMES_H

#include <stdint.h>

enum { L3_ROOM = 2048 }; /* bytes; the longest frame fits */

/* We and a peer: MACs, IPv4 10.0.0.1 and .2, IPv6 fe80::1 and ::2, 2001:db8::1 and ::2. */
extern const uint8_t us_mac[6], peer_mac[6], other_mac[6];
extern const uint8_t us_v4[16], peer_v4[16], us_ll[16], peer_ll[16], us_global[16],
	peer_global[16], no_addr[16];

/* GID number i of 10.x.y.z or fe80::1:x, for floods. */
void l3_nth_v4(uint8_t gid[16], uint32_t i);
void l3_nth_v6(uint8_t gid[16], uint32_t i);

/* Each returns the length of the frame in out[]. GIDs throughout. */
uint32_t l3_arp(uint8_t *out, uint16_t op, const uint8_t sha[6], const uint8_t spa[16],
		const uint8_t tpa[16]);
uint32_t l3_echo(uint8_t *out, const uint8_t src[16], const uint8_t dst[16], uint32_t data);
/* mac NULL: without the option. */
uint32_t l3_solicit(uint8_t *out, const uint8_t src[16], const uint8_t dst[16],
		    const uint8_t target[16], const uint8_t *mac);
/* flags: 0x40 solicited, 0x20 override. */
uint32_t l3_advert(uint8_t *out, const uint8_t dst[16], const uint8_t target[16],
		   const uint8_t *mac, uint8_t flags);
/* A router advertisement to all nodes, from the peer's MAC, without an option. lifetime: seconds;
 * flags: 0x08 high, 0x18 low preference */
uint32_t l3_ra(uint8_t *out, const uint8_t src[16], uint32_t lifetime, uint8_t flags);
/* Add an option of `units` times 8 bytes, zero behind its head, to an ICMPv6 message of len bytes.
 */
uint32_t l3_option(uint8_t *out, uint32_t len, uint8_t type, uint8_t units);
/* Add prefix information. flags: 0x80 on the link; valid: seconds */
uint32_t l3_prefix(uint8_t *out, uint32_t len, const uint8_t prefix[16], uint8_t bits,
		   uint8_t flags, uint32_t valid);
/* Correct every checksum of a frame after a change. */
void l3_fix(uint8_t *frame, uint32_t len);
/* True when the checksums of a frame are right. Computed the long way. */
int l3_sums_ok(const uint8_t *frame, uint32_t len);

#endif
