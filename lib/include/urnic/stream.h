/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte streams over RDMA, without modes: connect, send and receive as with TCP, from a node of
 * urnic to another. Small sends are copied through buffers; large ones go from the sender's memory
 * to the receiver's without a copy, as the two ends find out by themselves (SF-1 to SF-11).
 *
 *   server                                    client
 *   urn_stream_node_open()                    urn_stream_node_open()
 *   urn_stream_listen()
 *   urn_stream_accept()                       urn_stream_connect()
 *   urn_stream_recv(), urn_stream_send()      urn_stream_send(), urn_stream_recv()
 *   urn_stream_close()                        urn_stream_shutdown(), urn_stream_close()
 *   urn_stream_listener_close()
 *   urn_stream_node_close()                   urn_stream_node_close()
 *
 * doc/reference/streams.md says how a stream differs from TCP, and what is not there yet.
 *
 * Calls that return int return 0 or an errno value, which errno holds too; sends and receives
 * return bytes, or -1 with errno set. errno means nothing behind a call that succeeded.
 * urn_attach_error() says why, and urn_stream_error() why a connection ended.
 *
 * Work is done in calls only: there is no thread behind a stream. Several threads may use one
 * stream, a send and a receive at a time; a further one waits for its turn. A child of fork() must
 * not use its parent's streams.
 */
#ifndef URNIC_STREAM_H
#define URNIC_STREAM_H

#include <urnic/verbs.h>

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The library hides all other names. */
#pragma GCC visibility push(default)

/* The streams of one device: owns what they share. */
struct urn_stream_node;
/* A port at which connections are taken. */
struct urn_stream_listener;
/* One end of a connection. */
struct urn_stream;

/* Flags of calls, added up. */
enum urn_stream_flag {
	URN_STREAM_DONTWAIT = 1 << 0, /* EAGAIN instead of a wait */
	URN_STREAM_WAITALL = 1 << 1,  /* receive: until all room is full, or the stream ends */
};

/* Kinds of transfer that the sends of an end may be held to (SF-9). */
enum urn_stream_transfer {
	URN_STREAM_ANY,	  /* the size decides, by a threshold that adapts */
	URN_STREAM_COPY,  /* through buffers */
	URN_STREAM_READ,  /* the receiver reads the sender's memory */
	URN_STREAM_WRITE, /* the sender writes to the receiver's memory */
	URN_STREAM_TRANSFERS,
};

#define URN_STREAM_NEVER UINT64_MAX /* zero_copy: copy whatever the size */

/* Sizes and habits of an end; the program's, read during the call. 0 is the default everywhere. */
struct urn_stream_options {
	uint32_t buffers;     /* buffers for data that waits here, 2 to 4096; 0: 16 */
	uint32_t size;	      /* bytes of each, 256 to 1 MiB; 0: 8192 */
	uint64_t zero_copy;   /* bytes from which on sends and receives begin to do without a copy,
				 64 KiB to 4 MiB; 0: 256 KiB; URN_STREAM_NEVER */
	uint32_t frozen;      /* 1: zero_copy stays; 0: it adapts */
	uint32_t transfer;    /* enum urn_stream_transfer */
	uint32_t patience_ms; /* time that a large send of the peer waits for a receive, in calls
				 of this end, before it is copied; 0: 10 */
	uint32_t linger_ms;   /* time that urn_stream_close() waits for the peer to take what was
				 sent; 0: 10,000 */
};

/* Counts of a stream, each since its start. */
struct urn_stream_stats {
	uint64_t sent;	       /* bytes sent */
	uint64_t received;     /* bytes that came */
	uint64_t copied;       /* sends that began to go through buffers */
	uint64_t offered;      /* sends whose memory the peer was told of */
	uint64_t written;      /* writes to the peer's memory */
	uint64_t read;	       /* reads of the peer's memory */
	uint64_t asked_small;  /* requests of the peer to finish through buffers */
	uint64_t tx_threshold; /* bytes from which on sends do without a copy, now */
	uint64_t rx_threshold; /* bytes from which on receives are announced, now */
};

