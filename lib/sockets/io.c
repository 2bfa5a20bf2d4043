/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of twins: by urnic or by the kernel. */
#include "sockets/twin.h"

#include "abi/clock.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/*
 * Milliseconds that a sender that must not wait spends at most on a free outlet: then the datagram
 * is refused with ENOBUFS, because no event would say when there is room. Milliseconds between
 * tries to get a dataplane again, of a reader that waits and of one that does not: the latter's
 * poll returns at once, so that the program looks again, and would take a core meanwhile.
 */
enum { URN_TWIN_ROOM_MS = 50, URN_TWIN_AGAIN_MS = 100, URN_TWIN_BREATH_MS = 1 };

/* returns: 0, or -1 with errno */
static int
urn_twin_ret(int err)
{
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

/* True when a call with these flags must not wait. */
static bool
urn_twin_nonblock(const struct urn_twin *t, int flags)
{
	return flags & MSG_DONTWAIT || atomic_load(&t->nonblock);
}

/* A timeout of the kernel's socket, for a wait that begins now. option: SO_RCVTIMEO; returns: for
 * `end` */
static uint64_t
urn_twin_timeout(int fd, int option)
{
	struct timeval tv = {0};
	socklen_t len = sizeof(tv);

	if (urn_real()->getsockopt(fd, SOL_SOCKET, option, &tv, &len) != 0 ||
	    (tv.tv_sec == 0 && tv.tv_usec == 0))
		return 0;
	return urn_sock_end_of((int64_t)tv.tv_sec * 1000000000 + (int64_t)tv.tv_usec * 1000);
}

/* ---- sending */

/* Send by the kernel, whose socket may get answers from now on. */
static ssize_t
urn_twin_send_kernel(struct urn_twin *t, int fd, const struct msghdr *msg, int flags)
{
	ssize_t n = urn_real()->sendmsg(fd, msg, flags);

	if (n >= 0)
		atomic_store(&t->kernel, true);
	return n;
}

/* Send by the urnic socket. returns: 0, or an errno value */
static int
urn_twin_send_urnic(struct urn_twin *t, struct urn_sock *s, const struct msghdr *msg,
		    const struct urn_addr *to, bool wait)
{
	const struct timespec nap = {.tv_nsec = 100000};
	uint64_t end = 0;
	int err;

	for (;;) {
		err = urn_sock_send(s, msg->msg_iov, msg->msg_iovlen, to, wait);
		if (err == EIO) {
			if (!urn_twin_revive(t, s))
				return ENETDOWN;
			s = atomic_load(&t->sock);
			err = urn_sock_send(s, msg->msg_iov, msg->msg_iovlen, to, wait);
		}
		if (err != EAGAIN)
			return err;
		end = end ? end : urn_clock_ms() + URN_TWIN_ROOM_MS;
		if (urn_clock_ms() >= end)
			return ENOBUFS;
		(void)nanosleep(&nap, NULL);
	}
}

/* Bytes of all parts. */
static size_t
urn_twin_length(const struct msghdr *msg)
{
	size_t i, len = 0;

	for (i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	return len;
}

/* Bytes of each datagram that a buffer is cut in (UDP_SEGMENT); 0: one datagram. */
static size_t
urn_twin_segment(const struct urn_twin *t, const struct msghdr *msg)
{
	struct cmsghdr *c;
	uint16_t size;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT &&
		    c->cmsg_len == CMSG_LEN(sizeof(size))) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
			return size;
		}
	return atomic_load(&t->segment);
}

/* Send a buffer as datagrams of some bytes each. returns: 0, or the errno value of the first that
 * failed */
static int
urn_twin_send_cut(struct urn_twin *t, const struct msghdr *msg, const struct urn_addr *to,
		  bool wait, size_t segment)
{
	size_t i, at = 0, len = urn_twin_length(msg);
	uint8_t *all = len <= URN_SOCK_DATAGRAM ? malloc(len) : NULL;
	int err = 0;

	if (all == NULL)
		return len <= URN_SOCK_DATAGRAM ? ENOBUFS : EMSGSIZE;
	for (i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > 0)
			memcpy(all + at, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		at += msg->msg_iov[i].iov_len;
	}
	for (at = 0; at < len && err == 0; at += segment) {
		struct iovec iov = {all + at, len - at < segment ? len - at : segment};
		struct msghdr part = {.msg_iov = &iov, .msg_iovlen = 1};

		err = urn_twin_send_urnic(t, atomic_load(&t->sock), &part, to, wait);
	}
	free(all);
	return err;
}

