/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram sockets behind their descriptors (DB-11): the calls of urnic/socket.h and the preload
 * library are thin over them.
 *
 * A socket lies in memory that children of fork() share, beside the registers, which they share
 * too: parent and child use it like one open file. Each process that has a socket holds a lock on
 * the socket's byte of a file without a name; the kernel gives that lock back when the process ends
 * or executes another program. The process that lets go last ends the socket's register sets.
 */
#ifndef URN_MSG_SOCK_H
#define URN_MSG_SOCK_H

#include "msg/addr.h"
#include "msg/set.h"

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

/* Sockets of one device in all processes that share it. */
enum { URN_SOCKS_MAX = 4096 };
/* Datagrams that a socket's queue holds. */
enum { URN_SOCK_ENTRIES = 64 };
/* Bytes of the largest datagram; URN_DATAGRAM_MAX of urnic/socket.h. */
enum { URN_SOCK_DATAGRAM = 65507 };

/* The datagram of an outlet whose sender did not wait, while its answer has not been looked at. */
enum urn_outlet_flying {
	URN_OUTLET_IDLE,   /* there is none */
	URN_OUTLET_NAMED,  /* to an address of the call: nobody is told of an error */
	URN_OUTLET_TO_PEER /* to the peer: the socket's next call tells an error */
};

/* One register set by which a socket sends; set 0 receives, too. */
struct urn_outlet {
	pthread_mutex_t lock; /* lock protects the rest: the sender has it until the answer */
	uint32_t open;	      /* 1: there is a set; under the socket's lock */
	_Atomic uint32_t flying; /* enum urn_outlet_flying; read without the lock, too */
	struct urn_register_set set;
};

struct urn_socks;

struct urn_sock {
	pthread_mutex_t lock; /* lock protects the fields below but outlets, and the reading side of
				 set 0 */
	struct urn_socks *socks; /* constant while the socket is open */
	uint32_t used;		 /* 1: the slot is taken; under the lock of the table */
	uint64_t born;		 /* children that the processes had made before it; constant */
	uint32_t index;		 /* the slot's */
	int family;		 /* AF_INET or AF_INET6; constant */
	uint32_t bound;
	_Atomic uint32_t connected;
	struct urn_addr local;		   /* valid with bound */
	struct urn_addr peer;		   /* valid with connected */
	uint64_t rcvtimeo_ns, sndtimeo_ns; /* 0: none */
	_Atomic uint32_t error;		   /* errno value for the next call; 0: none */
	_Atomic uint32_t waiters;	   /* callers that sleep on the descriptor */
	_Atomic uint32_t eager; /* 1: the program polls the descriptor by calls that the library
				   does not see */
	_Atomic uint32_t nonblock;
	struct urn_outlet outlet[URN_PORT_OUTLETS];
};

/* ---- the sockets of a device (sock_table.c) */

/*
 * Register the handlers of fork(), once. fork() calls the handler before the child's making in the
 * opposite order, so folders above register theirs after this call: their locks are taken first.
 */
void urn_socks_forks(void);
/* The device for new sockets of this process, opened at the first call. NULL with errno and text
 * set */
struct urn_socks *urn_socks_get(void);
int urn_socks_use(struct urn_msg_dev *dev);
struct urn_msg_dev *urn_socks_dev(struct urn_socks *t);
/* Take a free slot, held by this process. NULL with errno: ENFILE */
struct urn_sock *urn_socks_take(struct urn_socks *t);
/* Let go of a slot. returns: true when no other process has the socket: end its sets, then
 * urn_socks_free() */
bool urn_socks_let_go(struct urn_sock *s);
void urn_socks_free(struct urn_sock *s);
/* End the sockets that no process has any more. May wait for children that fork() has just made.
 * returns: how many */
unsigned int urn_socks_reap(struct urn_socks *t);

/* ---- one socket; errno values are returned, and not set */

/* Make a socket. returns: 0, or an errno value */
int urn_sock_make(struct urn_sock **out, int family);
/* This process lets go of the socket. */
void urn_sock_drop(struct urn_sock *s);
/* End the socket's register sets; nobody has the socket any more. */
void urn_sock_end(struct urn_sock *s);
int urn_sock_bind(struct urn_sock *s, const struct urn_addr *a);
/* The socket has no port any more. */
void urn_sock_unbind(struct urn_sock *s);
/* a: NULL: connected no more */
int urn_sock_connect(struct urn_sock *s, const struct urn_addr *a);
/* Write the socket's own address, as getsockname() does. */
void urn_sock_name(struct urn_sock *s, struct urn_addr *a);
/* True when an address is the adapter's. */
bool urn_sock_own(struct urn_sock *s, const uint8_t gid[16]);

