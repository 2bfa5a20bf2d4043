/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP sockets of the program that may become streams of urnic's (doc/reference/sockets-tcp.md).
 *
 * The program's descriptor is the kernel's socket. connect() and listen() decide whose the bytes
 * are: a connection that is urnic's has all its bytes by a stream, and the kernel's socket stays
 * without a connection, so that a call that the library does not see finds none. A socket that is
 * the kernel's stays so.
 *
 *   tcp.c                 ─► sockets and their descriptors, the end of streams
 *   tcp_heir.c            ─► sockets that a child of fork() has from its parent
 *   tcp_held.c            ─► connections that were accepted, and not used so far
 *   tcp_device.c          ─► the device of streams, and its addresses
 *   tcp_name.c, tcp_make.c ─► names; connections are asked for, and taken
 *   tcp_data.c            ─► bytes
 *   tcp_wait.c, tcp_epoll.c, tcp_epoll_wait.c ─► waits
 *
 * Locks, in the order in which they are taken: a socket's `lock`; the lock of all (tcp.c); those of
 * streams (stream/shell/shell.h).
 */
#ifndef URN_SOCKETS_TCP_H
#define URN_SOCKETS_TCP_H

#include "sockets/twin.h"
#include "stream/shell/shell.h"

/* Stages of a socket. */
enum urn_tcp_state {
	URN_TCP_PLAIN,	/* the kernel's, and nothing is decided */
	URN_TCP_KERNEL, /* the kernel's for good */
	URN_TCP_ASKED,	/* a stream is asked for; no byte has gone */
	URN_TCP_STREAM, /* urnic's for good */
	URN_TCP_LISTEN, /* listener of urnic's, and of the kernel's with `kernel` */
	URN_TCP_HEIR,	/* listener of the process that made this one by fork(); this one's own is
			   made at its first use */
	URN_TCP_HELD,	/* accept() took a connection, which is answered at its first use */
	URN_TCP_LOST,	/* a stream of the process that made this one by fork() */
};

enum {
	URN_TCP_ASK_MS = 5000,	   /* time for a peer to answer; then the kernel connects */
	URN_TCP_REFUSED_MS = 1000, /* time for the kernel's connection behind a refusal */
	URN_TCP_STASH = 64 << 10,  /* bytes that MSG_PEEK and FIONREAD take in, at most */
	URN_TCP_LINGER_MS = 10000, /* time for a peer to take what was sent before the end */
	URN_TCP_HALF_MS = 1000,	   /* time for a peer's own end */
	URN_TCP_CLOSE_MS = 2,	   /* time of a close() itself */
	URN_TCP_TIDY_MS = 5,	   /* period of looks at streams that were closed */
	URN_TCP_HANDED_MS = 1000,  /* period of looks at requests handed on to other processes */
	URN_TCP_LATER_MS = 20,	   /* the same while the program waits */
	URN_TCP_BACKLOG = 4096,	   /* requests that wait, at most: net.core.somaxconn */
	URN_TCP_EXEC_MS = 200,	   /* time for a parent to close a connection behind fork() */
	URN_TCP_PARTS = 16,	   /* pieces of memory that go to a stream at once */
};

/* An epoll that a socket is in. Under the lock of all. */
struct urn_tcp_entry {
	struct urn_tcp_entry *next;	/* in the epoll's list */
	struct urn_tcp_entry *next_own; /* in the socket's list */
	struct urn_tcp_epoll *ep;	/* set for life */
	struct urn_tcp *tcp;		/* set for life */
	int fd;				/* the program's number; set for life */
	struct epoll_event event;	/* the program's */
	bool in_kernel;			/* the kernel's epoll has the socket */
	bool resting;			/* EPOLLONESHOT was told, or the end of one with EPOLLET */
	uint64_t seen;	   /* EPOLLET: `inputs` of the stream that were told; 0: none */
	uint32_t out_seen; /* EPOLLET: `blocked` when EPOLLOUT was told; valid with out */
	bool out;	   /* EPOLLET: EPOLLOUT was told */
};

/* A connection that accept() took, and that no process has answered. Under the lock of all. */
struct urn_tcp_held {
	struct urn_tcp *next;		/* in the list of all */
	struct urn_sh_request *request; /* owner; set for life */
	struct urn_stream_node *node; /* the request's; NULL: it came to the process that made this
					 one by fork() */
	uint64_t key;		      /* the listener's; set for life */
	_Atomic uint32_t *holders;    /* number of processes that have the socket, in memory that
					 they share; NULL: this process alone has it */
};

