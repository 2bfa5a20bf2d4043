/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: how a client says which of its sources have work. A source is a
 * queue pair (its send queue), or a register set (msg.h).
 *
 * One page set per client and engine: a bitmap with one bit a source and a second
 * one with a bit for each 64-bit word of the first. Setting a bit twice is
 * harmless, so a doorbell can be rung by several threads at once, can't
 * overflow, and can be flooded without effect on others. The engine looks at
 * the summary words only: an idle source costs nothing.
 *
 * The ringer sets the leaf bit, then the summary bit; the engine swaps the
 * summary word out, then the leaf words it names. A ringer that finds the
 * summary bit set may skip setting it: the engine has yet to swap that word
 * and will read the leaf after that.
 */
#ifndef URN_ABI_DOORBELL_H
#define URN_ABI_DOORBELL_H

#include "abi/urn_abi.h"

#include <stdatomic.h>

#define URN_ABI_DB_WORDS (URN_ABI_MAX_QP_ENGINE / 64)
#define URN_ABI_DB_TOPS (URN_ABI_DB_WORDS / 64)

struct urn_abi_db {
	_Atomic uint32_t asleep;      /* dataplane: 1 while the engine needs an eventfd write to wake */
	_Atomic uint32_t tops;        /* dataplane: summary words in use; informative */
	/*
	 * Client: 1: the client has given up a dataplane that does not answer, and its memory is
	 * for others: nothing is to be written there any more. Once 1 it stays so.
	 */
	_Atomic uint32_t left;
	/*
	 * Dataplane: 1: the engine has found `left`, and has ended the client's queue pairs: it
	 * writes nothing any more, neither in the client's memory nor in queues of its own. With
	 * URN_ABI_FEATURE_LEAVE.
	 */
	_Atomic uint32_t ended;
	/*
	 * Dataplane, on the first engine's page: grows while a control call waits for the client's
	 * own memory, or for engines: the dataplane lives, and answers once that is over.
	 */
	_Atomic uint32_t waits;
	uint8_t pad[44];
	_Atomic uint64_t top[URN_ABI_DB_TOPS]; /* bit i: leaf word 64 * t + i may be set */
	_Atomic uint64_t leaf[URN_ABI_DB_WORDS]; /* bit i: source 64 * w + i has work */
};
_Static_assert(offsetof(struct urn_abi_db, left) == 8, "doorbell lines");
_Static_assert(offsetof(struct urn_abi_db, top) == 64, "doorbell lines");
_Static_assert(offsetof(struct urn_abi_db, leaf) == 576, "doorbell lines");
_Static_assert(sizeof(struct urn_abi_db) == 33344, "doorbell lines");

/*
 * Ring the doorbell of `id` (from the reply to URN_CTL_CREATE_QP). The caller
 * has stored the queue's prod with release before. Returns nonzero when the
 * dataplane sleeps and its eventfd must be written.
 */
static inline int
urn_abi_db_ring(struct urn_abi_db *db, uint32_t id)
{
	uint32_t w = id / 64;
	uint64_t bit = 1ull << (id % 64), sum = 1ull << (w % 64);

	/* The read-modify-write orders the queue's prod before both loads below. */
	atomic_fetch_or_explicit(&db->leaf[w], bit, memory_order_seq_cst);
	if (!(atomic_load_explicit(&db->top[w / 64], memory_order_seq_cst) & sum))
		atomic_fetch_or_explicit(&db->top[w / 64], sum, memory_order_seq_cst);
	return (int)atomic_load_explicit(&db->asleep, memory_order_seq_cst);
}

#endif
