/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram sockets over messages (DB-11), with the meaning of POSIX's calls. Addresses are IPv4 and
 * IPv6 addresses of urnic's nodes, ports are those of UDP. Datagrams are reliable: a send that
 * succeeds has put the datagram into the receiver's queue. doc/reference/sockets.md says where
 * urnic differs from UDP sockets.
 *
 * All calls return -1 with errno set on failure, and urn_attach_error() says why a control call
 * failed. Several threads may use one socket. Parent and child may both use a socket that was open
 * at fork(), when the dataplane is in another process.
 *
 * Further to POSIX's errors: ECONNREFUSED: no socket is bound to the port; EHOSTUNREACH: no such
 * node, or one that does not answer; ENOBUFS: the receiver's queue stayed full; EACCES: the
 * receiver takes no messages from here; EIO: the dataplane is gone.
 */
#ifndef URNIC_SOCKET_H
#define URNIC_SOCKET_H

#include <urnic/msg.h>

#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Bytes of the largest datagram: that of UDP over IPv4. */
enum { URN_DATAGRAM_MAX = 65507 };

/*
 * Use a device for the sockets that this process makes from now on; without this call the first
 * urn_socket() connects to the dataplane of URNIC_SOCKET and URNIC_NODE. The device stays the
 * caller's, and open until the sockets are closed. NULL: connect again. returns: 0, or an errno
 * value
 */
int urn_socket_use(struct urn_msg_dev *dev);

/*
 * Make a socket.
 *
 * domain: AF_INET or AF_INET6
 * type: SOCK_DGRAM, with SOCK_NONBLOCK and SOCK_CLOEXEC
 * protocol: 0 or IPPROTO_UDP
 * returns: a descriptor for the calls below. While datagrams wait the descriptor is readable for
 * urn_poll(), and for poll() and epoll of the system after a call that got EAGAIN. With poll() or
 * epoll of the system use SOCK_NONBLOCK or MSG_DONTWAIT: the descriptor may be readable though no
 * datagram waits
 */
int urn_socket(int domain, int type, int protocol);
/*
 * Bind to a port of an own address, or of any (DB-11): EADDRINUSE, EADDRNOTAVAIL, EINVAL: bound
 * already. Port 0: a free one of 32768 to 60999. A socket that sends or connects without bind()
 * gets such a port.
 */
int urn_bind(int fd, const struct sockaddr *addr, socklen_t len);
/* Take datagrams of one peer only, and send to it by default; AF_UNSPEC: of all again. */
int urn_connect(int fd, const struct sockaddr *addr, socklen_t len);
int urn_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int urn_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

/*
 * Send a datagram: copied, sent, and answered when the call returns.
 *
 * flags: MSG_DONTWAIT: the call does not wait for the answer; when the socket is connected, the
 * next call reports an error (SO_ERROR). EAGAIN: as many datagrams as the socket may have under way
 * are unanswered returns: bytes sent
 */
ssize_t urn_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		   socklen_t to_len);
ssize_t urn_sendmsg(int fd, const struct msghdr *msg, int flags);
/*
 * Receive a datagram.
 *
 * flags: MSG_DONTWAIT; MSG_PEEK: the datagram stays in the queue; MSG_TRUNC: return its whole
 * length returns: bytes received; a datagram's rest that finds no room is lost, and msg_flags has
 * MSG_TRUNC
 */
ssize_t urn_recvfrom(int fd, void *data, size_t room, int flags, struct sockaddr *from,
		     socklen_t *from_len);
ssize_t urn_recvmsg(int fd, struct msghdr *msg, int flags);

/* Like poll(); fds may be sockets of urn_socket() and other descriptors. */
int urn_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
/* Close; datagrams in the socket's queue are lost, unless another process has the socket, too. */
int urn_close(int fd);

/*
 * Options of SOL_SOCKET: SO_RCVTIMEO, SO_SNDTIMEO; SO_ERROR, SO_TYPE, SO_DOMAIN, SO_PROTOCOL to
 * read; SO_RCVBUF, SO_SNDBUF, SO_REUSEADDR, SO_REUSEPORT and SO_BROADCAST are taken, and change
 * nothing. Others: ENOPROTOOPT.
 */
int urn_setsockopt(int fd, int level, int option, const void *value, socklen_t len);
int urn_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
/* Make the socket non-blocking, or blocking again. */
int urn_set_nonblock(int fd, int on);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