/* A socket of the program. */
struct urn_tcp {
	uint32_t refs;		       /* descriptors, and calls under way; under the lock of all */
	uint32_t watches;	       /* those of epoll_wait(), which keep the memory, and not the
					  connection; under the lock of all */
	bool ended;		       /* all others are gone; under the lock of all */
	struct urn_tcp_entry *entries; /* epolls that it is in; under the lock of all */
	uint64_t cookie;	/* the kernel's name of the socket; 0: unknown; set for life */
	int family;		/* AF_INET or AF_INET6; set for life */
	bool v6only;		/* takes no IPv4; under lock */
	_Atomic uint32_t state; /* enum urn_tcp_state; written under lock */
	_Atomic bool nonblock;	/* O_NONBLOCK of the descriptor's file */
	_Atomic bool zerocopy;	/* SO_ZEROCOPY of the kernel's socket; sends with MSG_ZEROCOPY want
				   a notice each */
	pthread_mutex_t lock;	/* protects states, and what follows up to `stash` */
	bool own;		/* bound to an address that the kernel has not */
	bool kernel;		/* LISTEN, HEIR: the kernel listens, too */
	uint64_t key;		/* LISTEN, HEIR: secret of the processes that share the port */
	uint32_t backlog;	/* LISTEN, HEIR: requests that may wait */
	bool reset;		/* SO_LINGER of 0 s: close() breaks the connection */
	struct urn_tcp_held *held; /* HELD; NULL: not held; changed under the lock of all, too */
	struct urn_stream *s;	/* ASKED, STREAM; set once */
	struct urn_stream_listener *l; /* LISTEN; set once */
	struct urn_addr local, peer;   /* STREAM, ASKED: names that the program is told; own: local
					  is valid before */
	struct sockaddr_storage to;    /* ASKED: the peer, for the kernel */
	socklen_t to_len;	       /* bytes of it */
	uint64_t deadline;	       /* ASKED: time of urn_sh_now() */
	_Atomic int err;	       /* errno value for SO_ERROR; 0: none */
	_Atomic bool told;	       /* STREAM: a call has told the error that ended it; LISTEN:
					  accept() has told that the dataplane is gone */
	_Atomic uint32_t blocked;      /* sends that found no room, since the start; for EPOLLET */
	_Atomic uint64_t rcvtimeo_ns, sndtimeo_ns; /* 0: none */

	pthread_mutex_t reading;   /* protects the stash, and the order of bytes */
	uint8_t *stash;		   /* bytes that were taken from the stream and not read; NULL */
	_Atomic uint32_t at, used; /* the first of them; behind the last */
};

/* ---- tcp.c */

/* The lock of all: table, references, epolls. */
void urn_tcp_hold(void);
void urn_tcp_release(void);
/*
 * Get the socket of a descriptor, with a reference. A descriptor that was closed unseen, and has
 * another file now, has none: its bytes must not go to a stream. NULL: the library has none of that
 * number
 */
struct urn_tcp *urn_tcp_get(int fd);
/* The same without that look at the file. */
struct urn_tcp *urn_tcp_ref(int fd);
void urn_tcp_put(struct urn_tcp *t);
/* A reference of epoll_wait(), and the end of n of them, which makes the list's entries invalid: a
 * close() of another thread ends the connection all the same. The lock of all is held for the
 * first. */
void urn_tcp_watch(struct urn_tcp *t);
void urn_tcp_unwatch(struct urn_tcp **t, size_t n);
/* The socket of a descriptor, without a reference; for comparisons. The lock of all is held. */
struct urn_tcp *urn_tcp_peek(int fd);
/* The program has a new TCP socket. returns: NULL: it stays the kernel's */
struct urn_tcp *urn_tcp_add(int fd, int family, bool nonblock);
void urn_tcp_set_nonblock(int fd, bool on);
/* The same as urn_twin_dup() and urn_twin_close(). */
void urn_tcp_dup(int from, int to);
void urn_tcp_close(int fd);
/* The streams of the program's device; NULL: there is no dataplane. */
struct urn_stream_node *urn_tcp_node(void);
/* Look at streams that were closed; now and then only. */
void urn_tcp_tidy(void);
/* Milliseconds that a wait may sleep until streams that were closed are to be looked at, or `left`
 * if that is less. left: -1: without end */
