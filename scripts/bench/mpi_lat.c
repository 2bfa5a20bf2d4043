/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program of two ranks that measures: half a round trip of 8 bytes, the median, and the
 * bandwidth of messages of 1 MiB, 16 of them at a time. The program is compiled by mpicc and knows
 * nothing of urnic.
 *
 * usage: mpi_lat SECONDS
 * output: two lines, "latency_us NUMBER" and "bandwidth_gbps NUMBER"
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL 8
#define LARGE (1 << 20)
#define WINDOW 16
#define SAMPLES 1000000
#define WARM_UP 0.2 /* share of the time that does not count */

static int rank, other;

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void *
memory(size_t n)
{
	void *p = calloc(1, n);

	if (p == NULL) {
		fprintf(stderr, "mpi_lat: no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* Rank 0's side of the ping-pong: the first byte says whether the other is to go on. Returns the
 * number of samples. */
static size_t
ping(char *buf, double *us, double seconds)
{
	double begin = MPI_Wtime(), now = begin, then;
	size_t n = 0;

	do {
		buf[0] = now - begin < seconds;
		then = now;
		MPI_Send(buf, SMALL, MPI_BYTE, other, 0, MPI_COMM_WORLD);
		MPI_Recv(buf, SMALL, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		now = MPI_Wtime();
		if (now - begin >= WARM_UP * seconds && n < SAMPLES)
			us[n++] = (now - then) * 1e6 / 2;
	} while (buf[0]);
	return n;
}

static void
pong(char *buf)
{
	do {
		MPI_Recv(buf, SMALL, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(buf, SMALL, MPI_BYTE, other, 0, MPI_COMM_WORLD);
	} while (buf[0]);
}

static void
latency(double seconds)
{
	char buf[SMALL] = {0};
	double *us;
	size_t n;

	if (rank == 1) {
		pong(buf);
		return;
	}
	us = memory(SAMPLES * sizeof(*us));
	n = ping(buf, us, seconds);
	qsort(us, n, sizeof(*us), ascending);
	printf("latency_us %.3f\n", us[n / 2]);
	free(us);
}

/* Move a window of messages from rank 0 to rank 1, which answers once it has all of them. */
static void
window(char *buf)
{
	MPI_Request r[WINDOW];
	char done = 0;
	int i;

	for (i = 0; i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(buf + (size_t)i * LARGE, LARGE, MPI_BYTE, other, 1,
				  MPI_COMM_WORLD, &r[i]);
		else
			MPI_Irecv(buf + (size_t)i * LARGE, LARGE, MPI_BYTE, other, 1,
				  MPI_COMM_WORLD, &r[i]);
	}
	MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(&done, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&done, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD);
}

static void
bandwidth(double seconds)
{
	char *buf = memory((size_t)WINDOW * LARGE);
	double begin = MPI_Wtime(), counted = 0, now = begin;
	long windows = 0;

	do {
		buf[0] = now - begin < seconds; /* the last window has 0 */
		window(buf);
		now = MPI_Wtime();
		if (counted == 0) {
			if (now - begin >= WARM_UP * seconds)
				counted = now;
		} else {
			windows++;
		}
	} while (buf[0]);
	if (rank == 0)
		printf("bandwidth_gbps %.6f\n",
		       (double)windows * WINDOW * LARGE * 8 / (now - counted) / 1e9);
	free(buf);
}

int
main(int argc, char **argv)
{
	double seconds = argc == 2 ? atof(argv[1]) : 0;
	int ranks;

	if (seconds <= 0) {
		fprintf(stderr, "usage: mpi_lat SECONDS\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2) {
		fprintf(stderr, "mpi_lat: %d ranks, where two are wanted\n", ranks);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	other = 1 - rank;
	latency(seconds);
	MPI_Barrier(MPI_COMM_WORLD);
	bandwidth(seconds);
	MPI_Finalize();
	return 0;
}
