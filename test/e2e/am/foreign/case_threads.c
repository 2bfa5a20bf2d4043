/* SPDX-License-Identifier: BSD-3-Clause */
/* Children and threads of the program while its memory moves, and the death of the dataplane. */
#include "foreign.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 4, ROUNDS = 5, FORKS = 8 };

static _Atomic bool over;

/* ---- fork() */

/* The child has a copy of its own, refuses its parent's endpoints, and uses memory of its own. */
static void __attribute__((noreturn)) in_child(char *p, const struct own *parents)
{
	struct own own, from;
	char *q = malloc(PAGE);

	CHECK(q != NULL && strcmp(p, "parent") == 0 && !shared(p));
	EQUAL(urn_am_memory_remove(parents->end->ep, &parents->memory), EPERM);
	memcpy(p, "child", 6);
	ends_open(false);
	add(&own, &ends[1], p, 4 * PAGE);
	add(&from, &ends[0], q, PAGE);
	CHECK(shared(p));
	memcpy(q, "mine", 5);
	EQUAL(put(&from, q, &own, p + 8, 5, URN_AM_AUTO), URN_AM_DONE);
	CHECK(strcmp(p, "child") == 0 && strcmp(p + 8, "mine") == 0);
	ends_close();
	_exit(0);
}

static void
reap(pid_t pid)
{
	int status = -1;

	EQUAL(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void
case_fork(void)
{
	char *p = fresh(4 * PAGE), *q = malloc(PAGE);
	struct own own, from;
	pid_t pid;

	CHECK(q != NULL);
	memcpy(p, "parent", 7);
	add(&own, &ends[1], p, 4 * PAGE);
	add(&from, &ends[0], q, PAGE);
	pid = fork();
	if (pid == 0)
		in_child(p, &own);
	CHECK(pid > 0);
	memcpy(q, "peer", 5);
	EQUAL(put(&from, q, &own, p + 8, 5, URN_AM_AUTO), URN_AM_DONE);
	reap(pid);
	CHECK(strcmp(p, "parent") == 0 && strcmp(p + 8, "peer") == 0 && shared(p));
	take(&own);
	take(&from);
}

static void *
forks(void *arg)
{
	unsigned int *n = arg;

	for (; *n < FORKS || !over; ++*n) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		CHECK(pid > 0);
		reap(pid);
	}
	return NULL;
}

/* A thread forks while memory comes and goes, be it moved, of urn_alloc(), or refused: none waits
 * for the other for ever. */
void
case_forks(void)
{
	char *p = fresh(LARGE), *q = malloc(PAGE), *mine = urn_alloc(LARGE);
	char local[64] = "", *volatile stack = local;
	struct own own, from, alloced;
	unsigned int n = 0;
	pthread_t thread;

	CHECK(q != NULL && mine != NULL);
	memcpy(q, "peer", 5);
	add(&from, &ends[0], q, PAGE);
	EQUAL(pthread_create(&thread, NULL, forks, &n), 0);
	for (unsigned int i = 0; i < FORKS; i++) {
		add(&own, &ends[1], p, i % 2 == 0 ? LARGE : PAGE);
		EQUAL(put(&from, q, &own, p + 5 * i, 5, URN_AM_AUTO), URN_AM_DONE);
		CHECK(strcmp(p + 5 * i, "peer") == 0);
		take(&own);
	}
	for (unsigned int i = 0; i < 20 * FORKS; i++) {
		add(&alloced, &ends[1], mine, LARGE);
		refused(&ends[1], stack, sizeof(local), EOPNOTSUPP, "not private, writable memory");
		take(&alloced);
	}
	over = true;
	EQUAL(pthread_join(thread, NULL), 0);
	take(&from);
	urn_free(mine);
}

/* ---- threads */

struct writer {
	pthread_t id;
	uint8_t *memory;       /* a slot of 8 bytes in each page, behind those of other writers */
	size_t slot;	       /* bytes into a page */
	_Atomic uint64_t *sum; /* all add to it, and a peer does */
	uint64_t added;
};

/* Nothing here is atomic but the sum: an update that is lost is seen. */
static void *
writes(void *arg)
{
	struct writer *w = arg;
	size_t page, pages = LARGE / PAGE;
	uint64_t turn;

	for (turn = 1; !over; turn++) {
		for (page = w->slot / 8; page < pages; page += 61) {
			volatile uint64_t *slot = (void *)(w->memory + page * PAGE + w->slot);

			CHECK(*slot == turn - 1);
			*slot = turn;
			atomic_fetch_add(w->sum, 1);
			w->added++;
		}
	}
	return NULL;
}

/* Threads write while pages move there and back, and a peer adds to a word of the program's: no
 * update is lost. On a busy machine pages may stay until the next time. */
void
case_writers(void)
{
	_Atomic uint64_t *sum = calloc(1, sizeof(*sum));
	struct writer w[WRITERS];
	uint64_t added = 0;
	struct own own, word;
	uint8_t *p = fresh(LARGE);

	CHECK(sum != NULL);
	for (size_t i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){.memory = p, .slot = 64 + 8 * i, .sum = sum};
		EQUAL(pthread_create(&w[i].id, NULL, writes, &w[i]), 0);
	}
	for (unsigned int i = 0; i < ROUNDS; i++) {
		add(&own, &ends[1], p + 1, LARGE - 2);
		add(&word, &ends[1], (void *)sum, sizeof(*sum));
		CHECK(shared(p) && shared((void *)sum));
		for (unsigned int k = 0; k < 20; k++, added += 1000)
			(void)change(&word, (void *)sum, URN_AM_FETCH_ADD, 8, 1000, 0);
		take(&word);
		take(&own);
	}
	over = true;
	for (size_t i = 0; i < WRITERS; i++) {
		EQUAL(pthread_join(w[i].id, NULL), 0);
		added += w[i].added;
	}
	EQUAL(atomic_load(sum), added);
}

/* The library's own threads are stopped like others while pages move. */
void
case_helper(void)
{
	char *p = fresh(LARGE), *q = malloc(PAGE);
	struct own own, from;

	CHECK(q != NULL);
	EQUAL(urn_am_thread_start(ends[1].ep), 0);
	memcpy(q, "peer", 5);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		add(&own, &ends[1], p, LARGE);
		add(&from, &ends[0], q, PAGE);
		CHECK(shared(p) && shared(q));
		EQUAL(put(&from, q, &own, p + 5 * i, 5, URN_AM_AUTO), URN_AM_DONE);
		CHECK(strcmp(p + 5 * i, "peer") == 0);
		take(&from);
		take(&own);
	}
	EQUAL(urn_am_thread_stop(ends[1].ep), 0);
}

/* ---- death */

/* A dataplane dies: the program keeps its bytes, and its pages when the endpoint goes. */
void
case_dead(void)
{
	char *p = fresh(LARGE), line[16];
	struct own own;

	memcpy(p, "mine", 5);
	add(&own, &ends[1], p, LARGE);
	puts("ready");
	fflush(stdout);
	CHECK(fgets(line, sizeof(line), stdin) != NULL);
	memcpy(p + PAGE, "more", 5);
	EQUAL(urn_am_memory_remove(ends[1].ep, &own.memory), EIO);
	CHECK(shared(p) && strcmp(p, "mine") == 0);
	urn_am_endpoint_destroy(ends[1].ep);
	CHECK(!shared(p) && strcmp(p, "mine") == 0 && strcmp(p + PAGE, "more") == 0);
	ends[1].ep = NULL;
}
