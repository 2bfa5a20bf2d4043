/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of remote memory access (dataplane/am): a block that counters.h joins. */
#ifndef URN_COUNTERS_AM_H
#define URN_COUNTERS_AM_H

/* clang-format off */
#define URN_COUNTERS_AM(X) \
	X(AM_COMMANDS, "am_commands", "commands of endpoints taken: operations on remote memory") \
	X(AM_DONE, "am_done", "operations on remote memory done") \
	X(AM_FAILED, "am_failed", "operations on remote memory ended in error") \
	X(AM_BAD_RING, "am_bad_ring", "looks at a ring of commands whose indices make no sense: nothing was taken") \
	X(AM_RETRIES, "am_retries", "packets of operations sent again because the target had no room") \
	X(AM_SILENT, "am_silent", "operations given up: a packet of theirs got no reply") \
	X(AM_WRITES_RX, "rx_am_write", "packets of peers' writes placed") \
	X(AM_READS_RX, "rx_am_read", "packets of peers' reads answered with data") \
	X(AM_ATOMICS_RX, "rx_am_atomic", "atomic operations of peers carried out") \
	X(AM_ACCESS, "am_access", "access error messages sent: key, range or rights did not allow a packet") \
	X(AM_REPLY_LOST, "am_reply_lost", "replies that could not be delivered to their initiators") \
	X(AM_UNTOLD, "am_untold", "tagged operations given up whose target was not told: no room for the message in 10 s, or too many waited for it") \
	X(AM_READ_LOST, "am_read_lost", "tagged reads of peers given up: a packet of data could not be delivered") \
	X(DROP_AM_BUSY, "drop_am_busy", "packet of an operation refused: no room for its reply; it comes again") \
	X(DROP_AM_ENDPOINT, "drop_am_endpoint", "packet of an operation refused: no such endpoint") \
	X(DROP_AM_FORMAT, "drop_am_format", "packet of an operation refused: malformed") \
	X(AM_TAG_REQUESTS, "rx_am_tag_request", "requests of peers for tagged transfers put on the RMA queue") \
	X(AM_TAG_DATA, "rx_am_tag_data", "packets of peers' tagged writes placed") \
	X(AM_TAG_SENT, "am_tag_sent", "packets of peers' tagged reads sent with data") \
	X(AM_EARLY, "am_early", "packets of tagged writes kept because they came before their request") \
	X(AM_DISCARDED, "am_discarded", "packets of operations that had failed before: discarded") \
	X(AM_AGED, "am_aged", "transfers of peers given up: nothing of theirs came or was taken for 10 s") \
	X(DROP_AM_EARLY, "drop_am_early", "packet of a tagged write refused: it came before its request, and there was no room to keep it; it comes again") \
	X(DROP_AM_QUEUE, "drop_am_queue", "request for a tagged transfer refused: the RMA queue is full; it comes again") \
	X(DROP_AM_TRANSFER, "drop_am_transfer", "packet of an operation refused: no room for its transfer; it comes again") \
	X(DROP_AM_REPLY, "drop_am_reply", "reply of an operation refused: it answers no packet that waits for one")
/* clang-format on */

#endif
