/* SPDX-License-Identifier: BSD-3-Clause */
/* One socket for several: descriptors, threads, processes. */
#include "udp.h"

#include <stdio.h>

#define SA(x) ((struct sockaddr *)&(x))

static void
copies(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0), d = dup(s), e;

	SAY("dup2", dup2(s, 50));
	SAY("dup2 to itself", dup2(s, s) == s);
	SAY("dup3 to itself", dup3(s, s, 0));
	SAY("dup3", dup3(s, 51, O_CLOEXEC));
	SAY("close-on-exec", fcntl(51, F_GETFD));
	e = fcntl(s, F_DUPFD, 60);
	SAY("F_DUPFD", e);
	SAY("bad dup", dup(999));
	close(s);
	(void)udp_to(t, "1", &a);
	udp_got("by dup", d, 10, 0);
	(void)udp_to(t, "2", &a);
	udp_got("by dup2", 50, 10, 0);
	(void)udp_to(t, "3", &a);
	udp_got("by F_DUPFD", e, 10, 0);
	SAY("nonblocking by one", fcntl(d, F_SETFL, O_NONBLOCK));
	udp_got("is so for all", 50, 10, 0);
	SAY("dup2 over it", dup2(1, 50));
	close(d);
	close(51);
	udp_got("one is left", e, 10, 0);
	close(e);
	SAY("closed twice", close(e));
	s = udp_new(0);
	SAY("the port is free", bind(s, SA(a), sizeof(a)));
}

/* ---- threads */

struct udp_reader {
	pthread_t thread;
	int fd;
	bool poll; /* waits in poll() */
	const char *step;
	char buf[16];
	long n;
	int err;
	_Atomic bool back;
};

static void *
read_on(void *arg)
{
	struct udp_reader *r = arg;
	struct pollfd p = {.fd = r->fd, .events = POLLIN};

	r->n = r->poll ? poll(&p, 1, 3000) : recv(r->fd, r->buf, 10, 0);
	r->err = errno;
	r->back = true;
	return NULL;
}

/* Have a thread wait for a datagram. */
static void
reads(struct udp_reader *r, const char *step, int fd, bool poll)
{
	*r = (struct udp_reader){.fd = fd, .step = step, .poll = poll};
	if (pthread_create(&r->thread, NULL, read_on, r) != 0)
		udp_die("thread");
	udp_sleep_ms(100);
}

/* Wait for the thread for a second. returns: 1: its call has ended; 0: it waits on, or waited on
 * until now */
static long
ends(struct udp_reader *r, const struct sockaddr_in *to)
{
	uint64_t end = udp_ms() + 1000;
	bool back;
	int t = udp_new(0);

	while (!r->back && udp_ms() < end)
		udp_sleep_ms(5);
	back = r->back;
	if (!back && to != NULL)
		(void)udp_to(t, "release", to);
	pthread_join(r->thread, NULL);
	errno = r->err;
	udp_say(r->step, r->n);
	udp_say(r->buf[0] ? r->buf : "no bytes", back);
	return back;
}

static void
shuts(void)
{
	struct sockaddr_in a, b;
	int s = udp_bound(&a), t = udp_bound(&b), u = udp_new(0);
	struct pollfd p = {.fd = u, .events = POLLIN | POLLRDHUP};
	struct udp_reader r;

	SAY("unconnected", shutdown(u, SHUT_WR));
	u = p.fd = udp_new(0);
	SAY("connect", connect(u, SA(a), sizeof(a)));
	reads(&r, "blocked", u, false);
	SAY("SHUT_RD", shutdown(u, SHUT_RD));
	SAY("woken", ends(&r, NULL));
	udp_got("recv after", u, 10, 0);
	udp_got("recv after, don't wait", u, 10, MSG_DONTWAIT);
	SAY("poll", poll(&p, 1, 1000));
	SAY("events", p.revents);
	SAY("send after SHUT_RD", send(u, "x", 1, 0));
	udp_got("comes", s, 10, 0);
	SAY("SHUT_WR", shutdown(u, SHUT_WR));
	SAY("send after SHUT_WR", send(u, "x", 1, 0));
	SAY("poll after both", poll(&p, 1, 1000));
	SAY("events after both", p.revents);
	SAY("bad how", shutdown(u, 77));
	reads(&r, "blocked, bound", t, false);
	SAY("SHUT_RDWR of a bound one", shutdown(t, SHUT_RDWR));
	SAY("bound woken", ends(&r, &b));
	SAY("sendto after", udp_to(t, "x", &a));
	udp_got("nothing", s, 10, MSG_DONTWAIT);
}

