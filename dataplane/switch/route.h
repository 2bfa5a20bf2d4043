/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Static routes of a switch by target node: the port behind which an IP address (a GID) is. Used
 * for frames to a MAC address that the table of addresses (fdb.h) does not know, which otherwise
 * are flooded. A look-up takes O(1), and no memory is taken after creation. Addresses are 16 bytes
 * in network order, IPv4 as ::ffff:a.b.c.d.
 */
#ifndef URN_SWITCH_ROUTE_H
#define URN_SWITCH_ROUTE_H

#include <stdint.h>

#include <rte_mbuf.h>

#define URN_ROUTE_MAX 65536u /* largest number of routes */

struct urn_route; /* a table of routes */

/*
 * max: routes, 1 to URN_ROUTE_MAX; seed: the hash's. returns: an empty table, or NULL: bad max, or
 * no memory
 */
struct urn_route *urn_route_create(uint32_t max, uint32_t seed);
/* NULL is allowed. */
void urn_route_destroy(struct urn_route *r);
/* Put an address behind a port, in place of an earlier route. returns: 0 or -ENOSPC */
int urn_route_set(struct urn_route *r, const uint8_t gid[16], uint16_t port);
/* returns: the port of an address, or -1: no route */
int urn_route_lookup(const struct urn_route *r, const uint8_t gid[16]);
/* Number of routes. */
uint32_t urn_route_count(const struct urn_route *r);
/* returns: the port of the address that an IPv4 or IPv6 frame goes to, VLAN tag or not, or -1 */
int urn_route_frame(const struct urn_route *r, const struct rte_mbuf *m);

#endif
