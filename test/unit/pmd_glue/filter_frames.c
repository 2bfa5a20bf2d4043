/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/filter_frames.h"

#include <string.h>

const uint8_t filter_gid[FILTER_ADDRESSES][16] = {
	{0xfe, 0x80, [15] = 0xaa},
	{[10] = 0xff, 0xff, 10, 9, 8, 7},
	{0xfd, 0x00, 0x00, 0x09, [15] = 7},
};

enum kind { ARP, V4, V6, OTHER };

/* A frame: fields that a filter may look at. */
struct plan {
	const char *name;
	bool ours; /* by all but its tag */
	enum kind kind;
	uint8_t dst[16]; /* IP destination, or ARP target; IPv4: the first four bytes */
	uint8_t proto;	 /* IPv4's protocol, IPv6's next header */
	uint16_t port;	 /* UDP destination port; type of ICMPv6; type of a frame of kind OTHER */
	uint8_t target[16]; /* address that neighbour discovery is about */
	uint8_t first;	    /* first byte of the IP header; 0: the usual one */
	uint16_t fragment;  /* IPv4's flags and offset */
	uint32_t len;	    /* 0: whole */
	bool news;	    /* a station announces itself; ARP: by its address as the target */
	uint32_t tag;	    /* TAG(): before the type; 0: none */
};

#define TAG(tci) (0x81000000u | (tci))

#define OURS4               \
	{                   \
		10, 9, 8, 7 \
	}
#define KERNELS4            \
	{                   \
		10, 9, 8, 8 \
	}
#define GROUP4               \
	{                    \
		239, 1, 2, 3 \
	}
#define OURS6                                    \
	{                                        \
		0xfd, 0x00, 0x00, 0x09, [15] = 7 \
	}
#define OURS6_LINK                      \
	{                               \
		0xfe, 0x80, [15] = 0xaa \
	}
#define KERNELS6                                 \
	{                                        \
		0xfd, 0x00, 0x00, 0x09, [15] = 8 \
	}
#define SOLICITED6                                  \
	{                                           \
		0xff, 0x02, [11] = 1, 0xff, 0, 0, 7 \
	}
#define NODES6                       \
	{                            \
		0xff, 0x02, [15] = 1 \
	}

