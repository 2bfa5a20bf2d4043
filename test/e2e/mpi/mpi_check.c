/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program of two ranks, which checks each byte: messages of many sizes, both ways at once,
 * non-contiguous ones, collectives and one-sided windows. Says "mpi_check: N checks" when all are
 * right. The program is compiled by mpicc and knows nothing of urnic.
 *
 * usage: mpi_check LARGEST_MESSAGE
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, other;
static long checks;

static void
check(int right, const char *what, long n)
{
	checks++;
	if (right)
		return;
	printf("mpi_check: rank %d: %s of %ld is wrong\n", rank, what, n);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Fill a buffer with bytes that follow from its size and its sender. */
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

static int
filled(const uint8_t *buf, size_t n, int from, uint8_t *scratch)
{
	fill(scratch, n, from);
	return memcmp(buf, scratch, n) == 0;
}

/* One message each way, and one both ways at once. */
static void
messages(size_t n, uint8_t *out, uint8_t *in, uint8_t *scratch)
{
	MPI_Request r[2];
	MPI_Status st;
	int got;

	fill(out, n, rank);
	memset(in, 0, n);
	if (rank == 0)
		MPI_Send(out, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD);
	MPI_Recv(in, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD, &st);
	if (rank == 1)
		MPI_Ssend(out, (int)n, MPI_BYTE, other, 1, MPI_COMM_WORLD);
	MPI_Get_count(&st, MPI_BYTE, &got);
	check((size_t)got == n && filled(in, n, other, scratch), "a message", (long)n);
	memset(in, 0, n);
	MPI_Irecv(in, (int)n, MPI_BYTE, other, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(out, (int)n, MPI_BYTE, other, 2, MPI_COMM_WORLD, &r[1]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	check(filled(in, n, other, scratch), "a message both ways", (long)n);
}

/* Many messages at once, received in another order than sent. */
static void
many(void)
{
	enum { N = 32 };
	static uint32_t out[N][300], in[N][300];
	MPI_Request r[2 * N];
	int i, k;

	for (i = 0; i < N; i++) {
		for (k = 0; k < 300; k++)
			out[i][k] = (uint32_t)(rank << 24 | i << 16 | k);
		MPI_Irecv(in[i], 300, MPI_UINT32_T, other, 100 + i, MPI_COMM_WORLD, &r[i]);
	}
	for (i = 0; i < N; i++)
		MPI_Isend(out[N - 1 - i], 300, MPI_UINT32_T, other, 100 + N - 1 - i, MPI_COMM_WORLD,
			  &r[N + i]);
	MPI_Waitall(2 * N, r, MPI_STATUSES_IGNORE);
	for (i = 0; i < N; i++)
		for (k = 0; k < 300; k++)
			if (in[i][k] != (uint32_t)(other << 24 | i << 16 | k))
				check(0, "one of many messages", i);
	checks++;
}

/* Every second column of a matrix. */
static void
vectors(void)
{
	enum { ROWS = 500, COLUMNS = 64 };
	static int m[ROWS][COLUMNS];
	MPI_Datatype column;
	int i, k;

	MPI_Type_vector(ROWS * COLUMNS / 2, 1, 2, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (i = 0; i < ROWS; i++)
		for (k = 0; k < COLUMNS; k++)
			m[i][k] = rank * 1000000 + i * COLUMNS + k;
	MPI_Sendrecv_replace(m, 1, column, other, 3, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < ROWS; i++)
		for (k = 0; k < COLUMNS; k++)
			if (m[i][k] != (k % 2 == 0 ? other : rank) * 1000000 + i * COLUMNS + k)
				check(0, "a vector's row", i);
	checks++;
	MPI_Type_free(&column);
}

static void
collectives(void)
{
	enum { N = 20000 };
	static double in[N], sum[N], all[2 * N];
	int i;

	for (i = 0; i < N; i++)
		in[i] = i + rank;
	MPI_Allreduce(in, sum, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allgather(in, N, MPI_DOUBLE, all, N, MPI_DOUBLE, MPI_COMM_WORLD);
	for (i = 0; i < N; i++) {
		if (sum[i] != 2.0 * i + 1)
			check(0, "an allreduce", i);
		if (all[i] != i || all[N + i] != i + 1)
			check(0, "an allgather", i);
	}
	MPI_Bcast(in, N, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	check(in[0] == 1 && in[N - 1] == N, "a broadcast", N);
}

/* A window between fences: whole puts and gets. */
static void
window_fence(size_t n, uint8_t *out, uint8_t *in, uint8_t *scratch)
{
	uint8_t *base;
	MPI_Win win;

	MPI_Win_allocate((MPI_Aint)(2 * n), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	memset(base, 0, 2 * n);
	fill(base + n, n, rank);
	fill(out, n, rank + 7);
	memset(in, 0, n);
	MPI_Win_fence(0, win);
	MPI_Put(out, (int)n, MPI_BYTE, other, 0, (int)n, MPI_BYTE, win);
	MPI_Get(in, (int)n, MPI_BYTE, other, (MPI_Aint)n, (int)n, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check(filled(base, n, other + 7, scratch), "a put", (long)n);
	check(filled(in, n, other, scratch), "a get", (long)n);
	MPI_Win_free(&win);
}

/* A window that is the program's own memory, with locks: atomic operations of both ranks. */
static void
window_lock(void)
{
	enum { TIMES = 50 };
	static int64_t shared[8];
	int64_t one = 1, old, last = -1, swap = 42, compare = 0;
	MPI_Win win;
	int i;

	memset(shared, 0, sizeof(shared));
	MPI_Win_create(shared, sizeof(shared), sizeof(shared[0]), MPI_INFO_NULL, MPI_COMM_WORLD,
		       &win);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < TIMES; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		check(old > last && old < 2 * TIMES, "a fetch_and_op", (long)old);
		last = old;
		MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 3, 1, MPI_INT64_T, MPI_SUM, win);
	}
	MPI_Win_flush_all(win);
	MPI_Compare_and_swap(&swap, &compare, &old, MPI_INT64_T, other, 5, win);
	MPI_Win_flush(other, win);
	check(old == 0, "a compare_and_swap", (long)old);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	check(shared[5] == 42, "the word of a compare_and_swap", (long)shared[5]);
	if (rank == 0)
		check(shared[0] == 2 * TIMES, "the sum of fetch_and_op", (long)shared[0]);
	else
		check(shared[3] == 2 * TIMES, "the sum of accumulate", (long)shared[3]);
	MPI_Win_unlock(rank, win);
	MPI_Win_free(&win);
}

int
main(int argc, char **argv)
{
	size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20, n;
	uint8_t *out = malloc(largest), *in = malloc(largest), *scratch = malloc(largest);
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	other = 1 - rank;
	check(ranks == 2, "the number of ranks", ranks);
	for (n = 1; n <= largest; n = n < 64 ? n * 4 : n * 8) {
		messages(n, out, in, scratch);
		messages(n - 1, out, in, scratch);
	}
	messages(largest, out, in, scratch);
	many();
	vectors();
	collectives();
	window_fence(1000, out, in, scratch);
	window_fence(largest / 4, out, in, scratch);
	window_lock();
	MPI_Barrier(MPI_COMM_WORLD);
	printf("mpi_check: rank %d: %ld checks\n", rank, checks);
	MPI_Finalize();
	free(out);
	free(in);
	free(scratch);
	return 0;
}
