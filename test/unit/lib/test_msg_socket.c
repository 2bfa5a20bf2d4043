/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram sockets: the meaning of POSIX's calls (DB-11). */
#include "test.h"

#include "abi/clock.h"
#include "msg_fake.h"
#include "msg/sock.h"

#include <urnic/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 60000 };

struct rig {
	struct msg_fake *f;
	struct urn_msg_dev *dev;
	int a, b;	       /* sockets; b is bound to port 7 of 10.0.0.1 */
	struct sockaddr_in to; /* b's address */
};

static struct sockaddr_in
addr_of(const char *text, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	return in;
}

static int
setup(void **state)
{
	static struct rig r;

	r = (struct rig){.f = msg_fake_new(), .to = addr_of("10.0.0.1", 7)};
	r.dev = urn_msg_dev_open(&r.f->channel);
	assert_int_equal(urn_socket_use(r.dev), 0);
	r.a = urn_socket(AF_INET, SOCK_DGRAM, 0);
	r.b = urn_socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
	assert_true(r.a >= 0 && r.b >= 0);
	assert_int_equal(urn_bind(r.b, (struct sockaddr *)&r.to, sizeof(r.to)), 0);
	*state = &r;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *r = *state;

	(void)urn_close(r->a);
	(void)urn_close(r->b);
	assert_int_equal(msg_fake_open_sets(r->f), 0);
	/* The table of sockets keeps the device. */
	return 0;
}

static ssize_t
send_to_b(struct rig *r, const void *data, size_t len, int flags)
{
	return urn_sendto(r->a, data, len, flags, (struct sockaddr *)&r->to, sizeof(r->to));
}

static void *
later(void *arg)
{
	struct rig *r = arg;

	usleep(100000);
	assert_int_equal(send_to_b(r, "late", 4, 0), 4);
	return NULL;
}

/* A reader that sleeps in recvfrom() before the datagram comes is woken by it (DB-8). */
static void
blocking(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	pthread_t t;
	char buf[16];
	int i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&t, NULL, later, r), 0);
		assert_int_equal(
			urn_recvfrom(r->b, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len), 4);
		assert_memory_equal(buf, "late", 4);
		assert_int_equal(from.sin_addr.s_addr, r->to.sin_addr.s_addr);
		assert_in_range(ntohs(from.sin_port), 32768, 60999);
		pthread_join(t, NULL);
	}
}

static void *
reader(void *arg)
{
	struct rig *r = arg;
	char buf[16];
	int i;

	for (i = 0; i < 500; i++)
		assert_int_equal(urn_recvfrom(r->b, buf, sizeof(buf), 0, NULL, NULL), 1);
	return NULL;
}

/* Several readers of one socket: each datagram wakes one that takes it, none is lost to a sleeper.
 */
static void
readers(void **state)
{
	struct rig *r = *state;
	pthread_t t[3];
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, reader, r), 0);
	for (i = 0; i < 1500; i++) {
		assert_int_equal(send_to_b(r, "x", 1, 0), 1);
		if (i % 100 == 0)
			usleep(2000);
	}
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

