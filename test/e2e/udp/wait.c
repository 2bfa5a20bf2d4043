/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: timeouts, signals, poll, select, epoll. */
#include "udp.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

#define SA(x) ((struct sockaddr *)&(x))

static void
timeouts(void)
{
	struct timeval tv = {.tv_usec = 50000};
	struct sockaddr_in a;
	int s = udp_bound(&a), u = udp_new(0);
	uint64_t start = udp_ms();

	udp_timeout(s, 100);
	udp_got("SO_RCVTIMEO", s, 10, 0);
	SAY("took its time", udp_ms() - start >= 90 && udp_ms() - start < 1500);
	SAY("SO_SNDTIMEO before", setsockopt(u, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	SAY("send", udp_to(u, "x", &a));
	udp_got("comes", s, 10, 0);
}

/* ---- signals */

static volatile sig_atomic_t hits;

static void
on_signal(int sig)
{
	(void)sig;
	hits++;
}

/* Handle SIGALRM-like signals of a timer. flags: SA_RESTART or 0 */
static void
handle(int sig, int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(sig, &sa, NULL);
	hits = 0;
}

/* A datagram to itself, later. */
struct udp_later {
	pthread_t thread;
	struct sockaddr_in to;
	unsigned int ms;
	const char *text;
};

static void *
send_later(void *arg)
{
	struct udp_later *l = arg;
	sigset_t all;
	int t = udp_new(0);

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	udp_sleep_ms(l->ms);
	(void)udp_to(t, l->text, &l->to);
	return NULL;
}

static void
later(struct udp_later *l, const struct sockaddr_in *to, unsigned int ms, const char *text)
{
	*l = (struct udp_later){.to = *to, .ms = ms, .text = text};
	if (pthread_create(&l->thread, NULL, send_later, l) != 0)
		udp_die("thread");
}

/* Send SIGUSR1 to this process's first thread in ms. */
static void
poke(unsigned int ms)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec when = {.it_value.tv_nsec = (long)ms * 1000000};
	timer_t id;

	if (timer_create(CLOCK_MONOTONIC, &ev, &id) != 0 || timer_settime(id, 0, &when, NULL) != 0)
		udp_die("timer");
}

static void
signals(void)
{
	struct sockaddr_in a;
	struct udp_later l;
	int s = udp_bound(&a);

	handle(SIGUSR1, 0);
	poke(50);
	udp_got("without SA_RESTART", s, 10, 0);
	SAY("handled", hits);
	handle(SIGUSR1, SA_RESTART);
	later(&l, &a, 200, "late");
	poke(50);
	udp_got("with SA_RESTART", s, 10, 0);
	SAY("handled, too", hits);
	pthread_join(l.thread, NULL);
	handle(SIGUSR1, SA_RESTART);
	udp_timeout(s, 400);
	poke(50);
	udp_got("SA_RESTART, SO_RCVTIMEO", s, 10, 0);
	SAY("handled with a timeout", hits);
	udp_timeout(s, 0);
	signal(SIGUSR1, SIG_IGN);
	later(&l, &a, 150, "late");
	poke(50);
	udp_got("ignored", s, 10, 0);
	pthread_join(l.thread, NULL);
}

/* The same on a socket that the kernel shares. */
static void
signals_any(void)
{
	struct sockaddr_in a = udp_in("0.0.0.0", 0);
	socklen_t len = sizeof(a);
	struct udp_later l;
	int s = udp_new(0);

	SAY("bind", bind(s, SA(a), sizeof(a)));
	(void)getsockname(s, SA(a), &len);
	a.sin_addr = udp_in(udp_where.own, 0).sin_addr;
	handle(SIGUSR1, SA_RESTART);
	later(&l, &a, 200, "late");
	poke(50);
	udp_got("SA_RESTART", s, 10, 0);
	SAY("handled", hits);
	pthread_join(l.thread, NULL);
}

/* ---- poll, select */

static void
polls(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0);
	struct pollfd p[4] = {{.fd = s, .events = POLLIN},
			      {.fd = -1, .events = POLLIN},
			      {.fd = 900, .events = POLLIN},
			      {.fd = s, .events = POLLOUT}};
	struct timespec ts = {.tv_nsec = 20000000}, bad = {.tv_nsec = -1};
	sigset_t none, usr1;

	SAY("timeout", poll(p, 1, 20));
	SAY("at once", poll(p, 2, 0));
	SAY("output", poll(p, 4, 1000));
	SAY("closed", p[2].revents);
	SAY("POLLOUT", p[3].revents);
	SAY("send", udp_to(t, "x", &a));
	SAY("input", poll(p, 2, 1000));
	SAY("POLLIN", p[0].revents);
	p[0].events = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | POLLPRI;
	SAY("everything", poll(p, 1, 1000));
	SAY("events", p[0].revents);
	udp_got("comes", s, 10, 0);
	p[0].events = POLLIN;
	SAY("ppoll", ppoll(p, 1, &ts, NULL));
	SAY("bad time", ppoll(p, 1, &bad, NULL));
	handle(SIGUSR1, SA_RESTART);
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	raise(SIGUSR1);
	SAY("mask", ppoll(p, 1, NULL, &none));
	SAY("handled", hits);
	sigprocmask(SIG_SETMASK, &none, NULL);
	poke(50);
	SAY("interrupted", poll(p, 1, 1000));
}

