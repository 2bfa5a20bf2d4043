/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's own reads and writes of the program's memory, while regions come and go. */
#include "share.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A ring of io_uring with one request at a time. */
struct ring {
	int fd;
	struct io_uring_params params;
	char *queues; /* both rings, mapped */
	struct io_uring_sqe *requests;
};

/* returns: false: this system has no io_uring */
static bool
ring_open(struct ring *r)
{
	*r = (struct ring){.fd = -1};
	r->fd = (int)syscall(SYS_io_uring_setup, 4, &r->params);
	if (r->fd < 0)
		return false;
	CHECK(r->params.features & IORING_FEAT_SINGLE_MMAP);
	r->queues = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	r->requests = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	CHECK(r->queues != MAP_FAILED && (void *)r->requests != MAP_FAILED);
	return true;
}

static void
ring_close(struct ring *r)
{
	close(r->fd);
	munmap(r->queues, PAGE);
	munmap(r->requests, PAGE);
}

static _Atomic unsigned int *
word(struct ring *r, uint32_t off)
{
	return (void *)(r->queues + off);
}

/* Begin to read from a pipe that has no bytes yet. */
static void
ring_read(struct ring *r, int from, char *to, unsigned int length)
{
	unsigned int tail = *word(r, r->params.sq_off.tail), at = tail & (r->params.sq_entries - 1);

	r->requests[at] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
						.fd = from,
						.addr = (uintptr_t)to,
						.len = length,
						.off = UINT64_MAX};
	*word(r, r->params.sq_off.array + at * 4) = at;
	*word(r, r->params.sq_off.tail) = tail + 1;
	CHECK(syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0) == 1);
}

/* Wait for the end of the request. */
static void
ring_wait(struct ring *r, int want)
{
	unsigned int head = *word(r, r->params.cq_off.head);
	const struct io_uring_cqe *c;

	while (*word(r, r->params.cq_off.tail) == head)
		CHECK(syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >=
		      0);
	c = (const void *)(r->queues + r->params.cq_off.cqes);
	CHECK(c[head & (r->params.cq_entries - 1)].res == want);
	*word(r, r->params.cq_off.head) = head + 1;
}

/* True when the kernel has a thread in this process that works for rings. Threads of the kernel
 * block all signals, and stay for a while when their ring is closed. */
static bool
has_worker(void)
{
	bool found = false;
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *d;

	CHECK(tasks != NULL);
	while (!found && (d = readdir(tasks)) != NULL) {
		char path[300], name[16] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "r");
		found = f != NULL && fgets(name, sizeof(name), f) != NULL &&
			strncmp(name, "iou-", 4) == 0;
		if (f != NULL)
			fclose(f);
	}
	closedir(tasks);
	return found;
}

/* A read is under way into a page while regions on it come and go. */
static void
uring(void)
{
	char *p = fresh(2 * PAGE), *early = fresh(PAGE);
	struct ibv_mr *mr = reg(early, PAGE);
	struct ring r;
	int end[2];

	if (!ring_open(&r)) {
		fprintf(stderr, "no io_uring\n");
		return;
	}
	CHECK(pipe(end) == 0);
	ring_read(&r, end[0], p + 64, 6);
	works(p, false);
	CHECK(write(end[1], "kernel", 6) == 6);
	ring_wait(&r, 6);
	CHECK(memcmp(p + 64, "kernel", 6) == 0);
	/* Memory that was registered before is shared, and the kernel's writes are seen there. */
	CHECK(shared(early));
	ring_read(&r, end[0], early, 5);
	CHECK(write(end[1], "early", 5) == 5);
	ring_wait(&r, 5);
	get(mr, early, p, 5);
	CHECK(memcmp(p, "early", 5) == 0);
	dereg(mr);
	CHECK(memcmp(early, "early", 5) == 0);
	ring_close(&r);
	if (!has_worker())
		works(p, true);
}

static void
aio(void)
{
	char *p = fresh(PAGE);
	aio_context_t context = 0;

	if (syscall(SYS_io_setup, 4, &context) != 0) {
		fprintf(stderr, "no AIO\n");
		return;
	}
	works(p, false);
	CHECK(syscall(SYS_io_destroy, context) == 0);
	works(p, true);
}

/* Pages that lie in a pipe have the bytes of then, wherever the program's move. */
static void
gifts(void)
{
	char *p = fresh(PAGE), got[8];
	struct iovec piece = {p, 8};
	int end[2];

	words(p, "in pipe");
	CHECK(pipe(end) == 0 && vmsplice(end[1], &piece, 1, 0) == 8);
	works(p, true);
	CHECK(read(end[0], got, 8) == 8 && strcmp(got, "in pipe") == 0 &&
	      strcmp(p, "in pipe") == 0);
}

void
case_rings(void)
{
	gifts();
	aio();
	uring();
}
