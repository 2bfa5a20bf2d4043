/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One CRC call runs over the whole packet: a masked copy of the headers alone would cost a second
 * call, which takes as long as 64 bytes do.
 *
 * ISA-L computes the CRC of long packets; masked fields are overwritten in place, and put back,
 * by stores of 16 bytes at the offsets that ISA-L loads from. A processor forwards a store to a
 * later load only if one store holds all bytes of the load; single bytes written just before the
 * call make it wait for the cache instead, 15 ns a packet where the CRC of 64 bytes takes 5 ns.
 *
 * Short packets, where ISA-L's way - mask, then fold one block into the next - is mostly waiting,
 * have a CRC of our own, which masks the loaded bytes and folds all blocks at once. For 48 and 104
 * bytes (8 and 64 of payload) our CRC takes 5 and 10 ns when there are many packets in a row and 11
 * and 13 ns for one alone, where ISA-L over a masked copy took 7 and 17 ns, and 20 and 30 ns. Our
 * CRC leaves the frame unchanged, whose lines another core wrote and will write again: a line that
 * is only read need not be pulled back from here.
 */
#include "wire/icrc.h"
#include "wire/hdr.h"

#include <stddef.h>

#include <isa-l/crc.h>
#ifdef __x86_64__
#include <wmmintrin.h>
#endif

typedef uint8_t v16 __attribute__((vector_size(16)));

/* Headers from the IP header to the BTH, in the layout of a frame. */
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
	V4_BLOCKS = 3, /* blocks of 16 bytes that reach V4_RSVD */
	V6_BLOCKS = 4,
};
_Static_assert(V4_RSVD / 16 == V4_BLOCKS - 1 && V6_RSVD / 16 == V6_BLOCKS - 1, "blocks");

/* Bytes of the longest short packet: those that ISA-L handles without AVX-512. */
#define SHORT 252u

/* Masks that are or-ed to the headers; one more block of zeros, so that 16 bytes can be loaded anywhere. */
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
 * ISA-L's AVX-512 path (256 bytes and more) returns with the upper halves of vector registers in
 * use. Each SSE instruction that follows, and DPDK consists of such, would then be slow until those
 * halves are cleared: 120 ns a packet.
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

/* CRC with the first `blocks` blocks masked meanwhile. `blocks` is a constant, so the loops are unrolled. */
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
 * x^(32 n + 31) mod P, bits reflected; P: 0x104c11db7, the polynomial of CRC-32. A product of two
 * reflected numbers comes out times x: hence 31 and not 32. Even n from 60 down to 0, odd n from 61
 * down to 1: so 16 loaded bytes hold the two powers that a block needs, and the powers of the block
 * behind come next.
 */
#define K(power) ((uint64_t)(power) << 32)
static const uint64_t power[2][SHORT / 8] __attribute__((aligned(16))) = {
	{
		K(0x0077f00d), K(0x1f0c2cdd), K(0x4a28bd43), K(0xfe807bbd), K(0x682bdd4f),
		K(0x3c656ced), K(0x596c8d81), K(0xf5e48c85), K(0x5a1bb05d), K(0xd1df2327),
		K(0xe3543be0), K(0x9026d5b1), K(0x26b70c3d), K(0x3f41287a), K(0x33fff533),
		K(0x910eeec1), K(0x31f8303f), K(0x0cbec0ed), K(0xdf068dc2), K(0x57c54819),
		K(0x1c279815), K(0xae0b5394), K(0x8f352d95), K(0x1d9513d7), K(0x3db1ecdc),
		K(0xaf449247), K(0xf1da05aa), K(0x81256527), K(0xae689191), K(0xccaa009e),
		K(0x00000001),
	},
	{
		K(0x27d0443c), K(0xc4d49c39), K(0x8f739cb4), K(0xd63a56a6), K(0x733ffa0b),
		K(0x523d48c4), K(0x67f79476), K(0xc56d9496), K(0xdeb15a1f), K(0xf09a54ac),
		K(0x199560db), K(0x1d5dce44), K(0x72d2649a), K(0x6dd804d9), K(0x7d657a10),
		K(0x7406fa95), K(0x019866e8), K(0xc64ac0b8), K(0x759fc69d), K(0x101a2331),
		K(0x5a03a0cf), K(0x8e42b13e), K(0x653d9822), K(0xcad38e8f), K(0x69ccfc0d),
		K(0x2a283862), K(0x9570d495), K(0x01b5fd1d), K(0x65673b46), K(0x9ba54c6f),
		K(0xb8bc6765),
	},
};
#undef K

