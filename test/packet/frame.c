/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"

#include <endian.h>
#include <string.h>

/* Extension headers of an opcode, in wire order. */
enum { RETH = 1, AETH = 2, ATOMIC = 4, ORIG = 8, IMM = 16, IETH = 32, DETH = 64, ZEROES = 128 };

static unsigned int
ext_of(uint8_t op)
{
	switch (op >= UC && op <= (UC | WRITE_ONLY_IMM) ? op & ~UC : op) {
	case WRITE_FIRST:
	case WRITE_ONLY:
	case READ_REQ:
	case WRITE_TWO:
		return RETH;
	case WRITE_ONLY_IMM:
	case WRITE_TWO_IMM:
		return RETH | IMM;
	case READ_FIRST:
	case READ_LAST:
	case READ_ONLY:
	case ACK:
	case SACK:
	case UC_WORD:
		return AETH;
	case ATOMIC_ACK:
		return AETH | ORIG;
	case CMP_SWAP: case FETCH_ADD:
		return ATOMIC;
	case SEND_LAST_IMM: case SEND_ONLY_IMM: case WRITE_LAST_IMM:
		return IMM;
	case SEND_LAST_INV: case SEND_ONLY_INV:
		return IETH;
	case UD_SEND:
		return DETH;
	case UD_SEND_IMM:
		return DETH | IMM;
	case CNP:
		return ZEROES;
	default:
		return 0;
	}
}

uint32_t
frame_ext_len(uint8_t op)
{
	static const uint8_t bytes[8] = {16, 4, 28, 8, 4, 4, 8, 16};
	unsigned int ext = ext_of(op);
	uint32_t n = 0;

	for (unsigned int i = 0; i < 8; i++)
		n += ext >> i & 1 ? bytes[i] : 0;
	return n;
}

struct frame
frame_of(uint8_t op, uint32_t psn)
{
	struct frame f;

	memset(&f, 0, sizeof(f));
	f.op = op;
	f.psn = psn & 0xffffff;
	f.pad = -1;
	f.pkey = 0xffff;
	f.syn = SYN_ACK;
	return f;
}

/* ---- bytes */

static uint8_t *
put(uint8_t *p, uint64_t v, unsigned int bytes)
{
	for (unsigned int i = bytes; i-- > 0; v >>= 8)
		p[i] = (uint8_t)v;
	return p + bytes;
}

static uint64_t
get(const uint8_t **p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *(*p)++;
	return v;
}

static uint32_t
be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* ---- ICRC (doc/reference/wire.md "ICRC") */

enum { SLICES = 8 }; /* bytes processed at once: fuzzers spend much of their time here */

/* table[k][b]: effect of byte b on the CRC, with k bytes behind it. */
static uint32_t table[SLICES][256];

static void
make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
		table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < SLICES; k++)
			table[k][i] = table[0][table[k - 1][i] & 0xff] ^ table[k - 1][i] >> 8;
}

