/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending end of a sequence of PSNs: work under way in order, a cursor that makes packets of
 * it, and what the peer has acknowledged. A queue pair has one; a channel of another kind, which
 * wants the same reliability, embeds one of its own. The functions are pure: they know of no queue
 * pair, send nothing, and read no clock.
 *
 *     head                   cur.work                 tail
 *       │ una                  │ cur.psn   next         │
 *       ▼                      ▼           ▼            ▼
 *     [done][under way ........│...........│ not sent yet ]
 *
 * To repeat, the cursor goes back; nothing else changes, so that a repeat and a first transmission
 * are the same code.
 */
#ifndef URN_TRANSPORT_PSN_TX_H
#define URN_TRANSPORT_PSN_TX_H

#include "transport/psn.h"
#include "transport/wheel.h"
#include "transport/work.h"
#include "wire/hdr.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of struct urn_psn_tx.flags. */
enum urn_psn_tx_flag {
	URN_TXF_RNR_WAIT = 1 << 0,  /* the peer's RNR NAK is waited out, until deadline */
	URN_TXF_WENT_BACK = 1 << 1, /* went back to una already, without progress since */
	URN_TXF_PROBE = 1 << 2,     /* a probe is to be sent: the tail may be lost */
	URN_TXF_MISSED = 1 << 3,    /* responses were dropped for slow memory: everything from una on is due again */
	URN_TXF_OWN_BACK = 1 << 4,  /* went back for URN_TXF_MISSED: a NAK may send the cursor back once more */
	URN_TXF_HELD = 1 << 5,      /* the timer ran out while turns stood still: the timeout does not count yet */
	URN_TXF_EARLY = 1 << 6,     /* a request was repeated early; nothing has shown yet that this was needless */
	URN_TXF_UNASKED = 1 << 7,   /* went back, and the newest packet had not asked for an acknowledgement */
	URN_TXF_DOUBT = 1 << 8,     /* repeated, and the peer is being asked for its MAC address anew */
	URN_TXF_MOVED = 1 << 9,     /* ... and has another MAC address now; valid with URN_TXF_DOUBT */
};

/*
 * A place in the sequence from which packets are made. The sequence has the cursor of the packet
 * that is sent next; a caller that sends a packet out of its turn hands on a cursor of its own.
 */
struct urn_psn_cursor {
	struct urn_work *work;   /* to make the next packet of; NULL: fetch more */
	uint32_t psn;            /* PSN of the next packet; behind urn_psn_tx.next while repeating */
	uint32_t end : 24;       /* PSN behind the part to repeat now; valid while psn is behind next */
	uint32_t since_ack : 8;  /* packets sent since the last that asked for an ACK, at most 32 */
};

struct urn_psn_tx {
	struct urn_work *head, *tail; /* work under way, oldest first */
	struct urn_work *fetch;    /* oldest READ or atomic without a whole response; NULL: none sent */
	struct urn_psn_cursor cur; /* where packets are made next */
	uint32_t una;              /* oldest PSN not acknowledged */
	uint32_t next;             /* first PSN never sent */
	uint32_t acked;            /* one past the newest PSN that the peer acknowledged */
	uint32_t ssn;              /* send sequence number of the newest work */
	uint32_t lsn : 24;         /* highest ssn that credits allow; valid with credits */
	uint32_t credits : 1;      /* the peer counts credits: lsn is valid */
	uint32_t timeout : 5;      /* code; 0: none */
	uint16_t flags;            /* enum urn_psn_tx_flag */
	uint16_t repair;           /* index of the repair state; 0: none (repair.h) */
	uint16_t peer;             /* the way to the peer's adapter, by index (peer.h) */
	uint8_t fetch_out;         /* work under way that responses complete: READs and atomics */
	uint8_t max_fetch;         /* ... and how many there may be */
	uint8_t back : 4;          /* log2 of the PSNs repeated at a time, plus 1; 0: no repeat, or all is repeated */
	uint8_t alive : 4;         /* halves of a timeout by which duplicates delayed it since the last progress */
	uint8_t retry_cnt : 4, retries : 4;   /* configured; left */
	uint8_t rnr_retry : 4, rnr_tries : 4; /* configured; left */
	uint8_t early;             /* probe and repeats since the last progress, before the timeout; with
				    * URN_TXF_HELD: turns with a look since the timer ran out */
	struct urn_timer timer;    /* acknowledgement, RNR wait, or address wait */
	uint64_t deadline; /* ns: when the timer is really due. UC: end of its wait for the peer's
			      memory; 0: the QP does not wait (uc_hold.h) */
};

