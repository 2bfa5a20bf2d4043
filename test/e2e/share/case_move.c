/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that move while the program uses them. */
#include "share.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { WRITERS = 16, ROUNDS = 12 };

/* More than stays shared without a region, so that pages go back each time. */
#define BUFFER (24 * MIB)

static char *buffer;
static volatile uint64_t *heap[WRITERS];
static _Atomic bool over;

/* One thread's slots: 8 bytes in each page, which only this thread writes, and nothing atomic. */
static void *
writer(void *arg)
{
	size_t me = (size_t)arg, pages = BUFFER / PAGE, page = me * 37 % pages;
	uint64_t *count = calloc(pages, sizeof(*count)), beats = 0;
	size_t i;

	CHECK(count != NULL);
	while (!over) {
		volatile uint64_t *slot =
			(volatile uint64_t *)(void *)(buffer + page * PAGE + me * 64);

		count[page]++;
		*slot = *slot + 1;
		heap[me][0] = ++beats;
		CHECK(*slot == count[page] && heap[me][0] == beats);
		page = (page + 7) % pages;
	}
	for (i = 0; i < pages; i++)
		CHECK(*(volatile uint64_t *)(void *)(buffer + i * PAGE + me * 64) == count[i]);
	free(count);
	return NULL;
}

