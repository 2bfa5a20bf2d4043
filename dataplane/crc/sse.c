/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel of 16 bytes, for x86 with PCLMULQDQ alone. Eight lanes, one for each block of 128
 * bytes, keep the multiplier busy: a product takes up to 7 cycles, and 16 are under way.
 */
#include "crc/kernels.h"

#ifdef __x86_64__

#include "crc/clmul.h"

#define BLOCK 16u
#define LANES 8u
#define INLINE inline __attribute__((always_inline, target("pclmul,sse4.2")))

/* Take the next block: copy it if there is a copy, and mask it while the mask reaches. */
static INLINE __m128i
next(const uint8_t *p, size_t at, uint8_t *dst, const uint8_t *mask)
{
	__m128i v = urn_clmul_load(p + at);

	if (dst)
		_mm_storeu_si128((__m128i *)(void *)(dst + at), v);
	if (mask && at < URN_CRC_MASKED)
		v = _mm_or_si128(v, urn_clmul_load(mask + at));
	return v;
}

/* Blocks from `at` on up to the end, n of them, at most as many as urn_crc_end has powers for. */
static INLINE __m128i
finish(__m128i sum, const uint8_t *p, size_t at, size_t n, uint8_t *dst, const uint8_t *mask)
{
	const uint64_t *by = urn_crc_end + URN_CRC_END / 8 - 2 * n;

	for (; n; n--, at += BLOCK, by += 2)
		sum = _mm_xor_si128(sum, urn_clmul_fold(next(p, at, dst, mask), by));
	return sum;
}

/* Shorten n blocks, the first two of which are v[0], v[1], to the lanes and less than LANES blocks.
 */
static INLINE __m128i
lanes(const __m128i *first, const uint8_t *p, size_t at, size_t n, uint8_t *dst,
      const uint8_t *mask)
{
	__m128i v[LANES], sum = _mm_setzero_si128();
	const uint64_t *by;

	v[0] = first[0];
	v[1] = first[1];
	for (unsigned int i = 2; i < LANES; i++, at += BLOCK)
		v[i] = next(p, at, dst, mask);
	for (n -= LANES; n >= LANES; n -= LANES)
		for (unsigned int i = 0; i < LANES; i++, at += BLOCK)
			v[i] = _mm_xor_si128(urn_clmul_fold(v[i], urn_crc_by128),
					     next(p, at, dst, NULL));
	by = urn_crc_end + URN_CRC_END / 8 - 2 * (n + LANES);
	for (unsigned int i = 0; i < LANES; i++, by += 2)
		sum = _mm_xor_si128(sum, urn_clmul_fold(v[i], by));
	return finish(sum, p, at, n, dst, NULL);
}

/* CRC of 16 bytes and more. dst: copy, or NULL */
static INLINE uint32_t
blocks(uint32_t crc, const uint8_t *p, size_t len, uint8_t *dst, const uint8_t *mask)
{
	size_t n = (len + BLOCK - 1) / BLOCK;
	uint32_t r = (uint32_t)(len - (n - 1) * BLOCK); /* bytes of the first block */
	__m128i v[2], sum;

	v[0] = _mm_xor_si128(next(p, 0, dst, mask), _mm_cvtsi32_si128((int)crc));
	v[0] = urn_clmul_to_end(v[0], r);
	if (n == 1)
		return urn_clmul_reduce(urn_clmul_fold(v[0], urn_crc_end + URN_CRC_END / 8 - 2));
	v[1] = _mm_xor_si128(next(p, r, dst, mask), _mm_cvtsi32_si128((int)urn_clmul_rest(crc, r)));
	if (n > URN_CRC_END / BLOCK)
		return urn_clmul_reduce(lanes(v, p, r + BLOCK, n, dst, mask));
	sum = urn_clmul_fold(v[0], urn_crc_end + URN_CRC_END / 8 - 2 * n);
	sum = _mm_xor_si128(sum, urn_clmul_fold(v[1], urn_crc_end + URN_CRC_END / 8 - 2 * n + 2));
	return urn_clmul_reduce(finish(sum, p, r + BLOCK, n - 2, dst, mask));
}

static __attribute__((target("pclmul,sse4.2"))) uint32_t
sse_crc(uint32_t seed, const uint8_t *p, size_t len, const uint8_t *mask)
{
	if (len < BLOCK)
		return ~urn_clmul_few(~seed, p, (uint32_t)len, mask);
	return mask ? ~blocks(~seed, p, len, NULL, mask) : ~blocks(~seed, p, len, NULL, NULL);
}

static __attribute__((target("pclmul,sse4.2"))) uint32_t
sse_copy(uint32_t seed, uint8_t *dst, const uint8_t *src, size_t len)
{
	if (len < BLOCK) {
		memcpy(dst, src, len);
		return ~urn_clmul_few(~seed, dst, (uint32_t)len, NULL); /* src may have changed */
	}
	return ~blocks(~seed, src, len, dst, NULL);
}

static bool
sse_usable(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
}

static __attribute__((target("pclmul,sse4.2"))) uint64_t
sse_multiply(uint64_t rounds)
{
	__m128i v[URN_CRC_MULTIPLIED], sum = _mm_setzero_si128();
	const __m128i k = urn_clmul_load(urn_crc_by128);

	for (unsigned int i = 0; i < URN_CRC_MULTIPLIED; i++)
		v[i] = urn_clmul_load(urn_crc_end + 2 * i);
	for (; rounds; rounds--)
		for (unsigned int i = 0; i < URN_CRC_MULTIPLIED; i++)
			v[i] = _mm_clmulepi64_si128(v[i], k, 0x00);
	for (unsigned int i = 0; i < URN_CRC_MULTIPLIED; i++)
		sum = _mm_xor_si128(sum, v[i]);
	return (uint64_t)_mm_cvtsi128_si64(sum);
}

const struct urn_crc_kernel urn_crc_sse = {
	.name = "sse",
	.width = BLOCK,
	.usable = sse_usable,
	.crc = sse_crc,
	.copy = sse_copy,
	.multiply = sse_multiply,
};

#endif
