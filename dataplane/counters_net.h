/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of addresses, neighbours and peers (dataplane/net): blocks that counters.h joins. */
#ifndef URN_COUNTERS_NET_H
#define URN_COUNTERS_NET_H

/* clang-format off */
/* Neighbours, and link requests. */
#define URN_COUNTERS_NET(X) \
	X(ARP_RX, "rx_arp", "ARP frames received") \
	X(ND_RX, "rx_nd", "IPv6 neighbour discovery frames received") \
	X(RA_RX, "rx_ra", "router advertisements of IPv6 taken whole") \
	X(RA_FULL, "ra_full", "... and those with a router or prefix that found no room") \
	X(ECHO_RX, "rx_echo", "ICMP and ICMPv6 echo requests answered") \
	X(NEIGH_CONFLICT, "neigh_conflict", "others that claimed this adapter's IP address") \
	X(NEIGH_CLAIM, "neigh_claims", "refused: another MAC address for a neighbour that has one") \
	X(LINK_REQ_TX, "tx_link_requests", "link requests sent") \
	X(LINK_REQ_RX, "rx_link_requests", "link requests received and answered") \
	X(LINK_RESP_RX, "rx_link_responses", "link responses that answered a request") \
	X(LINK_REFUSED, "rx_link_refused", "link requests that came back with a status") \
	X(LINK_DUPLICATE, "rx_link_duplicate", "link responses to a request already answered") \
	X(LINK_VERSION, "rx_link_version", "link requests and responses of another version")

/* Dropped: frames that are no good. */
#define URN_COUNTERS_NET_MALFORMED(X) \
	X(DROP_NEIGH, "drop_neigh", "malformed ARP, neighbour discovery or echo") \
	X(DROP_RA_FAR, "drop_ra_far", "router advertisement that is not from the link")

/* Dropped: link responses. */
#define URN_COUNTERS_NET_UNASKED(X) \
	X(DROP_LINK_UNASKED, "drop_link_unasked", "link response that answers no request")
/* clang-format on */

#endif
