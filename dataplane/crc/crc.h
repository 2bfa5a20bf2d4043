/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 (0x104c11db7, reflected) of packets, by the kernel that suits the processor best.
 *
 * Kernels sse, avx2 and avx512 multiply without carries, 16, 32 and 64 bytes at a time; isal is
 * ISA-L, for every other processor, and the oracle of the tests. All give the same results, so the
 * choice changes no behaviour. Seeds and results are finalised CRCs: a result is the seed for the
 * bytes behind, as in ISA-L and zlib.
 *
 * The kernels compute from the end. A block of 8 bytes that `n` bytes follow counts x^(8 n + 32)
 * mod P; for the last 512 bytes a table holds these powers, so that blocks do not wait for each
 * other. Longer packets are shortened to that first, by lanes side by side. A length that is no
 * multiple of the block begins with a block that has zeros in front: zeros in front of a packet add
 * nothing to its CRC.
 */
#ifndef URN_CRC_CRC_H
#define URN_CRC_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a mask of struct urn_crc_kernel.crc. */
#define URN_CRC_MASK_BYTES 128u
/* Bytes at the front of a packet that a mask can set; the rest of the mask is 0. */
#define URN_CRC_MASKED 64u

/* Vectors in a round of struct urn_crc_kernel.multiply: the registers of SSE and AVX2 hold no more.
 */
#define URN_CRC_MULTIPLIED 12u

struct urn_crc_kernel {
	const char *name; /* word for URNIC_CRC and for people; constant */
	uint32_t width;	  /* bytes of a vector; 0: unknown, for ISA-L chooses itself; constant */
	bool (*usable)(void); /* true when this processor and its system have the instructions */
	/*
	 * CRC of len bytes at p, any number at any alignment; reads no byte outside. mask: NULL, or
	 * URN_CRC_MASK_BYTES that are or-ed to the first bytes for the computation; p stays as it
	 * is
	 */
	uint32_t (*crc)(uint32_t seed, const uint8_t *p, size_t len, const uint8_t *mask);
	/*
	 * Copy len bytes to dst and give their CRC. The CRC is that of the bytes that were written,
	 * even while another thread changes src. The two do not overlap
	 */
	uint32_t (*copy)(uint32_t seed, uint8_t *dst, const uint8_t *src, size_t len);
	/*
	 * Multiply rounds x URN_CRC_MULTIPLIED vectors, none of which waits for another of its
	 * round: the limit of the multiplier. NULL: the kernel has none. returns: a value that
	 * depends on all products
	 */
	uint64_t (*multiply)(uint64_t rounds);
};

/* All kernels of this build, the widest first; isal is the last one. NULL ends the list. */
extern const struct urn_crc_kernel *const urn_crc_kernels[];

/* Kernel in use; urn_crc() and urn_crc_copy() read it. Written before engines start. */
extern const struct urn_crc_kernel *urn_crc_chosen;

/*
 * Choose the kernel for this process: the one that URNIC_CRC names, else the fastest one that the
 * processor has, by a measurement of less than a millisecond. Called when a dataplane is made; the
 * first call decides, the others return its result. Without a call the widest kernel is in use,
 * without a measurement. returns: 0, or -1 with a sentence in why[len]: URNIC_CRC names no kernel,
 * or one that the processor lacks
 */
int urn_crc_choose(char *why, size_t len);

/*
 * Use this kernel from now on; no other thread computes a CRC meanwhile. name: a word of
 * urn_crc_kernels. returns: 0, or -1 with a sentence in why[len]
 */
int urn_crc_use(const char *name, char *why, size_t len);

/* CRC of len bytes, see struct urn_crc_kernel.crc. */
static inline uint32_t
urn_crc(uint32_t seed, const uint8_t *p, size_t len, const uint8_t *mask)
{
	return __atomic_load_n(&urn_crc_chosen, __ATOMIC_RELAXED)->crc(seed, p, len, mask);
}

/* Copy with CRC, see struct urn_crc_kernel.copy. */
static inline uint32_t
urn_crc_copy(uint32_t seed, uint8_t *dst, const uint8_t *src, size_t len)
{
	return __atomic_load_n(&urn_crc_chosen, __ATOMIC_RELAXED)->copy(seed, dst, src, len);
}

#endif