int urn_tcp_later(int left);
/* End a stream of the program, which is freed sooner or later. reset: at once, with an error */
void urn_tcp_let_go(struct urn_stream *s, bool reset);
/* The process is about to end by _exit(), maybe in a handler of a signal: peers get what was sent
 * on connections that were closed, within 10 s. Nobody else uses sockets from now on. */
void urn_tcp_leave(void);

/* ---- tcp_device.c */

/* Open the device that the environment names. returns: NULL: it is not there */
struct ibv_context *urn_tcp_device_open(void);
/* True when streams are to outlive an adapter. */
bool urn_tcp_in_session(void);
/* The same as urn_net_has() and urn_net_own(), for the device of streams. */
bool urn_tcp_net_has(const struct urn_addr *a);
bool urn_tcp_net_own(const struct urn_addr *a);

static inline uint32_t
urn_tcp_state(const struct urn_tcp *t)
{
	return t ? atomic_load(&t->state) : URN_TCP_KERNEL;
}

/* True when a listener has told of the dataplane's end, and nothing comes any more. */
static inline bool
urn_tcp_silent(const struct urn_tcp *t)
{
	return atomic_load(&t->state) == URN_TCP_LISTEN && atomic_load(&t->told);
}

/* True when bytes wait in the stash. */
static inline bool
urn_tcp_stashed(struct urn_tcp *t)
{
	return atomic_load(&t->used) != atomic_load(&t->at);
}

/* An errno value that programs of TCP sockets know. */
static inline int
urn_tcp_errno(int err)
{
	return err == EPROTO || err == ECONNABORTED || err == EIO ? ECONNRESET : err;
}

/* ---- tcp_heir.c */

/* The child's copy of a socket, in a child of fork(). */
void urn_tcp_heir_forked(struct urn_tcp *t);
/* Listen for streams, at a port that children of fork() may share. The lock is held. heir: this
 * process is such a child. returns: 0, or an errno value */
int urn_tcp_heir_listen(struct urn_tcp *t, bool heir);
/* A child of fork() uses a listener of its parent's: it gets its own. returns: the state */
uint32_t urn_tcp_heir_settle(struct urn_tcp *t);

/* ---- tcp_held.c */

/* accept() has taken a request, which becomes the socket's. l: the listener. returns: false: no
 * memory */
bool urn_tcp_held_begin(struct urn_tcp *t, const struct urn_tcp *l, struct urn_sh_request *request);
/* The first use: the connection is answered. returns: the state */
uint32_t urn_tcp_held_settle(struct urn_tcp *t);
/* The program may wait: all connections that no child of fork() has are answered. */
void urn_tcp_held_all(void);
/* The process closes its last descriptor of a socket, or ends. The last process answers, so that
 * the peer gets a connection that ends. */
void urn_tcp_held_close(struct urn_tcp *t);
/* The process is about to become another program, which has none of its streams: held connections
 * that the program would have go to the kernel. */
void urn_tcp_held_exec(void);
/* Forget requests that other processes have taken over; now and then. */
void urn_tcp_held_tidy(void);
/* The process ends, without a look at its connections. The lock of all is held, to the end. */
void urn_tcp_held_leave(void);
/* Before fork(), and in the child. The lock of all is held for the first. */
void urn_tcp_held_fork(void);
void urn_tcp_held_forked(void);

/* ---- tcp_make.c; like the calls of the same names */

extern const struct urn_stream_options urn_tcp_options;

int urn_tcp_connect(struct urn_tcp *t, int fd, const struct sockaddr *to, socklen_t len);
int urn_tcp_listen(struct urn_tcp *t, int fd, int backlog);
int urn_tcp_accept(struct urn_tcp *t, int fd, struct sockaddr *from, socklen_t *len, int flags);
/*
 * Look whether a connection that was asked for is there. One that is not goes to the kernel. So
 * does a listener that the kernel has, too, when the dataplane is gone.
 *
 * returns: the state
 */
uint32_t urn_tcp_settle(struct urn_tcp *t, int fd);
/* Milliseconds until urn_tcp_settle() has something to do by time alone, or `left` if that is less.
 * left: -1: without end */
int urn_tcp_patience(struct urn_tcp *t, int left);

/* ---- tcp_name.c; returns: false: the kernel's call does it. *err: the call's answer */

