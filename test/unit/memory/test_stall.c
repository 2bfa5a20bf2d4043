/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies that stall, and many spaces at once. */
#include "foreign_child.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LEN = 16 * PAGE, RW = PROT_READ | PROT_WRITE };

/*
 * A client whose memory a userfaultfd supplies, and does not supply for now. returns:
 * false when the kernel forbids this to the user; prints so
 */
static bool
open_slow(struct ft *f)
{
	uint64_t err;

	ft_open(f, LEN);
	err = child_do(&f->child, CHILD_UFFD, CHILD_AT, LEN, 0);
	if (err) {
		print_message("no userfaultfd: %s\n", strerror((int)err));
		if (geteuid() == 0)
			fail_msg("root may have one");
		ft_close(f);
		return false;
	}
	ft_reg(f, RIGHTS);
	return true;
}

static void
open_quick(struct ft *f)
{
	ft_open(f, LEN);
	assert_int_equal(child_do(&f->child, CHILD_MAP, CHILD_AT, LEN, RW), 0);
	ft_reg(f, RIGHTS);
}

/* Run n operations of another client through the executor of `x`. */
static void
others_go_on(struct ft *slow, struct ft *quick, unsigned int rounds)
{
	struct urn_memop op[16], got[32];
	uint64_t since = 0;

	for (unsigned int r = 0; r < rounds; r++) {
		unsigned int left = 16;

		for (uint32_t i = 0; i < 16; i++) {
			ft_fill(quick, quick->frame[i].data, 256);
			op[i] = ft_op(quick, URN_MEMOP_PLACE, i, i * 256, 256);
		}
		/* On the engine that has the slow client's operations in flight. */
		assert_int_equal(urn_memx_execute(slow->x, op, 16), 16);
		while (left) {
			unsigned int n = urn_memx_poll(slow->x, got, 32);

			for (unsigned int i = 0; i < n; i++) {
				assert_ptr_equal(got[i].region, quick->region);
				assert_int_equal(got[i].status, URN_MEMOP_DONE);
			}
			left -= n;
			if (n == 0)
				ft_wait(&since);
		}
	}
}

/*
 * One space stalls: another one, and mapped memory, go on; then the stalled one is served, and
 * all data is there.
 */
static void
test_stall(void **state)
{
	struct ft slow, quick;
	struct urn_memop op[40], got[32];
	uint8_t mapped[8] = {0}, bytes[PAGE];
	struct urn_region *region;
	unsigned int taken = 0, n;
	uint64_t since = 0;
	uint32_t key;

	(void)state;
	if (!open_slow(&slow))
		skip();
	open_quick(&quick);
	for (uint32_t i = 0; i < 40; i++) {
		memset(slow.frame[i].data, 0x20 + (int)i, 100);
		op[i] = ft_op(&slow, URN_MEMOP_PLACE, i, i * 100, 100);
	}
	assert_int_equal(urn_memx_execute(slow.x, op, 40), 40);
	others_go_on(&slow, &quick, 200);
	assert_int_equal(urn_memx_holds(slow.x, NULL), 40);
	assert_int_equal(urn_memx_holds(slow.x, slow.region), 40);

	assert_int_equal(urn_mem_reg_mr(slow.mem, slow.pd, mapped, 8, 0, RIGHTS, &key), 0);
	assert_int_equal(urn_mem_check(slow.mem, key, slow.pd, 0, 0, 8, 0, 0, &region), 0);
	op[0] = (struct urn_memop){.region = region,
				   .frame = quick.frame[0].data,
				   .m = &quick.frame[0].m,
				   .len = 8,
				   .kind = URN_MEMOP_PLACE};
	assert_int_equal(urn_memx_execute(slow.x, op, 1), 0);
	assert_memory_equal(mapped, quick.frame[0].data, 8);

	assert_int_equal(child_do(&slow.child, CHILD_SERVE, 0, 0, 1), 0);
	while (taken < 40) {
		n = urn_memx_poll(slow.x, got, 32);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(got[i].status, URN_MEMOP_DONE);
		taken += n;
		if (n == 0)
			ft_wait(&since);
	}
	child_read(&slow.child, CHILD_AT, bytes, PAGE);
	for (uint32_t i = 0; i < 4000; i++)
		assert_int_equal(bytes[i], 0x20 + i / 100);
	assert_int_equal(bytes[4000], 0x5a); /* the byte supplied */
	test_dereg(slow.mem, key);
	ft_close(&slow);
	ft_close(&quick);
}

/* Reads and atomics stall as well, over a border of pages. */
static void
test_stall_read(void **state)
{
	struct ft slow;
	struct urn_memop op[3], got[4];
	uint64_t since = 0;
	unsigned int taken = 0, n;

	(void)state;
	if (!open_slow(&slow))
		skip();
	op[0] = ft_op(&slow, URN_MEMOP_GATHER, 0, PAGE - 8, 16);
	op[1] = ft_op(&slow, URN_MEMOP_FETCH_ADD, 1, 4 * PAGE, 8);
	op[2] = ft_op(&slow, URN_MEMOP_GATHER, 2, 4 * PAGE, 8);
	urn_pkt(&slow.frame[1].m)->record.operand[0] = 1;
	assert_int_equal(urn_memx_execute(slow.x, op, 3), 3);
	assert_int_equal(child_do(&slow.child, CHILD_SERVE, 0, 0, 3), 0);
	while (taken < 3) {
		n = urn_memx_poll(slow.x, got, 4);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(got[i].status, URN_MEMOP_DONE);
		taken += n;
		if (n == 0)
			ft_wait(&since);
	}
	for (int i = 0; i < 16; i++)
		assert_int_equal(slow.frame[0].data[i], 0x5a);
	assert_true(urn_pkt(&slow.frame[1].m)->record.operand[0] == 0x5a5a5a5a5a5a5a5aull);
	assert_int_equal(slow.frame[2].data[0], 0x5b);
	ft_close(&slow);
}

