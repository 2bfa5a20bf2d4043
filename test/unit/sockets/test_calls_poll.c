/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that wait for several descriptors (DB-8, DB-11). */
#include "rig.h"

#include "abi/clock.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t size);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

/* poll() and its kin tell of datagrams, and wait as long as they are told. */
static void
polls(void **state)
{
	struct rig *r = *state;
	struct pollfd p = {.fd = r->s, .events = POLLIN};
	struct timespec ts = {.tv_nsec = 20000000}, bad = {.tv_nsec = -1};
	uint64_t start = urn_clock_ms();

	assert_int_equal(poll(&p, 1, 30), 0);
	assert_int_equal(ppoll(&p, 1, &ts, NULL), 0);
	assert_in_range(urn_clock_ms() - start, 48, 5000);
	FAILS(ppoll(&p, 1, &bad, NULL), EINVAL);
	rig_send(r, "x");
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(ppoll(&p, 1, NULL, NULL), 1);
	assert_int_equal(__poll_chk(&p, 1, -1, sizeof(p)), 1);
	assert_int_equal(__ppoll_chk(&p, 1, NULL, NULL, sizeof(p)), 1);
	assert_int_equal(p.revents, POLLIN);
}

/* select() by sets, which come back with what is ready, and the time that is left. */
static void
selects(void **state)
{
	struct rig *r = *state;
	struct timeval tv = {.tv_usec = 20000};
	struct timespec ts = {.tv_nsec = 20000000};
	fd_set in, out;
	int dead = dup(1);

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(r->s, &in);
	assert_int_equal(select(r->s + 1, &in, NULL, NULL, &tv), 0);
	assert_false(FD_ISSET(r->s, &in));
	assert_int_equal(tv.tv_sec + tv.tv_usec, 0);
	FD_SET(r->s, &in);
	assert_int_equal(pselect(r->s + 1, &in, NULL, NULL, &ts, NULL), 0);
	rig_send(r, "x");
	FD_SET(r->s, &in);
	FD_SET(r->s, &out);
	tv.tv_sec = 60;
	assert_int_equal(select(r->s + 1, &in, &out, NULL, &tv), 2);
	assert_true(FD_ISSET(r->s, &in) && FD_ISSET(r->s, &out));
	assert_in_range(tv.tv_sec, 1, 59);
	FD_ZERO(&out);
	assert_int_equal(pselect(r->s + 1, &in, NULL, NULL, NULL, NULL), 1);
	close(dead);
	FD_SET(dead, &in);
	FAILS(select((dead > r->s ? dead : r->s) + 1, &in, NULL, NULL, NULL), EBADF);
	FAILS(select(-1, &in, NULL, NULL, NULL), EINVAL);
	tv.tv_sec = -1;
	FD_CLR(dead, &in);
	FAILS(select(r->s + 1, &in, NULL, NULL, &tv), EINVAL);
}

static volatile sig_atomic_t hits;

static void
on_signal(int sig)
{
	(void)sig;
	hits++;
}

/* The mask of ppoll() and pselect() holds for their time; a signal ends them. */
static void
masks(void **state)
{
	struct rig *r = *state;
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct pollfd p = {.fd = r->s, .events = POLLIN};
	sigset_t none, usr1;
	fd_set in;

	sigaction(SIGUSR1, &sa, NULL);
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	raise(SIGUSR1);
	assert_int_equal(hits, 0);
	FAILS(ppoll(&p, 1, NULL, &none), EINTR);
	assert_int_equal(hits, 1);
	raise(SIGUSR1);
	FD_ZERO(&in);
	FD_SET(r->s, &in);
	FAILS(pselect(r->s + 1, &in, NULL, NULL, NULL, &none), EINTR);
	assert_int_equal(hits, 2);
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
}

/* Descriptors without a twin wait in the kernel. */
static void
others(void **state)
{
	struct rig *r = *state;
	int way[2];
	struct pollfd p;
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 3};
	int ep = epoll_create1(0);

	assert_int_equal(pipe(way), 0);
	p = (struct pollfd){.fd = way[0], .events = POLLIN};
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, way[0], &ev), 0);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, r->s, &ev), 0);
	assert_int_equal(write(way[1], "x", 1), 1);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(epoll_wait(ep, &ev, 1, -1), 1);
	assert_int_equal(ev.data.u64, 3);
	FAILS(epoll_wait(1000, &ev, 1, 0), EBADF);
	FAILS(epoll_ctl(1000, EPOLL_CTL_ADD, r->s, &ev), EBADF);
	close(ep);
	close(way[0]);
	close(way[1]);
}

/* A poll of a socket without a name waits for urnic, too: another thread may send meanwhile. */
static void
early(void **state)
{
	struct rig *r = *state;
	int u = socket(AF_INET, SOCK_DGRAM, 0);
	struct pollfd p = {.fd = u, .events = POLLOUT};

	assert_int_equal(poll(&p, 1, 0), 1);
	assert_null(rig_sock(u));
	p.events = POLLIN;
	assert_int_equal(poll(&p, 1, 1), 0);
	assert_non_null(rig_sock(u));
	close(u);
	(void)r;
}

/* A table that is too short ends the program, like in the C library. */
static void
checked(void **state)
{
	struct rig *r = *state;
	struct pollfd p[2] = {{.fd = r->s}, {.fd = r->s}};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		(void)__poll_chk(p, 2, 0, sizeof(p[0]));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(polls, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(selects, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(masks, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(others, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(early, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(checked, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
