/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two urnic-perf meet: one listens, the other asks the listener, once for each queue
 * pair, and after the measurement they exchange their results. Over TCP
 * (meet_oob.c), or by connection management, with all messages in private data
 * (meet_cm.c).
 *
 *   asks                             listens
 *   ASK   settings, queue pair, memory  --->
 *                                    <---   ANSWER queue pair, memory
 *   READY                               --->
 *   ...                                     ...
 *   END   messages sent                 --->
 *                                    <---   ENDED results of the listener
 *
 * Either side may say END with a message at any time when it can't go on.
 */
#ifndef URN_PERF_MEET_H
#define URN_PERF_MEET_H

#include "common/endpoint.h"
#include "options.h"

#define MEET_MAGIC 0x55524e50u /* and version: each layout has a number of its own */

/* Settings that the listener takes over, and the asker's memory. Fits a REQ behind RDMA-CM's own header. */
struct meet_hello {
	uint32_t magic;
	uint8_t op;            /* enum perf_op */
	uint8_t check;         /* enum perf_check */
	uint8_t srq;           /* receives from one shared queue */
	uint8_t mtu_code;      /* 1..5 */
	uint32_t qps;
	uint32_t number;       /* number of the queue pair, from 0 on */
	uint64_t size;         /* bytes a message */
	uint64_t va_src, va_dst;
	uint32_t rkey_src, rkey_dst;
	uint16_t depth;        /* requests in flight a QP */
	uint8_t rd_atomic, timeout;
	uint32_t ud_qpn; /* datagrams: QPN of this queue pair; 0: connections */
};
_Static_assert(sizeof(struct meet_hello) == 56, "goes between programs");

struct meet_peer {
	struct urn_ep_addr ep;
	struct meet_hello hello;
};

/* One side's result. */
struct meet_end {
	uint32_t magic;
	uint32_t failed;       /* 1: text says why */
	uint64_t done;         /* messages of this queue pair that were sent */
	uint64_t counter;      /* atomics: counter at the end; datagrams: how many arrived */
	uint64_t checked;      /* bytes compared by the listener; in queue pair 0's: in all */
	char text[176];
};
_Static_assert(sizeof(struct meet_end) == 208, "goes between programs");

enum meet_what { MEET_ASK = 1, MEET_ANSWER, MEET_READY, MEET_END, MEET_ENDED, MEET_KINDS };

struct meet_news {
	enum meet_what what;
	uint32_t n;            /* number of the queue pair */
	struct meet_peer peer; /* ASK, ANSWER */
	uint8_t own_gid[16];   /* ASK, by connection management: our address that the ASK went to; else 0 */
	struct meet_end end;   /* END, ENDED; in an ENDED, magic 0: its private data was lost */
};

struct meet;

/*
 * Listen, or prepare to ask, as options say. ctx, gid: the adapter's, for
 * connection management. NULL with *err. TCP: waits for the other side.
 */
struct meet *meet_open(const struct perf_opts *o, struct ibv_context *ctx, uint8_t gid_index,
		       const union ibv_gid *gid, struct urn_err *err);
/* Close. A peer without an END or ENDED so far is told that this side is gone. NULL is allowed. */
void meet_close(struct meet *m);

/* Each returns 0, or -1 with *err. */
int meet_ask(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err);
int meet_answer(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err);
int meet_ready(struct meet *m, uint32_t n, struct urn_err *err);
/* Say END; ended: answer ENDED. */
int meet_end(struct meet *m, uint32_t n, const struct meet_end *end, bool ended, struct urn_err *err);

/*
 * Wait ms milliseconds at most for the other side to say something. returns: 1 with
 * *news, whose numbers are not yet checked; 0: nothing; -1 with *err: the other side is
 * gone, or speaks another protocol
 */
int meet_look(struct meet *m, struct meet_news *news, int ms, struct urn_err *err);

/* True when this is a hello of ours with possible values; its number is then below qps. */
bool meet_hello_ok(const struct meet_hello *h);

/* Put the failure that the other side's END tells into *err. returns -1 */
int meet_gave_up(const struct meet_end *end, struct urn_err *err);

/* Functions that TCP and connection management each have. */
struct meet_ops {
	int (*ask)(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err);
	int (*answer)(struct meet *m, uint32_t n, const struct meet_peer *own, struct urn_err *err);
	int (*ready)(struct meet *m, uint32_t n, struct urn_err *err);
	int (*end)(struct meet *m, uint32_t n, const struct meet_end *end, bool ended,
		   struct urn_err *err);
	int (*look)(struct meet *m, struct meet_news *news, int ms, struct urn_err *err);
	void (*close)(struct meet *m);
};

struct meet {
	const struct meet_ops *ops;
	const struct perf_opts *o;
};

struct meet *meet_cm_open(const struct perf_opts *o, struct ibv_context *ctx, uint8_t gid_index,
			  const union ibv_gid *gid, struct urn_err *err);
struct meet *meet_oob_open(const struct perf_opts *o, struct urn_err *err);

#endif
