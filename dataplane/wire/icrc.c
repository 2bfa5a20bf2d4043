/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One CRC call runs over the whole packet: a masked copy of the headers alone
 * would cost a second call, which takes as long as 64 bytes do.
 *
 * Long packets are ISA-L's; masked fields are overwritten in place, and put
 * back. That goes by 16 bytes at the offsets that ISA-L loads from. A
 * processor hands a store on to a later load only if one store holds all of
 * the load; single bytes written just before the call make it wait for the
 * cache instead, 15 ns a packet where the CRC of 64 bytes takes 5.
 *
 * Short packets, where ISA-L's way - mask, then one block folded into the next
 * - is mostly waiting, have a CRC of our own, which masks what it loaded and
 * folds all blocks at once. For 48 and 104 bytes (8 and 64 of payload) it takes
 * 6 and 10 ns when there are many in a row and 15 and 18 ns alone, where ISA-L
 * over a masked copy took 7 and 17, and 20 and 30. It leaves the frame alone,
 * whose lines another core wrote and will write again: a line that is only
 * read need not be pulled back from here.
 */
#include "wire/icrc.h"
#include "wire/hdr.h"

#include <stdbool.h>
#include <stddef.h>

#include <isa-l/crc.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef uint8_t v16 __attribute__((vector_size(16)));

/* From the IP header to the BTH, as they lie in a frame. */
struct l3_v4 {
	struct urn_ipv4 ip;
	struct urn_udp udp;
	struct urn_bth bth;
} __attribute__((packed));

struct l3_v6 {
	struct urn_ipv6 ip;
	struct urn_udp udp;
	struct urn_bth bth;
} __attribute__((packed));

_Static_assert(sizeof(struct l3_v4) == 40, "IPv4 to BTH");
_Static_assert(sizeof(struct l3_v6) == 60, "IPv6 to BTH");

enum {
	V4_RSVD = offsetof(struct l3_v4, bth.dqpn), /* F, B and reserved bits of the BTH */
	V6_RSVD = offsetof(struct l3_v6, bth.dqpn),
	V4_BLOCKS = 3, /* of 16 bytes, that reach V4_RSVD */
	V6_BLOCKS = 4,
};
_Static_assert(V4_RSVD / 16 == V4_BLOCKS - 1 && V6_RSVD / 16 == V6_BLOCKS - 1, "blocks");

/* Bytes of the longest short packet: those that ISA-L handles without AVX-512. */
#define SHORT 252u

/* What is or-ed to the headers; a block of zeros more, so that 16 bytes can be loaded anywhere. */
static const uint8_t mask_v4[(V4_BLOCKS + 1) * 16] __attribute__((aligned(16))) = {
	[offsetof(struct l3_v4, ip.tos)] = 0xff,
	[offsetof(struct l3_v4, ip.ttl)] = 0xff,
	[offsetof(struct l3_v4, ip.csum)] = 0xff,
	[offsetof(struct l3_v4, ip.csum) + 1] = 0xff,
	[offsetof(struct l3_v4, udp.csum)] = 0xff,
	[offsetof(struct l3_v4, udp.csum) + 1] = 0xff,
	[V4_RSVD] = 0xff,
};

static const uint8_t mask_v6[(V6_BLOCKS + 1) * 16] __attribute__((aligned(16))) = {
	0x0f, 0xff, 0xff, 0xff, /* all but the version: traffic class and flow label */
	[offsetof(struct l3_v6, ip.hop)] = 0xff,
	[offsetof(struct l3_v6, udp.csum)] = 0xff,
	[offsetof(struct l3_v6, udp.csum) + 1] = 0xff,
	[V6_RSVD] = 0xff,
};

/*
 * ISA-L's AVX-512 path (256 bytes and more) returns with the upper halves of
 * vector registers in use. Each SSE instruction that follows, and DPDK is
 * built of such, would then be slow until they are cleared: 120 ns a packet.
 */
static inline void
leave_avx(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
				 "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
				 "xmm13", "xmm14", "xmm15");
#endif
}

uint32_t
urn_icrc_masked(const uint8_t *l3, uint32_t len)
{
	/* ISA-L's prototype lacks the const; it only reads. */
	uint32_t crc = crc32_gzip_refl(URN_ICRC_SEED, (unsigned char *)(uintptr_t)l3, len);

	leave_avx();
	return crc;
}

/* CRC with the first `blocks` blocks masked meanwhile. blocks is a constant: unrolled. */
static inline __attribute__((always_inline)) uint32_t
icrc_blocks(uint8_t *l3, uint32_t len, const uint8_t *mask, unsigned int blocks)
{
	v16 keep[V6_BLOCKS];
	uint32_t crc;

	for (unsigned int i = 0; i < blocks; i++) {
		v16 m;

		memcpy(&keep[i], l3 + 16 * i, 16);
		memcpy(&m, mask + 16 * i, 16);
		m |= keep[i];
		memcpy(l3 + 16 * i, &m, 16);
	}
	crc = urn_icrc_masked(l3, len);
	for (unsigned int i = 0; i < blocks; i++)
		memcpy(l3 + 16 * i, &keep[i], 16);
	return crc;
}

#ifdef __x86_64__

#define CLMUL __attribute__((target("pclmul")))

