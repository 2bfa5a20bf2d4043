/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair.
 *
 * Requester and responder are independent halves. Fields touched for every packet come first;
 * fields that only control calls and errors need come last. An idle QP is this struct and its
 * record of READs and atomics, nothing more: work under way, receives in use and packets held are
 * pool objects.
 */
#ifndef URN_TRANSPORT_QP_H
#define URN_TRANSPORT_QP_H

#include "abi/control.h"
#include "host/queue.h"
#include "transport/wheel.h"
#include "transport/work.h"
#include "wire/build.h"

#include <stddef.h>

#include <rte_prefetch.h>

struct urn_tp;

/* The kind of message that the responder is in the middle of. */
enum urn_resp_msg { URN_MSG_NONE, URN_MSG_SEND, URN_MSG_WRITE };

/* Bits of struct urn_qp.flags. */
enum urn_qp_flag {
	URN_QPF_SCHED = 1 << 0,     /* in the transmit schedule */
	URN_QPF_ACK = 1 << 1,       /* an acknowledgement is owed */
	URN_QPF_NAK = 1 << 2,       /* a NAK (also RNR) is to be sent: nak_syn, nak_psn */
	URN_QPF_GAP = 1 << 3,       /* a sequence NAK for this gap was sent, or is to be */
	URN_QPF_RNR_SENT = 1 << 4,  /* RNR NAK sent; the refused packet has not come again */
	URN_QPF_RNR_WAIT = 1 << 5,  /* the requester waits out a peer's RNR NAK */
	URN_QPF_WENT_BACK = 1 << 6, /* went back to una already, without progress since */
	URN_QPF_NEIGH = 1 << 7,     /* waits for the peer's MAC address */
	URN_QPF_LOOP = 1 << 8,      /* the peer is this adapter */
	URN_QPF_DYING = 1 << 9,     /* being reset or destroyed: sends nothing, takes nothing */
	URN_QPF_DRAINING = 1 << 10, /* SQD: the drained event is owed */
	URN_QPF_RECV_BAD = 1 << 11, /* the receive that is flushed next failed, because its memory did */
	URN_QPF_CUT = 1 << 13,      /* a response failed: no response from nak_psn on may go out */
	URN_QPF_SIG_ALL = 1 << 12,  /* every send request completes */
	URN_QPF_COMM_EST = 1 << 14, /* the communication-established event was given */
	URN_QPF_LAST_WQE = 1 << 15, /* the last-WQE event was given */
	URN_QPF_MAC = 1 << 17,      /* the template has the peer's MAC address */
	URN_QPF_PROBE = 1 << 18,    /* a probe is to be sent: the tail may be lost */
	URN_QPF_MISSED = 1 << 20,   /* responses were dropped for slow memory: everything from una on is due again */
	URN_QPF_OWN_BACK = 1 << 21, /* the QP went back for URN_QPF_MISSED: a NAK may make it go back once more */
	URN_QPF_CQ_BROKEN = 1 << 25, /* a CQ of the QP lost a completion: to the error state when served next */
	URN_QPF_NO_MAC = 1 << 26,   /* work waits for the peer's MAC address: the timer runs as if the work were sent */
	URN_QPF_HELD = 1 << 22,     /* the timer ran out while turns stood still: the timeout does not count yet */
	URN_QPF_EARLY = 1 << 23,    /* a request was repeated early; nothing has shown yet that this was needless */
	URN_QPF_UNASKED = 1 << 24,  /* the QP went back, and the newest packet had not asked for an acknowledgement */
	URN_QPF_DOUBT = 1 << 29,    /* the QP repeated, and the peer is being asked for its MAC address anew */
	URN_QPF_MOVED = 1 << 30,    /* ... and has another MAC address now; valid with URN_QPF_DOUBT */
	URN_QPF_TRACE = 1 << 28,    /* packets taken up have left fingerprints: trace */
	URN_QPF_HOLD = 1 << 27,     /* sends no requests: the owner of the connection is not settled (control/pair.h) */
	URN_QPF_PARTS = 1 << 19,    /* parts of READs wait to be answered again: urn_repair.parts */
	URN_QPF_REFUSED = 1 << 16,  /* the responder refused for good and accepts no more */
};

