/* SPDX-License-Identifier: BSD-3-Clause */
/* The ICRC, bit by bit into a table: not a library's CRC, and not the product's. */
#include "peer_wire.h"

#include <string.h>

enum { POLY = (int)0xedb88320 }; /* CRC-32 of Ethernet, lowest bit first */

static uint32_t table[256];

static void
make_table(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t r = byte;

		for (int bit = 0; bit < 8; bit++)
			r = r & 1 ? r >> 1 ^ (uint32_t)POLY : r >> 1;
		table[byte] = r;
	}
}

static uint32_t
feed(uint32_t r, const uint8_t *at, size_t len)
{
	while (len--)
		r = table[(r ^ *at++) & 0xff] ^ r >> 8;
	return r;
}

/* Bytes that routers change count as ones (IBTA annex A17.3.3; IBTA 7.8.1). */
static void
mask(uint8_t *h, bool v6)
{
	size_t udp = v6 ? 40 : 20;

	if (v6) {
		h[0] |= 0x0f; /* traffic class, flow label */
		memset(h + 1, 0xff, 3);
		h[7] = 0xff; /* hop limit */
	} else {
		h[1] = 0xff;              /* type of service */
		h[8] = 0xff;              /* time to live */
		h[10] = h[11] = 0xff;     /* header checksum */
	}
	h[udp + 6] = h[udp + 7] = 0xff;   /* UDP checksum */
	h[udp + 8 + 4] = 0xff;            /* BTH: FECN, BECN and six reserved bits */
}

uint32_t
pw_icrc(const uint8_t *ip, size_t len)
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	bool v6 = ip[0] >> 4 == 6;
	size_t masked = (v6 ? 40 : 20) + 8 + 12;
	uint8_t head[60];
	uint32_t r;

	if (!table[1])
		make_table();
	memcpy(head, ip, masked);
	mask(head, v6);
	r = feed(UINT32_MAX, ones, sizeof(ones));
	r = feed(r, head, masked);
	return ~feed(r, ip + masked, len - masked);
}
