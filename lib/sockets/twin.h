/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A UDP socket of the program and its twin: the program's descriptor is the kernel's socket as it
 * always was, and beside it there may be a socket of urnic's (lib/msg/sock.h). Datagrams to
 * addresses of urnic nodes go by the twin, all others by the kernel; the program receives from
 * both. So every call that the library does not see still has a socket of the kernel's. A program
 * that exec() puts in this one's place gets a twin with the same name (heir.h).
 */
#ifndef URN_SOCKETS_TWIN_H
#define URN_SOCKETS_TWIN_H

#include "msg/sock.h"
#include "sockets/real.h"

#include <errno.h>

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
	int own; /* a descriptor of this entry's for the urnic socket, if another entry has the
		    socket in the same epoll; -1: none; owner */
	struct epoll_event event; /* the program's */
};

struct urn_twin {
	uint32_t refs; /* descriptors of this process, and calls under way; under the lock */
	int family;    /* constant */
	uint64_t cookie;	       /* the kernel's socket (SO_COOKIE); 0: unknown; constant */
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
	struct urn_twin *free_next;    /* the next of those in no use; under the lock */
	/* Name and peer that the program before exec() left; the urnic socket is made at the first
	 * call that needs it. */
	_Atomic bool pending;		 /* it has not been made; the four below are valid */
	bool heir_bound, heir_connected; /* constant with pending */
	struct urn_addr local, peer;	 /* valid with heir_bound, heir_connected; constant so */
	_Atomic int heir_err;		 /* errno value of the last try; 0: there was none */
	_Atomic uint64_t heir_next;	 /* ms of urn_clock_ms(), when to try again; 0: at once */
};

/* Get the twin of a descriptor, with a reference that urn_twin_put() gives back. NULL: it has none
 */
struct urn_twin *urn_twin_get(int fd);
/* The same for a call that needs no urnic socket: one from before exec() stays to be made. */
struct urn_twin *urn_twin_peek(int fd);
void urn_twin_put(struct urn_twin *t);
/* The twin of a descriptor, without a reference and a lock: its memory stays a twin's, but may soon
 * be another one's. Look again by urn_twin_has() after reading. */
const struct urn_twin *urn_twin_glance(int fd);
/* All descriptors with twins lie below. */
int urn_twin_top(void);
/* True when the descriptor is the twin's still: another thread may have closed it. */
bool urn_twin_has(const struct urn_twin *t, int fd);
/* Take and give back the lock of twins. */
void urn_twin_hold(void);
void urn_twin_release(void);
/* The kernel's name of a socket, which no other has; 0: none. */
uint64_t urn_twin_cookie(int fd);
/* The program has a new UDP socket. */
void urn_twin_add(int fd, int family, bool nonblock);
/* The program has set O_NONBLOCK of a descriptor. */
void urn_twin_set_nonblock(int fd, bool on);
/* A descriptor that came over exec() is a UDP socket; tell: writes the rest of the twin before
 * others see it. */
void urn_twin_add_heir(int fd, int family,
		       void (*tell)(struct urn_twin *t, int fd, const void *arg), const void *arg);
/* Descriptor `to` is now another one for the socket of `from`, if that has a twin; *to* was none
 * before. */
void urn_twin_dup(int from, int to);
/* The program closes a descriptor, or puts another file in its place. */
void urn_twin_close(int fd);

/* The urnic socket of a twin, made now if need be. NULL with errno: there is no dataplane, ... */
struct urn_sock *urn_twin_sock(struct urn_twin *t);
/*
 * Make the urnic socket that a twin had before exec(), with its port and peer (settle.c). The first
 * call tries for up to a second, while the port is the old program's still; later ones try
 * once, ten times a second at most. returns: 0: it is there; or an errno value
 */
int urn_twin_settle(struct urn_twin *t);
/* The urnic socket of a twin from before exec() is made. returns: false: another thread's is */
bool urn_twin_install(struct urn_twin *t, struct urn_sock *s);
/* A socket is to get a port: sockets from before exec() that have it take it first. */
void urn_twin_claim(uint16_t port);
/* This program has taken the place of one with sockets: ports of these become free within the next
 * second. */
void urn_twin_replaced(void);
/* Bind like urn_sock_bind(); a port that may be about to become free is waited for. */
int urn_twin_bind(struct urn_sock *s, const struct urn_addr *a);
/* The answer of a call on a twin that urn_twin_settle() could not settle; 0: the call goes on. */
int urn_twin_unsettled(const struct urn_twin *t);
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

/* True when an urnic socket was not made for want of room, though a dataplane is there. err: errno
 */
static inline bool
urn_twin_is_full(int err)
{
	return err == ENOMEM || err == ENFILE || err == EMFILE || err == EDQUOT || err == ENOBUFS;
}
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
/* True when an address is in the network of an own address, as far as that shows the network. */
bool urn_net_near(const uint8_t own[16], const struct urn_addr *a);
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
