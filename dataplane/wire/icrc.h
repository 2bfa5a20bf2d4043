/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICRC (doc/reference/wire.md "ICRC"): CRC-32 over 8 bytes of ones, then over the bytes from IP
 * header to pad, with ones in the fields that routers may change. The CRC is computed by crc/crc.h.
 */
#ifndef URN_WIRE_ICRC_H
#define URN_WIRE_ICRC_H

#include <stdint.h>

/* Finalised CRC of the 8 leading bytes of ones: the seed for the bytes behind them. */
#define URN_ICRC_SEED 0x2144df1cu

/*
 * CRC of a frame from its IP header on; the masked fields must already hold ones. l3: IP header;
 * len: bytes from there to the end of the pad.
 * returns: the value whose little-endian bytes go on the wire
 */
uint32_t urn_icrc_masked(const uint8_t *l3, uint32_t len);

/*
 * CRC of a frame in wire format; the frame stays as it is. ipv6: 0 or 1. len: bytes from the IP
 * header to the end of the pad, at least to the end of the BTH.
 */
uint32_t urn_icrc(const uint8_t *l3, uint32_t len, int ipv6);

/*
 * Copy the payload into a frame and write the ICRC, in one pass. l3: IP header; all headers, and
 * the pad, are final. payload: place in the frame. src: len bytes; another thread may change them
 * meanwhile, and the ICRC is still that of the frame. The ICRC is written behind payload and pad.
 */
void urn_icrc_gather(const uint8_t *l3, uint8_t *payload, const uint8_t *src, uint32_t len);

#endif
