/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters, by X-macro so that index, name and description stay together. One array per adapter
 * and engine, written by that engine only. Every drop has a counter that is named after its
 * reason (architecture rule 4).
 *
 * X(index, "name", "description")
 */
#ifndef URN_COUNTERS_H
#define URN_COUNTERS_H

#include <stdint.h>

#define URN_COUNTERS(X)                                                                        \
	X(RX_PACKETS, "rx_packets", "frames received")                                         \
	X(RX_BYTES, "rx_bytes", "bytes of frames received")                                    \
	X(TX_PACKETS, "tx_packets", "frames handed to the port")                               \
	X(TX_BYTES, "tx_bytes", "bytes of frames handed to the port")                          \
	X(RX_ROCE, "rx_roce", "RoCEv2 frames received")                                        \
	X(TX_REQUESTS, "tx_requests", "request packets built")                                 \
	X(TX_RESPONSES, "tx_responses", "response packets built")                              \
	X(TX_ACKS, "tx_acks", "acknowledgements built")                                        \
	X(TX_NAKS, "tx_naks", "negative acknowledgements built")                               \
	X(TX_RNR_NAKS, "tx_rnr_naks", "receiver-not-ready NAKs built")                         \
	X(RX_ACKS, "rx_acks", "acknowledgements received")                                     \
	X(TX_SACKS, "tx_sacks", "selective acknowledgements built")                            \
	X(RX_SACKS, "rx_sacks", "selective acknowledgements received")                         \
	X(RX_NAKS, "rx_naks", "negative acknowledgements received")                            \
	X(RX_RNR_NAKS, "rx_rnr_naks", "receiver-not-ready NAKs received")                      \
	X(RETRANSMITS, "retransmits", "request packets sent again")                            \
	X(TIMEOUTS, "timeouts", "acknowledgement timers that expired")                         \
	X(PROBES, "probes", "probes for a lost tail")                                          \
	X(EARLY_TIMEOUTS, "early_timeouts", "repeats before the QP's timeout: by the measured round trip, or as the peer has another MAC") \
	X(REFETCHES, "refetches", "READs and atomics asked for again because of lost responses") \
	X(NO_REPAIR, "no_repair", "times the pool of repairs was empty")                       \
	X(CONTRADICTS, "packet_contradicts", "packets that differ from one with the same PSN that was kept") \
	X(NO_TRACE, "no_trace", "QPs that lost their fingerprints of kept packets to another QP") \
	X(DUPLICATES, "duplicates", "requests received again")                                 \
	X(OUT_OF_ORDER, "out_of_order", "request packets received ahead of their turn")        \
	X(OOO_KEPT, "ooo_kept", "packets ahead of their turn that were kept")                  \
	X(LOOPBACK, "loopback", "frames to the adapter's own address")                         \
	X(CQE, "completions", "completions written")                                           \
	X(CQE_ERR, "completions_error", "completions with an error status")                    \
	X(HANDOVER_RX, "handover_rx", "packets given to the engine that owns their QP")        \
	X(HANDOVER_CQE, "handover_cqe", "completions given to the engine that owns their CQ")  \
	X(CNP_RX, "rx_cnp", "congestion notifications received")                               \
	X(ARP_RX, "rx_arp", "ARP frames received")                                             \
	X(ND_RX, "rx_nd", "IPv6 neighbour discovery frames received")                          \
	X(ECHO_RX, "rx_echo", "ICMP and ICMPv6 echo requests answered")                        \
	X(NEIGH_CONFLICT, "neigh_conflict", "others that claimed this adapter's IP address")   \
	X(LINK_REQ_TX, "tx_link_requests", "link requests sent")                               \
	X(LINK_REQ_RX, "rx_link_requests", "link requests received and answered")              \
	X(LINK_RESP_RX, "rx_link_responses", "link responses that answered a request")         \
	X(LINK_REFUSED, "rx_link_refused", "link requests that came back with a status")       \
	X(LINK_DUPLICATE, "rx_link_duplicate", "link responses to a request already answered") \
	X(LINK_VERSION, "rx_link_version", "link requests and responses of another version")   \
	X(CM_TX, "tx_cm", "messages of connection management sent")                            \
	X(CM_RX, "rx_cm", "messages of connection management taken")                           \
	X(CM_DUPLICATE, "rx_cm_duplicate", "CM messages received again")                       \
	X(CM_UNKNOWN, "rx_cm_unknown", "CM messages that name no connection of ours")          \
	X(CM_RETRANSMITS, "cm_retransmits", "CM messages sent again")                          \
	X(CM_TIMEOUTS, "cm_timeouts", "CM exchanges given up, all repeats unanswered")         \
	X(CM_NO_SERVICE, "cm_no_service", "CM requests refused: nobody listens")               \
	X(CM_STALE, "cm_stale", "CM requests refused: of a connection that still is one")      \
	X(CM_NO_ROOM, "cm_no_room", "CM requests refused: no more ids")                        \
	X(CM_UNSUPPORTED, "cm_unsupported", "CM requests refused: transport, MTU or alternate path") \
	X(PAIR_REFUSED, "pair_refused", "QPs not connected: another program has that connection") \
	X(PAIR_ENDED, "pair_ended", "QPs ended: their peer's connection is another program's")  \
	X(DROP_NEIGH, "drop_neigh", "malformed ARP, neighbour discovery or echo")              \
	X(DROP_SHORT, "drop_short", "frame shorter than its headers")                          \
	X(DROP_LENGTH, "drop_length", "IP or UDP length does not fit the frame")               \
	X(DROP_IP_HEADER, "drop_ip_header", "bad IP version, header length or options")        \
	X(DROP_IP_CSUM, "drop_ip_csum", "bad IPv4 header checksum")                            \
	X(DROP_FRAGMENT, "drop_fragment", "IP fragment")                                       \
	X(DROP_BTH_VERSION, "drop_bth_version", "BTH transport version not 0")                 \
	X(DROP_OPCODE, "drop_opcode", "unknown opcode")                                        \
	X(DROP_PAD, "drop_pad", "pad count does not fit the payload")                          \
	X(DROP_ICRC, "drop_icrc", "bad ICRC")                                                  \
	X(DROP_PKEY, "drop_pkey", "P_Key does not match")                                      \
	X(DROP_ADDRESS, "drop_address", "not to this adapter's MAC or IP address")             \
	X(DROP_PEER, "drop_peer", "source address is not the QP's peer, or not to its own")     \
	X(DROP_NOT_ROCE, "drop_not_roce", "neither RoCEv2 nor ARP, ND or echo")                \
	X(DROP_MAD_LENGTH, "drop_mad_length", "to QP1 and not 256 bytes")                      \
	X(DROP_MAD_VERSION, "drop_mad_version", "MAD of another base version than 1")          \
	X(DROP_MAD_CLASS, "drop_mad_class", "MAD of a class that is not handled")              \
	X(DROP_MAD_METHOD, "drop_mad_method", "MAD with a method or attribute its class has not") \
	X(DROP_LINK_SOURCE, "drop_link_source", "link request or response not sent by a QP1")  \
	X(DROP_LINK_MAGIC, "drop_link_magic", "link request or response without its magic")    \
	X(DROP_LINK_LENGTH, "drop_link_length", "link request or response of impossible length") \
	X(DROP_LINK_OPTION, "drop_link_option", "link request or response with a cut option")  \
	X(DROP_LINK_UNASKED, "drop_link_unasked", "link response that answers no request")     \
	X(DROP_CM_VERSION, "drop_cm_version", "CM message of another class version")           \
	X(DROP_CM_SOURCE, "drop_cm_source", "CM message not sent by a QP1")                    \
	X(DROP_CM_FIELD, "drop_cm_field", "CM message with a value that cannot be")            \
	X(DROP_CM_STATE, "drop_cm_state", "CM message that its connection does not expect")    \
	X(DROP_CM_BACKLOG, "drop_cm_backlog", "CM request beyond the backlog of its listener") \
	X(DROP_CM_EVENT, "drop_cm_event", "CM message whose event found no memory")            \
	X(DROP_CM_TX, "drop_cm_tx", "CM message not sent: no MAC address, or no room")         \
	X(DROP_OTHER, "drop_other", "ARP, ND, echo or MAD beyond what a burst or its answers have room for") \
	X(DROP_NO_QP, "drop_no_qp", "no such QP")                                              \
	X(DROP_QP_STATE, "drop_qp_state", "QP in a state that takes no such packet")           \
	X(DROP_QP_TYPE, "drop_qp_type", "opcode of another transport than the QP's")           \
	X(DROP_QKEY, "drop_qkey", "Q_Key does not match")                                      \
	X(DROP_DUPLICATE, "drop_duplicate", "duplicate READ or atomic that is not on record")  \
	X(DROP_OOO, "drop_ooo", "ahead of its turn and no room to keep it, or kept already")   \
	X(DROP_FAR, "drop_far", "further ahead of its turn than its sender can have in flight") \
	X(DROP_PSN, "drop_psn", "response with a PSN that is not outstanding")                 \
	X(DROP_RESPONSE, "drop_response", "response that fits no outstanding request")         \
	X(DROP_SACK, "drop_sack", "selective acknowledgement that makes no sense")             \
	X(DROP_UD_LENGTH, "drop_ud_length", "UD message longer than the MTU or its receive")   \
	X(DROP_UD_NO_RECV, "drop_ud_no_recv", "UD message and no receive posted")              \
	X(DROP_UD_MEMORY, "drop_ud_memory", "UD receive that could not be written")            \
	X(DROP_FLUSHED, "drop_flushed", "held for a QP that left its state meanwhile")         \
	X(DROP_MEMORY, "drop_memory", "too much under way on its program's or user's foreign memory") \
	X(DROP_TX, "drop_tx", "frame the port would not take")                                 \
	X(DROP_NO_NEIGH, "drop_no_neigh", "no MAC address known for the destination")          \
	X(DROP_HANDOVER, "drop_handover", "ring to the owning engine full")                    \
	X(NO_MBUF, "no_mbuf", "times the packet pool was empty")                               \
	X(NO_WORK, "no_work", "times the pool of work in flight was empty")                    \
	X(BAD_WQE, "bad_wqe", "work requests that made no sense")                              \
	X(BAD_DOORBELL, "bad_doorbell", "doorbells of no QP")                                  \
	X(CQ_OVERRUN, "cq_overrun", "completions lost because a CQ was full")                  \
	X(CQE_LOST, "cqe_lost", "completions lost: no room to keep them for another engine") \
	X(EVENT_LATE, "event_late", "events whose pipe was full; told later")                  \
	X(EVENT_LOST, "event_lost", "events nobody could be told")                             \
	X(NAK_INV_REQ, "nak_invalid_request", "NAK: request that makes no sense")              \
	X(NAK_ACCESS, "nak_access", "NAK: key, range or right")                                \
	X(NAK_OPERATIONAL, "nak_operational", "NAK: responder could not do it")

enum urn_counter {
#define X(id, name, text) URN_C_##id,
	URN_COUNTERS(X)
#undef X
	URN_COUNTER_COUNT,
};
_Static_assert(URN_COUNTER_COUNT <= 255, "urn_pkt.drop is 8 bits");

struct urn_counters {
	uint64_t v[URN_COUNTER_COUNT];
};

/* Name and description of a counter; NULL past the end. */
const char *urn_counter_name(unsigned int id);
const char *urn_counter_text(unsigned int id);

#endif