static void
selects(void)
{
	struct timeval tv = {.tv_usec = 20000};
	struct timespec ts = {.tv_nsec = 20000000};
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0);
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(s, &in);
	SAY("timeout", select(s + 1, &in, NULL, NULL, &tv));
	SAY("none", FD_ISSET(s, &in));
	SAY("time left", tv.tv_sec + tv.tv_usec);
	FD_SET(s, &in);
	FD_SET(s, &out);
	SAY("both", select(s + 1, &in, &out, NULL, NULL));
	SAY("input", FD_ISSET(s, &in));
	SAY("output", FD_ISSET(s, &out));
	SAY("send", udp_to(t, "x", &a));
	FD_SET(s, &in);
	SAY("some", select(s + 1, &in, &out, NULL, NULL));
	udp_got("comes", s, 10, 0);
	FD_SET(s, &in);
	SAY("pselect", pselect(s + 1, &in, NULL, NULL, &ts, NULL));
	close(t);
	FD_SET(t, &in);
	FD_SET(s, &in);
	SAY("closed", select(t + 1, &in, NULL, NULL, NULL));
	SAY("negative", select(-1, &in, NULL, NULL, NULL));
}

/* ---- epoll */

static long
ctl(int ep, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	return epoll_ctl(ep, op, fd, &ev);
}

/* Wait, and write which data has which events. */
static void
told(const char *step, int ep, int ms)
{
	struct epoll_event ev[8];
	char text[128];
	uint32_t events = 0;
	uint64_t data = 0;
	long n;
	int i;

	errno = 0;
	n = epoll_wait(ep, ev, 8, ms);
	for (i = 0; i < n; i++) {
		events |= ev[i].events;
		data = ev[i].data.u64;
	}
	snprintf(text, sizeof(text), "%s data %d events %#x", step, (int)data, events);
	udp_say(text, n);
}