/* Number of PSNs that are sent and not acknowledged. */
static inline uint32_t
urn_psn_tx_out(const struct urn_psn_tx *tx)
{
	return (tx->next - tx->una) & URN_PSN_MASK;
}

/* True when everything that was sent is acknowledged. */
static inline bool
urn_psn_tx_idle(const struct urn_psn_tx *tx)
{
	return tx->una == tx->next;
}

/* PSN of the response that is due next; when none is due: that of the next request. */
static inline uint32_t
urn_psn_tx_response(const struct urn_psn_tx *tx)
{
	const struct urn_work *w = tx->fetch;

	return w ? urn_psn_add(w->first_psn, w->accepted) : tx->next;
}

/* True when only a part of the packets that are to be repeated may be repeated now. */
static inline bool
urn_psn_tx_held_back(const struct urn_psn_tx *tx)
{
	return tx->back && tx->cur.psn != tx->next;
}

/* True when the repeated part was answered, and more is held back. */
static inline bool
urn_psn_tx_may_go_on(const struct urn_psn_tx *tx)
{
	return urn_psn_tx_held_back(tx) && urn_psn_diff(tx->una, tx->cur.end) >= 0;
}

/* Give w the next n PSNs, and append w to the work under way. n: 0 for local work */
static inline void
urn_psn_tx_append(struct urn_psn_tx *tx, struct urn_work *w, uint32_t n)
{
	w->npsn = n & URN_PSN_MASK;
	w->next = NULL;
	if (tx->head) {
		w->first_psn = urn_psn_add(tx->tail->first_psn, tx->tail->npsn);
		tx->tail->next = w;
	} else {
		w->first_psn = tx->next; /* all work was sent */
		tx->head = w;
	}
	tx->tail = w;
}

/* Take the oldest work, of which there is some, off the sequence. A cursor on it moves behind it. */
static inline struct urn_work *
urn_psn_tx_pop(struct urn_psn_tx *tx)
{
	struct urn_work *w = tx->head;

	tx->head = w->next;
	if (!tx->head)
		tx->tail = NULL;
	if (tx->cur.work == w) {
		tx->cur.work = w->next;
		tx->cur.psn = urn_psn_add(w->first_psn, w->npsn);
	}
	return w;
}

/*
 * A packet of npsn PSNs was made at the cursor, which may be another than tx->cur; asks: the packet
 * asks for an acknowledgement. returns: true when the packet is a repeat
 */
static inline bool
urn_psn_tx_sent(struct urn_psn_tx *tx, struct urn_psn_cursor *cur, uint32_t npsn, bool asks)
{
	bool again = cur->psn != tx->next;

	cur->since_ack = asks ? 0 : (uint8_t)(cur->since_ack + 1);
	cur->psn = urn_psn_add(cur->psn, npsn);
	if (urn_psn_diff(cur->psn, tx->next) > 0)
		tx->next = cur->psn;
	return again;
}

/* Begin with this PSN, 24 bits, with nothing sent. */
void urn_psn_tx_start(struct urn_psn_tx *tx, uint32_t psn);
/* The work that a PSN belongs to; NULL: none. */
struct urn_work *urn_psn_tx_work_at(const struct urn_psn_tx *tx, uint32_t psn);
/*
 * The work that fails when the peer does not answer: the oldest that has packets; local work
 * alone: the newest of it. NULL: there is none.
 */
struct urn_work *urn_psn_tx_oldest(const struct urn_psn_tx *tx);
/* The newest work that was begun and can be sent again; NULL: none. Work behind failed work does not count. */
struct urn_work *urn_psn_tx_newest(const struct urn_psn_tx *tx);
/*
 * Move una on to the newest PSN that the peer acknowledged (acked). Work that a response completes
 * counts as far as its response was placed. *whole: false when such work stands before acked
 * returns: number of PSNs by which una moved on
 */
uint32_t urn_psn_tx_settle(struct urn_psn_tx *tx, bool *whole);
/* The cursor goes back to una, or to the first response that is missing. */
void urn_psn_tx_to_oldest(struct urn_psn_tx *tx);
/* The cursor moves on to work that was never sent; nothing is held back any more. */
void urn_psn_tx_to_newest(struct urn_psn_tx *tx);
/*
 * Go back to the oldest packet that is not acknowledged, and repeat 2^(back - 1) PSNs (in whole
 * READs; the first READ in any case), the others when these were answered. back 0: repeat all
 */
void urn_psn_tx_go_back(struct urn_psn_tx *tx, uint8_t back);
/* PSNs that are held back are repeated, too. */
void urn_psn_tx_all_back(struct urn_psn_tx *tx);

#endif
