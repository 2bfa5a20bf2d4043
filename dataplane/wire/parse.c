/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parsing of received frames. A sound frame takes a handful of branches that always go the same
 * way: the tests of a header are or-ed into one, and only when that one fails does cold code find
 * out which test it was, so that the drop can be counted by its reason.
 *
 * Nothing is read before the length of the frame is known to reach that far, and lengths inside the
 * frame are believed only after a comparison with those around them: IP within the frame, UDP equal
 * to IP, BTH, extension headers and pad within UDP.
 */
#include "abi/urn_abi.h"
#include "wire/pkt.h"
#include "counters.h"
#include "wire/icrc.h"

#include <netinet/in.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>

#define COLD __attribute__((cold, noinline))

#define IPV4_FRAG RTE_BE16(0x3fff) /* more fragments, or an offset */
#define IPV6_NEXT_FRAGMENT 44

static COLD enum urn_frame_kind
reject(struct urn_pkt *p, enum urn_frame_kind kind, enum urn_counter why)
{
	p->kind = (uint8_t)kind;
	p->drop = (uint8_t)why;
	return kind;
}

static inline enum urn_frame_kind
verdict(struct urn_pkt *p, enum urn_frame_kind kind)
{
	p->kind = (uint8_t)kind;
	return kind;
}

/* Ones' complement sum of an IPv4 header without options; 0xffff when the header is right. */
static inline uint32_t
ipv4_sum(const uint8_t *ip)
{
	uint64_t a, b, s;
	uint32_t c, t;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	memcpy(&c, ip + 16, 4);
	s = a + b;
	s += s < a; /* the carry comes in at the other end */
	s += c;
	s += s < c;
	/* A number plus itself rotated by half: the upper half is the folded sum. */
	s += s << 32 | s >> 32;
	t = (uint32_t)(s >> 32);
	t += t << 16 | t >> 16;
	return t >> 16;
}

/* Find the reason why a BTH, its extension headers or pad are wrong. body: bytes after UDP. */
static COLD enum urn_frame_kind
reject_bth(struct urn_pkt *p, const struct urn_bth *bth, uint32_t body)
{
	const struct urn_opcode *op = &urn_opcodes[bth->opcode];
	uint32_t rest;

	if (bth->flags & URN_BTH_TVER)
		return reject(p, URN_FRAME_BAD, URN_C_DROP_BTH_VERSION);
	if (!(op->flags & URN_OPF_VALID))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_OPCODE);
	if (body < op->hdr_len + URN_ICRC_BYTES)
		return reject(p, URN_FRAME_BAD, URN_C_DROP_SHORT);
	rest = body - op->hdr_len - URN_ICRC_BYTES;
	if (rest != 0 && !(op->flags & URN_OPF_PAYLOAD))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_LENGTH);
	return reject(p, URN_FRAME_BAD, URN_C_DROP_PAD);
}

/* f: frame; off: offset of the BTH; body: bytes from there to the end, including the ICRC. */
static inline enum urn_frame_kind
parse_bth(struct urn_pkt *p, const uint8_t *f, uint32_t off, uint32_t body)
{
	const struct urn_bth *bth = (const struct urn_bth *)(f + off);
	const struct urn_opcode *op = &urn_opcodes[bth->opcode];
	uint32_t pad = (bth->flags >> URN_BTH_PAD_SHIFT) & 3u;
	/* Payload and pad; wraps to a huge number when the body is too short. */
	uint32_t rest = body - op->hdr_len - URN_ICRC_BYTES;
	uint32_t max = op->flags & URN_OPF_PAYLOAD ? UINT16_MAX : 0;
	uint32_t apsn;

	if (unlikely((bth->flags & URN_BTH_TVER) | !(op->flags & URN_OPF_VALID) | (rest > max) |
		     (rest & 3) | (pad > rest)))
		return reject_bth(p, bth, body);

	apsn = rte_be_to_cpu_32(bth->apsn);
	p->op = op;
	p->bth_off = (uint8_t)off;
	p->payload_off = (uint8_t)(off + op->hdr_len);
	p->payload_len = (uint16_t)(rest - pad);
	p->psn = apsn & URN_PSN_MASK;
	p->ackreq = apsn >> 31;
	p->dqpn = rte_be_to_cpu_32(bth->dqpn) & URN_QPN_MASK;
	p->opcode = bth->opcode;
	p->solicited = bth->flags >> 7;
	p->pkey = rte_be_to_cpu_16(bth->pkey);
	return verdict(p, URN_FRAME_ROCE);
}

/*
 * off: offset of the UDP header; avail: bytes from there on by the IP header, known to be in the
 * frame. The UDP checksum is ignored: senders leave it 0, and the ICRC covers all that matters.
 */
static inline enum urn_frame_kind
parse_udp(struct urn_pkt *p, const uint8_t *f, uint32_t off, uint32_t avail)
{
	const struct urn_udp *udp = (const struct urn_udp *)(f + off);

	if (unlikely(avail < sizeof(*udp)))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_SHORT);
	if (unlikely(udp->dport != RTE_BE16(URN_ROCE_PORT)))
		return reject(p, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);
	if (unlikely(rte_be_to_cpu_16(udp->len) != avail))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_LENGTH);
	if (unlikely(avail < sizeof(*udp) + sizeof(struct urn_bth) + URN_ICRC_BYTES))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_SHORT);
	return parse_bth(p, f, off + (uint32_t)sizeof(*udp), avail - (uint32_t)sizeof(*udp));
}

