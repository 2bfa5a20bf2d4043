/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building RoCEv2 frames from a template that is made once per destination: Ethernet, IP and UDP
 * headers as they go out, without lengths and IPv4 checksum.
 */
#ifndef URN_WIRE_BUILD_H
#define URN_WIRE_BUILD_H

#include "wire/icrc.h"
#include "wire/pkt.h"

/* Bytes of the longest template: Ethernet + IPv6 + UDP. */
#define URN_TMPL_BYTES 62u

struct urn_tmpl {
	uint8_t bytes[URN_TMPL_BYTES]; /* Ethernet, IP, UDP */
	uint8_t len;                   /* bytes in use: 42 (IPv4) or 62 (IPv6) */
	uint8_t ipv6;                  /* 0 or 1 */
	uint32_t csum;                 /* IPv4: unfolded sum of the header with length 0 */
};

/* Input for a template. Addresses in network order. */
struct urn_path {
	uint8_t smac[6], dmac[6];
	uint8_t sgid[16], dgid[16];    /* IPv4 as ::ffff:a.b.c.d; both of one family */
	uint16_t sport;                /* UDP source port, host order */
	uint8_t tos;                   /* traffic class */
	uint8_t ttl;                   /* hop limit */
	uint32_t flow_label;           /* 20 bits */
};

/* Make the template of a path. IPv4: DF set, id 0. */
void urn_tmpl_init(struct urn_tmpl *t, const struct urn_path *path);

/* Destination address in the template: 4 or 16 bytes. */
static inline const uint8_t *
urn_tmpl_dst(const struct urn_tmpl *t)
{
	return t->bytes + URN_ETH_BYTES +
	       (t->ipv6 ? offsetof(struct urn_ipv6, dst) : offsetof(struct urn_ipv4, dst));
}

/* UDP source port of a template, host order; 0: the template was not made yet. */
static inline uint16_t
urn_tmpl_sport(const struct urn_tmpl *t)
{
	uint16_t port = 0;

	if (t->len)
		memcpy(&port, t->bytes + t->len - sizeof(struct urn_udp), sizeof(port));
	return rte_be_to_cpu_16(port);
}

/* returns: 1 when this GID is an IPv4 address (::ffff:a.b.c.d) */
int urn_gid_is_v4(const uint8_t gid[16]);
/* MAC that a multicast GID maps to (RFC 1112, 6.4; RFC 2464, 7). returns 0: not multicast */
int urn_gid_multicast_mac(uint8_t mac[6], const uint8_t gid[16]);

/* urn_build_headers() for IPv6. */
void urn_build_headers_v6(uint8_t *frame, const struct urn_tmpl *t, uint16_t udp_len);

/* urn_build_headers() for IPv4. */
static inline void
urn_build_headers_v4(uint8_t *frame, const struct urn_tmpl *t, uint16_t udp_len)
{
	struct urn_ipv4 *ip = (struct urn_ipv4 *)(frame + URN_ETH_BYTES);
	struct urn_udp *udp = (struct urn_udp *)(ip + 1);
	uint16_t len = rte_cpu_to_be_16((uint16_t)(udp_len + sizeof(*ip)));
	uint32_t sum = t->csum + len;

	memcpy(frame, t->bytes, URN_ETH_BYTES + sizeof(*ip) + sizeof(*udp));
	/* Ten words sum to less than 10 << 16, so two folds are always enough. */
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->len = len;
	ip->csum = (uint16_t)~sum;
	udp->len = rte_cpu_to_be_16(udp_len);
}

/*
 * Write Ethernet, IP and UDP headers of a frame, with the frame's lengths. frame: at least t->len
 * bytes. roce_len: bytes from the BTH to the end of the pad, without ICRC. The IPv4 checksum is
 * right, the UDP checksum is 0.
 */
static inline void
urn_build_headers(uint8_t *frame, const struct urn_tmpl *t, uint32_t roce_len)
{
	uint16_t udp_len = (uint16_t)(roce_len + URN_ICRC_BYTES + sizeof(struct urn_udp));

	if (t->ipv6)
		urn_build_headers_v6(frame, t, udp_len);
	else
		urn_build_headers_v4(frame, t, udp_len);
}

/*
 * Append the ICRC to a frame that holds everything before it. frame: the Ethernet header; len:
 * bytes of the frame without the ICRC; 4 more bytes must be writable. With on == 0 the ICRC is four
 * zero bytes.
 */
static inline void
urn_build_icrc(uint8_t *frame, uint32_t len, int ipv6, int on)
{
	uint32_t crc = 0;

	if (on)
		crc = rte_cpu_to_le_32(urn_icrc(frame + URN_ETH_BYTES, len - URN_ETH_BYTES, ipv6));
	memcpy(frame + len, &crc, sizeof(crc));
}

/*
 * Write a BTH. flags: SE, M; pad: 0 to 3 bytes. A QP that migrates no path is in state Migrated and
 * reports that by M = 1 in every packet but CNPs (IBTA 17.2.8, A17.9.3): callers set URN_BTH_M.
 */
static inline void
urn_build_bth(struct urn_bth *b, uint8_t opcode, uint8_t flags, uint8_t pad, uint32_t dqpn,
	      uint32_t psn, int ackreq)
{
	b->opcode = opcode;
	b->flags = (uint8_t)(flags | (pad << URN_BTH_PAD_SHIFT));
	b->pkey = rte_cpu_to_be_16(URN_PKEY_DEFAULT);
	b->dqpn = rte_cpu_to_be_32(dqpn & URN_QPN_MASK);
	b->apsn = rte_cpu_to_be_32((psn & URN_PSN_MASK) | (ackreq ? URN_BTH_ACKREQ : 0));
}

#endif