static void
epolls(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0), ep = epoll_create1(0), outer = epoll_create1(0);

	SAY("add", ctl(ep, EPOLL_CTL_ADD, s, EPOLLIN, 7));
	SAY("add again", ctl(ep, EPOLL_CTL_ADD, s, EPOLLIN, 7));
	told("none", ep, 20);
	(void)udp_to(t, "1", &a);
	(void)udp_to(t, "2", &a);
	told("level", ep, 1000);
	told("level again", ep, 1000);
	udp_got("first", s, 10, 0);
	told("one is left", ep, 1000);
	udp_got("second", s, 10, 0);
	told("none is left", ep, 20);
	SAY("nested", ctl(outer, EPOLL_CTL_ADD, ep, EPOLLIN, 9));
	told("nested none", outer, 20);
	(void)udp_to(t, "3", &a);
	told("nested", outer, 1000);
	udp_got("third", s, 10, MSG_DONTWAIT);
	told("nested none left", outer, 20);
	SAY("edge", ctl(ep, EPOLL_CTL_MOD, s, EPOLLIN | EPOLLET, 8));
	told("edge none", ep, 20);
	(void)udp_to(t, "4", &a);
	told("edge", ep, 1000);
	told("edge once", ep, 20);
	udp_got("fourth", s, 10, MSG_DONTWAIT);
	udp_got("all", s, 10, MSG_DONTWAIT);
	(void)udp_to(t, "5", &a);
	told("edge again", ep, 1000);
	udp_got("fifth", s, 10, MSG_DONTWAIT);
	SAY("delete", ctl(ep, EPOLL_CTL_DEL, s, 0, 0));
	SAY("delete again", ctl(ep, EPOLL_CTL_DEL, s, 0, 0));
	SAY("modify what is not there", ctl(ep, EPOLL_CTL_MOD, s, EPOLLIN, 8));
	(void)udp_to(t, "6", &a);
	told("deleted", ep, 20);
}

static void
oneshot(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0), ep = epoll_create1(0);

	SAY("add", ctl(ep, EPOLL_CTL_ADD, s, EPOLLIN | EPOLLONESHOT, 7));
	(void)udp_to(t, "1", &a);
	(void)udp_to(t, "2", &a);
	told("once", ep, 1000);
	told("no more", ep, 20);
	udp_got("first", s, 10, MSG_DONTWAIT);
	told("still no more", ep, 20);
	SAY("arm", ctl(ep, EPOLL_CTL_MOD, s, EPOLLIN | EPOLLONESHOT, 7));
	told("second time", ep, 1000);
	udp_got("second", s, 10, MSG_DONTWAIT);
	(void)udp_to(t, "3", &a);
	told("not armed", ep, 20);
	SAY("arm for both", ctl(ep, EPOLL_CTL_MOD, s, EPOLLIN | EPOLLOUT | EPOLLONESHOT, 7));
	told("both", ep, 1000);
	told("not again", ep, 20);
}

/* Descriptors that are closed, copied and used again, in an epoll. */
static void
epoll_ends(void)
{
	struct sockaddr_in a, b;
	int s = udp_bound(&a), t = udp_new(0), ep = epoll_create1(0), d, u;

	SAY("add", ctl(ep, EPOLL_CTL_ADD, s, EPOLLIN, 7));
	close(s);
	told("closed", ep, 20);
	s = udp_bound(&b);
	(void)udp_to(t, "1", &b);
	told("not in it", ep, 20);
	SAY("add the new", ctl(ep, EPOLL_CTL_ADD, s, EPOLLIN, 8));
	told("in it", ep, 1000);
	udp_got("comes", s, 10, 0);
	d = dup(s);
	close(s);
	(void)udp_to(t, "2", &b);
	told("its copy is open", ep, 1000);
	close(d);
	/* An epoll that is closed while a socket that is not named yet is in it; its number is
	 * another's soon. */
	u = udp_new(0);
	SAY("add the unnamed", ctl(ep, EPOLL_CTL_ADD, u, EPOLLIN, 9));
	close(ep);
	ep = epoll_create1(0);
	a = udp_in(udp_where.own, 0);
	SAY("bind", bind(u, SA(a), sizeof(a)));
	(void)getsockname(u, SA(a), &(socklen_t){sizeof(a)});
	(void)udp_to(t, "3", &a);
	told("another epoll", ep, 50);
	SAY("add there", ctl(ep, EPOLL_CTL_ADD, u, EPOLLIN, 10));
	told("there", ep, 1000);
}

const struct udp_case udp_wait_cases[] = {
	{"timeouts", timeouts}, {"signals", signals},	    {"signals_any", signals_any},
	{"poll", polls},	{"select", selects},	    {"epoll", epolls},
	{"oneshot", oneshot},	{"epoll_ends", epoll_ends}, {NULL, NULL},
};
