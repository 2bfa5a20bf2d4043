/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the loop of an engine (dataplane/engine): blocks that counters.h joins. */
#ifndef URN_COUNTERS_ENGINE_H
#define URN_COUNTERS_ENGINE_H

/* clang-format off */
/* Events. */
#define URN_COUNTERS_ENGINE(X) \
	X(EVENT_LATE, "event_late", "events whose pipe was full; told later") \
	X(EVENT_LOST, "event_lost", "events nobody could be told")
/* clang-format on */

#endif
