/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rail over messages without connections instead of a queue pair: the same calls as rail.h, for
 * rail.c. Each side has one receive queue, of which the other is told over the control socket.
 *
 *   chunk     one message, of the register set of its slot; the slot lies in the set's arena
 *   message   one message, of any free set
 *
 * Messages come in no order among each other, so each has a number, and is delivered in the order of the
 * numbers. A chunk stays in the receive queue until its slot is given back by a CREDIT. Messages of
 * others, which know neither the peer's address nor the queue's token, are ignored.
 */
#ifndef URN_CP_RAIL_MSG_H
#define URN_CP_RAIL_MSG_H

#include "rail.h"

/* Make port, register sets and queue; sets r->msg, r->at and r->local. returns: 0, or -1 with *err */
int cp_rail_msg_open(struct cp_rail *r, struct urn_err *err);
/* Set the peer's queue, and its address. */
void cp_rail_msg_connect(struct cp_rail *r, const uint8_t gid[16], const struct cp_queue *peer);
/* This side's queue, to be told to the peer. */
void cp_rail_msg_own(const struct cp_rail *r, struct cp_queue *own);
/* Close all of it; safe at any stage. */
void cp_rail_msg_close(struct cp_rail *r);

int cp_rail_msg_poll(struct cp_rail *r, struct cp_event *ev, struct urn_err *err);
int cp_rail_msg_write(struct cp_rail *r, uint64_t seq, uint32_t len, struct urn_err *err);
int cp_rail_msg_send(struct cp_rail *r, const struct cp_msg *msg, struct urn_err *err);

#endif