static const struct plan plans[] = {
	{"ARP for us", true, ARP, OURS4},
	{"ARP for the kernel", false, ARP, KERNELS4},
	{"ARP cut short", false, ARP, OURS4, .len = 41},
	{"announcement of another", false, ARP, KERNELS4, .news = true},
	{"announcement of our address", true, ARP, OURS4, .news = true},
	{"announcement, tagged", false, ARP, KERNELS4, .news = true, .tag = TAG(FILTER_VLAN)},
	{"announcement, other VLAN", false, ARP, KERNELS4, .news = true, .tag = TAG(261)},
	{"ARP for us, tagged", true, ARP, OURS4, .tag = TAG(FILTER_VLAN)},
	{"ARP for us, with a priority", true, ARP, OURS4, .tag = TAG(0xe000)},
	{"ARP for the kernel, tagged", false, ARP, KERNELS4, .tag = TAG(FILTER_VLAN)},
	{"RoCEv2, tagged", true, V4, OURS4, 17, 4791, .tag = TAG(FILTER_VLAN)},
	{"RoCEv2, tagged, with a priority", true, V4, OURS4, 17, 4791,
	 .tag = TAG(0xf000 | FILTER_VLAN)},
	{"RoCEv2 with a priority", true, V4, OURS4, 17, 4791, .tag = TAG(0x6000)},
	{"RoCEv2 with no priority in a tag", true, V4, OURS4, 17, 4791, .tag = TAG(0)},
	{"RoCEv2, the next VLAN", true, V4, OURS4, 17, 4791, .tag = TAG(FILTER_VLAN + 1)},
	{"RoCEv2, a VLAN of the same last byte", true, V4, OURS4, 17, 4791,
	 .tag = TAG(0x100 | FILTER_VLAN)},
	{"RoCEv2, the last VLAN", true, V4, OURS4, 17, 4791, .tag = TAG(4095)},
	{"RoCEv2 to the kernel, tagged", false, V4, KERNELS4, 17, 4791, .tag = TAG(FILTER_VLAN)},
	{"RoCEv2 to a group, tagged", true, V4, GROUP4, 17, 4791, .tag = TAG(FILTER_VLAN)},
	{"UDP header cut short, tagged", false, V4, OURS4, 17, 4791, .len = 45,
	 .tag = TAG(FILTER_VLAN)},
	{"TCP to us, tagged", false, V4, OURS4, 6, .tag = TAG(FILTER_VLAN)},
	{"RoCEv2 over IPv6, tagged", true, V6, OURS6, 17, 4791, .tag = TAG(FILTER_VLAN)},
	{"solicitation, tagged", true, V6, SOLICITED6, 58, 135, OURS6, .tag = TAG(FILTER_VLAN)},
	{"solicitation with a priority", true, V6, SOLICITED6, 58, 135, OURS6, .tag = TAG(0x2000)},
	{"advertisement to all, tagged", false, V6, NODES6, 58, 136, KERNELS6, .news = true,
	 .tag = TAG(FILTER_VLAN)},
	{"MAC control in a VLAN", false, OTHER, .port = 0x8808, .tag = TAG(FILTER_VLAN)},
	{"RoCEv2, a provider's tag", false, V4, OURS4, 17, 4791, .tag = 0x88a80000u | FILTER_VLAN},
	{"a second tag", false, OTHER, .port = 0x8100, .tag = TAG(FILTER_VLAN)},
	{"RoCEv2 to us", true, V4, OURS4, 17, 4791},
	{"RoCEv2 to the kernel", false, V4, KERNELS4, 17, 4791},
	{"RoCEv2 to a group", true, V4, GROUP4, 17, 4791},
	{"other UDP to us", false, V4, OURS4, 17, 4790},
	{"other UDP to a group", false, V4, GROUP4, 17, 5353},
	{"UDP header cut short", false, V4, OURS4, 17, 4791, .len = 41},
	{"ping to us", true, V4, OURS4, 1},
	{"ping to the kernel", false, V4, KERNELS4, 1},
	{"TCP to us", false, V4, OURS4, 6},
	{"TCP to the kernel", false, V4, KERNELS4, 6, 4791},
	{"first fragment to us", false, V4, OURS4, 17, 4791, .fragment = 0x2000},
	{"later fragment to us", false, V4, OURS4, 17, 4791, .fragment = 0x0001},
	{"fragment far behind", false, V4, OURS4, 1, .fragment = 0x1f00},
	{"not to be fragmented", true, V4, OURS4, 17, 4791, .fragment = 0x4000},
	{"options of IPv4", false, V4, OURS4, 17, 4791, .first = 0x46},
	{"IPv4 header too short", false, V4, OURS4, 17, 4791, .first = 0x44},
	{"IPv4 frame with version 6", false, V4, OURS4, 17, 4791, .first = 0x65},
	{"IPv4 header cut short", false, V4, OURS4, 1, .len = 33},
	{"RoCEv2 to us, IPv6", true, V6, OURS6, 17, 4791},
	{"RoCEv2 to us, link-local", true, V6, OURS6_LINK, 17, 4791},
	{"RoCEv2 to the kernel, IPv6", false, V6, KERNELS6, 17, 4791},
	{"RoCEv2 to a group, IPv6", true, V6, NODES6, 17, 4791},
	{"other UDP to a group, IPv6", false, V6, NODES6, 17, 5353},
	{"UDP header cut short, IPv6", false, V6, OURS6, 17, 4791, .len = 61},
	{"ping to us, IPv6", true, V6, OURS6, 58, 128},
	{"ping to the kernel, IPv6", false, V6, KERNELS6, 58, 128},
	{"TCP to us, IPv6", false, V6, OURS6, 6},
	{"solicitation for us", true, V6, SOLICITED6, 58, 135, OURS6},
	{"solicitation for our link-local address", true, V6, SOLICITED6, 58, 135, OURS6_LINK},
	{"solicitation for the kernel", false, V6, SOLICITED6, 58, 135, KERNELS6},
	{"solicitation to us", true, V6, OURS6, 58, 135, OURS6},
	{"advertisement to us", true, V6, OURS6, 58, 136, KERNELS6},
	{"advertisement of our address", true, V6, NODES6, 58, 136, OURS6, .news = true},
	{"advertisement to all", false, V6, NODES6, 58, 136, KERNELS6, .news = true},
	{"advertisement to the kernel", false, V6, KERNELS6, 58, 136, KERNELS6},
	{"advertisement cut short", false, V6, NODES6, 58, 136, KERNELS6, .len = 77},
	{"router's advertisement", false, V6, NODES6, 58, 134, OURS6, .news = true},
	{"router's advertisement cut short", false, V6, NODES6, 58, 134, OURS6, .len = 69},
	{"router's advertisement to us", true, V6, OURS6_LINK, 58, 134},
	{"router's solicitation", false, V6, NODES6, 58, 133, OURS6},
	{"solicitation cut short", false, V6, SOLICITED6, 58, 135, OURS6, .len = 77},
	{"extension header", false, V6, OURS6, 0, 4791},
	{"fragment of IPv6", false, V6, OURS6, 44, 4791},
	{"IPv6 frame with version 4", false, V6, OURS6, 17, 4791, .first = 0x45},
	{"IPv6 header cut short", false, V6, OURS6, 58, .len = 53},
	{"MAC control", true, OTHER, .port = 0x8808},
	{"LLDP", false, OTHER, .port = 0x88cc},
	{"length in place of a type", false, OTHER, .port = 64},
	{"type cut off", false, OTHER, .port = 0x8808, .len = 13},
	{"one byte", false, OTHER, .len = 1},
};

