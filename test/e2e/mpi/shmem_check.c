/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An OpenSHMEM program of two processing elements, which checks each byte: put, get, atomics,
 * signals by a flag, a reduction. Says "shmem_check: N checks" when all are right. The program is
 * compiled by oshcc and knows nothing of urnic.
 *
 * usage: shmem_check LARGEST
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, other;
static long checks;
/* Symmetric: the same place in both programs. */
static long counter, word, flag, sum_in, sum_out, sync_words[SHMEM_REDUCE_SYNC_SIZE];
static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void
check(int right, const char *what, long n)
{
	checks++;
	if (right)
		return;
	printf("shmem_check: element %d: %s of %ld is wrong\n", me, what, n);
	fflush(stdout);
	shmem_global_exit(1);
}

static void
fill(uint8_t *buf, size_t n, int from)
{
	uint32_t x = (uint32_t)n * 2654435761u + (uint32_t)from;
	size_t i;

	for (i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		buf[i] = (uint8_t)(x >> 24);
	}
}

static void
moves(size_t n, uint8_t *heap, uint8_t *own, uint8_t *scratch)
{
	fill(own, n, me);
	memset(heap, 0, n);
	shmem_barrier_all();
	shmem_putmem(heap, own, n, other);
	shmem_barrier_all();
	fill(scratch, n, other);
	check(memcmp(heap, scratch, n) == 0, "a put", (long)n);
	memset(own, 0, n);
	shmem_getmem(own, heap, n, other);
	fill(scratch, n, me);
	check(memcmp(own, scratch, n) == 0, "a get", (long)n);
	shmem_barrier_all();
}

static void
atomics(void)
{
	long i, old, last = -1;

	for (i = 0; i < 50; i++) {
		old = shmem_long_atomic_fetch_add(&counter, 1, 0);
		check(old > last && old < 100, "a fetch_add", old);
		last = old;
	}
	shmem_barrier_all();
	if (me == 0)
		check(counter == 100, "the sum", counter);
	check(shmem_long_atomic_compare_swap(&word, 0, 7 + me, other) == 0, "a compare_swap", 0);
	shmem_barrier_all();
	check(word == 7 + other, "the word of a compare_swap", word);
	shmem_barrier_all();
	/* A put, then a flag that the other one waits for. */
	shmem_long_p(&word, 70 + me, other);
	shmem_fence();
	shmem_long_p(&flag, 1, other);
	shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
	check(word == 70 + other, "a put before a flag", word);
}

int
main(int argc, char **argv)
{
	size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20, n;
	uint8_t *own = malloc(largest), *scratch = malloc(largest), *heap;
	int i;

	shmem_init();
	me = shmem_my_pe();
	other = 1 - me;
	check(shmem_n_pes() == 2, "the number of elements", shmem_n_pes());
	heap = shmem_malloc(largest);
	for (n = 1; n <= largest; n *= 8)
		moves(n, heap, own, scratch);
	moves(largest, heap, own, scratch);
	atomics();
	for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
		sync_words[i] = SHMEM_SYNC_VALUE;
	sum_in = me + 1;
	shmem_barrier_all();
	shmem_long_sum_to_all(&sum_out, &sum_in, 1, 0, 0, 2, work, sync_words);
	check(sum_out == 3, "a sum of all", sum_out);
	shmem_barrier_all();
	printf("shmem_check: element %d: %ld checks\n", me, checks);
	fflush(stdout);
	shmem_free(heap);
	shmem_finalize();
	free(own);
	free(scratch);
	return 0;
}
