/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel of 64 bytes, for AVX-512 with VPCLMULQDQ. Short packets and the first bytes are taken
 * by masked loads, which fault only on bytes that they take.
 */
#include "crc/kernels.h"

#ifdef __x86_64__

#define URN_ALL_VECTORS
#include <immintrin.h>

#include "crc/clmul.h"

#define BLOCK 64u
#define LANES 4u
#define TARGET target("avx2,avx512f,avx512bw,avx512vl,avx512vbmi,pclmul,vpclmulqdq")
#define INLINE inline __attribute__((always_inline, TARGET))

_Static_assert(URN_CRC_MASKED <= BLOCK, "a mask ends in the first two blocks");

static INLINE __m512i
load(const void *p)
{
	return _mm512_loadu_si512(p);
}

/* Sum of three. */
static INLINE __m512i
xor3(__m512i a, __m512i b, __m512i c)
{
	return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

/* sum, and each 8 bytes of v by its power, see urn_clmul_fold(). k: eight powers */
static INLINE __m512i
fold(__m512i sum, __m512i v, __m512i k)
{
	return xor3(sum, _mm512_clmulepi64_epi128(v, k, 0x00),
		    _mm512_clmulepi64_epi128(v, k, 0x11));
}

/* Take the next block, and copy it if there is a copy. */
static INLINE __m512i
next(const uint8_t *p, size_t at, uint8_t *dst)
{
	__m512i v = load(p + at);

	if (dst)
		_mm512_storeu_si512(dst + at, v);
	return v;
}

/* The running CRC as the first 4 bytes of a block. */
static INLINE __m512i
at_front(uint32_t crc)
{
	return _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc));
}

/*
 * The first block: r bytes, 1 to 64, or all that are there when that is less, at its end and zeros
 * in front, with the running CRC. whole: all of the 64 bytes may be read and copied
 */
static INLINE __m512i
first(uint32_t crc, const uint8_t *p, uint32_t r, bool whole, uint8_t *dst, const uint8_t *mask)
{
	__mmask64 few = r ? ~0ull >> (BLOCK - r) : 0;
	__m512i index = _mm512_set_epi8(
		63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43,
		42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22,
		21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	__m512i v = whole ? load(p) : _mm512_maskz_loadu_epi8(few, p);

	if (dst && whole)
		_mm512_storeu_si512(dst, v);
	else if (dst)
		_mm512_mask_storeu_epi8(dst, few, v);
	if (mask)
		v = _mm512_or_si512(v, load(mask));
	v = _mm512_xor_si512(v, at_front(crc));
	index = _mm512_sub_epi8(index, _mm512_set1_epi8((char)(BLOCK - r)));
	return _mm512_maskz_permutexvar_epi8(r ? ~0ull << (BLOCK - r) : 0, index, v);
}

static INLINE uint32_t
reduce(__m512i v)
{
	__m256i h = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));

	return urn_clmul_reduce(
		_mm_xor_si128(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
}

/* Blocks from `at` on up to the end, n of them, at most as many as urn_crc_end has powers for. */
static INLINE __m512i
finish(__m512i sum, const uint8_t *p, size_t at, size_t n, uint8_t *dst)
{
	const uint64_t *by = urn_crc_end + URN_CRC_END / 8 - 8 * n;

	for (; n; n--, at += BLOCK, by += 8)
		sum = fold(sum, next(p, at, dst), load(by));
	return sum;
}

/* Shorten n blocks, the first two of which are given, to the lanes and less than LANES blocks. */
static INLINE __m512i
lanes(__m512i v0, __m512i v1, const uint8_t *p, size_t at, size_t n, uint8_t *dst)
{
	__m512i v[LANES], sum = _mm512_setzero_si512(), k = load(urn_crc_by256);
	const uint64_t *by;

	v[0] = v0;
	v[1] = v1;
	for (unsigned int i = 2; i < LANES; i++, at += BLOCK)
		v[i] = next(p, at, dst);
	for (n -= LANES; n >= LANES; n -= LANES)
		for (unsigned int i = 0; i < LANES; i++, at += BLOCK)
			v[i] = fold(next(p, at, dst), v[i], k);
	by = urn_crc_end + URN_CRC_END / 8 - 8 * (n + LANES);
	for (unsigned int i = 0; i < LANES; i++, by += 8)
		sum = fold(sum, v[i], load(by));
	return finish(sum, p, at, n, dst);
}

/* CRC of any number of bytes. dst: copy, or NULL */
static INLINE uint32_t
blocks(uint32_t crc, const uint8_t *p, size_t len, uint8_t *dst, const uint8_t *mask)
{
	const uint64_t *end = urn_crc_end + URN_CRC_END / 8;
	const __m512i none = _mm512_setzero_si512();
	size_t n = len > BLOCK ? (len + BLOCK - 1) / BLOCK : 1;
	uint32_t r = (uint32_t)(len - (n - 1) * BLOCK); /* bytes of the first block */
	__m512i v0, v1;

	if (n == 1) {
		v0 = first(crc, p, r, false, dst, mask);
		return urn_clmul_rest(crc, r) ^ reduce(fold(none, v0, load(end - 8)));
	}
	v0 = first(crc, p, r, true, dst, mask);
	v1 = next(p, r, dst);
	if (mask)
		v1 = _mm512_or_si512(v1, load(mask + r));
	v1 = _mm512_xor_si512(v1, at_front(urn_clmul_rest(crc, r)));
	if (n > URN_CRC_END / BLOCK)
		return reduce(lanes(v0, v1, p, r + BLOCK, n, dst));
	v0 = fold(fold(none, v0, load(end - 8 * n)), v1, load(end - 8 * n + 8));
	return reduce(finish(v0, p, r + BLOCK, n - 2, dst));
}

static __attribute__((TARGET)) uint32_t
avx512_crc(uint32_t seed, const uint8_t *p, size_t len, const uint8_t *mask)
{
	return mask ? ~blocks(~seed, p, len, NULL, mask) : ~blocks(~seed, p, len, NULL, NULL);
}

static __attribute__((TARGET)) uint32_t
avx512_copy(uint32_t seed, uint8_t *dst, const uint8_t *src, size_t len)
{
	return ~blocks(~seed, src, len, dst, NULL);
}

static bool
avx512_usable(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("vpclmulqdq") &&
	       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
}

static __attribute__((TARGET)) uint64_t
avx512_multiply(uint64_t rounds)
{
	__m512i v[URN_CRC_MULTIPLIED], sum = _mm512_setzero_si512();
	const __m512i k = load(urn_crc_by256);

	for (unsigned int i = 0; i < URN_CRC_MULTIPLIED; i++)
		v[i] = load(urn_crc_end + 4 * i);
	for (; rounds; rounds--)
		for (unsigned int i = 0; i < URN_CRC_MULTIPLIED; i++)
			v[i] = _mm512_clmulepi64_epi128(v[i], k, 0x00);
	for (unsigned int i = 0; i < URN_CRC_MULTIPLIED; i++)
		sum = _mm512_xor_si512(sum, v[i]);
	return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(sum));
}

const struct urn_crc_kernel urn_crc_avx512 = {
	.name = "avx512",
	.width = BLOCK,
	.usable = avx512_usable,
	.crc = avx512_crc,
	.copy = avx512_copy,
	.multiply = avx512_multiply,
};

#endif