/* One READ or atomic on the responder's record (doc/reference/wire.md "Duplicates"). */
struct urn_rec {
	uint64_t va;             /* READ: address; atomic: original value */
	uint32_t rkey;           /* READ */
	uint32_t length;         /* bytes; 8 for an atomic */
	uint32_t cur;            /* responding: packets of the response made so far */
	uint32_t end;            /* responding: one past the last packet of this (re)play */
	uint32_t first_psn : 24;
	uint32_t kind : 2;       /* enum urn_rec_kind */
	uint32_t pending : 1;    /* a response is to be made */
	uint32_t busy : 1;       /* accepted; its turn has not come */
	uint32_t again : 1;      /* pending: the whole response was made before */
	uint32_t head : 1;       /* responding: the next packet is the first of this (re)play */
	uint32_t msn : 24;       /* message number that its response carries */
};
_Static_assert(sizeof(struct urn_rec) == 32, "record of a READ or atomic");

/* Behind the ring of records: where the atomics of each record are logged, one entry a record; NULL: nowhere. */
#define URN_QP_LOG(qp) ((struct urn_abi_atomic **)((qp)->rec + (qp)->rec_mask + 1))

enum urn_rec_kind { URN_REC_NONE, URN_REC_READ, URN_REC_ATOMIC };

/*
 * Entries that the QPs of a client hold of an engine's pools. All clients share the pools, and work
 * that waits for a silent peer may wait for ever: so the less is left, the less one client may
 * hold, and something is always left for others (pool.h).
 */
struct urn_tp_share {
	void *client;             /* control: owner of the QPs; NULL: none */
	uint32_t work, ext, recv; /* entries held; engine's thread only */
	uint32_t trace;           /* QPs with fingerprints; engine's thread only */
	uint16_t trace_oldest, trace_newest; /* ordered by when they got them, index in the pool; 0: none (kept.h) */
};

struct urn_qp {
	/* ---- every packet */
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t flags;           /* enum urn_qp_flag */
	uint8_t type;             /* enum urn_abi_qp_type */
	uint8_t state;            /* enum urn_abi_qp_state */
	uint16_t mtu;             /* path MTU, bytes */
	uint8_t mtu_shift;        /* log2 of the path MTU */
	uint8_t access;           /* enum urn_abi_access: rights of the peer */
	uint8_t msg;              /* responder: enum urn_resp_msg */
	uint8_t nak_syn;          /* valid with URN_QPF_NAK */
	uint32_t pd;
	struct urn_qp *sched_next; /* next in the transmit schedule, or among QPs that wait for a MAC address */
	struct urn_qp *sched_prev; /* previous there; not valid for the first */
	struct rte_mbuf *rx_head, *rx_tail; /* accepted packets that wait for memory, in order */
	struct rte_mbuf *tx_last; /* the last of the built frames that wait for memory, in order, a ring; NULL: none */

	/* ---- responder */
	uint32_t epsn;            /* next PSN to accept */
	uint32_t done_psn;        /* newest PSN whose work is done: an ACK names this PSN */
	uint32_t msn;             /* messages completed */
	uint32_t nak_psn;         /* valid with URN_QPF_NAK; for a sequence NAK, which is for epsn: one past the
				   * newest PSN that is missing for certain */
	struct urn_recv *recv;    /* receive of the SEND under way; NULL: none */
	struct urn_rq rq;         /* with an SRQ: receives taken from there */
	struct urn_srq *srq;      /* NULL: none */
	uint32_t msg_off;         /* bytes of the message placed or being placed so far */
	uint32_t msg_rkey;        /* WRITE under way */
	uint64_t msg_va;          /* WRITE under way: its first address */
	uint32_t msg_len;         /* WRITE under way: its length */
	uint32_t ack_turn;        /* turn of the engine since which the ACK is owed */
	struct urn_rec *rec;      /* ring of max_dest_rd_atomic entries (rounded up to 2^n) */
	uint16_t rec_head;        /* free running: next to use */
	uint8_t rec_mask;         /* entries - 1 */
	uint8_t rec_pending;      /* entries with a response to be made */
	uint16_t ooo_count;       /* packets kept ahead of their turn */
	uint16_t peer;            /* RC: the way to the peer's adapter, by index (peer.h) */
	struct rte_mbuf *ooo;     /* the last kept packet, by PSN; a ring (ring.h) */

