/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of waits: time-outs, signals, poll(), select(), epoll, connections on their way. */
#include "tcp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { EARLY = 90 }; /* signals */

/* ---- calls that do not wait, or not for long */

static void
client_idle(int fd)
{
	const struct timeval tv = {.tv_usec = 30000};
	char buf[4];

	(void)tcp_say("MSG_DONTWAIT", recv(fd, buf, 1, MSG_DONTWAIT));
	tcp_block(fd, false);
	(void)tcp_say("O_NONBLOCK", recv(fd, buf, 1, 0));
	tcp_block(fd, true);
	(void)tcp_say("SO_RCVTIMEO", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	(void)tcp_say("time-out", recv(fd, buf, 1, 0));
	(void)tcp_say("poll", tcp_ready(fd, POLLIN, 20));
	(void)tcp_say("poll for both", tcp_ready(fd, POLLIN | POLLOUT, 20));
	send(fd, "!", 1, 0);
}

static void
server_idle(int fd)
{
	char c;

	(void)tcp_say("wait", recv(fd, &c, 1, 0));
}

/* ---- a full connection */

static void
client_full(int fd)
{
	static char buf[100000];
	struct timeval tv = {.tv_usec = 30000};
	bool pending;
	ssize_t n;
	int begin;

	tcp_block(fd, false);
	do
		n = send(fd, buf, sizeof(buf), 0);
	while (n > 0 || tcp_ready(fd, POLLOUT, 100) > 0);
	(void)tcp_say("full", n);
	(void)tcp_say("poll", tcp_ready(fd, POLLOUT, 20));
	tcp_block(fd, true);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	do
		n = send(fd, buf, sizeof(buf), 0);
	while (n == (ssize_t)sizeof(buf));
	(void)tcp_say("time-out", n >= 0 || errno == EAGAIN);
	tv = (struct timeval){0};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	begin = tcp_open(0, &pending); /* tells the reader to begin */
	while (recv(fd, buf, 1, MSG_DONTWAIT) != 1)
		(void)!send(fd, buf, 1, MSG_DONTWAIT);
	shutdown(fd, SHUT_WR);
	(void)tcp_say("the end", recv(fd, buf, 1, 0));
	close(begin);
}

static void
server_full(int fd)
{
	static char buf[100000];
	ssize_t n;
	int begin;

	(void)tcp_say("full", tcp_ready(tcp_listener, POLLIN, TCP_SECONDS * 1000));
	begin = accept(tcp_listener, NULL, NULL);
	(void)tcp_say("begin", send(fd, "!", 1, 0));
	do
		n = recv(fd, buf, sizeof(buf), 0);
	while (n > 0);
	(void)tcp_say("the end", n);
	close(begin);
}

/* ---- signals */

static volatile sig_atomic_t alarms;

static void
on_alarm(int sig)
{
	(void)sig;
	alarms = alarms + 1;
}

static void
client_signal(int fd)
{
	struct sigaction act = {.sa_handler = on_alarm}, old;
	/* The first one may come before the call begins. */
	const struct itimerval soon = {{.tv_usec = 30000}, {.tv_usec = 30000}}, never = {{0}};
	char c;

	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &soon, NULL);
	(void)tcp_say("interrupted", recv(fd, &c, 1, 0));
	setitimer(ITIMER_REAL, &never, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	(void)tcp_say("poll", tcp_ready(fd, POLLIN, 2000));
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	alarm(TCP_SECONDS);
	(void)tcp_say("write", write(fd, "!", 1));
	(void)tcp_say("the end", recv(fd, &c, 1, 0));
}

static void
server_signal(int fd)
{
	char c;

	(void)tcp_say("read", recv(fd, &c, 1, 0));
}

/*
 * Signals shortly behind the begin of a call end it. One that a busy machine lets come before the
 * call does not, so most are enough; the next one of the timer ends such a call.
 */
static void
client_early(int fd)
{
	const struct sigaction act = {.sa_handler = on_alarm};
	const struct itimerval never = {{0}};
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = epoll_create1(0), noted = 0;
	struct sigaction old;
	char c;

	(void)tcp_say("add", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	sigaction(SIGALRM, &act, &old);
	for (int i = 0; i < EARLY; i++) {
		const struct itimerval soon = {{.tv_usec = 20000}, {.tv_usec = 60 + i % 30}};
		long n;

		alarms = 0;
		setitimer(ITIMER_REAL, &soon, NULL);
		if (i % 3 == 0)
			n = recv(fd, &c, 1, 0);
		else
			n = i % 3 == 1 ? tcp_ready(fd, POLLIN, -1) : epoll_wait(ep, &ev, 1, -1);
		setitimer(ITIMER_REAL, &never, NULL);
		noted += n == -1 && errno == EINTR && alarms == 1;
	}
	sigaction(SIGALRM, &old, NULL);
	alarm(TCP_SECONDS);
	close(ep);
	(void)tcp_say("most are noted", noted > EARLY / 2);
}

static void
server_early(int fd)
{
	char c;

	(void)tcp_say("read", recv(fd, &c, 1, 0));
}

/* ---- select() */

static void
client_select(int fd)
{
	struct timeval tv = {.tv_usec = 10000};
	fd_set in, out;
	char c;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	(void)tcp_say("select", select(fd + 1, &in, &out, NULL, &tv));
	(void)tcp_say("in", FD_ISSET(fd, &in));
	(void)tcp_say("out", FD_ISSET(fd, &out));
	send(fd, "?", 1, 0);
	FD_SET(fd, &in);
	tv.tv_sec = 5;
	(void)tcp_say("select for input", select(fd + 1, &in, NULL, NULL, &tv));
	(void)tcp_say("read", read(fd, &c, 1));
}

static void
server_select(int fd)
{
	char c;

	(void)tcp_say("read", read(fd, &c, 1));
	(void)tcp_say("write", write(fd, &c, 1));
}

/* ---- epoll */

/* One look at an epoll. returns: events; 0: none */
static long
look(int ep, int ms)
{
	struct epoll_event ev[4];
	int n = epoll_wait(ep, ev, 4, ms);

	return n <= 0 ? n : n > 1 ? -n : (long)ev[0].events | (long)ev[0].data.u32 << 16;
}

static void
client_epoll(int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 7};
	int ep = epoll_create1(0);
	char buf[8];

	(void)tcp_say("mod, none there", epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev));
	(void)tcp_say("add", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	(void)tcp_say("add again", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	(void)tcp_say("nothing", look(ep, 10));
	send(fd, "1", 1, 0);
	(void)tcp_say("input", look(ep, 5000));
	(void)tcp_say("input still", look(ep, 0));
	tcp_say_bytes("read", buf, read(fd, buf, 2));
	(void)tcp_say("no input", look(ep, 0));
	ev.events = EPOLLIN | EPOLLOUT;
	(void)tcp_say("mod", epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev));
	(void)tcp_say("output", look(ep, 0));
	ev.events = EPOLLIN | EPOLLOUT | EPOLLONESHOT;
	(void)tcp_say("once", epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev));
	(void)tcp_say("output", look(ep, 0));
	(void)tcp_say("rests", look(ep, 0));
	ev.events = EPOLLIN | EPOLLOUT | EPOLLET;
	(void)tcp_say("edge", epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev));
	(void)tcp_say("output", look(ep, 0) & (EPOLLIN | EPOLLOUT));
	(void)tcp_say("told", look(ep, 0));
	send(fd, "2", 1, 0);
	(void)tcp_say("input", look(ep, 5000) & EPOLLIN);
	(void)tcp_say("told", look(ep, 0) & EPOLLIN);
	tcp_say_bytes("read", buf, recv(fd, buf, 2, MSG_WAITALL));
	(void)tcp_say("del", epoll_ctl(ep, EPOLL_CTL_DEL, fd, &ev));
	(void)tcp_say("del again", epoll_ctl(ep, EPOLL_CTL_DEL, fd, &ev));
	close(ep);
}