/*
 * Send one datagram.
 *
 * to: NULL: to the connected peer
 * wait: wait for the answer, at most sndtimeo_ns
 * returns: 0, or an errno value
 */
int urn_sock_send(struct urn_sock *s, const struct iovec *iov, size_t n, const struct urn_addr *to,
		  bool wait);
/* Wait until datagrams that were sent without a wait are answered, 100 ms at most: their sender is about to end. */
void urn_sock_flush(struct urn_sock *s);
/*
 * Look at the answers to datagrams whose sender did not wait. returns: true when the socket has a
 * peer and some answer is still to come: the next call would tell an error
 */
bool urn_sock_expects(struct urn_sock *s);
/* True when a datagram can be sent without a wait. */
bool urn_sock_writable(struct urn_sock *s);

/* A datagram that was received. */
struct urn_sock_got {
	struct urn_addr from;
	size_t len;    /* bytes of the datagram */
	size_t copied; /* bytes that found room */
};

/* Receive one datagram without a wait. peek: it stays. returns: 0, EAGAIN, or an error of a
 * datagram sent before */
int urn_sock_recv(struct urn_sock *s, const struct iovec *iov, size_t n, bool peek,
		  struct urn_sock_got *got);
/* Bytes of the oldest datagram (FIONREAD); 0: there is none. */
size_t urn_sock_next_len(struct urn_sock *s);
/* True when datagrams wait. */
static inline bool
urn_sock_readable(const struct urn_sock *s)
{
	return urn_msg_set_waiting(&s->outlet[0].set) != 0;
}

/*
 * Wait until a datagram may be there: spin, then sleep on the descriptor.
 *
 * end: a time of urn_clock_ns() when the wait is over; 0: never
 * other: a descriptor whose input ends the wait, too; -1: none
 * returns: 0, EAGAIN: the time is over; EINTR; EIO: the dataplane is gone
 */
int urn_sock_wait(struct urn_sock *s, uint64_t end, int other);
/*
 * True when a wait that a signal ended is to go on: all handlers of the process have SA_RESTART.
 * Which signal it was, no call tells; so one handler without SA_RESTART ends waits for all signals.
 */
bool urn_sock_restarts(void);
/* The descriptor of the socket's events. */
static inline int
urn_sock_fd(const struct urn_sock *s)
{
	return s->outlet[0].set.fd;
}
/* Make the descriptor tell the truth to pollers that the library does not see. returns: 0; EIO: the
 * dataplane is gone */
int urn_sock_show(struct urn_sock *s);
/*
 * The socket's descriptor was told readable once: the next datagram makes another event on it, also
 * while others wait. Takes no lock; the socket may be ending in another thread.
 */
void urn_sock_edge(struct urn_sock *s);

/* ---- poll */

/* One descriptor of a poll. */
struct urn_poll_ent {
	struct urn_sock *sock; /* NULL: another descriptor */
	uint32_t kernel;       /* 1: the descriptor itself is polled, too; without sock always */
};

/*
 * Poll sockets and other descriptors, like ppoll(). end: as for urn_sock_wait()
 *
 * returns: how many have events, 0 when the time is over, or -1 with errno
 */
int urn_sock_poll(struct pollfd *fds, nfds_t n, const struct urn_poll_ent *ent, uint64_t end,
		  const sigset_t *mask);
/* Look at the rings for a little while, at most until `end`. returns: true when a socket became
 * readable */
bool urn_sock_spin(const struct urn_poll_ent *ent, nfds_t n, uint64_t end);
/* A sleeper comes or goes. returns: true when datagrams wait, so that nobody sleeps */
bool urn_sock_sleeper(struct urn_sock *s, bool comes);
/* The time until `end`, as a bound for a sleep. returns: ts; NULL: there is no bound */
const struct timespec *urn_sock_left(uint64_t end, struct timespec *ts);
/* The shorter one of a bound for a sleep (NULL: none) and 1 ms: no descriptor will wake the
 * sleeper. */
const struct timespec *urn_sock_nap(const struct timespec *left);
/* Time of urn_clock_ns() that lies so far ahead; ns: 0: at once, negative: never. returns: for
 * `end` */
uint64_t urn_sock_end_of(int64_t ns);

#endif
