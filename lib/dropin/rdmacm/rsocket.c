/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream sockets over RDMA (rsockets) are not there: rsocket() fails with EOPNOTSUPP, and since no
 * descriptor is an rsocket, the other calls fail with EBADF. rpoll() and rselect() take other
 * descriptors too, as programs use them.
 */
#include "dropin/rdmacm/rdmacm.h"

#include <rdma/rsocket.h>

int
rsocket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	return urn_cma_result(EOPNOTSUPP);
}

int
rbind(int socket, const struct sockaddr *addr, socklen_t len)
{
	(void)socket, (void)addr, (void)len;
	return urn_cma_result(EBADF);
}

int
rlisten(int socket, int backlog)
{
	(void)socket, (void)backlog;
	return urn_cma_result(EBADF);
}

int
raccept(int socket, struct sockaddr *addr, socklen_t *len)
{
	(void)socket, (void)addr, (void)len;
	return urn_cma_result(EBADF);
}

int
rconnect(int socket, const struct sockaddr *addr, socklen_t len)
{
	(void)socket, (void)addr, (void)len;
	return urn_cma_result(EBADF);
}

int
rshutdown(int socket, int how)
{
	(void)socket, (void)how;
	return urn_cma_result(EBADF);
}

int
rclose(int socket)
{
	(void)socket;
	return urn_cma_result(EBADF);
}

ssize_t
rrecv(int socket, void *buf, size_t len, int flags)
{
	(void)socket, (void)buf, (void)len, (void)flags;
	return urn_cma_result(EBADF);
}

ssize_t
rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src, socklen_t *src_len)
{
	(void)socket, (void)buf, (void)len, (void)flags, (void)src, (void)src_len;
	return urn_cma_result(EBADF);
}

ssize_t
rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	(void)socket, (void)msg, (void)flags;
	return urn_cma_result(EBADF);
}

ssize_t
rsend(int socket, const void *buf, size_t len, int flags)
{
	(void)socket, (void)buf, (void)len, (void)flags;
	return urn_cma_result(EBADF);
}

ssize_t
rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dst,
	socklen_t dst_len)
{
	(void)socket, (void)buf, (void)len, (void)flags, (void)dst, (void)dst_len;
	return urn_cma_result(EBADF);
}

ssize_t
rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	(void)socket, (void)msg, (void)flags;
	return urn_cma_result(EBADF);
}

ssize_t
rread(int socket, void *buf, size_t count)
{
	(void)socket, (void)buf, (void)count;
	return urn_cma_result(EBADF);
}

ssize_t
rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	(void)socket, (void)iov, (void)iovcnt;
	return urn_cma_result(EBADF);
}

ssize_t
rwrite(int socket, const void *buf, size_t count)
{
	(void)socket, (void)buf, (void)count;
	return urn_cma_result(EBADF);
}

ssize_t
rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	(void)socket, (void)iov, (void)iovcnt;
	return urn_cma_result(EBADF);
}

int
rgetpeername(int socket, struct sockaddr *addr, socklen_t *len)
{
	(void)socket, (void)addr, (void)len;
	return urn_cma_result(EBADF);
}

int
rgetsockname(int socket, struct sockaddr *addr, socklen_t *len)
{
	(void)socket, (void)addr, (void)len;
	return urn_cma_result(EBADF);
}

int
rsetsockopt(int socket, int level, int name, const void *val, socklen_t len)
{
	(void)socket, (void)level, (void)name, (void)val, (void)len;
	return urn_cma_result(EBADF);
}

int
rgetsockopt(int socket, int level, int name, void *val, socklen_t *len)
{
	(void)socket, (void)level, (void)name, (void)val, (void)len;
	return urn_cma_result(EBADF);
}

int
riounmap(int socket, void *buf, size_t len)
{
	(void)socket, (void)buf, (void)len;
	return urn_cma_result(EBADF);
}

off_t
riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	(void)socket, (void)buf, (void)len, (void)prot, (void)flags, (void)offset;
	return urn_cma_result(EBADF);
}

int
rfcntl(int socket, int cmd, ...)
{
	(void)socket, (void)cmd;
	return urn_cma_result(EBADF);
}

size_t
riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	(void)socket, (void)buf, (void)count, (void)offset, (void)flags;
	return (size_t)urn_cma_result(EBADF);
}

int
rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

int
rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}
