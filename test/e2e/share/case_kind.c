/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of memory, and programs whose threads can't be stopped. */
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

static char bss[8 * 4096], data[8 * 4096] = "data";
static _Thread_local char local[64];

void
works(char *p, bool is)
{
	struct ibv_mr *mr = reg(p, 64);
	char got[8];

	CHECK(shared(p) == is);
	put(mr, p + 8, "wire", 5);
	CHECK(strcmp(p + 8, "wire") == 0);
	words(p + 8, "own");
	get(mr, p + 8, got, 4);
	CHECK(strcmp(got, "own") == 0);
	dereg(mr);
}

static void
read_only(void)
{
	char *p = fresh(2 * PAGE), got[8];
	struct ibv_mr *mr;

	words(p, "read");
	CHECK(mprotect(p, 2 * PAGE, PROT_READ) == 0);
	mr = ibv_reg_mr(ends[1].pd, p, PAGE, IBV_ACCESS_REMOTE_READ);
	CHECK(mr != NULL && !shared(p));
	get(mr, p, got, 5);
	CHECK(strcmp(got, "read") == 0);
	dereg(mr);
	errno = 0;
	CHECK(ibv_reg_mr(ends[1].pd, p, PAGE, RIGHTS) == NULL && errno == EFAULT);
}

/* Pages of a mapping of a thread's stack, while it stands on that. */
static void *
on_stack(void *arg)
{
	char here[256];

	(void)arg;
	works(here, false);
	works(local, false);
	return NULL;
}

/* Memory that may be executed, and memory beside it. */
static void
executable(void)
{
	char *p = fresh(2 * PAGE);

	CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
	works(p, false);
	works(p + PAGE, true);
	works(p + PAGE - 32, false); /* on both */
}

/* Huge pages; a message when there are none. */
static void
huge(void)
{
	char *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED) {
		fputs("no huge pages\n", stderr);
		return;
	}
	works(p, false);
	CHECK(munmap(p, 2 * MIB) == 0);
}

void
case_kinds(void)
{
	char here[256], *p;
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	pthread_t thread;

	works(here, false);
	works(local, false);
	CHECK(pthread_create(&thread, NULL, on_stack, NULL) == 0 &&
	      pthread_join(thread, NULL) == 0);
	works(bss + 2 * PAGE, true);
	works(data + 2 * PAGE, false);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	works(p, false);
	CHECK(id >= 0 && (p = shmat(id, NULL, 0)) != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
	works(p, false);
	CHECK(shmdt(p) == 0);
	read_only();
	executable();
	huge();
	works(fresh(PAGE), true);
	/* Two mappings, one of which can't be shared. */
	p = fresh(4 * PAGE);
	CHECK(mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	works(p + 2 * PAGE - 32, false);
	p = fresh(PAGE);
	if (mlock(p, PAGE) == 0) {
		works(p, false);
		CHECK(munlock(p, PAGE) == 0);
		works(p, true);
	}
}

static _Atomic bool ready, over;

/* arg: not NULL: block all signals */
static void *
waits(void *arg)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	sigset_t all;

	sigfillset(&all);
	if (arg != NULL)
		CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	ready = true;
	while (!over)
		nanosleep(&nap, NULL);
	return NULL;
}

/* A thread that reads, and whose call the system goes on with after a signal. */
static void *
reads(void *fd)
{
	char c;

	ready = true;
	CHECK(read(*(int *)fd, &c, 1) == 1);
	return NULL;
}

static void
wait_ready(void)
{
	while (!ready)
		usleep(1000);
	ready = false;
}

void
case_blocked(void)
{
	char *p = fresh(PAGE);
	pthread_t thread, reader;
	int fd[2];

	CHECK(pthread_create(&thread, NULL, waits, p) == 0);
	wait_ready();
	works(p, false);
	works(p, false);
	over = true;
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(pipe(fd) == 0 && pthread_create(&reader, NULL, reads, &fd[0]) == 0);
	wait_ready();
	works(p, true);
	CHECK(write(fd[1], "x", 1) == 1 && pthread_join(reader, NULL) == 0);
}

/* Close a descriptor, and use its number for another file. */
static void
take_number(int fd)
{
	int other;

	CHECK(close(fd) == 0 && (other = open("/dev/null", O_RDWR)) >= 0);
	if (other != fd)
		CHECK(dup2(other, fd) == fd && close(other) == 0);
}

void
case_descriptors(void)
{
	struct rlimit limit, before;
	char *p = fresh(2 * MIB), *q = fresh(2 * MIB);
	struct ibv_mr *mr;
	int fd;

	/* No descriptor left for a memfd. */
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK((fd = open("/dev/null", O_RDONLY)) >= 0);
	limit = (struct rlimit){.rlim_cur = (rlim_t)fd + 2, .rlim_max = before.rlim_max};
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	while (dup(fd) >= 0)
		;
	mr = reg(p, 2 * MIB);
	put(mr, p, "full", 5);
	CHECK(strcmp(p, "full") == 0);
	dereg(mr);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	mr = reg(p, 2 * MIB);
	CHECK(shared(p) && strcmp(p, "full") == 0);
	/* The program closes a descriptor of ours and uses the number itself. */
	for (fd = 3; fd < 100; fd++) {
		char path[64], to[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		if (strncmp(to, "/memfd:urnic-shared", 19) == 0)
			take_number(fd);
	}
	put(mr, p, "open", 5);
	CHECK(strcmp(p, "open") == 0);
	CHECK(madvise(p, 2 * MIB, MADV_DONTNEED) == 0 && p[0] == 0);
	dereg(mr);
	mr = reg(q, 2 * MIB);
	put(mr, q, "next", 5);
	CHECK(strcmp(q, "next") == 0);
	dereg(mr);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* For people: the cost of registering. */
void
case_time(void)
{
	static const size_t sizes[] = {PAGE, MIB, 64 * MIB};
	unsigned int i, k;

	for (i = 0; i < 3; i++) {
		char *p = fresh(sizes[i]);
		double take = 1e12, drop = 1e12;

		memset(p, 1, sizes[i]);
		for (k = 0; k < 20; k++) {
			double a = now(), b;
			struct ibv_mr *mr = reg(p, sizes[i]);

			b = now();
			dereg(mr);
			take = b - a < take ? b - a : take;
			drop = now() - b < drop ? now() - b : drop;
		}
		printf("%zu bytes: register %.0f us, deregister %.0f us\n", sizes[i], take, drop);
	}
}
