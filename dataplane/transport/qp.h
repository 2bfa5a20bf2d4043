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
#include "transport/psn_rx.h"
#include "transport/psn_tx.h"
#include "transport/source.h"
#include "transport/work.h"
#include "wire/build.h"

#include <stddef.h>

#include <rte_prefetch.h>

struct urn_tp;

/* The kind of message that the responder is in the middle of. */
enum urn_resp_msg { URN_MSG_NONE, URN_MSG_SEND, URN_MSG_WRITE };

/* Bits of struct urn_qp.flags. */
enum urn_qp_flag {
	URN_QPF_SCHED = URN_SOURCE_SCHED, /* in the transmit schedule */
	URN_QPF_NEIGH = URN_SOURCE_AWAY,  /* waits for the peer's MAC address */
	URN_QPF_LOOP = 1 << 8,		  /* the peer is this adapter */
	URN_QPF_DYING =
		URN_SOURCE_CLOSED,  /* being reset or destroyed: sends nothing, takes nothing */
	URN_QPF_DRAINING = 1 << 10, /* SQD: the drained event is owed */
	URN_QPF_RECV_BAD =
		1 << 11,       /* the receive that is flushed next failed, because its memory did */
	URN_QPF_CUT = 1 << 13, /* a response failed: no response from nak_psn on may go out */
	URN_QPF_SIG_ALL = 1 << 12,  /* every send request completes */
	URN_QPF_COMM_EST = 1 << 14, /* the communication-established event was given */
	URN_QPF_LAST_WQE = 1 << 15, /* the last-WQE event was given */
	URN_QPF_MAC = 1 << 17,	    /* the template has the peer's MAC address */
	URN_QPF_MCAST = 1 << 18,    /* attached to a multicast group */
	URN_QPF_CQ_BROKEN =
		1 << 25, /* a CQ of the QP lost a completion: to the error state when served next */
	URN_QPF_NO_MAC = 1 << 26, /* work waits for the peer's MAC address: the timer runs as if the
				     work were sent */
	URN_QPF_TRACE = 1 << 28,  /* packets taken up have left fingerprints: trace */
	URN_QPF_HOLD = 1 << 27,	  /* sends no requests: the owner of the connection is not settled
				     (control/pair.h) */
	URN_QPF_PARTS = 1 << 19,  /* parts of READs wait to be answered again: urn_repair.parts */
	URN_QPF_REFUSED = 1 << 16, /* the responder refused for good and accepts no more */
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

/* The log of atomics in the client's memory (lib/abi/queue.h). */
struct urn_rec_log {
	struct urn_abi_atomic *entry; /* NULL: atomics are logged nowhere */
	uint64_t count;		      /* atomics accepted since the queue pair left RESET */
	uint32_t mask;		      /* entries - 1; valid with entry */
};

/* The log lies behind the ring of records; valid with qp->rec. */
#define URN_QP_LOG(qp) ((struct urn_rec_log *)((qp)->rec + (qp)->rec_mask + 1))

enum urn_rec_kind { URN_REC_NONE, URN_REC_READ, URN_REC_ATOMIC };

struct urn_qp {
	/* ---- every packet */
	union {
		struct urn_source source; /* first: the doorbell, and the place in the schedule */
		struct {                  /* the source's words that a QP uses by name */
			struct urn_source *links[2];
			struct urn_tp_share *share; /* share of the client that made the QP */
			uint32_t flags;             /* enum urn_qp_flag */
			uint32_t source_db : 20;    /* the source's */
			uint32_t trace : 12;        /* fingerprints of kept packets that were taken up, by
						     * index (kept.h); 0: none */
		};
	};
	uint32_t qpn;
	uint32_t dest_qpn;
	uint8_t type;             /* enum urn_abi_qp_type */
	uint8_t state;            /* enum urn_abi_qp_state */
	uint16_t mtu;             /* path MTU, bytes */
	uint8_t mtu_shift;        /* log2 of the path MTU */
	uint8_t access;           /* enum urn_abi_access: rights of the peer */
	uint8_t msg;              /* responder: enum urn_resp_msg */
	uint8_t en_sqd_notify : 1; /* the configured value */
	uint8_t align : 4; /* RC: log2 of the line that long writes go on; or URN_QP_ALIGN_OFF,
			    * URN_QP_ALIGN_PEER (reshape.h) */
	uint16_t pd;
	union {
		uint16_t congestion; /* RC: state of congestion, by index (congestion.h); 0: none */
		uint16_t near; /* UC: the peer's transport in this dataplane, by index (uc_hold.h);
				  0: none; URN_UC_FAR: a peer elsewhere has told its window */
	};
	uint16_t mac_gen;         /* urn_tp.mac_gen when the MAC in tmpl was looked up; valid with URN_QPF_MAC */
	uint16_t tx_waiting;      /* frames in the ring of tx_last: a few hundred at most (tp.c) */
	struct rte_mbuf *rx_head, *rx_tail; /* accepted packets that wait for memory, in order */
	struct rte_mbuf *tx_last; /* the last of the built frames that wait for memory, in order, a ring; NULL: none */

