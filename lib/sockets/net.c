/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of urnic's nodes: URNIC_SOCKETS_NET, or the networks of the adapter's own
 * addresses. */
#include "sockets/twin.h"

#include "abi/clock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URN_NETS = 16 };
/* Bits of the network of an address when nothing is told; milliseconds between looks for a
 * dataplane. */
enum { URN_NET_BITS4 = 24, URN_NET_BITS6 = 64, URN_NET_RETRY_MS = 1000 };

struct urn_net {
	uint8_t gid[16];
	unsigned int bits;
};

/* urn_net_lock protects all of these. */
static pthread_mutex_t urn_net_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_net urn_nets[URN_NETS];
static unsigned int urn_nets_n;
static bool urn_nets_told;     /* URNIC_SOCKETS_NET was read */
static uint64_t urn_net_tried; /* ms; when a dataplane was looked for in vain; 0: never */

static void
urn_net_add(const uint8_t gid[16], unsigned int bits)
{
	if (urn_nets_n == URN_NETS)
		return;
	memcpy(urn_nets[urn_nets_n].gid, gid, 16);
	urn_nets[urn_nets_n++].bits = bits;
}

/* Read one network, ADDRESS or ADDRESS/BITS. returns: true when it makes sense */
static bool
urn_net_read(const char *text)
{
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff};
	char word[64], *slash, *end;
	unsigned int bits = 128, most = 128;
	unsigned long n;

	snprintf(word, sizeof(word), "%s", text);
	slash = strchr(word, '/');
	if (slash != NULL)
		*slash = '\0';
	if (inet_pton(AF_INET, word, gid + 12) == 1)
		most = 32;
	else if (inet_pton(AF_INET6, word, gid) != 1)
		return false;
	if (slash != NULL) {
		n = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || n > most)
			return false;
		bits = 128 - most + (unsigned int)n;
	}
	urn_net_add(gid, bits);
	return true;
}

/* Read URNIC_SOCKETS_NET. returns: true when it is set */
static bool
urn_net_told(void)
{
	const char *told = secure_getenv("URNIC_SOCKETS_NET");
	char buf[512], *word, *more = NULL;

	if (told == NULL || told[0] == '\0')
		return false;
	snprintf(buf, sizeof(buf), "%s", told);
	for (word = strtok_r(buf, ", ", &more); word != NULL; word = strtok_r(NULL, ", ", &more))
		if (!urn_net_read(word))
			fprintf(stderr,
				"liburnic-sockets: URNIC_SOCKETS_NET: '%s' is no network such as "
				"10.0.0.0/24\n",
				word);
	return true;
}

/* Bits of the network of an own address, when nobody tells. returns: 0: the address is that of no
 * network of its own (fe80::/64 is on every link), or there is none */
static unsigned int
urn_net_bits(const uint8_t gid[16])
{
	if (urn_addr_is_any(gid) || (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80))
		return 0;
	return urn_addr_is_v4(gid) ? 96 + URN_NET_BITS4 : URN_NET_BITS6;
}

/* The networks of the adapter's addresses. */
static void
urn_net_guess(struct urn_msg_dev *dev)
{
	uint8_t gid[16];
	uint32_t i;

	for (i = 0; urn_msg_dev_gid(dev, i, gid) == 0; i++)
		if (urn_net_bits(gid) != 0)
			urn_net_add(gid, urn_net_bits(gid));
}

/* Learn the networks, once. The lock is held. */
static void
urn_net_learn(void)
{
	uint64_t now = urn_clock_ms();
	struct urn_socks *socks;

	if (!urn_nets_told) {
		urn_nets_told = true;
		(void)urn_net_told();
	}
	if (urn_nets_n != 0 || (urn_net_tried != 0 && now - urn_net_tried < URN_NET_RETRY_MS))
		return;
	socks = urn_socks_get();
	if (socks != NULL)
		urn_net_guess(urn_socks_dev(socks));
	else
		urn_net_tried = now ? now : 1;
}

/* True when the first bits of two addresses are the same. */
static bool
urn_net_same(const uint8_t a[16], const uint8_t b[16], unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

/* True when the kernel alone has the address: loopback, multicast, broadcast. */
static bool
urn_net_never(const uint8_t gid[16])
{
	static const uint8_t loop[16] = {[15] = 1};

	if (urn_addr_is_v4(gid))
		return gid[12] == 127 || gid[12] >= 224 || urn_addr_is_any(gid);
	return gid[0] == 0xff || memcmp(gid, loop, 16) == 0 || urn_addr_is_any(gid);
}

/* True when the address is the broadcast address of an IPv4 network. */
static bool
urn_net_broadcast(const struct urn_net *net, const uint8_t gid[16])
{
	unsigned int bit = net->bits;

	if (!urn_addr_is_v4(net->gid) || bit > 126)
		return false;
	while (bit < 128 && gid[bit / 8] >> (7 - bit % 8) & 1)
		bit++;
	return bit == 128;
}

/* True when an address is that of a node in a network. */
static bool
urn_net_within(const struct urn_net *net, const uint8_t gid[16])
{
	return urn_net_same(gid, net->gid, net->bits) && !urn_net_broadcast(net, gid);
}

bool
urn_net_near(const uint8_t own[16], const struct urn_addr *a)
{
	struct urn_net net = {.bits = urn_net_bits(own)};

	memcpy(net.gid, own, sizeof(net.gid));
	return net.bits != 0 && !urn_net_never(a->gid) && urn_net_within(&net, a->gid);
}

bool
urn_net_some(void)
{
	bool some;

	pthread_mutex_lock(&urn_net_lock);
	urn_net_learn();
	some = urn_nets_n != 0;
	pthread_mutex_unlock(&urn_net_lock);
	return some;
}

bool
urn_net_has(const struct urn_addr *a)
{
	bool has = false;
	unsigned int i;

	if (urn_net_never(a->gid))
		return false;
	pthread_mutex_lock(&urn_net_lock);
	urn_net_learn();
	for (i = 0; i < urn_nets_n && !has; i++)
		has = urn_net_within(&urn_nets[i], a->gid);
	pthread_mutex_unlock(&urn_net_lock);
	return has;
}

bool
urn_twin_target(const struct urn_twin *t, struct urn_addr *a, const struct sockaddr *sa,
		socklen_t len)
{
	if (urn_addr_get(a, sa, len) != 0)
		return false;
	/* An IPv6 socket takes addresses of both families. */
	if (t->family == AF_INET && sa->sa_family != AF_INET)
		return false;
	return !(atomic_load(&t->v6only) && urn_addr_is_v4(a->gid)) && urn_net_has(a);
}

bool
urn_net_own(const struct urn_addr *a)
{
	struct urn_socks *socks;
	uint8_t own[16];
	uint32_t i;

	if (!urn_net_has(a))
		return false;
	socks = urn_socks_get();
	for (i = 0; socks != NULL && urn_msg_dev_gid(urn_socks_dev(socks), i, own) == 0; i++)
		if (memcmp(own, a->gid, 16) == 0)
			return true;
	return false;
}

void
urn_net_fork_hold(void)
{
	pthread_mutex_lock(&urn_net_lock);
}

void
urn_net_fork_parent(void)
{
	pthread_mutex_unlock(&urn_net_lock);
}

void
urn_net_fork_child(void)
{
	pthread_mutex_init(&urn_net_lock, NULL);
}