static const uint32_t whole[] = {[ARP] = 60, [V4] = 74, [V6] = 94, [OTHER] = 60};

unsigned int
filter_frames(void)
{
	return sizeof(plans) / sizeof(plans[0]);
}

static void
put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
put_arp(uint8_t *arp, const struct plan *p)
{
	static const uint8_t head[8] = {0, 1, 8, 0, 6, 4, 0, 1};

	memcpy(arp, head, sizeof(head));
	memset(arp + 8, 2, 6);
	memset(arp + 14, 1, 4);
	if (p->news)
		memcpy(arp + 14, p->dst, 4);
	memset(arp + 18, 0, 6);
	memcpy(arp + 24, p->dst, 4);
}

static void
put_v4(uint8_t *ip, const struct plan *p)
{
	ip[0] = p->first ? p->first : 0x45;
	put16(ip + 2, 60);
	put16(ip + 6, p->fragment);
	ip[8] = 64;
	ip[9] = p->proto;
	memset(ip + 12, 1, 4);
	memcpy(ip + 16, p->dst, 4);
	put16(ip + 22, p->port);
}

static void
put_v6(uint8_t *ip, const struct plan *p)
{
	ip[0] = p->first ? p->first : 0x60;
	put16(ip + 4, 40);
	ip[6] = p->proto;
	ip[7] = 255;
	memset(ip + 8, 0x20, 16);
	memcpy(ip + 24, p->dst, 16);
	if (p->proto != 58) {
		put16(ip + 42, p->port);
		return;
	}
	ip[40] = (uint8_t)p->port;
	memcpy(ip + 48, p->target, 16);
}

