/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that do to a dataplane of another process what none should, and programs that must not
 * notice. Each attack is a function that makes its objects, says that it is ready, and then does
 * its bad thing again and again until the process is killed. Attacks have a check of their own
 * where the dataplane must refuse them: a call that succeeds ends the process with code 1.
 *
 *   foe.c             this: devices, queue pairs, the page that run.py reads
 *   attack.c          the table, and main()
 *   attack_calls.c    control calls, and the socket
 *   attack_area.c     memory that a program shares with the dataplane: queues, doorbells
 *   attack_shared.c   ... registers of messages and of endpoints
 *   attack_memory.c   memory that is slow, or goes
 *   attack_events.c   events
 *   attack_load.c     more work than fits
 *   attack_msg.c      messages, active messages, remote memory
 *   attack_tables.c   all entries of a table
 *   victim.c          a program whose WRITEs, messages and objects must go on
 */
#ifndef TEST_HOSTILE_FOE_H
#define TEST_HOSTILE_FOE_H

#include "verbs/adapter/adapter.h"

#include <urnic/attach.h>
#include <urnic/verbs.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Shared with run.py, in this order. */
struct foe_page {
	_Atomic uint64_t ready;	 /* attacker's: 1 once the attack is under way */
	_Atomic uint64_t rounds; /* attacker's: bad things done so far, in units of the attack */
};

struct foe {
	const char *path;      /* socket of the dataplane */
	struct foe_page *page; /* owner: this process */
	uint64_t seed;	       /* state of foe_random() */
};

/* An attack; it never returns. */
typedef void foe_attack_fn(struct foe *f);

/* End the process: the dataplane let through what it must refuse, or the set-up failed. */
void foe_die(const char *what) __attribute__((noreturn));
/* End the process: this system does not allow the attack. */
void foe_skip(const char *why) __attribute__((noreturn));
#define FOE_MUST(cond, what)           \
	do {                           \
		if (!(cond))           \
			foe_die(what); \
	} while (0)

/* The attack is under way. */
void foe_ready(struct foe *f);
/* Count a round. */
void foe_round(struct foe *f);
/* A random number; the same ones in each run. */
uint64_t foe_random(struct foe *f);
/* A random number below n. */
uint32_t foe_below(struct foe *f, uint32_t n);
/* Raise the bound on this process's descriptors. returns: the bound */
unsigned long foe_descriptors(void);
/* Run fn(arg) in a thread that nobody waits for. */
void foe_thread(void *(*fn)(void *arg), void *arg);

/* A device with the objects that most attacks need. */
struct foe_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *ch; /* the queue's channel */
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* region of buf */
	uint8_t *buf;	   /* memory of urn_alloc() */
	union ibv_gid gid; /* IPv4 */
};

enum {
	FOE_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC,
	FOE_QKEY = 0x1234,
};

/* Open a device. bytes: of buf; cqe: entries of cq */
void foe_open(struct foe_end *e, const struct foe *f, const char *node, size_t bytes, int cqe);
void foe_close(struct foe_end *e);
/* Make a queue pair in RESET. returns: NULL: the dataplane has none left */
struct ibv_qp *foe_qp(const struct foe_end *e, enum ibv_qp_type type, uint32_t depth);

/* The peer of a queue pair, and its patience. */
struct foe_peer {
	union ibv_gid gid;
	uint32_t qpn;
	uint8_t timeout; /* code of the ACK timeout */
	uint8_t retries; /* ... and of RNR */
};
/* Bring a queue pair of RC from any state to RTS. returns: 0, or an errno value */
int foe_connect(struct ibv_qp *qp, const struct foe_peer *peer);
/* Bring a queue pair of UD to RTS. returns: 0, or an errno value */
int foe_datagrams(struct ibv_qp *qp);
/* A connected pair: qp[0] of end a, qp[1] of end b, which may be the same end. Patient. */
void foe_pair(const struct foe_end *a, const struct foe_end *b, uint32_t depth,
	      struct ibv_qp *qp[2]);
/* Post an RDMA request with one element. returns: 0, or an errno value */
int foe_post(struct ibv_qp *qp, enum ibv_wr_opcode op, const struct ibv_sge *sge, uint64_t remote,
	     uint32_t rkey);
/* Throw away all completions that there are. returns: how many */
unsigned int foe_drain(struct ibv_cq *cq);

#endif