/* Send to a urnic node. to: NULL: to the peer; returns: as sendmsg() */
static ssize_t
urn_twin_send_node(struct urn_twin *t, struct urn_sock *s, const struct msghdr *msg, int flags,
		   const struct urn_addr *to)
{
	size_t segment, len;
	bool wait = !urn_twin_nonblock(t, flags);
	int err;

	if (msg->msg_iovlen > IOV_MAX)
		return urn_twin_ret(EMSGSIZE);

	/* Datagrams that are put together by several calls are not known here. */
	if (flags & (MSG_OOB | MSG_MORE) || atomic_load(&t->cork))
		return urn_twin_ret(EOPNOTSUPP);
	if (atomic_load(&t->shut) & URN_TWIN_SHUT_WR)
		return urn_twin_ret(EPIPE);
	len = urn_twin_length(msg);
	segment = urn_twin_segment(t, msg);
	err = segment != 0 && len > segment ? urn_twin_send_cut(t, msg, to, wait, segment)
					    : urn_twin_send_urnic(t, s, msg, to, wait);
	return err != 0 ? urn_twin_ret(err) : (ssize_t)len;
}

ssize_t
urn_twin_send(struct urn_twin *t, int fd, const struct msghdr *msg, int flags)
{
	struct urn_addr to;
	struct urn_sock *s;
	bool named = msg->msg_name != NULL && msg->msg_namelen > 0;
	int err = urn_twin_unsettled(t);

	if (named ? !urn_twin_target(t, &to, msg->msg_name, msg->msg_namelen)
		  : !urn_twin_to_urnic(t) && !(err != 0 && t->heir_connected))
		return urn_twin_send_kernel(t, fd, msg, flags);
	if (err != 0)
		return urn_twin_ret(err); /* its port is still to come from before exec() */
	s = urn_twin_sock(t);
	if (s == NULL && urn_twin_is_full(errno))
		return urn_twin_ret(
			ENOBUFS); /* the kernel would lose the datagram without a word */
	if (s == NULL)
		return urn_twin_send_kernel(t, fd, msg, flags);
	return urn_twin_send_node(t, s, msg, flags, named ? &to : NULL);
}

/* ---- receiving */

/* Write one control message, if there is room. */
static void
urn_twin_control(struct msghdr *msg, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = msg->msg_control;

	if (msg->msg_control == NULL || msg->msg_controllen < CMSG_SPACE(len)) {
		msg->msg_flags |= MSG_CTRUNC;
		msg->msg_controllen = 0;
		return;
	}
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	msg->msg_controllen = CMSG_SPACE(len);
}

/* Tell where a datagram came to, when the program wants to know: an own address, and the loopback
 * interface. */