static void
names(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in in = addr_of("0.0.0.0", 7), other = addr_of("10.0.0.2", 8);
	socklen_t len = sizeof(in);
	int c;

	assert_int_equal(urn_bind(r->a, (struct sockaddr *)&in, sizeof(in)), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(urn_bind(r->a, (struct sockaddr *)&other, sizeof(other)), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	assert_int_equal(urn_bind(r->b, (struct sockaddr *)&in, sizeof(in)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(urn_getsockname(r->a, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(in.sin_port, 0);
	in = addr_of("0.0.0.0", 0);
	assert_int_equal(urn_bind(r->a, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(urn_getsockname(r->a, (struct sockaddr *)&in, &len), 0);
	assert_in_range(ntohs(in.sin_port), 32768, 60999);
	assert_int_equal(urn_getpeername(r->a, (struct sockaddr *)&in, &len), -1);
	assert_int_equal(errno, ENOTCONN);
	/* The port is free again after a close. */
	assert_int_equal(urn_close(r->b), 0);
	assert_int_equal(urn_close(r->b), -1);
	assert_int_equal(errno, EBADF);
	c = urn_socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(urn_bind(c, (struct sockaddr *)&r->to, sizeof(r->to)), 0);
	r->b = c;
	assert_int_equal(urn_socket(AF_INET, SOCK_STREAM, 0), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	assert_int_equal(urn_socket(AF_UNIX, SOCK_DGRAM, 0), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	assert_int_equal(urn_bind(0, (struct sockaddr *)&in, sizeof(in)), -1);
	assert_int_equal(errno, ENOTSOCK);
}

static void
sizes(void **state)
{
	struct rig *r = *state;
	static char big[URN_DATAGRAM_MAX + 1], in[URN_DATAGRAM_MAX];
	struct iovec iov[2] = {{.iov_base = in, .iov_len = 2},
			       {.iov_base = in + 100, .iov_len = 2}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	memset(big, 'q', sizeof(big));
	assert_int_equal(send_to_b(r, big, sizeof(big), 0), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_int_equal(send_to_b(r, big, URN_DATAGRAM_MAX, 0), URN_DATAGRAM_MAX);
	assert_int_equal(urn_recvfrom(r->b, in, sizeof(in), 0, NULL, NULL), URN_DATAGRAM_MAX);
	assert_memory_equal(big, in, URN_DATAGRAM_MAX);
	assert_int_equal(send_to_b(r, big, 0, 0), 0);
	assert_int_equal(urn_recvfrom(r->b, in, sizeof(in), 0, NULL, NULL), 0);
	/* A short buffer cuts the datagram, and the rest is lost (DB-11). */
	assert_int_equal(send_to_b(r, "abcdef", 6, 0), 6);
	assert_int_equal(urn_recvmsg(r->b, &msg, MSG_PEEK), 4);
	assert_int_equal(msg.msg_flags, MSG_TRUNC);
	assert_int_equal(urn_recvmsg(r->b, &msg, MSG_PEEK | MSG_TRUNC), 6);
	assert_int_equal(urn_recvmsg(r->b, &msg, 0), 4);
	assert_memory_equal(in, "ab", 2);
	assert_memory_equal(in + 100, "cd", 2);
	assert_int_equal(urn_recvmsg(r->b, &msg, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void
errors(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in to = addr_of("10.0.0.1", 99);
	int i;

	assert_int_equal(urn_sendto(r->a, "x", 1, 0, NULL, 0), -1);
	assert_int_equal(errno, EDESTADDRREQ);
	assert_int_equal(urn_sendto(r->a, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	to = addr_of("10.0.0.77", 99);
	assert_int_equal(urn_sendto(r->a, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(errno, EHOSTUNREACH);
	to = addr_of("10.0.0.9", 99);
	assert_int_equal(urn_sendto(r->a, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), -1);
	assert_int_equal(errno, EHOSTUNREACH);
	r->f->force = URN_MSG_NOT_PERMITTED;
	assert_int_equal(send_to_b(r, "x", 1, 0), -1);
	assert_int_equal(errno, EACCES);
	r->f->force = 0;
	assert_int_equal(urn_setsockopt(r->a, SOL_SOCKET, SO_SNDTIMEO,
					&(struct timeval){.tv_usec = 20000},
					sizeof(struct timeval)),
			 0);
	for (i = 0; i < URN_SOCK_ENTRIES; i++)
		assert_int_equal(send_to_b(r, "x", 1, 0), 1);
	assert_int_equal(send_to_b(r, "x", 1, 0), -1);
	assert_int_equal(errno, ENOBUFS);
}

/* SO_SNDTIMEO is the time of all tries, also when it is longer than 65,534 tries of the usual pace take (DB-11). */
static void
send_timeout(void **state)
{
	static const uint64_t us[] = {20000, 6000000, 60000000, 3600000000, 18ull * 3600 * 1000000};
	struct rig *r = *state;
	char buf[4];

	for (unsigned int i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
		struct timeval tv = {.tv_sec = (time_t)(us[i] / 1000000),
				     .tv_usec = (suseconds_t)(us[i] % 1000000)};

		assert_int_equal(urn_setsockopt(r->a, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), 0);
		assert_int_equal(send_to_b(r, "x", 1, 0), 1);
		assert_in_range(atomic_load(&r->f->try_us), us[i] - us[i] / 50, us[i]);
		assert_int_equal(urn_recvfrom(r->b, buf, sizeof(buf), 0, NULL, NULL), 1);
	}
}

/* A sender that does not wait has several datagrams under way; the next call reports an error
 * (DB-11). */
static void
dont_wait(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in to = addr_of("10.0.0.1", 99), from;
	struct pollfd p = {.fd = r->a, .events = POLLOUT};
	socklen_t len = sizeof(from);
	char buf[4];
	int i, e, n = 0;

	atomic_store(&r->f->hold, true);
	while (n < 100 && send_to_b(r, "x", 1, MSG_DONTWAIT) == 1)
		n++;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(n, URN_PORT_OUTLETS);
	assert_int_equal(urn_poll(&p, 1, 0), 0);
	atomic_store(&r->f->hold, false);
	assert_int_equal(urn_poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(p.revents, POLLOUT);
	for (i = 0; i < n; i++) {
		/* All come from one port, whatever register set sent them. */
		assert_int_equal(urn_recvfrom(r->b, buf, 4, 0, (struct sockaddr *)&from, &len), 1);
		assert_in_range(ntohs(from.sin_port), 32768, 60999);
	}
	assert_int_equal(urn_connect(r->a, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(urn_sendto(r->a, "x", 1, MSG_DONTWAIT, NULL, 0), 1);
	p.events = POLLIN; /* the answer is there */
	assert_int_equal(urn_poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLERR);
	len = sizeof(e);
	assert_int_equal(urn_getsockopt(r->a, SOL_SOCKET, SO_ERROR, &e, &len), 0);
	assert_int_equal(e, ECONNREFUSED);
}

/* A close waits for datagrams that are under way. */
static void
close_flushes(void **state)
{
	struct rig *r = *state;
	char buf[4];
	int i;

	for (i = 0; i < 20; i++) {
		int c = urn_socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

		assert_int_equal(urn_sendto(c, "x", 1, 0, (struct sockaddr *)&r->to, sizeof(r->to)),
				 1);
		assert_int_equal(urn_close(c), 0);
		assert_int_equal(urn_recvfrom(r->b, buf, 4, MSG_DONTWAIT, NULL, NULL), 1);
	}
}

/* A connected socket takes datagrams of its peer only. */
static void
connected(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in me, peer;
	socklen_t len = sizeof(me);
	int c = urn_socket(AF_INET, SOCK_DGRAM, 0);
	char buf[8];

	assert_int_equal(urn_connect(r->a, (struct sockaddr *)&r->to, sizeof(r->to)), 0);
	assert_int_equal(urn_getsockname(r->a, (struct sockaddr *)&me, &len), 0);
	assert_int_equal(me.sin_addr.s_addr, r->to.sin_addr.s_addr);
	assert_int_equal(urn_getpeername(r->a, (struct sockaddr *)&peer, &len), 0);
	assert_memory_equal(&peer, &r->to, sizeof(peer));
	assert_int_equal(urn_sendto(c, "no", 2, 0, (struct sockaddr *)&me, sizeof(me)), 2);
	assert_int_equal(urn_sendto(r->b, "yes", 3, 0, (struct sockaddr *)&me, sizeof(me)), 3);
	assert_int_equal(urn_recvfrom(r->a, buf, sizeof(buf), 0, NULL, NULL), 3);
	assert_int_equal(urn_sendto(r->a, "hi", 2, 0, NULL, 0), 2);
	assert_int_equal(urn_recvfrom(r->b, buf, sizeof(buf), 0, NULL, NULL), 2);
	assert_int_equal(urn_connect(r->a, &(struct sockaddr){.sa_family = AF_UNSPEC},
				     sizeof(struct sockaddr)),
			 0);
	assert_int_equal(urn_sendto(c, "now", 3, 0, (struct sockaddr *)&me, sizeof(me)), 3);
	assert_int_equal(urn_recvfrom(r->a, buf, sizeof(buf), 0, NULL, NULL), 3);
	urn_close(c);
}

static void
on_signal(int sig)
{
	(void)sig;
}

/* Bounds of waits, and signals. */
static void
waits(void **state)
{
	struct rig *r = *state;
	struct timeval tv = {.tv_usec = 30000};
	struct sigaction sa = {.sa_handler = on_signal};
	uint64_t start = urn_clock_ms();
	socklen_t len = sizeof(tv);
	char buf[4];

	assert_int_equal(urn_setsockopt(r->b, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(urn_getsockopt(r->b, SOL_SOCKET, SO_RCVTIMEO, &tv, &len), 0);
	assert_int_equal(tv.tv_usec, 30000);
	assert_int_equal(urn_recvfrom(r->b, buf, 4, 0, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	assert_in_range(urn_clock_ms() - start, 29, 5000);
	sigaction(SIGALRM, &sa, NULL);
	tv = (struct timeval){0};
	assert_int_equal(urn_setsockopt(r->b, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	ualarm(50000, 0);
	assert_int_equal(urn_recvfrom(r->b, buf, 4, 0, NULL, NULL), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(urn_set_nonblock(r->b, 1), 0);
	assert_int_equal(urn_recvfrom(r->b, buf, 4, 0, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
}

/* A wait goes on after a signal whose handler says SA_RESTART, unless it has a timeout; so does the
 * kernel's. */
static void
restarts(void **state)
{
	struct rig *r = *state;
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t t;
	sigset_t alarms;
	char buf[8];

	assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
	assert_true(urn_sock_restarts());
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	assert_int_equal(pthread_create(&t, NULL, later, r), 0);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	ualarm(10000, 10000);
	assert_int_equal(urn_recvfrom(r->b, buf, sizeof(buf), 0, NULL, NULL), 4);
	ualarm(0, 0);
	pthread_join(t, NULL);
	sa.sa_flags = 0;
	assert_int_equal(sigaction(SIGUSR2, &sa, NULL), 0);
	assert_false(urn_sock_restarts()); /* nothing tells which signal it was */
	signal(SIGUSR2, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
}

/* An error of a datagram that was sent without a wait ends the wait of a connected socket, and of
 * no other. */
static void
late_error(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in nobody = addr_of("10.0.0.1", 99);
	struct pollfd p = {.fd = r->a, .events = POLLIN};
	char buf[8];

	assert_int_equal(
		urn_sendto(r->a, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&nobody, sizeof(nobody)),
		1);
	assert_int_equal(urn_poll(&p, 1, 30), 0);
	assert_int_equal(urn_connect(r->a, (struct sockaddr *)&nobody, sizeof(nobody)), 0);
	assert_int_equal(urn_sendto(r->a, "x", 1, MSG_DONTWAIT, NULL, 0), 1);
	assert_int_equal(urn_recvfrom(r->a, buf, sizeof(buf), 0, NULL, NULL), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(urn_sendto(r->a, "x", 1, MSG_DONTWAIT, NULL, 0), 1);
	assert_int_equal(urn_poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(p.revents, POLLERR);
}

/* A socket that gives its port up can have another one, and the port is free. */
static void
unbinds(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in in = addr_of("10.0.0.1", 9);
	struct urn_addr a = {.gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}, .port = 9},
			name;
	struct urn_sock *s;
	unsigned int sets;

	assert_int_equal(urn_sock_make(&s, AF_INET), 0);
	assert_int_equal(urn_sock_bind(s, &a), 0);
	sets = msg_fake_open_sets(r->f);
	assert_int_equal(urn_sock_connect(s, &a), 0);
	atomic_store(&r->f->hold, true);
	assert_int_equal(urn_sock_send(s, NULL, 0, NULL, false), 0);
	assert_int_equal(urn_sock_send(s, NULL, 0, NULL, false), 0);
	assert_int_equal(msg_fake_open_sets(r->f), sets + 1);
	atomic_store(&r->f->hold, false);
	urn_sock_unbind(s);
	assert_int_equal(msg_fake_open_sets(r->f), sets);
	assert_int_equal(urn_bind(r->a, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(urn_sock_bind(s, &a), EADDRINUSE);
	assert_int_equal(urn_sock_bind(s, NULL), 0);
	urn_sock_name(s, &name);
	assert_in_range(name.port, URN_PORT_FIRST, URN_PORT_END - 1);
	urn_sock_drop(s);
}

/* urn_poll() takes sockets and other descriptors; poll() of the system works after EAGAIN. */
static void
polls(void **state)
{
	struct rig *r = *state;
	struct pollfd p[2] = {{.fd = r->b, .events = POLLIN}, {.events = POLLIN}};
	struct pollfd k = {.fd = r->b, .events = POLLIN};
	int way[2], i;
	char buf[4];

	assert_int_equal(pipe(way), 0);
	p[1].fd = way[0];
	assert_int_equal(urn_poll(p, 2, 20), 0);
	assert_int_equal(write(way[1], "x", 1), 1);
	assert_int_equal(urn_poll(p, 2, WAIT_MS), 1);
	assert_int_equal(p[1].revents, POLLIN);
	assert_int_equal(send_to_b(r, "x", 1, 0), 1);
	assert_int_equal(urn_poll(p, 2, WAIT_MS), 2);
	assert_int_equal(p[0].revents, POLLIN);
	assert_int_equal(read(way[0], buf, 1), 1);
	assert_int_equal(urn_recvfrom(r->b, buf, 4, MSG_DONTWAIT, NULL, NULL), 1);
	for (i = 0; i < 5; i++) {
		assert_int_equal(urn_recvfrom(r->b, buf, 4, MSG_DONTWAIT, NULL, NULL), -1);
		assert_int_equal(poll(&k, 1, 0), 0);
		assert_int_equal(send_to_b(r, "x", 1, 0), 1);
		assert_int_equal(send_to_b(r, "y", 1, 0), 1);
		assert_int_equal(poll(&k, 1, WAIT_MS), 1);
		assert_int_equal(urn_recvfrom(r->b, buf, 4, MSG_DONTWAIT, NULL, NULL), 1);
		assert_int_equal(poll(&k, 1, WAIT_MS), 1); /* one is left */
		assert_int_equal(urn_recvfrom(r->b, buf, 4, MSG_DONTWAIT, NULL, NULL), 1);
		assert_int_equal(poll(&k, 1, 0), 0);
	}
	close(way[0]);
	close(way[1]);
}

/* Parent and child share a socket as they share an open file; the process that closes last ends it
 * (DB-1). */
static void
forks(void **state)
{
	struct rig *r = *state;
	char buf[8];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		bool ok = urn_recvfrom(r->b, buf, sizeof(buf), 0, NULL, NULL) == 2 &&
			  urn_sendto(r->a, "back", 4, 0, (struct sockaddr *)&r->to,
				     sizeof(r->to)) == 4 &&
			  urn_close(r->b) == 0;

		_exit(ok ? 0 : 1);
	}
	usleep(50000);
	assert_int_equal(send_to_b(r, "go", 2, 0), 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(urn_recvfrom(r->b, buf, sizeof(buf), 0, NULL, NULL), 4);
	pid = fork();
	if (pid == 0) {
		usleep(100000);
		_exit(0); /* without a close */
	}
	assert_int_equal(urn_close(r->b), 0);
	assert_int_equal(msg_fake_open_sets(r->f), 2); /* the child has it */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	r->b = urn_socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(urn_bind(r->b, (struct sockaddr *)&r->to, sizeof(r->to)),
			 0); /* the orphan has ended */
}

/* An IPv6 socket has IPv4 peers, too, as mapped addresses; an IPv4 socket sees no IPv6 datagrams.
 */
static void
v6(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(7)}, from;
	socklen_t len = sizeof(from);
	int c = urn_socket(AF_INET6, SOCK_DGRAM, 0);
	struct pollfd p = {.events = POLLIN};
	char buf[8];

	memcpy(&in6.sin6_addr, r->f->gid[0], 16);
	assert_int_equal(urn_sendto(c, "four", 4, 0, (struct sockaddr *)&in6, sizeof(in6)), 4);
	assert_int_equal(urn_recvfrom(r->b, buf, 8, 0, (struct sockaddr *)&from, &len), 4);
	memcpy(&in6.sin6_addr, r->f->gid[1], 16);
	assert_int_equal(urn_sendto(c, "six", 3, 0, (struct sockaddr *)&in6, sizeof(in6)), 3);
	assert_int_equal(urn_recvfrom(r->b, buf, 8, MSG_DONTWAIT, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(urn_sendto(c, "x", 1, 0, (struct sockaddr *)&r->to, sizeof(r->to)), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	in6.sin6_port = htons(8);
	assert_int_equal(urn_bind(r->a, (struct sockaddr *)&in6, sizeof(in6)), -1);
	assert_int_equal(urn_close(c), 0);
	c = urn_socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(urn_bind(c, (struct sockaddr *)&in6, sizeof(in6)), 0);
	p.fd = c;
	assert_int_equal(urn_sendto(c, "self", 4, 0, (struct sockaddr *)&in6, sizeof(in6)), 4);
	assert_int_equal(urn_poll(&p, 1, WAIT_MS), 1);
	len = sizeof(from);
	assert_int_equal(urn_recvfrom(c, buf, 8, 0, (struct sockaddr *)&from, &len), 4);
	assert_memory_equal(&from.sin6_addr, &in6.sin6_addr, 16);
	assert_int_equal(urn_close(c), 0);
}

/* A dataplane that is gone ends every wait. */
static void
gone(void **state)
{
	struct rig *r = *state;
	char buf[4];

	urn_msg_dev_gone(r->dev);
	assert_int_equal(urn_recvfrom(r->b, buf, 4, 0, NULL, NULL), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(send_to_b(r, "x", 1, 0), -1);
	assert_int_equal(errno, EIO);
	atomic_store(&r->dev->dev.gone, URN_DEV_THERE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(blocking, setup, teardown),
		cmocka_unit_test_setup_teardown(readers, setup, teardown),
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(errors, setup, teardown),
		cmocka_unit_test_setup_teardown(send_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(dont_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(close_flushes, setup, teardown),
		cmocka_unit_test_setup_teardown(connected, setup, teardown),
		cmocka_unit_test_setup_teardown(waits, setup, teardown),
		cmocka_unit_test_setup_teardown(restarts, setup, teardown),
		cmocka_unit_test_setup_teardown(late_error, setup, teardown),
		cmocka_unit_test_setup_teardown(unbinds, setup, teardown),
		cmocka_unit_test_setup_teardown(polls, setup, teardown),
		cmocka_unit_test_setup_teardown(forks, setup, teardown),
		cmocka_unit_test_setup_teardown(v6, setup, teardown),
		cmocka_unit_test_setup_teardown(gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
