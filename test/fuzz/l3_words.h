/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP, neighbour discovery and echo in inputs: from a few bytes to a frame. */
#ifndef URN_TEST_L3_WORDS_H
#define URN_TEST_L3_WORDS_H

#include "unit/net/l3_frames.h"

#include <stddef.h>

/* Our MAC, others', broadcast, zero, and a multicast one. */
static inline const uint8_t *
l3_words_mac(unsigned int byte)
{
	static const uint8_t all[6] = {255, 255, 255, 255, 255, 255}, none[6], group[6] = {1, 2, 3};
	const uint8_t *const mac[] = {us_mac,	 peer_mac, other_mac, peer_mac,
				      other_mac, all,	   none,      group};

	return mac[byte & 7];
}

/* Write the frame of a kind, with these addresses, to f[L3_ROOM]. returns: its length */
static inline uint32_t
l3_words(uint8_t *f, uint8_t kind, uint8_t how, const uint8_t *mac, const uint8_t *a,
	 const uint8_t *b, const uint8_t *c)
{
	switch (kind & 3) {
	case 0:
		return l3_arp(f, 1 + (how & 1), mac, a, b);
	case 1:
		return l3_echo(f, a, b, how);
	case 2:
		return l3_solicit(f, a, b, c, how & 1 ? mac : NULL);
	default:
		return l3_advert(f, a, b, how & 1 ? mac : NULL, how & 0x60);
	}
}

#endif
