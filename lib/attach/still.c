/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A private mapping of the memfd alone would not do: its pages follow the memfd until this process
 * writes them. So the bytes are copied, but for holes, which would cost memory on both sides.
 *
 * A writer that goes on meanwhile would be seen in the middle: an index that is copied before a
 * store, and the entry behind it, would not fit each other. So the memory is copied until it was
 * the same from the begin of a pass to its end. The writer stores a completion, and the indices
 * that belong to it, in an order that a reader can finish (lib/abi/queue.h): any one moment will
 * do.
 */
#include "attach/still.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Passes, at most: a writer with so much to write is no queue's. */
enum { URN_STILL_PASSES = 16, URN_STILL_PAGE = 4096 };

/*
 * Copy the parts of a memfd that hold data, as far as they differ.
 * returns: 0 or an errno value; *same: nothing differed
 */
static int
urn_still_pass(uint8_t *to, const uint8_t *from, off_t size, int fd, bool *same)
{
	off_t at = lseek(fd, 0, SEEK_DATA);

	*same = true;
	while (at >= 0 && at < size) {
		off_t end = lseek(fd, at, SEEK_HOLE);

		if (end < 0)
			return errno;
		if (end > size)
			end = size;
		for (off_t page = at; page < end; page += URN_STILL_PAGE) {
			off_t rest = end - page;
			size_t n = (size_t)(rest < URN_STILL_PAGE ? rest : URN_STILL_PAGE);

			if (memcmp(to + page, from + page, n) == 0)
				continue;
			memcpy(to + page, from + page, n);
			*same = false;
		}
		at = lseek(fd, end, SEEK_DATA);
	}
	/* ENXIO: no data from there on */
	return at < 0 && errno != ENXIO ? errno : 0;
}

/* returns: 0 or an errno value */
static int
urn_still_copy(uint8_t *to, const uint8_t *from, off_t size, int fd)
{
	bool same = false;
	int err = 0;

	for (int i = 0; i < URN_STILL_PASSES && !same && err == 0; i++)
		err = urn_still_pass(to, from, size, fd, &same);
	return err;
}

/* Make the pages of private memory [at, end) this process's own. */
static void
urn_still_own(uint8_t *at, const uint8_t *end)
{
	for (; at < end; at += URN_STILL_PAGE)
		(void)__atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
}

/*
 * There is no room for a copy beside the memory: private pages take its place, one by one. Holes
 * become memory of nobody else's, too. returns: 0 or an errno value: some may be as they were
 */
static int
urn_still_in_place(uint8_t *at, off_t size, int fd)
{
	off_t data, done = 0;

	if (mmap(at, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return errno;
	while (done < size) {
		off_t end;

		data = lseek(fd, done, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			return errno;
		if (data < 0 || data > size)
			data = size;
		if (data > done && mmap(at + done, (size_t)(data - done), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
					0) == MAP_FAILED)
			return errno;
		end = data < size ? lseek(fd, data, SEEK_HOLE) : size;
		if (end < 0)
			return errno;
		done = end < size ? end : size;
		urn_still_own(at + data, at + done);
	}
	return 0;
}

int
urn_still(void *at, size_t size, int fd)
{
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (copy == MAP_FAILED)
		return urn_still_in_place(at, (off_t)size, fd);
	err = urn_still_copy(copy, at, (off_t)size, fd);
	/* The kernel exchanges the mappings in one step for all threads. */
	if (err == 0 && mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		err = errno;
	if (err != 0)
		munmap(copy, size);
	return err;
}
