/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the transport (dataplane/transport): blocks that counters.h joins. */
#ifndef URN_COUNTERS_TRANSPORT_H
#define URN_COUNTERS_TRANSPORT_H

/* clang-format off */
/* Packets, acknowledgements, losses and completions. */
#define URN_COUNTERS_TRAFFIC(X) \
	X(RX_PACKETS, "rx_packets", "frames received") \
	X(RX_BYTES, "rx_bytes", "bytes of frames received") \
	X(TX_PACKETS, "tx_packets", "frames handed to the port") \
	X(TX_BYTES, "tx_bytes", "bytes of frames handed to the port") \
	X(RX_ROCE, "rx_roce", "RoCEv2 frames received") \
	X(TX_REQUESTS, "tx_requests", "request packets built") \
	X(TX_RESPONSES, "tx_responses", "response packets built") \
	X(TX_ACKS, "tx_acks", "acknowledgements built") \
	X(TX_NAKS, "tx_naks", "negative acknowledgements built") \
	X(TX_RNR_NAKS, "tx_rnr_naks", "receiver-not-ready NAKs built") \
	X(RX_ACKS, "rx_acks", "acknowledgements received") \
	X(TX_SACKS, "tx_sacks", "selective acknowledgements built") \
	X(RX_SACKS, "rx_sacks", "selective acknowledgements received") \
	X(RX_NAKS, "rx_naks", "negative acknowledgements received") \
	X(RX_RNR_NAKS, "rx_rnr_naks", "receiver-not-ready NAKs received") \
	X(RETRANSMITS, "retransmits", "request packets sent again") \
	X(TIMEOUTS, "timeouts", "acknowledgement timers that expired") \
	X(PROBES, "probes", "probes for a lost tail") \
	X(EARLY_TIMEOUTS, "early_timeouts", "repeats before the QP's timeout: by the measured round trip, or as the peer has another MAC") \
	X(REFETCHES, "refetches", "READs and atomics asked for again because of lost responses") \
	X(NO_REPAIR, "no_repair", "times the pool of repairs was empty") \
	X(CONTRADICTS, "packet_contradicts", "packets that differ from one with the same PSN that was kept") \
	X(NO_TRACE, "no_trace", "QPs that lost their fingerprints of kept packets to another QP") \
	X(ALIGNED, "aligned_writes", "writes that were put on the cache lines of their peer") \
	X(ALIGNED_ONE, "aligned_one", "... of these, as one message whose last packet has an address of its own") \
	X(ALIGN_NO_WORK, "aligned_no_work", "writes that were to be put on lines, and went as posted: no work in the pool") \
	X(DUPLICATES, "duplicates", "requests received again") \
	X(OUT_OF_ORDER, "out_of_order", "request packets received ahead of their turn") \
	X(OOO_KEPT, "ooo_kept", "packets ahead of their turn that were kept") \
	X(UC_HELD, "uc_held", "UC packets that waited for their program's foreign memory") \
	X(UC_WAITS, "uc_waits", "times a UC sender waited for the memory of its peer, or for room in its peer's window") \
	X(TX_UC_WINDOWS, "tx_uc_windows", "windows of UC receivers built") \
	X(RX_UC_WINDOWS, "rx_uc_windows", "windows of UC receivers received") \
	X(LOOPBACK, "loopback", "frames to the adapter's own address") \
	X(MCAST_COPIES, "mcast_copies", "copies of multicast datagrams made") \
	X(MCAST_LOOKS, "mcast_looks", "looks at clients, and other engines, in a group that a multicast datagram came to") \
	X(CQE, "completions", "completions written") \
	X(CQE_ERR, "completions_error", "completions with an error status") \
	X(BESIDE, "beside", "short messages for foreign memory written beside their completions") \
	X(HANDOVER_RX, "handover_rx", "packets given to the engine that owns their QP") \
	X(HANDOVER_CQE, "handover_cqe", "completions given to the engine that owns their CQ") \
	X(CNP_RX, "rx_cnp", "congestion notifications received") \
	X(TX_CNPS, "tx_cnp", "congestion notifications built") \
	X(RX_MARKED, "rx_marked", "packets received with a mark of congestion") \
	X(NO_CONGESTION, "no_congestion", "times the pool of congested QPs was empty")

/* Dropped: packets that this adapter or queue pair does not take. */
#define URN_COUNTERS_ADMIT(X) \
	X(DROP_ICRC, "drop_icrc", "bad ICRC") \
	X(DROP_PKEY, "drop_pkey", "P_Key does not match") \
	X(DROP_ADDRESS, "drop_address", "not to this adapter's MAC or IP address") \
	X(DROP_PEER, "drop_peer", "source address is not the QP's peer, or not to its own")

