/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading by process number: reads use it, and only the client's own bytes are accepted,
 * whatever the client claims and becomes.
 */
#include "foreign_child.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	PAGES = 32,
	LEN = PAGES * PAGE, /* bytes of the region */
	BURST = 16,	    /* operations of a page each */
	RW = PROT_READ | PROT_WRITE,
	OTHERS = 0x99, /* the byte that other programs' memory is filled with */
};

/* The last page of the region is the shared one: a process read by mistake has it, too. */
#define MARK_AT (CHILD_AT + LEN - PAGE)

static int
setup(void **state)
{
	struct ft *f = malloc(sizeof(*f));
	uint8_t *bytes = malloc(LEN);

	ft_open(f, LEN);
	assert_int_equal(child_do(&f->child, CHILD_MAP, CHILD_AT, LEN, RW), 0);
	memset(bytes, 0xbb, LEN);
	child_write(&f->child, CHILD_AT, bytes, LEN);
	free(bytes);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	ft_close(*state);
	free(*state);
	return 0;
}

static struct urn_space_stats
stats(const struct ft *f)
{
	struct urn_space_stats st;

	urn_space_stats(f->space, &st);
	return st;
}

/* Read BURST pages. returns: the operations that were done; none has a byte that is not the client's */
static unsigned int
read_pages(struct ft *f)
{
	struct urn_memop op[BURST];
	unsigned int done = 0;

	for (uint32_t i = 0; i < BURST; i++) {
		memset(f->frame[i].data, 0xee, FT_FRAME);
		op[i] = ft_op(f, URN_MEMOP_GATHER, i, i * PAGE, PAGE);
	}
	ft_run(f, op, BURST);
	for (uint32_t i = 0; i < BURST; i++) {
		for (uint32_t b = 0; b < PAGE; b++) {
			uint8_t is = f->frame[i].data[b];

			/* The frame of a failed operation may be untouched, or wiped. */
			if (is != 0xbb &&
			    (op[i].status == URN_MEMOP_DONE || (is != 0xee && is != 0)))
				fail_msg("operation %u has 0x%x at %u", i, is, b);
		}
		assert_int_equal(f->frame[i].data[PAGE], 0xee);
		done += op[i].status == URN_MEMOP_DONE;
	}
	return done;
}

/* From any address to frames of any length, by one system call or several; small operations are not read so. */
static void
test_direct(void **state)
{
	struct ft *f = *state;
	uint8_t *model = malloc(LEN);
	struct urn_memop op[96];
	uint64_t before;

	ft_share(f, MARK_AT);
	urn_space_mark(f->space, f->mark, CHILD_AT); /* has no effect */
	ft_reg(f, RIGHTS);
	ft_fill(f, model, LEN - PAGE);
	child_write(&f->child, CHILD_AT, model, LEN - PAGE);
	for (int round = 0; round < 200; round++) {
		uint32_t n = 2 + (uint32_t)(test_random(&f->rng) % 94);
		uint64_t off = 0, bytes = 0;

		before = stats(f).direct;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t len = 1 + (uint32_t)(test_random(&f->rng) % PAGE);

			/* Consecutive, or anywhere. */
			if (i == 0 || test_random(&f->rng) % 4 == 0 || off + len > LEN - PAGE)
				off = test_random(&f->rng) % (LEN - 2 * PAGE);
			memset(f->frame[i].data, 0xee, FT_FRAME);
			op[i] = ft_op(f, URN_MEMOP_GATHER, i, off, len);
			off += len;
			bytes += len;
		}
		ft_run(f, op, n);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(op[i].status, URN_MEMOP_DONE);
			assert_memory_equal(f->frame[i].data, model + (op[i].addr - CHILD_AT),
					    op[i].len);
			assert_int_equal(f->frame[i].data[op[i].len], 0xee);
		}
		if (bytes < 12288)
			assert_int_equal(stats(f).direct, before);
		else if (n <= 32)
			assert_true(stats(f).direct > before);
	}
	assert_int_equal(stats(f).refused, 0);
	free(model);
}

/*
 * A page that is not mapped: operations that need it fail, all others are done, and reading
 * by number goes on.
 */
static void
test_hole(void **state)
{
	struct ft *f = *state;
	uint64_t before;

	ft_share(f, MARK_AT);
	ft_reg(f, RIGHTS);
	for (uint32_t page = 0; page < BURST; page += 5) {
		struct urn_memop op[BURST];

		assert_int_equal(child_do(&f->child, CHILD_UNMAP, CHILD_AT + page * PAGE, PAGE, 0),
				 0);
		before = stats(f).direct;
		for (uint32_t i = 0; i < BURST; i++)
			op[i] = ft_op(f, URN_MEMOP_GATHER, i, i * PAGE, PAGE);
		ft_run(f, op, BURST);
		for (uint32_t i = 0; i < BURST; i++)
			assert_int_equal(op[i].status, i % 5 == 0 && i <= page ? URN_MEMOP_FAILED
									       : URN_MEMOP_DONE);
		assert_true(stats(f).direct > before);
	}
	assert_int_equal(stats(f).refused, 0);
}

/* A client that gives no mark is served by its descriptor, and so is one whose mark is false. */
static void
test_unmarked(void **state)
{
	struct ft *f = *state;

	ft_reg(f, RIGHTS);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 0);
	assert_int_equal(stats(f).refused, 0);
	/* An address without a mapping. */
	urn_space_mark(f->space, f->mark, CHILD_AT + LEN);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 0);
	assert_int_equal(stats(f).refused, 1);
	/* The mark is tried once, and never again: not even where it would be right now. */
	ft_share(f, MARK_AT);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 0);
	assert_int_equal(stats(f).refused, 1);
}

