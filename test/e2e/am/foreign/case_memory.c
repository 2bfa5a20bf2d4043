/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that can't be added, memory that is added twice, and memory that the program gives up. */
#include "foreign.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t initialised[2 * 4096] = {1}; /* lies in the program's file */

/* A file of a page, mapped. */
static char *
file_page(int flags)
{
	char name[] = P_tmpdir "/urnic-foreign.XXXXXX";
	int fd = mkstemp(name);
	char *p;

	CHECK(fd >= 0 && unlink(name) == 0 && ftruncate(fd, (off_t)PAGE) == 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	return p;
}

static void *
stack_of_thread(void *arg)
{
	char bytes[64] = "", *volatile p = bytes;

	refused(&ends[1], p, sizeof(bytes), EOPNOTSUPP, "stack, or beside thread-local variables");
	return arg;
}

/* Memory that can't be moved is refused, with a sentence, and the endpoint works on. */
void
case_bad(void)
{
	char *p = fresh(8 * PAGE), *good = malloc(PAGE), local[64] = "", *volatile stack = local;
	struct own own, from;
	pthread_t thread;

	CHECK(good != NULL && mprotect(p + 2 * PAGE, PAGE, PROT_NONE) == 0 &&
	      mprotect(p + 5 * PAGE, PAGE, PROT_READ) == 0);
	refused(&ends[1], p, 0, EINVAL, "at least one byte");
	refused(&ends[1], (void *)PAGE, 10, EFAULT, NULL);
	refused(&ends[1], p + 2 * PAGE, 10, EFAULT, NULL);
	refused(&ends[1], p + 2 * PAGE - 5, 10, EFAULT, NULL);
	refused(&ends[1], p + 5 * PAGE, 10, EFAULT, NULL);
	refused(&ends[1], p + 4 * PAGE, 3 * PAGE, EFAULT, NULL);
	refused(&ends[1], (void *)~(uintptr_t)4095, 2 * PAGE, EINVAL, NULL);
	refused(&ends[1], file_page(MAP_SHARED), PAGE, EOPNOTSUPP, "not private, writable memory");
	refused(&ends[1], file_page(MAP_PRIVATE), PAGE, EOPNOTSUPP, "not private, writable memory");
	refused(&ends[1], stack, sizeof(local), EOPNOTSUPP, "not private, writable memory");
	refused(&ends[1], &initialised[512], 8, EOPNOTSUPP, "not private, writable memory");
	EQUAL(pthread_create(&thread, NULL, stack_of_thread, NULL), 0);
	EQUAL(pthread_join(thread, NULL), 0);
	CHECK(!shared(p) && !shared(p + 5 * PAGE) && !shared(initialised));

	add(&own, &ends[1], p + 3 * PAGE + 7, PAGE + 13);
	add(&from, &ends[0], good, PAGE);
	memcpy(good, "good", 5);
	EQUAL(put(&from, good, &own, p + 4 * PAGE, 5, URN_AM_AUTO), URN_AM_DONE);
	CHECK(strcmp(p + 4 * PAGE, "good") == 0 && shared(p + 4 * PAGE));
	take(&own);
	take(&from);
}

/* Two pieces of memory have pages in common; each works until it is removed. */
void
case_overlap(void)
{
	uint8_t *p = fresh(16 * PAGE), *q = malloc(PAGE);
	struct own a, b, from;

	CHECK(q != NULL);
	memset(p, 1, 16 * PAGE);
	memset(q, 9, PAGE);
	add(&from, &ends[0], q, PAGE);
	add(&a, &ends[1], p + 100, 3 * PAGE);
	p[PAGE] = 2;
	add(&b, &ends[1], p + PAGE + 50, 6 * PAGE);
	CHECK(p[0] == 1 && p[PAGE] == 2 && p[8 * PAGE] == 1);
	EQUAL(put(&from, q, &a, p + 2 * PAGE, 10, URN_AM_AUTO), URN_AM_DONE);
	EQUAL(get(&from, q + 100, &b, p + 2 * PAGE, 10, URN_AM_AUTO), URN_AM_DONE);
	CHECK(q[100] == 9 && q[109] == 9 && p[2 * PAGE + 9] == 9 && p[2 * PAGE + 10] == 1);
	EQUAL(put(&from, q, &b, p + 100, 1, URN_AM_AUTO), URN_AM_RANGE);
	take(&a);
	EQUAL(put(&from, q, &a, p + 2 * PAGE, 10, URN_AM_AUTO), URN_AM_BAD_KEY);
	EQUAL(put(&from, q, &b, p + 3 * PAGE, 10, URN_AM_TAGGED), URN_AM_DONE);
	CHECK(p[3 * PAGE] == 9 && p[3 * PAGE + 10] == 1 && p[150] == 1);
	/* The endpoint of the other node has a page of it, too. */
	add(&a, &ends[0], p + 3 * PAGE, 50);
	EQUAL(put(&a, p + 3 * PAGE, &b, p + 4 * PAGE, 50, URN_AM_PIPELINED), URN_AM_DONE);
	CHECK(memcmp(p + 3 * PAGE, p + 4 * PAGE, 50) == 0);
	take(&b);
	take(&a);
	take(&from);
}

/* Memory that is removed is private again; adding it anew works, each time. */
void
case_again(void)
{
	uint8_t *p = fresh(LARGE), *q = malloc(PAGE);
	struct own own, from;

	CHECK(q != NULL);
	add(&from, &ends[0], q, PAGE);
	for (unsigned int i = 0; i < 5; i++) {
		p[i * PAGE] = (uint8_t)(i + 1);
		add(&own, &ends[1], p + i, LARGE - 10);
		CHECK(shared(p) && shared(p + LARGE - 1));
		q[0] = (uint8_t)(100 + i);
		EQUAL(put(&from, q, &own, p + i * PAGE + 20, 1, URN_AM_AUTO), URN_AM_DONE);
		take(&own);
		CHECK(!shared(p) && !shared(p + LARGE - 1));
		for (unsigned int k = 0; k <= i; k++)
			CHECK(p[k * PAGE] == k + 1 && p[k * PAGE + 20] == 100 + k);
	}
	/* Small pieces stay shared for the next one. */
	for (unsigned int i = 0; i < 100; i++) {
		add(&own, &ends[1], p + i * 1000, 3000);
		EQUAL(put(&from, q, &own, p + i * 1000, 1, URN_AM_AUTO), URN_AM_DONE);
		CHECK(p[i * 1000] == 104);
		take(&own);
	}
	take(&from);
}

/* Memory that the program unmaps while it is added: peers reach the old bytes, which the program
 * never sees again, and nothing else. */
static void
unmap_added(void)
{
	char *p = fresh(4 * PAGE), *q = malloc(PAGE), *now;
	struct own own, from, next;

	CHECK(q != NULL);
	add(&from, &ends[0], q, PAGE);
	add(&own, &ends[1], p, 4 * PAGE);
	EQUAL(munmap(p, 4 * PAGE), 0);
	memcpy(q, "lost", 5);
	EQUAL(put(&from, q, &own, p, 5, URN_AM_AUTO), URN_AM_DONE);
	now = mmap(p, 4 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(now == p && p[0] == '\0');
	EQUAL(put(&from, q, &own, p + 8, 5, URN_AM_AUTO), URN_AM_DONE);
	CHECK(p[8] == '\0');
	EQUAL(get(&from, q + 8, &own, p, 5, URN_AM_AUTO), URN_AM_DONE);
	CHECK(strcmp(q + 8, "lost") == 0);
	refused(&ends[1], p, PAGE, EOPNOTSUPP, "has lost its pages");
	take(&own);
	add(&next, &ends[1], p, 4 * PAGE);
	EQUAL(put(&from, q, &next, p + 8, 5, URN_AM_AUTO), URN_AM_DONE);
	CHECK(strcmp(p + 8, "lost") == 0 && p[0] == '\0');
	take(&next);
	take(&from);
}

/* Memory that the program unmaps or frees while it is added. */
void
case_free(void)
{
	char *q = malloc(PAGE), *heap = malloc(MIB);
	struct own own, from;
	void *was;

	unmap_added();
	CHECK(q != NULL && heap != NULL);
	add(&from, &ends[0], q, PAGE);
	memset(heap, 5, MIB);
	add(&own, &ends[1], heap, MIB);
	was = own.memory.addr;
	free(heap);
	EQUAL(put(&from, q, &own, was, 5, URN_AM_AUTO), URN_AM_DONE);
	heap = calloc(1, MIB);
	CHECK(heap != NULL);
	for (size_t i = 0; i < MIB; i++)
		CHECK(heap[i] == 0);
	take(&own);
	free(heap);
	take(&from);
}

/* Calls that mean something else on shared pages act as on private ones, or are refused. */
void
case_remap(void)
{
	char *p = fresh(8 * PAGE), *q = malloc(PAGE), *heap = malloc(MIB), *more;
	void *was;
	struct own own, from;

	CHECK(q != NULL && heap != NULL);
	memcpy(q, "peer", 5);
	add(&from, &ends[0], q, PAGE);
	add(&own, &ends[1], p, 8 * PAGE);
	memcpy(p + PAGE, "gone", 5);
	EQUAL(madvise(p + PAGE, PAGE, MADV_DONTNEED), 0);
	EQUAL(get(&from, q + 8, &own, p + PAGE, 5, URN_AM_AUTO), URN_AM_DONE);
	CHECK(p[PAGE] == '\0' && q[8] == '\0');
	CHECK(mremap(p, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
	take(&own);
	p = mremap(p, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED && p[15 * PAGE] == '\0');

	memset(heap, 7, MIB);
	add(&own, &ends[1], heap, MIB);
	was = own.memory.addr;
	more = realloc(heap, 8 * MIB);
	CHECK(more != NULL && more != was && more[0] == 7 && more[MIB - 1] == 7);
	memset(more, 8, 8 * MIB);
	EQUAL(put(&from, q, &own, was, 5, URN_AM_AUTO), URN_AM_DONE);
	CHECK(more[0] == 8 && more[4] == 8);
	take(&own);
	take(&from);
	free(more);
}

/* Memory that is not removed goes with its endpoint, and is private again; the next device takes
 * memory that stayed shared. */
void
case_left(void)
{
	struct urn_am_endpoint *ep = urn_am_endpoint_create(ends[1].dev, NULL);
	char *p = fresh(LARGE), *q = malloc(PAGE);
	struct urn_am_memory memory;
	struct own own, from;

	CHECK(ep != NULL && q != NULL);
	memcpy(p, "left", 5);
	EQUAL(urn_am_memory_add(ep, p, LARGE, &memory), 0);
	EQUAL(urn_am_memory_add(ep, q, PAGE, &memory), 0);
	CHECK(shared(p) && shared(q));
	urn_am_endpoint_destroy(ep);
	CHECK(!shared(p) && strcmp(p, "left") == 0);

	for (unsigned int i = 0; i < 3; i++) {
		ends_close();
		ends_open(false);
		add(&own, &ends[1], p, 10);
		add(&from, &ends[0], q, PAGE);
		q[0] = (char)('a' + i);
		EQUAL(put(&from, q, &own, p, 1, URN_AM_AUTO), URN_AM_DONE);
		CHECK(p[0] == q[0] && p[1] == 'e');
	}
}

/* Without --share, or without the preloaded library, the sentence says what to do. */
void
case_plain(void)
{
	char *p = malloc(PAGE);

	CHECK(p != NULL);
	refused(&ends[1], p, PAGE, EOPNOTSUPP, "urnic-run --share");
	CHECK(!shared(p));
}

/* The dataplane lets this program share little. */
void
case_bound(void)
{
	char *p = fresh(2 * LARGE);

	refused(&ends[1], p, 2 * LARGE, EOPNOTSUPP, "shared_per_client");
	CHECK(!shared(p));
}
