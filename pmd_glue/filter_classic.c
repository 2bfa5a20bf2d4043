/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of filter_rules.h as a classic BPF program. A load behind the frame's end ends
 * such a program and refuses the frame. Conditional jumps reach 255 instructions, so the program is
 * a chain of "if this holds, then go on, else leave": each test skips the one instruction that
 * refuses or accepts, and only the parts are jumped to by BPF_JA, which reaches everywhere.
 *
 * Packet sockets get copies, so the program takes what other stations announce of themselves, too:
 * a peer or router whose address moved is asked at once then. Router advertisements are taken as
 * well: the adapter drops them unless it is to accept them.
 */
#include "pmd_glue/filter.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Offsets in a frame without a tag, bytes. */
enum {
	OFF_TYPE = 12,
	OFF_ARP_SENDER = 28,
	OFF_ARP_TARGET = 38,
	OFF_V4 = 14,
	OFF_V4_FRAGMENT = 20,
	OFF_V4_PROTO = 23,
	OFF_V4_DST = 30,
	OFF_V4_UDP = 34,
	OFF_V6 = 14,
	OFF_V6_NEXT = 20,
	OFF_V6_DST = 38,
	OFF_V6_L4 = 54,
	OFF_ND_TARGET = 62,
	OFF_RA_END = 70,
	UDP_PORT = 2, /* ... behind the UDP header's start */
	UDP_CSUM = 6,
};

#define ACCEPT UINT32_MAX /* bytes of the frame */
#define REFUSE 0u

struct classic {
	struct sock_filter *code; /* URN_FILTER_CLASSIC_MAX */
	unsigned int n;
	const struct urn_filter_key *key;
	unsigned int keys;
};

static void
put(struct classic *p, uint16_t op, uint8_t yes, uint8_t no, uint32_t k)
{
	p->code[p->n++] = (struct sock_filter){op, yes, no, k};
}

static void
load(struct classic *p, uint16_t size, uint32_t off)
{
	put(p, BPF_LD | BPF_ABS | size, 0, 0, off);
}

static void
leave(struct classic *p, uint32_t bytes)
{
	put(p, BPF_RET | BPF_K, 0, 0, bytes);
}

/* Refuse the frame unless the accumulator is k. */
static void
must_be(struct classic *p, uint32_t k)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, k);
	leave(p, REFUSE);
}

/* Accept the frame when the accumulator is k. */
static void
accept_if(struct classic *p, uint32_t k)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, k);
	leave(p, ACCEPT);
}

static void
mask(struct classic *p, uint32_t k)
{
	put(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, k);
}

/* Go to a part whose place is not known yet. returns: for here() */
static unsigned int
go(struct classic *p)
{
	put(p, BPF_JMP | BPF_JA, 0, 0, 0);
	return p->n - 1;
}

/* Go to a part whose place is not known yet when the accumulator is k. returns: for here() */
static unsigned int
go_if(struct classic *p, uint32_t k)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, k);
	return go(p);
}

/* The part begins here. */
static void
here(struct classic *p, unsigned int jump)
{
	p->code[jump].k = p->n - jump - 1;
}

static uint32_t
word(const struct urn_filter_key *key, unsigned int i)
{
	uint32_t w;

	memcpy(&w, key->gid + 4 * i, sizeof(w));
	return ntohl(w);
}

static bool
is_v4(const struct urn_filter_key *key)
{
	return word(key, 0) == 0 && word(key, 1) == 0 && word(key, 2) == 0xffff;
}

/* Accept the frame if the four bytes there are an IPv4 address of the port's, else refuse it. */
static void
match_v4(struct classic *p, uint32_t off)
{
	load(p, BPF_W, off);
	for (unsigned int i = 0; i < p->keys; i++)
		if (is_v4(&p->key[i]))
			accept_if(p, word(&p->key[i], 3));
	leave(p, REFUSE);
}

/* Accept the frame if the 16 bytes there are an IPv6 address of the port's; else go on. */
static void
match_v6(struct classic *p, uint32_t off)
{
	for (unsigned int i = 0; i < p->keys; i++) {
		for (unsigned int w = 0; w < 4; w++) {
			load(p, BPF_W, off + 4 * w);
			/* Over the rest of the words, two instructions each, and the acceptance. */
			put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(2 * (3 - w) + 1),
			    word(&p->key[i], w));
		}
		leave(p, ACCEPT);
	}
}

/* The whole UDP header is there, with RoCEv2's port. */
static void
udp(struct classic *p, uint32_t off)
{
	load(p, BPF_H, off + UDP_CSUM);
	load(p, BPF_H, off + UDP_PORT);
	must_be(p, URN_FILTER_UDP_PORT);
}

static void
ipv4(struct classic *p)
{
	unsigned int icmp;

	load(p, BPF_B, OFF_V4);
	must_be(p, 0x45);
	load(p, BPF_H, OFF_V4_FRAGMENT);
	mask(p, 0x3fff);
	must_be(p, 0);
	load(p, BPF_B, OFF_V4_PROTO);
	icmp = go_if(p, IPPROTO_ICMP);
	must_be(p, IPPROTO_UDP);
	udp(p, OFF_V4_UDP);
	load(p, BPF_B, OFF_V4_DST);
	mask(p, 0xf0);
	accept_if(p, 0xe0); /* a group */
	here(p, icmp);
	match_v4(p, OFF_V4_DST);
}