/* True when the frame is of an adapter's VLAN by its tag; MAC control is of each. */
static bool
of_vlan(const struct plan *p, unsigned int vlan)
{
	if (!p->tag)
		return !vlan || (p->kind == OTHER && p->port == 0x8808);
	return (p->tag & 0xfff) == vlan;
}

void
filter_frame(unsigned int i, unsigned int vlan, struct filter_frame *f)
{
	static const uint16_t type[] = {[ARP] = 0x0806, [V4] = 0x0800, [V6] = 0x86dd};
	const struct plan *p = &plans[i];
	uint8_t *b = f->byte;

	f->name = p->name;
	f->ours = p->ours && of_vlan(p, vlan);
	f->news = p->news && of_vlan(p, vlan);
	f->len = p->len ? p->len : whole[p->kind] + (p->tag ? 4 : 0);
	memset(b, (int)i, FILTER_FRAME_MAX);
	memset(b, 0xff, 6);
	memset(b + 6, 2, 6);
	if (p->tag) {
		put16(b + 12, p->tag >> 16);
		put16(b + 14, p->tag & 0xffff);
		b += 4;
	}
	put16(b + 12, p->kind == OTHER ? p->port : type[p->kind]);
	if (p->kind == ARP)
		put_arp(b + 14, p);
	else if (p->kind == V4)
		put_v4(b + 14, p);
	else if (p->kind == V6)
		put_v6(b + 14, p);
}

static __u32
look(const void *ctx, const struct urn_filter_key *key)
{
	(void)ctx;
	for (unsigned int i = 0; i < FILTER_ADDRESSES; i++)
		if (memcmp(key->gid, filter_gid[i], 16) == 0)
			return URN_FILTER_ALL;
	return URN_FILTER_NOTHING;
}

bool
filter_says(const uint8_t *frame, uint32_t len, unsigned int vlan)
{
	return urn_filter_ours(frame, frame + len, vlan, look, NULL) != 0;
}

bool
filter_news(const uint8_t *frame, uint32_t len, unsigned int vlan)
{
	static const uint8_t arp[2] = {8, 6}, ipv6[2] = {0x86, 0xdd};
	bool tagged = len >= 18 && frame[12] == 0x81 && frame[13] == 0;

	if ((tagged ? (frame[14] << 8 | frame[15]) & 0xfffu : 0) != vlan)
		return false;
	frame += tagged ? 4 : 0;
	len -= tagged ? 4 : 0;
	if (len >= 42 && memcmp(frame + 12, arp, 2) == 0)
		return memcmp(frame + 28, frame + 38, 4) == 0;
	if (len < 70 || memcmp(frame + 12, ipv6, 2) != 0 || frame[14] >> 4 != 6 ||
	    frame[20] != 58 || frame[38] != 0xff)
		return false;
	return frame[54] == 134 || (frame[54] == 136 && len >= 78);
}

bool
filter_tagged(const struct filter_frame *f)
{
	return f->len >= 14 && ((f->byte[12] == 0x81 && f->byte[13] == 0) ||
				(f->byte[12] == 0x88 && f->byte[13] == 0xa8));
}

uint32_t
filter_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* Bytes that filters look at get values that they look for, more often than chance has it. */
void
filter_spoil(struct filter_frame *f, uint32_t *seed)
{
	static const uint8_t likely[] = {0,    1,    6,	   7,	8,   17,  58,	0x45, 0x60,
					 0x12, 0xb7, 0xff, 134, 135, 136, 0xdd, 0x86};
	unsigned int n = filter_random(seed) % 3;

	if (filter_random(seed) % 4 == 0)
		f->len = filter_random(seed) % (f->len + 1);
	for (unsigned int i = 0; i < n && f->len; i++) {
		uint32_t r = filter_random(seed);
		uint32_t at = filter_random(seed) % f->len;

		f->byte[at] = r % 2 ? (uint8_t)(r >> 8) : likely[(r >> 8) % sizeof(likely)];
	}
}
