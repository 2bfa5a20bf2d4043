/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The masked fields are overwritten in place, one CRC call runs over the whole
 * packet, and they are put back: a masked copy of the headers would cost a
 * second call, which takes as long as 64 bytes do.
 *
 * The overwriting goes by 16 bytes at the offsets that ISA-L loads from. A
 * processor hands a store on to a later load only if one store holds all of
 * the load; single bytes written just before the call make it wait for the
 * cache instead, 15 ns a packet where the CRC of 64 bytes takes 5.
 */
#include "wire/icrc.h"
#include "wire/hdr.h"

#include <stddef.h>

#include <isa-l/crc.h>

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
_Static_assert(V4_RSVD == 32, "the only masked byte of the third block");
_Static_assert(V6_BLOCKS * 16 <= sizeof(struct l3_v6) + URN_ICRC_BYTES,
	       "the blocks end within the shortest IPv6 packet");

static const uint8_t mask_v4[V4_BLOCKS * 16] __attribute__((aligned(16))) = {
	[offsetof(struct l3_v4, ip.tos)] = 0xff,
	[offsetof(struct l3_v4, ip.ttl)] = 0xff,
	[offsetof(struct l3_v4, ip.csum)] = 0xff,
	[offsetof(struct l3_v4, ip.csum) + 1] = 0xff,
	[offsetof(struct l3_v4, udp.csum)] = 0xff,
	[offsetof(struct l3_v4, udp.csum) + 1] = 0xff,
	[V4_RSVD] = 0xff,
};

static const uint8_t mask_v6[V6_BLOCKS * 16] __attribute__((aligned(16))) = {
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

/* A BTH and nothing else: the third block would reach past the place of the ICRC. */
static __attribute__((noinline)) uint32_t
icrc_v4_short(uint8_t *l3, uint32_t len)
{
	uint8_t keep = l3[V4_RSVD];
	uint32_t crc;

	l3[V4_RSVD] = 0xff;
	crc = icrc_blocks(l3, len, mask_v4, 2);
	l3[V4_RSVD] = keep;
	return crc;
}

uint32_t
urn_icrc(uint8_t *l3, uint32_t len, int ipv6)
{
	if (ipv6)
		return icrc_blocks(l3, len, mask_v6, V6_BLOCKS);
	if (len + URN_ICRC_BYTES < V4_BLOCKS * 16)
		return icrc_v4_short(l3, len);
	return icrc_blocks(l3, len, mask_v4, V4_BLOCKS);
}
