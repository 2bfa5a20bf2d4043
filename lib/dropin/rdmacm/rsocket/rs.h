/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of rsockets: stream and datagram sockets over queue pairs.
 *
 * A socket has a number, which is the descriptor of its event channel, and a place in a table
 * (table.c). Nothing runs in the background but keepalive: each call of the program takes *steps*
 * (step.c), which fetch completions and events of connection management. A call that waits sleeps
 * in poll() on the descriptors of both (wait.c). A step that changes the socket
 * wakes the other waiters.
 *
 * `lock` protects a socket. No call sleeps with it held. `sending` and `receiving` make calls of
 * one direction follow each other; each is taken before `lock`. A call that waits with them held
 * gives them up when the socket is closed.
 */
#ifndef URN_RSOCKET_RS_H
#define URN_RSOCKET_RS_H

#include "dropin/rdmacm/rdmacm.h"

#include "dropin/rdmacm/rsocket/flow.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum {
	URN_RS_SQ = 384, /* work requests, at first */
	URN_RS_RQ = 384,
	URN_RS_QUEUE_LEAST = 16,
	URN_RS_QUEUE_MOST = 16384,
	URN_RS_INLINE = 64, /* bytes, at first */
	URN_RS_INLINE_MOST = 256,
	URN_RS_BUF = 1 << 17,	  /* bytes, at first */
	URN_RS_SPIN_US = 20,	  /* a waiter looks so long before it sleeps */
	URN_RS_LINGER_MS = 10000, /* rclose() waits so long for bytes to be sent */
	URN_RS_RTU_MS = 2000,	  /* ... or for a peer's RTU */
	URN_RS_KEEP_IDLE = 7200,  /* seconds, as the kernel has it */
};

enum urn_rs_state {
	URN_RS_NEW,
	URN_RS_BOUND,
	URN_RS_LISTENING,
	URN_RS_CONNECTING, /* the REQ is sent */
	URN_RS_ACCEPTING,  /* the REP is sent; the peer's RTU or first message is not there */
	URN_RS_UP,
	URN_RS_FAILED, /* no connection came about: `why` */
	URN_RS_DOWN,   /* the connection is over: `why`; 0: both sides ended it */
};

struct urn_rs;

/* A thread that sleeps; a socket's list has one for each. */
struct urn_rs_waiter {
	int fd; /* eventfd of the thread */
	LIST_ENTRY(urn_rs_waiter) next;
};

/* Memory of riomap(). */
struct urn_rs_region {
	struct ibv_mr *mr;
	uint64_t offset;
	uint32_t index; /* the peer's map entry */
	bool told;	/* the peer has it */
	LIST_ENTRY(urn_rs_region) next;
};

struct urn_rs_dgram;

struct urn_rs {
	int fd; /* the socket's number */
	int type, domain;
	atomic_uint refs; /* the table's and those of calls under way */
	pthread_mutex_t lock, sending, receiving;
	LIST_HEAD(, urn_rs_waiter) waiters;
	enum urn_rs_state state;
	int why;   /* errno value */
	int error; /* SO_ERROR; taken off by asking */
	bool readable, writable;
	bool closed;  /* by rclose() */
	bool foreign; /* the parent process's */
	int flags;    /* F_GETFL */
	int fd_flags; /* F_GETFD */
	/* Options. */
	uint32_t sndbuf, rcvbuf; /* bytes */
	uint32_t sq, rq;	 /* work requests */
	uint32_t inl;		 /* bytes of inline data */
	uint32_t iomaps;	 /* own map entries */
	bool reuse, nodelay, oobinline, v6only, keepalive;
	struct linger linger;
	int tos, keep_idle; /* keep_idle: seconds */
	/* Connection. */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	bool armed;   /* the completion queue tells its descriptor of the next completion */
	uint8_t *mem; /* one allocation: receive ring, send ring, control slots, target list */
	size_t mem_size;
	uint32_t *msgs;			     /* the receive ring's messages */
	struct ibv_mr *local_mr, *remote_mr; /* send ring and slots; receive ring; both in mem */
	struct ibv_mr *list_mr;		     /* target list and map entries */
	struct urn_rs_map *maps;	     /* own map entries, which the peer writes */
	struct urn_rs_rx rx;
	struct urn_rs_tx tx;
	uint32_t peer_iomaps;
	uint32_t recvs;	    /* receives to be posted anew */
	uint32_t in_flight; /* send requests without completion */
	LIST_HEAD(, urn_rs_region) regions;
	bool untold;		 /* a region is not told yet */
	LIST_ENTRY(urn_rs) keep; /* keepalive's list */
	bool kept;
	uint64_t keep_next;	    /* ms */
	struct urn_rs_dgram *dgram; /* SOCK_DGRAM */
};