static uint32_t
crc32(uint32_t crc, const uint8_t *p, uint32_t len)
{
	if (!table[0][1])
		make_table();
	for (; len >= SLICES; len -= SLICES, p += SLICES) {
		uint64_t v;

		memcpy(&v, p, SLICES);
		v = le64toh(v) ^ crc;
		crc = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
		      table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^
		      table[2][v >> 40 & 0xff] ^ table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
	}
	while (len--)
		crc = table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

/* ip: from the IP header; len: to the end of the pad. */
static uint32_t
icrc(const uint8_t *ip, uint32_t len)
{
	uint8_t head[60 + 8], ones[8];
	bool v6 = ip[0] >> 4 == 6;
	uint32_t udp = v6 ? 40 : 20, n = udp + 8 + 8;

	n = n < len ? n : len;
	memcpy(head, ip, n);
	if (v6) {
		head[0] |= 0x0f;
		memset(head + 1, 0xff, 3);
		head[7] = 0xff;
	} else {
		head[1] = 0xff;
		head[8] = 0xff;
		memset(head + 10, 0xff, 2);
	}
	memset(head + udp + 6, 0xff, 2);
	head[udp + 8 + 4] = 0xff;
	memset(ones, 0xff, 8);
	return ~crc32(crc32(crc32(0xffffffff, ones, 8), head, n), ip + n, len - n);
}

static uint32_t
ip_sum(const uint8_t *ip)
{
	uint32_t s = 0;

	for (int i = 0; i < 20; i += 2)
		s += be16(ip + i);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

void
frame_seal(uint8_t *out, uint32_t len)
{
	bool v6 = len > 14 && out[14] >> 4 == 6;
	uint32_t crc;

	if (len < (v6 ? 14u + 40 + 8 + 12 + 4 : 14u + 20 + 8 + 12 + 4))
		return;
	if (!v6) {
		put(out + 24, 0, 2);
		put(out + 24, ~ip_sum(out + 14), 2);
	}
	crc = icrc(out + 14, len - 18);
	for (int i = 0; i < 4; i++)
		out[len - 4 + (uint32_t)i] = (uint8_t)(crc >> 8 * i);
}

/* ---- writing */

static bool
is_v4(const uint8_t *gid)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(gid, prefix, 12) == 0;
}

/* rest: bytes behind the UDP header, ICRC included. */
static uint8_t *
write_lower(uint8_t *p, const struct frame_addr *src, const struct frame_addr *dst, uint8_t ecn,
	    uint32_t rest)
{
	bool v4 = is_v4(dst->gid);

	memcpy(p, dst->mac, 6);
	memcpy(p + 6, src->mac, 6);
	p = put(p + 12, v4 ? 0x0800 : 0x86dd, 2);
	if (v4) {
		p = put(p, 0x4500u | ecn, 2);
		p = put(p, 28 + rest, 2);
		p = put(p, 0x12344000, 4);
		p = put(p, 0x40110000, 4);
		memcpy(p, src->gid + 12, 4);
		memcpy(p + 4, dst->gid + 12, 4);
		p += 8;
	} else {
		p = put(p, 0x60000000u | (uint32_t)ecn << 20, 4);
		p = put(p, 8 + rest, 2);
		p = put(p, 0x1140, 2);
		memcpy(p, src->gid, 16);
		memcpy(p + 16, dst->gid, 16);
		p += 32;
	}
	p = put(p, 0xd123, 2);
	p = put(p, 4791, 2);
	p = put(p, 8 + rest, 2);
	return put(p, 0, 2);
}

static uint8_t *
write_ext(uint8_t *p, const struct frame *f)
{
	unsigned int ext = ext_of(f->op);

	if (ext & RETH)
		p = put(put(put(p, f->va, 8), f->rkey, 4), f->length, 4);
	if (ext & AETH)
		p = put(put(p, f->syn, 1), f->msn, 3);
	if (ext & ATOMIC)
		p = put(put(put(put(p, f->va, 8), f->rkey, 4), f->swap, 8), f->compare, 8);
	if (ext & ORIG)
		p = put(p, f->orig, 8);
	if (ext & DETH)
		p = put(put(p, f->qkey, 4), f->sqpn, 4);
	if (ext & (IMM | IETH))
		p = put(p, f->imm, 4);
	if (ext & ZEROES)
		p = put(put(p, 0, 8), 0, 8);
	return p;
}

uint32_t
frame_write(const struct frame *f, const struct frame_addr *src, const struct frame_addr *dst,
	    uint8_t *out)
{
	uint32_t pad = -f->len & 3;
	uint8_t *p =
		write_lower(out, src, dst, f->ecn, 12 + frame_ext_len(f->op) + f->len + pad + 4);
	uint8_t claimed = (uint8_t)(f->pad < 0 ? pad : (uint32_t)f->pad);

	p = put(p, f->op, 1);
	p = put(p, (f->se ? 0x80u : 0) | (f->no_m ? 0 : 0x40u) | (uint32_t)claimed << 4 | f->tver, 1);
	p = put(p, f->pkey, 2);
	p = put(p, f->dqpn | (uint32_t)f->fb << 24, 4);
	p = put(p, (f->ack ? 0x80000000u : 0) | f->psn, 4);
	p = write_ext(p, f);
	memcpy(p, f->data, f->len);
	memset(p + f->len, 0, pad + 4);
	p += f->len + pad + 4;
	frame_seal(out, (uint32_t)(p - out));
	return (uint32_t)(p - out);
}

/* ---- reading */

static const char *
read_lower(const uint8_t *in, uint32_t len, const struct frame_addr *src,
	   const struct frame_addr *dst, const uint8_t **bth)
{
	bool v4 = is_v4(dst->gid);
	const uint8_t *ip = in + 14, *udp = ip + (v4 ? 20 : 40);

	if (len < (v4 ? 58u : 78u))
		return "shorter than its headers";
	if (memcmp(in, dst->mac, 6) != 0 || memcmp(in + 6, src->mac, 6) != 0)
		return "MAC addresses";
	if (be16(in + 12) != (v4 ? 0x0800 : 0x86dd))
		return "Ethernet type";
	if (v4 && (ip[0] != 0x45 || be16(ip + 2) != len - 14 || ip[9] != 17 || ip_sum(ip) != 0xffff ||
		   memcmp(ip + 12, src->gid + 12, 4) != 0 || memcmp(ip + 16, dst->gid + 12, 4) != 0))
		return "IPv4 header";
	if (!v4 && (ip[0] >> 4 != 6 || be16(ip + 4) != len - 54 || ip[6] != 17 ||
		    memcmp(ip + 8, src->gid, 16) != 0 || memcmp(ip + 24, dst->gid, 16) != 0))
		return "IPv6 header";
	if (be16(udp) < 0xc000 || be16(udp + 2) != 4791 || be16(udp + 4) != len - (v4 ? 34 : 54))
		return "UDP header";
	*bth = udp + 8;
	return NULL;
}

static const uint8_t *
read_ext(const uint8_t *p, struct frame *f)
{
	unsigned int ext = ext_of(f->op);

	if (ext & RETH) {
		f->va = get(&p, 8);
		f->rkey = (uint32_t)get(&p, 4);
		f->length = (uint32_t)get(&p, 4);
	}
	if (ext & AETH) {
		f->syn = (uint8_t)get(&p, 1);
		f->msn = (uint32_t)get(&p, 3);
	}
	if (ext & ATOMIC) {
		f->va = get(&p, 8);
		f->rkey = (uint32_t)get(&p, 4);
		f->swap = get(&p, 8);
		f->compare = get(&p, 8);
	}
	if (ext & ORIG)
		f->orig = get(&p, 8);
	if (ext & DETH) {
		f->qkey = (uint32_t)get(&p, 4);
		f->sqpn = (uint32_t)get(&p, 4);
	}
	if (ext & (IMM | IETH))
		f->imm = (uint32_t)get(&p, 4);
	if (ext & ZEROES)
		f->orig = get(&p, 8) | get(&p, 8);
	return p;
}

const char *
frame_read(const uint8_t *in, uint32_t len, const struct frame_addr *src,
	   const struct frame_addr *dst, struct frame *f)
{
	const uint8_t *p = in, *end = in + len - 4;
	const char *why = read_lower(in, len, src, dst, &p);
	uint32_t crc, word;

	memset(f, 0, sizeof(*f));
	if (why)
		return why;
	crc = icrc(in + 14, len - 18);
	for (int i = 0; i < 4; i++)
		if (end[i] != (uint8_t)(crc >> 8 * i))
			return "ICRC";
	f->op = p[0];
	f->se = p[1] >> 7;
	f->no_m = !(p[1] >> 6 & 1);
	f->pad = p[1] >> 4 & 3;
	f->tver = p[1] & 15;
	/* IBTA 17.2.8: a QP that migrates no path is in state Migrated. A congestion notification
	 * has M 0 (A17.9.3). */
	if (f->no_m != (f->op == CNP))
		return "MigReq";
	p += 2;
	f->pkey = (uint16_t)get(&p, 2);
	word = (uint32_t)get(&p, 4);
	f->dqpn = word & 0xffffff;
	f->fb = (uint8_t)(word >> 24);
	f->tclass = is_v4(dst->gid) ? in[15] : (uint8_t)(in[14] << 4 | in[15] >> 4);
	f->hops = is_v4(dst->gid) ? in[22] : in[21];
	f->ecn = f->tclass & 3;
	/* A congestion notification has B, and nothing else has F or B (doc/reference/wire.md). */
	if (f->fb != (f->op == CNP ? 0x40 : 0) || f->tver)
		return "reserved bits of the BTH";
	word = (uint32_t)get(&p, 4);
	f->ack = word >> 31;
	f->psn = word & 0xffffff;
	if (word >> 24 & 0x7f)
		return "reserved bits before the PSN";
	if ((uint32_t)(end - p) < frame_ext_len(f->op))
		return "no room for its extension headers";
	p = read_ext(p, f);
	if (end - p < f->pad || (end - p) % 4 || end - p > FRAME_DATA)
		return "pad";
	f->len = (uint32_t)(end - p) - (uint32_t)f->pad;
	memcpy(f->data, p, f->len);
	for (const uint8_t *q = p + f->len; q < end; q++)
		if (*q)
			return "pad bytes that are not 0";
	return NULL;
}
