/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams by urnic and by the kernel, on one socket (DB-11). */
#include "rig.h"

#include "abi/clock.h"

#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

/* A socket for both: any address, some port. returns: its descriptor; *port: of the host */
static int
both(uint16_t *port)
{
	struct sockaddr_in any = rig_in("0.0.0.0", 0);
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, SA(any), sizeof(any)), 0);
	assert_int_equal(getsockname(fd, SA(any), &len), 0);
	*port = ntohs(any.sin_port);
	return fd;
}

/* The address says who carries a datagram, in both directions. */
static void
routes(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a, ka, from;
	socklen_t len = sizeof(from);
	uint16_t port;
	char buf[16];
	int fd = both(&port);

	a = rig_in("10.0.0.1", port);
	ka = rig_in("127.0.0.1", port);
	assert_int_equal(sendto(r->t, "urnic", 5, 0, SA(a), sizeof(a)), 5);
	assert_int_equal(urn_real()->sendto(r->k, "kernel", 6, 0, SA(ka), sizeof(ka)), 6);
	assert_int_equal(recvfrom(fd, buf, sizeof(buf), 0, SA(from), &len), 5);
	assert_int_equal(from.sin_addr.s_addr, a.sin_addr.s_addr);
	assert_int_equal(recvfrom(fd, buf, sizeof(buf), 0, SA(from), &len), 6);
	assert_memory_equal(&from, &r->ka, sizeof(from));
	assert_int_equal(sendto(fd, "back", 4, 0, SA(from), sizeof(from)), 4);
	assert_int_equal(urn_real()->recv(r->k, buf, sizeof(buf), 0), 4);
	assert_int_equal(sendto(fd, "forth", 5, 0, SA(r->a), sizeof(r->a)), 5);
	rig_gets(r->s, "forth");
	close(fd);
}

struct later {
	struct rig *r;
	struct sockaddr_in to;
	int fd; /* -1: shut down the socket s instead */
};

static void *
send_later(void *arg)
{
	struct later *l = arg;

	usleep(50000);
	if (l->fd < 0)
		shutdown(l->r->s, SHUT_RD);
	else
		assert_int_equal(urn_real()->sendto(l->fd, "late", 4, 0, SA(l->to), sizeof(l->to)),
				 4);
	return NULL;
}

/* A reader that sleeps is woken by a datagram of the kernel's, and by shutdown(). */
static void
wakes(void **state)
{
	struct rig *r = *state;
	struct later l = {.r = r, .fd = r->k};
	pthread_t thread;
	uint16_t port;
	char buf[8];
	int fd = both(&port);

	l.to = rig_in("127.0.0.1", port);
	assert_int_equal(pthread_create(&thread, NULL, send_later, &l), 0);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 4);
	pthread_join(thread, NULL);
	close(fd);
	l.fd = -1;
	rig_send(r, "queued");
	assert_int_equal(pthread_create(&thread, NULL, send_later, &l), 0);
	rig_gets(r->s, "queued");
	assert_int_equal(recv(r->s, buf, sizeof(buf), 0), 0);
	pthread_join(thread, NULL);
	assert_int_equal(recv(r->s, buf, sizeof(buf), 0), 0);
	rig_gets_none(r->s);
	FAILS(shutdown(r->s, SHUT_WR), ENOTCONN);
	FAILS(sendto(r->s, "x", 1, 0, SA(r->a), sizeof(r->a)), EPIPE);
}

