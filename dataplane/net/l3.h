/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of IP that an RDMA NIC needs besides RoCEv2: ARP (RFC 826), IPv6
 * neighbour solicitation and advertisement (RFC 4861), ICMP and ICMPv6 echo.
 * Reads frames into a struct, turns requests into replies in place, builds
 * requests. Has no table and no clock; see neigh.h.
 *
 * Addresses are GIDs: 16 bytes in network order, IPv4 as ::ffff:a.b.c.d.
 */
#ifndef URN_NET_L3_H
#define URN_NET_L3_H

#include "counters.h"
#include "wire/pkt.h"

enum urn_l3_kind {
	URN_L3_ARP_REQUEST,
	URN_L3_ARP_REPLY,
	URN_L3_SOLICIT,   /* IPv6 neighbour solicitation */
	URN_L3_ADVERT,    /* IPv6 neighbour advertisement */
	URN_L3_ECHO,      /* ICMP or ICMPv6 echo request */
};

/* Fields of a valid frame. */
struct urn_l3_msg {
	uint8_t kind;        /* enum urn_l3_kind */
	uint8_t has_src;     /* 0: the sender has no address yet (ARP probe, IPv6 DAD) */
	uint8_t has_mac;     /* `mac` was in the message */
	uint8_t solicited;   /* advertisement: answers a solicitation */
	uint8_t override;    /* advertisement: may replace a known MAC; ARP: always */
	uint8_t mac[6];      /* sender's, or in advertisements the target's; a unicast address */
	uint8_t src[16];     /* sender; valid when has_src */
	uint8_t dst[16];     /* IP destination; ARP: the target */
	uint8_t target[16];  /* address whose MAC is asked for or told (ARP reply: the sender's) */
};

struct urn_ipv6;

/* Checksum of an ICMPv6 message of len bytes and its pseudo header, ready to send; 0 when the
 * message's own checksum is right. */
uint16_t urn_l3_icmp6_csum(const struct urn_ipv6 *ip, const void *icmp, uint32_t len);
/* True when one station can have this MAC: not zero, not multicast. */
int urn_l3_mac_ok(const uint8_t mac[6]);
/* GID of four IPv4 bytes. */
void urn_l3_gid_v4(uint8_t gid[16], const uint8_t ipv4[4]);
/* Addresses of a received frame that was parsed, as GIDs. */
void urn_l3_addresses(struct rte_mbuf *m, uint8_t src[16], uint8_t dst[16]);
/* Solicited-node multicast address of an IPv6 address (RFC 4291, 2.7.1). */
void urn_l3_solicited_node(uint8_t out[16], const uint8_t ipv6[16]);

/*
 * Read a frame that urn_wire_parse() called ARP, ICMP or ICMP6. Checks every
 * length, address, option and checksum of it, hop limit 255 of neighbour
 * discovery included; reads only inside the frame.
 *
 * returns: the counter that applies: ARP_RX, ND_RX or ECHO_RX with *msg
 * filled in; DROP_NEIGH: malformed; DROP_NOT_ROCE: of a kind that is not handled
 */
enum urn_counter urn_l3_read(const struct rte_mbuf *m, struct urn_l3_msg *msg);

/*
 * Turn a request into its reply, in place. m: the frame that msg was read
 * from; mac: the adapter's. returns 1, or 0 when the mbuf has no room for the reply
 */
int urn_l3_reply(struct rte_mbuf *m, const struct urn_l3_msg *msg, const uint8_t mac[6]);

/*
 * Build a request into an empty mbuf with 86 bytes of room: ARP or neighbour
 * solicitation for `target`. mac, src: the adapter's, src of the same family. holder: the only
 * MAC that is asked (RFC 1122, 2.3.2.1; RFC 4861, 7.3.3); NULL: broadcast, or to the
 * solicited-node group.
 */
void urn_l3_request(struct rte_mbuf *m, const uint8_t mac[6], const uint8_t src[16],
		    const uint8_t target[16], const uint8_t *holder);
/*
 * Build an announcement of our own address: gratuitous ARP request (RFC 5227,
 * 2.3) or unsolicited advertisement to all nodes.
 */
void urn_l3_announcement(struct rte_mbuf *m, const uint8_t mac[6], const uint8_t own[16]);

#endif
