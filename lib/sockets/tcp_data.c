/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of streams, as TCP sockets have them. No call waits in the stream itself: each waits by a
 * poll, which signals and time-outs end. So a send ends when the stream's buffers have the bytes.
 */
#include "sockets/tcp.h"

#include "abi/clock.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { URN_TCP_COPY = 64 << 10 }; /* bytes of a file that are sent at once */

/* A place in the memory of a call. */
struct urn_tcp_place {
	const struct iovec *iov;
	size_t n;    /* pieces from `iov` on */
	size_t from; /* bytes of the first that are done */
};

/* ---- sockets of a call */

/* Get the socket of a call that moves bytes, whose connection is there. returns: NULL: the kernel
 * does it; *err: 0, or why the call fails */
static struct urn_tcp *
urn_tcp_begin(int fd, int flags, int *err)
{
	struct urn_tcp *t = urn_tcp_get(fd);
	uint32_t state = t ? urn_tcp_settle(t, fd) : URN_TCP_KERNEL;

	*err = 0;
	while (state == URN_TCP_ASKED && *err == 0) {
		bool waits = !atomic_load(&t->nonblock) && !(flags & MSG_DONTWAIT);

		*err = waits ? urn_tcp_wait(t, POLLOUT, 0, -1) : EAGAIN;
		state = urn_tcp_settle(t, fd);
	}
	if (state == URN_TCP_LOST && (*err = atomic_exchange(&t->err, 0)) == 0)
		*err = ENOTCONN;
	if (state == URN_TCP_STREAM || *err != 0)
		return t;
	urn_tcp_put(t);
	return NULL;
}

/* The errno value of a call that fails. SO_ERROR is 0 behind it, which the kernel does, too. */
static int
urn_tcp_tell(struct urn_tcp *t, int err)
{
	err = urn_tcp_errno(err);
	if (err == ECONNRESET)
		atomic_store(&t->told, true);
	return err;
}

static bool
urn_tcp_waits(const struct urn_tcp *t, int flags)
{
	return !atomic_load(&t->nonblock) && !(flags & MSG_DONTWAIT);
}

/* Pieces of memory from a place on. returns: how many */
static int
urn_tcp_parts(const struct urn_tcp_place *w, struct iovec part[URN_TCP_PARTS])
{
	size_t i, from = w->from;

	for (i = 0; i < w->n && i < URN_TCP_PARTS; i++) {
		part[i].iov_base = (uint8_t *)w->iov[i].iov_base + from;
		part[i].iov_len = w->iov[i].iov_len - from;
		from = 0;
	}
	return (int)i;
}

static void
urn_tcp_move(struct urn_tcp_place *w, size_t bytes)
{
	w->from += bytes;
	while (w->n > 0 && w->from >= w->iov->iov_len) {
		w->from -= w->iov->iov_len;
		w->iov++;
		w->n--;
	}
}

/* ---- sends */

/* Send what there is room for. returns: 0: all is sent; EAGAIN; or an errno value */
static int
urn_tcp_send_some(struct urn_tcp *t, struct urn_tcp_place *w, size_t *done)
{
	struct iovec part[URN_TCP_PARTS];

	urn_tcp_move(w, 0);
	while (w->n > 0) {
		int n = urn_tcp_parts(w, part);
		ssize_t sent = urn_stream_sendv(t->s, part, n, URN_STREAM_DONTWAIT);

		if (sent < 0)
			return errno;
		*done += (size_t)sent;
		urn_tcp_move(w, (size_t)sent);
	}
	return 0;
}

/* returns: bytes, or -1 with errno */
static ssize_t
urn_tcp_send_all(struct urn_tcp *t, const struct iovec *iov, size_t n, int flags)
{
	struct urn_tcp_place w = {iov, n, 0};
	uint64_t timeo = atomic_load(&t->sndtimeo_ns);
	uint64_t end = timeo ? urn_sock_end_of((int64_t)timeo) : 0;
	size_t done = 0;
	int err;

	while ((err = urn_tcp_send_some(t, &w, &done)) == EAGAIN) {
		if (!urn_tcp_waits(t, flags)) {
			urn_tcp_epoll_blocked(t);
			break;
		}
		err = urn_tcp_wait(t, POLLOUT, end, -1);
		if (err != 0)
			break;
	}
	if (done > 0 || err == 0)
		return (ssize_t)done;
	err = urn_tcp_tell(t, err);
	if (err == EPIPE && !(flags & MSG_NOSIGNAL))
		(void)raise(SIGPIPE);
	errno = err;
	return -1;
}

