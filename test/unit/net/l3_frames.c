/* SPDX-License-Identifier: BSD-3-Clause */
#include "l3_frames.h"

#include <string.h>

const uint8_t us_mac[6] = { 0x02, 0, 0, 0, 0, 0x01 };
const uint8_t peer_mac[6] = { 0x02, 0, 0, 0, 0, 0x02 };
const uint8_t other_mac[6] = { 0x02, 0, 0, 0, 0, 0x03 };
const uint8_t us_v4[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };
const uint8_t peer_v4[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };
const uint8_t us_ll[16] = { 0xfe, 0x80, [13] = 0xaa, [14] = 0xbb, [15] = 1 };
const uint8_t peer_ll[16] = { 0xfe, 0x80, [13] = 0xcc, [14] = 0xdd, [15] = 2 };
const uint8_t us_global[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };
const uint8_t peer_global[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 };
const uint8_t no_addr[16];

void
l3_nth_v4(uint8_t gid[16], uint32_t i)
{
	memcpy(gid, us_v4, 16);
	gid[13] = (uint8_t)(1 + (i >> 16));
	gid[14] = (uint8_t)(i >> 8);
	gid[15] = (uint8_t)i;
}

void
l3_nth_v6(uint8_t gid[16], uint32_t i)
{
	memset(gid, 0, 16);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	gid[11] = 1;
	gid[13] = (uint8_t)(i >> 16);
	gid[14] = (uint8_t)(i >> 8);
	gid[15] = (uint8_t)i;
}

static uint32_t
words(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static uint16_t
fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Sum of an ICMPv6 message with its pseudo header. */
static uint16_t
sum6(const uint8_t *f, uint32_t len)
{
	return fold(words(f + 54, len - 54, words(f + 22, 32, len - 54 + 58)));
}

void
l3_fix(uint8_t *f, uint32_t len)
{
	if (len >= 34 && f[12] == 0x08 && f[13] == 0x00) {
		put16(f + 24, 0);
		put16(f + 24, 0xffffu ^ fold(words(f + 14, 20, 0)));
		if (len >= 42) {
			put16(f + 36, 0);
			put16(f + 36, 0xffffu ^ fold(words(f + 34, len - 34, 0)));
		}
	} else if (len >= 62 && f[12] == 0x86) {
		put16(f + 56, 0);
		put16(f + 56, 0xffffu ^ sum6(f, len));
	}
}

int
l3_sums_ok(const uint8_t *f, uint32_t len)
{
	if (f[12] == 0x08 && f[13] == 0x00)
		return fold(words(f + 14, 20, 0)) == 0xffff &&
		       fold(words(f + 34, len - 34, 0)) == 0xffff;
	if (f[12] == 0x86)
		return sum6(f, len) == 0xffff;
	return 1;
}

static void
ether(uint8_t *out, const uint8_t *dst, uint32_t type)
{
	memcpy(out, dst, 6);
	memcpy(out + 6, peer_mac, 6);
	put16(out + 12, type);
}

uint32_t
l3_arp(uint8_t *out, uint16_t op, const uint8_t sha[6], const uint8_t spa[16],
       const uint8_t tpa[16])
{
	static const uint8_t head[6] = { 0, 1, 8, 0, 6, 4 };

	memset(out, 0, 42);
	ether(out, us_mac, 0x0806);
	memcpy(out + 6, sha, 6);
	memcpy(out + 14, head, 6);
	put16(out + 20, op);
	memcpy(out + 22, sha, 6);
	memcpy(out + 28, spa + 12, 4);
	memcpy(out + 38, tpa + 12, 4);
	return 42;
}

static uint32_t
ipv6(uint8_t *out, const uint8_t src[16], const uint8_t dst[16], uint32_t payload)
{
	static const uint8_t group[2] = { 0x33, 0x33 };

	memset(out, 0, 54 + payload);
	ether(out, us_mac, 0x86dd);
	if (dst[0] == 0xff) {
		memcpy(out, group, 2);
		memcpy(out + 2, dst + 12, 4);
	}
	out[14] = 0x60;
	put16(out + 18, payload);
	out[20] = 58;
	out[21] = 255;
	memcpy(out + 22, src, 16);
	memcpy(out + 38, dst, 16);
	return 54 + payload;
}

uint32_t
l3_echo(uint8_t *out, const uint8_t src[16], const uint8_t dst[16], uint32_t data)
{
	int v6 = dst[10] != 0xff;
	uint32_t len = (v6 ? 62 : 42) + data;
	uint8_t *icmp;

	if (v6) {
		ipv6(out, src, dst, 8 + data);
	} else {
		memset(out, 0, len);
		ether(out, us_mac, 0x0800);
		out[14] = 0x45;
		put16(out + 16, len - 14);
		out[22] = 17; /* time to live */
		out[23] = 1;
		memcpy(out + 26, src + 12, 4);
		memcpy(out + 30, dst + 12, 4);
	}
	icmp = out + (v6 ? 54 : 34);
	icmp[0] = v6 ? 128 : 8;
	for (uint32_t i = 4; i < 8 + data; i++)
		icmp[i] = (uint8_t)(i * 13 + 7);
	l3_fix(out, len);
	return len;
}

static uint32_t
nd(uint8_t *out, uint32_t len, uint8_t type, uint8_t flags, const uint8_t target[16],
   const uint8_t *mac)
{
	out[54] = type;
	out[58] = flags;
	memcpy(out + 62, target, 16);
	if (mac != NULL) {
		out[78] = type == 135 ? 1 : 2;
		out[79] = 1;
		memcpy(out + 80, mac, 6);
	}
	l3_fix(out, len);
	return len;
}

uint32_t
l3_solicit(uint8_t *out, const uint8_t src[16], const uint8_t dst[16], const uint8_t target[16],
	   const uint8_t *mac)
{
	return nd(out, ipv6(out, src, dst, mac ? 32 : 24), 135, 0, target, mac);
}

uint32_t
l3_advert(uint8_t *out, const uint8_t dst[16], const uint8_t target[16], const uint8_t *mac,
	  uint8_t flags)
{
	return nd(out, ipv6(out, target, dst, mac ? 32 : 24), 136, flags, target, mac);
}

uint32_t
l3_ra(uint8_t *out, const uint8_t src[16], uint32_t lifetime, uint8_t flags)
{
	static const uint8_t nodes[16] = {0xff, 0x02, [15] = 1};
	uint32_t len = ipv6(out, src, nodes, 16);

	out[54] = 134;
	out[58] = 64; /* hop limit for hosts */
	out[59] = flags;
	put16(out + 60, lifetime);
	l3_fix(out, len);
	return len;
}

uint32_t
l3_option(uint8_t *out, uint32_t len, uint8_t type, uint8_t units)
{
	memset(out + len, 0, units * 8u);
	out[len] = type;
	out[len + 1] = units;
	len += units * 8u;
	put16(out + 18, len - 54);
	l3_fix(out, len);
	return len;
}

uint32_t
l3_prefix(uint8_t *out, uint32_t len, const uint8_t prefix[16], uint8_t bits, uint8_t flags,
	  uint32_t valid)
{
	uint8_t *o = out + len;

	len = l3_option(out, len, 3, 4);
	o[2] = bits;
	o[3] = flags;
	put16(o + 4, valid >> 16);
	put16(o + 6, valid & 0xffff);
	memcpy(o + 8, o + 4, 4); /* the preferred lifetime */
	memcpy(o + 16, prefix, 16);
	l3_fix(out, len);
	return len;
}
