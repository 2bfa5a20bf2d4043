/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which addresses the kernel has. The kernel itself needs ARP, neighbour discovery and ICMP for
 * an address that both have: most of all for the link-local IPv6 address, which both make
 * from the interface's MAC.
 */
#include "pmd_glue/filter.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The GID of an address of the kernel's. returns: false: of another family */
static bool
gid_of(const struct sockaddr *sa, struct urn_filter_key *key)
{
	if (sa == NULL)
		return false;
	if (sa->sa_family == AF_INET6) {
		memcpy(key->gid, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
		return true;
	}
	if (sa->sa_family != AF_INET)
		return false;
	urn_filter_key_v4(key, (const uint8_t *)&((const struct sockaddr_in *)sa)->sin_addr);
	return true;
}

bool
urn_filter_shares(const struct urn_filter_key *key, uint32_t *share, unsigned int n)
{
	struct ifaddrs *list = NULL;
	struct urn_filter_key has;

	if (getifaddrs(&list) != 0)
		return false;
	for (unsigned int i = 0; i < n; i++)
		share[i] = URN_FILTER_ALL;
	for (const struct ifaddrs *a = list; a != NULL; a = a->ifa_next)
		for (unsigned int i = 0; gid_of(a->ifa_addr, &has) && i < n; i++)
			if (memcmp(&has, &key[i], sizeof(has)) == 0)
				share[i] = URN_FILTER_ROCE;
	freeifaddrs(list);
	return true;
}

int
urn_filter_watch(void)
{
	const struct sockaddr_nl to = {.nl_family = AF_NETLINK,
				       .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool
urn_filter_changed(int watch)
{
	bool changed = false;
	char what[256]; /* the rest of a message is cut off */

	/* A message that found no room (ENOBUFS) is a change, too. Bounded: the rest next time. */
	for (unsigned int i = 0; watch >= 0 && i < 64; i++) {
		if (recv(watch, what, sizeof(what), MSG_DONTWAIT) < 0 && errno != ENOBUFS)
			break;
		changed = true;
	}
	return changed;
}
