/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-perf crc: the speed of the CRC kernels, in cache, against the limit of the multiplier.
 *
 * The limit: a loop of multiplications, none of which waits for another, gives multiplications a
 * cycle. A CRC multiplies each 16 bytes twice, so a vector of w bytes costs two multiplications
 * and the limit is w / 2 bytes for each multiplication that a cycle can take.
 *
 * Each figure is the best of many short runs: the time of a run that nothing interrupted. Cycles
 * are those of the TSC. Packets of a run lie at different places and do not wait for each other,
 * like packets of a burst.
 */
#include "crc.h"

#include "common/json.h"

#include "crc/crc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define TRIES 600u   /* runs of a measurement */
#define PACKETS 64u  /* packets of a run */
#define ROUNDS 1000u /* rounds of multiplications of a run */
#define PLACES 2u    /* packets with different places */
#define OFFSET 14u   /* bytes of an Ethernet header: where ICRCs begin in a buffer */
#define SIZES 7u

/* Results of a kernel and a size; TSC cycles a packet. */
struct crc_result {
	double crc;   /* the CRC */
	double copy;  /* copy and CRC in one pass */
	double apart; /* memcpy(), then ISA-L's CRC */
};

/* Memory of a run. */
struct crc_mem {
	uint8_t *src, *dst; /* PLACES x CRC_LONGEST bytes, and an offset; owner: crc_main() */
	uint32_t sum;	    /* sum of all results, so that none is left out */
	const struct urn_crc_kernel *chosen; /* the process's own; constant */
};

/* ---- measuring */

/* Multiplications a cycle, at best. */
static double
limit_of(const struct urn_crc_kernel *k, struct crc_mem *mem)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int t = 0; t < TRIES; t++) {
		uint64_t start = rte_rdtsc_precise(), took;

		mem->sum ^= (uint32_t)k->multiply(ROUNDS);
		took = rte_rdtsc_precise() - start;
		best = RTE_MIN(took, best);
	}
	return (double)ROUNDS * URN_CRC_MULTIPLIED / (double)best;
}

static uint32_t
crc_once(const struct urn_crc_kernel *k, uint8_t *dst, const uint8_t *src, uint32_t size)
{
	(void)dst;
	return k->crc(size, src + OFFSET, size, NULL);
}

static uint32_t
copy_once(const struct urn_crc_kernel *k, uint8_t *dst, const uint8_t *src, uint32_t size)
{
	return k->copy(size, dst + OFFSET, src, size);
}

static uint32_t
apart_once(const struct urn_crc_kernel *isal, uint8_t *dst, const uint8_t *src, uint32_t size)
{
	memcpy(dst + OFFSET, src, size);
	return isal->crc(size, dst + OFFSET, size, NULL);
}

typedef uint32_t once_fn(const struct urn_crc_kernel *k, uint8_t *dst, const uint8_t *src,
			 uint32_t size);

/* TSC cycles a packet, at best. */
static double
cycles_of(once_fn *once, const struct urn_crc_kernel *k, uint32_t size, struct crc_mem *mem)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int t = 0; t < TRIES; t++) {
		uint64_t start = rte_rdtsc_precise(), took;

		for (unsigned int i = 0; i < PACKETS; i++) {
			size_t at = i % PLACES * (size_t)CRC_LONGEST;

			mem->sum ^= once(k, mem->dst + at, mem->src + at, size);
		}
		took = rte_rdtsc_precise() - start;
		best = RTE_MIN(took, best);
	}
	return (double)best / PACKETS;
}

/* The last kernel of the list. */
static const struct urn_crc_kernel *
isal(void)
{
	const struct urn_crc_kernel *const *k = urn_crc_kernels;

	while (k[1])
		k++;
	return *k;
}

static struct crc_result
measure(const struct urn_crc_kernel *k, uint32_t size, struct crc_mem *mem)
{
	return (struct crc_result){
		.crc = cycles_of(crc_once, k, size, mem),
		.copy = cycles_of(copy_once, k, size, mem),
		.apart = cycles_of(apart_once, isal(), size, mem),
	};
}

/* ---- results */

static void
print_size(uint32_t size, const struct crc_result *r, double limit)
{
	printf("  %5u bytes: CRC %6.2f bytes a cycle", size, size / r->crc);
	if (limit > 0)
		printf(", %3.0f %% of the limit", 100 * size / r->crc / limit);
	printf("; copy and CRC %6.1f cycles, memcpy and ISA-L %6.1f: %.2f times\n", r->copy,
	       r->apart, r->apart / r->copy);
}