static void
server_epoll(int fd)
{
	char buf[2];

	for (int i = 0; i < 2; i++) {
		(void)tcp_say("read", recv(fd, buf, 1, 0));
		buf[1] = '+';
		(void)tcp_say("write", write(fd, buf, 2));
	}
	(void)tcp_say("the end", recv(fd, buf, 1, 0));
}

/* ---- a connection on its way; the case's own is of no use here */

static void
client_connect(int fd)
{
	bool pending;
	int other = tcp_open(SOCK_NONBLOCK, &pending), err = -1;
	socklen_t len = sizeof(err);
	char c = 0;

	(void)tcp_say("pending", pending);
	tcp_meet(fd); /* the server takes it */
	(void)tcp_say("poll", tcp_ready(other, POLLOUT, 5000));
	(void)tcp_say("SO_ERROR", getsockopt(other, SOL_SOCKET, SO_ERROR, &err, &len));
	(void)tcp_say("value", err);
	(void)tcp_say("no bytes", recv(other, &c, 1, 0));
	(void)tcp_say("write", write(other, "c", 1));
	(void)tcp_say("poll for input", tcp_ready(other, POLLIN, 5000));
	(void)tcp_say("read", read(other, &c, 1));
	(void)tcp_say("byte", c);
	close(other);
	tcp_meet(fd);
}

static void
server_connect(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int l = tcp_listener, other = -1;
	char c = 0;

	tcp_meet(fd);
	if (getsockname(l, (struct sockaddr *)&ss, &len) == 0) {
		tcp_ready(l, POLLIN, 5000);
		other = accept(l, NULL, NULL);
	}
	(void)tcp_say("accept", other < 0 ? -1 : 0);
	(void)tcp_say("read", read(other, &c, 1));
	(void)tcp_say("write", write(other, &c, 1));
	close(other);
	tcp_meet(fd);
}

const struct tcp_case tcp_wait_cases[] = {
	{"idle", server_idle, client_idle},	     {"full", server_full, client_full},
	{"signal", server_signal, client_signal},    {"early", server_early, client_early},
	{"select", server_select, client_select},    {"epoll", server_epoll, client_epoll},
	{"connect", server_connect, client_connect}, {NULL, NULL, NULL}};
