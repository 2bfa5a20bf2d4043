/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of messages (dataplane/msg): a block that counters.h joins. */
#ifndef URN_COUNTERS_MSG_H
#define URN_COUNTERS_MSG_H

/* clang-format off */
#define URN_COUNTERS_MSG(X) \
	X(MSG_SENT, "tx_msg", "messages whose send doorbell was taken") \
	X(MSG_DELIVERED, "rx_msg", "messages put into receive queues") \
	X(MSG_DONE, "msg_done", "messages answered: they are in the target queue") \
	X(MSG_QUEUE_FULL, "msg_queue_full", "messages given up: the target queue stayed full") \
	X(MSG_NO_NODE, "msg_no_node", "messages given up: nobody answers for the target's address") \
	X(MSG_NO_QUEUE, "msg_no_queue", "messages given up: the target has no such queue") \
	X(MSG_TOO_LONG, "msg_too_long", "messages given up: longer than an entry of the target queue") \
	X(MSG_NOT_PERMITTED, "msg_not_permitted", "messages given up: the target queue takes none from here") \
	X(MSG_UNREACHABLE, "msg_unreachable", "messages given up: the target does not answer") \
	X(MSG_BAD_DOORBELL, "msg_bad_doorbell", "send doorbells whose address, size or target makes no sense") \
	X(MSG_BUSY, "msg_busy", "messages given up: a dataplane had no room") \
	X(MSG_RESTARTED, "msg_restarted", "messages given up: the target was restarted meanwhile") \
	X(MSG_MAY_BE_THERE, "msg_may_be_there", "messages given up that may be in the target queue all the same") \
	X(MSG_RETRIES, "msg_retries", "further tries by the retry policies of senders") \
	X(MSG_WAITED, "msg_waited", "tries that waited for room in a flow") \
	X(MSG_RUNG_PENDING, "msg_rung_pending", "send doorbells refused: the message before was not answered yet") \
	X(MSG_CONF_REFUSED, "msg_conf_refused", "configurations of receive queues refused") \
	X(DROP_MSG_QUEUE, "drop_msg_queue", "message refused: no such receive queue") \
	X(DROP_MSG_PERMIT, "drop_msg_permit", "message refused: its queue takes none from that node") \
	X(DROP_MSG_LONG, "drop_msg_long", "message refused: longer than an entry of its queue") \
	X(DROP_MSG_FULL, "drop_msg_full", "message refused: its queue is full") \
	X(DROP_MSG_HEAD, "drop_msg_head", "message refused: the head of its queue is no head of the ring")
/* clang-format on */

#endif
