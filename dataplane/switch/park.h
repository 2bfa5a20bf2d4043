/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of one input that wait for credit of their priority, so that frames of other priorities,
 * which come behind them in the sender's ring, pass. Frames of one priority stay in order. The
 * frames are in memory of our own. One thread at a time.
 */
#ifndef URN_SWITCH_PARK_H
#define URN_SWITCH_PARK_H

#include <stdint.h>

#include <rte_mbuf.h>

#define URN_PARK_FRAMES 1024u /* frames at most, all priorities: as many as a ring has */
#define URN_PARK_PRIORITIES 8u

struct urn_park {
	uint8_t waiting; /* bit p: frames of priority p wait */
	uint16_t frames; /* frames that wait */
	uint16_t empty;	 /* first entry that is not in use; valid while frames < URN_PARK_FRAMES */
	uint16_t head[URN_PARK_PRIORITIES], tail[URN_PARK_PRIORITIES]; /* valid with the bit in
									  `waiting` */
	struct {
		struct rte_mbuf *m; /* the park's while the entry is in use */
		uint16_t next;	    /* entry behind this one; not valid for the last */
	} entry[URN_PARK_FRAMES];
};

/* returns: NULL: no memory */
struct urn_park *urn_park_create(void);
/* Free the frames that wait, too. NULL is allowed. */
void urn_park_destroy(struct urn_park *p);
/* Put a frame behind those of its priority (below URN_PARK_PRIORITIES). There is room. */
void urn_park_put(struct urn_park *p, unsigned int priority, struct rte_mbuf *m);
/* Take the first frames of a priority, at most n. returns: their number, the caller's from here on
 */
unsigned int urn_park_take(struct urn_park *p, unsigned int priority, struct rte_mbuf **m,
			   unsigned int n);

#endif
