/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <limits.h>

/* ---- streams */

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int
wait_ms(const struct urn_rs *rs, int flags)
{
	return urn_rs_nonblocking(rs, flags) ? 0 : -1;
}

/* True when the connection is there, or will be. */
static bool
has_connection(const struct urn_rs *rs)
{
	return rs->state >= URN_RS_CONNECTING;
}

/* Why a stream takes no bytes: a errno value; 0: it takes some. */
static int
write_error(const struct urn_rs *rs)
{
	if (rs->state == URN_RS_FAILED)
		return rs->why;
	if (rs->state == URN_RS_DOWN)
		return rs->why != 0 ? rs->why : ECONNRESET;
	return rs->writable ? 0 : EPIPE;
}

/* Send one part of a message. *step: bytes of the next WRITE at most. returns: 0, or an errno
 * value; *sent grows */
static int
send_part(struct urn_rs *rs, const uint8_t *buf, size_t len, int flags, size_t *step, size_t *sent)
{
	while (len != 0) {
		int64_t n;
		int err = 0;

		if (rs->state != URN_RS_UP || !rs->writable || !urn_rs_tx_ready(&rs->tx))
			err = urn_rs_wait(rs, urn_rs_can_write, wait_ms(rs, flags));
		if (err == 0)
			err = write_error(rs);
		if (err != 0)
			return err;
		n = urn_rs_post_data(rs, buf, least(len, *step));
		if (n < 0)
			return rs->why;
		if (*step < URN_RS_LONGEST_WRITE)
			*step *= 2;
		buf += n;
		len -= (size_t)n;
		*sent += (size_t)n;
	}
	return 0;
}

static ssize_t
send_stream(struct urn_rs *rs, const struct iovec *iov, int n, int flags)
{
	size_t sent = 0, step = URN_RS_FIRST_WRITE;
	int err = 0;

	if (!has_connection(rs))
		return urn_cma_result(ENOTCONN);
	/* Completions free what this call needs, and tell of the connection's end. */
	urn_rs_step(rs);
	if (rs->untold)
		err = urn_rs_tell_regions(rs, flags);
	for (int i = 0; err == 0 && i < n; i++)
		err = send_part(rs, iov[i].iov_base, iov[i].iov_len, flags, &step, &sent);
	return sent != 0 || err == 0 ? (ssize_t)sent : urn_cma_result(err);
}

/* Why a stream gives no bytes: an errno value; 0: its end is reached. */
static int
read_error(const struct urn_rs *rs)
{
	return rs->state == URN_RS_FAILED || rs->state == URN_RS_DOWN ? rs->why : 0;
}

/* returns: true when the program's memory is full */
static bool
read_parts(struct urn_rs *rs, const struct iovec *iov, int n, bool peek, size_t *got)
{
	size_t skip = *got;

	for (int i = 0; i < n; i++) {
		size_t len = iov[i].iov_len, m;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len -= skip;
		m = urn_rs_rx_read(&rs->rx, (uint8_t *)iov[i].iov_base + skip, len, peek);
		*got += m;
		skip = 0;
		if (m < len || peek)
			return m == len && peek;
	}
	return true;
}

static ssize_t
recv_stream(struct urn_rs *rs, const struct iovec *iov, int n, int flags)
{
	bool peek = (flags & MSG_PEEK) != 0, full;
	size_t got = 0, wanted = 0;
	int err;

	if (!has_connection(rs))
		return urn_cma_result(ENOTCONN);
	for (int i = 0; i < n; i++)
		wanted += iov[i].iov_len;
	if (wanted == 0)
		return 0;
	do {
		err = rs->rx.bytes == 0 ? urn_rs_wait(rs, urn_rs_can_read, wait_ms(rs, flags)) : 0;
		if (err != 0 || rs->rx.bytes == 0)
			break;
		full = read_parts(rs, iov, n, peek, &got);
		urn_rs_post_credits(rs);
	} while (!full && !peek && (flags & MSG_WAITALL));
	if (got == 0 && err == 0)
		err = read_error(rs);
	return got != 0 || err == 0 ? (ssize_t)got : urn_cma_result(err);
}

/* ---- the calls */

static ssize_t
recv_any(int socket, const struct iovec *iov, int n, int flags, struct sockaddr *src,
	 socklen_t *src_len, int *out_flags)
{
	struct urn_rs *rs = urn_rs_get(socket);
	ssize_t got;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->receiving);
	pthread_mutex_lock(&rs->lock);
	if (rs->type == SOCK_DGRAM)
		got = urn_rs_dgram_recv(rs, iov, n, flags, src, src_len, out_flags);
	else
		got = recv_stream(rs, iov, n, flags);
	if (rs->type == SOCK_STREAM && got > 0 && src != NULL && src_len != NULL)
		urn_rs_addr_out(rs, &rs->id->route.addr.dst_addr, src, src_len);
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_unlock(&rs->receiving);
	urn_rs_put(rs);
	return got;
}

static ssize_t
send_any(int socket, const struct iovec *iov, int n, int flags, const struct sockaddr *dst,
	 socklen_t dst_len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	ssize_t sent;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->sending);
	pthread_mutex_lock(&rs->lock);
	if (rs->type == SOCK_DGRAM)
		sent = urn_rs_dgram_send(rs, iov, n, flags, dst, dst_len);
	else if (dst != NULL || dst_len != 0)
		sent = urn_cma_result(EISCONN);
	else
		sent = send_stream(rs, iov, n, flags);
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_unlock(&rs->sending);
	urn_rs_put(rs);
	return sent;
}

/* True when a number of parts is possible; else errno is set. */
static bool
parts_good(long n)
{
	if (n >= 0 && n <= IOV_MAX)
		return true;
	errno = EINVAL;
	return false;
}

ssize_t
rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

ssize_t
rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src, socklen_t *src_len)
{
	struct iovec v = {.iov_base = buf, .iov_len = len};

	return recv_any(socket, &v, 1, flags, src, src_len, NULL);
}

ssize_t
rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	socklen_t *len = msg->msg_name != NULL ? &msg->msg_namelen : NULL;
	int out = 0;
	ssize_t got;

	if (!parts_good((long)msg->msg_iovlen))
		return -1;
	got = recv_any(socket, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name, len, &out);
	if (got >= 0) {
		msg->msg_flags = out;
		msg->msg_controllen = 0; /* there are no ancillary data */
	}
	return got;
}

ssize_t
rread(int socket, void *buf, size_t count)
{
	return rrecvfrom(socket, buf, count, 0, NULL, NULL);
}

ssize_t
rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return parts_good(iovcnt) ? recv_any(socket, iov, iovcnt, 0, NULL, NULL, NULL) : -1;
}

ssize_t
rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t
rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dst,
	socklen_t dst_len)
{
	struct iovec v = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

	return send_any(socket, &v, 1, flags, dst, dst_len);
}

ssize_t
rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen != 0)
		return urn_cma_result(EOPNOTSUPP);
	if (!parts_good((long)msg->msg_iovlen))
		return -1;
	return send_any(socket, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name,
			msg->msg_name != NULL ? msg->msg_namelen : 0);
}

ssize_t
rwrite(int socket, const void *buf, size_t count)
{
	return rsendto(socket, buf, count, 0, NULL, 0);
}

ssize_t
rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return parts_good(iovcnt) ? send_any(socket, iov, iovcnt, 0, NULL, 0) : -1;
}
