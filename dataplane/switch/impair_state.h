/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of an impairment: for the files impair*.c only. */
#ifndef URN_SWITCH_IMPAIR_STATE_H
#define URN_SWITCH_IMPAIR_STATE_H

#include "switch/impair.h"

#define URN_IMPAIR_HELD 64u	 /* frames that may be held back; further ones are not */
/* Defaults: frames inside, the bound of reordering, frames that pass a held one. */
#define URN_IMPAIR_DEFAULT_QUEUE 4096u
#define URN_IMPAIR_DEFAULT_REORDER_NS 100000u
#define URN_IMPAIR_DEFAULT_PASS 8u
#define URN_IMPAIR_RATE_SHIFT 20 /* ns a byte are kept in units of 1/2^20 */

/* Random decisions; each has a sequence of its own, and another for copies. */
enum urn_impair_draw {
	URN_IMPAIR_DRAW_DROP,
	URN_IMPAIR_DRAW_DUP,
	URN_IMPAIR_DRAW_CORRUPT,
	URN_IMPAIR_DRAW_BIT,
	URN_IMPAIR_DRAW_REORDER,
	URN_IMPAIR_DRAW_PASS,
	URN_IMPAIR_DRAW_JITTER,
	URN_IMPAIR_DRAW_KINDS,
};

struct urn_impair_entry {
	struct rte_mbuf *m;
	uint64_t due;  /* ns; in the held list: latest time to go */
	uint32_t pass; /* frames that are still to pass it; 0: none */
};

struct urn_impair {
	/* Read for each frame. */
	bool plain;    /* nothing configured */
	bool prompt;   /* frames that are not dropped or held back are due at once, unchanged, no duplicates */
	bool ready;    /* a frame of the held list has been passed often enough */
	bool keep;     /* the caller can't pop: frames in others' memory are copied */
	bool down;     /* flap: state during the present push */
	uint32_t mask; /* entries of the ring - 1 */
	uint64_t head, tail; /* entries taken from the ring, put into it; free running */
	uint32_t held_n;
	struct urn_impair_entry *ring;
	uint64_t last_due; /* due time of the newest entry, ns */
	uint64_t frames;   /* frames ever pushed under this seed: index in the random sequences */
	uint64_t tx_free;  /* rate: when the wire is free again, ns */
	uint64_t ns_byte;  /* rate: ns a byte, << URN_IMPAIR_RATE_SHIFT; 0: any rate */
	uint64_t limit[URN_IMPAIR_DRAW_KINDS];	 /* probability of an event, in 1/2^32 */
	uint64_t stream; /* which sequences of the configuration's seed; set once */
	uint64_t seed[2][URN_IMPAIR_DRAW_KINDS]; /* [0]: for frames, [1]: for copies */
	struct rte_mempool *copies;
	uint64_t flap_start; /* ns; UINT64_MAX: at the next push */
	struct urn_impair_counters c;
	struct urn_impair_config cfg;
	struct urn_impair_entry held[URN_IMPAIR_HELD];
};

#endif
