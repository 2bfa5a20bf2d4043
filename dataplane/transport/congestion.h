/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion on the way between a source of work and its peer (DCQCN; doc/inside/recovery.md
 * "Congestion").
 *
 *   switch    marks packets while its queue is long
 *   receiver  a marked packet came: sends a congestion notification packet (CNP), one in 50 us
 *   sender    a CNP came: sends data slower, and rises again while none comes (dcqcn.h)
 *
 * Only sources that saw a mark or a CNP lately have a state, from a pool; the source's slot is the
 * index of that state. The others pay for the looks at a mark and at the slot. Senders of QPs learn of marks by
 * CNPs; a source whose receiver reports marks in acknowledgements calls urn_congestion_reported() instead.
 */
#ifndef URN_TRANSPORT_CONGESTION_H
#define URN_TRANSPORT_CONGESTION_H

#include "transport/dcqcn.h"
#include "transport/source.h"

#include <stdbool.h>
#include <stdint.h>

struct urn_qp;
struct urn_tp;

enum {
	URN_CONGESTIONS = 1024, /* sources with a state at the same time */
	URN_PACED_FRAMES = 4,	/* frames of a paced source in a turn */
	URN_PACE_CREDIT =
		16384, /* ns of its rate that a paced source may catch up with: timers come late */
};

struct urn_congestion {
	struct urn_dcqcn d;   /* our rate; valid while paced */
	struct urn_pace pace; /* not_before: when data goes out again; valid while paced. The timer ends that wait */
	uint64_t ns_byte;     /* ns a byte takes at our rate, 16 fractional bits; valid while paced */
	uint64_t burst;	      /* bytes that go out in a turn, at least a frame; valid while paced */
	uint64_t cnp_at;      /* ns: when the last CNP was sent; 0: never */
	uint64_t slowed_at;   /* ns: when a CNP or a report of marks last slowed the source down; 0: never */
	uint16_t *slot; /* the owner's index of this state, set to 0 with the end of the state;
			   NULL: not in use */
	uint32_t next;        /* the pool's, while in the pool */
	bool paced;           /* CNPs came, and the rate is not back at that of the port */
	bool owed;	      /* a CNP is to be sent */
};

/* Make the pool. returns: 0 or -1: no memory */
int urn_congestion_init(struct urn_tp *tp);
void urn_congestion_free(struct urn_tp *tp);
/* A marked packet came: the QP is a receiver that owes its sender a CNP. */
void urn_congestion_marked(struct urn_tp *tp, struct urn_qp *qp);
/* A CNP came: the QP is a sender that slows down. */
void urn_congestion_notified(struct urn_tp *tp, struct urn_qp *qp);
/* Send the CNP that a QP with a state may owe. returns: false: no room now; the QP is to be served again */
bool urn_congestion_send_cnp(struct urn_tp *tp, struct urn_qp *qp);
/*
 * True when a QP with a state may send data now. If not, the QP has a turn when it may. The state
 * ends here when it has nothing to say any more.
 */
bool urn_congestion_open(struct urn_tp *tp, struct urn_qp *qp);
/* A QP with a state made frames with so many bytes. */
void urn_congestion_sent(struct urn_tp *tp, struct urn_qp *qp, uint32_t bytes);
/* The QP ends, or fails: forget its state, if it has one. */
void urn_congestion_end(struct urn_tp *tp, struct urn_qp *qp);
/* Rate of a QP, bytes a second; 0: it is not paced. For reports, in any thread */
uint64_t urn_congestion_rate(const struct urn_tp *tp, const struct urn_qp *qp);

/* ---- the same for a source of any kind; slot: the owner's, at the same place while it is not 0 */

/*
 * The receiver's acknowledgement reports marks: the source is a sender that slows down as
 * by a CNP, once in the interval of CNPs, whatever the number of reports.
 * rate_now: bytes a second that the source sends now; used if it is not paced yet
 */
void urn_congestion_reported(struct urn_tp *tp, struct urn_source *source, uint16_t *slot,
			   uint64_t rate_now);
/* True when the source may send data now; as urn_congestion_open(), also without a state. */
bool urn_congestion_open_source(struct urn_tp *tp, uint16_t *slot);
/* The source made frames with so many bytes; nothing is noted without a state. */
void urn_congestion_sent_source(struct urn_tp *tp, const uint16_t *slot, uint32_t bytes);
/* Frames of so many bytes that the source sends in a turn: its rate for as long as timers come
 * late. */
unsigned int urn_congestion_frames(const struct urn_tp *tp, const uint16_t *slot, uint32_t bytes,
				   unsigned int budget);
/* The source ends, or its slot moves: forget its state, if it has one. */
void urn_congestion_end_source(struct urn_tp *tp, uint16_t *slot);
/* Rate of a source, as urn_congestion_rate() */
uint64_t urn_congestion_rate_source(const struct urn_tp *tp, const uint16_t *slot);

#endif
