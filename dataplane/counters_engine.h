/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the loop of an engine (dataplane/engine): blocks that counters.h joins. */
#ifndef URN_COUNTERS_ENGINE_H
#define URN_COUNTERS_ENGINE_H

/* clang-format off */
/* Events. */
#define URN_COUNTERS_ENGINE(X) \
	X(EVENT_LATE, "event_late", "events whose pipe was full; told later") \
	X(EVENT_LOST, "event_lost", "events nobody could be told") \
	X(LEFT_QPS, "left_qps", "queue pairs ended in silence, because their client had given this process up")

/* Priority-based flow control. */
#define URN_COUNTERS_ENGINE_PFC(X) \
	X(PFC_PAUSE, "pfc_pause", "pauses of a priority received and obeyed, on each engine") \
	X(PFC_RESUME, "pfc_resume", "ends of pauses received") \
	X(PFC_IGNORED, "pfc_ignored", "pauses ignored: the watchdog has ended one that lasted too long") \
	X(PFC_STORM, "pfc_storms", "pauses that lasted too long, and were ended by the watchdog") \
	X(TX_PAUSED, "tx_paused", "turns in which frames waited for the end of a pause") \
	X(TX_STOPPED, "tx_stopped", "times sources of a paused priority had to wait, because its frames had their share") \
	X(DROP_PAUSED, "drop_paused", "frames of a paused priority dropped, because as many waited as may") \
	X(DROP_PFC, "drop_pfc", "frames of MAC control dropped: malformed, or not of priority-based flow control")

/* The two ports of an adapter. */
#define URN_COUNTERS_ENGINE_PORTS(X) \
	X(PORT_MOVES, "port_moves", "times that the adapter went over to its other port") \
	X(DROP_STANDBY, "drop_standby", "frames dropped that came in at the port that the adapter does not use now")
/* clang-format on */

#endif
