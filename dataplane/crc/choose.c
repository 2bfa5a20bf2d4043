/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the kernel. */
#include "crc/kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A measurement: the best of TRIES, each of ROUNDS packets of BYTES; ISA-L takes some 0.1 ms for
 * all. */
#define BYTES 4096u
#define ROUNDS 8u
#define TRIES 16u
/* Per cent of the wider kernel's time that a narrower one may take at most to be chosen instead. */
#define BETTER 95u

const struct urn_crc_kernel *const urn_crc_kernels[] = {
#ifdef __x86_64__
	&urn_crc_avx512, &urn_crc_avx2, &urn_crc_sse,
#endif
	&urn_crc_isal,	 NULL,
};

/* ---- before the choice: the widest kernel, found at the first call */

static const struct urn_crc_kernel *
widest(void)
{
	const struct urn_crc_kernel *const *k = urn_crc_kernels;

	while (!(*k)->usable())
		k++; /* the last one is usable everywhere */
	__atomic_store_n(&urn_crc_chosen, *k, __ATOMIC_RELAXED);
	return *k;
}

static uint32_t
first_crc(uint32_t seed, const uint8_t *p, size_t len, const uint8_t *mask)
{
	return widest()->crc(seed, p, len, mask);
}

static uint32_t
first_copy(uint32_t seed, uint8_t *dst, const uint8_t *src, size_t len)
{
	return widest()->copy(seed, dst, src, len);
}

static const struct urn_crc_kernel unknown = {.name = "", .crc = first_crc, .copy = first_copy};

const struct urn_crc_kernel *urn_crc_chosen = &unknown;

/* ---- the choice */

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Time that a kernel takes to copy packets with their CRC and to compute it again, ns. *sum: uses
 * the results */
static uint64_t
time_of(const struct urn_crc_kernel *k, uint8_t *dst, const uint8_t *src, uint32_t *sum)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int i = 0; i < TRIES; i++) {
		uint64_t start = now_ns(), took;

		for (unsigned int n = 0; n < ROUNDS; n++) {
			*sum ^= k->copy(n, dst, src, BYTES);
			*sum ^= k->crc(n, dst, BYTES, NULL);
		}
		took = now_ns() - start;
		best = took < best ? took : best;
	}
	return best;
}

/* The fastest kernel that the processor has; a wider one when the difference is small. */
static const struct urn_crc_kernel *
fastest(void)
{
	uint8_t *mem = calloc(2, BYTES);
	const struct urn_crc_kernel *best = NULL;
	uint64_t best_ns = 0;
	uint32_t sum = 0;

	if (!mem)
		return widest();
	for (const struct urn_crc_kernel *const *k = urn_crc_kernels; *k; k++) {
		uint64_t ns = (*k)->usable() ? time_of(*k, mem, mem + BYTES, &sum) : 0;

		if ((*k)->usable() && (!best || ns * 100 < best_ns * BETTER)) {
			best = *k;
			best_ns = ns;
		}
	}
	mem[0] = (uint8_t)sum; /* so that the computation is not left out */
	free(mem);
	return best;
}

int
urn_crc_use(const char *name, char *why, size_t len)
{
	for (const struct urn_crc_kernel *const *k = urn_crc_kernels; *k; k++) {
		if (strcmp(name, (*k)->name) != 0)
			continue;
		if (!(*k)->usable()) {
			snprintf(why, len,
				 "this processor lacks the instructions of the CRC kernel '%s'",
				 name);
			return -1;
		}
		__atomic_store_n(&urn_crc_chosen, *k, __ATOMIC_RELAXED);
		return 0;
	}
	snprintf(why, len, "'%.32s' is no CRC kernel of this build; it is isal%s", name,
		 urn_crc_kernels[1] ? ", sse, avx2 or avx512" : "");
	return -1;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int result;	 /* 0, or -1: the choice failed */
static char reason[160]; /* why the choice failed */

static void
choose(void)
{
	const char *told = secure_getenv("URNIC_CRC");

	if (told && *told) {
		char why[128];

		result = urn_crc_use(told, why, sizeof(why));
		if (result)
			snprintf(reason, sizeof(reason), "URNIC_CRC: %s", why);
		return;
	}
	__atomic_store_n(&urn_crc_chosen, fastest(), __ATOMIC_RELAXED);
}

int
urn_crc_choose(char *why, size_t len)
{
	pthread_once(&once, choose);
	if (result)
		snprintf(why, len, "%s", reason);
	return result;
}
