/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages without connections, by register sets (DB-1 to DB-10). A set has a send channel, one
 * message at a time, and a receive queue, a ring of entries; either may stay unused. A message is
 * sent and received without a system call.
 *
 *   sender                                     receiver
 *   dev = urn_msg_dev_connect(NULL, NULL)          dev = urn_msg_dev_connect(NULL, NULL)
 *   set = urn_msg_set_create(dev, &attr)       set = urn_msg_set_create(dev, &attr)
 *                                              urn_msg_set_bind(set, 7)
 *   urn_msg_set_send_wait(set, &to, "hi", 2, ...)  while (!urn_msg_set_poll(set, &m)) ;
 *                                              ... m.data, m.len ...
 *                                              urn_msg_set_release(set)
 *
 * One thread at a time may send with a set, and one receive; these may be two. Calls that make,
 * bind and destroy may come from any thread. A child of fork() leaves devices and sets of its
 * parent alone.
 */
#ifndef URNIC_MSG_H
#define URNIC_MSG_H

#include "abi/msg_codes.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The library hides all other names. */
#pragma GCC visibility push(default)

struct urn_abi_channel;
struct urn_msg_dev;	 /* one adapter of one dataplane */
struct urn_register_set; /* one register set */

/*
 * Open the adapter of a dataplane that is a process of its own; path and node:
 * urn_attach_connect().
 *
 * returns: NULL with errno set, and urn_attach_error() says why; EOPNOTSUPP: the dataplane has no
 * messages
 */
struct urn_msg_dev *urn_msg_dev_connect(const char *path, const char *node);
/* Open an adapter by its channel, which is taken over, also on failure. returns: like
 * urn_msg_dev_connect() */
struct urn_msg_dev *urn_msg_dev_open(struct urn_abi_channel *channel);
/* Close the adapter; its sets have been destroyed before. NULL is allowed. */
void urn_msg_dev_close(struct urn_msg_dev *dev);
/*
 * Get an address of the adapter, by which other nodes reach its queues.
 *
 * index: 0 and up; an entry without an address is all zero
 * returns: 0, or an errno value (EINVAL: there is no such index)
 */
int urn_msg_dev_gid(struct urn_msg_dev *dev, uint32_t index, uint8_t gid[16]);

/* Wishes for a set. Zero is a value for every field. */
struct urn_msg_attr {
	uint32_t send_size; /* bytes of the largest message to send, at most URN_MSG_MAX; 0: the set
			       does not send */
	uint32_t recv_size; /* bytes of the largest message to receive; valid with entries */
	uint32_t entries; /* messages that the receive queue holds, made a power of two; 0: no queue
			   */
	uint32_t vector;  /* picks the engine, unless the set is named */
	uint32_t named;	  /* 1: urn_msg_set_bind() will be called */
	uint32_t wakes;	  /* 1: urn_msg_set_fd() and urn_msg_set_arm() will be called */
	uint32_t own_node;    /* 1: only messages of the adapter's own node are taken */
	uint32_t permit_bits; /* only messages of nodes whose GIDs have these first bits of `permit`
				 are taken; 0: of all */
	uint8_t permit[16];   /* a GID */
};

/*
 * Make a set; its receive queue takes messages when the call returns. The engine does a part of the
 * call, so a program that polls an embedded engine itself polls it in another thread meanwhile.
 *
 * returns: NULL with errno set (EINVAL, ENOMEM, EDQUOT, ETIMEDOUT: the engine did not run for 10 s,
 * ...), and urn_attach_error() says why
 */
struct urn_register_set *urn_msg_set_create(struct urn_msg_dev *dev,
					    const struct urn_msg_attr *attr);
/* Destroy a set: messages in its queue are lost. NULL is allowed. */
void urn_msg_set_destroy(struct urn_register_set *set);
/* The number of the set's queue on its node, by which others send to it as long as the set lives.
 */
uint64_t urn_msg_set_qid(const struct urn_register_set *set);

/*
 * Give the set's queue a name on its node (DB-11); the name 0 takes the name away.
 *
 * name: any but 0; those of datagram sockets begin at 0x80000000 (urnic/socket.h)
 * returns: 0, or an errno value (EADDRINUSE: another set has the name)
 */
