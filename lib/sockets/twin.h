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

/* Bits of the directions that shutdown() has ended. */
enum { URN_TWIN_SHUT_RD = 1, URN_TWIN_SHUT_WR = 2 };

/* An epoll that the program has put its descriptor in; all of it under the lock. */
struct urn_twin_epoll {
	struct urn_twin_epoll *next;		   /* the next of the same twin */
	struct urn_twin_epoll *all_next, **all_at; /* in the list of all */
	struct urn_twin *twin;
	int epfd, fd;		  /* the program's numbers */
	struct epoll_event event; /* the program's */
};

struct urn_twin {
	uint32_t refs; /* descriptors of this process, and calls under way; under the lock */
	int family;    /* constant */
	struct urn_sock *_Atomic sock; /* NULL: the kernel's socket is all there is */
	_Atomic bool kernel;	       /* the kernel's socket may get datagrams */
	_Atomic bool
		nonblock; /* O_NONBLOCK of the descriptor's file, by the calls that set it here */
	_Atomic bool info4, info6;     /* the program wants IP_PKTINFO, IPV6_RECVPKTINFO */
	_Atomic bool v6only;	       /* bound to any address with IPV6_V6ONLY */
	_Atomic bool cork;	       /* UDP_CORK */
	_Atomic uint32_t segment;      /* bytes, UDP_SEGMENT; 0: none */
	_Atomic uint32_t shut;	       /* URN_TWIN_SHUT_RD, ..._WR */
	_Atomic uint64_t sndtimeo_ns;  /* SO_SNDTIMEO; 0: none */
	struct urn_twin_epoll *epolls; /* under the lock */
};

/* Get the twin of a descriptor, with a reference that urn_twin_put() gives back. NULL: it has none
 */
struct urn_twin *urn_twin_get(int fd);
void urn_twin_put(struct urn_twin *t);
/* True when the descriptor is the twin's still: another thread may have closed it. */
bool urn_twin_has(const struct urn_twin *t, int fd);
/* Take and give back the lock of twins. */
void urn_twin_hold(void);
void urn_twin_release(void);
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
/*
 * A call is about to wait for datagrams of a socket that has neither a name nor a peer: make the
 * urnic socket now, because another thread may name the socket during the wait. t: may be NULL
 */
void urn_twin_early(struct urn_twin *t);
/*
 * An IPv4 socket wants the port of an IPv6 socket that takes no IPv4: the latter is the kernel's
 * alone from now on. returns: true: the port is free
 */
bool urn_twin_yield(uint16_t port);

/* True when the socket's peer is a urnic node. A process related by fork() may have connected it.
 */
static inline bool
urn_twin_to_urnic(const struct urn_twin *t)
{
	const struct urn_sock *s = atomic_load(&t->sock);

	return s != NULL && atomic_load(&s->connected);
}

/* ---- epoll (epoll.c) */

/* epoll_ctl() for a descriptor with a twin. */
int urn_epoll_ctl(struct urn_twin *t, int epfd, int op, int fd, struct epoll_event *event);
/* All epolls of a twin get its new urnic socket. */
void urn_epoll_put_in(struct urn_twin *t, struct urn_sock *s);
/* The twin ends. */
void urn_epoll_let_go(struct urn_twin *t);
/* The program closes a descriptor, which may be an epoll. */
void urn_epoll_closed(int epfd);
/* Make the kernel's events those that the program expects. returns: how many are left of n */
int urn_epoll_told(int epfd, struct epoll_event *events, int n);

/* ---- addresses (net.c) */

/* True when urnic has a network: there is a dataplane, or URNIC_SOCKETS_NET. */
bool urn_net_some(void);

/*
 * Read an address that a program sends or connects to. returns: true when it is that of a urnic
 * node, and of a family that the socket takes
 */
bool urn_twin_target(const struct urn_twin *t, struct urn_addr *a, const struct sockaddr *sa,
		     socklen_t len);
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
