/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/seats.h"

#include <netinet/in.h>
#include <string.h>

enum { HALF = 8 }; /* bytes of an IPv6 address that name the network */

void
urn_seat_from(uint8_t from[16], const struct sockaddr *addr)
{
	memset(from, 0, 16);
	if (addr->sa_family == AF_INET) {
		memcpy(from + HALF, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
		from[15] = 4; /* no network of IPv6 */
	} else if (addr->sa_family == AF_INET6) {
		memcpy(from, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, HALF);
	}
}

/* Number of seats that an address has. */
static unsigned int
seats_of(const struct urn_seat *s, unsigned int n, const uint8_t from[16])
{
	unsigned int has = 0;

	for (unsigned int i = 0; i < n; i++)
		has += s[i].taken && memcmp(s[i].from, from, 16) == 0;
	return has;
}

/* All seats are taken: which one must be left, and *when. returns: its index */
static unsigned int
one_to_go(const struct urn_seat *s, unsigned int n, uint64_t *when)
{
	unsigned int goes = 0, most = 0, newest_has = 0;
	uint64_t newest = 0;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int has = seats_of(s, n, s[i].from);

		if (s[i].since > newest || (s[i].since == newest && has < newest_has)) {
			newest = s[i].since;
			newest_has = has;
		}
		if (has > most || (has == most && s[i].since < s[goes].since)) {
			most = has;
			goes = i;
		}
	}
	*when = most >= newest_has + 2 ? 0 : s[goes].since + URN_SEAT_GRACE_MS;
	return goes;
}

unsigned int
urn_seats_due(const struct urn_seat *s, unsigned int n, uint64_t now, uint64_t *next)
{
	unsigned int taken = 0, goes;
	uint64_t when;

	*next = UINT64_MAX;
	for (unsigned int i = 0; i < n; i++) {
		if (!s[i].taken)
			continue;
		taken++;
		if (s[i].until <= now)
			return i;
		if (s[i].until < *next)
			*next = s[i].until;
	}
	if (taken < n || n == 0)
		return n;
	goes = one_to_go(s, n, &when);
	if (when <= now)
		return goes;
	if (when < *next)
		*next = when;
	return n;
}
