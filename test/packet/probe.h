/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hand-driven peer. One node's transport is between two arrays: the test
 * puts in hand-made frames (frame.h), work requests and the time,
 * and takes out completions and the frames that the node sent, each of which is
 * checked byte for byte. Time stands still unless a test moves it.
 */
#ifndef URN_TEST_PROBE_H
#define URN_TEST_PROBE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "frame.h"
#include "transport/tp.h"
#include "wire/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	PROBE_QPS = 4,
	PROBE_RAM = 1 << 19,      /* bytes of the node's memory */
	PROBE_GUARD = 1 << 16,    /* bytes before and behind the region, which must not be touched */
	PROBE_LEN = PROBE_RAM - 2 * PROBE_GUARD, /* bytes of the region */
	PROBE_SEEN = 1024,        /* frames that may wait to be looked at */
	PROBE_SLOTS = 512,        /* entries of each work queue */
	PROBE_SGES = 4,           /* elements of a request or receive */
	PROBE_INLINE = 64,        /* bytes of inline data */
	PROBE_CQES = 4096,
	PROBE_QKEY = 0x11223344,
};

#define PROBE_VA 0x7000001000ull  /* address of the region by keys; not its address here */
#define PROBE_RQ_PSN 0xfffff0u    /* first PSN the peer sends; wraps soon */
#define PROBE_SQ_PSN 0xfffff8u    /* first PSN the node sends; wraps soon */
#define PROBE_RIGHTS (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC)

/* Fields with a default say its value after "0:". */
struct probe_config {
	uint32_t mtu;             /* path MTU; 0: 1024 */
	uint32_t window;          /* 0: 64 */
	uint32_t kept;		  /* 0: 256 */
	uint32_t work;            /* 0: 1024 */
	bool ipv6;
	uint64_t delay_seed;      /* memory answers late */
	uint32_t delay_polls;     /* 0: 8 */
	uint32_t delay_percent;   /* 0: 100 */
	uint32_t fail_per_million;
	unsigned int qps;         /* 0: 1; all of the type */
	uint32_t max_qp;	  /* QPs that there may be, the test's own too; 0: 64 */
	uint8_t type;             /* 0: RC */
	const struct urn_service *service; /* service of that type; NULL: one of the dataplane */
	uint8_t state;            /* state to stop at; 0: RTS */
	int access;               /* 0: all; -1: none */
	uint8_t timeout;          /* code; 0: none */
	uint8_t retry_cnt, rnr_retry;
	uint8_t min_rnr_timer;
	int rd_atomic, dest_rd_atomic; /* 0: 4; -1: 0 */
	bool srq;
	uint32_t pool_mbufs;      /* buffers to send with; 0: plenty */
	bool selective;           /* both sides know selective acknowledgements */
	uint64_t rto_floor;       /* ns; 0: only the QP's timeout */
	uint64_t line;		  /* bytes a second, for congestion control; 0: none */
	uint8_t traffic_class, hop_limit; /* the address vector's */
};

struct probe_qp {
	struct urn_qp *qp;
	struct urn_abi_wq *sq, *rq;
	uint32_t peer_qpn;
};

struct probe {
	struct probe_config cfg;
	uint64_t now;             /* ns */
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct rte_mempool *pool;
	unsigned int free_before; /* buffers of the pool */
	struct frame_addr node, peer;
	uint32_t pd, key;         /* all rights, PROBE_VA, PROBE_LEN */
	uint32_t key_local;       /* the same memory, local rights only */
	uint32_t key_read;        /* the same memory, remote READ only */
	uint32_t other_pd, key_other; /* the same memory, another PD */
	uint8_t *ram;             /* PROBE_RAM bytes; the region begins at PROBE_GUARD */
	struct urn_cq scq, rcq;
	uint32_t scq_seen, rcq_seen; /* completions that the test has looked at */
	struct urn_srq srq;
	struct urn_ah ah;         /* number 1: the peer */
	struct probe_qp q[PROBE_QPS];
	struct urn_qp *qp;        /* QP of q[cur] */
	unsigned int cur;         /* index of the QP that the calls below use */
	struct rte_mbuf *in[URN_TP_BURST];
	unsigned int in_n;
	struct frame *seen;       /* ring of PROBE_SEEN */
	uint32_t seen_n, looked;
	uint32_t event[64];       /* types of async events */
	unsigned int events;
	/* The memory operation that fails: see probe_fail_op(). */
	unsigned int fail_in;     /* counts down; 0: none */
	bool fail_late;
	bool hold;                /* memory that answers late does not answer now */
	struct urn_memop failing; /* late: operation to be answered with a failure */
	int neigh;		  /* answer to a question for the peer's MAC: 0 known (peer.mac), -1 wait, -2 no */
	uint32_t asked;           /* number of questions for the peer's MAC */
	uint32_t doubted;         /* number of calls that said that the peer is silent */
	struct urn_tp_near
		near; /* receivers of the peer's transport; all zero: not of this dataplane */
};

void probe_open(struct probe *p, const struct probe_config *cfg);
/* Take the probe down; fails when a packet buffer is lost or the guards were touched. */
void probe_close(struct probe *p);
void probe_use(struct probe *p, unsigned int qp);
/* Move the QP to a state without attributes (ERR, RESET, SQD, RTS). */
void probe_state(struct probe *p, uint8_t state);

