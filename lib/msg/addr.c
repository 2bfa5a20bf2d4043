/* SPDX-License-Identifier: BSD-3-Clause */
#include "msg/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static const uint8_t urn_addr_v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

bool
urn_addr_is_v4(const uint8_t gid[16])
{
	return memcmp(gid, urn_addr_v4_prefix, sizeof(urn_addr_v4_prefix)) == 0;
}

bool
urn_addr_is_any(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return memcmp(gid, zero, 16) == 0 ||
	       (urn_addr_is_v4(gid) && memcmp(gid + 12, zero, 4) == 0);
}

int
urn_addr_get(struct urn_addr *a, const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memset(a, 0, sizeof(*a));
	if (sa == NULL ||
	    len < (socklen_t)(offsetof(struct sockaddr, sa_family) + sizeof(sa->sa_family)))
		return EINVAL;
	if (sa->sa_family == AF_INET) {
		if (len < (socklen_t)sizeof(in))
			return EINVAL;
		memcpy(&in, sa, sizeof(in));
		memcpy(a->gid, urn_addr_v4_prefix, sizeof(urn_addr_v4_prefix));
		memcpy(a->gid + 12, &in.sin_addr, 4);
		a->port = ntohs(in.sin_port);
		return 0;
	}
	if (sa->sa_family != AF_INET6)
		return EAFNOSUPPORT;
	if (len < (socklen_t)offsetof(struct sockaddr_in6, sin6_scope_id))
		return EINVAL;
	memset(&in6, 0, sizeof(in6));
	memcpy(&in6, sa, len < (socklen_t)sizeof(in6) ? len : (socklen_t)sizeof(in6));
	memcpy(a->gid, &in6.sin6_addr, 16);
	a->port = ntohs(in6.sin6_port);
	return 0;
}

void
urn_addr_put(const struct urn_addr *a, int family, struct sockaddr *sa, socklen_t *len)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
	const void *from = family == AF_INET6 ? (const void *)&in6 : &in;
	socklen_t whole = family == AF_INET6 ? sizeof(in6) : sizeof(in);

	if (urn_addr_is_v4(a->gid))
		memcpy(&in.sin_addr, a->gid + 12, 4);
	memcpy(&in6.sin6_addr, a->gid, 16);
	if (sa != NULL)
		memcpy(sa, from, *len < whole ? *len : whole);
	*len = whole;
}
