/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces of the host, in the C library's place. libfabric looks for RDMA devices by the
 * addresses of interfaces, and gets those of urnic's devices behind the host's own. All other
 * programs and libraries would take them for the kernel's, and get the host's alone.
 */
#include "dropin/paths/call.h"

#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* One interface and its address. */
struct urn_paths_if {
	struct ifaddrs ifa; /* first */
	struct sockaddr_storage addr, mask;
	char name[IBV_SYSFS_NAME_MAX];
};

/* The data of the first of our interfaces points here. */
static char urn_paths_if_first;

/* True when code at an address is libfabric's. */
static bool
libfabric_calls(const void *at)
{
	const char *base;
	Dl_info info;

	if (dladdr(at, &info) == 0 || info.dli_fname == NULL)
		return false;
	base = strrchr(info.dli_fname, '/');
	return strncmp(base != NULL ? base + 1 : info.dli_fname, "libfabric.so", 12) == 0;
}

/* Fill an interface with an entry of a GID table. returns: false: it is no address of IPv4 */
static bool
fill(struct urn_paths_if *f, const struct urn_paths_device *d, const union ibv_gid *gid)
{
	struct sockaddr_in *addr = (struct sockaddr_in *)&f->addr;
	struct sockaddr_in *mask = (struct sockaddr_in *)&f->mask;

	if (!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw))
		return false;
	addr->sin_family = mask->sin_family = AF_INET;
	memcpy(&addr->sin_addr, gid->raw + 12, 4);
	mask->sin_addr.s_addr = htonl(0xffffff00);
	memcpy(f->name, d->name, sizeof(f->name));
	f->ifa.ifa_name = f->name;
	f->ifa.ifa_flags = IFF_UP | IFF_RUNNING;
	f->ifa.ifa_addr = (struct sockaddr *)addr;
	f->ifa.ifa_netmask = (struct sockaddr *)mask;
	return true;
}

/* Make the list of our interfaces. returns: NULL: there are none, or no memory */
static struct ifaddrs *
ours(void)
{
	const struct urn_paths_devices *all = urn_paths_hold();
	struct urn_paths_if *f = calloc((size_t)all->n * URN_PATHS_GIDS + 1, sizeof(*f));
	size_t i, g, n = 0;

	for (i = 0; f != NULL && i < all->n; i++)
		for (g = 0; g < all->device[i].gids; g++)
			if (fill(&f[n], &all->device[i], &all->device[i].gid[g])) {
				if (n > 0)
					f[n - 1].ifa.ifa_next = &f[n].ifa;
				n++;
			}
	urn_paths_release();
	if (n == 0) {
		free(f);
		return NULL;
	}
	f->ifa.ifa_data = &urn_paths_if_first;
	return &f->ifa;
}

URN_CALL int
getifaddrs(struct ifaddrs **list)
{
	int err = urn_paths_real()->getifaddrs(list);
	struct ifaddrs **end = list;

	if (err != 0 || !libfabric_calls(__builtin_return_address(0)))
		return err;
	while (*end != NULL)
		end = &(*end)->ifa_next;
	*end = ours();
	return 0;
}

URN_CALL void
freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs **at = &list, *first;

	while (*at != NULL && (*at)->ifa_data != &urn_paths_if_first)
		at = &(*at)->ifa_next;
	first = *at;
	*at = NULL; /* does nothing where the list has none of ours */
	free(first);
	if (list != NULL)
		urn_paths_real()->freeifaddrs(list);
}
