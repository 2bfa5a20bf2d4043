/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measure ibv_reg_mr() and ibv_dereg_mr() of private memory that the program has written before.
 * The program is compiled with the system's headers and library, and knows nothing of urnic.
 *
 * usage: reg_mr BYTES SECONDS
 * output: three lines of microseconds, "first_us NUMBER" (both calls, the first time), and the
 * medians of all later times, "reg_us NUMBER" and "dereg_us NUMBER"
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SAMPLES 100000
#define LEAST 3 /* samples, however long they take */

static double reg[SAMPLES], dereg[SAMPLES];

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), ascending);
	return v[n / 2];
}

static void
die(const char *what)
{
	fprintf(stderr, "reg_mr: ");
	perror(what);
	exit(1);
}

static struct ibv_pd *
open_pd(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	if (devices == NULL || devices[0] == NULL) {
		fprintf(stderr, "reg_mr: no device\n");
		exit(1);
	}
	ctx = ibv_open_device(devices[0]);
	if (ctx == NULL)
		die("ibv_open_device");
	ibv_free_device_list(devices);
	pd = ibv_alloc_pd(ctx);
	if (pd == NULL)
		die("ibv_alloc_pd");
	return pd;
}

/* Register memory and deregister it, with the times of each call. */
static void
once(struct ibv_pd *pd, void *buf, size_t bytes, double *reg_us, double *dereg_us)
{
	double begin = now_us(), middle;
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, bytes,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_WRITE);

	if (mr == NULL)
		die("ibv_reg_mr");
	middle = now_us();
	if (ibv_dereg_mr(mr) != 0)
		die("ibv_dereg_mr");
	*reg_us = middle - begin;
	*dereg_us = now_us() - middle;
}

int
main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoull(argv[1], NULL, 0) : 0, n;
	double us = argc == 3 ? atof(argv[2]) * 1e6 : 0, begin;
	struct ibv_pd *pd;
	void *buf;

	if (bytes == 0 || us <= 0) {
		fprintf(stderr, "usage: reg_mr BYTES SECONDS\n");
		return 2;
	}
	pd = open_pd();
	buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		die("mmap");
	memset(buf, 1, bytes);
	once(pd, buf, bytes, &reg[0], &dereg[0]);
	printf("first_us %.3f\n", reg[0] + dereg[0]);
	begin = now_us();
	for (n = 0; n < SAMPLES && (n < LEAST || now_us() - begin < us); n++)
		once(pd, buf, bytes, &reg[n], &dereg[n]);
	printf("reg_us %.3f\ndereg_us %.3f\n", median(reg, n), median(dereg, n));
	return 0;
}