static void
shut_poll(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a);
	struct udp_reader r;

	reads(&r, "polling", s, true);
	(void)shutdown(s, SHUT_RDWR);
	SAY("woken", ends(&r, &a));
}

/* A thread waits on a socket that gets its name and its place only after that. */
static void
early(void)
{
	struct sockaddr_in a, from;
	int s = udp_bound(&a), u = udp_new(0), v = udp_new(0), w = udp_new(0);
	socklen_t len = sizeof(from);
	char buf[10];
	struct udp_reader r, q, o;

	reads(&r, "recv before the first send", u, false);
	SAY("send", udp_to(u, "ask", &a));
	SAY("comes", recvfrom(s, buf, sizeof(buf), 0, SA(from), &len));
	SAY("answer", udp_to(s, "answer", &from));
	SAY("woken", ends(&r, NULL));
	reads(&q, "poll before the first send", v, true);
	SAY("send", udp_to(v, "ask", &a));
	SAY("comes", recvfrom(s, buf, sizeof(buf), 0, SA(from), &len));
	SAY("answer", udp_to(s, "answer", &from));
	SAY("woken", ends(&q, NULL));
	reads(&o, "recv before bind", w, false);
	from = udp_in("0.0.0.0", 0);
	SAY("bind", bind(w, SA(from), sizeof(from)));
	(void)getsockname(w, SA(from), &len);
	from.sin_addr = a.sin_addr;
	SAY("send there", udp_to(s, "named", &from));
	SAY("woken by it", ends(&o, NULL));
}

/* A descriptor is closed while a thread reads by it. */
static void
closed(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0);
	struct udp_reader r;

	reads(&r, "reads on", s, false);
	SAY("close", close(s));
	udp_sleep_ms(50);
	SAY("waits", r.back);
	SAY("send", udp_to(t, "late", &a));
	SAY("woken", ends(&r, NULL));
	udp_sleep_ms(20);
	s = udp_new(0);
	SAY("the port is free", bind(s, SA(a), sizeof(a)));
}

/* ---- processes */

static long
child_ends(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void
forks(void)
{
	struct sockaddr_in a, b;
	int s = udp_bound(&a), t = udp_bound(&b);
	pid_t pid = fork();

	if (pid == 0) {
		udp_got("child gets", s, 10, 0);
		SAY("child sends", udp_to(t, "up", &a));
		_exit(0);
	}
	(void)udp_to(t, "down", &a);
	SAY("child's end", child_ends(pid));
	udp_got("parent gets", s, 10, 0);
	pid = fork();
	if (pid == 0) {
		close(s);
		_exit(0);
	}
	SAY("child closed", child_ends(pid));
	(void)udp_to(t, "on", &a);
	udp_got("parent gets on", s, 10, 0);
	pid = fork();
	if (pid == 0) {
		SAY("child connects", connect(s, SA(b), sizeof(b)));
		_exit(0);
	}
	SAY("child connected", child_ends(pid));
	SAY("parent is connected", send(s, "c", 1, 0));
	udp_got("peer gets", t, 10, MSG_DONTWAIT);
}

static void
execs(void)
{
	struct sockaddr_in a;
	char number[12];
	int s = udp_bound(&a);

	snprintf(number, sizeof(number), "%d", s);
	execl(udp_where.self, udp_where.self, "--inherited", number, (char *)NULL);
	udp_die("exec");
}

const struct udp_case udp_share_cases[] = {
	{"copies", copies}, {"shut", shuts}, {"shut_poll", shut_poll}, {"early", early},
	{"closed", closed}, {"fork", forks}, {"exec", execs},	       {NULL, NULL},
};
