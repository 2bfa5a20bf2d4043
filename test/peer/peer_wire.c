/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer_wire.h"

#include <string.h>

enum { UDP_PORT = 4791, ETH = 14, UDP = 8, BTH = 12, ICRC = 4 };

static const struct {
	const char *name;
	unsigned int is;
} ops[PW_OPS] = {
#define K PWI_KNOWN
	[PW_SEND_FIRST] = {"SEND first", K | PWI_SEND | PWI_BEGINS | PWI_DATA},
	[PW_SEND_MIDDLE] = {"SEND middle", K | PWI_SEND | PWI_DATA},
	[PW_SEND_LAST] = {"SEND last", K | PWI_SEND | PWI_ENDS | PWI_DATA},
	[PW_SEND_LAST_IMM] = {"SEND last imm", K | PWI_SEND | PWI_ENDS | PWI_DATA | PWI_IMM},
	[PW_SEND_ONLY] = {"SEND only", K | PWI_SEND | PWI_BEGINS | PWI_ENDS | PWI_DATA},
	[PW_SEND_ONLY_IMM] = {"SEND only imm",
			      K | PWI_SEND | PWI_BEGINS | PWI_ENDS | PWI_DATA | PWI_IMM},
	[PW_WRITE_FIRST] = {"WRITE first", K | PWI_WRITE | PWI_BEGINS | PWI_DATA | PWI_RETH},
	[PW_WRITE_MIDDLE] = {"WRITE middle", K | PWI_WRITE | PWI_DATA},
	[PW_WRITE_LAST] = {"WRITE last", K | PWI_WRITE | PWI_ENDS | PWI_DATA},
	[PW_WRITE_LAST_IMM] = {"WRITE last imm", K | PWI_WRITE | PWI_ENDS | PWI_DATA | PWI_IMM},
	[PW_WRITE_ONLY] = {"WRITE only",
			   K | PWI_WRITE | PWI_BEGINS | PWI_ENDS | PWI_DATA | PWI_RETH},
	[PW_WRITE_ONLY_IMM] = {"WRITE only imm", K | PWI_WRITE | PWI_BEGINS | PWI_ENDS | PWI_DATA |
							 PWI_RETH | PWI_IMM},
	[PW_READ] = {"READ", K | PWI_FETCH | PWI_BEGINS | PWI_ENDS | PWI_RETH},
	[PW_RESP_FIRST] = {"response first", K | PWI_RESPONSE | PWI_BEGINS | PWI_DATA | PWI_AETH},
	[PW_RESP_MIDDLE] = {"response middle", K | PWI_RESPONSE | PWI_DATA},
	[PW_RESP_LAST] = {"response last", K | PWI_RESPONSE | PWI_ENDS | PWI_DATA | PWI_AETH},
	[PW_RESP_ONLY] = {"response only",
			  K | PWI_RESPONSE | PWI_BEGINS | PWI_ENDS | PWI_DATA | PWI_AETH},
	[PW_ACKNOWLEDGE] = {"ACK", K | PWI_RESPONSE | PWI_BEGINS | PWI_ENDS | PWI_AETH},
	[PW_ATOMIC_ACK] = {"ATOMIC ACK",
			   K | PWI_RESPONSE | PWI_BEGINS | PWI_ENDS | PWI_AETH | PWI_ORIG},
	[PW_CMP_SWAP] = {"CMP_SWAP", K | PWI_FETCH | PWI_BEGINS | PWI_ENDS | PWI_ATOMIC},
	[PW_FETCH_ADD] = {"FETCH_ADD", K | PWI_FETCH | PWI_BEGINS | PWI_ENDS | PWI_ATOMIC},
	[PW_SEND_LAST_INV] = {"SEND last inv", K | PWI_SEND | PWI_ENDS | PWI_DATA | PWI_INV},
	[PW_SEND_ONLY_INV] = {"SEND only inv",
			      K | PWI_SEND | PWI_BEGINS | PWI_ENDS | PWI_DATA | PWI_INV},
#undef K
};

unsigned int
pw_is(uint8_t op)
{
	return op < PW_OPS ? ops[op].is : 0;
}

const char *
pw_name(uint8_t op)
{
	return op < PW_OPS && ops[op].name ? ops[op].name : "unknown opcode";
}

/* ---- big-endian numbers of n bytes */

static uint8_t *
put(uint8_t *at, uint64_t v, int n)
{
	for (int i = n - 1; i >= 0; i--, v >>= 8)
		at[i] = (uint8_t)v;
	return at + n;
}