bool urn_tcp_bind(int fd, const struct sockaddr *addr, socklen_t len, int *err);
bool urn_tcp_name(int fd, struct sockaddr *addr, socklen_t *len, bool peer, int *err);
bool urn_tcp_shutdown(int fd, int how, int *err);
/* The kernel's socket has given an option's value: correct it. */
void urn_tcp_option(int fd, int level, int option, void *value, const socklen_t *len);
/* True when a connection of urnic's has not an option that the program wants to set: EOPNOTSUPP. */
bool urn_tcp_refuses(int fd, int level, int option, const void *value, socklen_t len);
/* The kernel's socket has taken an option. */
void urn_tcp_note(int fd, int level, int option, const void *value, socklen_t len);

/* ---- tcp_data.c; returns: false: the kernel's call does it. *n: the call's answer */

bool urn_tcp_send(int fd, const struct msghdr *msg, int flags, ssize_t *n);
bool urn_tcp_recv(int fd, struct msghdr *msg, int flags, ssize_t *n);
bool urn_tcp_sendfile(int to, int from, off_t *at, size_t len, ssize_t *n);
/* Bytes that wait (FIONREAD). */
bool urn_tcp_waiting(int fd, int *bytes);

/* ---- tcp_wait.c */

/* How a poll sleeps. */
struct urn_tcp_nap {
	const sigset_t *mask; /* NULL: the thread's own */
	bool twins;	      /* datagram sockets of urnic's are among the descriptors */
	bool quiet;	      /* signals are kept: `before` and `kept` are valid */
	sigset_t before;      /* the thread's own */
	const sigset_t *kept; /* those of the sleep: `mask`, or `before` */
};

/*
 * Keep signals for the sleep, and let them in again. A wait looks for a while before it sleeps: a
 * handler that ran then would not end the sleep, as it ends the kernel's. A wait that finds
 * something at its first look keeps none.
 *
 * arg: a struct urn_tcp_nap
 */
void urn_tcp_quiet(void *arg);
void urn_tcp_loud(struct urn_tcp_nap *nap);

/* Sleep; of urn_sh_poll(). arg: a struct urn_tcp_nap */
int urn_tcp_sleep(struct pollfd *fds, size_t n, int ms, void *arg);
/* Wait for a stream or listener. end: time of urn_clock_ns(), 0: never; also: a descriptor whose
 * input ends the wait; -1: none. returns: 0, EAGAIN: the time is over; EINTR, ... */
int urn_tcp_wait(struct urn_tcp *t, short events, uint64_t end, int also);
/* True when one of the descriptors is a stream, or may become one. */
bool urn_tcp_among(const struct pollfd *fds, nfds_t n);
int urn_tcp_poll(struct pollfd *fds, nfds_t n, uint64_t end, const sigset_t *mask);
/* Milliseconds until a time of urn_clock_ns(), rounded up. returns: -1: end is 0 */
int urn_tcp_left(uint64_t end);

/* A wait of the kernel's epoll alone begins or ends. returns: at the begin, false: the epoll has
 * sockets by now, and there is no such wait */
bool urn_tcp_epoll_plain(int epfd, bool begins);
/* True when there are such waits. */
bool urn_tcp_epoll_plains(void);

/* ---- tcp_epoll.c */

/* returns: false: the descriptor is none of these */
bool urn_tcp_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event, int *err);
/* True when the descriptor is an epoll that has, or had, sockets in it. */
bool urn_tcp_epoll_is(int epfd);
/* A socket has another state: entries move. The lock of all is not held. */
void urn_tcp_epoll_moved(struct urn_tcp *t);
/* A send found no room: waits for EPOLLOUT begin anew. */
void urn_tcp_epoll_blocked(struct urn_tcp *t);
/* The socket ends, and epolls tell of it no more; a descriptor that may be an epoll is closed; in a
 * child of fork(). The lock of all is held. */
void urn_tcp_epoll_forget(struct urn_tcp *t);
void urn_tcp_epoll_closed(int epfd);
void urn_tcp_epoll_forked(void);

/* ---- tcp_epoll_wait.c */

int urn_tcp_epoll_wait(int epfd, struct epoll_event *events, int room, uint64_t end,
		       const sigset_t *mask);
/* Take the library's own event out of those of the kernel. returns: how many are left */
int urn_tcp_epoll_sift(int epfd, struct epoll_event *events, int n);

#endif