int urn_msg_set_bind(struct urn_register_set *set, uint32_t name);
/* Give the set's queue any free name of [first, end). *name: set on success. returns: like
 * urn_msg_set_bind() */
int urn_msg_set_bind_any(struct urn_register_set *set, uint32_t first, uint32_t end,
			 uint32_t *name);
/* The target queue of a name, for struct urn_msg_to. */
static inline uint64_t
urn_msg_qid_of_name(uint32_t name)
{
	return 1ull << 63 | name;
}

/* Target of a message, and what is done about errors. */
struct urn_msg_to {
	uint8_t node[16]; /* a GID of the target node */
	uint64_t qid;	  /* urn_msg_set_qid() of the queue, or urn_msg_qid_of_name() of its name */
	uint32_t retry_us;   /* microseconds between tries, at most 1 s; 0: 100 */
	uint16_t retries;    /* further tries after an error of retry_kinds; 65535: without end */
	uint8_t retry_kinds; /* bits of enum urn_msg_retry */
};

/* The send buffer, of attr.send_size bytes: the program may write a message there, while none is
 * pending. */
void *urn_msg_set_buffer(struct urn_register_set *set);
/*
 * Send a message, without a wait for the answer.
 *
 * data: copied to the send buffer, unless it is there already
 * len: bytes; 0 is a message, too
 * returns: 0; EBUSY: the message before is pending; EMSGSIZE: longer than attr.send_size; errno is
 * left alone
 */
int urn_msg_set_send(struct urn_register_set *set, const struct urn_msg_to *to, const void *data,
		     uint32_t len);
/*
 * The state of the message sent last: URN_MSG_PENDING, or the answer (abi/msg_codes.h), with
 * URN_MSG_MAY_BE_THERE when the message may be in the target queue despite the error (DB-7).
 */
uint8_t urn_msg_set_status(struct urn_register_set *set);
/*
 * Wait for the answer to the message sent last: spin, yield the core, and in the end sleep between
 * looks.
 *
 * timeout_us: microseconds; negative: without end
 * returns: like urn_msg_set_status()
 */
uint8_t urn_msg_set_wait(struct urn_register_set *set, int64_t timeout_us);
/*
 * Send a message and wait for the answer.
 *
 * code: set to the answer on success
 * returns: 0; EBUSY and EMSGSIZE like urn_msg_set_send(); ETIMEDOUT: the message is still pending
 */
int urn_msg_set_send_wait(struct urn_register_set *set, const struct urn_msg_to *to,
			  const void *data, uint32_t len, int64_t timeout_us, uint8_t *code);

/* A message in the receive queue. */
struct urn_msg {
	const void *data; /* in the ring; valid until the entry is released */
	uint32_t len;	  /* bytes */
	uint32_t rsvd;
	uint64_t qid;	  /* source queue: its name if it has one, else its number */
	uint8_t node[16]; /* GID of the source node */
};

/* Look at the oldest message, which stays in the queue. returns: 1, or 0: the queue is empty */
int urn_msg_set_poll(const struct urn_register_set *set, struct urn_msg *m);
/* Give the oldest entry back to the dataplane, after a call of urn_msg_set_poll() that returned 1.
 */
void urn_msg_set_release(struct urn_register_set *set);

/*
 * The descriptor that is readable after an armed set got a message, for poll() and epoll; or -1.
 * The descriptor hangs up when the dataplane is gone.
 */
int urn_msg_set_fd(const struct urn_register_set *set);
/*
 * Arm the set: the next message makes the descriptor readable, once (DB-8). Call it before a sleep,
 * after urn_msg_set_drain(). returns: 1: messages wait, look before you sleep; 0
 */
int urn_msg_set_arm(struct urn_register_set *set);
/*
 * Read the descriptor's events, without a wait. An event that is still on its way makes the
 * descriptor readable once more, for nothing. returns: 0; EIO: the dataplane is gone
 */
int urn_msg_set_drain(struct urn_register_set *set);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