/* One thing that urn_stream_poll() waits for: exactly one of stream, listener and fd is set. */
struct urn_stream_pollfd {
	struct urn_stream *stream;	      /* NULL: not a stream */
	struct urn_stream_listener *listener; /* NULL: not a listener */
	int fd;	       /* any other descriptor; used when stream and listener are NULL */
	short events;  /* POLLIN, POLLOUT */
	short revents; /* set by the call: those, and POLLERR, POLLHUP */
};

/*
 * Open the streams of a device.
 *
 * out: set on success, else NULL
 * ctx: a context of urnic's, which stays the caller's and open until the node is closed
 * returns: 0; EOPNOTSUPP: the device has no connection management; or another errno value
 */
int urn_stream_node_open(struct urn_stream_node **out, struct ibv_context *ctx);
/* Close. returns: 0; EBUSY: streams, listeners or memory are left. NULL is allowed */
int urn_stream_node_close(struct urn_stream_node *node);

/*
 * Register memory for sends and receives without a copy, once for all; other memory is registered
 * for each large send and receive. A peer that a stream told of the memory can reach it, all of it,
 * until it is removed. Memory of urn_alloc() is fastest.
 *
 * returns: 0; EINVAL: no bytes; or why the region can't be registered
 */
int urn_stream_memory_add(struct urn_stream_node *node, void *addr, size_t bytes);
/* Take memory back. returns: 0; ENOENT: no memory was added that begins there; EBUSY: a send or
 * receive uses it */
int urn_stream_memory_remove(struct urn_stream_node *node, const void *addr);

/*
 * Listen at a port of the device's addresses.
 *
 * out: set on success, else NULL
 * port: 1 to 65535; ports of streams are apart from those of TCP and of RDMA-CM
 * backlog: connections that may wait for urn_stream_accept(); 0: 128
 * o: of the streams that are accepted; NULL: the defaults
 * returns: 0; EINVAL: no port, or not an option's value; EADDRINUSE: somebody listens there
 */
int urn_stream_listen(struct urn_stream_listener **out, struct urn_stream_node *node, uint16_t port,
		      uint32_t backlog, const struct urn_stream_options *o);
/* Stop listening; connections that were not accepted are refused. returns: 0. NULL is allowed */
int urn_stream_listener_close(struct urn_stream_listener *l);
/*
 * Take a connection. A peer that is no stream, or of another version, is refused, and the call goes
 * on to the next one. The connection may still be on its way up: calls on it wait for that.
 *
 * out: set on success, else NULL
 * flags: URN_STREAM_DONTWAIT
 * returns: 0; EAGAIN: no connection waits; EIO: the dataplane is gone; or another errno value
 */
int urn_stream_accept(struct urn_stream **out, struct urn_stream_listener *l, uint32_t flags);
/*
 * Connect to a listener.
 *
 * out: set on success, else NULL
 * to, len: IPv4 or IPv6 address of a node, and port
 * o: NULL: the defaults
 * flags: URN_STREAM_DONTWAIT: the call returns at once with a stream that is not up yet; it can be
 * sent to when it is up, and urn_stream_poll() tells of either end
 * returns: 0; ECONNREFUSED: nobody listens there; EPROTO: the peer is no stream, or of another
 * version; ETIMEDOUT: no answer; EADDRNOTAVAIL: the device has no address of that family; EINVAL,
 * EAFNOSUPPORT: not an address or an option's value; or another errno value
 */
int urn_stream_connect(struct urn_stream **out, struct urn_stream_node *node,
		       const struct sockaddr *to, socklen_t len, const struct urn_stream_options *o,
		       uint32_t flags);

