/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * REPORT and MIGRATED as they travel on a control path (FO-13, FO-17), LEAVE, by which an end that
 * goes tells what it received, and OFFER, by which an end tells of a path's queue pairs that it
 * made anew (FO-19, heal.h). All begin with 16 bytes that say what they are and whose; MIGRATED has
 * nothing behind them. A message has exactly the length of its kind: a control path carries one
 * message a Send.
 *
 *   0        4        5     6       8       12      16
 *   | magic  |version |kind | length| conn  | epoch |                        network byte order
 *   16       20       24      32        40      48        56           184
 *   | flags  | paths  | sent  | received| sends | atomics | old[16]    |     REPORT only
 *   16                24      32        40
 *   | received        | sent  | sends   |                                    LEAVE only
 *   16       20       24      28        32        48        52    56     72
 *   | path   | flags  | round | to      | numbers | key     | 0   | gid  |     OFFER only
 */
#ifndef URN_SESSION_WIRE_H
#define URN_SESSION_WIRE_H

#include "session/session.h"

enum {
	URN_SESS_WIRE_MAGIC = 0x55534553, /* "USES" */
	URN_SESS_WIRE_VERSION = 1,	  /* a layout of another version is refused */
	URN_SESS_WIRE_REPORT = 1,	  /* kind */
	URN_SESS_WIRE_MIGRATED = 2,	  /* kind */
	URN_SESS_WIRE_LEAVE = 3,	  /* kind */
	URN_SESS_WIRE_OFFER = 4,	  /* kind */
	URN_SESS_WIRE_LEAVE_BYTES = 40,	  /* bytes of LEAVE */
	URN_SESS_WIRE_OFFER_BYTES = 72,	  /* bytes of OFFER */
	URN_SESS_WIRE_HEAD = 16,	  /* bytes of MIGRATED, and in front of REPORT's own */
	URN_SESS_WIRE_MAX = 184, /* bytes of REPORT: a receive of a control path has them */
};

/* X(name, text): verdicts on received bytes. All but OK are reasons of a drop. */
/* clang-format off */
#define URN_SESS_VERDICTS(X) \
	X(OK, "a message") \
	X(SHORT, "shorter than the head of a message") \
	X(MAGIC, "not of the session layer") \
	X(VERSION, "of another version of the session layer") \
	X(KIND, "none of REPORT, MIGRATED, LEAVE and OFFER") \
	X(LENGTH, "length is not that of its kind, or not that of the bytes received") \
	X(CONN, "of another connection") \
	X(EPOCH, "epoch 0, which no migration has") \
	X(FLAGS, "flags that do not exist") \
	X(PATHS, "paths that are shunned and not alive") \
	X(ENDS, "a path's end without a round, or with numbers out of range")
/* clang-format on */

enum urn_sess_verdict {
#define X(name, text) URN_SESS_V_##name,
	URN_SESS_VERDICTS(X)
#undef X
		URN_SESS_V_COUNT,
};

/* Flags of an OFFER. */
enum urn_sess_offer_flag {
	URN_SESS_O_TRUSTED = 1 << 0, /* the sender counts the path as alive */
	URN_SESS_O_KNOWN = 1 << 1,   /* the sender knows that the receiver does */
	URN_SESS_O_LOST = 1 << 2,    /* the sender never trusts this end of the path any more */
};

/* OFFER: one end of a path, as its session layer tells it. */
struct urn_sess_offer {
	uint32_t path;	   /* number of the path, the same on both sides */
	uint32_t flags;	   /* enum urn_sess_offer_flag */
	uint32_t round;	   /* round of this end, from 1 on (heal.h) */
	uint32_t to;	   /* round of the receiver's end that it is connected to; 0: none */
	uint32_t qpn, psn; /* queue pair of the program's traffic, and its first PSN; 24 bits */
	uint32_t ctl_qpn, ctl_psn; /* queue pair of control messages, and its first PSN; 24 bits */
	uint32_t key;		   /* key of the table of keys, for READs, on this adapter */
	uint8_t gid[16];	   /* address of this adapter */
};

/* A control message in the byte order of the host. */
struct urn_sess_msg {
	uint32_t kind;		     /* URN_SESS_WIRE_REPORT, _MIGRATED, _LEAVE or _OFFER */
	uint32_t conn;		     /* number of the connection, on the receiver's side */
	uint32_t epoch;		     /* epoch of the migration; the same as in told */
	struct urn_sess_report told; /* valid for REPORT; of LEAVE: received, sent, sends; else 0 */
	struct urn_sess_offer offer; /* valid for OFFER; else 0 */
};

/* Text of a verdict, for logs. returns: "?" for none */
const char *urn_sess_wire_text(unsigned int verdict);

/*
 * Write a REPORT.
 *
 * to: URN_SESS_WIRE_MAX bytes of any alignment
 * conn: number of the connection, on the receiver's side
 * returns: bytes written
 */
uint32_t urn_sess_wire_report(void *to, uint32_t conn, const struct urn_sess_report *r);
/*
 * Write MIGRATED.
 *
 * to: URN_SESS_WIRE_HEAD bytes of any alignment
 * returns: bytes written
 */
uint32_t urn_sess_wire_migrated(void *to, uint32_t conn, uint32_t epoch);
/*
 * Write LEAVE.
 *
 * to: URN_SESS_WIRE_LEAVE_BYTES bytes of any alignment
 * epoch: of the newest migration; 0: there was none
 * r: received, sent and sends are told
 * returns: bytes written
 */
uint32_t urn_sess_wire_leave(void *to, uint32_t conn, uint32_t epoch,
			     const struct urn_sess_report *r);
/*
 * Write an OFFER.
 *
 * to: URN_SESS_WIRE_OFFER_BYTES bytes of any alignment
 * epoch: of the newest migration; 0: there was none
 * returns: bytes written
 */
uint32_t urn_sess_wire_offer(void *to, uint32_t conn, uint32_t epoch,
			     const struct urn_sess_offer *o);
/*
 * Read a message from a peer that is not trusted. Only the form is judged here; whether ids are
 * plausible is the machine's question (urn_sess_report()). The bytes are copied before they are
 * checked, so a peer that writes them meanwhile changes nothing.
 *
 * from: the message as the control path received it, of any alignment
 * bytes: its length
 * conn: number of the connection to which the control path belongs, on our side
 * m: the message; all 0 unless OK
 */
enum urn_sess_verdict urn_sess_wire_get(const void *from, uint32_t bytes, uint32_t conn,
					struct urn_sess_msg *m);

#endif
