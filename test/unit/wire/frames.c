/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"

#include <rte_ip.h>

struct urn_path
frame_path(int ipv6)
{
	struct urn_path p = {
		.smac = { 0x02, 0, 0, 0, 0, 0x0a },
		.dmac = { 0x02, 0, 0, 0, 0, 0x0b },
		.sgid = { [10] = 0xff, [11] = 0xff, 10, 1, 2, 3 },
		.dgid = { [10] = 0xff, [11] = 0xff, 10, 1, 2, 4 },
		.sport = 0xc123,
		.ttl = 64,
		.flow_label = 0x12345,
	};

	if (ipv6) {
		static const uint8_t src[16] = { 0xfe, 0x80, [8] = 0, 0, 0, 0xff, 0xfe, 0, 0, 0x0a };

		memcpy(p.sgid, src, 16);
		memcpy(p.dgid, src, 16);
		p.dgid[15] = 0x0b;
	}
	return p;
}

uint32_t
frame_make(uint8_t *out, const struct frame_spec *spec)
{
	const struct urn_opcode *op = &urn_opcodes[spec->opcode];
	struct urn_path path = frame_path(spec->ipv6);
	uint32_t pad = (4 - spec->payload) & 3;
	uint32_t len = op->hdr_len + spec->payload + pad;
	struct urn_tmpl t;
	uint8_t *roce;

	path.tos = spec->tos;
	path.ttl = spec->ttl;
	urn_tmpl_init(&t, &path);
	urn_build_headers(out, &t, len);
	roce = out + t.len;
	urn_build_bth((struct urn_bth *)roce, spec->opcode, URN_BTH_M, (uint8_t)pad, spec->dqpn,
		      spec->psn, spec->ackreq);
	/* Wireshark takes a byte and three of pad for the EtherType of what follows, if there is
	 * one. */
	for (uint32_t i = sizeof(struct urn_bth); i < len; i++)
		roce[i] = i < len - pad ? (uint8_t)(spec->psn + i * 11) | 0xc0 : 0;
	if (spec->opcode == URN_CNP)
		memset(roce + sizeof(struct urn_bth), 0, 16);
	urn_build_icrc(out, t.len + len, spec->ipv6, 1);
	return t.len + len + URN_ICRC_BYTES;
}

void
frame_fix_csum(uint8_t *frame, uint32_t len)
{
	struct urn_ipv4 *ip = (struct urn_ipv4 *)(frame + URN_ETH_BYTES);

	if (len < URN_ETH_BYTES + sizeof(*ip) || frame[12] != 0x08 || frame[13] != 0x00)
		return;
	ip->csum = 0;
	ip->csum = (uint16_t)~rte_raw_cksum(ip, sizeof(*ip));
}

unsigned int
frame_opcodes(uint8_t out[256])
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 256; i++)
		if (urn_opcodes[i].flags & URN_OPF_VALID)
			out[n++] = (uint8_t)i;
	return n;
}
