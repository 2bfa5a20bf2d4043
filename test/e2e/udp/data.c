/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving, without waits. */
#include "udp.h"

#include <netinet/udp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#define SA(x) ((struct sockaddr *)&(x))

static char big[70000];

static long
pending(int fd)
{
	int n = -7;

	return ioctl(fd, FIONREAD, &n) == 0 ? n : -1;
}

static void
sizes(void)
{
	struct sockaddr_in a, from;
	socklen_t len = sizeof(from);
	int s = udp_bound(&a), t = udp_new(0);

	SAY("empty", sendto(t, "", 0, 0, SA(a), sizeof(a)));
	SAY("FIONREAD of an empty one", pending(s));
	SAY("empty comes", recvfrom(s, big, 10, 0, SA(from), &len));
	SAY("has an address", len);
	SAY("empty, without a buffer", sendto(t, NULL, 0, 0, SA(a), sizeof(a)));
	SAY("comes", recv(s, NULL, 0, 0));
	SAY("largest", sendto(t, big, 65507, 0, SA(a), sizeof(a)));
	SAY("FIONREAD", pending(s));
	SAY("largest comes", recv(s, big, sizeof(big), 0));
	SAY("too long", sendto(t, big, 65508, 0, SA(a), sizeof(a)));
	SAY("far too long", sendto(t, big, 70000, 0, SA(a), sizeof(a)));
	SAY("nothing came", recv(s, big, 10, MSG_DONTWAIT));
	SAY("FIONREAD of nothing", pending(s));
	SAY("to be thrown away", sendto(t, "1234", 4, 0, SA(a), sizeof(a)));
	SAY("no room", recv(s, NULL, 0, 0));
	SAY("is gone", recv(s, big, 10, MSG_DONTWAIT));
}

static void
cuts(void)
{
	struct sockaddr_in a, b, from;
	int s = udp_bound(&a), t = udp_bound(&b);
	struct iovec iov = {big, 3};
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1};

	(void)udp_to(t, "abcdef", &a);
	(void)udp_to(t, "ghi", &a);
	udp_got("peek", s, 3, MSG_PEEK);
	udp_got("peek again", s, 20, MSG_PEEK);
	udp_got("peek, true length", s, 2, MSG_PEEK | MSG_TRUNC);
	SAY("FIONREAD", pending(s));
	SAY("recvmsg", recvmsg(s, &m, 0));
	SAY("flags", m.msg_flags & MSG_TRUNC);
	SAY("name", udp_same(&from, &b));
	SAY("name's length", m.msg_namelen);
	SAY("the next, true length", recvmsg(s, &m, MSG_TRUNC));
	SAY("flags of the next", m.msg_flags);
	SAY("wait for all", udp_to(t, "xy", &a));
	udp_got("comes short", s, 20, MSG_WAITALL);
	SAY("no name wanted", udp_to(t, "n", &a));
	m = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
	SAY("no name told", recvmsg(s, &m, 0));
	SAY("its length", m.msg_namelen);
	m = (struct msghdr){.msg_name = &from, .msg_namelen = 4, .msg_iov = &iov, .msg_iovlen = 1};
	SAY("short name wanted", udp_to(t, "n", &a));
	SAY("short name told", recvmsg(s, &m, 0));
	SAY("its true length", m.msg_namelen);
}

/* The compiler does not know them, and does not warn. */
static volatile int minus_one = -1, too_many = 5000;

