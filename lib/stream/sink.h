/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the two files of the sink share: sink.c fills receives and decides, sink_in.c
 * takes what comes. */
#ifndef URN_STREAM_SINK_H
#define URN_STREAM_SINK_H

#include "stream/priv.h"

/* A receive of the program. i: 0 is the oldest, up to rx.count */
static inline struct urn_st_recv *
urn_st_recv_at(struct urn_st *s, uint32_t i)
{
	return &s->rx.recv[(s->rx.first + i) % URN_ST_RECVS];
}

/* Bytes that a receive still takes. */
static inline uint64_t
urn_st_room_of(const struct urn_st_recv *r)
{
	return r->area.bytes - r->filled;
}

/* Place in the stream behind the last byte of the open SrcAvail. */
static inline uint64_t
urn_st_offer_end(const struct urn_st *s)
{
	return s->rx.offer.offset + s->rx.offer.bytes;
}

/* The oldest receive is complete. returns: true */
bool urn_st_sink_complete(struct urn_st *s, enum urn_st_status status);
/* Data came: it waits in its buffer for a receive. slot: the receive with it; from: its place there
 */
void urn_st_sink_keep(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from);
/* The source will not write to the announced memory any more: its place in the stream is taken. */
void urn_st_sink_void(struct urn_st *s, enum urn_st_decision why);
/* Copy from the oldest data that waits into the oldest receive. returns: true */
bool urn_st_sink_fill(struct urn_st *s);
/* Drop all data that waits. */
void urn_st_sink_drop(struct urn_st *s);

#endif