/*
 * Send bytes. The call returns when the program may have its memory back: all bytes are in buffers,
 * or with the peer.
 *
 * flags: URN_STREAM_DONTWAIT: as many bytes as there are buffers for, always copied, and 65,535 a
 * call at most
 * returns: bytes, fewer than len only with URN_STREAM_DONTWAIT or when the connection broke
 * meanwhile; -1: EAGAIN: no buffer is free, or the connection is not up yet; EPIPE: shut down, or
 * the peer reads no more; ECONNRESET: the connection broke; ECONNABORTED: this end ended it by
 * urn_stream_abort(); EPROTO: an end broke the protocol; EOPNOTSUPP: no wait, with a forced kind of
 * transfer that needs one; ENOMEM and others: a forced kind of transfer needs a region, and there
 * is none
 */
ssize_t urn_stream_send(struct urn_stream *s, const void *data, size_t len, uint32_t flags);
/*
 * Receive bytes, in their order.
 *
 * flags: URN_STREAM_DONTWAIT: the call still waits while a read of the peer's memory is under way,
 * so a peer whose adapter answers slowly, or whose program ends, holds it until the connection
 * breaks; a program that must not wait for its peers has a thread for each;
 * URN_STREAM_WAITALL
 * returns: bytes; 0: the stream has ended, or this end reads no more; -1: EAGAIN, ECONNRESET,
 * ECONNABORTED, EPROTO as above. Bytes that came before the connection broke are received first
 */
ssize_t urn_stream_recv(struct urn_stream *s, void *data, size_t room, uint32_t flags);
/* The same from and to several pieces of memory; more than IOV_MAX of them is EINVAL. */
ssize_t urn_stream_sendv(struct urn_stream *s, const struct iovec *iov, int n, uint32_t flags);
ssize_t urn_stream_recvv(struct urn_stream *s, const struct iovec *iov, int n, uint32_t flags);

/*
 * End a direction. The call does not wait.
 *
 * how: SHUT_WR: the peer gets all that was sent, then the end of the stream; SHUT_RD: bytes that
 * wait and that come are dropped, and the peer's sends end with EPIPE; SHUT_RDWR
 * returns: 0; EINVAL; ENOTCONN: the connection is not up
 */
int urn_stream_shutdown(struct urn_stream *s, int how);
/*
 * Close, when no other call on the stream is under way. The call waits until the peer has all that
 * was sent, and for a moment for the peer's own end. No flag forbids the waits: linger_ms bounds
 * the first wait, a second the other one, and behind urn_stream_abort() it waits for neither.
 *
 * returns: 0; the stream is gone in any case: ETIMEDOUT: the peer did not take all in time and the
 * connection was ended; ECONNRESET, EPROTO: it broke before the peer had all. NULL is allowed
 */
int urn_stream_close(struct urn_stream *s);
/* End the connection at once: the peer gets an error, and bytes that wait anywhere are lost. The
 * stream is to be closed still. returns: 0 */
int urn_stream_abort(struct urn_stream *s);

/*
 * Wait until a call would not wait: on streams, listeners and other descriptors.
 *
 * fds: POLLIN: bytes, the end of the stream, an error or a connection waits; POLLOUT: a send takes
 * bytes, or says why not; POLLHUP: the connection ended with an error, or was not made; at a
 * listener: the dataplane is gone
 * n: 0 to 65536; no stream or descriptor more than once when there are many: the call sleeps on at
 * most as many descriptors as the program may have open (RLIMIT_NOFILE)
 * timeout_ms: -1: without end
 * returns: number of entries with revents; 0: none in time; -1 with errno set: EINTR, ENOMEM,
 * EINVAL
 *
 * One thread that polls a stream sleeps on it; others that poll the same one at the same time look
 * at it every 10 ms.
 */
int urn_stream_poll(struct urn_stream_pollfd *fds, size_t n, int timeout_ms);

/* Why the connection ended, or was not made: a sentence. returns: "" while it stands; good until
 * the stream is closed */
const char *urn_stream_error(struct urn_stream *s);
/* Get the counts of a stream. stats: all 0 before the connection is up. returns: 0 */
int urn_stream_get_stats(struct urn_stream *s, struct urn_stream_stats *stats);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