typedef bool urn_rs_test(struct urn_rs *rs);

/* ---- table.c */

/* Find a socket and hold it. returns: NULL with errno set: not one of ours */
struct urn_rs *urn_rs_get(int fd);
void urn_rs_put(struct urn_rs *rs);
/* Make a socket; it is held once, for the table. returns: NULL with errno set */
struct urn_rs *urn_rs_new(int domain, int type);
/* Put a socket into the table. returns: 0, or an errno value */
int urn_rs_insert(struct urn_rs *rs);
/* Take a socket out of the table, with its hold. returns: NULL with errno set */
struct urn_rs *urn_rs_take(int fd);

/* ---- endpoint.c */

/*
 * Make queue pair, queues and buffers, and post the receives.
 *
 * state: the socket's from now on, CONNECTING or ACCEPTING
 * returns: 0, or an errno value
 */
int urn_rs_endpoint(struct urn_rs *rs, enum urn_rs_state state);
/* Free all that the socket has. */
void urn_rs_endpoint_free(struct urn_rs *rs);
/* Own private data. */
void urn_rs_own_conn(const struct urn_rs *rs, struct urn_rs_conn_wire *out);
/* Set the sizes of queues and buffers within what is possible. */
void urn_rs_sizes(struct urn_rs *rs);

/* ---- post.c; the lock is held */

/* Send bytes of the program's, at most `len`. returns: their number, or -1: the connection failed
 */
int64_t urn_rs_post_data(struct urn_rs *rs, const void *buf, size_t len);
/* Send bytes to memory of the peer's, without a message. returns: as above */
int64_t urn_rs_post_direct(struct urn_rs *rs, const struct urn_rs_sge *to, const void *buf,
			   size_t len);
/* Send a control message: a slot is free. returns: false: the connection failed */
bool urn_rs_post_ctrl(struct urn_rs *rs, enum urn_rs_ctrl ctrl);
/* Send the peer's map entry for a region. returns: as above */
bool urn_rs_post_region(struct urn_rs *rs, const struct urn_rs_region *r);
/* Tell the peer credits, if it is time. */
void urn_rs_post_credits(struct urn_rs *rs);
/* Post the receives that completed. */
void urn_rs_post_recvs(struct urn_rs *rs);

/* Kinds of work requests, in the upper byte of wr_id; below: bytes of the send ring. */
enum urn_rs_kind { URN_RS_KIND_RECV, URN_RS_KIND_DATA, URN_RS_KIND_CTRL };

static inline uint64_t
urn_rs_wr_id(enum urn_rs_kind kind, uint32_t bytes)
{
	return (uint64_t)kind << 56 | bytes;
}

/* ---- step.c; the lock is held */

/* Handle what has come. */
void urn_rs_step(struct urn_rs *rs);
/* Handle what has completed. returns: true when there was a completion */
bool urn_rs_completions(struct urn_rs *rs);
/* End the connection. why: errno value; 0: both sides ended it */
void urn_rs_down(struct urn_rs *rs, int why);
/* True when the connection was up once. */
static inline bool
urn_rs_connected(const struct urn_rs *rs)
{
	return rs->state == URN_RS_UP || rs->state == URN_RS_DOWN;
}
urn_rs_test urn_rs_can_read, urn_rs_can_write, urn_rs_is_settled, urn_rs_ctrl_or_end,
	urn_rs_all_sent, urn_rs_has_request;

/* ---- wait.c */