/* SO_RCVTIMEO, O_NONBLOCK and MSG_DONTWAIT end a wait. */
static void
timeouts(void **state)
{
	struct rig *r = *state;
	struct timeval tv = {.tv_usec = 40000};
	uint64_t start = urn_clock_ms();
	char buf[8];

	assert_int_equal(setsockopt(r->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	FAILS(recv(r->s, buf, sizeof(buf), 0), EAGAIN);
	assert_in_range(urn_clock_ms() - start, 39, 5000);
	FAILS(recv(r->s, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	assert_int_equal(fcntl(r->s, F_SETFL, O_NONBLOCK), 0);
	FAILS(recv(r->s, buf, sizeof(buf), 0), EAGAIN);
}

static void
on_signal(int sig)
{
	(void)sig;
}

/* A signal ends a wait, unless all handlers say SA_RESTART. */
static void
signals(void **state)
{
	struct rig *r = *state;
	struct sigaction sa = {.sa_handler = on_signal}, other = {.sa_handler = SIG_DFL};
	struct timeval tv = {.tv_usec = 200000};
	char buf[8];

	sigaction(SIGALRM, &sa, NULL);
	ualarm(30000, 30000);
	FAILS(recv(r->s, buf, sizeof(buf), 0), EINTR);
	ualarm(0, 0);
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	ualarm(30000, 30000);
	assert_int_equal(setsockopt(r->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	FAILS(recv(r->s, buf, sizeof(buf), 0), EINTR); /* so does the kernel with a timeout */
	ualarm(0, 0);
	tv.tv_usec = 0;
	assert_int_equal(setsockopt(r->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	struct later l = {.r = r, .fd = -1};
	pthread_t thread;
	sigset_t alarms;

	ualarm(10000, 10000);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the thread does not take it */
	assert_int_equal(pthread_create(&thread, NULL, send_later, &l), 0);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	assert_int_equal(recv(r->s, buf, sizeof(buf), 0), 0);
	ualarm(0, 0);
	pthread_join(thread, NULL);
	sigaction(SIGALRM, &other, NULL);
}

/* A buffer is cut in datagrams by UDP_SEGMENT, of the message or of the socket. */
static void
segments(void **state)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control = {0};
	struct rig *r = *state;
	struct iovec iov[2] = {{"abcd", 4}, {"efgh", 4}};
	struct msghdr m = {.msg_name = &r->a,
			   .msg_namelen = sizeof(r->a),
			   .msg_iov = iov,
			   .msg_iovlen = 2,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int size = 2;

	*c = (struct cmsghdr){
		.cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(2)};
	memcpy(CMSG_DATA(c), &(uint16_t){3}, 2);
	assert_int_equal(sendmsg(r->t, &m, 0), 8);
	rig_gets(r->s, "abc");
	rig_gets(r->s, "def");
	rig_gets(r->s, "gh");
	assert_int_equal(setsockopt(r->t, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
	rig_send(r, "123");
	rig_gets(r->s, "12");
	rig_gets(r->s, "3");
	rig_gets_none(r->s);
}

/* Calls that urnic does not know are refused, and do no half of the work. */
static void
refuses(void **state)
{
	struct rig *r = *state;
	struct iovec iov = {"x", 1};
	struct msghdr m = {.msg_name = &r->a,
			   .msg_namelen = sizeof(r->a),
			   .msg_iov = &iov,
			   .msg_iovlen = 5000};
	int one = 1;

	FAILS(sendto(r->t, "x", 1, MSG_MORE, SA(r->a), sizeof(r->a)), EOPNOTSUPP);
	FAILS(sendto(r->t, "x", 1, MSG_OOB, SA(r->a), sizeof(r->a)), EOPNOTSUPP);
	FAILS(sendmsg(r->t, &m, 0), EMSGSIZE);
	assert_int_equal(setsockopt(r->t, IPPROTO_UDP, UDP_CORK, &one, sizeof(one)), 0);
	FAILS(sendto(r->t, "x", 1, 0, SA(r->a), sizeof(r->a)), EOPNOTSUPP);
	rig_gets_none(r->s);
}

/* A sender that must not wait is told ENOBUFS after a while, when all of its outlets are busy. */
static void
busy(void **state)
{
	struct rig *r = *state;
	int i;

	rig_send(r, "first");
	atomic_store(&r->f->hold, true);
	for (i = 0; i < URN_PORT_OUTLETS; i++)
		assert_int_equal(sendto(r->t, "x", 1, MSG_DONTWAIT, SA(r->a), sizeof(r->a)), 1);
	FAILS(sendto(r->t, "x", 1, MSG_DONTWAIT, SA(r->a), sizeof(r->a)), ENOBUFS);
	atomic_store(&r->f->hold, false);
}

/* An error of a datagram that was sent without a wait wakes poll(), and is told once. */
static void
late_error(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in nobody = rig_in("10.0.0.1", 99);
	struct pollfd p = {.fd = r->t, .events = POLLIN};
	char buf[8];

	assert_int_equal(connect(r->t, SA(nobody), sizeof(nobody)), 0);
	assert_int_equal(send(r->t, "x", 1, MSG_DONTWAIT), 1);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLERR);
	FAILS(recv(r->t, buf, sizeof(buf), 0), ECONNREFUSED);
	rig_gets_none(r->t);
	assert_int_equal(send(r->t, "x", 1, MSG_DONTWAIT), 1);
	FAILS(recv(r->t, buf, sizeof(buf), 0), ECONNREFUSED); /* a wait ends */
	assert_int_equal(send(r->t, "x", 1, MSG_DONTWAIT), 1);
	assert_int_equal(poll(&p, 1, -1), 1); /* the answer is there */
	FAILS(send(r->t, "x", 1, MSG_DONTWAIT), ECONNREFUSED);
}

/* IP_PKTINFO tells an own address, and MSG_CTRUNC that there was no room for it. */
static void
info(void **state)
{
	union {
		struct cmsghdr align;
		char bytes[128];
	} control;
	struct rig *r = *state;
	char buf[8];
	struct iovec iov = {buf, sizeof(buf)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = 128};
	struct in_pktinfo p;
	int one = 1;

	assert_int_equal(setsockopt(r->s, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)), 0);
	rig_send(r, "abc");
	rig_send(r, "abc");
	rig_send(r, "abc");
	assert_int_equal(recvmsg(r->s, &m, 0), 3);
	assert_int_equal(m.msg_controllen, CMSG_SPACE(sizeof(p)));
	assert_int_equal(control.align.cmsg_type, IP_PKTINFO);
	memcpy(&p, CMSG_DATA(&control.align), sizeof(p));
	assert_int_equal(p.ipi_addr.s_addr, r->a.sin_addr.s_addr);
	m.msg_controllen = 4;
	assert_int_equal(recvmsg(r->s, &m, 0), 3);
	assert_int_equal(m.msg_flags, MSG_CTRUNC);
	one = 0;
	assert_int_equal(setsockopt(r->s, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)), 0);
	m.msg_controllen = 128;
	assert_int_equal(recvmsg(r->s, &m, 0), 3);
	assert_int_equal(m.msg_controllen, 0);
	assert_int_equal(m.msg_flags, 0);
}

/* A dataplane that is gone: no send goes well, and a reader waits for the next dataplane. */
static void
gone(void **state)
{
	struct rig *r = *state;
	struct timeval tv = {.tv_usec = 20000};
	char buf[8];

	rig_send(r, "x");
	rig_gets(r->s, "x");
	assert_int_equal(setenv("URNIC_SOCKET", "/nowhere/at.all", 1), 0);
	assert_int_equal(urn_socket_use(NULL), 0);
	atomic_store(&r->f->hold, true);
	atomic_store(&r->dev->dev.gone, URN_DEV_DIED);
	FAILS(sendto(r->t, "x", 1, 0, SA(r->a), sizeof(r->a)), ENETDOWN);
	FAILS(recv(r->s, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	assert_int_equal(setsockopt(r->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	FAILS(recv(r->s, buf, sizeof(buf), 0), EAGAIN);
	atomic_store(&r->dev->dev.gone, URN_DEV_THERE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(routes, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(wakes, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(timeouts, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(signals, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(segments, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(refuses, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(busy, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(late_error, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(info, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(gone, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