/* Dropped: packets that fit no queue pair, or found no room. */
#define URN_COUNTERS_DROPS(X) \
	X(DROP_OTHER, "drop_other", "ARP, ND, echo or MAD for which a burst, or its answers, have no room") \
	X(DROP_NO_QP, "drop_no_qp", "no such QP") \
	X(DROP_QP_STATE, "drop_qp_state", "QP in a state that takes no such packet") \
	X(DROP_QP_TYPE, "drop_qp_type", "opcode of another transport than the QP's") \
	X(DROP_QKEY, "drop_qkey", "Q_Key does not match") \
	X(DROP_DUPLICATE, "drop_duplicate", "duplicate READ or atomic that is not on record") \
	X(DROP_OOO, "drop_ooo", "ahead of its turn and no room to keep it, or kept already") \
	X(DROP_FAR, "drop_far", "further ahead of its turn than its sender can have in flight") \
	X(DROP_PSN, "drop_psn", "response with a PSN that is not outstanding") \
	X(DROP_RESPONSE, "drop_response", "response that fits no outstanding request") \
	X(DROP_SACK, "drop_sack", "selective acknowledgement that makes no sense") \
	X(DROP_UC_WINDOW, "drop_uc_window", "window of a UC receiver that makes no sense") \
	X(DROP_UD_LENGTH, "drop_ud_length", "UD message longer than the MTU or its receive") \
	X(DROP_UD_NO_RECV, "drop_ud_no_recv", "UD message and no receive posted") \
	X(DROP_UD_MEMORY, "drop_ud_memory", "UD receive that could not be written") \
	X(DROP_MCAST_GROUP, "drop_mcast_group", "multicast datagram to a group without a QP of this adapter") \
	X(DROP_MCAST_COPY, "drop_mcast_copy", "copies of multicast datagrams not made: the turn, or the client, has had its share") \
	X(DROP_UC_LATE, "drop_uc_late", "UC packet behind its turn") \
	X(DROP_UC_GAP, "drop_uc_gap", "UC packet of a message that lacks a packet before it") \
	X(DROP_UC_LENGTH, "drop_uc_length", "UC packet of a wrong length, or message longer than its receive") \
	X(DROP_UC_NO_RECV, "drop_uc_no_recv", "UC message and no receive posted") \
	X(DROP_UC_ACCESS, "drop_uc_access", "UC WRITE without the right, key or range") \
	X(DROP_FLUSHED, "drop_flushed", "held for a QP that left its state meanwhile") \
	X(DROP_MEMORY, "drop_memory", "too much under way on its program's or user's foreign memory") \
	X(DROP_TX, "drop_tx", "frame the port would not take") \
	X(DROP_NO_NEIGH, "drop_no_neigh", "no MAC address known for the destination") \
	X(DROP_HANDOVER, "drop_handover", "ring to the owning engine full")

/* Pools that were empty, and mistakes of programs. */
#define URN_COUNTERS_SHORTAGE(X) \
	X(NO_MBUF, "no_mbuf", "times the packet pool was empty") \
	X(NO_WORK, "no_work", "times the pool of work in flight was empty") \
	X(BAD_WQE, "bad_wqe", "work requests that made no sense") \
	X(BAD_DOORBELL, "bad_doorbell", "doorbells of no QP") \
	X(CQ_OVERRUN, "cq_overrun", "completions lost because a CQ was full") \
	X(CQE_LOST, "cqe_lost", "completions lost: no room to keep them for another engine")

/* Reasons of negative acknowledgements built. */
#define URN_COUNTERS_NAKS(X) \
	X(NAK_INV_REQ, "nak_invalid_request", "NAK: request that makes no sense") \
	X(NAK_ACCESS, "nak_access", "NAK: key, range or right") \
	X(NAK_OPERATIONAL, "nak_operational", "NAK: responder could not do it")

/* Flows: reliable channels from node to node. */
#define URN_COUNTERS_FLOW(X) \
	X(FLOW_TX, "flow_tx_packets", "data packets of flows built") \
	X(FLOW_RX, "flow_rx_packets", "data packets of flows accepted") \
	X(FLOW_MESSAGES_TX, "flow_tx_messages", "messages of flows answered with DONE") \
	X(FLOW_MESSAGES_RX, "flow_rx_messages", "messages of flows delivered") \
	X(FLOW_REFUSED_TX, "flow_tx_refused", "messages of flows that the target node refused") \
	X(FLOW_REFUSED_RX, "flow_rx_refused", "messages of flows refused here") \
	X(FLOW_ACKS_TX, "flow_tx_acks", "acknowledgements of flows built") \
	X(FLOW_ACKS_RX, "flow_rx_acks", "acknowledgements of flows received") \
	X(FLOW_RETRANSMITS, "flow_retransmits", "data packets of flows sent again") \
	X(FLOW_DUPLICATES, "flow_duplicates", "data packets of flows received again") \
	X(FLOW_LONG, "flow_long", "flows whose packets became longer than the path MTU") \
	X(FLOW_PROBES_LOST, "flow_probes_lost", \
	  "probes of longer packets that did not come: the network drops long frames") \
	X(FLOW_GONE, "flow_gone", "messages that ended because their bytes were not there any more") \
	X(FLOW_FAILED, "flow_failed", "flows whose peer did not answer") \
	X(FLOW_RESTARTED, "flow_restarted", "flows that ended because the peer was restarted") \
	X(FLOW_NONE, "flow_none", "flows that found no room") \
	X(FLOW_RESTED, "flow_rested", "idle flows that went to rest, because their client has many") \
	X(FLOW_RESTORED, "flow_restored", "flows at rest that were made anew") \
	X(FLOW_DRY, "flow_dry", "turns of a client in a flow that found no room for a packet in flight") \
	X(FLOW_DROP_FORMAT, "flow_drop_format", "packets of flows whose fields make no sense") \
	X(FLOW_DROP_NO_USER, "flow_drop_no_user", "packets of flows to an adapter without messages") \
	X(FLOW_DROP_STALE, "flow_drop_stale", "packets of flows that have ended") \
	X(FLOW_DROP_FAR, "flow_drop_far", "data packets of flows beyond the window") \
	X(FLOW_DROP_ASKED, "flow_drop_asked", "data packets of flows that name no start, whose sender was asked: the source may be forged, or the node is young") \
	X(FLOW_DROP_FORGED, "flow_drop_forged", "packets of flows with our own address as their source that we did not send") \
	X(FLOW_DROP_PARTS, "flow_drop_parts", "long messages whose parts overlap or leave gaps") \
	X(FLOW_DROP_ROOM, "flow_drop_room", "data packets of flows that found no room for refusals or parts")
/* clang-format on */

#endif