/* Masks: 16 bytes loaded from [n] keep the last n bytes of a block. */
static const uint8_t last_bytes[32] = {[16] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
				       0xff,	    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static inline __m128i
load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/*
 * Fold each 8 bytes: times the power for the bytes behind them, and 32 zeros for the CRC. The
 * result is a number of 96 bits, in the upper 96, with the same remainder. k: powers
 */
static inline CLMUL __m128i
fold(__m128i v, const uint64_t *k)
{
	__m128i by = load((const uint8_t *)k);

	return _mm_xor_si128(_mm_clmulepi64_si128(v, by, 0x00), _mm_clmulepi64_si128(v, by, 0x11));
}

/* Powers for 16 bytes that end `dist` bytes before the end of the packet. */
static inline const uint64_t *
powers(uint32_t dist)
{
	return &power[dist / 4 & 1][SHORT / 8 - 2 - dist / 8];
}

/*
 * Remainder of 96 bits by P, after Barrett: the quotient is that of the upper 64 bits by P, for
 * which x^96 / P stands, and the product of the quotient with P has the lower 32 bits that the
 * remainder lacks.
 */
static inline CLMUL uint32_t
reduce(__m128i v)
{
	const __m128i barrett = _mm_set_epi64x(0x1db710641, (long long)0xb4e5b025f7011641);
	__m128i t;

	t = _mm_clmulepi64_si128(_mm_srli_si128(v, 4), barrett, 0x00);
	t = _mm_clmulepi64_si128(t, barrett, 0x10);
	v = _mm_xor_si128(_mm_srli_si128(v, 12), _mm_srli_si128(t, 8));
	return (uint32_t)_mm_cvtsi128_si32(v);
}

/* CRC of a short packet. masked: bytes of `mask`, a constant. */
static inline __attribute__((always_inline)) CLMUL uint32_t
icrc_short(const uint8_t *l3, uint32_t len, const uint8_t *mask, uint32_t masked)
{
	__m128i v = _mm_or_si128(load(l3), load(mask)), sum;
	const uint64_t *k = powers(len - 16);
	uint32_t at;

	sum = fold(_mm_xor_si128(v, _mm_cvtsi32_si128((int)~URN_ICRC_SEED)), k);
	for (at = 16; at < masked && at + 16 < len; at += 16) {
		v = _mm_or_si128(load(l3 + at), load(mask + at));
		sum = _mm_xor_si128(sum, fold(v, k += 2));
	}
	for (; at + 16 < len; at += 16)
		sum = _mm_xor_si128(sum, fold(load(l3 + at), k += 2));
	/* The last block holds bytes of the one before, too. */
	v = load(l3 + (len - 16));
	if (len - 16 < masked)
		v = _mm_or_si128(v, load(mask + (len - 16)));
	v = _mm_and_si128(v, load(last_bytes + (len - at)));
	return ~reduce(_mm_xor_si128(sum, fold(v, powers(0))));
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

#endif

/* CRC of a short packet where the processor has no such instruction, over a masked copy. */
static __attribute__((noinline)) uint32_t
icrc_copy(const uint8_t *l3, uint32_t len, const uint8_t *mask, uint32_t masked)
{
	uint8_t copy[SHORT];

	memcpy(copy, l3, len);
	for (uint32_t i = 0; i < masked && i < len; i++)
		copy[i] |= mask[i];
	return urn_icrc_masked(copy, len);
}

static inline uint32_t
icrc_any_short(const uint8_t *l3, uint32_t len, int ipv6)
{
#ifdef __x86_64__
	if (__builtin_expect(!(len & 3) && __builtin_cpu_supports("pclmul"), 1))
		return ipv6 ? short_v6(l3, len) : short_v4(l3, len);
#endif
	return ipv6 ? icrc_copy(l3, len, mask_v6, V6_BLOCKS * 16)
		    : icrc_copy(l3, len, mask_v4, V4_BLOCKS * 16);
}

uint32_t
urn_icrc(uint8_t *l3, uint32_t len, int ipv6)
{
	if (len <= SHORT)
		return icrc_any_short(l3, len, ipv6);
	return ipv6 ? icrc_blocks(l3, len, mask_v6, V6_BLOCKS)
		    : icrc_blocks(l3, len, mask_v4, V4_BLOCKS);
}
