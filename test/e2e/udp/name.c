/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, peers and options of sockets. */
#include "udp.h"

#include <netdb.h>
#include <sys/ioctl.h>
#include <stdio.h>

#define SA(x) ((struct sockaddr *)&(x))

static int
name_of(int fd, struct sockaddr_in *in)
{
	socklen_t len = sizeof(*in);

	memset(in, 0, sizeof(*in));
	return getsockname(fd, SA(*in), &len);
}

static void
binds(void)
{
	struct sockaddr_in in, in2, foreign = udp_in(udp_where.foreign, 0);
	struct sockaddr_in6 in6 = udp_in6("::1", 0);
	int s = udp_new(0), t = udp_new(0), u = udp_new(0);

	SAY("getsockname before", name_of(s, &in));
	SAY("address before", in.sin_addr.s_addr);
	SAY("port before", in.sin_port);
	in = udp_in(udp_where.own, 0);
	SAY("port 0", bind(s, SA(in), sizeof(in)));
	SAY("getsockname after", name_of(s, &in2));
	SAY("address after", in2.sin_addr.s_addr == in.sin_addr.s_addr);
	SAY("port after", ntohs(in2.sin_port) >= 32768);
	SAY("again", bind(s, SA(in), sizeof(in)));
	SAY("taken", bind(t, SA(in2), sizeof(in2)));
	SAY("foreign", bind(t, SA(foreign), sizeof(foreign)));
	SAY("short", bind(t, SA(in2), 7));
	SAY("other family", bind(t, SA(in6), sizeof(in6)));
	SAY("after failures", bind(t, SA(in), sizeof(in)));
	in = udp_in("0.0.0.0", ntohs(in2.sin_port));
	SAY("any, of a port that is taken", bind(u, SA(in), sizeof(in)));
	close(s);
	SAY("any, of a port that was closed", bind(u, SA(in), sizeof(in)));
	s = udp_new(0);
	SAY("own, of a port that is taken for any", bind(s, SA(in2), sizeof(in2)));
	SAY("bad descriptor", bind(999, SA(in2), sizeof(in2)));
}

static void
peers(void)
{
	struct sockaddr_in a, b, got;
	struct sockaddr un = {.sa_family = AF_UNSPEC};
	int s = udp_bound(&a), t = udp_bound(&b), u = udp_new(0);
	socklen_t len = sizeof(got);

	SAY("getpeername before", getpeername(u, SA(got), &len));
	SAY("send before", send(u, "x", 1, 0));
	SAY("write before", write(u, "x", 1));
	SAY("connect", connect(u, SA(a), sizeof(a)));
	SAY("getpeername", getpeername(u, SA(got), &len));
	SAY("the peer", udp_same(&got, &a));
	SAY("getsockname", name_of(u, &got));
	SAY("own address", got.sin_addr.s_addr == a.sin_addr.s_addr);
	SAY("a port", got.sin_port != 0);
	SAY("send", send(u, "x", 1, 0));
	udp_got("peer gets", s, 10, 0);
	SAY("stranger", udp_to(t, "no", &got));
	SAY("peer sends", udp_to(s, "yes", &got));
	udp_got("connected gets", u, 10, 0);
	udp_got("connected gets no more", u, 10, MSG_DONTWAIT);
	SAY("sendto another", udp_to(u, "else", &b));
	udp_got("other gets", t, 10, 0);
	SAY("short", connect(u, SA(a), 7));
	SAY("another peer", connect(u, SA(b), sizeof(b)));
	SAY("send there", send(u, "y", 1, 0));
	udp_got("the new peer gets", t, 10, 0);
	SAY("no peer", connect(u, &un, sizeof(un)));
	SAY("getpeername after", getpeername(u, SA(got), &len));
	SAY("send after", send(u, "x", 1, 0));
	SAY("getsockname after", name_of(u, &got));
	SAY("address after", got.sin_addr.s_addr == 0);
	SAY("sendto after", udp_to(u, "z", &a));
	udp_got("peer gets after", s, 10, 0);
	close(t);
	t = udp_new(0);
	SAY("a port by number", bind(t, SA(b), sizeof(b)));
	SAY("bound: connect", connect(t, SA(a), sizeof(a)));
	SAY("bound: no peer", connect(t, &un, sizeof(un)));
	SAY("bound: name", name_of(t, &got));
	SAY("bound: the same", udp_same(&got, &b));
}

