/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that watches its channel with 20,000 descriptors: each wake-up runs as many callbacks,
 * in the thread that writes the event (doc/inside/trust.md, "A program with many watchers"). That
 * thread is the program's own, and never an engine's. Found by counting who writes to which socket,
 * not by time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "control/objects.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WATCHERS = 20000,
	SPARE = 200,   /* descriptors of the attacker that watch nothing */
	PATIENCE = 60, /* seconds */
	SOCKETS = 256, /* sockets of the dataplane that this test sees written to */
	EVENTS = 5,    /* events of the attacker that must have been handed over */
};

/* ---- writers, by socket */

static const struct rig *_Atomic watched;
/* sends_lock protects the table of sockets that were written to. */
static pthread_mutex_t sends_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	ino_t socket;
	uint64_t engines, others; /* sends of the thread that runs all engines, and of others */
} sends[SOCKETS];
static unsigned int sends_n;

ssize_t __real_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);

static void
note_send(const struct rig *r, ino_t socket)
{
	unsigned int i = 0;

	pthread_mutex_lock(&sends_lock);
	while (i < sends_n && sends[i].socket != socket)
		i++;
	if (i < SOCKETS) {
		sends_n += i == sends_n;
		sends[i].socket = socket;
		if (pthread_equal(pthread_self(), r->thread))
			sends[i].engines++;
		else
			sends[i].others++;
	}
	pthread_mutex_unlock(&sends_lock);
}

ssize_t
__wrap_send(int fd, const void *p, size_t n, int flags)
{
	const struct rig *r =
		atomic_load(&watched); /* threads go on to send when it is taken away */
	struct stat st;

	if (r && fstat(fd, &st) == 0)
		note_send(r, st.st_ino);
	return __real_send(fd, p, n, flags);
}

/* ---- the attacker */

/* Watch a descriptor with as many as the system lets this program have. returns: their number */
static unsigned int
watch(int fd)
{
	struct rlimit most = {.rlim_cur = WATCHERS + 2 * SPARE, .rlim_max = WATCHERS + 2 * SPARE};
	struct epoll_event ev = {.events = EPOLLIN};
	unsigned int n = 0, max;
	int set = epoll_create1(0);

	if (setrlimit(RLIMIT_NOFILE, &most) != 0) { /* only root gets more than the hard limit */
		(void)getrlimit(RLIMIT_NOFILE, &most);
		most.rlim_cur = most.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &most);
	}
	max = most.rlim_cur > WATCHERS + SPARE ? WATCHERS : (unsigned int)most.rlim_cur - SPARE;
	while (n < max) {
		int more = dup(fd);

		if (more < 0 || epoll_ctl(set, EPOLL_CTL_ADD, more, &ev) != 0)
			break;
		n++;
	}
	return n;
}

/* Watch the own channel, and cause events for ever. */
static void __attribute__((noreturn)) attack(const struct rig *r, int say)
{
	struct hostile_loop *m;
	struct rig_end *end;
	unsigned int n;

	hostile_attacking = true;
	for (int fd = 3; fd < 1024; fd++)
		if (fd != say)
			close(fd);
	alarm(4 * PATIENCE);
	m = hostile_attach(r);
	end = &m->rig.end[0];
	(void)fcntl(m->ch->fd, F_SETFL, O_NONBLOCK);
	n = watch(m->ch->fd);
	if (write(say, &n, sizeof(n)) != (ssize_t)sizeof(n))
		_exit(1);
	for (;;) {
		struct ibv_cq *cq;
		struct ibv_wc wc;
		void *context;

		while (ibv_poll_cq(end->cq, 1, &wc) == 1)
			;
		(void)ibv_req_notify_cq(end->cq, 0);
		hostile_write(m, (uintptr_t)end->buf + 65536, end->mr->rkey);
		while (ibv_get_cq_event(m->ch, &cq, &context) == 0)
			ibv_ack_cq_events(cq, 1);
		usleep(100);
	}
}

/* ---- the test */

static ino_t theirs[SOCKETS]; /* sockets of which the attacker has a descriptor */
static unsigned int theirs_n;

static bool
is_theirs(ino_t socket)
{
	unsigned int i = 0;

	while (i < theirs_n && theirs[i] != socket)
		i++;
	return i < theirs_n;
}

/* Find the sockets of which the attacker has a descriptor. */
static void
look_at(pid_t pid)
{
	char path[300];
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	theirs_n = 0;
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
		if (stat(path, &st) != 0 || !S_ISSOCK(st.st_mode) || is_theirs(st.st_ino))
			continue;
		assert_true(theirs_n < SOCKETS);
		theirs[theirs_n++] = st.st_ino;
	}
	closedir(d);
}

static ino_t
socket_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* The descriptors that engines and connection management write the program's events to are none of
 * the program's. returns: how many there are */
static unsigned int
check_descriptors(const struct rig *r, pid_t pid)
{
	struct urn_adapter *a = r->dp->adapter[0];
	ino_t to[16];
	unsigned int n = 0;

	pthread_mutex_lock(&a->lock);
	for (const struct urn_client *c = LIST_FIRST(&a->clients); c; c = LIST_NEXT(c, link)) {
		if (c->pid != pid)
			continue;
		to[n++] = socket_of(atomic_load(&c->engine.async_fd));
		for (uint32_t i = 0; i < c->channels.cap; i++) {
			const struct urn_ctl_channel *ch = c->channels.v[i];

			if (ch && n < 16)
				to[n++] = socket_of(ch->pipe.write_fd);
		}
	}
	pthread_mutex_unlock(&a->lock);
	for (unsigned int i = 0; i < n; i++)
		assert_false(is_theirs(to[i]));
	return n;
}

/* No engine wrote to a socket of the program's. returns: how often others did */
static uint64_t
check_sends(void)
{
	uint64_t others = 0;

	pthread_mutex_lock(&sends_lock);
	for (unsigned int i = 0; i < sends_n; i++) {
		if (!is_theirs(sends[i].socket))
			continue;
		assert_int_equal(sends[i].engines, 0);
		others += sends[i].others;
	}
	pthread_mutex_unlock(&sends_lock);
	return others;
}

static void
test_watchers(void **state)
{
	struct rig *r = *state;
	unsigned int n = 0;
	time_t start;
	pid_t pid;
	int p[2];

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		attack(r, p[1]);
	close(p[1]);
	assert_int_equal(read(p[0], &n, sizeof(n)), sizeof(n));
	close(p[0]);
	print_message("%u watchers\n", n);
	assert_true(n > 0);
	look_at(pid);
	/* The victim's bytes go over meanwhile, as often as it takes until the attacker had some
	 * events. */
	atomic_store(&watched, r);
	for (start = time(NULL); check_sends() < EVENTS; hostile_others_go_on(r))
		assert_true(time(NULL) - start < PATIENCE);
	assert_int_equal(check_descriptors(r, pid), 2); /* asynchronous events, and the channel */
	atomic_store(&watched, NULL);
	assert_true(hostile_good_program(r));
	/* The attacker's thread may rest or be at a wake-up: it ends all the same. */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_others_go_on(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watchers),
	};

	return cmocka_run_group_tests_name("watchers", tests, hostile_setup, hostile_teardown);
}