/* A question or an announcement: the sender's address is the target then. */
static void
arp(struct classic *p)
{
	load(p, BPF_W, OFF_ARP_SENDER);
	put(p, BPF_MISC | BPF_TAX, 0, 0, 0);
	load(p, BPF_W, OFF_ARP_TARGET);
	put(p, BPF_JMP | BPF_JEQ | BPF_X, 0, 1, 0);
	leave(p, ACCEPT);
	match_v4(p, OFF_ARP_TARGET);
}

static void
ipv6(struct classic *p)
{
	unsigned int icmp, group, advertisement, router;

	load(p, BPF_B, OFF_V6);
	mask(p, 0xf0);
	must_be(p, 0x60);
	load(p, BPF_B, OFF_V6_NEXT);
	icmp = go_if(p, IPPROTO_ICMPV6);
	must_be(p, IPPROTO_UDP);
	udp(p, OFF_V6_L4);
	load(p, BPF_B, OFF_V6_DST);
	accept_if(p, 0xff); /* a group */
	match_v6(p, OFF_V6_DST);
	leave(p, REFUSE);
	here(p, icmp);
	load(p, BPF_B, OFF_V6_DST);
	group = go_if(p, 0xff);
	match_v6(p, OFF_V6_DST);
	leave(p, REFUSE);
	here(p, group);
	load(p, BPF_B, OFF_V6_L4);
	advertisement = go_if(p, 136);
	router = go_if(p, 134);
	must_be(p, 135); /* solicitation */
	match_v6(p, OFF_ND_TARGET);
	leave(p, REFUSE);
	here(p, advertisement);
	load(p, BPF_W, OFF_ND_TARGET + 12); /* the whole target is there */
	leave(p, ACCEPT);
	here(p, router);
	load(p, BPF_W, OFF_RA_END - 4); /* the whole head is there */
	leave(p, ACCEPT);
}

/*
 * Accept MAC control, and refuse frames of other VLANs. The kernel keeps a tag beside the frame,
 * where the offsets above don't see it.
 */
static void
tag(struct classic *p, uint16_t vlan)
{
	unsigned int tagged, plain = 0;

	load(p, BPF_B, (uint32_t)SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT);
	tagged = go_if(p, 1);
	load(p, BPF_H, OFF_TYPE);
	accept_if(p, 0x8808); /* MAC control */
	if (vlan == 0)
		plain = go(p);
	else
		leave(p, REFUSE);
	here(p, tagged);
	load(p, BPF_H, (uint32_t)SKF_AD_OFF + SKF_AD_VLAN_TPID);
	must_be(p, ETH_P_8021Q); /* a provider's tag numbers other VLANs */
	load(p, BPF_H, (uint32_t)SKF_AD_OFF + SKF_AD_VLAN_TAG);
	mask(p, 0xfff);
	must_be(p, vlan);
	if (vlan == 0)
		here(p, plain);
}

unsigned int
urn_filter_classic(struct sock_filter code[URN_FILTER_CLASSIC_MAX],
		   const struct urn_filter_key *key, unsigned int n, uint16_t vlan)
{
	struct classic p = {.code = code, .key = key, .keys = n};
	unsigned int v4, v6, asked;

	tag(&p, vlan);
	load(&p, BPF_H, OFF_TYPE);
	v4 = go_if(&p, ETH_P_IP);
	v6 = go_if(&p, ETH_P_IPV6);
	asked = go_if(&p, ETH_P_ARP);
	leave(&p, REFUSE);
	here(&p, asked);
	arp(&p);
	here(&p, v4);
	ipv4(&p);
	here(&p, v6);
	ipv6(&p);
	return p.n;
}

/* ---- sockets */

/* True for a packet socket of that interface in a fanout group, as the PMD makes them. */
static bool
is_port_socket(int fd, unsigned int ifindex)
{
	struct sockaddr_ll ll = {.sll_family = AF_UNSPEC};
	socklen_t len = sizeof(ll);
	int fanout = 0;
	socklen_t fanout_len = sizeof(fanout);

	return getsockname(fd, (struct sockaddr *)&ll, &len) == 0 && ll.sll_family == AF_PACKET &&
	       ll.sll_ifindex == (int)ifindex &&
	       getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &fanout, &fanout_len) == 0 && fanout != 0;
}

int
urn_filter_classic_attach(unsigned int ifindex, const struct urn_filter_key *key, unsigned int n,
			  uint16_t vlan)
{
	struct sock_filter code[URN_FILTER_CLASSIC_MAX];
	struct sock_fprog prog = {.filter = code};
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	int sockets = 0, ret = 0;

	if (d == NULL)
		return -errno;
	prog.len = (unsigned short)urn_filter_classic(code, key, n, vlan);
	while (ret == 0 && (e = readdir(d)) != NULL) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || !is_port_socket(fd, ifindex))
			continue;
		sockets++;
		if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) != 0)
			ret = -errno;
	}
	closedir(d);
	return ret != 0 ? ret : sockets;
}