bool
urn_tcp_send(int fd, const struct msghdr *msg, int flags, ssize_t *n)
{
	int err;
	struct urn_tcp *t = urn_tcp_begin(fd, flags, &err);

	if (t == NULL)
		return false;
	if (err == 0 && flags & MSG_OOB)
		err = EOPNOTSUPP;
	/* No notice follows, which the program would wait for: it sends again without the flag. */
	if (err == 0 && flags & MSG_ZEROCOPY && atomic_load(&t->zerocopy))
		err = ENOBUFS;
	if (err == 0 && (msg->msg_controllen != 0 || msg->msg_iovlen > IOV_MAX))
		err = EINVAL;
	*n = -1;
	if (err == 0)
		*n = urn_tcp_send_all(t, msg->msg_iov, msg->msg_iovlen, flags);
	else
		errno = err;
	err = errno;
	urn_tcp_put(t);
	errno = err;
	return true;
}

/* ---- receives; `reading` is held where the stash is touched */

/* Take bytes from the stream to the stash, up to `want` in it. returns: 0; or an errno value; the
 * end of the stream is 0 as well */
static int
urn_tcp_stash(struct urn_tcp *t, size_t want)
{
	uint32_t at = atomic_load(&t->at), used = atomic_load(&t->used);
	ssize_t n;

	want = want < URN_TCP_STASH ? want : URN_TCP_STASH;
	if (used - at >= want)
		return 0;
	if (t->stash == NULL && (t->stash = malloc(URN_TCP_STASH)) == NULL)
		return ENOMEM;
	memmove(t->stash, t->stash + at, used - at);
	used -= at;
	atomic_store(&t->at, 0);
	atomic_store(&t->used, used);
	n = urn_stream_recv(t->s, t->stash + used, want - used, URN_STREAM_DONTWAIT);
	if (n > 0)
		atomic_store(&t->used, used + (uint32_t)n);
	return n < 0 ? errno : 0;
}

/* Copy bytes of the stash. peek: they stay. returns: bytes */
static size_t
urn_tcp_unstash(struct urn_tcp *t, const struct iovec *iov, size_t n, bool peek)
{
	uint32_t at = atomic_load(&t->at), used = atomic_load(&t->used);
	size_t i, done = 0;

	for (i = 0; i < n && at != used; i++) {
		size_t some = used - at < iov[i].iov_len ? used - at : iov[i].iov_len;

		if (some > 0)
			memcpy(iov[i].iov_base, t->stash + at, some);
		at += (uint32_t)some;
		done += some;
	}
	if (!peek)
		atomic_store(&t->at, at);
	return done;
}

