/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration of a switch that loses no frame of some priorities. Frames that wait in the queues
 * of an output are charged to the input they came from. An input whose account is full makes its
 * sender stop: by credits inside the process, by frames of priority-based flow control (pfc.h) on
 * ports that carry them. doc/inside/lossless.md has the design and the bounds.
 */
#ifndef URN_SWITCH_LOSSLESS_H
#define URN_SWITCH_LOSSLESS_H

#include "switch/classify.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Account of an input and priority: bytes of its frames that wait, of each output only those above
 * `share`. Bound of the bytes that wait: share * outputs + xoff + headroom.
 */
struct urn_lossless_config {
	uint8_t priorities; /* bit p: priority p is lossless; 0: none, and nothing else is valid */
	bool no_pfc; /* send no frames of flow control; those that come are obeyed all the same */
	uint32_t share;	   /* bytes for one output that are in no account */
	uint32_t xoff;	   /* bytes from which the sender is to stop */
	uint32_t xon;	   /* bytes at or below which the sender may go on; at most xoff */
	uint32_t headroom; /* bytes above xoff for frames that were on their way already */
	uint64_t
		queue; /* bytes that wait at an output in a priority that is not lossless; 0: any */
	/*
	 * ns; an output priority that holds frames and sends none for so long drops them, or
	 * sends too few while its peer pauses it four times so long (pause.c). Until no
	 * pause has come for restore_ns, longer after storms in a row, the priority then ignores
	 * pauses, and is not lossless: it holds only the share of each input, and drops other
	 * frames.
	 */
	uint64_t watchdog_ns, restore_ns;
	struct urn_classify_map map; /* priorities of frames */
};

/* Set all but the priorities to their presets. */
void urn_lossless_preset(struct urn_lossless_config *cfg);
/* True when the numbers agree with each other. */
bool urn_lossless_check(const struct urn_lossless_config *cfg);

#endif
