/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sequence numbers: 24 bits, compared as a signed difference (doc/reference/wire.md "PSN"). */
#ifndef URN_TRANSPORT_PSN_H
#define URN_TRANSPORT_PSN_H

#include <stdint.h>

#define URN_PSN_MAX_OUTSTANDING ((1u << 23) - 1)

/* a - b, in -2^23 .. 2^23 - 1. The one helper for comparing PSNs. */
static inline int32_t
urn_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t
urn_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & 0xffffffu;
}

#endif