static size_t
urn_tcp_bytes(const struct iovec *iov, size_t n)
{
	size_t i, bytes = 0;

	for (i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* Look at bytes without taking them. returns: bytes, 0: the end of the stream; -1 with errno */
static ssize_t
urn_tcp_look(struct urn_tcp *t, const struct urn_tcp_place *w)
{
	int err = urn_tcp_stash(t, urn_tcp_bytes(w->iov, w->n));
	size_t got = t->stash != NULL ? urn_tcp_unstash(t, w->iov, w->n, true) : 0;

	errno = err;
	return got > 0 || err == 0 ? (ssize_t)got : -1;
}

/* Receive what is there. returns: bytes, 0: the end of the stream; -1 with errno */
static ssize_t
urn_tcp_recv_some(struct urn_tcp *t, struct urn_tcp_place *w, int flags)
{
	struct iovec part[URN_TCP_PARTS];
	ssize_t got;
	int n;

	pthread_mutex_lock(&t->reading);
	if (flags & MSG_PEEK) {
		got = urn_tcp_look(t, w);
	} else {
		urn_tcp_move(w, 0);
		n = urn_tcp_parts(w, part);
		got = (ssize_t)urn_tcp_unstash(t, part, (size_t)n, false);
		if (got == 0)
			got = urn_stream_recvv(t->s, part, n, URN_STREAM_DONTWAIT);
		if (got > 0)
			urn_tcp_move(w, (size_t)got);
	}
	pthread_mutex_unlock(&t->reading);
	return got;
}

/* returns: bytes, or -1 with errno */
static ssize_t
urn_tcp_recv_all(struct urn_tcp *t, const struct iovec *iov, size_t n, int flags)
{
	struct urn_tcp_place w = {iov, n, 0};
	uint64_t timeo = atomic_load(&t->rcvtimeo_ns);
	uint64_t end = timeo ? urn_sock_end_of((int64_t)timeo) : 0;
	size_t done = 0, want = urn_tcp_bytes(iov, n);
	bool all = flags & MSG_WAITALL && !(flags & MSG_PEEK);
	int err = 0;

	/* A part ends at the stash, at 64 KiB or at 16 pieces. A receive that is shorter than was
	 * asked for says that no more bytes wait: programs wait for the next edge then. */
	while (done < want && err == 0) {
		ssize_t got = urn_tcp_recv_some(t, &w, flags);

		if (got == 0)
			break;
		done += got > 0 ? (size_t)got : 0;
		if (got > 0 && flags & MSG_PEEK)
			break;
		err = got < 0 ? errno : 0;
		if (err == EAGAIN && (all || done == 0) && urn_tcp_waits(t, flags))
			err = urn_tcp_wait(t, POLLIN, end, -1);
	}
	if (done > 0 || err == 0)
		return (ssize_t)done;
	errno = urn_tcp_tell(t, err);
	return -1;
}

bool
urn_tcp_recv(int fd, struct msghdr *msg, int flags, ssize_t *n)
{
	int err;
	struct urn_tcp *t;

	/* A call that does not wait may be a log's, between accept() and fork() (socat). */
	if (!(flags & MSG_DONTWAIT))
		urn_tcp_held_all();
	t = urn_tcp_begin(fd, flags, &err);
	if (t == NULL)
		return false;
	if (err == 0 && flags & MSG_ERRQUEUE)
		err = EAGAIN;
	if (err == 0 && (flags & MSG_OOB || msg->msg_iovlen > IOV_MAX))
		err = EINVAL;
	if (err == 0 && flags & MSG_TRUNC)
		err = EOPNOTSUPP;
	*n = -1;
	if (err == 0)
		*n = urn_tcp_recv_all(t, msg->msg_iov, msg->msg_iovlen, flags);
	else
		errno = err;
	err = errno;
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	urn_tcp_put(t);
	errno = err;
	return true;
}

static uint32_t
urn_tcp_stash_bytes(const struct urn_tcp *t)
{
	return atomic_load(&t->used) - atomic_load(&t->at);
}

bool
urn_tcp_waiting(int fd, int *bytes)
{
	struct urn_tcp *t = urn_tcp_get(fd);
	bool stream = urn_tcp_state(t) == URN_TCP_STREAM ||
		      (urn_tcp_state(t) == URN_TCP_HELD && urn_tcp_settle(t, fd) == URN_TCP_STREAM);
	uint32_t before;

	if (stream) {
		pthread_mutex_lock(&t->reading);
		do
			before = urn_tcp_stash_bytes(t);
		while (urn_tcp_stash(t, URN_TCP_STASH) == 0 && urn_tcp_stash_bytes(t) > before);
		*bytes = (int)urn_tcp_stash_bytes(t);
		pthread_mutex_unlock(&t->reading);
	}
	urn_tcp_put(t);
	return stream;
}

/* ---- files */

/* Send a part of a file. returns: bytes sent; 0: its end; -1 with errno */
static ssize_t
urn_tcp_send_file(struct urn_tcp *t, int from, off_t at, size_t len)
{
	struct iovec iov = {.iov_len = URN_TCP_COPY};
	ssize_t got;
	int err;

	iov.iov_base = malloc(URN_TCP_COPY);
	if (iov.iov_base == NULL)
		return -1;
	got = pread(from, iov.iov_base, len < URN_TCP_COPY ? len : URN_TCP_COPY, at);
	if (got > 0) {
		iov.iov_len = (size_t)got;
		got = urn_tcp_send_all(t, &iov, 1, 0);
	}
	err = errno;
	free(iov.iov_base);
	errno = err;
	return got;
}

/* returns: like sendfile() */
static ssize_t
urn_tcp_send_files(struct urn_tcp *t, int from, off_t *place, size_t len)
{
	off_t at = place != NULL ? *place : lseek(from, 0, SEEK_CUR);
	ssize_t sent = 1;
	size_t done = 0;

	if (at < 0) {
		errno = errno == ESPIPE ? EINVAL : errno; /* no file that can be sent */
		return -1;
	}
	while (sent > 0 && done < len) {
		sent = urn_tcp_send_file(t, from, at, len - done);
		done += sent > 0 ? (size_t)sent : 0;
		at += sent > 0 ? sent : 0;
	}
	if (place != NULL)
		*place = at;
	else
		(void)lseek(from, at, SEEK_SET);
	return done > 0 || sent >= 0 ? (ssize_t)done : -1;
}

bool
urn_tcp_sendfile(int to, int from, off_t *at, size_t len, ssize_t *n)
{
	int err;
	struct urn_tcp *t = urn_tcp_begin(to, 0, &err);

	if (t == NULL)
		return false;
	*n = -1;
	if (err == 0) {
		*n = urn_tcp_send_files(t, from, at, len);
		err = errno;
	}
	urn_tcp_put(t);
	errno = err;
	return true;
}