/*
 * x^(32 n) mod P, bits reflected, times x: the product of two reflected
 * numbers is one bit short. P: 0x104c11db7, the polynomial of CRC-32. To fold
 * 16 bytes that lie `dist` bytes before the end is to multiply the first 8 by
 * x^(8 dist + 32) and the other 8 by x^(8 dist - 32) (Gopal and others, "Fast
 * CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009).
 */
static const uint64_t power[SHORT / 4 - 2] = {
	0x100000000, 0x1db710640, 0x163cd6124, 0x0ccaa009e, 0x140d44a2e, 0x1751997d0,
	0x065673b46, 0x15a546366, 0x1dac4fb5c, 0x0f1da05aa, 0x14e01d2d4, 0x174359406,
	0x02a283862, 0x03db1ecdc, 0x1b2bdfa4c, 0x1c6e41596, 0x111a288ce, 0x154442bd4,
	0x0653d9822, 0x0ae0b5394, 0x08e42b13e, 0x1c7569e54, 0x18172a68e, 0x18cb44e58,
	0x1cb6b2570, 0x0df068dc2, 0x1aeeec0dc, 0x1d7cfc6ac, 0x0c64ac0b8, 0x1ea89367e,
	0x0019866e8, 0x14a7fe880, 0x1af77fcd4, 0x1e88ef372, 0x07d657a10, 0x03f41287a,
	0x1b6a90298, 0x1fdc60a7c, 0x072d2649a, 0x14b57d3f0, 0x01d5dce44, 0x0e3543be0,
	0x1c2e4669a, 0x10aae2566, 0x0f09a54ac, 0x1816ab61c, 0x105c05c5e, 0x12e958ac4,
	0x0c56d9496, 0x1821d8bc0, 0x067f79476, 0x1e7146aac, 0x0523d48c4, 0x1b35adb0e,
	0x1a84efc4a, 0x125f17dfc, 0x0d63a56a6, 0x19159bb02, 0x08f739cb4, 0x1c47d2a9c,
	0x11fa59a78,
};

/* Load 16 bytes from [n] to keep the last n of a block. */
static const uint8_t last_bytes[32] = {[16] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				       0xff,	    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static inline __m128i
load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* What 16 bytes add to the last 16 of the packet. dist: from their end to its end, not 0. */
static inline CLMUL __m128i
fold(__m128i v, uint32_t dist)
{
	const uint64_t *k = &power[dist / 4];
	__m128i by = _mm_set_epi64x((long long)k[-1], (long long)k[1]);

	return _mm_xor_si128(_mm_clmulepi64_si128(v, by, 0x00), _mm_clmulepi64_si128(v, by, 0x11));
}

/* Remainder of 16 bytes: fold to 12, to 8, then Barrett's reduction; the paper's constants. */
static inline CLMUL uint32_t
reduce(__m128i v)
{
	const __m128i by = _mm_set_epi64x((long long)power[2], (long long)power[3]);
	const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
	const __m128i low = _mm_set_epi32(0, 0, 0, -1);
	__m128i t;

	v = _mm_xor_si128(_mm_clmulepi64_si128(v, by, 0x00), _mm_srli_si128(v, 8));
	v = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(v, low), by, 0x10),
			  _mm_srli_si128(v, 4));
	t = _mm_clmulepi64_si128(_mm_and_si128(v, low), barrett, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low), barrett, 0x00);
	return (uint32_t)_mm_cvtsi128_si32(_mm_srli_si128(_mm_xor_si128(v, t), 4));
}

/* CRC of a short packet. masked: bytes of mask, a constant. */
static inline __attribute__((always_inline)) CLMUL uint32_t
icrc_short(const uint8_t *l3, uint32_t len, const uint8_t *mask, uint32_t masked)
{
	__m128i v = _mm_or_si128(load(l3), load(mask)), sum;
	uint32_t at;

	sum = fold(_mm_xor_si128(v, _mm_cvtsi32_si128((int)~URN_ICRC_SEED)), len - 16);
	for (at = 16; at < masked && at + 16 < len; at += 16) {
		v = _mm_or_si128(load(l3 + at), load(mask + at));
		sum = _mm_xor_si128(sum, fold(v, len - at - 16));
	}
	for (; at + 16 < len; at += 16)
		sum = _mm_xor_si128(sum, fold(load(l3 + at), len - at - 16));
	/* The last block holds bytes of the one before it as well. */
	v = load(l3 + len - 16);
	if (len - 16 < masked)
		v = _mm_or_si128(v, load(mask + len - 16));
	v = _mm_and_si128(v, load(last_bytes + len - at));
	return ~reduce(_mm_xor_si128(sum, v));
}

static CLMUL uint32_t
short_v4(const uint8_t *l3, uint32_t len)
{
	return icrc_short(l3, len, mask_v4, V4_BLOCKS * 16);
}

static CLMUL uint32_t
short_v6(const uint8_t *l3, uint32_t len)
{
	return icrc_short(l3, len, mask_v6, V6_BLOCKS * 16);
}

static inline bool
is_short(uint32_t len)
{
	return len <= SHORT && !(len & 3) && __builtin_cpu_supports("pclmul");
}

#endif

uint32_t
urn_icrc(uint8_t *l3, uint32_t len, int ipv6)
{
#ifdef __x86_64__
	if (__builtin_expect(is_short(len), 1))
		return ipv6 ? short_v6(l3, len) : short_v4(l3, len);
#endif
	return ipv6 ? icrc_blocks(l3, len, mask_v6, V6_BLOCKS)
		    : icrc_blocks(l3, len, mask_v4, V4_BLOCKS);
}
