/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A teller: a thread of one client in another process, which hands the client its events.
 *
 *   engines, connection                       teller                    client
 *   management        near ──inner pair──► in   │   out ──outer pair──► its end
 *
 * A write to a socket runs a callback for each descriptor that watches the other end, with
 * interrupts off, and a client may watch with as many descriptors as it likes. So engines, and
 * holders of locks, write to an inner pair of sockets that only this process has, and the client's
 * own teller writes to the outer pair, of which the client has both ends. The client's own events
 * wait for an expensive wake-up, and nobody else's.
 *
 * An inner pair of sockets, and no ring with an eventfd: engines of several lcores and connection
 * management write to one channel, a record at a time, and know a channel by its descriptor, as
 * they do with a program of this process; a ring would need a lock or a ring for each writer, and
 * the same system call for each record.
 *
 * Bounds of a way: URN_TELLER_INNER bytes of the system's memory in the inner pair,
 * URN_TELLER_QUEUE records here, and in the outer pair, whatever buffer the client sets there,
 * URN_TELLER_BASE bytes and URN_TELLER_USER more for each queue that uses the way. Events of
 * completion queues have less room, one for each queue: more would tell nothing more. So a queue
 * that has its channel to itself has one unread event from here at most. While the outer pair is
 * full, events of one completion queue are merged here, and a way that is full as well leaves
 * records in the inner pair. An engine that finds no room there keeps its event (engine/notify.c).
 *
 * The room in the outer pair grows with its users, because a library writes events of its own
 * there, for queues that it arms with completions in them: with one of each queue in the pair,
 * records of the teller still find room, so that busy queues do not hold up the others.
 */
#ifndef URN_CONTROL_TELLER_H
#define URN_CONTROL_TELLER_H

#include "abi/control.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	URN_TELLER_QUEUE = 64, /* records of a way that wait for room in the outer pair */
	URN_TELLER_BATCH = 32, /* records that are written at once */
	/* Bytes of the system's memory; a record that is written alone takes 768 to 1,024. */
	URN_TELLER_INNER = 32 << 10, /* in the inner pair */
	URN_TELLER_BASE = 4 << 10,   /* in the outer pair, without users, */
	URN_TELLER_USER = 1 << 10,   /* ... more for each user, */
	URN_TELLER_OUTER = 96 << 10, /* ... up to this */
	URN_TELLER_NONE = 256,	/* in the outer pair: nothing is unread, any record takes more */
	URN_TELLER_FDS = 2,	/* descriptors of a teller, */
	URN_TELLER_WAY_FDS = 3, /* ... and of each of its ways: near, in and out */
};

/* Counts of an adapter's tellers; any thread adds to them, and any reads them. */
struct urn_teller_counts {
	_Atomic uint64_t merged; /* events of completion queues that one behind them stands for */
	_Atomic uint64_t lost;	 /* records that found the outer pair closed */
	_Atomic uint64_t rests;	 /* rests after a wake-up that took long */
};

struct urn_teller;
struct urn_teller_way;

/*
 * Start a client's teller.
 *
 * counts: the adapter's; outlive the teller
 * cpus: processors that its thread may use; NULL, or none of them there: those of the caller
 * returns: NULL with errno: no descriptors, memory or thread
 */
struct urn_teller *urn_teller_create(struct urn_teller_counts *counts, const cpu_set_t *cpus);
/* End the thread, which takes as long as a wake-up under way, and all ways. NULL is allowed. */
void urn_teller_destroy(struct urn_teller *t);

/*
 * Make a way from engines to a client.
 *
 * out: the outer pair's end to write to; the way's from now on, on failure still the caller's
 * merges: the way is a completion channel: waiting events of one completion queue are merged
 * way: is set; until urn_teller_remove() or urn_teller_destroy()
 * near: is set to the inner pair's end that engines write to without a wait; the way's
 * returns: 0; or an errno value: no descriptors, memory, or watches of epoll
 */
int urn_teller_add(struct urn_teller *t, int out, bool merges, struct urn_teller_way **way,
		   int *near);
/* Set the number of a way's users: completion queues, register sets and endpoints. At first 0. */
void urn_teller_users(struct urn_teller_way *way, uint32_t users);
/*
 * End a way that no engine knows any more, and close its descriptors: nothing of it is delivered
 * after that. Waits for the thread to be done with the way, as long as a wake-up takes: so the
 * caller holds no lock.
 */
void urn_teller_remove(struct urn_teller *t, struct urn_teller_way *way);

#endif
