/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives of several pieces of memory. */
#include "stream/shell/shell.h"

#include "attach/fail.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { GATHERED = 8192 }; /* bytes that go in one send when their pieces are small */

/* Copy pieces together, from piece *i on. returns: bytes, 0 when the first piece is long enough to
 * go alone; *i: the first piece that is not in */
static size_t
gather(uint8_t *to, const struct iovec *iov, int n, int *i)
{
	size_t bytes = 0;

	for (; *i < n && iov[*i].iov_len <= GATHERED - bytes; (*i)++) {
		if (iov[*i].iov_len)
			memcpy(to + bytes, iov[*i].iov_base, iov[*i].iov_len);
		bytes += iov[*i].iov_len;
	}
	return bytes;
}

static bool
is_count(int n)
{
	return n >= 0 && n <= IOV_MAX;
}

ssize_t
urn_stream_sendv(struct urn_stream *s, const struct iovec *iov, int n, uint32_t flags)
{
	uint8_t small[GATHERED];
	size_t done = 0;
	ssize_t sent = 0;

	if (!is_count(n))
		return urn_fail(EINVAL, "%d pieces of memory", n), -1;
	if (urn_sh_send_flags(s, flags) != 0)
		return -1;
	/* The pieces of one call stay together. */
	if (!urn_sh_enter(&s->sending, flags))
		return urn_fail(EAGAIN, "another call sends"), -1;
	for (int i = 0; i < n;) {
		size_t bytes = gather(small, iov, n, &i);
		const void *from = small;

		if (!bytes && i < n) {
			from = iov[i].iov_base;
			bytes = iov[i++].iov_len;
		}
		sent = urn_sh_send(s, from, bytes, flags);
		done += sent > 0 ? (size_t)sent : 0;
		if (sent < 0 || (size_t)sent < bytes)
			break;
	}
	pthread_mutex_unlock(&s->sending);
	return done || sent >= 0 ? (ssize_t)done : -1;
}

ssize_t
urn_stream_recvv(struct urn_stream *s, const struct iovec *iov, int n, uint32_t flags)
{
	size_t done = 0;
	ssize_t got = 0;

	if (!is_count(n))
		return urn_fail(EINVAL, "%d pieces of memory", n), -1;
	if (urn_sh_recv_flags(flags) != 0)
		return -1;
	if (!urn_sh_enter(&s->receiving, flags))
		return urn_fail(EAGAIN, "another call receives"), -1;
	for (int i = 0; i < n; i++) {
		bool all = flags & URN_STREAM_WAITALL;
		uint32_t how = done && !all ? flags | URN_STREAM_DONTWAIT : flags;

		got = urn_sh_recv(s, iov[i].iov_base, iov[i].iov_len, how);
		done += got > 0 ? (size_t)got : 0;
		if (got < 0 || (size_t)got < iov[i].iov_len)
			break;
	}
	pthread_mutex_unlock(&s->receiving);
	return done || got >= 0 ? (ssize_t)done : -1;
}
