/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of control calls (dataplane/control): blocks that counters.h joins. */
#ifndef URN_COUNTERS_CONTROL_H
#define URN_COUNTERS_CONTROL_H

/* clang-format off */
/* Connections that belong to another program. */
#define URN_COUNTERS_CONTROL(X) \
	X(PAIR_REFUSED, "pair_refused", "QPs not connected: another program has that connection") \
	X(PAIR_ENDED, "pair_ended", "QPs ended: their peer's connection is another program's")

/* Events that a program's teller hands over. */
#define URN_COUNTERS_CONTROL_TELLER(X) \
	X(TELLER_MERGED, "teller_merged", "events of a CQ left out: one that waits for room stands for them") \
	X(TELLER_LOST, "teller_lost", "events for a program that had closed its end") \
	X(TELLER_RESTS, "teller_rests", "rests of a teller after a wake-up that took long: its program has many watchers")
/* clang-format on */

#endif