/* Addresses that make no sense. */
static void
odd(void)
{
	struct sockaddr_in a, zero;
	struct sockaddr_in6 in6 = udp_in6(udp_where.own6, 9);
	int s = udp_bound(&a), u = udp_new(0);

	zero = a;
	zero.sin_port = 0;
	SAY("to port 0", sendto(u, "x", 1, 0, SA(zero), sizeof(zero)));
	SAY("short", sendto(u, "x", 1, 0, SA(a), 7));
	SAY("no length", sendto(u, "x", 1, 0, SA(a), 0));
	SAY("IPv6 of an IPv4 socket", sendto(u, "x", 1, 0, SA(in6), sizeof(in6)));
	SAY("connect IPv6", connect(u, SA(in6), sizeof(in6)));
	SAY("out of band", sendto(u, "x", 1, MSG_OOB, SA(a), sizeof(a)));
	SAY("not open", sendto(999, "x", 1, 0, SA(a), sizeof(a)));
	SAY("no socket", sendto(1, "x", 1, 0, SA(a), sizeof(a)));
	SAY("listen", listen(s, 1));
	SAY("accept", accept(s, NULL, NULL));
	udp_got("nothing came", s, 10, MSG_DONTWAIT);
}

static void
flags(void)
{
	int s = udp_new(SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1, zero = 0;
	struct sockaddr_in a, in = udp_in(udp_where.own, 0);

	SAY("F_GETFL", fcntl(s, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
	SAY("F_GETFD", fcntl(s, F_GETFD));
	SAY("bind", bind(s, SA(in), sizeof(in)));
	udp_got("SOCK_NONBLOCK", s, 10, 0);
	SAY("F_GETFL after", fcntl(s, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
	s = udp_bound(&a);
	SAY("F_SETFL", fcntl(s, F_SETFL, O_NONBLOCK));
	udp_got("O_NONBLOCK", s, 10, 0);
	SAY("F_SETFL 0", fcntl(s, F_SETFL, 0));
	udp_timeout(s, 50);
	udp_got("blocks", s, 10, 0);
	SAY("FIONBIO", ioctl(s, FIONBIO, &one));
	SAY("F_GETFL FIONBIO", fcntl(s, F_GETFL) & O_NONBLOCK);
	udp_timeout(s, 0);
	udp_got("FIONBIO recv", s, 10, 0);
	SAY("FIONBIO 0", ioctl(s, FIONBIO, &zero));
	udp_got("MSG_DONTWAIT", s, 10, MSG_DONTWAIT);
	SAY("stream refuses", socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
}

static long
number(int fd, int level, int option)
{
	int v = -7;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, option, &v, &len) == 0 ? v : -1;
}

static void
options(void)
{
	struct timeval tv = {.tv_usec = 20000};
	socklen_t len = sizeof(tv);
	struct sockaddr_in a;
	int s = udp_bound(&a), v = 50000, one = 1;

	SAY("SO_TYPE", number(s, SOL_SOCKET, SO_TYPE));
	SAY("SO_DOMAIN", number(s, SOL_SOCKET, SO_DOMAIN));
	SAY("SO_PROTOCOL", number(s, SOL_SOCKET, SO_PROTOCOL));
	SAY("SO_ERROR", number(s, SOL_SOCKET, SO_ERROR));
	SAY("SO_RCVBUF", setsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, sizeof(v)));
	SAY("SO_RCVBUF is", number(s, SOL_SOCKET, SO_RCVBUF));
	SAY("SO_SNDBUF", setsockopt(s, SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
	SAY("SO_BROADCAST", setsockopt(s, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)));
	SAY("SO_BROADCAST is", number(s, SOL_SOCKET, SO_BROADCAST));
	SAY("SO_REUSEADDR", setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	SAY("SO_REUSEADDR is", number(s, SOL_SOCKET, SO_REUSEADDR));
	SAY("SO_RCVTIMEO", setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	SAY("SO_RCVTIMEO get", getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	SAY("SO_RCVTIMEO length", len);
	tv.tv_usec = 2000000;
	SAY("SO_RCVTIMEO bad", setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	SAY("short value", setsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, 2));
	SAY("no such option", setsockopt(s, SOL_SOCKET, 9999, &v, sizeof(v)));
	SAY("IP_TTL", setsockopt(s, IPPROTO_IP, IP_TTL, &(int){9}, sizeof(int)));
	SAY("IP_MTU unconnected", number(s, IPPROTO_IP, IP_MTU));
}

/* Try a second socket at a port. first, second: their options, 0: none */
static void
share(const char *step, int first, int second)
{
	struct sockaddr_in a = udp_in(udp_where.own, 0);
	int s = udp_new(0), t = udp_new(0), one = 1;
	socklen_t len = sizeof(a);

	if (first)
		(void)setsockopt(s, SOL_SOCKET, first, &one, sizeof(one));
	if (second)
		(void)setsockopt(t, SOL_SOCKET, second, &one, sizeof(one));
	if (bind(s, SA(a), sizeof(a)) != 0 || getsockname(s, SA(a), &len) != 0)
		udp_die("bind");
	SAY(step, bind(t, SA(a), sizeof(a)));
	close(s);
	close(t);
}

static void
reuse(void)
{
	share("none", 0, 0);
	share("SO_REUSEADDR of the second", 0, SO_REUSEADDR);
	share("SO_REUSEADDR of both", SO_REUSEADDR, SO_REUSEADDR);
	share("SO_REUSEPORT of the first", SO_REUSEPORT, 0);
	share("SO_REUSEPORT of both", SO_REUSEPORT, SO_REUSEPORT);
}

/* Sockets of both families at one port of any address. */
static void
families(void)
{
	struct sockaddr_in6 in6 = udp_in6("::", 0);
	struct sockaddr_in in = udp_in("0.0.0.0", 0);
	socklen_t len = sizeof(in6);
	int six = socket(AF_INET6, SOCK_DGRAM, 0), s = udp_new(0), t, one = 1;

	SAY("IPV6_V6ONLY", setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)));
	SAY("IPv6 first", bind(six, SA(in6), sizeof(in6)));
	(void)getsockname(six, SA(in6), &len);
	in.sin_port = in6.sin6_port;
	SAY("then IPv4", bind(s, SA(in), sizeof(in)));
	t = udp_new(0);
	in = udp_in(udp_where.own, ntohs(in6.sin6_port));
	SAY("send", udp_to(t, "four", &in));
	udp_timeout(s, 1000);
	udp_got("IPv4 gets", s, 10, 0);
	close(six);
	six = socket(AF_INET6, SOCK_DGRAM, 0);
	SAY("IPV6_V6ONLY again", setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)));
	SAY("IPv6 second", bind(six, SA(in6), sizeof(in6)));
	SAY("send again", udp_to(t, "five", &in));
	udp_got("IPv4 gets again", s, 10, 0);
}

/* One IPv6 socket for both families. */
static void
dual(void)
{
	struct sockaddr_in6 in6 = udp_in6("::", 0), from, to;
	struct sockaddr_in in = udp_in(udp_where.own, 0);
	socklen_t len = sizeof(in6);
	int six = socket(AF_INET6, SOCK_DGRAM, 0), s = udp_new(0),
	    u = socket(AF_INET6, SOCK_DGRAM, 0);
	char buf[10], mapped[64];

	SAY("bind", bind(six, SA(in6), sizeof(in6)));
	(void)getsockname(six, SA(in6), &len);
	in.sin_port = in6.sin6_port;
	SAY("IPv4 sends", udp_to(s, "four", &in));
	SAY("comes", recvfrom(six, buf, sizeof(buf), 0, SA(from), &len));
	SAY("mapped", IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
	SAY("length", len);
	SAY("answer", sendto(six, "back", 4, 0, SA(from), len));
	udp_got("answered", s, 10, 0);
	to = udp_in6(udp_where.own6, ntohs(in6.sin6_port));
	SAY("IPv6 sends", sendto(u, "six", 3, 0, SA(to), sizeof(to)));
	SAY("six comes", recvfrom(six, buf, sizeof(buf), 0, SA(from), &len));
	SAY("its address", IN6_ARE_ADDR_EQUAL(&from.sin6_addr, &to.sin6_addr));
	SAY("IPv4 address of an IPv6 socket", sendto(u, "x", 1, 0, SA(in), sizeof(in)));
	udp_got("comes, too", six, 10, 0);
	snprintf(mapped, sizeof(mapped), "::ffff:%s", udp_where.own);
	to = udp_in6(mapped, ntohs(in6.sin6_port));
	SAY("connect mapped", connect(u, SA(to), sizeof(to)));
	len = sizeof(from);
	SAY("its name", getsockname(u, SA(from), &len));
	SAY("is mapped", IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
	SAY("send", send(u, "m", 1, 0));
	udp_got("mapped comes", six, 10, 0);
}

static void
resolved(void)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM,
				 .ai_flags = AI_NUMERICHOST | AI_PASSIVE},
			*list = NULL;
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int s, t = udp_new(0);

	SAY("getaddrinfo", getaddrinfo(udp_where.own, "0", &hints, &list));
	s = (int)socket(list->ai_family, list->ai_socktype, list->ai_protocol);
	SAY("socket", s >= 0);
	SAY("bind", bind(s, list->ai_addr, list->ai_addrlen));
	SAY("getsockname", getsockname(s, SA(a), &len));
	SAY("send", udp_to(t, "hello", &a));
	udp_got("comes", s, 10, 0);
	freeaddrinfo(list);
}

const struct udp_case udp_name_cases[] = {
	{"bind", binds},	{"peer", peers},  {"odd", odd},		  {"flags", flags},
	{"options", options},	{"reuse", reuse}, {"families", families}, {"dual", dual},
	{"resolved", resolved}, {NULL, NULL},
};
