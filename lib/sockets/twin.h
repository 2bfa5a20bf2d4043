/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A UDP socket of the program and its twin: the program's descriptor is the kernel's socket as it
 * always was, and beside it there may be a socket of urnic's (lib/msg/sock.h). Datagrams to
 * addresses of urnic nodes go by the twin, all others by the kernel; the program receives from
 * both. So every call that the library does not see, and a program that exec() puts in this one's
 * place, still have a socket of the kernel's.
 */
#ifndef URN_SOCKETS_TWIN_H
#define URN_SOCKETS_TWIN_H

#include "msg/sock.h"
#include "sockets/real.h"

/* Descriptors that can have a twin. */
enum { URN_TWIN_FDS = 65536 };

/* An epoll that the program has put its descriptor in. */
struct urn_twin_epoll {
	struct urn_twin_epoll *next;
	int epfd, fd;		  /* the program's numbers */
	struct epoll_event event; /* the program's */
};

struct urn_twin {
	uint32_t refs; /* descriptors of this process, and calls under way; under the lock */
	int family;    /* constant */
	struct urn_sock *_Atomic sock; /* NULL: the kernel's socket is all there is */
	_Atomic bool kernel;	       /* the kernel's socket may get datagrams */
	_Atomic bool to_urnic;	       /* connected to a urnic node */
	_Atomic bool
		nonblock; /* O_NONBLOCK of the descriptor's file, by the calls that set it here */
	_Atomic bool info4, info6;     /* the program wants IP_PKTINFO, IPV6_RECVPKTINFO */
	struct urn_twin_epoll *epolls; /* under the lock */
};

/* Get the twin of a descriptor, with a reference that urn_twin_put() gives back. NULL: it has none
 */
struct urn_twin *urn_twin_get(int fd);
void urn_twin_put(struct urn_twin *t);
/* The program has a new UDP socket. */
void urn_twin_add(int fd, int family, bool nonblock);
/* The program has set O_NONBLOCK of a descriptor. */
void urn_twin_set_nonblock(int fd, bool on);
/* Descriptor `to` is now another one for the socket of `from`, if that has a twin; *to* was none
 * before. */
void urn_twin_dup(int from, int to);
/* The program closes a descriptor, or puts another file in its place. */
void urn_twin_close(int fd);

/* The urnic socket of a twin, made now if need be. NULL with errno: there is no dataplane, ... */
struct urn_sock *urn_twin_sock(struct urn_twin *t);
/*
 * The dataplane is gone, or the process that connected to it: make the urnic socket anew, with its
 * name and peer. returns: true: there is a new one
 */
bool urn_twin_revive(struct urn_twin *t, struct urn_sock *dead);
/* End the urnic socket that a call has made in vain. */
void urn_twin_unmake(struct urn_twin *t);

/* epoll_ctl() for a descriptor with a twin. */
int urn_twin_epoll(struct urn_twin *t, int epfd, int op, int fd, struct epoll_event *event);

/* True when an address is that of a urnic node: the kernel has no way there. */
bool urn_net_has(const struct urn_addr *a);
/* For fork(): no thread is within these while a child is made. */
void urn_net_fork_hold(void);
void urn_net_fork_parent(void);
void urn_net_fork_child(void);
/* True when an address is the adapter's own. */
bool urn_net_own(const struct urn_addr *a);

/* ---- data; like the calls of the same names. t: with a reference */

ssize_t urn_twin_send(struct urn_twin *t, int fd, const struct msghdr *msg, int flags);
/* t->sock is set */
ssize_t urn_twin_recv(struct urn_twin *t, int fd, struct msghdr *msg, int flags);
int urn_twin_poll(struct pollfd *fds, nfds_t n, uint64_t end, const sigset_t *mask);
/* True when one of the descriptors has a urnic socket. */
bool urn_twin_among(const struct pollfd *fds, nfds_t n);

#endif
