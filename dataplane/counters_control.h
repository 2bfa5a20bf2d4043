/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of control calls (dataplane/control): blocks that counters.h joins. */
#ifndef URN_COUNTERS_CONTROL_H
#define URN_COUNTERS_CONTROL_H

/* clang-format off */
/* Connections that belong to another program. */
#define URN_COUNTERS_CONTROL(X) \
	X(PAIR_REFUSED, "pair_refused", "QPs not connected: another program has that connection") \
	X(PAIR_ENDED, "pair_ended", "QPs ended: their peer's connection is another program's")
/* clang-format on */

#endif