void
case_writers(void)
{
	char zero[64] = "", got[64];
	pthread_t thread[WRITERS];
	struct ibv_mr *mr, *small;
	size_t i;

	buffer = fresh(BUFFER);
	for (i = 0; i < WRITERS; i++)
		CHECK((heap[i] = calloc(1, 64)) != NULL);
	for (i = 0; i < WRITERS; i++)
		CHECK(pthread_create(&thread[i], NULL, writer, (void *)i) == 0);
	/* A thread that has not begun blocks all signals, on a busy machine for long. */
	for (i = 0; i < WRITERS; i++)
		while (heap[i][0] == 0)
			usleep(1000);
	for (i = 0; i < ROUNDS; i++) {
		mr = reg(buffer + i % 3 * PAGE, BUFFER - 3 * PAGE);
		small = reg((void *)(uintptr_t)heap[i % WRITERS], 64);
		CHECK(shared(buffer + 4 * MIB) && shared((void *)(uintptr_t)heap[i % WRITERS]));
		put(mr, buffer + 8 * MIB + WRITERS * 64, "remote", 6);
		get(mr, buffer + 8 * MIB + WRITERS * 64 + 64, got, 64);
		CHECK(memcmp(got, zero, 64) == 0 &&
		      memcmp(buffer + 8 * MIB + WRITERS * 64, "remote", 6) == 0);
		dereg(small);
		dereg(mr);
		CHECK(!shared(buffer + 4 * MIB));
	}
	over = true;
	for (i = 0; i < WRITERS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

/* Regions come and go in several threads at once. */
static void *
registers(void *arg)
{
	size_t me = (size_t)arg, i;

	for (i = 0; i < 60; i++) {
		size_t length = 100 + (i * 7919 + me * 104729) % (i % 8 == 0 ? 2 * MIB : 20000);
		char *p = malloc(length);
		struct ibv_mr *mr;

		CHECK(p != NULL);
		memset(p, (int)(me + i), length);
		mr = reg(p, length);
		CHECK(p[0] == (char)(me + i) && p[length - 1] == (char)(me + i));
		memset(p, (int)(me + i + 1), length);
		if (i % 3 == 0) {
			p = realloc(
				p,
				2 * length); /* the region leads to the old memory from here on */
			CHECK(p != NULL && p[0] == (char)(me + i + 1) &&
			      p[length - 1] == (char)(me + i + 1));
			memset(p + length, 7, length);
		}
		dereg(mr);
		CHECK(p[0] == (char)(me + i + 1) && p[length - 1] == (char)(me + i + 1));
		free(p);
	}
	return NULL;
}

void
case_threads(void)
{
	pthread_t thread[8];
	size_t i;

	for (i = 0; i < 8; i++)
		CHECK(pthread_create(&thread[i], NULL, registers, (void *)i) == 0);
	for (i = 0; i < 8; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

/* A region that is larger than a window of small ones, and such a one in it. */
static void
overlap_windows(void)
{
	size_t length = 80 * MIB;
	char *p = fresh(length), text[16];
	struct ibv_mr *part = reg(p + PAGE, PAGE), *all = reg(p, length), *under;

	CHECK(shared(p + PAGE) && !shared(p));
	put(all, p + PAGE + 8, "over", 5);
	put(all, p + 8, "over", 5);
	get(part, p + PAGE + 8, text, 5);
	CHECK(strcmp(p + PAGE + 8, "over") == 0 && strcmp(p + 8, "over") == 0 &&
	      strcmp(text, "over") == 0);
	/* Under a foreign region nothing moves: the dataplane may be writing there. */
	under = reg(p + 9 * PAGE, PAGE);
	CHECK(!shared(p + 9 * PAGE));
	dereg(all);
	dereg(part);
	dereg(under);
	all = reg(p, length);
	CHECK(shared(p) && strcmp(p + 8, "over") == 0);
	dereg(all);
	CHECK(!shared(p) && strcmp(p + 8, "over") == 0);
}

void
case_overlap(void)
{
	char *p = fresh(BUFFER), text[16];
	struct ibv_mr *all = reg(p, BUFFER), *part = reg(p + 100, 3 * PAGE), *same = reg(p, BUFFER);

	CHECK(shared(p) && shared(p + BUFFER - 1));
	put(all, p + 200, "all", 4);
	put(part, p + 300, "part", 5);
	CHECK(strcmp(p + 200, "all") == 0 && strcmp(p + 300, "part") == 0);
	dereg(all);
	CHECK(shared(p));
	words(p + 200, "mine");
	get(part, p + 200, text, 5);
	CHECK(strcmp(text, "mine") == 0);
	dereg(same);
	put(part, p + 300, "last", 5);
	CHECK(strcmp(p + 300, "last") == 0 && shared(p));
	dereg(part);
	CHECK(!shared(p) && !shared(p + BUFFER - 1));
	CHECK(strcmp(p + 300, "last") == 0 && strcmp(p + 200, "mine") == 0 && p[BUFFER - 1] == 0);
	overlap_windows();
}

void
case_heap(void)
{
	enum { N = 400 };
	char *piece[N], text[32];
	struct ibv_mr *mr[N];
	unsigned int i;

	for (i = 0; i < N; i++) {
		CHECK((piece[i] = malloc(24 + i)) != NULL);
		memset(piece[i], (int)i, 24 + i);
	}
	/* Every third is registered; its neighbours share its pages. */
	for (i = 0; i < N; i += 3) {
		mr[i] = reg(piece[i], 24 + i);
		CHECK(shared(piece[i]));
		put(mr[i], piece[i], "twenty-four bytes, these", 24);
	}
	for (i = 0; i < N; i++) {
		char want = i % 3 == 0 ? 't' : (char)i;

		CHECK(piece[i][0] == want);
		CHECK(i == 0 || piece[i][23 + i] == (char)i);
		if (i % 3 != 0)
			free(piece[i]);
	}
	for (i = 0; i < N; i += 3) {
		get(mr[i], piece[i], text, 24);
		CHECK(memcmp(text, "twenty-four bytes, these", 24) == 0);
		free(piece[i]); /* before its region goes */
		dereg(mr[i]);
	}
	CHECK((piece[0] = calloc(1, 500000)) != NULL);
	for (i = 0; i < 500000; i++)
		CHECK(piece[0][i] == 0);
	free(piece[0]);
}

void
case_many(void)
{
	enum { N = 200 };
	struct ibv_mr *mr[N];
	char *p[N];
	unsigned int i;

	/* More windows than there can be: the rest is foreign memory. */
	for (i = 0; i < N; i++) {
		p[i] = fresh(MIB);
		mr[i] = reg(p[i], MIB);
		put(mr[i], p[i] + i, "x", 1);
	}
	CHECK(shared(p[0]) && !shared(p[N - 1]));
	for (i = 0; i < N; i++) {
		CHECK(p[i][i] == 'x');
		dereg(mr[i]);
	}
	mr[0] = reg(p[N - 1], MIB);
	CHECK(shared(p[N - 1]) && p[N - 1][N - 1] == 'x');
	dereg(mr[0]);
}

/* The dataplane takes 65 MiB of shared memory from a client: one window of small regions. */
void
case_bound(void)
{
	char *large = fresh(100 * MIB), *p = malloc(100), *q = fresh(2 * MIB);
	struct ibv_mr *mr = reg(large, 100 * MIB), *small = reg(p, 100), *more = reg(q, 2 * MIB);

	CHECK(!shared(large) && shared(p) && !shared(q));
	put(mr, large, "large", 6);
	put(small, p, "small", 6);
	put(more, q, "more", 5);
	CHECK(strcmp(large, "large") == 0 && strcmp(p, "small") == 0 && strcmp(q, "more") == 0);
	dereg(mr);
	dereg(more);
	dereg(small);
	/* A window that was kept makes room. */
	more = reg(q, 2 * MIB);
	CHECK(shared(q) && !shared(p) && strcmp(q, "more") == 0 && strcmp(p, "small") == 0);
	dereg(more);
}
