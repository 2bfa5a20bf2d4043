/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One CRC call runs over the whole packet: a masked copy of the headers alone
 * would cost a second call, which takes as long as 64 bytes do. A short packet
 * is copied with its masked fields overwritten; in a long one they are
 * overwritten in place, and put back.
 *
 * Either goes by 16 bytes at the offsets that ISA-L loads from. A
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
_Static_assert(V4_RSVD / 16 == V4_BLOCKS - 1 && V6_RSVD / 16 == V6_BLOCKS - 1, "blocks");

/* Bytes up to which a packet is copied: those that ISA-L handles without AVX-512. */
#define SHORT 252u

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

/*
 * CRC of a short packet over a masked copy. It leaves the frame alone, whose
 * lines another core wrote and will write again: a line that is only read need
 * not be pulled back from here. blocks, mask: as above.
 */
static inline __attribute__((always_inline)) uint32_t
icrc_copy(const uint8_t *l3, uint32_t len, const uint8_t *mask, unsigned int blocks)
{
	uint8_t copy[SHORT] __attribute__((aligned(16)));
	uint32_t at = 0;

	for (; at + 16 <= len; at += 16) {
		v16 v, m;

		memcpy(&v, l3 + at, 16);
		if (at < blocks * 16) {
			memcpy(&m, mask + at, 16);
			v |= m;
		}
		memcpy(copy + at, &v, 16);
	}
	/* All headers, and the payload with its pad, are multiples of 4 bytes. */
	for (; at < len; at += 4) {
		uint32_t v, m = 0;

		memcpy(&v, l3 + at, 4);
		if (at < blocks * 16)
			memcpy(&m, mask + at, 4);
		v |= m;
		memcpy(copy + at, &v, 4);
	}
	return crc32_gzip_refl(URN_ICRC_SEED, copy, len);
}

uint32_t
urn_icrc(uint8_t *l3, uint32_t len, int ipv6)
{
	if (len <= SHORT)
		return ipv6 ? icrc_copy(l3, len, mask_v6, V6_BLOCKS)
			    : icrc_copy(l3, len, mask_v4, V4_BLOCKS);
	return ipv6 ? icrc_blocks(l3, len, mask_v6, V6_BLOCKS)
		    : icrc_blocks(l3, len, mask_v4, V4_BLOCKS);
}
