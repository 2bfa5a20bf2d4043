/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane made of nothing but its registers: it answers control calls by laying
 * queues out in an area, and leaves the rest to the test, which reads requests, writes
 * completions and swaps doorbells by hand. So the library is tested against lib/abi alone.
 */
#ifndef URN_TEST_FAKE_H
#define URN_TEST_FAKE_H

#include "abi/agree.h"
#include "abi/control.h"
#include "abi/doorbell.h"
#include "abi/queue.h"

#include <pthread.h>
#include <stdbool.h>

#define FAKE_OBJS 64
#define FAKE_GIDS 4

struct fake_cq {
	uint32_t handle;   /* 0: free */
	uint64_t off, cookie;
	uint32_t entries, prod;
	int fd;
	bool beside; /* has room for messages beside its completions */
};

struct fake_qp {
	uint32_t qpn;      /* 0: free */
	uint64_t sq_off, rq_off, cookie;
	uint32_t sq_entries, rq_entries, sq_stride, rq_stride, sq_cons, rq_cons;
	uint32_t send_cq, recv_cq, db;
	struct urn_abi_qp_attr attr;
};

struct fake_srq {
	uint32_t handle;   /* 0: free */
	uint64_t off, cookie;
	uint32_t entries, stride, max_sge, limit, cons;
};

struct fake {
	struct urn_abi_channel channel;
	pthread_mutex_t lock;      /* calls come from any thread */
	uint64_t used;             /* bytes of the area given out */
	struct urn_abi_device info;
	struct urn_abi_port port;
	uint8_t gid[FAKE_GIDS][16];
	struct fake_cq cq[FAKE_OBJS];
	struct fake_qp qp[FAKE_OBJS];
	struct fake_srq srq[FAKE_OBJS];
	struct urn_abi_db *db;     /* doorbells of engine 0 */
	int async_fd;
	uint32_t next_key;
	struct urn_abi_req last;   /* the newest request */
	unsigned int calls[URN_CTL_OPS];
	/* Error of the next call of op fail_op (0: none). */
	uint32_t fail_op;
	int fail_err;
	const char *fail_why;
	/* Called within the next RESIZE_CQ, before it is answered. */
	void (*in_resize)(struct fake *f, void *arg);
	void *in_resize_arg;
	_Atomic unsigned int wakes;
	_Atomic unsigned int closed;
	bool beside; /* queues made from now on have room for messages beside completions */
	bool zero_reset;           /* RESET zeroes the indices instead of moving cons to prod */
};

/* Fields of a completion, of the newest request that its queue retired; the rest is zero. */
struct fake_wc {
	uint64_t wr_id;
	uint32_t qpn, byte_len, imm, src_qp;
	uint8_t status, opcode, flags;
	bool solicited;
	/* With URN_WCF_BESIDE in flags: byte_len bytes, and where the library is to copy them. */
	const void *bytes;
	void *to;
};

struct fake *fake_new(void);
void fake_free(struct fake *f);
/* Address of a queue's header. */
void *fake_at(struct fake *f, uint64_t off);

struct fake_cq *fake_cq(struct fake *f, uint32_t handle);
struct fake_qp *fake_qp(struct fake *f, uint32_t qpn);
struct fake_srq *fake_srq(struct fake *f, uint32_t handle);

/* Write a completion, and an event if the queue is armed for it. */
void fake_complete(struct fake *f, uint32_t cq, const struct fake_wc *wc);
/* Like fake_complete(), unless there is no room. returns: true when the completion was written */
bool fake_try_complete(struct fake *f, uint32_t cq, const struct fake_wc *wc);
/* The next request of a send queue, without retiring it; NULL: none. */
const struct urn_abi_swqe *fake_send_wqe(struct fake *f, uint32_t qpn);
/* Retire n requests. */
void fake_retire(struct fake *f, uint32_t qpn, uint32_t n);
/* Retire one request, with a completion. */
void fake_finish(struct fake *f, uint32_t qpn);
/* Take the next receive of a QP's own queue; NULL: none. */
const struct urn_abi_rwqe *fake_take_recv(struct fake *f, uint32_t qpn);
/* Take the next receive of an SRQ for a QP; NULL: none. */
const struct urn_abi_rwqe *fake_take_srq(struct fake *f, uint32_t srq, uint32_t qpn);
/* True when the QP or CQ has been destroyed; may be called while other threads make calls. */
bool fake_qp_gone(struct fake *f, uint32_t qpn);
bool fake_cq_gone(struct fake *f, uint32_t handle);
/* Take the doorbells as an engine does. returns: the number of QPs that rang; *last: one of them */
unsigned int fake_doorbells(struct fake *f, uint32_t *last);
void fake_async(struct fake *f, uint32_t type, uint32_t handle, uint64_t cookie);
void fake_fail_next(struct fake *f, enum urn_ctl_op op, int err, const char *why);

#endif
