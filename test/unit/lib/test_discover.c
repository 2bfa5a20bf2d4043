/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking for a dataplane where one is slow: against a socket that the test answers.
 * test/verbs/test_attach.c looks for real ones.
 */
#include "test.h"

#include "abi/socket.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEERS = 8 };

/* Answers all clients but the first that asks for the list; that one gets its answer when the server ends. */
struct server {
	char dir[64], path[96];
	int fd, stop[2];          /* the socket; a pipe that ends it */
	struct pollfd p[2 + PEERS];
	unsigned int n;           /* entries of p in use */
	int slow;                 /* the connection that waits for its answer; -1: none yet */
	_Atomic bool stalls;      /* there is such a connection */
	pthread_t thread;
};

static int
dial(const struct server *s, int flags)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | flags, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", s->path);
	assert_true(fd >= 0);
	if (connect(fd, (void *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void
reply(int fd, uint16_t kind, int err)
{
	struct urn_sock_answer a = {
		.head = {URN_SOCK_MAGIC, URN_SOCK_VERSION, kind, 0, sizeof(a)},
		.err = err,
	};

	a.hello.abi = URN_ABI_VERSION;
	(void)!send(fd, &a, sizeof(a), MSG_NOSIGNAL);
}

/* Handle one message, or the end of the connection. */
static void
serve(struct server *s, struct pollfd *p)
{
	struct urn_sock_ask q;
	ssize_t n = recv(p->fd, &q, sizeof(q), 0);

	if (n <= 0) {
		close(p->fd);
		p->fd = -1;
	} else if (q.head.kind == URN_SOCK_LIST && s->slow < 0) {
		s->slow = p->fd;
		atomic_store(&s->stalls, true);
	} else {
		reply(p->fd, q.head.kind, q.head.kind == URN_SOCK_LIST ? ENOENT : 0);
	}
}

static void *
server_thread(void *arg)
{
	struct server *s = arg;

	for (;;) {
		if (poll(s->p, s->n, -1) <= 0)
			continue;
		if (s->p[0].revents) {
			reply(s->slow, URN_SOCK_LIST, ENOENT);
			return NULL;
		}
		for (unsigned int i = 2; i < s->n; i++)
			if (s->p[i].revents)
				serve(s, &s->p[i]);
		if (s->p[1].revents && s->n < 2 + PEERS)
			s->p[s->n++] = (struct pollfd){.fd = accept(s->fd, NULL, NULL), .events = POLLIN};
	}
}

static void
listen_at(struct server *s, int backlog)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memset(s, 0, sizeof(*s));
	snprintf(s->dir, sizeof(s->dir), "/tmp/urnic-test.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
	s->slow = -1;
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", s->path);
	assert_int_equal(bind(s->fd, (void *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(s->fd, backlog), 0);
}

static void
remove_it(struct server *s)
{
	unlink(s->path);
	rmdir(s->dir);
}

static void *
look(void *arg)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ibv_free_device_list(list);
	return list != NULL ? arg : NULL;
}

/* A child of fork() looks for devices, as another thread of its parent was doing. */
static void
test_fork(void **state)
{
	struct server s;
	pthread_t t;
	void *done;
	int status;
	pid_t pid;

	(void)state;
	listen_at(&s, 8);
	assert_int_equal(pipe(s.stop), 0);
	s.p[s.n++] = (struct pollfd){.fd = s.stop[0], .events = POLLIN};
	s.p[s.n++] = (struct pollfd){.fd = s.fd, .events = POLLIN};
	assert_int_equal(pthread_create(&s.thread, NULL, server_thread, &s), 0);
	setenv("URNIC_SOCKET", s.path, 1);
	setenv("URNIC_TIMEOUT", "120", 1); /* the search gets its answer in the end */
	assert_int_equal(pthread_create(&t, NULL, look, &s), 0);
	while (!atomic_load(&s.stalls))
		sched_yield();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(30);
		_exit(look(&s) == &s ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(write(s.stop[1], "", 1), 1);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	assert_int_equal(pthread_join(t, &done), 0);
	assert_ptr_equal(done, &s);
	unsetenv("URNIC_SOCKET");
	unsetenv("URNIC_TIMEOUT");
	for (unsigned int i = 0; i < s.n; i++)
		if (s.p[i].fd >= 0)
			close(s.p[i].fd);
	close(s.stop[1]);
	remove_it(&s);
}

/* ---- a signal */

static _Atomic unsigned int signals;
static _Atomic int caller;

static void
on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals, 1);
}

struct caller {
	const struct server *s;
	int err;
	char why[256];
};

static void *
call(void *arg)
{
	struct caller *c = arg;

	atomic_store(&caller, (int)syscall(SYS_gettid));
	errno = 0;
	c->err = urn_attach_connect(c->s->path, NULL) == NULL ? errno : 0;
	snprintf(c->why, sizeof(c->why), "%s", urn_attach_error());
	return NULL;
}

/* True when the thread is asleep. */
static bool
asleep(int tid)
{
	char path[64], line[512] = "";
	const char *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	assert_non_null(f);
	p = fgets(line, sizeof(line), f) != NULL ? strrchr(line, ')') : NULL;
	fclose(f);
	return p != NULL && p[2] == 'S';
}

/* Many clients come at once, and one that waits to be let in gets a signal: it waits on. */
static void
test_signal(void **state)
{
	struct sigaction act = {.sa_handler = on_signal}, before; /* without SA_RESTART */
	struct server s;
	struct caller c = {.s = &s};
	int fd[64], n = 0;
	pthread_t t;

	(void)state;
	listen_at(&s, 0);
	while (n < 64 && (fd[n] = dial(&s, SOCK_NONBLOCK)) >= 0)
		n++;
	assert_int_equal(errno, EAGAIN); /* the backlog is full */
	assert_int_equal(sigaction(SIGUSR1, &act, &before), 0);
	assert_int_equal(pthread_create(&t, NULL, call, &c), 0);
	while (!atomic_load(&caller) || !asleep(atomic_load(&caller)))
		sched_yield();
	assert_int_equal(pthread_kill(t, SIGUSR1), 0);
	while (!atomic_load(&signals))
		sched_yield();
	/* Nobody listens any more: this makes the call fail, and not the signal. */
	close(s.fd);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(c.err, ECONNREFUSED);
	assert_non_null(strstr(c.why, "no dataplane at"));
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	while (n > 0)
		close(fd[--n]);
	remove_it(&s);
}

/* ---- a server that does not answer */

static void
no_answer(const struct server *s, int err)
{
	assert_int_equal(err, ETIMEDOUT);
	if (strstr(urn_attach_error(), s->path) == NULL || strstr(urn_attach_error(), "has not answered for 1 s") == NULL)
		fail_msg("%s", urn_attach_error());
}

/* Signals come often, and do not make the call wait for ever. */
static void
ring(bool on)
{
	const struct itimerval often = {{0, on ? 20000 : 0}, {0, on ? 20000 : 0}};

	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

/*
 * Looking for devices and attaching end by themselves where the server listens and does no more; no
 * descriptor stays open.
 */
static void
given_up(struct server *s)
{
	int n = 77, next = dup(STDIN_FILENO);

	close(next);
	setenv("URNIC_SOCKET", s->path, 1);
	errno = 0;
	assert_null(ibv_get_device_list(&n));
	no_answer(s, errno);
	assert_int_equal(n, 0);
	errno = 0;
	assert_null(urn_attach_connect(s->path, NULL));
	no_answer(s, errno);
	unsetenv("URNIC_SOCKET");
	assert_int_equal(dup(STDIN_FILENO), next);
	close(next);
}

static void
test_no_answer(void **state)
{
	struct sigaction act = {.sa_handler = on_signal}, before;
	int fd[64], n = 0;
	struct server s;

	(void)state;
	setenv("URNIC_TIMEOUT", "1", 1);
	assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
	listen_at(&s, 8);
	given_up(&s); /* clients get in, and hear nothing */
	ring(true);
	given_up(&s);
	ring(false);
	close(s.fd);
	remove_it(&s);
	listen_at(&s, 0);
	while (n < 64 && (fd[n] = dial(&s, SOCK_NONBLOCK)) >= 0)
		n++;
	given_up(&s); /* clients do not even get in */
	ring(true);
	given_up(&s);
	ring(false);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	unsetenv("URNIC_TIMEOUT");
	close(s.fd);
	while (n > 0)
		close(fd[--n]);
	remove_it(&s);
}

/* Answers one program until it asks this question. */
struct until {
	struct server s;
	uint16_t mute;
};

static void
hand_over(int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control = {{0}};
	struct urn_sock_answer a = {
		.head = {URN_SOCK_MAGIC, URN_SOCK_VERSION, URN_SOCK_OPEN, 0, sizeof(a)},
		.open = {.area_size = 4096, .engines = 1},
	};
	struct iovec iov = {&a, sizeof(a)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int two[2] = {memfd_create("area", MFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};

	assert_int_equal(ftruncate(two[0], 4096), 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(two));
	memcpy(CMSG_DATA(c), two, sizeof(two));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), sizeof(a));
	close(two[0]);
	close(two[1]);
}

static void *
answer_until(void *arg)
{
	struct until *u = arg;
	int fd = accept(u->s.fd, NULL, NULL);
	struct urn_sock_ask q;

	while (recv(fd, &q, sizeof(q), 0) > 0) {
		if (q.head.kind >= u->mute)
			continue; /* until the program hangs up */
		if (q.head.kind == URN_SOCK_OPEN)
			hand_over(fd);
		else
			reply(fd, q.head.kind, 0);
	}
	close(fd);
	return NULL;
}

/* Each question of attaching times out, also the control calls at its end. */
static void
test_no_answer_later(void **state)
{
	pthread_t t;

	(void)state;
	setenv("URNIC_TIMEOUT", "1", 1);
	for (unsigned int mute = URN_SOCK_HELLO; mute <= URN_SOCK_CALL; mute++) {
		struct until u = {.mute = (uint16_t)mute};

		listen_at(&u.s, 8);
		assert_int_equal(pthread_create(&t, NULL, answer_until, &u), 0);
		errno = 0;
		assert_null(urn_attach_connect(u.s.path, NULL));
		no_answer(&u.s, errno);
		assert_int_equal(pthread_join(t, NULL), 0);
		close(u.s.fd);
		remove_it(&u.s);
	}
	unsetenv("URNIC_TIMEOUT");
}

/* Devices that other dataplanes offer are there nevertheless. */
static struct urn_abi_channel *
make_fake(void *arg)
{
	return &((struct fake *)arg)->channel;
}

static void
test_others_are_listed(void **state)
{
	struct fake *f = fake_new();
	struct ibv_device **list;
	struct server s;
	int n = 0;

	(void)state;
	setenv("URNIC_TIMEOUT", "1", 1);
	listen_at(&s, 8);
	setenv("URNIC_SOCKET", s.path, 1);
	assert_int_equal(urn_attach_offer(make_fake, f), 0);
	list = ibv_get_device_list(&n);
	no_answer(&s, errno);
	assert_non_null(list);
	assert_int_equal(n, 1);
	ibv_free_device_list(list);
	assert_int_equal(urn_attach_withdraw(make_fake, f), 0);
	unsetenv("URNIC_SOCKET");
	unsetenv("URNIC_TIMEOUT");
	close(s.fd);
	remove_it(&s);
	fake_free(f);
}

static void
test_timeout_that_is_none(void **state)
{
	static const char *const bad[] = {"0", "-1", "1.5", "x", "5s", " 5", "86401", "99999999999999999999999"};
	struct server s;

	(void)state;
	listen_at(&s, 8);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("URNIC_TIMEOUT", bad[i], 1);
		errno = 0;
		assert_null(urn_attach_connect(s.path, NULL));
		assert_int_equal(errno, EINVAL);
		assert_non_null(strstr(urn_attach_error(), "URNIC_TIMEOUT is '"));
	}
	unsetenv("URNIC_TIMEOUT");
	close(s.fd);
	remove_it(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_no_answer_later),
		cmocka_unit_test(test_others_are_listed),
		cmocka_unit_test(test_timeout_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