/* The client is killed while a copy stalls: the copy fails, and all behind it. */
static void
test_stall_killed(void **state)
{
	struct ft slow;
	struct urn_memop op[8], got[8];
	uint64_t since = 0;
	unsigned int taken = 0, n;

	(void)state;
	if (!open_slow(&slow))
		skip();
	for (uint32_t i = 0; i < 8; i++)
		op[i] = ft_op(&slow, (int)(i & 1), i, i * PAGE, 64);
	assert_int_equal(urn_memx_execute(slow.x, op, 8), 8);
	for (int i = 0; i < 100; i++) {
		sched_yield();
		assert_int_equal(urn_memx_poll(slow.x, got, 8), 0);
	}
	child_end(&slow.child);
	while (taken < 8) {
		n = urn_memx_poll(slow.x, got, 8);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(got[i].status, URN_MEMOP_FAILED);
		taken += n;
		if (n == 0)
			ft_wait(&since);
	}
	ft_close(&slow);
}

/* 16 clients by one engine, each with its own bytes; one of them dies meanwhile. */
static void
test_sixteen(void **state)
{
	enum { N = 16, ROUNDS = 60 };
	struct ft *f = calloc(N, sizeof(*f));
	struct urn_memop op[N * 8], got[32];
	uint8_t bytes[8 * 512];

	(void)state;
	for (int i = 0; i < N; i++)
		open_quick(&f[i]);
	for (int r = 0; r < ROUNDS; r++) {
		unsigned int left = N * 8, n;
		uint64_t since = 0;

		/* Interleaved: eight places of each. */
		for (uint32_t k = 0; k < N * 8; k++) {
			struct ft *g = &f[k % N];

			ft_fill(g, g->frame[k / N].data, 512);
			op[k] = ft_op(g, URN_MEMOP_PLACE, k / N, k / N * 512, 512);
			op[k].tag = (uint16_t)(k % N);
		}
		if (r == ROUNDS / 2)
			child_end(&f[5].child);
		assert_int_equal(urn_memx_execute(f[0].x, op, N * 8), N * 8);
		while (left) {
			n = urn_memx_poll(f[0].x, got, 32);
			for (unsigned int i = 0; i < n; i++)
				assert_int_equal(got[i].status, got[i].tag == 5 && r >= ROUNDS / 2
									? URN_MEMOP_FAILED
									: URN_MEMOP_DONE);
			left -= n;
			if (n == 0)
				ft_wait(&since);
		}
		for (int i = 0; i < N; i++) {
			if (i == 5 && r >= ROUNDS / 2)
				continue;
			child_read(&f[i].child, CHILD_AT, bytes, sizeof(bytes));
			for (int k = 0; k < 8; k++)
				assert_memory_equal(bytes + k * 512, f[i].frame[k].data, 512);
		}
	}
	for (int i = 0; i < N; i++)
		ft_close(&f[i]);
	free(f);
}

/*
 * A dataplane without rights over a client: uid 65534 here, the client another user. The
 * descriptor that the client passed is enough; only pages that a userfaultfd supplies
 * can't be fetched: those operations fail.
 */
static void
test_without_rights(void **state)
{
	struct ft f, slow;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root can give up its rights\n");
		skip();
	}
	ft_open(&f, LEN);
	assert_int_equal(child_do(&f.child, CHILD_MAP, CHILD_AT, LEN, RW), 0);
	ft_open(&slow, LEN);
	assert_int_equal(child_do(&slow.child, CHILD_UFFD, CHILD_AT, LEN, 0), 0);
	pid = fork();
	if (pid == 0) {
		struct urn_memop op[2];

		if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
			_exit(2);
		for (int i = 0; i < 2; i++) {
			struct ft *g = i ? &slow : &f;
			struct urn_space *s;
			char why[256];

			/* Set all of it up again, with the present rights. */
			if (urn_space_create(&g->child.fds, &s, why, sizeof(why)) != 0)
				_exit(3);
			g->space = s;
			ft_reg(g, RIGHTS);
			memset(g->frame[0].data, 0x44, 64);
			op[0] = ft_op(g, URN_MEMOP_PLACE, 0, PAGE - 32, 64);
			op[1] = ft_op(g, URN_MEMOP_GATHER, 1, PAGE - 32, 64);
			ft_run(g, op, 2);
			for (int k = 0; k < 2; k++)
				if (op[k].status != (i ? URN_MEMOP_FAILED : URN_MEMOP_DONE))
					_exit(4);
			if (!i && memcmp(g->frame[0].data, g->frame[1].data, 64) != 0)
				_exit(5);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	uint8_t got[64];
	child_read(&f.child, CHILD_AT + PAGE - 32, got, 64);
	assert_int_equal(got[0], 0x44);
	ft_close(&f);
	ft_close(&slow);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stall),	       cmocka_unit_test(test_stall_read),
		cmocka_unit_test(test_stall_killed),   cmocka_unit_test(test_sixteen),
		cmocka_unit_test(test_without_rights),
	};

	child_be_victim(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