static void
vectors(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0);
	char x[4] = "", y[8] = "";
	struct iovec out[3] = {{"ab", 2}, {NULL, 0}, {"cdefg", 5}}, in[2] = {{x, 3}, {y, 7}};
	struct msghdr m = {
		.msg_name = &a, .msg_namelen = sizeof(a), .msg_iov = out, .msg_iovlen = 3};

	SAY("connect", connect(t, SA(a), sizeof(a)));
	SAY("writev", writev(t, out, 3));
	SAY("readv", readv(s, in, 2));
	SAY("parts", strcmp(x, "abc") == 0 && strcmp(y, "defg") == 0);
	SAY("sendmsg", sendmsg(t, &m, 0));
	SAY("read", read(s, x, 3));
	SAY("writev of none", writev(t, out, 0));
	SAY("writev of -1", writev(t, out, minus_one));
	SAY("readv of -1", readv(s, in, minus_one));
	SAY("writev of too many", writev(t, out, too_many));
	SAY("write of 0", write(t, x, 0));
	SAY("there is a datagram", pending(s));
	SAY("read of 0", read(s, x, 0));
	SAY("recv of 0", recv(s, x, 0, MSG_DONTWAIT));
	SAY("then nothing", recv(s, x, 0, MSG_DONTWAIT));
	SAY("write", write(t, "w", 1));
	SAY("read of 0 leaves it", read(s, x, 0));
	udp_got("there it is", s, 5, MSG_DONTWAIT);
	m.msg_iovlen = (size_t)too_many;
	SAY("sendmsg of too many", sendmsg(t, &m, 0));
	m.msg_iovlen = 0;
	SAY("sendmsg of none", sendmsg(t, &m, 0));
	udp_got("is empty", s, 5, MSG_DONTWAIT);
}

/* n messages of one byte each. */
static void
lay_out(struct mmsghdr *m, struct iovec *iov, char *bytes, unsigned int n)
{
	memset(m, 0, n * sizeof(*m));
	for (unsigned int i = 0; i < n; i++) {
		iov[i] = (struct iovec){bytes + i, 1};
		m[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
}

static void
many(void)
{
	struct timespec wait = {.tv_nsec = 100000000}, bad = {.tv_nsec = 2000000000};
	struct iovec iov[8];
	struct mmsghdr m[8];
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0);
	char out[9] = "12345678", in[9] = "";
	uint64_t start;

	lay_out(m, iov, out, 8);
	SAY("unconnected", sendmmsg(t, m, 8, 0));
	SAY("connect", connect(t, SA(a), sizeof(a)));
	SAY("sendmmsg", sendmmsg(t, m, 8, 0));
	SAY("lengths", m[0].msg_len + m[7].msg_len);
	SAY("of none", sendmmsg(t, m, 0, 0));
	lay_out(m, iov, in, 8);
	SAY("recvmmsg", recvmmsg(s, m, 5, 0, NULL));
	SAY("first five", strcmp(in, "12345") == 0);
	SAY("the rest", recvmmsg(s, m, 8, MSG_WAITFORONE, NULL));
	SAY("no more", recvmmsg(s, m, 8, MSG_DONTWAIT, NULL));
	SAY("bad timeout", recvmmsg(s, m, 8, 0, &bad));
	SAY("two", send(t, "a", 1, 0) + send(t, "b", 1, 0));
	start = udp_ms();
	udp_timeout(s, 300);
	/* The time is looked at behind each datagram; SO_RCVTIMEO ends the wait for the third. */
	SAY("timeout", recvmmsg(s, m, 8, 0, &wait));
	SAY("took its time", udp_ms() - start >= 250 && udp_ms() - start < 2000);
	SAY("one", send(t, "c", 1, 0));
	wait = (struct timespec){0};
	SAY("timeout of 0", recvmmsg(s, m, 8, 0, &wait));
}

/* Tell the control message of a datagram that comes. */
static void
info(const char *step, int fd, size_t room, const struct sockaddr_in *to)
{
	union {
		struct cmsghdr align;
		char bytes[128];
	} control = {0};
	char buf[8];
	struct iovec iov = {buf, sizeof(buf)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = room};
	struct in_pktinfo *p;
	struct cmsghdr *c;

	SAY(step, recvmsg(fd, &m, 0));
	SAY("flags", m.msg_flags);
	c = CMSG_FIRSTHDR(&m);
	SAY("has one", c != NULL && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO);
	if (c == NULL || c->cmsg_len < CMSG_LEN(sizeof(*p)))
		return;
	p = (struct in_pktinfo *)CMSG_DATA(c);
	SAY("interface", p->ipi_ifindex);
	SAY("address", p->ipi_addr.s_addr == to->sin_addr.s_addr);
	SAY("specific", p->ipi_spec_dst.s_addr == to->sin_addr.s_addr);
}

static void
pktinfo(void)
{
	struct sockaddr_in a, any = udp_in("0.0.0.0", 0);
	int s = udp_new(0), t = udp_new(0), one = 1;
	socklen_t len = sizeof(a);

	SAY("IP_PKTINFO", setsockopt(s, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)));
	SAY("bind", bind(s, SA(any), sizeof(any)));
	(void)getsockname(s, SA(a), &len);
	a.sin_addr = udp_in(udp_where.own, 0).sin_addr;
	for (int i = 0; i < 4; i++)
		SAY("send", udp_to(t, "x", &a));
	info("all", s, 128, &a);
	info("no room", s, 4, &a);
	info("none wanted", s, 0, &a);
	one = 0;
	SAY("off", setsockopt(s, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)));
	info("off comes", s, 128, &a);
}