	/* ---- requester */
	struct urn_sq sq;
	struct urn_tp_share *share; /* share of the client that made the QP */
	struct urn_work *w_head, *w_tail; /* work under way, oldest first */
	struct urn_work *w_cur;   /* next to send from; NULL: fetch more */
	struct urn_work *w_fetch; /* oldest READ or atomic without a whole response; NULL: none sent */
	uint32_t una;             /* oldest PSN not acknowledged */
	uint32_t cur_psn;         /* next PSN to send; behind next_psn while repeating */
	uint32_t next_psn;        /* first PSN never sent */
	uint32_t alloc_psn;       /* first PSN not given to work */
	uint32_t ssn;             /* ssn of the newest work fetched */
	uint32_t lsn : 24;        /* highest ssn that credits allow; valid when credits count */
	uint32_t early : 8;       /* probe and repeats since the last progress, before the timeout; with
				   * URN_QPF_HELD: turns with a look at the QP since the timer ran out */
	union {
		uint32_t acked;   /* RC: one past the newest PSN that the peer acknowledged */
		uint32_t qkey;    /* UD */
	};
	uint8_t since_ack;        /* packets sent since the last that asked for an ACK, at most 32 */
	uint8_t back : 4;         /* log2 of the PSNs repeated at a time, plus 1; 0: no repeat, or all is repeated */
	uint8_t alive : 4;        /* halves of a timeout by which duplicates delayed it since the last progress */
	uint8_t fetch_out;        /* READs and atomics under way */
	uint8_t max_rd_atomic;
	uint8_t retry_cnt : 4, retries : 4;   /* configured; left */
	uint8_t rnr_retry : 4, rnr_tries : 4; /* configured; left */
	uint16_t repair;          /* index of the QP's repair state; 0: none (repair.h) */
	uint32_t back_end : 24;   /* PSN behind the part to repeat now; valid while cur_psn is behind next_psn */
	uint32_t timeout : 5;     /* code; 0: none */
	uint32_t credits : 1;     /* the peer counts credits: lsn is valid */
	uint32_t en_sqd_notify : 1; /* the configured value */
	struct urn_timer timer;   /* acknowledgement, RNR wait, or address wait */
	uint64_t deadline;        /* ns: when the timer is really due */
	struct urn_cq *send_cq, *recv_cq;
	struct urn_tmpl tmpl;     /* headers to the peer; RC only */

	/* ---- control and errors */
	uint16_t mac_gen;         /* urn_tp.mac_gen when the MAC in tmpl was looked up; valid with URN_QPF_MAC */
	uint16_t tx_waiting;      /* frames in the ring of tx_last: a few hundred at most (tp.c) */
	uint32_t db : 20;         /* doorbell id; the same for the life of the QP */
	uint32_t trace : 12;      /* fingerprints of kept packets that were taken up, by index (kept.h); 0: none */
	uint32_t windows;         /* first type 2 window bound to the QP, an index of memory/; 0: none */
	uint64_t cookie;          /* the client's, for events */
	uint32_t rq_psn : 24;     /* the configured value */
	uint32_t path_mtu : 3;    /* code 1..5 */
	uint32_t min_rnr_timer : 5; /* code that our RNR NAKs carry */
	uint32_t sq_psn : 24;     /* the configured value */
	uint32_t max_dest_rd_atomic : 8; /* the configured value */
	struct urn_abi_av av;
};

_Static_assert(sizeof(struct urn_qp) <= 448, "an idle QP stays under 512 bytes, all told");

/* Number of PSNs of the response to a READ or atomic on record. */
static inline uint32_t
urn_rec_npsn(const struct urn_qp *qp, const struct urn_rec *rec)
{
	return rec->length ? (rec->length + qp->mtu - 1u) >> qp->mtu_shift : 1;
}

/*
 * Control: the client that made the QP; NULL: none. The load is atomic because other threads look
 * at a QP while its engine puts the QP back to the state of a new one.
 */
static inline void *
urn_qp_client(const struct urn_qp *qp)
{
	const struct urn_tp_share *s = __atomic_load_n(&qp->share, __ATOMIC_RELAXED);

	return s ? s->client : NULL;
}

/* Fetch the fields that every packet and every request looks at. */
static inline void
urn_qp_prefetch(const struct urn_qp *qp)
{
	const uint8_t *p = (const uint8_t *)qp;

	for (unsigned int i = 0; i < offsetof(struct urn_qp, mac_gen); i += 64)
		rte_prefetch0(p + i);
}

/* Name of a state, for people. */
const char *urn_qp_state_name(unsigned int state);

#endif
