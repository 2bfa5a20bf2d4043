/* SPDX-License-Identifier: BSD-3-Clause */
/* What is inside an impairment: shared by the files impair*.c, and nobody else. */
#ifndef URN_SWITCH_IMPAIR_STATE_H
#define URN_SWITCH_IMPAIR_STATE_H

#include "switch/impair.h"

#define URN_IMPAIR_HELD 64u	 /* beyond these a frame is not held back */
/* What holds when nobody says: frames inside, the bound of reordering, others that pass. */
#define URN_IMPAIR_DEFAULT_QUEUE 4096u
#define URN_IMPAIR_DEFAULT_REORDER_NS 100000u
#define URN_IMPAIR_DEFAULT_PASS 8u
#define URN_IMPAIR_RATE_SHIFT 20 /* ns of a byte are kept in 1/2^20 */

/* What chance is asked about; a sequence of its own for each, and for copies. */
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
	uint64_t due;  /* ns; in the held list: to go at the latest */
	uint32_t pass; /* frames that are to pass it; 0: none */
};

struct urn_impair {
	/* Read for each frame. */
	bool plain;    /* nothing configured */
	bool prompt;   /* what is not lost or held back is due at once, one for one, unchanged */
	bool ready;    /* of the held list, one has been passed often enough */
	bool keep;     /* whoever pops is late: what comes is made ours */
	bool down;     /* flap: as of the push under way */
	uint32_t mask; /* entries of the ring - 1 */
	uint64_t head, tail; /* of the ring: taken, put; free running */
	uint32_t held_n;
	struct urn_impair_entry *ring;
	uint64_t last_due; /* of the entry put last */
	uint64_t frames;   /* frames ever pushed under this seed: where chance is */
	uint64_t tx_free;  /* rate: when the wire is free again, ns */
	uint64_t ns_byte;  /* rate: of a byte, << URN_IMPAIR_RATE_SHIFT; 0: any */
	uint64_t limit[URN_IMPAIR_DRAW_KINDS];	 /* probability of an event, in 1/2^32 */
	uint64_t seed[2][URN_IMPAIR_DRAW_KINDS]; /* of frames, of copies */
	struct rte_mempool *copies;
	uint64_t flap_start; /* UINT64_MAX: at the next push */
	struct urn_impair_counters c;
	struct urn_impair_config cfg;
	struct urn_impair_entry held[URN_IMPAIR_HELD];
};

#endif
