/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/test_link_mad.h"

#include <string.h>

static void
put(uint8_t *p, unsigned int n, uint64_t v)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

uint64_t
link_get(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

struct link_spec
link_good(int response, uint64_t tid)
{
	return (struct link_spec){
		.base_version = 1,
		.mgmt_class = 0x4e,
		.class_version = 1,
		.method = response ? 0x81 : 0x01,
		.attr = response ? 0x11 : 0x10,
		.tid = tid,
		.oui = {0x02, 0x55, 0x52},
		.magic = 0x55524e4c,
		.major = 1,
		.length = 32,
		.epoch = 0x1111,
		.features = 1,
		.arw = 1,
		.opcode = 0x64,
		.qkey = 0x80010000,
		.sqpn = 1,
		.bytes = LINK_MAD,
	};
}

void
link_mad(uint8_t *mad, const struct link_spec *s)
{
	memset(mad, 0, LINK_MAD);
	mad[0] = s->base_version;
	mad[1] = s->mgmt_class;
	mad[2] = s->class_version;
	mad[3] = s->method;
	put(mad + 4, 2, s->status);
	put(mad + 8, 8, s->tid);
	put(mad + 16, 2, s->attr);
	memcpy(mad + 37, s->oui, 3);
	put(mad + 40, 4, s->magic);
	mad[44] = s->major;
	mad[45] = s->minor;
	put(mad + 46, 2, s->length);
	put(mad + 48, 8, s->epoch);
	put(mad + 56, 4, s->features);
	mad[60] = s->arw;
	if (s->options)
		memcpy(mad + 72, s->options, s->options_len);
}

static uint32_t
put_ip(uint8_t *ip, const uint8_t src[16], const uint8_t dst[16], uint32_t udp_len)
{
	uint32_t sum = 0;

	if (src[0] != 0 || src[10] != 0xff) { /* not ::ffff:a.b.c.d */
		ip[0] = 0x60;
		put(ip + 4, 2, udp_len);
		ip[6] = 17;
		ip[7] = 64;
		memcpy(ip + 8, src, 16);
		memcpy(ip + 24, dst, 16);
		return 40;
	}
	ip[0] = 0x45;
	put(ip + 2, 2, 20 + udp_len);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, src + 12, 4);
	memcpy(ip + 16, dst + 12, 4);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)link_get(ip + i, 2);
	sum = (sum & 0xffff) + (sum >> 16);
	put(ip + 10, 2, ~sum & 0xffff);
	return 20;
}

uint32_t
link_frame(uint8_t *out, const struct link_spec *s, const uint8_t smac[6], const uint8_t src[16],
	   const uint8_t dmac[6], const uint8_t dst[16])
{
	uint32_t imm = s->opcode == 0x65 ? 4 : 0;
	uint32_t hdr = 12 + (s->opcode >= 0x64 ? 8 : 0) + imm, pad = -s->bytes & 3;
	uint32_t udp_len = 8 + hdr + s->bytes + pad + 4, at;
	uint8_t mad[LINK_MAD];

	memset(out, 0, LINK_FRAME_ROOM);
	memcpy(out, dmac, 6);
	memcpy(out + 6, smac, 6);
	at = 14 + put_ip(out + 14, src, dst, udp_len);
	put(out + 12, 2, at == 34 ? 0x0800 : 0x86dd);
	put(out + at, 2, 0xc123);
	put(out + at + 2, 2, 4791);
	put(out + at + 4, 2, udp_len);
	at += 8;
	out[at] = s->opcode;
	out[at + 1] = (uint8_t)(0x40 | pad << 4); /* MigReq, as senders without path migration set it */
	put(out + at + 2, 2, 0xffff);
	put(out + at + 4, 4, 1);
	if (s->opcode >= 0x64) {
		put(out + at + 12, 4, s->qkey);
		put(out + at + 16, 4, s->sqpn);
	}
	at += hdr;
	link_mad(mad, s);
	memcpy(out + at, mad, s->bytes < LINK_MAD ? s->bytes : LINK_MAD);
	return at + s->bytes + pad + 4;
}

static const uint8_t *
mad_of(const uint8_t *frame)
{
	return frame + 14 + (frame[12] == 0x08 ? 20 : 40) + 8 + 12 + 8;
}

uint64_t
link_tid(const uint8_t *frame)
{
	return link_get(mad_of(frame) + 8, 8);
}

const uint8_t *
link_body(const uint8_t *frame)
{
	return mad_of(frame) + 40;
}
