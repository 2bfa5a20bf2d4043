/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the files of the stream machine share. */
#ifndef URN_STREAM_PRIV_H
#define URN_STREAM_PRIV_H

#include "stream/stream.h"

/* ---- machine.c */

/* Count and trace a decision. offset, bytes: as in struct urn_st_trace */
void urn_st_decide(struct urn_st *s, enum urn_st_decision d, uint64_t offset, uint64_t bytes);
/* Hand an action to the shell. */
void urn_st_act(struct urn_st *s, const struct urn_st_action *a);
/*
 * Send a message: credit and seen are set here. The caller has asked urn_st_may_send().
 *
 * addr, lkey: the program's memory with m->length bytes of the stream
 */
void urn_st_emit(struct urn_st *s, struct urn_st_msg *m, uint64_t addr, uint32_t lkey);
/* Ask the shell for n more receives. */
void urn_st_post(struct urn_st *s, uint32_t n);
/* Steps until there is none: each takes a message, a receive, a send or data that waits, and all
 * are bounded. */
void urn_st_pump(struct urn_st *s);
/* True when the shell takes one more message now. */
bool urn_st_may_send(const struct urn_st *s);
/* End the connection because of a message of the peer. expected: the place where this end is */
void urn_st_die(struct urn_st *s, enum urn_st_reason reason, const struct urn_st_msg *m,
		uint64_t expected);
/* Data messages that the sink can take, since the start. */
uint32_t urn_st_grant(const struct urn_st *s);

/* ---- source.c */

/* One step of the source, if there is any. returns: true when something was done */
bool urn_st_source_step(struct urn_st *s);
/* SinkAvail, alone or on a command. m: the message that brought it */
void urn_st_source_advert(struct urn_st *s, const struct urn_st_msg *m,
			  const struct urn_st_advert *a, bool command);
/* RdCompl, SendSm and Stop came. */
void urn_st_source_read(struct urn_st *s, const struct urn_st_msg *m);
void urn_st_source_small(struct urn_st *s, const struct urn_st_msg *m);
void urn_st_source_stop(struct urn_st *s, const struct urn_st_msg *m);
/* The write is complete. */
void urn_st_source_written(struct urn_st *s);
/* The connection broke: all sends fail, but not while the queue pair may still read the oldest.
 * fenced: it can not */
void urn_st_source_fail(struct urn_st *s, bool fenced);

/* ---- sink.c */

/* One step of the sink, if there is any. returns: true when something was done */
bool urn_st_sink_step(struct urn_st *s);
/* Messages of the peer's source. slot: the receive with the message; from: place of its data */
void urn_st_sink_data(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from);
void urn_st_sink_offer(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from);
void urn_st_sink_written(struct urn_st *s, const struct urn_st_msg *m);
void urn_st_sink_fin(struct urn_st *s, const struct urn_st_msg *m);
/* The SinkAvail that may ride on a command. returns: false: none may now */
bool urn_st_sink_carry(struct urn_st *s, uint64_t id, struct urn_st_advert *a);
/* A receive waits for no command any more. */
void urn_st_sink_release(struct urn_st *s, uint64_t id);
/* True when the open SrcAvail may be answered by zero copy, now or when a receive is there. */
bool urn_st_sink_may_zcopy(const struct urn_st *s);
/* Take a receive back. returns: as urn_st_cancel() */
int urn_st_sink_cancel(struct urn_st *s, uint64_t id);
/* A read is complete. */
void urn_st_sink_read(struct urn_st *s);
/* One step of the sink behind the end of the connection. returns: true when something was done */
bool urn_st_sink_rest(struct urn_st *s);
/* The queue pair touches no receive any more. */
void urn_st_sink_fenced(struct urn_st *s);

#endif