static uint64_t
get(const uint8_t **at, int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *(*at)++;
	return v;
}

static uint16_t
ip_sum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~((sum & 0xffff) + (sum >> 16));
}

/* ---- writing */

static uint8_t *
put_ip(uint8_t *at, const struct pw_addr *from, const struct pw_addr *to, size_t behind)
{
	uint8_t *ip = at;

	if (from->v6) {
		at = put(at, 0x60000000, 4);
		at = put(at, behind, 2);
		at = put(at, 0x1140, 2); /* UDP, hop limit 64 */
		memcpy(at, from->ip, 16);
		memcpy(at + 16, to->ip, 16);
		return at + 32;
	}
	at = put(at, 0x4500, 2);
	at = put(at, behind + 20, 2);
	at = put(at, 0x00004000, 4);     /* do not fragment */
	at = put(at, 0x40110000, 4);     /* TTL 64, UDP; the sum is added below */
	memcpy(at, from->ip, 4);
	memcpy(at + 4, to->ip, 4);
	put(ip + 10, ip_sum(ip), 2);
	return at + 8;
}

static uint8_t *
put_ext(uint8_t *at, const struct pw *f, unsigned int is)
{
	if (is & PWI_RETH) {
		at = put(at, f->va, 8);
		at = put(at, f->rkey, 4);
		at = put(at, f->dmalen, 4);
	}
	if (is & PWI_ATOMIC) {
		at = put(at, f->va, 8);
		at = put(at, f->rkey, 4);
		at = put(at, f->swap_add, 8);
		at = put(at, f->compare, 8);
	}
	if (is & PWI_AETH)
		at = put(at, (uint64_t)f->syn << 24 | f->msn, 4);
	if (is & PWI_ORIG)
		at = put(at, f->orig, 8);
	if (is & (PWI_IMM | PWI_INV))
		at = put(at, f->imm, 4);
	return at;
}

static size_t
ext_len(unsigned int is)
{
	return (is & PWI_RETH ? 16u : 0) + (is & PWI_ATOMIC ? 28u : 0) + (is & PWI_AETH ? 4u : 0) +
	       (is & PWI_ORIG ? 8u : 0) + (is & (PWI_IMM | PWI_INV) ? 4u : 0);
}

size_t
pw_write(const struct pw *f, const struct pw_addr *from, const struct pw_addr *to, uint16_t sport,
	 uint8_t *out)
{
	unsigned int is = pw_is(f->op), pad = -f->len & 3;
	size_t behind = UDP + BTH + ext_len(is) + f->len + pad + ICRC;
	uint8_t *at = out, *ip = out + ETH;
	uint32_t crc;

	memcpy(at, to->mac, 6);
	memcpy(at + 6, from->mac, 6);
	at = put(at + 12, from->v6 ? 0x86dd : 0x0800, 2);
	at = put_ip(at, from, to, behind);
	at = put(at, sport, 2);
	at = put(at, UDP_PORT, 2);
	at = put(at, behind, 2);
	at = put(at, 0, 2);
	at = put(at, f->op, 1);
	at = put(at, f->se << 7 | f->mig << 6 | pad << 4, 1);
	at = put(at, 0xffff, 2);
	at = put(at, f->qpn, 4);
	at = put(at, (uint32_t)f->ack << 31 | f->psn, 4);
	at = put_ext(at, f, is);
	if (f->len)
		memcpy(at, f->data, f->len);
	memset(at + f->len, 0, pad);
	at += f->len + pad;
	crc = pw_icrc(ip, (size_t)(at - ip));
	for (int i = 0; i < 4; i++, crc >>= 8)
		*at++ = (uint8_t)crc;
	return (size_t)(at - out);
}

/* ---- reading */

static const char *
get_ip(const uint8_t **at, const struct pw_addr *from, const struct pw_addr *to, size_t behind)
{
	const uint8_t *ip = *at;

	if (from->v6) {
		*at += 40;
		return ip[0] >> 4 != 6                         ? "IPv6: version"
		       : (size_t)(ip[4] << 8 | ip[5]) != behind - 40 ? "IPv6: length"
		       : ip[6] != 17                           ? "IPv6: next header"
		       : memcmp(ip + 8, from->ip, 16)          ? "IPv6: source"
		       : memcmp(ip + 24, to->ip, 16)           ? "IPv6: destination"
								: NULL;
	}
	*at += 20;
	return ip[0] != 0x45                            ? "IPv4: version, length of the header"
	       : (size_t)(ip[2] << 8 | ip[3]) != behind ? "IPv4: length"
	       : (ip[6] & 0xbf) || ip[7]                ? "IPv4: fragment"
	       : ip[9] != 17                            ? "IPv4: protocol"
	       : ip_sum(ip) != 0                        ? "IPv4: sum"
	       : memcmp(ip + 12, from->ip, 4)           ? "IPv4: source"
	       : memcmp(ip + 16, to->ip, 4)             ? "IPv4: destination"
							: NULL;
}