/* Senseless addresses. */
static void
test_nonsense(void **state)
{
	static const uint64_t at[] = {1, 0xffffffffffffffff, 0xffffffffff600000, 0x7fffffffeff8};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct ft *f = *state;

		ft_reg(f, RIGHTS);
		urn_space_mark(f->space, f->mark, at[i]);
		assert_int_equal(read_pages(f), BURST);
		assert_int_equal(stats(f).direct, 0);
		assert_int_equal(stats(f).refused, 1);
		teardown(state);
		setup(state);
	}
}

/*
 * Memory at the mark that is not the shared page, with the page's former contents: an old
 * nonce proves nothing.
 */
static void
test_forged(void **state)
{
	struct ft *f = *state;
	uint64_t copy[2];

	ft_share(f, MARK_AT);
	ft_reg(f, RIGHTS);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 1);
	memcpy(copy, f->mark, sizeof(copy));
	assert_true(copy[0] || copy[1]);
	assert_int_equal(child_do(&f->child, CHILD_MAP, MARK_AT, PAGE, RW), 0);
	child_write(&f->child, MARK_AT, copy, sizeof(copy));
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 1);
	assert_int_equal(stats(f).refused, 1);
	/* Each space has its own nonce. */
	assert_true(copy[0] != f->mark[0] && copy[1] != f->mark[1]);
}

/* The client executes another program, which has memory at all these places. */
static void
executed(struct ft *f, bool twin)
{
	unsigned int done, want = twin ? BURST : 0;

	ft_share(f, MARK_AT);
	ft_reg(f, RIGHTS);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 1);
	if (twin)
		assert_int_equal(child_do(&f->child, CHILD_TWIN, 0, 0, 0), 0);
	child_ask(&f->child, CHILD_EXEC, CHILD_AT, LEN, 0);
	/* Reads are in flight before, while and after the client executes. */
	for (int i = 0; i < 300; i++) {
		done = read_pages(f);
		if (twin)
			assert_int_equal(done, BURST);
	}
	assert_int_equal(child_answer(&f->child), 0);
	assert_int_equal(read_pages(f), want);
	assert_int_equal(stats(f).refused, 1);
}

static void
test_exec(void **state)
{
	executed(*state, false);
}

/* The same, while another process keeps the client's memory: reads get that memory. */
static void
test_exec_twin(void **state)
{
	executed(*state, true);
}

/*
 * Another process has the client's number, and, by coincidence, the client's shared
 * memory at the same place, and so the nonce: only the pidfd shows the difference.
 */
static void
test_pid_again(void **state)
{
	struct ft *f = *state;
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
			set_tid, set_tid_size;
	} args = {0};
	int up[2], down[2];
	pid_t want = f->child.pid, pid;
	char byte = 0;

	ft_share(f, MARK_AT);
	ft_reg(f, RIGHTS);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 1);
	child_end(&f->child);
	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	args.exit_signal = SIGCHLD;
	args.set_tid = (uintptr_t)&want;
	args.set_tid_size = 1;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		uint8_t *p = mmap((void *)CHILD_AT, LEN, RW,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		close(down[1]);
		if (p == MAP_FAILED || mmap((void *)MARK_AT, PAGE, RW, MAP_SHARED | MAP_FIXED,
					    f->area, 0) == MAP_FAILED)
			_exit(2);
		memset(p, OTHERS, LEN - PAGE);
		_exit(write(up[1], "", 1) == 1 && read(down[0], &byte, 1) == 0 ? 0 : 3);
	}
	close(up[1]);
	close(down[0]);
	if (pid < 0) {
		print_message("no process of a number of one's choice: %s\n", strerror(errno));
		if (geteuid() == 0)
			fail_msg("root may");
	} else {
		assert_int_equal(read(up[0], &byte, 1), 1);
		assert_int_equal(read_pages(f), 0);
		assert_int_equal(stats(f).direct, 1);
		assert_int_equal(stats(f).refused, 1);
	}
	close(down[1]);
	close(up[0]);
	if (pid > 0)
		assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Reading by number is limited to memory that the user may read, not to what root may. */
static void
test_other_user(void **state)
{
	struct ft *f = *state;

	if (geteuid() != 0) {
		print_message("only root can have clients of other users\n");
		skip();
	}
	ft_share(f, MARK_AT);
	ft_reg(f, RIGHTS);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 1);
	assert_int_equal(child_do(&f->child, CHILD_USER, 0, 0, 65534), 0);
	assert_int_equal(read_pages(f), BURST);
	assert_int_equal(stats(f).direct, 1);
	assert_int_equal(stats(f).refused, 1);
}

/* Another user's pages that a userfaultfd supplies: root may ask for them, and does. */
static void
test_other_user_slow(void **state)
{
	struct ft *f = *state;
	struct urn_memop op = {0};
	uint64_t err;

	err = child_do(&f->child, CHILD_UFFD, CHILD_AT, LEN, 0);
	if (err || geteuid() != 0) {
		print_message("no userfaultfd, or no root: %s\n", strerror((int)err));
		if (geteuid() == 0)
			fail_msg("root may have one");
		skip();
	}
	ft_reg(f, RIGHTS);
	assert_int_equal(child_do(&f->child, CHILD_USER, 0, 0, 65534), 0);
	child_ask(&f->child, CHILD_SERVE, 0, 0, 1);
	op = ft_op(f, URN_MEMOP_GATHER, 0, 0, 64);
	ft_run(f, &op, 1);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	assert_int_equal(f->frame[0].data[0], 0x5a);
	assert_int_equal(child_answer(&f->child), 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmarked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_twin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_user_slow, setup, teardown),
	};

	child_be_victim(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
