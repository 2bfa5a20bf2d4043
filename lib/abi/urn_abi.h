/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The register specification of the urnic NIC, which a program (lib/) and the
 * dataplane agree on. Everything here is position-independent: offsets from
 * the start of the client's area, never pointers, because the two sides map
 * that area at different addresses once the dataplane is a process of its own.
 *
 * Trust: the dataplane copies what the client writes once, then checks it,
 * then uses the copy (architecture rule 3). The client may trust the dataplane.
 *
 * Indices named `prod` and `cons` run free over 2^32; a slot is index & mask.
 */
#ifndef URN_ABI_H
#define URN_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The versions that this release speaks, the newest and the oldest (abi/agree.h). */
#define URN_ABI_VERSION 7u
#define URN_ABI_VERSION_OLDEST 6u

#define URN_ABI_CACHE_LINE 64u

/* Limits that both sides check. */
enum {
	URN_ABI_MAX_ENGINES = 16,     /* engines (lcores) of one dataplane */
	URN_ABI_MAX_SGE = 16,         /* gather or scatter elements of a request */
	URN_ABI_MAX_INLINE = 256,     /* bytes of inline data of a request */
	URN_ABI_MAX_WR = 32768,       /* entries of one send or receive queue */
	URN_ABI_MAX_CQE = 4194304,    /* entries of one completion queue */
	URN_ABI_MAX_RD_ATOMIC = 128,  /* READs and atomics in flight, each way */
	URN_ABI_MAX_QP_ENGINE = 1 << 18, /* QPs of one client on one engine */
};

/* Largest message (IBTA 9.7.8). */
#define URN_ABI_MAX_MSG (1u << 31)

#define URN_ABI_ALIGNED(n) __attribute__((aligned(n)))

/*
 * A function of the fast path. The linker puts these next to each other: scattered over a megabyte
 * of code, they take lines of the instruction cache from one another, and half a round trip of
 * 8 bytes is a tenth longer.
 */
#define URN_FAST __attribute__((hot))

#endif
