/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of an adapter that obeys priority-based flow control (IEEE 802.1Qbb). */
#ifndef URN_ENGINE_OBEY_H
#define URN_ENGINE_OBEY_H

#include "switch/classify.h"

#include <stdbool.h>
#include <stdint.h>

/* Preset of the two times, ns. */
#define URN_OBEY_NS 200000000ull

struct urn_obey_config {
	bool on; /* obey; else frames of MAC control are dropped like other unknown ones */
	/*
	 * ns; a priority that has frames and sends none for so long because it is paused, or that
	 * is paused for URN_STORM_WATCHDOGS times so long while its peer takes less than the part
	 * 1 / URN_STORM_PART of the time, goes on, and ignores pauses until none has come for
	 * restore_ns, or for up to 1 << URN_STORM_DOUBLES times so long after storms again and
	 * again (switch/storm.h). 0: URN_OBEY_NS
	 */
	uint64_t watchdog_ns, restore_ns;
	struct urn_classify_map map; /* priorities of the frames that the adapter sends */
};

struct urn_shard;
struct urn_obey;
struct urn_pfc;
struct rte_mbuf;

/* Make the state of an adapter's shard. bps: bits a second of its port; 0: 10 Gb/s. NULL: no memory
 */
struct urn_obey *urn_obey_create(const struct urn_obey_config *cfg, uint64_t bps);
/* NULL is allowed. */
void urn_obey_destroy(struct urn_obey *o);

/*
 * Take the frames of flow control out of a burst that the shard received, n frames in m, and obey
 * them, on all engines of the adapter. returns: frames that are left
 */
unsigned int urn_shard_take_control(struct urn_shard *s, struct rte_mbuf **m, unsigned int n);
/* Obey a message on this shard. */
void urn_shard_obey(struct urn_shard *s, const struct urn_pfc *pfc);
/*
 * Leave the frames that may be sent now in tp->tx, and put others aside until their priority may go
 * on. Tell the transport of which priorities it is to make no more.
 */
void urn_shard_hold(struct urn_shard *s);

#endif
