/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps on 16 bytes that the kernels of x86 share. Only functions for processors with PCLMULQDQ may
 * use them. */
#ifndef URN_CRC_CLMUL_H
#define URN_CRC_CLMUL_H

#include "crc/kernels.h"

#include <string.h>

#include <nmmintrin.h>
#include <wmmintrin.h>

#define URN_CLMUL static inline __attribute__((always_inline, target("pclmul,sse4.2")))

URN_CLMUL __m128i
urn_clmul_load(const void *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

/*
 * Multiply each 8 bytes by its power. by: two powers, as in urn_crc_end. returns: the sum of the
 * two products; with powers of urn_crc_end a number of 96 bits, in the upper 96
 */
URN_CLMUL __m128i
urn_clmul_fold(__m128i v, const void *by)
{
	__m128i k = urn_clmul_load(by);

	return _mm_xor_si128(_mm_clmulepi64_si128(v, k, 0x00), _mm_clmulepi64_si128(v, k, 0x11));
}

/*
 * Remainder of 96 bits by P, after Barrett: the quotient is that of the upper 64 bits by P, for
 * which x^96 / P stands, and the product of the quotient with P has the lower 32 bits that the
 * remainder lacks.
 */
URN_CLMUL uint32_t
urn_clmul_reduce(__m128i v)
{
	const __m128i barrett = _mm_set_epi64x(0x1db710641, (long long)0xb4e5b025f7011641);
	__m128i t;

	t = _mm_clmulepi64_si128(_mm_srli_si128(v, 4), barrett, 0x00);
	t = _mm_clmulepi64_si128(t, barrett, 0x10);
	v = _mm_xor_si128(_mm_srli_si128(v, 12), _mm_srli_si128(t, 8));
	return (uint32_t)_mm_cvtsi128_si32(v);
}

/* Load n bytes, 0 to 15, by loads that may overlap but do not go beyond; zeros behind. */
URN_CLMUL __m128i
urn_clmul_load_few(const uint8_t *p, uint32_t n)
{
	uint64_t a = 0, b = 0;

	if (n >= 8) {
		memcpy(&a, p, 8);
		memcpy(&b, p + n - 8, 8);
		/* In two steps: a shift by 64 is not defined. */
		return _mm_set_epi64x((long long)(b >> (8 * (15 - n)) >> 8), (long long)a);
	}
	if (n >= 4) {
		memcpy(&a, p, 4);
		memcpy(&b, p + n - 4, 4);
		return _mm_set_epi64x(0, (long long)(a | b << (8 * (n - 4))));
	}
	if (n >= 2) {
		memcpy(&a, p, 2);
		memcpy(&b, p + n - 2, 2);
		return _mm_set_epi64x(0, (long long)(a | b << (8 * (n - 2))));
	}
	return _mm_set_epi64x(0, n ? *p : 0);
}

/* Move the first n bytes, 0 to 16, to the end of 16, with zeros in front. */
URN_CLMUL __m128i
urn_clmul_to_end(__m128i v, uint32_t n)
{
	static const uint8_t from[32] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,	  2,	3,    4,    5,
		6,    7,    8,	  9,	10,   11,   12,	  13,	14,   15,
	};

	return _mm_shuffle_epi8(v, urn_clmul_load(from + n));
}

/* The part of the running CRC that is due behind the first n bytes. */
URN_CLMUL uint32_t
urn_clmul_rest(uint32_t crc, uint32_t n)
{
	return n < 4 ? crc >> (8 * n) : 0;
}

/* CRC, not inverted before or after, of less than 16 bytes. */
URN_CLMUL uint32_t
urn_clmul_few(uint32_t crc, const uint8_t *p, uint32_t n, const uint8_t *mask)
{
	__m128i v = urn_clmul_load_few(p, n);

	if (mask)
		v = _mm_or_si128(v, urn_clmul_load(mask));
	v = urn_clmul_to_end(_mm_xor_si128(v, _mm_cvtsi32_si128((int)crc)), n);
	return urn_clmul_rest(crc, n) ^
	       urn_clmul_reduce(urn_clmul_fold(v, urn_crc_end + URN_CRC_END / 8 - 2));
}

#endif