static void
urn_twin_info(struct urn_twin *t, struct urn_sock *s, struct msghdr *msg,
	      const struct urn_addr *from)
{
	struct in_pktinfo info4 = {.ipi_ifindex = 1};
	struct in6_pktinfo info6 = {.ipi6_ifindex = 1};
	struct urn_msg_dev *dev = urn_socks_dev(s->socks);
	uint8_t own[16];
	uint32_t i;

	if (!atomic_load(&t->info4) && !atomic_load(&t->info6)) {
		msg->msg_controllen = 0;
		return;
	}
	for (i = 0; urn_msg_dev_gid(dev, i, own) == 0; i++)
		if (!urn_addr_is_any(own) && urn_addr_is_v4(own) == urn_addr_is_v4(from->gid)) {
			memcpy(&info4.ipi_addr, own + 12, 4);
			memcpy(&info4.ipi_spec_dst, own + 12, 4);
			memcpy(&info6.ipi6_addr, own, 16);
		}
	if (t->family == AF_INET)
		urn_twin_control(msg, IPPROTO_IP, IP_PKTINFO, &info4, sizeof(info4));
	else
		urn_twin_control(msg, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
}

/* Fill in the rest of a message that came. */
static ssize_t
urn_twin_fill(struct urn_twin *t, struct urn_sock *s, struct msghdr *msg, int flags,
	      const struct urn_sock_got *got)
{
	if (msg->msg_name != NULL)
		urn_addr_put(&got->from, t->family, msg->msg_name, &msg->msg_namelen);
	msg->msg_flags = got->copied < got->len ? MSG_TRUNC : 0;
	urn_twin_info(t, s, msg, &got->from);
	return (ssize_t)(flags & MSG_TRUNC ? got->len : got->copied);
}

/* Look at both sockets once. returns: bytes; -1 with errno, EAGAIN: nothing is there */
static ssize_t
urn_twin_look(struct urn_twin *t, struct urn_sock *s, int fd, struct msghdr *msg, int flags)
{
	struct urn_sock_got got;
	int err = urn_sock_recv(s, msg->msg_iov, msg->msg_iovlen, (flags & MSG_PEEK) != 0, &got);

	if (err == 0)
		return urn_twin_fill(t, s, msg, flags, &got);
	if (err == EAGAIN && atomic_load(&t->kernel) && urn_twin_has(t, fd))
		return urn_real()->recvmsg(fd, msg, flags | MSG_DONTWAIT);
	return urn_twin_ret(err);
}

/* The dataplane is gone. returns: true: there is a new one, or it is time to look for it again */
static bool
urn_twin_again(struct urn_twin *t, struct urn_sock *dead, bool wait, uint64_t end)
{
	const struct timespec nap = {.tv_nsec = URN_TWIN_AGAIN_MS * 1000000};
	const struct timespec breath = {.tv_nsec = URN_TWIN_BREATH_MS * 1000000};

	while (!urn_twin_revive(t, dead)) {
		if (!wait)
			(void)nanosleep(&breath, NULL);
		if (!wait || (end != 0 && urn_clock_ns() >= end) || nanosleep(&nap, NULL) != 0)
			return false;
	}
	return true;
}

/* A call that receives, while it waits. */
struct urn_twin_wait {
	bool wait, timed; /* timed: `end` is valid */
	uint64_t end;	  /* for urn_sock_wait() */
};

/*
 * Nothing is there: sleep until something may be. The kernel's socket wakes the sleeper, too, with
 * a datagram or by shutdown(). returns: 0, or an errno value; ESHUTDOWN: nothing will come
 */
static int
urn_twin_sleep(struct urn_twin *t, struct urn_sock *s, int fd, struct urn_twin_wait *w)
{
	int err;

	if (!w->wait)
		return urn_sock_show(s) == 0 ? EWOULDBLOCK : EIO;
	if (atomic_load(&t->shut) & URN_TWIN_SHUT_RD)
		return ESHUTDOWN;
	err = urn_sock_wait(s, w->end, urn_twin_has(t, fd) ? fd : -1);
	return err == EINTR && w->end == 0 && urn_sock_restarts() ? 0 : err;
}

/* The answer of a call whose socket was shut down. */
static ssize_t
urn_twin_shut(struct msghdr *msg)
{
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	return 0;
}

ssize_t
urn_twin_recv(struct urn_twin *t, int fd, struct msghdr *msg, int flags)
{
	struct urn_twin_wait w = {.wait = !urn_twin_nonblock(t, flags)};
	struct urn_sock *s = atomic_load(&t->sock);
	bool last = false;
	ssize_t n;
	int err;

	for (;;) {
		n = urn_twin_look(t, s, fd, msg, flags);
		if (n >= 0 || (errno != EAGAIN && errno != EIO) || (last && errno == EAGAIN))
			return n;
		err = errno;
		if (w.wait && !w.timed)
			w.end = urn_twin_timeout(fd, SO_RCVTIMEO);
		w.timed = true;
		if (err == EAGAIN)
			err = urn_twin_sleep(t, s, fd, &w);
		if (err == EIO) {
			if (!urn_twin_again(t, s, w.wait, w.end))
				return urn_twin_ret(w.wait && errno == EINTR ? EINTR : EAGAIN);
			s = atomic_load(&t->sock);
			err = 0;
			/* A reader that does not wait looks at the new socket once. */
			last = !w.wait;
		}
		if (err == ESHUTDOWN)
			return urn_twin_shut(msg);
		if (err != 0)
			return urn_twin_ret(err);
	}
}

/* ---- poll */

bool
urn_twin_among(const struct pollfd *fds, nfds_t n)
{
	bool among = false;
	nfds_t i;

	for (i = 0; i < n && !among; i++) {
		struct urn_twin *t = urn_twin_get(fds[i].fd);

		if (fds[i].events & (POLLIN | POLLRDNORM))
			urn_twin_early(t);
		among = t != NULL && atomic_load(&t->sock) != NULL;
		urn_twin_put(t);
	}
	return among;
}