static void
get_ext(const uint8_t **at, struct pw *f, unsigned int is)
{
	uint64_t v;

	if (is & (PWI_RETH | PWI_ATOMIC)) {
		f->va = get(at, 8);
		f->rkey = (uint32_t)get(at, 4);
	}
	if (is & PWI_RETH)
		f->dmalen = (uint32_t)get(at, 4);
	if (is & PWI_ATOMIC) {
		f->swap_add = get(at, 8);
		f->compare = get(at, 8);
	}
	if (is & PWI_AETH) {
		v = get(at, 4);
		f->syn = (uint8_t)(v >> 24);
		f->msn = v & PW_PSN_MASK;
	}
	if (is & PWI_ORIG)
		f->orig = get(at, 8);
	if (is & (PWI_IMM | PWI_INV))
		f->imm = (uint32_t)get(at, 4);
}

static const char *
get_bth(const uint8_t **at, struct pw *f, unsigned int *pad)
{
	const uint8_t *bth = *at;
	uint64_t v;

	f->op = (uint8_t)get(at, 1);
	f->se = bth[1] >> 7;
	f->mig = bth[1] >> 6 & 1;
	*pad = bth[1] >> 4 & 3;
	if (bth[1] & 0xf)
		return "BTH: transport version";
	*at += 1;
	if (get(at, 2) != 0xffff)
		return "BTH: P_Key";
	v = get(at, 4);
	f->qpn = v & PW_PSN_MASK;
	if (v >> 24)
		return "BTH: reserved bits, FECN or BECN";
	v = get(at, 4);
	f->ack = v >> 31 & 1;
	f->psn = v & PW_PSN_MASK;
	return v >> 24 & 0x7f ? "BTH: reserved bits beside the PSN" : NULL;
}

static const char *
get_transport(const uint8_t *at, const uint8_t *end, struct pw *f)
{
	unsigned int pad, is;
	const char *why = get_bth(&at, f, &pad);

	if (why)
		return why;
	is = pw_is(f->op);
	if (!is)
		return "BTH: opcode";
	if ((size_t)(end - at) < ext_len(is) + pad)
		return "too short for its headers";
	get_ext(&at, f, is);
	f->data = at;
	f->len = (uint32_t)(end - at) - pad;
	for (unsigned int i = 0; i < pad; i++)
		if (at[f->len + i])
			return "pad is not zero";
	if (pad != (-f->len & 3))
		return "pad does not fit the payload";
	if (f->len && !(is & PWI_DATA))
		return "payload where none may be";
	return (is & PWI_RESPONSE) && f->ack ? "a response that asks for an ACK" : NULL;
}

const char *
pw_read(const uint8_t *at, size_t len, const struct pw_addr *from, const struct pw_addr *to,
	struct pw *f)
{
	const uint8_t *ip = at + ETH, *end = at + len - ICRC, *p = ip;
	size_t l3 = from->v6 ? 40 : 20;
	const char *why;
	uint32_t crc;

	memset(f, 0, sizeof(*f));
	if (len < ETH + l3 + UDP + BTH + ICRC)
		return "too short";
	if (memcmp(at, to->mac, 6) || memcmp(at + 6, from->mac, 6) ||
	    (at[12] << 8 | at[13]) != (from->v6 ? 0x86dd : 0x0800))
		return "Ethernet header";
	why = get_ip(&p, from, to, len - ETH);
	if (why)
		return why;
	f->sport = (uint16_t)get(&p, 2);
	if (f->sport < 0xc000)
		return "UDP: source port";
	if (get(&p, 2) != UDP_PORT || get(&p, 2) != len - ETH - l3)
		return "UDP: port or length";
	p += 2;
	crc = (uint32_t)end[3] << 24 | (uint32_t)end[2] << 16 | (uint32_t)end[1] << 8 | end[0];
	if (crc != pw_icrc(ip, (size_t)(end - ip)))
		return "ICRC";
	return get_transport(p, end, f);
}
