/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child of fork() that a function of the program made in the helper thread of an endpoint ends,
 * and disturbs nobody (AM-1).
 */
#include "am_net.h"

#include "abi/clock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORK = 8, FORKS = 4 };

/* Children that functions of the program made, and how they end. */
static struct {
	pid_t child[FORKS];
	_Atomic unsigned int n;
	bool returns; /* the child returns from the function, else it ends inside */
} forks;

/* Make a child, in which each call on the endpoint fails at once. */
static void
make_child(struct urn_am_endpoint *ep, uint64_t token)
{
	struct urn_am_stats stats;
	pid_t pid = fork();
	bool ok;

	if (pid != 0) {
		forks.child[atomic_load(&forks.n)] = pid;
		atomic_fetch_add(&forks.n, 1);
		return;
	}
	ok = urn_am_reply(ep, token, 1, NULL, 0, NULL, 0) == EPERM &&
	     urn_am_region_destroy(ep, 1) == EPERM && urn_am_thread_stop(ep) == EPERM &&
	     urn_rma_flush(ep, -1, NULL) == EPERM && urn_am_progress(ep) == 0;
	urn_am_get_stats(ep, &stats);
	urn_am_endpoint_destroy(ep);
	if (!ok || !forks.returns)
		_exit(ok ? 0 : 1);
}

static void
fork_in_handler(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	make_child(ep, m->token);
}

static void
fork_in_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)code;
	(void)bytes;
	(void)arg;
	make_child(ep, 1);
}

static void
fork_in_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)f;
	(void)arg;
	make_child(ep, 1);
}

/* Every child has ended, well. */
static void
reap(unsigned int n)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	for (unsigned int i = 0; i < n; i++) {
		int status = -1;

		while (waitpid(forks.child[i], &status, WNOHANG) == 0) {
			if (urn_clock_ms() > end) {
				kill(forks.child[i], SIGKILL);
				fail_msg("child %u hangs", i);
			}
			usleep(1000);
		}
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

/* Wait until functions of b's thread have made so many children: b is not driven here. */
static void
until(struct net *n, unsigned int want)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (atomic_load(&forks.n) < want) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(n->side[0].ep);
		sched_yield();
	}
}

/* Fork in each function that the library calls in the helper thread of b: handlers, and those of an
 * operation and of a failure. */
static void
fork_everywhere(struct net *n, uint64_t key)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_address nobody = b->address;
	struct urn_rma op = {.to = &b->address,
			     .remote = (uintptr_t)b->buf,
			     .key = key,
			     .memory = &b->memory,
			     .local = b->buf + 8,
			     .len = 8,
			     .done = fork_in_done};

	nobody.requests ^= 1ull << 40;
	atomic_store(&forks.n, 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(urn_am_request(a->ep, &b->address, FORK, NULL, 0, NULL, 0, NULL),
				 0);
		until(n, i + 1);
	}
	assert_int_equal(urn_rma_write(b->ep, &op), 0);
	until(n, 3);
	assert_int_equal(urn_am_request(b->ep, &nobody, 1, NULL, 0, NULL, 0, NULL), 0);
	until(n, FORKS);
	reap(FORKS);
	net_until_quiet(n, a);
}

/* The child does not hang, whether it ends inside the function or returns, and answers nobody: the
 * parent goes on. */
static void
test_fork(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, MEM};
	struct urn_am_stats stats;
	uint64_t key;

	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &key), 0);
	urn_am_handle(b->ep, FORK, fork_in_handler, NULL);
	urn_am_on_failure(b->ep, fork_in_failure, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		forks.returns = i == 1;
		assert_int_equal(urn_am_thread_start(b->ep), 0);
		fork_everywhere(n, key);
		assert_int_equal(urn_am_thread_stop(b->ep), 0);
	}
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.stray_replies, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		{"test_fork embedded", test_fork, net_setup, net_teardown, NULL},
		{"test_fork socket", test_fork, net_setup, net_teardown, "socket"},
	};

	net_attr.wakes = 1;
	net_attr.answer_ms = 30000;
	return cmocka_run_group_tests_name("am_fork", tests, NULL, NULL);
}
