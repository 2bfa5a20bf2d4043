/* SPDX-License-Identifier: BSD-3-Clause */
#include "plain.h"

#include <rte_ip.h>

#define BAD(why) ((struct verdict){ .kind = URN_FRAME_BAD, .drop = URN_C_DROP_##why })
#define OTHER ((struct verdict){ .kind = URN_FRAME_OTHER, .drop = URN_C_DROP_NOT_ROCE })

static struct verdict
plain_roce(const uint8_t *f, uint32_t at, uint32_t end)
{
	const struct urn_opcode *op;
	uint32_t bth = at + 8, pad, rest;

	if (end - at < 8)
		return BAD(SHORT);
	if (be16(f + at + 2) != 4791)
		return OTHER;
	if (be16(f + at + 4) != end - at)
		return BAD(LENGTH);
	if (end - bth < 16)
		return BAD(SHORT);
	if (f[bth + 1] & 0xf)
		return BAD(BTH_VERSION);
	op = &urn_opcodes[f[bth]];
	if (op->name == NULL)
		return BAD(OPCODE);
	if (end - bth < op->hdr_len + 4u)
		return BAD(SHORT);
	rest = end - bth - op->hdr_len - 4;
	pad = f[bth + 1] >> 4 & 3;
	if (!(op->flags & URN_OPF_PAYLOAD) && rest > 0)
		return BAD(LENGTH);
	if (rest % 4 || pad > rest)
		return BAD(PAD);
	return (struct verdict){ URN_FRAME_ROCE, 0, end, bth + op->hdr_len, rest - pad };
}

struct verdict
plain_parse(const uint8_t *f, uint32_t len)
{
	uint32_t type, end, next;

	if (len < 14)
		return BAD(SHORT);
	type = be16(f + 12);
	if (type == 0x0806)
		return (struct verdict){ .kind = URN_FRAME_ARP };
	if (type == 0x0800) {
		if (len < 34)
			return BAD(SHORT);
		end = 14 + be16(f + 16);
		if (f[14] != 0x45)
			return BAD(IP_HEADER);
		if (end < 34 || end > len)
			return BAD(LENGTH);
		if (rte_raw_cksum(f + 14, 20) != 0xffff)
			return BAD(IP_CSUM);
		if (be16(f + 20) & 0x3fff)
			return BAD(FRAGMENT);
		next = f[23];
		if (next == 1)
			return (struct verdict){ .kind = URN_FRAME_ICMP };
		return next == 17 ? plain_roce(f, 34, end) : OTHER;
	}
	if (type == 0x86dd) {
		if (len < 54)
			return BAD(SHORT);
		end = 54 + be16(f + 18);
		if (f[14] >> 4 != 6)
			return BAD(IP_HEADER);
		if (end > len)
			return BAD(LENGTH);
		next = f[20];
		if (next == 58)
			return (struct verdict){ .kind = URN_FRAME_ICMP6 };
		if (next == 44)
			return BAD(FRAGMENT);
		return next == 17 ? plain_roce(f, 54, end) : OTHER;
	}
	return OTHER;
}
