/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors, and clients that left, on their way from an engine to the log: a ring with one writer,
 * the engine, and one reader, the log's thread. The engine never waits: a record that finds no room
 * is counted. A client gets so many records a second, so that it alone can't push others' out; its
 * further errors are counted beside the ring. Many clients that fail at once can fill the ring, and
 * records are lost, which is counted.
 */
#ifndef URN_LOG_RING_H
#define URN_LOG_RING_H

#include "log/who.h"
#include "transport/failure.h"

#include <stdatomic.h>
#include <time.h>

enum {
	URN_LOG_RING = 256,    /* records; a power of two */
	URN_LOG_FLOODS = 16,   /* clients whose further errors are counted at a time */
	URN_LOG_PER_SHARE = 8, /* records a second of a client */
};

/* An error, or queue pairs that were given up, and whose they are. */
struct urn_log_failure {
	struct timespec at;	/* UTC */
	struct urn_log_who who; /* the queue pair's client */
	char adapter[32];	/* its adapter's name */
	char port[32];		/* ... and that of the adapter's port */
	uint32_t left; /* queue pairs that the client gave up, because the engine was silent; 0: the
			  record is of an error */
	struct urn_failure f; /* valid while left is 0 */
};

struct urn_log_ring {
	_Atomic uint32_t head; /* records written, by the engine; wraps */
	_Atomic uint32_t lost; /* records that found no room; taken by the reader */
	/* Errors that were only counted, each of a client: its number << 32 | errors; 0: free. The
	 * engine adds, the reader takes. */
	_Atomic uint64_t flood[URN_LOG_FLOODS];
	_Alignas(64) _Atomic uint32_t tail; /* records read, by the reader; wraps */
	struct urn_log_failure record[URN_LOG_RING];
};

/* In the engine's thread: find the place of the next record, before anything is written into it.
 * returns: NULL: there is no room, and the record is counted as lost */
struct urn_log_failure *urn_log_ring_place(struct urn_log_ring *r);
/* In the engine's thread: hand the record at that place over. */
void urn_log_ring_put(struct urn_log_ring *r);
/* In the engine's thread: count one more error of a client. client: its number, not 0 */
void urn_log_ring_more(struct urn_log_ring *r, uint32_t client);
/* In the reader's thread: take the oldest record. returns: false: there is none */
bool urn_log_ring_take(struct urn_log_ring *r, struct urn_log_failure *f);
/* In the reader's thread: take a number of errors that were only counted. i: from 0 to
 * URN_LOG_FLOODS - 1. returns: the number; 0: none */
uint32_t urn_log_ring_take_more(struct urn_log_ring *r, unsigned int i, uint32_t *client);
/* In the reader's thread: take the number of records that were lost. */
uint32_t urn_log_ring_take_lost(struct urn_log_ring *r);

#endif