	/* ---- responder */
	struct urn_psn_rx rx;     /* PSNs of requests of the peer */
	struct urn_recv *recv;    /* receive of the SEND under way; NULL: none */
	struct urn_rq rq;         /* with an SRQ: receives taken from there */
	struct urn_srq *srq;      /* NULL: none */
	uint32_t msg_off;         /* bytes of the message placed or being placed so far */
	union {
		uint32_t msg_rkey; /* RC: WRITE under way */
		uint32_t qkey;     /* UD */
	};
	union {
		uint64_t msg_va;		      /* RC: WRITE under way: its first address */
		LIST_HEAD(, urn_mcast_member) groups; /* UD: its attachments to multicast groups */
	};
	uint32_t msg_len;         /* WRITE under way: its length */
	uint16_t rec_head;        /* free running: next to use */
	uint8_t rec_mask;         /* entries - 1 */
	uint8_t rec_pending;      /* entries with a response to be made */
	struct urn_rec *rec;      /* ring of max_dest_rd_atomic entries (rounded up to 2^n) */

	/* ---- requester */
	struct urn_sq sq;
	struct urn_psn_tx tx;     /* PSNs of our requests */
	struct urn_cq *send_cq, *recv_cq;
	struct urn_tmpl tmpl;     /* headers to the peer; RC only */

	/* ---- control and errors */
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

_Static_assert(offsetof(struct urn_qp, source) == 0, "a source's address is its queue pair's");
_Static_assert(offsetof(struct urn_qp, share) == offsetof(struct urn_source, share), "one word by two names");
_Static_assert(offsetof(struct urn_qp, flags) == offsetof(struct urn_source, flags), "one word by two names");

/* The queue pair of a source of the kind URN_SOURCE_QP. */
static inline struct urn_qp *
urn_source_qp(struct urn_source *src)
{
	return (struct urn_qp *)src;
}

/* Number of PSNs of the response to a READ or atomic on record. */
static inline uint32_t
urn_rec_npsn(const struct urn_qp *qp, const struct urn_rec *rec)
{
	return rec->length ? (rec->length + qp->mtu - 1u) >> qp->mtu_shift : 1;
}

/*
 * Share of the client that made the QP, for other threads. The load is atomic because these look at
 * a QP while its engine puts the QP back to the state of a new one. NULL: at that moment
 */
static inline struct urn_tp_share *
urn_qp_owner(const struct urn_qp *qp)
{
	return __atomic_load_n(&qp->share, __ATOMIC_RELAXED);
}

/* Fetch the fields that every packet and every request looks at. */
static inline void
urn_qp_prefetch(const struct urn_qp *qp)
{
	const uint8_t *p = (const uint8_t *)qp;

	for (unsigned int i = 0; i < offsetof(struct urn_qp, windows); i += 64)
		rte_prefetch0(p + i);
}

/*
 * Fetch a source that was rung. A source's kind stands in its first line, which is not here yet, so
 * the lines of a queue pair are fetched; behind a smaller source this does no harm.
 */
static inline void
urn_source_prefetch(const struct urn_source *src)
{
	urn_qp_prefetch((const struct urn_qp *)src);
}

/* Name of a state, for people. */
const char *urn_qp_state_name(unsigned int state);

#endif
