/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of connection management (dataplane/cm): blocks that counters.h joins. */
#ifndef URN_COUNTERS_CM_H
#define URN_COUNTERS_CM_H

/* clang-format off */
/* Messages and requests. */
#define URN_COUNTERS_CM(X) \
	X(CM_TX, "tx_cm", "messages of connection management sent") \
	X(CM_RX, "rx_cm", "messages of connection management taken") \
	X(CM_DUPLICATE, "rx_cm_duplicate", "CM messages received again") \
	X(CM_UNKNOWN, "rx_cm_unknown", "CM messages that name no connection of ours") \
	X(CM_RETRANSMITS, "cm_retransmits", "CM messages sent again") \
	X(CM_TIMEOUTS, "cm_timeouts", "CM exchanges given up, all repeats unanswered") \
	X(CM_NO_SERVICE, "cm_no_service", "CM requests refused: nobody listens") \
	X(CM_STALE, "cm_stale", "CM requests refused: their queue pair still has a connection") \
	X(CM_STALE_ASKED, "cm_stale_asked", "questions to a peer whether it still knows a connection") \
	X(CM_STALE_ENDED, "cm_stale_ended", "connections ended: their peer no longer knows them") \
	X(CM_NOT_OWNER, "cm_not_owner", "listeners refused: the service is of another program's QP") \
	X(CM_NO_ROOM, "cm_no_room", "CM requests refused: no more ids") \
	X(CM_CROWD, "cm_crowd", "CM requests refused: too many of that peer, or of all, wait to become connections") \
	X(CM_UNSUPPORTED, "cm_unsupported", "CM requests refused: transport, MTU or alternate path")

/* Dropped: messages. */
#define URN_COUNTERS_CM_DROPS(X) \
	X(DROP_CM_VERSION, "drop_cm_version", "CM message of another class version") \
	X(DROP_CM_SOURCE, "drop_cm_source", "CM message not sent by a QP1") \
	X(DROP_CM_FIELD, "drop_cm_field", "CM message with a value that cannot be") \
	X(DROP_CM_STATE, "drop_cm_state", "CM message that its connection does not expect") \
	X(DROP_CM_BACKLOG, "drop_cm_backlog", "CM request beyond the backlog of its listener") \
	X(DROP_CM_EVENT, "drop_cm_event", "no memory for the event of a CM message") \
	X(DROP_CM_TX, "drop_cm_tx", "CM message not sent: no MAC address, or no room")
/* clang-format on */

#endif
