/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of every other processor: ISA-L, which is also the oracle of the tests. */
#include "crc/kernels.h"

#include <string.h>

#include <isa-l/crc.h>

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
		__asm__ volatile("vzeroupper" ::
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
					   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
					   "xmm13", "xmm14", "xmm15");
#endif
}

static uint32_t
plain(uint32_t seed, const uint8_t *p, size_t len)
{
	/* ISA-L's prototype lacks the const; it only reads. */
	return crc32_gzip_refl(seed, (unsigned char *)(uintptr_t)p, len);
}

static uint32_t
isal_crc(uint32_t seed, const uint8_t *p, size_t len, const uint8_t *mask)
{
	uint8_t front[URN_CRC_MASKED];
	size_t n = 0;
	uint32_t crc;

	if (mask) {
		for (; n < len && n < sizeof(front); n++)
			front[n] = p[n] | mask[n];
		seed = plain(seed, front, n);
	}
	crc = plain(seed, p + n, len - n);
	leave_avx();
	return crc;
}

static uint32_t
isal_copy(uint32_t seed, uint8_t *dst, const uint8_t *src, size_t len)
{
	memcpy(dst, src, len);
	return isal_crc(seed, dst, len, NULL); /* src may have changed */
}

static bool
isal_usable(void)
{
	return true;
}

const struct urn_crc_kernel urn_crc_isal = {
	.name = "isal",
	.usable = isal_usable,
	.crc = isal_crc,
	.copy = isal_copy,
};
