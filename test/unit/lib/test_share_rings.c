/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of a program with io_uring or AIO stay where they are (attach/share/rings.c). */
#include "attach/share/window.h"
#include "test.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB ((uintptr_t)1 << 20)

static struct urn_share_window *window;
static char *memory;

static int
set_up(void **state)
{
	(void)state;
	/* Far from this thread's own variables, which never move. */
	memory = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory += MIB;
	window = urn_share_make((uintptr_t)memory, (uintptr_t)memory + MIB);
	memory[0] = 'm';
	return window == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	urn_share_unmake(window);
	return munmap(memory - MIB, 3 * MIB);
}

static const char *
in(void)
{
	return urn_share_move_in(window, (uintptr_t)memory, (uintptr_t)memory + MIB);
}

/* While there is a ring, pages move neither in nor back; then they do. */
static void
nothing_moves(void)
{
	assert_string_equal(in(), URN_SHARE_RINGS);
	assert_int_equal(window->bytes, 0);
	assert_int_equal(memory[0], 'm');
}

static void
moves(void)
{
	assert_null(in());
	assert_int_equal(window->home[(uintptr_t)memory - window->start], 'm');
}

static void
test_names(void **state)
{
	struct urn_own_mapping m;

	(void)state;
	assert_true(urn_mapping_parse("1000-2000 rw-s 0 00:0e 9 anon_inode:[io_uring]", &m) &&
		    m.ring);
	assert_true(urn_mapping_parse("1000-2000 rw-s 0 00:13 80 /[aio] (deleted)", &m) && m.ring);
	assert_true(urn_mapping_parse("1000-2000 rw-s 0 00:13 80 /memfd:x (deleted)", &m) &&
		    !m.ring);
	assert_true(urn_mapping_parse("1000-2000 rw-p 0 00:00 0", &m) && !m.ring);
}

/* The descriptor alone tells of a ring that is not mapped, and the mapping of one that is closed.
 */
static void
test_uring(void **state)
{
	struct io_uring_params params = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	void *ring;

	(void)state;
	if (fd < 0)
		skip(); /* this system has none */
	nothing_moves();
	ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	assert_ptr_not_equal(ring, MAP_FAILED);
	close(fd);
	nothing_moves();
	munmap(ring, 4096);
	moves();
}

static void
test_aio(void **state)
{
	aio_context_t context = 0;

	(void)state;
	if (syscall(SYS_io_setup, 4, &context) != 0)
		skip();
	nothing_moves();
	assert_int_equal(syscall(SYS_io_destroy, context), 0);
	moves();
}

/* Pages that moved before the ring was there stay shared while it is. */
static void
test_back(void **state)
{
	aio_context_t context = 0;

	(void)state;
	moves();
	if (syscall(SYS_io_setup, 4, &context) != 0)
		skip();
	assert_null(in());
	assert_string_equal(urn_share_move_back(window, 0, 0), URN_SHARE_RINGS);
	assert_int_equal(window->bytes, MIB);
	memory[0] = 'n';
	assert_int_equal(window->home[(uintptr_t)memory - window->start], 'n');
	assert_int_equal(syscall(SYS_io_destroy, context), 0);
	assert_null(urn_share_move_back(window, 0, 0));
	assert_int_equal(window->bytes, 0);
	assert_int_equal(memory[0], 'n');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_uring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_aio, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_back, set_up, tear_down),
	};

	urn_share_move_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