/*
 * Take steps until the test is true. The lock is held, and given up while the thread sleeps.
 *
 * ms: -1: without end; 0: one step
 * returns: 0, or an errno value: EAGAIN: not within the time; EINTR; EBADF: the socket was closed
 */
int urn_rs_wait(struct urn_rs *rs, urn_rs_test *test, int ms);
/* Wake all that sleep. The lock is held. */
void urn_rs_wake(struct urn_rs *rs);
/* The thread's own eventfd. returns: -1 with errno set */
int urn_rs_wake_fd(void);
/* In a child of fork(): the thread's eventfd is the parent's. */
void urn_rs_wake_forked(void);
/* Let the descriptors tell of what comes, and join the list of waiters. The lock is held. */
void urn_rs_watch(struct urn_rs *rs, struct urn_rs_waiter *w);
/* ... and leave it. fds: those of urn_rs_watch_fds(), after poll() */
void urn_rs_unwatch(struct urn_rs *rs, struct urn_rs_waiter *w, const struct pollfd *fds,
		    uint32_t n);
enum { URN_RS_WATCH_FDS = 2 };
/* Descriptors that tell of the socket. returns: their number */
uint32_t urn_rs_watch_fds(const struct urn_rs *rs, struct pollfd fds[URN_RS_WATCH_FDS]);
/* Milliseconds of a clock that only goes forward. */
uint64_t urn_rs_now_ms(void);

static inline bool
urn_rs_nonblocking(const struct urn_rs *rs, int flags)
{
	return (rs->flags & O_NONBLOCK) != 0 || (flags & MSG_DONTWAIT) != 0;
}

/* ---- connect.c */

/* True when an event of connection management waits; looked at without a system call. */
bool urn_rs_has_event(const struct urn_rs *rs);
/* Handle the next event of connection management. returns: false: there is none */
bool urn_rs_cm_event(struct urn_rs *rs);
/* Copy an address, as getsockname() does. */
void urn_rs_addr_out(const struct urn_rs *rs, const struct sockaddr *from, struct sockaddr *to,
		     socklen_t *len);

/* ---- iomap.c */

/* Tell the peer of new regions. returns: 0, or an errno value. The lock is held */
int urn_rs_tell_regions(struct urn_rs *rs, int flags);
void urn_rs_regions_free(struct urn_rs *rs);

/* ---- close.c */

/* Shut a direction down. The lock is held. returns: 0, or an errno value */
int urn_rs_shut(struct urn_rs *rs, int how, int ms);

/* ---- keepalive.c; all return 0, or an errno value */

int urn_rs_keepalive_set(struct urn_rs *rs, bool on);
/* The idle time changed. */
void urn_rs_keepalive_changed(struct urn_rs *rs);
/* In a child of fork(): no thread runs, and there are no connections. */
void urn_rs_keepalive_forked(void);

/* ---- poll.c */

/* The events of a socket, as poll() tells them. The lock is held. */
short urn_rs_events(struct urn_rs *rs, short asked);

/* ---- dgram.c */

int urn_rs_dgram_new(struct urn_rs *rs);
void urn_rs_dgram_free(struct urn_rs *rs);
int urn_rs_dgram_bind(struct urn_rs *rs, const struct sockaddr *addr);
int urn_rs_dgram_connect(struct urn_rs *rs, const struct sockaddr *addr);
ssize_t urn_rs_dgram_send(struct urn_rs *rs, const struct iovec *iov, int n, int flags,
			  const struct sockaddr *to, socklen_t to_len);
ssize_t urn_rs_dgram_recv(struct urn_rs *rs, const struct iovec *iov, int n, int flags,
			  struct sockaddr *from, socklen_t *from_len, int *out_flags);
void urn_rs_dgram_step(struct urn_rs *rs);
bool urn_rs_dgram_completions(struct urn_rs *rs);
urn_rs_test urn_rs_dgram_readable, urn_rs_dgram_writable, urn_rs_dgram_all_sent;
bool urn_rs_dgram_name(struct urn_rs *rs, bool peer, struct sockaddr_storage *out);

#endif