/* A datagram to a port that nobody has: the next calls tell it. */
static void
refused(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0), v = 0;
	struct pollfd p = {.fd = t, .events = POLLIN};
	socklen_t len = sizeof(v);

	close(s);
	SAY("connect", connect(t, SA(a), sizeof(a)));
	SAY("don't wait", send(t, "x", 1, MSG_DONTWAIT));
	SAY("poll", poll(&p, 1, 2000));
	SAY("POLLERR", p.revents & POLLERR);
	udp_got("recv tells", t, 10, 0);
	udp_got("once", t, 10, MSG_DONTWAIT);
	SAY("don't wait again", send(t, "x", 1, MSG_DONTWAIT));
	udp_sleep_ms(250);
	SAY("SO_ERROR", getsockopt(t, SOL_SOCKET, SO_ERROR, &v, &len));
	SAY("is ECONNREFUSED", v == ECONNREFUSED);
	SAY("SO_ERROR again", getsockopt(t, SOL_SOCKET, SO_ERROR, &v, &len));
	SAY("is none", v);
	SAY("don't wait, third", send(t, "x", 1, MSG_DONTWAIT));
	udp_sleep_ms(250);
	SAY("send tells", send(t, "x", 1, MSG_DONTWAIT));
	/* Here a sender that waits is told by urnic at once. */
	udp_sleep_ms(250);
	udp_got("drained", t, 10, MSG_DONTWAIT);
	SAY("wait", send(t, "x", 1, 0));
	udp_timeout(t, 100);
	udp_got("answer", t, 10, 0);
}

/* One buffer that the kernel cuts in datagrams. */
static void
segments(void)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control = {0};
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0), size = 3;
	struct iovec iov = {"abcdefgh", 8};
	struct msghdr m = {.msg_name = &a,
			   .msg_namelen = sizeof(a),
			   .msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
	memcpy(CMSG_DATA(c), &(uint16_t){3}, sizeof(uint16_t));
	SAY("by a control message", sendmsg(t, &m, 0));
	udp_timeout(s, 500);
	for (int i = 0; i < 3; i++)
		udp_got("part", s, 20, 0);
	SAY("UDP_SEGMENT", setsockopt(t, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)));
	SAY("by the option", udp_to(t, "12345", &a));
	for (int i = 0; i < 2; i++)
		udp_got("part of it", s, 20, 0);
	udp_got("no more", s, 20, MSG_DONTWAIT);
}

static void
corked(void)
{
	struct sockaddr_in a;
	int s = udp_bound(&a), t = udp_new(0);

	SAY("connect", connect(t, SA(a), sizeof(a)));
	SAY("more", send(t, "ab", 2, MSG_MORE));
	udp_got("nothing yet", s, 20, MSG_DONTWAIT);
	SAY("end", send(t, "cd", 2, 0));
	udp_timeout(s, 500);
	udp_got("one datagram", s, 20, 0);
}

const struct udp_case udp_data_cases[] = {
	{"sizes", sizes},	{"cuts", cuts},	      {"vectors", vectors},
	{"many", many},		{"pktinfo", pktinfo}, {"refused", refused},
	{"segments", segments}, {"corked", corked},   {NULL, NULL},
};
