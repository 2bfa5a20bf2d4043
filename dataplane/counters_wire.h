/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of reading frames (dataplane/wire): blocks that counters.h joins. */
#ifndef URN_COUNTERS_WIRE_H
#define URN_COUNTERS_WIRE_H

/* clang-format off */
/* Dropped: frames whose headers are no good. */
#define URN_COUNTERS_WIRE(X) \
	X(DROP_SHORT, "drop_short", "frame shorter than its headers") \
	X(DROP_LENGTH, "drop_length", "IP or UDP length does not fit the frame") \
	X(DROP_IP_HEADER, "drop_ip_header", "bad IP version, header length or options") \
	X(DROP_IP_CSUM, "drop_ip_csum", "bad IPv4 header checksum") \
	X(DROP_FRAGMENT, "drop_fragment", "IP fragment") \
	X(DROP_BTH_VERSION, "drop_bth_version", "BTH transport version not 0") \
	X(DROP_OPCODE, "drop_opcode", "unknown opcode") \
	X(DROP_PAD, "drop_pad", "pad count does not fit the payload")

/* Dropped: other frames, and MADs. */
#define URN_COUNTERS_WIRE_MAD(X) \
	X(DROP_NOT_ROCE, "drop_not_roce", "neither RoCEv2 nor ARP, ND or echo") \
	X(DROP_VLAN, "drop_vlan", "frame of another VLAN than the adapter's, or of none") \
	X(DROP_MAD_LENGTH, "drop_mad_length", "to QP1 and not 256 bytes") \
	X(DROP_MAD_VERSION, "drop_mad_version", "MAD of another base version than 1") \
	X(DROP_MAD_CLASS, "drop_mad_class", "MAD of a class that is not handled") \
	X(DROP_MAD_METHOD, "drop_mad_method", "MAD with a method or attribute its class has not") \
	X(DROP_LINK_SOURCE, "drop_link_source", "link request or response not sent by a QP1") \
	X(DROP_LINK_MAGIC, "drop_link_magic", "link request or response without its magic") \
	X(DROP_LINK_LENGTH, "drop_link_length", "link request or response of impossible length") \
	X(DROP_LINK_OPTION, "drop_link_option", "link request or response with a cut option")
/* clang-format on */

#endif