/* Make any change, with the function that makes the probe's QPs. returns as urn_qp_modify() */
int probe_modify(struct probe *p, uint32_t mask, const struct urn_abi_qp_attr *a);
void probe_attributes(struct probe *p, struct urn_abi_qp_attr *a);
/* Bring the QP from any state, without memory operations, through RESET to its first state. */
void probe_reconnect(struct probe *p);

/*
 * Make one more QP, of tp, connected, with the queues of the probe's QP: the caller must
 * stop and destroy it before these queues are freed.
 */
struct urn_qp *probe_another(struct probe *p, struct urn_tp *tp, const struct urn_abi_qp_attr *like);

/* Address of a byte of the region in this process. */
static inline uint8_t *
probe_at(struct probe *p, uint32_t off)
{
	return p->ram + PROBE_GUARD + off;
}

/* ---- the wire */

/* Hand a frame to the node in its next turn. dqpn 0: the QP's. */
void probe_put(struct probe *p, struct frame *f);
void probe_put_raw(struct probe *p, const uint8_t *bytes, uint32_t len);
/* Put a frame with the usual values, `len` bytes of payload made from `seed`. */
void probe_send(struct probe *p, uint8_t op, uint32_t psn, uint32_t len, uint32_t seed);
void probe_write(struct probe *p, uint8_t op, uint32_t psn, uint32_t off, uint32_t length,
		 uint32_t len, uint32_t seed);
void probe_read(struct probe *p, uint32_t psn, uint32_t off, uint32_t length);
void probe_atomic(struct probe *p, uint8_t op, uint32_t psn, uint32_t off, uint64_t swap_add,
		  uint64_t compare);
void probe_ack(struct probe *p, uint32_t psn, uint8_t syn, uint32_t msn);
/* Put a READ response, or an ATOMIC ACK (len: the original value). */
void probe_resp(struct probe *p, uint8_t op, uint32_t psn, uint32_t len, uint32_t seed);

/* One turn, `ns` later. */
void probe_turn(struct probe *p, uint64_t ns);
/* Run turns without time passing, until nothing moves any more. */
void probe_settle(struct probe *p);
/* Let time pass, with a turn every `step` ns and at the end. */
void probe_pass(struct probe *p, uint64_t ns, uint64_t step);

/* ---- the program */

void probe_recv(struct probe *p, uint32_t off, uint32_t len, uint64_t wr_id);
/* Post a request; data at `off`, remote address PROBE_VA + remote, key p->key. */
void probe_post(struct probe *p, uint8_t op, uint8_t flags, uint32_t off, uint32_t len,
		uint64_t remote, uint64_t wr_id);
/* The slot that probe_post() filled last, for changing it before the doorbell. */
struct urn_abi_swqe *probe_slot(struct probe *p);
/* Fill a slot without ringing. */
void probe_prepare(struct probe *p, uint8_t op, uint8_t flags, uint32_t off, uint32_t len,
		   uint64_t remote, uint64_t wr_id);
void probe_ring(struct probe *p);
/* Make bytes of a seed, as frames carry them from byte `from` of a message on. */
void probe_fill(uint8_t *at, uint32_t len, uint32_t seed, uint32_t from);
void probe_check_fill(const uint8_t *at, uint32_t len, uint32_t seed, uint32_t from,
		      const char *file, int line);
#define check_fill(at, len, seed, from) probe_check_fill(at, len, seed, from, __FILE__, __LINE__)

/*
 * Let the nth memory operation from now on fail: at once and not done, or when
 * it is answered (for executors that answer late).
 */
void probe_fail_op(struct probe *p, unsigned int nth, bool late);

/* ---- output of the node; each call first lets it settle */

/* The next frame that the node sent must be this one. */
const struct frame *probe_expect(struct probe *p, uint8_t op, uint32_t psn, const char *file,
				 int line);
void probe_silent(struct probe *p, const char *file, int line);
void probe_expect_aeth(struct probe *p, uint32_t psn, uint8_t syn, uint32_t msn, const char *file,
		       int line);
void probe_expect_cqe(struct probe *p, bool recv, uint64_t wr_id, uint8_t status, const char *file,
		      int line);
void probe_no_cqe(struct probe *p, const char *file, int line);
/* The completion that was looked at last. */
const struct urn_abi_cqe *probe_cqe(struct probe *p, bool recv);

#define expect_frame(p, op, psn) probe_expect(p, op, psn, __FILE__, __LINE__)
#define expect_aeth(p, psn, syn, msn) probe_expect_aeth(p, psn, syn, msn, __FILE__, __LINE__)
#define expect_silence(p) probe_silent(p, __FILE__, __LINE__)
#define expect_sent(p, wr, status) probe_expect_cqe(p, false, wr, URN_WC_##status, __FILE__, __LINE__)
#define expect_recv(p, wr, status) probe_expect_cqe(p, true, wr, URN_WC_##status, __FILE__, __LINE__)
#define expect_no_cqe(p) probe_no_cqe(p, __FILE__, __LINE__)
#define expect_count(p, id, n) assert_int_equal((p)->tp->c.v[URN_C_##id], n)

/* PSNs counted from the first of each side. */
#define PSN(base, n) (((base) + (uint32_t)(n)) & 0xffffffu)
#define RQ(n) PSN(PROBE_RQ_PSN, n)
#define SQ(n) PSN(PROBE_SQ_PSN, n)

#endif