/* Cut bytes behind the IP packet: Ethernet pads frames to 60 bytes. */
static inline void
trim(struct rte_mbuf *m, uint32_t len)
{
	/* Seldom needed: a line that is not written stays with the core that sends next. */
	if (likely(m->data_len == len))
		return;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
}

static COLD enum urn_frame_kind
reject_v4(struct urn_pkt *p, const struct urn_ipv4 *ip, uint32_t room)
{
	uint32_t total = rte_be_to_cpu_16(ip->len);

	if (ip->ver_ihl != 0x45)
		return reject(p, URN_FRAME_BAD, URN_C_DROP_IP_HEADER);
	if (total < sizeof(*ip) || total > room)
		return reject(p, URN_FRAME_BAD, URN_C_DROP_LENGTH);
	if (ipv4_sum((const uint8_t *)ip) != 0xffff)
		return reject(p, URN_FRAME_BAD, URN_C_DROP_IP_CSUM);
	return reject(p, URN_FRAME_BAD, URN_C_DROP_FRAGMENT);
}

/* len: bytes of the frame. */
static inline enum urn_frame_kind
parse_v4(struct rte_mbuf *m, struct urn_pkt *p, const uint8_t *f, uint32_t len)
{
	const struct urn_ipv4 *ip = (const struct urn_ipv4 *)(f + URN_ETH_BYTES);
	uint32_t total;

	if (unlikely(len < URN_ETH_BYTES + sizeof(*ip)))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_SHORT);
	total = rte_be_to_cpu_16(ip->len);
	if (unlikely((ip->ver_ihl != 0x45) | (total < sizeof(*ip)) |
		     (total > len - URN_ETH_BYTES) | ((ip->frag & IPV4_FRAG) != 0) |
		     (ipv4_sum((const uint8_t *)ip) != 0xffff)))
		return reject_v4(p, ip, len - URN_ETH_BYTES);

	p->ipv6 = 0;
	trim(m, URN_ETH_BYTES + total);
	if (likely(ip->proto == IPPROTO_UDP))
		return parse_udp(p, f, URN_ETH_BYTES + (uint32_t)sizeof(*ip),
				 total - (uint32_t)sizeof(*ip));
	if (ip->proto == IPPROTO_ICMP)
		return verdict(p, URN_FRAME_ICMP);
	return reject(p, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);
}

static inline enum urn_frame_kind
parse_v6(struct rte_mbuf *m, struct urn_pkt *p, const uint8_t *f, uint32_t len)
{
	const struct urn_ipv6 *ip = (const struct urn_ipv6 *)(f + URN_ETH_BYTES);
	uint32_t room = len - URN_ETH_BYTES - (uint32_t)sizeof(*ip);
	uint32_t payload;

	if (unlikely(len < URN_ETH_BYTES + sizeof(*ip)))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_SHORT);
	if (unlikely((ip->ver_tc_flow & RTE_BE32(0xf0000000)) != RTE_BE32(0x60000000)))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_IP_HEADER);
	payload = rte_be_to_cpu_16(ip->len);
	if (unlikely(payload > room))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_LENGTH);

	p->ipv6 = 1;
	trim(m, URN_ETH_BYTES + (uint32_t)sizeof(*ip) + payload);
	if (likely(ip->next == IPPROTO_UDP))
		return parse_udp(p, f, URN_ETH_BYTES + (uint32_t)sizeof(*ip), payload);
	if (ip->next == IPPROTO_ICMPV6)
		return verdict(p, URN_FRAME_ICMP6);
	if (ip->next == IPV6_NEXT_FRAGMENT)
		return reject(p, URN_FRAME_BAD, URN_C_DROP_FRAGMENT);
	return reject(p, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);
}

URN_FAST enum urn_frame_kind
urn_wire_parse(struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t len = rte_pktmbuf_data_len(m);
	uint16_t type;

	if (unlikely(len < URN_ETH_BYTES))
		return reject(p, URN_FRAME_BAD, URN_C_DROP_SHORT);
	p->l3_off = URN_ETH_BYTES;
	type = ((const struct urn_eth *)f)->type;
	if (likely(type == RTE_BE16(RTE_ETHER_TYPE_IPV4)))
		return parse_v4(m, p, f, len);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		return parse_v6(m, p, f, len);
	if (type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return verdict(p, URN_FRAME_ARP);
	return reject(p, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);
}

URN_FAST int
urn_wire_icrc_ok(struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3_off);
	/* The parser trimmed the frame: its last four bytes are the ICRC. */
	uint32_t len = rte_pktmbuf_data_len(m) - p->l3_off - URN_ICRC_BYTES;
	uint32_t wire;

	memcpy(&wire, l3 + len, sizeof(wire));
	return urn_icrc(l3, len, p->ipv6) == rte_le_to_cpu_32(wire);
}
