/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels, and the powers of x that they multiply by. */
#ifndef URN_CRC_KERNELS_H
#define URN_CRC_KERNELS_H

#include "crc/crc.h"

/* Bytes at the end of a packet that urn_crc_end has powers for. */
#define URN_CRC_END 512u

/*
 * Powers of x mod P, bits reflected, in the upper half of a word. A product of two reflected
 * numbers comes out times x: hence exponents of one less than the distance.
 *
 * end: for 16 bytes that are followed by n = 496, 480, ... 0: x^(8 n + 95) for the first 8, whose
 * distance is 8 bytes more, and x^(8 n + 31), both with the 32 zeros of the CRC.
 * by256, by128: bring 16 bytes forward by that many bytes: x^(8 n + 63), x^(8 n - 1); 4 times, for
 * a vector of 64 bytes.
 */
extern const uint64_t urn_crc_end[URN_CRC_END / 8];
extern const uint64_t urn_crc_by256[8];
extern const uint64_t urn_crc_by128[8];

extern const struct urn_crc_kernel urn_crc_isal;
#ifdef __x86_64__
extern const struct urn_crc_kernel urn_crc_sse, urn_crc_avx2, urn_crc_avx512;
#endif

#endif
