/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory that another process goes on writing stands still for us. */
#include "test.h"

#include "attach/still.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64 };

/* ---- calls of the code under test come here, by the names that they have in objects */

static void (*between)(void); /* called before each look for the next data; NULL: nothing */
static bool no_room;	      /* there is no address space for a copy */

off_t __real_lseek64(int fd, off_t at, int how);
off_t __wrap_lseek64(int fd, off_t at, int how);

off_t
__wrap_lseek64(int fd, off_t at, int how)
{
	if (between != NULL && how == SEEK_DATA && at > 0)
		between();
	return __real_lseek64(fd, at, how);
}

void *__real_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t off);

void *
__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	if (no_room && !(flags & MAP_FIXED)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap64(at, size, prot, flags, fd, off);
}

static uint8_t *
map(int fd)
{
	uint8_t *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

/* Data and holes are as they were, whatever is written to the memfd later. */
static void
stands(bool few)
{
	int fd = memfd_create("still", MFD_CLOEXEC);
	uint8_t *ours, *theirs;

	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	ours = map(fd);
	theirs = map(fd);
	ours[3 * PAGE + 7] = 1;
	theirs[PAGES * PAGE - 1] = 2;
	no_room = few;
	assert_int_equal(urn_still(ours, PAGES * PAGE, fd), 0);
	no_room = false;
	memset(theirs, 0x55, PAGES * PAGE);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		assert_int_equal(ours[i], i == 3 * PAGE + 7 ? 1 : i == PAGES * PAGE - 1 ? 2 : 0);
	ours[0] = 9;
	assert_int_equal(theirs[0], 0x55);
	munmap(ours, PAGES * PAGE);
	munmap(theirs, PAGES * PAGE);
	close(fd);
}

static void
test_stands(void **state)
{
	(void)state;
	stands(false);
}

/* The program may have no more address space (ulimit -v). */
static void
test_no_room(void **state)
{
	(void)state;
	stands(true);
}

/* ---- a writer that goes on */

static uint8_t *written; /* the writer's mapping */
static unsigned int writes;

/* Store behind the bytes that were copied last, and before them: always the same number. */
static void
write_both(void)
{
	if (writes == 3)
		return;
	writes++;
	written[2 * PAGE] = written[60 * PAGE] = (uint8_t)(writes + 1);
}

/* The copy is of one moment. */
static void
test_one_moment(void **state)
{
	int fd = memfd_create("still", MFD_CLOEXEC);
	uint8_t *ours;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	ours = map(fd);
	written = map(fd);
	written[2 * PAGE] = written[60 * PAGE] = 1;
	writes = 0;
	between = write_both;
	assert_int_equal(urn_still(ours, PAGES * PAGE, fd), 0);
	between = NULL;
	assert_int_equal(writes, 3);
	assert_int_equal(ours[2 * PAGE], ours[60 * PAGE]);
	munmap(ours, PAGES * PAGE);
	munmap(written, PAGES * PAGE);
	close(fd);
}

/* An empty memfd has no data at all. */
static void
test_empty(void **state)
{
	int fd = memfd_create("still", MFD_CLOEXEC);
	uint8_t *ours, *theirs;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	ours = map(fd);
	theirs = map(fd);
	assert_int_equal(urn_still(ours, PAGES * PAGE, fd), 0);
	theirs[PAGE] = 1;
	assert_int_equal(ours[PAGE], 0);
	munmap(ours, PAGES * PAGE);
	munmap(theirs, PAGES * PAGE);
	close(fd);
}

/* Without a memfd the memory stays as it is. */
static void
test_bad(void **state)
{
	int fd = memfd_create("still", MFD_CLOEXEC);
	uint8_t *ours;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	ours = map(fd);
	ours[5] = 5;
	assert_int_equal(urn_still(ours, PAGES * PAGE, -1), EBADF);
	assert_int_equal(ours[5], 5);
	munmap(ours, PAGES * PAGE);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stands),	   cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_one_moment), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