static void
json_size(struct urn_json *j, uint32_t size, const struct crc_result *r, double limit)
{
	urn_json_object(j, NULL);
	urn_json_u64(j, "size", size);
	urn_json_num(j, "crc_cycles", r->crc, 1);
	urn_json_num(j, "bytes_per_cycle", size / r->crc, 2);
	if (limit > 0)
		urn_json_num(j, "of_limit", size / r->crc / limit, 3);
	urn_json_num(j, "copy_cycles", r->copy, 1);
	urn_json_num(j, "memcpy_isal_cycles", r->apart, 1);
	urn_json_end(j);
}

/* Measure a kernel and print the results. j: NULL for text */
static void
kernel_run(const struct urn_crc_kernel *k, const struct crc_opts *o, struct crc_mem *mem,
	   struct urn_json *j)
{
	static const uint32_t sizes[SIZES] = {48, 104, 256, 1024, 2048, 4096, 9000};
	double per_cycle = k->multiply ? limit_of(k, mem) : 0;
	double limit = per_cycle * k->width / 2;

	if (j) {
		urn_json_object(j, NULL);
		urn_json_str(j, "kernel", k->name);
		urn_json_bool(j, "chosen", k == mem->chosen);
		urn_json_num(j, "limit_bytes_per_cycle", limit, 2);
		urn_json_array(j, "sizes");
	} else {
		printf("%s%s", k->name, k == mem->chosen ? ", which is chosen here" : "");
		if (limit > 0)
			printf(": limit %.2f bytes a cycle (%.2f multiplications of %u bytes)",
			       limit, per_cycle, k->width);
		printf("\n");
	}
	for (unsigned int i = 0; i < (o->size ? 1 : SIZES); i++) {
		uint32_t size = o->size ? o->size : sizes[i];
		struct crc_result r = measure(k, size, mem);

		/* The processor's clock changes meanwhile, and the TSC's does not. */
		if (k->multiply)
			limit = RTE_MAX(limit, limit_of(k, mem) * k->width / 2);

		if (j)
			json_size(j, size, &r, limit);
		else
			print_size(size, &r, limit);
	}
	if (j) {
		urn_json_end(j);
		urn_json_end(j);
	}
}

/* Measure all kernels, or the one that was named. */
static void
all_run(const struct crc_opts *o, struct crc_mem *mem)
{
	struct urn_json j;

	if (o->json) {
		urn_json_init(&j, stdout);
		urn_json_object(&j, NULL);
		urn_json_array(&j, "kernels");
	}
	for (const struct urn_crc_kernel *const *k = urn_crc_kernels; *k; k++)
		if ((*k)->usable() && (!o->kernel || strcmp(o->kernel, (*k)->name) == 0))
			kernel_run(*k, o, mem, o->json ? &j : NULL);
	if (o->json) {
		urn_json_end(&j);
		urn_json_end(&j);
	}
}

int
crc_main(int argc, char **argv)
{
	size_t bytes = (size_t)PLACES * CRC_LONGEST + OFFSET;
	struct crc_mem mem = {0};
	struct urn_err err = {{0}};
	struct crc_opts o;

	switch (crc_options_parse(argc - 1, argv + 1, &o, &err)) {
	case PERF_EXIT_OK:
		return EXIT_SUCCESS;
	case PERF_EXIT_USAGE:
		fprintf(stderr, "urnic-perf: %s\n", err.text);
		return EXIT_USAGE;
	case PERF_RUN:
		break;
	}
	if (urn_crc_choose(err.text, sizeof(err.text)) != 0)
		goto out;
	mem.chosen = urn_crc_chosen;
	mem.src = calloc(1, bytes);
	mem.dst = calloc(1, bytes);
	if (!mem.src || !mem.dst)
		urn_err_set(&err, "crc: no memory");
	else if (!o.kernel || urn_crc_use(o.kernel, err.text, sizeof(err.text)) == 0)
		all_run(&o, &mem);
out:
	free(mem.src);
	free(mem.dst);
	if (!err.text[0])
		return fflush(stdout) != 0 || ferror(stdout) ? EXIT_FAILED : EXIT_SUCCESS;
	fprintf(stderr, "urnic-perf: %s\n", err.text);
	return EXIT_FAILED;
}
